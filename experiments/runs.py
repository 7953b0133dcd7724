"""Runs as figures, tables and claims see them: read from disk, checked, grouped by setting and agent.

    find(results)   every run below a folder: RESULTS/NAME/PROFILE with a manifest.json
    load(folder)    its usable trials, and sentences about the others

A trial is used if its checksums match, if it is what the manifest says it is (setting, agent, rates,
repetition, seed, size: a label swapped in a result file is noticed even under a fresh checksum), if it has
all its tasks, and if it did not diverge. What is left out is said: `problems` are contradictions in the
files, `notes` are repetitions that are missing or diverged, and `not_run` are agents that nobody has started,
which is no fault. An agent that was tried with several rates is shown at the best, by mean total return as in
the paper.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from sfr_fa import results
from sfr_fa.results import GridPoint, TrialResult, canonical_json, first_difference
from sfr_fa.statistics import FloatArray
from sfr_theory.errors import InputError

CHECKED = ("setting", "agent", "repetition", "seed", "tasks", "steps", "engine")
"""Entries of a trial that follow from the manifest."""


@dataclass(frozen=True)
class AgentRun:
    """One agent, at one combination of rates, in one setting: its usable trials by repetition."""

    setting: str
    label: str
    kind: str
    rates: Mapping[str, float]
    trials: Mapping[int, TrialResult]
    clips: bool = True
    """Whether its values are clipped where they cannot be negative; an ablation compares."""

    @property
    def repetitions(self) -> tuple[int, ...]:
        return tuple(self.trials)

    @property
    def totals(self) -> FloatArray:
        """Return over all tasks, one number a repetition."""
        return self.totals_of(self.repetitions)

    def totals_of(self, repetitions: Sequence[int]) -> FloatArray:
        return np.array([self.trials[repetition].total_return for repetition in repetitions])

    @property
    def returns(self) -> FloatArray:
        """(repetitions, tasks)"""
        return np.array([[row.total_return for row in trial.rows] for trial in self.trials.values()])

    @property
    def seconds(self) -> FloatArray:
        """Time of learning, one number a repetition."""
        return np.array([sum(trial.seconds) for trial in self.trials.values()])


@dataclass(frozen=True)
class Run:
    """A run: what it was meant to be, what there is of it, and what is wrong with it."""

    path: Path
    manifest: Mapping[str, Any]
    agents: Mapping[tuple[str, str], AgentRun]
    """(setting, label) -> the agent at its best rates, if it has at least one usable trial."""
    grid: tuple[GridPoint, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...]
    not_run: str = ""
    """One sentence about the agents that have no trial at all; empty if each has one."""

    @property
    def commits(self) -> str:
        """Where its trials were finished, each commit once; a run may be continued by a later one."""
        trials = (trial for agent in self.agents.values() for trial in agent.trials.values())
        found = {str(trial.provenance.get("commit") or "unknown")[:10] for trial in trials}
        return ", ".join(sorted(found)) or "unknown"

    @property
    def config(self) -> Mapping[str, Any]:
        config: Mapping[str, Any] = self.manifest["config"]
        return config

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
        return any(
            len({agent["label"] for agent in part["agents"]}) < len(part["agents"])
            for part in self.config["parts"]
        )

    @property
    def size(self) -> str:
        return f"{self.tasks:,} tasks x {self.steps:,} steps x {self.repetitions} repetitions"


def existing(folder: Path) -> Path:
    """A folder of results that a command was given."""
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; experiments.run makes one, or name another")
    return folder


def find(folder: Path) -> list[Path]:
    """The folders of runs, sorted."""
    return sorted(path.parent for path in folder.rglob("manifest.json"))


def load(folder: Path) -> Run:
    """Read and check one run."""
    try:
        return _load(folder)
    except InputError:
        raise
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        # Signed, but not with what a run writes: there is no telling what a foreign file lacks.
        raise InputError(
            f"{folder} is not what experiments.run writes: {type(error).__name__}: {error}"
        ) from error


def _load(folder: Path) -> Run:
    read = results.read_run(folder)
    problems = list(read.problems)
    problems += _undeclared(folder, read.manifest)
    usable: list[TrialResult] = []
    diverged: list[TrialResult] = []
    notes: list[str] = []
    expected = _expected(read.manifest["config"])
    if len(expected) != len(read.manifest["trials"]):
        problems.append(
            f"the manifest of {folder} lists {len(read.manifest['trials'])} trials; its config has "
            f"{len(expected)}"
        )
        expected = []
    for key, trial in zip(read.manifest["trials"], expected, strict=False):
        result = read.trials.get(key)
        if result is None:
            continue
        problem = _difference(trial, result)
        if problem:
            problems.append(f"{folder / key} {problem}; it is left out")
        elif result.diverged:
            diverged.append(result)
            notes.append(f"{key} diverged in task {result.rows[-1].task}; it is left out")
        else:
            usable.append(result)
    lost, absent = _missing(read.manifest["config"], read.trials)
    notes += lost
    place = (read.manifest["config"]["name"], read.manifest["config"]["profile"])
    if (folder.resolve().parent.name, folder.resolve().name) != place:
        notes.append(f"the manifest is of {'/'.join(place)}, the folder is {folder}")
    points = results.grid([*usable, *diverged], results.planned_combinations(read.manifest["config"]))
    agents, remarks = _at_best_rates(read.manifest["config"], usable, points)
    return Run(folder, read.manifest, agents, points, tuple(problems), (*notes, *remarks), absent)


def load_all(folder: Path) -> tuple[list[Run], list[str]]:
    """Every run below a folder, and a sentence for each whose manifest cannot be read."""
    found, unreadable = [], []
    for path in find(folder):
        try:
            found.append(load(path))
        except InputError as error:
            unreadable.append(str(error))
    return found, unreadable


def _expected(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """What each trial of the manifest must be, in its order: one repetition after the other."""
    return [
        {
            "setting": part["setting"],
            "agent": agent,
            "repetition": repetition,
            "seed": config["seed"],
            "tasks": config["size"]["tasks"],
            "steps": config["size"]["steps"],
            "engine": config["engine"],
        }
        for repetition in range(config["size"]["repetitions"])
        for part in config["parts"]
        for agent in part["agents"]
    ]


def _difference(expected: Mapping[str, Any], result: TrialResult) -> str:
    """Why a result is not of the trial that the manifest names; empty if it is."""
    difference = first_difference(dict(expected), {name: result.trial.get(name) for name in CHECKED})
    if difference:
        return f"is not what the manifest says: {difference}"
    if result.diverged:
        return ""
    if [row.task for row in result.rows] != list(range(expected["tasks"])):
        return f"has {len(result.rows)} of {expected['tasks']} tasks, or not in order"
    if any(row.steps != expected["steps"] for row in result.rows):
        return f"has a task that was not learned for {expected['steps']} steps"
    if not all(np.isfinite(row.total_return) for row in result.rows):
        return "has a return that is not finite"
    return ""


def _undeclared(folder: Path, manifest: Mapping[str, Any]) -> Iterator[str]:
    """Results that the manifest does not name."""
    known = {f"{key}.csv" for key in manifest["trials"]} | {"grid.csv"}
    for path in sorted(folder.rglob("*.csv")):
        if str(path.relative_to(folder)) not in known:
            yield f"{path} is not named in the manifest; it is left out"


def _missing(config: Mapping[str, Any], trials: Mapping[str, TrialResult]) -> tuple[list[str], str]:
    """Sentences about agents that lack repetitions, alike ones together, and one about those not run."""
    there = {
        (result.trial["setting"]["name"], canonical_json(result.trial["agent"]), result.trial["repetition"])
        for result in trials.values()
    }
    every = range(config["size"]["repetitions"])
    lacking: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    absent: dict[str, list[str]] = {}
    for part in config["parts"]:
        setting, labels = part["setting"]["name"], [agent["label"] for agent in part["agents"]]
        for agent in part["agents"]:
            name = agent["label"]
            if labels.count(name) > 1:
                name += f" (rate {agent['learning_rate']:g})"
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


def _listed(items: Sequence[Any]) -> str:
    return ", ".join(map(str, items))


def _not_run(absent: Mapping[str, Sequence[str]], settings: int) -> str:
    """Not run: SF-R, SF-4 (linear); SF-R (general)."""
    where: dict[str, list[str]] = {}
    for setting, names in absent.items():
        where.setdefault(_listed(names), []).append(setting)
    groups = (
        names + ("" if len(places) == settings else f" ({_listed(places)})")
        for names, places in where.items()
    )
    return f"Not run: {'; '.join(groups)}." if where else ""


def _at_best_rates(
    config: Mapping[str, Any], usable: Sequence[TrialResult], points: Sequence[GridPoint]
) -> tuple[dict[tuple[str, str], AgentRun], list[str]]:
    """Each agent at the rates with the highest mean total return, in the order of the config."""
    groups: dict[tuple[str, str], dict[str, AgentRun]] = {}
    for result in sorted(usable, key=lambda result: int(result.trial["repetition"])):
        setting, agent = result.trial["setting"]["name"], result.trial["agent"]
        rates = result.trial["rates"]
        combinations = groups.setdefault((setting, agent["label"]), {})
        known = combinations.get(canonical_json(rates))
        trials = {**(known.trials if known else {}), result.trial["repetition"]: result}
        clips = agent.get("clipping") != "none"
        combinations[canonical_json(rates)] = AgentRun(
            setting, agent["label"], agent["agent"], rates, trials, clips
        )
    chosen, remarks = {}, []
    planned = results.planned_combinations(config)
    best = {(p.setting, p.agent): canonical_json(dict(p.rates)) for p in points if p.best}
    for part in config["parts"]:
        for agent in part["agents"]:
            place = (part["setting"]["name"], agent["label"])
            if place in chosen or place not in groups:
                continue
            combinations = groups[place]
            winner = best.get(place)
            if winner not in combinations:
                # Not every combination has the same repetitions yet: those that all have decide.
                common = set.intersection(*(set(run.trials) for run in combinations.values()))
                shared = sorted(common) or None
                winner = max(
                    combinations,
                    key=lambda rates: float(
                        np.mean(combinations[rates].totals_of(shared or combinations[rates].repetitions))
                    ),
                )
                if planned[place] > 1:
                    remarks.append(
                        f"{place[0]}: the rates of {place[1]} are the best so far, the grid is unfinished"
                    )
            chosen[place] = combinations[winner]
    return chosen, remarks
