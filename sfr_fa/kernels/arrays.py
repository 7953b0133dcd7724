"""Array types of the kernels, and what all of them compile with.

`part` marks the functions that a kernel is made of.

`REASSOCIATE` lets the compiler add the terms of a sum in another order and fuse multiplications into it,
which is what vectorises a scalar product; unlike `fastmath=True` it leaves NaN and infinity alone, so that
divergence can be seen.

`copy_to`, `copy_from` and `fill` are slice assignments as loops, for which Numba has less to compile.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, TypeVar

import numpy as np
from numba.extending import register_jitable
from numpy.typing import NDArray

from sfr_fa.kernels.linking import InlinedCompiler, PartCompiler

FloatArray = NDArray[np.float64]
Reals = NDArray[Any]
"""float32 or float64; all arrays of one call have the same."""
Integers = NDArray[np.int64]
Bytes = NDArray[np.int8]

REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}
LARGEST_ERROR = 1e18
"""Beyond this, learning has diverged, in both engines at the same step; the squares of errors up to here are
finite in float32, and so are weights that have learned from them."""
FOR_PYTHON_ONLY: dict[str, Any] = {"no_cfunc_wrapper": True}
"""No entry point for C: nothing needs one, and it takes time to compile."""
UNCHECKED: dict[str, Any] = {**FOR_PYTHON_ONLY, "boundscheck": False}
"""Our own indices are not checked, whoever calls."""
PART: dict[str, Any] = {**UNCHECKED, "_nrt": False, "pipeline_class": PartCompiler}
"""Parts count no references to arrays: they make none, and whoever has called the loop keeps them alive."""
INLINED: dict[str, Any] = {**PART, "pipeline_class": InlinedCompiler}


def padded(count: int, multiple: int) -> int:
    """The next multiple."""
    return -(-count // multiple) * multiple


Function = TypeVar("Function", bound=Callable[..., Any])


def part(*, fastmath: Collection[str] = (), inlined: bool = False) -> Callable[[Function], Function]:
    """A part of kernels: plain Python for whoever calls it, compiled into the kernels that call it.

    A call passes on every array of a tuple that the part uses, which takes as long as a short part does. What
    is called many times in a step is better inlined.

    A part takes arrays and returns numbers. Numba compiles it once for each set of options of its callers, so
    that one which both a part with `fastmath` and one without it call is compiled twice.
    """
    options = INLINED if inlined else PART
    decorate: Callable[[Function], Function] = register_jitable(fastmath=set(fastmath), **options)
    return decorate


@part()
def copy_to(values: Reals, copy: Reals) -> None:
    """copy[:] = values."""
    for j in range(values.shape[0]):
        copy[j] = values[j]


@part()
def copy_from(rows: Reals, k: int, first: int, copy: Reals) -> None:
    """copy[:] = rows[k, first : first + n], n its length."""
    for j in range(copy.shape[0]):
        copy[j] = rows[k, first + j]


@part()
def all_finite(values: Reals) -> bool:
    """Whether no entry is infinite or NaN."""
    for value in values.flat:  # noqa: SIM110  all() over a generator does not compile
        if not np.isfinite(value):
            return False
    return True


@part()
def within_measure(errors: Reals) -> bool:
    """Whether learning from these errors has not diverged."""
    for error in errors:  # noqa: SIM110
        if not abs(error) <= LARGEST_ERROR:
            return False
    return True


@part()
def fill(values: Reals, value: float) -> None:
    """values[:] = value."""
    for j in range(values.shape[0]):
        values[j] = value
