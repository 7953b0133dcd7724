"""Exact solutions: closed forms, identities, two arithmetics, and QuantEcon as an outside solver."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from quantecon.markov import DiscreteDP

from sfr_theory import solve
from sfr_theory.arithmetic import exact_array, float_array, matmul
from sfr_theory.errors import InputError
from sfr_theory.mdp import FiniteMDP, deterministic_mdp
from sfr_theory.operators import bellman_q, bellman_xi_policy, expected_reward, q_from_xi
from sfr_theory.random_mdp import FAMILIES, Shape, deterministic, dyadic, garnet
from sfr_theory.solve import optimal, optimal_actions, policy_psi, policy_q, policy_xi
from tests.refusals import refused
from tests.strategies import mdps, policies, rewards, stochastic_policies

with_policy = mdps(with_vectors=True).flatmap(
    lambda mdp: st.tuples(st.just(mdp), st.one_of(policies(mdp), stochastic_policies(mdp)), rewards(mdp))
)
with_reward = mdps().flatmap(lambda mdp: st.tuples(st.just(mdp), rewards(mdp)))


def test_xi_of_a_cycle_in_closed_form():
    """0 -> 1 -> 0 for ever, with feature 0 on the way out and feature 1 on the way back."""
    gamma = Fraction(9, 10)
    xi = policy_xi(deterministic_mdp([[1], [0]], [[0], [1]], gamma), np.zeros(2, dtype=int))
    even, odd = 1 / (1 - gamma**2), gamma / (1 - gamma**2)
    assert (xi[:, 0] == exact_array([[even, odd], [odd, even]])).all()


def test_optimal_choice_between_now_and_later():
    """Action 0 pays 1 now and stays; action 1 pays 0 and moves to a state that pays 3 for ever."""
    kernel = np.zeros((2, 2, 2, 3))
    kernel[0, 0, 0, 1] = kernel[0, 1, 1, 0] = kernel[1, :, 1, 2] = 1
    reward = np.array([0.0, 1.0, 3.0])
    patient = optimal(FiniteMDP(kernel, 0.5), reward)
    assert patient.policy[0] == 1
    np.testing.assert_allclose(patient.q, [[1 + 0.5 * 3, 3.0], [6.0, 6.0]], atol=1e-15)
    hasty = optimal(FiniteMDP(kernel, 0.25), reward)
    assert hasty.policy[0] == 0
    np.testing.assert_allclose(hasty.q[0], [4 / 3, 1.0], atol=1e-15)


@given(with_policy)
def test_identities_hold_exactly(case):
    mdp, policy, reward = case
    xi, q, psi = policy_xi(mdp, policy), policy_q(mdp, policy, reward), policy_psi(mdp, policy)
    assert (q_from_xi(xi, reward) == q).all()
    assert (xi.sum(axis=-1) == 1 / (1 - mdp.gamma)).all()
    assert (matmul(xi, mdp.linear_features) == psi).all()


@given(with_policy)
def test_xi_is_the_limit_of_its_series(case):
    """Two methods: the solve, and summing gamma^k p(phi_{t+k} | s, a) term by term."""
    mdp, policy, _ = case
    mdp, policy = mdp.to_float(), policy if policy.dtype.kind == "i" else float_array(policy)
    choice = np.eye(mdp.num_actions)[policy] if policy.dtype.kind == "i" else policy
    features, terms = mdp.feature_probability, 60
    total, discounted = np.zeros_like(features), features
    for k in range(terms):
        total = total + mdp.gamma**k * discounted
        discounted = np.einsum("san,nb,nbf->saf", mdp.transition, choice, discounted)
    remainder = mdp.gamma**terms / (1 - mdp.gamma)
    assert np.abs(policy_xi(mdp, policy) - total).max() <= remainder + 1e-12


@given(with_reward)
def test_optimal_solves_the_bellman_equation_exactly(case):
    mdp, reward = case
    solution = optimal(mdp, reward)
    assert solution.residual == 0
    assert (bellman_q(mdp, reward, solution.q) == solution.q).all()
    assert (policy_q(mdp, solution.policy, reward) == solution.q).all()
    xi = policy_xi(mdp, solution.policy)
    assert (bellman_xi_policy(mdp, solution.policy, xi) == xi).all()


@given(with_reward)
def test_float_and_exact_agree(case):
    mdp, reward = case
    exact, approximate = optimal(mdp, reward), optimal(mdp.to_float(), float_array(exact_array(reward)))
    # Rewards up to 4 and gamma up to 0.99: values up to 400, condition number up to 200.
    np.testing.assert_allclose(approximate.q, float_array(exact.q), atol=1e-10)
    assert approximate.residual < 1e-10


@pytest.mark.parametrize("family", FAMILIES)
def test_batches_agree_with_single_solutions_and_with_quantecon(family):
    shape = Shape(6, 3, 4, 2)
    batch = FAMILIES[family](np.random.default_rng(5), 4, shape, 0.9, 0.1)
    rewards = np.concatenate([batch.target[:, None], batch.sources], axis=1)
    solution = optimal(batch.mdps, rewards)
    assert solution.q.shape == (4, 3, 6, 3)
    for b, task in np.ndindex(4, 3):
        mdp = batch.mdps[b]
        single = optimal(mdp, rewards[b, task])
        np.testing.assert_allclose(solution.q[b, task], single.q, atol=1e-12)
        # QuantEcon wants gamma in [0, 1) and warns at 0, where the answer is the reward itself.
        if mdp.gamma > 0:
            outside = DiscreteDP(expected_reward(mdp, rewards[b, task]), mdp.transition, mdp.gamma)
            np.testing.assert_allclose(
                single.q.max(axis=-1), outside.solve(method="policy_iteration").v, atol=1e-11
            )
        else:
            assert (single.q == expected_reward(mdp, rewards[b, task])).all()


def test_many_policies_at_once():
    """Tasks follow the axes of the batch, for both kinds of policy."""
    rng = np.random.default_rng(6)
    mdps = garnet(rng, 2, Shape(4, 3, 3), 0.75)
    actions = rng.integers(0, 3, size=(2, 5, 4))
    chances = rng.integers(1, 4, size=(2, 5, 4, 3)).astype(float)
    chances /= chances.sum(axis=-1, keepdims=True)
    for policy in (actions, chances):
        together = policy_xi(mdps, policy)
        assert together.shape == (2, 5, 4, 3, 3)
        for b, task in np.ndindex(2, 5):
            np.testing.assert_allclose(together[b, task], policy_xi(mdps[b], policy[b, task]), atol=1e-13)
        np.testing.assert_allclose(policy_xi(mdps[0], policy[0]), together[0], atol=1e-13)


def test_the_start_is_greedy_after_twelve_sweeps_of_value_iteration():
    """For a batch of MDPs and tasks; it decides no result, only how many iterations are left."""
    rng = np.random.default_rng(4)
    mdps, reward = garnet(rng, 12, Shape(5, 3, 4), 0.5), dyadic(rng, (12, 2, 4))
    start = solve._starting_policy(mdps, expected_reward(mdps, reward))
    assert start.shape == (12, 2, 5)
    for b, task in np.ndindex(12, 2):
        mdp = mdps[b]
        q = expected_reward(mdp, reward[b, task])
        for _ in range(12):
            q = bellman_q(mdp, reward[b, task], q)
        assert (start[b, task] == q.argmax(axis=-1)).all()
        exact = solve._starting_policy(mdp.to_exact(), expected_reward(mdp.to_exact(), reward[b, task]))
        assert (start[b, task] == exact).all()


def one_state_with_gap(gap, start, monkeypatch):
    """Action 1 pays more by `gap`; policy iteration starts at `start`."""
    monkeypatch.setattr(solve, "_starting_policy", lambda mdp, r: np.array([start]))
    return optimal(FiniteMDP(np.eye(2)[None, :, None, :], 0.5), np.array([1.0, 1.0 + gap]))


@pytest.mark.parametrize(("gap", "action"), [(1e-11, 1), (3e-12, 1), (1e-12, 0), (0.0, 0)])
def test_an_action_replaces_another_if_it_is_better_beyond_rounding(monkeypatch, gap, action):
    """By more than 1e-12 max|r|/(1-g) = 2e-12."""
    solution = one_state_with_gap(gap, 0, monkeypatch)
    assert solution.policy == action
    assert solution.iterations == 1 + action


def test_policy_iteration_may_not_go_on_for_ever(monkeypatch):
    monkeypatch.setattr(solve, "MAX_ITERATIONS", 1)
    assert one_state_with_gap(1.0, 1, monkeypatch).iterations == 1
    with pytest.raises(ArithmeticError, match="within 1 iterations"):
        one_state_with_gap(1.0, 0, monkeypatch)


def test_the_residual_is_that_of_the_worst_entry(monkeypatch):
    """Not improved within the tolerance: TQ - Q is g E[max Q - Q at the action taken]; 3 MDPs, 2 tasks."""
    monkeypatch.setattr(solve, "IMPROVEMENT_TOLERANCE", 10.0)
    monkeypatch.setattr(solve, "_starting_policy", lambda mdp, r: np.zeros((3, 2, 4), dtype=int))
    mdps, reward = garnet(np.random.default_rng(0), 3, Shape(4, 2, 3), 0.5), np.eye(3)[[[0, 1]] * 3]
    solution = optimal(mdps, reward)
    assert (solution.policy == 0).all()
    for b, task in np.ndindex(3, 2):
        improved = bellman_q(mdps[b], reward[b, task], solution.q[b, task])
        expected = np.abs(improved - solution.q[b, task]).max()
        assert solution.residual[b, task] == pytest.approx(expected, abs=1e-14)
        assert expected > 0


def test_optimal_actions_up_to_a_tolerance():
    q = np.array([[[1.0, 0.75, 0.5], [0.0, 0.0, -1.0]]])
    assert optimal_actions(q).tolist() == [[[True, False, False], [True, True, False]]]
    assert optimal_actions(q, 0.25).tolist() == [[[True, True, False], [True, True, False]]]


@pytest.mark.parametrize(
    ("policy", "message"),
    [
        (np.array([0, 2, 0]), "outside 0..1"),
        (np.array([0, -1, 0]), "outside 0..1"),
        (np.array([[0.5, 0.6], [1, 0], [1, 0]]), "sum to 1"),
        (np.array([[1.5, -0.5], [1, 0], [1, 0]]), "non-negative"),
        (np.array([0.5, 0.5, 0.5]), "stochastic policy has shape"),
        (np.array([[np.nan, 1], [1, 0], [1, 0]]), "non-negative"),
        (np.array([0]), "needs an action for each of 3 states"),
        (np.array([[1, 0], [0, 1], [0, 1]]), "needs an action for each of 3 states"),
    ],
)
def test_bad_policies(policy, message):
    mdp = deterministic(np.random.default_rng(0), 1, Shape(3, 2, 1, 1), 0.5)[0]
    with pytest.raises(InputError, match=message):
        policy_xi(mdp, policy)


@pytest.mark.parametrize("scale", [1e-30, 1e-11, 1e11])
def test_the_optimal_policy_does_not_depend_on_the_scale_of_rewards(scale):
    batch = garnet(np.random.default_rng(0), 20, Shape(20, 4, 6, 1), 0.99)
    reward = dyadic(np.random.default_rng(1), (20, 6))
    plain, scaled = optimal(batch, reward), optimal(batch, scale * reward)
    np.testing.assert_allclose(scaled.q, scale * plain.q, rtol=0, atol=1e-9 * scale)


@pytest.mark.parametrize(
    ("reward", "message"),
    [
        ([1.0], "2 features"),
        ([np.nan, 1.0], "not finite"),
        ([[1.0, 0.0], [np.nan, 1.0]], "not finite"),  # one of two tasks
    ],
)
def test_bad_rewards(reward, message):
    mdp = deterministic(np.random.default_rng(0), 1, Shape(3, 2, 2, 1), 0.5)[0]
    with pytest.raises(InputError, match=message):
        optimal(mdp, np.array(reward))


def test_exact_policies_sum_to_one_exactly():
    mdp = deterministic(np.random.default_rng(0), 1, Shape(1, 3, 1, 1), 0.5)[0].to_exact()
    with refused("sum to 1"):
        policy_xi(mdp, np.full((1, 3), 1 / 3))
    assert policy_xi(mdp, np.full((1, 3), Fraction(1, 3))).sum() == 6


def test_exact_optimum_of_forty_states():
    rng = np.random.default_rng(2)
    mdp = garnet(rng, 1, Shape(40, 3, 6, 1), 0.9)[0].to_exact()
    reward = exact_array(dyadic(rng, (6,)))
    solution = optimal(mdp, reward)
    assert solution.residual == 0
    np.testing.assert_allclose(
        float_array(solution.q), optimal(mdp.to_float(), float_array(reward)).q, atol=1e-11
    )
