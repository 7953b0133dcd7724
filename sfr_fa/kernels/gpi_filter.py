"""An exact filter for GPI: upper bounds of max_a Q_k(s, a) at a fraction of the cost of its value.

A state is s = (p, m): p are the radial basis functions of a position, m the memory bits and the constant.
Within a cell of the square the codes p are nearly in a space of few dimensions, with a basis U_1 ... U_r.
For *any* numbers c_j, with the remainder e = p - sum_j c_j U_j, and any reference weights theta',

    theta . s  =  theta_m . m + sum_j c_j U_j . theta_p + theta' . e + (theta_p - theta') . e,

and by Cauchy-Schwarz the last term is at most |theta_p - theta'| rho, rho = |e|. So c_j = U_j . p, tables of
U_j . theta_p for all policies and one product theta' . e, which all policies share, give every value within
|theta_p - theta'| rho, and, since clipping does not enlarge differences, with x_d for the first three terms,

    Q_k(s, a)  <=  sum_d v_d clip(x_d) + rho sum_d |v_d| |theta_{k,a,d} - theta'_{a,d}| + rounding.

theta' is a mean of policies at the beginning of the task: they have much in common, and only what sets one
apart is bounded. Nothing is assumed of the basis, the reference, the weights or the readout; poor ones
cost time, not correctness.

**Rounding.** With unit round-off u, a sum of n products in any order errs by at most n u / (1 - n u) times
the product of norms. In units of u (|theta| + |theta'|) (|s| + C), C = sum_j |c_j| |U_j|, the errors are: S
of the exact value, M + 1 of the memory part, P of the table, r + 1 + P of theta' . e, r + 3 of the sum x,
r + 1 + P + 2 of rho, and 3 D + 2 of the two readouts (M objects, P basis functions, S = P + M + 1 or more,
D outputs). Their sum is below 5 (S + r + D), so

    sigma = 5 (S + r + D) u (|s| + C)

times |theta| + |theta'| covers them, second-order terms included. To have one table in place of two it holds
n = |theta_p - theta'| + kappa (|theta| + |theta'|), and is multiplied by

    max(rho, sigma / kappa) n  >=  rho |theta_p - theta'| + sigma (|theta| + |theta'|).

The bound grows with |v| and |theta| as the values do. A column's sum_d |v_d| n_d is made when its weights or
the readout change, not at every state.

**Learning.** Source policies learn too, one action per step. The tables of a cell are made when it is first
visited in a task; each later visit rereads the actions that were updated since the last one, as a log of all
updates tells. The policy of the current task is evaluated at every step anyway.

Tables run along outputs d, then actions a, then policies, so that inner loops are long; policies are padded
to whole vector registers.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import REASSOCIATE, FloatArray, Integers, Reals, padded, part
from sfr_fa.kernels.encoding import write_interval_code

CELLS = 10
"""Cells along each axis."""
RANK = 6
"""Dimensions of the basis of a cell; six hold all quadratic functions."""
MANY_OUTPUTS = 16
"""From this many outputs D on, exact values are expensive, and r = RANK; below, r = FEW, for cheap bounds."""
FEW = 4
ENOUGH_FOR_A_MEAN = 64
"""The reference is a mean of at most this many policies: more of them take time and change it little."""
LANES = 16
"""Tables are padded to a multiple of this many entries, a whole number of vector registers."""
KAPPA = {FEW: 1 / 64, RANK: 1 / 8}
"""How much of |theta| + |theta'| is in the table of norms; in float32 sigma / kappa is about rho."""


class Filter(NamedTuple):
    """The state of the filter during a task; without cells it is switched off. Column a L + k is (a, k)."""

    positions: int
    """P, how many entries of a state code the position; memory bits and the constant follow."""
    slack: float
    """5 (S + r + D) u."""
    kappa: float
    floor: float
    """Values below it count as this: 0 where they are clipped, else -infinity."""
    bases: Reals
    """(G, r, P or more): U_j of each cell, 0 in all entries but the first P."""
    inner: Reals
    """(G, D, r, A L): U_j . theta_p, with room for L policies."""
    of_memory: Reals
    """(M + 1, D, A L): the weights of the memory bits and of the constant."""
    memory: Reals
    """(M + 1,): m, the memory bits and the constant of the present state..."""
    memory_part: Reals
    """(D, A L): ... and theta_m . m."""
    norms: Reals
    """(D, A L): n = |theta_p - theta'| + kappa (|theta| + |theta'|), rounded up..."""
    margins: Reals
    """(A L,): ... and sum_d |v_d| n_d for the present readout."""
    reference: Reals
    """(A D, P): theta'..."""
    reference_norms: Reals
    """(A D,): ... |theta'|..."""
    of_rest: Reals
    """(A D,): ... and theta' . e at the present state."""
    updates: Integers
    """(T,): the log of updates, each as its number A k + a..."""
    num_updates: Integers
    """(1,): ... how many there are..."""
    newest: Integers
    """(K A,): ... and the last entry of each (k, a)."""
    seen: Integers
    """(G,): how many updates the table of a cell has seen, -1 if it has not been made."""
    totals: Reals
    """(A L,): room for the bounds of each action..."""
    of_actions: Reals
    """(A, L): ... the same numbers..."""
    coordinates: Reals
    """(r,): ... for c_j..."""
    rest: Reals
    """(P,): ... and for e = p - sum_j c_j U_j."""


@functools.cache
def cell_bases(centres: tuple[float, ...], sigma: float) -> FloatArray:
    """Leading right singular vectors of the codes on a fine grid in each cell of the square: (G, r, P)."""
    offsets = np.linspace(0.0, 1.0, 9) / CELLS
    codes = np.zeros((CELLS, offsets.size, len(centres)))
    for g in range(CELLS):
        for j, offset in enumerate(offsets):
            write_interval_code(g / CELLS + offset, np.array(centres), sigma, codes[g, j])
    products = codes[:, None, :, None, :, None] * codes[None, :, None, :, None, :]
    _, _, directions = np.linalg.svd(products.reshape(CELLS**2, offsets.size**2, -1), full_matrices=False)
    return directions[:, :RANK]


def new_filter(
    bases: FloatArray, weights: Reals, state_dim: int, num_actions: int, D: int, steps: int, *, clip: bool
) -> Filter:
    """A filter for weights (K, A D or more, S) and a task of `steps` steps, with empty tables.

    bases (G, r, P) come from `cell_bases`; without cells it is switched off.
    """
    K, _, S = weights.shape
    r = RANK if D >= MANY_OUTPUTS else FEW
    cells, P = len(bases), bases.shape[2]
    rows = num_actions * D
    if not cells:
        K = steps = 0
    columns, dtype = num_actions * padded(K, LANES), weights.dtype
    totals = np.zeros(columns, dtype)
    wide = np.zeros((cells, r, padded(P, LANES)), dtype)
    wide[..., :P] = bases[:, :r]
    return Filter(
        positions=P,
        slack=dtype.type(5 * (S + r + D) * np.finfo(dtype).eps / 2),
        kappa=dtype.type(KAPPA[r]),
        # Of the type of the weights: a float64 would turn the loop over all policies into float64.
        floor=dtype.type(0.0 if clip else -np.inf),
        bases=wide,
        inner=np.zeros((cells, D, r, columns), dtype),
        of_memory=np.zeros((state_dim - P, D, columns), dtype),
        memory=np.zeros(state_dim - P, dtype),
        memory_part=np.zeros((D, columns), dtype),
        norms=np.zeros((D, columns), dtype),
        margins=np.zeros(columns, dtype),
        reference=np.zeros((rows, P), dtype),
        reference_norms=np.zeros(rows, dtype),
        of_rest=np.zeros(rows, dtype),
        updates=np.zeros(steps, dtype=np.int64),
        num_updates=np.zeros(1, dtype=np.int64),
        newest=np.zeros(K * num_actions, dtype=np.int64),
        seen=np.full(cells, -1, dtype=np.int64),
        totals=totals,
        of_actions=totals.reshape(num_actions, -1),
        coordinates=np.zeros(r, dtype),
        rest=np.zeros(P, dtype),
    )


# --- Reading weights into tables ---------------------------------------------------------------------


@part(fastmath=REASSOCIATE)
def read_inner(bases: Reals, g: int, weights: Reals, k: int, a: int, column: int, inner: Reals) -> None:
    """U_j . theta_p of an action of policy k, into the table of cell g."""
    zero, D = bases[g, 0, 0] - bases[g, 0, 0], inner.shape[1]
    for d in range(D):
        sum_0, sum_1, sum_2, sum_3 = zero, zero, zero, zero
        for i in range(bases.shape[2]):
            theta = weights[k, a * D + d, i]
            sum_0 += bases[g, 0, i] * theta
            sum_1 += bases[g, 1, i] * theta
            sum_2 += bases[g, 2, i] * theta
            sum_3 += bases[g, 3, i] * theta
        inner[g, d, 0, column] = sum_0
        inner[g, d, 1, column] = sum_1
        inner[g, d, 2, column] = sum_2
        inner[g, d, 3, column] = sum_3
        for j in range(FEW, bases.shape[1]):
            sum_0 = zero
            for i in range(bases.shape[2]):
                sum_0 += bases[g, j, i] * weights[k, a * D + d, i]
            inner[g, d, j, column] = sum_0


@part()
def bring_up_to_date(tables: Filter, g: int, weights: Reals) -> None:
    """Make the table of cell g, or read again what has changed since its last visit."""
    bases, inner, updates, newest, seen = (
        tables.bases,
        tables.inner,
        tables.updates,
        tables.newest,
        tables.seen,
    )
    A, L = tables.of_actions.shape
    num_updates = tables.num_updates[0]
    if seen[g] < 0:
        for k in range(weights.shape[0]):
            for a in range(A):
                read_inner(bases, g, weights, k, a, a * L + k, inner)
    else:
        for entry in range(seen[g], num_updates):
            pair = updates[entry]
            if newest[pair] == entry:
                k, a = pair // A, pair % A
                read_inner(bases, g, weights, k, a, a * L + k, inner)
    seen[g] = num_updates


@part(fastmath=REASSOCIATE)
def read_policy(tables: Filter, k: int, a: int, weights: Reals, readout: Reals) -> None:
    """What does not depend on a cell, of an action of policy k: norms, memory weights, their memory part."""
    reference, of_memory, memory, norms = tables.reference, tables.of_memory, tables.memory, tables.norms
    P, D = tables.positions, norms.shape[0]
    column = a * tables.of_actions.shape[1] + k
    kappa, margin = tables.kappa, weights.dtype.type(0)
    for d in range(D):
        row = a * D + d
        square = weights[k, row, 0] - weights[k, row, 0]
        apart = square
        for i in range(weights.shape[2]):
            square += weights[k, row, i] * weights[k, row, i]
        for i in range(P):
            difference = weights[k, row, i] - reference[row, i]
            apart += difference * difference
        # Computed norms may be too small by (S / 2 + 3) u in relative terms, less than the slack.
        size = np.sqrt(square) + tables.reference_norms[row]
        norms[d, column] = (np.sqrt(apart) + kappa * size) * (1 + tables.slack)
        if readout[d] != 0:
            margin += abs(readout[d]) * norms[d, column]
        total = weights.dtype.type(0)
        for j in range(memory.shape[0]):
            of_memory[j, d, column] = weights[k, row, P + j]
            total += memory[j] * weights[k, row, P + j]
        tables.memory_part[d, column] = total
    tables.margins[column] = margin


@part()
def set_reference(weights: Reals, reference: Reals, reference_norms: Reals) -> None:
    """theta' <- the mean of all policies, or of every so many-th if there are many."""
    K, rows, P = weights.shape[0], reference.shape[0], reference.shape[1]
    every = -(-K // ENOUGH_FOR_A_MEAN)
    share = weights.dtype.type(1 / -(-K // every))
    reference[:] = share - share
    for k in range(0, K, every):
        for row in range(rows):
            for i in range(P):
                reference[row, i] += share * weights[k, row, i]
    for row in range(rows):
        square = share - share
        for i in range(P):
            square += reference[row, i] * reference[row, i]
        reference_norms[row] = np.sqrt(square)


@part()
def begin_filter(tables: Filter, weights: Reals, readout: Reals) -> None:
    """Choose the reference and read all policies."""
    set_reference(weights, tables.reference, tables.reference_norms)
    for k in range(weights.shape[0]):
        for a in range(tables.of_actions.shape[0]):
            read_policy(tables, k, a, weights, readout)


@part()
def note_update(tables: Filter, k: int, action: int, weights: Reals, readout: Reals) -> None:
    """The weights of an action of policy k have changed."""
    read_policy(tables, k, action, weights, readout)
    pair, entry = k * tables.of_actions.shape[0] + action, tables.num_updates[0]
    tables.updates[entry] = pair
    tables.newest[pair] = entry
    tables.num_updates[0] += 1


@part(fastmath=REASSOCIATE)
def note_readout(norms: Reals, readout: Reals, margins: Reals) -> None:
    """The readout has changed: margins = sum_d |v_d| n_d. Where v_d is 0, n_d may be infinite."""
    zero = readout[0] - readout[0]
    margins[:] = zero
    for d in range(readout.shape[0]):
        size = abs(readout[d])
        if size != zero:
            for e in range(margins.shape[0]):
                margins[e] += size * norms[d, e]


@part()
def follow_memory(tables: Filter, state: Reals) -> None:
    """theta_m . m for the memory of this state. Where something was forgotten it is summed up anew."""
    memory, of_memory, total = tables.memory, tables.of_memory, tables.memory_part
    P, zero = tables.positions, state.dtype.type(0)
    forgets = False
    for j in range(memory.shape[0]):
        forgets = forgets or (memory[j] != zero and memory[j] != state[P + j])
    if forgets:
        memory[:] = zero
        total[:] = zero
    for j in range(memory.shape[0]):
        if memory[j] != state[P + j]:
            memory[j] = state[P + j]
            for d in range(total.shape[0]):
                for e in range(total.shape[1]):
                    total[d, e] += memory[j] * of_memory[j, d, e]


# --- Bounds -----------------------------------------------------------------------------------------


@part(fastmath=REASSOCIATE)
def uncertainty(
    bases: Reals, g: int, state: Reals, P: int, slack: float, kappa: float, c: Reals, rest: Reals
) -> float:
    """max(rho, sigma / kappa) of a state in cell g; leaves c_j = U_j . p in `c` and e in `rest`."""
    zero = state[0] - state[0]
    square = zero
    for i in range(state.shape[0]):
        square += state[i] * state[i]
    for i in range(P):
        rest[i] = state[i]
    size = np.sqrt(square)
    for j in range(bases.shape[1]):
        c_j = zero
        for i in range(P):
            c_j += bases[g, j, i] * state[i]
        for i in range(P):
            rest[i] -= c_j * bases[g, j, i]
        c[j] = c_j
        # Bases are unit vectors up to rounding, a relative error of second order here.
        size += abs(c_j)
    square = zero
    for i in range(P):
        square += rest[i] * rest[i]
    return max(np.sqrt(square), slack * size / kappa)


@part(fastmath=REASSOCIATE)
def value_rest(reference: Reals, rest: Reals, of_rest: Reals) -> None:
    """of_rest[row] = theta' . e."""
    for row in range(reference.shape[0]):
        total = rest[0] - rest[0]
        for i in range(rest.shape[0]):
            total += reference[row, i] * rest[i]
        of_rest[row] = total


@part(fastmath=REASSOCIATE)
def bound_columns(
    inner: Reals, g: int, memory_part: Reals, margins: Reals, of_rest: Reals, c: Reals, width: float,
    readout: Reals, floor: float, of_actions: Reals, totals: Reals,
) -> None:  # fmt: skip
    """totals = sum_d v_d clip(x_d) + width sum_d |v_d| n_d with x and n as above."""
    zero, r = c[0] - c[0], c.shape[0]
    c_0, c_1, c_2, c_3, c_4, c_5 = c[0], c[1], c[2], c[3], c[r - 2], c[r - 1]
    # Unsigned: an index that might count from the end keeps the loop from being vectorised.
    A, L, D = np.uintp(of_actions.shape[0]), np.uintp(of_actions.shape[1]), np.uintp(readout.shape[0])
    for e in range(A * L):
        totals[e] = width * margins[e]
    for d in range(D):
        v_d = readout[d]
        if v_d == zero:
            continue
        for a in range(A):
            shared = of_rest[a * D + d]
            # Written out for both ranks: in a loop over j, sums would be read and stored in each turn.
            if r == FEW:
                for e in range(a * L, a * L + L):
                    x = (memory_part[d, e] + shared) + (
                        c_0 * inner[g, d, 0, e]
                        + c_1 * inner[g, d, 1, e]
                        + c_2 * inner[g, d, 2, e]
                        + c_3 * inner[g, d, 3, e]
                    )
                    totals[e] += v_d * (x if x > floor else floor)
            else:
                for e in range(a * L, a * L + L):
                    x = (memory_part[d, e] + shared) + (
                        c_0 * inner[g, d, 0, e]
                        + c_1 * inner[g, d, 1, e]
                        + c_2 * inner[g, d, 2, e]
                        + c_3 * inner[g, d, 3, e]
                        + c_4 * inner[g, d, 4, e]
                        + c_5 * inner[g, d, 5, e]
                    )
                    totals[e] += v_d * (x if x > floor else floor)


@part(fastmath=REASSOCIATE)
def best_action(of_actions: Reals, bound: Reals) -> None:
    """bound[k] = max over a of of_actions[a, k]."""
    for k in range(bound.shape[0]):
        best = of_actions[0, k]
        for a in range(1, of_actions.shape[0]):
            best = of_actions[a, k] if of_actions[a, k] > best else best
        bound[k] = best


@part()
def bound_policies(
    tables: Filter, weights: Reals, g: int, state: Reals, readout: Reals, bound: Reals
) -> None:
    """bound[k] >= max over a of Q_k(s, a) as `evaluate` computes it, for all k but the last; g: cell of s."""
    bring_up_to_date(tables, g, weights)
    follow_memory(tables, state)
    c, totals = tables.coordinates, tables.totals
    width = uncertainty(tables.bases, g, state, tables.positions, tables.slack, tables.kappa, c, tables.rest)
    value_rest(tables.reference, tables.rest, tables.of_rest)
    bound_columns(
        tables.inner, g, tables.memory_part, tables.margins, tables.of_rest, c, width, readout, tables.floor,
        tables.of_actions, totals,
    )  # fmt: skip
    best_action(tables.of_actions, bound)
