"""Certificates: hand-computed values, what they bound, which one is smaller, where they are attained."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfr_theory.arithmetic import exact_array, float_array, fraction
from sfr_theory.bounds import STATEMENTS
from sfr_theory.certificates import Ceiling, best_multipliers, conical_value, largest_gain
from sfr_theory.operators import q_from_xi
from sfr_theory.random_mdp import FAMILIES, Shape
from sfr_theory.solve import optimal
from sfr_theory.transfer import evaluate, evaluate_all_ties, evaluate_batch
from tests.strategies import arrays, problems, small_fractions
from tests.theory.examples import hidden_error, one_state

CERTIFICATES = [name for name in STATEMENTS if name.startswith("certificate/")]
GAMMAS = ("1/10", "1/2", "9/10", "99/100")


def sides(name, evaluation):
    terms = STATEMENTS[name](evaluation)
    return fraction(terms.left.item()), fraction(terms.right.item())


def tasks_of(evaluation):
    """gamma, r (S A), r_i and Q_i* (I, S A): what bounds on Q* are made of."""
    source_q = q_from_xi(evaluation.source_xi, evaluation.sources)
    r, source_r = evaluation.expected_target[0], evaluation.expected_rewards
    return evaluation.gamma, r, source_r, source_q.reshape(source_r.shape)


def for_every_pair(r, source_r, source_q):
    """The tasks as often as there are pairs, and the pairs: what `best_multipliers` wants."""
    return *(np.stack([array] * len(r)) for array in (r, source_r, source_q)), np.arange(len(r))


def test_every_certificate_by_hand():
    """U = (2, 3), so GPI takes b; T U = (5/2, 3/2), D = (1/2, -3/2), M = -1/2, m = -3/2; V loses 2, Q 1."""
    evaluation = evaluate(hidden_error())
    assert sides("certificate/residual", evaluation) == (1, 2)
    assert sides("certificate/residual-value", evaluation) == (2, 4)
    assert sides("certificate/greedy-residual-value", evaluation) == (2, 2)
    # The first source is the target itself: B = Q* = (2, 1), so V* = 2 against W = 3.
    assert sides("certificate/sources-value", evaluation) == (2, 2)


@given(problems())
def test_the_three_bounds_hold_in_every_state(problem):
    """V^pi >= W + m/(1-g), V* <= W + M/(1-g), V* <= max B, exactly and whatever the approximations."""
    evaluation = evaluate(problem)
    g = problem.mdp.gamma
    best, read = (q.max(axis=-1) for q in (evaluation.optimal_q, evaluation.gpi_values))
    got = evaluation.gpi_q[np.arange(len(best)), evaluation.gpi_policy]
    assert (got >= read + evaluation.lowest_residual / (1 - g)).all()
    assert (best <= read + largest_gain(evaluation.gpi_values, evaluation.lookahead) / (1 - g)).all()
    for s, value in enumerate(best):  # a floor that is low in one state asks for the bound there
        floor = exact_array([0 if t == s else 10**6 for t in range(len(best))])
        assert value <= evaluation.ceiling.excess(floor)


@given(problems(max_states=2, max_actions=2, max_sources=1))
def test_certificates_hold_however_ties_are_broken(problem):
    for evaluation in evaluate_all_ties(problem):
        for name in CERTIFICATES:
            assert STATEMENTS[name](evaluation).holds, name


@given(problems(max_sources=2), st.data())
def test_any_non_negative_multiplier_bounds_the_optimum(problem, data):
    """And the form with V and a shift c is weaker: sum x_i V_i* + (c + ||r - sum x_i r_i - c||)/(1-g)."""
    evaluation, sources = evaluate(problem), problem.sources
    g, r, source_r, source_q = tasks_of(evaluation)
    multipliers = st.fractions(0, 4, max_denominator=6)
    x = exact_array(data.draw(st.lists(multipliers, min_size=len(sources), max_size=len(sources))))
    bound = conical_value(g, r, source_r, source_q, x).reshape(evaluation.optimal_q.shape)
    assert (evaluation.optimal_q <= bound).all()

    c = exact_array(data.draw(small_fractions))[()]
    leftover = np.abs(r - (x[:, None] * source_r).sum(axis=0) - c).max()
    values = optimal(problem.mdp, sources).q.max(axis=-1)
    weaker = (x[:, None] * values).sum(axis=0) + (c + leftover) / (1 - g)
    assert (bound.max(axis=-1) <= weaker).all()


def test_a_negative_multiplier_bounds_nothing():
    """R = R_1 = (1, 0), g = 1/2: x = -1 "bounds" Q*(b) = 1 by 0 - (1 - 0) + max(2, 0) = 1, and Q*(a) = 2 by
    1 - (2 - 1) + 2 = 2; with the target -R_1 it claims Q*(a) <= -1 - 1 + 0 where the truth is -1."""
    evaluation = evaluate(one_state(target=["-1", "0"], sources=[["1", "0"]]))
    claimed = conical_value(*tasks_of(evaluation), exact_array([-1]))
    assert [fraction(value) for value in claimed] == [-2, -1]
    assert [fraction(value) for value in evaluation.optimal_q[0]] == [-1, 0]


@given(problems(max_sources=1))
def test_the_programme_finds_the_best_multiplier_of_one_source(problem):
    """With one source B is the lowest point of a convex function whose kinks can be listed."""
    g, r, source_r, source_q = tasks_of(evaluate(problem))
    kinks = {Fraction(0)}
    for y, x in ((a - b, c - d) for a, c in zip(r, source_r[0], strict=True)
                 for b, d in zip(r, source_r[0], strict=True)):  # fmt: skip
        if x != 0:
            kinks.add(max(Fraction(0), fraction(y / x)))
    brute = np.min([conical_value(g, r, source_r, source_q, exact_array([x])) for x in kinks], axis=0)
    for exact, tolerance in ((True, 1e-5), (False, 1e-6)):
        arguments = (r, source_r, source_q) if exact else map(float_array, (r, source_r, source_q))
        *repeated, pairs = for_every_pair(*arguments)
        gamma = g if exact else float(g)
        x = best_multipliers(gamma, *repeated, pairs)
        found = float_array(conical_value(gamma, *repeated, x).diagonal())
        scale = 1 + float(np.abs(brute).max())
        np.testing.assert_allclose(found, float_array(brute), atol=tolerance * scale)


@given(problems(), st.data())
def test_programmes_that_are_not_solved_are_not_needed(problem, data):
    """The lazy ceiling against all programmes of a problem."""
    shape = (problem.mdp.num_states, problem.mdp.num_actions)
    g, *tasks = tasks_of(evaluate(problem))
    *repeated, pairs = for_every_pair(*tasks)
    x = best_multipliers(g, *repeated, pairs)
    best = conical_value(g, *repeated, x).diagonal().reshape(shape).max(axis=-1)
    r, *sources = tasks
    ceiling = Ceiling(g, r.reshape(shape), *(array.reshape(-1, *shape) for array in sources))
    for _ in range(2):  # what one call has solved, the next one uses
        floor = exact_array(data.draw(arrays(shape[:1])))
        expected = float((best - floor).max())
        assert float(ceiling.excess(floor)[()]) == pytest.approx(expected, abs=1e-5 * (1 + abs(expected)))


def test_scales_of_rewards_do_not_matter():
    """Rewards beyond what a float holds, in rational arithmetic."""
    large = 10**400
    problem = one_state(target=[str(large), "0"], sources=[["1", "0"], ["0", str(large)]])
    assert fraction(evaluate(problem).ceiling.excess(exact_array([0]))[()]) == 2 * large


@pytest.mark.parametrize("gamma", GAMMAS)
def test_the_residual_certificates_are_attained(gamma):
    """One state, U = (0, 0), rewards -1 and 1: GPI takes the first. D = (-1, 1), and V loses 2/(1-g)."""
    problem = one_state(gamma, target=["-1", "1"], sources=[["0", "0"]], approximations=[[[[0, 0], [0, 0]]]])
    evaluation = evaluate(problem)
    for name in CERTIFICATES:
        left, right = sides(name, evaluation)
        assert left == right > 0, name
        assert left > right * Fraction(999, 1000)  # a smaller constant fails


@given(problems())
def test_the_order_of_the_certificates(problem):
    right = {name: sides(name, evaluate(problem))[1] for name in CERTIFICATES}
    assert right["certificate/greedy-residual-value"] <= right["certificate/residual-value"]
    assert right["certificate/residual"] == fraction(problem.mdp.gamma) * right["certificate/residual-value"]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_the_sources_certificate_is_never_above_the_sharp_bound(family, epsilon):
    """Nor above its affine refinement, although T2' knows the true error; up to the solver's tolerance."""
    batch = FAMILIES[family](np.random.default_rng(5), 60, Shape(4, 3, 4, 3), 0.9, epsilon)
    evaluation = evaluate_batch(batch.mdps, batch.target, batch.sources, batch.perturbation)
    certificate = STATEMENTS["certificate/sources-value"](evaluation).right
    sharp = STATEMENTS["thm2/sharp-value-affine"](evaluation).right
    assert (certificate <= sharp + 1e-6 * (1 + sharp)).all()
