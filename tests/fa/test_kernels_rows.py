"""Sums of rows in vector registers are those of their plain twins, for rows of any length."""

import numpy as np
import pytest
from numba import njit

from sfr_fa.kernels import rows


@njit
def add_rows(*arguments):
    rows.add_rows(*arguments)


@njit
def add_absolute_rows(*arguments):
    rows.add_absolute_rows(*arguments)


@njit
def add_rows_for_three(*arguments):
    rows.add_rows_for_three(*arguments)


def numbers(rng, shape, dtype):
    """Whole ones, whose sums are exact in any order."""
    return rng.integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("compiled", [add_rows, add_absolute_rows])
def test_for_one_vector_of_inputs(compiled, dtype):
    rng, plain = np.random.default_rng(0), getattr(rows, compiled.__name__)
    inputs, weights = numbers(rng, 30, dtype), numbers(rng, (40, 200), dtype)
    for size in range(rows.LANES, 22 * rows.LANES, rows.LANES):
        outputs = numbers(rng, 220, dtype)
        expected = outputs.copy()
        active = rng.permutation(20)
        given = inputs, 5, active, int(rng.integers(1, 20)), weights, 7, 16
        plain(*given, expected, 3, size)
        compiled(*given, outputs, 3, size)
        np.testing.assert_array_equal(outputs, expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_for_three(dtype):
    rng = np.random.default_rng(1)
    inputs, weights = numbers(rng, 90, dtype), numbers(rng, (40, 200), dtype)
    for size in range(rows.LANES, 22 * rows.LANES, rows.LANES):
        outputs = numbers(rng, 700, dtype)
        plain, expected = outputs.copy(), outputs.copy()
        active = rng.permutation(20)
        given = inputs, 5, 25, active, 13, weights, 7
        for c in range(3):
            before = inputs[5 + 25 * c + active[:13]]
            expected[3 + 210 * c :][:size] += before @ weights[7 + active[:13], :size]
        rows.add_rows_for_three(*given, plain, 3, 210, size)
        add_rows_for_three(*given, outputs, 3, 210, size)
        np.testing.assert_array_equal(plain, expected)
        np.testing.assert_array_equal(outputs, expected)
