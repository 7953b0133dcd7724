"""Figures of the experiments that are ours: statements over all worlds, and GPI over few policies.

specification_curves   for each statement its quotient in every world, the smallest first, with the range
                       over repetitions; the claimed region is shaded, and dots below say which choices a
                       world is made of
fewer_policies         return and time per step over the number of stored policies that GPI may choose
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure

from experiments.analysis import compare
from experiments.analysis.multiverse import Specification, specifications, together
from sfr_fa import statistics
from sfr_fa.analysis import figures
from sfr_fa.analysis.figures import BLUE, GREEN, ORANGE, PURPLE, RC, SKY, VERMILION, WIDTH, Picture
from sfr_fa.runs.load import Run

SERIES = ((True, "as claimed", BLUE, "o"), (False, "not as claimed", VERMILION, "X"))
"""Whether a statement holds, in words, with colour and marker."""
COLUMNS = 2


def specification_curves(run: Run) -> Picture:
    found = specifications([run])
    worlds = max((len(s.worlds) for s in found), default=0)
    caption = (
        f"Each statement in up to {worlds} worlds that the paper may have meant: a quotient of total "
        f"returns, the range over {run.repetitions} repetitions, blue where the estimate is as claimed "
        f"(shaded); dots say which choices make the world; {figures.scale(run)}"
    )
    return Picture(
        "specification_curves",
        caption,
        partial(draw_specification_curves, found),
        partial(_hover_specifications, found),
    )


def draw_specification_curves(found: Sequence[Specification]) -> Figure:
    rows = -(-len(found) // COLUMNS)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(5.2 * COLUMNS, 2.75 * rows), layout="constrained")
        grid = figure.subfigures(rows, COLUMNS, squeeze=False)
        for panel, (place, specification) in enumerate(zip(grid.flat, found, strict=False)):
            _draw_specification(place, specification, panel)
    return figure


def _hover_specifications(found: Sequence[Specification], figure: Figure) -> dict[str, Any]:
    """The quotient of the world under the pointer, and what it is made of."""
    panels = []
    for curve, specification in zip(figure.axes[::2], found, strict=True):
        worlds = specification.worlds
        series = {}
        for k, (holds, *_) in enumerate(SERIES):
            shown = [world if world.holds is holds else None for world in worlds]
            series[k] = {
                "n": specification.repetitions,
                "mean": figures.short([world.estimate if world else np.nan for world in shown]),
                "low": figures.short([min(world.quotients) if world else np.nan for world in shown]),
                "high": figures.short([max(world.quotients) if world else np.nan for world in shown]),
            }
        panels.append({
            **figures.limits(curve), "at": list(range(len(worlds))), "series": series,
            "names": [", ".join(f"{choice} {value}" for choice, value in w.choices.items()) for w in worlds],
        })  # fmt: skip
    return {"series": [[words, colour] for _, words, colour, _ in SERIES], "panels": panels}


def _draw_specification(figure: Any, specification: Specification, panel: int) -> None:
    """The curve above, the choices below."""
    worlds, statement = specification.worlds, specification.statement
    dots = {
        (choice, together(value)): None
        for choice in worlds[0].choices
        for value in sorted({world.choices[choice] for world in worlds}, key=together)
    }
    curve, choices = figure.subplots(2, 1, sharex=True, height_ratios=(2.2, 0.3 + 0.22 * len(dots)))
    low, high = statement.limits
    curve.patch.set_gid(f"plot-{panel}")
    curve.axhspan(low, high, color=SKY, alpha=0.18, linewidth=0)
    for series, (holds, _, colour, marker) in enumerate(SERIES):
        shown = [(k, world) for k, world in enumerate(worlds) if world.holds is holds]
        places = [k for k, _ in shown]
        lows, highs = ([end(world.quotients) for _, world in shown] for end in (min, max))
        [ranges] = curve.plot(
            _pieces(places, places), _pieces(lows, highs), "-", color=colour, linewidth=1, marker=""
        )
        [dots_of_worlds] = curve.plot(
            places, [w.estimate for _, w in shown], marker, color=colour, markersize=3.5
        )
        ranges.set_gid(f"s{series}-line-{panel}")
        dots_of_worlds.set_gid(f"s{series}-dots-{panel}")
    choices.hlines(range(len(dots)), -0.5, len(worlds) - 0.5, color="#ddd", linewidth=0.6)
    for row, (choice, value) in enumerate(dots):
        chosen = np.array([k for k, world in enumerate(worlds) if together(world.choices[choice]) == value])
        heights = np.full(len(chosen), row)
        choices.plot(
            _pieces(chosen - 0.3, chosen + 0.3), _pieces(heights, heights), color="#333", linewidth=2.6,
            solid_capstyle="butt",
        )  # fmt: skip
    curve.axhline(1, color="#777", linewidth=0.8)
    top = max(1.05, *(max(world.quotients) for world in worlds))
    curve.set_ylim(0, min(top * 1.05, 2.5))
    curve.set_title(
        f"{statement.name}: {statement.words}, {specification.holding} of {len(worlds)}",
        fontsize=9,
        loc="left",
    )
    choices.set_yticks(range(len(dots)), [f"{choice} {value}" for choice, value in dots], fontsize=6.5)
    choices.set_ylim(len(dots) - 0.4, -0.6)
    choices.set_xticks([])
    choices.grid(visible=False)
    for side in ("left", "bottom"):
        choices.spines[side].set_visible(False)
    choices.tick_params(length=0)


def _pieces(begins: Any, ends: Any) -> Any:
    """Coordinates of a line that is broken into pieces: one path in place of hundreds of small ones."""
    return np.array([begins, ends, np.full(len(begins), np.nan)], dtype=float).T.ravel()


# --- GPI over few policies ---------------------------------------------------------------------------

STYLES = {
    "bound": (BLUE, "o"), "nearest": (GREEN, "s"), "recent": (ORANGE, "^"), "random": (PURPLE, "D"),
}  # fmt: skip


def fewer_policies(run: Run) -> Picture:
    caption = (
        f"SFR with GPI over m stored policies beside the current one, as a part of the return of SFR with "
        f"all of them (an axis that does not begin at 0), and time per step; means, bars are 95 % "
        f"intervals over {figures.repetition_counts(run, _settings(run)[0])}; {figures.scale(run)}"
    )
    return Picture("fewer_policies", caption, partial(draw_fewer_policies, run), partial(_hover_fewer, run))


def draw_fewer_policies(run: Run) -> Figure:
    """Above the return, below the time, a column for each setting."""
    settings = _settings(run)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(WIDTH * 1.4, 4.6), layout="constrained")
        axes = figure.subplots(2, len(settings), squeeze=False, sharex=True, sharey="row")
        for column, setting in enumerate(settings):
            for row in range(2):
                axes[row, column].patch.set_gid(f"plot-{row * len(settings) + column}")
            _draw_setting(axes[:, column], run, setting, column, len(settings))
        axes[0, 0].set_ylabel("return, % of all policies'")
        axes[1, 0].set_ylabel("time per step, µs")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(STYLES), frameon=False).set_gid(
            "legend"
        )
    return figure


def _settings(run: Run) -> list[str]:
    return [setting for setting in run.settings if (setting, ALL) in run.agents]


def _hover_fewer(run: Run, figure: Figure) -> dict[str, Any]:
    """Return and time at the m under the pointer."""
    panels: list[dict[str, Any]] = []
    settings = _settings(run)
    for axes, setting in zip(figure.axes, settings * 2, strict=True):
        is_time = len(panels) >= len(settings)
        chosen = {rule: dict(subsets(run, setting, rule)) for rule in STYLES}
        counts = sorted({m for labels in chosen.values() for m in labels})
        series = {}
        for k, labels in enumerate(chosen.values()):
            rows = []
            for m in counts:
                if m not in labels:
                    rows.append((np.nan, np.nan, np.nan))
                elif is_time:
                    rows.append((microseconds(run, setting, labels[m]), np.nan, np.nan))
                else:
                    r = compare.ratio(run, setting, labels[m], ALL)
                    rows.append((100 * r.estimate, 100 * r.low, 100 * r.high))
            columns = dict(
                zip(("mean", "low", "high"), map(figures.short, zip(*rows, strict=True)), strict=True)
            )
            series[k] = {"n": len(run.agents[setting, ALL].trials), **columns}
        unit = "µs per step" if is_time else "% of the return of all policies"
        low, high = np.log10(axes.get_xlim())  # the axis is logarithmic
        panels.append({
            "xlim": [float(low), float(high)], "at": np.log10(counts).tolist(), "series": series,
            "names": [f"{setting}, m = {m}: {unit}" for m in counts],
        })  # fmt: skip
    series_names = [[rule, colour] for rule, (colour, _) in STYLES.items()]
    return {"range": "95 %", "series": series_names, "panels": panels}


ALL = "SFR, all"


def _draw_setting(axes: Any, run: Run, setting: str, column: int, columns: int) -> None:
    returns, times = axes
    for shift, (rule, (colour, marker)) in enumerate(STYLES.items()):
        points = [(m, agent) for m, agent in subsets(run, setting, rule)]
        if not points:
            continue
        x = np.array([m for m, _ in points]) * 1.03 ** (shift - 1.5)
        ratios = [compare.ratio(run, setting, label, ALL) for _, label in points]
        ends = np.array([(r.estimate - r.low, r.high - r.estimate) for r in ratios]).T
        style = {"color": colour, "marker": marker, "linewidth": 1.4, "markersize": 5, "label": rule}
        line, caps, bars = returns.errorbar(
            x, [100 * r.estimate for r in ratios], yerr=100 * np.nan_to_num(ends), capsize=2.5, **style
        )
        [below] = times.plot(x, [microseconds(run, setting, label) for _, label in points], **style)
        line.set_gid(f"s{shift}-line-{column}")
        below.set_gid(f"s{shift}-line-{columns + column}")
        for part, artist in enumerate((*caps, *bars)):
            artist.set_gid(f"s{shift}-bar-{column}-{part}")
    returns.axhline(100, color="#777", linewidth=0.9)
    times.axhline(microseconds(run, setting, ALL), color="#777", linewidth=0.9)
    returns.set_title(setting, fontsize=10, loc="left")
    times.set_xscale("log")
    counts = sorted({m for rule in STYLES for m, _ in subsets(run, setting, rule)})
    times.set_xticks(counts, [str(m) for m in counts])
    times.minorticks_off()
    times.set_xlabel("m, earlier policies")
    times.set_ylim(bottom=0)


def subsets(run: Run, setting: str, rule: str) -> list[tuple[int, str]]:
    """(m, label) of the agents that choose their policies by a rule."""
    setups = {
        agent["label"]: agent["gpi_policies"]
        for part in run.config["parts"]
        if part["setting"]["name"] == setting
        for agent in part["agents"]
    }
    found = [
        (int(chosen.split()[1]), label)
        for label, chosen in setups.items()
        if chosen.split()[0] == rule and (setting, label) in run.agents
    ]
    return sorted(found)


def microseconds(run: Run, setting: str, label: str) -> float:
    """Median time per step of learning."""
    seconds = run.agents[setting, label].seconds
    return float(statistics.summary(seconds).median) / (run.tasks * run.steps) * 1e6


PICTURES = {
    "multiverse": specification_curves,
    "multiverse_racer": specification_curves,
    "subset_gpi": fewer_policies,
}
"""Experiment -> its one figure."""
