"""The z3 helpers: proved, refuted with a model, and undecided are told apart."""

from fractions import Fraction

import numpy as np
import pytest
import z3

from proofs_checks import smt


def test_true_statement_is_proved() -> None:
    x = z3.Real("x")
    assert smt.entails("squares are not negative", [], x * x >= 0).holds is True


def test_false_statement_is_refuted_with_a_model() -> None:
    x = z3.Real("x")
    step = smt.entails("everything is below 3", [x == 5], x <= 3)
    assert step.holds is False
    assert "x = 5" in step.witness


def test_a_list_is_a_conjunction() -> None:
    x = z3.Real("x")
    assert smt.entails("", [x > 1], [x > 0, x > 2]).holds is False
    assert smt.entails("", [x > 1], [x > 0, x > -1]).holds is True


def test_an_undecided_statement_is_neither() -> None:
    n, k, m = z3.Ints("n k m")
    hard = z3.Not(n * n * n + k * k * k + m * m * m == 114)
    assert smt.entails("114 is no sum of three cubes", [], hard, timeout_seconds=1).holds is None


def test_maximum_and_absolute() -> None:
    x = smt.reals("x", 3)
    assert smt.entails("", [], smt.at_most(x, smt.maximum(x))).holds
    assert smt.entails("", [], z3.Or([smt.maximum(x) == entry for entry in x])).holds
    assert smt.entails("", [smt.absolute(x[0]) <= 2], smt.within(x[:1], 2)).holds
    assert smt.entails("", smt.within(x[:1], 2), smt.absolute(x[0]) < 2).holds is False


def allows(facts: list[z3.BoolRef]) -> bool:
    """Whether some reals satisfy the facts."""
    return smt.entails("", facts, z3.BoolVal(False)).holds is False


@pytest.mark.parametrize(
    ("gamma", "allowed"), [("-1/9", False), ("0", True), ("1/2", True), ("999/1000", True), ("1", False)]
)
def test_discounts_begin_at_0_and_end_below_1(gamma: str, allowed: bool) -> None:
    unknown = z3.Real("gamma")
    assert allows([*smt.discount(unknown), unknown == z3.RealVal(gamma)]) is allowed


@pytest.mark.parametrize(
    ("row", "allowed"),
    [
        (["0", "0", "1"], True),
        (["1/2", "1/2", "0"], True),
        (["1/2", "1/4", "1/8"], False),
        (["3/2", "-1/2", "0"], False),
    ],
)
def test_distributions_include_zero_probabilities(row: list[str], allowed: bool) -> None:
    p = smt.reals("p", 2, 1, 3)
    values = np.array([z3.RealVal(value) for value in row], dtype=object)
    for k in range(2):
        assert allows([*smt.distributions(p), *smt.equal(p[k, 0], values)]) is allowed
        assert allows([*smt.distributions(p[1 - k : 2 - k]), *smt.equal(p[k, 0], values)])
    assert allows([*smt.distribution(p[0, 0]), *smt.equal(p[0, 0], values)]) is allowed


def test_numbers_maxima_and_absolute_values_of_constants() -> None:
    def value(formula: z3.ArithRef) -> Fraction:
        return Fraction(str(z3.simplify(formula)))

    assert value(smt.number(Fraction(2, 3))) == Fraction(2, 3)
    for x in (Fraction(-1, 2), Fraction(0), Fraction(1, 2)):
        assert value(smt.absolute(smt.number(x))) == abs(x)
    numbers = np.array([[[1, 5, 2]], [[4, 3, 0]]], dtype=object)
    maxima = smt.max_over_last_axis(np.vectorize(z3.RealVal, otypes=[object])(numbers))
    assert maxima.shape == (2, 1)
    assert [value(x) for x in maxima.flat] == [5, 4]
