"""The paper's empirical claims, and our own predictions, judged by results.

    python -m experiments.analysis.claims

A claim is a conjunction of findings, each about total returns (or those of the first or last tasks):

    above      a > b: supported if U says so with p < 0.05, contradicted if it says the opposite; a prediction
               of ours by Wilcoxon's signed ranks, since repetitions share tasks and noise
    ahead      a > b without a test, where the paper's own p-value is not significant
    alike      the paper's criterion for "no difference": p >= 0.05, which does not prove equality
    highest    the highest mean of all agents of the paper's table
    ratios     of total returns, by their 95 % intervals

A claim is REPRODUCED if every finding is supported, NOT REPRODUCED if one is contradicted, and INCONCLUSIVE
otherwise; NOT CHECKED if there are no results at all. These verdicts are about the paper's experiment, so
only runs of its full size (all tasks, steps and 10 repetitions, files without contradictions) can earn the
first two: at any smaller size the verdict is INCONCLUSIVE, and the evidence says which way the results point.
The printed p-values have a verdict for each pair; all of them together only if every pair has the same one.

Where the paper gives no number, the threshold is ours: "similar" is a ratio of at least 90 % either way,
"roughly equivalent" one of at least 80 %.

Some choices are not printed (`experiments.analysis.multiverse`). A claim that the results decide, but that
holds in some worlds of these choices and clearly fails in others, NEEDS ASSUMPTION: the evidence says in how
many it holds, and which choice decides.
Verdicts are computed from the tables each time they are asked for; none is read from a file.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from experiments.analysis import compare
from experiments.analysis.compare import BARRETO, GENERAL, LINEAR, RACER, Agreement, Pair, Place, Results
from experiments.analysis.multiverse import SIMILAR, Specification, specifications
from experiments.render import printed_p, sentence
from sfr_fa import statistics
from sfr_fa.runs import load
from sfr_fa.runs.load import Run
from sfr_fa.statistics import Interval
from sfr_theory import cli, paper
from sfr_theory.catalogue import EXPERIMENTS
from sfr_theory.claims import CheckResult, Method, Outcome, Verdict, outcome_table

ROUGHLY = 0.8
LATE_TASKS = 100
"""How many count as the end: the last third."""
INTERACTIONS = "racer_interactions"
KERNEL, SAME_NETWORK = "SFR-K", "CSFR, 1 x 128"
SINGLE_LINEAR, SINGLE_GENERAL = Place("single_task", "linear"), Place("single_task", "general")

REPRODUCED, NOT_REPRODUCED = Verdict.REPRODUCED, Verdict.NOT_REPRODUCED
INCONCLUSIVE, NOT_CHECKED = Verdict.INCONCLUSIVE, Verdict.NOT_CHECKED


@dataclass(frozen=True)
class Finding:
    """One comparison: what it says of the claim, whatever the size of the run."""

    verdict: Verdict
    sentence: str
    points_the_claims_way: bool | None = None
    runs: tuple[Run, ...] = ()
    repetitions: int = 0
    """The smallest number that it rests on."""
    missing: tuple[str, ...] = ()
    """Agents without results, because of which it was not checked; `sentence` then says where."""

    @property
    def is_full_scale(self) -> bool:
        complete = bool(self.runs) and self.repetitions >= paper.REPETITIONS
        return complete and all(map(is_full_scale, self.runs))


def full_size(experiment: str) -> tuple[int, int]:
    """Tasks and steps of the paper's experiment, or of ours in its environment."""
    if experiment == INTERACTIONS:
        return paper.RACER_SIZE
    printed = (table for place, table in compare.PRINTED.items() if place.experiment == experiment)
    return next(((table.tasks, table.steps) for table in printed), paper.OBJECT_SIZE)


def is_full_scale(run: Run) -> bool:
    """Whether a run has the paper's size, by its numbers and not by its name, and sound files."""
    same_size = (run.tasks, run.steps) == full_size(run.name)
    return same_size and run.repetitions >= paper.REPETITIONS and not run.problems


# --- Findings ----------------------------------------------------------------------------------------


def absent(results: Results, place: Place, *agents: str) -> Finding:
    """Why there is nothing to compare."""
    run = results.run(place.experiment)
    if run is None:
        return Finding(NOT_CHECKED, f"there are no results of {place.experiment}")
    missing = tuple(agent for agent in agents if (place.setting, agent) not in run.agents)
    return Finding(NOT_CHECKED, f"{place.setting}: not run", missing=missing)


def above(
    results: Results,
    place: Place,
    first: str,
    second: str,
    tasks: slice = slice(None),
    when: str = "",
    paired: bool = False,
) -> Finding:
    """The first agent reaches more than the second, significantly."""
    found = results.versus(place, first, second, tasks)
    if found is None:
        return absent(results, place, first, second)
    verdict = INCONCLUSIVE
    if found.paired_p < compare.SIGNIFICANT if paired else found.is_significant:
        verdict = REPRODUCED if found.ahead == first else NOT_REPRODUCED
    return Finding(
        verdict,
        sentence("versus", found=found, when=when, paired=paired),
        found.test.difference > 0,
        results.at(place),
        min(found.repetitions),
    )


def ahead(results: Results, place: Place, first: str, second: str) -> Finding:
    """The first agent has the higher mean; contradicted only by a significant difference."""
    finding = above(results, place, first, second)
    if finding.verdict is INCONCLUSIVE and finding.points_the_claims_way:
        return replace(finding, verdict=REPRODUCED)
    return finding


def alike(results: Results, place: Place, first: str, second: str) -> Finding:
    """No significant difference: the paper's criterion."""
    found, finding = results.versus(place, first, second), above(results, place, first, second)
    if found is None:
        return finding
    if not found.can_be_significant:
        return replace(finding, verdict=INCONCLUSIVE, points_the_claims_way=None)
    verdict = NOT_REPRODUCED if found.is_significant else REPRODUCED
    return replace(finding, verdict=verdict, points_the_claims_way=not found.is_significant)


def highest(results: Results, place: Place, best: str) -> Finding:
    """No agent of the paper's table has a higher mean."""
    run, agents = results.run(place.experiment), compare.PRINTED[place].agents
    there = [agent for label in agents if (agent := compare.agent_in(run, place.setting, label))]
    rivals = [agent for agent in there if agent.label != best]
    if len(rivals) in (0, len(there)):
        return absent(results, place, *(agents if not there else (best, *agents)))
    rival = max(rivals, key=lambda agent: float(agent.totals.mean()))
    found = results.versus(place, best, rival.label)
    assert found is not None
    missing = [label for label in agents if label not in {agent.label for agent in there}]
    least = min(len(agent.trials) for agent in there)
    first = found.test.difference > 0
    if first:
        verdict = INCONCLUSIVE if missing else REPRODUCED
    else:
        verdict = NOT_REPRODUCED if found.is_significant else INCONCLUSIVE
    facts = {"there": len(there), "agents": len(agents), "least": least, "missing": missing}
    return Finding(verdict, sentence("highest", found=found, **facts), first, results.at(place), least)


def within(interval: Interval, low: float, high: float) -> Verdict:
    """Where an interval lies: inside, outside, or across."""
    if not math.isfinite(interval.low):
        return INCONCLUSIVE
    if low <= interval.low and interval.high <= high:
        return REPRODUCED
    return NOT_REPRODUCED if interval.high < low or interval.low > high else INCONCLUSIVE


def ratio(
    results: Results, place: Place, first: str, second: str, low: float, high: float, where: str
) -> Finding:
    """The ratio of two agents' returns lies between two numbers."""
    found = results.ratio(place, first, second)
    if not found.repetitions:
        return absent(results, place, first, second)
    points = low <= found.estimate <= high if math.isfinite(found.estimate) else None
    words = sentence("ratio", first=first, second=second, where=where, ratio=found)
    return Finding(within(found, low, high), words, points, results.at(place), found.repetitions)


def ratio_at(results: Results, level: int, low: float, high: float) -> Finding:
    """SF / SFR at a level of non-linearity lies between two numbers."""
    where = f"at error {paper.LEVELS[level]:g}"
    return ratio(results, Place("nonlinearity", f"level_{level}"), "SF", "SFR", low, high, where)


def ratio_falls(results: Results) -> Finding:
    """SF / SFR has a negative slope over the levels, in the repetitions that have all of them."""
    place = Place("nonlinearity", "all levels")
    run = results.run(place.experiment)
    settings = compare.level_settings(run) if run else ()
    agents = [compare.agent_in(run, setting, label) for label in ("SF", "SFR") for setting in settings]
    common = sorted(set.intersection(*(set(agent.trials if agent else ()) for agent in agents or [None])))
    if not common:
        return absent(results, place, "SF", "SFR")
    psi, xi = np.split(np.array([agent.totals_of(common) for agent in agents if agent]), 2)
    slope = statistics.slope_of_ratios(paper.LEVELS, psi, xi)
    if not math.isfinite(slope.estimate):
        words = "a return is not positive, so ratios mean nothing"
        return Finding(INCONCLUSIVE, words, None, results.at(place), len(common))
    values = psi.mean(axis=1) / xi.mean(axis=1)
    rises = int((np.diff(values) > 0).sum())
    words = sentence("ratio_falls", values=values.tolist(), slope=slope, rises=rises)
    return Finding(within(slope, -math.inf, 0.0), words, slope.estimate < 0, results.at(place), len(common))


def larger_ratio(
    results: Results, more: tuple[Place, str, str], less: tuple[Place, str, str], words: str
) -> Finding:
    """One ratio of two agents is larger than another, here or elsewhere: the intervals do not overlap."""
    larger, smaller = (results.ratio(*pair) for pair in (more, less))
    for pair, found in ((more, larger), (less, smaller)):
        if not found.repetitions:
            return absent(results, *pair)
    n = min(larger.repetitions, smaller.repetitions)
    verdict = INCONCLUSIVE
    if larger.low > smaller.high:
        verdict = REPRODUCED
    elif larger.high < smaller.low:
        verdict = NOT_REPRODUCED
    defined = math.isfinite(larger.estimate) and math.isfinite(smaller.estimate)
    points = larger.estimate > smaller.estimate if defined else None
    said = sentence(words, more=more, less=less, larger=larger, smaller=smaller, n=n)
    return Finding(verdict, said, points, results.at(more[0], less[0]), n)


# --- From findings to a verdict ----------------------------------------------------------------------


def combine(findings: Sequence[Finding]) -> CheckResult:
    """The verdict on a claim, its evidence, and where it was found."""
    checked = [finding for finding in findings if finding.verdict is not NOT_CHECKED]
    evidence = "; ".join(_sentences(findings))
    scope = _scope(run for finding in checked for run in finding.runs)
    details = {
        "findings": [
            {"verdict": f.verdict.value, "sentence": f.sentence, "full_scale": f.is_full_scale}
            for f in findings
        ]
    }
    if not checked:
        return CheckResult(NOT_CHECKED, evidence, details=details)
    if any(finding.verdict is NOT_REPRODUCED and finding.is_full_scale for finding in checked):
        return CheckResult(NOT_REPRODUCED, evidence, scope, details)
    if all(finding.is_full_scale for finding in checked):
        supported = all(finding.verdict is REPRODUCED for finding in findings)
        return CheckResult(REPRODUCED if supported else INCONCLUSIVE, evidence, scope, details)
    ways = [finding.points_the_claims_way for finding in findings]
    direction = sentence("direction", paper=ways.count(True), other=ways.count(False), all=len(ways))
    return CheckResult(INCONCLUSIVE, f"{direction}: {evidence}", scope, details)


def _sentences(findings: Sequence[Finding]) -> list[str]:
    """What was found, each once; agents without results together, a sentence for each place."""
    missing: dict[str, dict[str, None]] = {}
    for finding in findings:
        if finding.missing:
            missing.setdefault(finding.sentence, {}).update(dict.fromkeys(finding.missing))
    there = dict.fromkeys(finding.sentence for finding in findings if not finding.missing)
    return [*there, *(f"{place}: {', '.join(agents)}" for place, agents in missing.items())]


def _scope(runs: Iterable[Run]) -> str:
    used = {run.path: run for run in runs}
    return "; ".join(sentence("scope", run=run) for run in used.values())


# --- The claims --------------------------------------------------------------------------------------

Check = Callable[[Results], CheckResult]


def _all(*findings: Callable[[Results], Finding]) -> Check:
    return lambda results: combine([finding(results) for finding in findings])


def _above(place: Place, first: str, *others: str) -> list[Callable[[Results], Finding]]:
    return [partial(above, place=place, first=first, second=other) for other in others]


def _early(first: str, second: str, tasks: int) -> Callable[[Results], Finding]:
    when = f", first {tasks} tasks"
    return lambda results: above(results, BARRETO, first, second, slice(tasks), when)


def _learned_features(place: Place) -> list[Callable[[Results], Finding]]:
    return [
        lambda results: alike(results, place, "SF-4", "CSFR-4"),
        lambda results: ahead(results, place, "SF-4", "SFR-R"),
        lambda results: ahead(results, place, "CSFR-4", "SFR-R"),
    ]


_COUNTERPARTS = (
    *((place, "SF-R", "SFR-R") for place in (LINEAR, GENERAL, BARRETO)),
    *((place, "SF-4", "CSFR-4") for place in (LINEAR, GENERAL, BARRETO)),
    (RACER, "SF-R", "CSFR-R"),
    (RACER, "SF-3", "CSFR-3"),
)
"""Agents of SF and of SFR that learn rewards, or features as well."""


def _roughly(place: Place, first: str, second: str) -> Callable[[Results], Finding]:
    where = {BARRETO: "in Barreto's environment", RACER: "in the racer"}.get(
        place, f"on {place.setting} tasks"
    )
    return lambda results: ratio(results, place, first, second, ROUGHLY, 1 / ROUGHLY, where)


def _cause(results: Results) -> CheckResult:
    run = results.run("ablation")
    means = {
        setting: {name: found["paper"] for name, found in compare.ablation(run, setting).items()}
        for setting in (run.settings if run and run.agents else ())
        if run
    }
    return CheckResult(NOT_CHECKED, sentence("cause", means=means), _scope([run] if run and means else []))


def _kernel_over_csfr(results: Results, kind: str, low: float, high: float) -> Finding:
    """A prediction of experiments/configs/racer_interactions.py."""
    return ratio(results, Place(INTERACTIONS, kind), KERNEL, SAME_NETWORK, low, high, f"on {kind} tasks")


PAIR_VERDICTS = {
    Agreement.AGREES: REPRODUCED,
    Agreement.SIGNIFICANCE: NOT_REPRODUCED,
    Agreement.ORDER: NOT_REPRODUCED,
    Agreement.TOO_FEW: INCONCLUSIVE,
    Agreement.NOT_RUN: NOT_CHECKED,
}


def pair_verdict(run: Run, pair: Pair) -> Verdict:
    """As for any claim: below the paper's scale there is none."""
    if pair.versus is None:
        return NOT_CHECKED
    enough = is_full_scale(run) and min(pair.versus.repetitions) >= paper.REPETITIONS
    return PAIR_VERDICTS[pair.agreement] if enough else INCONCLUSIVE


def pair_json(pair: Pair, verdict: Verdict) -> dict[str, Any]:
    found = pair.versus
    ours = found and {
        **asdict(found.test),
        "superiority": found.test.superiority,
        "ahead": found.ahead or None,
    }
    return {
        "table": pair.table.name, "first": pair.first, "second": pair.second,
        "printed": printed_p(pair.printed), "ahead_in_the_paper": pair.ahead or None, "ours": ours,
        "agreement": pair.agreement.value, "verdict": verdict.value,
    }  # fmt: skip


def judged_pairs(results: Results) -> list[tuple[Pair, Verdict]]:
    """Every printed pair of the experiments that were run."""
    return [(pair, pair_verdict(run, pair)) for run, pair in results.pairs()]


def _all_p_values(results: Results) -> CheckResult:
    """Each pair has its own verdict; the list as a whole only if every pair has the same one.

    A p-value near 0.05 falls on either side by chance, so a few flips among many pairs refute nothing.
    """
    judged = judged_pairs(results)
    details = {"pairs": [pair_json(pair, verdict) for pair, verdict in judged]}
    verdicts = [verdict for pair, verdict in judged if pair.versus]
    words = sentence("printed_pairs", judged=judged, printed=compare.PRINTED_PAIRS)
    if not verdicts:
        return CheckResult(NOT_CHECKED, words, details=details)
    scope = _scope(run for run, _ in results.pairs())
    decided = len(verdicts) == compare.PRINTED_PAIRS and len(set(verdicts)) == 1
    return CheckResult(verdicts[0] if decided else INCONCLUSIVE, words, scope, details)


_BOTH = (LINEAR, GENERAL)
CHECKS: Mapping[str, Check] = {
    "results/object-linear-sfr-above-sf": _all(*_above(LINEAR, "SFR", "SF", "Q")),
    "results/object-general-sfr-above-sf": _all(*_above(GENERAL, "SFR", "SF", "Q")),
    "results/object-linear-sfr-best": _all(lambda results: highest(results, LINEAR, "SFR")),
    "results/object-general-sfr-best": _all(lambda results: highest(results, GENERAL, "SFR")),
    "results/object-learned-rewards": _all(
        *(finding for place in _BOTH for finding in _above(place, "SFR-R", *paper.LINEAR.behind("SFR-R")))
    ),
    "results/object-learned-features": _all(
        *(finding for place in _BOTH for finding in _learned_features(place))
    ),
    "results/object-eight-features": _all(
        *(finding for place in _BOTH for finding in _above(place, "SF-4", "SF-8"))
    ),
    "results/object-stronger-for-general": _all(
        partial(larger_ratio, more=(LINEAR, "SF", "SFR"), less=(GENERAL, "SF", "SFR"), words="smaller_ratio")
    ),
    "results/object-linear-model-based": _all(lambda results: alike(results, LINEAR, "SFR", "MB SFR")),
    "results/nonlinearity-trend": _all(ratio_falls),
    "results/nonlinearity-near-linear": _all(lambda results: ratio_at(results, 0, SIMILAR, 1 / SIMILAR)),
    "results/nonlinearity-half": _all(lambda results: ratio_at(results, 6, -math.inf, 0.5)),
    "results/roughly-equivalent": _all(*(_roughly(*counterparts) for counterparts in _COUNTERPARTS)),
    "results/weaker-if-learned": _all(
        *(
            partial(larger_ratio, more=learned, less=given, words="closer")
            for given in ((GENERAL, "SF", "SFR"), (RACER, "SF", "CSFR"))
            for learned in _COUNTERPARTS
            if learned[0] == given[0]
        )
    ),
    "results/racer-csfr-above-q": _all(*_above(RACER, "CSFR", "Q", "SF")),
    "results/racer-csfr-best": _all(lambda results: highest(results, RACER, "CSFR")),
    "results/racer-sf-below-q": _all(*_above(RACER, "Q", *paper.RACER.behind("Q"))),
    "results/barreto-sfr-best": _all(
        *_above(BARRETO, "SFR", "SF"),
        _early("SFR", "SF", paper.EARLY_TASKS),
        lambda results: above(
            results, BARRETO, "SFR", "SF", slice(-LATE_TASKS, None), f", last {LATE_TASKS} tasks"
        ),
    ),
    "results/barreto-model-based": _all(lambda results: alike(results, BARRETO, "MB SFR", "SF")),
    "results/barreto-early-tasks": _all(
        _early("MB SFR", "SF", paper.EARLY_TASKS),
        *(_early(agent, "SF-R", paper.EARLY_TASKS_LEARNED_REWARDS) for agent in ("SFR-R", "MB SFR-R")),
    ),
    "results/barreto-learned-rewards": _all(*_above(BARRETO, "SFR-R", "SF-R")),
    "results/barreto-learned-features": _all(
        lambda results: alike(results, BARRETO, "SF-4", "CSFR-4"),
        *(
            finding
            for agent in ("SF", "SF-R", "SFR", "SFR-R", "MB SFR", "MB SFR-R")
            for learned in ("SF-4", "SF-8", "CSFR-4")
            for finding in _above(BARRETO, agent, learned)
        ),
    ),
    "results/barreto-sf-beats-q": _all(
        *(finding for agent in paper.BARRETO.ahead_of("Q") for finding in _above(BARRETO, agent, "Q"))
    ),
    "results/single-task": _all(*_above(SINGLE_LINEAR, "SFR", "SF"), *_above(SINGLE_GENERAL, "SFR", "SF")),
    "results/easier-approximation": _cause,
    "results/p-values": _all_p_values,
    "results/interactions-kernel-above-csfr": _all(
        partial(_kernel_over_csfr, kind="parity", low=1.08, high=math.inf),
        partial(above, place=Place(INTERACTIONS, "mixed"), first=KERNEL, second=SAME_NETWORK, paired=True),
    ),
    "results/additive-no-loss": _all(partial(_kernel_over_csfr, kind="additive", low=0.97, high=1.03)),
}
"""Claim id -> what decides it."""


def in_all_worlds(result: CheckResult, found: Sequence[Specification]) -> CheckResult:
    """A verdict with what the multiverse adds to it; `found` are the claim's statements there."""
    if not found or result.verdict is NOT_CHECKED:
        return result
    depends = any(specification.holding and specification.failing for specification in found)
    verdict = Verdict.NEEDS_ASSUMPTION if depends else result.verdict
    words = "; ".join(sentence("worlds", found=specification) for specification in found)
    scope = _scope(specification.run for specification in found)
    return CheckResult(verdict, f"{result.evidence}; {words}", f"{result.scope}; {scope}", result.details)


def check(results: Results) -> list[Outcome]:
    """Every empirical claim of the catalogue with its verdict."""
    worlds = specifications(results.by_name.values())
    decided = {
        claim: in_all_worlds(CHECKS[claim.id](results), [s for s in worlds if s.statement.claim == claim.id])
        for claim in EXPERIMENTS.claims
    }
    return [Outcome(claim, result, Method.RESULTS) for claim, result in decided.items()]


def decide(folder: Path) -> dict[str, CheckResult]:
    """The verdicts that the published tables of a folder give; none if it has none."""
    found = [load.load(path) for path in load.published(folder)]
    return {o.claim.id: o.result for o in check(Results(found))} if found else {}


@dataclass(frozen=True)
class Options:
    results: str = "results"
    """Folder with published tables or runs."""
    json: str | None = None
    """Write verdicts, evidence and every comparison as JSON to this file; - is standard output."""


def to_json(outcomes: Iterable[Outcome]) -> dict[str, dict[str, Any]]:
    return {outcome.claim.id: outcome.to_json() for outcome in outcomes}


def main(options: Options) -> int:
    cli.require_writable(options.json)
    console = cli.output_console(options.json)
    found, unreadable = load.load_all(load.existing(Path(options.results)))
    for line in unreadable:
        console.print(f"note: {line}", soft_wrap=True, markup=False)
    outcomes = check(Results(found))
    console.print(outcome_table("The paper's empirical claims", outcomes))
    if options.json:
        cli.write_json({"claims": to_json(outcomes)}, options.json)
    return 0 if all(outcome.as_expected for outcome in outcomes) else cli.EXIT_UNEXPECTED


if __name__ == "__main__":
    cli.run(main, Options, "experiments.analysis.claims", __doc__ or "")
