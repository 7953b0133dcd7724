"""Theorem 1 path by path, the indicator, the one-step model."""

from proofs_checks.learning_identities import PROOFS
from sfr_theory.claims import Verdict
from tests.proofs.harness import proof_tests

EXPECTED = {
    "thm1/pathwise": Verdict.PROVED,
    "mf/indicator-unbiased": Verdict.PROVED,
    "mf/indicator-density": Verdict.REFUTED,
    "mb/bias-formula": Verdict.PROVED,
    "mb/unbiased": Verdict.REFUTED,
    "mb/exact-identity": Verdict.PROVED,
    "mb/beta-zero": Verdict.REFUTED,
}

test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof = proof_tests(PROOFS, EXPECTED)
