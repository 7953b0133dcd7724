"""What every proof file must pass: its verdicts are as expected, and its broken variants are rejected."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from _pytest.mark.structures import ParameterSet

from proofs_checks import smt
from proofs_checks.proof import Proof


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
