"""K stored policies of ReLU networks: all of them at one state, and one step of SGD for one of them.

A policy has a network of two hidden layers for each of G groups; its last layer gives U values for each of A
actions. For policy k and group g, at state s:

    h = relu(W_1 s + b_1)      h' = relu(W_2 h + b_2)      value(s, a)_{g,j} = (W_3 h' + b_3)_{a U + j}

**Layout.** Weights are stored input by input, so that a layer adds x_i times a row of weights to all of its
outputs: no sums across a vector register. The state is shared, so the first layers of all policies are one
matrix (state, K * width). Widths are padded with zeros to whole registers; padding is never read back, and
its gradient is 0, so it stays 0.

**Ties.** An output is b + x_0 w_0 + x_1 w_1 + ..., added in this order for every policy, whether it is
evaluated alone or with all others: equal weights give equal values to the bit.

**SGD** on sum_{g,j} e_{g,j}^2, e = target - value(s, a), moves theta by 2 alpha e . d value / d theta. With
d_3 = 2 alpha e at the outputs of action a and 0 elsewhere, d_2 = (W_3^T d_3) [h' > 0] and d_1 = (W_2^T d_2)
[h > 0], each layer moves by W_l += d_l x_l^T, b_l += d_l, where x_l is its input.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sfr_fa.kernels.arrays import Reals, copy_to
from sfr_fa.kernels.linear import dot

REGISTER_BYTES = 32
INPUTS_AT_ONCE = 4
CONTRACT = {"contract"}
"""Fuse x * w + y, but keep the order of sums."""


class Networks(NamedTuple):
    """Weights of K policies, input by input, padded; H is the width of a hidden layer of one group."""

    W1: Reals
    """(state, K * width of all groups): column (k, g, unit)."""
    b1: Reals
    """(K * width of all groups,)."""
    W2: Reals
    """(K, G, H, width)."""
    b2: Reals
    """(K, G, width)."""
    W3: Reals
    """(K, G, H, width)."""
    b3: Reals
    """(K, G, width)."""


class Activations(NamedTuple):
    """What K policies compute at one state."""

    hidden1: Reals
    """(K * width of all groups,)."""
    hidden2: Reals
    """(K, G, width)."""
    outputs: Reals
    """(K, G, width): entry a U + j is value(s, a)_{g,j}."""


class Gradients(NamedTuple):
    """d_1, d_2 and d_3 of one policy; scratch."""

    hidden1: Reals
    hidden2: Reals
    outputs: Reals


# --- Packing --------------------------------------------------------------------------------------


def padded(size: int, multiple: int) -> int:
    """The smallest multiple that holds `size`."""
    return -(-size // multiple) * multiple


def pack(weights: tuple[Reals, Reals, Reals], biases: tuple[Reals, Reals, Reals]) -> Networks:
    """Networks from weights (K, G, out, in) and biases (K, G, 1, out) of the three layers, copied."""
    K, G, H, S = weights[0].shape
    dtype = weights[0].dtype
    lanes = REGISTER_BYTES // dtype.itemsize
    rows = padded(H, INPUTS_AT_ONCE)
    W1 = np.zeros((padded(S, INPUTS_AT_ONCE), K, padded(G * rows, lanes)), dtype)
    b1 = np.zeros(W1.shape[1:], dtype)
    _by_group(W1, G, rows)[:S, :, :, :H] = weights[0].transpose(3, 0, 1, 2)
    _by_group(b1, G, rows)[:, :, :H] = biases[0][:, :, 0]
    packed = [W1.reshape(len(W1), -1), b1.reshape(-1)]
    for weight, bias in zip(weights[1:], biases[1:], strict=True):
        outputs, inputs = weight.shape[2:]
        W = np.zeros((K, G, padded(inputs, INPUTS_AT_ONCE), padded(outputs, lanes)), dtype)
        b = np.zeros((K, G, W.shape[3]), dtype)
        W[:, :, :inputs, :outputs] = weight.transpose(0, 1, 3, 2)
        b[:, :, :outputs] = bias[:, :, 0]
        packed += [W, b]
    return Networks(*packed)


def unpack(
    networks: Networks, weights: tuple[Reals, Reals, Reals], biases: tuple[Reals, Reals, Reals]
) -> None:
    """Write the networks back into the arrays that `pack` took them from."""
    K, G, H, S = weights[0].shape
    rows = padded(H, INPUTS_AT_ONCE)
    W1, b1 = networks.W1.reshape(len(networks.W1), K, -1), networks.b1.reshape(K, -1)
    weights[0][...] = _by_group(W1, G, rows)[:S, :, :, :H].transpose(1, 2, 3, 0)
    biases[0][:, :, 0] = _by_group(b1, G, rows)[:, :, :H]
    for W, b, weight, bias in (
        (networks.W2, networks.b2, weights[1], biases[1]),
        (networks.W3, networks.b3, weights[2], biases[2]),
    ):
        outputs, inputs = weight.shape[2:]
        weight[...] = W[:, :, :inputs, :outputs].transpose(0, 1, 3, 2)
        bias[:, :, 0] = b[:, :, :outputs]


def _by_group(layer: Reals, groups: int, rows: int) -> Reals:
    """A view (..., G, rows) of the units of a first layer (..., width)."""
    return layer[..., : groups * rows].reshape(*layer.shape[:-1], groups, rows)


# --- Scratch --------------------------------------------------------------------------------------


@njit(cache=True)
def new_activations(networks: Networks) -> Activations:
    """Room for the activations of all policies."""
    return Activations(np.zeros_like(networks.b1), np.zeros_like(networks.b2), np.zeros_like(networks.b3))


@njit(cache=True)
def new_gradients(networks: Networks) -> Gradients:
    """Room for the gradients of one policy."""
    K = networks.b2.shape[0]
    return Gradients(
        np.zeros_like(networks.b1[: networks.b1.shape[0] // K]),
        np.zeros_like(networks.b2[0]),
        np.zeros_like(networks.b3[0]),
    )


# --- Values ---------------------------------------------------------------------------------------


@njit(cache=True, fastmath=CONTRACT)
def add_layer(inputs: Reals, weights: Reals, first: int, outputs: Reals) -> None:
    """outputs[o] += sum_i inputs[i] weights[i, first + o], one input after another.

    Indices are unsigned: signed ones may count from the end, and looking after that costs as much as adding.
    """
    begin, end, one = np.uintp(first), np.uintp(outputs.shape[0]), np.uintp(1)
    i, inputs_end = np.uintp(0), np.uintp(inputs.shape[0])
    while i < inputs_end:
        i_1 = i + one
        i_2 = i_1 + one
        i_3 = i_2 + one
        x, x_1, x_2, x_3 = inputs[i], inputs[i_1], inputs[i_2], inputs[i_3]
        for o in range(end):
            total = outputs[o] + x * weights[i, begin + o]
            total = total + x_1 * weights[i_1, begin + o]
            total = total + x_2 * weights[i_2, begin + o]
            outputs[o] = total + x_3 * weights[i_3, begin + o]
        i = i_3 + one


@njit(cache=True)
def relu(values: Reals) -> None:
    """max(0, x) in place; NaN stays NaN."""
    zero = values.dtype.type(0)
    for o in range(values.shape[0]):
        values[o] = zero if values[o] < zero else values[o]


@njit(cache=True)
def finish_policy(networks: Networks, k: int, values: Activations) -> None:
    """Second and third layer of policy k."""
    G, rows = networks.W2.shape[1], networks.W2.shape[2]
    begin = k * (networks.b1.shape[0] // networks.b2.shape[0])
    for g in range(G):
        hidden1 = values.hidden1[begin + g * rows : begin + (g + 1) * rows]
        hidden2, outputs = values.hidden2[k, g], values.outputs[k, g]
        copy_to(networks.b2[k, g], hidden2)
        add_layer(hidden1, networks.W2[k, g], 0, hidden2)
        relu(hidden2)
        copy_to(networks.b3[k, g], outputs)
        add_layer(hidden2[: networks.W3.shape[2]], networks.W3[k, g], 0, outputs)


@njit(cache=True)
def evaluate_all(networks: Networks, state: Reals, values: Activations) -> None:
    """All policies at a state."""
    copy_to(networks.b1, values.hidden1)
    add_layer(state, networks.W1, 0, values.hidden1)
    relu(values.hidden1)
    for k in range(networks.b2.shape[0]):
        finish_policy(networks, k, values)


@njit(cache=True)
def evaluate_one(networks: Networks, k: int, state: Reals, values: Activations) -> None:
    """Policy k at a state, to the bit as `evaluate_all` has it."""
    width = networks.b1.shape[0] // networks.b2.shape[0]
    hidden1 = values.hidden1[k * width : (k + 1) * width]
    copy_to(networks.b1[k * width : (k + 1) * width], hidden1)
    add_layer(state, networks.W1, k * width, hidden1)
    relu(hidden1)
    finish_policy(networks, k, values)


# --- Readout --------------------------------------------------------------------------------------


@njit(cache=True)
def spread_readout(readout: Reals, num_actions: int, spread: Reals) -> None:
    """v_{g,j} at every output (g, a U + j): `spread` has the shape of one policy's outputs."""
    G = spread.shape[0]
    U = readout.shape[0] // G
    for g in range(G):
        for a in range(num_actions):
            for j in range(U):
                spread[g, a * U + j] = readout[g * U + j]


@njit(cache=True, fastmath=CONTRACT)
def read_out(outputs: Reals, spread: Reals, floor: float, size: int, total: Reals, q: Reals) -> None:
    """q[a] = sum_{g,j} v_{g,j} max(floor, value(s, a)_{g,j}); a floor of minus infinity clips nothing.

    `total`, as wide as the outputs of a group, is scratch: first the sum over g, then the one over j.
    """
    zero, lowest = q.dtype.type(0), q.dtype.type(floor)
    for o in range(total.shape[0]):
        total[o] = zero
    for g in range(outputs.shape[0]):
        values, weights = outputs[g], spread[g]
        for o in range(total.shape[0]):
            clipped = lowest if values[o] < lowest else values[o]
            total[o] += weights[o] * clipped
    for a in range(q.shape[0]):
        q[a] = zero
        for j in range(size):
            q[a] += total[a * size + j]


# --- Learning -------------------------------------------------------------------------------------


@njit(cache=True, fastmath=CONTRACT)
def add_outer(inputs: Reals, gradient: Reals, weights: Reals, first: int) -> None:
    """weights[i, first + o] += inputs[i] gradient[o]."""
    begin, end = np.uintp(first), np.uintp(gradient.shape[0])
    zero = inputs.dtype.type(0)
    for i in range(np.uintp(inputs.shape[0])):
        x = inputs[i]
        if x != zero:
            for o in range(end):
                weights[i, begin + o] += x * gradient[o]


@njit(cache=True)
def backward(weights: Reals, gradient: Reals, first: int, activations: Reals, result: Reals) -> None:
    """result[i] = sum_o weights[i, first + o] gradient[o] where unit i is active, else 0."""
    zero = result.dtype.type(0)
    for i in range(weights.shape[0]):
        row = weights[i, first : first + gradient.shape[0]]
        result[i] = dot(row, gradient) if activations[i] > zero else zero


@njit(cache=True)
def add_to(values: Reals, total: Reals) -> None:
    """total += values."""
    for o in range(values.shape[0]):
        total[o] += values[o]


@njit(cache=True)
def descend(
    networks: Networks,
    k: int,
    state: Reals,
    action: int,
    values: Activations,
    error: Reals,
    rate: float,
    gradients: Gradients,
) -> None:
    """theta_k += rate * error . d value(s, a) / d theta_k: SGD on |error|^2, with rate = 2 alpha.

    error (G, U); `values` are the activations at the state.
    """
    G, U = error.shape
    rows = networks.W2.shape[2]
    width = gradients.hidden1.shape[0]
    step = error.dtype.type(rate)
    first = action * U
    for g in range(G):
        hidden1 = values.hidden1[k * width + g * rows : k * width + (g + 1) * rows]
        hidden2 = values.hidden2[k, g][: networks.W3.shape[2]]
        d1, d2 = gradients.hidden1[g * rows : (g + 1) * rows], gradients.hidden2[g]
        d3 = gradients.outputs[g, :U]
        for j in range(U):
            d3[j] = step * error[g, j]
        # Gradients pass through the weights as they were before the step.
        backward(networks.W3[k, g], d3, first, hidden2, d2)
        backward(networks.W2[k, g], d2, 0, hidden1, d1)
        add_outer(hidden2, d3, networks.W3[k, g], first)
        add_to(d3, networks.b3[k, g, first : first + U])
        add_outer(hidden1, d2, networks.W2[k, g], 0)
        add_to(d2, networks.b2[k, g])
    add_outer(state, gradients.hidden1, networks.W1, k * width)
    add_to(gradients.hidden1, networks.b1[k * width : (k + 1) * width])
