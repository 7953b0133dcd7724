"""The inequalities behind T1-MB and T1-GPI."""

import pytest

from proofs_checks.learning_limits import PROOFS
from proofs_checks.proof import Broken, Proof
from sfr_theory.claims import Verdict
from tests.proofs.harness import each_proof, each_tooth

EXPECTED = {
    "lemma/comparison": Verdict.PROVED,
    "gpi-learning/step-bootstrap": Verdict.PROVED,
    "gpi-learning/step-limit": Verdict.PROVED,
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
