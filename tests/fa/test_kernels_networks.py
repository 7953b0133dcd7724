"""What the kernels of networks promise to the bit; their values and steps are compared in `test_engines`."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfr_fa.agents import FeatureSubnetworks, ValueShape
from sfr_fa.environments.layouts import RACER_LAYOUT
from sfr_fa.kernels import mlp
from sfr_fa.kernels.network_values import NetworkValues
from sfr_fa.kernels.rows import LANES
from tests.fa.engine_checks import compiled

SHAPES = st.sampled_from([(1, 1, 20, 20), (3, 1, 20, 20), (3, 11, 20, 20), (2, 5, 7, 9), (6, 3, 12, 4)])
DTYPES = st.sampled_from([np.float32, np.float64])
SEEDS = st.integers(0, 2**32 - 1)


def drawn_networks(policies, shape, dtype, seed, copies=1):
    """K networks of the reference, `copies` times over, as the kernels have them."""
    G, U, *hidden = shape
    rng = np.random.default_rng(seed)
    modules = [FeatureSubnetworks(ValueShape(120, 3, G, U), rng, tuple(hidden)) for _ in range(policies)]

    layers = (
        [np.stack([layer.detach().numpy() for layer in of_policies] * copies).astype(dtype)
         for of_policies in zip(*(getattr(module, kind) for module in modules), strict=True)]
        for kind in ("weights", "biases")
    )  # fmt: skip
    return mlp.pack(*map(tuple, layers))


def a_state(dtype, rng):
    x, y, angle = rng.uniform((0, 0, -math.pi), (1, 1, math.pi))
    return RACER_LAYOUT.state_at(x, y, angle).astype(dtype)


def evaluate_all(networks, state, values, of=compiled):
    seen = np.flatnonzero(state)
    for k in range(networks.shape.policies):
        of(mlp.evaluate)(networks, k, state, seen, len(seen), values)


@pytest.mark.parametrize("shape", [(1, 1, 3, 20), (3, 11, 20, 9), (2, 5, 8, 8)])
def test_layers_are_padded_to_whole_vector_registers(shape):
    """Compiled sums read whole registers."""
    _, U, H_1, H_2 = shape
    packed = drawn_networks(2, shape, np.float32, seed=0).shape
    for units, needed in zip(packed[3:], (H_1, H_2, 3 * U), strict=True):
        assert units % LANES == 0 <= units - needed < LANES


@given(policies=st.integers(2, 40), shape=SHAPES, dtype=DTYPES, seed=SEEDS)
@settings(max_examples=25)
def test_equal_policies_have_equal_values_to_the_bit(policies, shape, dtype, seed):
    """Whatever their place, so that the first of copies wins."""
    networks = drawn_networks(1, shape, dtype, seed, copies=policies)
    state = a_state(dtype, np.random.default_rng(seed))
    values = mlp.new_activations(networks)
    evaluate_all(networks, state, values)
    readout = np.random.default_rng(seed).normal(size=shape[0] * shape[1]).astype(dtype)
    spread, total = np.zeros_like(networks.b3), np.zeros(networks.shape.outputs, dtype)
    compiled(mlp.spread_readout)(readout, networks.shape, 3, 0, spread)
    q, size = np.zeros((policies, 3), dtype), len(networks.b3) // policies
    for k in range(policies):
        compiled(mlp.read_out)(
            values.outputs, k * size, networks.shape, spread, 0, 0.0, shape[1], total, q, k
        )
    for of_policies in (values.outputs.reshape(policies, -1), q):
        np.testing.assert_array_equal(of_policies, np.broadcast_to(of_policies[:1], of_policies.shape))


@given(policies=st.integers(1, 5), shape=SHAPES, dtype=DTYPES, seed=SEEDS)
@settings(max_examples=25)
def test_projected_heads_read_what_all_outputs_say(policies, shape, dtype, seed):
    """And equal policies tie to the bit; a single action is to the bit what the evaluation of all says."""
    networks, (G, U) = drawn_networks(policies, shape, dtype, seed, copies=2), shape[:2]
    rng = np.random.default_rng(seed)
    state, readout = a_state(dtype, rng), rng.normal(size=G * U).astype(dtype)
    values = mlp.new_activations(networks)
    evaluate_all(networks, state, values)
    heads, biases = np.zeros((3, len(networks.b2)), dtype), np.zeros((2 * policies, 3), dtype)
    q, value = np.zeros((2 * policies, 3), dtype), np.zeros(G * U, dtype)
    outputs = values.outputs.reshape(2 * policies, G, -1)[..., : 3 * U].reshape(2 * policies, G, 3, U)
    size = len(networks.b2) // (2 * policies)
    for k in range(2 * policies):
        for a in range(3):
            compiled(mlp.project)(networks, k, a, readout, heads, biases)
            compiled(mlp.action_value)(networks, k, a, values, value)
            np.testing.assert_array_equal(value.reshape(G, U), outputs[k, :, a])
        compiled(mlp.read_projection)(values.hidden2, k * size, size, k, heads, biases, q, k)
    expected = np.einsum("kgaj,gj->ka", outputs.astype(float), readout.reshape(G, U).astype(float))
    tolerance = 200 * np.finfo(dtype).eps * max(1.0, np.abs(outputs).max()) * np.abs(readout).sum()
    np.testing.assert_allclose(q, expected, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(q[:policies], q[policies:])


def test_not_a_number_passes_through_the_layers():
    """Or a diverged network would look like a dead one."""
    values = np.array([-5.0, math.nan, -1.0, 2.0, 5e-324, math.inf, -5.0])
    compiled(mlp.relu)(values, 1, 5)
    np.testing.assert_array_equal(values, [-5.0, math.nan, 0.0, 2.0, 5e-324, math.inf, -5.0])


# --- Interpreted, which takes milliseconds; compiled, they are in whole paths --------------------------


@pytest.mark.parametrize("shape", [(2, 5, 7, 9), (3, 1, 4, 6)])
def test_values_and_a_step_of_sgd_are_those_of_torch(shape):
    """All weights of one policy move as torch moves them, and those of no other policy move at all."""
    rng, (G, U, *hidden) = np.random.default_rng(12), shape
    modules = [FeatureSubnetworks(ValueShape(120, 3, G, U), rng, tuple(hidden)).double() for _ in range(3)]
    before = [
        np.stack([getattr(module, kind)[layer].detach().numpy() for module in modules])
        for kind in ("weights", "biases")
        for layer in range(3)
    ]
    networks = mlp.pack(before[:3], before[3:])
    values, gradients = mlp.new_activations(networks), mlp.new_gradients(networks)
    state, k, action, rate = a_state(np.float64, rng), 1, 2, 0.3
    evaluate_all(networks, state, values, of=lambda function: function)
    outputs = [module(torch.from_numpy(state)[None])[0] for module in modules]
    ours = (
        values.outputs.reshape(3, G, -1)[..., : 3 * U]
        .reshape(3, G, 3, U)
        .transpose(0, 2, 1, 3)
        .reshape(3, 3, G * U)
    )
    np.testing.assert_allclose(ours, torch.stack(outputs).detach().numpy().reshape(ours.shape), atol=1e-13)

    target = rng.normal(size=G * U)
    optimiser = torch.optim.SGD(modules[k].parameters(), lr=rate)
    (torch.from_numpy(target) - outputs[k][action].reshape(-1)).square().sum().backward()
    optimiser.step()
    mlp.descend(networks, k, state, action, values, k, target - ours[k, action], 2 * rate, 1.0, gradients)
    theirs = [*modules[k].weights, *modules[k].biases]
    moved = mlp.unpack(networks, [array.shape for array in before])
    for old, new, expected in zip(before, moved, theirs, strict=True):
        np.testing.assert_allclose(new[k], expected.detach().numpy(), atol=1e-12)
        np.testing.assert_array_equal(new[[0, 2]], old[[0, 2]])


@pytest.mark.parametrize("floor", [0.0, -math.inf])
def test_readout_clips_where_it_is_told(floor):
    """The values of policy 1 with the readout of policy 2."""
    rng = np.random.default_rng(13)
    shape = mlp.NetworkShape(policies=3, groups=3, inputs=1, units1=8, units2=8, outputs=40)
    outputs, readout = rng.normal(size=(3, 3, 40)), rng.normal(size=33)
    spread, total, q = np.zeros(3 * 3 * 40), np.zeros(40), np.zeros((1, 3))
    mlp.spread_readout(readout, shape, 3, 2, spread)
    mlp.read_out(outputs.ravel(), 3 * 40, shape, spread, 2, floor, 11, total, q, 0)
    values = outputs[1, :, :33].reshape(3, 3, 11).transpose(1, 0, 2).reshape(3, 33)
    np.testing.assert_allclose(q[0], np.maximum(values, floor) @ readout, atol=1e-13)


@pytest.mark.parametrize("bad", ["i", "c", None])
def test_the_error_of_either_policy_shows_that_learning_diverges(bad):
    rng = np.random.default_rng(0)
    networks = drawn_networks(2, (3, 1, 4, 4), np.float64, 0)
    values = NetworkValues.new(networks, np.ones((2, 3)), 3, floor=0.0, head=1.0, projects=False)
    state, error_i, error_c = a_state(np.float64, rng), np.zeros(3), np.zeros(3)
    values.begin_task()
    values.look(0, 0, state)
    values.recall(0, 1, state, error_i, error_c)
    if bad is not None:
        {"i": error_i, "c": error_c}[bad][1] = 1e19
    assert values.descend(0, 1, state, error_i, error_c, 0.0) == (bad is None)
