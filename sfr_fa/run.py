"""Run an experiment: `python -m sfr_fa.run config.py --profile reduced --workers 2`.

The config is a Python file, or a module by its name, that defines CONFIG, a
`sfr_fa.runs.config.ExperimentConfig`. It is checked before anything is written: every agent is built once.

Kill it at any moment: the same command continues where it stopped and gives the same numbers, bit for bit.
Finished trials are skipped, so running it twice does nothing the second time. Results go to
RESULTS/NAME/PROFILE.

Exit code 0: every trial is finished. 1: some failed, and are named with their error. 2: bad input.
130: interrupted.
"""

from __future__ import annotations

import contextlib
import datetime
import functools
import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn
from rich.table import Table

from sfr_fa.engines import Engine
from sfr_fa.runs import store
from sfr_fa.runs.config import ExperimentConfig, Trial, load_config, thing
from sfr_fa.runs.estimates import Estimate, estimate
from sfr_fa.runs.racing import plan, rounds_of
from sfr_fa.runs.store import RunFolder, TrialState
from sfr_fa.runs.trial import check_trials, provenance
from sfr_fa.runs.wording import duration, rate_text, rates_text
from sfr_fa.runs.workers import (
    JOB_QUEUES,
    Job,
    TrialOutcome,
    Workers,
    leave_at_once,
    require,
    run_here,
    run_on_dask,
)
from sfr_theory import cli
from sfr_theory.errors import InputError

Flag = tyro.conf.FlagCreatePairsOff[bool]
WORKERS_PER_CORE = 8
"""Processes on this machine, for each core; more would fill its memory before they finish anything."""


@dataclass(frozen=True)
class Options:
    experiment: tyro.conf.Positional[str]
    """A Python file, or a module by its name, that defines CONFIG."""
    profile: str = "smoke"
    """How much of it: smoke (seconds), reduced (minutes), paper (the paper's numbers)."""
    results: str = "results"
    """Folder for results; the run goes to RESULTS/NAME/PROFILE."""
    workers: int = 1
    """How many trials run at once. 1 needs no Dask."""
    scheduler: str | None = None
    """Address of a Dask scheduler (tcp://host:8786) whose workers see this folder under the same path."""
    slurm: Flag = False
    """Submit WORKERS jobs to Slurm and run on them."""
    pbs: Flag = False
    """The same with PBS."""
    oar: Flag = False
    """The same with OAR."""
    cluster_options: Annotated[tuple[str, ...], tyro.conf.arg(metavar="KEY=VALUE ...")] = ()
    """For dask-jobqueue, such as queue=long walltime=12:00:00 memory=4GB; lists as JSON."""
    settings: tuple[str, ...] = ()
    """Only these settings, by name; all others remain to be done."""
    agents: tuple[str, ...] = ()
    """Only these agents, by label."""
    learning_rates: tuple[float, ...] = ()
    """Only agents with these rates alpha, for instance to run the best of a grid in all repetitions."""
    repetitions: tuple[int, ...] = ()
    """Only these repetitions, counted from 0."""
    race: Flag = False
    """For a grid: first a few repetitions of all rates, then more only of those that can still win."""
    engine: str | None = None
    """compiled or reference, in place of the config's."""
    precision: str | None = None
    """float32 or float64 for all agents, in place of the config's."""
    tensorboard: str | None = None
    """Also write learning curves for TensorBoard to this folder."""
    dry_run: Flag = False
    """Print the trials and an estimate of time and disk, and do nothing."""

    @property
    def queue(self) -> str | None:
        chosen = [name for name in JOB_QUEUES if getattr(self, name)]
        if len(chosen) > 1 or (chosen and self.scheduler):
            raise InputError("choose one of --scheduler, --slurm, --pbs and --oar")
        if self.cluster_options and not chosen:
            raise InputError("--cluster-options are for --slurm, --pbs or --oar")
        return chosen[0] if chosen else None

    def configured(self) -> ExperimentConfig:
        """The config with what the command line changes in it."""
        config = load_config(self.experiment)
        if self.engine is not None:
            thing("engine", self.engine)
            config = replace(config, engine=self.engine)
        if self.precision is not None:
            parts = tuple(
                replace(part, agents=tuple(replace(agent, precision=self.precision) for agent in part.agents))
                for part in config.parts
            )
            config = replace(config, parts=parts)
        return config

    def chosen(self, config: ExperimentConfig) -> tuple[Trial, ...]:
        """The trials to be run."""
        settings = [part.setting.name for part in config.parts]
        for kind, asked, there in (
            ("setting", self.settings, settings),
            ("agent", self.agents, config.labels),
        ):
            for name in asked:
                if name not in there:
                    raise InputError(f"{config.name} has no {kind} {name!r}; it has {', '.join(there)}")
        # Compared as tables print them: nobody types all digits of numpy.logspace.
        rates = {rate_text(rate) for rate in self.learning_rates}
        known_rates = {rate_text(agent.learning_rate) for part in config.parts for agent in part.agents}
        for rate in rates - known_rates:
            found = ", ".join(sorted(known_rates))
            raise InputError(f"{config.name} has no learning rate {rate}; it has {found}")
        count = config.profile(self.profile).repetitions
        for repetition in self.repetitions:
            if not 0 <= repetition < count:
                raise InputError(f"there is no repetition {repetition}; they are 0 to {count - 1}")
        if self.race and self.repetitions:
            raise InputError("--race chooses the repetitions itself; leave out --repetitions")
        if self.race and count < 2:
            raise InputError(f"--race needs at least 2 repetitions; the profile {self.profile!r} has {count}")
        chosen = tuple(
            trial
            for trial in config.trials(self.profile)
            if (not self.settings or trial.setting.name in self.settings)
            and (not self.agents or trial.agent.label in self.agents)
            and (not rates or rate_text(trial.agent.learning_rate) in rates)
            and (not self.repetitions or trial.repetition in self.repetitions)
        )
        if not chosen:
            raise InputError(
                f"{config.name} has no trial with all of these settings, agents, rates and repetitions"
            )
        return chosen

    def cluster_keywords(self) -> dict[str, Any]:
        pairs: dict[str, Any] = {}
        for option in self.cluster_options:
            key, equals, value = option.partition("=")
            if not equals or not key.isidentifier():
                raise InputError(f"--cluster-options has {option!r}; each is KEY=VALUE")
            try:
                pairs[key] = json.loads(value)
            except ValueError:
                pairs[key] = value
        return pairs


def main(options: Options) -> int:
    console = cli.output_console(None)
    config = options.configured()
    trials = options.chosen(config)
    queue, keywords = options.queue, options.cluster_keywords()
    if options.workers < 1:
        raise InputError(f"--workers is {options.workers}; there must be at least one")
    most = WORKERS_PER_CORE * (os.cpu_count() or 1)
    if options.workers > most and options.scheduler is None and queue is None:
        raise InputError(
            f"--workers is {options.workers}; at most {most} run here, {WORKERS_PER_CORE} for each core"
        )
    folder = RunFolder(Path(options.results) / config.name / options.profile)
    engines = check_trials(trials)
    # Labels and titles are the user's: [brackets] in them are no markup.
    say = functools.partial(console.print, soft_wrap=True, markup=False)
    if options.dry_run:
        show_plan(say, config, trials, engines, folder, options.workers)
        return 0
    if options.tensorboard:
        require("tensorboardX", "tensorboard")
        cli.require_writable(str(Path(options.tensorboard) / "any"))
    folder.start(
        config.to_json(options.profile),
        [trial.key for trial in config.trials(options.profile)],
        provenance(config.engine),
    )
    if options.race:
        folder.add_races(frozenset((trial.setting.name, trial.agent.label) for trial in trials))
    states = {trial.key: folder.status(trial.key) for trial in trials}
    finished = sum(status.state is TrialState.FINISHED for status in states.values())
    say(f"{config.title}, profile {options.profile}: {len(trials)} trials, {finished} finished before")
    outcomes = [
        TrialOutcome(key, error=f"{status.reason}; delete its .csv and .json to run it again")
        for key, status in states.items()
        if status.state is TrialState.DAMAGED
    ]
    usable = [trial for trial in trials if states[trial.key].state is not TrialState.DAMAGED]
    stop_file = folder.unfinished / f"stop-{time.time_ns()}"
    workers = Workers(options.workers, options.scheduler, queue, keywords, str(folder.unfinished))
    here = options.workers == 1 and options.scheduler is None and queue is None
    started = time.monotonic()
    try:
        with interruptible() as check, _display(folder, trials, check) as refresh:
            for batch in race_rounds(folder, usable) if options.race else [usable]:
                jobs = [
                    Job(trial, str(folder.path.absolute()), options.tensorboard, str(stop_file.absolute()))
                    for trial in batch
                    if folder.status(trial.key).state is not TrialState.FINISHED
                ]
                run = run_here(jobs, refresh) if here else run_on_dask(jobs, workers, refresh, say)
                if jobs:
                    outcomes += run
    except KeyboardInterrupt:
        with contextlib.suppress(OSError):
            stop_file.touch()
        console.print("interrupted; the same command continues from here")
        return cli.EXIT_INTERRUPTED
    folder.tidy()
    return _summary(say, folder, outcomes, time.monotonic() - started)


def race_rounds(folder: RunFolder, trials: Sequence[Trial]) -> Iterator[list[Trial]]:
    """The trials that each round of a race still needs, judged by the results there are (`racing.plan`).

    A trial that is not there, since its files are damaged, or that has failed ends the race of its agent.
    """
    grids: dict[tuple[str, str], dict[str, dict[int, Trial]]] = {}
    for trial in trials:
        place = grids.setdefault((trial.setting.name, trial.agent.label), {})
        place.setdefault(rates_text(trial.agent.rates), {})[trial.repetition] = trial
    rounds = rounds_of(max((trial.repetition for trial in trials), default=1) + 1)
    asked: set[str] = set()
    while True:
        batch: list[Trial] = []
        for combinations in grids.values():
            finished = {
                rates: store.returns_by_repetition(
                    [
                        folder.read_result(trial.key)
                        for trial in repetitions.values()
                        if folder.status(trial.key).state is TrialState.FINISHED
                    ]
                )
                for rates, repetitions in combinations.items()
            }
            batch += [
                combinations[rates][k]
                for rates, k in plan(finished, rounds).to_run
                if k in combinations[rates] and combinations[rates][k].key not in asked
            ]
        if not batch:
            return
        yield batch
        asked |= {trial.key for trial in batch}


def _summary(
    say: Callable[..., None], folder: RunFolder, outcomes: Sequence[TrialOutcome], seconds: float
) -> int:
    for note, count in _grouped(note for outcome in outcomes for note in outcome.notes):
        more = f" (and {count - 1} more)" if count > 1 else ""
        say(f"note: {note}{more}")
    failed = [outcome for outcome in outcomes if outcome.error is not None]
    for outcome in failed:
        say(f"failed: {outcome.key}: {outcome.error}")
    run = store.read_run(folder.path)
    say(
        f"{len(run.trials)} of {len(run.manifest['trials'])} trials are finished in {folder.path}; "
        f"this took {duration(seconds)}"
    )
    for trial in run.trials.values():
        if trial.diverged:
            say(f"diverged: {trial.key} in task {trial.rows[-1].task}")
    show_grid(say, folder, run)
    return cli.EXIT_UNEXPECTED if failed else 0


def _grouped(notes: Iterator[str]) -> list[tuple[str, int]]:
    """Notes that say the same about several trials: the first of them, and how many there are."""
    groups: dict[str, list[str]] = {}
    for note in notes:
        groups.setdefault(note.partition(": ")[2], []).append(note)
    return [(members[0], len(members)) for members in groups.values()]


def show_grid(say: Callable[..., None], folder: RunFolder, run: store.StoredTrials) -> None:
    """Of a grid, the best rates of each agent; all of it goes to grid.csv once all of them are decided."""
    planned = store.planned_combinations(run.manifest["config"])
    if max(planned.values()) == 1:
        return
    repetitions = run.manifest["config"]["size"]["repetitions"]
    points = store.grid_points(list(run.trials.values()), planned, repetitions, folder.races())
    table = Table("setting", "agent", "best rates", "mean total return", "combinations", "trials", box=None)
    for point in points:
        if point.best:
            same = [p for p in points if (p.setting, p.agent) == (point.setting, point.agent)]
            mean = f"{point.mean_total_return:.4g}"
            trials = f"{sum(p.repetitions for p in same)} of {len(same) * repetitions}"
            table.add_row(point.setting, point.agent, rates_text(point.rates), mean, str(len(same)), trials)
    if table.rows:
        say(table, soft_wrap=False)
    decided = {(point.setting, point.agent) for point in points if point.best}
    if decided == set(planned) and not run.problems:
        cli.write_atomic(folder.path / "grid.csv", store.grid_to_csv(points))


def show_plan(
    say: Callable[..., None],
    config: ExperimentConfig,
    trials: Sequence[Trial],
    engines: Mapping[tuple[str, str], Engine],
    folder: RunFolder,
    workers: int,
) -> None:
    """What would be run, and what it would take."""
    todo: list[Estimate] = []
    table = Table("setting", "agent", "rates", "repetitions", "tasks x steps", "to do", "time each", box=None)
    rows: dict[tuple[str, ...], list[Trial]] = {}
    for trial in trials:
        place = (trial.setting.name, trial.agent.label, rates_text(trial.agent.rates))
        rows.setdefault(place, []).append(trial)
    for (setting, agent, rates), group in rows.items():
        left = [t for t in group if folder.status(t.key, verify=False).state is not TrialState.FINISHED]
        each = estimate(group[0], engines[setting, agent], folder)
        todo += [each] * len(left)
        size = f"{group[0].tasks} x {group[0].steps}"
        table.add_row(setting, agent, rates, str(len(group)), size, str(len(left)), duration(each.seconds))
    say(f"{config.title}: {len(trials)} trials, {len(todo)} to do, results in {folder.path}")
    say(table, soft_wrap=False)
    measured = all(each.measured for each in todo)
    basis = "as measured here" if measured else "roughly, from speeds of an ordinary core"
    time_left = duration(sum(each.seconds for each in todo) / workers)
    # Checkpoints are those of one trial at a time, for each worker.
    checkpoints = workers * max((each.checkpoint_bytes for each in todo), default=0)
    say(
        f"about {time_left} on {workers} worker{'s' if workers > 1 else ''} ({basis}), "
        f"{sum(each.result_bytes for each in todo) / 1e6:.1f} MB of results and up to "
        f"{checkpoints / 1e6:.0f} MB of checkpoints meanwhile"
    )


@contextlib.contextmanager
def interruptible() -> Iterator[Callable[[], None]]:
    """Ctrl-C raises KeyboardInterrupt, at once or when the yielded function is called next.

    Compiled code and compilers may delay or swallow it.
    """
    pressed = False

    def remember(signal_number: int, frame: Any) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    def check() -> None:
        if pressed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGINT, remember)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


@contextlib.contextmanager
def _display(
    folder: RunFolder, trials: Sequence[Trial], check: Callable[[], None]
) -> Iterator[Callable[[], None]]:
    """A progress bar on a terminal, nothing elsewhere; yields a function that brings it up to date.

    Progress is read from the folder, so it does not matter which process does the work, or where.
    """
    console = Console(stderr=True)
    if not console.is_terminal:
        yield check
        return
    bar = Progress(
        TextColumn("{task.fields[trials]} trials"),
        BarColumn(),
        TextColumn("{task.percentage:.0f} %  {task.fields[speed]} steps/s  {task.fields[left]} left"),
        console=console,
        transient=True,
        refresh_per_second=2,
    )
    started, next_count = time.monotonic(), 0.0
    finished: set[str] = set()

    def count() -> int:
        steps = 0
        for trial in trials:
            if trial.key not in finished and folder.json_path(trial.key).exists():
                finished.add(trial.key)
            done = trial.tasks if trial.key in finished else next(iter(folder.checkpoints(trial.key)), 0)
            steps += done * trial.steps
        return steps

    with bar:
        before = count()
        total = sum(trial.tasks * trial.steps for trial in trials)
        trials_done = f"{len(finished)}/{len(trials)}"
        task = bar.add_task("", total=total, completed=before, trials=trials_done, speed="-", left="-:--:--")

        def refresh() -> None:
            nonlocal next_count
            check()
            now = time.monotonic()
            if now < next_count:
                return
            done = count()
            # Where there are many trials or the disk is slow: at most a hundredth of the time.
            next_count = now + max(0.5, 100 * (time.monotonic() - now))
            bar.update(task, completed=done, trials=f"{len(finished)}/{len(trials)}")
            if done > before:
                speed = (done - before) / (now - started)
                left = str(datetime.timedelta(seconds=int((total - done) / speed)))
                bar.update(task, speed=f"{speed:,.0f}", left=left)

        yield refresh


def command(main: Callable[[Any], int], options: type[Any], name: str, description: str) -> None:
    """Run a command that runs trials: after Ctrl-C it ends at once, whatever is being computed."""
    try:
        cli.run(main, options, name, description)
    except SystemExit as end:
        leave_at_once(int(end.code or 0))
        raise


if __name__ == "__main__":
    command(main, Options, "sfr_fa.run", __doc__ or "")
