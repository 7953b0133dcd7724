"""What every proof file must pass: its verdicts are as expected, and its broken variants are rejected.

test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof = proof_tests(PROOFS, EXPECTED)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

import pytest
from _pytest.mark.structures import ParameterSet

from proofs_checks import smt
from proofs_checks.proof import Broken, Proof
from sfr_theory.claims import Verdict


def _marks(proof: Proof) -> list[pytest.MarkDecorator]:
    slow = [pytest.mark.slow] if proof.slow else []
    needs_z3 = proof.needs_z3 and not smt.is_available()
    return [*slow, *([pytest.mark.skip(reason="z3 is not installed")] if needs_z3 else [])]


def each_proof(proofs: Iterable[Proof]) -> list[ParameterSet]:
    return [pytest.param(proof, id=proof.claim, marks=_marks(proof)) for proof in proofs]


def each_tooth(proofs: Iterable[Proof]) -> list[ParameterSet]:
    """Every broken variant; a proof without one fails here, at collection."""
    cases = []
    for proof in proofs:
        assert proof.teeth, f"{proof.claim} has no broken variant"
        cases += [
            pytest.param(tooth, id=f"{proof.claim}: {tooth.sentence}", marks=_marks(proof))
            for tooth in proof.teeth
        ]
    return cases


def proof_tests(
    proofs: tuple[Proof, ...], expected: Mapping[str, Verdict]
) -> tuple[Callable[..., None], Callable[..., None], Callable[[], None]]:
    """The three tests of a proof file."""

    @pytest.mark.parametrize("proof", each_proof(proofs))
    def test_verdict(proof: Proof) -> None:
        result = proof.check()
        assert result.verdict == expected[proof.claim], result.evidence
        assert result.scope

    @pytest.mark.parametrize("tooth", each_tooth(proofs))
    def test_broken_variant_is_rejected(tooth: Broken) -> None:
        assert tooth.is_rejected()

    def test_every_claim_has_a_proof() -> None:
        assert {proof.claim for proof in proofs} == set(expected)

    return test_verdict, test_broken_variant_is_rejected, test_every_claim_has_a_proof
