"""How tight is the GPI bound? Search for the worst ratio of what GPI loses to what the bound allows.

For each gamma, number of states and number of source tasks, with two actions, four methods look for it:

* family: the problems of `sfr_theory.tightness` that attain T2', evaluated in rational arithmetic;
* all LPs: a linear programme over rewards and errors for every choice of deterministic dynamics and
  policies, where those are few: its maximum is the worst case of that size, up to the solver's tolerance;
* LP search: the same linear programme as the objective of a search over dynamics and policies;
* random: Garnet problems, as a contrast: how far from tight ordinary problems are.

The ratio of a programme is that of a problem built from its solution and evaluated in rational arithmetic.
"sharp" is T2', 2/(1-g) (g d + eps) for V and g times that for Q; "printed" is the paper's constant,
2/(1-g) (d + eps), with the error read under the target reward, as it must be to hold.

A second table compares T2' with the certificates, which do not need the error of the approximations: how
large each is on random problems, and how often it is the smallest (`sfr_theory.comparison`).

Exit code 0: T2' is attained and never exceeded, the paper's constant never reached. 1: one of these fails.
2: bad input.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import tyro
from rich.table import Table

from sfr_theory import cli
from sfr_theory.arithmetic import fraction
from sfr_theory.bounds import STATEMENTS
from sfr_theory.catalogue import CATALOGUE
from sfr_theory.claims import CheckResult, Method, Outcome, Verdict, outcome_table
from sfr_theory.comparison import ERRORS, BoundComparison, compare, comparison_table, draw_comparison
from sfr_theory.errors import InputError
from sfr_theory.files import problem_to_json
from sfr_theory.mdp import discount
from sfr_theory.random_mdp import FAMILIES, Shape
from sfr_theory.tightness import (
    EXACT_XI,
    MEASURES,
    Measure,
    Size,
    WorstLoss,
    attaining_problem,
    certify,
    climb,
    has_ties,
    solve_all,
)
from sfr_theory.transfer import evaluate, evaluate_batch

DEFAULT_GAMMAS = ("0", "1/2", "9/10", "99/100")
ACTIONS = 2
ENUMERATION_LIMIT = 5000
"""Sizes with at most this many combinations are enumerated, larger ones searched."""
STEPS = 30
"""Steps of the local search after each start."""
RANDOM_PROBLEMS = 1000
RANDOM_FEATURES = 4
RANDOM_EPSILON = 0.05

FAMILY, ENUMERATION, SEARCH, RANDOM = "family", "all LPs", "LP search", "random"


@dataclass(frozen=True)
class Options:
    gamma: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Discount factor, a decimal or a fraction in [0, 1); without one: 0, 1/2, 9/10 and 99/100."""
    states: int = 3
    """Largest number of states; smaller ones are searched too."""
    tasks: int = 2
    """Largest number of source tasks; smaller ones are searched too."""
    restarts: int = 4
    """How often the local search starts anew, for each gamma and size."""
    seed: int = 0
    json: str | None = None
    """Write the results as JSON to this file; - is standard output."""
    plot: str | None = None
    """Draw the worst ratios against gamma, with what theory says, and the comparison with certificates, to
    this file (svg, png or pdf)."""

    def gammas(self) -> list[Fraction]:
        gammas = sorted({fraction(discount(text, exact=True)) for text in self.gamma or DEFAULT_GAMMAS})
        if gammas[-1] == 0:
            raise InputError("--gamma 0 alone leaves Q nothing to lose; add one between 0 and 1")
        return gammas

    def sizes(self) -> list[Size]:
        for name, least, most in (
            ("states", 1, 100),
            ("tasks", 1, 100),
            ("restarts", 1, 10**6),
            ("seed", 0, None),
        ):
            value = getattr(self, name)
            if value < least or (most is not None and value > most):
                limit = "" if most is None else f" and at most {most}"
                raise InputError(f"--{name} is {value}; it must be at least {least}{limit}")
        grid = itertools.product(range(1, self.states + 1), range(1, self.tasks + 1))
        return [Size(states, ACTIONS, tasks) for states, tasks in grid]


@dataclass(frozen=True)
class Ratio:
    """The worst ratio of one measure: exact for a verified problem, else float64."""

    value: Fraction | float
    programme: float | None = None  # the linear programme's optimum, where there was one
    tolerance: float | None = None  # how far the optimum may exceed the truth
    programmes: int = 0  # how many had this measure's budget
    mean: float | None = None  # over random problems

    def to_json(self) -> dict[str, Any]:
        exact = str(self.value) if isinstance(self.value, Fraction) else None
        return {
            "ratio": float(self.value),
            "exact": exact,
            "linear_programme": self.programme,
            "tolerance": self.tolerance,
            "programmes": self.programmes,
            "mean": self.mean,
        }


@dataclass(frozen=True)
class TightnessRow:
    """What one method found at one gamma and size; a measure without a ratio has no right side there."""

    gamma: Fraction
    size: Size
    method: str
    instances: int
    ratios: dict[str, Ratio]

    def to_json(self) -> dict[str, Any]:
        return {
            "gamma": str(self.gamma),
            "states": self.size.states,
            "actions": self.size.actions,
            "tasks": self.size.tasks,
            "method": self.method,
            "instances": self.instances,
            "ratios": {
                name: self.ratios[name].to_json() if name in self.ratios else None for name in MEASURES
            },
            "ceiling": {
                name: float(measure.ceiling(self.gamma)) if measure.is_defined(self.gamma) else None
                for name, measure in MEASURES.items()
            },
        }


def defined_measures(gamma: Fraction) -> dict[str, Measure]:
    return {name: measure for name, measure in MEASURES.items() if measure.is_defined(gamma)}


# --- Methods -----------------------------------------------------------------------------------------------


def family_row(gamma: Fraction, size: Size) -> TightnessRow:
    """The attaining family, at the members that meet each measure's budget."""
    ratios, instances = {}, 0
    for name, measure in defined_measures(gamma).items():
        # One state has no room for a distance.
        members = [(d, eps) for d, eps in measure.members(gamma) if d == 0 or size.states > 1]
        problems = [attaining_problem(gamma, d, eps, size.states, size.tasks) for d, eps in members]
        found = [measure.ratio(evaluate(problem)) for problem in problems]
        instances += len(found)
        defined = [ratio for ratio in found if ratio is not None]
        if defined:
            ratios[name] = Ratio(max(defined))
    return TightnessRow(gamma, size, FAMILY, instances, ratios)


def programme_row(gamma: Fraction, size: Size, restarts: int, rng: np.random.Generator) -> TightnessRow:
    """Linear programmes: all of them where they are few, else along a local search."""
    enumerate_all = size.num_combinations <= ENUMERATION_LIMIT
    measures = defined_measures(gamma)
    solved: dict[str, WorstLoss] = {}
    programmes: dict[str, int] = {}
    for budget in dict.fromkeys(measure.budget for measure in measures.values()):
        if enumerate_all:
            solved[budget.id] = solve_all(size, float(gamma), budget)
            programmes[budget.id] = len(solved[budget.id].loss)
        else:
            climbs = [climb(rng, size, float(gamma), budget, STEPS) for _ in range(restarts)]
            solved[budget.id] = max((worst for worst, _ in climbs), key=lambda worst: worst.loss[0])
            programmes[budget.id] = sum(count for _, count in climbs)
    ratios = {}
    for name, measure in measures.items():
        worst = measure.worst(solved[measure.budget.id])
        verified = measure.ratio(certify(worst, gamma))
        optimum = float(measure.ratio_of_loss(float(gamma), worst.loss))
        # Without a loss both sides of the rounded problem may be 0; its ratio then counts as 0.
        tolerance = float(worst.ratio_tolerance(float(gamma)))
        ratios[name] = Ratio(
            Fraction(0) if verified is None else verified, optimum, tolerance, programmes[measure.budget.id]
        )
    method = ENUMERATION if enumerate_all else SEARCH
    return TightnessRow(gamma, size, method, sum(programmes.values()), ratios)


def random_row(gamma: Fraction, size: Size, rng: np.random.Generator) -> TightnessRow:
    """Garnet problems with random rewards and errors; exact approximations where the budget says eps = 0."""
    shape = Shape(size.states, size.actions, RANDOM_FEATURES, size.tasks)
    problems = FAMILIES["garnet"](rng, RANDOM_PROBLEMS, shape, float(gamma), RANDOM_EPSILON)
    misread, exact = (
        evaluate_batch(problems.mdps, problems.target, problems.sources, perturbation)
        for perturbation in (problems.perturbation, 0 * problems.perturbation)
    )
    ratios = {}
    for name, measure in defined_measures(gamma).items():
        if name == "joint-v":  # random problems do not meet g d = eps
            continue
        evaluation = exact if measure.budget is EXACT_XI else misread
        ratio = STATEMENTS[measure.statement](evaluation).ratio
        ratios[name] = Ratio(float(ratio.max()), mean=float(ratio.mean()))
    return TightnessRow(gamma, size, RANDOM, RANDOM_PROBLEMS, ratios)


def search(options: Options) -> list[TightnessRow]:
    """Every method at every gamma and size; a row's random numbers depend on its own place only."""
    places = list(itertools.product(options.gammas(), options.sizes()))
    rows = []
    with cli.progress(len(places), "searching") as advance:
        for gamma, size in places:
            place = (gamma.numerator, gamma.denominator, size.states, size.tasks)
            climbing, drawing = np.random.default_rng([options.seed, *place]).spawn(2)
            rows.append(family_row(gamma, size))
            rows.append(programme_row(gamma, size, options.restarts, climbing))
            rows.append(random_row(gamma, size, drawing))
            advance(1)
    return rows


# --- Verdicts ----------------------------------------------------------------------------------------------

SHARP = ("sharp-q", "sharp-v")
PROPORTIONS = (Fraction(1, 1000), Fraction(1, 3), Fraction(1), Fraction(3), Fraction(1000))
SLACKS = tuple(Fraction(1, 10**k) for k in (2, 4, 6, 8))


def _listed(gammas: list[Fraction]) -> str:
    return "gamma " + ", ".join(map(str, gammas))


def check_attained(
    gammas: list[Fraction],
    members: Sequence[tuple[Fraction, Fraction]],
    states: int,
    slack: Fraction = Fraction(0),
) -> CheckResult:
    """Whether the family's (d, eps), with this slack, attain T2' for Q and V, in rational arithmetic."""
    problems = [
        attaining_problem(gamma, d, eps, states, slack=slack) for gamma in gammas for d, eps in members
    ]
    evaluations = [evaluate(problem) for problem in problems]
    found = (MEASURES[name].ratio(evaluation) for name in SHARP for evaluation in evaluations)
    # At gamma = 0 both sides of the bound on Q are 0, which is no ratio.
    ratios = sorted({ratio for ratio in found if ratio is not None})
    pairs = ", ".join(f"({d}, {eps})" for d, eps in members)
    return CheckResult(
        Verdict.SUPPORTED if ratios == [1] else Verdict.REFUTED,
        f"left/right is {', '.join(map(str, ratios))} on {len(problems)} problems, for Q and for V",
        f"rational arithmetic; (d, eps) = {pairs}; {_listed(gammas)}",
        {"ratios": [str(ratio) for ratio in ratios], "problem": problem_to_json(problems[-1])},
    )


def check_no_ties(gammas: list[Fraction], slack_of: Callable[[Fraction], Fraction] = Fraction) -> CheckResult:
    """Whether tie-free members of the family approach ratio 1, with a gap proportional to their slack.

    `slack_of` is what a problem gets for a slack; anything but the slack itself must fail.
    """
    gaps: dict[Fraction, Fraction] = {}
    ties = 0
    proportional = True
    for gamma, (d, eps) in itertools.product(gammas, [(0, 1), (1, 0), (1, 1)]):
        for measure in (MEASURES[name] for name in SHARP):
            slopes = set()
            for slack in SLACKS:
                problem = attaining_problem(gamma, d, eps, slack=slack_of(slack))
                ratio = measure.ratio(evaluate(problem))
                if ratio is None:
                    continue
                ties += has_ties(problem)
                slopes.add((1 - ratio) / slack)
                gaps[slack] = max(gaps.get(slack, Fraction(0)), 1 - ratio)
            proportional &= len(slopes) <= 1
    supported = proportional and not ties
    shown = ", ".join(f"{float(1 - gaps[slack]):.8g} at slack {float(slack):g}" for slack in SLACKS)
    return CheckResult(
        Verdict.SUPPORTED if supported else Verdict.REFUTED,
        f"smallest left/right {shown}; 1 - left/right is "
        f"{'exactly' if proportional else 'not'} proportional to the slack; {ties} problems had ties",
        f"rational arithmetic, d or eps or both positive, {_listed(gammas)}",
        {"gaps": {str(slack): str(gap) for slack, gap in gaps.items()}},
    )


def _scope(rows: list[TightnessRow]) -> str:
    sizes = dict.fromkeys(row.size for row in rows if row.method == ENUMERATION)
    listed = ", ".join(f"{size.states} x {size.tasks}" for size in sizes)
    searched = any(row.method == SEARCH for row in rows)
    return (
        f"all rewards and errors on every deterministic MDP with {ACTIONS} actions and (states x sources) "
        f"{listed}, by linear programmes in float64; {_listed(sorted({row.gamma for row in rows}))}"
        + ("; larger sizes only where the search went" if searched else "")
    )


def _against_ceilings(
    rows: list[TightnessRow], names: Sequence[str]
) -> tuple[Verdict, str, dict[str, float]]:
    """Whether programmes stay below what T2' allows: a verdict, a sentence, and the numbers in it.

    Only a problem that exceeds it in rational arithmetic refutes; a programme that does so beyond its
    tolerance, without such a problem, leaves the question open.
    """
    programmes = [row for row in rows if row.method in (ENUMERATION, SEARCH)]
    found = [
        (row.ratios[name], MEASURES[name].ceiling(row.gamma))
        for row in programmes
        for name in names
        if name in row.ratios
    ]
    excess = max((ratio.programme or 0.0) - float(ceiling) for ratio, ceiling in found)
    tolerance = max(ratio.tolerance or 0.0 for ratio, _ in found)
    verdict = Verdict.SUPPORTED
    if any((ratio.programme or 0.0) > float(ceiling) + (ratio.tolerance or 0.0) for ratio, ceiling in found):
        verdict = Verdict.INCONCLUSIVE
    exceeded = sum(ratio.value > ceiling for ratio, ceiling in found)
    if exceeded:
        verdict = Verdict.REFUTED
    # Measures with one budget share their programmes.
    shared = {
        (row.gamma, row.size, MEASURES[name].budget.id): row.ratios[name].programmes
        for row in programmes
        for name in names
        if name in row.ratios
    }
    count = sum(shared.values())
    sentence = (
        f"{count:,} linear programmes exceed what T2' allows by at most {excess:.1e} (tolerance "
        f"{tolerance:.1e}); of the exact problems built from the worst, {exceeded} exceed it"
    )
    return verdict, sentence, {"programmes": count, "excess": excess, "tolerance": tolerance}


def check_never_exceeded(rows: list[TightnessRow]) -> CheckResult:
    """T2' against every programme, with random problems as a contrast."""
    names = (*SHARP, "joint-v")
    verdict, sentence, details = _against_ceilings(rows, names)
    random = [
        row.ratios[name]
        for row in rows
        for name in names
        if row.method == RANDOM and row.gamma > 0 and name in row.ratios
    ]
    reached = max(float(ratio.value) for ratio in random)
    mean = max(ratio.mean or 0.0 for ratio in random)
    return CheckResult(
        verdict,
        f"{sentence}. Where gamma > 0, random problems reach {reached:.2f} and average at most {mean:.2g}",
        _scope(rows),
        {**details, "largest_random": reached},
    )


def check_printed(rows: list[TightnessRow]) -> CheckResult:
    """The paper's constant against g and g^2, which T2' implies and the family attains."""
    names = ("printed-q", "printed-q-exact-xi")
    verdict, sentence, details = _against_ceilings(rows, names)
    attained = all(
        row.ratios[name].value == MEASURES[name].ceiling(row.gamma)
        for row in rows
        for name in names
        if row.method == FAMILY and name in row.ratios
    )
    last = max(row.gamma for row in rows)
    return CheckResult(
        verdict if attained else Verdict.INCONCLUSIVE,
        f"the family's ratios are {'exactly' if attained else 'NOT'} g and g^2 (at g = {last}: {last} and "
        f"{last**2}); {sentence}",
        _scope(rows),
        details,
    )


def outcomes(gammas: list[Fraction], rows: list[TightnessRow]) -> Iterator[Outcome]:
    """What the command finds out about the claims on tightness; the ledger proves some of them."""
    positive = [gamma for gamma in gammas if gamma > 0]
    one, nothing = Fraction(1), Fraction(0)
    both = [(one, proportion) for proportion in PROPORTIONS]
    results = {
        "tightness/sharp-attained-epsilon": check_attained(gammas, [(nothing, one)], states=1),
        "tightness/sharp-attained-distance": check_attained(positive, [(one, nothing)], states=2),
        "tightness/joint": check_attained(positive, both, states=2),
        "tightness/no-tie-limit": check_no_ties(gammas),
        "tightness/sharp-never-exceeded": check_never_exceeded(rows),
        "tightness/printed-never-tight": check_printed(rows),
    }
    for name, result in results.items():
        yield Outcome(CATALOGUE[name], result, Method.INSTANCES)


# --- Output ------------------------------------------------------------------------------------------------


def ratio_table(rows: list[TightnessRow], title: str) -> Table:
    where = cli.numbers("gamma", "states", "tasks")
    ratios = cli.numbers("problems", *(measure.title for measure in MEASURES.values()))
    caption = "Worst left/right; 1 is tight. A dash: both sides are 0, or the method has no such problem."
    table = cli.table(title, *where, "method", *ratios, caption=caption)
    for previous, row in zip([None, *rows], rows, strict=False):
        if previous is not None and previous.gamma != row.gamma:
            table.add_section()
        place = (str(row.gamma), str(row.size.states), str(row.size.tasks))
        new = previous is None or (previous.gamma, previous.size) != (row.gamma, row.size)
        cells = (_cell(row, name) for name in MEASURES)
        table.add_row(*(place if new else ("", "", "")), row.method, f"{row.instances:,}", *cells)
    return table


def _cell(row: TightnessRow, name: str) -> str:
    if name not in row.ratios:
        return "-"
    ratio = row.ratios[name]
    if row.method == RANDOM:
        return f"[dim]{float(ratio.value):.3f}[/]"
    text = f"{float(ratio.value):.6g}"
    return f"[bold]{text}[/]" if ratio.value == MEASURES[name].ceiling(row.gamma) else text


def plot(rows: list[TightnessRow], comparisons: list[BoundComparison], path: str) -> None:
    """Worst ratios against gamma, T2' on the left, the paper's constant on the right; below, certificates."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.5, 8), layout="constrained")
    panels, lower = figure.subplots(2, 2)
    panels[1].sharey(panels[0])
    draw_comparison(lower, comparisons)
    contents = (
        ("T2': 2/(1-γ) (γ d + ε) for V, γ times that for Q", ("sharp-v", "sharp-q")),
        ("the paper's constant: 2/(1-γ) (d + ε) for Q", ("printed-q", "printed-q-exact-xi")),
    )
    colours = ("#0072B2", "#D55E00")
    markers = {FAMILY: ("o", 80), ENUMERATION: ("x", 40), SEARCH: ("+", 60), RANDOM: (".", 20)}
    curve = np.linspace(1e-3, 0.999, 400)
    for axes, (title, names) in zip(panels, contents, strict=True):
        # The two ratios of T2' coincide, so the second one's marks are drawn inside the first one's.
        for name, colour, scale in zip(names, colours, (1.0, 0.5), strict=True):
            measure = MEASURES[name]
            allowed = [measure.ceiling(gamma) for gamma in curve]
            axes.plot(curve, allowed, color=colour, linewidth=3 * scale - 1, label=measure.title)
            for method, (marker, area) in markers.items():
                found = [row for row in rows if row.method == method and name in row.ratios]
                axes.scatter(
                    [float(row.gamma) for row in found],
                    [float(row.ratios[name].value) for row in found],
                    s=area * scale,
                    marker=marker,
                    linewidths=1,
                    **({"facecolors": "none", "edgecolors": colour} if marker == "o" else {"color": colour}),
                )
        axes.set_title(title, loc="left", fontsize=9)
        axes.set_xlabel("γ")
        axes.spines[["top", "right"]].set_visible(False)
    for method, (marker, _) in markers.items():
        style = {"color": "black", "markerfacecolor": "none" if marker == "o" else "black"}
        panels[1].plot([], [], linestyle="", marker=marker, label=f"found: {method}", **style)
    panels[0].legend(fontsize=7, frameon=False, loc="center", title="what T2' allows", title_fontsize=7)
    panels[1].legend(fontsize=7, frameon=False, loc="upper left", title="what T2' allows", title_fontsize=7)
    panels[0].set_ylabel("left side / right side")
    panels[0].set_ylim(-0.03, 1.08)
    cli.save_figure(figure, path)


def main(options: Options) -> int:
    cli.require_writable(options.json, plot=options.plot)
    console = cli.output_console(options.json)
    gammas, rows = options.gammas(), search(options)
    comparisons = [
        compare(float(gamma), epsilon, options.seed) for gamma in gammas if gamma > 0 for epsilon in ERRORS
    ]
    found = list(outcomes(gammas, rows))
    console.print(ratio_table(rows, f"Worst ratio of loss to bound, {ACTIONS} actions, seed {options.seed}"))
    console.print(outcome_table("How tight is T2'?", found))
    console.print(comparison_table(comparisons))
    if options.plot:
        plot(rows, comparisons, options.plot)
    if options.json:
        payload = {
            "seed": options.seed,
            "rows": [row.to_json() for row in rows],
            "claims": {outcome.claim.id: outcome.to_json() for outcome in found},
            "comparison": [comparison.to_json() for comparison in comparisons],
        }
        cli.write_json(payload, options.json)
    return 0 if all(outcome.as_expected for outcome in found) else cli.EXIT_UNEXPECTED


if __name__ == "__main__":
    cli.run(main, Options, "sfr_theory.check_tightness", __doc__ or "")
