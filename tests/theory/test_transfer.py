"""Ties: every way to break them is tried, and too many are refused."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given

from sfr_theory.bounds import STATEMENTS
from sfr_theory.errors import InputError
from sfr_theory.mdp import FiniteMDP, TransferProblem
from sfr_theory.solve import policy_xi
from sfr_theory.transfer import evaluate, evaluate_all_ties
from tests.strategies import problems
from tests.theory.examples import equal_values, hidden_error


@given(problems(max_states=2, max_actions=2, max_sources=2))
def test_breaking_ties_first_is_among_all_ways(problem):
    first = evaluate(problem)
    lefts = {name: STATEMENTS[name](first).left.item() for name in STATEMENTS}
    all_ways = list(evaluate_all_ties(problem))
    for name, left in lefts.items():
        assert left <= max(STATEMENTS[name](e).left.item() for e in all_ways)


def test_without_ties_there_is_one_way():
    assert len(list(evaluate_all_ties(hidden_error()))) == 1


def test_every_tied_policy_appears():
    """One state, two equal actions: two optimal policies for target and source, two GPI actions each."""
    ways = list(evaluate_all_ties(equal_values()))
    assert len(ways) == 2 * 2 * 2
    mdp = equal_values().mdp
    options = [policy_xi(mdp, np.array([a])) for a in range(2)]

    def action_of(xi):
        return next(k for k in range(2) if (xi == options[k]).all())

    seen = {tuple(map(action_of, (e.optimal_xi, e.source_xi[0], e.gpi_xi))) for e in ways}
    assert seen == set(product(range(2), repeat=3))


def test_floats_have_no_ties():
    with pytest.raises(InputError, match="exact"):
        next(evaluate_all_ties(equal_values().to_float()))


def test_too_many_ties_are_refused():
    states, actions = 8, 4
    kernel = np.zeros((states, actions, states, 1), dtype=int)
    kernel[:, :, 0, 0] = 1
    problem = TransferProblem(FiniteMDP(kernel, "1/2"), ["1"], [["1"]])
    with pytest.raises(InputError, match="use a smaller MDP or --ties first"):
        next(evaluate_all_ties(problem))
