"""K stored policies of ReLU networks: all of them at one state, and one step of SGD for one of them.

A policy has a network of two hidden layers for each of G groups; its last layer gives U values for each of A
actions. For policy k and group g, at state s:

    h = relu(W_1 s + b_1)      h' = relu(W_2 h + b_2)      value(s, a)_{g,j} = (W_3 h' + b_3)_{a U + j}

**Layout.** Weights are stored input by input, so that a layer adds x_i times a row of weights to all of its
outputs: no sums across a vector register. The state is shared, so the first layers of all policies are one
matrix. Network n = k G + g has its own block of rows in W_2 and W_3, and its own block of entries in each
vector. Functions take whole arrays and where a block begins, because a view of a block costs as much as
adding a few of its rows. A layer adds four inputs at a time, so their number is padded with zeros to a
multiple of four; the gradient of padding is 0, so it stays 0.

**Ties.** An output is b + x_0 w_0 + x_1 w_1 + ..., added in this order for every policy, whether it is
evaluated alone or with all others: equal weights give equal values, bit for bit.

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

from sfr_fa.kernels.arrays import REASSOCIATE, Reals, padded, part

INPUTS_AT_ONCE = 4
CONTRACT = {"contract"}
"""Fuse x * w + y, but keep the order of sums."""


class NetworkShape(NamedTuple):
    """Sizes of K policies of G networks each."""

    policies: int
    groups: int
    units1: int
    """H_1: units of a first layer, padded."""
    units2: int
    """H_2: units of a second layer, padded."""
    outputs: int
    """H_3 = A U: outputs of a network."""


class Networks(NamedTuple):
    """Weights of N = K G networks, input by input."""

    shape: NetworkShape
    W1: Reals
    """(state, padded; N H_1)."""
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
    shape = NetworkShape(K, G, padded(H_1, INPUTS_AT_ONCE), padded(H_2, INPUTS_AT_ONCE), H_3)
    units1, units2, outputs = (K * G * size for size in shape[2:])
    networks = Networks(
        shape,
        W1=np.zeros((padded(S, INPUTS_AT_ONCE), units1), dtype),
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
    K, G = networks.shape.policies, networks.shape.groups
    W1 = networks.W1.reshape(len(networks.W1), K, G, -1).transpose(1, 2, 0, 3)
    W2, W3 = (W.reshape(K, G, -1, W.shape[1]) for W in (networks.W2, networks.W3))
    biases = (b.reshape(K, G, 1, -1) for b in (networks.b1, networks.b2, networks.b3))
    stored = [*(W.transpose(0, 1, 3, 2) for W in (W1, W2, W3)), *biases]
    return [array[:, :, :rows, :columns] for array, (_, _, rows, columns) in zip(stored, shapes, strict=True)]


# --- Scratch --------------------------------------------------------------------------------------


def new_activations(networks: Networks) -> Activations:
    """Room for the activations of all policies."""
    return Activations(np.zeros_like(networks.b1), np.zeros_like(networks.b2), np.zeros_like(networks.b3))


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


@part()
def copy_block(values: Reals, first: int, copy: Reals, into: int, size: int) -> None:
    """copy[into + o] = values[first + o]."""
    begin, to = np.uintp(first), np.uintp(into)
    for o in range(np.uintp(size)):
        copy[to + o] = values[begin + o]


@part(fastmath=CONTRACT)
def add_layer(
    inputs: Reals, x: int, num_inputs: int, weights: Reals, row: int, column: int,
    outputs: Reals, y: int, num_outputs: int,
) -> None:  # fmt: skip
    """outputs[y + o] += sum_i inputs[x + i] weights[row + i, column + o], one input after another.

    x, row, column and y are where the blocks begin; the number of inputs is a multiple of INPUTS_AT_ONCE.
    """
    first_x, first_row, first_column, first_y = np.uintp(x), np.uintp(row), np.uintp(column), np.uintp(y)
    i, end, one = np.uintp(0), np.uintp(num_inputs), np.uintp(1)
    while i < end:
        r_0, j = first_row + i, first_x + i
        r_1, j_1 = r_0 + one, j + one
        r_2, j_2 = r_1 + one, j_1 + one
        r_3, j_3 = r_2 + one, j_2 + one
        x_0, x_1, x_2, x_3 = inputs[j], inputs[j_1], inputs[j_2], inputs[j_3]
        for o in range(np.uintp(num_outputs)):
            w = first_column + o
            total = outputs[first_y + o] + x_0 * weights[r_0, w]
            total = total + x_1 * weights[r_1, w]
            total = total + x_2 * weights[r_2, w]
            outputs[first_y + o] = total + x_3 * weights[r_3, w]
        i += np.uintp(INPUTS_AT_ONCE)


@part()
def relu(values: Reals, first: int, size: int) -> None:
    """max(0, x) in place, from entry `first` on; NaN stays NaN.

    (x + |x|) / 2 is exact up to half the largest number; beyond it, and at -infinity, the result is not
    finite, and the run has diverged. A choice of x or 0 would be a store under a mask, slow to read back.
    """
    begin, half = np.uintp(first), values.dtype.type(0.5)
    for o in range(begin, begin + np.uintp(size)):
        values[o] = half * (values[o] + abs(values[o]))


@part()
def evaluate_hidden(networks: Networks, first: int, last: int, state: Reals, values: Activations) -> None:
    """Hidden layers of policies first <= k < last at a state; bit for bit the same in any grouping."""
    shape, hidden1, hidden2 = networks.shape, values.hidden1, values.hidden2
    H_1, H_2 = shape.units1, shape.units2
    begin, size = first * shape.groups, (last - first) * shape.groups

    copy_block(networks.b1, begin * H_1, hidden1, begin * H_1, size * H_1)
    add_layer(state, 0, state.shape[0], networks.W1, 0, begin * H_1, hidden1, begin * H_1, size * H_1)
    relu(hidden1, begin * H_1, size * H_1)

    copy_block(networks.b2, begin * H_2, hidden2, begin * H_2, size * H_2)
    for n in range(begin, begin + size):
        add_layer(hidden1, n * H_1, H_1, networks.W2, n * H_1, 0, hidden2, n * H_2, H_2)
    relu(hidden2, begin * H_2, size * H_2)


@part()
def evaluate(networks: Networks, first: int, last: int, state: Reals, values: Activations) -> None:
    """Policies first <= k < last at a state, with all their outputs."""
    shape, hidden2, outputs = networks.shape, values.hidden2, values.outputs
    H_2, H_3 = shape.units2, shape.outputs
    begin, size = first * shape.groups, (last - first) * shape.groups
    evaluate_hidden(networks, first, last, state, values)
    copy_block(networks.b3, begin * H_3, outputs, begin * H_3, size * H_3)
    for n in range(begin, begin + size):
        add_layer(hidden2, n * H_2, H_2, networks.W3, n * H_2, 0, outputs, n * H_3, H_3)


@part()
def action_value(networks: Networks, k: int, action: int, values: Activations, value: Reals) -> None:
    """value_k(s, a) of one action, (D,), from the hidden layers: the same sums as in `evaluate`."""
    shape, U = networks.shape, value.shape[0] // networks.shape.groups
    for g in range(shape.groups):
        n = k * shape.groups + g
        copy_block(networks.b3, n * shape.outputs + action * U, value, g * U, U)
        add_layer(
            values.hidden2, n * shape.units2, shape.units2, networks.W3, n * shape.units2, action * U,
            value, g * U, U,
        )  # fmt: skip


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


@part()
def read_projection(
    values: Activations, shape: NetworkShape, k: int, heads: Reals, biases: Reals, q: Reals
) -> None:
    """q[k, a] = P_{k,a} . h' + p_{k,a}: the networks of a policy lie side by side."""
    size = shape.groups * shape.units2
    for a in range(q.shape[1]):
        q[k, a] = biases[k, a] + row_product(heads, a, k * size, values.hidden2, k * size, size)


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
    shape: NetworkShape,
    k: int,
    spread: Reals,
    i: int,
    floor: float,
    total: Reals,
    q: Reals,
    row: int,
) -> None:
    """q[row, a] = sum_{g,j} v_{g,j} max(floor, value_k(s, a)_{g,j}) with v of policy i.

    A floor of minus infinity clips nothing. `total`, as wide as the outputs of a group, is scratch: first the
    sum over g, then the one over j.
    """
    zero, lowest = q.dtype.type(0), q.dtype.type(floor)
    width, into = np.uintp(shape.outputs), np.uintp(row)
    of_k, of_i = np.uintp(k * shape.groups) * width, np.uintp(i * shape.groups) * width
    for o in range(width):
        total[o] = zero
    for _ in range(shape.groups):
        for o in range(width):
            value = outputs[of_k + o]
            total[o] += spread[of_i + o] * (lowest if value < lowest else value)
        of_k += width
        of_i += width
    U = width // np.uintp(q.shape[1])
    for a in range(np.uintp(q.shape[1])):
        of_action = zero
        for j in range(U):
            of_action += total[a * U + j]
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
    add_outer(state, 0, state.shape[0], d1, 0, G * H_1, networks.W1, 0, k * G * H_1)
    add_block(d1, networks.b1, k * G * H_1, G * H_1)
    add_block(d2, networks.b2, k * G * H_2, G * H_2)
