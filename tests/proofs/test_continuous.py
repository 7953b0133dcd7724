"""Continuous features: the tent code, CSFR, clipping, L^1."""

import pytest

from proofs_checks.continuous import PROOFS
from proofs_checks.proof import Broken, Proof
from sfr_theory.claims import Verdict
from tests.proofs.harness import each_proof, each_tooth

EXPECTED = {
    "tent/partition": Verdict.PROVED,
    "tent/reproduces": Verdict.PROVED,
    "tent/printed-misbracketed": Verdict.REFUTED,
    "tent/printed-centres": Verdict.REFUTED,
    "tent/binary": Verdict.REFUTED,
    "csfr/decomposition": Verdict.PROVED,
    "csfr/interpolant-bias": Verdict.PROVED,
    "continuous/no-linear-reformulation": Verdict.REFUTED,
    "continuous/no-linear-for-all-rewards": Verdict.PROVED,
    "continuous/hoelder-gap": Verdict.REFUTED,
    "clip/absolute-error": Verdict.PROVED,
    "clip/q-error": Verdict.REFUTED,
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
