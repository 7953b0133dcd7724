"""How far general rewards are from linear ones (fig:object_collection_env c): exact, by integration.

The four objects are the pairs of a colour and a form. A linear reward is a sum c(colour) + f(form); so R on
the objects (orange box, orange triangle, blue box, blue triangle) is linear iff its interaction vanishes:

    D = R_2 - R_3 - R_4 + R_5 = 0.

The least sum of absolute errors of a linear model is |D|: every linear model has errors e with e_2 - e_3 -
e_4 + e_5 = D, hence sum |e| >= |D|, and the model that is exact on three objects has the one error D. (The
remaining two features, nothing and goal, are fitted exactly by any model, with weight 1 for the goal.)

For R_k ~ U(-1, 1) we have |D| <= 4, so the *mean* absolute error is at most 1 over the four objects and 2/3
over the six features. The paper's levels of "mean linear reward model error" go up to 1.75; they can only
be sums.

The density of D: with U_k = (1 +- R_k)/2 uniform on (0, 1), D = 2 (U_1 + ... + U_4) - 4, and the density of
a sum of uniforms is a piecewise polynomial, f_1 = 1 on (0, 1) and f_{n+1}(x) = integral of f_n from x - 1
to x.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy
from numpy.polynomial.polynomial import polyadd, polyint, polysub, polyval
from scipy.optimize import linprog

from proofs_checks.argument import Proof, Step, broken, incomplete, proved, refuted
from sfr_theory.arithmetic import Array
from sfr_theory.claims import Method

OBJECTS = ((1, 0, 1, 0), (1, 0, 0, 1), (0, 1, 1, 0), (0, 1, 0, 1))
"""Features of the four objects: orange, blue, box, triangle (the goal's dimension is 0 for all of them)."""
INTERACTION = (1, -1, -1, 1)
LEVELS = tuple(Fraction(k, 4) for k in range(8))
"""The borders of the paper's seven levels: 0, 1/4, ..., 7/4."""
NUMERATORS, DENOMINATOR = (8131, 7789, 7171, 6349, 5395, 4381, 3379), 49152


def interaction(values: Sequence[Any]) -> Any:
    """D of four numbers of any kind."""
    return sum(c * value for c, value in zip(INTERACTION, values, strict=True))


def sum_of_uniforms_density(count: int) -> list[Array]:
    """f_count on [0, 1), ..., [count-1, count): coefficients by power of the coordinate t in [0, 1)."""
    nothing, pieces = np.array([Fraction(0)]), [np.array([Fraction(1)])]
    for _ in range(count - 1):
        # On [k, k+1): the rest of piece k-1 from t to 1, plus piece k from 0 to t.
        before, after = (list(map(polyint, row)) for row in ([nothing, *pieces], [*pieces, nothing]))
        pieces = [
            polysub(polyadd(start, [rest.sum()]), rest) for rest, start in zip(before, after, strict=True)
        ]
    return pieces


def sum_of_uniforms_cdf(count: int, x: Fraction) -> Fraction:
    """P(U_1 + ... + U_count <= x), by integrating the density."""
    total = Fraction(0)
    for k, piece in enumerate(sum_of_uniforms_density(count)):
        upper = min(max(x - k, Fraction(0)), Fraction(1))
        total += polyval(upper, polyint(piece))
    return total


def irwin_hall_cdf(count: int, x: Fraction) -> Fraction:
    """The same by the closed formula (Irwin 1927, Hall 1927): an independent derivation."""
    terms = ((-1) ** k * math.comb(count, k) * max(x - k, Fraction(0)) ** count for k in range(count + 1))
    return sum(terms, Fraction(0)) / math.factorial(count)


def probability_within(t: Fraction) -> Fraction:
    """P(|D| <= t)."""
    return sum_of_uniforms_cdf(4, (4 + t) / 2) - sum_of_uniforms_cdf(4, (4 - t) / 2)


def level_probabilities() -> list[Fraction]:
    """P(|D| in the level), for the seven levels."""
    return [probability_within(high) - probability_within(low) for low, high in itertools.pairwise(LEVELS)]


def _level_steps(numerators: tuple[int, ...]) -> list[Step]:
    exact = level_probabilities()
    samples = 1_000_000
    rewards = np.random.default_rng(7).uniform(-1, 1, size=(samples, 4))
    counts, _ = np.histogram(np.abs(rewards @ INTERACTION), bins=[float(border) for border in LEVELS])
    # A count is binomial; 5 standard deviations in each of 7 levels leave a chance of 4e-6 for a false alarm.
    spread = [5 * math.sqrt(p * (1 - p) / samples) for p in map(float, exact)]
    close = all(abs(n / samples - float(p)) <= s for n, p, s in zip(counts, exact, spread, strict=True))
    points = [Fraction(k, 8) for k in range(33)]
    return [
        Step(
            f"the seven levels have probabilities {', '.join(map(str, numerators))} over {DENOMINATOR}",
            exact == [Fraction(n, DENOMINATOR) for n in numerators],
            f"computed: {', '.join(map(str, exact))}",
        ),
        Step(
            "the integrated density agrees with the Irwin-Hall formula",
            all(sum_of_uniforms_cdf(4, x) == irwin_hall_cdf(4, x) for x in points),
        ),
        Step(f"{samples} samples (seed 7) agree within 5 standard deviations", close),
    ]


def _largest_mean_error(rewards: tuple[int, ...], features: int) -> Fraction:
    """The least mean absolute error of a linear model of these four rewards, by the formula |D|/features."""
    return Fraction(abs(interaction(rewards)), features)


def _formula_steps() -> list[Step]:
    """|D| is the least sum of absolute errors: bound and attainment symbolically, and a linear programme."""
    rewards = sympy.symbols("R2:6")
    weights = sympy.symbols("w1:5")
    errors = [
        r - sum(f * w for f, w in zip(x, weights, strict=True)) for r, x in zip(rewards, OBJECTS, strict=True)
    ]
    d = interaction(rewards)
    exact_on_three = sympy.solve(errors[1:], weights[1:], dict=True)[0]
    corner = sympy.expand(errors[0].subs(exact_on_three))
    samples = np.random.default_rng(7).uniform(-1, 1, size=(20, 4))
    programme = [least_absolute_error(row) for row in samples]
    return [
        Step("e_2 - e_3 - e_4 + e_5 = D for every linear model", sympy.expand(interaction(errors) - d) == 0),
        Step("a model that is exact on three objects has the error D on the fourth", corner == d),
        Step(
            "a linear programme finds the same least sum (20 random rewards, to 1e-9)",
            bool(np.allclose(programme, np.abs(samples @ INTERACTION), atol=1e-9, rtol=0)),
        ),
    ]


def least_absolute_error(rewards: np.ndarray) -> float:
    """min over w of sum |R - phi.w|, as a linear programme in (w, t) with -t <= R - phi.w <= t."""
    features = np.array(OBJECTS, dtype=float)
    identity = np.eye(4)
    cost = np.concatenate([np.zeros(4), np.ones(4)])
    constraints = np.block([[features, -identity], [-features, -identity]])
    solution = linprog(cost, A_ub=constraints, b_ub=np.concatenate([rewards, -rewards]), bounds=(None, None))
    return float(solution.fun)


def _mean_facts(claimed: Fraction) -> list[Step]:
    """No mean absolute error reaches the claimed value."""
    corners = list(itertools.product((-1, 1), repeat=4))  # |D| is convex, so its maximum is at a corner
    over_objects = max(_largest_mean_error(corner, 4) for corner in corners)
    over_features = max(_largest_mean_error(corner, 6) for corner in corners)
    return [
        *_formula_steps(),
        Step(f"the mean over the four objects is at most {over_objects}", over_objects < claimed),
        Step(f"the mean over the six features is at most {over_features}", over_features < claimed),
    ]


def _sum_steps(largest_level: Fraction) -> list[Step]:
    probability = 1 - probability_within(largest_level)
    return [
        *_formula_steps(),
        Step(f"|D| exceeds {largest_level} with probability {probability}", probability > 0),
        Step("each of the seven levels has positive probability", all(p > 0 for p in level_probabilities())),
    ]


def _not_linear_facts(linear: tuple[Fraction, ...]) -> list[Step]:
    """Some of the sampled reward functions are linear: this one."""
    return [
        *_formula_steps(),
        Step(f"R = ({', '.join(map(str, linear))}) has D = 0 and is linear", interaction(linear) == 0),
        Step("P(D = 0) = 0: the density of D has no atom", probability_within(Fraction(0)) == 0),
    ]


ONE, ZERO = Fraction(1), Fraction(0)
LINEAR_REWARD = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4), ZERO)

PROOFS: tuple[Proof, ...] = (
    refuted("nonlinearity/mean-error", lambda: _mean_facts(Fraction(5, 4)),
            "the best linear model (min over w) of all rewards in [-1, 1]^4: levels 5, 6, 7 would be empty",
            broken("nor a mean error of 1", lambda: _mean_facts(Fraction(1)))),
    proved("nonlinearity/sum-error", Method.EXACT, lambda: _sum_steps(LEVELS[-1]),
           "all rewards in [-1, 1]^4; the reading of the paper's levels that we use",
           broken("sums beyond 4", lambda: _sum_steps(Fraction(4)))),
    proved("nonlinearity/level-probabilities", Method.EXACT, lambda: _level_steps(NUMERATORS),
           "R_k ~ U(-1, 1) independent, model error read as the sum |D|",
           broken("one numerator changed by 1", lambda: _level_steps((NUMERATORS[0] + 1, *NUMERATORS[1:])))),
    incomplete("nonlinearity/not-linear", "R_2 - R_3 - R_4 + R_5 != 0, which has probability 1",
               lambda: _not_linear_facts(LINEAR_REWARD),
               "all rewards of the four objects; nothing and goal are fitted exactly by every model",
               broken("R = (1, 0, 0, 0) is linear", lambda: _not_linear_facts((ONE, ZERO, ZERO, ZERO)))),
)  # fmt: skip
