"""What a proof covers: the cases that are put to z3, one by one. A case that is dropped turns this red."""

from __future__ import annotations

import itertools
import sys
from collections import Counter
from fractions import Fraction
from typing import Any

import pytest

from proofs_checks import gpi_bound, ledger
from proofs_checks.argument import Step
from sfr_theory.claims import Method


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, int]]:
    """The sentences that were put to z3, each with the number of assumptions; z3 itself does not run."""
    questions: list[tuple[str, int]] = []

    def record(sentence: str, assumptions: Any, conclusion: Any, timeout_seconds: int = 0) -> Step:
        questions.append((sentence, len(list(assumptions))))
        return Step(sentence, True)

    ledger.collect()
    for name, module in list(sys.modules.items()):
        if name.startswith("proofs_checks.") and name != "proofs_checks.smt" and hasattr(module, "entails"):
            monkeypatch.setattr(module, "entails", record)
    return questions


QUESTIONS = {
    "bg/error-grows": (2, 30),
    "certificate/greedy-residual-value": (32, 256),
    "certificate/residual": (32, 384),
    "certificate/residual-value": (32, 384),
    "certificate/sources-value": (544, 7296),
    "clip/absolute-error": (2, 7),
    "csfr/interpolant-bias": (11, 29),
    "gpi-learning/step-bootstrap": (3, 21),
    "gpi-learning/step-limit": (2, 16),
    "gpi/linear": (1, 5),
    "gpi/linear-sharp": (2, 27),
    "lemma/comparison": (3, 16),
    "lemma/max-difference": (1, 8),
    "prop2/contraction": (2, 33),
    "prop2/fixed-point-corrected": (2, 27),
    "prop2/policy-operator-contraction": (2, 34),
    "tent/partition": (1, 2),
    "tent/reproduces": (1, 2),
    "thm2/code": (128, 4096),
    "thm2/code-value": (128, 4096),
    "thm2/corrected": (1, 6),
    "thm2/reward-distance": (1, 4),
    "thm2/sharp": (128, 3072),
    "thm2/sharp-affine": (1, 2),
    "thm2/sharp-value": (128, 3072),
    "thm2/sharp-value-affine": (1, 2),
    "thm2/step-contraction": (1, 18),
    "thm2/step-greedy": (1, 15),
    "thm2/step-improvement": (1, 9),
    "thm2/step-monotone": (16, 80),
    "thm2/step-telescoping": (2, 38),
    "thm2/step-transfer": (4, 93),
    "thm2/step-value": (1, 11),
    "xi/finite-integral": (2, 15),
    "xi/nonnegative": (1, 11),
}
"""By claim: how many questions, and how many assumptions they make altogether."""


def test_how_much_is_asked(asked: list[tuple[str, int]]) -> None:
    found = {}
    for claim, proof in ledger.collect().items():
        if proof.method is Method.SMT:
            asked.clear()
            proof.check()
            found[claim] = (len(asked), sum(assumptions for _, assumptions in asked))
    assert found == QUESTIONS


@pytest.mark.parametrize("of_values", [False, True])
def test_the_sharp_bound_is_decided_in_every_case(asked: list[tuple[str, int]], of_values: bool) -> None:
    """Two discounts, 16 deterministic MDPs with two states and actions, four source policies."""
    list(gpi_bound.sharp_steps(of_values))
    expected = {
        f"gamma = {gamma}, next states {list(successors)}, pi_i = {list(policy)}"
        for gamma in (Fraction(1, 2), Fraction(9, 10))
        for successors in itertools.product(range(2), repeat=4)
        for policy in itertools.product(range(2), repeat=2)
    }
    assert Counter(sentence for sentence, _ in asked) == Counter(expected)
