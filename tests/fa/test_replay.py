"""Replay: the listing where memory and minibatch are one step, hand-computed where they are not."""

import copy

import numpy as np
import pytest
import torch

from experiments.peers import Network
from sfr_fa.agents import Replay, Transition, make_agent, policies
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask, sample_general_task
from tests.fa.engine_checks import engine_of
from tests.refusals import refused

LISTING = Replay(capacity=1, batch=1)


def learn_tasks(engine, tasks=3, steps=60):
    rng = np.random.default_rng(5)
    return [engine.run_task(sample_general_task(rng), steps) for _ in range(tasks)]


def assert_equal_weights(one, other):
    for name, stack in one.agent.policies.parameters.items():
        torch.testing.assert_close(stack, other.agent.policies.parameters[name], rtol=0, atol=0)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"approximator": Network},
        {"agent": "SF"},
        {"agent": "SFR-R"},
        {"agent": "MB SFR"},
        {"agent": "Q"},
    ],
    ids=lambda settings: " ".join(map(str, settings.values())) or "SFR",
)
def test_one_remembered_step_is_the_listing(settings):
    settings = {"agent": "SFR"} | settings
    plain, replay = engine_of("reference", **settings), engine_of("reference", **settings, replay=LISTING)
    for one, other in zip(learn_tasks(plain), learn_tasks(replay), strict=True):
        np.testing.assert_array_equal(one.actions, other.actions)
    assert_equal_weights(plain, replay)


@pytest.mark.parametrize("target_every", [None, 3])
def test_minibatches_and_target_networks_by_hand(target_every):
    """Two tasks of SF with linear values, by loops over steps and policies in NumPy."""
    rng, S, A = np.random.default_rng(0), 5, 3
    space = DiscreteFeatures([[0, 0], [1, 0], [0, 1], [1, 1]])
    gamma, alpha, replay = 0.9, 0.05, Replay(capacity=6, batch=4, every=2, target_every=target_every)
    agent = make_agent(
        "SF", S, A, space, seed=7, gamma=gamma, learning_rate=alpha, replay=replay, dtype=torch.float64
    )
    draws = copy.deepcopy(agent.memory.rng)
    tasks = [np.array([1.0, -0.5]), np.array([-1.0, 2.0])]
    memory, taken, minibatches = [None] * 6, 0, 0
    for i, w in enumerate(tasks):
        agent.start_task(LinearTask(w))
        weights = [agent.policies.parameters["weight"][k].numpy().copy() for k in range(i + 1)]
        targets = copy.deepcopy(weights)
        for _ in range(20):
            state, next_state = rng.normal(size=(2, S))
            q = [(theta @ state) @ w for theta in weights]
            source = int(np.argmax([q_k.max() for q_k in q]))
            step = (
                state,
                int(rng.integers(A)),
                space.vectors[rng.integers(4)],
                next_state,
                rng.random() < 0.2,
            )
            agent.learn(Transition(state, step[1], 0.0, step[2], next_state, bool(step[4])))
            memory[taken % 6] = (*step, source)
            taken += 1
            if taken % 2:
                continue
            read = weights if target_every is None else targets
            gradient = [np.zeros_like(theta) for theta in weights]
            for row in draws.integers(min(taken, 6), size=4):
                s, a, phi, s_next, terminal, c = memory[row]
                values = [theta @ s_next for theta in read]  # (A, n) each
                discount = 0.0 if terminal else gamma
                abar = int(np.max([v @ w for v in values], axis=0).argmax())
                concerned = {i: abar}
                if c != i:
                    concerned[c] = int((values[c] @ tasks[c]).argmax())
                for k, action in concerned.items():
                    error = phi + discount * values[k][action] - weights[k][a] @ s
                    gradient[k][a] -= 2 * np.outer(error, s) / 4
            weights = [theta - alpha * g for theta, g in zip(weights, gradient, strict=True)]
            minibatches += 1
            if target_every and minibatches % target_every == 0:
                targets = copy.deepcopy(weights)
        for k, theta in enumerate(weights):
            np.testing.assert_allclose(agent.policies.parameters["weight"][k], theta, rtol=0, atol=1e-12)
    assert {step[-1] for step in memory} == {0, 1}  # both kinds of source were learned from


def test_many_policies_at_once_are_what_each_says_alone(monkeypatch):
    engine = engine_of("reference", "SFR", approximator=Network)
    learn_tasks(engine)
    states = torch.randn(7, 113, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    one_by_one = engine.agent.policies.values(states)
    monkeypatch.setattr(policies, "FEW", 0)
    torch.testing.assert_close(engine.agent.policies.values(states), one_by_one, rtol=0, atol=1e-12)


def test_saved_in_the_middle_it_continues_bit_for_bit(tmp_path):
    settings = {"approximator": Network, "replay": Replay(capacity=50, batch=8, every=3, target_every=4)}
    engine, other = (engine_of("reference", "SFR", **settings) for _ in range(2))
    learn_tasks(engine)
    engine.save(tmp_path / "state")
    other.load(tmp_path / "state")
    for one in (engine, other):
        learn_tasks(one, tasks=1)
    assert_equal_weights(engine, other)
    with refused("replay"):
        engine_of("reference", "SFR", approximator=Network, replay=Replay(capacity=51)).load(
            tmp_path / "state"
        )


def test_steps_outlive_their_task_unless_policies_are_forgotten():
    remembered = {}
    for agent in ("SFR", "Q"):
        engine = engine_of("reference", agent, replay=Replay(capacity=500, batch=4))
        learn_tasks(engine)
        remembered[agent] = engine.agent.memory.steps
    assert remembered == {"SFR": 180, "Q": 60}


def test_exploration_is_the_same_with_and_without_a_memory():
    plain, replay = (engine_of("reference", "SFR", epsilon=1.0, replay=memory) for memory in (None, Replay()))
    [one], [other] = learn_tasks(plain, tasks=1), learn_tasks(replay, tasks=1)
    np.testing.assert_array_equal(one.actions, other.actions)


@pytest.mark.parametrize(
    ("settings", "place"),
    [({"capacity": 0}, "capacity"), ({"batch": 1.5}, "batch"), ({"every": True}, "every"),
     ({"target_every": 0}, "target_every"), ({"batch": None}, "batch")],
)  # fmt: skip
def test_sizes_are_positive_integers(settings, place):
    with refused(place):
        Replay(**settings)


def test_what_is_no_replay_is_refused():
    with refused("Replay("):
        engine_of("reference", "SFR", replay=32)
