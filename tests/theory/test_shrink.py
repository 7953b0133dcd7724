"""Shrinking keeps the violation and ends in something small."""

from dataclasses import replace

import numpy as np
import pytest

from sfr_theory import shrink as shrinking
from sfr_theory.arithmetic import exact_array, float_array, rational
from sfr_theory.bounds import STATEMENTS
from sfr_theory.random_mdp import FAMILIES, Shape
from sfr_theory.shrink import PerturbedProblem, shrink, simpler, violates
from sfr_theory.transfer import evaluate
from tests.theory.examples import hidden_error


@pytest.fixture(scope="module", params=["thm2/printed", "thm2/printed-value-norm"])
def found(request):
    statement = STATEMENTS[request.param]
    batch = FAMILIES["adversarial"](np.random.default_rng(0), 40, Shape(3, 2, 3, 2), 0.9, 0.1)
    problems = (PerturbedProblem.from_batch(batch, b, rational("9/10")) for b in range(40))
    return statement, next(problem for problem in problems if violates(problem, statement))


def test_the_shrunk_problem_still_violates_and_is_tiny(found):
    statement, problem = found
    small = shrink(problem, statement)
    assert violates(small, statement)
    assert small.complexity() < problem.complexity()
    assert small.kernel.shape[0] == 1
    assert small.kernel.shape[1] == 2
    # Written with explicit approximations, it is the same counterexample.
    assert not statement(evaluate(small.to_problem())).holds


def test_simpler_variants_are_valid_problems(found):
    _, problem = found
    for candidate in simpler(problem):
        candidate.evaluate()  # validates the kernel


def test_a_holding_statement_is_not_violated(found):
    _, problem = found
    assert not violates(problem, STATEMENTS["thm2/sharp"])


def two_by_two(**changes):
    """Two states, actions, features and sources; (0, 0) has three outcomes, (0, 1) two, state 1 one each."""
    kernel = np.zeros((2, 2, 2, 2), dtype=object)
    kernel[0, 0] = [["1/2", "1/4"], [0, "1/4"]]
    kernel[0, 1] = [["1/3", 0], [0, "2/3"]]
    kernel[1, 0, 1, 0] = kernel[1, 1, 0, 1] = 1
    perturbation = np.zeros((2, 2, 2, 2), dtype=object)
    perturbation[0, 0, 1] = ["1/3", 1]
    perturbation[1, 1, 0] = [0, -1]
    parts = {
        "kernel": exact_array(kernel), "gamma": rational("9/10"), "feature_vectors": exact_array([[1], [2]]),
        "target": exact_array(["5/3", 1]), "sources": exact_array([[0, 1], [2, "1/2"]]),
        "perturbation": exact_array(perturbation),
    }  # fmt: skip
    return PerturbedProblem(**(parts | changes))


def same(one, other):
    names = ("kernel", "feature_vectors", "target", "sources", "perturbation")
    parts = [(getattr(one, name), getattr(other, name)) for name in names]
    return one.gamma == other.gamma and all(
        (a is None) == (b is None) and (a is None or np.array_equal(a, b)) for a, b in parts
    )


def test_complexity_by_hand():
    """16 * 2 entries; 7 + 1 + 2 + 3 + 3 + 2 non-zero numbers; |p| + q of all but the kernel's."""
    digits = 19 + (8 + 2) + (1 + 2 + 3 + 3) + (13 * 1 + 4 + 2 + 2) + (2 + 3)
    assert two_by_two().complexity() == (32, 18, digits)
    assert two_by_two(feature_vectors=None).complexity() == (32, 16, digits - 5)


def test_smaller_variants_in_order():
    """Without a source, without an action, two states in one, two features in one."""
    problem = two_by_two()
    kernel, perturbation = problem.kernel, problem.perturbation
    variants = list(shrinking._smaller(problem))
    assert len(variants) == 2 + 2 + 2 + 2
    assert same(variants[1], replace(problem, sources=problem.sources[:1], perturbation=perturbation[:1]))
    assert same(variants[2], replace(problem, kernel=kernel[:, 1:], perturbation=perturbation[:, :, 1:]))
    merged = (kernel[1:, :, :1] + kernel[1:, :, 1:], perturbation[:, 1:])
    assert same(variants[4], replace(problem, kernel=merged[0], perturbation=merged[1]))
    one_feature = replace(
        problem, kernel=kernel[..., :1] + kernel[..., 1:], feature_vectors=problem.feature_vectors[1:],
        target=problem.target[1:], sources=problem.sources[:, 1:], perturbation=perturbation[..., 1:],
    )  # fmt: skip
    assert same(variants[6], one_feature)
    assert list(shrinking._smaller(replace(problem, feature_vectors=None)))[6].feature_vectors is None
    smallest = two_by_two(
        kernel=exact_array(np.ones((1, 1, 1, 1), dtype=int)), feature_vectors=None,
        target=exact_array([1]), sources=exact_array([[1]]), perturbation=exact_array([[[[0]]]]),
    )  # fmt: skip
    assert list(shrinking._smaller(smallest)) == []
    three = replace(problem, kernel=np.repeat(kernel, 2, axis=1), perturbation=np.repeat(perturbation, 2, 2))
    assert len(list(shrinking._smaller(three))) == 2 + 4 + 2 + 2


def test_rows_become_deterministic_one_at_a_time():
    problem = two_by_two()
    variants = list(shrinking._deterministic_rows(problem))
    assert len(variants) == 3 + 2
    for variant, (s, a, after, feature) in zip(
        variants, [(0, 0, 0, 0), (0, 0, 0, 1), (0, 0, 1, 1), (0, 1, 0, 0), (0, 1, 1, 1)], strict=True
    ):
        kernel = problem.kernel.copy()
        kernel[s, a] = exact_array(np.zeros((2, 2), dtype=int))
        kernel[s, a, after, feature] = rational(1)
        assert same(variant, replace(problem, kernel=kernel))


def test_errors_vanish_by_source_by_pair_by_entry():
    variants = [variant.perturbation for variant in shrinking._without_errors(two_by_two())]
    cleared = [(0,), (1,), (0, 0, 1), (1, 1, 0), (0, 0, 1, 0), (0, 0, 1, 1), (1, 1, 0, 1)]
    assert len(variants) == len(cleared)
    for variant, place in zip(variants, cleared, strict=True):
        expected = two_by_two().perturbation.copy()
        expected[place] = rational(0)
        assert np.array_equal(variant, expected)


def test_numbers_become_rounder():
    problem = two_by_two()
    variants = list(shrinking._rounder(problem))
    assert same(variants[0], replace(problem, gamma=rational("1/2")))
    for i in range(2):
        sources = problem.sources.copy()
        sources[i] = problem.target
        assert same(variants[1 + i], replace(problem, sources=sources))
    # Denominators 1, 2, 4, 8 of three arrays: 5/3 becomes 2, 3/2, 7/4, 13/8.
    targets = [fraction[0] for fraction in (variant.target for variant in variants[3:15:3])]
    assert targets == [rational(text) for text in ("2", "3/2", "7/4", "13/8")]
    assert all(variant.target[1] == 1 for variant in variants[3:15])
    assert variants[5].perturbation[0, 0, 1, 0] == 0  # 1/3, whole
    assert variants[8].perturbation[0, 0, 1, 0] == rational("1/2")
    # Then one number at a time: 0, 5/6, 1, -1, 3/2, 2 for 5/3; 0, 1/2, -1 for 1.
    single = [
        variant.target for variant in variants[15:] if not np.array_equal(variant.target, problem.target)
    ]
    assert [str(target[0]) for target in single[:6]] == ["0", "5/6", "-1", "1", "3/2", "2"]
    assert [str(target[1]) for target in single[6:]] == ["0", "1/2", "-1"]
    other = two_by_two(target=exact_array([9, "7/3"]))
    single = [v.target for v in list(shrinking._rounder(other))[15:] if (v.target != other.target).any()]
    assert [str(target[0]) for target in single[:5]] == ["0", "-1", "1", "4", "9/2"]
    assert [str(target[1]) for target in single[5:]] == ["0", "-1", "1", "7/6", "2", "5/2"]
    settled = replace(problem, gamma=rational("1/2"), sources=np.stack([problem.target] * 2))
    assert all(np.array_equal(v.sources, settled.sources) for v in list(shrinking._rounder(settled))[:1])
    assert all(variant.gamma == rational("1/2") for variant in shrinking._rounder(settled))


def test_variants_come_in_the_order_of_what_they_save():
    problem = two_by_two()
    parts = [shrinking._smaller(problem), [replace(problem, feature_vectors=None)]]
    parts += [part(problem) for part in
              (shrinking._deterministic_rows, shrinking._without_errors, shrinking._rounder)]  # fmt: skip
    expected = [variant for part in parts for variant in part]
    found = list(simpler(problem))
    assert len(found) == len(expected)
    assert all(map(same, found, expected))
    assert len(list(simpler(replace(problem, feature_vectors=None)))) < len(found)


def test_a_violation_must_not_hang_on_ties():
    """A hidden error violates the printed theorem; where a tie chooses the bad action, it does not count."""
    statement = STATEMENTS["thm2/printed-value-norm"]
    given = hidden_error()
    flip = (Ellipsis, slice(None, None, -1))  # actions and features change places: the bad action is first
    errors = (given.approximations - evaluate(given).source_xi)[:, :, ::-1][flip]
    problem = PerturbedProblem(
        given.mdp.kernel, given.mdp.gamma, None, given.target[flip], given.sources[flip], exact_array(errors)
    )
    assert violates(problem, statement)
    tied = problem.perturbation.copy()
    tied[1, 0, 0, 1] -= 1  # both actions are worth 2 in the approximations
    assert bool(statement(replace(problem, perturbation=tied).evaluate()).violated)
    assert not violates(replace(problem, perturbation=tied), statement)
    assert not violates(replace(problem, perturbation=0 * tied), statement)
    exact, floats = problem.evaluate(), problem.evaluate_in_floats()
    np.testing.assert_allclose(floats.gpi_xi, float_array(exact.gpi_xi))
    assert floats.gpi_xi.dtype == float


def test_the_number_of_evaluations_is_limited(found, monkeypatch):
    statement, problem = found
    calls = []
    monkeypatch.setattr(shrinking, "violates", lambda candidate, bound: calls.append(candidate) or False)
    monkeypatch.setattr(shrinking, "MAX_EVALUATIONS", 5)
    assert shrink(problem, statement) is problem
    assert len(calls) == 5
    assert all(candidate.complexity() < problem.complexity() for candidate in calls)


def test_shrinking_takes_the_first_simpler_problem_that_violates(monkeypatch):
    """If everything violates, the first variant is taken each time, until none is simpler."""
    monkeypatch.setattr(shrinking, "violates", lambda candidate, bound: True)
    small = shrink(two_by_two(), STATEMENTS["thm2/printed"])
    assert small.kernel.shape == (1, 1, 1, 1)
    assert small.complexity() == (1, 2, 3 + 2 * 1 + 1)
