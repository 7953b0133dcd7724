"""Inequalities over the reals, decided by the SMT solver z3.

A statement "assumptions imply conclusion" holds for all reals if and only if the assumptions together with
the negated conclusion have no solution. z3 answers with "no solution" (the statement is proved), with a
solution (it is refuted, and the solution is the counterexample), or gives up within the time limit
(undecided, which proves and rejects nothing).

The polynomial queries are small on purpose: an inequality with a symbolic kernel is stated for one row
p(. | s, a) at a time, since a row is all that one entry of T Q depends on.

Only functions of this module import z3, when called: everything can be imported without it.
"""

from __future__ import annotations

from collections.abc import Iterable
from fractions import Fraction
from typing import Any

import numpy as np

from proofs_checks.argument import Step
from sfr_theory.arithmetic import Array

TIMEOUT_SECONDS = 30

Formula = Any
"""A z3 expression."""


def real(name: str) -> Formula:
    """A real unknown."""
    import z3

    return z3.Real(name)


def reals(name: str, *shape: int) -> Array:
    """An array of real unknowns."""
    array = np.empty(shape, dtype=object)
    for index in np.ndindex(*shape):
        array[index] = real("_".join([name, *map(str, index)]))
    return array


def maximum(values: Iterable[Formula]) -> Formula:
    """The largest of some expressions."""
    import z3

    largest, *others = list(values)
    for value in others:
        largest = z3.If(value >= largest, value, largest)
    return largest


def max_over_last_axis(values: Array) -> Array:
    """max over a of q(s, a): (..., A) -> (...)."""
    rows = [maximum(row) for row in values.reshape(-1, values.shape[-1])]
    return np.array(rows, dtype=object).reshape(values.shape[:-1])


def absolute(value: Formula) -> Formula:
    """|value|."""
    import z3

    return z3.If(value >= 0, value, -value)


def within(values: Array, bound: Formula) -> list[Formula]:
    """|value| <= bound for every entry, as linear constraints."""
    return [side for value in np.ravel(values) for side in (value <= bound, -bound <= value)]


def _pairs(left: Any, right: Any) -> list[tuple[Formula, Formula]]:
    left, right = np.broadcast_arrays(np.asarray(left, dtype=object), np.asarray(right, dtype=object))
    return list(zip(left.reshape(-1), right.reshape(-1), strict=True))


def at_most(left: Any, right: Any) -> list[Formula]:
    """left <= right, entry by entry. (NumPy's own comparison would ask each entry for its truth value.)"""
    return [x <= y for x, y in _pairs(left, right)]


def equal(left: Any, right: Any) -> list[Formula]:
    """left = right, entry by entry."""
    return [x == y for x, y in _pairs(left, right)]


def number(value: Fraction) -> Formula:
    """A rational constant."""
    import z3

    return z3.Q(value.numerator, value.denominator)


def distribution(row: Array) -> list[Formula]:
    """The entries are non-negative and sum to 1."""
    return [*(entry >= 0 for entry in row), row.sum() == 1]


def distributions(rows: Array) -> list[Formula]:
    """Every row of the last axis is a distribution."""
    return [fact for row in rows.reshape(-1, rows.shape[-1]) for fact in distribution(row)]


def discount(gamma: Formula) -> list[Formula]:
    """0 <= gamma < 1."""
    return [gamma >= 0, gamma < 1]


def entails(
    sentence: str,
    assumptions: Iterable[Formula],
    conclusion: Formula | list[Formula],
    timeout_seconds: int = TIMEOUT_SECONDS,
) -> Step:
    """The step that the assumptions imply the conclusion (all of it, if it is a list), for all reals."""
    import z3

    solver = z3.Solver()
    solver.set("timeout", 1000 * timeout_seconds)
    solver.add(*assumptions)
    solver.add(z3.Not(z3.And(conclusion) if isinstance(conclusion, list) else conclusion))
    answer = solver.check()
    if answer == z3.unsat:
        return Step(sentence, True)
    if answer == z3.sat:
        return Step(sentence, False, f"z3's counterexample: {_readable(solver.model())}")
    return Step(sentence, None, f"z3: {solver.reason_unknown()}")


def _readable(model: Any) -> str:
    values = sorted((str(unknown), model[unknown]) for unknown in model.decls())
    return ", ".join(f"{name} = {value}" for name, value in values)
