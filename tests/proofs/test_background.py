"""Section 2 of the paper."""

from proofs_checks.background import PROOFS
from sfr_theory.claims import Verdict
from tests.proofs.harness import proof_tests

EXPECTED = {
    "bg/q-bellman": Verdict.PROVED,
    "bg/q-learning-printed": Verdict.REFUTED,
    "bg/q-learning-corrected": Verdict.PROVED,
    "bg/sr": Verdict.PROVED,
    "bg/psi-linear": Verdict.PROVED,
    "bg/psi-transfer": Verdict.PROVED,
    "bg/psi-bellman-printed": Verdict.REFUTED,
    "bg/psi-bellman-corrected": Verdict.PROVED,
}

test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof = proof_tests(PROOFS, EXPECTED)
