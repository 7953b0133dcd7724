"""Theorem 2, corrected."""

from proofs_checks.gpi_bound import PROOFS
from sfr_theory.claims import Verdict
from tests.proofs.harness import proof_tests

EXPECTED = {
    "thm2/reward-distance": Verdict.PROVED,
    "thm2/step-greedy": Verdict.PROVED,
    "thm2/step-improvement": Verdict.PROVED,
    "thm2/step-monotone": Verdict.PROVED,
    "thm2/step-telescoping": Verdict.PROVED,
    "thm2/step-contraction": Verdict.PROVED,
    "thm2/step-transfer": Verdict.PROVED,
    "thm2/step-value": Verdict.PROVED,
    "thm2/sharp": Verdict.PROVED,
    "thm2/sharp-value": Verdict.PROVED,
    "thm2/corrected": Verdict.PROVED,
}

test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof = proof_tests(PROOFS, EXPECTED)
