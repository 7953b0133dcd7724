"""Each statistic against SciPy, or against numbers worked out by hand."""

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy import stats

from sfr_fa import statistics
from tests.refusals import refused

RNG = np.random.default_rng(5)


# --- One agent


def test_task_curve_by_hand_and_as_scipys():
    curve = statistics.task_curve([[1.0, 10.0], [3.0, 10.0], [5.0, 10.0]])
    assert curve.mean.tolist() == [3.0, 10.0]
    # Deviations -2, 0, 2: s^2 = 8/2 = 4, standard error 2/sqrt(3); the second task has equal values.
    np.testing.assert_allclose(curve.standard_error, [2 / math.sqrt(3), 0.0], rtol=1e-15)
    returns = RNG.normal(size=(10, 7))
    errors = statistics.task_curve(returns).standard_error
    np.testing.assert_allclose(errors, stats.sem(returns, axis=0), rtol=1e-13)
    assert np.isnan(statistics.task_curve([[4.0, 5.0]]).standard_error).all()


def test_task_curve_needs_a_table():
    with refused("repetitions x tasks"):
        statistics.task_curve([1.0, 2.0])


def test_running_mean_by_hand():
    table = [[0.0, 3.0, 6.0, 9.0]]
    assert statistics.running_mean(table, 1).tolist() == table
    assert statistics.running_mean(table, 3).tolist() == [[1.5, 3.0, 6.0, 7.5]]
    assert statistics.running_mean(table, 2).tolist() == [[1.5, 4.5, 7.5, 9.0]]
    with refused("window is 0"):
        statistics.running_mean(table, 0)


def test_summary_by_hand():
    described = statistics.summary([1, 2, 3, 4, 5])
    assert (described.lower_quartile, described.median, described.upper_quartile) == (2.0, 3.0, 4.0)
    assert described.standard_deviation == pytest.approx(math.sqrt(2.5))
    assert described.standard_error == pytest.approx(math.sqrt(0.5))
    assert statistics.summary([]).repetitions == 0
    assert math.isnan(statistics.summary([3.0]).standard_error)


def test_values_that_are_not_finite_are_refused():
    with refused("not finite"):
        statistics.summary([1.0, np.nan])
    with refused("one number per repetition"):
        statistics.compare([[1.0]], [1.0])


def test_interquartile_mean_by_hand():
    # Of ten values two are cut at each end: (3 + ... + 8) / 6.
    assert statistics.interquartile_mean([1, 2, 3, 4, 5, 6, 7, 8, 90, 1000]).estimate == 5.5
    # Of twelve, three: (4 + ... + 9) / 6; a fifth would be two.
    assert statistics.interquartile_mean([*range(1, 10), 90, 100, 200]).estimate == 6.5
    assert statistics.interquartile_mean([1.0, 2.0, 6.0]).estimate == 3.0  # nothing to cut


def test_intervals_of_ratios_by_hand_and_by_the_delta_method():
    """To equal denominators a ratio is a mean, and the interval Student's; else that of linear residuals."""
    x = RNG.normal(3.0, 2.0, 6)
    interval, half = statistics.ratio_of_means(x, np.full(6, 2.0)), stats.sem(x / 2) * stats.t.ppf(0.975, 5)
    assert interval.estimate == pytest.approx((x / 2).mean())
    assert (interval.low, interval.high) == pytest.approx(((x / 2).mean() - half, (x / 2).mean() + half))
    x, y = RNG.normal(90.0, 2.0, 50), RNG.normal(100.0, 2.0, 50)
    interval = statistics.ratio_of_means(x, y)
    half = stats.sem((x - interval.estimate * y) / y.mean()) * stats.t.ppf(0.975, 49)
    assert interval.high - interval.estimate == pytest.approx(half, rel=0.02)


@pytest.mark.parametrize("n", [3, 10])
def test_intervals_cover_as_often_as_they_say(n):
    """Of 2,000 experiments, however few their repetitions; pairs are correlated, as with common tasks."""
    rng = np.random.default_rng(0)
    common = rng.normal(0, 0.05, (2000, n))
    x, y = (mean * (1 + common + rng.normal(0, 0.1, (2000, n))) for mean in (0.9, 1.0))
    found = [statistics.ratio_of_means(*pair) for pair in zip(x, y, strict=True)]
    assert 0.93 < np.mean([interval.low <= 0.9 <= interval.high for interval in found]) < 0.97
    means = [statistics.interquartile_mean(values) for values in x[:, :n]]
    assert 0.92 < np.mean([interval.low <= 0.9 <= interval.high for interval in means]) < 0.98


def test_one_repetition_has_no_interval():
    interval = statistics.interquartile_mean([2.0])
    assert interval.estimate == 2.0
    assert math.isnan(interval.low)
    assert math.isnan(statistics.interquartile_mean([]).estimate)
    two = statistics.interquartile_mean([2.0, 4.0])
    assert (two.estimate, two.high - 3.0) == (3.0, pytest.approx(stats.t.ppf(0.975, 1)))
    assert statistics.task_curve([[2.0], [4.0]]).standard_error == pytest.approx([1.0])


# --- Two agents


def test_comparison_by_hand():
    # x = 1, 4 against y = 2, 3, 5: x beats y in 0 + 2 of 6 pairs.
    found = statistics.compare([1, 4], [2, 3, 5])
    assert found.statistic == 2
    assert found.superiority == pytest.approx(1 / 3)
    assert found.cliffs_delta == pytest.approx(-1 / 3)
    sigma = math.sqrt(2 * 3 * 6 / 12)
    assert found.asymptotic_p == pytest.approx(2 * stats.norm.sf((abs(2 - 3) - 0.5) / sigma))
    # Of the 10 ways to choose 2 of 5 ranks, sums 3, 4, 5, 5 are at most 5 = 1 + 4: 2 * 4/10.
    assert found.exact_p == pytest.approx(0.8)
    assert found.difference == pytest.approx(2.5 - 10 / 3)


def test_the_papers_smallest_p_value():
    """Ten against ten that do not overlap: the paper prints < 0.001."""
    found = statistics.compare(np.arange(10), 100 + np.arange(10))
    assert found.asymptotic_p == pytest.approx(2 * stats.norm.sf((50 - 0.5) / math.sqrt(175)))
    assert found.exact_p == pytest.approx(2 / math.comb(20, 10))
    assert found.superiority == 0.0
    assert statistics.smallest_p_value(10, 10) == found.asymptotic_p
    assert statistics.smallest_p_value(3, 3) > 0.05  # three repetitions can never be significant


@pytest.mark.parametrize("sizes", [(0, 3), (3, 0), (0, 0)])
def test_nothing_has_no_smallest_p_value(sizes):
    assert math.isnan(statistics.smallest_p_value(*sizes))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(0, 10_000))
def test_exact_test_equals_scipys_without_ties(m, n, seed):
    values = np.random.default_rng(seed).permutation(m + n).astype(float)
    x, y = values[:m], values[m:]
    theirs = stats.mannwhitneyu(x, y, method="exact").pvalue
    # Both are a ratio of integers below 2^53, rounded once or twice.
    assert statistics.exact_p_value(x, y) == pytest.approx(theirs, rel=1e-12)


@given(st.lists(st.integers(0, 3), min_size=4, max_size=8), st.integers(2, 6))
@example([0, 0, 0, 2, 1, 1, 2], 4)  # the next larger sum of ranks is half a rank away
def test_exact_test_equals_all_permutations_with_ties(values, size):
    size = min(size, len(values) - 2)  # SciPy wants two of each
    x, y = np.array(values[:size], float), np.array(values[size:], float)

    def u(a, b, axis):
        ranks = stats.rankdata(np.concatenate([a, b], axis=axis), axis=axis)
        return ranks[..., : a.shape[axis]].sum(axis=axis)

    theirs = stats.permutation_test((x, y), u, n_resamples=np.inf, vectorized=True).pvalue
    assert statistics.exact_p_value(x, y) == pytest.approx(theirs, rel=1e-12)


def test_exact_test_of_samples_beyond_64_bits():
    """C(70, 35) is above 2^63; the asymptotic value is close for samples of this size."""
    values = np.random.default_rng(3).normal(size=70)
    found = statistics.compare(values[:35] + 0.4, values[35:])
    assert found.exact_p == pytest.approx(
        stats.mannwhitneyu(values[:35] + 0.4, values[35:], method="exact").pvalue, rel=1e-9
    )


def test_superiority_is_the_share_of_won_pairs():
    x, y = RNG.integers(0, 5, 8), RNG.integers(0, 5, 6)
    won = np.mean([(a > b) + (a == b) / 2 for a in x for b in y])
    assert statistics.compare(x, y).superiority == pytest.approx(won)


def test_ties_everywhere_and_empty_samples():
    same = statistics.compare([2.0, 2.0], [2.0])
    assert (same.asymptotic_p, same.exact_p, same.superiority) == (1.0, 1.0, 0.5)
    empty = statistics.compare([], [1.0, 2.0])
    assert empty.second_repetitions == 2
    assert math.isnan(empty.exact_p)
    assert math.isnan(empty.superiority)


def test_unequal_numbers_of_repetitions_are_compared_and_said():
    found = statistics.compare(np.arange(7) + 0.5, np.arange(10))
    assert (found.first_repetitions, found.second_repetitions) == (7, 10)
    assert found.asymptotic_p == pytest.approx(
        stats.mannwhitneyu(np.arange(7) + 0.5, np.arange(10), method="asymptotic").pvalue
    )


# --- Ratios


def test_ratio_of_means():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0])
    ratio = statistics.ratio_of_means(x, y)
    # In pairs: without any of them the ratio is 1/2.
    assert (ratio.estimate, ratio.low, ratio.high, ratio.repetitions) == (0.5, 0.5, 0.5, 3)
    with refused("cannot be paired"):
        statistics.ratio_of_means(x, y[:2])


def test_paired_test_by_hand():
    """Of the 2^5 ways to give signs to the ranks 1 to 5, 3 on either side sum to 2 or less."""
    y = np.array([10.0, 40.0, 20.0, 50.0, 30.0])
    x = y + np.array([3.0, -2.0, 4.0, 1.0, 5.0])
    assert statistics.paired_p_value(x, y) == pytest.approx(2 * 3 / 2**5)
    assert statistics.paired_p_value(y, y) == 1
    assert statistics.paired_p_value([1.0, *x], [1.0, *y]) < 1  # one tie is not all
    assert math.isnan(statistics.paired_p_value([], []))
    with refused("4 repetitions", "5", "both have"):
        statistics.paired_p_value(x[:4], y)


def test_a_ratio_to_nothing_or_less_is_undefined():
    assert math.isnan(statistics.ratio_of_means([1.0, 1.0], [-1.0, 0.5]).estimate)
    assert math.isnan(statistics.ratio_of_means([1.0, 1.0], [-1.0, 1.0]).estimate)
    shaky = statistics.ratio_of_means([1.0, 1.0], [-1.0, 2.0])
    assert shaky.estimate == 2.0
    assert math.isnan(shaky.low)


def test_slope_of_ratios_by_hand():
    levels = [0.0, 1.0, 2.0]
    y = np.full((3, 4), 2.0)
    x = np.array([[2.0], [1.6], [0.6]]) + np.zeros((3, 4))  # ratios 1, .8, .3: slope -.35
    slope = statistics.slope_of_ratios(levels, x, y)
    assert slope.estimate == pytest.approx(-0.35)
    assert slope.low == pytest.approx(slope.high)
    noisy = x + np.array([-0.3, -0.1, 0.1, 0.3])
    interval = statistics.slope_of_ratios(levels, noisy * np.arange(1, 4)[:, None], y)
    assert interval.low < interval.estimate < interval.high
    for levels_given, first, second in ((levels, x[:2], y), (levels[:2], x, y), (levels, x, y[:, :2])):
        with refused("levels x repetitions"):
            statistics.slope_of_ratios(levels_given, first, second)
    assert slope.repetitions == 4
    assert math.isnan(statistics.slope_of_ratios(levels, x, -y).estimate)
