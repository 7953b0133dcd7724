"""Exact policy evaluation and optimisation by linear solves, for one MDP or thousands at a time.

Q, psi, xi and the successor representation are one thing: the discounted sum of a cumulant c(s, a)
in R^D along a policy pi,

    C(s, a) = c(s, a) + gamma E[ C(s', pi(s')) ],        C = c + gamma P (I - gamma P_pi)^-1 c_pi,

with c = p(phi | s, a) for xi, E[phi | s, a] for psi, r for Q and the indicator of s for the successor
representation. The matrix I - gamma P_pi is strictly diagonally dominant, so the solve always
exists; in float64 its relative error is of order S u (1 + gamma) / (1 - gamma), in rational
arithmetic there is none.

`optimal` is Howard's policy iteration, started from a few sweeps of value iteration. It ends after
finitely many steps with a policy that no single change of an action improves, and reports how many iterations
it took and the residual ||TQ - Q||.

A policy is an integer array (..., S), or an array of probabilities (..., S, A). Batch axes of the MDP
come first, then task axes: for an `MDPBatch` of B MDPs, rewards of shape (B, T, F) give Q of shape
(B, T, S, A).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sfr_theory.arithmetic import Array, Number, float_array, in_arithmetic_of, is_exact, matmul, solve
from sfr_theory.errors import InputError
from sfr_theory.mdp import ROW_SUM_TOLERANCE, Dynamics, FiniteMDP
from sfr_theory.operators import align, at_policy, expected_next, expected_reward

MAX_ITERATIONS = 1000
STARTING_SWEEPS = 12
IMPROVEMENT_TOLERANCE = 1e-12
"""float64 only: how much better, relative to max |r| / (1 - gamma), an action must be to replace another."""


@dataclass(frozen=True)
class Solution:
    """An optimal policy, its Q, and how they were obtained."""

    q: Array
    policy: Array
    iterations: int
    residual: Number


def _check_policy(mdp: Dynamics, policy: Array, stochastic: bool) -> None:
    states, actions = mdp.feature_probability.shape[-3:-1]
    if not stochastic:
        if policy.shape[-1:] != (states,):
            raise InputError(
                f"the policy has shape {policy.shape}; it needs an action for each of {states} states"
            )
        if policy.size and not (policy.min() >= 0 and policy.max() < actions):
            raise InputError(f"the policy names an action outside 0..{actions - 1}")
        return
    if policy.shape[-2:] != (states, actions):
        raise InputError(f"a stochastic policy has shape (..., {states}, {actions}), not {policy.shape}")
    totals = policy.sum(axis=-1)
    off = totals != 1 if is_exact(policy) else ~(np.abs(totals - 1) <= ROW_SUM_TOLERANCE)
    if not (policy >= 0).all() or off.any():
        raise InputError("each row of a stochastic policy must be non-negative and sum to 1")


def discounted_sum(mdp: Dynamics, policy: Array, cumulant: Array) -> Array:
    """C(s, a) of a cumulant of shape (..., S, A, D) along a policy; see the module's text."""
    policy = np.asarray(policy)
    stochastic = policy.dtype.kind not in "iu"
    if stochastic:
        policy = in_arithmetic_of(mdp.transition, policy)
    _check_policy(mdp, policy, stochastic)
    lead = policy.ndim - (2 if stochastic else 1)
    transition = align(mdp.transition, 3, lead)
    cumulant = align(cumulant, 3, lead) if cumulant.ndim - 3 < lead else cumulant

    def along_policy(values: Array) -> Array:
        if stochastic:
            return matmul(policy[..., None, :], values)[..., 0, :]
        return at_policy(values, policy)

    matrix = along_policy(transition)  # a fresh array, changed in place
    matrix *= -mdp.gamma
    states = np.arange(matrix.shape[-1])
    matrix[..., states, states] += 1
    on_policy = solve(matrix, along_policy(cumulant))
    total = expected_next(mdp, on_policy)
    total *= mdp.gamma
    total += cumulant
    return total


def policy_xi(mdp: Dynamics, policy: Array) -> Array:
    """xi of a policy, shape (..., S, A, F)."""
    return discounted_sum(mdp, policy, mdp.feature_probability)


def policy_q(mdp: Dynamics, policy: Array, reward: Array) -> Array:
    """Q of a policy under rewards (..., F), shape (..., S, A)."""
    return discounted_sum(mdp, policy, expected_reward(mdp, reward)[..., None])[..., 0]


def policy_psi(mdp: FiniteMDP, policy: Array) -> Array:
    """psi of a policy: the expected discounted sum of feature vectors, shape (..., S, A, n)."""
    return discounted_sum(mdp, policy, matmul(mdp.feature_probability, mdp.linear_features))


def _starting_policy(mdp: Dynamics, r: Array) -> Array:
    """Greedy after a few sweeps of value iteration, in floats in either arithmetic: a start, no more."""
    transition, gamma = float_array(mdp.transition), float(mdp.gamma)
    *batch, states, actions, _ = transition.shape
    tasks = r.shape[len(batch) : -2]
    # Tasks are the columns of one product, and maxima run over an axis that is not the last: both are faster.
    rows = transition.reshape(*batch, states * actions, states)
    columns = float_array(r).reshape(*batch, -1, states * actions).swapaxes(-1, -2)
    q = columns
    with np.errstate(over="ignore", invalid="ignore"):  # of fractions that no float holds
        for _ in range(STARTING_SWEEPS):
            q = rows @ q.reshape(*batch, states, actions, -1).max(axis=-2)
            q *= gamma
            q += columns
    policy = q.reshape(*batch, states, actions, -1).argmax(axis=-2)
    return policy.swapaxes(-1, -2).reshape(*batch, *tasks, states)


def optimal(mdp: Dynamics, reward: Array) -> Solution:
    """Optimal Q and policy for rewards (..., F) by policy iteration."""
    r = expected_reward(mdp, reward)
    if not is_exact(r) and not np.isfinite(r).all():
        raise InputError("the reward is not finite; every entry must be a number")
    policy = _starting_policy(mdp, r)
    tolerance: Number = 0 if is_exact(r) else IMPROVEMENT_TOLERANCE
    # No Q is larger than max |r| / (1 - gamma), and rounding is in proportion to it.
    scale = np.abs(r).max(axis=(-2, -1), keepdims=True)[..., 0] / (1 - mdp.gamma)
    for iteration in range(1, MAX_ITERATIONS + 1):
        q = discounted_sum(mdp, policy, r[..., None])[..., 0]
        best = q.max(axis=-1)
        threshold = tolerance * scale
        improves = best - at_policy(q[..., None], policy)[..., 0] > threshold
        if not improves.any():
            residual = np.abs(r + mdp.gamma * expected_next(mdp, best[..., None])[..., 0] - q)
            return Solution(q, policy, iteration, residual.max(axis=(-2, -1)))
        policy = np.where(improves, q.argmax(axis=-1), policy)
    raise ArithmeticError(f"policy iteration did not end within {MAX_ITERATIONS} iterations")


def optimal_actions(q: Array, tolerance: Number = 0) -> Array:
    """Which actions are optimal in each state: boolean (..., S, A)."""
    return q.max(axis=-1, keepdims=True) - q <= tolerance
