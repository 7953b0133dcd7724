"""Proposition 1 and Corollary 1."""

from proofs_checks.equivalence import PROOFS
from sfr_theory.claims import Verdict
from tests.proofs.harness import proof_tests

EXPECTED = {
    "prop1/printed": Verdict.NEEDS_ASSUMPTION,
    "prop1/corrected": Verdict.PROVED,
    "cor1/isometry": Verdict.PROVED,
    "cor1/two-norms-differ": Verdict.REFUTED,
}

test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof = proof_tests(PROOFS, EXPECTED)
