"""A filter for GPI over networks: upper bounds of max_a Q_k(s, a) that hold for all states of a cell.

A state is made of blocks of codes (`sfr_fa.kernels.cells`). In a cell of each block it is

    s = m + sum_j c_j U_j + e,       |c_j| <= r_j,   |e| <= rho,

a box around the middle m, in the few directions U_j in which codes vary there, and a small remainder. Whether
a state is in its box is tested when it is met; outside nothing is ruled out. A box goes through the layers of
a network as a *zonotope*: what unit i computes is

    z_i = x_i + sum_j E_ij t_j + (at most n_i),      |t_j| <= 1,

at first with x = W_1 m + b_1, E_j = r_j W_1 U_j and n_i = rho |row i of W_1|. A linear layer maps x and E as
it maps any vectors, and n by the absolute weights. relu, and clipping at 0, which is the same, keep z >= 0
and remove z <= 0; where z may be between l < 0 and u > 0, the graph is between two lines of slope q =
u / (u - l):

    relu(z) = q z + d + (at most d),      d = -l q / 2.

In the end max_a (x_a + sum_j |E_aj| + n_a) is a bound for the whole cell. The dependence on t is common to
all units and cancels as it does in the network, which makes these bounds close enough to rule out nearly all
policies. Intervals, without it, would rule out next to none. Where a cell was seen before, one number is read
of each policy.

**Rounding.** With unit round-off u, a sum of n products in any order, fused or not, errs by at most n u /
(1 - n u) times the sum of absolute products. So before a layer maps it, n_i grows by eta (|x_i| + sum_j
|E_ij| + n_i), and afterwards by eta |b|, with eta = SLACK u (2 n + 3 R + 16) for layers of up to n inputs and
R directions: that covers both evaluations, of the network and of the zonotope, and the few operations on each
unit. |e| is computed, too, and its rounding is added to it.

**Learning.** A bound belongs to a version of its policy, which changes when the policy learns. One that has
just learned will soon learn again, so for PATIENCE further states it is evaluated; and since a bound takes
longer than a value, it is made when a cell has been seen VISITS times. The policy of the current task is
evaluated at every state.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import REASSOCIATE, Integers, Reals, part
from sfr_fa.kernels.cells import Boxes
from sfr_fa.kernels.mlp import Networks
from sfr_fa.kernels.rows import add_absolute_rows, add_rows, add_rows_for_three, list_active

VISITS = 4
PATIENCE = 1000
SLACK = 1.1
FIRST, SIZE, RANK, CELLS, OFFSET = range(5)
"""Of a block: where it begins in a state, its entries, its directions, its cells, and the first of these."""


class Zonotope(NamedTuple):
    """What the units of one layer of a policy compute within a box."""

    columns: Reals
    """(1 + R) times the units, one column after the other: x, E_1, E_2, ..."""
    margins: Reals
    """(units,): n."""


class NetworkFilter(NamedTuple):
    """Bounds of K policies, and how they are made; without blocks it is switched off."""

    visits_needed: int
    """VISITS, ..."""
    patience: int
    """... PATIENCE, ..."""
    eta: float
    """... of rounding..."""
    smallest: float
    """... and of what underflows."""
    blocks: Integers
    """(B, 5)."""
    bases: Reals
    """(cells of all blocks, 1 + most directions, most entries), flat: m, U_1, U_2, ..."""
    radii: Reals
    """(cells of all blocks, most directions): r_j..."""
    rests: Reals
    """(cells of all blocks,): ... and rho."""
    images: Reals
    """(cells K (1 + most directions), G H_1): W_1 m, W_1 U_1, ... of policy k from row (cell K + k) (1 + most
    directions) on..."""
    flat: Reals
    """... the same numbers..."""
    imaged: Integers
    """(cells, K): ... and of which version of the policy."""
    norms: Reals
    """(K, G H_1): of the rows of W_1, rounded up..."""
    measured: Integers
    """(K,): ... and of which version."""
    versions: Integers
    """(K,): how often a policy has learned..."""
    learned_at: Integers
    """(K,): ... when it did last..."""
    clock: Integers
    """(1,): ... counted in states."""
    bounds: Reals
    """(cells of states, K): bounds..."""
    bounded: Integers
    """(cells of states, K): ... and of which version..."""
    visits: Integers
    """(cells of states,): ... and how often each was seen."""
    everything: Integers
    """0, 1, 2, ..."""
    where: Integers
    """(B,): the cells of the present state."""
    rest: Reals
    """Room for e..."""
    first: Zonotope
    second: Zonotope
    last: Zonotope
    """... for the layers of a policy..."""
    around: Reals
    """... for a number per unit..."""
    totals: Reals
    """(A, 1 + R): ... for the readout..."""
    active: Integers
    """... and for a list of units."""


def new_network_filter(
    networks: Networks, boxes: Sequence[Boxes], num_actions: int, *, projects: bool
) -> NetworkFilter:
    """Without bounds; boxes of each block, in the order in which they make up all of a state."""
    shape, dtype = networks.shape, networks.b1.dtype
    K, B = (shape.policies if boxes else 0), len(boxes)
    cells, ranks, sizes = (np.array([box.vectors.shape[j] for box in boxes], np.int64) for j in range(3))
    offsets, firsts = np.cumsum(cells) - cells, np.cumsum(sizes) - sizes
    most, entries = (int(counts.max(initial=0)) for counts in (ranks, sizes))
    bases, radii = np.zeros((cells.sum(), 1 + most, entries), dtype), np.zeros((cells.sum(), most), dtype)
    for box, offset in zip(boxes, offsets, strict=True):
        rows = slice(offset, offset + len(box.vectors))
        bases[rows, 0, : box.middles.shape[1]] = box.middles
        bases[rows, 1 : 1 + box.vectors.shape[1], : box.vectors.shape[2]] = box.vectors
        radii[rows, : box.radii.shape[1]] = box.radii
    images = np.zeros((len(bases) * K * (1 + most), shape.groups * shape.units1), dtype)
    of_states, R = (int(cells.prod()) if boxes else 0), int(ranks.sum())
    terms = max(shape.inputs, shape.units1, shape.groups * max(shape.units2, shape.outputs))

    def room(units: int) -> Zonotope:
        return Zonotope(np.zeros((1 + R) * units, dtype), np.zeros(units, dtype))

    return NetworkFilter(
        visits_needed=VISITS,
        patience=PATIENCE,
        eta=dtype.type(SLACK * float(np.finfo(dtype).eps) / 2 * (2 * terms + 3 * R + 16)),
        smallest=dtype.type(np.sqrt(np.finfo(dtype).tiny)),
        blocks=np.stack([firsts, sizes, ranks, cells, offsets], axis=1),
        bases=bases.ravel(),
        radii=radii,
        rests=np.concatenate([np.zeros(0), *(box.rests for box in boxes)]).astype(dtype),
        images=images,
        flat=images.reshape(-1),
        imaged=np.full((len(bases), K), -1),
        norms=np.zeros((K, shape.groups * shape.units1), dtype),
        measured=np.full(K, -1),
        versions=np.zeros(K, np.int64),
        learned_at=np.full(K, -PATIENCE),
        clock=np.zeros(1, np.int64),
        bounds=np.zeros((of_states, K), dtype),
        bounded=np.full((of_states, K), -1),
        visits=np.zeros(of_states, np.int64),
        everything=np.arange(shape.inputs),
        where=np.zeros(B, np.int64),
        rest=np.zeros(entries, dtype),
        first=room(shape.groups * shape.units1),
        second=room(shape.groups * shape.units2),
        last=room(0 if projects else shape.groups * shape.outputs),
        around=np.zeros(shape.groups * max(shape[3:]), dtype),
        totals=np.zeros((num_actions, 1 + R), dtype),
        active=np.zeros(max(shape.units1, shape.units2), np.int64),
    )


@part()
def note_learned(tables: NetworkFilter, k: int) -> None:
    """The weights of policy k have changed."""
    tables.versions[k] += 1
    tables.learned_at[k] = tables.clock[0]


# --- States -----------------------------------------------------------------------------------------


@part(fastmath=REASSOCIATE)
def locate(tables: NetworkFilter, cell: int, state: Reals) -> bool:
    """Whether a state is in the box of its cells, which are left in `where`."""
    blocks, bases, rest = tables.blocks, tables.bases, tables.rest
    B, rows = blocks.shape[0], np.uintp(1 + tables.radii.shape[1])
    entries, zero, inside = np.uintp(rest.shape[0]), state[0] - state[0], True
    for reverse in range(B):
        b = B - 1 - reverse
        first, size, number = np.uintp(blocks[b, FIRST]), np.uintp(blocks[b, SIZE]), cell % blocks[b, CELLS]
        cell //= blocks[b, CELLS]
        number += blocks[b, OFFSET]
        tables.where[b] = number
        begin, square, length = np.uintp(number) * rows * entries, zero, zero
        for i in range(size):
            rest[i] = state[first + i] - bases[begin + i]
            square += state[first + i] * state[first + i]
        for j in range(blocks[b, RANK]):
            begin += entries
            c_j = zero
            for i in range(size):
                c_j += bases[begin + i] * rest[i]
            for i in range(size):
                rest[i] -= c_j * bases[begin + i]
            length += abs(c_j)
            inside = inside and abs(c_j) <= tables.radii[number, j]
        left = zero
        for i in range(size):
            left += rest[i] * rest[i]
        # The middle is at most as long as the state and its distance to it.
        error = tables.eta * (2 * np.sqrt(square) + 2 * length)
        inside = inside and np.sqrt(left) + error <= tables.rests[number]
    return inside


# --- Zonotopes --------------------------------------------------------------------------------------


@part(fastmath=REASSOCIATE)
def measure(tables: NetworkFilter, networks: Networks, k: int) -> None:
    """The norms of the rows of W_1 of policy k."""
    W, norms, S = networks.W1, tables.norms, np.uintp(networks.shape.inputs)
    of_k, width = np.uintp(k), np.uintp(norms.shape[1])
    for o in range(width):
        norms[of_k, o] = 0
    for i in range(of_k * S, (of_k + np.uintp(1)) * S):
        for o in range(width):
            norms[of_k, o] += W[i, o] * W[i, o]
    for o in range(width):
        norms[of_k, o] = np.sqrt(norms[of_k, o]) * (1 + tables.eta) + tables.smallest


@part()
def image_cells(tables: NetworkFilter, networks: Networks, k: int) -> None:
    """W_1 m and W_1 U_j of policy k in the cells of the present state."""
    S, width, K = networks.shape.inputs, tables.images.shape[1], tables.versions.shape[0]
    rows, entries = 1 + tables.radii.shape[1], tables.rest.shape[0]
    for b in range(tables.blocks.shape[0]):
        cell = tables.where[b]
        if tables.imaged[cell, k] != tables.versions[k]:
            for j in range(1 + tables.blocks[b, RANK]):
                begin = ((cell * K + k) * rows + j) * width
                for o in range(np.uintp(begin), np.uintp(begin + width)):
                    tables.flat[o] = 0
                add_rows(
                    tables.bases, (cell * rows + j) * entries, tables.everything, tables.blocks[b, SIZE],
                    networks.W1, k * S + tables.blocks[b, FIRST], 0, tables.flat, begin, width,
                )  # fmt: skip
            tables.imaged[cell, k] = tables.versions[k]


@part(fastmath=REASSOCIATE)
def enter(tables: NetworkFilter, networks: Networks, k: int) -> None:
    """The zonotope of the first layers of policy k, before relu."""
    columns, margins, images = tables.first.columns, tables.first.margins, tables.images
    width, of_k, K = np.uintp(margins.shape[0]), np.uintp(k), np.uintp(tables.versions.shape[0])
    rows, eta, column = np.uintp(1 + tables.radii.shape[1]), tables.eta, width
    square = tables.smallest
    for o in range(width):
        columns[o] = networks.b1[of_k * width + o]
        margins[o] = eta * abs(columns[o])
    for b in range(tables.blocks.shape[0]):
        cell = tables.where[b]
        row = (np.uintp(cell) * K + of_k) * rows
        square += tables.rests[cell] * tables.rests[cell]
        for o in range(width):
            columns[o] += images[row, o]
        for j in range(tables.blocks[b, RANK]):
            radius = tables.radii[cell, j]
            row += np.uintp(1)
            for o in range(width):
                columns[column + o] = radius * images[row, o]
            column += width
    # |s| is at most `reach`, and so is the sum of |m| and of the radii.
    reach = reach_of(tables)
    rho = np.sqrt(square) * (1 + eta) + eta * reach
    for o in range(width):
        margins[o] += rho * tables.norms[of_k, o]


@part(fastmath=REASSOCIATE)
def reach_of(tables: NetworkFilter) -> float:
    """|m| + sum_j r_j + rho of the present cells, added over blocks."""
    total, rows = tables.smallest, 1 + tables.radii.shape[1]
    entries = np.uintp(tables.rest.shape[0])
    for b in range(tables.blocks.shape[0]):
        cell = tables.where[b]
        begin, square = np.uintp(cell * rows) * entries, tables.smallest
        for i in range(begin, begin + np.uintp(tables.blocks[b, SIZE])):
            square += tables.bases[i] * tables.bases[i]
        total += np.sqrt(square) + tables.rests[cell]
        for j in range(tables.blocks[b, RANK]):
            total += tables.radii[cell, j]
    return total


@part(fastmath=REASSOCIATE)
def spread(zonotope: Zonotope, around: Reals) -> None:
    """around[i] = sum_j |E_ij|."""
    columns, units = zonotope.columns, np.uintp(zonotope.margins.shape[0])
    for i in range(units):
        around[i] = 0
    for first in range(units, np.uintp(columns.shape[0]), units):
        for i in range(units):
            around[i] += abs(columns[first + i])


@part(fastmath=REASSOCIATE)
def rectify(zonotope: Zonotope, eta: float, smallest: float, around: Reals) -> None:
    """relu of all units, with what rounding adds in this layer and in the next one; `around` is scratch."""
    columns, margins = zonotope.columns, zonotope.margins
    units = np.uintp(margins.shape[0])
    half = margins.dtype.type(0.5)
    spread(zonotope, around)
    for i in range(units):
        x, margin = columns[i], margins[i]
        margin += eta * (abs(x) + around[i] + margin)
        low, high = x - around[i] - margin, x + around[i] + margin
        # 1 if low >= 0, 0 if high <= 0, without a branch. What is not a number stays so.
        below, above = half * (low - abs(low)), half * (high + abs(high))
        # Not a plain division, which would look for a divisor of 0 and keep the loop from being vectorised.
        slope = np.divide(above, above - below + smallest)
        lift = -half * slope * below
        x = slope * x + lift
        margin = slope * margin + lift
        columns[i] = x
        margins[i] = margin + eta * (abs(x) + slope * around[i] + margin)
        around[i] = slope
    for first in range(units, np.uintp(columns.shape[0]), units):
        for i in range(units):
            columns[first + i] *= around[i]


@part()
def apply_layer(
    given: Zonotope, begin: int, units: int, weights: Reals, row: int, biases: Reals, bias: int,
    result: Zonotope, into: int, size: int, eta: float, active: Integers,
) -> None:  # fmt: skip
    """From units begin ... of a zonotope to units into ... of the next: weights of rows from `row` on."""
    columns, margins = given.columns, given.margins
    inputs, outputs = margins.shape[0], result.margins.shape[0]
    count = list_active(margins, begin, units, active)
    for o in range(np.uintp(size)):
        result.columns[np.uintp(into) + o] = biases[np.uintp(bias) + o]
        result.margins[np.uintp(into) + o] = eta * abs(biases[np.uintp(bias) + o])
    many = columns.shape[0] // inputs
    for j in range(1, many):
        for o in range(np.uintp(j * outputs + into), np.uintp(j * outputs + into + size)):
            result.columns[o] = 0
    for j in range(0, many - 2, 3):
        add_rows_for_three(
            columns, j * inputs + begin, inputs, active, count, weights, row,
            result.columns, j * outputs + into, outputs, size,
        )  # fmt: skip
    for j in range(many - many % 3, many):
        add_rows(
            columns, j * inputs + begin, active, count, weights, row, 0,
            result.columns, j * outputs + into, size,
        )  # fmt: skip
    add_absolute_rows(margins, begin, active, count, weights, row, 0, result.margins, into, size)


@part(fastmath=REASSOCIATE)
def upper_end(totals: Reals, margin: float, a: int, eta: float, smallest: float) -> float:
    """x_a + sum_j |E_aj| + n_a, rounded up."""
    top, size = totals[a, 0] + margin, abs(totals[a, 0]) + margin
    for j in range(1, totals.shape[1]):
        top += abs(totals[a, j])
        size += abs(totals[a, j])
    return top + eta * size + smallest


@part(fastmath=REASSOCIATE)
def bound_projected(tables: NetworkFilter, k: int, heads: Reals, head_biases: Reals) -> float:
    """max_a of P_{k,a} . h' + p_{k,a}, from the zonotope of h'."""
    columns, margins, totals, eta = (
        tables.second.columns, tables.second.margins, tables.totals, tables.eta,
    )  # fmt: skip
    units, largest = np.uintp(margins.shape[0]), -np.inf
    first = np.uintp(k) * units
    for a in range(totals.shape[0]):
        margin = eta * abs(head_biases[k, a])
        for i in range(units):
            margin += abs(heads[a, first + i]) * margins[i]
        for j in range(totals.shape[1]):
            total, begin = margin - margin, np.uintp(j) * units
            for i in range(units):
                total += heads[a, first + i] * columns[begin + i]
            totals[a, j] = total
        totals[a, 0] += head_biases[k, a]
        top = upper_end(totals, margin, a, eta, tables.smallest)
        # What is not a number rules nothing out.
        largest = max(largest, top) if top < np.inf else np.inf
    return largest


@part(fastmath=REASSOCIATE)
def bound_outputs(tables: NetworkFilter, groups: int, readout: Reals) -> float:
    """max_a of sum_{g,j} v_{g,j} value_{g,j}(a), from the zonotope of values."""
    columns, margins, totals, eta = tables.last.columns, tables.last.margins, tables.totals, tables.eta
    units, U, largest = margins.shape[0], readout.shape[0] // groups, -np.inf
    for a in range(totals.shape[0]):
        margin = margins[0] - margins[0]
        for j in range(totals.shape[1]):
            total = margin - margin
            for g in range(groups):
                begin = j * units + g * (units // groups) + a * U
                for d in range(U):
                    total += readout[g * U + d] * columns[begin + d]
            totals[a, j] = total
        for g in range(groups):
            begin = g * (units // groups) + a * U
            for d in range(U):
                margin += abs(readout[g * U + d]) * margins[begin + d]
        top = upper_end(totals, margin, a, eta, tables.smallest)
        largest = max(largest, top) if top < np.inf else np.inf
    return largest


@part(fastmath=REASSOCIATE)
def widen(zonotope: Zonotope, eta: float) -> None:
    """By what rounding adds, of values that are not clipped."""
    columns, margins = zonotope.columns, zonotope.margins
    units = margins.shape[0]
    for i in range(units):
        size = margins[i]
        for j in range(columns.shape[0] // units):
            size += abs(columns[j * units + i])
        margins[i] += 2 * eta * size


@part()
def bound_cell(
    tables: NetworkFilter, networks: Networks, k: int, readout: Reals, clips: bool, projects: bool,
    heads: Reals, head_biases: Reals,
) -> float:  # fmt: skip
    """No less than max over a of Q_k(s, a) as it is computed, for all s in the box of the present cells."""
    shape, eta, smallest = networks.shape, tables.eta, tables.smallest
    G, H_1, H_2, H_3 = shape.groups, shape.units1, shape.units2, shape.outputs
    if tables.measured[k] != tables.versions[k]:
        measure(tables, networks, k)
        tables.measured[k] = tables.versions[k]
    image_cells(tables, networks, k)
    enter(tables, networks, k)
    rectify(tables.first, eta, smallest, tables.around)
    for g in range(G):
        n = k * G + g
        apply_layer(
            tables.first, g * H_1, H_1, networks.W2, n * H_1, networks.b2, n * H_2,
            tables.second, g * H_2, H_2, eta, tables.active,
        )  # fmt: skip
    rectify(tables.second, eta, smallest, tables.around)
    if projects:
        return bound_projected(tables, k, heads, head_biases)
    for g in range(G):
        n = k * G + g
        apply_layer(
            tables.second, g * H_2, H_2, networks.W3, n * H_2, networks.b3, n * H_3,
            tables.last, g * H_3, H_3, eta, tables.active,
        )  # fmt: skip
    if clips:
        rectify(tables.last, eta, smallest, tables.around)
    else:
        widen(tables.last, eta)
    return bound_outputs(tables, G, readout)


@part()
def bound_networks(
    tables: NetworkFilter, networks: Networks, cell: int, c: int, state: Reals, readout: Reals, clips: bool,
    projects: bool, heads: Reals, head_biases: Reals, bound: Reals,
) -> None:  # fmt: skip
    """bound[k] >= max over a of Q_k(s, a) as it is computed; infinite where it is not known.

    cell: of all blocks, as the world numbers them.
    """
    K, versions, bounds, bounded = tables.versions.shape[0], tables.versions, tables.bounds, tables.bounded
    now = tables.clock[0]
    tables.clock[0] += 1
    for k in range(K):
        bound[k] = np.inf
    if not 0 <= cell < tables.visits.shape[0]:
        return
    tables.visits[cell] += 1
    if tables.visits[cell] < tables.visits_needed or not locate(tables, cell, state):
        return
    for k in range(K - 1):
        if bounded[cell, k] == versions[k]:
            bound[k] = bounds[cell, k]
        elif k != c and now - tables.learned_at[k] >= tables.patience:
            bounds[cell, k] = bound_cell(tables, networks, k, readout, clips, projects, heads, head_biases)
            bounded[cell, k] = versions[k]
            bound[k] = bounds[cell, k]
