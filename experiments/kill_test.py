"""Kill a run again and again, and compare what comes out: `python -m experiments.kill_test`.

A run on two workers is killed with SIGKILL, in turn

    runner    the process that the user started
    worker    one of its workers, while the run goes on
    writing   runner and workers, at the moment when half a checkpoint is on the disk,

each time at a random moment after new work was stored, and started again with the same command. In the end
all files are compared with those of an undisturbed run: tables byte for byte, JSON apart from times, commit
and platform. Exit code 1 if anything differs.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sfr_fa.runs.store import SUFFIX, TIMES
from sfr_fa.runs.workers import require
from sfr_theory import cli
from sfr_theory.errors import InputError

KINDS = ("runner", "worker", "writing")
NOT_COMPARED = {*TIMES, "provenance", "sha256"}


@dataclass(frozen=True)
class Options:
    experiment: str = "object_collection_general"
    """Name or path of a config."""
    profile: str = "reduced"
    agents: tuple[str, ...] = ("Q", "SF", "SFR", "MB SFR")
    kills: int = 20
    workers: int = 2
    longest_wait: float = 3.0
    """Seconds between new work and the kill are uniform up to this."""
    seed: int = 0
    engine: str = "compiled"


class RunUnderTest:
    """The command under test; nothing of it outlives the `with` block."""

    def __init__(self, options: Options, results: Path) -> None:
        self.results = results
        self.command = [
            sys.executable, "-m", "experiments.run", options.experiment, "--profile", options.profile,
            "--results", str(results), "--workers", str(options.workers), "--engine", options.engine,
            "--agents", *options.agents,
        ]  # fmt: skip
        self.process: subprocess.Popen[str] | None = None

    def __enter__(self) -> RunUnderTest:
        return self

    def __exit__(self, *exception: object) -> None:
        if self.process and self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.communicate()

    def start(self) -> subprocess.Popen[str]:
        self.process = subprocess.Popen(
            self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
        )
        return self.process

    def running(self) -> subprocess.Popen[str]:
        """The process, started again if it has ended."""
        return self.process if self.process and self.process.poll() is None else self.start()

    def stored(self) -> set[str]:
        """Names of what is stored, finished or not."""
        return {
            str(path)
            for pattern in (f"*.task-*{SUFFIX}", "rep-*.json")
            for path in self.results.rglob(pattern)
        }

    def half_written(self) -> list[Path]:
        return [
            Path(folder) / name
            for folder, _, names in os.walk(self.results)
            for name in names
            if name.startswith(".rep-")
        ]


def workers_of(process: subprocess.Popen[str]) -> list[Any]:
    """The processes that Dask has started for a run."""
    psutil = require("psutil", "cluster")
    try:
        children = psutil.Process(process.pid).children(recursive=True)
        return [child for child in children if any("spawn_main" in part for part in child.cmdline())]
    except psutil.NoSuchProcess:
        return []


def wait(process: subprocess.Popen[str], condition: Callable[[], Any], pause: float = 0.01) -> bool:
    """Whether the condition came true before the process ended."""
    while process.poll() is None:
        if condition():
            return True
        time.sleep(pause)
    return False


def kill_once(run: RunUnderTest, kind: str, longest_wait: float, rng: random.Random) -> bool:
    """Start the run if it is not running and kill what `kind` says; False if it ended before that."""
    process = run.running()
    before = run.stored()
    if not wait(process, lambda: run.stored() - before):
        return False
    time.sleep(rng.uniform(0, longest_wait))
    workers = workers_of(process)
    if not workers:
        return False
    if kind == "worker":
        os.kill(rng.choice(workers).pid, signal.SIGKILL)
        return True
    # A checkpoint is half written for some milliseconds, so its writer is the first to be killed.
    if kind == "writing" and not wait(process, run.half_written, pause=0.0):
        return False
    for victim in (*(workers if kind == "writing" else ()), process):
        with contextlib.suppress(ProcessLookupError):
            os.kill(victim.pid, signal.SIGKILL)
    process.communicate()
    return True


def contents(folder: Path) -> dict[str, Any]:
    """File name -> what must not depend on how often a run was killed.

    The commit may change meanwhile, and remarks on damaged checkpoints are no results.
    """
    found: dict[str, Any] = {}
    for path in folder.rglob("*"):
        name = str(path.relative_to(folder))
        if path.suffix == ".csv":
            found[name] = path.read_bytes()
        elif path.suffix == ".json":
            found[name] = {k: v for k, v in json.loads(path.read_text()).items() if k not in NOT_COMPARED}
    return found


def main(options: Options) -> int:
    if options.kills < 1 or options.workers < 2:
        raise InputError("--kills must be at least 1 and --workers at least 2")
    console = cli.output_console(None)
    rng = random.Random(options.seed)
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder,
        RunUnderTest(options, Path(folder) / "undisturbed") as undisturbed,
        RunUnderTest(options, Path(folder) / "killed") as killed,
    ):
        output, _ = undisturbed.start().communicate()
        if undisturbed.process is None or undisturbed.process.returncode != 0:
            raise InputError(f"the undisturbed run failed: {output.strip()}")
        console.print(output.strip())
        done: Counter[str] = Counter()
        halves = 0
        kinds = itertools.cycle(KINDS)
        while done.total() < options.kills:
            kind = next(kinds)
            if kill_once(killed, kind, options.longest_wait, rng):
                done[kind] += 1
                halves += len(killed.half_written()) if kind == "writing" else 0
            elif killed.process and killed.process.poll() is not None:
                killed.process.communicate()
                console.print(f"the run was finished after {done.total()} kills; a larger profile takes more")
                break
        output, _ = killed.running().communicate()
        expected, found = contents(undisturbed.results), contents(killed.results)
        different = sorted(name for name in expected | found if expected.get(name) != found.get(name))
        kills = ", ".join(f"{done[kind]} {kind}" for kind in KINDS)
        console.print(
            f"{done.total()} kills ({kills}; {halves} half-written checkpoints left behind), then a run to "
            f"the end: {len(expected)} files, {len(different)} differ",
            soft_wrap=True,
        )
        for name in different:
            console.print(f"different: {name}")
        if different:
            console.print(output.strip())
        return cli.EXIT_UNEXPECTED if different or done.total() < options.kills else 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.kill_test", __doc__ or "")
