"""Figures in the paper's form, from results: `python -m experiments.analysis.figures results/racer.json`.

curves, total_return   of any experiment (sfr_fa.analysis.figures; Fig. 2b, 2d, 3b)
nonlinearity           total return of SF and Q over that of SFR, against the rewards' non-linearity (Fig. 2c)
environments           the three environments as they are rendered, with a task each (Fig. 2a, 3a)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import tyro
from matplotlib.figure import Figure
from PIL import Image

from experiments.analysis import compare
from sfr_fa.analysis import figures
from sfr_fa.analysis.figures import BLACK, RC, SEED, VERMILION, WIDTH, Picture, small_png
from sfr_fa.arrays import FloatArray
from sfr_fa.environments.layouts import (
    BARRETO_LAYOUT,
    OBJECT_COLLECTION_LAYOUT,
    RACER_LAYOUT,
    ObjectLayout,
)
from sfr_fa.environments.rendering import ObjectCollectionPicture, RacerPicture
from sfr_fa.runs import load
from sfr_fa.runs.load import Run
from sfr_fa.statistics import Interval
from sfr_fa.tasks import sample_racer_task
from sfr_theory import cli
from sfr_theory.errors import InputError
from sfr_theory.paper import LEVELS

FORMATS = ("svg", "png")
RATIOS = (("SF", VERMILION, "-", "o", -0.008), ("Q", BLACK, (0, (5, 1.5)), "s", 0.008))
"""Agent, colour, line, marker and shift to the side of each line of `nonlinearity`."""


# --- Non-linearity -----------------------------------------------------------------------------------


def nonlinearity(run: Run) -> Picture:
    counts = {ratio.repetitions for level in compare.levels(run) for ratio in level.ratios.values()}
    n = f"{min(counts)} to {max(counts)}" if len(counts) > 1 else str(min(counts))
    caption = (
        f"Total return of SF and Q relative to SFR over the non-linearity of the rewards, {n} repetitions "
        f"that both agents have; 95 % intervals; lines at 100 % and 50 %; {figures.scale(run)}"
    )
    return Picture("nonlinearity", caption, partial(draw_nonlinearity, run))


def draw_nonlinearity(run: Run) -> tuple[Figure, figures.Numbers]:
    """SF / SFR and Q / SFR over the level of non-linearity."""
    levels = compare.levels(run)
    with mpl.rc_context(RC):
        figure, [axes] = figures.empty(WIDTH, 3.8)
        axes.patch.set_gid("plot-0")
        series = {}
        for k, (label, colour, line, marker, shift) in enumerate(RATIOS):
            ratios = [level.ratios[label] for level in levels]
            mean, low, high = percentages(ratios)
            series[k] = figures.told_of(min(ratio.repetitions for ratio in ratios), mean, low, high)
            drawn = axes.errorbar(
                np.array(LEVELS) + shift,
                mean,
                yerr=np.nan_to_num(np.maximum([mean - low, high - mean], 0.0)),
                color=colour,
                linestyle=line,
                marker=marker,
                capsize=3,
                linewidth=1.6,
                label=f"{label} / SFR",
            )
            curve, caps, bars = drawn
            for part, artist in enumerate((curve, *caps, *bars)):
                artist.set_gid(f"s{k}-{part}")
        for height, style in ((100, "-"), (50, ":")):
            axes.axhline(height, color="#777", linewidth=0.9, linestyle=style, zorder=0)
        axes.set_ylim(bottom=min(0.0, axes.get_ylim()[0]))
        axes.set_xticks(LEVELS, [f"{middle:g}" for middle in LEVELS])
        axes.set_xlabel("error of the best linear reward model")
        axes.set_ylabel("total return, % of SFR's")
        figure.legend(loc="outside upper right", ncols=2, frameon=False).set_gid("legend")
    return figure, {
        "x": "error",
        "range": "95 %",
        "series": [[f"{label} / SFR, %", colour] for label, colour, *_ in RATIOS],
        "panels": [{**figures.limits(axes), "at": list(LEVELS), "series": series}],
    }


def percentages(ratios: Sequence[Interval]) -> FloatArray:
    """Estimates and the ends of their intervals, (3, ratios)."""
    return 100 * np.array([(ratio.estimate, ratio.low, ratio.high) for ratio in ratios]).T


# --- The environments themselves ---------------------------------------------------------------------


@cache
def environments() -> dict[str, Image.Image]:
    """Caption -> each environment at the start of an episode; the racer's ground shows its rewards."""

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
    first, *others = map(np.asarray, images)
    white = np.full((len(first), gap, 3), 255, np.uint8)
    return Image.fromarray(np.hstack([first, *(part for other in others for part in (white, other))]))


# --- All of a run ------------------------------------------------------------------------------------


TOTALS_SAY_IT = ("ablation", "grid_object_collection", "grid_racer")
"""Experiments of many variants of an agent, whose learning curves cover one another."""


def pictures(run: Run) -> Iterator[Picture]:
    """Every figure that the results of a run suffice for."""
    from experiments.analysis import world_figures  # which draws with what is here

    if run.name in world_figures.PICTURES:
        yield world_figures.PICTURES[run.name](run)
    elif compare.level_settings(run):
        yield from [nonlinearity(run)] if run.agents else []
    elif run.name in TOTALS_SAY_IT:
        yield from (picture for picture in figures.pictures(run) if picture.name.startswith("total_return"))
    else:
        yield from figures.pictures(run)


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
    cli.require_writable(options.environments, str(Path(options.output) / "any"))
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
