"""Environments that are not ours: where they are cut off, whose noise they draw, in how many threads."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from sfr_fa.engines import EpisodeLimit, make_engine
from sfr_fa.engines import base as engines_base
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask


class OneState(gymnasium.Env):
    """Every step shows the feature 1."""

    observation_space = gymnasium.spaces.Box(0, 1, (1,))
    action_space = gymnasium.spaces.Discrete(2)
    feature_space = DiscreteFeatures([[0.0], [1.0]])
    threads = 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.ones(1), {}

    def step(self, action):
        self.threads = torch.get_num_threads()
        return np.ones(1), 1.0, False, False, {"features": np.ones(1)}


class OwnNoise(OneState):
    """Every reset makes a generator, as environments from before Gymnasium's seeding do."""

    def reset(self, *, seed=None, options=None):
        self.np_random, _ = gymnasium.utils.seeding.np_random(seed)
        return np.ones(1), {}


def limited():
    return TimeLimit(OneState(), 10)


@pytest.mark.parametrize(
    ("make", "limit", "value"),
    [
        (limited, None, 10),
        (OneState, EpisodeLimit(10), 10),
        (lambda: SyncVectorEnv([limited] * 2), None, 10),
        (limited, EpisodeLimit(is_terminal=False), 10),
        (limited, EpisodeLimit(is_terminal=True), None),
    ],
)
def test_values_go_on_where_an_episode_is_cut_off(make, limit, value):
    """Reward 1 for ever at gamma = 0.9 is worth 10, whatever the limit, unless it counts as an end."""
    engine = make_engine(
        "reference", make(), "SFR", seed=0, gamma=0.9, epsilon=1.0, learning_rate=0.2, limit=limit
    )
    engine.run_task(LinearTask([1.0]), 2000)
    learned = engine.values(np.ones(1)).max()
    assert (learned == pytest.approx(10, abs=0.1)) if value else learned < 9


def test_in_worlds_a_limit_is_an_end_as_in_the_listings():
    for environment in (ObjectCollection(), SyncVectorEnv([ObjectCollection])):
        assert make_engine("reference", environment, "SFR", limit=EpisodeLimit()).limit.is_terminal


def test_an_environment_that_failed_when_it_was_told_its_task_is_told_again():
    class FailsOnce(OneState):
        told = 0

        def reset(self, *, seed=None, options=None):
            self.told += options is not None
            if options is not None and self.told == 1:
                raise RuntimeError
            return super().reset(seed=seed)

    engine = make_engine("reference", FailsOnce(), "SFR", seed=0)
    with pytest.raises(RuntimeError):
        engine.run_task(LinearTask([1.0]), 3)
    engine.continue_task(3)
    assert engine.environment.told == 2


def test_a_reset_that_makes_its_own_generator_is_named_and_the_task_goes_on():
    engine = make_engine("reference", TimeLimit(OwnNoise(), 10), "SFR", seed=0)
    with pytest.warns(UserWarning, match=r"np_random.*super\(\)\.reset"):
        engine.run_task(LinearTask([1.0]), 15)
    assert engine.environment.unwrapped.np_random is engine.streams.environment
    engine.continue_task(3)


@pytest.mark.parametrize("large", [False, True])
def test_small_networks_run_in_one_thread(monkeypatch, large):
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    monkeypatch.setattr(engines_base, "THREADS_FROM", 1 if large else 10**7)
    try:
        engine = make_engine("reference", OneState(), "SFR", seed=0)
        engine.run_task(LinearTask([1.0]), 3)
        assert engine.environment.threads == (2 if large else 1)
        assert torch.get_num_threads() == 2
    finally:
        torch.set_num_threads(before)
