"""Bellman operators on Q and on xi, and the two norms that the paper writes alike.

For rewards R and an array xi(s, a, phi):

    Q_xi(s, a)    = sum over phi of R(phi) xi(s, a, phi)                       `q_from_xi`
    (T Q)(s, a)   = r(s, a) + gamma E[max over a' of Q(s', a')]                `bellman_q`
    (T_xi xi)(s, a, .) = p(. | s, a) + gamma E[xi(s', abar(s'), .)]            `bellman_xi`
    abar(s')      = argmax over a' of Q_xi(s', a')                             `greedy`

`bellman_xi` is the paper's T_xi (eqn:txi_definition). It maps classes of equal Q to classes of equal
Q, and on classes it is `bellman_q`: Q of (T_xi xi) equals T of (Q of xi), exactly. On xi itself it is
no contraction in any norm: it jumps where actions tie.

The paper writes ||.||_R for two different things:

    value_seminorm  sup over (s, a) of |sum over phi of R f|     Corollary 1; equals ||Q||_inf
    absolute_norm   sup over (s, a) of sum over phi of |R f|     the text of Theorem 2

The first is a norm on classes (a seminorm on functions), the second separates functions that have
the same value. Leading axes of all arguments broadcast; the MDP's batch axes come first.
"""

from __future__ import annotations

import math

import numpy as np

from sfr_theory.arithmetic import Array, Number, in_arithmetic_of, matmul
from sfr_theory.errors import InputError
from sfr_theory.mdp import Dynamics


def q_from_xi(xi: Array, reward: Array) -> Array:
    """Q = sum over phi of R xi (eqn:xi_definition): (..., S, A, F), (..., F) -> (..., S, A)."""
    *lead, states, actions, features = xi.shape
    reward = in_arithmetic_of(xi, reward)
    if reward.shape[-1:] != (features,):
        raise InputError(
            f"the reward has shape {reward.shape}; it needs one number for each of {features} features"
        )
    # One product over all (s, a): a stack of tiny ones, one for each s, costs several times more.
    q = matmul(xi.reshape(*lead, states * actions, features), reward[..., None])
    return q.reshape(*q.shape[:-2], states, actions)


def greedy(q: Array) -> Array:
    """The first of the best actions in every state: (..., S, A) -> (..., S)."""
    return q.argmax(axis=-1)


def at_policy(values: Array, policy: Array) -> Array:
    """values(s, policy(s), ...): (..., S, A, D), (..., S) -> (..., S, D)."""
    *lead, states, actions, size = values.shape
    # One gather of whole rows: far cheaper than an index for every entry.
    member = np.arange(math.prod(lead)).reshape(*lead, 1)
    row = (member * states + np.arange(states)) * actions + policy
    return values.reshape(-1, size)[row]


def align(array: Array, core: int, lead: int) -> Array:
    """Insert axes before the last `core` ones until there are `lead` leading axes (tasks after batch)."""
    batch = array.ndim - core
    return array.reshape(array.shape[:batch] + (1,) * (lead - batch) + array.shape[batch:])


def expected_next(mdp: Dynamics, values: Array) -> Array:
    """E[values(s') | s, a]: (..., S, D) -> (..., S, A, D)."""
    *batch, states, actions, _ = mdp.transition.shape
    tasks, size = values.shape[len(batch) : -2], values.shape[-1]
    # All tasks of an MDP in one product: its columns are the tasks' values.
    columns = values.reshape(*batch, -1, states, size).swapaxes(-3, -2).reshape(*batch, states, -1)
    product = matmul(mdp.transition.reshape(*batch, states * actions, states), columns)
    product = product.reshape(*batch, states * actions, -1, size).swapaxes(-3, -2)
    return product.reshape(*batch, *tasks, states, actions, size)


def expected_reward(mdp: Dynamics, reward: Array) -> Array:
    """r(s, a) = sum over phi of R(phi) p(phi | s, a): (..., F) -> (..., S, A)."""
    reward = in_arithmetic_of(mdp.feature_probability, reward)
    return q_from_xi(align(mdp.feature_probability, 3, reward.ndim - 1), reward)


def bellman_q(mdp: Dynamics, reward: Array, q: Array) -> Array:
    """The optimality operator T on Q."""
    value = q.max(axis=-1)[..., None]
    return expected_reward(mdp, reward) + mdp.gamma * expected_next(mdp, value)[..., 0]


def bellman_xi(mdp: Dynamics, reward: Array, xi: Array) -> Array:
    """The paper's T_xi, with the first of tied greedy actions."""
    greedy_xi = at_policy(xi, greedy(q_from_xi(xi, reward)))
    features = align(mdp.feature_probability, 3, xi.ndim - 3)
    return features + mdp.gamma * expected_next(mdp, greedy_xi)


def bellman_xi_policy(mdp: Dynamics, policy: Array, xi: Array) -> Array:
    """The operator of a fixed policy: linear, and a gamma-contraction in every sup-norm."""
    features = align(mdp.feature_probability, 3, xi.ndim - 3)
    return features + mdp.gamma * expected_next(mdp, at_policy(xi, policy))


def value_seminorm(xi: Array, reward: Array) -> Number:
    """sup over (s, a) of |sum over phi of R xi| (cor:xi-banach)."""
    return np.abs(q_from_xi(xi, reward)).max(axis=(-2, -1))


def absolute_norm(f: Array, g: Array) -> Number:
    """sup over (s, a) of sum over phi of |f g| (t:xi_gpi_formulation); f is (..., S, A, F), g (..., F)."""
    return q_from_xi(np.abs(f), np.abs(in_arithmetic_of(f, g))).max(axis=(-2, -1))
