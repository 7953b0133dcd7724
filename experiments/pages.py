"""Numbers in the pages of this project, made from results: `python -m experiments.pages`.

A page names what stands in a place, and this command puts it there:

    <!-- made: overview -->
    ...
    <!-- /made -->
    SF reaches <!-- made: ratio object_collection_linear linear SF SFR -->...<!-- /made --> of SFR.

Tables stand between lines of their own, numbers inside a sentence. `FRAGMENTS` lists the names; the words
after a name are its arguments, quoted as in a shell where they have blanks. Only runs of the profile `paper`
are read. With --check nothing is written, and the exit code is 1 if a page and the results differ.
"""

from __future__ import annotations

import inspect
import os
import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import tyro

from experiments import empirical_claims, tables
from experiments.figures import MIDDLES, level_settings, pictures, ratio
from sfr_fa import statistics
from sfr_fa.runs import load as runs
from sfr_fa.runs.load import AgentRun, Run
from sfr_theory import cli
from sfr_theory.claims import Outcome, Verdict
from sfr_theory.errors import InputError

PAGES = ("README.md", "docs/results.md", "results/README.md")
PROFILE = "paper"
PLACE = re.compile(r"<!-- made: (?P<what>[^>]*?) -->(?P<text>.*?)<!-- /made -->", re.DOTALL)
ABSENT = "*not run*"


@dataclass(frozen=True)
class Findings:
    """All that a page can speak about."""

    results: Path
    page: Path
    found: tuple[Run, ...]
    outcomes: tuple[Outcome, ...]
    """The empirical claims with their verdicts."""

    @classmethod
    def load(cls, results: Path, page: Path) -> Findings:
        paths = [path for path in runs.find(results) if path.name == PROFILE] if results.is_dir() else []
        found = tuple(runs.load(path) for path in paths)
        return cls(results, page, found, tuple(empirical_claims.check(found)))

    def on(self, page: Path) -> Findings:
        return replace(self, page=page)

    def run(self, experiment: str) -> Run | None:
        return next((run for run in self.found if run.name == experiment), None)

    def agent(self, experiment: str, setting: str, label: str) -> AgentRun | None:
        run = self.run(experiment)
        return run.agents.get((setting, label)) if run else None


# --- Tables ------------------------------------------------------------------------------------------


def _block(sheet: tables.Sheet | None) -> str:
    """A table, on lines of its own, with its notes."""
    if sheet is None or not sheet.rows:
        return f"\n{ABSENT}\n"
    notes = "".join(f"\n{note}\n" for note in sheet.notes)
    return f"\n{sheet.to_markdown()}{notes}"


def _of_setting(table: Callable[[Run, str], tables.Sheet | None]) -> Callable[..., str]:
    def fragment(findings: Findings, experiment: str, setting: str) -> str:
        run = findings.run(experiment)
        there = run is not None and bool(run.in_setting(setting))
        return _block(table(run, setting) if run is not None and there else None)

    return fragment


def _of_run(table: Callable[[Run], tables.Sheet]) -> Callable[..., str]:
    def fragment(findings: Findings, experiment: str) -> str:
        run = findings.run(experiment)
        return _block(table(run) if run is not None and run.agents else None)

    return fragment


def overview(findings: Findings) -> str:
    return _block(tables.overview(findings.found))


def levels(findings: Findings) -> str:
    run = findings.run("nonlinearity")
    return _block(tables.levels(run) if run is not None and run.agents else None)


def claims(findings: Findings) -> str:
    """The empirical claims that results bear on."""
    rows = tuple(
        (f"`{o.claim.id.removeprefix('results/')}`", o.claim.sentence, f"**{o.result.verdict.value}**")
        for o in findings.outcomes
    )
    return _block(tables.Sheet("", ("claim", "says", "verdict"), rows))


def pairs(findings: Findings) -> str:
    return _block(empirical_claims.pair_sheet(empirical_claims.Results(findings.found)))


def times(findings: Findings) -> str:
    """Median time of a repetition, with the paper's hours beside."""
    named = [
        (run.name, *row[:4], *row[5:])
        for run in findings.found
        if run.agents
        for row in tables.times(run).rows
    ]
    header = ("experiment", "setting", "agent", "n", "ours", "paper", "times faster")
    return _block(tables.Sheet("", header, tuple(named)))


def contents(findings: Findings) -> str:
    """What there is: a line for each run."""
    rows = []
    for run in findings.found:
        trials = sum(len(agent.trials) for agent in run.agents.values())
        labels = dict.fromkeys(label for _, label in run.agents)
        names = ", ".join(labels) if len(labels) < 6 else f"{len(labels)} agents"
        rows.append((f"`{run.name}`", names, run.size, str(trials), run.commits))
    return _block(tables.Sheet("", ("experiment", "agents", "size", "trials shown", "commit"), tuple(rows)))


def missing(findings: Findings) -> str:
    """What the runs lack of what their configs plan: a line for each sentence."""
    sentences = [
        f"- `{run.name}`: {sentence}\n"
        for run in findings.found
        for sentence in (*run.problems, *run.notes, *filter(None, (run.not_run,)))
    ]
    return "\n" + ("".join(sentences) or "Nothing.\n")


def figure(findings: Findings, experiment: str, name: str) -> str:
    """The picture of a run, from results/figures."""
    run = findings.run(experiment)
    drawn = next((p for p in pictures(run) if p.name == name), None) if run is not None else None
    if drawn is None:
        return f"\n{ABSENT}\n"
    path = findings.results / "figures" / experiment / PROFILE / f"{name}.svg"
    link = Path(os.path.relpath(path.resolve(), findings.page.resolve().parent)).as_posix()
    return f"\n![{experiment}: {name}]({link})\n\n*{drawn.caption}.*\n"


# --- Numbers inside sentences ------------------------------------------------------------------------


def mean(findings: Findings, experiment: str, setting: str, label: str) -> str:
    """Mean return a task."""
    run, agent = findings.run(experiment), findings.agent(experiment, setting, label)
    return ABSENT if run is None or agent is None else tables.number(float(agent.totals.mean()) / run.tasks)


def _percent(interval: statistics.Interval) -> str:
    if not np.isfinite(interval.estimate):
        return ABSENT
    ends = f" [{100 * interval.low:.0f}, {100 * interval.high:.0f}]" if np.isfinite(interval.low) else ""
    return f"{100 * interval.estimate:.0f} %{ends}"


def share(findings: Findings, experiment: str, setting: str, label: str, reference: str) -> str:
    """Total return of one agent in percent of another's, with its interval."""
    run = findings.run(experiment)
    return ABSENT if run is None else _percent(ratio(run, setting, label, reference))


def share_at_level(findings: Findings, level: str, label: str) -> str:
    """Of SFR, at a level of non-linearity counted from 0."""
    run = findings.run("nonlinearity")
    if run is None or not level_settings(run):
        return ABSENT
    return _percent(ratio(run, level_settings(run)[_whole(level, len(MIDDLES))], label, "SFR"))


def p_value(findings: Findings, experiment: str, setting: str, first: str, second: str) -> str:
    """p of two agents with the sign of a comparison: = 0.021 or < 0.001."""
    x, y = findings.agent(experiment, setting, first), findings.agent(experiment, setting, second)
    if x is None or y is None:
        return ABSENT
    text = tables.p_text(statistics.compare(x.totals, y.totals).asymptotic_p)
    return text.replace("<", "< ") if text.startswith("<") else f"= {text}"


def verdict(findings: Findings, claim: str) -> str:
    """The verdict on an empirical claim, by the end of its id."""
    for outcome in findings.outcomes:
        if outcome.claim.id == f"results/{claim}":
            return f"**{outcome.result.verdict.value}**"
    raise InputError(f"there is no empirical claim results/{claim}")


def count(findings: Findings, name: str) -> str:
    """How many empirical claims have a verdict."""
    return str(Counter(outcome.result.verdict for outcome in findings.outcomes)[Verdict(name)])


def agreement(findings: Findings) -> str:
    """How many printed pairs agree, of those that were run."""
    judged = empirical_claims.judged_pairs(empirical_claims.Results(findings.found))
    tested = [entry for entry in judged if entry.pair.comparison is not None]
    agree = sum(entry.verdict is Verdict.REPRODUCED for entry in tested)
    return f"{agree} of {len(tested)}"


def _whole(text: str, below: int) -> int:
    if not text.isdigit() or int(text) >= below:
        raise InputError(f"{text!r} must be a whole number below {below}")
    return int(text)


FRAGMENTS: Mapping[str, Callable[..., str]] = {
    "overview": overview,
    "totals": _of_setting(tables.totals),
    "against": _of_setting(tables.against),
    "p-values": _of_setting(tables.p_values),
    "ablation": lambda findings, setting: _of_setting(tables.ablation)(findings, tables.ABLATION, setting),
    "best-rates": _of_run(tables.best_rates),
    "levels": levels,
    "claims": claims,
    "pairs": pairs,
    "times": times,
    "contents": contents,
    "missing": missing,
    "figure": figure,
    "mean": mean,
    "ratio": share,
    "ratio-at-level": share_at_level,
    "p": p_value,
    "verdict": verdict,
    "count": count,
    "agreement": agreement,
}


# --- Pages -------------------------------------------------------------------------------------------


def made(what: str, findings: Findings) -> str:
    """What belongs into a place."""
    name, *arguments = shlex.split(what)
    if name not in FRAGMENTS:
        raise InputError(f"{findings.page}: there is no {name!r}; there are {', '.join(FRAGMENTS)}")
    try:
        call = inspect.signature(FRAGMENTS[name]).bind(findings, *arguments)
    except TypeError as error:
        raise InputError(f"{findings.page}: <!-- made: {what} --> has the wrong arguments: {error}") from None
    return FRAGMENTS[name](*call.args)


def updated(text: str, findings: Findings) -> str:
    """The page with every place made anew."""
    return PLACE.sub(
        lambda place: f"<!-- made: {place['what']} -->{made(place['what'], findings)}<!-- /made -->", text
    )


@dataclass(frozen=True)
class Options:
    pages: tyro.conf.Positional[tuple[str, ...]] = PAGES
    """Markdown files."""
    results: str = "results"
    """Folder with runs; it need not exist."""
    check: tyro.conf.FlagCreatePairsOff[bool] = False
    """Only say which pages are out of date."""


def _read(paths: Iterable[str]) -> dict[Path, str]:
    found = {}
    for name in paths:
        try:
            found[Path(name)] = Path(name).read_text(encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot read {name}: {error.strerror or error}") from None
    return found


def main(options: Options) -> int:
    pages = _read(options.pages)
    findings = Findings.load(runs.existing(Path(options.results)), Path())
    changed = {}
    for path, text in pages.items():
        new = updated(text, findings.on(path))
        if new != text:
            changed[path] = new
    for path, new in changed.items():
        print(f"{path} is out of date" if options.check else f"wrote {path}")
        if not options.check:
            cli.write_atomic(path, new.encode())
    return cli.EXIT_UNEXPECTED if options.check and changed else 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.pages", __doc__ or "")
