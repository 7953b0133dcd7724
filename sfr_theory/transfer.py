"""From a transfer problem to everything its bounds need.

For a target R, sources R_i and approximations xi~_i (by default the exact xi_i of an optimal policy):
solve every task, form the GPI policy

    pi(s) = argmax over a of max over i of sum over phi of R(phi) xi~_i(s, a, phi),

and evaluate it exactly. `evaluate` breaks ties towards the first action; `evaluate_all_ties` goes
through every choice of optimal policies and of tied GPI actions, in rational arithmetic.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np

from sfr_theory.arithmetic import Array, least_squares_fit
from sfr_theory.bounds import SolvedProblem
from sfr_theory.certificates import Ceiling
from sfr_theory.errors import InputError
from sfr_theory.gpi import gpi_policy, gpi_values
from sfr_theory.mdp import FiniteMDP, MDPBatch, TransferProblem
from sfr_theory.operators import expected_reward, q_from_xi
from sfr_theory.solve import optimal, optimal_actions, policy_xi

MAX_TIE_COMBINATIONS = 4096


def _read_under(approximations: Array, reward: Array) -> Array:
    """Q~_i under a reward: (..., I, S, A, F), (..., F) -> (..., I, S, A)."""
    return q_from_xi(approximations, reward[..., None, :])


def evaluate_batch(
    mdps: FiniteMDP | MDPBatch, target: Array, sources: Array, perturbation: Array
) -> SolvedProblem:
    """Solve problems whose approximations are xi~_i = xi_i + perturbation_i; batch axes first."""
    return _evaluate(mdps, target, sources, lambda source_xi: source_xi + perturbation)


def evaluate(problem: TransferProblem) -> SolvedProblem:
    """Solve one problem; ties go to the first action."""
    given = problem.approximations
    return _evaluate(problem.mdp, problem.target, problem.sources, lambda xi: xi if given is None else given)


def _evaluate(
    mdp: FiniteMDP | MDPBatch, target: Array, sources: Array, approximate: Callable[[Array], Array]
) -> SolvedProblem:
    """`approximate` gives the xi~_i for the xi_i."""
    xi = policy_xi(mdp, optimal(mdp, np.concatenate([target[..., None, :], sources], axis=-2)).policy)
    optimal_xi, source_xi = xi[..., 0, :, :, :], xi[..., 1:, :, :, :]
    approximations = approximate(source_xi)
    linear_reward = least_squares_fit(mdp.linear_features, target)
    policies = [gpi_policy(_read_under(approximations, reward)) for reward in (target, linear_reward)]
    gpi_xi = policy_xi(mdp, np.stack(policies, axis=-2))
    return SolvedProblem(
        gamma=mdp.gamma,
        transition=mdp.transition,
        feature_probability=mdp.feature_probability,
        target=target,
        sources=sources,
        optimal_xi=optimal_xi,
        source_xi=source_xi,
        approximations=approximations,
        gpi_policy=policies[0],
        gpi_xi=gpi_xi[..., 0, :, :, :],
        linear_reward=linear_reward,
        linear_gpi_policy=policies[1],
        linear_gpi_xi=gpi_xi[..., 1, :, :, :],
        ceiling=Ceiling(
            mdp.gamma,
            expected_reward(mdp, target),
            expected_reward(mdp, sources),
            q_from_xi(source_xi, sources),
        ),
    )


def _policies(allowed: Array) -> list[Array]:
    """Every deterministic policy that takes allowed actions only: boolean (S, A) -> list of (S,)."""
    choices = [np.flatnonzero(row) for row in allowed]
    return [np.array(actions) for actions in itertools.product(*choices)]


def _count(allowed: Array) -> int:
    return math.prod(int(row.sum()) for row in allowed)


class TooManyTiesError(InputError):
    """There are too many ways to break the ties of a problem to try them all."""


def _require_few(combinations: int) -> None:
    if combinations > MAX_TIE_COMBINATIONS:
        raise TooManyTiesError(
            f"its ties allow {combinations} combinations of policies or more, which is above "
            f"{MAX_TIE_COMBINATIONS}; use a smaller MDP or --ties first"
        )


def evaluate_all_ties(problem: TransferProblem) -> Iterator[SolvedProblem]:
    """One evaluation for every way to break the ties of an exact problem.

    Tied are: optimal policies of the target and of each source, and the actions of the GPI policy (under
    the target reward, and under the linear reward that `gpi/linear` reads).
    """
    if not problem.mdp.is_exact:
        raise InputError("ties are only defined in exact arithmetic; use --exact (or `problem.to_exact()`)")
    mdp, target, sources = problem.mdp, problem.target, problem.sources
    base = evaluate(problem)
    allowed = optimal_actions(optimal(mdp, np.concatenate([target[None], sources])).q)
    combinations = math.prod(_count(task) for task in allowed)
    _require_few(combinations)
    xi_choices = [[policy_xi(mdp, policy) for policy in _policies(task)] for task in allowed]
    for optimal_xi, *chosen in itertools.product(*xi_choices):
        source_xi = np.stack(chosen)
        approximations = source_xi if problem.approximations is None else problem.approximations
        tied = [
            optimal_actions(gpi_values(_read_under(approximations, reward)))
            for reward in (target, base.linear_reward)
        ]
        _require_few(combinations * max(_count(task) for task in tied))
        # The two GPI policies enter different statements, so their ties need not be crossed.
        pairs = itertools.zip_longest(*map(_policies, tied))
        policy = linear_policy = np.empty(0, dtype=int)
        for next_policy, next_linear in pairs:
            policy = policy if next_policy is None else next_policy
            linear_policy = linear_policy if next_linear is None else next_linear
            yield replace(
                base,
                optimal_xi=optimal_xi,
                source_xi=source_xi,
                approximations=approximations,
                gpi_policy=policy,
                gpi_xi=policy_xi(mdp, policy),
                linear_gpi_policy=linear_policy,
                linear_gpi_xi=policy_xi(mdp, linear_policy),
            )
