"""Who runs the trials: this process, or Dask workers on this machine or a cluster.

A trial is idempotent: finished, it is skipped; cut off, it continues from its own checkpoint. So nothing here
has to remember anything. A worker that dies loses the task that it was working on, the scheduler hands its
trial to another one, and a run that was killed as a whole is simply started again.

    in this process      one trial after the other, in a thread, without Dask
    local workers        processes with one thread each
    a scheduler          any Dask cluster that sees the results folder
    Slurm, PBS, OAR      workers that dask-jobqueue submits as jobs

The last three are one code path: they differ in where the client comes from.

Whoever may talk to a Dask scheduler or worker may run code as its user. So the clusters that are made here
speak TLS with a key that is made for the run: local workers get it through a pipe, jobs from files that only
the user can read, and anyone without a certificate signed with it is refused. A scheduler of the user's own
is theirs to protect; one that is open is reported as such.
"""

from __future__ import annotations

import asyncio
import contextlib
import copy
import importlib
import logging
import multiprocessing
import os
import shlex
import signal
import sys
import tempfile
import threading
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sfr_fa.runs.config import Trial
from sfr_fa.runs.store import CREDENTIALS, RunFolder, TaskRow
from sfr_fa.runs.trial import run_trial, where
from sfr_theory.atomic import output_errors
from sfr_theory.errors import InputError

ATTEMPTS = 3
"""How many times a trial is tried if it fails for a reason that may pass, or if its worker dies."""
MAY_GO_AWAY = (OSError, MemoryError)
POLL_SECONDS = 0.5


class StoppedError(Exception):
    """The run is over; the trial can be resumed."""


class WorkersLostError(Exception):
    """Workers die before they can do anything, again and again."""


@dataclass(frozen=True)
class TrialOutcome:
    """What became of a trial: remarks for the user, or an error."""

    key: str
    notes: tuple[str, ...] = ()
    error: str | None = None


@dataclass(frozen=True)
class Job:
    """A trial, where to store it, and where to report it."""

    trial: Trial
    folder: str
    tensorboard: str | None = None
    stop_file: str | None = None
    """A worker that finds this file after a task stops: how a run ends where it cannot send signals."""

    def run(self) -> TrialOutcome:
        """Run the trial to its end, again after errors that may pass; others would only recur."""
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

    Compiled code does not listen, and waiting for the end of its task may take long. Nothing is lost but that
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
"""After this long without a worker the user is told that there is none."""
NO_DASHBOARD = {"dashboard": False, "dashboard_address": "127.0.0.1:0"}
"""Dask always serves HTTP: on a port of this machine only, and `NO_ROUTES` leaves nothing to see there."""
NO_ROUTES: dict[str, Any] = {"distributed.scheduler.http.routes": [], "distributed.worker.http.routes": []}


@dataclass(frozen=True)
class Workers:
    """Which Dask workers: a scheduler that runs already, a job queue, or else processes of this machine."""

    count: int
    scheduler: str | None = None
    queue: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Passed on to dask-jobqueue."""
    shared: str = "."
    """A folder that jobs see too, where their credentials are put."""


def run_on_dask(
    jobs: Sequence[Job], workers: Workers, refresh: Callable[[], None], say: Callable[[str], None]
) -> Iterator[TrialOutcome]:
    """All trials on Dask workers, in the order in which they end; `say` tells the user something."""
    distributed = require("distributed", "cluster")
    with _quiet(), _client(distributed, workers, say) as (client, look_after):
        token = uuid.uuid4().hex
        pending = {
            client.submit(Job.run, job, key=f"{job.trial.key}-{token}", pure=False): job.trial.key
            for job in jobs
        }
        check_lonely = _lonely(client, say)
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
            try:
                look_after()
            except WorkersLostError as lost:
                yield from (TrialOutcome(key, error=str(lost)) for key in pending.values())
                return
            refresh()
            check_lonely()


def _lonely(client: Any, say: Callable[[str], None]) -> Callable[[], None]:
    """A function to call now and then; it tells the user, once each time, that there are no workers."""
    next_look = time.monotonic() + LONELY_SECONDS
    said = False

    def check() -> None:
        nonlocal next_look, said
        if time.monotonic() < next_look:
            return
        next_look = time.monotonic() + LONELY_SECONDS
        with contextlib.suppress(OSError):  # a scheduler that does not answer is noticed by `wait`
            alone = not client.nthreads()
            if alone and not said:
                say("there is no worker; are the jobs waiting in their queue, or did they fail?")
            said = alone

    return check


def _outcome(future: Any, key: str) -> TrialOutcome:
    try:
        outcome: TrialOutcome = future.result()
    except Exception as error:
        kind = type(error).__name__
        if kind == "KilledWorker":
            return TrialOutcome(key, error="each worker that took it up has died (out of memory?)")
        if "Cancelled" in kind:
            return TrialOutcome(key, error="the scheduler went away; the same command continues from here")
        return TrialOutcome(key, error=f"{kind}: {error}")
    return outcome


@contextlib.contextmanager
def _client(
    distributed: Any, workers: Workers, say: Callable[[str], None]
) -> Iterator[tuple[Any, Callable[[], None]]]:
    """A client, and a function that looks after the workers and is to be called now and then."""
    if workers.scheduler is not None:
        if not workers.scheduler.startswith("tls://"):
            say(f"the scheduler at {workers.scheduler} is {OPEN}")
        try:
            client = distributed.Client(workers.scheduler, timeout=10)
        except (OSError, TimeoutError, ValueError, TypeError) as error:
            raise InputError(f"no Dask scheduler answers at {workers.scheduler}: {error}") from None
        with client:
            yield client, lambda: None
        return
    dask = require("dask", "cluster")
    # Trials lose little when a worker dies, so it takes more than bad luck for one to be given up.
    with dask.config.set({"distributed.scheduler.allowed-failures": 10 * ATTEMPTS}):
        if workers.queue is not None:
            with job_queue(workers) as queue, distributed.Client(queue.cluster) as client:
                if not queue.cluster.scheduler_address.startswith("tls://"):
                    say(f"without TLS the scheduler of these jobs is {OPEN}")
                yield client, queue.look_after
            return
        with local_workers(workers.count, say) as local, distributed.Client(local.cluster) as client:
            yield client, local.look_after


OPEN = "open: whoever can connect to it can run code as the user of its workers (docs/running.md)"


def new_credentials() -> Any:
    """A new key and its certificate, in memory: whoever holds them can connect, and nobody else."""
    require("cryptography", "cluster")
    return require("distributed", "cluster").Security.temporary()


# --- Workers of this machine


class LocalWorkers:
    """Processes with one thread each. One that dies is reported and replaced.

    A process that dies at work uses up one of the deaths that Dask allows its trial. Those that die before
    they join have no trial to charge: after `ATTEMPTS` of them per worker in a row the run is given up.
    """

    def __init__(self, cluster: Any, count: int, say: Callable[[str], None]) -> None:
        self.cluster, self.count, self.say = cluster, count, say
        self.processes: dict[str, Any] = {}
        self._started = 0
        self._joined: set[str] = set()
        self._died_before_joining = 0

    def look_after(self) -> None:
        """Report who died, and start who is missing."""
        joined = set(self.cluster.scheduler.aliases) - self._joined
        if joined:
            self._joined |= joined
            self._died_before_joining = 0
        for name, process in list(self.processes.items()):
            code = process.exitcode
            if code is None:
                continue
            del self.processes[name]
            names = {int(number): number.name for number in signal.Signals}
            how = f"signal {names.get(-code, -code)}" if code < 0 else f"exit code {code}"
            if name not in self._joined:
                self._died_before_joining += 1
            if self._died_before_joining >= ATTEMPTS * self.count:
                raise WorkersLostError(
                    f"{self._died_before_joining} workers in a row died before they could begin ({how}); "
                    f"is there enough memory? The same command continues from here"
                )
            self.say(
                f"a worker was lost ({how}); it is replaced, and its trial continues from its last checkpoint"
            )
        while len(self.processes) < self.count:
            self._start()

    def _start(self) -> None:
        """Start a process that ignores Ctrl-C: a terminal sends it to all, but it is for us to end them.

        A signal mask and the environment are inherited. The variables keep libraries to one thread each.
        """
        name = f"local-{self._started}"
        self._started += 1
        process = multiprocessing.get_context("spawn").Process(
            target=_serve, args=(self.cluster.scheduler_address, name, self.cluster.security), daemon=True
        )
        variables = require("dask", "cluster").config.get("distributed.nanny.pre-spawn-environ")
        before = dict(os.environ)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            os.environ.update({key: str(value) for key, value in variables.items()})
            process.start()
        finally:
            signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
            for key in variables:
                os.environ.pop(key, None)
                if key in before:
                    os.environ[key] = before[key]
        self.processes[name] = process

    def kill(self) -> None:
        """End all at once: compiled code does not listen, and only their current tasks are lost."""
        for process in self.processes.values():
            process.kill()


@contextlib.contextmanager
def local_workers(count: int, say: Callable[[str], None]) -> Iterator[LocalWorkers]:
    """Workers of this machine and their scheduler, which listens on this machine only and asks for TLS."""
    distributed = require("distributed", "cluster")
    security = new_credentials()
    options = {"host": "127.0.0.1", "protocol": "tls://", "security": security, **NO_DASHBOARD}
    # The threads of the scheduler leave Ctrl-C to the main thread.
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        with require("dask", "cluster").config.set(NO_ROUTES):
            cluster = distributed.SpecCluster(
                scheduler={"cls": distributed.Scheduler, "options": options},
                security=security,
                silence_logs=logging.CRITICAL,
            )
    finally:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    workers = LocalWorkers(cluster, count, say)
    try:
        with cluster:
            try:
                workers.look_after()
                yield workers
            except BaseException:
                workers.kill()
                raise
        for process in workers.processes.values():  # they end with their scheduler
            process.join(GOODBYE_SECONDS)
    finally:
        workers.kill()


GOODBYE_SECONDS = 3.0


def _serve(address: str, name: str, security: Any) -> None:
    """A worker, until its scheduler or the process that started it is gone."""

    def end_with_parent() -> None:
        parent = multiprocessing.parent_process()
        if parent is not None:
            parent.join()
        os._exit(1)

    async def serve() -> None:
        worker = require("distributed", "cluster").Worker(
            address, nthreads=1, name=name, host="127.0.0.1", protocol="tls://", security=security,
            memory_limit=None, silence_logs=logging.CRITICAL, **NO_DASHBOARD,
        )  # fmt: skip
        async with worker:
            await worker.finished()

    threading.Thread(target=end_with_parent, daemon=True).start()
    with _quiet(), require("dask", "cluster").config.set(NO_ROUTES):
        asyncio.run(serve())
    os._exit(0)  # without waiting for a trial whose run is over


# --- Workers that are jobs


class JobQueue:
    """Workers that are jobs of a queue.

    A job that ends too soon, cancelled or at its time limit, is submitted again. If not even the first ones
    can be submitted, the user is told why.
    """

    def __init__(self, workers: Workers, security: Any, credentials: Path) -> None:
        kind = getattr(require("dask_jobqueue", "cluster"), JOB_QUEUES[str(workers.queue)])
        self.name, self.count = workers.queue, workers.count
        self.submitted = 0
        self.problem: str | None = None
        self._credentials = credentials
        self._next_look = 0.0
        dask = require("dask", "cluster")
        known = dask.config.get(f"jobqueue.{self.name}")
        options = {**self._defaults(known), "security": security, **workers.options}
        scheduler = options.get("scheduler_options") or known.get("scheduler-options") or {}
        asked = scheduler.get("dashboard_address") is not None
        options["scheduler_options"] = scheduler if asked else {**scheduler, **NO_DASHBOARD}
        extra = options.get("worker_extra_args") or known.get("worker-extra-args") or []
        options["worker_extra_args"] = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0", *extra]
        try:
            with dask.config.set({} if asked else NO_ROUTES):
                self.cluster = kind(job_cls=self._counted(kind.job_cls), **options)
        except (TypeError, ValueError) as error:
            raise InputError(f"dask-jobqueue does not accept these --cluster-options: {error}") from None

    def _defaults(self, known: Mapping[str, Any]) -> dict[str, Any]:
        """What a trial needs, where the user's own configuration of dask-jobqueue is silent."""
        defaults: dict[str, Any] = {"cores": 1, "processes": 1, "memory": "4GB"}
        if self.name == "oar":
            defaults["memory_per_core_property_name"] = "not_applicable"
        return {name: value for name, value in defaults.items() if not known.get(name.replace("_", "-"))}

    def _counted(self, job_class: Any) -> Any:
        """The class of jobs, changed so that this object is told whether they can be submitted."""
        queue, running = self, require("distributed", "cluster").Status.running

        class CountedJob(job_class):
            def __init__(self, *arguments: Any, security: Any = None, **options: Any) -> None:
                if security is not None:  # its paths become words of a shell script
                    security = copy.copy(security)
                    for field in IN_FILES:
                        setattr(security, field, shlex.quote(getattr(security, field)))
                super().__init__(*arguments, security=security, **options)

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
        with contextlib.suppress(OSError):
            os.utime(self._credentials)  # RunFolder.tidy removes those that nobody needs any more
        for name, job in list(self.cluster.workers.items()):
            if job.job_id is None:
                del self.cluster.workers[name]
        self.cluster.scale(jobs=self.count)


IN_FILES = ("tls_ca_file", "tls_worker_key", "tls_worker_cert")
"""The credentials that jobs read from files."""


@contextlib.contextmanager
def job_queue(workers: Workers) -> Iterator[JobQueue]:
    security = new_credentials()
    shared = Path(workers.shared).absolute()
    with output_errors(shared):
        shared.mkdir(parents=True, exist_ok=True)
        folder = tempfile.TemporaryDirectory(
            prefix=CREDENTIALS, dir=shared, ignore_cleanup_errors=True
        )  # only the user can enter it
    with folder as place:
        for field in IN_FILES:
            path = Path(place) / field
            path.write_text(getattr(security, field))
            setattr(security, field, str(path))
        queue = JobQueue(workers, security, Path(place))
        with queue.cluster:
            yield queue


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
    """Dask reports every lost connection; a run that survives them need not show that."""
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
    """A package that only some runs need; without it, a sentence that says how to install it."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise InputError(
            f"this needs {name}, which is not installed; pip install 'sfr[{extra}]', in a checkout "
            f"'.[{extra}]'"
        ) from None
