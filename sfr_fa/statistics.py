"""What the returns of several repetitions say, and how surely.

Given returns x_1, ..., x_m of one agent and y_1, ..., y_n of another, one number a repetition:

    mean, standard error     xbar,  s / sqrt(m) with s^2 = sum (x_i - xbar)^2 / (m - 1)
    box                      quartiles by linear interpolation; fences: the last values within 1.5 (q3 - q1)
    U                        #{x_i > y_j} + #{x_i = y_j} / 2
    superiority              A = U / (m n), the chance that a repetition of x beats one of y, ties half
    Cliff's delta            2 A - 1
    p, asymptotic            2 (1 - Phi((|U - mn/2| - 1/2) / sigma)), sigma corrected for ties: what the paper
                             prints (docs/claims.md, stats/asymptotic-test)
    p, exact                 2 min(P(U' <= U), P(U' >= U)), at most 1, over all equally likely ways to give
                             the m + n (mid)ranks to the two agents; ties are no obstacle
    IQM                      the mean without the lowest and the highest quarter of the values
    intervals                percentile bootstrap: repetitions are drawn again with replacement

Everything is a function of arrays. A repetition that is missing is an array that is shorter, or NaN in a
table of repetitions x tasks; each result carries the numbers of repetitions that it rests on. What a number
cannot be computed for is NaN: a standard error of one repetition, a mean of none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import mannwhitneyu, rankdata, trim_mean

from sfr_theory.errors import InputError

FloatArray = NDArray[np.float64]
Statistic = Callable[[FloatArray], FloatArray]
"""Maps (..., repetitions) to (...)."""
RESAMPLES = 10_000
LEVEL = 0.95


def _sample(values: Any, name: str) -> FloatArray:
    """A one-dimensional array of finite numbers."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions; give one number a repetition")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has a value that is not finite; leave such a repetition out")
    return array


# --- One agent ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskCurve:
    """Mean and standard error over repetitions, for each task."""

    mean: FloatArray
    standard_error: FloatArray
    repetitions: NDArray[np.int64]


def task_curve(returns: Any) -> TaskCurve:
    """Of returns (repetitions, tasks); NaN where a repetition lacks a task."""
    table = np.asarray(returns, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"returns have {table.ndim} dimensions; they must be repetitions x tasks")
    there = np.isfinite(table)
    count = there.sum(axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = np.where(there, table, 0.0).sum(axis=0) / count
        squares = (np.where(there, table - mean, 0.0) ** 2).sum(axis=0)
        error = np.sqrt(np.where(count > 1, squares / (count - 1.0), np.nan) / count)
    return TaskCurve(np.where(count > 0, mean, np.nan), error, count)


def running_mean(returns: Any, window: int) -> FloatArray:
    """Each repetition averaged over `window` tasks around each task; fewer at both ends."""
    table = np.asarray(returns, dtype=np.float64)
    tasks = table.shape[1]
    if window < 1:
        raise InputError(f"window is {window}; it must be at least 1")
    sums = np.concatenate([np.zeros((len(table), 1)), np.cumsum(table, axis=1)], axis=1)
    first = np.maximum(np.arange(tasks) - (window - 1) // 2, 0)
    last = np.minimum(np.arange(tasks) + window // 2 + 1, tasks)
    averages: FloatArray = (sums[:, last] - sums[:, first]) / (last - first)
    return averages


@dataclass(frozen=True)
class Summary:
    """One number a repetition, described."""

    repetitions: int
    mean: float
    standard_deviation: float
    standard_error: float
    median: float
    lower_quartile: float
    upper_quartile: float
    lower_fence: float
    upper_fence: float


def summary(values: Any) -> Summary:
    """Mean, spread and box of one number a repetition."""
    x = _sample(values, "the sample")
    n = len(x)
    if not n:
        return Summary(0, *([math.nan] * 8))
    deviation = float(x.std(ddof=1)) if n > 1 else math.nan
    q1, median, q3 = (float(q) for q in np.quantile(x, (0.25, 0.5, 0.75)))
    reach = 1.5 * (q3 - q1)
    return Summary(
        n,
        float(x.mean()),
        deviation,
        deviation / math.sqrt(n),
        median,
        q1,
        q3,
        float(x[x >= q1 - reach].min()),
        float(x[x <= q3 + reach].max()),
    )


def interquartile_mean(values: FloatArray) -> FloatArray:
    """The mean along the last axis without its lowest and its highest quarter, rounded down."""
    means: FloatArray = trim_mean(values, 0.25, axis=-1)
    return means


def mean(values: FloatArray) -> FloatArray:
    """The mean along the last axis."""
    return np.asarray(values.mean(axis=-1))


@dataclass(frozen=True)
class Interval:
    """An estimate with its bootstrap interval."""

    estimate: float
    low: float
    high: float
    repetitions: int
    level: float = LEVEL


def _resampled(n: int, rng: np.random.Generator, resamples: int) -> NDArray[np.int64]:
    return rng.integers(0, n, (resamples, n))


def _percentiles(draws: FloatArray, level: float) -> tuple[float, float]:
    low, high = np.quantile(draws, ((1 - level) / 2, (1 + level) / 2))
    return float(low), float(high)


def bootstrap(
    values: Any,
    statistic: Statistic,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Interval:
    """A statistic of one agent's repetitions; without two of them there is no interval."""
    x = _sample(values, "the sample")
    if not len(x):
        return Interval(math.nan, math.nan, math.nan, 0, level)
    estimate = float(statistic(x))
    if len(x) == 1:
        return Interval(estimate, math.nan, math.nan, 1, level)
    draws = statistic(x[_resampled(len(x), rng, resamples)])
    return Interval(estimate, *_percentiles(draws, level), len(x), level)


# --- Two agents --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Comparison:
    """Mann-Whitney's U of x against y; p-values are two-sided."""

    first_repetitions: int
    second_repetitions: int
    statistic: float
    asymptotic_p: float
    exact_p: float
    difference: float
    """Of the means, x - y."""

    @property
    def superiority(self) -> float:
        """The chance that a repetition of x beats one of y; a tie counts half."""
        pairs = self.first_repetitions * self.second_repetitions
        return self.statistic / pairs if pairs else math.nan

    @property
    def cliffs_delta(self) -> float:
        """1 if every repetition of x beats every one of y, -1 if it is the other way round."""
        return 2 * self.superiority - 1


def compare(first: Any, second: Any) -> Comparison:
    """The paper's test, the exact one beside it, and the size of the effect."""
    x, y = _sample(first, "the first sample"), _sample(second, "the second sample")
    if not len(x) or not len(y):
        return Comparison(len(x), len(y), math.nan, math.nan, math.nan, math.nan)
    if np.ptp(np.concatenate([x, y])) == 0:  # all values tie: sigma is 0, and nothing speaks for a difference
        return Comparison(len(x), len(y), len(x) * len(y) / 2, 1.0, 1.0, 0.0)
    asymptotic = mannwhitneyu(x, y, method="asymptotic", use_continuity=True)
    return Comparison(
        len(x),
        len(y),
        float(asymptotic.statistic),
        float(asymptotic.pvalue),
        exact_p_value(x, y),
        float(x.mean() - y.mean()),
    )


def exact_p_value(first: Any, second: Any) -> float:
    """The two-sided p-value of U over all assignments of the observed (mid)ranks.

    `ways[k, s]` counts the choices of k ranks with sum s/2; ranks are doubled so that midranks are integers.
    """
    x, y = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    ranks = np.rint(2 * rankdata(np.concatenate([x, y]))).astype(int)
    m, total = len(x), int(ranks.sum())
    # No count exceeds the number of all choices; beyond 64 bits Python's integers take over.
    fits = math.comb(len(ranks), len(ranks) // 2) < 2**62
    ways = np.zeros((m + 1, total + 1), dtype=np.int64 if fits else object)
    ways[0, 0] = 1
    for rank in ranks:
        # From the largest k down, so that a rank is chosen at most once.
        for k in range(m, 0, -1):
            ways[k, rank:] += ways[k - 1, : total + 1 - rank]
    observed = int(ranks[:m].sum())
    below, above = int(ways[m, : observed + 1].sum()), int(ways[m, observed:].sum())
    return float(min(1.0, 2 * min(below, above) / math.comb(len(ranks), m)))


def smallest_p_value(first: int, second: int) -> float:
    """What the asymptotic test gives samples of these sizes that do not overlap: it cannot go lower."""
    if not first or not second:
        return math.nan
    return compare(np.arange(first), first + np.arange(second)).asymptotic_p


def ratio_of_means(
    numerator: Any,
    denominator: Any,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Interval:
    """mean(x) / mean(y) of agents that met the same tasks: entry i of both is one repetition.

    Repetitions are drawn again in pairs. A ratio of returns says something only if the denominator is
    positive; where it is not, also in some resample, the number or the interval is NaN.
    """
    x, y = _sample(numerator, "the numerator"), _sample(denominator, "the denominator")
    if len(x) != len(y):
        raise InputError(f"{len(x)} repetitions cannot be paired with {len(y)}; give those that both have")
    if not len(x) or y.mean() <= 0:
        return Interval(math.nan, math.nan, math.nan, len(x), level)
    estimate = float(x.mean() / y.mean())
    if len(x) == 1:
        return Interval(estimate, math.nan, math.nan, 1, level)
    chosen = _resampled(len(x), rng, resamples)
    below = y[chosen].mean(axis=1)
    if (below <= 0).any():
        return Interval(estimate, math.nan, math.nan, len(x), level)
    return Interval(estimate, *_percentiles(x[chosen].mean(axis=1) / below, level), len(x), level)


def slope_of_ratios(
    levels: Any,
    numerators: Any,
    denominators: Any,
    rng: np.random.Generator,
    resamples: int = RESAMPLES,
    level: float = LEVEL,
) -> Interval:
    """The least-squares slope of mean(x_l) / mean(y_l) over levels l; x and y are (levels, repetitions)."""
    at = np.asarray(levels, dtype=np.float64)
    x, y = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    if x.shape != y.shape or x.shape[0] != len(at):
        raise InputError("numerators and denominators must both be levels x repetitions")
    centred = at - at.mean()
    weights = centred / (centred**2).sum()
    n = x.shape[1]
    means = y.mean(axis=1) if n else np.zeros(len(at))
    if (means <= 0).any():
        return Interval(math.nan, math.nan, math.nan, n, level)
    estimate = float(weights @ (x.mean(axis=1) / means))
    if n == 1:
        return Interval(estimate, math.nan, math.nan, 1, level)
    chosen = _resampled(n, rng, resamples)
    below = y[:, chosen].mean(axis=2)
    if (below <= 0).any():
        return Interval(estimate, math.nan, math.nan, n, level)
    draws = np.tensordot(weights, x[:, chosen].mean(axis=2) / below, axes=1)
    return Interval(estimate, *_percentiles(draws, level), n, level)
