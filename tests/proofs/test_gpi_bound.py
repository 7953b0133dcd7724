"""Theorem 2, corrected."""

import pytest

from proofs_checks.gpi_bound import PROOFS
from proofs_checks.proof import Broken, Proof
from sfr_theory.claims import Verdict
from tests.proofs.harness import each_proof, each_tooth

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
