"""Who runs the trials: this process, or Dask workers on this machine or a cluster.

A trial is idempotent: finished, it is skipped; cut off, it goes on from its own checkpoint. So nothing here
has to remember anything. A worker that dies costs the task it was at, the scheduler hands its trial to
another one, and a run that was killed altogether is simply started again.

    in this process      one trial after the other, in a thread, without Dask
    local workers        processes with one thread each
    a scheduler          any Dask cluster that sees the results folder
    Slurm, PBS, OAR      workers that dask-jobqueue submits as jobs

The last three are one code path: they differ in where the client comes from.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import math
import os
import signal
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfr_fa.runs.config import Trial
from sfr_fa.runs.store import RunFolder, TaskRow
from sfr_fa.runs.trial import run_trial, where
from sfr_theory.errors import InputError

ATTEMPTS = 3
"""How often a trial is tried that fails for a reason that may go away, and how often its worker may die."""
MAY_GO_AWAY = (OSError, MemoryError)
POLL_SECONDS = 0.5


class StoppedError(Exception):
    """The run is over; the trial can be resumed."""


@dataclass(frozen=True)
class TrialOutcome:
    """What became of a trial: remarks for the user, or an error."""

    key: str
    notes: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Job:
    """A trial with where to work and whom to tell."""

    trial: Trial
    folder: str
    tensorboard: str | None = None
    stop_file: str | None = None
    """Who finds this file after a task stops: how a run ends where it cannot signal."""

    def run(self) -> TrialOutcome:
        """Run the trial to its end. What may go away is tried again, all else would only happen again."""
        key = self.trial.key
        error = ""
        for _ in range(ATTEMPTS):
            try:
                with self._curves() as record:

                    def after_task(row: TaskRow, record: Callable[[TaskRow], None] = record) -> None:
                        record(row)
                        if self.stop_file and Path(self.stop_file).exists():
                            raise StoppedError

                    return TrialOutcome(key, tuple(run_trial(self.trial, RunFolder(self.folder), after_task)))
            except StoppedError:
                return TrialOutcome(key, error="it was stopped")
            except InputError as wrong:
                return TrialOutcome(key, error=str(wrong))
            except MAY_GO_AWAY as failure:
                error = where(failure)
            except Exception as failure:
                return TrialOutcome(key, error=where(failure))
        return TrialOutcome(key, error=f"{error}, tried {ATTEMPTS} times")

    @contextlib.contextmanager
    def _curves(self) -> Iterator[Callable[[TaskRow], None]]:
        """A function that sends a task to TensorBoard, or to nowhere."""
        if self.tensorboard is None:
            yield lambda row: None
            return
        with require("tensorboardX", "tensorboard").SummaryWriter(
            str(Path(self.tensorboard) / self.trial.key)
        ) as writer:

            def record(row: TaskRow) -> None:
                writer.add_scalar("return", row.total_return, row.task)
                writer.add_scalar("episodes", row.episodes, row.task)
                writer.add_scalar("GPI: own policy", row.gpi_current / max(row.steps, 1), row.task)

            yield record


# --- In this process ---------------------------------------------------------------------------------


TRIAL_THREAD = "trial"


def run_here(jobs: Sequence[Job], refresh: Callable[[], None]) -> Iterator[TrialOutcome]:
    """One trial after the other, in a thread: the main thread shows progress and hears Ctrl-C meanwhile."""
    for job in jobs:
        outcomes: list[TrialOutcome] = []
        thread = threading.Thread(
            target=lambda job=job, outcomes=outcomes: outcomes.append(job.run()),
            name=TRIAL_THREAD,
            daemon=True,
        )
        thread.start()
        while thread.is_alive():
            thread.join(POLL_SECONDS)
            refresh()
        yield outcomes[0] if outcomes else TrialOutcome(job.trial.key, error="it ended without a result")


def leave_at_once(code: int) -> None:
    """End the process now if a trial is still computing; do nothing otherwise.

    Compiled code does not listen, and to wait for the end of its task may take long. Nothing is lost but that
    task: what is on the disk is whole at every moment.
    """
    if any(thread.name == TRIAL_THREAD for thread in threading.enumerate()):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


# --- On Dask -----------------------------------------------------------------------------------------

JOB_QUEUES = {"slurm": "SLURMCluster", "pbs": "PBSCluster", "oar": "OARCluster"}
RESUBMIT_SECONDS = 5.0
LONELY_SECONDS = 60.0
"""After so long without a worker the user is told that there is none."""


@dataclass(frozen=True)
class Workers:
    """Which Dask workers: a scheduler that runs already, a job queue, or else processes of this machine."""

    count: int
    scheduler: str | None = None
    queue: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Passed on to dask-jobqueue."""


def run_on_dask(
    jobs: Sequence[Job], workers: Workers, refresh: Callable[[], None], say: Callable[[str], None]
) -> Iterator[TrialOutcome]:
    """All trials on Dask workers, in the order in which they end; `say` tells the user something."""
    distributed = require("distributed", "cluster")
    with _quiet(), _client(distributed, workers) as (client, look_after):
        token = uuid.uuid4().hex
        pending = {
            client.submit(Job.run, job, key=f"{job.trial.key}-{token}", pure=False): job.trial.key
            for job in jobs
        }
        lonely_at: float = time.monotonic() + LONELY_SECONDS
        while pending:
            try:
                done = distributed.wait(
                    list(pending), timeout=POLL_SECONDS, return_when="FIRST_COMPLETED"
                ).done
            except TimeoutError:
                done = set()
            except distributed.CancelledError:
                done = {future for future in pending if future.cancelled()}
            for future in done:
                yield _outcome(future, pending.pop(future))
            look_after()
            refresh()
            if time.monotonic() > lonely_at:
                lonely_at = math.inf
                if not client.nthreads():
                    say("no worker has joined so far; are the jobs waiting in their queue, or did they fail?")


def _outcome(future: Any, key: str) -> TrialOutcome:
    try:
        outcome: TrialOutcome = future.result()
    except Exception as error:
        kind = type(error).__name__
        if kind == "KilledWorker":
            return TrialOutcome(key, error="each worker that took it up has died (out of memory?)")
        if "Cancelled" in kind:
            return TrialOutcome(key, error="the scheduler went away; the same command goes on from here")
        return TrialOutcome(key, error=f"{kind}: {error}")
    return outcome


@contextlib.contextmanager
def _client(distributed: Any, workers: Workers) -> Iterator[tuple[Any, Callable[[], None]]]:
    """A client, and a function that looks after the workers and is to be called now and then."""
    if workers.scheduler is not None:
        try:
            client = distributed.Client(workers.scheduler, timeout=10)
        except (OSError, TimeoutError, ValueError) as error:
            raise InputError(f"no Dask scheduler answers at {workers.scheduler}: {error}") from None
        with client:
            yield client, lambda: None
        return
    dask = require("dask", "cluster")
    # Trials lose little when a worker dies, so it takes more than bad luck for one to be given up.
    with dask.config.set({"distributed.scheduler.allowed-failures": 10 * ATTEMPTS}):
        if workers.queue is not None:
            with job_queue(workers) as queue, distributed.Client(queue.cluster) as client:
                yield client, queue.look_after
            return
        with _local_cluster(distributed, workers.count) as cluster, distributed.Client(cluster) as client:
            try:
                yield client, lambda: None
            except BaseException:
                _kill_workers(cluster)
                raise


class JobQueue:
    """Workers that are jobs of a queue.

    A job that ends too soon, cancelled or at its time limit, is submitted again. If not even the first ones
    can be submitted, the user is told why.
    """

    def __init__(self, workers: Workers) -> None:
        kind = getattr(require("dask_jobqueue", "cluster"), JOB_QUEUES[str(workers.queue)])
        self.name, self.count = workers.queue, workers.count
        self.submitted = 0
        self.problem: str | None = None
        self._next_look = 0.0
        options = {**self._defaults(), **workers.options}
        try:
            self.cluster = kind(job_cls=self._counted(kind.job_cls), **options)
        except (TypeError, ValueError) as error:
            raise InputError(f"dask-jobqueue does not accept these --cluster-options: {error}") from None

    def _defaults(self) -> dict[str, Any]:
        """What a trial needs, where the user's own configuration of dask-jobqueue is silent."""
        known = require("dask", "cluster").config.get(f"jobqueue.{self.name}")
        defaults: dict[str, Any] = {
            "cores": 1, "processes": 1, "memory": "4GB", "scheduler_options": {"dashboard_address": None},
        }  # fmt: skip
        if self.name == "oar":
            defaults["memory_per_core_property_name"] = "not_applicable"
        return {name: value for name, value in defaults.items() if not known.get(name.replace("_", "-"))}

    def _counted(self, job_class: Any) -> Any:
        """The class of jobs, such that this object hears whether they can be submitted."""
        queue, running = self, require("distributed", "cluster").Status.running

        class CountedJob(job_class):
            async def start(self) -> None:
                try:
                    await super().start()
                    queue.submitted += 1
                except FileNotFoundError as error:
                    queue.problem = f"there is no command {error.filename}"
                except (OSError, RuntimeError) as error:
                    queue.problem = " ".join(str(error).rpartition("stderr:")[2].split())
                self.status = running  # one that failed has no job_id, and is tried again

        return CountedJob

    def look_after(self) -> None:
        """Submit what is missing."""
        if self.problem and not self.submitted:
            raise InputError(f"jobs cannot be submitted to {self.name} here: {self.problem}")
        if time.monotonic() < self._next_look:
            return
        self._next_look = time.monotonic() + RESUBMIT_SECONDS
        for name, job in list(self.cluster.workers.items()):
            if job.job_id is None:
                del self.cluster.workers[name]
        self.cluster.scale(jobs=self.count)


@contextlib.contextmanager
def job_queue(workers: Workers) -> Iterator[JobQueue]:
    queue = JobQueue(workers)
    with queue.cluster:
        yield queue


def _local_cluster(distributed: Any, count: int) -> Any:
    """Worker processes of this machine, deaf to Ctrl-C: a terminal sends it to all, but ending them is ours.

    A signal mask is inherited by threads and processes, so also by workers that Dask starts later.
    """
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        return distributed.LocalCluster(
            n_workers=count,
            threads_per_worker=1,
            processes=True,
            dashboard_address=None,
            memory_limit=None,
            silence_logs=logging.CRITICAL,
        )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})


def _kill_workers(cluster: Any) -> None:
    """End local workers at once: compiled code does not listen, and only their current tasks are lost."""
    for nanny in cluster.workers.values():
        process = getattr(nanny, "process", None)
        pid = getattr(process, "pid", None)
        if pid:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask reports every lost connection, which is no news to a run that survives them."""
    loggers = [logging.getLogger(name) for name in ("distributed", "tornado", "asyncio")]
    levels = [logger.level for logger in loggers]
    for logger in loggers:
        logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def require(name: str, extra: str) -> Any:
    """A package that only some runs need, or a sentence that says how to get it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(f"this needs {name}, which is not installed: pip install '.[{extra}]'") from None
