"""Check what GPI guarantees, on generated MDPs or on yours.

Every statement of `sfr_theory.bounds` is evaluated on many transfer problems: solve each source task,
perturb its xi, form the GPI policy on the target, evaluate it exactly, compare both sides. The printed
Theorem 2 is refuted by problems whose errors hide in the kernel of R_i; for a refuted statement the
smallest counterexample found is shrunk, shown in fractions, and written as a file that reproduces it.
With --mdp, on a problem of your own, the command also prints what GPI can lose there, by T2' and by the
certificates, which do not need the error of the approximations (`sfr_theory.certificates`).

Exit code 0: every statement behaves as expected. 1: one that should hold is violated or, near gamma = 1, left
undecided by the rounding of float64 (--exact decides it), or one that is false was not refuted although the
adversarial family had every chance. 2: bad input.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import tyro
from rich.console import Console
from rich.markup import escape
from rich.table import Table

from sfr_theory import cli
from sfr_theory.arithmetic import Array
from sfr_theory.bound_runs import (
    SURE_REFUTATION,
    BoundSummary,
    Plan,
    Ties,
    check_generated,
    check_problem,
    smallest_counterexample,
    summarise,
)
from sfr_theory.bounds import STATEMENTS, BoundTerms
from sfr_theory.claims import Verdict, styled
from sfr_theory.comparison import NEEDS
from sfr_theory.errors import InputError
from sfr_theory.files import load_approximations, load_problem, problem_to_json, save_problem
from sfr_theory.mdp import TransferProblem
from sfr_theory.random_mdp import Shape
from sfr_theory.transfer import evaluate

SIDES = ("left", "right", "epsilon", "reward_distance")
LONGEST_FRACTION = 20
"""Characters of a fraction that a table shows in full."""
HOLDS = {True: "[green]yes[/]", False: "[red]no[/]", None: "[yellow]undecided[/]"}


@dataclass(frozen=True)
class Options:
    mdps: int = 2000
    """How many transfer problems to generate, spread evenly over the families."""
    states: int = 5
    actions: int = 3
    features: int = 4
    tasks: int = 3
    """How many source tasks each problem has, besides the target."""
    gamma: str = "9/10"
    """Discount factor: a decimal or a fraction in [0, 1)."""
    epsilon: float = 0.1
    """Size of the errors of the approximations in the ordinary families."""
    family: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Which kinds of problems to generate (repeatable): garnet, deterministic, layered, absorbing,
    unreachable, ties, negative, gamma-zero, adversarial. Default: all."""
    seed: int = 0
    statement: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Which statements to check (repeatable), such as thm2/sharp. Default: all."""
    exact: tyro.conf.FlagCreatePairsOff[bool] = False
    """Rational arithmetic, zero tolerance; slower."""
    ties: Ties = "first"
    """How ties between optimal policies and between GPI actions are broken: the first action, or (with
    --exact) whatever makes the left side largest. Problems with too many ties to try all keep the first
    action."""
    mdp: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Check a problem of your own instead (repeatable): a JSON file; see `sfr_theory/files.py`."""
    approximations: str | None = None
    """The xi~_i of the problem of --mdp, as you have learned them: an NPZ file with one array of shape
    (sources, states, actions, features). They take the place of those in the JSON file."""
    json: str | None = None
    """Write the results as JSON to this file; - is standard output."""
    plot: str | None = None
    """Draw the distribution of left/right to this file (svg, png or pdf)."""
    counterexamples: str = "counterexamples"
    """Folder for the counterexamples of refuted statements."""
    workers: Annotated[int, tyro.conf.arg(help_behavior_hint="(default: one for each core)")] = field(
        default_factory=lambda: os.cpu_count() or 1
    )
    """How many processes to use; results do not depend on it."""

    def plan(self) -> Plan:
        if self.workers < 1:
            raise InputError(f"--workers is {self.workers}; it must be at least 1")
        if self.approximations is not None and len(self.mdp) != 1:
            raise InputError("--approximations belongs to one problem; name it with exactly one --mdp FILE")
        return Plan(
            mdps=self.mdps,
            shape=Shape(self.states, self.actions, self.features, self.tasks),
            gamma=self.gamma,
            epsilon=self.epsilon,
            families=self.family,
            seed=self.seed,
            statements=self.statement,
            exact=self.exact,
            ties=self.ties,
        )


def number(value: Any, exact: bool) -> Any:
    """A side of a bound for JSON: a float, or a fraction as text."""
    return str(value) if exact else float(value)


def summary_json(summary: BoundSummary, exact: bool) -> dict[str, Any]:
    return {
        "instances": len(summary.terms.left),
        "violations": summary.violations,
        "undecided": summary.undecided,
        "worst_ratio": summary.worst_ratio,
        "verdict": summary.verdict.value,
        "expected": summary.claim.expected.value,
        "as_expected": summary.as_expected,
        "ties_not_tried": summary.first_only,
        "worst": {side: number(getattr(summary.terms, side)[summary.worst], exact) for side in SIDES},
        "counterexample": None if summary.counterexample is None else problem_to_json(summary.counterexample),
    }


def limits_table(instance: dict[str, Any]) -> Table:
    """What GPI can lose on a problem: every bound, and what it does lose."""
    caption = "Bold: the smallest bound. Q loses at most gamma times what V does."
    limit = cli.numbers("V loses at most")
    table = cli.table("What GPI can lose here", "bound", *limit, "it needs", caption=caption)
    limits = instance["limits"]
    smallest = min(map(comparable, limits.values()))
    for name, limit in limits.items():
        text = shown(limit)
        table.add_row(name, f"[bold]{text}[/]" if comparable(limit) == smallest else text, NEEDS[name])
    table.add_row("the loss itself", shown(instance["value_loss"]), "the truth: V*, V^pi")
    return table


def shown(value: Any) -> str:
    """A number of JSON, for a table; of a long fraction, which JSON has in full, the first digits."""
    if not isinstance(value, str):
        return f"{value:.6g}"
    fraction = Fraction(value)
    digits = Decimal(fraction.numerator) / Decimal(fraction.denominator)  # a float may be too small for it
    return value if len(value) <= LONGEST_FRACTION else f"≈ {digits:.6g}"


def comparable(value: Any) -> Any:
    """A number of JSON as it stands, and text as the fraction that it means."""
    return Fraction(value) if isinstance(value, str) else value


def instance_json(
    path: str, problem: TransferProblem, terms: dict[str, BoundTerms], exact: bool
) -> dict[str, Any]:
    statements = {
        name: {
            **{side: number(getattr(bound, side).item(), exact) for side in SIDES},
            "ratio": float(bound.ratio),
            "holds": None if bound.undecided else bool(bound.holds),
        }
        for name, bound in terms.items()
    }
    of_gpi = {name: statements[name] for name in NEEDS if name in statements}
    return {
        "file": path,
        "gamma": number(problem.mdp.gamma, exact),
        "statements": statements,
        "limits": {name: sides["right"] for name, sides in of_gpi.items()},
        "value_loss": next((sides["left"] for sides in of_gpi.values()), None),
    }


def summary_table(summaries: list[BoundSummary], title: str) -> Table:
    caption = (
        "instances: problems. violations: those with left > right. worst left/right: the largest ratio; "
        "above 1 the statement is false, at 1 it is tight. verdict: what these problems show."
    )
    counts = cli.numbers("instances", "violations", "worst left/right")
    table = cli.table(title, "statement", *counts, "verdict", caption=caption)
    for summary in summaries:
        ratio = summary.worst_ratio
        table.add_row(
            f"[bold]{summary.claim.id}[/]\n[dim]{escape(summary.claim.sentence)}[/]",
            f"{len(summary.terms.left):,}",
            f"{summary.violations:,}",
            "∞ (right side 0)" if math.isinf(ratio) else f"{ratio:.4g}",
            styled(summary.verdict, summary.as_expected),
        )
    return table


def instance_table(instance: dict[str, Any]) -> Table:
    caption = (
        "left: what GPI loses. right: what the statement allows. epsilon, reward distance: the terms of the "
        "right side, as the statement measures them. holds: left <= right."
    )
    sides_of = cli.numbers(*(side.replace("_", " ") for side in SIDES))
    table = cli.table(escape(instance["file"]), "statement", *sides_of, "holds", caption=caption)
    for name, terms in instance["statements"].items():
        table.add_row(name, *(shown(terms[side]) for side in SIDES), HOLDS[terms["holds"]])
    return table


def describe(problem: TransferProblem) -> Iterator[str]:
    """A small counterexample in words, a line for each part."""

    def row(values: Array) -> str:
        return f"({', '.join(str(value) for value in values)})"

    mdp = problem.mdp
    yield f"gamma = {mdp.gamma}; target R = {row(problem.target)}"
    for i, reward in enumerate(problem.sources):
        yield f"source R_{i + 1} = {row(reward)}"
    for s, a in np.ndindex(mdp.num_states, mdp.num_actions):
        outcomes = (
            f"state {n} with feature {f}" + ("" if p == 1 else f" (probability {p})")
            for (n, f), p in np.ndenumerate(mdp.kernel[s, a])
            if p != 0
        )
        yield f"state {s}, action {a}: to {', or to '.join(outcomes)}"
    evaluation = evaluate(problem)
    for i, s, a in np.ndindex(evaluation.approximations.shape[:3]):
        yield (
            f"xi~_{i + 1}(state {s}, action {a}) = {row(evaluation.approximations[i, s, a])}, "
            f"true xi = {row(evaluation.source_xi[i, s, a])}"
        )
    for s in range(mdp.num_states):
        yield (
            f"state {s}: GPI takes action {evaluation.gpi_policy[s]}; Q* = {row(evaluation.optimal_q[s])}, "
            f"Q of the GPI policy = {row(evaluation.gpi_q[s])}"
        )


def report_counterexample(console: Console, summary: BoundSummary, folder: str) -> None:
    """Show a counterexample and write it as a file that reproduces it."""
    problem, name = summary.counterexample, summary.claim.id
    if problem is None:
        console.print(f"\n{name} fails only by the way ties are broken; --ties worst shows it.")
        return
    path = Path(folder) / f"{name.replace('/', '-')}.json"
    save_problem(problem, path, f"{name} fails here: {summary.claim.sentence}")
    sides = STATEMENTS[name](evaluate(problem))
    console.print(
        f"\n[bold]{name}[/] fails on this problem: left side {sides.left}, right side {sides.right}"
    )
    for line in describe(problem):
        console.print(f"  {escape(line)}")
    command = f"python -m sfr_theory.check_gpi_bound --exact --mdp {path}"
    console.print(f"  Reproduce: {escape(command)}", soft_wrap=True)


def plot(summaries: list[BoundSummary], path: str, title: str) -> None:
    """Left/right of every problem, one row per statement; beyond 1 a bound is violated."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 0.55 * len(summaries) + 1.6))
    axes = figure.add_subplot()
    jitter = np.random.default_rng(0)
    floor = 1e-3
    for row, summary in enumerate(reversed(summaries)):
        ratio = np.clip(summary.terms.ratio, floor, 1 / floor)
        violated = summary.terms.violated
        height = row + jitter.uniform(-0.28, 0.28, size=len(ratio))
        marks: tuple[tuple[Array, dict[str, Any]], ...] = (
            (~violated, {"s": 4, "color": "#0072B2", "alpha": 0.35, "linewidths": 0}),
            (violated, {"s": 9, "color": "#D55E00", "marker": "x", "linewidths": 0.7}),
        )
        for chosen, style in marks:  # thousands of dots: as an image inside a vector file
            axes.scatter(ratio[chosen], height[chosen], rasterized=True, **style)
    axes.axvline(1, color="black", linewidth=1)
    axes.set_xscale("log")
    axes.set_yticks(range(len(summaries)), [summary.claim.id for summary in reversed(summaries)])
    axes.set_xlabel(f"left side / right side (at {floor:g}: that or less); orange crosses violate the bound")
    axes.set_title(title, loc="left", fontsize=9)
    axes.spines[["top", "right"]].set_visible(False)
    cli.save_figure(figure, path)


def with_approximations(problem: TransferProblem, path: str) -> TransferProblem:
    """The problem with the xi~_i of a file."""
    array = load_approximations(path)
    try:
        return TransferProblem(problem.mdp, problem.target, problem.sources, array)
    except InputError as error:
        raise InputError(f"{path}: {error}") from None


def run_on_files(options: Options, plan: Plan, console: Console) -> tuple[list[BoundSummary], dict[str, Any]]:
    """Check the files of --mdp: a table each, and a summary over all."""
    results, instances = [], []
    for path in options.mdp:
        problem = load_problem(path)
        if options.approximations is not None:
            problem = with_approximations(problem, options.approximations)
        try:
            result = check_problem(plan, problem)
        except InputError as error:
            raise InputError(f"{path}: {error}") from None
        results.append(result)
        instances.append(instance_json(path, problem, result, plan.exact))
    for instance in instances:
        console.print(instance_table(instance))
        if instance["limits"]:
            console.print(limits_table(instance))
    summaries = [
        summarise(name, BoundTerms.join(np.stack, [result[name] for result in results]), must_refute=False)
        for name in plan.statements
    ]
    return summaries, {"instances": instances}


def undecided_sentence(summaries: list[BoundSummary]) -> str:
    """What float64 could not tell, and what can."""
    listed = ", ".join(
        f"{summary.claim.id} ({summary.undecided})" for summary in summaries if summary.undecided
    )
    return (
        f"Undecided, because the rounding of float64 is not small beside the values of these problems: "
        f"{listed}; --exact decides them."
    )


def how_to_refute(plan: Plan) -> str:
    """What to ask for so that false statements are refuted."""
    if "adversarial" not in plan.families:
        return "the adversarial family can"
    return (
        f"{SURE_REFUTATION} adversarial problems with 3 or more states, actions, features and tasks and "
        "gamma from 1/2 to 99/100 can"
    )


def run_on_generated(options: Options, plan: Plan, console: Console, title: str) -> list[BoundSummary]:
    """Check generated problems: one table, and the smallest counterexamples."""
    with cli.progress(plan.mdps, "checking") as advance:
        summaries = check_generated(plan, options.workers, advance)
    with cli.progress(len(summaries), "shrinking counterexamples") as advance:
        for k, summary in enumerate(summaries):
            if summary.verdict is Verdict.REFUTED:
                summaries[k] = replace(summary, counterexample=smallest_counterexample(plan, summary))
            advance(1)
    console.print(summary_table(summaries, title))
    if first_only := max(summary.first_only for summary in summaries):
        console.print(
            f"{first_only} problems have too many ties to try all; there ties go to the first action.",
            soft_wrap=True,
        )
    for summary in summaries:
        if summary.verdict is Verdict.REFUTED:
            report_counterexample(console, summary, options.counterexamples)
        if summary.verdict is Verdict.INCONCLUSIVE and not summary.undecided:
            console.print(f"{summary.claim.id} is not refuted by these; {how_to_refute(plan)}.")
    return summaries


def main(options: Options) -> int:
    plan = options.plan()
    cli.require_writable(options.json, str(Path(options.counterexamples) / "any"), plot=options.plot)
    console = cli.output_console(options.json)
    arithmetic = "rational arithmetic" if plan.exact else "float64"
    payload: dict[str, Any] = {"seed": plan.seed, "gamma": float(plan.exact_gamma), "exact": plan.exact}
    if options.mdp:
        payload["gamma"] = None  # each file has its own
        title = f"{len(options.mdp)} problems from files, {arithmetic}"
        summaries, instances = run_on_files(options, plan, console)
        payload |= instances
    else:
        sizes = (f"{getattr(options, name)} {name}" for name in ("states", "actions", "features", "tasks"))
        title = (
            f"{plan.mdps:,} problems ({', '.join(sizes)}, gamma {plan.gamma}, seed {plan.seed}), {arithmetic}"
        )
        summaries = run_on_generated(options, plan, console, title)
    if any(summary.undecided for summary in summaries):
        console.print(undecided_sentence(summaries), soft_wrap=True)
    payload["statements"] = {summary.claim.id: summary_json(summary, plan.exact) for summary in summaries}
    if options.plot:
        plot(summaries, options.plot, title)
    if options.json:
        cli.write_json(payload, options.json)
    return 0 if all(summary.as_expected for summary in summaries) else cli.EXIT_UNEXPECTED


if __name__ == "__main__":
    cli.run(main, Options, "sfr_theory.check_gpi_bound", __doc__ or "")
