"""The parts of the networks' kernels against torch, and the racer's rewards against its tasks."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfr_fa.agents import FeatureSubnetworks, ValueShape, clip_at_zero, no_clip
from sfr_fa.agents.approximators import stacked_values
from sfr_fa.engines.packing import pack_rewards
from sfr_fa.environments.layouts import RACER_LAYOUT
from sfr_fa.kernels import mlp
from sfr_fa.kernels.arrays import part
from sfr_fa.kernels.network_values import best_row
from sfr_fa.tasks import sample_racer_task
from tests.fa.engine_checks import compiled

torch.set_num_threads(1)

SHAPES = st.sampled_from([(1, 1, 20, 20), (3, 1, 20, 20), (3, 11, 20, 20), (2, 5, 7, 9), (6, 3, 12, 4)])
DTYPES = st.sampled_from([np.float32, np.float64])
SEEDS = st.integers(0, 2**32 - 1)


def drawn_networks(policies, shape, dtype, seed):
    """K modules of the reference and their parameters in stacks, (K, ...) each."""
    G, U, first, second = shape
    rng = np.random.default_rng(seed)
    value_shape = ValueShape(120, 3, G, U)
    modules = [
        FeatureSubnetworks(value_shape, rng, hidden=(first, second)).to(
            torch.tensor(np.zeros(1, dtype)).dtype
        )
        for _ in range(policies)
    ]
    stacks = {
        name: torch.stack([dict(module.named_parameters())[name].detach() for module in modules])
        for name, _ in modules[0].named_parameters()
    }
    return modules, stacks


def layers(stacks):
    return tuple(
        tuple(stacks[f"{kind}.{layer}"].numpy() for layer in range(3)) for kind in ("weights", "biases")
    )


def a_state(dtype, rng):
    x, y, angle = rng.uniform((0, 0, -math.pi), (1, 1, math.pi))
    return RACER_LAYOUT.state_at(x, y, angle).astype(dtype)


@given(policies=st.integers(1, 9), shape=SHAPES, dtype=DTYPES, seed=SEEDS)
def test_values_are_those_of_the_modules(policies, shape, dtype, seed):
    """Sums of at most 120 products: an error of some 120 units of rounding."""
    modules, stacks = drawn_networks(policies, shape, dtype, seed)
    state = a_state(dtype, np.random.default_rng(seed))
    networks = mlp.pack(*layers(stacks))
    values = mlp.new_activations(networks)
    compiled(mlp.evaluate)(networks, 0, networks.shape.policies, state, values)
    G, U = shape[:2]
    ours = values.outputs.reshape(policies, G, 3, U).transpose(0, 2, 1, 3)
    theirs = stacked_values(modules[0], stacks, torch.from_numpy(state)[None])[:, 0].numpy()
    tolerance = 120 * np.finfo(dtype).eps * max(1.0, np.abs(theirs).max())
    np.testing.assert_allclose(ours.reshape(theirs.shape), theirs, rtol=0, atol=tolerance)


@given(
    policies=st.integers(1, 5), shape=SHAPES, dtype=DTYPES, seed=SEEDS, action=st.integers(0, 2),
    rate=st.floats(1e-4, 0.5),
)  # fmt: skip
def test_a_step_of_sgd_is_autograds(policies, shape, dtype, seed, action, rate):
    """All weights of one policy move as torch moves them, and those of no other policy move at all."""
    modules, stacks = drawn_networks(policies, shape, dtype, seed)
    rng = np.random.default_rng(seed + 1)
    state, k = a_state(dtype, rng), int(rng.integers(policies))
    G, U = shape[:2]
    target = rng.normal(size=(G, U)).astype(dtype)
    before = {name: stack.clone() for name, stack in stacks.items()}

    networks = mlp.pack(*layers(stacks))
    values, gradients = mlp.new_activations(networks), mlp.new_gradients(networks)
    compiled(mlp.evaluate)(networks, 0, networks.shape.policies, state, values)
    error = target - values.outputs.reshape(policies, G, 3, U)[k, :, action]
    compiled(mlp.descend)(networks, k, state, action, values, k, error.ravel(), 2 * rate, 1.0, gradients)
    stored = [array for kind in layers(stacks) for array in kind]
    for array, moved in zip(stored, mlp.unpack(networks, [a.shape for a in stored]), strict=True):
        array[...] = moved

    optimiser = torch.optim.SGD(modules[k].parameters(), lr=rate)
    output = modules[k](torch.from_numpy(state)[None])[0, action].reshape(G, U)
    (torch.from_numpy(target) - output).square().sum().backward()
    optimiser.step()
    for name, parameter in modules[k].named_parameters():
        moved = stacks[name].numpy()
        gradient = parameter.grad.numpy()
        scale = max(1.0, rate * float(np.abs(gradient).max()))
        np.testing.assert_allclose(
            moved[k], parameter.detach().numpy(), rtol=0, atol=300 * np.finfo(dtype).eps * scale, err_msg=name
        )
        others = np.arange(policies) != k
        np.testing.assert_array_equal(moved[others], before[name].numpy()[others], err_msg=name)


@given(policies=st.integers(2, 40), shape=SHAPES, dtype=DTYPES, seed=SEEDS)
@settings(max_examples=25)
def test_equal_policies_have_equal_values_to_the_bit(policies, shape, dtype, seed):
    """Whatever their place, evaluated with the others or alone, so that the first of copies wins."""
    _, stacks = drawn_networks(1, shape, dtype, seed)
    copies = {name: stack.expand(policies, *stack.shape[1:]).clone() for name, stack in stacks.items()}
    state = a_state(dtype, np.random.default_rng(seed))
    networks = mlp.pack(*layers(copies))
    values, alone = mlp.new_activations(networks), mlp.new_activations(networks)
    compiled(mlp.evaluate)(networks, 0, networks.shape.policies, state, values)
    readout = np.random.default_rng(seed).normal(size=shape[0] * shape[1]).astype(dtype)
    spread, total = np.zeros_like(networks.b3), np.zeros(networks.shape.outputs, dtype)
    compiled(mlp.spread_readout)(readout, networks.shape, 3, 0, spread)
    q = np.zeros((policies, 3), dtype)
    for k in range(policies):
        compiled(mlp.evaluate)(networks, k, k + 1, state, alone)
        compiled(mlp.read_out)(values.outputs, networks.shape, k, spread, 0, 0.0, total, q, k)
    np.testing.assert_array_equal(alone.outputs, values.outputs)
    for of_policies in (values.outputs.reshape(policies, -1), q):
        np.testing.assert_array_equal(of_policies, np.broadcast_to(of_policies[:1], of_policies.shape))
    assert compiled(best_row)(q) == 0


@given(seed=SEEDS, floor=st.sampled_from([0.0, -math.inf]))
def test_readout_clips_where_it_is_told(seed, floor):
    """The values of policy 1 with the readout of policy 2, as torch has them."""
    rng = np.random.default_rng(seed)
    shape = mlp.NetworkShape(policies=3, groups=3, units1=4, units2=4, outputs=33)
    outputs, readout = rng.normal(size=(3, 3, 33)), rng.normal(size=33)
    spread, total, q = np.zeros(3 * 3 * 33), np.zeros(33), np.zeros((1, 3))
    compiled(mlp.spread_readout)(readout, shape, 3, 2, spread)
    compiled(mlp.read_out)(outputs.ravel(), shape, 1, spread, 2, floor, total, q, 0)
    clip = clip_at_zero if floor == 0 else no_clip
    values = outputs[1].reshape(3, 3, 11).transpose(1, 0, 2).reshape(3, 33)
    expected = (clip(torch.from_numpy(values)).numpy() * readout).sum(axis=1)
    np.testing.assert_allclose(q[0], expected, rtol=0, atol=1e-13)


@given(policies=st.integers(1, 5), shape=SHAPES, dtype=DTYPES, seed=SEEDS)
@settings(max_examples=25)
def test_projected_heads_read_what_all_outputs_say(policies, shape, dtype, seed):
    """And equal policies tie to the bit; a single action is to the bit what the evaluation of all says."""
    _, stacks = drawn_networks(policies, shape, dtype, seed)
    twice = {name: torch.cat([stack, stack]) for name, stack in stacks.items()}
    networks, (G, U) = mlp.pack(*layers(twice)), shape[:2]
    rng = np.random.default_rng(seed)
    state, readout = a_state(dtype, rng), rng.normal(size=G * U).astype(dtype)
    values = mlp.new_activations(networks)
    compiled(mlp.evaluate)(networks, 0, networks.shape.policies, state, values)
    heads, biases = np.zeros((3, len(networks.b2)), dtype), np.zeros((2 * policies, 3), dtype)
    q, value = np.zeros((2 * policies, 3), dtype), np.zeros(G * U, dtype)
    outputs = values.outputs.reshape(2 * policies, G, 3, U)
    for k in range(2 * policies):
        for a in range(3):
            compiled(mlp.project)(networks, k, a, readout, heads, biases)
            compiled(mlp.action_value)(networks, k, a, values, value)
            np.testing.assert_array_equal(value.reshape(G, U), outputs[k, :, a])
        compiled(mlp.read_projection)(values, networks.shape, k, heads, biases, q)
    expected = np.einsum("kgaj,gj->ka", outputs.astype(float), readout.reshape(G, U).astype(float))
    tolerance = 200 * np.finfo(dtype).eps * max(1.0, np.abs(outputs).max()) * np.abs(readout).sum()
    np.testing.assert_allclose(q, expected, rtol=0, atol=tolerance)
    np.testing.assert_array_equal(q[:policies], q[policies:])


@given(K=st.integers(1, 6), seed=SEEDS)
def test_the_first_of_the_best_policies_wins(K, seed):
    """Few different numbers, so that most draws have ties."""
    q = np.random.default_rng(seed).integers(0, 3, (K, 3)).astype(np.float32)
    assert compiled(best_row)(q) == int(q.argmax()) // 3


def test_not_a_number_passes_through_the_layers():
    """Or a diverged network would look like a dead one."""
    values = np.array([-5.0, math.nan, -1.0, 2.0, 5e-324, math.inf, -5.0])
    compiled(mlp.relu)(values, 1, 5)
    np.testing.assert_array_equal(values, [-5.0, math.nan, 0.0, 2.0, 5e-324, math.inf, -5.0])


@part()
def observed(rewards, world, phi):
    return rewards.observe(world, phi)


@given(seed=SEEDS)
@settings(max_examples=20)
def test_rewards_are_those_of_the_task(seed):
    """To rounding: exp may come from another library."""
    rng = np.random.default_rng(seed)
    task, world, phi = sample_racer_task(rng), RACER_LAYOUT.new_world(), np.zeros(3)
    world.reset(rng)
    rewards = pack_rewards(task, RACER_LAYOUT.feature_space, np.dtype(np.float64))
    number, reward = compiled(observed)(rewards, world, phi)
    expected = np.zeros(3)
    world.features(expected)
    np.testing.assert_array_equal(phi, expected)
    assert number == 0
    assert reward == pytest.approx(float(task.reward(phi)), rel=1e-14)


def test_compiled_and_interpreted_values_agree():
    """Up to fused multiplications: sums of at most 120 products of numbers below 1."""
    _, stacks = drawn_networks(3, (3, 11, 20, 20), np.float32, 0)
    networks = mlp.pack(*layers(stacks))
    state = a_state(np.float32, np.random.default_rng(0))
    one, other = mlp.new_activations(networks), mlp.new_activations(networks)
    compiled(mlp.evaluate)(networks, 0, networks.shape.policies, state, one)
    mlp.evaluate(networks, 0, networks.shape.policies, state, other)
    np.testing.assert_allclose(one.outputs, other.outputs, rtol=0, atol=120 * np.finfo(np.float32).eps)
