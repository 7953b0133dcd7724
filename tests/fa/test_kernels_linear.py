"""The parts of the linear kernels against NumPy and autograd."""

import numpy as np
import pytest
import torch

from sfr_fa.agents import MlpRewardModel
from sfr_fa.agents.cumulants import LogitsPerAction, TentCode, delta_rule, squares
from sfr_fa.feature_spaces import BoxFeatures
from sfr_fa.kernels import linear, models
from tests.fa.engine_checks import compiled

DTYPES = [np.float32, np.float64]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_and_readout(dtype):
    rng = np.random.default_rng(0)
    theta, state = rng.normal(size=(12, 128)).astype(dtype), rng.random(128).astype(dtype)
    all_values, all_q = np.zeros((2, 12), dtype), np.zeros((2, 4), dtype)
    values, q = all_values[1], all_q[1]
    compiled(linear.policy_values)(np.stack([-theta, theta]), 1, 0, 12, state, all_values)
    # n u |theta| |s| for sums of n = 128 products
    norms = float(np.linalg.norm(theta, axis=1).max()), float(np.linalg.norm(state))
    rounding = 128 * float(np.finfo(dtype).eps) * norms[0] * norms[1]
    np.testing.assert_allclose(values, theta.astype(float) @ state, atol=rounding)
    readout = np.array([1.0, -2.0, 0.5], dtype)
    for clip, clipped in ((True, np.maximum(values, 0)), (False, values)):
        best = compiled(linear.read_out)(all_values, 1, readout, clip, all_q)
        # Terms are added one by one in the precision of the values, not in float64.
        expected = np.zeros(4, dtype)
        for d in range(3):
            expected += readout[d] * clipped.reshape(4, 3)[:, d]
        np.testing.assert_array_equal(q, expected)
        assert best == q.max()
    assert not all_values[0].any()
    assert not all_q[0].any()
    assert compiled(linear.dot)(theta[0], theta[1]) == pytest.approx(
        float(theta[0] @ theta[1]), abs=10 * rounding
    )


@pytest.mark.parametrize("dtype", DTYPES)
def test_equal_policies_have_equal_values_to_the_bit(dtype):
    """Wherever they are in memory: a new policy is a copy of the last one, and the first must win."""
    rng = np.random.default_rng(1)
    buffer, state = np.zeros(5 * 12 * 128 + 7, dtype), rng.random(128).astype(dtype)
    policy = rng.normal(size=(12, 128)).astype(dtype)
    seen = set()
    for offset in range(7):
        copies = buffer[offset : offset + 5 * 12 * 128].reshape(5, 12, 128)
        copies[:] = policy
        values = np.zeros((5, 12), dtype)
        for k in range(5):
            compiled(linear.policy_values)(copies, k, 0, 4, state, values)
            compiled(linear.policy_values)(copies, k, 4, 12, state, values)
        seen |= {of_policy.tobytes() for of_policy in values}
    assert len(seen) == 1


def test_ties_go_to_the_first_action():
    assert compiled(linear.first_largest)(np.array([0.0, 2.0, 2.0, 1.0])) == 1


def test_descend_and_fold():
    rng = np.random.default_rng(2)
    theta, state, error = rng.normal(size=(3, 16)), rng.random(16), np.array([1.0, -2.0, 0.0])
    expected = theta + 0.1 * np.outer(error, state)
    policies = np.stack([np.concatenate([theta, theta])] * 2)
    assert compiled(linear.descend)(policies, 1, 3, state, error, 0.1)
    np.testing.assert_array_equal(policies[0], np.concatenate([theta, theta]))
    np.testing.assert_array_equal(policies[1, :3], theta)
    theta = policies[1, 3:]
    np.testing.assert_allclose(theta, expected, rtol=1e-14)
    assert not compiled(linear.descend)(theta[None].copy(), 0, 0, state, np.array([1.0, np.inf, 0.0]), 0.1)
    folded, v = np.ones((1, 2, 16)), np.array([0.5, 0.0, -1.0])
    both_actions = np.concatenate([np.ones_like(theta), theta])[None]
    compiled(linear.fold)(both_actions, 0, 1, v, folded)
    np.testing.assert_allclose(folded[0, 1], v @ theta, rtol=1e-13)
    assert (folded[0, 0] == 1).all()


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
        compiled(models.learn_mlp_reward)(W1, b1, W2, b2, phi, reward, 0.05)
    readout = np.zeros(6)
    compiled(models.read_mlp_reward)(W1, b1, W2, b2, points, readout)
    np.testing.assert_allclose(readout, model(torch.from_numpy(points)).detach().numpy(), atol=1e-12)

    weights, phi = rng.normal(size=5), rng.normal(size=5)
    expected = weights + 0.05 * 2 * (0.7 - phi @ weights) * phi
    compiled(models.learn_linear_reward)(weights, phi, 0.7, 0.05)
    np.testing.assert_allclose(weights, expected, atol=1e-14)


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
        compiled(models.predict_feature)(theta, state, logits, probabilities)
        compiled(steps_of)(probabilities, feature, 0.4, steps)
        compiled(models.move_one_step_model)(theta, state, steps, logits, probabilities)
        after = model(torch.from_numpy(state)[None])[0, 0].softmax(-1).detach().numpy()
        np.testing.assert_allclose(probabilities, after, atol=1e-12)
    np.testing.assert_allclose(theta, model.weight.detach().numpy()[0], atol=1e-12)


def test_the_delta_rule_is_the_papers_update_of_the_model_carried_to_weights():
    """eq:sf_model_update: + beta (1[phi_t = phi] - p~), here times the state."""
    model = LogitsPerAction(3, 1, 4, np.random.default_rng(5)).double()
    state, feature, beta = torch.tensor([0.5, 0.0, 2.0], dtype=torch.float64), 2, 0.3
    before = model.weight.detach().clone()
    p = model(state[None])[0, 0].softmax(-1).detach()
    delta_rule(model(state[None])[0, 0], feature).backward()
    moved = before[0] + beta * torch.outer(torch.eye(4, dtype=torch.float64)[feature] - p, state)
    torch.testing.assert_close(before[0] - beta * model.weight.grad[0], moved)


def test_codes_of_features():
    rng = np.random.default_rng(5)
    code = TentCode(BoxFeatures(np.array([0.0, -1.0]), np.array([1.0, 2.0])), bins=7)
    tents = np.zeros(14)
    for _ in range(20):
        phi = rng.uniform(code.space.low, code.space.high)
        compiled(models.tent_code)(phi, code.centres.copy(), tents)
        np.testing.assert_allclose(tents, code.encode(phi).ravel(), atol=1e-14)
    H, state, next_state, phi = rng.normal(size=(3, 32)), rng.random(16), rng.random(16), np.zeros(3)
    compiled(models.learned_features)(H[:, :16].copy(), H[:, 16:].copy(), state, next_state, phi)
    np.testing.assert_allclose(phi, 1 / (1 + np.exp(-H @ np.append(state, next_state))), rtol=1e-13)
