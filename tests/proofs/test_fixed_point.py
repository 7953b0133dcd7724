"""Proposition 2."""

from proofs_checks.fixed_point import PROOFS
from sfr_theory.claims import Verdict
from tests.proofs.harness import proof_tests

EXPECTED = {
    "lemma/max-difference": Verdict.PROVED,
    "prop2/well-defined": Verdict.PROVED,
    "prop2/contraction": Verdict.PROVED,
    "prop2/bellman-on-q": Verdict.PROVED,
    "prop2/fixed-point": Verdict.PROVED,
    "prop2/txi-contraction": Verdict.REFUTED,
    "prop2/policy-operator-contraction": Verdict.PROVED,
}

test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof = proof_tests(PROOFS, EXPECTED)
