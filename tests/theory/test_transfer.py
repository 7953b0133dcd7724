"""Ties: every way to break them is tried, and too many are refused."""

from contextlib import nullcontext
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from hypothesis import given

from sfr_theory import transfer
from sfr_theory.arithmetic import exact_array
from sfr_theory.bounds import STATEMENTS
from sfr_theory.random_mdp import FAMILIES, Shape
from sfr_theory.solve import policy_xi
from sfr_theory.transfer import evaluate, evaluate_all_ties, evaluate_batch
from tests.refusals import refused
from tests.strategies import problems
from tests.theory.examples import equal_values, hidden_error, one_state


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


def test_ties_of_the_two_gpi_policies_are_not_crossed(monkeypatch):
    """Under R both actions tie, under R_0 only one is best: two ways of GPI, not more."""
    problem = one_state(target=["1", "1"], sources=[["1", "0"]], approximations=[[[["1", "0"], ["0", "1"]]]])
    problem = replace(problem, mdp=replace(problem.mdp, feature_vectors=exact_array([[1], [0]])))
    ways = [(e.gpi_policy[0], e.linear_gpi_policy[0]) for e in evaluate_all_ties(problem)]
    assert ways == [(0, 0), (1, 0)] * 2  # and two optimal policies of the target
    for e in evaluate_all_ties(problem):
        assert (e.gpi_xi == policy_xi(problem.mdp, e.gpi_policy)).all()
        assert (e.linear_gpi_xi == policy_xi(problem.mdp, e.linear_gpi_policy)).all()
    monkeypatch.setattr(transfer, "MAX_TIE_COMBINATIONS", 3)
    with refused("4 combinations"):
        next(evaluate_all_ties(problem))


@pytest.mark.parametrize(("limit", "allowed"), [(8, True), (7, False), (3, False)])
def test_the_limit_counts_all_combinations(monkeypatch, limit, allowed):
    monkeypatch.setattr(transfer, "MAX_TIE_COMBINATIONS", limit)
    with nullcontext() if allowed else refused("--ties first"):
        assert len(list(evaluate_all_ties(equal_values()))) == 8


def test_a_batch_adds_its_errors_to_the_true_xi():
    batch = FAMILIES["garnet"](np.random.default_rng(0), 2, Shape(3, 2, 3, 2), 0.5, 0.5)
    e = evaluate_batch(batch.mdps, batch.target, batch.sources, batch.perturbation)
    for b in range(2):
        alone = evaluate(batch.problem(b, e.approximations[b]))
        np.testing.assert_allclose(e.approximations[b] - alone.source_xi, batch.perturbation[b], atol=1e-12)
        for name in ("gpi_policy", "linear_gpi_policy", "linear_reward", "gpi_xi", "linear_gpi_xi"):
            np.testing.assert_allclose(getattr(e, name)[b], getattr(alone, name), atol=1e-12, err_msg=name)


def test_floats_have_no_ties():
    with refused("exact"):
        next(evaluate_all_ties(equal_values().to_float()))
