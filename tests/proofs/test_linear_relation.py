"""Theorem 3 and the one-hot reformulation."""

from proofs_checks.linear_relation import PROOFS
from sfr_theory.claims import Verdict
from tests.proofs.harness import proof_tests

EXPECTED = {
    "thm3/values": Verdict.PROVED,
    "thm3/equivalent-frameworks": Verdict.PROVED,
    "thm3/psi-determines-xi": Verdict.REFUTED,
    "onehot/discrete": Verdict.PROVED,
}

test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof = proof_tests(PROOFS, EXPECTED)
