"""Hysteresis of the bootstrap action: what it keeps, when it lets go, and that xi then converges (T1-H)."""

import numpy as np
import pytest
from numpy.random import default_rng

from sfr_theory.arithmetic import exact_array, float_array
from sfr_theory.examples import coin_behind_two_doors
from sfr_theory.learning import (
    Constant,
    FeatureEstimate,
    Harmonic,
    Path,
    SlowDecay,
    TabularHysteresis,
    learn,
    learn_psi,
    learn_q,
    learn_xi,
    sample_path,
    uniform_behaviour,
)
from sfr_theory.operators import q_from_xi
from tests.refusals import refused


def two_actions(next_values, threshold, kept=0):
    """One update of state 0 that bootstraps on state 1, whose actions have the given values."""
    path = Path(*(np.array([number]) for number in (0, 0, 1, 0)))
    initial = exact_array([[[0], [0]], [[value] for value in next_values]])
    rule = TabularHysteresis(Constant(threshold), 2)
    rule.kept[1] = kept
    one = exact_array([1])
    values = learn(path, exact_array([[0]]), one, exact_array([1]), "1/2", initial, np.array([1]), rule)
    return rule.kept[1], values[0, 0, 0, 0]


def test_an_action_is_kept_until_another_is_better_by_more_than_the_threshold():
    assert two_actions([4, 6], 1) == (1, 3)  # better by 2 > 1: bootstraps on 6
    assert two_actions([5, 6], 1) == (0, exact_array(["5/2"])[0])  # by 1, which is not more than 1
    assert two_actions([6, 5], 1, kept=1) == (1, exact_array(["5/2"])[0])
    assert two_actions([6, 4], 1, kept=1) == (0, 3)


def coin_path(seed):
    """The example, and what learning along 200 steps of it is told."""
    example = coin_behind_two_doors()
    path = sample_path(example.mdp, uniform_behaviour(example.mdp), 200, default_rng(seed))
    estimates = FeatureEstimate.indicator(example.mdp).along(path)
    steps = Harmonic()(exact_array(path.visit_number))
    return example, (example.mdp, path, example.reward, estimates, steps), np.array([200])


def test_without_thresholds_to_cross_the_greedy_action_is_taken():
    """A threshold of 0 keeps ties only: the class iterate is that of Q-learning, exactly."""
    example, arguments, end = coin_path(1)
    plain = learn_xi(*arguments, example.initial, end)
    tied = learn_xi(*arguments, example.initial, end, TabularHysteresis(Constant(0), 4))
    assert (q_from_xi(plain, example.reward) == q_from_xi(tied, example.reward)).all()


def test_q_learning_and_sf_learning_keep_the_same_actions():
    """The rule reads values only, so the three twins stay twins."""
    example, arguments, end = coin_path(2)
    rules = [TabularHysteresis(Harmonic(), 4) for _ in range(3)]
    for rule in rules:
        rule.threshold = lambda count: Harmonic()(exact_array(count)) / 10
    xi = learn_xi(*arguments, example.initial, end, rules[0])
    q = learn_q(*arguments, 0 * example.initial[..., 0], end, rules[1])
    psi = learn_psi(*arguments, 0 * example.initial, end, rules[2])
    assert (q_from_xi(xi, example.reward) == q).all()
    assert (psi == xi).all()  # one-hot feature vectors
    assert all((rule.kept == rules[0].kept).all() for rule in rules)


@pytest.mark.parametrize(("scale", "kappa"), [(-1.0, 0.2), (1.0, 0.0), (float("nan"), 1.0)])
def test_thresholds_must_fade(scale, kappa):
    with refused("kappa"):
        SlowDecay(scale, kappa)


@pytest.mark.parametrize(
    "rule", [TabularHysteresis(Constant(0), 3), TabularHysteresis(lambda count: -1.0 * count, 4)]
)
def test_a_rule_that_does_not_fit_is_refused(rule):
    example = coin_behind_two_doors()
    mdp = example.mdp.to_float()
    path = sample_path(mdp, uniform_behaviour(mdp), 5, default_rng(0))
    estimates = FeatureEstimate.known(mdp).along(path)
    initial = float_array(example.initial)
    with refused("4 states and thresholds"):
        learn_xi(mdp, path, float_array(example.reward), estimates, np.ones(5), initial, np.array([5]), rule)
