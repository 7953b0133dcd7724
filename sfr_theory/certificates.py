"""Certificates: bounds on what GPI loses that need a model, but not the error of what was learned.

T2' bounds the loss by eps_R, the error of the approximations under the target reward, which nobody knows
before the target is solved. With

    U(s, a) = max over i of sum R xi~_i,     W(s) = max over a of U(s, a),     D = T U - U,

and pi greedy on U (GPI), what can be computed lies on either side of the target's values, for any xi~_i
whatever (proofs: docs/theory.md):

    `lowest_residual`   V^pi(s) >= W(s) + m/(1-g),    m = min over s of D(s, pi(s))
    `largest_gain`      V*(s)   <= W(s) + M/(1-g),    M = max over s of (max over a of T U(s, a) - W(s))
    `Ceiling`           V*(s)   <= max over a of B(s, a),
                        B(s, a) = min over x >= 0 of  r(s, a) + sum_i x_i (Q_i*(s, a) - r_i(s, a))
                                                      + g/(1-g) max over pairs of (r - sum_i x_i r_i)

The first two need one sweep of the model; the third the sources' optimal values and expected rewards. B is a
linear programme with a variable for each source. Any x >= 0 bounds Q* (`conical_value`), so that neither the
solver's tolerance nor rounding can make it wrong: the programme is solved in float64, its x is clipped at 0
(and rounded to fractions in rational arithmetic), and what counts is the bound of that x.

As Q*(s, a) - Q^pi(s, a) = g E[V*(s') - V^pi(s')], a bound on the loss of V is, times g, one on that of Q.
"""

from __future__ import annotations

import numpy as np
from scipy.optimize import linprog

from sfr_theory.arithmetic import Array, Number, float_array, is_exact
from sfr_theory.programmes import block_diagonal, rounded

ENTRIES_AT_ONCE = 100_000
"""How many coefficients the solver gets as one programme; more would cost memory and save no time."""


def lowest_residual(residual: Array, policy: Array) -> Array:
    """m: D (..., S, A), pi (..., S) -> (...)."""
    return np.take_along_axis(residual, policy[..., None], axis=-1)[..., 0].min(axis=-1)


def largest_gain(values: Array, lookahead: Array) -> Array:
    """M: U and T U, (..., S, A) -> (...)."""
    return (lookahead.max(axis=-1) - values.max(axis=-1)).max(axis=-1)


def residual_span(residual: Array) -> Array:
    """max D - min D, which is at least M - m: (..., S, A) -> (...)."""
    return residual.max(axis=(-2, -1)) - residual.min(axis=(-2, -1))


def conical_value(gamma: Number, r: Array, source_r: Array, source_q: Array, x: Array) -> Array:
    """The bound on Q* that x >= 0 gives: r (..., N), r_i and Q_i* (..., I, N), x (..., I) -> (..., N)."""
    weights = x[..., None]
    uncovered = (r - (weights * source_r).sum(axis=-2)).max(axis=-1, keepdims=True)
    return r + (weights * (source_q - source_r)).sum(axis=-2) + gamma / (1 - gamma) * uncovered


def best_multipliers(gamma: Number, r: Array, source_r: Array, source_q: Array, pair: Array) -> Array:
    """The x that minimises the bound at one (s, a) of each of P problems: pair (P,) -> x (P, I)."""
    # The scales of the rewards do not matter; rewards of size 1 keep the solver within its tolerances.
    scale, source_scale = (_one_if_zero(np.abs(rewards).max(axis=-1)) for rewards in (r, source_r))
    later = np.take_along_axis(source_q - source_r, pair[:, None, None], axis=-1)[..., 0]
    x = _solve_programmes(
        float(gamma),
        float_array(r / scale[:, None]),
        float_array(source_r / source_scale[..., None]),
        float_array((1 - gamma) * later / source_scale),
    )
    if is_exact(r):
        x = rounded(x)
    return x * scale[:, None] / source_scale


def _one_if_zero(scale: Array) -> Array:
    return np.where(scale == 0, scale + 1, scale)


def _solve_programmes(gamma: float, r: Array, source_r: Array, later: Array) -> Array:
    """minimise sum_i x_i later_i + g e over x >= 0 and e, where sum_i x_i r_i + e >= r: (P, I)."""
    problems, sources, pairs = source_r.shape
    cover = np.concatenate([source_r.swapaxes(-1, -2), np.ones((problems, pairs, 1))], axis=-1)
    cost = np.concatenate([later, np.full((problems, 1), gamma)], axis=-1)
    lowest = np.zeros(cost.shape)
    lowest[:, -1] = -np.inf  # e may have any sign
    x = np.empty(later.shape)
    together = max(1, ENTRIES_AT_ONCE // cover[0].size)
    for part in (slice(start, start + together) for start in range(0, problems, together)):
        solution = linprog(
            cost[part].reshape(-1),
            A_ub=block_diagonal(-cover[part]),
            b_ub=-r[part].reshape(-1),
            bounds=np.stack([lowest[part].reshape(-1), np.full(lowest[part].size, np.inf)], axis=-1),
            method="highs",
        )
        if solution.status != 0:
            raise ArithmeticError(f"a linear programme of the sources' rewards: {solution.message}")
        x[part] = np.maximum(solution.x.reshape(-1, sources + 1)[:, :-1], 0)
    return x


class Ceiling:
    """How far the bound B on Q* lies above given values: a linear programme where it is needed, once.

    r (..., S, A), r_i and Q_i* (..., I, S, A). It depends on the tasks alone, so that the evaluations of a
    problem share it, however ties are broken. The x that is best at one (s, a) bounds Q* at all others, too;
    so programmes are solved only where the bound so far is the largest and not yet the best one.
    """

    def __init__(self, gamma: Number, r: Array, source_r: Array, source_q: Array) -> None:
        self.gamma = gamma
        self._shape = r.shape
        *_, sources, states, actions = source_r.shape
        self._r = r.reshape(-1, states * actions)
        self._source_r, self._source_q = (
            array.reshape(-1, sources, states * actions) for array in (source_r, source_q)
        )
        self._bound = conical_value(
            gamma, self._r, self._source_r, self._source_q, 0 * self._source_r[..., 0]
        )
        self._best = np.zeros(self._r.shape, dtype=bool)

    def excess(self, floor: Array) -> Array:
        """max over s of (max over a of B(s, a) - floor(s)): (..., S) -> (...)."""
        floor = np.repeat(floor.reshape(-1, self._shape[-2]), self._shape[-1], axis=-1)
        while True:
            above = self._bound - floor
            pair = above.argmax(axis=-1)
            problem = np.flatnonzero(~self._best[np.arange(len(pair)), pair])
            if not problem.size:
                return above.max(axis=-1).reshape(self._shape[:-2])
            arguments = (self.gamma, self._r[problem], self._source_r[problem], self._source_q[problem])
            x = best_multipliers(*arguments, pair[problem])
            self._bound[problem] = np.minimum(self._bound[problem], conical_value(*arguments, x))
            self._best[problem, pair[problem]] = True
