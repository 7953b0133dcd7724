"""Operators and norms: what the propositions say, exactly."""

from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from sfr_theory.arithmetic import exact_array
from sfr_theory.operators import (
    absolute_norm,
    bellman_q,
    bellman_xi,
    bellman_xi_policy,
    q_from_xi,
    value_seminorm,
)
from sfr_theory.solve import optimal
from tests.strategies import arrays, mdps, policies, rewards


def xi_arrays(mdp):
    return arrays((mdp.num_states, mdp.num_actions, mdp.num_features))


with_two_xi = mdps().flatmap(
    lambda mdp: st.tuples(st.just(mdp), rewards(mdp), xi_arrays(mdp), xi_arrays(mdp), policies(mdp))
)


halving = mdps(discounts=st.just(Fraction(1, 2))).flatmap(
    lambda mdp: st.tuples(st.just(mdp), rewards(mdp), xi_arrays(mdp))
)


@given(with_two_xi)
def test_t_xi_on_classes_is_the_bellman_operator(case):
    mdp, reward, xi, _, _ = case
    xi = exact_array(xi)
    assert (
        q_from_xi(bellman_xi(mdp, reward, xi), reward) == bellman_q(mdp, reward, q_from_xi(xi, reward))
    ).all()


@given(with_two_xi)
def test_the_operator_of_a_policy_contracts_in_both_norms(case):
    mdp, reward, xi, eta, policy = case
    xi, eta = exact_array(xi), exact_array(eta)
    image = bellman_xi_policy(mdp, policy, xi) - bellman_xi_policy(mdp, policy, eta)
    for norm in (value_seminorm, absolute_norm):
        assert norm(image, reward) <= mdp.gamma * norm(xi - eta, reward)


@given(with_two_xi)
def test_the_value_seminorm_is_the_sup_norm_of_q_and_never_above_the_absolute_norm(case):
    _, reward, xi, _, _ = case
    xi = exact_array(xi)
    assert value_seminorm(xi, reward) == np.abs(q_from_xi(xi, reward)).max()
    assert value_seminorm(xi, reward) <= absolute_norm(xi, reward)


@given(halving)
def test_iterating_t_xi_converges_in_class(case):
    mdp, reward, xi = case
    xi = exact_array(xi)
    best = optimal(mdp, reward).q
    before = np.abs(q_from_xi(xi, reward) - best).max()
    for _ in range(5):
        xi = bellman_xi(mdp, reward, xi)
    assert np.abs(q_from_xi(xi, reward) - best).max() <= mdp.gamma**5 * before
