"""An exact filter for GPI: upper bounds of max_a Q_k(s, a) at a twentieth of the cost of its value.

A state is s = (p, m): p are the radial basis functions of a position, m the memory bits and the constant. The
unit square is cut into cells. Within a cell the codes p are nearly in a space of few dimensions, with a basis
U_1 ... U_r. For *any* numbers c_j and any weights theta, by Cauchy-Schwarz,

    | theta . s - ( theta_m . m + sum_j c_j U_j . theta_p ) |  <=  |theta| |p - sum_j c_j U_j|.

So c_j = U_j . p and tables of U_j . theta_p for all policies give every value within |theta| rho, where rho is
the norm of the residual, and, since clipping does not enlarge differences,

    Q_k(s, a)  <=  sum_d v_d clip(x_d) + (rho + slack) sum_d |v_d| |theta_{k,a,d}|.

Nothing is assumed of the basis, the weights or the readout; a poor basis costs time, not correctness.

**Rounding.** With unit round-off u, a sum of n products in any order errs by at most n u / (1 - n u) times the
product of norms. In units of u |theta| (|s| + C), C = sum_j |c_j| |U_j|, the errors are: S of the exact value,
M + 1 of the memory part, P of the table, r + 2 of its combination, r + 1 + P + 2 of rho, and 3 D + 2 of the two
readouts (M objects, P = 100 basis functions, S = P + M + 1). Their sum is below 4 (S + r + D), so

    slack = 4 (S + r + D) u (|s| + C)

covers them, second-order terms included. It grows with |v| and |theta| as the bound itself does.

**Tables.** A cell's table is made when it is first visited in a task. Learning changes a policy, and its entries
are then stale: it is evaluated exactly until it has rested for `COLD_AFTER` steps; then its entries are made anew
where they are needed. Tables run along policies, padded to whole vector registers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sfr_fa.kernels.arrays import REASSOCIATE, Integers, Reals
from sfr_fa.kernels.encoding import FloatArray, interval_code
from sfr_fa.kernels.linear import dot

RANK = 6
"""r: a constant, two linear and three quadratic directions."""
CELLS = 10
"""Cells along each axis."""
LANES = 16
"""Tables are padded to a multiple of so many policies, a whole number of vector registers."""
COLD_AFTER = 1000
"""Searches after its last update at which a policy's tables are made anew."""


class Filter(NamedTuple):
    """Tables over K policies (padded to L) of R rows (a, d) each; G cells. Without cells it is switched off."""

    positions: int
    """P: so many entries of a state code the position; memory bits and the constant follow."""
    slack: float
    """4 (S + r + D) u."""
    bases: Reals
    """(G, r, S): U_j of each cell, 0 in the entries of m."""
    tables: Reals
    """(G, R, r, L): U_j . theta_p."""
    of_memory: Reals
    """(M + 1, R, L): the weights of the memory bits and of the constant."""
    memory_part: Reals
    """(R, L): theta_m . m at the present memory."""
    norms: Reals
    """(R, L): |theta|, rounded up."""
    totals: Reals
    """(L,): room for the bound of one action."""
    coordinates: Reals
    """(r,): c_j of the present state."""
    inner: Reals
    """(r,): room for U_j . theta_p of one row."""
    updated: Integers
    """(K,): the search after which a policy was last updated; -1 for never in this task."""
    refreshed: Integers
    """(K,): the search at which its norms and memory weights were last read."""
    built: Integers
    """(G, K): the search at which its entries in the table of a cell were last made; -1 for never."""
    hot: Integers
    """(K,): the policies updated in this task, in the order of their first update..."""
    num_hot: Integers
    """(1,): ... and how many they are."""


def cell_bases(centres: FloatArray, sigma: float, cells: int) -> FloatArray:
    """The leading RANK right singular vectors of the codes on a grid in each cell: (cells^2, RANK, P)."""
    offsets = np.linspace(0.0, 1.0, 9) / cells
    codes = np.array(
        [[interval_code(g / cells + offset, centres, sigma) for offset in offsets] for g in range(cells)]
    )
    products = codes[:, None, :, None, :, None] * codes[None, :, None, :, None, :]
    _, _, directions = np.linalg.svd(products.reshape(cells**2, offsets.size**2, -1), full_matrices=False)
    return directions[:, :RANK]


def new_filter(bases: FloatArray, weights: Reals, num_actions: int, objects: int) -> Filter:
    """Empty tables for bases (G, r, P) and weights (K, R, S); without cells, G = 0, it is switched off."""
    G, _, P = bases.shape
    K, rows, S = weights.shape if G else (0, *weights.shape[1:])
    L = -(-K // LANES) * LANES
    dtype = weights.dtype
    wide = np.zeros((G, RANK, S), dtype)
    wide[..., :P] = bases
    unit = np.finfo(dtype).eps / 2
    return Filter(
        positions=P,
        slack=dtype.type(4 * (S + RANK + rows // num_actions) * unit),
        bases=wide,
        tables=np.empty((G, rows, RANK, L), dtype),
        of_memory=np.zeros((objects + 1, rows, L), dtype),
        memory_part=np.zeros((rows, L), dtype),
        norms=np.zeros((rows, L), dtype),
        totals=np.zeros(L, dtype),
        coordinates=np.zeros(RANK, dtype),
        inner=np.zeros(RANK, dtype),
        updated=np.full(K, -1, dtype=np.int64),
        refreshed=np.zeros(K, dtype=np.int64),
        built=np.full((G, K), -1, dtype=np.int64),
        hot=np.zeros(K, dtype=np.int64),
        num_hot=np.zeros(1, dtype=np.int64),
    )


# --- Tables -----------------------------------------------------------------------------------------


@njit(cache=True)
def read_policy(tables: Filter, k: int, weights: Reals, memory: FloatArray, number: int) -> None:
    """Norms and memory weights of policy k, and its memory part at the present memory."""
    M = memory.shape[0]
    P = tables.positions
    for r in range(weights.shape[1]):
        row = weights[k, r]
        # The computed norm may be too small by (S / 2 + 2) u in relative terms, less than the slack.
        tables.norms[r, k] = np.sqrt(dot(row, row)) * (1 + tables.slack)
        total = row[P + M]
        tables.of_memory[M, r, k] = total
        for j in range(M):
            tables.of_memory[j, r, k] = row[P + j]
            if memory[j] != 0.0:
                total += row[P + j]
        tables.memory_part[r, k] = total
    tables.refreshed[k] = number


@njit(cache=True)
def read_policy_in_cell(tables: Filter, g: int, k: int, weights: Reals, number: int) -> None:
    """U_j . theta_p of policy k in the table of cell g."""
    for r in range(weights.shape[1]):
        inner_products(tables.bases[g], weights[k, r], tables.inner)
        for j in range(RANK):
            tables.tables[g, r, j, k] = tables.inner[j]
    tables.built[g, k] = number


@njit(cache=True, fastmath=REASSOCIATE)
def inner_products(basis: Reals, row: Reals, products: Reals) -> None:
    """U_j . row for the six j at once."""
    u_0, u_1, u_2, u_3, u_4, u_5 = basis[0], basis[1], basis[2], basis[3], basis[4], basis[5]
    zero = row[0] - row[0]
    sum_0, sum_1, sum_2, sum_3, sum_4, sum_5 = zero, zero, zero, zero, zero, zero
    for i in range(row.shape[0]):
        x = row[i]
        sum_0 += u_0[i] * x
        sum_1 += u_1[i] * x
        sum_2 += u_2[i] * x
        sum_3 += u_3[i] * x
        sum_4 += u_4[i] * x
        sum_5 += u_5[i] * x
    products[0], products[1], products[2] = sum_0, sum_1, sum_2
    products[3], products[4], products[5] = sum_3, sum_4, sum_5


@njit(cache=True)
def begin_episode(tables: Filter) -> None:
    """The memory part when nothing has been collected."""
    tables.memory_part[:] = tables.of_memory[-1]


@njit(cache=True)
def pick_up(tables: Filter, j: int) -> None:
    """The memory part after object j has been collected."""
    for r in range(tables.memory_part.shape[0]):
        part, weights = tables.memory_part[r], tables.of_memory[j, r]
        for k in range(part.shape[0]):
            part[k] += weights[k]


@njit(cache=True)
def mark_updated(tables: Filter, k: int, number: int) -> None:
    """Policy k has changed after search `number`."""
    if tables.updated[k] < 0:
        tables.hot[tables.num_hot[0]] = k
        tables.num_hot[0] += 1
    tables.updated[k] = number


# --- Bounds -----------------------------------------------------------------------------------------


@njit(cache=True, fastmath=REASSOCIATE)
def uncertainty(tables: Filter, g: int, state: Reals) -> float:
    """rho + slack of a state in cell g; leaves its coordinates c_j = U_j . p in the filter."""
    basis, c = tables.bases[g], tables.coordinates
    inner_products(basis, state, c)
    zero = state[0] - state[0]
    c_0, c_1, c_2, c_3, c_4, c_5 = c[0], c[1], c[2], c[3], c[4], c[5]
    u_0, u_1, u_2, u_3, u_4, u_5 = basis[0], basis[1], basis[2], basis[3], basis[4], basis[5]
    square = zero
    for i in range(tables.positions):
        near = c_0 * u_0[i] + c_1 * u_1[i] + c_2 * u_2[i] + c_3 * u_3[i] + c_4 * u_4[i] + c_5 * u_5[i]
        square += (state[i] - near) * (state[i] - near)
    size = np.sqrt(dot(state, state))
    for j in range(RANK):
        # Bases are rounded unit vectors: |U_j| is 1 up to rounding of its own.
        size += abs(c[j])
    return np.sqrt(square) + tables.slack * size


@njit(cache=True, fastmath=REASSOCIATE)
def add_row(
    table: Reals,
    memory_part: Reals,
    norms: Reals,
    c: Reals,
    v_d: float,
    width: float,
    floor: float,
    totals: Reals,
) -> None:
    """totals[k] += v_d max(x_k, floor) + width |theta_k|, with x_k = theta_m . m + sum_j c_j U_j . theta_p."""
    t_0, t_1, t_2, t_3, t_4, t_5 = table[0], table[1], table[2], table[3], table[4], table[5]
    c_0, c_1, c_2, c_3, c_4, c_5 = c[0], c[1], c[2], c[3], c[4], c[5]
    for k in range(totals.shape[0]):
        x = (
            memory_part[k]
            + c_0 * t_0[k]
            + c_1 * t_1[k]
            + c_2 * t_2[k]
            + c_3 * t_3[k]
            + c_4 * t_4[k]
            + c_5 * t_5[k]
        )
        totals[k] += v_d * max(x, floor) + width * norms[k]


@njit(cache=True)
def bound_policies(
    tables: Filter,
    weights: Reals,
    x: float,
    y: float,
    state: Reals,
    memory: FloatArray,
    readout: Reals,
    clip: bool,
    number: int,
    bound: Reals,
) -> None:
    """bound[k] >= max over a of Q_k(s, a) as `evaluate` computes it; infinite where the tables are stale."""
    K, R, D = weights.shape[0], weights.shape[1], readout.shape[0]
    cells = int(np.sqrt(tables.bases.shape[0]))
    g = min(int(x * cells), cells - 1) * cells + min(int(y * cells), cells - 1)
    if tables.built[g, 0] < 0:
        for k in range(K):
            read_policy_in_cell(tables, g, k, weights, number)
    width = uncertainty(tables, g, state)
    totals = tables.totals
    zero = state[0] - state[0]
    floor = zero if clip else zero - np.inf

    bound[:] = -np.inf
    for a in range(R // D):
        totals[:] = zero
        for d in range(D):
            v_d = readout[d]
            if v_d != zero:
                r = a * D + d
                add_row(
                    tables.tables[g, r], tables.memory_part[r], tables.norms[r], tables.coordinates,
                    v_d, abs(v_d) * width, floor, totals,
                )  # fmt: skip
        for k in range(totals.shape[0]):
            bound[k] = max(bound[k], totals[k])

    for h in range(tables.num_hot[0]):
        k = tables.hot[h]
        if tables.updated[k] >= min(tables.built[g, k], tables.refreshed[k]):
            bound[k] = np.inf
            if number - tables.updated[k] > COLD_AFTER:
                read_policy(tables, k, weights, memory, number)
                read_policy_in_cell(tables, g, k, weights, number)
