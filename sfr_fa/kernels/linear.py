"""Linear values of all actions, their readout, and one step of SGD.

A policy is a matrix of rows theta_{a,d}, action by action, over states s padded with zeros to a multiple of
`PADDING` entries:

    value(s, a)_d = theta_{a,d} . s            Q(s, a) = sum_d v_d clip(value(s, a)_d)

Every value that GPI compares comes from `policy_values`, whose rounding depends on the policy's numbers only
and not on its place among the others: equal policies have equal values, bit for bit, whoever asks for them.
"""

from __future__ import annotations

import numpy as np

from sfr_fa.kernels.arrays import REASSOCIATE, Reals, part, within_measure

PADDING = 16
"""States are padded to a multiple of this, a whole number of vector registers..."""
ROWS_AT_ONCE = 4
"""... and policies to a multiple of this many rows, which `policy_values` reads together."""


@part(fastmath=REASSOCIATE)
def dot(x: Reals, y: Reals) -> float:
    """x . y."""
    total = x[0] - x[0]
    for j in range(x.shape[0]):
        total += x[j] * y[j]
    return total


@part(fastmath=REASSOCIATE)
def policy_values(theta: Reals, k: int, first: int, last: int, state: Reals, values: Reals) -> None:
    """values[k, r] = theta[k, r] . s for rows first <= r < last, both multiples of ROWS_AT_ONCE.

    Indices are unsigned: signed ones may count from the end, and checking for that costs time.
    """
    policy, r, end = np.uintp(k), np.uintp(first), np.uintp(last)
    one, zero = np.uintp(1), state[0] - state[0]
    while r < end:
        r_1 = r + one
        r_2 = r_1 + one
        r_3 = r_2 + one
        sum_0, sum_1, sum_2, sum_3 = zero, zero, zero, zero
        for j in range(np.uintp(state.shape[0])):
            s_j = state[j]
            sum_0 += theta[policy, r, j] * s_j
            sum_1 += theta[policy, r_1, j] * s_j
            sum_2 += theta[policy, r_2, j] * s_j
            sum_3 += theta[policy, r_3, j] * s_j
        values[policy, r], values[policy, r_1] = sum_0, sum_1
        values[policy, r_2], values[policy, r_3] = sum_2, sum_3
        r = r_3 + one


@part()
def action_values(theta: Reals, k: int, first: int, state: Reals, values: Reals) -> None:
    """values[r] = theta[k, first + r] . s: as many rows of policy k as there is room for."""
    for r in range(values.shape[0]):
        values[r] = dot(theta[k, first + r], state)


@part(inlined=True)
def read_action(values: Reals, k: int, a: int, readout: Reals, clip: bool) -> float:
    """Q_k(s, a) = sum_d v_d clip(values[k, (a, d)])."""
    policy, D = np.uintp(k), np.uintp(readout.shape[0])
    first, total = np.uintp(a) * D, values.dtype.type(0)
    lowest = total if clip else values.dtype.type(-np.inf)
    for d in range(D):
        value = values[policy, first + d]
        total += readout[d] * (lowest if value < lowest else value)
    return total


@part()
def read_out(values: Reals, k: int, readout: Reals, clip: bool, q: Reals) -> float:
    """q[k, a] = Q_k(s, a); returns max over a of q[k, a]."""
    best = q.dtype.type(-np.inf)
    for a in range(np.uintp(q.shape[1])):
        q[k, a] = read_action(values, k, a, readout, clip)
        if q[k, a] > best:
            best = q[k, a]
    return best


@part()
def first_largest(x: Reals) -> int:
    """argmax x, the first of ties."""
    best = 0
    for j in range(1, x.shape[0]):
        if x[j] > x[best]:
            best = j
    return best


@part()
def descend(theta: Reals, k: int, first: int, state: Reals, error: Reals, rate: float) -> bool:
    """theta[k, first + d] += rate * error[d] * s: an action of policy k; whether it has not diverged."""
    within = within_measure(error)
    for d in range(error.shape[0]):
        step = rate * error[d]
        row = theta[k, first + d]
        for j in range(state.shape[0]):
            row[j] += step * state[j]
    return within


@part()
def fold(theta: Reals, k: int, a: int, readout: Reals, folded: Reals) -> None:
    """folded[k, a] = sum_d v_d theta[k, (a, d)]: without clipping Q is linear in s, with these weights."""
    D = readout.shape[0]
    total = folded[k, a]
    total[:] = readout[0] - readout[0]
    for d in range(D):
        row = theta[k, a * D + d]
        for j in range(total.shape[0]):
            total[j] += readout[d] * row[j]
