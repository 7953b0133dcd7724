"""Two arithmetics, one set of formulas.

Every formula of this package is written once, on NumPy arrays, and runs in

* **float64**: arrays of dtype ``float64``, any number of leading batch axes, LAPACK; or
* **rational arithmetic**: arrays of dtype ``object`` that hold ``flint.fmpq``, zero tolerance.

NumPy's elementwise operations, sums, maxima and argmaxima work on both. What does not
is gathered here: conversion, products and linear solves. The arithmetic follows from the dtype of
the arrays, so a caller chooses it once, when a problem is made (`FiniteMDP.to_exact`).

A float that becomes a rational is read as the decimal it prints as: 0.9 is 9/10.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
from flint import fmpq, fmpq_mat
from numpy.typing import NDArray

from sfr_theory.errors import InputError

Array = NDArray[Any]
"""An array of float64 or of exact rationals (dtype object, entries `flint.fmpq`)."""

Number = Any
"""A float or a `flint.fmpq`."""


def rational(value: object) -> fmpq:
    """An int, float, Fraction, fmpq, or text such as "9/10", "-0.25", "1e-3", read exactly."""
    if isinstance(value, fmpq):
        return value
    if isinstance(value, bool):
        raise InputError(f"{value!r} is not a number; write 0 or 1")
    if isinstance(value, (float, np.floating)):
        if not np.isfinite(value):
            raise InputError(f"{value!r} is not a finite number")
        value = repr(float(value))
    if isinstance(value, str) and len(exponent := value.lower().partition("e")[2].strip()) > 5:
        raise InputError(f"the exponent {exponent} is too large to be read exactly")
    try:
        read = Fraction(int(value)) if isinstance(value, np.integer) else Fraction(value)  # type: ignore[call-overload]
    except (ValueError, TypeError, ZeroDivisionError, OverflowError):
        shown = repr(value) if len(repr(value)) < 80 else f"{repr(value)[:77]}..."
        raise InputError(f'{shown} is not a number; write 0.5, "0.5" or "1/2"') from None
    return fmpq(read.numerator, read.denominator)


def fraction(value: Number) -> Fraction:
    """A rational of this package as a `fractions.Fraction`."""
    exact = rational(value)
    return Fraction(int(exact.p), int(exact.q))


def _elementwise(function: Callable[[object], object], values: object) -> Array:
    """Apply `function` to each entry of a nested list or array; the result has dtype object."""
    source = np.array(values, dtype=object)
    result = np.empty(source.shape, dtype=object)
    result.reshape(-1)[:] = [function(value) for value in source.reshape(-1)]
    return result


def exact_array(values: object) -> Array:
    """Nested lists or an array of numbers as an array of rationals."""
    return _elementwise(rational, values)


def _as_float(value: Any) -> float:
    try:
        return float(value)
    except OverflowError:  # beyond 1.8e308
        return math.copysign(math.inf, 1 if value > 0 else -1)


def float_array(values: Any) -> NDArray[np.float64]:
    """Either arithmetic as float64."""
    array = np.asarray(values)
    if array.dtype == object:
        floats = [_as_float(value) for value in array.reshape(-1)]
        return np.array(floats, dtype=np.float64).reshape(array.shape)
    return array.astype(np.float64, copy=False)


def is_exact(array: Array) -> bool:
    """Whether the entries are rationals."""
    return array.dtype == object


def in_arithmetic_of(array: Array, values: Any) -> Array:
    """`values` (numbers of any kind) in the arithmetic of `array`."""
    if is_exact(array):
        given = np.asarray(values, dtype=object)
        return given if all(isinstance(value, fmpq) for value in given.reshape(-1)) else exact_array(given)
    return float_array(values)


def zeros(shape: tuple[int, ...], like: Array) -> Array:
    """Zeros in the arithmetic of `like`."""
    return exact_array(np.zeros(shape, dtype=int)) if is_exact(like) else np.zeros(shape)


def _flint(matrix: Array) -> fmpq_mat:
    rows, columns = matrix.shape
    return fmpq_mat(rows, columns, matrix.reshape(-1).tolist())


def _from_flint(matrix: fmpq_mat) -> Array:
    entries = np.empty(matrix.nrows() * matrix.ncols(), dtype=object)
    entries[:] = matrix.entries()
    return entries.reshape(matrix.nrows(), matrix.ncols())


def _over_leading_axes(function: Callable[[Array, Array], Array], left: Array, right: Array) -> Array:
    """Apply a function of two matrices to stacks of matrices whose leading axes broadcast."""
    lead = np.broadcast_shapes(left.shape[:-2], right.shape[:-2])
    left = np.broadcast_to(left, lead + left.shape[-2:])
    right = np.broadcast_to(right, lead + right.shape[-2:])
    result = np.empty((*lead, left.shape[-2], right.shape[-1]), dtype=object)
    for index in np.ndindex(*lead):
        result[index] = function(left[index], right[index])
    return result


def solve(matrix: Array, right: Array) -> Array:
    """X with matrix @ X = right, over leading axes; `matrix` is (..., n, n), `right` (..., n, m)."""
    if is_exact(matrix):
        return _over_leading_axes(lambda a, b: _from_flint(_flint(a).solve(_flint(b))), matrix, right)
    return np.linalg.solve(matrix, right)


def matmul(left: Array, right: Array) -> Array:
    """Matrix product over leading axes."""
    if is_exact(left):
        return _over_leading_axes(lambda a, b: _from_flint(_flint(a) * _flint(b)), left, right)
    return np.matmul(left, right)


def least_squares_fit(matrix: Array, right: Array) -> Array:
    """The point of the column space of `matrix` nearest to `right`: (..., n, m), (..., n) -> (..., n).

    The fitted values are unique, also where the coefficients are not (dependent columns).
    """
    if not is_exact(matrix):
        return np.matmul(matrix, np.matmul(np.linalg.pinv(matrix), right[..., None]))[..., 0]

    def fit(columns: Array, target: Array) -> Array:
        # Keep the pivot columns: they span the same space and their normal equations are regular.
        reduced, rank = _flint(columns).rref()
        pivots = [next(j for j in range(columns.shape[1]) if reduced[i, j] != 0) for i in range(rank)]
        if not pivots:
            return zeros(target.shape, like=target)
        basis = columns[:, pivots]
        coefficients = solve(matmul(basis.T, basis), matmul(basis.T, target))
        return matmul(basis, coefficients)

    return _over_leading_axes(fit, matrix, right[..., None])[..., 0]
