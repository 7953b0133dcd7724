"""A vector environment: one member is the plain engine, several are counted and learned from one by one."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.wrappers import TimeLimit

from sfr_fa.agents import Replay
from sfr_fa.engines import EpisodeLimit, make_engine
from sfr_fa.environments.adapters import OneHot, WithFeatures
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask
from tests.refusals import refused

SPACE = DiscreteFeatures([[0, 0], [1, 0], [0, 1]])
TASKS = [LinearTask([0, 1]), LinearTask([-1, 1]), LinearTask([1, 0])]
SETTINGS = {"seed": 0, "gamma": 0.9, "epsilon": 0.5, "learning_rate": 0.2, "dtype": torch.float64}


def lake():
    env = gymnasium.make("FrozenLake-v1", is_slippery=False, max_episode_steps=15)
    cells = env.unwrapped.desc.ravel()

    def features(state, action, next_state, info):
        return [float(cells[next_state.argmax()] == cell) for cell in (b"H", b"G")]

    return WithFeatures(OneHot(env), features, SPACE, TASKS[0])


def several(n, **changes):
    return make_engine("reference", SyncVectorEnv([lake] * n), "SFR", **(SETTINGS | changes))


def weights(engine):
    return engine.agent.policies.parameters["weight"]


@pytest.mark.parametrize("changes", [{}, {"replay": Replay(capacity=50, batch=4)}], ids=["online", "replay"])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_one_of_several_is_the_plain_engine(changes, is_terminal):
    limit = EpisodeLimit(is_terminal=is_terminal)
    plain = make_engine("reference", lake(), "SFR", limit=limit, **(SETTINGS | changes))
    vector = several(1, limit=limit, **changes)
    for task in TASKS:
        one, other = plain.run_task(task, 200), vector.run_task(task, 200)
        np.testing.assert_array_equal(one.actions, other.actions)
        np.testing.assert_array_equal(one.gpi_counts, other.gpi_counts)
        assert (one.total_reward, one.episodes) == (other.total_reward, other.episodes)
    torch.testing.assert_close(weights(plain), weights(vector), rtol=0, atol=1e-13)


def test_each_transition_is_learned_from_once_by_the_policy_that_led_there():
    """The transitions that the environments report, replayed by hand on an agent of one's own."""
    engine, twin = several(3), several(3).agent
    for number, task in enumerate(TASKS):
        learned, learn = [], engine.agent.learn
        engine.agent.learn = lambda step, source: (learned.append((step, source)), learn(step, source))  # noqa: B023
        result = engine.run_task(task, 100)
        engine.agent.learn = learn
        assert len(learned) == 100
        twin.start_task(task)
        for step, source in learned:
            twin.learn(step, source)
        torch.testing.assert_close(weights(engine), twin.policies.parameters["weight"], rtol=0, atol=0)
        assert {source for _, source in learned} <= set(range(number + 1))
        # No step leads from the end of an episode to the start of the next one.
        assert not any(
            step.state.argmax() != 0 and step.next_state.argmax() == 0 and step.state.argmax() not in (1, 4)
            for step, _ in learned
        )
        assert result.total_reward == sum(step.reward for step, _ in learned)


def test_in_pieces_and_at_once_are_the_same():
    whole, pieces = several(4), several(4)
    whole.run_task(TASKS[0], 101)
    pieces.run_task(TASKS[0], 42)
    pieces.continue_task(59)
    torch.testing.assert_close(weights(whole), weights(pieces), rtol=0, atol=0)


def test_several_are_evaluated_in_one():
    engine = several(2)
    engine.run_task(TASKS[0], 2000)
    assert engine.evaluate(TASKS[0], episodes=1, environment=lake()).returns.tolist() == [1.0]
    with refused("environment="):
        engine.evaluate(TASKS[0])


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: several(2, limit=EpisodeLimit(10)), "TimeLimit"),
        (
            lambda: make_engine(
                "reference", SyncVectorEnv([lake], autoreset_mode=AutoresetMode.SAME_STEP), "SFR", **SETTINGS
            ),
            "NEXT_STEP",
        ),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(make, place):
    with refused(place):
        make()


def test_limits_of_the_environments_hold():
    engine = make_engine(
        "reference", SyncVectorEnv([lambda: TimeLimit(lake(), 3)] * 2), "SFR", **SETTINGS | {"epsilon": 1.0}
    )
    assert engine.run_task(TASKS[0], 60).episodes >= 20
