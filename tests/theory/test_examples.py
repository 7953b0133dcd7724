"""The examples do what their docstrings say: closed forms, in exact arithmetic."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest

from sfr_theory.arithmetic import exact_array, fraction, rational
from sfr_theory.checks import gpi_learning, theorem_1
from sfr_theory.examples import (
    coin_behind_two_doors,
    cycle_swing,
    frozen_overestimate,
    near_tie,
    rare_visits,
    rare_visits_factor,
    sweep_of_four,
    two_entries_to_a_cycle,
)
from sfr_theory.learning import FeatureEstimate, Harmonic, learn_xi
from sfr_theory.operators import bellman_xi, q_from_xi
from sfr_theory.solve import optimal, policy_xi
from tests.refusals import refused


@pytest.mark.parametrize("length", [2, 4, 6])
def test_cycle_wave_and_swing(length: int) -> None:
    example = two_entries_to_a_cycle(length)
    half = length // 2
    sign = [1 if j < half else -1 for j in range(length)]
    xi, at_t = example.initial, []
    for n in range(6 * length + 2):
        value = q_from_xi(xi, example.reward)[2:].max(axis=1)
        assert [fraction(v) for v in value] == [
            Fraction(1, 2) ** n * sign[(j + n) % length] for j in range(length)
        ]
        at_t.append(fraction(xi[0, 0, 1]))
        xi = bellman_xi(example.mdp, example.reward, xi)
    late = at_t[-length:]
    assert abs((max(late) - min(late)) - cycle_swing(length)) < Fraction(1, 2) ** (4 * length)


def test_sweeps_of_the_four_cycle_are_a_recursion_for_two_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    assert theorem_1.follows_the_wave(12)

    def reads_too_early(wave: tuple[Fraction, Fraction], alpha: Fraction) -> tuple[Fraction, Fraction]:
        """Both numbers read the old values; along the sweeps the second one reads the new first."""
        u, w = wave
        return (1 - alpha) * u + alpha * w / 2, (1 - alpha) * w - alpha * u / 2

    monkeypatch.setattr(theorem_1, "sweep_of_four", reads_too_early)
    assert not theorem_1.follows_the_wave(12)


@pytest.mark.parametrize("horizon", [2, 20])
def test_the_wave_turns_as_the_proof_says(horizon: int) -> None:
    """Sign changes of w go on, each stretch with w < 0 < u taking a sum of rates of at least 3/10."""
    u, w, stretch, stretches = 1.0, 1.0, 0.0, []
    for n in range(1, 20_000):
        alpha = horizon / (horizon + n)
        u, w = sweep_of_four((u, w), alpha)
        if w < 0 < u:
            stretch += alpha
        elif stretch:
            stretches.append(stretch)
            stretch = 0.0
        scale = abs(u) + abs(w)
        u, w = u / scale, w / scale  # the recursion is linear
    # The first stretch may begin at rates above 1/2, and its first rate is spent on entering.
    assert len(stretches) >= 2
    assert min(stretches[1:]) >= 0.3


def test_cycle_needs_an_even_length() -> None:
    with refused("length is 3"):
        two_entries_to_a_cycle(3)


def test_coin_ties_and_limits() -> None:
    example = coin_behind_two_doors()
    q = optimal(example.mdp, example.reward).q
    assert fraction(q[1, 0]) == fraction(q[1, 1]) == 0
    policies = np.zeros((2, 4), dtype=int)
    policies[1, 1] = 1
    limits = policy_xi(example.mdp, policies)[:, 0, 0, 1]
    assert [fraction(x) for x in limits] == [Fraction(4, 7), 0]


@pytest.mark.parametrize("stored_value", [Fraction(1001, 1000), Fraction(3, 2), Fraction(10)])
def test_started_at_zero_every_stored_value_above_one_misleads(stored_value: Fraction) -> None:
    example, stored = frozen_overestimate(stored_value)
    mdp, reward = example.mdp, example.reward
    stored_q = q_from_xi(stored, reward)[None]
    limit = gpi_learning.gpi_bellman(mdp, reward, stored_q, exact_array([[0, 0]]))
    assert np.array_equal(limit, exact_array([[1, 0]]))
    assert np.array_equal(gpi_learning.gpi_bellman(mdp, reward, stored_q, limit), limit)
    eta = gpi_learning.overshoot(mdp, reward, stored_q)
    assert fraction(eta) == stored_value / 2  # M = (0, v), TM = (1 + v/2, v/2)
    assert fraction(gpi_learning.limit_bound(mdp.gamma, eta)) == stored_value


def test_rare_visits_limit() -> None:
    steps = 64
    example, path = rare_visits(steps)
    assert path.clock[path.actions == 0].tolist() == [2, 4, 8, 16, 32, 64]
    step_sizes = Harmonic()(exact_array(path.clock))
    assert step_sizes[path.actions == 0].sum() == 1 - rational("1/64")
    estimates = FeatureEstimate.indicator(example.mdp).along(path)
    xi = learn_xi(
        example.mdp, path, example.reward, estimates, step_sizes, example.initial, np.arange(steps + 1)
    )
    q = q_from_xi(xi, example.reward)
    assert (q[:, 0, 1] == 4).all()
    assert fraction(q[-1, 0, 0]) == 3 * (1 - rare_visits_factor(6))
    assert np.array_equal(optimal(example.mdp, example.reward).q, exact_array([[3, 4]]))
    # Euler's function at 1/2, from its pentagonal series: another route to the same constant.
    pentagonal = sum((-1) ** k * Fraction(1, 2) ** (k * (3 * k - 1) // 2) for k in range(-8, 9))
    assert abs(rare_visits_factor(120) - pentagonal) < Fraction(1, 2) ** 100


def test_near_tie_jumps() -> None:
    for delta in (Fraction(1, 10), Fraction(1, 10**9)):
        example, xi, other = near_tie(delta)
        image, other_image = (bellman_xi(example.mdp, example.reward, x) for x in (xi, other))
        assert fraction(np.abs(xi - other).max()) == 2 * delta
        jump = Fraction(1, 2) * (1 + delta)
        assert [fraction(x) for x in (image - other_image)[0, 0]] == [jump, Fraction(-1, 2)]
