"""The inequalities behind the limits T1-MB and T1-GPI (docs/theory.md).

**Comparison lemma.** Let x_t(i) >= 0, i in a finite set, change only at visits of i, and there

    x_{t+1}(i) <= (1 - alpha_t) x_t(i) + alpha_t (g max_j x_t(j) + b_t) + rho_t,

with alpha_t in [0, 1] of infinite sum for each i, limsup b_t <= b, rho_t >= 0 of finite sum. Then
limsup max_i x_t(i) <= b/(1-g). Its proof uses three inequalities: x stays bounded; an unrolled recursion is
a mean of its start and its target; and a limit L with L <= g L + b is at most b/(1-g).

**T1-GPI.** Stored values M, own values Q, and the action abar that maximises max(M, Q)(s', .). With
c = sup (M - Q)^+,

    max_a M(s', a) - c <= Q(s', abar),     max_a Q(s', a) - c <= Q(s', abar) <= max_a Q(s', a),

and with eta = sup (M - T M)^+ the lemma, used twice, gives limsup ||Q_n - Q*|| <= g eta/(1-g)^2.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from proofs_checks.argument import Proof, Step, broken, proved
from proofs_checks.smt import at_most, discount, entails, maximum, number, real, reals
from sfr_theory.claims import Method

FULL, LOWERED = Fraction(1), Fraction(999, 1000)


# --- the comparison lemma -------------------------------------------------------------------------


def comparison_steps(factor: Fraction = FULL, rate_may_exceed_one: bool = False) -> Iterator[Step]:
    gamma, rate, b, rho, x, largest = (real(n) for n in ("gamma", "alpha", "b", "rho", "x", "largest"))
    rates = [rate >= 0] if rate_may_exceed_one else [rate >= 0, rate <= 1]
    visited = (1 - rate) * x + rate * (gamma * largest + b) + rho
    yield entails(
        "bounded: with B >= max_j x(j) and B >= b/(1-g), a visit leaves x(i) <= B + rho",
        [*discount(gamma), *rates, x >= 0, x <= largest, (1 - gamma) * largest >= b],
        visited <= largest + rho,
    )
    kept, start, target, spent = (real(n) for n in ("kept", "start", "target", "spent"))
    yield entails(
        "unrolled: x <= P x_0 + (1-P) target + sum of rho, P the product of the 1 - alpha, survives a visit",
        [*rates, spent >= 0, rho >= 0, x <= kept * start + (1 - kept) * target + spent],
        (1 - rate) * x + rate * target + rho
        <= (1 - rate) * kept * start + (1 - (1 - rate) * kept) * target + spent + rho,
    )
    yield entails(
        "limit: L <= g L + b gives L <= b/(1-g)",
        [*discount(gamma), largest >= 0, largest <= gamma * largest + b],
        (1 - gamma) * largest <= number(factor) * b,
    )


# --- T1-GPI ---------------------------------------------------------------------------------------


def bootstrap_steps(factor: Fraction = FULL) -> Iterator[Step]:
    """One next state with three actions; abar is action 0, which relabelling achieves."""
    own, stored, excess = reals("Q", 3), reals("M", 3), real("c")
    best = np.array([maximum(pair) for pair in zip(own, stored, strict=True)], dtype=object)
    assumptions = [excess >= 0, *at_most(stored - own, excess), *at_most(best, best[0])]
    loss = number(factor) * excess
    yield entails("Q(s', abar) <= max_a Q(s', a)", assumptions, own[0] <= maximum(own))
    yield entails("Q(s', abar) >= max_a M(s', a) - c", assumptions, at_most(stored - loss, own[0]))
    yield entails("Q(s', abar) >= max_a Q(s', a) - c", assumptions, at_most(own - loss, own[0]))


def limit_steps(factor: Fraction = FULL) -> Iterator[Step]:
    """X: limsup of the averaged T M - Q_n; c: of (M - Q_n)^+; D: of the Q-learning twin minus Q_n."""
    gamma, eta, x, c, d = (real(name) for name in ("gamma", "eta", "X", "c", "D"))
    nonnegative = [value >= 0 for value in (eta, x, c, d)]
    yield entails(
        "X <= g (X + eta) and c <= eta + X give c <= eta/(1-g)",
        [*discount(gamma), *nonnegative, x <= gamma * (x + eta), c <= eta + x],
        (1 - gamma) * c <= eta,
    )
    yield entails(
        "D <= g (D + c) and c <= eta/(1-g) give D <= g eta/(1-g)^2",
        [*discount(gamma), *nonnegative, d <= gamma * (d + c), (1 - gamma) * c <= eta],
        (1 - gamma) * (1 - gamma) * d <= number(factor) * gamma * eta,
    )


PROOFS: tuple[Proof, ...] = (
    proved("lemma/comparison", Method.SMT, comparison_steps,
           "the three inequalities, for all reals; z3. How they make the proof: docs/theory.md",
           broken("b/(1-g) lowered by 1/1000", lambda: comparison_steps(LOWERED)),
           broken("learning rates above 1", lambda: comparison_steps(rate_may_exceed_one=True))),
    proved("gpi-learning/step-bootstrap", Method.SMT, bootstrap_steps,
           "all Q, M; one next state, 3 actions; z3",
           broken("the loss c lowered by 1/1000", lambda: bootstrap_steps(LOWERED))),
    proved("gpi-learning/step-limit", Method.SMT, limit_steps,
           "all limits and gamma; z3",
           broken("g eta/(1-g)^2 lowered by 1/1000", lambda: limit_steps(LOWERED))),
)  # fmt: skip
