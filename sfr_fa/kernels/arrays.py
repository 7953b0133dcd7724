"""Array types of the kernels, and what all of them compile with.

`REASSOCIATE` lets the compiler add the terms of a sum in another order and fuse multiplications into it,
which is what vectorises a scalar product; unlike `fastmath=True` it leaves NaN and infinity alone, so that
divergence can be seen.

`copy_to`, `copy_from` and `fill` are slice assignments as loops, for which Numba has less to compile.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

Reals = NDArray[Any]
"""float32 or float64; all arrays of one call have the same."""
Integers = NDArray[np.int64]

REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}


@register_jitable
def copy_to(values: Reals, copy: Reals) -> None:
    """copy[:] = values."""
    for j in range(values.shape[0]):
        copy[j] = values[j]


@register_jitable
def copy_from(rows: Reals, k: int, first: int, copy: Reals) -> None:
    """copy[:] = rows[k, first : first + n], n its length."""
    for j in range(copy.shape[0]):
        copy[j] = rows[k, first + j]


@register_jitable
def fill(values: Reals, value: float) -> None:
    """values[:] = value."""
    for j in range(values.shape[0]):
        values[j] = value
