"""What every proof must pass: its verdict is what its method should find, broken variants are rejected."""

from __future__ import annotations

import pytest
from _pytest.mark.structures import ParameterSet

from proofs_checks import ledger
from proofs_checks.argument import Broken, Proof
from sfr_theory.catalogue import CATALOGUE

PROOFS = ledger.collect().values()


def case(proof: Proof, content: object, name: str) -> ParameterSet:
    return pytest.param(content, id=name, marks=[pytest.mark.slow] if proof.slow else [])


@pytest.mark.parametrize("proof", [case(proof, proof, proof.claim) for proof in PROOFS])
def test_the_verdict_is_as_expected(proof: Proof) -> None:
    result = proof.check()
    assert result.verdict is proof.method.at_best(CATALOGUE[proof.claim].expected), result.evidence
    assert result.evidence
    assert result.scope


@pytest.mark.parametrize(
    "variant",
    [
        case(proof, variant, f"{proof.claim}: {variant.sentence}")
        for proof in PROOFS
        for variant in proof.broken
    ],
)
def test_a_broken_variant_is_rejected(variant: Broken) -> None:
    assert variant.is_rejected()


def test_every_proof_has_a_broken_variant() -> None:
    assert [proof.claim for proof in PROOFS if not proof.broken] == []
