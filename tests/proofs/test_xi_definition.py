"""The xi-function, its mass, its series, and when its integral exists."""

from proofs_checks.xi_definition import PROOFS
from sfr_theory.claims import Verdict
from tests.proofs.harness import proof_tests

EXPECTED = {
    "xi/definition": Verdict.PROVED,
    "xi/mass": Verdict.PROVED,
    "xi/series": Verdict.PROVED,
    "xi/transfer": Verdict.PROVED,
    "xi/l1-not-enough": Verdict.REFUTED,
    "xi/finite-integral": Verdict.PROVED,
}

test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof = proof_tests(PROOFS, EXPECTED)
