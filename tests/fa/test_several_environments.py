"""A vector environment: one member is the plain engine, several are counted and learned from one by one."""

import gymnasium
import numpy as np
import pytest
import torch
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, SyncVectorEnv
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


def engine_in(environment, **changes):
    return make_engine("reference", environment, "SFR", **(SETTINGS | changes))


def several(n, **changes):
    return engine_in(SyncVectorEnv([lake] * n), **changes)


def weights(engine):
    return engine.agent.policies.parameters["weight"]


@pytest.mark.parametrize("changes", [{}, {"replay": Replay(capacity=50, batch=4)}], ids=["online", "replay"])
@pytest.mark.parametrize("is_terminal", [True, False])
def test_one_of_several_is_the_plain_engine(changes, is_terminal):
    limit = EpisodeLimit(is_terminal=is_terminal)
    plain = engine_in(lake(), limit=limit, **changes)
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


def test_policies_are_counted_once_for_each_transition_that_is_learned_from():
    engine = several(2)
    for task in TASKS:
        result = engine.run_task(task, 11)
        assert result.gpi_counts.sum() == result.steps == 11


def test_environments_that_another_engine_has_used_are_not_continued_in():
    shared = SyncVectorEnv([lake] * 2)
    one, other = (engine_in(shared) for _ in range(2))
    one.run_task(TASKS[0], 11)
    other.run_task(TASKS[2], 5)
    with refused("give each engine its own"):
        one.continue_task(10)
    one.run_task(TASKS[0], 5)


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
        (lambda: engine_in(SyncVectorEnv([lake], autoreset_mode=AutoresetMode.SAME_STEP)), "NEXT_STEP"),
    ],
)
def test_what_cannot_be_run_gets_a_sentence(make, place):
    with refused(place):
        make()


def test_limits_of_the_environments_hold():
    engine = engine_in(SyncVectorEnv([lambda: TimeLimit(lake(), 3)] * 2), epsilon=1.0)
    assert engine.run_task(TASKS[0], 60).episodes >= 20


# --- Environments that answer with something else -----------------------------------------------------


class Wrong(SyncVectorEnv):
    """Answers with other entries, or with something else altogether."""

    def __init__(self, **options):
        super().__init__([lake] * 2, **options)
        self.of_step = self.of_reset = lambda answer: answer

    def reset(self, **options):
        return self.of_reset(super().reset(**options))

    def step(self, actions):
        return self.of_step(super().step(actions))


def learner(**answers):
    engine = engine_in(Wrong())
    engine.environment.__dict__ |= answers
    return engine


def with_entry(place, value):
    return lambda answer: (*answer[:place], value, *answer[place + 1 :])


NOT_OBSERVATIONS = (None, "states", 3.0, np.zeros(()), np.zeros((3, 16)), [[0.0], [0.0, 1.0]],
                    np.full((2, 16), "0"), np.zeros((2, 16), dtype=complex))  # fmt: skip
NOT_REWARDS = (None, "11", 1.0, [1.0], np.ones(3), np.ones((2, 2)), [None, 1.0], ["a", "b"], [1j, 1j])
NOT_FLAGS = (None, "no", False, [False], [False] * 3, [0, 2], [0.5, 0.0], ["", ""], np.zeros((2, 2), bool))
NOT_INFOS = (None, "features", 3, [("features", 0)])
NOT_FEATURES = (3, {"features": 0}, np.zeros(()), np.zeros((3, 2)), [[0.0, 0.0]])


@pytest.mark.parametrize(
    ("place", "value", "name"),
    [
        *((0, value, "observations") for value in NOT_OBSERVATIONS),
        *((1, value, "rewards") for value in NOT_REWARDS),
        *((2, value, "terminated") for value in NOT_FLAGS),
        *((3, value, "truncated") for value in NOT_FLAGS),
        *((4, value, "info") for value in NOT_INFOS),
        *((4, {"features": value}, "features") for value in NOT_FEATURES),
        (4, {"features": np.zeros((2, 2)), "_features": [1]}, "_features"),
    ],
)
def test_a_step_with_an_entry_of_another_type_is_refused_by_name(place, value, name):
    engine = learner(of_step=with_entry(place, value))
    with refused("environment", name):
        engine.run_task(TASKS[0], 3)
    engine.environment.of_step = lambda answer: answer
    result = engine.continue_task(3)
    assert (result.steps, result.episodes) == (3, 2), "the environments begin anew"


@pytest.mark.parametrize(
    ("place", "value", "words"),
    [
        (0, np.zeros((2, 5)), ("next state", "16")),
        (0, np.zeros((2, 4, 4)), ("next state", "16")),
        (0, np.full((2, 16), np.nan), ("next state", "nan")),
        (1, [np.nan, 0.0], ("reward", "nan")),
        (4, {}, ("feature",)),
        (4, {"features": np.full((2, 2), 7.0)}, ("feature",)),
        (4, {"features": np.zeros((2, 5))}, ("feature",)),
        (4, {"features": ["a", "b"]}, ("feature",)),
        # Zeros that Gymnasium has filled in are no features.
        (4, {"features": np.zeros((2, 2)), "_features": np.array([True, False])}, ("feature",)),
    ],
)
def test_single_states_and_features_are_checked_by_the_agent(place, value, words):
    engine = learner(of_step=with_entry(place, value))
    with refused(*words):
        engine.run_task(TASKS[0], 3)
    engine.environment.of_step = lambda answer: answer
    assert engine.continue_task(3).steps == 3


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        *(({"of_step": whole}, ("step", "terminated"))
          for whole in (lambda a: None, lambda a: a[:4], lambda a: a[0], list)),
        *(({"of_reset": start}, ("reset", "info")) for start in (lambda a: None, lambda a: a[0])),
        *(({"of_reset": with_entry(0, value)}, ("observations",)) for value in NOT_OBSERVATIONS),
    ],
)  # fmt: skip
def test_a_step_or_reset_of_another_form_is_refused(answers, words):
    with refused("environment", *words):
        learner(**answers).run_task(TASKS[0], 3)


def test_an_environment_may_write_over_what_it_has_returned():
    """It does with copy=False, and one of one's own may."""
    one, other = several(3), engine_in(SyncVectorEnv([lake] * 3, copy=False))
    for task in TASKS:
        np.testing.assert_array_equal(one.run_task(task, 100).actions, other.run_task(task, 100).actions)
    torch.testing.assert_close(weights(one), weights(other), rtol=0, atol=0)


def test_environments_without_features_are_for_agents_without():
    plain = SyncVectorEnv([lambda: gymnasium.make("CartPole-v1")] * 2)
    engine = make_engine("reference", plain, "Q", **SETTINGS)
    assert engine.run_task(TASKS[0], 20).steps == 20
    with refused("feature_space"):
        engine_in(plain)


def test_rewards_of_another_task_are_told():
    engine = learner(of_step=lambda answer: with_entry(1, answer[1] + 3)(answer))
    with pytest.warns(UserWarning, match="rewards 3 where the task says 0"):
        engine.run_task(TASKS[0], 3)


def test_environments_in_processes_walk_alike_and_are_sent_tasks_that_can_be():
    environments = AsyncVectorEnv([lake] * 2)
    try:
        engine, here = engine_in(environments), several(2)
        with refused("AsyncVectorEnv", "use SyncVectorEnv"):
            engine.run_task(lambda phi: phi[..., 1], 10)
        for task in TASKS[:2]:
            np.testing.assert_array_equal(
                engine.run_task(task, 100).actions, here.run_task(task, 100).actions
            )
    finally:
        environments.close()
