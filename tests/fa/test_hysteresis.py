"""Hysteresis in agents: the tabular rule of sfr_theory on one-hot states, and refusal elsewhere."""

import numpy as np
import pytest
import torch

from sfr_fa.agents import Hysteresis, Replay, Transition, hysteresis, make_agent, no_clip
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask
from sfr_theory import learning
from sfr_theory.checks.hysteresis import with_twins
from sfr_theory.checks.settings import Instance
from sfr_theory.learning import Constant, FeatureEstimate, SlowDecay, learn_xi, sample_path
from sfr_theory.random_mdp import Shape, garnet
from sfr_theory.solve import optimal
from tests.refusals import refused

RULE = Hysteresis(scale=0.5, kappa=0.2)


def twins():
    """An MDP in which every action ties with another, and its reward."""
    mdp = garnet(np.random.default_rng(2), 1, Shape(3, 2, 3), 0.75)[0]
    reward = np.array([1.0, -0.5, 0.25])
    instance = with_twins(Instance(mdp, reward, optimal(mdp, reward)))
    return instance.mdp, instance.reward


def agent_for(mdp, **settings):
    return make_agent(
        "SFR", mdp.num_states, mdp.num_actions, DiscreteFeatures(np.eye(mdp.num_features)), seed=1,
        gamma=mdp.gamma, learning_rate=0.125, clip=no_clip, dtype=torch.float64, **settings,
    )  # fmt: skip


def follow(agent, mdp, path, reward, steps):
    one_hot, features = np.eye(mdp.num_states), np.eye(mdp.num_features)
    for t in steps:
        phi = int(path.features[t])
        state, after = one_hot[path.states[t]], one_hot[path.next_states[t]]
        agent.learn(Transition(state, int(path.actions[t]), reward[phi], features[phi], after, False))


def table(agent, mdp, policy=0):
    with torch.no_grad():
        return agent.policies.modules[policy](torch.eye(mdp.num_states, dtype=torch.float64)).numpy()


def test_on_one_hot_states_it_is_the_tabular_rule(tmp_path):
    """A rate alpha is a tabular step size of 2 alpha. The run is saved halfway, and goes on from the file.

    `test_agents` compares agents without the rule with the tabular learner.
    """
    mdp, reward = twins()
    path = sample_path(mdp, learning.uniform_behaviour(mdp), 400, np.random.default_rng(0), restart=0.1)
    agent, again = (agent_for(mdp, hysteresis=RULE) for _ in range(2))
    agent.start_task(LinearTask(reward))
    initial = table(agent, mdp).copy()
    follow(agent, mdp, path, reward, range(200))
    agent.save(tmp_path / "agent")
    again.load(tmp_path / "agent")
    follow(again, mdp, path, reward, range(200, 400))
    tabular = learning.TabularHysteresis(SlowDecay(RULE.scale, RULE.kappa), mdp.num_states)
    estimates = FeatureEstimate.indicator(mdp).along(path)
    steps = Constant(0.25)(path.visit_number)
    [expected] = learn_xi(mdp, path, reward, estimates, steps, initial, np.array([400]), tabular)
    np.testing.assert_allclose(table(again, mdp), expected, atol=1e-12)
    states = [np.frombuffer(state).argmax() for _, state in again.kept_actions.kept]
    assert dict(zip(states, again.kept_actions.kept.values(), strict=True)) == dict(enumerate(tabular.kept))
    other = agent_for(mdp)
    other.start_task(LinearTask(reward))
    follow(other, mdp, path, reward, range(400))
    assert np.abs(table(other, mdp) - expected).max() > 0.01  # the rule did something
    with refused("hysteresis"):
        other.load(tmp_path / "agent")


def test_source_policies_keep_their_own_actions():
    """One state, two actions of equal value for the source; policy 0 keeps 0, though 1 is slightly better."""
    mdp, reward = twins()
    agent = agent_for(mdp, hysteresis=Hysteresis(scale=10.0))
    path = sample_path(mdp, learning.uniform_behaviour(mdp), 60, np.random.default_rng(1), restart=0.1)
    agent.start_task(LinearTask(reward))
    follow(agent, mdp, path, reward, range(30))
    agent.start_task(LinearTask(-reward))
    assert {policy for policy, _ in agent.kept_actions.kept} == {0}
    follow(agent, mdp, path, -reward, range(30, 60))
    assert {policy for policy, _ in agent.kept_actions.kept} == {0, 1}
    assert set(agent.kept_actions.kept.values()) == {0}  # no value differs by as much as the threshold


def test_states_that_never_come_back_are_refused(monkeypatch):
    monkeypatch.setattr(hysteresis, "MAX_STATES", 3)
    kept = hysteresis.KeptActions(RULE)
    for k in (0, 1, 2, 2, 0):
        kept.choose(0, np.array([float(k)]), np.zeros(2), 1)
    with refused("states recur", "leave it out"):
        kept.choose(0, np.array([3.0]), np.zeros(2), 1)


@pytest.mark.parametrize(
    ("make", "place"),
    [
        (lambda: agent_for(twins()[0], hysteresis=0.5), "Hysteresis("),
        (lambda: agent_for(twins()[0], hysteresis=RULE, replay=Replay()), "replay"),
        (lambda: Hysteresis(0.0, 0.2), "scale"),
        (lambda: Hysteresis(1.0, -1.0), "kappa"),
        (lambda: Hysteresis(float("nan"), 0.2), "scale"),
    ],
)
def test_what_does_not_fit_is_refused(make, place):
    with refused(place):
        make()
