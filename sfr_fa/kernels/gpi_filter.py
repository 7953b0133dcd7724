"""An exact filter for GPI: upper bounds of max_a Q_k(s, a) at a fraction of the cost of its value.

A state is s = (p, m): p are the radial basis functions of a position, m the memory bits and the constant.
Within a cell of the square the codes p are nearly in a space of few dimensions, with a basis U_1 ... U_r.
For *any* numbers c_j, with the remainder e = p - sum_j c_j U_j, and any reference weights theta',

    theta . s  =  theta_m . m + theta' . p + sum_j c_j t_j + (theta_p - theta') . e,
    t_j = U_j . (theta_p - theta'),

and by Cauchy-Schwarz the last term is at most |theta_p - theta'| rho, rho = |e|. theta' . p and c_j = U_j . p
are the same for all policies; what is read of each are tables of theta_m . m and of t_j. To read less, t_j is
rounded to a whole number of quanta h_j, at most 127: it fits into a byte and errs by half a quantum. Since
clipping does not enlarge differences, with x_d for the first three terms,

    Q_k(s, a)  <=  sum_d v_d clip(x_d)
                   + sum_d |v_d| (rho |theta_{k,a,d} - theta'_{a,d}| + sum_j |c_j| h_j / 2) + rounding.

theta' is a mean of policies when tables are made: they have much in common, and only what sets one apart is
bounded. Nothing is assumed of the basis, the reference, the quanta, the weights or the readout; poor
ones cost time, not correctness.

**Rounding.** With unit round-off u, a sum of n products in any order errs by at most n u / (1 - n u) times
the product of norms. In units of u (|theta| + |theta'|) (|s| + C), C = sum_j |c_j| |U_j|, the errors are: S
of the exact value, M + 1 of the memory part, P of theta' . p, P + 4 of the table, r + 3 of the sum x,
r + 1 + P + 2 of rho, and 3 D + 2 of the two readouts (M objects, P basis functions, S = P + M + 1 or more,
D outputs). Their sum is below 5 (S + r + D), so

    sigma = 5 (S + r + D) u (|s| + C)

times |theta| + |theta'| covers them, second-order terms included. A quantum may be large compared with policy
k; what rounding does to half a quantum is covered by counting it as HALF, a little more.

The bound grows with |v| and |theta| as the values do. A column's sums over d of |v_d| |theta_p - theta'| and
of |v_d| (|theta| + |theta'|) are made when its weights or the readout change, not at every state.

**Learning.** Source policies learn too, one action per step. The tables of a cell are made when it is first
visited; each later visit rereads the actions that were updated since the last one, as a log of all updates
tells. Where one of them has outgrown its byte, the quanta of its row are chosen anew. The policy of the
current task is evaluated at every step anyway.

**Tasks.** Most policies are the same in the next task, so its tables are those of the last one
(`continued`): what has changed in between is noted in the log. After many new policies the reference is not a
mean of all any more, and tables are made anew.

Tables run along outputs d, then actions a, then policies, in the order in which they are read; policies are
padded to whole vector registers.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import REASSOCIATE, Bytes, FloatArray, Integers, Reals, padded, part
from sfr_fa.kernels.gpi import LANES

RANK = 4
"""r, the dimensions of the basis of a cell: more of them make closer bounds, which take longer."""
ENOUGH_FOR_A_MEAN = 64
"""The reference is a mean of at most this many policies: more of them take time and change it little."""
GROWTH = 1.25
"""Tables are made anew when there are so many times as many policies as when their reference was chosen."""
QUANTA = 96
"""The largest number in a row of a table when it is made; later ones may be larger, up to MOST_QUANTA."""
MOST_QUANTA = 127
NO_NAN = {"nnan", "nsz"}
"""Without it the largest of many numbers is searched one by one."""
HALF = 0.51
"""Of a quantum: more than its half, for rounding."""


class Filter(NamedTuple):
    """The state of the filter; without cells it is switched off. Column a L + k is (a, k)."""

    made_for: int
    """How many policies there were when the reference was chosen."""
    positions: int
    """P, how many entries of a state code the position; memory bits and the constant follow."""
    slack: float
    """5 (S + r + D) u."""
    floor: float
    """Values below it count as this: 0 where they are clipped, else -infinity."""
    smallest: float
    """Positive: a quantum is at least of this size, divided by QUANTA."""
    bases: Reals
    """(G, r, P or more): U_j of each cell, 0 in all entries but the first P."""
    inner: Bytes
    """(G, D, A, r, L): t_j in quanta, with room for L policies..."""
    quantum: Reals
    """(G, D, A, r): ... h_j..."""
    exact: Reals
    """(D, A, r, L): ... and room for all t_j of a cell."""
    of_memory: Reals
    """(M + 1, D, A L): the weights of the memory bits and of the constant."""
    memory: Reals
    """(M + 1,): m, the memory bits and the constant of the present state..."""
    memory_part: Reals
    """(D, A L): ... and theta_m . m."""
    norms: Reals
    """(D, A L): |theta_p - theta'|, rounded up..."""
    sizes: Reals
    """(D, A L): ... |theta| + |theta'|, rounded up..."""
    margins: Reals
    """(A L,): ... and for the present readout sum_d |v_d| norms_d..."""
    slacks: Reals
    """(A L,): ... and sum_d |v_d| sizes_d."""
    reference: Reals
    """(A D, P or more): theta', 0 in all entries but the first P, fixed as long as there are tables..."""
    reference_norms: Reals
    """(A D,): ... |theta'|..."""
    of_position: Reals
    """(A D,): ... and theta' . p at the present state."""
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
    halves: Reals
    """(A,): ... of half quanta..."""
    coordinates: Reals
    """(r,): ... for c_j..."""
    rest: Reals
    """(P,): ... and for e = p - sum_j c_j U_j."""


def new_filter(
    bases: FloatArray, reference: Reals, state_dim: int, num_actions: int, policies: int, steps: int, *,
    clip: bool,
) -> Filter:  # fmt: skip
    """A filter with empty tables for K policies with weights (K, A D or more, S) and a task of so many steps.

    bases (G, r, P) come from `sfr_fa.kernels.cells`; without cells it is switched off.
    reference (A D, S): theta'.
    """
    cells, P = len(bases), bases.shape[2]
    (rows, S), dtype = reference.shape, reference.dtype
    D, K = rows // num_actions, policies if cells else 0
    L = padded(K, LANES)
    columns = num_actions * L
    wide = np.zeros((cells, RANK, padded(P, LANES)), dtype)
    wide[..., :P] = bases
    kept = np.zeros((rows, wide.shape[2]), dtype)
    kept[:, :P] = reference[:, :P]
    totals = np.zeros(columns, dtype)
    with np.errstate(over="ignore", invalid="ignore"):
        # An infinite norm makes an infinite bound.
        reference_norms = np.linalg.norm(kept, axis=1)
    return Filter(
        made_for=K,
        positions=P,
        slack=dtype.type(5 * (S + RANK + D) * np.finfo(dtype).eps / 2),
        # Of the type of the weights: a float64 would turn the loop over all policies into float64.
        floor=dtype.type(0.0 if clip else -np.inf),
        smallest=dtype.type(np.finfo(dtype).tiny * 2.0**20),
        bases=wide,
        inner=np.zeros((cells, D, num_actions, RANK, L), np.int8),
        quantum=np.zeros((cells, D, num_actions, RANK), dtype),
        exact=np.zeros((D, num_actions, RANK, L), dtype),
        of_memory=np.zeros((state_dim - P, D, columns), dtype),
        memory=np.zeros(state_dim - P, dtype),
        memory_part=np.zeros((D, columns), dtype),
        norms=np.zeros((D, columns), dtype),
        sizes=np.zeros((D, columns), dtype),
        margins=np.zeros(columns, dtype),
        slacks=np.zeros(columns, dtype),
        reference=kept,
        reference_norms=reference_norms,
        of_position=np.zeros(rows, dtype),
        updates=np.zeros(steps + num_actions * K if cells else 0, dtype=np.int64),
        num_updates=np.zeros(1, dtype=np.int64),
        newest=np.zeros(K * num_actions, dtype=np.int64),
        seen=np.full(cells, -1, dtype=np.int64),
        totals=totals,
        of_actions=totals.reshape(num_actions, -1),
        halves=np.zeros(num_actions, dtype),
        coordinates=np.zeros(RANK, dtype),
        rest=np.zeros(P, dtype),
    )


def serves_again(tables: Filter, policies: int, changed: int) -> bool:
    """Whether to read what has changed is better than new tables with a new reference."""
    return 2 * changed < policies <= GROWTH * tables.made_for


def continued(tables: Filter, policies: int, steps: int) -> Filter:
    """The same tables with room for K policies, no fewer than before, and a further task of so many steps."""
    A, before = tables.of_actions.shape
    L = padded(policies, LANES)

    def widened(table: Reals) -> Reals:
        """(..., L), more of it."""
        if before == L:
            return table
        result = np.zeros((*table.shape[:-1], L), table.dtype)
        result[..., :before] = table
        return result

    def with_more_columns(table: Reals) -> Reals:
        """(..., A L), more of each A."""
        return widened(table.reshape(*table.shape[:-1], A, before)).reshape(*table.shape[:-1], A * L)

    # Of the log only the newest entry of each pair counts.
    count = tables.num_updates[0]
    is_newest = tables.newest[tables.updates[:count]] == np.arange(count)
    log = tables.updates[:count][is_newest]
    updates = np.zeros(len(log) + steps + A * policies, dtype=np.int64)
    updates[: len(log)] = log
    newest = np.zeros(policies * A, dtype=np.int64)
    newest[log] = np.arange(len(log))
    kept_until = np.concatenate([[0], np.cumsum(is_newest)])
    totals = with_more_columns(tables.totals)
    return tables._replace(
        inner=widened(tables.inner),
        exact=widened(tables.exact),
        of_memory=with_more_columns(tables.of_memory),
        memory_part=with_more_columns(tables.memory_part),
        norms=with_more_columns(tables.norms),
        sizes=with_more_columns(tables.sizes),
        margins=with_more_columns(tables.margins),
        slacks=with_more_columns(tables.slacks),
        updates=updates,
        num_updates=np.array([len(log)]),
        newest=newest,
        seen=np.where(tables.seen < 0, -1, kept_until[tables.seen]),
        totals=totals,
        of_actions=totals.reshape(A, -1),
    )


# --- Reading weights into tables ---------------------------------------------------------------------


@part(fastmath=REASSOCIATE)
def read_row(tables: Filter, g: int, weights: Reals, k: int, a: int, d: int) -> None:
    """exact[d, a, :, k] = t_j in cell g; of a policy whose norm and bound are infinite, numbers only."""
    bases, reference, exact, row = tables.bases, tables.reference, tables.exact, a * tables.exact.shape[0] + d
    zero = bases[g, 0, 0] - bases[g, 0, 0]
    t_0, t_1, t_2, t_3 = zero, zero, zero, zero
    for i in range(bases.shape[2]):
        apart = weights[k, row, i] - reference[row, i]
        t_0 += bases[g, 0, i] * apart
        t_1 += bases[g, 1, i] * apart
        t_2 += bases[g, 2, i] * apart
        t_3 += bases[g, 3, i] * apart
    exact[d, a, 0, k] = t_0 if abs(t_0) < np.inf else zero
    exact[d, a, 1, k] = t_1 if abs(t_1) < np.inf else zero
    exact[d, a, 2, k] = t_2 if abs(t_2) < np.inf else zero
    exact[d, a, 3, k] = t_3 if abs(t_3) < np.inf else zero


@part(fastmath=NO_NAN)
def count_quanta(tables: Filter, g: int, a: int, d: int) -> None:
    """All t_j of an output of an action into the table of cell g, with quanta that suit them."""
    inner, quantum, exact = tables.inner, tables.quantum, tables.exact
    for j in range(exact.shape[2]):
        largest = tables.smallest
        for k in range(exact.shape[3]):
            size = abs(exact[d, a, j, k])
            largest = size if size > largest else largest
        h = largest / exact.dtype.type(QUANTA)
        quantum[g, d, a, j] = h
        for k in range(exact.shape[3]):
            inner[g, d, a, j, k] = np.int8(np.rint(exact[d, a, j, k] / h))


@part()
def make_table(tables: Filter, g: int, weights: Reals) -> None:
    """The table of cell g."""
    D, A, _, _ = tables.exact.shape
    for k in range(weights.shape[0]):
        for a in range(A):
            for d in range(D):
                read_row(tables, g, weights, k, a, d)
    for a in range(A):
        for d in range(D):
            count_quanta(tables, g, a, d)


@part()
def read_again(tables: Filter, g: int, weights: Reals, k: int, a: int) -> None:
    """An action of policy k, which has learned, into the table of cell g."""
    inner, quantum, exact = tables.inner, tables.quantum, tables.exact
    for d in range(exact.shape[0]):
        read_row(tables, g, weights, k, a, d)
        fits = True
        for j in range(exact.shape[2]):
            number = np.rint(exact[d, a, j, k] / quantum[g, d, a, j])
            if abs(number) <= MOST_QUANTA:
                inner[g, d, a, j, k] = np.int8(number)
            else:
                fits = False
        if not fits:
            for other in range(weights.shape[0]):
                read_row(tables, g, weights, other, a, d)
            count_quanta(tables, g, a, d)


@part()
def bring_up_to_date(tables: Filter, g: int, weights: Reals) -> None:
    """Make the table of cell g, or read again what has changed since its last visit."""
    updates, newest, seen, A = tables.updates, tables.newest, tables.seen, tables.of_actions.shape[0]
    num_updates = tables.num_updates[0]
    if seen[g] < 0:
        make_table(tables, g, weights)
    else:
        for entry in range(seen[g], num_updates):
            pair = updates[entry]
            if newest[pair] == entry:
                read_again(tables, g, weights, pair // A, pair % A)
    seen[g] = num_updates


@part(fastmath=REASSOCIATE)
def read_policy(tables: Filter, k: int, a: int, weights: Reals, readout: Reals) -> None:
    """What does not depend on a cell, of an action of policy k: norms, memory weights, their memory part."""
    reference, of_memory, memory, norms = tables.reference, tables.of_memory, tables.memory, tables.norms
    P, D, sizes = tables.positions, norms.shape[0], tables.sizes
    column = a * tables.of_actions.shape[1] + k
    margin, slack = weights.dtype.type(0), weights.dtype.type(0)
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
        norms[d, column] = np.sqrt(apart) * (1 + tables.slack)
        sizes[d, column] = (np.sqrt(square) + tables.reference_norms[row]) * (1 + tables.slack)
        if readout[d] != 0:
            margin += abs(readout[d]) * norms[d, column]
            slack += abs(readout[d]) * sizes[d, column]
        total = weights.dtype.type(0)
        for j in range(memory.shape[0]):
            of_memory[j, d, column] = weights[k, row, P + j]
            total += memory[j] * weights[k, row, P + j]
        tables.memory_part[d, column] = total
    tables.margins[column] = margin
    tables.slacks[column] = slack


@part()
def note_update(tables: Filter, k: int, action: int, weights: Reals, readout: Reals) -> None:
    """The weights of an action of policy k have changed."""
    read_policy(tables, k, action, weights, readout)
    pair, entry = k * tables.of_actions.shape[0] + action, tables.num_updates[0]
    tables.updates[entry] = pair
    tables.newest[pair] = entry
    tables.num_updates[0] += 1


@part(fastmath=REASSOCIATE)
def note_readout(tables: Filter, readout: Reals) -> None:
    """The readout has changed. Where v_d is 0, norms may be infinite."""
    norms, sizes, margins, slacks = tables.norms, tables.sizes, tables.margins, tables.slacks
    zero = readout[0] - readout[0]
    margins[:] = zero
    slacks[:] = zero
    for d in range(readout.shape[0]):
        weight = abs(readout[d])
        if weight != zero:
            for e in range(margins.shape[0]):
                margins[e] += weight * norms[d, e]
                slacks[e] += weight * sizes[d, e]


@part()
def begin_filter(tables: Filter, weights: Reals, readout: Reals, changed: Integers) -> None:
    """Policies whose weights are others than in the tables are read, and the readout."""
    for k in changed:
        for a in range(tables.of_actions.shape[0]):
            note_update(tables, k, a, weights, readout)
    note_readout(tables, readout)


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
    bases: Reals, g: int, state: Reals, P: int, slack: float, c: Reals, rest: Reals
) -> tuple[float, float]:
    """rho and sigma of a state in cell g; leaves c_j = U_j . p in `c` and e in `rest`."""
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
    # Never 0: times the infinite norm of a policy it would be no number, and the policy would be ruled out.
    sigma = slack * size
    return max(np.sqrt(square), sigma), sigma


@part(fastmath=REASSOCIATE)
def value_position(reference: Reals, state: Reals, of_position: Reals) -> None:
    """of_position[row] = theta' . p."""
    for row in range(reference.shape[0]):
        total = state[0] - state[0]
        for i in range(reference.shape[1]):
            total += reference[row, i] * state[i]
        of_position[row] = total


@part(fastmath=REASSOCIATE)
def bound_columns(
    inner: Bytes, quantum: Reals, g: int, memory_part: Reals, margins: Reals, slacks: Reals,
    of_position: Reals, c: Reals, rho: float, sigma: float, readout: Reals, floor: float,
    of_actions: Reals, totals: Reals, halves: Reals,
) -> None:  # fmt: skip
    """totals = sum_d v_d clip(x_d) + rho margins + sigma slacks.

    halves[a] = sum_d |v_d| sum_j |c_j| h_j / 2.
    """
    zero, half = c[0] - c[0], c.dtype.type(HALF)
    # Unsigned: an index that might count from the end keeps the loop from being vectorised.
    A, L, D = np.uintp(of_actions.shape[0]), np.uintp(of_actions.shape[1]), np.uintp(readout.shape[0])
    halves[:] = zero
    for e in range(A * L):
        totals[e] = rho * margins[e] + sigma * slacks[e]
    for d in range(D):
        v_d = readout[d]
        if v_d == zero:
            continue
        for a in range(A):
            shared = of_position[a * D + d]
            # Written out: in a loop over j, sums would be read and stored in each turn.
            c_0, c_1 = c[0] * quantum[g, d, a, 0], c[1] * quantum[g, d, a, 1]
            c_2, c_3 = c[2] * quantum[g, d, a, 2], c[3] * quantum[g, d, a, 3]
            halves[a] += half * abs(v_d) * (abs(c_0) + abs(c_1) + abs(c_2) + abs(c_3))
            for k in range(L):
                column = a * L + k
                x = (memory_part[d, column] + shared) + (
                    c_0 * inner[g, d, a, 0, k]
                    + c_1 * inner[g, d, a, 1, k]
                    + c_2 * inner[g, d, a, 2, k]
                    + c_3 * inner[g, d, a, 3, k]
                )
                totals[column] += v_d * (x if x > floor else floor)


@part(fastmath=REASSOCIATE)
def best_action(of_actions: Reals, halves: Reals, bound: Reals) -> None:
    """bound[k] = max over a of of_actions[a, k] + halves[a]."""
    # One action after the other: a loop over the few of each k would not be vectorised.
    for k in range(bound.shape[0]):
        bound[k] = of_actions[0, k] + halves[0]
    for a in range(1, of_actions.shape[0]):
        for k in range(bound.shape[0]):
            value = of_actions[a, k] + halves[a]
            bound[k] = value if value > bound[k] else bound[k]


@part()
def bound_policies(
    tables: Filter, weights: Reals, g: int, state: Reals, readout: Reals, bound: Reals
) -> None:
    """bound[k] >= max over a of Q_k(s, a) as `evaluate` computes it, for all k but the last; g: cell of s."""
    bring_up_to_date(tables, g, weights)
    follow_memory(tables, state)
    c, totals = tables.coordinates, tables.totals
    rho, sigma = uncertainty(tables.bases, g, state, tables.positions, tables.slack, c, tables.rest)
    value_position(tables.reference, state, tables.of_position)
    bound_columns(
        tables.inner, tables.quantum, g, tables.memory_part, tables.margins, tables.slacks,
        tables.of_position, c, rho, sigma, readout, tables.floor, tables.of_actions, totals, tables.halves,
    )  # fmt: skip
    best_action(tables.of_actions, tables.halves, bound)
