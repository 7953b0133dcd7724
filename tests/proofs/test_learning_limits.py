"""The inequalities behind T1-MB and T1-GPI."""

from proofs_checks.learning_limits import PROOFS
from sfr_theory.claims import Verdict
from tests.proofs.harness import proof_tests

EXPECTED = {
    "lemma/comparison": Verdict.PROVED,
    "gpi-learning/step-bootstrap": Verdict.PROVED,
    "gpi-learning/step-limit": Verdict.PROVED,
}

test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof = proof_tests(PROOFS, EXPECTED)
