"""Numbers that a user hands in: checked once, in plain types, and arrays that cannot change later."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfr_theory.errors import InputError, in_short

FloatArray = NDArray[np.float64]

INITIAL_DEVIATION = 0.01
"""The standard deviation of initial weights, N(0, 0.01^2), wherever the paper draws them from a normal."""


def finite_number(value: Any, name: str) -> float:
    """`value` as a float, if it is one finite number."""
    try:
        number = math.nan if isinstance(value, (bool, np.bool_, str, bytes)) else float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{name} is {value!r}; it must be a finite number")
    return number


def positive_number(value: Any, name: str) -> float:
    """`value` as a float, if it is one finite number above 0."""
    number = finite_number(value, name)
    if number <= 0:
        raise InputError(f"{name} is {number}; it must be positive")
    return number


def positive_integer(value: Any, name: str) -> int:
    """`value` as an int, if it is a whole number of an integer type and at least 1."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, np.integer)) or value < 1:
        raise InputError(f"{name} is {value!r}; it must be a positive integer")
    return int(value)


def random_generator(value: Any, name: str = "rng") -> np.random.Generator:
    """`value`, if random numbers can be drawn from it."""
    if not isinstance(value, np.random.Generator):
        raise InputError(f"{name} is {in_short(value)}; pass a generator, as numpy.random.default_rng(0)")
    return value


def finite_array(values: Any, name: str, axes: tuple[str, ...]) -> FloatArray:
    """`values` as a read-only float64 array with one non-empty axis for each name in `axes`."""
    try:
        if np.iscomplexobj(values):
            raise TypeError
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold real numbers in rows of equal length") from None
    except RuntimeError as error:  # a tensor that is part of a graph
        raise InputError(f"{name} cannot be read as an array: {in_short(error)}") from None
    if array.ndim != len(axes):
        raise InputError(f"{name} has {array.ndim} axes; it needs {len(axes)}: ({', '.join(axes)})")
    if 0 in array.shape:
        raise InputError(f"{name} is empty: it has shape {array.shape}")
    if not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        index = ", ".join(map(str, place))
        raise InputError(f"{name}[{index}] is {array[place]}; every entry must be a finite number")
    array.setflags(write=False)
    return array


class KeepsArraysReadOnly:
    """A dataclass whose arrays stay read-only in copies and pickles, which would otherwise be writable.

    What is not a field, such as a cached property, is not carried over: it can be computed again.
    """

    def __setstate__(self, state: Mapping[str, Any]) -> None:
        for name in (entry.name for entry in fields(self)):  # type: ignore[arg-type]
            for array in state[name] if isinstance(state[name], tuple) else (state[name],):
                if isinstance(array, np.ndarray):
                    array.setflags(write=False)
            object.__setattr__(self, name, state[name])
