"""The parts of the linear kernels against NumPy; whole paths are compared in `test_engines`."""

import numpy as np
import pytest

from sfr_fa.kernels import linear
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


@pytest.mark.parametrize("values", [[0, 2, 2, 1], [2, 0, 2], [0, 1, 2], [3]])
def test_ties_go_to_the_first_action(values):
    assert linear.first_largest(np.array(values, dtype=float)) == np.argmax(values)


def test_values_of_one_action():
    rng = np.random.default_rng(6)
    theta, state, values = rng.normal(size=(2, 12, 16)), rng.random(16), np.zeros(3)
    linear.action_values(theta, 1, 6, state, values)
    np.testing.assert_allclose(values, theta[1, 6:9] @ state, rtol=1e-13)


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
