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

**Boxes.** Where c_j is within w_j of a middle, and theta' . p between two numbers, clip(x_d) is at most what
the largest x_d gives if v_d > 0, and at least what the smallest one gives if v_d < 0:

    c_j t_j  <=  middle_j t_j + w_j |t_j|,        c_j t_j  >=  middle_j t_j - w_j |t_j|.

With the largest rho, |s| and |c_j| of the box the same sum bounds Q_k for all its states. The agent comes to
the same places with the same memories again and again. For each of them (`sfr_fa.kernels.places`) one number
is kept for every group of LANES policies, a bound of all its values there. A group whose number is below the
largest value found is passed over; of the others the bounds at s are computed.

**Rounding.** With unit round-off u, a sum of n products in any order errs by at most n u / (1 - n u) times
the product of norms. In units of u (|theta| + |theta'|) (|s| + C), C = sum_j max |c_j| |U_j|, the errors are:
S of the exact value, M + 1 of the memory part, P of theta' . p, P + 4 of the table, 3 for middle and width of
a box, 2 r + 3 of the sum x, r + 1 + P + 2 of rho, and 3 D + 2 of the two readouts (M objects, P basis
functions, D outputs, S >= P + M + 1 a multiple of 16). Their sum is below 5 (S + r + D), so

    sigma = 5 (S + r + D) u (|s| + C)

times |theta| + |theta'| covers them, second-order terms included. A quantum may be large compared with policy
k; what rounding does to half a quantum is covered by counting it as HALF, a little more.

The bound grows with |v| and |theta| as the values do. A column's sums over d of |v_d| |theta_p - theta'| and
of |v_d| (|theta| + |theta'|) are made when its weights or the readout change, not at every state.

**Learning.** Source policies learn too, one action per step. The tables of a cell are made when it is first
visited; each later visit rereads the actions that were updated since the last one, as a log of all updates
tells. Where one of them has outgrown its byte, the quanta of its row are chosen anew. A place bounds those
groups again that have learned since its last visit. Where rewards are learned the readout changes at every
step, and no places are kept. The policy of the current task is evaluated at every step anyway.

**Tasks.** Most policies are the same in the next task, so its tables are those of the last one
(`continued`): what has changed in between is noted in the log. After many new policies the reference is not a
mean of all any more, and tables are made anew.

Policy k is lane k % LANES of group k // LANES. Tables run along groups, actions a, outputs d, and lanes, in
the order in which they are read; the last group is padded.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import REASSOCIATE, Bytes, FloatArray, Integers, Reals, fill, padded, part
from sfr_fa.kernels.gpi import LANES, Search, rule_nothing_out
from sfr_fa.kernels.groups import RANK, bound_group
from sfr_fa.kernels.places import (
    HIGH,
    LOW,
    SEEN,
    VERSION,
    Places,
    forget_places,
    new_places,
    place_at,
    with_groups,
)

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
    """The state of the filter of N groups of policies; without cells it is switched off."""

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
    keeps_places: bool
    """Where the readout changes at every step, bounds of places would serve for one step."""
    cell_of: Integers
    """(Q,): the cell of tables in which each of the world's smaller cells is."""
    bases: Reals
    """(G, r, P or more): U_j of each cell, 0 in all entries but the first P."""
    inner: Bytes
    """(G, N, A, D, r, LANES): t_j in quanta..."""
    quantum: Reals
    """(G, r, A D): ... h_j..."""
    exact: Reals
    """(A, D, r, N LANES): ... and room for all t_j of a cell."""
    of_memory: Reals
    """(M + 1, N A D LANES): the weights of the memory bits and of the constant."""
    memory: Reals
    """(M + 1,): m, the memory bits and the constant of the present state..."""
    memory_part: Reals
    """(N A D LANES,): ... and theta_m . m."""
    norms: Reals
    """(D, N A LANES): |theta_p - theta'|, rounded up..."""
    sizes: Reals
    """(D, N A LANES): ... |theta| + |theta'|, rounded up..."""
    margins: Reals
    """(N A LANES,): ... and for the present readout sum_d |v_d| norms_d..."""
    slacks: Reals
    """(N A LANES,): ... and sum_d |v_d| sizes_d."""
    reference: Reals
    """(A D, P or more): theta', 0 in all entries but the first P, fixed as long as there are tables..."""
    reference_norms: Reals
    """(A D,): ... and |theta'|."""
    updates: Integers
    """(T,): the log of updates, each as its number A k + a..."""
    num_updates: Integers
    """(1,): ... how many there are..."""
    newest: Integers
    """(K A,): ... the last entry of each (k, a)..."""
    latest: Integers
    """(N,): ... and how many there were after the last one of each group."""
    seen: Integers
    """(G,): how many updates the table of a cell has seen, -1 if it has not been made."""
    places: Places
    here: Reals
    """(r + A D + 2,): the present state: c_1 ... c_r, theta' . p of each row, rho and abs(s)."""
    where: Integers
    """(1,): the cell of tables of the present state."""
    refined: Bytes
    """(N,): whether a group's bounds are those of the present state..."""
    wanted: Bytes
    """(N,): ... and whether they are wanted."""
    along: Reals
    """(r, A D): room for c_j h_j..."""
    across: Reals
    """(r, A D): ... for what a box adds to either side of it..."""
    shared: Reals
    """(A D,): ... for theta' . p..."""
    signs: Reals
    """(A D,): ... for the signs of v_d..."""
    widths: Reals
    """(A D,): ... for the quanta of each row..."""
    halves: Reals
    """(A,): ... for half quanta..."""
    of_actions: Reals
    """(N, A, LANES): bounds of each action, at the present state where a group is refined..."""
    room: Reals
    """(N LANES,): ... for bounds that nobody reads..."""
    rest: Reals
    """(P,): ... and for e = p - sum_j c_j U_j."""


def new_filter(
    bases: FloatArray, cell_of: Integers, reference: Reals, state_dim: int, num_actions: int, policies: int,
    steps: int, *, clip: bool, keeps_places: bool = True,
) -> Filter:  # fmt: skip
    """A filter with empty tables for K policies with weights (K, A D or more, S) and a task of so many steps.

    bases (G, r, P) and cell_of come from `sfr_fa.kernels.cells`; without cells it is switched off.
    reference (A D, S): theta'.
    """
    cells, P = len(bases), bases.shape[2]
    (rows, S), dtype = reference.shape, reference.dtype
    A, D, K, M = num_actions, rows // num_actions, policies if cells else 0, state_dim - P
    N = padded(K, LANES) // LANES
    wide = np.zeros((cells, RANK, padded(P, LANES)), dtype)
    wide[..., :P] = bases
    kept = np.zeros((rows, wide.shape[2]), dtype)
    kept[:, :P] = reference[:, :P]
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
        keeps_places=keeps_places,
        cell_of=cell_of,
        bases=wide,
        inner=np.zeros((cells, N, A, D, RANK, LANES), np.int8),
        quantum=np.zeros((cells, RANK, rows), dtype),
        exact=np.zeros((A, D, RANK, N * LANES), dtype),
        of_memory=np.zeros((M, N * A * D * LANES), dtype),
        memory=np.zeros(M, dtype),
        memory_part=np.zeros(N * A * D * LANES, dtype),
        norms=np.zeros((D, N * A * LANES), dtype),
        sizes=np.zeros((D, N * A * LANES), dtype),
        margins=np.zeros(N * A * LANES, dtype),
        slacks=np.zeros(N * A * LANES, dtype),
        reference=kept,
        reference_norms=reference_norms,
        updates=np.zeros(steps + A * K if cells else 0, dtype=np.int64),
        num_updates=np.zeros(1, dtype=np.int64),
        newest=np.zeros(K * A, dtype=np.int64),
        latest=np.zeros(N, dtype=np.int64),
        seen=np.full(cells, -1, dtype=np.int64),
        places=new_places(len(cell_of), RANK + rows + 2, M, N, dtype),
        here=np.zeros(RANK + rows + 2, dtype),
        where=np.zeros(1, dtype=np.int64),
        refined=np.zeros(N, np.int8),
        wanted=np.zeros(N, np.int8),
        along=np.zeros((RANK, rows), dtype),
        across=np.zeros((RANK, rows), dtype),
        shared=np.zeros(rows, dtype),
        signs=np.zeros(rows, dtype),
        widths=np.zeros(rows, dtype),
        halves=np.zeros(A, dtype),
        of_actions=np.zeros((N, A, LANES), dtype),
        room=np.zeros(N * LANES, dtype),
        rest=np.zeros(P, dtype),
    )


def serves_again(tables: Filter, policies: int, changed: int) -> bool:
    """Whether to read what has changed is better than new tables with a new reference."""
    return 2 * changed < policies <= GROWTH * tables.made_for


def continued(tables: Filter, policies: int, steps: int) -> Filter:
    """The same tables with room for K policies, no fewer than before, and a further task of so many steps."""
    before, A, _ = tables.of_actions.shape
    N = padded(policies, LANES) // LANES

    def more_groups(table: Any, axis: int = -1) -> Any:
        """More of them, along an axis that begins with groups."""
        if before == N:
            return table
        shape = list(table.shape)
        shape[axis] = shape[axis] // before * N
        result = np.zeros(shape, table.dtype)
        np.moveaxis(result, axis, 0)[: table.shape[axis]] = np.moveaxis(table, axis, 0)
        return result

    # Of the log only the newest entry of each pair counts.
    count = tables.num_updates[0]
    is_newest = tables.newest[tables.updates[:count]] == np.arange(count)
    log = tables.updates[:count][is_newest]
    updates = np.zeros(len(log) + steps + A * policies, dtype=np.int64)
    updates[: len(log)] = log
    newest = np.zeros(policies * A, dtype=np.int64)
    newest[log] = np.arange(len(log))
    kept_until = np.concatenate([[0], np.cumsum(is_newest)])
    return tables._replace(
        inner=more_groups(tables.inner, axis=1),
        exact=np.zeros((*tables.exact.shape[:-1], N * LANES), tables.exact.dtype),
        of_memory=more_groups(tables.of_memory),
        memory_part=more_groups(tables.memory_part),
        norms=more_groups(tables.norms),
        sizes=more_groups(tables.sizes),
        margins=more_groups(tables.margins),
        slacks=more_groups(tables.slacks),
        updates=updates,
        num_updates=np.array([len(log)]),
        newest=newest,
        latest=np.zeros(N, dtype=np.int64),
        seen=np.where(tables.seen < 0, -1, kept_until[tables.seen]),
        places=tables.places if before == N else with_groups(tables.places, N),
        refined=np.zeros(N, np.int8),
        wanted=np.zeros(N, np.int8),
        of_actions=np.zeros((N, A, LANES), tables.room.dtype),
        room=np.zeros(N * LANES, tables.room.dtype),
    )


# --- Reading weights into tables ---------------------------------------------------------------------


@part(fastmath=REASSOCIATE, inlined=True)
def read_row(tables: Filter, g: int, weights: Reals, k: int, a: int, d: int) -> None:
    """exact[a, d, :, k] = t_j in cell g; of a policy whose norm and bound are infinite, numbers only."""
    bases, reference, exact, row = tables.bases, tables.reference, tables.exact, a * tables.exact.shape[1] + d
    zero = bases[g, 0, 0] - bases[g, 0, 0]
    t_0, t_1, t_2, t_3 = zero, zero, zero, zero
    for i in range(bases.shape[2]):
        apart = weights[k, row, i] - reference[row, i]
        t_0 += bases[g, 0, i] * apart
        t_1 += bases[g, 1, i] * apart
        t_2 += bases[g, 2, i] * apart
        t_3 += bases[g, 3, i] * apart
    exact[a, d, 0, k] = t_0 if abs(t_0) < np.inf else zero
    exact[a, d, 1, k] = t_1 if abs(t_1) < np.inf else zero
    exact[a, d, 2, k] = t_2 if abs(t_2) < np.inf else zero
    exact[a, d, 3, k] = t_3 if abs(t_3) < np.inf else zero


@part(fastmath=NO_NAN)
def count_quanta(tables: Filter, g: int, a: int, d: int) -> None:
    """All t_j of an output of an action into the table of cell g, with quanta that suit them."""
    inner, quantum, exact = tables.inner, tables.quantum, tables.exact
    for j in range(exact.shape[2]):
        largest = tables.smallest
        for k in range(exact.shape[3]):
            size = abs(exact[a, d, j, k])
            largest = size if size > largest else largest
        h = largest / exact.dtype.type(QUANTA)
        quantum[g, j, a * exact.shape[1] + d] = h
        for n in range(inner.shape[1]):
            for lane in range(LANES):
                inner[g, n, a, d, j, lane] = np.int8(np.rint(exact[a, d, j, n * LANES + lane] / h))


@part()
def make_table(tables: Filter, g: int, weights: Reals) -> None:
    """The table of cell g."""
    A, D, _, _ = tables.exact.shape
    for k in range(weights.shape[0]):
        for a in range(A):
            for d in range(D):
                read_row(tables, g, weights, k, a, d)
    for a in range(A):
        for d in range(D):
            count_quanta(tables, g, a, d)


@part(inlined=True)
def read_again(tables: Filter, g: int, weights: Reals, k: int, a: int) -> None:
    """An action of policy k, which has learned, into the table of cell g."""
    inner, quantum, exact = tables.inner, tables.quantum, tables.exact
    for d in range(exact.shape[1]):
        read_row(tables, g, weights, k, a, d)
        fits = True
        for j in range(exact.shape[2]):
            number = np.rint(exact[a, d, j, k] / quantum[g, j, a * exact.shape[1] + d])
            if abs(number) <= MOST_QUANTA:
                inner[g, k // LANES, a, d, j, k % LANES] = np.int8(number)
            else:
                fits = False
        if not fits:
            for other in range(weights.shape[0]):
                read_row(tables, g, weights, other, a, d)
            count_quanta(tables, g, a, d)


@part(inlined=True)
def bring_up_to_date(tables: Filter, g: int, weights: Reals) -> None:
    """Make the table of cell g, or read again what has changed since its last visit."""
    updates, newest, seen, A = tables.updates, tables.newest, tables.seen, tables.exact.shape[0]
    num_updates = tables.num_updates[0]
    if seen[g] < 0:
        make_table(tables, g, weights)
    else:
        for entry in range(seen[g], num_updates):
            pair = updates[entry]
            if newest[pair] == entry:
                read_again(tables, g, weights, pair // A, pair % A)
    seen[g] = num_updates


@part(fastmath=REASSOCIATE, inlined=True)
def read_policy(tables: Filter, k: int, a: int, weights: Reals, readout: Reals) -> None:
    """What does not depend on a cell, of an action of policy k: norms, memory weights, their memory part."""
    reference, of_memory, memory, norms = tables.reference, tables.of_memory, tables.memory, tables.norms
    P, D, sizes = tables.positions, norms.shape[0], tables.sizes
    A, n, lane = tables.of_actions.shape[1], k // LANES, k % LANES
    column = (n * A + a) * LANES + lane
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
            of_memory[j, ((n * A + a) * D + d) * LANES + lane] = weights[k, row, P + j]
            total += memory[j] * weights[k, row, P + j]
        tables.memory_part[((n * A + a) * D + d) * LANES + lane] = total
    tables.margins[column] = margin
    tables.slacks[column] = slack


@part(inlined=True)
def note_update(tables: Filter, k: int, action: int, weights: Reals, readout: Reals) -> None:
    """The weights of an action of policy k have changed."""
    read_policy(tables, k, action, weights, readout)
    pair, entry = k * tables.exact.shape[0] + action, tables.num_updates[0]
    tables.updates[entry] = pair
    tables.newest[pair] = entry
    tables.num_updates[0] = entry + 1
    tables.latest[k // LANES] = entry + 1


@part(fastmath=REASSOCIATE)
def note_readout(tables: Filter, readout: Reals) -> None:
    """Margins and slacks for this readout. Where v_d is 0, norms may be infinite."""
    norms, sizes, margins, slacks = tables.norms, tables.sizes, tables.margins, tables.slacks
    zero = readout[0] - readout[0]
    for row in range(tables.signs.shape[0]):
        tables.signs[row] = np.sign(readout[row % readout.shape[0]])
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
        for a in range(tables.exact.shape[0]):
            note_update(tables, k, a, weights, readout)
    note_readout(tables, readout)
    forget_places(tables.places)


@part(inlined=True)
def follow_memory(tables: Filter, state: Reals) -> bool:
    """theta_m . m for the memory of this state, and whether that has changed.

    Where something was forgotten it is summed up anew.
    """
    memory, of_memory, total = tables.memory, tables.of_memory, tables.memory_part
    P, zero = tables.positions, state.dtype.type(0)
    forgets, changes = False, False
    for j in range(memory.shape[0]):
        changes = changes or memory[j] != state[P + j]
        forgets = forgets or (memory[j] != zero and memory[j] != state[P + j])
    if forgets:
        memory[:] = zero
        total[:] = zero
    for j in range(memory.shape[0]):
        if memory[j] != state[P + j]:
            memory[j] = state[P + j]
            for e in range(total.shape[0]):
                total[e] += memory[j] * of_memory[j, e]
    return changes


# --- Bounds -----------------------------------------------------------------------------------------


@part(fastmath=REASSOCIATE)
def locate(bases: Reals, g: int, state: Reals, P: int, reference: Reals, here: Reals, rest: Reals) -> None:
    """here = c_1 ... c_r, theta' . p of each row, rho, |s|; leaves e in `rest`."""
    zero, r = state[0] - state[0], bases.shape[1]
    square = zero
    for i in range(state.shape[0]):
        square += state[i] * state[i]
    here[here.shape[0] - 1] = np.sqrt(square)
    for i in range(P):
        rest[i] = state[i]
    for j in range(r):
        c_j = zero
        for i in range(P):
            c_j += bases[g, j, i] * state[i]
        for i in range(P):
            rest[i] -= c_j * bases[g, j, i]
        here[j] = c_j
    square = zero
    for i in range(P):
        square += rest[i] * rest[i]
    here[here.shape[0] - 2] = np.sqrt(square)
    for row in range(reference.shape[0]):
        total = zero
        for i in range(reference.shape[1]):
            total += reference[row, i] * state[i]
        here[r + row] = total


@part(fastmath=REASSOCIATE, inlined=True)
def weigh(tables: Filter, low: Reals, high: Reals, readout: Reals) -> tuple[float, float]:
    """rho and sigma of all states between `low` and `high`; leaves their c_j h_j and theta' . p.

    halves[a] = sum_d |v_d| sum_j max |c_j| h_j / 2.
    """
    quantum, along, across, shared, g = (
        tables.quantum, tables.along, tables.across, tables.shared, tables.where[0],
    )  # fmt: skip
    r, rows, D, last = np.uintp(along.shape[0]), np.uintp(along.shape[1]), readout.shape[0], low.shape[0] - 1
    signs, widths, half = tables.signs, tables.widths, low.dtype.type(0.5)
    size, zero = high[last], high[last] - high[last]
    for row in range(rows):
        shared[row] = high[r + row] if signs[row] > zero else low[r + row]
        widths[row] = zero
    for j in range(r):
        middle, spread = (low[j] + high[j]) * half, (high[j] - low[j]) * half
        # Bases are unit vectors up to rounding, a relative error of second order here.
        farthest = abs(middle) + spread
        size += farthest
        for row in range(rows):
            h = quantum[g, j, row]
            along[j, row] = middle * h
            across[j, row] = spread * h * signs[row]
            widths[row] += farthest * h
    for a in range(tables.halves.shape[0]):
        total = zero
        for d in range(D):
            total += abs(readout[d]) * widths[a * D + d]
        tables.halves[a] = low.dtype.type(HALF) * total
    # Never 0: times the infinite norm of a policy it would be no number, and the policy would be ruled out.
    sigma = tables.slack * size
    return max(high[last - 1], sigma), sigma


@part(inlined=True)
def bound_box(
    tables: Filter, low: Reals, high: Reals, is_box: bool, readout: Reals, bound: Reals, tops: Reals
) -> None:
    """No less than max over a of Q_k(s, a), for the policies of wanted groups and all states of a box."""
    rho, sigma = weigh(tables, low, high, readout)
    wanted, inner, memory, g = tables.wanted, tables.inner, tables.memory_part, tables.where[0]
    margins, slacks, shared, halves = tables.margins, tables.slacks, tables.shared, tables.halves
    for n in range(wanted.shape[0]):
        if wanted[n] != 0:
            tops[n] = bound_group(
                inner, g, n, memory, margins, slacks, tables.along, tables.across, is_box, shared, halves,
                rho, sigma, readout, tables.floor, tables.of_actions, bound,
            )  # fmt: skip


@part(inlined=True)
def arrive(tables: Filter, weights: Reals, cell: int, state: Reals, readout: Reals, search: Search) -> None:
    """search.tops[n] >= Q_k(s, a) as `evaluate` computes it, for all k of group n but the last policy.

    cell: of the world, in which s is; one that there is not rules nothing out.
    """
    places, here, wanted, tops = tables.places, tables.here, tables.wanted, search.tops
    if not 0 <= cell < tables.cell_of.shape[0]:
        rule_nothing_out(search)
        fill(tables.refined, 1)
        tables.of_actions[:] = tables.of_actions.dtype.type(np.inf)
        return
    g = tables.cell_of[cell]
    tables.where[0] = g
    bring_up_to_date(tables, g, weights)
    changes = follow_memory(tables, state)
    locate(tables.bases, g, state, tables.positions, tables.reference, here, tables.rest)
    fill(tables.refined, 0)
    p = place_at(places, cell, tables.memory, changes, here) if tables.keeps_places else -1
    if p < 0:
        fill(tops, np.inf)
        return
    count = tables.num_updates[0]
    if places.records[p, VERSION] != places.versions[cell]:
        fill(wanted, 1)
    else:
        for n in range(wanted.shape[0]):
            wanted[n] = tables.latest[n] > places.records[p, SEEN]
    low, high = places.boxes[LOW, cell], places.boxes[HIGH, cell]
    bound_box(tables, low, high, True, readout, tables.room, places.tops[p])
    places.records[p, SEEN], places.records[p, VERSION] = count, places.versions[cell]
    for n in range(tops.shape[0]):
        tops[n] = places.tops[p, n]


@part(inlined=True)
def refine(tables: Filter, readout: Reals, search: Search) -> None:
    """Bounds of the present state for all policies of the groups that reach the largest value found."""
    refined, wanted, tops, any_wanted = tables.refined, tables.wanted, search.tops, False
    for n in range(tops.shape[0]):
        wanted[n] = 1 if refined[n] == 0 and tops[n] >= search.largest[0] else 0
        refined[n] |= wanted[n]
        any_wanted = any_wanted or wanted[n] != 0
    if any_wanted:
        bound_box(tables, tables.here, tables.here, False, readout, search.bound, tops)
        # Those whose group has not been refined before are evaluated for all actions.
        for e in range(search.how_many[0]):
            if wanted[search.evaluated[e] // LANES] != 0:
                search.bound[search.evaluated[e]] = -np.inf
