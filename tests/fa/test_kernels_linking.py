"""Parts are compiled into loops, for which they may be changed; whoever else calls them is not concerned."""

import re
from typing import NamedTuple

import numpy as np
from numba import njit

from sfr_fa.kernels.arrays import Reals, part
from sfr_fa.kernels.linking import LoopCompiler


class Numbers(NamedTuple):
    """Two arrays, of which the part below reads one."""

    unread: Reals
    read: Reals


@part()
def total(numbers: Numbers, first: int) -> float:
    """Too long to be inlined."""
    result, x = 0.0, numbers.read
    for j in range(first, x.shape[0]):
        for i in range(j):
            if x[i] > 1:
                result += np.sqrt(x[j]) * np.exp(x[i]) + np.log(1 + x[j] * x[i])
            elif x[j] > 0.5:
                result += np.cos(x[j]) * np.exp(-x[i]) - np.arctan(x[j] - x[i])
            else:
                result += np.sin(x[j]) ** 3 + np.tanh(x[i] + x[j]) / (1 + x[i])
        for i in range(j, x.shape[0]):
            if x[i] > 1.5:
                result -= np.arctan2(x[j], x[i]) + np.cosh(x[i])
            elif x[j] > 0.1:
                result -= np.sinh(x[j]) * np.log1p(x[i]) + np.expm1(x[j])
            else:
                result -= np.sin(x[j] + x[i]) ** 2 + np.hypot(x[i], x[j])
    return result


NUMBERS = Numbers(np.full(3, np.nan), np.linspace(0, 2, 9))
FROM_3, FROM_5 = total(NUMBERS, 3), total(NUMBERS, 5)


def test_a_part_that_a_loop_has_for_itself_is_another_one_elsewhere():
    """The arguments of a part change within a loop; by its name nobody may find what came of it."""

    @njit(pipeline_class=LoopCompiler)
    def loop(numbers):
        return total(numbers, 3), total(numbers, 5)

    @njit
    def another(numbers, first):
        return total(numbers, first)

    np.testing.assert_allclose(loop(NUMBERS), (FROM_3, FROM_5))
    np.testing.assert_allclose(another(NUMBERS, 3), FROM_3)
    np.testing.assert_allclose(loop(NUMBERS), (FROM_3, FROM_5))
    code = loop.inspect_llvm(loop.signatures[0])
    assert re.search(r"^define .*total", code, re.MULTILINE), "it was inlined: nothing is tested"
