"""The strategies give what the tests rely on."""

import numpy as np
import pytest
from hypothesis import Phase, find, settings
from hypothesis import strategies as st

from sfr_theory.solve import optimal, optimal_actions
from tests.strategies import mdps, problems, rewards

search = settings(max_examples=2000, phases=[Phase.generate])
with_reward = mdps().flatmap(lambda mdp: st.tuples(st.just(mdp), rewards(mdp)))


def has_tie(case):
    mdp, reward = case
    return (optimal_actions(optimal(mdp, reward).q).sum(axis=-1) > 1).any()


def has_unique_greedy_action(case):
    mdp, reward = case
    return mdp.num_actions > 1 and (optimal_actions(optimal(mdp, reward).q).sum(axis=-1) == 1).all()


def has_absorbing_state(case):
    states = range(case[0].num_states)
    return len(states) > 1 and any((case[0].transition[s, :, s] == 1).all() for s in states)


def has_unreachable_state(case):
    mdp = case[0]
    return mdp.num_states > 1 and (mdp.transition.sum(axis=(0, 1)) == 0).any()


def is_stochastic(case):
    return ((case[0].kernel > 0).sum(axis=(2, 3)) > 1).any()


@pytest.mark.parametrize(
    "condition",
    [
        has_tie,
        has_unique_greedy_action,
        has_absorbing_state,
        has_unreachable_state,
        is_stochastic,
        lambda case: case[0].gamma == 0,
        lambda case: float(case[0].gamma) > 0.9,
        lambda case: case[0].num_features > 1 and (case[1] < 0).all(),
        lambda case: case[0].num_features > 1 and (case[1] == 0).all(),
        lambda case: case[0].num_states == 1,
        lambda case: case[0].num_actions == 1,
    ],
)
def test_strategies_reach(condition):
    find(with_reward, condition, settings=search)


def test_problems_come_with_and_without_approximations():
    small = problems(max_states=2, max_actions=2, max_features=2)
    find(small, lambda problem: problem.approximations is None, settings=search)
    find(
        small,
        lambda problem: problem.approximations is not None and np.any(problem.approximations < 0),
        settings=search,
    )
