"""Each bound: hand-computed terms, the counterexamples, and all statements on generated problems."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfr_theory.arithmetic import exact_array, float_array, fraction
from sfr_theory.bounds import STATEMENTS, affine_distance
from sfr_theory.catalogue import CATALOGUE
from sfr_theory.claims import Verdict
from sfr_theory.random_mdp import FAMILIES, Shape
from sfr_theory.transfer import evaluate, evaluate_all_ties, evaluate_batch
from tests.strategies import arrays, problems
from tests.theory.examples import equal_values, hidden_error, one_state

HOLDING = [name for name in STATEMENTS if CATALOGUE[name].expected is not Verdict.REFUTED]


def sides(problem, name):
    terms = STATEMENTS[name](evaluate(problem))
    return fraction(terms.left.item()), fraction(terms.right.item())


def test_the_printed_theorem_fails_on_a_hidden_error():
    assert sides(hidden_error(), "thm2/printed") == (1, 0)
    assert sides(hidden_error(), "thm2/printed-value-norm") == (1, 0)
    # eps_R = 3: 2/(1-g) 3 = 12, 2g/(1-g) 3 = 6; V loses 2.
    assert sides(hidden_error(), "thm2/corrected") == (1, 12)
    assert sides(hidden_error(), "thm2/sharp") == (1, 6)
    assert sides(hidden_error(), "thm2/sharp-value") == (2, 12)


def test_the_absolute_norm_separates_policies_of_equal_value():
    worst = {
        name: max(STATEMENTS[name](e).left.item() for e in evaluate_all_ties(equal_values()))
        for name in STATEMENTS
    }
    assert worst.pop("thm2/printed") == 2
    assert all(left == 0 for left in worst.values())


def test_hand_computed_terms():
    """g = 1/2, R = (1, 0), R_1 = (0, 1), xi~ exact: GPI improves on pi_1 and takes action 0."""
    problem = one_state(target=["1", "0"], sources=[["0", "1"]])
    terms = STATEMENTS["thm2/sharp"](evaluate(problem))
    assert (terms.left, terms.reward_distance, terms.epsilon) == (0, 1, 0)
    assert terms.right == exact_array(["1"])[0]  # 2g/(1-g) g d = 2 * 1/2 * 1
    # An error of 2 at action 1 under R: GPI takes it, V loses 2 (Q loses 1), eps_R = 2.
    problem = one_state(target=["1", "0"], sources=[["0", "1"]], approximations=[[[["1", "1"], ["2", "2"]]]])
    terms = STATEMENTS["thm2/sharp-value"](evaluate(problem))
    assert (terms.left, terms.epsilon) == (2, 2)
    assert terms.right == 10  # 2/(1-g) (g d + eps_R) = 4 (1/2 + 2)


def test_both_sharp_constants_are_attained_by_errors():
    """R = (2, 0), d = 0, errors -1 and +1 tie the actions; the bad one comes first."""
    problem = one_state(
        target=["0", "2"], sources=[["0", "2"]], approximations=[[[["1", "3/2"], ["0", "3/2"]]]]
    )
    for name in ("thm2/sharp", "thm2/sharp-value"):
        terms = STATEMENTS[name](evaluate(problem))
        assert terms.left == terms.right
        assert terms.left > 0


@given(problems(with_vectors=True))
def test_statements_that_should_hold_do_exactly(problem):
    evaluation = evaluate(problem)
    for name in HOLDING:
        terms = STATEMENTS[name](evaluation)
        assert terms.holds, name
        assert terms.rounding == 0


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("gamma", [0.5, 0.99])
def test_statements_that_should_hold_do_on_every_family(family, gamma):
    batch = FAMILIES[family](np.random.default_rng(3), 60, Shape(6, 3, 4, 2), gamma, 0.3)
    evaluation = evaluate_batch(batch.mdps, batch.target, batch.sources, batch.perturbation)
    for name in HOLDING:
        assert STATEMENTS[name](evaluation).holds.all(), name


@given(problems(max_states=3))
def test_the_sharp_bound_is_sharper(problem):
    evaluation = evaluate(problem)
    right = {name: STATEMENTS[name](evaluation).right for name in STATEMENTS}
    assert right["thm2/sharp"] <= right["thm2/corrected"]
    assert right["thm2/sharp-affine"] <= right["thm2/sharp"]
    assert right["thm2/sharp-value-affine"] <= right["thm2/sharp-value"]


@given(problems(max_states=3, with_vectors=True))
def test_float_and_exact_terms_agree(problem):
    """Floats may break a tie otherwise, which changes policies; reward distances do not depend on them."""
    exact, approximate = evaluate(problem), evaluate(problem.to_float())
    for name in STATEMENTS:
        left, right = (STATEMENTS[name](e).reward_distance for e in (exact, approximate))
        np.testing.assert_allclose(right, float_array(left), atol=1e-9, err_msg=name)


@given(st.integers(1, 7).flatmap(lambda n: st.tuples(arrays((n,)), arrays((n,)))))
def test_affine_distance_three_ways(case):
    """In fractions, in floats, and by a linear programme."""
    target, source = (exact_array(values) for values in case)
    exact = affine_distance(target[None], source[None])[0]
    y, x = float_array(target), float_array(source)
    # minimise t subject to |y - a x - c| <= t, a >= 0
    upper = np.block([[-x[:, None], -np.ones((len(x), 1)), -np.ones((len(x), 1))],
                      [x[:, None], np.ones((len(x), 1)), -np.ones((len(x), 1))]])  # fmt: skip
    programme = linprog(
        [0, 0, 1], A_ub=upper, b_ub=np.concatenate([-y, y]), bounds=[(0, None), (None, None), (0, None)]
    )
    assert programme.success
    assert programme.fun == pytest.approx(float(exact), abs=1e-9)
    floats = affine_distance(y[None], x[None])[0]
    assert float(exact) - 1e-12 <= floats <= float(exact) + 1e-12


def test_scale_and_shift_of_a_source_cost_nothing():
    problem = one_state(target=["1", "0"], sources=[["30", "10"]])
    terms = STATEMENTS["thm2/sharp-affine"](evaluate(problem))
    assert terms.reward_distance == 0
    assert STATEMENTS["thm2/sharp"](evaluate(problem)).reward_distance > 0
    flipped = one_state(target=["1", "0"], sources=[["0", "1"]])
    assert STATEMENTS["thm2/sharp-affine"](evaluate(flipped)).reward_distance == exact_array(["1/2"])[0]


def test_ratio_of_zero_sides():
    terms = STATEMENTS["thm2/sharp"](evaluate(one_state(target=["1", "0"], sources=[["1", "0"]])))
    assert terms.ratio == 0
    assert STATEMENTS["thm2/printed"](evaluate(hidden_error())).ratio == np.inf
