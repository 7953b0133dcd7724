"""Figures of a run: `python -m sfr_fa.report` has them on a page.

    curves         mean return of each task over repetitions, a band of one standard error
    total_return   box plots of the return over all tasks, a dot for each repetition, mean and sd

Nothing is trained here. Colours are Okabe and Ito's, which colour-blind people can tell apart; the agents of
a family (SF, SF-R, SF-4, ...) share a colour and differ in line style, and all differ in their markers, so
that a figure survives a black and white printer. The same results give the same file, byte for byte.

A figure is drawn once. In a page its SVG is part of the HTML, with letters as text and colours that follow
the page, and `numbers` say what is where, for templates/look.js: the numbers under the pointer, and agents
that are switched off. What belongs to series k of a figure has an id that begins with s{k}-, what is plotted
in panel k lies in the box plot-{k}, and the key to the series is `legend`.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from PIL import Image

from sfr_fa import statistics
from sfr_fa.agents import AGENT_SPECS
from sfr_fa.analysis import svg
from sfr_fa.analysis.formats import number
from sfr_fa.runs.load import AgentRun, Run

BLACK, ORANGE, SKY, GREEN, BLUE, VERMILION, PURPLE = (
    "#000000", "#E69F00", "#56B4E9", "#009E73", "#0072B2", "#D55E00", "#CC79A7",
)  # fmt: skip
FAMILIES = {"Q": BLACK, "SF": VERMILION, "SFR": BLUE, "CSFR": PURPLE, "MB SFR": GREEN}
OTHER_COLOURS = (SKY, ORANGE)
LINES: tuple[Any, ...] = ("-", (0, (5, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)), (0, (8, 1.5, 1, 1.5, 1, 1.5)))
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "*")
THOUSANDS = StrMethodFormatter("{x:,.10g}")
WIDTH = 5.8
"""Inches: a column of text, and small enough to be read on a phone."""
DPI = 120
COLOURS = 96
"""Of the palette of a PNG."""
SEED = 0
"""Of the sideways scatter of dots: figures do not change from call to call."""
HOVER_POINTS = 60
"""Of a curve, for the numbers under the pointer."""
RC: Any = {
    "svg.hashsalt": "sfr",
    "svg.fonttype": "none",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
}


@dataclass(frozen=True)
class Look:
    """How an agent is drawn, the same in all figures of a run."""

    colour: str
    line: Any
    marker: str


Numbers = dict[str, Any]
"""Of a drawn figure: its series and, for each panel, its range and what the pointer is told; or nothing."""


@dataclass(frozen=True)
class Picture:
    """A figure with the name of its file and a caption that says what it shows; drawn when it is needed."""

    name: str
    caption: str
    draw: Callable[[], tuple[Figure, Numbers]]

    @cached_property
    def _drawn(self) -> tuple[Figure, Numbers]:
        return self.draw()

    @property
    def figure(self) -> Figure:
        return self._drawn[0]

    @property
    def numbers(self) -> Numbers:
        return self._drawn[1]

    def encoded(self, file_format: str) -> bytes:
        """The file's content."""
        buffer = io.BytesIO()
        with mpl.rc_context(RC):
            dates = {"Date": None} if file_format in ("svg", "pdf") else {}
            self.figure.savefig(buffer, format=file_format, bbox_inches="tight", dpi=DPI, metadata=dates)
        if file_format == "svg":
            return svg.compact(buffer.getvalue())
        return small_png(Image.open(buffer)) if file_format == "png" else buffer.getvalue()


def small_png(image: Image.Image) -> bytes:
    """With a palette, which takes a third of the bytes; figures have few colours."""
    buffer = io.BytesIO()
    image.convert("RGB").quantize(COLOURS).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()


def family(agent: AgentRun) -> str:
    """What an agent sums: SF of SF-R and SF-h, MB SFR of MB SFR-R.

    The module of one of the user's own, which a file names, is not imported: reading executes nothing.
    """
    known = AGENT_SPECS.get(agent.kind)
    return known.family if known else agent.own_family or agent.kind


def looks(agents: Sequence[AgentRun]) -> dict[str, Look]:
    """A colour for each family, a line for each of its members, a marker for each agent."""
    colours = dict(FAMILIES)
    members: dict[str, int] = {}
    found: dict[str, Look] = {}
    for agent in agents:
        if agent.label in found:
            continue
        name = family(agent) + ("" if agent.clips else " without clipping")
        colours.setdefault(name, OTHER_COLOURS[(len(colours) - len(FAMILIES)) % len(OTHER_COLOURS)])
        k = members.get(name, 0)
        members[name] = k + 1
        found[agent.label] = Look(colours[name], LINES[k % len(LINES)], MARKERS[len(found) % len(MARKERS)])
    return found


def empty(width: float, height: float, rows: int = 1) -> tuple[Figure, Any]:
    """A figure and its panels, one below the other."""
    figure = Figure(figsize=(width, height), layout="constrained")
    return figure, figure.subplots(rows, sharex=True, sharey=True, squeeze=False)[:, 0]


def scale(run: Run) -> str:
    """Without the repetitions: a caption says how many there are, which may be fewer than planned."""
    return f"profile {run.profile}: {run.tasks:,} tasks x {run.steps:,} steps"


def repetition_counts(run: Run, setting: str) -> str:
    """How many repetitions there are, with the exceptions."""
    counts = {agent.label: len(agent.trials) for agent in run.in_setting(setting)}
    most = max(counts.values())
    fewer = [f"{label} {n}" for label, n in counts.items() if n < most]
    return f"{most} repetitions" + (f" (fewer: {', '.join(fewer)})" if fewer else "")


def _slug(*parts: str) -> str:
    return "_".join("".join(c if c.isalnum() else "_" for c in part) for part in parts)


# --- Return per task -----------------------------------------------------------------------------------


def smoothing_window(tasks: int) -> int:
    """How many tasks are averaged: none below 60, a thirtieth of them from there on."""
    return 1 if tasks < 60 else tasks // 30


def curves(run: Run, setting: str) -> Picture:
    window = smoothing_window(run.tasks)
    smooth = f", running mean over {window} tasks" if window > 1 else ""
    rows = "; a panel for each kind of initial weights" if len(panels(run, setting)) > 1 else ""
    caption = (
        f"{setting}: mean return of each task over {repetition_counts(run, setting)}{smooth}; bands are one "
        f"standard error{rows}; the legend is in the order of the last fifth of the tasks; {scale(run)}"
    )
    return Picture(_slug("curves", setting), caption, partial(draw_curves, run, setting))


def panels(run: Run, setting: str) -> dict[str, dict[str, AgentRun]]:
    """The agents of a setting by name; where they differ in their initial weights, a panel for each kind.

    In a panel agents go by what they are, so that the same one has the same name in all.
    """
    agents = run.in_setting(setting)
    kinds = list(dict.fromkeys(agent.initial_weights for agent in agents))
    variants = {agent.label: variant(agent) for agent in agents}
    found = {
        kind: {variants[agent.label]: agent for agent in agents if agent.initial_weights == kind}
        for kind in kinds
    }
    if len(kinds) == 1 or sum(map(len, found.values())) < len(agents):
        return {"": {agent.label: agent for agent in agents}}
    return found


def variant(agent: AgentRun) -> str:
    return agent.kind + ("" if agent.clips else " without clipping")


def _series(run: Run, setting: str) -> list[str]:
    """The names in all panels, the highest return over the last fifth of the tasks first."""
    late: dict[str, list[float]] = {}
    for named in panels(run, setting).values():
        for name, agent in named.items():
            late.setdefault(name, []).append(float(agent.returns[:, -max(1, run.tasks // 5) :].mean()))
    return sorted(late, key=lambda name: -np.mean(late[name]))


def draw_curves(run: Run, setting: str) -> tuple[Figure, Numbers]:
    """Mean return of each task with its standard error; the legend follows the order at the end.

    The pointer is told these, and the range over repetitions, at HOVER_POINTS tasks.
    """
    found, names = panels(run, setting), _series(run, setting)
    window = smoothing_window(run.tasks)
    with mpl.rc_context(RC):
        columns = 2 if max(map(len, names)) > 20 else min(5, len(names))
        height = 3.9 if len(found) == 1 else 1.65 * len(found)
        figure, grid = empty(WIDTH, height + 0.22 * -(-len(names) // columns), len(found))
        # Averages of neighbouring tasks hardly differ: five for each window show all there is to see.
        shown = np.arange(0, run.tasks, max(1, window // 5))
        step = max(1, len(shown) // 8)
        at = np.unique(np.linspace(0, run.tasks - 1, min(run.tasks, HOVER_POINTS)).round().astype(int))
        handles: dict[str, Any] = {}
        told: list[Any] = []
        for row, (panel, named) in enumerate(found.items()):
            axes = grid[row]
            axes.patch.set_gid(f"plot-{row}")
            style = looks(list(named.values()))
            numbers = {}
            for k, (name, agent) in enumerate(named.items()):
                look, series = style[agent.label], names.index(name)
                returns = statistics.running_mean(agent.returns, window)
                curve = statistics.task_curve(returns)
                ends = returns.min(axis=0)[at], returns.max(axis=0)[at]
                error = {"error": short(curve.standard_error[at])}
                numbers[series] = told_of(len(agent.trials), curve.mean[at], *ends) | error
                [handles[name]] = axes.plot(
                    1 + shown,
                    curve.mean[shown],
                    color=look.colour,
                    linestyle=look.line,
                    marker=look.marker,
                    markersize=4.5,
                    # Markers of different agents stand at different tasks.
                    markevery=(k * step // len(named), step),
                    linewidth=1.6,
                    label=name,
                    gid=f"s{series}-line-{row}",
                )
                if len(agent.trials) > 1:
                    low, high = curve.mean - curve.standard_error, curve.mean + curve.standard_error
                    axes.fill_between(
                        1 + shown,
                        low[shown],
                        high[shown],
                        color=look.colour,
                        alpha=0.15,
                        linewidth=0,
                        gid=f"s{series}-band-{row}",
                    )
            if panel:
                axes.set_title(f"initial weights: {panel}", loc="left", fontsize=10)
            axes.yaxis.set_major_formatter(THOUSANDS)
            axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
            axes.set_xlim(1, max(2, run.tasks))
            axes.xaxis.get_major_locator().set_params(integer=True)
            told.append(numbers)
        grid[-1].set_xlabel("task")
        figure.supylabel(f"return per task ({run.steps:,} steps)", fontsize=10)
        legend = figure.legend(
            [handles[name] for name in names],
            names,
            loc="outside upper center",
            ncols=columns,
            frameon=False,
            handlelength=2.6,
            columnspacing=1.2,
        )
        legend.set_gid("legend")
    tasks = {"at": (1 + at).tolist()}
    told = [limits(axes) | tasks | {"series": numbers} for axes, numbers in zip(grid, told, strict=True)]
    return figure, {"x": "task", "series": [[n, handles[n].get_color()] for n in names], "panels": told}


def told_of(n: int, mean: Any, low: Any, high: Any) -> Numbers:
    """What the pointer is told of one series."""
    return {"n": n, "mean": short(mean), "low": short(low), "high": short(high)}


def short(values: Any) -> list[float | None]:
    """Four digits; JSON knows no NaN."""
    return [float(f"{value:.4g}") if np.isfinite(value) else None for value in values]


def limits(axes: Any) -> dict[str, list[float]]:
    return {"xlim": list(map(float, axes.get_xlim())), "ylim": list(map(float, axes.get_ylim()))}


# --- Total return ------------------------------------------------------------------------------------


def total_return(run: Run, setting: str) -> Picture:
    caption = (
        f"{setting}: return over all tasks, {repetition_counts(run, setting)}; boxes from quartile to "
        f"quartile, whiskers to the last values within 1.5 of their distance, a dot for each repetition; "
        f"{scale(run)}"
    )
    return Picture(_slug("total_return", setting), caption, partial(draw_total_return, run, setting))


def draw_total_return(run: Run, setting: str) -> tuple[Figure, Numbers]:
    """A box for each agent, a dot for each repetition, mean and standard deviation dashed.

    The pointer is told what a row shows, in words, and every repetition.
    """
    agents = run.in_setting(setting)
    style = looks(agents)
    scatter = np.random.default_rng(SEED)
    with mpl.rc_context(RC):
        figure, [axes] = empty(WIDTH, 1.1 + 0.42 * len(agents))
        axes.patch.set_gid("plot-0")
        rows = []
        for k, agent in enumerate(agents):
            look = style[agent.label]
            line = {"color": look.colour, "linewidth": 1.3}
            parts = axes.boxplot(
                agent.totals,
                positions=[k],
                widths=0.42,
                orientation="horizontal",
                showfliers=False,
                boxprops=line,
                whiskerprops=line,
                capprops=line,
                medianprops={**line, "linewidth": 2.4},
                manage_ticks=False,
            )
            drawn = [artist for kind in parts.values() for artist in kind]
            described = statistics.summary(agent.totals)
            if described.repetitions > 1:
                m, sd = described.mean, described.standard_deviation
                diamond = ([m - sd, m, m + sd, m, m - sd], [k, k - 0.21, k, k + 0.21, k])
                dashed = {"color": look.colour, "linestyle": "--", "linewidth": 0.8}
                drawn += axes.plot(*diamond, **dashed)
                drawn += axes.plot([m, m], [k - 0.21, k + 0.21], **dashed)
            drawn += axes.plot(
                agent.totals,
                k + 0.33 + 0.07 * scatter.uniform(-1, 1, len(agent.totals)),
                linestyle="none",
                marker=look.marker,
                markersize=3.5,
                color=look.colour,
                alpha=0.7,
                markeredgewidth=0,
            )
            for part, artist in enumerate(drawn):
                artist.set_gid(f"s{k}-{part}")
            totals = ", ".join(f"{k}: {number(t.total_return)}" for k, t in agent.trials.items())
            rows.append(
                [
                    f"mean {number(described.mean)}, sd {number(described.standard_deviation)}",
                    f"median {number(described.median)}",
                    f"quartiles {number(described.lower_quartile)} and {number(described.upper_quartile)}",
                    f"repetitions: {totals}",
                ]
            )
        axes.set_yticks(range(len(agents)), [agent.label for agent in agents])
        axes.set_ylim(len(agents) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        # Lengths from zero can be compared; that the axis begins there is said, too.
        low, high = axes.get_xlim()
        axes.set_xlim(min(0.0, low), max(0.0, high))
        axes.set_xlabel(f"total return over {run.tasks:,} tasks, from 0")
        axes.xaxis.set_major_formatter(THOUSANDS)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        key = [
            Line2D([], [], color="#444", linewidth=2.4, label="median"),
            Line2D([], [], color="#444", linewidth=0.8, linestyle="--", label="mean, sd"),
            Line2D([], [], color="#444", marker="o", markersize=3.5, linestyle="none", label="repetition"),
        ]
        figure.legend(handles=key, loc="outside upper right", ncols=3, frameon=False, fontsize=8)
    series = [[agent.label, style[agent.label].colour] for agent in agents]
    return figure, {"series": series, "panels": [limits(axes) | {"rows": rows}]}


# --- All of a run ------------------------------------------------------------------------------------


def pictures(run: Run) -> Iterator[Picture]:
    """Every figure that the results of a run suffice for."""
    for setting in run.settings:
        if run.in_setting(setting):
            yield curves(run, setting)
            yield total_return(run, setting)
