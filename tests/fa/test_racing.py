"""Races over learning rates: whom they drop, how often they miss, what they cost."""

import numpy as np
import pytest
from scipy import stats

from sfr_fa.runs.racing import ERROR, ROUNDS, plan
from tests.refusals import refused


def run_race(returns, rounds=ROUNDS):
    """A race whose trials return the rows of `returns`; its last plan, and how many trials it ran."""
    results = {str(c): {} for c in range(len(returns))}
    while (now := plan(results, rounds)).to_run:
        for combination, repetition in now.to_run:
            results[combination][repetition] = returns[int(combination)][repetition]
    return now, sum(len(row) for row in results.values())


def test_the_first_round_runs_everything_and_later_ones_only_what_is_left():
    first = plan({"a": {}, "b": {}, "c": {0: 1.0}}, (2, 4))
    assert set(first.to_run) == {("a", 0), ("a", 1), ("b", 0), ("b", 1), ("c", 1)}
    results = {"a": {0: 10.0, 1: 20.0}, "b": {0: 9.9, 1: 20.1}, "c": {0: 0.0, 1: 9.0}}
    second = plan(results, (2, 4))
    assert [fall.combination for fall in second.dropped] == ["c"]
    assert set(second.to_run) == {(c, k) for c in "ab" for k in (2, 3)}
    assert second.winner is None


def test_the_statistic_by_hand():
    """Differences to the best: (10, 11) and (0.2, -0.2), so s^2 = 0.5 and 0.08, s_0^2 = 0.29, r = 2."""
    results = {"a": {0: 10.0, 1: 20.0}, "b": {0: 9.8, 1: 20.2}, "c": {0: 0.0, 1: 9.0}}
    results["a"][0] += 1e-9  # the best of two equal means
    (fall,) = plan(results, (2, 4)).dropped
    moderated = (4 * 0.29 + 0.5) / 5
    assert fall.combination == "c"
    assert fall.statistic == pytest.approx(10.5 / np.sqrt(moderated / 2), rel=1e-6)
    assert fall.threshold == pytest.approx(stats.t.isf(ERROR, 5))


def test_what_diverged_is_out_and_what_is_equal_stays():
    results = {"a": {0: 1.0, 1: 2.0}, "b": {0: 1.0, 1: 2.0}, "c": {0: np.nan, 1: 3.0}}
    now = plan(results, (2, 3))
    assert now.to_run == (("a", 2), ("b", 2))
    assert [fall.combination for fall in now.dropped] == ["c"]


def test_what_diverges_last_does_not_win():
    good = {0: 10.0, 1: 11.0, 2: 10.5}
    last = plan({"good": good, "late": {0: 10.1, 1: 10.8, 2: np.nan}}, (2, 3))
    assert (last.winner, last.to_run) == ("good", ())
    assert [(fall.combination, fall.repetitions) for fall in last.dropped] == [("late", 3)]
    assert plan({"only": {**good, 2: np.inf}}, (2, 3)).winner is None


def test_who_is_left_in_the_last_round_is_not_dropped_any_more():
    """However far behind: there is nothing left to spare, and the table shows who came second."""
    returns = {"a": dict(enumerate((10.0, 20.0, 30.0))), "b": dict(enumerate((9.8, 20.2, 1.0)))}
    last = plan(returns, (2, 3))
    assert (last.winner, last.to_run, last.dropped) == ("a", (), ())


def test_a_single_combination_runs_to_the_end_and_wins():
    last, trials = run_race(np.ones((1, 10)))
    assert (last.winner, trials) == ("0", 10)


ALPHA = np.array([0.75, 1.0, 0.85])
ALPHA_R = np.array([0.79, 0.90, 1.0])
BETA = np.array([0.93, 1.0, 0.97])


@pytest.mark.parametrize(
    ("means", "cost"),
    [
        (ALPHA, 0.7),
        (np.outer(ALPHA, ALPHA_R).ravel(), 0.5),
        (np.multiply.outer(np.outer(ALPHA, ALPHA_R), BETA).ravel(), 0.45),
    ],
    ids=["3 rates", "9 rates", "27 rates"],
)
def test_races_seldom_miss_the_winner_of_the_whole_grid(means, cost):
    """Effects as they were measured in object collection; 6 % of noise in common, 5 % of each trial's own."""
    rng = np.random.default_rng(0)
    missed, trials = 0, 0
    for _ in range(200):
        noise = 0.05 * (0.5 + rng.random((len(means), 1))) * rng.standard_normal((len(means), 10))
        returns = means[:, None] * (1 + 0.06 * rng.standard_normal(10)) + noise
        last, ran = run_race(returns)
        missed += last.winner != str(returns.mean(axis=1).argmax())
        trials += ran
    assert missed / 200 < 0.05
    assert trials / 200 / (10 * len(means)) < cost


@pytest.mark.parametrize("rounds", [(), (1, 2), (3, 2), (2, 2)])
def test_rounds_that_make_no_race_are_refused(rounds):
    with refused("rounds"):
        plan({"a": {}}, rounds)
