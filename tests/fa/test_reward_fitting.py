"""Fitted weights: exact for linear rewards, optimal for others, and the printed rule as it is."""

import tracemalloc

import numpy as np
import pytest

from sfr_fa.feature_spaces import OBJECT_COLLECTION_FEATURES
from sfr_fa.reward_fitting import l1_weights, least_squares_weights, printed_rule_weights
from sfr_fa.tasks import nonlinearity, sample_general_task
from tests.refusals import refused

POINTS = OBJECT_COLLECTION_FEATURES.vectors


def test_l1_error_is_the_known_minimum():
    """min over w of sum_j |R_j - phi_j . w| = |R_2 - R_3 - R_4 + R_5| on the object collection's features."""
    rng = np.random.default_rng(1)
    for _ in range(20):
        task = sample_general_task(rng)
        weights = l1_weights(POINTS, task.rewards)
        error = np.abs(task.rewards - POINTS @ weights).sum()
        assert error == pytest.approx(nonlinearity(task), abs=1e-9)
        worse = np.abs(task.rewards - POINTS @ least_squares_weights(POINTS, task.rewards)).sum()
        assert error <= worse + 1e-9


def test_l1_is_the_median_in_one_dimension():
    """For a constant feature the L1-optimal weight is the median, least squares the mean."""
    ones, rewards = np.ones((5, 1)), np.array([0.0, 0.0, 1.0, 7.0, 100.0])
    assert l1_weights(ones, rewards) == pytest.approx([1.0])
    assert least_squares_weights(ones, rewards) == pytest.approx([21.6])


def test_least_squares_solves_the_normal_equations():
    rng = np.random.default_rng(2)
    points, rewards = rng.normal(size=(30, 4)), rng.normal(size=30)
    weights = least_squares_weights(points, rewards)
    np.testing.assert_allclose(points.T @ (rewards - points @ weights), 0, atol=1e-12)


def test_the_printed_rule_only_removes_the_mean_error():
    """All weights move by the same number until the mean error is 0; single errors stay."""
    task = sample_general_task(np.random.default_rng(3))
    start = np.random.default_rng(4).normal(0.0, 0.01, 5)
    weights = printed_rule_weights(POINTS, task.rewards, np.random.default_rng(4))
    np.testing.assert_allclose(weights - start, (weights - start)[0], atol=1e-12)
    errors = task.rewards - POINTS @ weights
    assert errors.mean() == pytest.approx(0, abs=1e-12)
    assert np.abs(errors).sum() > nonlinearity(task) + 0.1


def test_a_printed_rule_that_explodes_is_refused():
    """Features that sum to 3 overshoot: the mean error is multiplied by 1 - 3 at each step."""
    with refused("diverges"):
        printed_rule_weights(np.ones((4, 3)), np.ones(4), np.random.default_rng(0))


def test_l1_weights_of_many_points_take_little_memory():
    """Dense, the constraints of 5,000 points alone would take 10,000 x 5,003 x 8 bytes = 400 MB."""
    points = np.random.default_rng(2).random((5000, 3))
    weights = np.array([1.0, -2.0, 0.5])
    tracemalloc.start()
    try:
        np.testing.assert_allclose(l1_weights(points, points @ weights), weights, atol=1e-6)
        assert tracemalloc.get_traced_memory()[1] < 100e6
    finally:
        tracemalloc.stop()
