"""Counterexamples as files, recomputed in rational arithmetic at every run.

A counterexample to a bound "left <= right" is a transfer problem on which left > right. Each is stored as a
JSON file in the folder `counterexamples`, with a sentence on why it works, and can be run by hand:

    python -m sfr_theory.check_gpi_bound --exact --mdp proofs_checks/counterexamples/NAME.json

This module says what each file must show: both sides of every statement that it refutes, and what more is
claimed of it (no ties, xi~ >= 0, mass preserved). `flaws` solves the problem anew, in exact arithmetic, and
compares: a file that no longer shows this is noticed, and its claim is no longer REFUTED.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from sfr_theory.arithmetic import Array, rational
from sfr_theory.bounds import STATEMENTS, BoundTerms, SolvedProblem
from sfr_theory.claims import CheckResult, Verdict
from sfr_theory.files import load_problem
from sfr_theory.mdp import FiniteMDP, TransferProblem
from sfr_theory.operators import bellman_xi
from sfr_theory.tightness import has_ties
from sfr_theory.transfer import evaluate, evaluate_all_ties

FOLDER = Path(__file__).with_name("counterexamples")

TieBreaking = Callable[[TransferProblem], Iterable[SolvedProblem]]


def first_action(problem: TransferProblem) -> Iterator[SolvedProblem]:
    """Ties go to the first action (`check_gpi_bound --ties first`)."""
    yield evaluate(problem)


def is_distribution_like(problem: TransferProblem) -> bool:
    """Whether xi~ >= 0 and the sum over phi of xi~ is 1/(1 - gamma), as for the xi of a policy."""
    approximations = evaluate(problem).approximations
    mass = 1 / (1 - problem.mdp.gamma)
    return bool((approximations >= 0).all() and (approximations.sum(axis=-1) == mass).all())


@dataclass(frozen=True)
class Counterexample:
    """What the file `name`.json must show: statement id -> (left, right), and further properties."""

    name: str
    refutes: Mapping[str, tuple[str, str]]
    ties: TieBreaking = first_action
    properties: Mapping[str, Callable[[TransferProblem], bool]] = field(default_factory=dict)

    @property
    def path(self) -> Path:
        return FOLDER / f"{self.name}.json"


NO_TIES = {"has no ties": lambda problem: not has_ties(problem)}
DISTRIBUTION_LIKE = {"has xi~ >= 0 of mass 1/(1-gamma)": is_distribution_like}

ERROR_UNDER_SOURCE = Counterexample(
    "error_under_source",
    {"thm2/printed": ("1", "0"), "thm2/printed-value-norm": ("1", "0")},
    properties=NO_TIES,
)
ABSOLUTE_NORM_TIE = Counterexample("absolute_norm_tie", {"thm2/printed": ("2", "0")}, ties=evaluate_all_ties)
ABSOLUTE_NORM = Counterexample("absolute_norm", {"thm2/printed": ("19/10", "4/5")}, properties=NO_TIES)
MASS_PRESERVING = Counterexample(
    "mass_preserving",
    {"thm2/printed": ("3/2", "0"), "thm2/printed-value-norm": ("1/2", "0")},
    properties=NO_TIES | DISTRIBUTION_LIKE,
)
EXACT_CLASS = Counterexample(
    "composition_exact_class",
    {"thm2/printed": ("1", "0"), "thm2/printed-value-norm": ("1", "0")},
)
OSCILLATING = Counterexample(
    "composition_oscillating",
    {
        "thm2/printed": ("1467/10", "100729/5000"),
        "thm2/printed-value-norm": ("1467/10", "100729/5000"),
    },
    properties=DISTRIBUTION_LIKE,
)
LINEAR_READING = Counterexample("linear_reading", {})
"""Refutes a reading of eq:gpi_guarantee that is no statement of `sfr_theory.bounds`; see its proof."""

COUNTEREXAMPLES = (
    ERROR_UNDER_SOURCE,
    ABSOLUTE_NORM_TIE,
    ABSOLUTE_NORM,
    MASS_PRESERVING,
    EXACT_CLASS,
    OSCILLATING,
    LINEAR_READING,
)


def worst_terms(problem: TransferProblem, statement: str, ties: TieBreaking) -> BoundTerms:
    """Both sides of a statement for the way of breaking ties that makes left - right largest."""
    terms = (STATEMENTS[statement](evaluation) for evaluation in ties(problem))
    return max(terms, key=lambda sides: sides.left[()] - sides.right[()])


def flaws(example: Counterexample, problem: TransferProblem) -> list[str]:
    """What the problem fails to show of what the counterexample promises; empty if all is well."""
    found = []
    for statement, promised in example.refutes.items():
        sides = worst_terms(problem, statement, example.ties)
        left, right = (side[()] for side in (sides.left, sides.right))
        if not left > right:
            found.append(f"{statement} holds: {left} <= {right}")
        elif (left, right) != tuple(map(rational, promised)):
            found.append(f"{statement}: sides {left} and {right}, not {' and '.join(promised)}")
    found += [f"not so: it {name}" for name, holds in example.properties.items() if not holds(problem)]
    return found


def refutation(statement: str, example: Counterexample, scope: str, evidence: str) -> CheckResult:
    """REFUTED if the stored file shows all that it promises, INCONCLUSIVE with the reason otherwise."""
    name = f"{example.name}.json"
    problem = load_problem(example.path)
    if found := flaws(example, problem):
        return CheckResult(Verdict.INCONCLUSIVE, f"{name} is not what it was: {'; '.join(found)}")
    sides = worst_terms(problem, statement, example.ties)
    left, right = str(sides.left[()]), str(sides.right[()])
    return CheckResult(
        Verdict.REFUTED,
        f"{name}: left side {left}, right side {right}. {evidence}",
        scope,
        {"file": name, "left": left, "right": right},
    )


def exactly_solved(problem: TransferProblem) -> TransferProblem:
    """The same tasks with xi~ = xi."""
    return TransferProblem(problem.mdp, problem.target, problem.sources)


def iterate_operator(mdp: FiniteMDP, reward: Array, start: Array, times: int) -> Array:
    """T_xi applied `times` times (eqn:txi_definition), under the reward of the source."""
    xi = start
    for _ in range(times):
        xi = bellman_xi(mdp, reward, xi)
    return xi
