"""`python -m sfr_theory.check_convergence`: what SFRQ-learning converges to, and what it does not.

Each claim is checked by a function in `sfr_theory.checks`; this file selects, runs, prints and plots them.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Annotated, Any

import tyro

from sfr_theory.checks import gpi_learning, hysteresis, model_based, operators, theorem_1
from sfr_theory.checks.settings import Check, Settings
from sfr_theory.claims import Skipped, outcome_table
from sfr_theory.cli import (
    EXIT_UNEXPECTED,
    output_console,
    progress,
    require_writable,
    run,
    save_figure,
    write_json,
)
from sfr_theory.errors import InputError
from sfr_theory.learning import has_numba

CHECKS: Mapping[str, Check] = {
    check.claim: check
    for module in (operators, theorem_1, hysteresis, model_based, gpi_learning)
    for check in module.CHECKS
}

DESCRIPTION = """Check the statements about convergence of SFRQ-learning on finite MDPs.

A table shows each claim, the verdict and the evidence with its numbers. REFUTED rows are statements that
are false as printed, each with a counterexample that this run computes anew.

Exit code: 0 if every verdict is the expected one, 1 if one is not, 2 for bad input."""


@dataclass(frozen=True)
class Options(Settings):
    """Settings of a run, what it checks and where the results go."""

    claim: Annotated[list[str], tyro.conf.UseAppendAction] = field(default_factory=list)
    """Check only this claim, or every claim whose id begins like this: thm1, mb/variance. May be repeated."""
    json: str | None = None
    """Write all results, with curves, to this file; - is standard output, and then the table goes to standard
    error."""
    plot: str | None = None
    """Draw the curves to this file (svg, png, pdf)."""

    def __post_init__(self) -> None:
        """`main` validates: what is raised there becomes a sentence, here it would become a box."""


def selected(prefixes: Sequence[str]) -> list[Check]:
    """The checks whose claim is named, or lies under a named heading; all of them if none is named."""
    chosen: dict[str, Check] = {}
    for prefix in prefixes:
        matches = {
            name: check
            for name, check in CHECKS.items()
            if name == prefix or name.startswith(prefix.rstrip("/") + "/")
        }
        if not matches:
            raise InputError(f"there is no claim {prefix!r}; choose from {', '.join(CHECKS)}")
        chosen |= matches
    return [check for name, check in CHECKS.items() if name in chosen or not prefixes]


def main(options: Options) -> int:
    options.validate()
    require_writable(options.json, plot=options.plot)
    checks = selected(options.claim)
    for check in checks:
        if options.features < check.min_features:
            raise InputError(
                f"features is {options.features}; {check.claim} needs at least {check.min_features}: add "
                f"features, or name other claims with --claim"
            )
    if options.plot:
        drawable([check.claim for check in checks])
    if not has_numba():
        print("Numba is not installed: same numbers, slower (pip install numba)", file=sys.stderr)
    outcomes = []
    with progress(len(checks), "checking") as advance:
        for check in checks:
            outcomes.append(check.outcome(options))
            advance(1)

    console = output_console(options.json)
    console.print(outcome_table("Convergence of SFRQ-learning", outcomes))
    unexpected = [outcome.claim.id for outcome in outcomes if not outcome.as_expected]
    console.print(
        f"Not as expected: {', '.join(unexpected)}."
        if unexpected
        else "Every decided verdict is as expected.",
        style="bold red" if unexpected else "bold green",
    )
    short = [outcome.claim.id for outcome in outcomes if outcome.skipped is Skipped.TOO_SHORT]
    if short:
        console.print(
            f"Undecided, because runs this short cannot tell convergence from its opposite: "
            f"{', '.join(short)}. --steps {max(Settings.steps, 10 * options.steps)} may."
        )
    if options.json:
        claims = {outcome.claim.id: outcome.to_json() for outcome in outcomes}
        write_json({"seed": options.seed, "gamma": options.gamma, "claims": claims}, options.json)
    if options.plot:
        save_figure(draw({outcome.claim.id: outcome.result.details for outcome in outcomes}), options.plot)
    return EXIT_UNEXPECTED if unexpected else 0


# --- Figure: line styles and markers differ, not only colours (Okabe and Ito's palette) ---------

BLACK, ORANGE, BLUE, GREEN, VERMILION = "#000000", "#E69F00", "#0072B2", "#009E73", "#D55E00"
Details = Mapping[str, Mapping[str, Any]]


def _draw_class_errors(axes: Any, details: Details) -> None:
    beta, model = next(iter(details["mb/convergence"]["curves"].items()))
    unbiased = details["thm1/corrected"]
    styles = (
        ("known p", unbiased["known p"]["curve"], BLUE, "o"),
        ("indicator", unbiased["indicator"]["curve"], VERMILION, "s"),
        (f"one-step model, β = {beta}", model, GREEN, "^"),
    )
    for name, curve, colour, marker in styles:
        label = f"{name}: rate {curve['rate']:.2f}"
        axes.loglog(curve["steps"], curve["error"], color=colour, marker=marker, markevery=4, label=label)
    steps = curve["steps"]
    late = [n for n in steps if n >= steps[-1] / 100]
    reference = [2 * curve["error"][-1] * (n / steps[-1]) ** -0.5 for n in late]
    axes.loglog(late, reference, color=BLACK, linestyle=":", label="reference: rate -1/2")
    axes.set_title("The class converges, whichever the estimate of p")
    axes.set_ylabel(r"$\|R\cdot\xi_n-Q^*\|\,/\,(\max|R|/(1-\gamma))$")
    axes.legend(fontsize=8)


def _draw_oscillation(axes: Any, details: Details) -> None:
    oscillation = details["thm1/oscillation"]
    for name, colour, style in (("deterministic", BLUE, "-"), ("stochastic", VERMILION, (0, (4, 1)))):
        curve = oscillation[name]
        axes.semilogx(
            curve["steps"], curve["xi"], color=colour, linestyle=style, label=rf"$\xi_n(t)$, {name}"
        )
    axes.set_title("Where actions tie, ξ swings for ever ...")
    axes.set_ylabel(r"$\xi_n(t,a,\phi_1)$")
    axes.set_ylim(bottom=-0.25)  # room for the legend
    axes.legend(fontsize=8, loc="lower center", ncols=2)


def _draw_oscillation_error(axes: Any, details: Details) -> None:
    oscillation = details["thm1/oscillation"]
    for name, colour, style in (("deterministic", BLUE, "-"), ("stochastic", VERMILION, (0, (4, 1)))):
        curve = oscillation[name]
        axes.loglog(curve["steps"], curve["error"], color=colour, linestyle=style, label=name)
    axes.set_title("... while its class converges")
    axes.set_ylabel(r"$\|R\cdot\xi_n-Q^*\|$")
    axes.legend(fontsize=8)


def _draw_kept_actions(axes: Any, details: Details) -> None:
    curves = details["thm1/hysteresis"]["example"]
    for name, colour, style in (("without", VERMILION, (0, (4, 1))), ("with", BLUE, "-")):
        label = rf"$\xi_n(t)$, {name} hysteresis"
        axes.semilogx(curves["steps"], curves[name], color=colour, linestyle=style, label=label)
    axes.set_title("... unless the bootstrap action is kept")
    axes.set_ylabel(r"$\xi_n(t,a,\phi_1)$")
    axes.set_ylim(bottom=-0.25)
    axes.legend(fontsize=8, loc="lower center", ncols=2)


def _draw_twins(axes: Any, details: Details) -> None:
    runs = details["thm1/hysteresis"]
    curves = (
        ("with hysteresis", runs["curve"], BLUE, "o"),
        ("without", runs["without"], VERMILION, "s"),
        ("with it, constant steps", runs["constant_steps"], GREEN, "^"),
    )
    for label, curve, colour, marker in curves:
        axes.loglog(curve["steps"], curve["error"], color=colour, marker=marker, markevery=4, label=label)
    axes.set_title("Every action has a twin: the error of ξ")
    axes.set_ylabel(r"$\sup|\xi_n-\xi^\pi|\,(1-\gamma)$")
    axes.legend(fontsize=8)


def _draw_transfer(axes: Any, details: Details) -> None:
    runs = details["thm1-thm2/hysteresis"]
    for label, key, colour, marker in (
        ("with hysteresis", "curve", BLUE, "o"),
        ("without", "without", VERMILION, "s"),
    ):
        curve = runs[key]
        axes.loglog(curve["steps"], curve["error"], color=colour, marker=marker, markevery=4, label=label)
    axes.set_title("... and the error that T2' reads on a target")
    axes.set_ylabel(r"$\varepsilon_R\,/\,(\max|R|/(1-\gamma))$")
    axes.legend(fontsize=8)


def _draw_overestimate(axes: Any, details: Details) -> None:
    run_details = details["gpi-learning/covered-by-theorem-1"]
    for action, colour, marker in ((0, BLUE, "o"), (1, VERMILION, "s")):
        values = [q[action] for q in run_details["q"]]
        name = "ab"[action]
        axes.semilogx(
            run_details["steps"], values, color=colour, marker=marker, markevery=4, label=f"$Q_n({name})$"
        )
        optimum = run_details["optimal"][action]
        axes.axhline(optimum, color=colour, linestyle="--", label=f"$Q^*({name}) = {optimum:g}$")
    axes.set_title("A frozen over-estimate: GPI leaves the optimum")
    axes.set_ylabel(r"$Q_n$")
    axes.legend(fontsize=8, loc=(0.55, 0.58))


def _draw_broken_conditions(axes: Any, details: Details) -> None:
    clocks = details["thm1/printed"]["curves"]
    sampled = details["thm1/corrected"]["indicator"]
    zero = details["mb/beta-zero"]["curve"]
    curves = (
        ("global clock (example)", clocks["global clock"], BLUE, "o"),
        ("constant step sizes", sampled["constant_steps"], VERMILION, "s"),
        ("one-step model, β = 0", zero, GREEN, "^"),
    )
    for label, curve, colour, marker in curves:
        axes.loglog(curve["steps"], curve["error"], color=colour, marker=marker, markevery=4, label=label)
    kept = sampled["curve"]
    axes.loglog(kept["steps"], kept["error"], color=BLACK, linestyle=":", label="conditions kept")
    axes.set_title("Broken conditions: the error stays")
    axes.set_ylabel("error")
    axes.legend(fontsize=8)


PANELS: tuple[tuple[Callable[[Any, Details], None], tuple[str, ...]], ...] = (
    (_draw_class_errors, ("thm1/corrected", "mb/convergence")),
    (_draw_oscillation, ("thm1/oscillation",)),
    (_draw_oscillation_error, ("thm1/oscillation",)),
    (_draw_kept_actions, ("thm1/hysteresis",)),
    (_draw_twins, ("thm1/hysteresis",)),
    (_draw_transfer, ("thm1-thm2/hysteresis",)),
    (_draw_overestimate, ("gpi-learning/covered-by-theorem-1",)),
    (_draw_broken_conditions, ("thm1/printed", "thm1/corrected", "mb/beta-zero")),
)


def drawable(claims: Sequence[str]) -> list[Callable[[Any, Details], None]]:
    """The panels that the results of these claims suffice for."""
    panels = [panel for panel, needed in PANELS if set(needed) <= set(claims)]
    if not panels:
        raise InputError("the chosen claims have no curves to plot; leave out --plot or choose thm1")
    return panels


def draw(details: Details) -> Any:
    """A figure with one panel for each topic that was checked."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    panels = drawable(list(details))
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure, grid = plt.subplots(
        rows, columns, figsize=(5 * columns, 3.6 * rows), squeeze=False, layout="constrained"
    )
    for axes, panel in zip(grid.flat, panels, strict=False):
        panel(axes, details)
        axes.set_xlabel("steps")
        axes.grid(alpha=0.3)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    plt.close(figure)
    return figure


if __name__ == "__main__":
    run(main, Options, "sfr_theory.check_convergence", DESCRIPTION)
