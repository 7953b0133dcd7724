"""Runs as figures, tables and claims see them: read from disk, checked, grouped by setting and agent.

    find(results)   every run below a folder: published tables, NAME.json next to NAME.csv, and folders of
                    trials, NAME/PROFILE with a manifest.json
    load(path)      its usable trials, and sentences about the others

A trial is used if its checksums match, if it is what the manifest says it is (setting, agent, rates,
repetition, seed, size: a label swapped in a result file is noticed even under a fresh checksum), if it has
all its tasks, and if it did not diverge. What is left out is said: `problems` are contradictions in the
files, `notes` are repetitions that are missing or diverged, and `not_run` are agents that nobody has started,
which is not an error. An agent that was tried with several rates is shown at the best ones, by mean total
return as in the paper.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfr_fa.arrays import FloatArray
from sfr_fa.runs import publish, store
from sfr_fa.runs.publish import TrialRecord
from sfr_fa.runs.store import GridPoint, canonical_json, digest, planned_combinations
from sfr_fa.runs.wording import rate_text
from sfr_theory.errors import InputError
from sfr_theory.reading import input_errors, known_content


@dataclass(frozen=True)
class AgentRun:
    """One agent, at one combination of rates, in one setting: its usable trials by repetition."""

    setting: str
    label: str
    kind: str
    rates: Mapping[str, float | str]
    trials: Mapping[int, TrialRecord]
    clips: bool = True
    """Whether its values are clipped where they cannot be negative; an ablation compares."""
    initial_weights: str = "paper"
    own_family: str = ""
    """Of an agent of the user's own, as its run has said."""

    @property
    def repetitions(self) -> tuple[int, ...]:
        return tuple(self.trials)

    @property
    def totals(self) -> FloatArray:
        """Return over all tasks, one number per repetition."""
        return self.totals_of(self.repetitions)

    def totals_of(self, repetitions: Sequence[int]) -> FloatArray:
        return np.array([self.trials[repetition].total_return for repetition in repetitions])

    @property
    def returns(self) -> FloatArray:
        """(repetitions, tasks)"""
        return np.array([trial.returns for trial in self.trials.values()])

    @property
    def seconds(self) -> FloatArray:
        """Time of learning, one number per repetition."""
        return np.array([trial.seconds for trial in self.trials.values()])


@dataclass(frozen=True)
class Run:
    """A run: what it was meant to be, what there is of it, and what is wrong with it."""

    path: Path
    config: Mapping[str, Any]
    provenance: Mapping[str, Any]
    """Where it was started."""
    agents: Mapping[tuple[str, str], AgentRun]
    """(setting, label) -> the agent at its best rates, if it has at least one usable trial."""
    grid: tuple[GridPoint, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    not_run: str = ""
    """One sentence about the agents that have no trial at all; empty if each has one."""

    @property
    def trials(self) -> tuple[TrialRecord, ...]:
        """All that figures and tables show."""
        return tuple(trial for agent in self.agents.values() for trial in agent.trials.values())

    @property
    def commits(self) -> str:
        """Where its trials were finished, each commit once; a run may be continued by a later one."""
        found = {str(trial.provenance.get("commit") or "unknown")[:10] for trial in self.trials}
        return ", ".join(sorted(found)) or "unknown"

    @property
    def fingerprint(self) -> str:
        """A digest of the results that are shown."""
        return digest(sorted((trial.key, trial.csv_sha256) for trial in self.trials))

    @property
    def name(self) -> str:
        return str(self.config["name"])

    @property
    def profile(self) -> str:
        return str(self.config["profile"])

    @property
    def repetitions(self) -> int:
        """How many were planned."""
        return int(self.config["size"]["repetitions"])

    @property
    def tasks(self) -> int:
        return int(self.config["size"]["tasks"])

    @property
    def steps(self) -> int:
        return int(self.config["size"]["steps"])

    @property
    def settings(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(part["setting"]["name"] for part in self.config["parts"]))

    def environment(self, setting: str) -> str:
        """The environment of a setting, by name."""
        parts = (part["setting"] for part in self.config["parts"])
        return str(next(s["environment"] for s in parts if s["name"] == setting))

    def in_setting(self, setting: str) -> list[AgentRun]:
        """Its agents in the order of the config."""
        return [agent for (place, _), agent in self.agents.items() if place == setting]

    @property
    def is_grid(self) -> bool:
        """Whether some agent was tried with several rates."""
        return any(number > 1 for number in planned_combinations(self.config).values())

    @property
    def title(self) -> str:
        return f"{self.config['title']}, profile {self.profile}"

    @property
    def remarks(self) -> tuple[str, ...]:
        """All that there is to say about what is wrong or missing."""
        return (*self.problems, *self.notes, *filter(None, (self.not_run,)))

    @property
    def size(self) -> str:
        return f"{self.tasks:,} tasks x {self.steps:,} steps x {self.repetitions} repetitions"


def existing(folder: Path) -> Path:
    """A folder of results that a command was given."""
    with input_errors(folder):
        is_there = folder.is_dir()
    if not is_there:
        raise InputError(f"there is no folder {folder}; start a run to create it, or name another folder")
    return folder


def published(folder: Path) -> list[Path]:
    """The tables in a folder, without their ending, sorted."""
    tables = {path.stem for path in folder.glob("*.csv")}
    return sorted(folder / path.stem for path in folder.glob("*.json") if path.stem in tables)


def find(folder: Path) -> list[Path]:
    """Published tables, then folders of trials, each sorted."""
    return [*published(folder), *sorted(path.parent for path in folder.rglob("manifest.json"))]


def named(arguments: Iterable[str]) -> list[Path]:
    """The runs that a command was given: published tables, folders of runs, or folders that hold some."""
    found: list[Path] = []
    for argument in arguments:
        path = Path(argument)
        here = [path.with_suffix("")] if path.suffix in (".csv", ".json") else find(existing(path))
        if not here:
            raise InputError(f"{argument} holds no runs; `python -m sfr_fa.run` makes them")
        found += here
    return found


def load(path: Path) -> Run:
    """Read and check one run."""
    is_folder = (path / "manifest.json").is_file()
    finished = publish.from_folder(path) if is_folder else publish.read(path)
    with known_content(path, "a run"):
        found = _run(path, finished)
        # All that it will be asked for.
        _ = (found.size, found.title, found.is_grid, found.commits, found.fingerprint, found.provenance.get)
        for setting in found.settings:
            found.environment(setting)
        return found


def _run(path: Path, finished: publish.Finished) -> Run:
    records, config = finished.records.values(), finished.config
    notes = [
        f"{record.key} diverged in task {len(record.returns) - 1}; it is left out"
        for record in records
        if record.diverged
    ]
    notes += _changed_modules(records)
    lost, absent = _missing(config, records)
    points = store.grid_points(
        list(records), store.planned_combinations(config), config["size"]["repetitions"], finished.races
    )
    agents, unfinished = _at_best_rates(config, points)
    return Run(
        path,
        config,
        finished.provenance,
        agents,
        points,
        finished.problems,
        (*notes, *lost, *unfinished),
        absent,
    )


def _changed_modules(records: Collection[TrialRecord]) -> list[str]:
    """Sentences about code of the user's that has changed between trials."""
    versions: dict[str, set[str]] = {}
    for record in records:
        for name, source in (record.provenance.get("modules") or {}).items():
            versions.setdefault(name, set()).add(source)
    return [
        f"{name} was changed between trials: {len(found)} versions of it are mixed here"
        for name, found in sorted(versions.items())
        if len(found) > 1
    ]


def load_all(folder: Path) -> tuple[list[Run], list[str]]:
    """Every run below a folder, and a sentence for each that cannot be read."""
    return each(find(folder))


def each(paths: Iterable[Path]) -> tuple[list[Run], list[str]]:
    """The runs at some places, and a sentence for each that cannot be read."""
    found, unreadable = [], []
    for path in paths:
        try:
            found.append(load(path))
        except InputError as error:
            unreadable.append(str(error))
    return found, unreadable


def _missing(config: Mapping[str, Any], records: Collection[TrialRecord]) -> tuple[list[str], str]:
    """Sentences about agents that lack repetitions, alike ones together, and one about those not run."""
    there = {
        (record.trial["setting"]["name"], canonical_json(record.trial["agent"]), record.trial["repetition"])
        for record in records
    }
    begun = {(record.trial["setting"]["name"], record.trial["agent"]["label"]) for record in records}
    every = range(config["size"]["repetitions"])
    lacking: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    absent: dict[str, list[str]] = {}
    for part in config["parts"]:
        setting, labels = part["setting"]["name"], [agent["label"] for agent in part["agents"]]
        for agent in part["agents"]:
            name = agent["label"]
            if labels.count(name) > 1 and (setting, name) in begun:
                name += f" (rate {rate_text(agent['learning_rate'])})"
            lost = tuple(k for k in every if (setting, canonical_json(agent), k) not in there)
            if len(lost) == len(every):
                absent.setdefault(setting, []).append(name)
            elif lost:
                lacking.setdefault((setting, lost), []).append(name)
    sentences = [
        f"{setting}: {_listed(names)} {'has' if len(names) == 1 else 'have'} {len(every) - len(lost)} of "
        f"{len(every)} repetitions; missing: {_listed(lost)}"
        for (setting, lost), names in lacking.items()
    ]
    return sentences, _not_run(absent, len(config["parts"]))


def _listed(items: Iterable[Any]) -> str:
    return ", ".join(map(str, items))


def _not_run(absent: Mapping[str, Sequence[str]], settings: int) -> str:
    """Not run: SF-R, SF-4 (linear); SF-R (general). Agents of several rates are named once."""
    where: dict[str, list[str]] = {}
    for setting, names in absent.items():
        where.setdefault(_listed(dict.fromkeys(names)), []).append(setting)
    groups = (
        names + ("" if len(places) == settings else f" ({_listed(places)})")
        for names, places in where.items()
    )
    return f"Not run: {'; '.join(groups)}." if where else ""


def _at_best_rates(
    config: Mapping[str, Any], points: Sequence[GridPoint]
) -> tuple[dict[tuple[str, str], AgentRun], list[str]]:
    """Each agent at the rates with the highest mean total return, in the order of the config."""
    chosen, remarks = {}, []
    for place, planned in store.planned_combinations(config).items():
        here = [point for point in points if (point.setting, point.agent) == place]
        best = next((_agent_run(point) for point in here if point.best), None)
        tried = [run for run in map(_agent_run, here) if run.trials]
        if best is None and tried:
            # Not every combination has the same repetitions yet: those that all have decide.
            common = sorted(set.intersection(*(set(run.trials) for run in tried)))
            best = max(tried, key=lambda run: float(np.mean(run.totals_of(common or run.repetitions))))
            if planned > 1:
                remarks.append(
                    f"{place[0]}: the rates of {place[1]} are the best so far, the grid is unfinished"
                )
        if best is not None:
            chosen[place] = best
    return chosen, remarks


def _agent_run(point: GridPoint) -> AgentRun:
    """The trials of one combination of rates that can be used."""
    trial = point.results[0].trial
    agent = trial["agent"]
    usable = [result for result in point.results if not result.diverged]
    return AgentRun(
        point.setting,
        point.agent,
        agent["agent"],
        trial["rates"],
        {r.trial["repetition"]: r for r in sorted(usable, key=lambda r: int(r.trial["repetition"]))},
        clips=agent.get("clipping") != "none",
        own_family=agent.get("family", ""),
        initial_weights=agent.get("initial_weights", "paper"),
    )
