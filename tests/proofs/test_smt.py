"""The z3 helpers: proved, refuted with a model, and undecided are told apart."""

import sys

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


def test_distribution_and_equal() -> None:
    p, q = smt.reals("p", 2), smt.reals("q", 2)
    assert smt.entails("", smt.distribution(p), [p[0] <= 1, p[1] == 1 - p[0]]).holds
    assert smt.entails("", smt.equal(p, q), [p[0] == q[0], p[1] == q[1]]).holds
    assert smt.entails("", smt.equal(p, np.array([q[0], q[0]])), [p[1] == q[1]]).holds is False


def test_availability_is_what_python_finds(monkeypatch: pytest.MonkeyPatch) -> None:
    assert smt.is_available()
    monkeypatch.setitem(sys.modules, "z3", None)
    assert not smt.is_available()
