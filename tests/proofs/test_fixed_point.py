"""Proposition 2."""

import pytest

from proofs_checks.fixed_point import PROOFS
from proofs_checks.proof import Broken, Proof
from sfr_theory.claims import Verdict
from tests.proofs.harness import each_proof, each_tooth

EXPECTED = {
    "lemma/max-difference": Verdict.PROVED,
    "prop2/well-defined": Verdict.PROVED,
    "prop2/contraction": Verdict.PROVED,
    "prop2/bellman-on-q": Verdict.PROVED,
    "prop2/fixed-point": Verdict.PROVED,
    "prop2/txi-contraction": Verdict.REFUTED,
    "prop2/policy-operator-contraction": Verdict.PROVED,
}


@pytest.mark.parametrize("proof", each_proof(PROOFS))
def test_verdict(proof: Proof) -> None:
    result = proof.check()
    assert result.verdict == EXPECTED[proof.claim], result.evidence
    assert result.scope


@pytest.mark.parametrize("tooth", each_tooth(PROOFS))
def test_broken_variant_is_rejected(tooth: Broken) -> None:
    assert tooth.is_rejected()


def test_every_claim_has_a_proof() -> None:
    assert {proof.claim for proof in PROOFS} == set(EXPECTED)
