"""Rewards with interactions, against their truth tables."""

import itertools

import gymnasium
import numpy as np
import pytest

from sfr_fa.interactions import (
    but_not,
    conjunction,
    distances_of_random_places,
    exclusive,
    of_gates,
    parity,
    sample_mixed_task,
    sample_parity_task,
)
from sfr_fa.tasks import ProductTask
from tests.refusals import refused

MU, SIGMA = np.array([0.2, 0.5, 0.8]), np.array([0.001, 0.002, 0.001])


@pytest.mark.parametrize(
    ("formula", "truth"),
    [
        (conjunction(0, 2), lambda a, b, c: a and c),
        (but_not(1, 0), lambda a, b, c: b and not a),
        (exclusive(0, 1), lambda a, b, c: a != b),
        (parity(3), lambda a, b, c: (a + b + c) % 2),
    ],
)
def test_gates_have_the_truth_table_of_their_name(formula, truth):
    task = of_gates(formula, MU, SIGMA)
    for gates in itertools.product((False, True), repeat=3):
        phi = np.where(gates, MU, 10.0)  # a gate is open at its mu and shut far away
        assert task.reward(phi) == pytest.approx(float(truth(*gates)), abs=1e-12)


def test_rewards_are_sums_of_products_of_gaussians():
    task = ProductTask([2.0, -1.0], [[0.1, 0.2], [0.3, 0.0]], [[10.0, 5.0], [4.0, 0.0]])
    phi = np.array([[0.4, 0.6], [0.1, 0.2]])
    first = np.exp(-10 * (phi[:, 0] - 0.1) ** 2) * np.exp(-5 * (phi[:, 1] - 0.2) ** 2)
    second = np.exp(-4 * (phi[:, 0] - 0.3) ** 2)
    np.testing.assert_allclose(task.reward(phi), 2 * first - second)


@pytest.mark.parametrize("sample", [sample_parity_task, sample_mixed_task])
def test_rewards_of_sampled_tasks_stay_in_reach(sample):
    rewards = sample(np.random.default_rng(0)).reward(
        distances_of_random_places(np.random.default_rng(2), 2000)
    )
    assert rewards.min() > -1e-9
    assert 0.5 < rewards.max() < 2


def test_places_are_distances_on_the_torus():
    """No two of three distances of one place can be further apart than the markers are."""
    places = distances_of_random_places(np.random.default_rng(3), 5000)
    assert places.min() >= 0
    assert places.max() <= 1
    # Markers 1 and 2 are 0.35 apart.
    assert np.abs(places[:, 1] - places[:, 2]).max() <= 0.35 / 0.5**0.5 + 1e-12


@pytest.mark.parametrize(
    ("arguments", "place"),
    [
        (([1.0], [[0.1]], [[-1.0]]), "sharpness"),
        (([1.0, 2.0], [[0.1]], [[1.0]]), "coefficients"),
        (([1.0], [[0.1]], [[1.0, 2.0]]), "mu"),
    ],
)
def test_bad_input_names_the_place(arguments, place):
    with refused(place):
        ProductTask(*arguments)


@pytest.mark.parametrize("sample", [sample_mixed_task, sample_parity_task])
def test_a_gymnasium_environment_pays_what_the_task_says(sample):
    task = sample(np.random.default_rng(9))
    env = gymnasium.make("sfr_fa:sfr/Racer-v0", task=task)
    env.reset(seed=0)
    for _ in range(20):
        _, reward, _, _, info = env.step(env.action_space.sample())
        assert reward == pytest.approx(task.reward(info["features"]))
