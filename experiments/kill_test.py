"""Kill a run again and again, and compare what comes out: `python -m experiments.kill_test --kills 1000`.

Three kinds of run take turns until there have been enough kills:

    alone       one process
    local       a process with two workers; the scheduler is part of the process
    cluster     a process, and a Dask scheduler of the user's own with two workers

In each of them SIGKILL hits, in turn,

    runner      the process that the user started, half of the time while it is starting
    worker      one of the workers, which is replaced
    scheduler   that of the cluster
    writing     runner and workers, at the moment when half a file is on the disk

at a random moment after new work was stored, and what died is started again with the same command. In the end
the run goes on to its end, and its files are compared with those of an undisturbed run: tables and learned
features byte for byte, JSON except for times, commit and platform. Counted are files that are lost, changed
or left over, runs that fail or store nothing for a long time (hung), and processes that outlive their run.
Exit code 1 if there is any.
"""

from __future__ import annotations

import contextlib
import fnmatch
import itertools
import json
import math
import os
import random
import socket
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import safetensors

from experiments import configs
from sfr_fa.runs.store import SUFFIX, TIMES
from sfr_fa.runs.workers import require
from sfr_theory import cli
from sfr_theory.errors import InputError

KINDS = {
    "alone": ("runner", "writing"),
    "local": ("runner", "worker", "writing"),
    "cluster": ("runner", "worker", "scheduler", "writing"),
}
KILLS_PER_RUN = 12
STARTING_SECONDS = 4.0
FAREWELL_SECONDS = 60.0
"""Workers whose runner was killed notice it and end, which takes a while on a busy machine."""
WRONG = ("lost", "changed", "left over", "hung", "failed", "outlived")
NOT_COMPARED = {*TIMES, "provenance", "sha256"}


@dataclass(frozen=True)
class Options:
    kills: int = 20
    """How many kills in all."""
    experiment: str = str(Path(configs.__file__).with_name("_killed.py"))
    """Name or path of a config."""
    profile: str = "smoke"
    workers: int = 2
    longest_wait: float = 1.0
    """Seconds between new work and the kill are uniform up to this."""
    patience: float = 300.0
    """A run that stores nothing for this many seconds counts as hung."""
    seed: int = 0
    engine: str = "compiled"


class HungError(Exception):
    """Nothing was stored for too long."""


class RunUnderTest:
    """A run of one kind (see above) and what belongs to it; nothing of it outlives the `with` block."""

    def __init__(self, kind: str, options: Options) -> None:
        self.kind, self.options = kind, options
        self._folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        folder = Path(self._folder.name)
        self.results, self.temporary = folder / "results", folder / "tmp"
        self.temporary.mkdir(parents=True)
        self.runner: subprocess.Popen[bytes] | None = None
        self.scheduler: subprocess.Popen[bytes] | None = None
        self.cluster_workers: list[subprocess.Popen[bytes]] = []
        self.seen: set[Any] = set()
        self._output: IO[bytes] = (folder / "output").open("wb+")
        self._address = ""

    def __enter__(self) -> RunUnderTest:
        return self

    def __exit__(self, *exception: object) -> None:
        for process in (self.runner, self.scheduler, *self.cluster_workers):
            if process:
                kill(process)
        self._output.close()
        self._folder.cleanup()

    # --- Starting

    def _start(self, *command: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-m", *command],
            stdout=self._output,
            stderr=subprocess.STDOUT,
            env={**os.environ, "TMPDIR": str(self.temporary)},
        )

    def running(self) -> subprocess.Popen[bytes]:
        """The runner; parts of the run that are missing are started."""
        where = ["--workers", str(1 if self.kind == "alone" else self.options.workers)]
        if self.kind == "cluster":
            self._start_cluster()
            where = ["--scheduler", self._address]
        if not alive(self.runner):
            self._output.seek(0)
            self._output.truncate()
            self.runner = self._start(
                "experiments.run", self.options.experiment, "--profile", self.options.profile,
                "--results", str(self.results), "--engine", self.options.engine, *where,
            )  # fmt: skip
        assert self.runner is not None
        return self.runner

    def _start_cluster(self) -> None:
        dask = "distributed.cli.dask_"
        if not alive(self.scheduler):
            for worker in self.cluster_workers:
                kill(worker)
            with socket.create_server(("127.0.0.1", 0)) as free:
                port = free.getsockname()[1]
            self._address = f"tcp://127.0.0.1:{port}"
            here = ("--host", "127.0.0.1", "--port", str(port))
            self.scheduler = self._start(f"{dask}scheduler", *here, "--no-dashboard")
            wait(lambda: answers(port), self.scheduler, 60.0)
        self.cluster_workers = [worker for worker in self.cluster_workers if alive(worker)]
        while len(self.cluster_workers) < self.options.workers:
            options = ("--nthreads", "1", "--host", "127.0.0.1", "--no-dashboard", "--no-nanny")
            self.cluster_workers.append(self._start(f"{dask}worker", self._address, *options))

    # --- Looking

    def workers(self) -> list[Any]:
        """The processes that run trials, apart from the runner."""
        if self.kind == "cluster":
            found = [require("psutil", "cluster").Process(w.pid) for w in self.cluster_workers if alive(w)]
        else:
            found = workers_of(self.runner) if self.runner else []
            self.seen |= set(found)
        return found

    def _files(self, *patterns: str) -> list[str]:
        """Unlike rglob, os.walk does not mind that the run removes folders meanwhile."""
        return [
            str(Path(folder, name))
            for folder, _, names in os.walk(self.results)
            for name in names
            if any(fnmatch.fnmatch(name, pattern) for pattern in patterns)
        ]

    def stored(self) -> set[str]:
        """Names of what is stored, finished or not."""
        return set(self._files(f"rep-*.task-*{SUFFIX}", "rep-*.json", "rep-*.csv"))

    def half_written(self) -> list[str]:
        return self._files(".rep-*")

    def output(self) -> str:
        self._output.seek(0)
        return self._output.read().decode(errors="replace").strip()

    # --- To the end

    def finish(self) -> int:
        """Let the run go on until it is finished; its exit code."""
        process = self.running()
        before: set[str] = set()

        def something_new() -> bool:
            nonlocal before
            now = self.stored()
            before, changed = now, now != before
            return changed

        while wait(something_new, process, self.options.patience, pause=0.2):
            pass
        return process.wait()

    def outlived(self) -> list[Any]:
        """Workers of runners that are gone."""
        return require("psutil", "cluster").wait_procs(list(self.seen), timeout=FAREWELL_SECONDS)[1]


def alive(process: subprocess.Popen[bytes] | None) -> bool:
    return process is not None and process.poll() is None


def kill(process: subprocess.Popen[bytes]) -> None:
    if process.poll() is None:
        process.kill()
    process.wait()


def kill_all(victims: list[Any]) -> None:
    """In this order; what is about to die must not be taken for alive later, so wait until it is dead."""
    psutil = require("psutil", "cluster")
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.kill()
    psutil.wait_procs(victims, timeout=FAREWELL_SECONDS)


def answers(port: int) -> bool:
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1.0):
        return True
    return False


def workers_of(process: subprocess.Popen[Any]) -> list[Any]:
    """The processes that a run has started as its workers."""
    psutil = require("psutil", "cluster")
    try:
        children = psutil.Process(process.pid).children(recursive=True)
        return [child for child in children if any("spawn_main" in part for part in child.cmdline())]
    except psutil.NoSuchProcess:
        return []


def wait(
    condition: Callable[[], Any], process: subprocess.Popen[bytes], patience: float, pause: float = 0.01
) -> bool:
    """Whether the condition came true before the process ended."""
    deadline = time.monotonic() + patience
    while process.poll() is None:
        if condition():
            return True
        if time.monotonic() > deadline:
            raise HungError
        time.sleep(pause)
    return False


def kill_once(run: RunUnderTest, kind: str, longest_wait: float, rng: random.Random) -> bool:
    """Start what is not running and kill what `kind` says; False if the run ended before that."""
    process = run.running()
    if kind == "runner" and rng.random() < 0.5:
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0, STARTING_SECONDS))
            return False
    else:
        before = run.stored()
        if not wait(lambda: run.stored() - before, process, run.options.patience):
            return False
        time.sleep(rng.uniform(0, longest_wait))
    workers = run.workers()
    if kind == "worker":
        kill_all([rng.choice(workers)] if workers else [])
        return bool(workers)
    if kind == "scheduler":
        assert run.scheduler is not None
        kill(run.scheduler)
        process.wait(run.options.patience)  # the runner says so and ends
        return True
    # A file is half written for some milliseconds, so its writer is the first to be killed.
    if kind == "writing" and not wait(run.half_written, process, run.options.patience, pause=0.0):
        return False
    kill_all([*(workers if kind == "writing" else ()), require("psutil", "cluster").Process(process.pid)])
    return True


def contents(folder: Path) -> dict[str, Any]:
    """File name -> what must not depend on how often a run was killed.

    The commit may change meanwhile, and remarks on damaged checkpoints are no results. Orders to stop are
    kept for an hour, for workers that have not read them yet.
    """
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.name.startswith("stop-"):
            continue
        if path.suffix == ".json":
            found[name] = {k: v for k, v in json.loads(path.read_text()).items() if k not in NOT_COMPARED}
        elif path.suffix == SUFFIX:  # the order of its metadata is left to chance
            with safetensors.safe_open(path, framework="numpy") as file:
                arrays = {key: file.get_tensor(key).tobytes() for key in file.keys()}  # noqa: SIM118
                found[name] = (file.metadata(), arrays)
        elif path.is_file():
            found[name] = path.read_bytes()
    return found


def main(options: Options) -> int:
    if options.kills < 1 or options.workers < 2:
        raise InputError("--kills must be at least 1 and --workers at least 2")
    if not (0 <= options.longest_wait < math.inf and 0 < options.patience < math.inf):
        raise InputError("--longest-wait must be seconds from 0 on, and --patience more than 0")
    configs.load_config(options.experiment).profile(options.profile)
    console = cli.output_console(None)
    rng = random.Random(options.seed)
    with RunUnderTest("alone", options) as undisturbed:
        if undisturbed.finish() != 0:
            raise InputError(f"the undisturbed run failed: {undisturbed.output()}")
        console.print(undisturbed.output(), soft_wrap=True, markup=False)
        expected = contents(undisturbed.results)
    kills: Counter[str] = Counter()
    found_wrong: Counter[str] = Counter()
    halves = 0
    per_run = min(KILLS_PER_RUN, -(-options.kills // len(KINDS)))
    for place in itertools.cycle(KINDS):
        kinds = itertools.cycle(KINDS[place])
        with RunUnderTest(place, options) as run:
            here: Counter[str] = Counter()
            wrong: list[str] = []
            try:
                while here.total() < min(per_run, options.kills - kills.total()):
                    kind = next(kinds)
                    if kill_once(run, kind, options.longest_wait, rng):
                        here[kind] += 1
                        halves += len(run.half_written()) if kind == "writing" else 0
                    elif len(run.stored()) >= len(expected) - 1 and not alive(run.runner):
                        break  # finished
                code = run.finish()
                found = contents(run.results)
                wrong += [f"failed: exit code {code}: {run.output()}"] if code else []
                wrong += [f"lost: {name}" for name in sorted(expected.keys() - found.keys())]
                wrong += [f"left over: {name}" for name in sorted(found.keys() - expected.keys())]
                wrong += [
                    f"changed: {name}" for name in sorted(expected.keys() & found.keys())
                    if expected[name] != found[name]
                ]  # fmt: skip
                wrong += [f"outlived: process {process.pid}" for process in run.outlived()]
            except (HungError, subprocess.TimeoutExpired):
                wrong.append(f"hung: {run.output()}")
        kills += here
        found_wrong += Counter(sentence.partition(":")[0] for sentence in wrong)
        what = ", ".join(f"{count} {kind}" for kind, count in here.items())
        console.print(f"{place}: {here.total()} kills ({what}), {len(wrong)} things wrong", soft_wrap=True)
        for sentence in wrong:
            console.print(sentence, soft_wrap=True, markup=False)
        if kills.total() >= options.kills:
            break
    what = ", ".join(f"{count} {kind}" for kind, count in kills.items())
    verdict = ", ".join(f"{found_wrong[kind]} {kind}" for kind in WRONG)
    console.print(
        f"{kills.total()} kills ({what}; {halves} half-written files left behind), {len(expected)} files "
        f"compared per run: {verdict}",
        soft_wrap=True,
    )
    return cli.EXIT_UNEXPECTED if found_wrong else 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.kill_test", __doc__ or "")
