"""Figures in the paper's form, from results: `python -m experiments.analysis.figures results/racer.json`.

    curves         mean return of each task over repetitions, a band of one standard error (Fig. 2b, 2d, 3b)
    total_return   box plots of the return over all tasks, a dot for each repetition, mean and sd
    nonlinearity   total return of SF and Q over that of SFR, against the rewards' non-linearity (Fig. 2c)
    environments   the three environments as they are rendered, with a task each (Fig. 2a, 3a)

Nothing is trained here. Colours are Okabe and Ito's, which colour-blind people can tell apart; the agents of
a family (SF, SF-R, SF-4, ...) share a colour and differ in line style, and all differ in their markers, so
that a figure survives a black and white printer. The same results give the same file, byte for byte.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import tyro
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import MaxNLocator, StrMethodFormatter
from PIL import Image

from experiments.analysis import compare, svg
from sfr_fa import statistics
from sfr_fa.environments.layouts import (
    BARRETO_LAYOUT,
    OBJECT_COLLECTION_LAYOUT,
    RACER_LAYOUT,
    ObjectLayout,
)
from sfr_fa.environments.rendering import ObjectCollectionPicture, RacerPicture
from sfr_fa.runs import load
from sfr_fa.runs.load import AgentRun, Run
from sfr_fa.tasks import sample_racer_task
from sfr_theory import cli
from sfr_theory.errors import InputError
from sfr_theory.paper import LEVELS

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
FORMATS = ("svg", "png")
COLOURS = 96
"""Of the palette of a PNG."""
SEED = 0
"""Of the sideways scatter of dots: figures do not change from call to call."""
RC: Any = {
    "svg.hashsalt": "sfr",
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


@dataclass(frozen=True)
class Picture:
    """A figure with the name of its file and a caption that says what is seen; drawn when it is needed."""

    name: str
    caption: str
    draw: Callable[[], Figure]

    @cached_property
    def figure(self) -> Figure:
        return self.draw()

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


def family(kind: str) -> str:
    """What an agent sums: SF of SF-R and SF-h, MB SFR of MB SFR-R. One that is not here is its own family."""
    from sfr_fa.agents import agent_spec

    try:
        return agent_spec(kind).family
    except InputError:
        return kind


def looks(agents: Sequence[AgentRun]) -> dict[str, Look]:
    """A colour for each family, a line for each of its members, a marker for each agent."""
    colours = dict(FAMILIES)
    members: dict[str, int] = {}
    found: dict[str, Look] = {}
    for agent in agents:
        if agent.label in found:
            continue
        name = family(agent.kind) + ("" if agent.clips else " without clipping")
        colours.setdefault(name, OTHER_COLOURS[(len(colours) - len(FAMILIES)) % len(OTHER_COLOURS)])
        k = members.get(name, 0)
        members[name] = k + 1
        found[agent.label] = Look(colours[name], LINES[k % len(LINES)], MARKERS[len(found) % len(MARKERS)])
    return found


def _figure(width: float, height: float) -> tuple[Figure, Any]:
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, figure.subplots()


def _scale(run: Run) -> str:
    return f"profile {run.profile}: {run.size}"


def _counts(run: Run, setting: str) -> str:
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
    caption = (
        f"{setting}: mean return of each task over {_counts(run, setting)}{smooth}; bands are one "
        f"standard error; the legend is in the order of the last fifth of the tasks; {_scale(run)}"
    )
    return Picture(_slug("curves", setting), caption, partial(draw_curves, run, setting))


def draw_curves(run: Run, setting: str) -> Figure:
    """Mean return of each task with its standard error; the legend follows the order at the end."""
    agents = run.in_setting(setting)
    style = looks(agents)
    window = smoothing_window(run.tasks)
    with mpl.rc_context(RC):
        columns = 2 if max(len(agent.label) for agent in agents) > 12 else min(5, len(agents))
        figure, axes = _figure(WIDTH, 3.9 + 0.22 * -(-len(agents) // columns))
        late: dict[str, float] = {}
        # Averages of neighbouring tasks hardly differ: five for each window show all there is to see.
        shown = np.arange(0, run.tasks, max(1, window // 5))
        step = max(1, len(shown) // 8)
        for k, agent in enumerate(agents):
            look = style[agent.label]
            curve = statistics.task_curve(statistics.running_mean(agent.returns, window))
            axes.plot(
                1 + shown,
                curve.mean[shown],
                color=look.colour,
                linestyle=look.line,
                marker=look.marker,
                markersize=4.5,
                # Markers of different agents stand at different tasks.
                markevery=(k * step // len(agents), step),
                linewidth=1.6,
                label=agent.label,
            )
            if len(agent.trials) > 1:
                low, high = curve.mean - curve.standard_error, curve.mean + curve.standard_error
                axes.fill_between(
                    1 + shown, low[shown], high[shown], color=look.colour, alpha=0.15, linewidth=0
                )
            late[agent.label] = float(curve.mean[-max(1, run.tasks // 5) :].mean())
        axes.set_xlabel("task")
        axes.set_ylabel(f"return per task ({run.steps:,} steps)")
        axes.yaxis.set_major_formatter(THOUSANDS)
        axes.set_xlim(1, max(2, run.tasks))
        axes.xaxis.get_major_locator().set_params(integer=True)
        handles, labels = axes.get_legend_handles_labels()
        order = sorted(range(len(labels)), key=lambda i: -late[labels[i]])
        figure.legend(
            [handles[i] for i in order],
            [labels[i] for i in order],
            loc="outside upper center",
            ncols=columns,
            frameon=False,
            handlelength=2.6,
            columnspacing=1.2,
        )
    return figure


# --- Total return ------------------------------------------------------------------------------------


def total_return(run: Run, setting: str) -> Picture:
    caption = (
        f"{setting}: return over all tasks, {_counts(run, setting)}; boxes from quartile to quartile, "
        f"whiskers to the last values within 1.5 of their distance, a dot for each repetition; {_scale(run)}"
    )
    return Picture(_slug("total_return", setting), caption, partial(draw_total_return, run, setting))


def draw_total_return(run: Run, setting: str) -> Figure:
    """A box for each agent, a dot for each repetition, mean and standard deviation dashed."""
    agents = run.in_setting(setting)
    style = looks(agents)
    scatter = np.random.default_rng(SEED)
    with mpl.rc_context(RC):
        figure, axes = _figure(WIDTH, 1.1 + 0.42 * len(agents))
        for k, agent in enumerate(agents):
            look = style[agent.label]
            line = {"color": look.colour, "linewidth": 1.3}
            axes.boxplot(
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
            described = statistics.summary(agent.totals)
            if described.repetitions > 1:
                m, sd = described.mean, described.standard_deviation
                diamond = ([m - sd, m, m + sd, m, m - sd], [k, k - 0.21, k, k + 0.21, k])
                axes.plot(*diamond, color=look.colour, linestyle="--", linewidth=0.8)
                axes.plot([m, m], [k - 0.21, k + 0.21], color=look.colour, linestyle="--", linewidth=0.8)
            axes.plot(
                agent.totals,
                k + 0.33 + 0.07 * scatter.uniform(-1, 1, len(agent.totals)),
                linestyle="none",
                marker=look.marker,
                markersize=3.5,
                color=look.colour,
                alpha=0.7,
                markeredgewidth=0,
            )
        axes.set_yticks(range(len(agents)), [agent.label for agent in agents])
        axes.set_ylim(len(agents) - 0.4, -0.6)
        axes.grid(visible=False, axis="y")
        axes.set_xlabel(f"total return over {run.tasks:,} tasks")
        axes.xaxis.set_major_formatter(THOUSANDS)
        axes.xaxis.set_major_locator(MaxNLocator(4))
        key = [
            Line2D([], [], color="#444", linewidth=2.4, label="median"),
            Line2D([], [], color="#444", linewidth=0.8, linestyle="--", label="mean, sd"),
            Line2D([], [], color="#444", marker="o", markersize=3.5, linestyle="none", label="repetition"),
        ]
        figure.legend(handles=key, loc="outside upper right", ncols=3, frameon=False, fontsize=8)
    return figure


# --- Non-linearity -----------------------------------------------------------------------------------


def nonlinearity(run: Run) -> Picture:
    counts = {ratio.repetitions for level in compare.levels(run) for ratio in level.ratios.values()}
    n = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(min(counts))
    caption = (
        f"Total return of SF and Q relative to SFR over the non-linearity of the rewards, {n} repetitions "
        f"that both agents have; 95 % bootstrap intervals; lines at 100 % and 50 %; {_scale(run)}"
    )
    return Picture("nonlinearity", caption, partial(draw_nonlinearity, run))


def draw_nonlinearity(run: Run) -> Figure:
    """SF / SFR and Q / SFR over the level of non-linearity."""
    levels = compare.levels(run)
    with mpl.rc_context(RC):
        figure, axes = _figure(WIDTH, 3.8)
        for label, colour, line, marker, shift in (
            ("SF", VERMILION, "-", "o", -0.008),
            ("Q", BLACK, (0, (5, 1.5)), "s", 0.008),
        ):
            ratios = [level.ratios[label] for level in levels]
            ends = np.array([(r.estimate - r.low, r.high - r.estimate) for r in ratios]).T
            axes.errorbar(
                np.array(LEVELS) + shift,
                np.array([100 * ratio.estimate for ratio in ratios]),
                yerr=100 * np.nan_to_num(np.maximum(ends, 0.0)),
                color=colour,
                linestyle=line,
                marker=marker,
                capsize=3,
                linewidth=1.6,
                label=f"{label} / SFR",
            )
        for height, style in ((100, "-"), (50, ":")):
            axes.axhline(height, color="#777", linewidth=0.9, linestyle=style, zorder=0)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.set_xticks(LEVELS, [f"{middle:g}" for middle in LEVELS])
        axes.set_xlabel("error of the best linear reward model")
        axes.set_ylabel("total return, % of SFR's")
        figure.legend(loc="outside upper right", ncols=2, frameon=False)
    return figure


# --- The environments themselves ---------------------------------------------------------------------


@cache
def environments() -> dict[str, Image.Image]:
    """Caption -> each environment at the start of an episode; the ground of the racer are its rewards."""

    def rooms(layout: ObjectLayout) -> Any:
        return ObjectCollectionPicture(layout).draw(layout.start, np.zeros(len(layout.objects)))

    race = RacerPicture(RACER_LAYOUT, sample_racer_task(np.random.default_rng(SEED)))
    pictures = {
        "Object collection: orange or blue, box or triangle; G ends an episode": rooms(
            OBJECT_COLLECTION_LAYOUT
        ),
        "The task of Barreto et al.: three kinds of object": rooms(BARRETO_LAYOUT),
        "Racer: rewards (dark is high) depend on the distances to three markers": race.draw(
            (0.08, 0.55), 1.3
        ),
    }
    return {caption: Image.fromarray(picture) for caption, picture in pictures.items()}


def strip(images: Sequence[Image.Image], gap: int = 16) -> Image.Image:
    """Pictures of one height, side by side."""
    width = sum(image.width for image in images) + gap * (len(images) - 1)
    whole = Image.new("RGB", (width, images[0].height), "white")
    left = 0
    for image in images:
        whole.paste(image, (left, 0))
        left += image.width + gap
    return whole


# --- All of a run ------------------------------------------------------------------------------------


def pictures(run: Run) -> Iterator[Picture]:
    """Every figure that the results of a run suffice for."""
    from experiments.analysis import world_figures  # which draws with what is here

    if run.name in world_figures.PICTURES:
        yield world_figures.PICTURES[run.name](run)
        return
    levels = compare.level_settings(run)
    if levels and run.agents:
        yield nonlinearity(run)
    for setting in run.settings:
        if run.in_setting(setting) and setting not in levels:
            yield curves(run, setting)
            yield total_return(run, setting)


@dataclass(frozen=True)
class Options:
    runs: tyro.conf.Positional[tuple[str, ...]] = ("results",)
    """Published tables, folders of runs, or folders that hold some."""
    output: str = "figures"
    """Folder for the figures; those of a run go to OUTPUT/NAME/PROFILE."""
    formats: tuple[str, ...] = FORMATS
    """svg, png or pdf."""
    environments: str | None = None
    """Draw the three environments into this PNG instead."""


def write(run: Run, folder: Path, formats: Sequence[str] = FORMATS) -> Iterator[Path]:
    """The figures of a run; an SVG names the results that it shows, so that a test can tell its age."""
    for picture in pictures(run):
        for file_format in formats:
            path = folder / run.name / run.profile / f"{picture.name}.{file_format}"
            source = source_comment(run.fingerprint) if file_format == "svg" else b""
            cli.write_atomic(path, picture.encoded(file_format) + source)
            yield path


def source_comment(fingerprint: str) -> bytes:
    return f"<!-- results {fingerprint} -->\n".encode()


def main(options: Options) -> int:
    if options.environments:
        whole = strip(list(environments().values()))
        cli.write_atomic(Path(options.environments), small_png(whole))
        print(f"wrote {options.environments}")
        return 0
    for file_format in options.formats:
        if file_format not in ("svg", "png", "pdf"):
            raise InputError(f"--formats has {file_format!r}; it must be svg, png or pdf")
    for run in map(load.load, load.named(options.runs)):
        for sentence in run.remarks:
            print(f"note: {sentence}")
        for path in write(run, Path(options.output), options.formats):
            print(f"wrote {path}")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.analysis.figures", __doc__ or "")
