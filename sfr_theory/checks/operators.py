"""The operator T_xi and the norm of Corollary 1, in rational arithmetic: equalities are equalities.

contraction    N_R(T_xi xi - T_xi eta) <= gamma N_R(xi - eta), and gamma is attained: shift every Q by one
               constant (xi + c R / |R|^2), and T shifts it by gamma times that constant
well-defined   R . kappa = 0 implies R . T_xi(xi + kappa) = R . T_xi xi
Bellman        R . T_xi xi = T (R . xi)
isometry       N_R(xi) = ||R . xi||; it is 0 exactly on the kernel; every Q is R . xi for some xi
discontinuity  `sfr_theory.examples.near_tie`
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
from numpy.random import Generator

from sfr_theory.arithmetic import Array, exact_array, fraction
from sfr_theory.checks.settings import Check, Settings, exact_instances, random_xi
from sfr_theory.claims import CheckResult, Method, Verdict
from sfr_theory.examples import near_tie
from sfr_theory.mdp import FiniteMDP
from sfr_theory.operators import absolute_norm, bellman_q, bellman_xi, q_from_xi, value_seminorm

DRAWS_PER_MDP = 4


def with_value(q: Array, reward: Array) -> Array:
    """An xi with R . xi = q: q R / |R|^2 (the surjectivity of prop:xi-q-equivalence, R not 0)."""
    return q[..., None] * (reward / (reward * reward).sum())


def without_value(xi: Array, reward: Array) -> Array:
    """The part of xi in the kernel: xi - (R . xi) R / |R|^2."""
    return xi - with_value(q_from_xi(xi, reward), reward)


Draw = Callable[[Generator, FiniteMDP, Array], bool]


def _holds_on_all(name: str, sentence: str, draw: Draw) -> Callable[[Settings], CheckResult]:
    """A check that an equality holds exactly on random MDPs and random xi."""

    def run(settings: Settings) -> CheckResult:
        rng = settings.rng(name)
        instances = exact_instances(settings, rng, settings.mdps)
        outcomes = [draw(rng, mdp, reward) for mdp, reward in instances for _ in range(DRAWS_PER_MDP)]
        failures = outcomes.count(False)
        return CheckResult(
            Verdict.REFUTED if failures else Verdict.SUPPORTED,
            f"{sentence}: {failures} exceptions in {len(outcomes)} draws on {settings.mdps} MDPs, "
            f"rational arithmetic, seed {settings.seed}",
            scope=f"S={settings.states}, A={settings.actions}, F={settings.features}, gamma={settings.gamma}",
            details={"draws": len(outcomes), "failures": failures},
        )

    return run


def _well_defined(rng: Generator, mdp: FiniteMDP, reward: Array) -> bool:
    xi = random_xi(rng, mdp)
    same_class = xi + without_value(random_xi(rng, mdp), reward)
    image, other = (q_from_xi(bellman_xi(mdp, reward, x), reward) for x in (xi, same_class))
    return bool(np.array_equal(image, other))


def _bellman(rng: Generator, mdp: FiniteMDP, reward: Array) -> bool:
    xi = random_xi(rng, mdp)
    left = q_from_xi(bellman_xi(mdp, reward, xi), reward)
    return bool(np.array_equal(left, bellman_q(mdp, reward, q_from_xi(xi, reward))))


def _isometry(rng: Generator, mdp: FiniteMDP, reward: Array) -> bool:
    xi = random_xi(rng, mdp)
    q = random_xi(rng, mdp)[..., 0]
    kernel = without_value(xi, reward)
    return bool(
        value_seminorm(xi, reward) == np.abs(q_from_xi(xi, reward)).max()
        and value_seminorm(kernel, reward) == 0
        and value_seminorm(xi + kernel, reward) == value_seminorm(xi, reward)
        and np.array_equal(q_from_xi(with_value(q, reward), reward), q)
    )


def contraction(settings: Settings) -> CheckResult:
    """The modulus of T_R, measured exactly."""
    rng = settings.rng("contraction")
    largest, attained, draws = Fraction(0), 0, 0
    instances = exact_instances(settings, rng, settings.mdps)
    gamma = fraction(instances[0][0].gamma)
    for mdp, reward in instances:

        def modulus(xi: Array, eta: Array, mdp: FiniteMDP = mdp, reward: Array = reward) -> Fraction:
            image = bellman_xi(mdp, reward, xi) - bellman_xi(mdp, reward, eta)
            return fraction(value_seminorm(image, reward) / value_seminorm(xi - eta, reward))

        for _ in range(DRAWS_PER_MDP):
            xi, eta = random_xi(rng, mdp), random_xi(rng, mdp)
            if value_seminorm(xi - eta, reward) != 0:
                largest, draws = max(largest, modulus(xi, eta)), draws + 1
        one = exact_array(np.ones(xi.shape[:2], dtype=int))
        shifted = modulus(xi, xi + with_value(one, reward))
        largest, attained, draws = max(largest, shifted), attained + (shifted == gamma), draws + 1
    holds = largest <= gamma and attained == len(instances)
    return CheckResult(
        Verdict.SUPPORTED if holds else Verdict.REFUTED,
        f"largest modulus {largest} against gamma = {gamma} over {draws} pairs, attained on {attained} of "
        f"{len(instances)} MDPs by a constant shift of Q; rational arithmetic, seed {settings.seed}",
        scope=f"S={settings.states}, A={settings.actions}, F={settings.features}",
        details={"largest_modulus": str(largest), "gamma": str(gamma), "pairs": draws},
    )


Operator = Callable[[FiniteMDP, Array, Array], Array]


def discontinuity(settings: Settings, operator: Operator = bellman_xi) -> CheckResult:
    """||T_xi xi - T_xi xi'|| / ||xi - xi'|| along ever closer pairs at a tie; `operator` stands for T_xi."""
    exponents = range(1, 13)
    distances: list[tuple[Fraction, Fraction]] = []
    for exponent in exponents:
        example, xi, other = near_tie(Fraction(1, 10**exponent))
        image = operator(example.mdp, example.reward, xi) - operator(example.mdp, example.reward, other)
        # R = (1, 1): the absolute norm is the largest l1 norm over pairs, a norm on xi itself.
        norms = (absolute_norm(xi - other, example.reward), absolute_norm(image, example.reward))
        distances.append((fraction(norms[0]), fraction(norms[1])))
    closest, image_distance = distances[-1]
    jumps = all(after >= fraction(example.mdp.gamma) for _, after in distances)
    return CheckResult(
        Verdict.REFUTED if jumps and closest < image_distance else Verdict.INCONCLUSIVE,
        f"one state, R = (1, 1): two xi at distance {float(closest):.0e} have images at distance "
        f"{float(image_distance):.3g}, a ratio of {float(image_distance / closest):.0e}; exact",
        scope="in every norm: on finitely many states and features all norms are equivalent",
        details={"pairs": [{"before": str(before), "after": str(after)} for before, after in distances]},
    )


CHECKS = (
    Check("prop2/contraction", Method.INSTANCES, contraction),
    Check("prop2/well-defined-corrected", Method.INSTANCES,
          _holds_on_all("well-defined", "R . T_xi(xi + k) = R . T_xi xi if R . k = 0", _well_defined)),
    Check("prop2/bellman-on-q", Method.INSTANCES,
          _holds_on_all("bellman", "R . T_xi xi = T(R . xi)", _bellman)),
    Check("cor1/isometry-corrected", Method.INSTANCES,
          _holds_on_all("isometry", "N_R(xi) = ||Q||, 0 on the kernel, every Q reached", _isometry)),
    Check("prop2/txi-contraction", Method.COUNTEREXAMPLE, discontinuity),
)  # fmt: skip
