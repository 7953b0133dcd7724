"""The command line: verdicts, exit codes, JSON, counterexamples that reproduce."""

import json
import re
from dataclasses import fields, replace
from fractions import Fraction

import numpy as np
import pytest

from sfr_theory import bounds
from sfr_theory.arithmetic import float_array
from sfr_theory.bound_runs import Plan, check_generated, check_problem
from sfr_theory.check_gpi_bound import Options, main, shown
from sfr_theory.claims import Verdict
from sfr_theory.files import load_problem, problem_to_json, save_problem
from sfr_theory.mdp import TransferProblem
from sfr_theory.random_mdp import Shape
from sfr_theory.transfer import evaluate
from tests import commands
from tests.refusals import refused
from tests.theory.examples import equal_values, hidden_error

PRINTED = ["thm2/printed", "thm2/printed-value-norm"]


def usual(tmp_path):
    return "sfr_theory.check_gpi_bound", "--counterexamples", tmp_path / "found", "--workers", "1"


def run(tmp_path, *arguments):
    return commands.run(*usual(tmp_path), *arguments)


def report(tmp_path, *arguments):
    """The JSON of a run in which all is as expected."""
    result = run(tmp_path, *arguments, "--json", "-")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)


def test_a_run_refutes_what_is_printed_and_supports_the_rest(tmp_path):
    result = run(tmp_path, "--mdps", "600", "--json", "-", "--plot", str(tmp_path / "plot.svg"))
    assert result.returncode == 0, result.stderr
    payload = json.loads(result.stdout)
    assert payload["seed"] == 0
    assert payload["gamma"] == 0.9
    assert set(payload["statements"]) == set(bounds.STATEMENTS)
    for name, entry in payload["statements"].items():
        assert entry["instances"] == 600
        assert set(entry["worst"]) == {"left", "right", "epsilon", "reward_distance"}
        if name in PRINTED:
            assert entry["verdict"] == "REFUTED"
            assert entry["violations"] > 0
            assert entry["worst_ratio"] > 1
        else:
            assert entry["verdict"] == "SUPPORTED"
            assert entry["violations"] == 0
            assert entry["counterexample"] is None
    # The table went to standard error, the picture and the counterexamples to files.
    assert "thm2/sharp-value" in result.stderr
    assert (tmp_path / "plot.svg").read_text().startswith("<?xml")
    for name in PRINTED:
        path = tmp_path / "found" / f"{name.replace('/', '-')}.json"
        written = json.loads(path.read_text())
        written.pop("comment")
        assert written == payload["statements"][name]["counterexample"]
        again = report(tmp_path, "--exact", "--mdp", str(path), "--statement", name)
        assert again["instances"][0]["statements"][name]["holds"] is False


def test_results_do_not_depend_on_the_number_of_workers(tmp_path):
    arguments = ("--mdps", "520", "--family", "garnet", "--json", "-")
    one, two = (run(tmp_path, *arguments, "--workers", workers).stdout for workers in "12")
    assert one == two


def test_exact_and_float_runs_agree_on_the_same_problems():
    plan = Plan(mdps=27, shape=Shape(3, 2, 3, 2), families=("adversarial", "garnet", "ties"))
    for exact, approximate in zip(
        check_generated(replace(plan, exact=True), 1, lambda _: None),
        check_generated(plan, 1, lambda _: None),
        strict=True,
    ):
        np.testing.assert_allclose(
            approximate.terms.right, exact.terms.right.astype(float), atol=1e-9, err_msg=exact.claim.id
        )


def test_files_give_exact_fractions(tmp_path):
    save_problem(hidden_error(), tmp_path / "problem.json")
    payload = report(tmp_path, "--exact", "--mdp", str(tmp_path / "problem.json"))
    [instance] = payload["instances"]
    assert (payload["gamma"], instance["gamma"]) == (None, "1/2")  # each file has its own
    statements = instance["statements"]
    assert (statements["thm2/printed"]["left"], statements["thm2/printed"]["right"]) == ("1", "0")
    assert statements["thm2/printed"]["ratio"] is None  # infinite
    assert (statements["thm2/sharp"]["left"], statements["thm2/sharp"]["right"]) == ("1", "6")


def test_worst_ties(tmp_path):
    plan = Plan(exact=True)
    assert check_problem(plan, equal_values())["thm2/printed"].left == 0
    worst = check_problem(replace(plan, ties="worst"), equal_values())
    assert worst["thm2/printed"].left == 2
    assert worst["thm2/sharp"].left == 0
    save_problem(equal_values(), tmp_path / "tie.json")
    payload = report(tmp_path, "--exact", "--ties", "worst", "--mdp", str(tmp_path / "tie.json"))
    assert payload["instances"][0]["statements"]["thm2/printed"]["left"] == "2"


def test_a_violated_statement_that_should_hold_exits_with_1(monkeypatch, capsys, tmp_path):
    def lowered(e):
        terms = bounds.thm2_sharp(e)
        return replace(terms, right=terms.right / 50)

    monkeypatch.setitem(bounds.STATEMENTS, "thm2/sharp", lowered)
    options = Options(mdps=100, statement=("thm2/sharp",), workers=1, counterexamples=str(tmp_path))
    assert main(options) == 1
    assert "unexpected" in capsys.readouterr().out
    assert load_problem(tmp_path / "thm2-sharp.json").mdp.is_exact


def test_without_adversaries_the_printed_statement_is_inconclusive(capsys):
    options = Options(mdps=30, family=("garnet",), statement=("thm2/printed-value-norm",), workers=1)
    assert main(options) == 0
    assert "INCONCLUSIVE" in capsys.readouterr().out


def near_one(tmp_path, gamma):
    """`hidden_error` with a horizon h = 1/(1-g): xi~ is exact but for 2h that R_2 does not see."""
    path = tmp_path / f"{gamma}.json"
    g, h = Fraction(gamma), 1 / (1 - Fraction(gamma))
    approximations = [[[[h, 0], [g * h, 1]]], [[[1, g * h], [2 * h, h]]]]
    save_problem(replace(hidden_error(gamma), approximations=approximations), path)
    return str(path)


def test_what_rounding_blurs_is_undecided_and_exact_arithmetic_decides_it(tmp_path):
    """Near gamma = 1 rounding exceeds both sides; the printed bound fails there, and float64 must not say
    that it holds."""
    path = near_one(tmp_path, "0.9999999")
    blurred = run(tmp_path, "--mdp", path, "--json", "-")
    payload = json.loads(blurred.stdout)
    for name in PRINTED:
        entry = payload["instances"][0]["statements"][name]
        assert entry["left"] > entry["right"]
        assert entry["holds"] is None
        assert payload["statements"][name]["verdict"] == "INCONCLUSIVE"
        assert payload["statements"][name]["undecided"] == 1
    sentence = [line for line in blurred.stderr.splitlines() if line.startswith("Undecided")]
    assert len(sentence) == 1
    assert "--exact" in sentence[0]
    farther = near_one(tmp_path, "0.99999")  # where rounding is small nothing is undecided
    for arguments in ((path, "--exact"), (farther,)):
        [instance] = report(tmp_path, "--mdp", *arguments)["instances"]
        for name, entry in instance["statements"].items():
            assert entry["holds"] is (name not in PRINTED)


def test_generated_problems_that_float64_cannot_decide_support_nothing(tmp_path):
    """The first of these, in fractions, violate the printed bound, and in floats no left side is above it."""
    plan = Plan(mdps=100, families=("adversarial",), gamma="0.99999999", statements=(*PRINTED, "thm2/sharp"))
    for summary in check_generated(plan, 1, lambda _: None):
        assert (summary.violations, summary.verdict) == (0, Verdict.INCONCLUSIVE)
        assert summary.undecided > 0
    assert not summary.as_expected  # thm2/sharp, which should be supported
    result = run(
        tmp_path, "--mdps", "9", "--family", "adversarial", "--gamma", "0.99999999", "--workers", "1"
    )
    assert result.returncode == 1
    assert "--exact decides them" in result.stdout


def test_adversaries_that_refute_nothing_are_a_failure(monkeypatch):
    """If the adversarial family had every chance and found nothing, something is broken."""
    monkeypatch.setitem(bounds.STATEMENTS, "thm2/printed", bounds.thm2_corrected)
    [summary] = check_generated(
        Plan(mdps=100, families=("adversarial",), statements=("thm2/printed",)), 1, lambda _: None
    )
    assert summary.verdict is Verdict.INCONCLUSIVE
    assert not summary.as_expected


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--mdps", "0"], "--mdps.*at least 1"),
        (["--workers", "0"], "--workers.*at least 1"),
        (["--seed", "-1"], "--seed is -1"),
        (["--gamma", "1"], "gamma.*less than 1"),
        (["--gamma", "abc"], "gamma: 'abc' is not a number"),
        (["--states", "0"], "states.*at least 1"),
        (["--epsilon", "-1"], "--epsilon is -1.0"),
        (["--epsilon", "1e308"], "--epsilon.*between 0 and"),
        (["--gamma", "0.99999999999999999999"], "float64.*exact arithmetic"),
        (["--counterexamples", "/dev/null/x"], "cannot write /dev/null/x"),
        (["--family", "nonsense"], "--family nonsense.*choose from garnet"),
        (["--statement", "thm9"], "--statement thm9.*choose from gpi/linear"),
        (["--ties", "worst"], "--ties worst needs --exact"),
        (["--mdp", "nowhere.json"], "cannot read nowhere.json"),
        (["--mdps", "5", "--plot", "a.xyz"], "cannot plot to a.xyz"),
        (["--mdps", "5", "--json", "/dev/null/x.json"], "cannot write /dev/null/x.json"),
    ],
)
def test_bad_input_is_one_sentence_and_exit_code_2(tmp_path, arguments, message):
    commands.refuses(*usual(tmp_path), *arguments, words=message)


def test_an_unknown_flag_exits_with_2(tmp_path):
    result = run(tmp_path, "--nonsense")
    assert result.returncode == 2
    assert "Traceback" not in result.stderr


def test_help_teaches(tmp_path):
    result = run(tmp_path, "--help")
    assert result.returncode == 0
    for field in fields(Options):
        assert f"--{field.name}" in result.stdout


def with_reward(reward):
    problem = problem_to_json(hidden_error())
    return json.dumps({**problem, "target": [reward, "0"]})


@pytest.mark.parametrize("reward", ["1e308", "1e400"])
def test_numbers_that_floats_cannot_hold_are_refused_there_and_fine_in_fractions(tmp_path, reward):
    path = tmp_path / "large.json"
    path.write_text(with_reward(reward))
    commands.refuses(*usual(tmp_path), "--mdp", path, words=f"^error: {re.escape(str(path))}: ")
    assert run(tmp_path, "--exact", "--mdp", str(path)).returncode == 0


def test_tiny_rewards_are_solved_as_well_as_large_ones(tmp_path):
    path = tmp_path / "tiny.json"
    path.write_text(with_reward("1e-30"))
    # Not the affine statements: both their sides are of size 1e-30, far below the rounding of the sources.
    payload = report(tmp_path, "--mdp", str(path), "--statement", "thm2/sharp")
    statements = payload["instances"][0]["statements"]
    assert statements["thm2/sharp"]["holds"]
    assert statements["thm2/sharp"]["left"] == pytest.approx(1e-30)


def test_a_problem_with_too_many_ties_does_not_end_the_run(tmp_path):
    arguments = ("--exact", "--ties", "worst", "--mdps", "2", "--family", "ties", "--states", "20")
    result = run(tmp_path, *arguments, "--json", str(tmp_path / "out.json"))
    assert result.returncode == 0, result.stderr
    statements = json.loads((tmp_path / "out.json").read_text())["statements"]
    assert statements["thm2/sharp"]["instances"] == 2
    assert statements["thm2/sharp"]["ties_not_tried"] > 0
    assert "too many ties" in result.stdout


def test_a_counterexample_is_shown_with_all_that_makes_it_one(capsys, tmp_path):
    """Both sides, the true xi beside xi~, the GPI action and Q*, in fractions."""
    options = Options(
        mdps=100,
        family=("adversarial",),
        statement=("thm2/printed",),
        workers=1,
        counterexamples=str(tmp_path),
    )
    assert main(options) == 0
    text = " ".join(capsys.readouterr().out.split())
    sides = bounds.thm2_printed(evaluate(load_problem(tmp_path / "thm2-printed.json")))
    assert f"left side {sides.left}, right side {sides.right}" in text
    for part in ("true xi = (", "GPI takes action", "Q* = (", "Q of the GPI policy = ("):
        assert part in text


# --- What GPI can lose on a problem of one's own ----------------------------------------------------------


def instance_of(tmp_path, problem, **options):
    """What the command writes about one problem, in fractions."""
    path, output = tmp_path / "problem.json", tmp_path / "out.json"
    save_problem(problem, path)
    main(Options(mdp=(str(path),), exact=True, json=str(output), **options))
    return json.loads(output.read_text())["instances"][0]


def test_limits_of_a_problem(tmp_path, capsys):
    """hidden_error: V loses 2; T2' allows 12, the span of the residual 4, the others exactly 2."""
    instance = instance_of(tmp_path, hidden_error())
    assert instance["value_loss"] == "2"
    assert instance["limits"] == {
        "thm2/sharp-value": "12",
        "thm2/sharp-value-affine": "12",
        "certificate/residual-value": "4",
        "certificate/greedy-residual-value": "2",
        "certificate/sources-value": "2",
    }
    assert "What GPI can lose here" in capsys.readouterr().out


def test_without_such_statements_there_are_no_limits(tmp_path, capsys):
    instance = instance_of(tmp_path, hidden_error(), statement=("thm2/printed",))
    assert (instance["limits"], instance["value_loss"]) == ({}, None)
    assert "What GPI can lose here" not in capsys.readouterr().out


def test_approximations_are_read_from_arrays(tmp_path):
    problem = hidden_error()
    arrays = tmp_path / "xi.npz"
    np.savez(arrays, xi=float_array(problem.approximations))
    bare = TransferProblem(problem.mdp, problem.target, problem.sources)
    assert instance_of(tmp_path, bare)["value_loss"] == "0"  # exact xi lose nothing
    given, written = instance_of(tmp_path, bare, approximations=str(arrays)), instance_of(tmp_path, problem)
    assert given["limits"] == written["limits"]
    assert given["value_loss"] == "2"


@pytest.mark.parametrize(
    ("arrays", "mdp", "place", "fix"),
    [
        ({"xi": np.zeros((1, 1, 2, 2))}, True, "xi.npz", "(2, 1, 2, 2)"),
        ({"xi": np.zeros(1), "psi": np.zeros(1)}, True, "xi.npz", "exactly one"),
        ({"xi": np.array([{}])}, True, "xi.npz", "plain arrays"),
        ({"xi": np.zeros((2, 1, 2, 2))}, False, "--approximations", "--mdp"),
    ],
)
def test_approximations_that_do_not_fit_are_refused(tmp_path, arrays, mdp, place, fix):
    path, problem = tmp_path / "xi.npz", tmp_path / "problem.json"
    np.savez(path, **arrays)
    save_problem(hidden_error(), problem)
    options = Options(mdp=(str(problem),) if mdp else (), approximations=str(path))
    with refused(place, fix):
        main(options)


@pytest.mark.parametrize(
    ("value", "text"),
    [(0.25, "0.25"), ("1/3", "1/3"), (f"{10**30 + 1}/{3 * 10**30}", "≈ 0.333333"), (f"{10**400}/1", "≈ 1")],
)
def test_a_table_shows_the_first_digits_of_a_long_fraction(value, text):
    assert shown(value)[: len(text)] == text
    assert len(shown(value)) < 20
