"""`python -m sfr_theory.check_convergence`: what SFRQ-learning converges to, and what it does not.

Each claim is checked by a function in `sfr_theory.checks`; this file selects, runs, prints and plots them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

import tyro

from sfr_theory import cli
from sfr_theory.checks import gpi_learning, hysteresis, model_based, operators, theorem_1
from sfr_theory.checks.settings import Check, Settings
from sfr_theory.claims import Skipped, outcome_table
from sfr_theory.errors import InputError

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
    cli.require_writable(options.json, plot=options.plot)
    checks = selected(options.claim)
    for check in checks:
        if options.features < check.min_features:
            raise InputError(
                f"features is {options.features}; {check.claim} needs at least {check.min_features}: add "
                f"features, or name other claims with --claim"
            )
    if options.plot:
        drawable([check.claim for check in checks])
    outcomes = []
    with cli.progress(len(checks), "checking") as advance:
        for check in checks:
            outcomes.append(check.outcome(options))
            advance(1)

    console = cli.output_console(options.json)
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
        cli.write_json({"seed": options.seed, "gamma": options.gamma, "claims": claims}, options.json)
    if options.plot:
        cli.save_figure(
            draw({outcome.claim.id: outcome.result.details for outcome in outcomes}), options.plot
        )
    return cli.EXIT_UNEXPECTED if unexpected else 0


# --- Figure: line styles and markers differ, not only colours (Okabe and Ito's palette) ---------

BLACK, BLUE, GREEN, VERMILION = "#000000", "#0072B2", "#009E73", "#D55E00"
CIRCLE, SQUARE, TRIANGLE = (
    {"color": colour, "marker": marker, "markevery": 4}
    for colour, marker in ((BLUE, "o"), (VERMILION, "s"), (GREEN, "^"))
)
SOLID, DASHED, DOTTED = (
    {"color": colour, "linestyle": line}
    for colour, line in ((BLUE, "-"), (VERMILION, (0, (4, 1))), (BLACK, ":"))
)
Details = Mapping[str, Mapping[str, Any]]
Curve = tuple[str, Sequence[float], Sequence[float], Mapping[str, Any]]
"""Label, x, y and style."""


def _error(label: str, curve: Mapping[str, Any], style: Mapping[str, Any]) -> Curve:
    return label, curve["steps"], curve["error"], style


def _class_errors(details: Details) -> Iterator[Curve]:
    beta, model = next(iter(details["mb/convergence"]["curves"].items()))
    unbiased = details["thm1/corrected"]
    for name, curve, style in (
        ("known p", unbiased["known p"]["curve"], CIRCLE),
        ("indicator", unbiased["indicator"]["curve"], SQUARE),
        (f"one-step model, β = {beta}", model, TRIANGLE),
    ):
        yield _error(f"{name}: rate {curve['rate']:.2f}", curve, style)
    steps = model["steps"]
    late = [n for n in steps if n >= steps[-1] / 100]
    reference = [2 * model["error"][-1] * (n / steps[-1]) ** -0.5 for n in late]
    yield "reference: rate -1/2", late, reference, DOTTED


def _oscillation(details: Details) -> Iterator[Curve]:
    for name, style in (("deterministic", SOLID), ("stochastic", DASHED)):
        curve = details["thm1/oscillation"][name]
        yield rf"$\xi_n(t)$, {name}", curve["steps"], curve["xi"], style


def _oscillation_error(details: Details) -> Iterator[Curve]:
    for name, style in (("deterministic", SOLID), ("stochastic", DASHED)):
        yield _error(name, details["thm1/oscillation"][name], style)


def _kept_actions(details: Details) -> Iterator[Curve]:
    curves = details["thm1/hysteresis"]["example"]
    for name, style in (("without", DASHED), ("with", SOLID)):
        yield rf"$\xi_n(t)$, {name} hysteresis", curves["steps"], curves[name], style


def _twins(details: Details) -> Iterator[Curve]:
    runs = details["thm1/hysteresis"]
    yield _error("with hysteresis", runs["curve"], CIRCLE)
    yield _error("without", runs["without"], SQUARE)
    yield _error("with it, constant steps", runs["constant_steps"], TRIANGLE)


def _transfer(details: Details) -> Iterator[Curve]:
    runs = details["thm1-thm2/hysteresis"]
    yield _error("with hysteresis", runs["curve"], CIRCLE)
    yield _error("without", runs["without"], SQUARE)


def _overestimate(details: Details) -> Iterator[Curve]:
    run_details = details["gpi-learning/covered-by-theorem-1"]
    steps = run_details["steps"]
    for action, (name, style) in enumerate((("a", CIRCLE), ("b", SQUARE))):
        optimum = run_details["optimal"][action]
        yield f"$Q_n({name})$", steps, [q[action] for q in run_details["q"]], style
        line = {"color": style["color"], "linestyle": "--"}
        yield f"$Q^*({name}) = {optimum:g}$", steps, [optimum] * len(steps), line


def _broken_conditions(details: Details) -> Iterator[Curve]:
    sampled = details["thm1/corrected"]["indicator"]
    yield _error("global clock (example)", details["thm1/printed"]["curves"]["global clock"], CIRCLE)
    yield _error("constant step sizes", sampled["constant_steps"], SQUARE)
    yield _error("one-step model, β = 0", details["mb/beta-zero"]["curve"], TRIANGLE)
    yield _error("conditions kept", sampled["curve"], DOTTED)


class Panel(NamedTuple):
    """A part of the figure."""

    curves: Callable[[Details], Iterator[Curve]]
    title: str
    ylabel: str
    claims: tuple[str, ...]
    """Whose results it shows."""
    yscale: str = "log"
    bottom: float | None = None
    """Where the vertical axis begins, to leave room for the legend."""
    legend: Mapping[str, Any] = MappingProxyType({})


BELOW = MappingProxyType({"loc": "lower center", "ncols": 2})
PANELS = (
    Panel(_class_errors, "The class converges, whichever the estimate of p",
          r"$\|R\cdot\xi_n-Q^*\|\,/\,(\max|R|/(1-\gamma))$", ("thm1/corrected", "mb/convergence")),
    Panel(_oscillation, "Where actions tie, ξ swings for ever ...",
          r"$\xi_n(t,a,\phi_1)$", ("thm1/oscillation",), "linear", -0.25, BELOW),
    Panel(_oscillation_error, "... while its class converges",
          r"$\|R\cdot\xi_n-Q^*\|$", ("thm1/oscillation",)),
    Panel(_kept_actions, "... unless the bootstrap action is kept",
          r"$\xi_n(t,a,\phi_1)$", ("thm1/hysteresis",), "linear", -0.25, BELOW),
    Panel(_twins, "Every action has a twin: the error of ξ",
          r"$\sup|\xi_n-\xi^\pi|\,(1-\gamma)$", ("thm1/hysteresis",)),
    Panel(_transfer, "... and the error that T2' reads on a target",
          r"$\varepsilon_R\,/\,(\max|R|/(1-\gamma))$", ("thm1-thm2/hysteresis",)),
    Panel(_overestimate, "A frozen over-estimate: GPI leaves the optimum",
          r"$Q_n$", ("gpi-learning/covered-by-theorem-1",), "linear", legend={"loc": (0.55, 0.58)}),
    Panel(_broken_conditions, "Broken conditions: the error stays",
          "error", ("thm1/printed", "thm1/corrected", "mb/beta-zero")),
)  # fmt: skip


def drawable(claims: Sequence[str]) -> list[Panel]:
    """The panels that the results of these claims suffice for."""
    panels = [panel for panel in PANELS if set(panel.claims) <= set(claims)]
    if not panels:
        raise InputError("the chosen claims have no curves to plot; leave out --plot or choose thm1")
    return panels


def draw(details: Details) -> Any:
    """A figure with one panel for each topic that was checked."""
    from matplotlib.figure import Figure

    panels = drawable(list(details))
    columns = min(3, len(panels))
    rows = -(-len(panels) // columns)
    figure = Figure(figsize=(5 * columns, 3.6 * rows), layout="constrained")
    grid = figure.subplots(rows, columns, squeeze=False)
    for axes, panel in zip(grid.flat, panels, strict=False):
        for label, x, y, style in panel.curves(details):
            axes.plot(x, y, label=label, **style)
        axes.set(xscale="log", yscale=panel.yscale, title=panel.title, xlabel="steps", ylabel=panel.ylabel)
        axes.set_ylim(bottom=panel.bottom)
        axes.legend(fontsize=8, **panel.legend)
        axes.grid(alpha=0.3)
    for axes in grid.flat[len(panels) :]:
        axes.remove()
    return figure


if __name__ == "__main__":
    cli.run(main, Options, "sfr_theory.check_convergence", DESCRIPTION)
