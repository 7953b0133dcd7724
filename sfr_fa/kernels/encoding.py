"""State codes: Gaussian radial basis functions on an interval and on a circle, and their products.

A position (x, y) becomes n^2 numbers (eq:obj_collection_env_state_pos)

    s_ij = exp(-((x - c_i)^2 + (y - c_j)^2) / sigma) = g_i(x) g_j(y),    g_i(x) = exp(-(x - c_i)^2 / sigma),

where c_0 ... c_{n-1} are the coordinates of the centres; entry n i + j belongs to the centre (c_i, c_j). The
product costs 2 n exponentials in place of n^2 and a relative error of at most a few rounding units. On a
circle of circumference `period` the distance |x - c| is replaced by min(|x - c|, period - |x - c|).

The functions are plain Python that Numba can also compile into a larger loop.
"""

from __future__ import annotations

import math
from typing import Any

from sfr_fa.kernels.arrays import FloatArray, part


@part()
def write_interval_code(x: float, centres: FloatArray, sigma: float, code: FloatArray) -> None:
    """code[i] = g_i(x) = exp(-(x - c_i)^2 / sigma) on a line.

    A loop, in Python as in compiled code: both call the same exp, so that their codes agree bit for bit.
    """
    for i in range(len(centres)):
        along = x - centres[i]
        code[i] = math.exp(-(along * along) / sigma)


@part()
def write_circle_code(x: float, centres: FloatArray, period: float, sigma: float, code: FloatArray) -> None:
    """code[i] = exp(-d(x, c_i)^2 / sigma) on a circle; x and c_i lie at most one period apart."""
    for i in range(len(centres)):
        along = abs(x - centres[i])
        distance = min(along, period - along)
        code[i] = math.exp(-(distance * distance) / sigma)


@part()
def write_product_code(codes: FloatArray, state: Any) -> None:
    """state[n i + j] = codes[0, i] codes[1, j]: the code of a position from those of x and y."""
    n = codes.shape[1]
    for i in range(n):
        for j in range(n):
            state[n * i + j] = codes[0, i] * codes[1, j]
