"""Finite MDPs as environments: the same dynamics, the exact values are learned, bad tables are refused."""

from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.wrappers import TimeLimit, TransformReward

from sfr_fa.engines import make_engine
from sfr_fa.environments.table import TableEnv
from sfr_fa.tasks import LinearTask, TableTask
from sfr_theory.mdp import FiniteMDP
from sfr_theory.solve import optimal
from tests.refusals import refused


def lake(**options):
    env = gymnasium.make("FrozenLake-v1", success_rate=0.8, **options)
    cells = env.unwrapped.desc.ravel()
    return TableEnv.from_gymnasium(
        env, lambda s, a, after, reward: [float(cells[after] == b"H"), float(cells[after] == b"G")], gamma=0.9
    )


def reward_as_feature(env):
    return TableEnv.from_gymnasium(env, lambda s, a, after, reward: [reward])


def two_states(**changes):
    """Action 0 stays, action 1 goes to the other state with probability 3/4; features are next states."""
    kernel = np.zeros((2, 2, 2, 2))
    for s in range(2):
        kernel[s, 0, s, s] = 1
        kernel[s, 1, s, s], kernel[s, 1, 1 - s, 1 - s] = 0.25, 0.75
    return TableEnv(FiniteMDP(kernel, 0.5, [[0.0], [1.0]]), **changes)


def test_outcomes_come_as_often_as_the_table_says():
    env = two_states(start=[0.5, 0.5])
    starts, moved = 0, 0
    env.reset(seed=0)
    for _ in range(4000):
        before, _ = env.reset()
        after, _, terminated, truncated, info = env.step(1)
        starts += before[0]
        moved += before[0] != after[0]
        assert info["features"][0] == after[1]
        assert (terminated, truncated) == (False, False)
    assert starts / 4000 == pytest.approx(0.5, abs=0.03)
    assert moved / 4000 == pytest.approx(0.75, abs=0.03)


def test_an_episode_ends_where_that_of_gymnasium_ends():
    env = lake()
    assert (env.observation_space.shape, env.episode_steps) == ((16,), 100)
    state, _ = env.reset(seed=0)
    assert state.argmax() == 0
    shown = set()
    for _ in range(2000):
        state, _, terminated, truncated, info = env.step(env.action_space.sample())
        assert terminated == bool(info["features"].any())
        assert (state.sum() == 0) == terminated
        shown.add(tuple(info["features"]))
        if terminated or truncated:
            env.reset()
    assert shown == {(0, 0), (1, 0), (0, 1)}


@pytest.mark.parametrize(("inner", "outer", "limit"), [(100, 7, 7), (7, 100, 7)])
def test_the_shortest_time_limit_counts(inner, outer, limit):
    env = TimeLimit(gymnasium.make("FrozenLake-v1", max_episode_steps=inner), outer)
    assert reward_as_feature(env).episode_steps == limit


def test_the_exact_values_are_learned():
    frozen = np.array(
        [s not in (5, 7, 11, 12, 15) for s in range(16)]
    )  # no step starts in a hole or at the goal
    env, task = TableEnv(lake().mdp, frozen / frozen.sum(), ends=True), LinearTask([-0.5, 1])
    rates = {"epsilon": 0.8, "learning_rate": lambda t: 0.2 / (1 + t / 5_000)}
    engine = make_engine("compiled", env, "SFR", seed=0, gamma=0.9, **rates)
    engine.run_task(task, 2_000_000)
    exact = optimal(env.mdp, env.rewards(task)).q[:-1]
    learned = np.array([engine.values(state)[0] for state in np.eye(16)])
    np.testing.assert_allclose(learned[frozen], exact[frozen], atol=0.03)  # the noise of the last rates


def test_nothing_is_earned_after_the_end():
    """Each step costs 1, by a function that would charge for ever: n steps to go are worth -sum g^k."""
    env = lake()
    assert env.rewards(lambda phi: 0 * phi[..., 0] - 1).tolist() == [-1, -1, -1, 0]
    cliff = reward_as_feature(gymnasium.make("CliffWalking-v1"))  # where no step shows 0, as the end does
    assert cliff.rewards(TableTask(cliff.feature_space, [1.0, 2.0])).tolist() == [1, 2, 0]
    forever, earned = two_states(), np.array([1.0, 2.0])
    forever.rewards(SimpleNamespace(reward=lambda phi: earned))[-1] = 0
    assert earned[-1] == 2  # the task's own array
    last = optimal(env.mdp, env.rewards(lambda phi: phi[..., 1] - 1)).q[14].max()  # next to the goal
    assert -1 < last < 0


@pytest.mark.parametrize(
    ("make", "place", "fix"),
    [
        (lambda: TableEnv("lake"), "mdp", "FiniteMDP"),
        (lambda: TableEnv(FiniteMDP(two_states().mdp.kernel, 0.5)), "mdp", "feature_vectors"),
        (lambda: two_states(start=2), "start", "0 to 1"),
        (lambda: two_states(start=True), "start is True", "0 to 1"),
        (lambda: two_states(start=[0.5, 0.4]), "start", "sum to 1"),
        (lambda: TableEnv(FiniteMDP(np.ones((1, 1, 1, 1)), 0.5, [[0.0]]), ends=True), "ends", "no other"),
        (
            lambda: reward_as_feature(TransformReward(gymnasium.make("FrozenLake-v1"), abs)),
            "TransformReward",
            "leave it out",
        ),
        (lambda: reward_as_feature(gymnasium.make("Taxi-v4", fickle_passenger=True)), "state", "option"),
        (lambda: two_states(ends=True), "ends", "last feature"),
        (lambda: TableEnv.from_gymnasium(gymnasium.make("CartPole-v1"), lambda *_: [0]), "P", "tabular"),
    ],
)
def test_what_is_no_table_is_refused(make, place, fix):
    with refused(place, fix):
        make()
