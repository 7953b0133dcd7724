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
from experiments.analysis.figures import percentages
from experiments.analysis.multiverse import Specification, specifications, together
from sfr_fa import statistics
from sfr_fa.analysis import figures
from sfr_fa.analysis.figures import BLUE, GREEN, ORANGE, PURPLE, RC, SKY, VERMILION, WIDTH, Numbers, Picture
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
    return Picture("specification_curves", caption, partial(draw_specification_curves, found))


def draw_specification_curves(found: Sequence[Specification]) -> tuple[Figure, Numbers]:
    """A panel for each statement; the pointer is told the quotient of a world, and what it is made of."""
    rows = -(-len(found) // COLUMNS)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(5.2 * COLUMNS, 2.75 * rows), layout="constrained")
        grid = figure.subfigures(rows, COLUMNS, squeeze=False)
        panels = [
            _draw_specification(place, specification, panel)
            for panel, (place, specification) in enumerate(zip(grid.flat, found, strict=False))
        ]
    return figure, {"series": [[words, colour] for _, words, colour, _ in SERIES], "panels": panels}


def _draw_specification(figure: Any, specification: Specification, panel: int) -> Numbers:
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
    values = np.array([(w.estimate, min(w.quotients), max(w.quotients)) for w in worlds]).T
    told = {}
    for series, (holds, _, colour, marker) in enumerate(SERIES):
        is_shown = np.array([world.holds is holds for world in worlds])
        places = np.flatnonzero(is_shown)
        estimates, lows, highs = values[:, is_shown]
        told[series] = figures.told_of(specification.repetitions, *np.where(is_shown, values, np.nan))
        [ranges] = curve.plot(
            _pieces(places, places), _pieces(lows, highs), "-", color=colour, linewidth=1, marker=""
        )
        [dots_of_worlds] = curve.plot(places, estimates, marker, color=colour, markersize=3.5)
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
    names = [", ".join(f"{choice} {value}" for choice, value in w.choices.items()) for w in worlds]
    return {**figures.limits(curve), "at": list(range(len(worlds))), "series": told, "names": names}


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
    return Picture("fewer_policies", caption, partial(draw_fewer_policies, run))


def draw_fewer_policies(run: Run) -> tuple[Figure, Numbers]:
    """Above the return, below the time, a column for each setting; the pointer is told both at an m."""
    settings = _settings(run)
    with mpl.rc_context(RC):
        figure = Figure(figsize=(WIDTH * 1.4, 4.6), layout="constrained")
        axes = figure.subplots(2, len(settings), squeeze=False, sharex=True, sharey="row")
        panels: list[Numbers] = [{}] * (2 * len(settings))
        for column, setting in enumerate(settings):
            for row in range(2):
                axes[row, column].patch.set_gid(f"plot-{row * len(settings) + column}")
            panels[column :: len(settings)] = _draw_setting(
                axes[:, column], run, setting, column, len(settings)
            )
        axes[0, 0].set_ylabel("return, % of all policies'")
        axes[1, 0].set_ylabel("time per step, µs")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=len(STYLES), frameon=False).set_gid(
            "legend"
        )
    for panel, place in zip(panels, axes.flat, strict=True):
        # The axis is logarithmic, and shared.
        panel["xlim"] = np.log10(place.get_xlim()).tolist()
    series = [[rule, colour] for rule, (colour, _) in STYLES.items()]
    return figure, {"range": "95 %", "series": series, "panels": panels}


def _settings(run: Run) -> list[str]:
    return [setting for setting in run.settings if (setting, ALL) in run.agents]


ALL = "SFR, all"


def _draw_setting(axes: Any, run: Run, setting: str, column: int, columns: int) -> list[Numbers]:
    """The two panels of a setting, and what the pointer is told in them."""
    returns, times = axes
    found = {rule: subsets(run, setting, rule) for rule in STYLES}
    counts = sorted({m for labels in found.values() for m in labels})
    told = np.full((2, len(STYLES), 3, len(counts)), np.nan)
    for shift, (rule, (colour, marker)) in enumerate(STYLES.items()):
        labels = found[rule]
        if not labels:
            continue
        mean, low, high = percentages([compare.ratio(run, setting, label, ALL) for label in labels.values()])
        seconds = [microseconds(run, setting, label) for label in labels.values()]
        at = [counts.index(m) for m in labels]
        told[0, shift][:, at] = mean, low, high
        told[1, shift, 0, at] = seconds
        x = np.array(list(labels)) * 1.03 ** (shift - 1.5)
        style = {"color": colour, "marker": marker, "linewidth": 1.4, "markersize": 5, "label": rule}
        yerr = np.nan_to_num([mean - low, high - mean])
        line, caps, bars = returns.errorbar(x, mean, yerr=yerr, capsize=2.5, **style)
        [below] = times.plot(x, seconds, **style)
        line.set_gid(f"s{shift}-line-{column}")
        below.set_gid(f"s{shift}-line-{columns + column}")
        for part, artist in enumerate((*caps, *bars)):
            artist.set_gid(f"s{shift}-bar-{column}-{part}")
    returns.axhline(100, color="#777", linewidth=0.9)
    times.axhline(microseconds(run, setting, ALL), color="#777", linewidth=0.9)
    returns.set_title(setting, fontsize=10, loc="left")
    times.set_xscale("log")
    times.set_xticks(counts, [str(m) for m in counts])
    times.minorticks_off()
    times.set_xlabel("m, earlier policies")
    times.set_ylim(bottom=0)
    n = len(run.agents[setting, ALL].trials)
    return [
        {
            "at": np.log10(counts).tolist(),
            "series": {k: figures.told_of(n, *rows) for k, rows in enumerate(panel)},
            "names": [f"{setting}, m = {m}: {unit}" for m in counts],
        }
        for panel, unit in zip(told, ("% of the return of all policies", "µs per step"), strict=True)
    ]


def subsets(run: Run, setting: str, rule: str) -> dict[int, str]:
    """m -> label, of the agents that choose their policies by a rule."""
    chosen = {
        agent["label"]: agent["gpi_policies"].split()
        for part in run.config["parts"]
        if part["setting"]["name"] == setting
        for agent in part["agents"]
    }
    found = ((int(words[1]), label) for label, words in chosen.items() if words[0] == rule)
    return dict(sorted((m, label) for m, label in found if (setting, label) in run.agents))


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
