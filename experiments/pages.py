"""Pages about the results, made from the published tables: `python -m experiments.pages`.

    docs/results.md, results/README.md   experiments/templates/results.md and published.md, filled in
    README.md                            the main table, between <!-- results --> and <!-- /results -->
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
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import tyro
from markupsafe import Markup

from experiments.analysis import claims, compare, figures, tables
from experiments.analysis.compare import BARRETO, GENERAL, LINEAR, RACER, Place, Results
from experiments.analysis.formats import number, p_relation, percent
from experiments.analysis.tables import Sheet, numbers, words
from experiments.render import render
from sfr_fa.runs import load
from sfr_fa.runs.load import Run
from sfr_theory import cli
from sfr_theory.claims import Verdict
from sfr_theory.errors import InputError

README = Path("README.md")
PAGES = {str(README): "overview.md", "docs/results.md": "results.md", "results/README.md": "published.md"}
"""Page -> template."""
SECTION = re.compile(r"(?<=<!-- results -->\n).*?(?=<!-- /results -->)", re.DOTALL)
FIGURES = "figures"
PLACES = {"place": Place, "LINEAR": LINEAR, "GENERAL": GENERAL, "BARRETO": BARRETO, "RACER": RACER}
ABSENT = Markup("*not run*")


@dataclass(frozen=True)
class Illustration:
    name: str
    link: str
    caption: str


class Findings:
    """All that a template can ask for, about the published tables of a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.runs = [load.load(path) for path in load.published(folder)]
        self.results = Results(self.runs)
        self.outcomes = claims.check(self.results)

    def for_page(self, page: Path) -> dict[str, Any]:
        """The functions below by name, and a figure as a page links it."""
        own = {name: value for name, value in inspect.getmembers(self) if not name.startswith("_")}
        return {**own, **PLACES, "figure": partial(self._figure, page)}

    # --- Tables; None if there are no results

    def _in(self, place: Place, table: Callable[[Run, str], Sheet]) -> Sheet | None:
        run = self.results.run(place.experiment)
        return table(run, place.setting) if run and run.in_setting(place.setting) else None

    def totals(self, place: Place) -> Sheet | None:
        return self._in(place, tables.totals)

    def against(self, place: Place) -> Sheet | None:
        return self._in(place, tables.against)

    def ablation(self, place: Place) -> Sheet | None:
        return self._in(place, tables.ablation)

    def best_rates(self, experiment: str) -> Sheet | None:
        run = self.results.run(experiment)
        return tables.best_rates(run) if run else None

    def levels(self) -> Sheet | None:
        run = self.results.run("nonlinearity")
        return tables.levels(run) if run else None

    def _figure(self, page: Path, experiment: str, name: str) -> Illustration | None:
        run = self.results.run(experiment)
        drawn = next((p for p in figures.pictures(run) if p.name == name), None) if run else None
        if run is None or drawn is None:
            return None
        path = self.folder / FIGURES / experiment / run.profile / f"{name}.svg"
        link = Path(os.path.relpath(path.resolve(), page.resolve().parent)).as_posix()
        return Illustration(f"{experiment}: {name}", link, drawn.caption)

    def overview(self) -> Sheet:
        return tables.overview(self.results)

    def pairs(self) -> Sheet:
        return tables.pairs(claims.judged_pairs(self.results))

    def times(self) -> Sheet:
        return tables.times(self.runs)

    def verdicts(self) -> Sheet:
        """The empirical claims with their verdicts."""
        rows = (
            (o.claim.id.removeprefix("results/"), o.claim.sentence, o.result.verdict.value)
            for o in self.outcomes
        )
        return Sheet("", words("claim", "says", "verdict"), tuple(rows))

    def contents(self) -> Sheet:
        """What there is: a line for each table."""
        rows = []
        for run in self.runs:
            labels = dict.fromkeys(label for _, label in run.agents)
            names = ", ".join(labels) if len(labels) < 6 else f"{len(labels)} agents"
            rows.append((f"{run.name}.csv", names, run.size, str(len(run.trials)), run.commits))
        columns = (*words("table", "agents", "size"), *numbers("trials shown"), *words("commit"))
        return Sheet("", columns, tuple(rows))

    # --- Numbers inside sentences

    def mean(self, place: Place, label: str) -> str:
        """Mean return per task."""
        run = self.results.run(place.experiment)
        agent = compare.agent_in(run, place.setting, label)
        return number(compare.standing(run, agent).per_task.mean) if run and agent else ABSENT

    def ratio(self, place: Place, label: str, reference: str) -> str:
        """Total return of one agent in percent of another's, with its interval."""
        found = self.results.ratio(place, label, reference)
        return percent(found) if found.repetitions else ABSENT

    def p(self, place: Place, first: str, second: str) -> str:
        """p of two agents with the sign of a comparison: = 0.021 or < 0.001."""
        found = self.results.versus(place, first, second)
        return p_relation(found.test.asymptotic_p) if found else ABSENT

    def verdict(self, claim: str) -> str:
        """The verdict on an empirical claim, by the end of its id."""
        found = {o.claim.id: o.result.verdict.value for o in self.outcomes}
        return Markup(f"**{found[f'results/{claim}']}**")

    def count(self, verdict: str) -> int:
        """How many empirical claims have a verdict."""
        return Counter(outcome.result.verdict for outcome in self.outcomes)[Verdict(verdict)]

    def agreement(self) -> str:
        """How many printed pairs agree, of those that were run."""
        verdicts = [verdict for pair, verdict in claims.judged_pairs(self.results) if pair.versus]
        return f"{verdicts.count(Verdict.REPRODUCED)} of {len(verdicts)}"


def page_text(page: Path, template: str, findings: Findings) -> str:
    """What belongs into a page: all of it, or the section of README.md."""
    made = render(template, **findings.for_page(page))
    if page != README:
        return made
    whole = page.read_text(encoding="utf-8")
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
        if not page.is_file() or page.read_text(encoding="utf-8") != new:
            changed.append(page)
            print(f"{page} is out of date" if options.check else f"wrote {page}")
            if not options.check:
                cli.write_atomic(page, new.encode())
    if not options.check:
        drawn = [path for run in findings.runs for path in figures.write(run, findings.folder / FIGURES)]
        print(f"wrote {len(drawn)} files to {findings.folder / FIGURES}")
    return cli.EXIT_UNEXPECTED if options.check and changed else 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.pages", __doc__ or "")
