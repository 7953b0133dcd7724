"""Continuous features: the tent code, CSFR, clipping, L^1."""

from proofs_checks.continuous import PROOFS
from sfr_theory.claims import Verdict
from tests.proofs.harness import proof_tests

EXPECTED = {
    "tent/partition": Verdict.PROVED,
    "tent/reproduces": Verdict.PROVED,
    "tent/printed-misbracketed": Verdict.REFUTED,
    "tent/printed-centres": Verdict.REFUTED,
    "tent/binary": Verdict.REFUTED,
    "csfr/decomposition": Verdict.PROVED,
    "csfr/interpolant-bias": Verdict.PROVED,
    "continuous/no-linear-reformulation": Verdict.REFUTED,
    "continuous/no-linear-for-all-rewards": Verdict.PROVED,
    "continuous/hoelder-gap": Verdict.REFUTED,
    "clip/absolute-error": Verdict.PROVED,
    "clip/q-error": Verdict.REFUTED,
}

test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof = proof_tests(PROOFS, EXPECTED)
