"""What results say, compared with what the paper prints, as numbers.

`sfr_fa.analysis.compare` has what is true of any experiment, and its names are names of this module too; here
are the paper's settings, its tables (`sfr_theory.paper`) and the experiments about its claims. Tables, pages,
figures and claims start from these dataclasses. Nothing is put into words here, and nothing is drawn.

A pair agrees with the paper if both p-values lie on the same side of 0.05 and, where both are significant and
the text says who is ahead, the same agent is ahead. Whether a difference can become significant at all
depends on the number of repetitions; where it cannot, no agreement is stated.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from experiments.analysis.multiverse import specifications  # noqa: F401 (a name of this module, too)
from sfr_fa.analysis import compare as general
from sfr_fa.analysis.compare import (  # noqa: F401 (names of this module, too)
    ABSENT,
    SIGNIFICANT,
    BestRates,
    Versus,
    agent_in,
    best_rates,
    effects,
    per_task,
    ratio,
    reference_agent,
    statistics,
    versus,
)
from sfr_fa.arrays import FloatArray
from sfr_fa.runs.load import Run
from sfr_fa.runs.store import GridPoint, returns_by_repetition
from sfr_fa.statistics import Interval, Summary
from sfr_theory import paper


@dataclass(frozen=True)
class Place:
    """A setting of one of our experiments."""

    experiment: str
    setting: str


LINEAR = Place("object_collection_linear", "linear")
GENERAL = Place("object_collection_general", "general")
BARRETO = Place("barreto", "barreto")
RACER = Place("racer", "racer")
PRINTED: Mapping[Place, paper.Table] = {
    BARRETO: paper.BARRETO,
    LINEAR: paper.LINEAR,
    GENERAL: paper.GENERAL,
    RACER: paper.RACER,
    Place("grid_object_collection", "linear"): paper.LINEAR,
    Place("grid_object_collection", "general"): paper.GENERAL,
    Place("grid_racer", "racer"): paper.RACER,
}
"""Where the paper prints p-values."""
MAIN_PLACES = (BARRETO, LINEAR, GENERAL, RACER)
"""One for each printed table."""
PRINTED_PAIRS = sum(len(list(table.cells())) for table in paper.TABLES)


# --- Printed pairs -----------------------------------------------------------------------------------


class Agreement(enum.StrEnum):
    AGREES = "agrees"
    SIGNIFICANCE = "significance differs"
    ORDER = "the other agent is ahead"
    TOO_FEW = "too few repetitions"
    NOT_RUN = "not run"


@dataclass(frozen=True)
class Pair:
    """Two agents of a printed table, with our test of them."""

    table: paper.Table
    first: str
    second: str
    printed: str
    versus: Versus | None

    @property
    def names(self) -> frozenset[str]:
        return frozenset((self.first, self.second))

    @property
    def ahead(self) -> str:
        """Who the text says is ahead; empty if it does not."""
        return self.table.said_ahead(self.first, self.second)

    @cached_property
    def agreement(self) -> Agreement:
        """Whether our test says what the paper says."""
        found = self.versus
        if found is None:
            return Agreement.NOT_RUN
        if not found.can_be_significant:
            return Agreement.TOO_FEW
        if paper.is_significant(self.printed) != found.is_significant:
            return Agreement.SIGNIFICANCE
        if found.is_significant and self.ahead and self.ahead != found.ahead:
            return Agreement.ORDER
        return Agreement.AGREES


def pairs(run: Run, setting: str) -> list[Pair]:
    """Every pair of the printed table of a setting; nothing if the paper prints none."""
    table = PRINTED.get(Place(run.name, setting))
    if table is None:
        return []
    return [
        Pair(table, first, second, printed, versus(run, setting, first, second))
        for first, second, printed in table.cells()
    ]


# --- Levels of non-linearity -------------------------------------------------------------------------


def level_settings(run: Run) -> tuple[str, ...]:
    """The settings that are levels of non-linearity, in order; none if the run is about something else."""
    tasks = {str(part["setting"]["tasks"]): part["setting"]["name"] for part in run.config["parts"]}
    names = [tasks.get(f"nonlinearity_{level}") for level in range(len(paper.LEVELS))]
    return tuple(name for name in names if name is not None) if None not in names else ()


@dataclass(frozen=True)
class Level:
    """SF and Q relative to SFR at one level of non-linearity."""

    error: float
    setting: str
    means: Mapping[str, float]
    """Total return of SFR, SF and Q; NaN if one was not run."""
    ratios: Mapping[str, Interval]
    """Of SF and Q to SFR."""


def levels(run: Run) -> list[Level]:
    return [
        Level(
            error,
            setting,
            {
                label: float(agent.totals.mean()) if (agent := agent_in(run, setting, label)) else math.nan
                for label in ("SFR", "SF", "Q")
            },
            {label: ratio(run, setting, label, "SFR") for label in ("SF", "Q")},
        )
        for error, setting in zip(paper.LEVELS, level_settings(run), strict=False)
    ]


# --- Ablation, time and rates ------------------------------------------------------------------------

VARIANTS = ("SF", "SF with clipping", "SFR", "SFR without clipping")
INITIAL = ("paper", "matched", "zero")


def ablation(run: Run, setting: str) -> dict[str, dict[str, Summary | None]]:
    """Return per task of SF and SFR, with and without clipping, from each kind of initial weights."""
    return {
        variant: {weights: per_task(run, setting, f"{variant}, {weights} weights") for weights in INITIAL}
        for variant in VARIANTS
    }


def whole_ablation(run: Run, setting: str) -> dict[str, dict[str, Summary | None]] | None:
    """The same if every variant was run from the paper's weights."""
    found = ablation(run, setting)
    return found if all(row["paper"] for row in found.values()) else None


@dataclass(frozen=True)
class Raced:
    """An agent at the rates that won a race, beside the middle of the grid."""

    agent: str
    middle: Mapping[str, float | str]
    winner: Mapping[str, float | str]
    ratio: Interval
    """Total return at the winner's rates over that in the middle, in the repetitions that both have."""


def raced(run: Run, setting: str) -> list[Raced]:
    """Of agents that a config has at two combinations of rates: the first is the middle of the grid."""
    points: dict[str, list[GridPoint]] = {}
    for part in run.config["parts"]:
        for agent in part["agents"] if part["setting"]["name"] == setting else ():
            points.setdefault(agent["label"], []).extend(
                point
                for point in run.grid
                if (point.setting, point.agent) == (setting, agent["label"])
                and all(agent[name] == rate for name, rate in point.rates.items())
            )
    rows = []
    for label, combinations in points.items():
        if len(combinations) == 2:
            middle, winner = (returns_by_repetition(point.results) for point in combinations)
            common = sorted(set(middle) & set(winner))
            both = (np.array([returns[r] for r in common]) for returns in (winner, middle))
            ratio_of_both = general.statistics.ratio_of_means(*both)
            rows.append(Raced(label, combinations[0].rates, combinations[1].rates, ratio_of_both))
    return rows


@dataclass(frozen=True)
class TimeBesidePaper(general.Time):
    """With the paper's hours; the setting is empty if it is over all levels of non-linearity."""

    hours: float | None
    """As printed for one repetition."""
    source: str
    """Where they are printed."""
    same_size: bool
    """Whether they are of as many tasks and steps."""

    @property
    def times_faster(self) -> float | None:
        comparable = self.hours is not None and self.same_size and self.median > 0
        return 3600 * self.hours / self.median if comparable and self.hours else None


def times(*runs: Run) -> list[TimeBesidePaper]:
    rows = []
    for run in runs:
        found: dict[tuple[str, str], list[FloatArray]] = {}
        for (setting, label), agent in run.agents.items():
            found.setdefault(("" if level_settings(run) else setting, label), []).append(agent.seconds)
        for (setting, label), seconds in found.items():
            table = PRINTED.get(Place(run.name, setting))
            hours, source = (table.hours.get(label), table.hours_source) if table else (None, "")
            same_size = table is not None and (table.tasks, table.steps) == (run.tasks, run.steps)
            rows.append(
                TimeBesidePaper(run.name, setting, label, np.concatenate(seconds), hours, source, same_size)
            )
    return rows


# --- All runs ----------------------------------------------------------------------------------------


class Results:
    """The largest run of each experiment."""

    def __init__(self, found: Iterable[Run]) -> None:
        self.by_name: dict[str, Run] = {}
        for run in found:
            known = self.by_name.get(run.name)
            if known is None or _extent(run) > _extent(known):
                self.by_name[run.name] = run

    def run(self, experiment: str) -> Run | None:
        return self.by_name.get(experiment)

    def at(self, *places: Place) -> tuple[Run, ...]:
        """The runs of some places."""
        return tuple(run for place in places if (run := self.run(place.experiment)) is not None)

    def versus(self, place: Place, first: str, second: str, tasks: slice = slice(None)) -> Versus | None:
        return versus(self.run(place.experiment), place.setting, first, second, tasks)

    def ratio(self, place: Place, agent: str, reference: str) -> Interval:
        return ratio(self.run(place.experiment), place.setting, agent, reference)

    def pairs(self) -> Iterator[tuple[Run, Pair]]:
        """Every printed pair of the experiments that were run."""
        for place in MAIN_PLACES:
            if (run := self.run(place.experiment)) is not None:
                yield from ((run, pair) for pair in pairs(run, place.setting))


def _extent(run: Run) -> tuple[int, int]:
    """How much was planned, then how much of it is there."""
    return run.tasks * run.steps * run.repetitions, len(run.trials)


@dataclass(frozen=True)
class Overview:
    """The main result in one of the paper's settings."""

    title: str
    agent: str
    """That the paper is about."""
    repetitions: tuple[int, int]
    """The fewest and the most."""
    per_task: Mapping[str, Summary | None]
    ratio: Interval
    """SF to that agent."""
    versus: Versus | None
    printed: str

    @property
    def is_ahead(self) -> bool:
        """Whether that agent has the higher mean."""
        return self.versus is not None and self.versus.means[1] > self.versus.means[0]


def overview(results: Results) -> list[Overview]:
    """One for each of the paper's settings that was run."""
    rows = []
    for place, title, agent in (
        (LINEAR, "object collection, linear rewards", "SFR"),
        (GENERAL, "object collection, general rewards", "SFR"),
        (BARRETO, "Barreto's task, linear rewards", "SFR"),
        (RACER, "racer (SFR is CSFR)", "CSFR"),
    ):
        run = results.run(place.experiment)
        means = {label: per_task(run, place.setting, label) for label in ("Q", "SF", agent, "MB SFR")}
        counts = [mean.repetitions for mean in means.values() if mean]
        if counts:
            ratio, found = results.ratio(place, "SF", agent), results.versus(place, "SF", agent)
            printed = PRINTED[place].printed("SF", agent)
            rows.append(Overview(title, agent, (min(counts), max(counts)), means, ratio, found, printed))
    return rows
