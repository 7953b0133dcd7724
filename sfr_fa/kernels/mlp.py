"""K stored policies of ReLU networks: each of them at a state, and one step of SGD for one of them.

A policy has a network of two hidden layers for each of G groups; its last layer gives U values for each of A
actions. For policy k and group g, at state s:

    h = relu(W_1 s + b_1)      h' = relu(W_2 h + b_2)      value(s, a)_{g,j} = (W_3 h' + b_3)_{a U + j}

**Layout.** Weights are stored input by input, so that a layer adds x_i times a row of weights to all of its
outputs (`sfr_fa.kernels.rows`): no sums across a vector register, and inputs that are 0 cost nothing. After
relu these are more than half. The networks of a policy share its state, so their first layers are one matrix.
Network n = k G + g has its own block of rows in W_2 and W_3, and its own block of entries in each vector.
Functions take whole arrays and where a block begins, because a view of a block costs as much as adding a few
of its rows. Layers are padded with units of zeros to whole vector registers; the gradient of padding is 0, so
it stays 0.

**Ties.** An output is b + x_0 w_0 + x_1 w_1 + ..., added in this order for every policy: equal weights give
equal values, bit for bit.

**Projected heads.** Without clipping Q_k(s, a) = sum_{g,j} v_{g,j} value(s, a)_{g,j} is linear in h', with
weights P_{k,a} = W_3^T v: comparing policies takes A times H_2 products each, however large their cumulant
is, and only single actions of the one or two policies that learn are evaluated in full.

**SGD** on sum_{g,j} e_{g,j}^2, e = target - value(s, a), moves theta by 2 alpha e . d value / d theta. With
d_3 = 2 alpha e at the outputs of action a and 0 elsewhere, d_2 = (W_3^T d_3) [h' > 0] and d_1 = (W_2^T d_2)
[h > 0], each layer moves by W_l += d_l x_l^T, b_l += d_l, where x_l is its input.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import REASSOCIATE, Integers, Reals, padded, part
from sfr_fa.kernels.rows import LANES, add_rows, list_active

CONTRACT = {"contract"}
"""Fuse x * w + y, but keep the order of sums."""


class NetworkShape(NamedTuple):
    """Sizes of K policies of G networks each."""

    policies: int
    groups: int
    inputs: int
    """S: entries of a state."""
    units1: int
    """H_1: units of a first layer, padded."""
    units2: int
    """H_2: units of a second layer, padded."""
    outputs: int
    """H_3: outputs of a network, A U, padded."""


class Networks(NamedTuple):
    """Weights of N = K G networks, input by input."""

    shape: NetworkShape
    W1: Reals
    """(K S, G H_1)."""
    b1: Reals
    """(N H_1,)."""
    W2: Reals
    """(N H_1, H_2)."""
    b2: Reals
    """(N H_2,)."""
    W3: Reals
    """(N H_2, H_3)."""
    b3: Reals
    """(N H_3,)."""


class Activations(NamedTuple):
    """What K policies compute at one state."""

    hidden1: Reals
    """(N H_1,)."""
    hidden2: Reals
    """(N H_2,)."""
    outputs: Reals
    """(N H_3,): entry n H_3 + a U + j is value(s, a)_{g,j}."""
    active: Integers
    """Room for a list of the units that are not 0."""


class Gradients(NamedTuple):
    """d_1, d_2 and d_3 of one policy; scratch. Of d_3 a block begins with the U entries of the action."""

    hidden1: Reals
    hidden2: Reals
    outputs: Reals


# --- Packing --------------------------------------------------------------------------------------


def pack(weights: Sequence[Reals], biases: Sequence[Reals]) -> Networks:
    """Networks from weights (K, G, out, in) and biases (K, G, 1, out) of the three layers, copied."""
    K, G, H_1, S = weights[0].shape
    dtype = weights[0].dtype
    H_2, H_3 = weights[1].shape[2], weights[2].shape[2]
    shape = NetworkShape(K, G, S, padded(H_1, LANES), padded(H_2, LANES), padded(H_3, LANES))
    units1, units2, outputs = (K * G * size for size in shape[3:])
    networks = Networks(
        shape,
        W1=np.zeros((K * S, G * shape.units1), dtype),
        b1=np.zeros(units1, dtype),
        W2=np.zeros((units1, shape.units2), dtype),
        b2=np.zeros(units2, dtype),
        W3=np.zeros((units2, shape.outputs), dtype),
        b3=np.zeros(outputs, dtype),
    )
    given = (*weights, *biases)
    for stored, array in zip(unpack(networks, [array.shape for array in given]), given, strict=True):
        stored[...] = array
    return networks


def unpack(networks: Networks, shapes: Sequence[tuple[int, ...]]) -> list[Reals]:
    """Weights and biases in the shapes that `pack` took: views, without the padding."""
    K, G, S = networks.shape[:3]
    W1 = networks.W1.reshape(K, S, G, -1).transpose(0, 2, 1, 3)
    W2, W3 = (W.reshape(K, G, -1, W.shape[1]) for W in (networks.W2, networks.W3))
    biases = (b.reshape(K, G, 1, -1) for b in (networks.b1, networks.b2, networks.b3))
    stored = [*(W.transpose(0, 1, 3, 2) for W in (W1, W2, W3)), *biases]
    return [array[:, :, :rows, :columns] for array, (_, _, rows, columns) in zip(stored, shapes, strict=True)]


# --- Scratch --------------------------------------------------------------------------------------


def new_activations(networks: Networks) -> Activations:
    """Room for the activations of all policies."""
    shape = networks.shape
    return Activations(
        np.zeros_like(networks.b1),
        np.zeros_like(networks.b2),
        np.zeros_like(networks.b3),
        active=np.zeros(max(shape.units1, shape.units2), np.int64),
    )


def new_gradients(networks: Networks) -> Gradients:
    """Room for the gradients of one policy."""
    shape, dtype = networks.shape, networks.b1.dtype
    return Gradients(
        np.zeros(shape.groups * shape.units1, dtype),
        np.zeros(shape.groups * shape.units2, dtype),
        np.zeros(shape.groups * shape.outputs, dtype),
    )


# --- Values ---------------------------------------------------------------------------------------
#
# Indices are unsigned: signed ones may count from the end, and checking for that costs as much as adding.


@part(inlined=True)
def copy_block(values: Reals, first: int, copy: Reals, into: int, size: int) -> None:
    """copy[into + o] = values[first + o]."""
    begin, to = np.uintp(first), np.uintp(into)
    for o in range(np.uintp(size)):
        copy[to + o] = values[begin + o]


@part(inlined=True)
def relu(values: Reals, first: int, size: int) -> None:
    """max(0, x) in place, from entry `first` on; NaN stays NaN.

    (x + |x|) / 2 is exact up to half the largest number; beyond it, and at -infinity, the result is not
    finite, and the run has diverged. A choice of x or 0 would be a store under a mask, slow to read back.
    """
    begin, half = np.uintp(first), values.dtype.type(0.5)
    for o in range(begin, begin + np.uintp(size)):
        values[o] = half * (values[o] + abs(values[o]))


@part(inlined=True)
def second_layers(
    networks: Networks, k: int, hidden1: Reals, x: int, hidden2: Reals, y: int, active: Integers
) -> None:
    """h' of policy k, to hidden2[y:], from its h in hidden1[x:]."""
    G, H_1, H_2 = networks.shape.groups, networks.shape.units1, networks.shape.units2
    copy_block(networks.b2, k * G * H_2, hidden2, y, G * H_2)
    for g in range(G):
        count = list_active(hidden1, x + g * H_1, H_1, active)
        add_rows(
            hidden1, x + g * H_1, active, count, networks.W2, (k * G + g) * H_1, 0, hidden2, y + g * H_2, H_2
        )
    relu(hidden2, y, G * H_2)


@part(inlined=True)
def last_layers(
    networks: Networks, k: int, hidden2: Reals, x: int, outputs: Reals, y: int, active: Integers
) -> None:
    """All outputs of policy k, to outputs[y:], from its h' in hidden2[x:]."""
    G, H_2, H_3 = networks.shape.groups, networks.shape.units2, networks.shape.outputs
    copy_block(networks.b3, k * G * H_3, outputs, y, G * H_3)
    for g in range(G):
        count = list_active(hidden2, x + g * H_2, H_2, active)
        add_rows(
            hidden2, x + g * H_2, active, count, networks.W3, (k * G + g) * H_2, 0, outputs, y + g * H_3, H_3
        )


@part(inlined=True)
def evaluate_hidden(
    networks: Networks, k: int, state: Reals, seen: Integers, count: int, values: Activations
) -> None:
    """Hidden layers of policy k at a state, of which `seen` lists the `count` entries that are not 0."""
    shape = networks.shape
    of_1, of_2 = k * shape.groups * shape.units1, k * shape.groups * shape.units2
    size = shape.groups * shape.units1
    copy_block(networks.b1, of_1, values.hidden1, of_1, size)
    add_rows(state, 0, seen, count, networks.W1, k * shape.inputs, 0, values.hidden1, of_1, size)
    relu(values.hidden1, of_1, size)
    second_layers(networks, k, values.hidden1, of_1, values.hidden2, of_2, values.active)


@part(inlined=True)
def evaluate(
    networks: Networks, k: int, state: Reals, seen: Integers, count: int, values: Activations
) -> None:
    """Policy k at a state, with all its outputs."""
    shape = networks.shape
    of_2, of_3 = k * shape.groups * shape.units2, k * shape.groups * shape.outputs
    evaluate_hidden(networks, k, state, seen, count, values)
    last_layers(networks, k, values.hidden2, of_2, values.outputs, of_3, values.active)


@part(fastmath=CONTRACT)
def action_value(networks: Networks, k: int, action: int, values: Activations, value: Reals) -> None:
    """value_k(s, a) of one action, (D,), from the hidden layers: the same sums as in `evaluate`."""
    shape, U = networks.shape, value.shape[0] // networks.shape.groups
    column, width = np.uintp(action * U), np.uintp(U)
    for g in range(shape.groups):
        n, of_g = k * shape.groups + g, np.uintp(g * U)
        copy_block(networks.b3, n * shape.outputs + action * U, value, g * U, U)
        for h in range(np.uintp(n * shape.units2), np.uintp((n + 1) * shape.units2)):
            x = values.hidden2[h]
            if x != 0:
                for j in range(width):
                    value[of_g + j] += x * networks.W3[h, column + j]


# --- Readout --------------------------------------------------------------------------------------


@part(fastmath=REASSOCIATE)
def row_product(rows: Reals, row: int, column: int, y: Reals, begin: int, size: int) -> float:
    """sum_o rows[row, column + o] y[begin + o]; its rounding depends on the numbers and their count only."""
    r, of_row, of_y, total = np.uintp(row), np.uintp(column), np.uintp(begin), y.dtype.type(0)
    for o in range(np.uintp(size)):
        total += rows[r, of_row + o] * y[of_y + o]
    return total


@part(fastmath=REASSOCIATE)
def block_product(x: Reals, first: int, y: Reals, begin: int, size: int) -> float:
    """sum_o x[first + o] y[begin + o]."""
    of_x, of_y, total = np.uintp(first), np.uintp(begin), y.dtype.type(0)
    for o in range(np.uintp(size)):
        total += x[of_x + o] * y[of_y + o]
    return total


@part()
def project(networks: Networks, k: int, action: int, readout: Reals, heads: Reals, biases: Reals) -> None:
    """P_{k,a} = sum_{g,j} v_{g,j} W_3[., a U + j] (G H_2,) and its bias: Q_k(s, a) = P_{k,a} . h' + p_{k,a}.

    It is computed anew for an action that has learned. The rank-one term of SGD would be cheaper, by G H_2 U
    products of the many that a step needs; but policies that become equal would no longer tie.
    """
    shape, U = networks.shape, readout.shape[0] // networks.shape.groups
    bias = biases.dtype.type(0)
    for g in range(shape.groups):
        n = k * shape.groups + g
        bias += block_product(networks.b3, n * shape.outputs + action * U, readout, g * U, U)
        for h in range(n * shape.units2, (n + 1) * shape.units2):
            heads[action, h] = row_product(networks.W3, h, action * U, readout, g * U, U)
    biases[k, action] = bias


@part(inlined=True)
def read_projection(
    hidden2: Reals, x: int, size: int, k: int, heads: Reals, biases: Reals, q: Reals, row: int
) -> None:
    """q[row, a] = P_{k,a} . h' + p_{k,a}, h' in hidden2[x:]; the networks of a policy lie side by side."""
    for a in range(q.shape[1]):
        q[row, a] = biases[k, a] + row_product(heads, a, k * size, hidden2, x, size)


@part()
def spread_readout(readout: Reals, shape: NetworkShape, num_actions: int, k: int, spread: Reals) -> None:
    """v_{g,j} at every output (g, a U + j) of policy k: `spread` is laid out as all outputs are."""
    U = readout.shape[0] // shape.groups
    for g in range(shape.groups):
        begin = (k * shape.groups + g) * shape.outputs
        for a in range(num_actions):
            for j in range(U):
                spread[begin + a * U + j] = readout[g * U + j]


@part(fastmath=CONTRACT)
def read_out(
    outputs: Reals,
    x: int,
    shape: NetworkShape,
    spread: Reals,
    i: int,
    floor: float,
    U: int,
    total: Reals,
    q: Reals,
    row: int,
) -> None:
    """q[row, a] = sum_{g,j} v_{g,j} max(floor, value(s, a)_{g,j}) with v of policy i, values in outputs[x:].

    A floor of minus infinity clips nothing. `total`, as wide as the outputs of a group, is scratch: first the
    sum over g, then the one over j.
    """
    zero, lowest = q.dtype.type(0), q.dtype.type(floor)
    width, into = np.uintp(shape.outputs), np.uintp(row)
    of_k, of_i = np.uintp(x), np.uintp(i * shape.groups) * width
    for o in range(width):
        total[o] = zero
    for _ in range(shape.groups):
        for o in range(width):
            value = outputs[of_k + o]
            total[o] += spread[of_i + o] * (lowest if value < lowest else value)
        of_k += width
        of_i += width
    for a in range(np.uintp(q.shape[1])):
        of_action = zero
        for o in range(a * np.uintp(U), (a + np.uintp(1)) * np.uintp(U)):
            of_action += total[o]
        q[into, a] = of_action


# --- Learning -------------------------------------------------------------------------------------


@part(fastmath=CONTRACT)
def add_outer(
    inputs: Reals, x: int, num_inputs: int, gradient: Reals, d: int, size: int,
    weights: Reals, row: int, column: int,
) -> None:  # fmt: skip
    """weights[row + i, column + o] += inputs[x + i] gradient[d + o]."""
    first_x, first_d, first_row, first_column = np.uintp(x), np.uintp(d), np.uintp(row), np.uintp(column)
    zero = inputs.dtype.type(0)
    for i in range(np.uintp(num_inputs)):
        x_i = inputs[first_x + i]
        if x_i != zero:
            for o in range(np.uintp(size)):
                weights[first_row + i, first_column + o] += x_i * gradient[first_d + o]


@part(fastmath=REASSOCIATE)
def backward(
    weights: Reals, row: int, column: int, gradient: Reals, d: int, size: int,
    activations: Reals, x: int, num_inputs: int, result: Reals, y: int,
) -> None:  # fmt: skip
    """result[y + i] = sum_o weights[row + i, column + o] gradient[d + o] where unit i is active, else 0."""
    first_row, first_column, first_d = np.uintp(row), np.uintp(column), np.uintp(d)
    first_x, first_y = np.uintp(x), np.uintp(y)
    zero = result.dtype.type(0)
    for i in range(np.uintp(num_inputs)):
        total = zero
        if activations[first_x + i] > zero:
            for o in range(np.uintp(size)):
                total += weights[first_row + i, first_column + o] * gradient[first_d + o]
        result[first_y + i] = total


@part()
def add_block(values: Reals, total: Reals, first: int, size: int) -> None:
    """total[first + o] += values[o]."""
    for o in range(size):
        total[first + o] += values[o]


@part()
def descend(
    networks: Networks,
    k: int,
    state: Reals,
    action: int,
    values: Activations,
    slot: int,
    error: Reals,
    rate: float,
    head: float,
    gradients: Gradients,
) -> None:
    """theta_k += rate * error . d value(s, a) / d theta_k: SGD on |error|^2, with rate = 2 alpha.

    W_3 and b_3 learn `head` times as fast. error (G U,); `values` holds the hidden activations at the state,
    those of policy k in place of policy `slot`.
    """
    shape = networks.shape
    G, H_1, H_2, H_3 = shape.groups, shape.units1, shape.units2, shape.outputs
    U = error.shape[0] // G
    d1, d2, d3 = gradients.hidden1, gradients.hidden2, gradients.outputs
    step, faster = error.dtype.type(rate), error.dtype.type(head)
    column = action * U
    for g in range(G):
        n, m, of_1, of_2, of_3 = k * G + g, slot * G + g, g * H_1, g * H_2, g * H_3
        for j in range(U):
            d3[of_3 + j] = step * error[g * U + j]
        # Gradients pass through the weights as they were before the step.
        backward(networks.W3, n * H_2, column, d3, of_3, U, values.hidden2, m * H_2, H_2, d2, of_2)
        backward(networks.W2, n * H_1, 0, d2, of_2, H_2, values.hidden1, m * H_1, H_1, d1, of_1)
        for j in range(U):
            d3[of_3 + j] *= faster
            networks.b3[n * H_3 + column + j] += d3[of_3 + j]
        add_outer(values.hidden2, m * H_2, H_2, d3, of_3, U, networks.W3, n * H_2, column)
        add_outer(values.hidden1, m * H_1, H_1, d2, of_2, H_2, networks.W2, n * H_1, 0)
    add_outer(state, 0, shape.inputs, d1, 0, G * H_1, networks.W1, k * shape.inputs, 0)
    add_block(d1, networks.b1, k * G * H_1, G * H_1)
    add_block(d2, networks.b2, k * G * H_2, G * H_2)
