"""Models, codes and rewards of kernels, interpreted, against autograd and NumPy; see whole paths, too."""

from typing import Any, NamedTuple

import numpy as np
import pytest
import torch

from sfr_fa.agents import MlpRewardModel
from sfr_fa.agents.cumulants import LogitsPerAction, TentCode, delta_rule, squares
from sfr_fa.engines.packing import pack_rewards
from sfr_fa.feature_codes import CellCode, FourierCode, KernelCode
from sfr_fa.feature_spaces import BoxFeatures
from sfr_fa.interactions import sample_parity_task
from sfr_fa.kernels import models
from sfr_fa.kernels.loop import TableRewards
from sfr_fa.tasks import LinearTask, sample_racer_task
from tests.refusals import refused

RNG = np.random.default_rng(10)


def test_reward_models_descend_as_autograd_does():
    rng = np.random.default_rng(3)
    model = MlpRewardModel(5, rng).double()
    parameters = {name: value.detach().numpy().copy() for name, value in model.named_parameters()}
    W1, b1 = parameters["hidden.weight"], parameters["hidden.bias"]
    W2, b2 = parameters["output.weight"][0], parameters["output.bias"]
    points = rng.normal(size=(6, 5))
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05)
    for _ in range(20):
        phi, reward = rng.normal(size=5), float(rng.normal())
        loss = (reward - model(torch.from_numpy(phi)[None])[0]).square()
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        models.learn_mlp_reward(W1, b1, W2, b2, phi, reward, 0.05)
    readout = np.zeros(6)
    models.read_mlp_reward(W1, b1, W2, b2, points, readout)
    np.testing.assert_allclose(readout, model(torch.from_numpy(points)).detach().numpy(), atol=1e-12)

    weights, phi = rng.normal(size=5), rng.normal(size=5)
    expected = weights + 0.05 * 2 * (0.7 - phi @ weights) * phi
    models.learn_linear_reward(weights, phi, 0.7, 0.05)
    np.testing.assert_allclose(weights, expected, atol=1e-14)
    models.read_linear_reward(weights, points, readout)
    np.testing.assert_allclose(readout, points @ weights, atol=1e-14)


@pytest.mark.parametrize(
    ("rule", "steps_of"), [(delta_rule, models.delta_steps), (squares, models.square_steps)]
)
def test_the_one_step_model_descends_as_autograd_does(rule, steps_of):
    """Its probabilities after the step come from |s|^2, without a second product with the weights."""
    rng = np.random.default_rng(4)
    model = LogitsPerAction(16, 1, 6, rng).double()
    theta = model.weight.detach().numpy()[0].copy()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.4)
    logits, steps, probabilities = np.zeros(6), np.zeros(6), np.zeros(6)
    for _ in range(20):
        state, feature = rng.random(16), int(rng.integers(6))
        loss = rule(model(torch.from_numpy(state)[None])[0, 0], feature)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        models.predict_feature(theta, state, logits, probabilities)
        steps_of(probabilities, feature, 0.4, steps)
        models.move_one_step_model(theta, state, steps, logits, probabilities)
        after = model(torch.from_numpy(state)[None])[0, 0].softmax(-1).detach().numpy()
        np.testing.assert_allclose(probabilities, after, atol=1e-12)
    np.testing.assert_allclose(theta, model.weight.detach().numpy()[0], atol=1e-12)


def test_codes_of_features():
    rng = np.random.default_rng(5)
    code = TentCode(BoxFeatures(np.array([0.0, -1.0]), np.array([1.0, 2.0])), bins=7)
    tents = np.zeros(14)
    for _ in range(20):
        phi = rng.uniform(code.space.low, code.space.high)
        models.tent_code(phi, code.centres.copy(), tents)
        np.testing.assert_allclose(tents, code.encode(phi).ravel(), atol=1e-14)
    H, state, next_state, phi = rng.normal(size=(3, 32)), rng.random(16), rng.random(16), np.zeros(3)
    models.learned_features(H[:, :16].copy(), H[:, 16:].copy(), state, next_state, phi)
    np.testing.assert_allclose(phi, 1 / (1 + np.exp(-H @ np.append(state, next_state))), rtol=1e-13)


CENTRES = np.array([[0.2, 0.1], [0.7, 0.4], [0.7, 0.9], [0.1, 0.8]])
WAVES = FourierCode.random(2, 5, 0.4, np.random.default_rng(7))


@pytest.mark.parametrize(
    ("code", "write", "arguments"),
    [
        (KernelCode(CENTRES, 0.3), models.bump_code, (CENTRES, 0.3)),
        (CellCode(CENTRES), models.cell_code, (CENTRES,)),
        (WAVES, models.wave_code, (WAVES.frequencies.copy(), WAVES.phases.copy())),
    ],
    ids=["bumps", "cells", "waves"],
)
def test_joint_codes_of_features(code, write, arguments):
    """Far from all centres, at one of them, and as near to one as to another, too."""
    places = np.vstack([np.random.default_rng(8).random((20, 2)), [[60.0, -70.0], CENTRES[3], [0.7, 0.65]]])
    found = np.full(code.size, np.nan)
    for phi in places:
        write(phi, *arguments, found)
        np.testing.assert_allclose(found, code.encode(phi), atol=1e-13)


# --- Rewards ------------------------------------------------------------------------------------------


class Shown(NamedTuple):
    """A world whose last step has shown these features."""

    phi: Any = None
    number: int = 0

    def features(self, exact):
        exact[:] = self.phi

    def feature(self):
        return self.number


@pytest.mark.parametrize(
    "task",
    [LinearTask([0.5, -2.0, 1.0]), sample_racer_task(RNG), sample_parity_task(RNG)],
    ids=lambda task: type(task).__name__,
)
def test_rewards_of_features_in_a_box(task):
    """Up to its border, which may be rounded; what lies outside has no reward."""
    space, phi = BoxFeatures(np.zeros(3), np.ones(3)), np.zeros(3)
    rewards = pack_rewards(task, space, np.dtype(np.float64))
    for place in (*np.random.default_rng(9).random((10, 3)), np.zeros(3), np.ones(3)):
        number, reward = rewards.observe(Shown(place), phi)
        assert number == 0
        assert reward == pytest.approx(float(task.reward(place)), rel=1e-13, abs=1e-15)
        np.testing.assert_array_equal(phi, place)
    for place, edge in (([0.5, -1e-9, 0.5], [0.5, 0, 0.5]), ([0.5, 0.5, 1 + 9e-7], [0.5, 0.5, 1])):
        number, reward = rewards.observe(Shown(np.array(place)), phi)
        assert (number, reward) == (0, pytest.approx(float(task.reward(edge)), rel=1e-13))
        np.testing.assert_array_equal(phi, edge)
        np.testing.assert_array_equal(phi, space.check(place))
    for place in ([0.5, -2e-6, 0.5], [0.5, 0.5, 1 + 2e-6], [np.nan, 0.5, 0.5]):
        assert rewards.observe(Shown(np.array(place)), phi) == (-1, 0.0)
        with refused("must lie between"):
            space.check(place)


def test_rewards_of_a_finite_set():
    rewards, phi = TableRewards(np.array([1.0, 2.0, 3.0]), np.eye(3)), np.zeros(3)
    for number in range(3):
        assert rewards.observe(Shown(number=number), phi) == (number, number + 1.0)
        np.testing.assert_array_equal(phi, np.eye(3)[number])
    for number in (-1, 3):
        assert rewards.observe(Shown(number=number), phi) == (-1, 0.0)
