"""Which bound is the smallest: shares and medians by hand, and on problems."""

import numpy as np
import pytest

from sfr_theory.comparison import BOUNDS, PROBLEMS_PER_FAMILY, BoundComparison, compare
from sfr_theory.random_mdp import FAMILIES


def test_shares_and_medians_by_hand():
    rows = {
        "T2'": [4, 4, 4],
        "affine": [3, 4, 2],
        "span": [5, 1, 2],
        "greedy": [1, 1, 2],
        "sources": [2, 3, 9],
    }
    limits = {name: np.array(values, dtype=float) for name, values in rows.items()}
    comparison = BoundComparison(0.5, 0.0, np.array([0.0, 1.0, 2.0]), limits)
    third = pytest.approx(1 / 3)
    assert comparison.smallest == {
        "T2'": 0,
        "affine": third,
        "span": pytest.approx(2 / 3),
        "greedy": 1,
        "sources": 0,
    }
    assert comparison.medians == {"T2'": 4, "affine": 3, "span": 2, "greedy": 1, "sources": 3}
    assert comparison.to_json()["mean_loss"] == 1


@pytest.mark.parametrize("epsilon", [0.0, 0.05])
def test_on_problems_no_bound_is_below_the_loss(epsilon):
    comparison = compare(0.9, epsilon, seed=1)
    assert len(comparison.loss) == PROBLEMS_PER_FAMILY * len(FAMILIES)
    assert set(comparison.limits) == set(BOUNDS)
    for limit in comparison.limits.values():
        assert (comparison.loss <= limit + 1e-9).all()
    assert comparison.smallest["greedy"] > comparison.smallest["T2'"]
