"""What the convergence results need: conditions that cannot be dropped, a constant that cannot be lowered.

**Zero mean is not sufficient** (proof of Theorem 1). One state, one action, gamma = 0, alpha_n = 1/n, noise
eps_n = +-n, a fair coin: its mean is 0, T is a contraction, yet

    Q_n - (1 - 1/n) Q_{n-1} = eps_n/n = +-1

on every path, so Q_n cannot converge: if it did, the left side would tend to 0. What is missing is a bound on
the variance.

**Continuous features.** Along a path the class of xi_n is Q-learning with rewards rho_n, the integral of
R p^_n; nothing in that needs Phi to be finite. So T1' holds for finite S and A if rho_n has mean r(s, a) and
bounded variance. R in L^1 gives neither: with R = phi^(-1/2) and phi uniform on (0, 1) the mean is finite,
the variance is not; with the density phi^(-1/2)/2 not even the mean is.

**T1-MB needs rates of bounded variation.** gamma = 0, beta = 1/2, rewards r_n = +-1 by a fair coin, and the
rate c_n/(n+3), c_n = 3 after a positive estimate r~_{n-1} and 1 else. r~_{n-1} = (r_{n-1} + r~_{n-2})/2 has
the sign of r_{n-1}. With q_n = E Q_n and the means over r_n = +-1 apart, every update is exact:

    (n+3)(n+2) q_n = (n+2)(n+1) q_{n-1} + (n+2)/4 - 1        for n >= 3,

so q_n -> 1/8, although every reward has mean 0. |Q_n| <= 1, so Q_n -> 0 almost surely would give q_n -> 0.

**T1-GPI is sharp at every gamma.** One state, actions a and b that pay 1 and 0, a frozen M = (0, m), m > 1.
From Q = 0 learning bootstraps on b for ever: Q(b) = 0, Q(a) -> 1. Q* = (1, g)/(1-g), so the error is g/(1-g),
and eta = (1-g) m gives the bound g m/(1-g): the ratio is 1/m, for every m > 1.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import sympy
from sympy import Rational, oo

from proofs_checks.argument import Proof, Step, broken, incomplete, proved, refuted
from proofs_checks.symbolic import Expression, is_nonnegative, vanishes
from proofs_checks.xi_definition import PHI, integral, l1_facts
from sfr_theory.arithmetic import exact_array, fraction
from sfr_theory.checks.model_based import one_pair_path
from sfr_theory.claims import Method
from sfr_theory.learning import FeatureEstimate, learn

HALF = Fraction(1, 2)


def zero_mean_facts(growth: int) -> Iterator[Step]:
    """p^_n = p +- n^growth (1, -1) by a fair coin; 1 is the counterexample, 0 has bounded variance."""
    n, q, sign, p = sympy.symbols("n q sign p")
    noise = sign * n**growth
    estimate = sympy.Matrix([p + noise, 1 - p - noise])
    mean = (estimate.subs(sign, 1) + estimate.subs(sign, -1)) / 2
    yield Step(
        "p^_n = p +- n (1, -1) by a fair coin estimates p = (p, 1-p) without bias: E eps = 0",
        sympy.simplify(mean) == sympy.Matrix([p, 1 - p]),
    )
    # R = (1, 0) less its mean p, so that Q* = 0.
    updated = q + (estimate[0] - p - q) / n
    jump = sympy.simplify(updated - (1 - 1 / n) * q)
    yield Step(
        "R = (1, 0), gamma = 0, alpha_n = 1/n: (Q_n - p) - (1 - 1/n) (Q_(n-1) - p) = "
        f"{jump} does not tend to 0, so Q_n has no limit",
        bool(sympy.limit(jump.subs(sign, 1), n, oo) != 0),
    )


def integral_facts(reward: Expression) -> Iterator[Step]:
    """phi uniform on (0, 1); then the density phi^(-1/2)/2."""
    mean, square = integral(reward), integral(reward**2)
    yield Step(
        f"R(phi) = {reward}, phi uniform on (0, 1): the mean reward is {mean}, its variance is infinite",
        bool(mean < oo and square == oo),
    )
    yield from l1_facts(reward)


def mean_value(visits: int, weights: tuple[int, int]) -> Fraction:
    """E Q_n over all sequences of rewards, by the learning rule itself; weights: c_n after +1 and -1."""
    total = Fraction(0)
    reward = exact_array([1, -1])
    start = exact_array([[["1/2", "1/2"]]])
    for features in itertools.product(range(2), repeat=visits):
        path = one_pair_path(np.array(features))
        estimates = FeatureEstimate.one_step_model(start, exact_array(HALF)[()]).along(path)
        # The sign of the estimate before a visit is that of the last reward; before the first it is 0.
        before = [1, *(weights[seen] for seen in features[:-1])]
        rates = exact_array([Fraction(c, k + 4) for k, c in enumerate(before)])
        xi = learn(path, estimates, reward, rates, 0, exact_array([[[0, 0]]]), np.array([visits]))
        total += fraction((xi[-1, 0, 0] * reward).sum())
    return total / 2**visits


def varying_rates_facts(weights: tuple[int, int] = (3, 1)) -> Iterator[Step]:
    means = [mean_value(n, weights) for n in range(1, 9)]
    holds = all(
        (n + 3) * (n + 2) * means[n - 1] == (n + 2) * (n + 1) * means[n - 2] + Fraction(n + 2, 4) - 1
        for n in range(3, 9)
    )
    yield Step("(n+3)(n+2) q_n = (n+2)(n+1) q_(n-1) + (n+2)/4 - 1 by the learning rule, n = 3, ..., 8", holds)
    n, k = sympy.symbols("n k", integer=True, positive=True)
    start = Rational(means[1].numerator, means[1].denominator)
    closed = (20 * start + sympy.summation((k + 2) / Rational(4) - 1, (k, 3, n))) / ((n + 3) * (n + 2))
    limit = sympy.limit(closed, n, oo)
    yield Step(f"so q_n = E Q_n tends to {limit}, although every reward has mean 0", limit != 0)


def frozen_steps(excess: Expression) -> Iterator[Step]:
    """m = 1 + `excess`; gamma = k/(1+k) with k > 0."""
    k = sympy.Symbol("k", positive=True)
    g = k / (1 + k)
    m = 1 + excess
    q = (sympy.Integer(0), sympy.Integer(0))
    for _ in range(2):  # the GPI action is b while m > Q(a)
        q = (1 + g * q[1], g * q[1])
    yield Step("from Q = 0 the iterates arrive at (1, 0) and stay there", q == (1, 0))
    yield Step("m - Q(a) > 0, so the GPI action is b", is_nonnegative(m - q[0]) and not vanishes(m - q[0]))
    best = (1 / (1 - g), g / (1 - g))
    improved = (1 + g * m, g * m)  # T M
    overshoot = m - improved[1]
    yield Step("M - TM is largest at b: eta = (1-g) m", vanishes(overshoot - (1 - g) * m))
    yield Step("and not positive at a", is_nonnegative(improved[0]))
    error, bound = best[0] - q[0], g * overshoot / (1 - g) ** 2
    yield Step("||Q - Q*|| = g/(1-g)", vanishes(error - g / (1 - g)) and vanishes(best[1] - q[1] - error))
    yield Step("error / bound = 1/m", vanishes(error / bound - 1 / m))


DELTA = sympy.Symbol("delta", positive=True)

PROOFS: tuple[Proof, ...] = (
    refuted("thm1/zero-mean-sufficient", lambda: zero_mean_facts(1),
            "one state, one action, two features, gamma = 0, alpha_n = 1/n, every path; what is missing is a "
            "bounded variance, which the indicator has",
            broken("noise of bounded variance does the same", lambda: zero_mean_facts(0))),
    incomplete("thm1/continuous-features",
               "finite S and A, and an estimate p^ with E of the integral of R p^ equal to r(s, a) and of "
               "bounded variance; then T1' holds as it is: thm1/pathwise does not use that Phi is finite",
               lambda: integral_facts(PHI ** Rational(-1, 2)),
               "one state, one action, features in (0, 1); symbolic integrals. For densities the indicator "
               "is no such estimate: mf/indicator-density",
               broken("a bounded reward has infinite variance, too",
                      lambda: integral_facts(sympy.Integer(1)))),
    refuted("mb/any-rates", varying_rates_facts,
            "one pair, gamma = 0, beta = 1/2; the recursion exactly over all sequences to n = 8, its limit "
            "for all n; rates between 1/(n+3) and 3/(n+3), known before each visit",
            broken("the same with rates 1/(n+3)", lambda: varying_rates_facts((1, 1)))),
    proved("gpi-learning/frozen-sharp", Method.SYMBOLIC, lambda: frozen_steps(DELTA),
           "every gamma in (0, 1) and every m > 1; one state, two actions",
           broken("m = 1 leaves the GPI action to the breaking of ties",
                  lambda: frozen_steps(sympy.Integer(0)))),
)  # fmt: skip
