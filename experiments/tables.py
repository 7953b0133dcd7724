"""Tables in the paper's form, as Markdown: `python -m experiments.tables results/racer.json`.

Return over all tasks, all pairs by Mann-Whitney's U next to the p-values that the paper prints, the size of
effects, times, and the best rates of a grid. A terminal shows them drawn; a file or a pipe gets Markdown.
"""

from __future__ import annotations

from dataclasses import dataclass

import tyro
from rich.console import Console
from rich.markdown import Markdown

from experiments.analysis import compare
from experiments.render import render
from sfr_fa.runs import load
from sfr_theory import cli


@dataclass(frozen=True)
class Options:
    runs: tyro.conf.Positional[tuple[str, ...]] = ("results",)
    """Published tables, folders of runs, or folders that hold some."""


def main(options: Options) -> int:
    found = [load.load(path) for path in load.named(options.runs)]
    text = render("tables.md", runs=found, compare=compare)
    if Console().is_terminal:
        Console().print(Markdown(text.replace("<br>", " ")))
    else:
        print(text, end="")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.tables", __doc__ or "")
