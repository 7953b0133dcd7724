"""Least absolute error of a linear model of the four objects, and its distribution."""

import itertools
from fractions import Fraction

import numpy as np
import pytest

from proofs_checks.nonlinearity import (
    INTERACTION,
    LEVELS,
    irwin_hall_cdf,
    least_absolute_error,
    level_probabilities,
    probability_within,
    sum_of_uniforms_cdf,
    sum_of_uniforms_density,
)


def value(piece: list[Fraction], t: Fraction) -> Fraction:
    return sum((c * t**k for k, c in enumerate(piece)), Fraction(0))


def test_two_uniforms_have_a_triangular_density() -> None:
    assert sum_of_uniforms_density(2) == [[0, 1], [1, -1]]


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_densities_are_continuous_symmetric_and_sum_to_one(count: int) -> None:
    pieces = sum_of_uniforms_density(count)
    assert len(pieces) == count
    assert sum_of_uniforms_cdf(count, Fraction(count)) == 1
    assert sum_of_uniforms_cdf(count, Fraction(count, 2)) == Fraction(1, 2)
    if count > 1:
        joints = [(value(a, Fraction(1)), value(b, Fraction(0))) for a, b in itertools.pairwise(pieces)]
        assert all(left == right for left, right in joints)


@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_integrated_density_is_irwin_hall(count: int) -> None:
    for k in range(-3, 7 * count + 3):
        x = Fraction(k, 7)
        assert sum_of_uniforms_cdf(count, x) == irwin_hall_cdf(count, min(x, Fraction(count)))


def test_levels_and_the_rest_sum_to_one() -> None:
    assert sum(level_probabilities()) + (1 - probability_within(LEVELS[-1])) == 1
    assert probability_within(Fraction(4)) == 1
    assert probability_within(Fraction(0)) == 0


def test_the_least_error_is_the_interaction() -> None:
    """Against a linear programme, on corners (ties) and inside."""
    corners = list(itertools.product((-1.0, 0.0, 1.0), repeat=4))
    inside = np.random.default_rng(3).uniform(-1, 1, size=(10, 4))
    for rewards in [*map(np.array, corners[::5]), *inside]:
        assert least_absolute_error(rewards) == pytest.approx(abs(rewards @ INTERACTION), abs=1e-9)
