"""Bounds on what GPI loses, each as a function that returns all its terms.

Setting: sources R_1..R_I with optimal policies pi_i, their true xi_i, approximations xi~_i, and a
target R. The GPI policy pi is greedy on max over i of sum R xi~_i. Write g for gamma, r(s, a) for
the expected reward, ||.|| for the sup over (s, a), N_R for the value seminorm, A_R for the absolute
norm (`sfr_theory.operators`), xi* for an optimal policy of the target, and

    d_i   = ||r - r_i||                              distance of expected rewards
    D_i   = sup over (s, a) of sum |R - R_i| p(phi | s, a)   the paper's ||R - R_i||_p; d_i <= D_i
    eps_R = max over i of N_R(xi_i - xi~_i)          error of the approximations, *read under R*

Statements (`STATEMENTS`), by the id of their claim:

    gpi/linear               ||Q* - Q^pi|| <= 2/(1-g) (||r - r_0|| + min_j ||r_0 - r_j|| + eps_{R_0})
    thm2/printed             A_R(xi* - xi^pi) <= 2/(1-g) (min_i D_i + max_i A_{R_i}(xi_i - xi~_i))
    thm2/printed-value-norm  N_R(xi* - xi^pi) <= 2/(1-g) (min_i D_i + max_i N_{R_i}(xi_i - xi~_i))
    thm2/corrected           ||Q* - Q^pi|| <= 2/(1-g) (min_i D_i + eps_R)
    thm2/sharp               ||Q* - Q^pi|| <= 2g/(1-g) (g min_i d_i + eps_R)
    thm2/sharp-value         ||V* - V^pi|| <= 2/(1-g)  (g min_i d_i + eps_R)
    thm2/sharp-affine, thm2/sharp-value-affine     the same with d_i replaced by
                             inf over a > 0, c of ||r - a r_i - c||: scale and shift leave pi_i optimal
    thm2/code                ||Q* - Q^pi0|| <= 2g/(1-g) (||r - r_0|| + g min_j ||r_0 - r_j|| + eps_{R_0})
    thm2/code-value          ||V* - V^pi0|| <= 2/(1-g)  (the same)
    certificate/...          bounds that need no eps_R: `sfr_theory.certificates`

In `gpi/linear` (eq:gpi_guarantee) R_0 is the linear reward nearest to R and GPI reads the psi~_j under
R_0; that is the reading under which it holds. The two printed ones are false: their error is measured
under R_i while GPI reads it under R, and A_R also separates policies of equal value.

All functions take a `SolvedProblem` of one problem or of a batch, in either arithmetic.

**What float64 cannot decide.** Rounding may blur a comparison by some S |R| |xi| 2^-46 / (1-g)^2, which grows
like (1-g)^-3; no left side is larger than 2 max|R|/(1-g). While the blur is far below that, two sides that
differ by less than it count as left <= right. Where it is not, they are *undecided*: neither held nor
violated, and rational arithmetic has to tell.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from sfr_theory.arithmetic import Array, Number, float_array, is_exact, zeros
from sfr_theory.certificates import Ceiling, largest_gain, lowest_residual, residual_span
from sfr_theory.errors import InputError
from sfr_theory.gpi import gpi_values
from sfr_theory.operators import absolute_norm, bellman_q, q_from_xi, value_seminorm


@dataclass(frozen=True)
class SolvedProblem:
    """A transfer problem (or a batch) with everything solved; leading axes are batch axes.

    `linear_reward` is the linear reward R_0 nearest to R in the least-squares sense, `linear_gpi_policy`
    the GPI policy that reads the approximations under R_0, `linear_gpi_xi` its true xi.
    """

    gamma: Number
    transition: Array  # (..., S, A, S)
    feature_probability: Array  # (..., S, A, F)
    target: Array  # (..., F)
    sources: Array  # (..., I, F)
    optimal_xi: Array  # (..., S, A, F)
    source_xi: Array  # (..., I, S, A, F)
    approximations: Array  # (..., I, S, A, F)
    gpi_policy: Array  # (..., S)
    gpi_xi: Array  # (..., S, A, F)
    linear_reward: Array  # (..., F)
    linear_gpi_policy: Array  # (..., S)
    linear_gpi_xi: Array  # (..., S, A, F)
    ceiling: Ceiling

    @cached_property
    def error(self) -> Array:
        """xi_i - xi~_i."""
        return self.source_xi - self.approximations

    @cached_property
    def optimal_q(self) -> Array:
        return q_from_xi(self.optimal_xi, self.target)

    @cached_property
    def gpi_q(self) -> Array:
        return q_from_xi(self.gpi_xi, self.target)

    @cached_property
    def expected_rewards(self) -> Array:
        """r_i of the sources, shape (..., I, S * A)."""
        return self.expected(self.sources)

    @cached_property
    def expected_target(self) -> Array:
        """r of the target, shape (..., 1, S * A)."""
        return self.expected(self.target[..., None, :])

    def expected(self, rewards: Array) -> Array:
        """Expected rewards (..., T, S * A) of rewards (..., T, F)."""
        r = q_from_xi(self.feature_probability[..., None, :, :, :], rewards)
        return r.reshape(*r.shape[:-2], -1)

    @cached_property
    def epsilon_under_target(self) -> Array:
        """eps_R = max over i of N_R(xi_i - xi~_i)."""
        return value_seminorm(self.error, self.target[..., None, :]).max(axis=-1)

    @cached_property
    def reward_distance(self) -> Array:
        """min over i of d_i."""
        return np.abs(self.expected_target - self.expected_rewards).max(axis=-1).min(axis=-1)

    @cached_property
    def printed_reward_distance(self) -> Array:
        """min over i of D_i, the paper's min ||R - R_i||_p."""
        difference = self.target[..., None, :] - self.sources
        return absolute_norm(self.feature_probability[..., None, :, :, :], difference).min(axis=-1)

    @cached_property
    def affine_reward_distance(self) -> Array:
        """min over i of inf over a > 0, c of ||r - a r_i - c||."""
        target = np.broadcast_to(self.expected_target, self.expected_rewards.shape)
        return affine_distance(target, self.expected_rewards).min(axis=-1)

    @cached_property
    def gpi_values(self) -> Array:
        """U = max over i of sum R xi~_i, on which the GPI policy is greedy: (..., S, A)."""
        return gpi_values(q_from_xi(self.approximations, self.target[..., None, :]))

    @cached_property
    def lookahead(self) -> Array:
        """T U: (..., S, A)."""
        return bellman_q(self, self.target, self.gpi_values)

    @cached_property
    def lowest_residual(self) -> Array:
        """m, by which V^pi >= W + m/(1-g) (`sfr_theory.certificates`)."""
        return lowest_residual(self.lookahead - self.gpi_values, self.gpi_policy)

    @cached_property
    def rounding(self) -> Array:
        """How much float64 may blur a comparison of two sides; 0 in rational arithmetic.

        A solve with I - g P has relative error of order S u (1 + g)/(1 - g); xi is of size 1/(1 - g),
        approximations may be larger; epsilon then enters the right side with a factor 2/(1 - g).
        """
        if is_exact(self.target):
            return np.zeros(self.target.shape[:-1], dtype=int)
        states = self.feature_probability.shape[-3]
        largest_reward = np.maximum(np.abs(self.target).max(axis=-1), np.abs(self.sources).max(axis=(-2, -1)))
        entries = self.approximations.reshape(*self.target.shape[:-1], -1)
        largest_xi = np.maximum(entries.max(axis=-1), -entries.min(axis=-1)) + 1 / (1 - self.gamma)
        unit = np.finfo(float).eps
        return 64 * unit * states * largest_reward * largest_xi / (1 - self.gamma) ** 2

    @cached_property
    def blurred(self) -> Array:
        """Where rounding is not far below max|R|/(1-g), so that a difference within it says nothing."""
        scale = np.abs(self.target).max(axis=-1) / (1 - self.gamma)
        return np.asarray((LARGE * self.rounding > scale) & (scale > 0), dtype=bool)


LARGE = 1000
"""Rounding is ignored as long as this multiple of it does not exceed max|R|/(1-g)."""


@dataclass(frozen=True)
class BoundTerms:
    """Both sides of a bound, and what the right one is made of; arrays over a batch, or 0-dimensional."""

    left: Array
    reward_distance: Array
    epsilon: Array
    right: Array
    rounding: Array
    blurred: Array  # where this rounding is too large to be ignored

    @classmethod
    def join(cls, combine: Callable[[list[Array]], Array], terms: list[BoundTerms]) -> BoundTerms:
        """Terms of many problems as one; `combine` is np.stack or np.concatenate."""
        return cls(*(combine([getattr(term, part.name) for term in terms]) for part in fields(cls)))

    @property
    def violated(self) -> Array:
        """left > right, by more than the rounding of float64."""
        return np.asarray(self.left > self.right + self.rounding, dtype=bool)

    @property
    def undecided(self) -> Array:
        """Neither side is larger by more than rounding, and rounding is large."""
        return ~self.violated & self.blurred & np.asarray(self.left + self.rounding > self.right, dtype=bool)

    @property
    def holds(self) -> Array:
        """left <= right, up to a rounding that is small."""
        return ~(self.violated | self.undecided)

    @property
    def ratio(self) -> Array:
        """left / right as floats; 0 where both are 0 (up to rounding), infinite where only right is."""
        nothing = (self.left <= self.rounding) & (self.right <= self.rounding)
        undefined = np.asarray(self.right == 0)
        # Divided in the arithmetic of the terms: exact sides may be beyond what a float holds.
        quotient = float_array(self.left / np.where(undefined, 1, self.right))
        return np.where(nothing, 0.0, np.where(undefined, np.inf, quotient))


def _terms(
    evaluation: SolvedProblem, left: Array, distance: Array, epsilon: Array, right: Array
) -> BoundTerms:
    left, distance, epsilon, right = (np.asarray(term) for term in (left, distance, epsilon, right))
    if not is_exact(evaluation.target) and not (np.isfinite(left).all() and np.isfinite(right).all()):
        raise InputError(
            "the numbers of this problem are too large for float64; use exact arithmetic (--exact)"
        )
    rounding = np.asarray(evaluation.rounding)
    return BoundTerms(left, distance, epsilon, right, rounding, evaluation.blurred)


def _q_loss(e: SolvedProblem) -> Array:
    return np.abs(e.optimal_q - e.gpi_q).max(axis=(-2, -1))


def _value_loss_of(e: SolvedProblem, q: Array, policy: Array) -> Array:
    value = np.take_along_axis(q, policy[..., None], axis=-1)[..., 0]
    return np.abs(e.optimal_q.max(axis=-1) - value).max(axis=-1)


def _value_loss(e: SolvedProblem) -> Array:
    return _value_loss_of(e, e.gpi_q, e.gpi_policy)


def _linear_q_loss(e: SolvedProblem) -> Array:
    return np.abs(e.optimal_q - q_from_xi(e.linear_gpi_xi, e.target)).max(axis=(-2, -1))


def _read_as_linear(e: SolvedProblem) -> tuple[Array, Array, Array]:
    """||r - r_0||, min_j ||r_0 - r_j|| and eps_{R_0}, of the linear reward R_0 that GPI reads."""
    linear = e.linear_reward[..., None, :]
    to_linear = np.abs(e.expected_target - e.expected(linear)).max(axis=(-2, -1))
    to_source = np.abs(e.expected(linear) - e.expected_rewards).max(axis=-1).min(axis=-1)
    return to_linear, to_source, value_seminorm(e.error, linear).max(axis=-1)


def gpi_linear(e: SolvedProblem) -> BoundTerms:
    """eq:gpi_guarantee, with GPI read under the nearest linear reward R_0."""
    to_linear, to_source, epsilon = _read_as_linear(e)
    left, distance = _linear_q_loss(e), to_linear + to_source
    return _terms(e, left, distance, epsilon, 2 * (distance + epsilon) / (1 - e.gamma))


def thm2_printed(e: SolvedProblem) -> BoundTerms:
    """Theorem 2 (t:xi_gpi_formulation) with the norm that its text defines, on both sides."""
    left = absolute_norm(e.optimal_xi - e.gpi_xi, e.target)
    epsilon = absolute_norm(e.error, e.sources).max(axis=-1)
    distance = e.printed_reward_distance
    return _terms(e, left, distance, epsilon, 2 * (distance + epsilon) / (1 - e.gamma))


def thm2_printed_value_norm(e: SolvedProblem) -> BoundTerms:
    """Theorem 2 with the norm of Corollary 1, on both sides; the error is still read under R_i."""
    epsilon = value_seminorm(e.error, e.sources).max(axis=-1)
    distance = e.printed_reward_distance
    return _terms(e, _q_loss(e), distance, epsilon, 2 * (distance + epsilon) / (1 - e.gamma))


def thm2_corrected(e: SolvedProblem) -> BoundTerms:
    """Theorem 2 with the value norm and the error read under R: true, never tight."""
    distance, epsilon = e.printed_reward_distance, e.epsilon_under_target
    return _terms(e, _q_loss(e), distance, epsilon, 2 * (distance + epsilon) / (1 - e.gamma))


def _sharp(e: SolvedProblem, left: Array, distance: Array, factor: Number) -> BoundTerms:
    epsilon = e.epsilon_under_target
    return _terms(e, left, distance, epsilon, factor * (e.gamma * distance + epsilon) / (1 - e.gamma))


def thm2_sharp(e: SolvedProblem) -> BoundTerms:
    """T2' for Q."""
    return _sharp(e, _q_loss(e), e.reward_distance, 2 * e.gamma)


def thm2_sharp_value(e: SolvedProblem) -> BoundTerms:
    """T2' for V."""
    return _sharp(e, _value_loss(e), e.reward_distance, 2)


def thm2_sharp_affine(e: SolvedProblem) -> BoundTerms:
    """T2' for Q, up to scale and shift of the source rewards."""
    return _sharp(e, _q_loss(e), e.affine_reward_distance, 2 * e.gamma)


def thm2_sharp_value_affine(e: SolvedProblem) -> BoundTerms:
    """T2' for V, up to scale and shift of the source rewards."""
    return _sharp(e, _value_loss(e), e.affine_reward_distance, 2)


def _code(e: SolvedProblem, left: Array, factor: Number) -> BoundTerms:
    rho, to_source, epsilon = _read_as_linear(e)
    distance = rho + e.gamma * to_source
    return _terms(e, left, distance, epsilon, factor * (distance + epsilon) / (1 - e.gamma))


def thm2_code(e: SolvedProblem) -> BoundTerms:
    """T2'' for Q, the code being the feature vectors."""
    return _code(e, _linear_q_loss(e), 2 * e.gamma)


def thm2_code_value(e: SolvedProblem) -> BoundTerms:
    """T2'' for V, the code being the feature vectors."""
    left = _value_loss_of(e, q_from_xi(e.linear_gpi_xi, e.target), e.linear_gpi_policy)
    return _code(e, left, 2)


def _certified(e: SolvedProblem, left: Array, right: Array) -> BoundTerms:
    return _terms(e, left, e.reward_distance, e.epsilon_under_target, right)


def certificate_residual(e: SolvedProblem) -> BoundTerms:
    """Certificate (a) for Q."""
    span = residual_span(e.lookahead - e.gpi_values)
    return _certified(e, _q_loss(e), e.gamma * span / (1 - e.gamma))


def certificate_residual_value(e: SolvedProblem) -> BoundTerms:
    """Certificate (a) for V."""
    span = residual_span(e.lookahead - e.gpi_values)
    return _certified(e, _value_loss(e), span / (1 - e.gamma))


def certificate_greedy_residual_value(e: SolvedProblem) -> BoundTerms:
    """Certificate (a), read where the greedy policies look."""
    gain = largest_gain(e.gpi_values, e.lookahead)
    return _certified(e, _value_loss(e), (gain - e.lowest_residual) / (1 - e.gamma))


def certificate_sources_value(e: SolvedProblem) -> BoundTerms:
    """Certificate (b): V* from the sources' values, V^pi from the residual."""
    above = e.ceiling.excess(e.gpi_values.max(axis=-1))
    return _certified(e, _value_loss(e), above - e.lowest_residual / (1 - e.gamma))


Bound = Callable[[SolvedProblem], BoundTerms]

STATEMENTS: dict[str, Bound] = {
    "gpi/linear": gpi_linear,
    "thm2/printed": thm2_printed,
    "thm2/printed-value-norm": thm2_printed_value_norm,
    "thm2/corrected": thm2_corrected,
    "thm2/sharp": thm2_sharp,
    "thm2/sharp-value": thm2_sharp_value,
    "thm2/sharp-affine": thm2_sharp_affine,
    "thm2/sharp-value-affine": thm2_sharp_value_affine,
    "thm2/code": thm2_code,
    "thm2/code-value": thm2_code_value,
    "certificate/residual": certificate_residual,
    "certificate/residual-value": certificate_residual_value,
    "certificate/greedy-residual-value": certificate_greedy_residual_value,
    "certificate/sources-value": certificate_sources_value,
}
"""Both sides of a claim of the catalogue, by its id."""


def affine_distance(target: Array, source: Array) -> Array:
    """inf over a > 0, c of max over points of |y - a x - c|, for y, x of shape (..., N) -> (...).

    For a given slope a the best shift c leaves half the range of y - a x. That is convex and piecewise linear
    in a: the largest of the lines (y_i - y_j - a (x_i - x_j)) / 2. Two lines that touch it bracket the
    minimum over a >= 0, one falling and one rising; where they meet, either the function touches them too
    and the minimum is found, or a new line replaces one of them. There are finitely many lines, so this ends,
    in a few steps. The value returned is one that the function takes, so rounding never makes it too small.
    """

    def touching_line(slope: Array) -> tuple[Array, Array]:
        """(rise, run) with half the range of y - a x equal to (rise - a run) / 2 at this slope."""
        residual = target - slope[..., None] * source
        top, bottom = residual.argmax(axis=-1)[..., None], residual.argmin(axis=-1)[..., None]

        def difference(values: Array) -> Array:
            return (np.take_along_axis(values, top, -1) - np.take_along_axis(values, bottom, -1))[..., 0]

        return difference(target), difference(source)

    slope = zeros(target.shape[:-1], like=target)
    falling_rise, falling_run = touching_line(slope)
    best = falling_rise  # the range at a = 0
    # As a grows the range tends to the line through the leftmost and the rightmost point.
    left, right = source.argmin(axis=-1)[..., None], source.argmax(axis=-1)[..., None]
    rising_rise = (np.take_along_axis(target, left, -1) - np.take_along_axis(target, right, -1))[..., 0]
    rising_run = (np.take_along_axis(source, left, -1) - np.take_along_axis(source, right, -1))[..., 0]
    # Where the range does not fall at a = 0 it never will: nothing to do.
    open_ = falling_run > 0
    while open_.any():
        width = np.where(open_, falling_run - rising_run, 1)
        slope = np.where(open_, (falling_rise - rising_rise) / width, slope)
        rise, run = touching_line(slope)
        found = rise - slope * run
        best = np.where(open_, np.minimum(best, found), best)
        falls = run > 0
        # A new line is strictly flatter than the two that met; without one the bracket is closed.
        flatter = (rising_run < run) & (run < falling_run)
        open_ = open_ & flatter & (found > falling_rise - slope * falling_run)
        falling_rise, falling_run = np.where(falls, rise, falling_rise), np.where(falls, run, falling_run)
        rising_rise, rising_run = np.where(falls, rising_rise, rise), np.where(falls, rising_run, run)
    return best / 2
