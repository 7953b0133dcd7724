"""Finished trials as one table per experiment: `python -m sfr_fa.runs.publish results/racer/paper`.

    RESULTS/NAME.csv    one row per task: setting, agent, rates, repetition, task, total_return
    RESULTS/NAME.json   the manifest: the config; for every trial its seconds, what it ran on (versions,
                        commit) and the digests of its tasks and of the table that the run wrote; the digest
                        of NAME.csv; which agents had their rates raced

A run keeps a folder of trials while it goes on; this is what is kept of it. Numbers are written so that they
are read back exactly. Publishing again adds the trials that are new, also those of agents that the config has
gained; a trial that differs from what is published, or a file that is damaged, is refused, and nothing is
written. Reading checks both digests, so that no number can change unnoticed.
"""

from __future__ import annotations

import csv
import io
import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro

from sfr_fa.runs import store
from sfr_fa.runs.store import RunFolder, TrialResult, canonical_json, digest, first_difference
from sfr_fa.runs.wording import rate_text
from sfr_theory import cli
from sfr_theory.errors import InputError
from sfr_theory.reading import input_errors, known_content, read_bytes

FORMAT = "sfr-published"
COLUMNS = ("setting", "agent", "rates", "repetition", "task", "total_return")
CHECKED = ("setting", "agent", "repetition", "seed", "tasks", "steps", "engine")
"""Entries of a trial that follow from the config."""


@dataclass(frozen=True)
class TrialRecord:
    """A finished trial: what it was, the return of each of its tasks, and where the numbers come from."""

    key: str
    trial: Mapping[str, Any]
    returns: tuple[float, ...]
    seconds: float
    diverged: bool
    csv_sha256: str
    """Of the table that the run wrote; it tells whether two records are of the same trial."""
    tasks_sha256: str
    provenance: Mapping[str, Any]

    @property
    def total_return(self) -> float:
        return float(sum(self.returns))


@dataclass(frozen=True)
class Finished:
    """The finished trials of a run, and what is wrong with the others."""

    config: Mapping[str, Any]
    provenance: Mapping[str, Any]
    """Where the run was started."""
    records: Mapping[str, TrialRecord]
    problems: tuple[str, ...] = ()
    races: store.Places = frozenset()
    """Agents whose rates were raced, not tried in all repetitions."""


def planned(config: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """What each trial of a config is, in the order of a run: one repetition after the other."""
    for repetition in range(config["size"]["repetitions"]):
        for part in config["parts"]:
            for agent in part["agents"]:
                yield _trial(config, part, agent, repetition)


def _trial(
    config: Mapping[str, Any], part: Mapping[str, Any], agent: Mapping[str, Any], repetition: int
) -> dict[str, Any]:
    """What the files of a trial say about it, but for its rates."""
    return {
        "setting": part["setting"], "agent": agent, "repetition": repetition, "seed": config["seed"],
        "tasks": config["size"]["tasks"], "steps": config["size"]["steps"], "engine": config["engine"],
    }  # fmt: skip


# --- From a folder of trials -------------------------------------------------------------------------


def from_folder(folder: Path) -> Finished:
    """The trials that are finished, sound, and what the manifest says they are."""
    with known_content(folder, "sfr_fa.run"):
        read = store.read_run(folder)
        config, keys = read.manifest["config"], read.manifest["trials"]
        problems = [*read.problems, *_undeclared(folder, keys)]
        expected = list(planned(config))
        if len(expected) != len(keys):
            problems.append(
                f"the manifest of {folder} lists {len(keys)} trials; its config has {len(expected)}"
            )
            expected = []
        records = {}
        for key, trial in zip(keys, expected, strict=False):
            if key in read.trials:
                problem = _difference(trial, read.trials[key])
                if problem:
                    problems.append(f"{folder / key} {problem}; it is left out")
                else:
                    records[key] = _record(trial, read.trials[key])
        races = RunFolder(folder).races()
        return Finished(config, read.manifest["provenance"], records, tuple(problems), races)


def _record(trial: Mapping[str, Any], result: TrialResult) -> TrialRecord:
    return TrialRecord(
        result.key,
        {**trial, "rates": result.trial["rates"]},
        tuple(row.total_return for row in result.rows),
        float(sum(result.seconds)),
        result.diverged,
        digest(store.rows_to_csv(result.rows)),
        result.tasks_sha256,
        result.provenance,
    )


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
    if not all(math.isfinite(row.total_return) for row in result.rows):
        return "has a return that is not finite"
    return ""


def _undeclared(folder: Path, keys: Sequence[str]) -> Iterator[str]:
    """Results that the manifest does not name."""
    known = {f"{key}.csv" for key in keys} | {"grid.csv"}
    for path in sorted(folder.rglob("*.csv")):
        if str(path.relative_to(folder)) not in known:
            yield f"{path} is not named in the manifest; it is left out"


# --- Published tables --------------------------------------------------------------------------------


def _place(trial: Mapping[str, Any]) -> tuple[str, str, str, str]:
    """What the rows of a trial have in common; which rates 0.005/0.4 are, the manifest's config says."""
    rates = "/".join(map(rate_text, trial["rates"].values()))
    return trial["setting"]["name"], trial["agent"]["label"], rates, str(trial["repetition"])


def _variant(setting: Mapping[str, Any], agent: Mapping[str, Any]) -> str:
    """An agent in a setting, by its options; one that a version does not know yet is null in the next."""
    return canonical_json([setting["name"], {name: v for name, v in agent.items() if v is not None}])


def table_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.csv")


def manifest_path(path: Path) -> Path:
    return path.with_name(f"{path.name}.json")


def write(finished: Finished, path: Path) -> None:
    """The table and its manifest, `path` with .csv and .json; the manifest vouches for the table."""
    order = {
        _variant(part["setting"], agent): (i, j)
        for i, part in enumerate(finished.config["parts"])
        for j, agent in enumerate(part["agents"])
    }
    provenances: list[Mapping[str, Any]] = []
    trials, rows = [], []
    for record in finished.records.values():
        if record.provenance not in provenances:
            provenances.append(record.provenance)
        part, agent = order[_variant(record.trial["setting"], record.trial["agent"])]
        trials.append({
            "key": record.key, "part": part, "agent": agent, "repetition": record.trial["repetition"],
            "rates": record.trial["rates"], "diverged": record.diverged, "seconds": record.seconds,
            "csv_sha256": record.csv_sha256, "tasks_sha256": record.tasks_sha256,
            "provenance": provenances.index(record.provenance),
        })  # fmt: skip
    trials.sort(key=lambda entry: (entry["part"], entry["agent"], entry["repetition"]))
    for entry in trials:
        record = finished.records[entry["key"]]
        rows += [(*_place(record.trial), task, value) for task, value in enumerate(record.returns)]
    table = store.csv_bytes(COLUMNS, rows)
    manifest = {
        "format": FORMAT, "version": store.VERSION, "config": finished.config,
        "provenance": finished.provenance, "csv_sha256": digest(table), "provenances": provenances,
        "trials": trials, **({"races": sorted(finished.races)} if finished.races else {}),
    }  # fmt: skip
    cli.write_atomic(table_path(path), table)
    cli.write_atomic(manifest_path(path), store.signed(manifest))


def read(path: Path) -> Finished:
    """What `write` wrote, checked."""
    manifest = store.read_signed(manifest_path(path), FORMAT)
    table = table_path(path)
    content = read_bytes(table)
    with known_content(path, "sfr_fa.runs.publish"):
        if digest(content) != manifest["csv_sha256"]:
            raise InputError(
                f"{table} is damaged or of another run: its checksum is not the one in "
                f"{manifest_path(path).name}; restore both files, or remove them and publish the run again"
            )
        returns = _returns(content)
        records = (_published(entry, manifest, returns) for entry in manifest["trials"])
        return Finished(
            manifest["config"],
            manifest["provenance"],
            {record.key: record for record in records},
            races=store.places(manifest.get("races", ())),
        )


def _returns(content: bytes) -> dict[tuple[str, ...], tuple[float, ...]]:
    """What the rows of a trial have in common -> the return of each task."""
    header, *rows = csv.reader(io.StringIO(content.decode()))
    if tuple(header) != COLUMNS:
        raise ValueError(f"the columns are {', '.join(header)}")
    groups = itertools.groupby(rows, key=lambda row: tuple(row[:4]))
    return {place: tuple(float(row[5]) for row in group) for place, group in groups}


def _published(
    entry: Mapping[str, Any],
    manifest: Mapping[str, Any],
    returns: Mapping[tuple[str, ...], tuple[float, ...]],
) -> TrialRecord:
    config = manifest["config"]
    part = config["parts"][entry["part"]]
    trial = {
        **_trial(config, part, part["agents"][entry["agent"]], entry["repetition"]),
        "rates": entry["rates"],
    }
    found = returns[_place(trial)]
    if not entry["diverged"] and len(found) != trial["tasks"]:
        raise ValueError(f"{entry['key']} has {len(found)} of {trial['tasks']} tasks")
    return TrialRecord(
        entry["key"],
        trial,
        found,
        entry["seconds"],
        entry["diverged"],
        entry["csv_sha256"],
        entry["tasks_sha256"],
        manifest["provenances"][entry["provenance"]],
    )


# --- More of the same run ----------------------------------------------------------------------------


def merged(old: Finished, new: Finished) -> Finished:
    """Everything that is in one of the two; what both have must be equal."""
    config = _joined(old.config, new.config)
    for key, record in new.records.items():
        known = old.records.get(key)
        if known and (known.csv_sha256, known.tasks_sha256) != (record.csv_sha256, record.tasks_sha256):
            raise InputError(
                f"{key} differs from what is published; publish to another folder (--output), or remove the "
                f"published table if it is wrong"
            )
    records = {**old.records, **new.records}
    return Finished(config, old.provenance, records, races=old.races | new.races)


def _joined(old: Mapping[str, Any], new: Mapping[str, Any]) -> Mapping[str, Any]:
    """A config with the agents of both; everything else must be the same."""
    first, second = ({name: v for name, v in config.items() if name != "parts"} for config in (old, new))
    difference = first_difference(first, second)
    if not difference:
        before = {part["setting"]["name"]: part for part in old["parts"]}
        parts = []
        for part in new["parts"]:
            known = before.pop(part["setting"]["name"], part)
            difference = difference or first_difference(known["setting"], part["setting"], "setting.")
            # The longer list has the order of the config; what only the other has goes to its end.
            more, fewer = sorted((part["agents"], known["agents"]), key=len, reverse=True)
            known_variants = {_variant(part["setting"], agent) for agent in more}
            added = [agent for agent in fewer if _variant(part["setting"], agent) not in known_variants]
            parts.append({**part, "agents": [*more, *added]})
        new = {**new, "parts": [*parts, *before.values()]}
    if difference:
        raise InputError(
            f"{new['name']} was published with another config: {difference}; publish to another folder "
            f"(--output)"
        )
    return new


# --- Command line ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    runs: tyro.conf.Positional[tuple[str, ...]]
    """Folders of runs, RESULTS/NAME/PROFILE; what is not finished is left out."""
    output: str = "results"
    """Folder for the tables."""


def main(options: Options) -> int:
    if not options.runs:
        raise InputError("name at least one folder of a run, such as results/racer/paper")
    cli.require_writable(str(Path(options.output) / "any"))
    for name in options.runs:
        with input_errors(Path(name)):
            profiles = sorted(manifest.parent for manifest in Path(name).glob("*/manifest.json"))
        if profiles:
            raise InputError(
                f"{name} holds {len(profiles)} profiles; name one: {', '.join(map(str, profiles))}"
            )
        new = from_folder(Path(name))
        if new.problems:
            more = f" (and {len(new.problems) - 1} more)" if len(new.problems) > 1 else ""
            raise InputError(f"{new.problems[0]}{more}; nothing of {name} was published")
        path = Path(options.output) / new.config["name"]
        known = read(path) if manifest_path(path).is_file() else None
        if known is None and table_path(path).exists():
            raise InputError(
                f"{table_path(path)} has no {manifest_path(path).name} that says what it is; restore that, "
                f"or move the table away to have it written again"
            )
        whole = merged(known, new) if known else new
        added = len(whole.records) - (len(known.records) if known else 0)
        if added or (known and whole.races != known.races):
            write(whole, path)
        print(f"{table_path(path)}: {added} added, {len(whole.records)} trials in all")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "sfr_fa.runs.publish", __doc__ or "")
