"""Conversions are exact, and the two arithmetics agree."""

from fractions import Fraction

import numpy as np
import pytest
import sympy
from flint import fmpq
from hypothesis import given
from hypothesis import strategies as st

from sfr_theory.arithmetic import (
    exact_array,
    float_array,
    fraction,
    least_squares_fit,
    matmul,
    rational,
    solve,
)
from sfr_theory.errors import InputError


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("9/10", Fraction(9, 10)),
        ("0.9", Fraction(9, 10)),
        (" -1/3 ", Fraction(-1, 3)),
        ("1e-3", Fraction(1, 1000)),
        (0.1, Fraction(1, 10)),
        (np.float32(0.5), Fraction(1, 2)),
        (np.int64(7), Fraction(7)),
        (Fraction(2, 4), Fraction(1, 2)),
        (fmpq(3, 6), Fraction(1, 2)),
    ],
)
def test_numbers_are_read_exactly(value, expected):
    assert fraction(rational(value)) == expected


@pytest.mark.parametrize(
    "value", ["x", "1/0", "", float("nan"), float("inf"), None, [1], True, "1e999999", "1+2"]
)
def test_what_is_no_number_gets_a_sentence(value):
    with pytest.raises(InputError):
        rational(value)


def test_round_trip_between_arithmetics():
    values = [[Fraction(1, 3), Fraction(-2)], [Fraction(0), Fraction(5, 7)]]
    exact = exact_array(values)
    assert [[fraction(value) for value in row] for row in exact] == values
    np.testing.assert_allclose(float_array(exact), [[1 / 3, -2], [0, 5 / 7]], rtol=1e-16)


@given(st.integers(0, 10_000))
def test_solve_and_matmul_agree_with_sympy_and_with_lapack(seed):
    rng = np.random.default_rng(seed)
    n, m = rng.integers(1, 5, size=2)
    matrix = exact_array(rng.integers(-3, 4, size=(n, n))) + exact_array(10 * np.eye(n, dtype=int))
    right = exact_array(rng.integers(-3, 4, size=(n, m)))
    exact = solve(matrix, right)
    a, b = (sympy.Matrix([[fraction(x) for x in row] for row in array]) for array in (matrix, right))
    expected = [str(entry) for entry in a.LUsolve(b)]
    assert (exact == exact_array(expected).reshape(exact.shape)).all()
    assert (matmul(matrix, exact) == right).all()
    # Diagonally dominant: condition number below 10.
    np.testing.assert_allclose(solve(float_array(matrix), float_array(right)), float_array(exact), atol=1e-14)


def test_exact_solve_broadcasts_over_leading_axes():
    matrices = exact_array([[[2]], [[4]]])
    right = exact_array([[[1, 2]]])
    assert (solve(matrices, right) == exact_array([[["1/2", 1]], [["1/4", "1/2"]]])).all()


@pytest.mark.parametrize(
    "columns", [[[1, 2], [0, 0], [1, 2]], [[0, 0], [0, 0], [0, 0]], [[1, 0], [0, 1], [1, 1]]]
)
def test_least_squares_fit_is_a_projection_also_for_dependent_columns(columns):
    matrix, target = exact_array(columns), exact_array([1, 2, 4])
    fit = least_squares_fit(matrix, target)
    assert (matmul(matrix.T, (target - fit)[:, None]) == 0).all()
    np.testing.assert_allclose(
        least_squares_fit(float_array(matrix), float_array(target)), float_array(fit), atol=1e-14
    )
