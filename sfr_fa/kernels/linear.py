"""Linear values of all actions, their readout, and one step of SGD.

A policy is a matrix of rows theta_{a,d}, action by action, over states s padded with zeros to a multiple of
`PADDING` entries:

    value(s, a)_d = theta_{a,d} . s            Q(s, a) = sum_d v_d clip(value(s, a)_d)

Every value in a run comes from `policy_values`, whose rounding depends on the policy's numbers only and not
on its place among the others: equal policies have equal values to the bit, whoever asks for them.
"""

from __future__ import annotations

import numpy as np
from numba.extending import register_jitable

from sfr_fa.kernels.arrays import REASSOCIATE, Reals

PADDING = 16
"""Rows are padded to a multiple of this, a whole number of vector registers."""


@register_jitable(fastmath=REASSOCIATE)
def dot(x: Reals, y: Reals) -> float:
    """x . y."""
    total = x[0] - x[0]
    for j in range(x.shape[0]):
        total += x[j] * y[j]
    return total


@register_jitable(fastmath=REASSOCIATE)
def policy_values(theta: Reals, state: Reals, values: Reals) -> None:
    """values[r] = theta[r] . s for the rows r = (a, d) of one policy; their number is a multiple of 4."""
    zero = state[0] - state[0]
    for r in range(0, theta.shape[0], 4):
        row_0, row_1, row_2, row_3 = theta[r], theta[r + 1], theta[r + 2], theta[r + 3]
        sum_0, sum_1, sum_2, sum_3 = zero, zero, zero, zero
        for j in range(state.shape[0]):
            s_j = state[j]
            sum_0 += row_0[j] * s_j
            sum_1 += row_1[j] * s_j
            sum_2 += row_2[j] * s_j
            sum_3 += row_3[j] * s_j
        values[r], values[r + 1], values[r + 2], values[r + 3] = sum_0, sum_1, sum_2, sum_3


@register_jitable
def action_values(theta: Reals, k: int, first: int, state: Reals, values: Reals) -> None:
    """values[r] = theta[k, first + r] . s: as many rows of policy k as there is room for."""
    for r in range(values.shape[0]):
        values[r] = dot(theta[k, first + r], state)


@register_jitable
def read_out(values: Reals, readout: Reals, clip: bool, q: Reals) -> float:
    """q[a] = sum_d v_d clip(values[a, d]); returns max over a of q[a]."""
    D = readout.shape[0]
    zero = readout[0] - readout[0]
    best = zero - np.inf
    for a in range(q.shape[0]):
        of_action = values[a * D : (a + 1) * D]
        total = zero
        for d in range(D):
            value = of_action[d]
            total += readout[d] * (value if value > zero or not clip else zero)
        q[a] = total
        if total > best:
            best = total
    return best


@register_jitable
def first_largest(x: Reals) -> int:
    """argmax x, the first of ties."""
    best = 0
    for j in range(1, x.shape[0]):
        if x[j] > x[best]:
            best = j
    return best


@register_jitable
def descend(theta: Reals, k: int, first: int, state: Reals, error: Reals, rate: float) -> bool:
    """theta[k, first + d] += rate * error[d] * s: an action of policy k; whether the errors were finite."""
    finite = True
    for d in range(error.shape[0]):
        finite = finite and np.isfinite(error[d])
        step = rate * error[d]
        row = theta[k, first + d]
        for j in range(state.shape[0]):
            row[j] += step * state[j]
    return finite


@register_jitable
def fold(theta: Reals, k: int, a: int, readout: Reals, folded: Reals) -> None:
    """folded[k, a] = sum_d v_d theta[k, (a, d)]: without clipping Q is linear in s, with these weights."""
    D = readout.shape[0]
    total = folded[k, a]
    total[:] = readout[0] - readout[0]
    for d in range(D):
        row = theta[k, a * D + d]
        for j in range(total.shape[0]):
            total[j] += readout[d] * row[j]
