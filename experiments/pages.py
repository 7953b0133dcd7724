"""Pages about the results, made from the published tables: `python -m experiments.pages`.

    docs/results.md, results/README.md   experiments/templates/results.md and published.md, filled in
    README.md, docs/kernel.md            their tables, between <!-- results --> and <!-- /results -->
    results/figures                      every figure, as SVG and PNG

Every number in a template is a call of one of the functions of `Findings`, such as
`{{ ratio(RACER, "SF", "CSFR") }}`. With --check nothing is written, and the exit code is 1 if a
page and the results differ.
"""

from __future__ import annotations

import inspect
import os
import re
from collections import Counter
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tyro
from markupsafe import Markup

from experiments import calibration
from experiments.analysis import claims, compare, figures
from experiments.analysis.compare import BARRETO, GENERAL, LINEAR, RACER, Place, Results
from experiments.render import render, sentence
from sfr_fa.analysis.formats import number, p_relation, percent
from sfr_fa.runs import load
from sfr_fa.runs.load import Run
from sfr_theory import cli
from sfr_theory.claims import Verdict
from sfr_theory.errors import InputError
from sfr_theory.reading import read_text

SECTIONS = {"README.md": "overview.md", "docs/kernel.md": "kernel.md"}
"""Page of which a part is made -> template of that part."""
PAGES = {**SECTIONS, "docs/results.md": "results.md", "results/README.md": "published.md"}
"""Page -> template."""
SECTION = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- /results -->)", re.DOTALL)
FIGURES = "figures"
PLACES = {"place": Place, "LINEAR": LINEAR, "GENERAL": GENERAL, "BARRETO": BARRETO, "RACER": RACER}
ABSENT = Markup("*not run*")


def _illustration(page: Path, path: Path, name: str, caption: str) -> dict[str, str]:
    """A figure as a page links it."""
    link = Path(os.path.relpath(path.resolve(), page.resolve().parent)).as_posix()
    return {"name": name, "link": link, "caption": caption}


class Findings:
    """All that a template can ask for, about the published tables of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = [load.load(path) for path in load.published(folder)]
        self.results = Results(self.runs)
        self.outcomes = claims.check(self.results)
        self.judged = claims.judged_pairs(self.results)
        self.calibrations = calibration.read(folder / calibration.TABLE)

    def for_page(self, page: Path) -> dict[str, Any]:
        """What is above and below, by name, and a figure as a page links it."""
        own = {name: value for name, value in inspect.getmembers(self) if not name.startswith("_")}
        return {
            **own,
            **PLACES,
            "compare": compare,
            "figure": partial(self._figure, page),
            "calibration_figure": partial(self._calibration_figure, page),
        }

    def at(self, place: Place) -> tuple[Run | None, str]:
        return self.results.run(place.experiment), place.setting

    def _figure(self, page: Path, experiment: str, name: str) -> dict[str, str] | None:
        run = self.results.run(experiment)
        drawn = next((p for p in figures.pictures(run) if p.name == name), None) if run else None
        if run is None or drawn is None:
            return None
        path = self.folder / FIGURES / experiment / run.profile / f"{name}.svg"
        return _illustration(page, path, f"{experiment}: {name}", drawn.caption)

    def _calibration_figure(self, page: Path) -> dict[str, str] | None:
        if not self.calibrations:
            return None
        drawn = calibration.picture(self.calibrations)
        return _illustration(page, self.folder / FIGURES / f"{drawn.name}.svg", drawn.name, drawn.caption)

    # --- Numbers inside sentences

    def mean(self, place: Place, label: str) -> str:
        """Mean return per task."""
        found = compare.per_task(*self.at(place), label)
        return number(found.mean) if found else ABSENT

    def ratio(self, place: Place, label: str, reference: str) -> str:
        """Total return of one agent in percent of another's, with its interval."""
        found = self.results.ratio(place, label, reference)
        return percent(found) if found.repetitions else ABSENT

    def p(self, place: Place, first: str, second: str) -> str:
        """p of two agents with the sign of a comparison: = 0.021 or < 0.001."""
        found = self.results.versus(place, first, second)
        return p_relation(found.test.asymptotic_p) if found else ABSENT

    def paired_p(self, place: Place, first: str, second: str) -> str:
        """The same, repetition by repetition."""
        found = self.results.versus(place, first, second)
        return p_relation(found.paired_p) if found else ABSENT

    def predicted_shares(self, rule: str, rate: float) -> str:
        """Which part of their frequency a one-step model predicts of the objects: 2 to 5 %."""
        shares = calibration.of_objects(self.calibrations, rule, rate)
        return f"{100 * min(shares):.0f} to {100 * max(shares):.0f} %" if shares else ABSENT

    def verdict(self, claim: str) -> str:
        """The verdict on an empirical claim, by the end of its id."""
        found = {o.claim.id: o.result.verdict.value for o in self.outcomes}
        return Markup(f"**{found[f'results/{claim}']}**")

    def pair_verdict(self, place: Place, first: str, second: str) -> str:
        """The verdict on one printed pair."""
        table = compare.PRINTED[place]
        found = (v for pair, v in self.judged if pair.table is table and pair.names == {first, second})
        return Markup(f"**{next(found, Verdict.NOT_CHECKED).value}**")

    @property
    def counts(self) -> dict[str, int]:
        """How many empirical claims of the paper have each verdict."""
        found = Counter(o.result.verdict for o in self.outcomes if not o.claim.is_ours)
        return {verdict.value: found[verdict] for verdict in Verdict if verdict in found}

    def agreement(self) -> str:
        """How many printed pairs agree, and how many cannot be judged yet: as the ledger counts."""
        return sentence("judged_count", judged=self.judged)


def page_text(page: Path, template: str, findings: Findings) -> str:
    """What belongs into a page: all of it, or one section between others that were written by hand."""
    made = render(template, **findings.for_page(page))
    if page.as_posix() not in SECTIONS:
        return made
    if not page.is_file():
        raise InputError(f"there is no {page}, where a table goes; run this in the folder of the project")
    whole = read_text(page)
    if not SECTION.search(whole):
        raise InputError(f"{page} has no lines <!-- results --> and <!-- /results -->, where its table goes")
    return SECTION.sub(lambda _: made, whole)


@dataclass(frozen=True)
class Options:
    results: str = "results"
    """Folder with published tables."""
    check: tyro.conf.FlagCreatePairsOff[bool] = False
    """Only say which pages are out of date."""


def main(options: Options) -> int:
    findings = Findings(load.existing(Path(options.results)))
    changed = []
    for name, template in PAGES.items():
        page = Path(name)
        new = page_text(page, template, findings)
        if not page.is_file() or read_text(page) != new:
            changed.append(page)
            print(f"{page} is out of date" if options.check else f"wrote {page}")
            if not options.check:
                cli.write_atomic(page, new.encode())
    if not options.check:
        drawn = [path for run in findings.runs for path in figures.write(run, findings.folder / FIGURES)]
        if findings.calibrations:
            shown = calibration.picture(findings.calibrations)
            drawn.append(findings.folder / FIGURES / f"{shown.name}.svg")
            cli.write_atomic(drawn[-1], shown.encoded("svg"))
        print(f"wrote {len(drawn)} files to {findings.folder / FIGURES}")
    return cli.EXIT_UNEXPECTED if options.check and changed else 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.pages", __doc__ or "")
