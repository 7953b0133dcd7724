"""A page about experiments of your own: `python -m sfr_fa.report FOLDER`.

Curves, totals, comparisons, times, and what is missing or damaged, of every run that is found: in folders of
runs as `sfr_fa.run` leaves them, in published tables (`sfr_fa.runs.publish`), or in folders that hold some.
One HTML file with figures that respond to the pointer; it needs no network, and can be read without scripts
and printed. Nothing is trained. Agents are compared with the first that learns xi, or else with the first of
all.

    python -m sfr_fa.report results/mine --output mine.html
    python -m sfr_fa.report results/racer.csv
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import tyro
from markupsafe import Markup

from sfr_fa.analysis import compare, figures, svg
from sfr_fa.analysis.render import render
from sfr_fa.runs import load
from sfr_fa.runs.load import Run
from sfr_theory import cli
from sfr_theory.errors import InputError


@dataclass(frozen=True)
class Options:
    runs: tyro.conf.Positional[tuple[str, ...]] = ("results",)
    """Folders of runs, published tables, or folders that hold some."""
    output: str = "report.html"
    """Where the page goes."""
    title: str = "Experiments"
    """Title of the page."""


@dataclass(frozen=True)
class Shown:
    """A figure inside a page."""

    svg: Markup
    caption: str
    numbers: str = ""
    """JSON for look.js, as markup; empty if the figure does not answer."""
    is_wide: bool = False


def in_page(pictures: Callable[[Run], Iterator[figures.Picture]]) -> Callable[[Run], Iterator[Shown]]:
    """Figures as elements of one page, in which no two share an id."""
    numbered = count()

    def shown(run: Run) -> Iterator[Shown]:
        for picture in pictures(run):
            drawing = picture.encoded("svg")
            drawn = svg.inline(drawing, f"f{next(numbered)}", picture.caption)
            numbers = json.dumps(picture.numbers, separators=(",", ":")) if picture.numbers else ""
            # A script ends at the first "</", whatever it means there.
            yield Shown(drawn, picture.caption, Markup(numbers.replace("</", "<\\/")), svg.is_wide(drawing))

    return shown


def page(title: str, runs: list[Run], unreadable: list[str]) -> str:
    return render(
        "experiment.html",
        title=title,
        runs=runs,
        unreadable=unreadable,
        compare=compare,
        pictures=in_page(figures.pictures),
    )


def main(options: Options) -> int:
    cli.require_writable(options.output)
    runs, unreadable = load.each(load.named(options.runs))
    if not runs:
        raise InputError(f"no run can be read: {'; '.join(unreadable)}")
    for sentence in (*unreadable, *(f"{run.name}: {text}" for run in runs for text in run.remarks)):
        print(f"note: {sentence}")
    text = page(options.title, runs, unreadable).encode()
    cli.write_atomic(Path(options.output), text)
    print(f"wrote {options.output}, {len(text) / 1000:.0f} kB")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "sfr_fa.report", __doc__ or "")
