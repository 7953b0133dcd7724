"""Stored counterexamples: they are what they say, and a damaged file is found out."""

import json
import shutil
from fractions import Fraction
from pathlib import Path

import pytest

from proofs_checks import counterexamples, ledger
from proofs_checks.counterexamples import (
    COUNTEREXAMPLES,
    ERROR_UNDER_SOURCE,
    MASS_PRESERVING,
    Counterexample,
    is_distribution_like,
)
from sfr_theory import check_gpi_bound
from sfr_theory.arithmetic import exact_array
from sfr_theory.bounds import STATEMENTS
from sfr_theory.claims import Verdict
from sfr_theory.files import load_problem
from sfr_theory.mdp import TransferProblem
from sfr_theory.tightness import has_ties

each_example = pytest.mark.parametrize("example", COUNTEREXAMPLES, ids=lambda example: example.name)

# Which claims rest on which file.
CLAIMS_OF_FILE = {
    "error_under_source": (
        "thm2/printed",
        "thm2/printed-value-norm",
        "thm2/printed-no-ties",
        "thm1/kernel-meaningless",
    ),
    "absolute_norm_tie": ("thm2/printed",),
    "absolute_norm": ("thm2/printed", "thm2/printed-no-ties"),
    "mass_preserving": ("thm2/printed-nonnegative-mass-preserving",),
    "composition_exact_class": ("thm1-thm2/compose",),
    "composition_oscillating": ("thm1-thm2/compose",),
    "linear_reading": ("bg/gpi-linear-wrong-reading",),
}


@each_example
def test_files_say_why_they_work(example: Counterexample) -> None:
    assert len(json.loads(example.path.read_text())["comment"]) > 80


def test_every_file_is_registered_and_used() -> None:
    files = {path.stem for path in counterexamples.FOLDER.glob("*.json")}
    assert files == {example.name for example in COUNTEREXAMPLES} == set(CLAIMS_OF_FILE)


@each_example
def test_the_corrected_statements_survive(example: Counterexample) -> None:
    for evaluation in example.ties(load_problem(example.path)):
        for name in ("gpi/linear", "thm2/corrected", "thm2/sharp", "thm2/sharp-value"):
            assert STATEMENTS[name](evaluation).holds, name


def test_check_gpi_bound_accepts_them(tmp_path: Path) -> None:
    """The command that a reader would run gives the same sides, as fractions."""
    first = [example for example in COUNTEREXAMPLES if example.ties is counterexamples.first_action]
    output = tmp_path / "out.json"
    options = check_gpi_bound.Options(
        exact=True, mdp=tuple(str(example.path) for example in first), json=str(output)
    )
    check_gpi_bound.main(options)
    instances = json.loads(output.read_text())["instances"]
    assert len(instances) == len(first)
    for example, instance in zip(first, instances, strict=True):
        for statement, (left, right) in example.refutes.items():
            found = instance["statements"][statement]
            assert (found["left"], found["right"]) == (left, right)


def test_ties_are_noticed() -> None:
    problem = load_problem(ERROR_UNDER_SOURCE.path)
    assert not has_ties(problem)
    assert has_ties(TransferProblem(problem.mdp, exact_array([1, 1]), problem.sources))


def test_mass_and_sign_are_noticed() -> None:
    problem = load_problem(MASS_PRESERVING.path)
    assert is_distribution_like(problem)
    for change in ([1, 0, 0], [5, -5, 0]):  # more mass; the same mass, a negative entry
        changed = problem.approximations.copy()
        changed[1, 0, 1] += exact_array(change)
        assert not is_distribution_like(
            TransferProblem(problem.mdp, problem.target, problem.sources, changed)
        )


DAMAGES = {
    "missing": None,
    "cut short": lambda content: json.dumps(content)[:-40],
    "another gamma": lambda content: json.dumps(content | {"gamma": "1/3"}),
    "another target": lambda content: json.dumps(
        content | {"target": [str(Fraction(r) + 1) for r in content["target"]]}
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
@each_example
def test_a_damaged_file_is_found_out(
    example: Counterexample, damage: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every claim that rests on the file must lose its verdict."""
    folder = tmp_path / "counterexamples"
    shutil.copytree(counterexamples.FOLDER, folder)
    monkeypatch.setattr(counterexamples, "FOLDER", folder)
    content = json.loads(example.path.read_text())
    example.path.unlink()
    if corrupt := DAMAGES[damage]:
        example.path.write_text(corrupt(content))
    for claim in CLAIMS_OF_FILE[example.name]:
        if claim == "thm1/kernel-meaningless" and damage.startswith("another"):
            continue  # it needs one instance, and the changed one may be another
        assert ledger.run_proof(ledger.collect()[claim]).result.verdict is Verdict.INCONCLUSIVE, claim
