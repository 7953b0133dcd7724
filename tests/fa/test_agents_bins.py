"""Bins of the tent code: one number for all dimensions, or one for each."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from sfr_fa.agents import AGENT_SPECS, Transition, make_agent
from sfr_fa.agents.cumulants import TentCode
from sfr_fa.agents.policies import CopyPrevious
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import AdditiveTask
from tests.fa.agent_checks import BOX

BINS = (3, 11, 5)


def test_each_dimension_has_the_code_of_its_own_number():
    code, phi = TentCode(BOX, BINS), np.random.default_rng(0).uniform(BOX.low, BOX.high, (50, 3))
    encoded = code.encode(phi)
    assert encoded.shape == (50, 3, 11)
    for k, count in enumerate(BINS):
        np.testing.assert_array_equal(encoded[:, k, :count], TentCode(BOX, count).encode(phi)[:, k])
        np.testing.assert_array_equal(encoded[:, k, count:], 0)
    np.testing.assert_allclose(encoded.sum(axis=-1), 1, atol=1e-15)
    assert TentCode(BOX, (5, 5, 5)) == TentCode(BOX, 5)


def zero(shape, rng):
    return torch.zeros(shape.num_actions, shape.dimensions, shape.state_dim)


def learner(agent, bins, space=BOX, **settings):
    spec = replace(AGENT_SPECS[agent], new_task=CopyPrevious(zero))
    return make_agent(
        spec, 4, 2, space, gamma=0.0, learning_rate=0.1, dtype=torch.float64, bins=bins, **settings
    )


def test_rows_learn_as_with_that_many_bins_everywhere():
    """Without discounting, what a dimension learns depends on its own code only."""
    mixed, plain = learner("CSFR", BINS), {count: learner("CSFR", count) for count in BINS}
    task, rng = AdditiveTask((np.sin, np.square, np.cos)), np.random.default_rng(1)
    for agent in (mixed, *plain.values()):
        agent.start_task(task)
    for _ in range(60):
        state, phi = rng.normal(size=4), rng.uniform(BOX.low, BOX.high)
        step = Transition(state, int(rng.integers(2)), 0.0, phi, rng.normal(size=4), False)
        for agent in (mixed, *plain.values()):
            agent.learn(step)
    weights = mixed.policies.parameters["weight"][0].reshape(2, 3, 11, 4)
    for k, count in enumerate(BINS):
        own = plain[count].policies.parameters["weight"][0].reshape(2, 3, count, 4)
        np.testing.assert_allclose(weights[:, k, :count], own[:, k], rtol=0, atol=1e-14)
        assert (weights[:, k, count:] == 0).all()
        vector = mixed.readouts[0].vector.reshape(3, 11)[k]
        np.testing.assert_array_equal(vector[:count], plain[count].readouts[0].vector.reshape(3, count)[k])
        assert (vector[count:] == 0).all()


@pytest.mark.parametrize("height", [0.0, -3.0, 1e20])
def test_a_dimension_that_never_changes_lies_in_its_first_bin(height):
    space = DiscreteFeatures(np.array([[0.0, height], [0.5, height], [1.0, height]]))
    agent = learner("CSFR", 5, space)
    agent.start_task(AdditiveTask((np.square, np.cos)))
    weights = agent.policies.parameters["weight"]
    for phi in np.tile(space.vectors, (150, 1)):
        state = np.eye(4)[int(2 * phi[0])]
        agent.learn(Transition(state, 0, 0.0, phi, state, False))
    assert (weights[0].reshape(2, 2, 5, 4)[:, 1, 1:] == 0).all()
    for phi in space.vectors:
        values = agent.values(np.eye(4)[int(2 * phi[0])])[0, 0]
        np.testing.assert_allclose(values, phi[0] ** 2 + np.cos(height), atol=1e-12)


def test_a_reward_model_is_read_at_the_bins_that_there_are():
    agent = learner("CSFR-R", BINS, reward_learning_rate=0.1)
    agent.start_task()
    agent.learn(Transition(np.ones(4), 0, 1.0, np.array([0.5, 0.5, 0.5]), np.ones(4), False))
    vector = agent.readouts[0].vector.reshape(3, 11)
    assert torch.isfinite(vector).all()
    w = agent.readouts[0].model.weight.detach().numpy()
    np.testing.assert_allclose(vector[2], [*(w[2] * np.linspace(0, 2, 5)), *np.zeros(6)], atol=1e-15)
