"""Feature learning: the hand-written gradient against autograd, Adam against torch's, and what it finds."""

import numpy as np
import pytest
import torch

from sfr_fa.feature_learning import RewardedTransitions, learn_features, loss_and_gradients
from tests.refusals import refused


def some_data(seed, count=200, state_dim=4, tasks=3):
    rng = np.random.default_rng(seed)
    states, next_states = rng.normal(size=(2, count, state_dim))
    return RewardedTransitions(states, next_states, rng.normal(size=count), rng.integers(0, tasks, count))


def inputs_of(data):
    return np.concatenate([data.states, data.next_states], axis=1)


def printed_loss(x, rewards, tasks, matrix, weights):
    """mean over b of (sigmoid(x_b^T H) . w_{i_b} - r_b)^2."""
    return ((torch.sigmoid(x @ matrix) * weights[tasks]).sum(1) - rewards).square().mean()


@pytest.mark.parametrize("h", [1, 4, 8])
def test_the_gradient_is_that_of_autograd(h):
    data, rng = some_data(0), np.random.default_rng(1)
    matrix, weights = rng.normal(size=(8, h)), rng.normal(size=(3, h))
    batch = rng.integers(0, len(data), 128)
    directions = np.ascontiguousarray(matrix.T)
    directions_gradient, weights_gradient = np.empty_like(directions), np.empty_like(weights)
    loss = loss_and_gradients(
        inputs_of(data), data.rewards, data.tasks, batch, directions, weights,
        directions_gradient, weights_gradient, np.empty(h),
    )  # fmt: skip

    H, W = torch.tensor(matrix, requires_grad=True), torch.tensor(weights, requires_grad=True)
    expected = printed_loss(
        torch.tensor(inputs_of(data)[batch]), torch.tensor(data.rewards[batch]),
        torch.tensor(data.tasks[batch]), H, W,
    )  # fmt: skip
    expected.backward()
    assert loss == pytest.approx(expected.item(), rel=1e-13)
    np.testing.assert_allclose(directions_gradient.T, H.grad, rtol=0, atol=1e-14)
    np.testing.assert_allclose(weights_gradient, W.grad, rtol=0, atol=1e-14)


def test_learning_is_adam_on_the_printed_loss():
    """The same draws, the printed loss, torch.optim.Adam: the same H and w after 1,200 steps in float32.

    It covers the seam between two chunks. Adam divides by the root of small second moments, so float32
    rounding (6e-8) is amplified: weights of order 1 agree to 1e-3, and a wrong constant breaks that.
    """
    data, iterations, h = some_data(2), 1200, 3
    learned = learn_features(data, h, np.random.default_rng(3), iterations=iterations, batch_size=16)

    rng = np.random.default_rng(3)
    H = torch.tensor(rng.normal(0, 0.05, (8, h)).astype(np.float32), requires_grad=True)
    W = torch.tensor(rng.normal(0, 0.05, (3, h)).astype(np.float32), requires_grad=True)
    optimiser = torch.optim.Adam([H, W], lr=0.003)
    x, rewards = torch.tensor(inputs_of(data)).float(), torch.tensor(data.rewards).float()
    tasks = torch.tensor(data.tasks)
    losses = []
    for count in (1000, 200):
        for batch in rng.integers(0, len(data), (count, 16)):
            optimiser.zero_grad()
            loss = printed_loss(x[batch], rewards[batch], tasks[batch], H, W)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
    np.testing.assert_allclose(learned.matrix, H.detach(), atol=1e-3)
    np.testing.assert_allclose(learned.weights, W.detach(), atol=1e-3)
    np.testing.assert_allclose(learned.losses, [np.mean(losses[:1000]), np.mean(losses[1000:])], rtol=1e-4)
    assert np.abs(learned.matrix).max() > 0.5


def test_rewards_of_this_form_are_learned():
    """Rewards that are sigmoid features times weights are predicted, also by the map given to agents."""
    rng = np.random.default_rng(4)
    states, next_states = rng.normal(size=(2, 2000, 4))
    tasks = rng.integers(0, 5, 2000)
    true_matrix, true_weights = rng.normal(0, 1.5, (8, 2)), rng.normal(size=(5, 2))
    features = 1 / (1 + np.exp(-np.concatenate([states, next_states], axis=1) @ true_matrix))
    rewards = (features * true_weights[tasks]).sum(axis=1)
    data = RewardedTransitions(states, next_states, rewards, tasks)
    learned = learn_features(data, 2, np.random.default_rng(5), iterations=8000)
    assert learned.losses.shape == (8,)
    assert learned.losses[-1] < 0.01 * rewards.var()
    predicted = (learned.feature_map.of_states(states, next_states) * learned.weights[tasks]).sum(axis=1)
    assert np.mean((predicted - rewards) ** 2) < 0.01 * rewards.var()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"rewards": np.array([np.nan, 0.0])}, "must be a finite number"),
        ({"next_states": np.ones((2, 3))}, "they must agree"),
        ({"tasks": np.array([0, -1])}, "integers, counted from 0"),
        ({"tasks": np.array([0])}, "one entry for each of the 2 transitions"),
    ],
)
def test_bad_data_is_refused(change, sentence):
    good = {
        "states": np.ones((2, 2)), "next_states": np.ones((2, 2)), "rewards": np.ones(2),
        "tasks": np.array([0, 1]),
    }  # fmt: skip
    with refused(sentence):
        RewardedTransitions(**(good | change))


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("dimensions", 0), ("iterations", 0), ("batch_size", 0), ("learning_rate", 0),
        ("dimensions", True), ("iterations", 2.5), ("batch_size", "all"), ("learning_rate", np.nan),
        ("learning_rate", True), ("learning_rate", np.inf), ("initial_deviation", np.nan),
        ("initial_deviation", -1),
    ],
)  # fmt: skip
def test_settings_that_are_no_such_numbers_get_a_sentence(setting, value):
    settings = {"dimensions": 2, "iterations": 1} | {setting: value}
    with refused(f"{setting} is"):
        learn_features(some_data(0), rng=np.random.default_rng(0), **settings)
