"""What a run says, as numbers: means, intervals, tests, ratios, and who is ahead.

From runs (`sfr_fa.runs.load`) to dataclasses, which tables, figures and pages start from. Nothing is put into
words here, and nothing is drawn. `experiments.analysis.compare` adds what the paper prints.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from sfr_fa import statistics
from sfr_fa.arrays import FloatArray
from sfr_fa.runs.load import AgentRun, Run
from sfr_fa.statistics import Comparison, Interval, Summary

SIGNIFICANT = 0.05
ABSENT = Interval(math.nan, math.nan, math.nan, 0)
REFERENCES = ("SFR", "CSFR")
"""The agents that this library is about: the others are compared with the first of them."""


def per_task(run: Run | None, setting: str, label: str) -> Summary | None:
    """Mean return per task; nothing if the agent was not run."""
    agent = agent_in(run, setting, label)
    return statistics.summary(agent.totals / run.tasks) if run and agent else None


@dataclass(frozen=True)
class Versus:
    """Two agents of a setting, by their returns over all tasks or some of them."""

    setting: str
    first: str
    second: str
    means: tuple[float, float]
    test: Comparison
    """Mann-Whitney's U, as in the paper: it takes repetitions for independent."""
    paired: tuple[FloatArray, FloatArray] = (np.empty(0), np.empty(0))
    """The returns of the repetitions that both have."""

    @cached_property
    def paired_p(self) -> float:
        """Wilcoxon's signed ranks: repetitions share tasks and noise."""
        return statistics.paired_p_value(*self.paired)

    @property
    def ahead(self) -> str:
        """The agent with the higher mean; empty if the means are equal."""
        difference = self.test.difference
        return self.first if difference > 0 else self.second if difference < 0 else ""

    @property
    def is_significant(self) -> bool:
        return self.test.asymptotic_p < SIGNIFICANT

    @property
    def can_be_significant(self) -> bool:
        """Whether samples of these sizes can differ significantly at all."""
        return statistics.smallest_p_value(*self.repetitions) < SIGNIFICANT

    @property
    def repetitions(self) -> tuple[int, int]:
        return self.test.first_repetitions, self.test.second_repetitions


def agent_in(run: Run | None, setting: str, label: str) -> AgentRun | None:
    return run.agents.get((setting, label)) if run else None


def versus(
    run: Run | None, setting: str, first: str, second: str, tasks: slice = slice(None)
) -> Versus | None:
    """One agent against another; nothing if one of them was not run."""
    x, y = (agent_in(run, setting, label) for label in (first, second))
    if x is None or y is None:
        return None
    # Totals are sums as the run adds them up, to the last digit.
    a, b = (z.totals if tasks == slice(None) else z.returns[:, tasks].sum(axis=1) for z in (x, y))
    common = sorted(set(x.trials) & set(y.trials))
    places = ([z.repetitions.index(k) for k in common] for z in (x, y))
    paired = a[next(places)], b[next(places)]
    means = float(a.mean()), float(b.mean())
    return Versus(setting, first, second, means, statistics.compare(a, b), paired)


def ratio(run: Run | None, setting: str, agent: str, reference: str) -> Interval:
    """Total return of one agent over that of another, in the repetitions that both have."""
    x, y = (agent_in(run, setting, label) for label in (agent, reference))
    if x is None or y is None:
        return ABSENT
    common = sorted(set(x.trials) & set(y.trials))
    return statistics.ratio_of_means(x.totals_of(common), y.totals_of(common))


def reference_agent(run: Run, setting: str) -> str | None:
    """The first agent with xi (SFR, or CSFR where features are continuous); else the first of all."""
    agents = run.in_setting(setting)
    known = (agent.label for kind in REFERENCES for agent in agents if agent.kind == kind)
    return next(known, agents[0].label if agents else None)


def effects(run: Run, setting: str) -> list[tuple[Versus, Interval]]:
    """Every other agent against the reference, with the size of the difference, a ratio of returns."""
    reference = reference_agent(run, setting)
    found = []
    for agent in run.in_setting(setting):
        compared = versus(run, setting, agent.label, reference) if reference else None
        if reference and compared and agent.label != reference:
            found.append((compared, ratio(run, setting, agent.label, reference)))
    return found


# --- Time and rates ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Time:
    """Seconds of an agent's repetitions."""

    experiment: str
    setting: str
    agent: str
    seconds: FloatArray

    @property
    def median(self) -> float:
        return float(np.median(self.seconds))


def times(*runs: Run) -> list[Time]:
    return [
        Time(run.name, setting, label, agent.seconds)
        for run in runs
        for (setting, label), agent in run.agents.items()
    ]


@dataclass(frozen=True)
class BestRates:
    """What a grid found for an agent; while it is unfinished, the best so far and no second."""

    agent: AgentRun
    is_finished: bool
    rates: Mapping[str, float | str]
    mean: float
    second: float
    combinations: int
    diverged: int
    trials: int
    """How many of all combinations were run; a race runs fewer than the whole grid."""
    seconds: float
    whole_grid_seconds: float
    """What all repetitions of all combinations would take."""


def best_rates(run: Run) -> list[BestRates]:
    rows = []
    for place, agent in run.agents.items():
        points = [point for point in run.grid if (point.setting, point.agent) == place]
        best = next((point for point in points if point.best), None)
        # Those that a race has dropped met fewer repetitions: their means say little beside the best.
        others = [p.mean_total_return for p in points if p is not best and p.dropped is None]
        rows.append(
            BestRates(
                agent,
                best is not None,
                agent.rates,
                float(agent.totals.mean()),
                max(others) if best and others else math.nan,
                len(points),
                sum(point.diverged for point in points),
                sum(point.repetitions for point in points),
                sum(point.seconds for point in points),
                sum(point.seconds / point.repetitions for point in points) * run.repetitions,
            )
        )
    return rows
