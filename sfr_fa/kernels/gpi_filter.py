"""An exact filter for GPI: upper bounds of max_a Q_k(s, a) at a fraction of the cost of its value.

A state is s = (p, m): p are the radial basis functions of a position, m the memory bits and the constant.
Within a region of the square the codes p are nearly in a space of few dimensions, with a basis U_1 ... U_r.
For *any* numbers c_j and any weights theta, by Cauchy-Schwarz,

    | theta . s - ( theta_m . m + sum_j c_j U_j . theta_p ) |  <=  |theta| |p - sum_j c_j U_j|.

So c_j = U_j . p and tables of U_j . theta_p for all policies give every value within |theta| rho, where rho
is the norm of the residual, and, since clipping does not enlarge differences,

    Q_k(s, a)  <=  sum_d v_d clip(x_d) + (rho + slack) sum_d |v_d| |theta_{k,a,d}|.

Nothing is assumed of the basis, the weights or the readout; a poor basis costs time, not correctness.

**Rounding.** With unit round-off u, a sum of n products in any order errs by at most n u / (1 - n u) times
the product of norms. In units of u |theta| (|s| + C), C = sum_j |c_j| |U_j|, the errors are: S of the exact
value, M + 1 of the memory part, P of the table, r + 2 of its combination, r + 1 + P + 2 of rho, and 3 D + 2
of the two readouts (M objects, P basis functions, S = P + M + 1, D outputs). Their sum is below 4 (S + r +
D), so

    slack = 4 (S + r + D) u (|s| + C)

covers them, second-order terms included. It grows with |v| and |theta| as the bound itself does.

**Two families of tables.** Policies that rest use a basis of `COLD_RANK` in each of `CELLS`^2 cells; the
table of a cell is made when it is first visited in a task. A source policy is learned too: from its first
update on it counts as hot, and has a single table over the whole square, with a basis of `HOT_RANK`, in which
the rows of the action are made anew after each update. The policy of the current task is evaluated at every
step anyway.

Tables run along outputs d, then actions a, then policies, so that inner loops are long; policies are padded
to whole vector registers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sfr_fa.kernels.arrays import REASSOCIATE, Integers, Reals
from sfr_fa.kernels.encoding import FloatArray, interval_code
from sfr_fa.kernels.linear import dot, policy_values

CELLS = 10
"""Cells along each axis."""
COLD_RANK, HOT_RANK = 4, 28
"""r within a cell, and over the whole square; multiples of 4, as `policy_values` needs."""
LANES = 16
"""Tables are padded to a multiple of so many policies, a whole number of vector registers."""


def padded(policies: int) -> int:
    """The next multiple of LANES."""
    return -(-policies // LANES) * LANES


class Tables(NamedTuple):
    """Tables over a family of policies; flat, because the hot family grows: see `shaped`."""

    bases: Reals
    """(G, r, S): U_j of each region, 0 in the entries of m."""
    inner: Reals
    """(G, r D A L): U_j . theta_p, with room for L policies."""
    of_memory: Reals
    """((M + 1) D A L,): the weights of the memory bits and of the constant."""
    memory_part: Reals
    """(D A L,): theta_m . m at the present memory."""
    norms: Reals
    """(D A L,): |theta|, rounded up."""


class Filter(NamedTuple):
    """The state of the filter during a task; without cells it is switched off."""

    positions: int
    """P: so many entries of a state code the position; memory bits and the constant follow."""
    slack: float
    """4 (S + r + D) u."""
    cold: Tables
    hot: Tables
    built: Integers
    """(CELLS^2,): whether the table of a cell has been made."""
    slot: Integers
    """(K,): the place of a policy among the hot ones, or -1."""
    hot_policies: Integers
    """(K,): the policy in each place..."""
    num_hot: Integers
    """(1,): ... and how many there are."""
    bound: Reals
    """(L,): room for the bounds of a family..."""
    totals: Reals
    """(A L,): ... for those of each action..."""
    near: Reals
    """(A L,): ... for x of one output..."""
    coordinates: Reals
    """(2, HOT_RANK): ... for c_j, and for U_j . theta_p of a row..."""
    rest: Reals
    """(S,): ... and for p - sum_j c_j U_j."""


def region_bases(centres: FloatArray, sigma: float, cells: int, rank: int) -> FloatArray:
    """Leading right singular vectors of the codes on a fine grid in each of cells^2 regions: (G, rank, P)."""
    offsets = np.linspace(0.0, 1.0, 9 if cells > 1 else 33) / cells
    codes = np.array(
        [[interval_code(g / cells + offset, centres, sigma) for offset in offsets] for g in range(cells)]
    )
    products = codes[:, None, :, None, :, None] * codes[None, :, None, :, None, :]
    _, _, directions = np.linalg.svd(products.reshape(cells**2, offsets.size**2, -1), full_matrices=False)
    return directions[:, :rank]


def new_tables(bases: FloatArray, lanes: int, rows: int, objects: int, S: int, dtype: np.dtype) -> Tables:
    """Empty tables."""
    G, r, P = bases.shape
    wide = np.zeros((G, r, S), dtype)
    wide[..., :P] = bases
    size = rows * lanes
    return Tables(
        bases=wide,
        inner=np.zeros((G, r * size), dtype),
        of_memory=np.zeros((objects + 1) * size, dtype),
        memory_part=np.zeros(size, dtype),
        norms=np.zeros(size, dtype),
    )


def new_filter(
    cold_bases: FloatArray, hot_bases: FloatArray, weights: Reals, num_actions: int, objects: int, *, on: bool
) -> Filter:
    """A filter for weights (K, R, S), rows (a, d), that knows nothing yet."""
    K, rows, S = weights.shape
    used = slice(None if on else 0)
    policies = K if on else 0
    lanes, dtype = padded(policies), weights.dtype
    unit = np.finfo(dtype).eps / 2
    return Filter(
        positions=cold_bases.shape[-1],
        slack=dtype.type(4 * (S + HOT_RANK + rows // num_actions) * unit),
        cold=new_tables(cold_bases[used], lanes, rows, objects, S, dtype),
        hot=new_tables(hot_bases[used], lanes, rows, objects, S, dtype),
        built=np.zeros(len(cold_bases[used]), dtype=np.int64),
        slot=np.full(policies, -1, dtype=np.int64),
        hot_policies=np.zeros(policies, dtype=np.int64),
        num_hot=np.zeros(1, dtype=np.int64),
        bound=np.zeros(lanes, dtype),
        totals=np.zeros(num_actions * lanes, dtype),
        near=np.zeros(num_actions * lanes, dtype),
        coordinates=np.zeros((2, HOT_RANK), dtype),
        rest=np.zeros(S, dtype),
    )


@njit(cache=True)
def shaped(flat: Reals, planes: int, outputs: int, columns: int) -> Reals:
    """The first entries of a flat table as (planes, D, A L): column a L + k is action a of policy k."""
    return flat[: planes * outputs * columns].reshape((planes, outputs, columns))


# --- Reading weights into tables ---------------------------------------------------------------------


@njit(cache=True)
def read_inner(
    basis: Reals,
    policy: Reals,
    first: int,
    last: int,
    D: int,
    slot: int,
    L: int,
    inner: Reals,
    products: Reals,
) -> None:
    """U_j . theta_p of rows `first` to `last` of one policy; inner (r, D, A L)."""
    for row in range(first, last):
        policy_values(basis, policy[row], products)
        a, d = row // D, row % D
        for j in range(basis.shape[0]):
            inner[j, d, a * L + slot] = products[j]


@njit(cache=True)
def read_memory(
    policy: Reals, first: int, last: int, D: int, slot: int, L: int, P: int, slack: float, memory: FloatArray,
    of_memory: Reals, memory_part: Reals, norms: Reals,
) -> None:  # fmt: skip
    """Norms and memory weights of some rows, and their memory part at the present memory."""
    M = memory.shape[0]
    for row in range(first, last):
        theta = policy[row]
        d, column = row % D, (row // D) * L + slot
        # The computed norm may be too small by (S / 2 + 2) u in relative terms, less than the slack.
        norms[0, d, column] = np.sqrt(dot(theta, theta)) * (1 + slack)
        total = theta[P + M]
        of_memory[M, d, column] = total
        for j in range(M):
            of_memory[j, d, column] = theta[P + j]
            if memory[j] != 0.0:
                total += theta[P + j]
        memory_part[0, d, column] = total


@njit(cache=True)
def begin_task(known: Filter, weights: Reals, D: int, memory: FloatArray) -> None:
    """All policies rest."""
    K, R = weights.shape[0], weights.shape[1]
    L = known.bound.shape[0]
    columns = R // D * L
    of_memory = shaped(known.cold.of_memory, memory.shape[0] + 1, D, columns)
    part, norms = shaped(known.cold.memory_part, 1, D, columns), shaped(known.cold.norms, 1, D, columns)
    for k in range(K):
        read_memory(
            weights[k], 0, R, D, k, L, known.positions, known.slack, memory, of_memory, part, norms
        )  # fmt: skip


@njit(cache=True)
def build_cell(known: Filter, g: int, weights: Reals, D: int) -> None:
    """The table of cell g, for all policies."""
    R, L, basis = weights.shape[1], known.bound.shape[0], known.cold.bases[g]
    inner = shaped(known.cold.inner[g], basis.shape[0], D, R // D * L)
    for k in range(weights.shape[0]):
        read_inner(basis, weights[k], 0, R, D, k, L, inner, known.coordinates[1])
    known.built[g] = 1


@njit(cache=True)
def read_hot(
    known: Filter, k: int, weights: Reals, first: int, last: int, D: int, memory: FloatArray
) -> None:
    """Some rows of a hot policy into the tables of hot policies."""
    L = -(-known.num_hot[0] // LANES) * LANES
    slot, columns, basis = known.slot[k], weights.shape[1] // D * L, known.hot.bases[0]
    of_memory = shaped(known.hot.of_memory, memory.shape[0] + 1, D, columns)
    part, norms = shaped(known.hot.memory_part, 1, D, columns), shaped(known.hot.norms, 1, D, columns)
    inner = shaped(known.hot.inner[0], basis.shape[0], D, columns)
    read_memory(
        weights[k], first, last, D, slot, L, known.positions, known.slack, memory, of_memory, part, norms
    )
    read_inner(basis, weights[k], first, last, D, slot, L, inner, known.coordinates[1])


@njit(cache=True)
def read_updated(known: Filter, k: int, action: int, weights: Reals, D: int, memory: FloatArray) -> None:
    """The weights of an action of policy k have changed; the policy is hot from now on."""
    if known.slot[k] >= 0:
        read_hot(known, k, weights, action * D, (action + 1) * D, D, memory)
        return
    slot = known.num_hot[0]
    known.slot[k], known.hot_policies[slot] = slot, k
    known.num_hot[0] += 1
    # A full register more changes the shape of the tables, and all hot policies are read again.
    for place in range(0 if slot % LANES == 0 else slot, slot + 1):
        read_hot(known, known.hot_policies[place], weights, 0, weights.shape[1], D, memory)


@njit(cache=True)
def hot_size(known: Filter) -> int:
    """D A L of the hot family: so many entries of its flat tables are in use."""
    rows = known.hot.memory_part.shape[0] // known.bound.shape[0]
    return rows * (-(-known.num_hot[0] // LANES) * LANES)


@njit(cache=True)
def begin_episode(known: Filter) -> None:
    """Nothing has been collected."""
    known.cold.memory_part[:] = known.cold.of_memory[-known.cold.memory_part.shape[0] :]
    size = hot_size(known)
    last = (known.hot.of_memory.shape[0] // known.hot.memory_part.shape[0] - 1) * size
    known.hot.memory_part[:size] = known.hot.of_memory[last : last + size]


@njit(cache=True)
def add_to(part: Reals, weights: Reals) -> None:
    """part += weights."""
    for e in range(part.shape[0]):
        part[e] += weights[e]


@njit(cache=True)
def pick_up(known: Filter, j: int) -> None:
    """Object j has been collected."""
    size = known.cold.memory_part.shape[0]
    add_to(known.cold.memory_part, known.cold.of_memory[j * size : (j + 1) * size])
    size = hot_size(known)
    add_to(known.hot.memory_part[:size], known.hot.of_memory[j * size : (j + 1) * size])


# --- Bounds -----------------------------------------------------------------------------------------


@njit(cache=True, fastmath=REASSOCIATE)
def uncertainty(basis: Reals, state: Reals, P: int, slack: float, c: Reals, rest: Reals) -> float:
    """rho + slack of a state; leaves c_j = U_j . p in `c`."""
    policy_values(basis, state, c)
    size = np.sqrt(dot(state, state))
    rest[:] = state
    for j in range(basis.shape[0]):
        c_j, u = c[j], basis[j]
        for i in range(rest.shape[0]):
            rest[i] -= c_j * u[i]
        # Bases are unit vectors up to rounding, a relative error of second order here.
        size += abs(c_j)
    inside = rest[:P]
    return np.sqrt(dot(inside, inside)) + slack * size


@njit(cache=True, fastmath=REASSOCIATE)
def add_products(
    near: Reals,
    c_0: float,
    t_0: Reals,
    c_1: float,
    t_1: Reals,
    c_2: float,
    t_2: Reals,
    c_3: float,
    t_3: Reals,
) -> None:
    """near += c_0 t_0 + c_1 t_1 + c_2 t_2 + c_3 t_3."""
    for e in range(near.shape[0]):
        near[e] += c_0 * t_0[e] + c_1 * t_1[e] + c_2 * t_2[e] + c_3 * t_3[e]


@njit(cache=True, fastmath=REASSOCIATE)
def add_output(
    inner: Reals, d: int, c: Reals, part: Reals, norms: Reals, v_d: float, width: float, floor: float,
    near: Reals, totals: Reals,
) -> None:  # fmt: skip
    """totals += v_d max(x, floor) + width |theta|, with x = theta_m . m + sum_j c_j U_j . theta_p."""
    r = inner.shape[0]
    if r > 4:
        near[:] = part
        for j in range(4, r, 4):
            add_products(
                near,
                c[j],
                inner[j, d],
                c[j + 1],
                inner[j + 1, d],
                c[j + 2],
                inner[j + 2, d],
                c[j + 3],
                inner[j + 3, d],
            )
        part = near
    c_0, c_1, c_2, c_3 = c[0], c[1], c[2], c[3]
    t_0, t_1, t_2, t_3 = inner[0, d], inner[1, d], inner[2, d], inner[3, d]
    for e in range(part.shape[0]):
        x = part[e] + (c_0 * t_0[e] + c_1 * t_1[e] + c_2 * t_2[e] + c_3 * t_3[e])
        totals[e] += v_d * (x if x > floor else floor) + width * norms[e]


@njit(cache=True)
def bound_family(
    inner: Reals, part: Reals, norms: Reals, c: Reals, width: float, readout: Reals, clip: bool,
    near: Reals, totals: Reals, bound: Reals,
) -> None:  # fmt: skip
    """bound >= max over a of Q(s, a) for the policies of a family; tables (planes, D, A L), bound (L,)."""
    zero = c[0] - c[0]
    floor = zero if clip else zero - np.inf
    totals[:] = zero
    for d in range(readout.shape[0]):
        v_d = readout[d]
        if v_d != zero:
            add_output(inner, d, c, part[0, d], norms[0, d], v_d, abs(v_d) * width, floor, near, totals)
    L = bound.shape[0]
    bound[:] = totals[:L]
    for a in range(1, totals.shape[0] // L):
        of_action = totals[a * L : (a + 1) * L]
        for k in range(L):
            bound[k] = max(bound[k], of_action[k])


@njit(cache=True)
def bound_policies(
    known: Filter, weights: Reals, x: float, y: float, state: Reals, readout: Reals, clip: bool, bound: Reals
) -> None:
    """bound[k] >= max over a of Q_k(s, a) as `evaluate` computes it, for all k but the last."""
    D = readout.shape[0]
    A = weights.shape[1] // D
    c, rest, near, totals = known.coordinates[0], known.rest, known.near, known.totals
    P, slack = known.positions, known.slack

    cells = int(np.sqrt(known.built.shape[0]))
    g = min(int(x * cells), cells - 1) * cells + min(int(y * cells), cells - 1)
    if known.built[g] == 0:
        build_cell(known, g, weights, D)
    basis, columns = known.cold.bases[g], totals.shape[0]
    inner = shaped(known.cold.inner[g], basis.shape[0], D, columns)
    part, norms = shaped(known.cold.memory_part, 1, D, columns), shaped(known.cold.norms, 1, D, columns)
    width = uncertainty(basis, state, P, slack, c, rest)
    bound_family(inner, part, norms, c, width, readout, clip, near, totals, bound)

    hot = known.num_hot[0]
    if hot > 0:
        L = -(-hot // LANES) * LANES
        basis, columns, of_hot = known.hot.bases[0], A * L, known.bound[:L]
        inner = shaped(known.hot.inner[0], basis.shape[0], D, columns)
        part, norms = shaped(known.hot.memory_part, 1, D, columns), shaped(known.hot.norms, 1, D, columns)
        width = uncertainty(basis, state, P, slack, c, rest)
        bound_family(
            inner, part, norms, c, width, readout, clip, near[:columns], totals[:columns], of_hot
        )  # fmt: skip
        for slot in range(hot):
            bound[known.hot_policies[slot]] = of_hot[slot]
