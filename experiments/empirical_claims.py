"""The paper's empirical claims, checked on results: `python -m experiments.empirical_claims`.

A claim is a conjunction of findings, each about total returns (or those of the first or last tasks):

    above      a > b: supported if U says so with p < 0.05, contradicted if it says the opposite
    ahead      a > b without a test, where the paper's own p-value is not significant
    alike      the paper's criterion for "no difference": p >= 0.05, which is no proof of equality
    highest    the highest mean of all agents of the paper's table
    ratios     of total returns, by their 95 % bootstrap intervals

A claim is REPRODUCED if every finding is supported, NOT REPRODUCED if one is contradicted, and INCONCLUSIVE
otherwise; NOT CHECKED if there are no results at all. These verdicts are about the paper's experiment, so
only runs of its full size (all tasks, steps and 10 repetitions, files without contradictions) can earn the
first two: at any smaller size the verdict is INCONCLUSIVE, and the evidence says which way the results point.

Where the paper gives no number ("similar"), the threshold is ours: a ratio of at least 90 % either way.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro

from experiments import tables
from experiments.figures import MIDDLES, SEED, level_settings, ratio
from experiments.tables import Agreement, p_text
from proofs_checks import p_values as printed_tables
from proofs_checks.p_values import SIGNIFICANT
from sfr_fa import statistics
from sfr_fa.runs import load as runs
from sfr_fa.runs.load import Run
from sfr_fa.statistics import Interval
from sfr_theory import cli, empirical
from sfr_theory.catalogue import EXPERIMENTS
from sfr_theory.claims import CheckResult, Method, Outcome, Verdict, outcome_table

SIMILAR = 0.9
"""Two returns are similar if the smaller is at least this part of the larger."""
REPETITIONS = 10
FULL_SIZE = {"racer": (40, 200_000), "grid_racer": (40, 200_000)}
OBJECT_COLLECTION_SIZE = (300, 20_000)
EARLY, LATE = 40, 100
"""Tasks that count as the beginning (the paper's number for MB SFR) and as the end (ours: the last third)."""

REPRODUCED, NOT_REPRODUCED = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
INCONCLUSIVE, NOT_CHECKED = Verdict.INCONCLUSIVE, Verdict.NOT_CHECKED


@dataclass(frozen=True)
class Finding:
    """One comparison: what it says of the claim, whatever the size of the run."""

    verdict: Verdict
    sentence: str
    points_the_papers_way: bool | None = None
    run: Run | None = None
    repetitions: int = 0
    """The smallest number that it rests on."""
    missing: tuple[str, ...] = ()
    """Agents without results, because of which it was not checked; `sentence` then says where."""

    @property
    def is_full_scale(self) -> bool:
        return self.run is not None and is_full_scale(self.run) and self.repetitions >= REPETITIONS


def is_full_scale(run: Run) -> bool:
    """Whether a run has the paper's size, by its numbers and not by its name, and sound files."""
    size = FULL_SIZE.get(run.name, OBJECT_COLLECTION_SIZE)
    return (run.tasks, run.steps) == size and run.repetitions >= REPETITIONS and not run.problems


class Results:
    """The largest run of each experiment."""

    def __init__(self, found: Iterable[Run]) -> None:
        self._runs: dict[str, Run] = {}
        for run in found:
            known = self._runs.get(run.name)
            if known is None or self._size(run) > self._size(known):
                self._runs[run.name] = run

    @staticmethod
    def _size(run: Run) -> int:
        return run.tasks * run.steps * run.repetitions

    def get(self, experiment: str) -> Run | None:
        return self._runs.get(experiment)

    @property
    def runs(self) -> tuple[Run, ...]:
        return tuple(self._runs.values())


@dataclass(frozen=True)
class Place:
    """Where a comparison is made."""

    experiment: str
    setting: str

    def run(self, results: Results) -> Run | None:
        return results.get(self.experiment)

    def __str__(self) -> str:
        return self.setting


LINEAR = Place("object_collection_linear", "linear")
GENERAL = Place("object_collection_general", "general")
BARRETO = Place("barreto", "barreto")
RACER = Place("racer", "racer")
SINGLE_LINEAR, SINGLE_GENERAL = Place("single_task", "linear"), Place("single_task", "general")


# --- Findings ----------------------------------------------------------------------------------------


def _absent(place: Place, results: Results, *agents: str) -> Finding | None:
    """Why there is nothing to compare; None if there is."""
    run = place.run(results)
    if run is None:
        return Finding(NOT_CHECKED, f"there are no results of {place.experiment}")
    missing = [agent for agent in agents if (place.setting, agent) not in run.agents]
    if missing:
        return Finding(NOT_CHECKED, f"{place}: not run", run=run, missing=tuple(missing))
    return None


def _returns(run: Run, place: Place, agent: str, tasks: slice) -> Any:
    return run.agents[place.setting, agent].returns[:, tasks].sum(axis=1)


def _tests(found: statistics.Comparison) -> str:
    """p = 0.021, exact 0.019"""
    p = p_text(found.asymptotic_p)
    return f"p {p if p.startswith('<') else f'= {p}'}, exact {p_text(found.exact_p)}"


def _compared(
    results: Results, place: Place, first: str, second: str, tasks: slice, when: str
) -> tuple[Run, statistics.Comparison, str]:
    run = place.run(results)
    assert run is not None
    found = statistics.compare(_returns(run, place, first, tasks), _returns(run, place, second, tasks))
    means = [float(_returns(run, place, agent, tasks).mean()) for agent in (first, second)]
    sentence = (
        f"{place}{when}: {first} {tables.number(means[0])}, {second} {tables.number(means[1])} (n = "
        f"{found.first_repetitions}, {found.second_repetitions}; {_tests(found)}; P({first} "
        f"superior) = {found.superiority:.2f})"
    )
    return run, found, sentence


def above(
    results: Results,
    place: Place,
    first: str,
    second: str,
    tasks: slice = slice(None),
    when: str = "",
) -> Finding:
    """The first agent reaches more than the second, significantly."""
    absent = _absent(place, results, first, second)
    if absent:
        return absent
    run, found, sentence = _compared(results, place, first, second, tasks, when)
    significant = found.asymptotic_p < SIGNIFICANT
    verdict = INCONCLUSIVE
    if significant:
        verdict = REPRODUCED if found.superiority > 0.5 else NOT_REPRODUCED
    n = min(found.first_repetitions, found.second_repetitions)
    return Finding(verdict, sentence, found.difference > 0, run, n)


def ahead(results: Results, place: Place, first: str, second: str) -> Finding:
    """The first agent has the higher mean; contradicted only by a significant difference."""
    finding = above(results, place, first, second)
    if finding.verdict is INCONCLUSIVE and finding.points_the_papers_way:
        return Finding(REPRODUCED, finding.sentence, True, finding.run, finding.repetitions)
    return finding


def alike(results: Results, place: Place, first: str, second: str) -> Finding:
    """No significant difference: the paper's criterion."""
    absent = _absent(place, results, first, second)
    if absent:
        return absent
    run, found, sentence = _compared(results, place, first, second, slice(None), "")
    differ = found.asymptotic_p < SIGNIFICANT
    n = min(found.first_repetitions, found.second_repetitions)
    if statistics.smallest_p_value(found.first_repetitions, found.second_repetitions) >= SIGNIFICANT:
        return Finding(INCONCLUSIVE, sentence + ", which no test can tell apart", None, run, n)
    return Finding(NOT_REPRODUCED if differ else REPRODUCED, sentence, not differ, run, n)


def highest(results: Results, place: Place, best: str, table: printed_tables.Table) -> Finding:
    """No agent of the paper's table has a higher mean."""
    absent = _absent(place, results, best)
    if absent:
        return absent
    run = place.run(results)
    assert run is not None
    there = {a: run.agents[place.setting, a] for a in table.agents if (place.setting, a) in run.agents}
    missing = [agent for agent in table.agents if agent not in there]
    n = min(len(agent.trials) for agent in there.values())
    rivals = {label: agent for label, agent in there.items() if label != best}
    if not rivals:
        return Finding(NOT_CHECKED, f"{place}: no results of any agent but {best}", run=run)
    means = {label: float(agent.totals.mean()) for label, agent in rivals.items()}
    rival = max(means, key=lambda label: means[label])
    found = statistics.compare(there[best].totals, there[rival].totals)
    share = f"{len(there)} of {len(table.agents)} agents"
    sentence = (
        f"{place}: of {share} {best} has {tables.number(float(there[best].totals.mean()))}, the best other, "
        f"{rival}, {tables.number(means[rival])} (n at least {n}; {_tests(found)})"
        + (f"; not run: {', '.join(missing)}" if missing else "")
    )
    first = found.difference > 0
    if not first:
        verdict = NOT_REPRODUCED if found.asymptotic_p < SIGNIFICANT else INCONCLUSIVE
    else:
        verdict = INCONCLUSIVE if missing else REPRODUCED
    return Finding(verdict, sentence, first, run, n)


def _within(interval: Interval, low: float, high: float) -> Verdict:
    """Where an interval lies: inside, outside, or across."""
    if not math.isfinite(interval.low):
        return INCONCLUSIVE
    if low <= interval.low and interval.high <= high:
        return REPRODUCED
    return NOT_REPRODUCED if interval.high < low or interval.low > high else INCONCLUSIVE


def _percent(interval: Interval) -> str:
    if not math.isfinite(interval.estimate):
        return "undefined, because a return is not positive"
    text = f"{100 * interval.estimate:.1f} %"
    if math.isfinite(interval.low):
        text += f" [{100 * interval.low:.1f}, {100 * interval.high:.1f}]"
    return text


def ratio_at(results: Results, level: int, low: float, high: float) -> Finding:
    """SF / SFR at a level of non-linearity lies between two numbers."""
    run = results.get("nonlinearity")
    if run is None or not level_settings(run):
        return Finding(NOT_CHECKED, "there are no results of nonlinearity")
    found = ratio(run, level_settings(run)[level], "SF", "SFR")
    if not found.repetitions:
        return Finding(NOT_CHECKED, f"no results of SF and SFR at {MIDDLES[level]:g}", run=run)
    sentence = f"SF / SFR at error {MIDDLES[level]:g} is {_percent(found)} (n = {found.repetitions})"
    points = low <= found.estimate <= high if math.isfinite(found.estimate) else None
    return Finding(_within(found, low, high), sentence, points, run, found.repetitions)


def ratio_falls(results: Results) -> Finding:
    """SF / SFR has a negative slope over the levels."""
    run = results.get("nonlinearity")
    if run is None or not level_settings(run):
        return Finding(NOT_CHECKED, "there are no results of nonlinearity")
    agents = [run.agents.get((s, label)) for label in ("SF", "SFR") for s in level_settings(run)]
    common = sorted(set.intersection(*(set(agent.trials if agent else ()) for agent in agents)))
    if not common:
        return Finding(NOT_CHECKED, "no repetition has all seven levels", run=run)
    returns = np.array([agent.totals_of(common) for agent in agents if agent])
    psi, xi = returns[: len(MIDDLES)], returns[len(MIDDLES) :]
    slope = statistics.slope_of_ratios(MIDDLES, psi, xi, np.random.default_rng(SEED))
    if not math.isfinite(slope.estimate):
        return Finding(
            INCONCLUSIVE, "a return is not positive, so ratios mean nothing", None, run, len(common)
        )
    values = psi.mean(axis=1) / xi.mean(axis=1)
    rises = int((np.diff(values) > 0).sum())
    sentence = (
        f"SF / SFR over the levels is {', '.join(f'{100 * v:.0f}' for v in values)} %: slope "
        f"{100 * slope.estimate:.1f} % for an error of 1"
        + (f" [{100 * slope.low:.1f}, {100 * slope.high:.1f}]" if math.isfinite(slope.low) else "")
        + f", {rises} of {len(values) - 1} steps rise (n = {len(common)})"
    )
    return Finding(_within(slope, -math.inf, 0.0), sentence, slope.estimate < 0, run, len(common))


def smaller_ratio(results: Results) -> Finding:
    """SF / SFR is smaller for general than for linear rewards: the intervals do not overlap."""
    absent = _absent(LINEAR, results, "SF", "SFR") or _absent(GENERAL, results, "SF", "SFR")
    if absent:
        return absent
    linear_run, general_run = LINEAR.run(results), GENERAL.run(results)
    assert linear_run is not None
    assert general_run is not None
    linear, general = ratio(linear_run, "linear", "SF", "SFR"), ratio(general_run, "general", "SF", "SFR")
    n = min(linear.repetitions, general.repetitions)
    sentence = (
        f"SF / SFR is {_percent(linear)} for linear and {_percent(general)} for general rewards (n = {n})"
    )
    points = None
    if math.isfinite(linear.estimate) and math.isfinite(general.estimate):
        points = general.estimate < linear.estimate
    verdict = INCONCLUSIVE
    if general.high < linear.low:
        verdict = REPRODUCED
    elif general.low > linear.high:
        verdict = NOT_REPRODUCED
    # The smaller of the two runs decides about the scale.
    run = general_run if is_full_scale(linear_run) else linear_run
    return Finding(verdict, sentence, points, run, n)


# --- From findings to a verdict ----------------------------------------------------------------------


def combine(findings: Sequence[Finding]) -> CheckResult:
    """The verdict on a claim, its evidence, and where it was found."""
    checked = [finding for finding in findings if finding.verdict is not NOT_CHECKED]
    sentences = _sentences(findings)
    used = {finding.run.path: finding.run for finding in checked if finding.run is not None}
    scope = "; ".join(_scope(run) for run in used.values())
    details = {
        "findings": [
            {"verdict": f.verdict.value, "sentence": f.sentence, "full_scale": f.is_full_scale}
            for f in findings
        ]
    }
    if not checked:
        return CheckResult(NOT_CHECKED, "; ".join(sentences), details=details)
    contradicted = [f for f in checked if f.verdict is NOT_REPRODUCED]
    if any(finding.is_full_scale for finding in contradicted):
        return CheckResult(NOT_REPRODUCED, "; ".join(sentences), scope, details)
    if all(finding.is_full_scale for finding in checked):
        supported = len(checked) == len(findings) and all(f.verdict is REPRODUCED for f in checked)
        return CheckResult(REPRODUCED if supported else INCONCLUSIVE, "; ".join(sentences), scope, details)
    return CheckResult(INCONCLUSIVE, f"{_direction(findings)}: {'; '.join(sentences)}", scope, details)


def _sentences(findings: Sequence[Finding]) -> list[str]:
    """What was found, each once; agents without results together, a sentence for each place."""
    absent: dict[str, dict[str, None]] = {}
    for finding in findings:
        if finding.missing:
            absent.setdefault(finding.sentence, {}).update(dict.fromkeys(finding.missing))
    there = dict.fromkeys(finding.sentence for finding in findings if not finding.missing)
    return [*there, *(f"{place}: {', '.join(agents)}" for place, agents in absent.items())]


def _direction(findings: Sequence[Finding]) -> str:
    """Which way results of less than the paper's size point."""
    ways = [finding.points_the_papers_way for finding in findings]
    paper, other = ways.count(True), ways.count(False)
    head = "Less than the paper's scale, so no verdict"
    if paper == len(ways):
        return f"{head}; the results point the paper's way"
    if not paper and other:
        return f"{head}; the results point the other way"
    return f"{head}; {paper} of {len(ways)} comparisons point the paper's way, {other} the other way"


def _scope(run: Run) -> str:
    rates = "best of several rates" if run.is_grid else "one combination of rates, not the best of a grid"
    problems = f"; {len(run.problems)} contradictions in its files" if run.problems else ""
    return (
        f"{run.name}, profile {run.profile}: {run.size}, seed {run.config['seed']}, commit {run.commits}, "
        f"{rates}{problems}"
    )


# --- The claims --------------------------------------------------------------------------------------

Check = Callable[[Results], CheckResult]


def _best(place: Place, best: str, table: printed_tables.Table) -> Check:
    return lambda results: combine([highest(results, place, best, table)])


def _all_above(*comparisons: tuple[Place, str, str]) -> Check:
    return lambda results: combine([above(results, *comparison) for comparison in comparisons])


def _learned_features(results: Results) -> CheckResult:
    return combine([
        finding
        for place in (LINEAR, GENERAL)
        for finding in (
            alike(results, place, "SF-4", "CSFR-4"),
            ahead(results, place, "SF-4", "SFR-R"),
            ahead(results, place, "CSFR-4", "SFR-R"),
        )
    ])  # fmt: skip


def _barreto_best(results: Results) -> CheckResult:
    return combine([
        above(results, BARRETO, "SFR", "SF"),
        above(results, BARRETO, "SFR", "SF", slice(EARLY), f", first {EARLY} tasks"),
        above(results, BARRETO, "SFR", "SF", slice(-LATE, None), f", last {LATE} tasks"),
    ])  # fmt: skip


def _barreto_early(results: Results) -> CheckResult:
    return combine([
        above(results, BARRETO, "MB SFR", "SF", slice(EARLY), f", first {EARLY} tasks"),
        *(
            above(results, BARRETO, agent, "SF-R", slice(70), ", first 70 tasks")
            for agent in ("SFR-R", "MB SFR-R")
        ),
    ])  # fmt: skip


def _easier(results: Results) -> CheckResult:
    reason = "a hypothesis about the cause; the ablation (clipping x initial weights) bears on it"
    run = results.get(tables.ABLATION)
    if run is None or not run.agents:
        return CheckResult(NOT_CHECKED, reason)
    means = (
        f"{setting}: "
        + ", ".join(
            f"{name} {tables.a_task(run, setting, f'{name}, paper weights')}" for name in tables.VARIANTS
        )
        for setting in run.settings
    )
    return CheckResult(NOT_CHECKED, f"{reason}: return a task, {'; '.join(means)}", _scope(run))


PAIR_PLACES = (BARRETO, LINEAR, GENERAL, RACER)
PAIR_VERDICTS = {
    Agreement.AGREES: REPRODUCED,
    Agreement.SIGNIFICANCE: NOT_REPRODUCED,
    Agreement.ORDER: NOT_REPRODUCED,
    Agreement.TOO_FEW: INCONCLUSIVE,
    Agreement.NOT_RUN: NOT_CHECKED,
}


@dataclass(frozen=True)
class JudgedPair:
    """A printed pair, our test of it, and the verdict."""

    pair: tables.Pair
    run: Run

    @property
    def is_full_scale(self) -> bool:
        found = self.pair.comparison
        enough = found is not None and min(found.first_repetitions, found.second_repetitions) >= REPETITIONS
        return enough and is_full_scale(self.run)

    @property
    def verdict(self) -> Verdict:
        """As for any claim: below the paper's scale there is none."""
        if self.pair.comparison is None or self.is_full_scale:
            return PAIR_VERDICTS[self.pair.agreement]
        return INCONCLUSIVE

    def to_json(self) -> dict[str, Any]:
        return {**self.pair.to_json(), "verdict": self.verdict.value, "profile": self.run.profile}


def judged_pairs(results: Results) -> list[JudgedPair]:
    """Every printed pair of the experiments that were run."""
    return [
        JudgedPair(pair, run)
        for place in PAIR_PLACES
        if (run := place.run(results)) is not None
        for pair in tables.pairs(run, place.setting)
    ]


def pair_sheet(results: Results) -> tables.Sheet:
    """The printed pairs that were run, with their verdicts."""
    rows = []
    for judged in judged_pairs(results):
        pair, found = judged.pair, judged.pair.comparison
        if found is None:
            continue
        rows.append((
            pair.table, f"{pair.first}, {pair.second}", pair.printed_text, p_text(found.asymptotic_p),
            p_text(found.exact_p), pair.ahead or "-", pair.ahead_here,
            f"{found.first_repetitions}, {found.second_repetitions}", judged.verdict.value,
        ))  # fmt: skip
    total = sum(len(list(table.cells())) for table in printed_tables.TABLES)
    header = (
        "table",
        "pair",
        "p, paper",
        "p, ours",
        "p, exact",
        "ahead, paper",
        "ahead, ours",
        "n",
        "verdict",
    )
    left = f"{total - len(rows)} of the {total} printed pairs were not run." if len(rows) < total else ""
    return tables.Sheet("The printed p-values, pair by pair", header, tuple(rows), (left,) if left else ())


def _all_p_values(results: Results) -> CheckResult:
    judged = judged_pairs(results)
    tested = [entry for entry in judged if entry.pair.comparison is not None]
    total = sum(len(list(table.cells())) for table in printed_tables.TABLES)
    details = {"pairs": [entry.to_json() for entry in judged]}
    if not tested:
        return CheckResult(NOT_CHECKED, f"none of the {total} pairs was run", details=details)
    sentence = tables.agreement_sentence([entry.pair for entry in tested], total)
    used = {entry.run.path: entry.run for entry in judged}
    scope = "; ".join(_scope(run) for run in used.values())
    verdicts = [entry.verdict for entry in tested]
    if NOT_REPRODUCED in verdicts:
        return CheckResult(NOT_REPRODUCED, sentence, scope, details)
    if len(tested) == total and set(verdicts) == {REPRODUCED}:
        return CheckResult(REPRODUCED, sentence, scope, details)
    if not all(entry.is_full_scale for entry in tested):
        sentence = f"Less than the paper's scale, so no verdict: {sentence}"
    return CheckResult(INCONCLUSIVE, sentence, scope, details)


_BOTH = (LINEAR, GENERAL)
CHECKS: Mapping[str, Check] = {
    "results/object-linear-sfr-above-sf": _all_above((LINEAR, "SFR", "SF"), (LINEAR, "SFR", "Q")),
    "results/object-general-sfr-above-sf": _all_above((GENERAL, "SFR", "SF"), (GENERAL, "SFR", "Q")),
    "results/object-linear-sfr-best": _best(LINEAR, "SFR", printed_tables.LINEAR),
    "results/object-general-sfr-best": _best(GENERAL, "SFR", printed_tables.GENERAL),
    "results/object-learned-rewards": _all_above(
        *((place, "SFR-R", other) for place in _BOTH for other in ("SF-R", "Q"))
    ),
    "results/object-learned-features": _learned_features,
    "results/object-eight-features": _all_above(*((place, "SF-4", "SF-8") for place in _BOTH)),
    "results/object-stronger-for-general": lambda results: combine([smaller_ratio(results)]),
    "results/object-linear-model-based": lambda results: combine([alike(results, LINEAR, "SFR", "MB SFR")]),
    "results/nonlinearity-trend": lambda results: combine([ratio_falls(results)]),
    "results/nonlinearity-near-linear": lambda results: combine([ratio_at(results, 0, SIMILAR, 1 / SIMILAR)]),
    "results/nonlinearity-half": lambda results: combine([ratio_at(results, 6, -math.inf, 0.5)]),
    "results/racer-csfr-above-q": _all_above((RACER, "CSFR", "Q"), (RACER, "CSFR", "SF")),
    "results/racer-csfr-best": _best(RACER, "CSFR", printed_tables.RACER),
    "results/racer-sf-below-q": _all_above(
        *((RACER, "Q", other) for other in ("SF", "SF-R", "CSFR-R", "SF-3", "SF-6", "CSFR-3"))
    ),
    "results/barreto-sfr-best": _barreto_best,
    "results/barreto-model-based": lambda results: combine([alike(results, BARRETO, "MB SFR", "SF")]),
    "results/barreto-early-tasks": _barreto_early,
    "results/barreto-sf-beats-q": _all_above(
        *((BARRETO, other, "Q") for other in printed_tables.BARRETO.agents if other != "Q")
    ),
    "results/single-task": _all_above((SINGLE_LINEAR, "SFR", "SF"), (SINGLE_GENERAL, "SFR", "SF")),
    "results/easier-approximation": _easier,
    "results/p-values": _all_p_values,
}
"""Claim id -> what decides it."""


def check(found: Iterable[Run]) -> list[Outcome]:
    """Every empirical claim of the catalogue with its verdict on these runs."""
    results = Results(found)
    return [Outcome(claim, CHECKS[claim.id](results), Method.RESULTS) for claim in EXPERIMENTS.claims]


def check_folder(folder: Path) -> list[Outcome]:
    """The same for all runs below a folder, which need not exist."""
    return check(runs.load_all(folder)[0] if folder.is_dir() else ())


def to_json(outcomes: Iterable[Outcome]) -> dict[str, dict[str, Any]]:
    """Claims by id, as `sfr_theory.claims.claims_html` takes them."""
    return {outcome.claim.id: outcome.to_json() for outcome in outcomes}


@dataclass(frozen=True)
class Options:
    results: str = "results"
    """Folder with runs."""
    json: str | None = None
    """Write verdicts, evidence and every comparison as JSON to this file; - is standard output."""
    write: tyro.conf.FlagCreatePairsOff[bool] = False
    """Write the verdicts to RESULTS/claims.json, where `python -m proofs_checks` reads them."""


def main(options: Options) -> int:
    console = cli.output_console(options.json)
    folder = runs.existing(Path(options.results))
    found, unreadable = runs.load_all(folder)
    for sentence in unreadable:
        console.print(f"note: {sentence}", soft_wrap=True, markup=False)
    outcomes = check(found)
    console.print(outcome_table("The paper's empirical claims", outcomes))
    if options.json:
        cli.write_json({"claims": to_json(outcomes)}, options.json)
    if options.write:
        content = empirical.to_json((run.path for run in found), folder, outcomes)
        cli.write_json(content, str(folder / empirical.FILE))
    return 0 if all(outcome.as_expected for outcome in outcomes) else cli.EXIT_UNEXPECTED


if __name__ == "__main__":
    cli.run(main, Options, "experiments.empirical_claims", __doc__ or "")
