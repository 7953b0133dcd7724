"""The xi-function and the value it carries (eqn:xi_definition), and what an integral needs to exist.

    xi(s, a, phi) = sum over k of gamma^k Pr(phi_{t+k} = phi | s, a; pi)
    Q(s, a) = sum_k gamma^k E[R(phi_{t+k})] = sum_k gamma^k sum_phi Pr(phi_{t+k} = phi) R(phi)
            = sum_phi R(phi) sum_k gamma^k Pr(phi_{t+k} = phi) = sum_phi R(phi) xi(s, a, phi)
    sum over phi of xi(s, a, phi) = 1/(1 - gamma)

For finitely many features this is linear algebra. On a continuum the sum over phi is an integral, and the
exchange in the middle needs the integral of |R| xi to be finite. R in L^1, which the paper asks for, does
not give that; R bounded does.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import sympy
from sympy import Expr, Rational, oo

from proofs_checks.argument import Proof, Step, broken, every, proved, refuted
from proofs_checks.smt import absolute, at_most, discount, distribution, entails, number, real, reals, within
from proofs_checks.symbolic import (
    SymbolicMDP,
    identity,
    joint_kernel,
    series_steps,
    symbolic_mdp,
    unknowns,
    with_last_probability,
)
from sfr_theory.arithmetic import Array
from sfr_theory.claims import Method

SCOPE = "all kernels, stochastic policies, rewards and gamma; 3 states, 2 actions, 2 features; symbolic"


# --- eqn:xi_definition ----------------------------------------------------------------------------


def feature_at(kernel: Array, policy: Array, delay: int) -> Array:
    """Pr(phi_{t+delay} = phi | s_t, a_t; pi) summed path by path, from the joint kernel p(s', phi | s, a)."""
    states, actions, _, features = kernel.shape
    if delay == 0:
        return kernel.sum(axis=2)
    later = feature_at(kernel, policy, delay - 1)
    total = 0 * later
    for s, a, following, feature, action in itertools.product(
        range(states), range(actions), range(states), range(features), range(actions)
    ):
        probability = kernel[s, a, following, feature] * policy[following, action]
        total[s, a] += later[following, action] * probability
    return total


def definition_steps(delay_offset: int = 0, read_with: str = "R") -> Iterator[Step]:
    free = unknowns(gamma=(), p=(2, 2, 3), pi=(2, 1))
    kernel, policy = joint_kernel(free["p"], 2, 2), with_last_probability(free["pi"])
    small = SymbolicMDP(free["gamma"], kernel.sum(axis=3), kernel.sum(axis=2), policy)

    def feature_after(delay: int) -> Array:
        probability = small.feature_probability
        for _ in range(delay):
            probability = small.shifted(probability)
        return probability

    yield every(
        "Pr(phi_{t+k} = phi), summed over paths of the joint kernel, depends on its two marginals only",
        (
            identity(f"k = {k}", feature_at(kernel, policy, k), feature_after(k + delay_offset))
            for k in (0, 1, 2)
        ),
    )
    mdp = symbolic_mdp(R=(2,), R_other=(2,))
    reward = mdp.given["R"]
    r = mdp.expected_reward(reward)
    yield identity(
        "E[R(phi_t)] = sum over phi of Pr(phi_t = phi) R(phi), and the sums over k < 2 and over phi commute",
        mdp.partial_sum(r, 2)[..., 0],
        mdp.partial_sum(mdp.feature_probability, 2) @ reward,
    )
    yield identity(
        "Q(s, a) = sum over phi of R(phi) xi(s, a, phi)",
        mdp.discounted(r)[..., 0],
        mdp.discounted(mdp.feature_probability) @ mdp.given[read_with],
    )


# --- total mass and series ------------------------------------------------------------------------


def mass_steps(forget_discount: bool = False) -> Iterator[Step]:
    mdp = symbolic_mdp(features=3)
    mass = mdp.discounted(mdp.feature_probability).sum(axis=-1)
    one_minus_gamma = 1 if forget_discount else 1 - mdp.gamma
    yield identity("(1 - gamma) sum over phi of xi(s, a, phi) = 1", mass * one_minus_gamma, mdp.det)


def nonnegative_steps(least_probability: int = 0) -> Iterator[Step]:
    """Where xi is smallest, xi = p + gamma E[xi'] >= gamma xi."""
    p, following = reals("p", 3), reals("xi'", 3)
    gamma, xi, probability = real("gamma"), real("xi"), real("p(phi)")
    yield entails(
        "where xi is smallest, xi = p(phi) + gamma E[xi'] >= gamma xi, so it is not negative",
        [
            *distribution(p), *discount(gamma), probability >= least_probability,
            xi == probability + gamma * (p @ following), *(value >= xi for value in following),
        ],
        xi >= 0,
    )  # fmt: skip


def xi_series_steps(missing_powers: int = 0) -> Iterator[Step]:
    yield from series_steps()
    mdp = symbolic_mdp()
    xi = mdp.discounted(mdp.feature_probability)
    yield every(
        "the mass that n terms of the series lack is gamma^n/(1-gamma), so they converge to xi",
        (
            identity(
                f"n = {n}",
                (xi - mdp.det * mdp.partial_sum(mdp.feature_probability, n)).sum(axis=-1) * (1 - mdp.gamma),
                mdp.gamma ** (n - missing_powers) * mdp.det,
            )
            for n in (1, 2)
        ),
    )


# --- re-evaluation in another task ----------------------------------------------------------------


def transfer_steps(read_with: str = "R_j") -> Iterator[Step]:
    """pi is any policy, in particular one that is optimal for R_i; the task is j."""
    mdp = symbolic_mdp(R_i=(2,), R_j=(2,))
    q = mdp.discounted(mdp.expected_reward(mdp.given["R_j"]))[..., 0]
    xi = mdp.discounted(mdp.feature_probability)
    yield identity("Q_j of pi_i = sum over phi of R_j xi of pi_i", q, xi @ mdp.given[read_with])


# --- continuous features --------------------------------------------------------------------------

PHI = sympy.Symbol("phi", positive=True)
DENSITY = PHI ** Rational(-1, 2) / 2
"""Of a feature in (0, 1); unbounded at 0."""


def integral(integrand: Expr) -> Expr:
    """The integral over (0, 1), possibly infinite."""
    return sympy.integrate(integrand, (PHI, 0, 1))


def l1_facts(reward: Expr) -> Iterator[Step]:
    """One state, one action, the feature drawn from the density p(phi) = phi^(-1/2)/2 on (0, 1)."""
    total, norm, value = integral(DENSITY), integral(reward), integral(reward * DENSITY)
    yield Step(f"p(phi) = {DENSITY} has integral {total}, so xi = p/(1-gamma) is in L^1", total == 1)
    yield Step(f"R(phi) = {reward} has integral {norm}: it is in L^1", bool(norm < oo))
    yield Step(f"yet the integral of R p is {value}, and so is Q", value == oo)


def bounded_reading(factor: Fraction = Fraction(1)) -> Step:
    """|sum over phi of R xi| <= sup |R| * (mass of xi), for non-negative xi on three cells of features."""
    xi, reward = reals("xi", 3), reals("R", 3)
    bound = real("B")
    return entails(
        "|R| <= B and xi >= 0 give |sum over phi of R xi| <= B sum over phi of xi",
        [*at_most(0, xi), *within(reward, bound)],
        within(reward @ xi, number(factor) * bound * xi.sum()),
    )


def dominated_reading(factor: Fraction = Fraction(1)) -> Step:
    """What the first terms xi_n of the series miss, on three cells of features; |R| xi dominates it."""
    xi, partial, reward = reals("xi", 3), reals("xi_n", 3), reals("R", 3)
    magnitude = np.array([absolute(r) for r in reward], dtype=object)
    return entails(
        "0 <= xi_n <= xi gives |sum R xi - sum R xi_n| <= sum |R| (xi - xi_n) <= sum |R| xi",
        [*at_most(0, partial), *at_most(partial, xi)],
        [
            *within(reward @ (xi - partial), number(factor) * (magnitude @ (xi - partial))),
            magnitude @ (xi - partial) <= magnitude @ xi,
        ],
    )


def finite_integral_steps(factor: Fraction = Fraction(1)) -> Iterator[Step]:
    """xi_n increases to xi, so |R| (xi - xi_n) tends to 0 below |R| xi: dominated convergence."""
    yield dominated_reading(factor)
    yield bounded_reading(factor)
    yield from mass_steps()


PROOFS: tuple[Proof, ...] = (
    proved("xi/definition", Method.SYMBOLIC, definition_steps,
           SCOPE + "; paths: 2 states, delays 0 to 2",
           broken("R read for another reward", lambda: definition_steps(read_with="R_other")),
           broken("phi_{t+1} counted for phi_t", lambda: definition_steps(delay_offset=1))),
    proved("xi/mass", Method.SYMBOLIC, mass_steps,
           SCOPE.replace("2 features", "3 features"),
           broken("the mass is 1", lambda: mass_steps(forget_discount=True))),
    proved("xi/series", Method.SYMBOLIC, xi_series_steps,
           SCOPE + "; 1 and 2 terms, and each further one by the same step",
           broken("the remainder one power of gamma larger", lambda: xi_series_steps(missing_powers=1))),
    proved("xi/nonnegative", Method.SMT, nonnegative_steps,
           "all kernels and gamma, 3 next states; z3. From xi = p + gamma E[xi'] (xi/series)",
           broken("p(phi) may be negative", lambda: nonnegative_steps(least_probability=-1))),
    proved("xi/transfer", Method.SYMBOLIC, transfer_steps,
           SCOPE, broken("read with R_i in task j", lambda: transfer_steps(read_with="R_i"))),
    refuted("xi/l1-not-enough", lambda: l1_facts(PHI ** Rational(-1, 2)),
            "one state, one action, features in (0, 1), every gamma; symbolic integrals",
            broken("a bounded reward has an infinite value", lambda: l1_facts(sympy.Integer(1))),
            broken("R = 1/phi is in L^1", lambda: l1_facts(1 / PHI))),
    proved("xi/finite-integral", Method.SMT, finite_integral_steps,
           "the inequalities: all R and all non-negative xi constant on three cells, z3; the limit: the "
           "theorem of dominated convergence, cited. R bounded by B suffices: then |Q| <= B/(1-gamma)",
           broken("the bound lowered by 1/1000", lambda: finite_integral_steps(Fraction(999, 1000)))),
)  # fmt: skip
