"""What the returns of several repetitions say, and how surely.

Given returns x_1, ..., x_m of one agent and y_1, ..., y_n of another, one number per repetition:

    mean, standard error     xbar,  s / sqrt(m) with s^2 = sum (x_i - xbar)^2 / (m - 1)
    quartiles                by linear interpolation
    U                        #{x_i > y_j} + #{x_i = y_j} / 2
    superiority              A = U / (m n), the chance that a repetition of x beats one of y, ties half
    Cliff's delta            2 A - 1
    p, asymptotic            2 (1 - Phi((|U - mn/2| - 1/2) / sigma)), sigma corrected for ties: what the paper
                             prints (docs/claims.md, stats/asymptotic-test)
    p, exact                 2 min(P(U' <= U), P(U' >= U)), at most 1, over all equally likely ways to give
                             the m + n (mid)ranks to the two agents; ties do no harm
    p, paired                Wilcoxon's signed ranks of x_i - y_i, where repetition i of both met the same
                             tasks; exact up to 50 repetitions without ties
    IQM                      the mean of the m that are left of n without the lowest and the highest quarter;
                             +- t_{m-1} s sqrt(n) / m (Tukey and McLaughlin), s of the values with those that
                             were left out replaced by their neighbours
    intervals of ratios      theta +- t_{n-1} s by the jackknife: theta_(i) is the ratio without repetition i,
                             s^2 = (n - 1)/n sum (theta_(i) - mean)^2. Student's t widens it as few
                             repetitions need; percentiles of a bootstrap would be too narrow for them

Everything is a function of arrays. A repetition that is missing is an array that is shorter; each result
carries the numbers of repetitions that it rests on. What cannot be computed is NaN: a standard error of one
repetition, a mean of none.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import stats

from sfr_fa.arrays import FloatArray
from sfr_theory.errors import InputError

LEVEL = 0.95


def _sample(values: Any, name: str) -> FloatArray:
    """A one-dimensional array of finite numbers."""
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1:
        raise InputError(f"{name} has {array.ndim} dimensions; give one number per repetition")
    if not np.isfinite(array).all():
        raise InputError(f"{name} has a value that is not finite; leave such a repetition out")
    return array


def _paired(first: Any, second: Any) -> tuple[FloatArray, FloatArray]:
    x, y = _sample(first, "the first sample"), _sample(second, "the second sample")
    if len(x) != len(y):
        raise InputError(f"{len(x)} repetitions cannot be paired with {len(y)}; give those that both have")
    return x, y


# --- One agent ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TaskCurve:
    """Mean and standard error over repetitions, for each task."""

    mean: FloatArray
    standard_error: FloatArray


def task_curve(returns: Any) -> TaskCurve:
    """Of returns (repetitions, tasks)."""
    table = np.asarray(returns, dtype=np.float64)
    if table.ndim != 2:
        raise InputError(f"returns have {table.ndim} dimensions; they must be repetitions x tasks")
    n, tasks = table.shape
    error = table.std(axis=0, ddof=1) / math.sqrt(n) if n > 1 else np.full(tasks, np.nan)
    return TaskCurve(table.mean(axis=0), error)


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
    """One number per repetition, described."""

    repetitions: int
    mean: float
    standard_deviation: float
    standard_error: float
    median: float
    lower_quartile: float
    upper_quartile: float


def summary(values: Any) -> Summary:
    """Mean, spread and quartiles of one number per repetition."""
    x = _sample(values, "the sample")
    n = len(x)
    if not n:
        return Summary(0, *([math.nan] * 6))
    deviation = float(x.std(ddof=1)) if n > 1 else math.nan
    q1, median, q3 = (float(q) for q in np.quantile(x, (0.25, 0.5, 0.75)))
    return Summary(n, float(x.mean()), deviation, deviation / math.sqrt(n), median, q1, q3)


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % interval."""

    estimate: float
    low: float
    high: float
    repetitions: int


def jackknife(statistic: Callable[..., Any], *samples: FloatArray) -> Interval:
    """A statistic of several agents with a 95 % interval; without two repetitions there is none.

    Samples are (..., repetitions), and repetition i of one belongs to repetition i of the others;
    `statistic(*samples, axis=-1)` drops that axis. Where it is undefined (NaN), also without one of the
    repetitions, the number or the interval is NaN.
    """
    n = samples[0].shape[-1]
    estimate = float(statistic(*samples, axis=-1)) if n else math.nan
    if n < 2 or math.isnan(estimate):
        return Interval(estimate, math.nan, math.nan, n)
    without = np.array(
        [statistic(*(np.delete(sample, i, axis=-1) for sample in samples), axis=-1) for i in range(n)]
    )
    width = stats.t.ppf((1 + LEVEL) / 2, n - 1) * math.sqrt((n - 1) * without.var())
    return Interval(estimate, float(estimate - width), float(estimate + width), n)


def interquartile_mean(values: Any) -> Interval:
    """The mean without the lowest and the highest quarter, rounded down."""
    sample = np.sort(_sample(values, "the sample"))
    n, cut = len(sample), len(sample) // 4
    kept = sample[cut : n - cut]
    estimate = float(kept.mean()) if n else math.nan
    if n < 2:
        return Interval(estimate, math.nan, math.nan, n)
    winsorised = np.clip(sample, kept[0], kept[-1])
    width = stats.t.ppf((1 + LEVEL) / 2, len(kept) - 1) * winsorised.std(ddof=1) * math.sqrt(n) / len(kept)
    return Interval(estimate, float(estimate - width), float(estimate + width), n)


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
    """The paper's test, the exact test, and the size of the effect."""
    x, y = _sample(first, "the first sample"), _sample(second, "the second sample")
    if not len(x) or not len(y):
        return Comparison(len(x), len(y), math.nan, math.nan, math.nan, math.nan)
    if np.ptp(np.concatenate([x, y])) == 0:  # all values tie: sigma is 0, and nothing speaks for a difference
        return Comparison(len(x), len(y), len(x) * len(y) / 2, 1.0, 1.0, 0.0)
    asymptotic = stats.mannwhitneyu(x, y, method="asymptotic", use_continuity=True)
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
    ranks = np.rint(2 * stats.rankdata(np.concatenate([x, y]))).astype(int)
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


def paired_p_value(first: Any, second: Any) -> float:
    """The two-sided p-value of agents that met the same tasks: entry i of both is one repetition."""
    x, y = _paired(first, second)
    if not len(x):
        return math.nan
    return float(stats.wilcoxon(x, y).pvalue) if (x != y).any() else 1.0


def smallest_p_value(first: int, second: int) -> float:
    """What the asymptotic test gives samples of these sizes that do not overlap: it cannot go lower."""
    if not first or not second:
        return math.nan
    return compare(np.arange(first), first + np.arange(second)).asymptotic_p


def _ratios(x: FloatArray, y: FloatArray, axis: int) -> FloatArray:
    """mean(x) / mean(y); a ratio of returns says something only if the denominator is positive."""
    below = y.mean(axis=axis)
    ratios: FloatArray = x.mean(axis=axis) / np.where(below > 0, below, np.nan)
    return ratios


def ratio_of_means(numerator: Any, denominator: Any) -> Interval:
    """mean(x) / mean(y) of agents that met the same tasks: entry i of both is one repetition."""
    return jackknife(_ratios, *_paired(numerator, denominator))


def slope_of_ratios(levels: Any, numerators: Any, denominators: Any) -> Interval:
    """The least-squares slope of mean(x_l) / mean(y_l) over levels l; x and y are (levels, repetitions)."""
    at = np.asarray(levels, dtype=np.float64)
    x, y = np.asarray(numerators, dtype=np.float64), np.asarray(denominators, dtype=np.float64)
    if x.shape != y.shape or x.shape[0] != len(at):
        raise InputError("numerators and denominators must both be levels x repetitions")
    centred = at - at.mean()
    weights = centred / (centred**2).sum()
    return jackknife(lambda x, y, axis: np.tensordot(weights, _ratios(x, y, axis), axes=1), x, y)
