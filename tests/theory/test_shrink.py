"""Shrinking keeps the violation and ends in something small."""

import numpy as np
import pytest

from sfr_theory.arithmetic import rational
from sfr_theory.bounds import STATEMENTS
from sfr_theory.random_mdp import FAMILIES, Shape
from sfr_theory.shrink import PerturbedProblem, shrink, simpler, violates
from sfr_theory.transfer import evaluate


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
