"""T2' is attained, never exceeded, and the linear programmes say what the bounds say."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

from sfr_theory import check_tightness, cli
from sfr_theory.arithmetic import rational
from sfr_theory.bounds import STATEMENTS
from sfr_theory.errors import InputError
from sfr_theory.files import problem_from_json
from sfr_theory.mdp import TransferProblem
from sfr_theory.operators import q_from_xi
from sfr_theory.programmes import LARGEST_DENOMINATOR
from sfr_theory.solve import optimal, policy_xi
from sfr_theory.tightness import (
    EXACT_XI,
    JOINT,
    MEASURES,
    PRINTED,
    SHARP,
    Budget,
    Combination,
    Size,
    WorstLoss,
    attaining_problem,
    certify,
    climb,
    combinations,
    evaluate_branch,
    free_reward_mdp,
    solve_all,
    worst_loss,
)
from sfr_theory.transfer import evaluate, evaluate_all_ties
from tests import commands

GAMMAS = ("1/10", "1/2", "9/10", "99/100")
BUDGETS = (SHARP, PRINTED, EXACT_XI, JOINT)
SHARP_STATEMENTS = ("thm2/sharp", "thm2/sharp-value")


# --- The attaining family ----------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize(
    ("states", "tasks", "d", "eps"),
    [
        *((1, tasks, "0", "2/3") for tasks in (1, 2)),
        *((4, 2, d, eps) for d, eps in (("0", "1"), ("1", "0"), ("1/3", "1/7"))),
        (2, 3, "1/1000", "5"),
        (2, 1, "5", "1/1000"),
    ],
)
def test_both_sides_of_the_sharp_bound_are_equal(
    gamma: str, states: int, tasks: int, d: str, eps: str
) -> None:
    evaluation = evaluate(attaining_problem(gamma, d, eps, states, tasks))
    for name in SHARP_STATEMENTS:
        terms = STATEMENTS[name](evaluation)
        assert terms.reward_distance == rational(d)
        assert terms.epsilon == rational(eps)
        assert terms.right > 0
        assert terms.left == terms.right


def test_gamma_zero_attains_the_value_bound_and_leaves_q_nothing_to_lose() -> None:
    evaluation = evaluate(attaining_problem(0, 1, 1))
    assert MEASURES["sharp-v"].ratio(evaluation) == 1
    assert MEASURES["sharp-q"].ratio(evaluation) is None


@pytest.mark.parametrize("gamma", GAMMAS)
def test_no_way_to_break_the_ties_exceeds_the_sharp_bound(gamma: str) -> None:
    branches = list(evaluate_all_ties(attaining_problem(gamma, 1, 1)))
    assert len(branches) > 1
    for name in ("sharp-q", "sharp-v"):
        ratios = [MEASURES[name].ratio(branch) for branch in branches]
        assert max(ratio for ratio in ratios if ratio is not None) == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"distance": 0, "epsilon": 0}, "both 0"),
        ({"distance": -1, "epsilon": 1}, "negative"),
        ({"distance": 1, "epsilon": 1, "slack": -1}, "negative"),
        ({"distance": 1, "epsilon": 1, "states": 1}, "two states"),
        ({"distance": 1, "epsilon": 1, "tasks": 0}, "at least one"),
    ],
)
def test_the_family_refuses_what_it_cannot_build(arguments: dict[str, int], sentence: str) -> None:
    with pytest.raises(InputError, match=sentence):
        attaining_problem("1/2", **arguments)


# --- Linear programmes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("gamma", GAMMAS)
@pytest.mark.parametrize("name", MEASURES)
def test_two_states_reach_what_the_sharp_bound_allows_and_no_more(gamma: str, name: str) -> None:
    """Every deterministic 2-state, 2-action MDP with one source: for the sharp measures the ceiling is 1."""
    measure, g = MEASURES[name], float(Fraction(gamma))
    solved = solve_all(Size(2, 2, 1), g, measure.budget)
    ratios = measure.ratio_of_loss(g, solved.loss)
    ceiling = measure.ceiling(Fraction(gamma))
    if measure.budget in (SHARP, JOINT):
        assert ceiling == 1
    assert (ratios <= float(ceiling) + solved.ratio_tolerance(g)).all()
    verified = measure.ratio(certify(measure.worst(solved), gamma))
    assert verified == ceiling
    # A constant lowered by 1/1000 is violated by that problem: the search can fail.
    assert verified > Fraction(999, 1000) * ceiling


@pytest.mark.parametrize("name", MEASURES)
def test_under_its_budget_a_measure_has_the_right_side_of_its_statement(name: str) -> None:
    measure, g = MEASURES[name], Fraction(4, 5)
    equations = measure.budget.equations(float(g))
    for d, eps in measure.members(g):
        scale = next(Fraction(w) / Fraction(u * d + v * eps) for u, v, w in equations if w != 0)
        assert all(scale * (u * d + v * eps) == pytest.approx(w) for u, v, w in equations)
        terms = STATEMENTS[measure.statement](evaluate(attaining_problem(g, scale * d, scale * eps)))
        assert float(terms.right.item()) == pytest.approx(float(measure.right_side(g)))


@pytest.mark.parametrize("size", [Size(2, 2, 2), Size(2, 3, 1)], ids=["two sources", "three actions"])
def test_more_sources_or_actions_change_nothing(size: Size) -> None:
    solved = solve_all(size, 0.9, SHARP)
    assert len(solved.loss) > 1000
    excess = MEASURES["sharp-v"].ratio_of_loss(0.9, solved.loss.max()) - 1
    assert abs(excess) <= solved.ratio_tolerance(0.9).max() < 1e-6


@pytest.mark.parametrize("tasks", [1, 2])
def test_one_state_with_exact_values_loses_nothing(tasks: int) -> None:
    """Then Q of any policy ranks the actions by their rewards; so half a budget of eps gives half a ratio."""
    for budget, ratio in ((EXACT_XI, 0.0), (JOINT, 0.5)):
        solved = solve_all(Size(1, 2, tasks), 0.9, budget)
        worst = MEASURES["joint-v"].ratio_of_loss(0.9, solved.loss.max())
        assert abs(worst - ratio) <= solved.ratio_tolerance(0.9).max() < 1e-6


def test_leaving_out_equivalent_combinations_loses_nothing() -> None:
    size = Size(2, 2, 1)
    entries = np.indices(size.ranges.tolist()).reshape(len(size.ranges), -1).T
    every = worst_loss(Combination.from_entries(size, entries), 0.7, SHARP)
    kept = combinations(size)
    assert len(every.loss) == size.num_combinations == 256
    assert len(kept.rival) < 256
    values = {round(float(loss), 6) for loss in every.loss if loss > 1e-6}
    canonical = {round(float(loss), 6) for loss in worst_loss(kept, 0.7, SHARP).loss if loss > 1e-6}
    assert values == canonical


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.id)
def test_many_programmes_at_once_have_the_optima_of_each_alone(budget: Budget) -> None:
    sample = combinations(Size(2, 2, 2))[::97]
    together = worst_loss(sample, 0.9, budget)
    alone = [worst_loss(sample[k : k + 1], 0.9, budget).loss[0] for k in range(len(sample.rival))]
    right_side = 2 / (1 - 0.9)
    assert (np.abs(together.loss - alone) <= 2 * together.ratio_tolerance(0.9) * right_side).all()


@pytest.mark.parametrize("gamma", ["1/2", "9/10"])
@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.id)
def test_a_programme_says_what_the_bounds_say_of_its_problem(gamma: str, budget: Budget) -> None:
    """The certified problem loses in state 0 what the programme says, with the distance and error it says.

    Rounding moves a reward by at most t = 1/LARGEST_DENOMINATOR, a value by t/(1-g), a difference of two
    values by twice that; mending adds at most that much to d and eps.
    """
    g = float(Fraction(gamma))
    blur = 4 / LARGEST_DENOMINATOR / (1 - g)
    solved = solve_all(Size(2, 2, 1), g, budget)
    losing = np.flatnonzero(solved.loss > 1e-3)
    assert len(losing) > 10
    for k in losing[::3]:
        evaluation = certify(solved[k], gamma)
        loss = evaluation.optimal_q[0].max() - evaluation.gpi_q[0, 0]
        assert float(loss) >= solved.loss[k] - blur
        terms = STATEMENTS["thm2/sharp-value"](evaluation)
        d, eps = (float(part.item()) for part in (terms.reward_distance, terms.epsilon))
        assert all(u * d + v * eps <= w + blur for u, v, w in budget.equations(g))
        assert terms.holds


@pytest.mark.parametrize("tasks", [1, 2])
def test_no_random_problem_beats_the_programme_of_its_combination(tasks: int) -> None:
    """A programme bounds every problem of its combination: its constraints are not too tight."""
    rng = np.random.default_rng(5)
    gamma, states, actions = 0.8, 2, 2
    size = Size(states, actions, tasks)
    rows, losses, budgets = [], [], []
    s = np.arange(states)
    for _ in range(400):
        next_state = rng.integers(states, size=(states, actions))
        mdp = free_reward_mdp(next_state, gamma)
        target = rng.integers(-1, 2, size=states * actions).astype(float)
        closest = target + rng.integers(-1, 2, size=target.size)
        others = rng.integers(-9, 10, size=(tasks - 1, target.size))
        policies = optimal(mdp, np.concatenate([closest[None], others])).policy
        error = rng.uniform(-1, 1, size=(tasks, states, actions)) * rng.choice([0.0, 1.0])
        q = q_from_xi(policy_xi(mdp, policies), target[None]) + error
        gpi, best = q.max(axis=0).argmax(axis=-1), optimal(mdp, target)
        followed = q[:, s, gpi].argmax(axis=0)
        gpi_q = q_from_xi(policy_xi(mdp, gpi), target)
        loss = best.q.max(axis=-1) - gpi_q[s, gpi]
        # Relabel: the worst state becomes 0, the GPI action becomes 0 (with two actions: exclusive or).
        order = np.array([loss.argmax(), 1 - loss.argmax()])
        moved = np.take_along_axis(next_state, s[None] ^ gpi[:, None], axis=1)[order]
        relabelled = order[moved]  # a swap is its own inverse
        entries = [relabelled, (policies ^ gpi)[:, order], (best.policy ^ gpi)[order], followed[order]]
        rows.append(np.concatenate([entry.reshape(-1) for entry in entries]))
        losses.append(loss.max())
        budgets.append(gamma * np.abs(target - closest).max() + np.abs(error).max())
    worst = worst_loss(Combination.from_entries(size, np.array(rows)), gamma, SHARP)
    right_side, rounding = 2 / (1 - gamma), 1e-12
    allowed = (worst.loss + worst.ratio_tolerance(gamma) * right_side) * budgets + rounding
    assert (np.array(losses) > 0.1).sum() > 30
    assert (np.array(losses) <= allowed).all()


# --- Certificates and search -------------------------------------------------------------------------------


def test_a_branch_is_one_of_all_ties() -> None:
    problem = attaining_problem("9/10", 1, 1)
    source_policies, stay = np.array([[1, 0]]), np.array([0, 0])
    branch = evaluate_branch(problem, source_policies, np.array([0, 1]))
    assert any(
        (other.gpi_policy == branch.gpi_policy).all() and (other.source_xi == branch.source_xi).all()
        for other in evaluate_all_ties(problem)
    )
    with pytest.raises(ArithmeticError, match="GPI cannot choose"):
        evaluate_branch(problem, source_policies, stay)
    with pytest.raises(ArithmeticError, match="not optimal"):
        evaluate_branch(problem, np.array([[0, 0]]), np.array([0, 1]))


def test_a_blurred_solution_is_mended() -> None:
    """Rewards off by up to t leave pi_1 not optimal and ties broken; the problem is still exact, and close.

    Values move by at most t/(1-g) = 10 t and the loss, which is compared with 2/(1-g) = 20, by twice that.
    d grows by at most 2 t and a bonus of 20 t, eps by 10 t: of g d + eps = 1, and so of the ratio, 32 t. The
    loss costs t more.
    """
    rng = np.random.default_rng(3)
    blur = 1e-4
    solved = solve_all(Size(2, 2, 2), 0.9, JOINT)
    for k in np.argsort(solved.loss)[-20:]:
        reward, source = (
            exact + blur * rng.uniform(-1, 1, size=exact.shape)
            for exact in (solved.reward[k], solved.source_reward[k])
        )
        off = WorstLoss(solved.combination[k], solved.loss[k], reward, source)
        ratio = MEASURES["joint-v"].ratio(certify(off, "9/10"))
        assert MEASURES["joint-v"].ratio_of_loss(0.9, solved.loss[k]) - 33 * blur <= ratio < 1


@pytest.mark.parametrize(("states", "tasks"), [(3, 1), (3, 2)])
def test_the_local_search_finds_a_tight_problem_by_itself(states: int, tasks: int) -> None:
    size = Size(states, 2, tasks)
    climbs = [climb(np.random.default_rng(seed), size, 0.9, SHARP, steps=30) for seed in range(3)]
    best = max((worst[0] for worst, _ in climbs), key=lambda worst: worst.loss)
    assert best.combination.loses_q
    for name in ("sharp-q", "sharp-v"):
        assert MEASURES[name].ratio(certify(best, "9/10")) > Fraction(999, 1000)
    again, programmes = climb(np.random.default_rng(0), size, 0.9, SHARP, steps=30)
    assert (again.loss[0], programmes) == (climbs[0][0].loss[0], climbs[0][1])


# --- The command -------------------------------------------------------------------------------------------

SMALL = {"gamma": ("1/2",), "states": 2, "tasks": 1}


def test_the_command_reports_rows_claims_and_a_picture(tmp_path: Path) -> None:
    report, picture = tmp_path / "tightness.json", tmp_path / "tightness.png"
    assert check_tightness.main(check_tightness.Options(**SMALL, json=str(report), plot=str(picture))) == 0
    content = json.loads(report.read_text())
    assert content["seed"] == 0
    assert {row["method"] for row in content["rows"]} == {"family", "all LPs", "random"}
    for row in content["rows"]:
        for name, ratio in row["ratios"].items():
            assert ratio is None or ratio["ratio"] <= row["ceiling"][name]
    exact = [row for row in content["rows"] if row["states"] == 2 and row["method"] != "random"]
    assert [row["ratios"]["sharp-q"]["exact"] for row in exact] == ["1", "1"]
    assert [row["ratios"]["printed-q-exact-xi"]["exact"] for row in exact] == ["1/4", "1/4"]
    assert all(claim["as_expected"] for claim in content["claims"].values())
    problem = problem_from_json(content["claims"]["tightness/joint"]["details"]["problem"])
    assert MEASURES["sharp-q"].ratio(evaluate(problem)) == 1
    assert picture.stat().st_size > 10_000


def test_the_command_fails_when_the_bound_is_not_attained(monkeypatch: pytest.MonkeyPatch) -> None:
    def loose(*arguments: object, **named: object) -> TransferProblem:
        return attaining_problem(*arguments, **{"slack": "1/100", **named})

    monkeypatch.setattr(check_tightness, "attaining_problem", loose)
    assert check_tightness.main(check_tightness.Options(**SMALL)) == cli.EXIT_UNEXPECTED


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--gamma", "1"], "gamma is 1"),
        (["--gamma", "0"], "add one between 0 and 1"),
        (["--gamma", "half"], "gamma: 'half' is not a number"),
        (["--states", "0"], "--states is 0"),
        (["--seed", "-1"], "--seed is -1"),
    ],
)
def test_bad_input_gets_one_sentence_and_exit_code_2(arguments: list[str], sentence: str) -> None:
    commands.refuses("sfr_theory.check_tightness", *arguments, words=sentence)
