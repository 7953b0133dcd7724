"""Proposition 2 (prop:xi-fixed-point): the Bellman operator on classes of xi and its fixed point.

    T_xi(xi)(s, a, .) = p(. | s, a) + gamma E[xi(s', abar(s'), .)],   abar(s') greedy for sum R xi(s', a', .)
    (T Q)(s, a)       = r(s, a) + gamma E[max_a' Q(s', a')]

In the order of the paper:

    prop2/well-defined-corrected   xi_1 ~ xi_2 implies T_xi xi_1 ~ T_xi xi_2; ties are harmless
    prop2/contraction    ||T_R [xi] - T_R [eta]||_R <= gamma ||[xi] - [eta]||_R, by lemma/max-difference
    prop2/bellman-on-q   Q of (T_xi xi) = T (Q of xi), so T_R is the Bellman operator under another name
    prop2/fixed-point-corrected    one fixed point, and iteration from anywhere converges to it

What is *not* true is that T_xi contracts xi itself: where two actions tie in value but differ in xi, an
arbitrarily small change of xi swaps the greedy action and T_xi jumps. A discontinuous map is no contraction
in any norm of a finite-dimensional space (`sfr_theory.checks.operators`). For a fixed policy it is one.

Greedy actions enter the symbolic steps as an arbitrary choice abar(s'), one for each state, and every choice
is gone through; max_a' Q(s', a') is Q(s', abar(s')) for the choice that is greedy.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import sympy
from sympy import Expr, Rational, oo

from proofs_checks.argument import Proof, Step, broken, every, incomplete, proved
from proofs_checks.smt import (
    Formula,
    discount,
    distribution,
    distributions,
    entails,
    equal,
    max_over_last_axis,
    maximum,
    number,
    real,
    reals,
    within,
)
from proofs_checks.symbolic import SymbolicMDP, identity, in_kernel_of, symbolic_mdp
from proofs_checks.xi_definition import DENSITY, PHI, integral, l1_facts
from sfr_theory.arithmetic import Array
from sfr_theory.claims import Method

THOUSANDTH = Fraction(1, 1000)
SELECTIONS = tuple(itertools.product(range(2), repeat=3))
"""Every way to choose one of two actions in each of three states."""


def operator(mdp: SymbolicMDP, xi: Array, selection: tuple[int, ...]) -> Array:
    """T_xi with the greedy actions `selection`."""
    chosen = xi[np.arange(len(selection)), list(selection)]
    return mdp.feature_probability + mdp.gamma * mdp.expected_next(chosen)


# --- |max f - max g| <= max |f - g| ---------------------------------------------------------------


def max_difference_steps(factor: Fraction = Fraction(1)) -> Iterator[Step]:
    f, g, bound = reals("f", 4), reals("g", 4), real("bound")
    yield entails(
        "|f_a - g_a| <= bound for all a gives |max f - max g| <= bound",
        within(f - g, bound),
        within(maximum(f) - maximum(g), number(factor) * bound),
    )


# --- the operator T_R is well defined -------------------------------------------------------------


def well_defined_steps(read_with: str = "R", tied: bool = True) -> Iterator[Step]:
    mdp = symbolic_mdp(features=3, R=(3,), R_other=(3,), xi=(3, 2, 3), v=(3, 2, 3), u=(3, 3))
    reward, xi = mdp.given["R"], mdp.given["xi"]
    equivalent = xi + in_kernel_of(reward, mdp.given["v"])

    def values_agree(first: Array, second: Array, one: tuple[int, ...], other: tuple[int, ...]) -> Step:
        difference = operator(mdp, first, one) - operator(mdp, second, other)
        return identity(f"greedy actions {one} and {other}", difference @ mdp.given[read_with], 0)

    yield every(
        "xi_1 ~ xi_2 have the same greedy actions, and then sum R (T xi_1 - T xi_2) = 0",
        (values_agree(xi, equivalent, selection, selection) for selection in SELECTIONS),
    )
    # Where both actions of a state tie in value, xi(s, 1) - xi(s, 0) has value 0.
    second_action = xi[:, 0] + in_kernel_of(reward, mdp.given["u"]) if tied else xi[:, 1]
    at_tie = np.stack([xi[:, 0], second_action], axis=1)
    yield every(
        "where actions tie in value, choosing differently among them changes no value either",
        (values_agree(at_tie, at_tie, SELECTIONS[0], selection) for selection in SELECTIONS),
    )


def undefined_facts(reward: Expr) -> Iterator[Step]:
    """What R in L^1 and any set of actions leave open; `reward` is R(phi), the density phi^(-1/2)/2."""
    yield from l1_facts(reward)
    yield Step(
        "so r(s, a) is infinite, and T_xi leads out of Xi, already from xi = 0",
        integral(reward * DENSITY) == oo,
    )
    n = sympy.Symbol("n", integer=True, positive=True)
    values = 1 - 1 / n
    yield Step(
        "A = {1, 2, ...} with Q(s, a) = 1 - 1/a: no action attains the supremum 1, so there is no abar",
        bool(sympy.limit(values, n, oo) == 1 and (values < 1) == True),  # noqa: E712 - sympy's truth values
    )


# --- the standard Bellman operator on Q -----------------------------------------------------------


def bellman_on_q_steps(forget_gamma: bool = False) -> Iterator[Step]:
    mdp = symbolic_mdp(features=3, R=(3,), xi=(3, 2, 3))
    reward, xi = mdp.given["R"], mdp.given["xi"]
    q = xi @ reward

    def bellman(selection: tuple[int, ...]) -> Array:
        value = q[np.arange(3), list(selection)][:, None]
        bootstrap = mdp.expected_next(value)
        return (mdp.expected_reward(reward) + (bootstrap if forget_gamma else mdp.gamma * bootstrap))[..., 0]

    yield every(
        "sum over phi of R T_xi(xi) = r + gamma E[Q_xi(s', abar(s'))] = T Q_xi",
        (
            identity(f"greedy actions {selection}", operator(mdp, xi, selection) @ reward, bellman(selection))
            for selection in SELECTIONS
        ),
    )


# --- contraction ----------------------------------------------------------------------------------


def contraction_steps(
    modulus: Callable[[Formula], Formula], next_states: tuple[int, ...] = (2, 3)
) -> Iterator[Step]:
    """The paper's chain on one row p(. | s, a), which is all that one entry of T Q depends on."""
    gamma, distance = real("gamma"), real("distance")
    for states in next_states:
        p, q, other = reals("p", states), reals("Q_xi", states, 2), reals("Q_eta", states, 2)
        gap = max_over_last_axis(q) - max_over_last_axis(other)
        yield entails(
            f"|T Q_xi - T Q_eta|(s, a) <= gamma ||Q_xi - Q_eta||, {states} next states with 2 actions each",
            [*distribution(p), *discount(gamma), modulus(gamma) >= 0, *within(q - other, distance)],
            within(gamma * (p @ gap), modulus(gamma) * distance),
        )


def fixed_point_steps(gamma_may_be_one: bool = False) -> Iterator[Step]:
    P, r = reals("P", 2, 2, 2), reals("r", 2, 2)
    first, second, gamma = reals("Q", 2, 2), reals("Q'", 2, 2), real("gamma")
    in_range = [gamma >= 0, gamma <= 1] if gamma_may_be_one else discount(gamma)
    yield entails(
        "Q = T Q and Q' = T Q' give Q = Q'",
        [
            *distributions(P),
            *in_range,
            *(fact for q in (first, second) for fact in equal(q, r + (P @ max_over_last_axis(q)) * gamma)),
        ],
        equal(first, second),
    )
    error, following, step = (real(name) for name in ("error", "following", "step"))
    yield entails(
        "error_n <= error_{n+1} + step_n and error_{n+1} <= gamma error_n give error_n <= step_n/(1-gamma); "
        "with step_n <= gamma^n step_0 the iterates are Cauchy; the space is complete "
        "(cor1/isometry-corrected)",
        [*in_range, error >= 0, error <= following + step, following <= gamma * error],
        (1 - gamma) * error <= step,
    )


# --- the operator of a fixed policy ---------------------------------------------------------------


def policy_operator_steps(modulus: Callable[[Formula], Formula]) -> Iterator[Step]:
    """One row p(. | s, a) and one feature; the policy is stochastic."""
    p, pi = reals("p", 3), reals("pi", 3, 2)
    difference = reals("xi-eta", 3, 2)
    gamma, distance = real("gamma"), real("distance")
    on_policy = (pi * difference).sum(axis=1)
    yield entails(
        "an average over actions is no larger: |sum_a' pi(a' | s') (xi - eta)(s', a', phi)| <= ||xi - eta||",
        [*distributions(pi), *within(difference, distance)],
        within(on_policy, distance),
    )
    averaged = reals("averaged", 3)
    yield entails(
        "so |T^pi xi - T^pi eta|(s, a, phi) <= gamma ||xi - eta||, for each phi",
        [*distribution(p), *discount(gamma), modulus(gamma) >= 0, *within(averaged, distance)],
        within(gamma * (p @ averaged), modulus(gamma) * distance),
    )


def _lowered(gamma: Formula) -> Formula:
    return gamma - number(THOUSANDTH)


BOUNDED = "bounded expected rewards r and an attained maximum over actions, as for finite A"

PROOFS: tuple[Proof, ...] = (
    incomplete("prop2/well-defined", BOUNDED, lambda: undefined_facts(PHI ** Rational(-1, 2)),
               "one state; features in (0, 1), or countably many actions; symbolic",
               broken("a bounded reward leaves Xi, too", lambda: undefined_facts(sympy.Integer(1)))),
    incomplete("prop2/fixed-point", BOUNDED, lambda: undefined_facts(PHI ** Rational(-1, 2)),
               "the same example: T 0 = r is infinite, so no class of bounded values is fixed",
               broken("a bounded reward has no fixed point, too", lambda: undefined_facts(sympy.Integer(1)))),
    proved("lemma/max-difference", Method.SMT, max_difference_steps,
           "all real f, g on 4 actions; z3",
           broken("the bound lowered by 1/1000", lambda: max_difference_steps(1 - THOUSANDTH))),
    proved("prop2/well-defined-corrected", Method.SYMBOLIC, well_defined_steps,
           "all kernels, rewards R != 0, gamma, xi, greedy choices; 3 states, 2 actions, 3 features; "
           "symbolic",
           broken("values read under another reward", lambda: well_defined_steps(read_with="R_other")),
           broken("actions that do not tie are swapped", lambda: well_defined_steps(tied=False))),
    proved("prop2/contraction", Method.SMT, lambda: contraction_steps(lambda gamma: gamma),
           "all kernels, gamma, Q_xi and Q_eta (r cancels); 2 and 3 next states, 2 actions; z3",
           broken("modulus gamma - 1/1000", lambda: contraction_steps(_lowered))),
    proved("prop2/bellman-on-q", Method.SYMBOLIC, bellman_on_q_steps,
           "all kernels, rewards, gamma, xi and greedy choices; 3 states, 2 actions, 3 features; symbolic",
           broken("gamma forgotten", lambda: bellman_on_q_steps(forget_gamma=True))),
    proved("prop2/fixed-point-corrected", Method.SMT, fixed_point_steps,
           "uniqueness: all kernels, rewards and gamma, 2 states, 2 actions; z3. Existence and "
           "convergence: Banach's fixed point theorem, by prop2/contraction and cor1/isometry-corrected",
           broken("gamma = 1 allowed", lambda: fixed_point_steps(gamma_may_be_one=True))),
    proved("prop2/policy-operator-contraction", Method.SMT,
           lambda: policy_operator_steps(lambda gamma: gamma),
           "sup-norm over (s, a, phi); all kernels, policies, gamma, xi; 3 next states, 2 actions; z3",
           broken("modulus gamma - 1/1000", lambda: policy_operator_steps(_lowered))),
)  # fmt: skip
