"""Results on disk: a folder per run, two files per trial, each of them checked before it is believed.

    <run>/manifest.json                   the config as data, its trials, and where the run was started
    <run>/race.json                       which agents were given to --race, if any
    <run>/grid.csv                        all combinations of rates, once they are decided
    <run>/<trial>.csv                     one row per task
    <run>/<trial>.json                    the trial, digests, where it was finished, seconds per task
    <run>/unfinished/<trial>.task-0007.*  the state after seven tasks; the last two are kept
    <run>/unfinished/<trial>.lock         locked while a process works on the trial
    <run>/features/<name>.safetensors     learned features, shared by the trials of a repetition

A trial is finished when its JSON is there: it is written last and holds the SHA-256 of the CSV. Files appear
whole or not at all (written under another name, then renamed) and are never replaced by other content, but
for grid.csv, which follows from the others, and race.json, which grows. Times are in the JSON only, under a
digest of their own, so that all else can be compared bit for bit.
"""

from __future__ import annotations

import contextlib
import csv
import enum
import fnmatch
import hashlib
import io
import json
import math
import operator
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np
from filelock import BaseFileLock, FileLock, Timeout
from numpy.typing import NDArray

from sfr_fa.runs.racing import Dropped, plan, rounds_of
from sfr_theory.atomic import is_half_written, output_errors, write_atomic
from sfr_theory.errors import InputError, in_short
from sfr_theory.reading import known_content, read_bytes, read_json

RUN_FORMAT, TRIAL_FORMAT, RACE_FORMAT, VERSION = "sfr-run", "sfr-trial", "sfr-race", 1
SUFFIX = ".safetensors"
"""Of checkpoints and learned features (sfr_fa.agents.checkpoint)."""
CREDENTIALS = "credentials-"
"""Folders under `unfinished` with the keys of workers that are jobs, touched while the run goes on."""
TIMES = ("seconds", "seconds_sha256")
"""Entries of a trial's JSON that differ from run to run."""


@dataclass(frozen=True)
class TaskRow:
    """The outcome of one task: a row of the CSV."""

    task: int
    total_return: float
    steps: int
    episodes: int
    gpi_current: int
    """How often GPI chose the policy of the task itself."""
    gpi_policies: int
    """How many policies it chose at least once."""
    gpi_favourite: int
    """The earlier policy that it chose most, -1 if it chose none."""
    gpi_favourite_count: int
    diverged: bool

    @staticmethod
    def of_counts(counts: NDArray[np.int64]) -> dict[str, int]:
        """GPI's choices in four numbers; `counts` has an entry per policy, the task's own last."""
        earlier = counts[:-1]
        favourite = int(earlier.argmax()) if earlier.any() else -1
        return {
            "gpi_current": int(counts[-1]),
            "gpi_policies": int(np.count_nonzero(counts)),
            "gpi_favourite": favourite,
            "gpi_favourite_count": int(earlier[favourite]) if favourite >= 0 else 0,
        }


COLUMNS = tuple(field.name for field in fields(TaskRow))
_VALUES = operator.attrgetter(*COLUMNS)


@dataclass(frozen=True)
class TrialResult:
    """A finished trial."""

    key: str
    trial: Mapping[str, Any]
    """The trial as data: agent, rates, repetition, setting, ..."""
    rows: Sequence[TaskRow]
    seconds: Sequence[float]
    tasks_sha256: str
    provenance: Mapping[str, Any]
    notes: Sequence[str]

    @property
    def total_return(self) -> float:
        return float(sum(row.total_return for row in self.rows))

    @property
    def diverged(self) -> bool:
        return any(row.diverged for row in self.rows)


class TrialState(enum.Enum):
    FINISHED = "finished"
    RUNNING = "running"
    STOPPED = "stopped"
    DAMAGED = "damaged"
    MISSING = "to do"


@dataclass(frozen=True)
class TrialStatus:
    """How far a trial is; `reason` says what is damaged."""

    state: TrialState
    tasks_done: int = 0
    reason: str = ""


# --- Digests and files --------------------------------------------------------------------------------


def canonical_json(content: Any) -> str:
    return json.dumps(content, sort_keys=True, separators=(",", ":"))


def digest(content: Any) -> str:
    """SHA-256 of bytes, or of data as canonical JSON."""
    data = content if isinstance(content, bytes) else canonical_json(content).encode()
    return hashlib.sha256(data).hexdigest()


def write_new(path: Path, content: bytes) -> None:
    """Write a file that does not exist yet; writing the same content again does nothing."""
    if path.exists():
        if read_bytes(path) == content:
            return
        raise InputError(f"{path} exists with other content; move it away to have it written again")
    write_atomic(path, content, durable=True)


def signed(content: Mapping[str, Any]) -> bytes:
    """JSON with a digest of itself."""
    return (json.dumps({**content, "sha256": digest(content)}, indent=1) + "\n").encode()


def read_signed(path: Path, format_name: str, unsigned: Sequence[str] = ()) -> dict[str, Any]:
    """The content that `signed` wrote, without the digest; `unsigned` entries have been left out of it."""
    content = read_json(path)
    if not isinstance(content, dict) or content.get("format") != format_name:
        raise InputError(f"{path} is not an {format_name} file, or it is damaged")
    if content.get("version") != VERSION:
        raise InputError(f"{path} has version {content.get('version')}; this program reads version {VERSION}")
    expected = content.pop("sha256", None)
    if digest({key: value for key, value in content.items() if key not in unsigned}) != expected:
        raise InputError(f"{path} is damaged: its checksum does not match")
    return content


def csv_bytes(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> bytes:
    """A table; csv writes a float by its repr, so that it is read back exactly, and a bool by its name."""
    buffer = io.StringIO()
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return buffer.getvalue().encode()


def rows_to_csv(rows: Sequence[TaskRow]) -> bytes:
    """The table of a trial."""
    return csv_bytes(COLUMNS, ((*numbers, int(diverged)) for *numbers, diverged in map(_VALUES, rows)))


def rows_from_csv(content: bytes, path: Path) -> tuple[TaskRow, ...]:
    try:
        lines = list(csv.reader(io.StringIO(content.decode())))
        if tuple(lines[0]) != COLUMNS:
            raise ValueError
        return tuple(
            TaskRow(int(t), float(r), int(s), int(e), int(c), int(p), int(f), int(n), bool(int(d)))
            for t, r, s, e, c, p, f, n, d in lines[1:]
        )
    except (ValueError, IndexError, TypeError, csv.Error):
        raise InputError(
            f"{path} is damaged: it is not a table with the columns {', '.join(COLUMNS)}"
        ) from None


# --- A run -------------------------------------------------------------------------------------------

Places = frozenset[tuple[str, str]]
"""Agents in settings: (setting, label)."""


def places(pairs: Iterable[Sequence[str]]) -> Places:
    """As read from JSON, where they are lists."""
    return frozenset((str(setting), str(label)) for setting, label in pairs)


ORDER_SECONDS = 3600.0
"""Workers look for an order to stop after every task, and few tasks take so long."""


class RunFolder:
    """The folder of one run: what is finished, what is under way, what cannot be trusted."""

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.unfinished = self.path / "unfinished"

    # --- The manifest

    def start(self, config: Mapping[str, Any], trials: Sequence[str], provenance: Mapping[str, Any]) -> None:
        """Write the manifest of a new run; a folder that another config has filled is refused.

        One in which no trial has finished, and none is running, may have another config.
        """
        path = self.path / "manifest.json"
        if path.exists():
            known = self.manifest()["config"]
            difference = first_difference(known, json.loads(json.dumps(config)))
            if not difference:
                return
            if any(map(_is_locked, self._locks())):
                raise InputError(
                    f"{self.path} is being filled with another config: {difference}; stop that run first"
                )
            if any(self.path.rglob("*.csv")):
                raise InputError(
                    f"{self.path} holds results of another config under this name: {difference}; choose "
                    f"another --results folder or another name, or move these results away"
                )
            with output_errors(path):
                shutil.rmtree(self.unfinished, ignore_errors=True)  # what another config has begun
                self._race_path.unlink(missing_ok=True)
                path.unlink()
        if self.path.exists() and any(self.path.rglob("*.csv")):
            raise InputError(f"{self.path} holds results but no manifest.json that says what they are")
        write_new(path, signed({
            "format": RUN_FORMAT, "version": VERSION, "config": config, "trials": list(trials),
            "provenance": provenance,
        }))  # fmt: skip

    def manifest(self) -> dict[str, Any]:
        """The config and the names of the trials, which lead to files inside the folder."""
        path = self.path / "manifest.json"
        content = read_signed(path, RUN_FORMAT)
        with known_content(path, "sfr_fa.run"):
            config, trials, started = content["config"], content["trials"], content["provenance"]
            if not (isinstance(config, dict) and isinstance(trials, list) and isinstance(started, dict)):
                raise TypeError("config and provenance must be objects, trials a list")
            for key in trials:
                if "\0" in key or not Path(key).parts or Path(key).is_absolute() or ".." in Path(key).parts:
                    raise ValueError(f"{key!r} is no name of a trial")
            return content

    @property
    def _race_path(self) -> Path:
        return self.path / "race.json"

    def races(self) -> Places:
        """The agents that were given to --race: elsewhere a repetition that is missing is just missing."""
        if not self._race_path.exists():
            return frozenset()
        content = read_signed(self._race_path, RACE_FORMAT)
        with known_content(self._race_path, "sfr_fa.run"):
            return places(content["agents"])

    def add_races(self, agents: Places) -> None:
        """Say that these agents race, for whoever judges the grid later."""
        known = self.races()
        if not agents <= known:
            content = {"format": RACE_FORMAT, "version": VERSION, "agents": sorted(known | agents)}
            write_atomic(self._race_path, signed(content), durable=True)

    # --- Finished trials

    def csv_path(self, key: str) -> Path:
        return self.path / f"{key}.csv"

    def json_path(self, key: str) -> Path:
        return self.path / f"{key}.json"

    def write_result(self, result: TrialResult) -> None:
        """The table first, then the JSON that vouches for it; a trial that is finished stays as it is."""
        key, table, seconds = result.key, rows_to_csv(result.rows), list(result.seconds)
        write_new(self.csv_path(key), table)
        if self.json_path(key).exists():
            self.read_result(key)
            return
        content = {
            "format": TRIAL_FORMAT, "version": VERSION, "key": key, "trial": result.trial,
            "total_return": result.total_return, "diverged": result.diverged, "csv_sha256": digest(table),
            "tasks_sha256": result.tasks_sha256, "provenance": result.provenance, "notes": list(result.notes),
        }  # fmt: skip
        times = {"seconds": seconds, "seconds_sha256": digest(seconds)}
        signature = {"sha256": digest(content)}
        write_new(self.json_path(key), (json.dumps(content | times | signature, indent=1) + "\n").encode())

    def read_result(self, key: str) -> TrialResult:
        """A finished trial; a file that is damaged, or belongs to another trial, is refused."""
        path, table_path = self.json_path(key), self.csv_path(key)
        with known_content(path, "sfr_fa.run"):
            content = read_signed(path, TRIAL_FORMAT, TIMES)
            if digest(content.get("seconds")) != content.get("seconds_sha256"):
                raise InputError(f"{path} is damaged: the checksum of its times does not match")
            if content["key"] != key:
                raise InputError(f"{path} is the result of {content['key']}; it was renamed")
            table = read_bytes(table_path)
            if digest(table) != content["csv_sha256"]:
                raise InputError(
                    f"{table_path} is damaged: its checksum does not match the one in {path.name}"
                )
            return TrialResult(
                key,
                content["trial"],
                rows_from_csv(table, table_path),
                tuple(map(float, content["seconds"])),
                content["tasks_sha256"],
                content["provenance"],
                tuple(content["notes"]),
            )

    # --- Trials under way

    def checkpoint_path(self, key: str, tasks_done: int) -> Path:
        return self.unfinished / f"{key}.task-{tasks_done:04d}{SUFFIX}"

    def checkpoints(self, key: str) -> dict[int, Path]:
        """Tasks done -> file, the newest first."""
        place = self.unfinished / key
        found = {}
        for path in _listed(place.parent, f"{place.name}.task-*{SUFFIX}"):
            number = path.name.removeprefix(f"{place.name}.task-").removesuffix(SUFFIX)
            if number.isdecimal():
                found[int(number)] = path
        return dict(sorted(found.items(), reverse=True))

    def forget_checkpoints(self, key: str, before: float = math.inf) -> None:
        """Remove the states of fewer than `before` tasks, all if it is not said, and what cannot be read.

        That is what a killed process left half written, and states in the format of an earlier version.
        """
        place = self.unfinished / key
        checkpoints = self.checkpoints(key)
        keep = {path for tasks_done, path in checkpoints.items() if tasks_done >= before}
        for pattern in (f"{place.name}.task-*", f".{place.name}.task-*"):
            for path in _listed(place.parent, pattern):
                if path not in keep:
                    remove(path)

    def feature_path(self, name: str) -> Path:
        return self.path / "features" / f"{name}{SUFFIX}"

    @contextlib.contextmanager
    def working_on(self, key: str, patience: float = 60.0) -> Iterator[None]:
        """Hold the trial's lock, which ends with the process however it dies.

        A process that was orphaned lets go within its current task, so it is worth some patience.
        """
        path = self.unfinished / f"{key}.lock"
        lock = FileLock(path, timeout=patience, poll_interval=0.2)
        with output_errors(path):
            try:
                self._acquire(lock, path)
            except Timeout:
                raise InputError(f"another process is working on {key}; wait for it or stop it") from None
        try:
            yield
        finally:
            # Removed while it is held: who waits for it notices, and makes a new one.
            with contextlib.suppress(OSError):  # Windows keeps open files
                path.unlink(missing_ok=True)
            lock.release()

    def _acquire(self, lock: BaseFileLock, path: Path) -> None:
        for attempts_left in reversed(range(10)):
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                lock.acquire()
                return
            except (FileNotFoundError, FileExistsError):  # another process has tidied up the empty folder
                if not attempts_left:
                    raise

    def status(self, key: str, *, verify: bool = True) -> TrialStatus:
        """How far a trial is. Without `verify` finished files are believed unread."""
        if self.json_path(key).exists():
            try:
                rows = len(self.read_result(key).rows) if verify else 0
            except InputError as error:
                return TrialStatus(TrialState.DAMAGED, reason=str(error))
            return TrialStatus(TrialState.FINISHED, rows)
        done = next(iter(self.checkpoints(key)), 0)
        if _is_locked(self.unfinished / f"{key}.lock"):
            return TrialStatus(TrialState.RUNNING, done)
        if done or self.csv_path(key).exists():
            return TrialStatus(TrialState.STOPPED, done)
        return TrialStatus(TrialState.MISSING)

    def _locks(self) -> list[Path]:
        return [Path(folder, name) for folder, _, names in os.walk(self.unfinished)
                for name in fnmatch.filter(names, "*.lock")]  # fmt: skip

    def tidy(self) -> None:
        """Remove what nobody needs any more.

        That is what killed processes left half written, their locks, states of trials that are finished,
        orders to stop that all have read by now, credentials of runs that were killed, empty folders.
        """
        # In this order: a writer holds the lock of a trial until its file has its final name.
        half_written = [
            Path(folder, name)
            for folder, _, names in os.walk(self.path)
            for name in filter(is_half_written, names)
        ]
        if half_written and not any(map(_is_locked, self._locks())):
            for path in half_written:
                with contextlib.suppress(OSError):
                    path.unlink()
        # A trial whose process was killed between its result and its lock is not started again.
        for lock in self._locks():
            key = str(lock.relative_to(self.unfinished).with_suffix(""))
            with contextlib.suppress(InputError), self.working_on(key, patience=0):
                if self.json_path(key).exists():
                    self.forget_checkpoints(key)
        now = time.time()
        for path in (*_listed(self.unfinished, "stop-*"), *_listed(self.unfinished, f"{CREDENTIALS}*")):
            with contextlib.suppress(OSError):
                if now - path.stat().st_mtime > ORDER_SECONDS:
                    shutil.rmtree(path) if path.is_dir() else path.unlink()
        # Unlike rglob, it does not mind that another runner tidies up at the same time.
        for folder, _, _ in os.walk(self.unfinished, topdown=False):
            with contextlib.suppress(OSError):
                Path(folder).rmdir()


def remove(path: Path) -> None:
    """Remove a file, or whatever else somebody has put in its place."""
    with output_errors(path):
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def _listed(folder: Path, pattern: str) -> list[Path]:
    """The files of this name in a folder; none if the folder is gone, for another runner may tidy up."""
    try:
        names = os.listdir(folder)  # noqa: PTH208 - glob fails if the folder goes while it looks
    except (FileNotFoundError, NotADirectoryError):
        return []
    return [folder / name for name in fnmatch.filter(names, pattern)]


def _is_locked(path: Path) -> bool:
    if not path.is_file():
        return False
    try:
        with FileLock(path, blocking=False):
            return False
    except Timeout:
        return True
    except OSError:
        return False


def first_difference(old: Any, new: Any, place: str = "") -> str:
    """Where two trees of JSON differ first, as words; empty if they are equal.

    An option that one of them does not know yet, and that the other leaves at null, is no difference.
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for key in sorted(set(old) | set(new)):
            if old.get(key) is None and new.get(key) is None:
                continue
            if key not in old or key not in new:
                return f"{place}{key} is {'new' if key not in old else 'gone'}"
            difference = first_difference(old[key], new[key], f"{place}{key}.")
            if difference:
                return difference
        return ""
    if isinstance(old, list) and isinstance(new, list):
        for k, (before, now) in enumerate(zip(old, new, strict=False)):
            difference = first_difference(before, now, f"{place}{k}.")
            if difference:
                return difference
        return "" if len(old) == len(new) else f"the length of {place[:-1]} was {len(old)} and is {len(new)}"
    return "" if old == new else f"{place[:-1]} was {in_short(old)} and is {in_short(new)}"


# --- Reading whole runs ------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoredTrials:
    """All that a folder holds: the finished trials, and a sentence for each one that cannot be used."""

    manifest: Mapping[str, Any]
    trials: Mapping[str, TrialResult]
    problems: tuple[str, ...]


def read_run(folder: str | Path) -> StoredTrials:
    """Every trial that the manifest names, read and checked; tasks must agree within a repetition."""
    run = RunFolder(folder)
    manifest = run.manifest()
    trials: dict[str, TrialResult] = {}
    problems: list[str] = []
    for key in manifest["trials"]:
        if not run.json_path(key).exists():
            continue
        try:
            trials[key] = run.read_result(key)
        except InputError as error:
            problems.append(str(error))
    tasks: dict[tuple[str, int], TrialResult] = {}
    for result in trials.values():
        place = (result.trial["setting"]["name"], result.trial["repetition"])
        first = tasks.setdefault(place, result)
        if first.tasks_sha256 != result.tasks_sha256:
            problems.append(f"{first.key} and {result.key} are of one repetition but had different tasks")
    return StoredTrials(manifest, trials, tuple(problems))


@dataclass(frozen=True)
class GridPoint:
    """One combination of rates of an agent in a setting."""

    setting: str
    agent: str
    rates: Mapping[str, float | str]
    results: Sequence[Any]
    """A result says what its `trial` was, its `total_return`, its `seconds` and whether it `diverged`."""
    best: bool = False
    dropped: Dropped | None = None
    """Where a race dropped it (sfr_fa.runs.racing), and by which statistic."""

    @property
    def repetitions(self) -> int:
        return len(self.results)

    @property
    def mean_total_return(self) -> float:
        return float(np.mean([result.total_return for result in self.results]))

    @property
    def diverged(self) -> int:
        """How many repetitions diverged; such a combination is never the best."""
        return sum(result.diverged for result in self.results)

    @property
    def seconds(self) -> float:
        """Of all its repetitions."""
        return float(sum(np.sum(result.seconds) for result in self.results))


def planned_combinations(config: Mapping[str, Any]) -> Counter[tuple[str, str]]:
    """How many combinations of rates the config of a manifest plans for each agent of a setting."""
    return Counter(
        (part["setting"]["name"], agent["label"]) for part in config["parts"] for agent in part["agents"]
    )


def grid_points(
    results: Sequence[Any], planned: Mapping[tuple[str, str], int], repetitions: int, races: Places
) -> tuple[GridPoint, ...]:
    """All combinations of rates, and for each agent the one with the highest mean total return.

    `planned` says how many combinations each agent has: a grid of which some were not run, or not in all
    repetitions, has no winner yet, unless it is one of the `races` and that is finished.
    """
    groups: dict[tuple[str, str], dict[str, list[Any]]] = {}
    for result in results:
        place = (result.trial["setting"]["name"], result.trial["agent"]["label"])
        groups.setdefault(place, {}).setdefault(canonical_json(result.trial["rates"]), []).append(result)
    points: list[GridPoint] = []
    for place, combinations in groups.items():
        here = {rates: GridPoint(*place, json.loads(rates), found) for rates, found in combinations.items()}
        all_begun = len(here) == planned[place]
        winner, dropped = None, {}
        if all_begun and all(point.repetitions == repetitions for point in here.values()):
            candidates = [rates for rates, point in here.items() if not point.diverged]
            winner = max(candidates, key=lambda rates: here[rates].mean_total_return, default=None)
        elif all_begun and place in races:
            returns = {rates: returns_by_repetition(found) for rates, found in combinations.items()}
            race = plan(returns, rounds_of(repetitions))
            winner, dropped = race.winner, {fall.combination: fall for fall in race.dropped}
        points += [
            replace(point, best=rates == winner, dropped=dropped.get(rates)) for rates, point in here.items()
        ]
    return tuple(points)


def returns_by_repetition(trials: Sequence[Any]) -> dict[int, float]:
    """The total return of each repetition of a combination; of one that diverged, NaN."""
    return {trial.trial["repetition"]: math.nan if trial.diverged else trial.total_return for trial in trials}


def grid_to_csv(points: Sequence[GridPoint]) -> bytes:
    """The whole grid as a table, a column for each rate."""
    names = sorted({name for point in points for name in point.rates})
    header = [
        "setting", "agent", *names, "repetitions", "mean_total_return", "diverged", "best",
        "dropped_after", "statistic", "threshold",
    ]  # fmt: skip
    rows = []
    for point in points:
        rates = [point.rates.get(name, "") for name in names]
        numbers = [point.repetitions, point.mean_total_return, point.diverged, int(point.best)]
        fall = point.dropped
        why = [fall.repetitions, f"{fall.statistic:.3g}", f"{fall.threshold:.3g}"] if fall else [""] * 3
        rows.append([point.setting, point.agent, *rates, *numbers, *why])
    return csv_bytes(header, rows)
