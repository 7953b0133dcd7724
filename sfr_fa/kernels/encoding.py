"""State codes: Gaussian radial basis functions of a position, an angle, and points on a torus.

A position (x, y) becomes 100 numbers (eq:obj_collection_env_state_pos)

    s_ij = exp(-((x - c_i)^2 + (y - c_j)^2) / sigma) = g_i(x) g_j(y),    g_i(x) = exp(-(x - c_i)^2 / sigma),

where c_0 ... c_9 are the ten coordinates of the centres; entry 10 i + j belongs to the centre (c_i, c_j). The
product costs 20 exponentials in place of 100 and a relative error of at most a few rounding units. On a
circle of circumference `period` the distance |x - c| is replaced by min(|x - c|, period - |x - c|).

The functions are plain Python that Numba can also compile into a larger loop.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfr_fa.kernels.arrays import part

FloatArray = NDArray[np.float64]

POSITION_SIGMA = 0.1
ANGLE_SIGMA = math.pi / 5
SQUARE_CENTRES = np.linspace(0.0, 1.0, 10)
"""Centre coordinates on the unit interval, both ends included."""
TORUS_CENTRES = np.arange(10) / 10
"""Centre coordinates on the circle of length 1, on which 0 and 1 are one point."""
ANGLE_CENTRES = -math.pi + 2 * math.pi * np.arange(20) / 20
"""Centres on the circle of angles, on which -pi and pi are one point."""

for _centres in (SQUARE_CENTRES, TORUS_CENTRES, ANGLE_CENTRES):
    _centres.setflags(write=False)


@part()
def write_interval_code(x: float, centres: FloatArray, sigma: float, code: FloatArray) -> None:
    """code[i] = g_i(x) = exp(-(x - c_i)^2 / sigma) on a line.

    A loop, in Python as in compiled code: both call the same exp, so that their codes agree to the bit.
    """
    for i in range(len(centres)):
        along = x - centres[i]
        code[i] = math.exp(-(along * along) / sigma)


@part()
def interval_code(x: float, centres: FloatArray, sigma: float) -> FloatArray:
    """g_i(x) of all centres."""
    code = np.empty(len(centres))
    write_interval_code(x, centres, sigma, code)
    return code


@part()
def write_circle_code(x: float, centres: FloatArray, period: float, sigma: float, code: FloatArray) -> None:
    """code[i] = exp(-d(x, c_i)^2 / sigma) on a circle; x and c_i lie at most one period apart."""
    for i in range(len(centres)):
        along = abs(x - centres[i])
        distance = min(along, period - along)
        code[i] = math.exp(-(distance * distance) / sigma)


@part()
def circle_code(x: float, centres: FloatArray, period: float, sigma: float) -> FloatArray:
    """The code of x on a circle, of all centres."""
    code = np.empty(len(centres))
    write_circle_code(x, centres, period, sigma, code)
    return code


@part()
def object_collection_state(
    x: float, y: float, memory: FloatArray, centres: FloatArray, sigma: float
) -> FloatArray:
    """s = [s_pos, s_mem, 1]: 100 basis functions, a bit for each object, and a constant."""
    position = np.outer(interval_code(x, centres, sigma), interval_code(y, centres, sigma))
    return np.concatenate((position.ravel(), memory, np.ones(1)))


@part()
def encode_object_collection(code_x: FloatArray, code_y: FloatArray, memory: FloatArray, state: Any) -> None:
    """`object_collection_state` from the codes of x and y, written into the first entries of `state`."""
    n = code_x.shape[0]
    for i in range(n):
        for j in range(n):
            state[n * i + j] = code_x[i] * code_y[j]
    for j in range(memory.shape[0]):
        state[n * n + j] = memory[j]
    state[n * n + memory.shape[0]] = 1.0


@part()
def racer_state(
    x: float,
    y: float,
    angle: float,
    position_centres: FloatArray,
    position_sigma: float,
    angle_centres: FloatArray,
    angle_sigma: float,
) -> FloatArray:
    """s = [s_pos, s_ori]: 100 basis functions on the torus and 20 on the circle of angles."""
    position = np.outer(
        circle_code(x, position_centres, 1.0, position_sigma),
        circle_code(y, position_centres, 1.0, position_sigma),
    )
    return np.concatenate((position.ravel(), circle_code(angle, angle_centres, 2 * math.pi, angle_sigma)))
