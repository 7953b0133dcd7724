"""Numbers that a user hands in, as float64 arrays that are checked once and cannot change later."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfr_theory.errors import InputError

FloatArray = NDArray[np.float64]


def finite_array(values: Any, name: str, axes: tuple[str, ...]) -> FloatArray:
    """`values` as a read-only float64 array with one non-empty axis for each name in `axes`."""
    try:
        array = np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must hold numbers in rows of equal length") from None
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
