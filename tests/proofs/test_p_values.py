"""The transcribed p-values and the two tests that may have produced them."""

import itertools
import math

import numpy as np
import pytest

from proofs_checks.p_values import attainable


def test_asymptotic_values_follow_the_formula() -> None:
    """2 (1 - Phi(z)) = erfc(z / sqrt 2), with the continuity correction, capped at 1."""
    deviation = math.sqrt(10 * 10 * 21 / 12)
    expected = [math.erfc(max(abs(u - 50) - 0.5, -0.5) / deviation / math.sqrt(2)) for u in range(101)]
    assert attainable("asymptotic", True) == pytest.approx(np.minimum(expected, 1), abs=1e-12)


def test_exact_values_by_enumeration() -> None:
    """All ways to choose the ranks of 3 out of 6 points."""
    choices = list(itertools.combinations(range(6), 3))
    statistics = np.array([sum(sum(r > s for s in range(6) if s not in c) for r in c) for c in choices])
    expected = [min(1.0, 2 * min((statistics <= u).mean(), (statistics >= u).mean())) for u in range(10)]
    assert attainable("exact", True, 3, 3) == pytest.approx(expected)
