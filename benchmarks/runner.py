"""What running an experiment costs on top of its steps: checkpoints, results, progress.

One trial is run by `experiments.run`, as a user would and with the progress of a terminal: SFR on object
collection, 300 tasks of 20,000 steps, the state stored after every task. Processor time is divided into

    engine    within `Engine.run_task`, in the thread that runs the trial
    runner    all else, in all threads

and the second must be less than a tenth of the first. Kernels are compiled, or loaded, before.
"""

from __future__ import annotations

import contextlib
import io
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Any
from unittest import mock

import tyro

from benchmarks import goals
from benchmarks.goals import goal_table
from experiments import run
from sfr_fa.engines import Engine
from sfr_fa.engines.base import TaskResult
from sfr_theory import cli
from sfr_theory.errors import InputError

EXPERIMENT, AGENT = "object_collection_general", "SFR"


@dataclass(frozen=True)
class Options:
    """What to measure."""

    profile: str = "paper"
    """Size of the trial: paper takes about a minute, reduced some seconds."""
    json: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Write the figures as JSON; "-" is standard output."""


@contextlib.contextmanager
def engine_seconds() -> Iterator[list[float]]:
    """Processor time of every task of an engine, in the thread that runs it."""
    seconds: list[float] = []
    run_task = Engine.run_task

    def timed(engine: Engine, *arguments: Any) -> TaskResult:
        started = time.thread_time()
        result = run_task(engine, *arguments)
        seconds.append(time.thread_time() - started)
        return result

    with mock.patch.object(Engine, "run_task", timed):
        yield seconds


@contextlib.contextmanager
def unseen_terminal() -> Iterator[None]:
    """Progress is shown as on a terminal, but nobody sees it."""
    with (
        mock.patch.dict(os.environ, {"FORCE_COLOR": "1"}),
        contextlib.redirect_stderr(io.StringIO()) as shown,
        contextlib.redirect_stdout(io.StringIO()),
    ):
        yield
    assert "steps/s" in shown.getvalue()


def run_trial(profile: str) -> None:
    """The first repetition of SFR, as `python -m experiments.run` does it."""
    with tempfile.TemporaryDirectory() as folder, unseen_terminal():
        options = run.Options(EXPERIMENT, profile, results=folder, agents=(AGENT,), repetitions=(0,))
        if run.main(options) != 0:
            raise InputError(
                f"the run of {AGENT} has failed; python -m experiments.run {EXPERIMENT} says why"
            )


def measure(profile: str) -> dict[str, float]:
    """Processor seconds of a trial, of the engine and of the runner."""
    run_trial("smoke")  # compile, or load from the cache
    with engine_seconds() as tasks:
        started = time.process_time()
        run_trial(profile)
        total = time.process_time() - started
    return {"engine": sum(tasks), "runner": total - sum(tasks)}


def main(options: Options) -> int:
    """Measure, print, and write JSON if asked to."""
    console = cli.output_console(options.json)
    shares = measure(options.profile)
    goal = goals.COST_OF_RUNNER.at(100 * shares["runner"] / shares["engine"])
    console.print(
        f"{AGENT}, object collection, profile {options.profile}, processor time: "
        f"engine {shares['engine']:.1f} s; runner, checkpoints and progress {shares['runner']:.1f} s"
    )
    console.print(goal_table([goal]))
    if options.json is not None:
        cli.write_json({**shares, "goals": [goal.to_json()]}, options.json)
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "benchmarks.runner", __doc__ or "")
