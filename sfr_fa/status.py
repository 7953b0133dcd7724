"""What is finished, running, stopped or damaged: `python -m sfr_fa.status RESULTS`.

Reads the folder of results and nothing else; every finished trial is read and its checksum compared. A trial
is running while a process holds its lock. Exit code 1 if something is damaged.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import tyro
from rich.table import Table

from sfr_fa.runs.load import existing
from sfr_fa.runs.store import RunFolder, TrialState, TrialStatus
from sfr_theory import cli
from sfr_theory.errors import InputError
from sfr_theory.reading import known_content


@dataclass(frozen=True)
class Options:
    results: tyro.conf.Positional[str] = "results"
    """Folder with runs, or the folder of one run."""
    trials: tyro.conf.FlagCreatePairsOff[bool] = False
    """Also list every trial that is not finished."""
    json: str | None = None
    """Write the status of every trial as JSON to this file; - is standard output."""


@dataclass(frozen=True)
class RunStatus:
    """One run: the status of each trial, or why its manifest cannot be read."""

    path: Path
    trials: Mapping[str, TrialStatus]
    tasks: int = 0
    """Of each trial."""
    problem: str = ""

    def count(self, state: TrialState) -> int:
        return sum(status.state is state for status in self.trials.values())

    @property
    def tasks_done(self) -> float:
        """The fraction of all tasks that is done; one that diverged has done all that it will."""
        finished = self.count(TrialState.FINISHED) * self.tasks
        under_way = (s.tasks_done for s in self.trials.values() if s.state is not TrialState.FINISHED)
        return (finished + sum(under_way)) / max(1, self.tasks * len(self.trials))


def status_of(path: Path) -> RunStatus:
    folder = RunFolder(path)
    try:
        manifest = folder.manifest()
        with known_content(path, "sfr_fa.run"):
            tasks = int(manifest["config"]["size"]["tasks"])
    except InputError as error:
        return RunStatus(path, {}, problem=str(error))
    return RunStatus(path, {key: folder.status(key) for key in manifest["trials"]}, tasks)


def main(options: Options) -> int:
    cli.require_writable(options.json)
    console = cli.output_console(options.json)
    manifests = existing(Path(options.results)).rglob("manifest.json")
    folders = sorted(path.parent for path in manifests)
    statuses = [status_of(path) for path in folders]
    if not statuses:
        raise InputError(f"{options.results} holds no runs")
    table = Table("run", *(state.value for state in TrialState), "tasks done", box=None)
    for run in statuses:
        counts = (str(run.count(state)) for state in TrialState)
        table.add_row(str(run.path), *counts, f"{run.tasks_done:.0%}")
    console.print(table, markup=False)
    problems = [run.problem for run in statuses if run.problem]
    for run in statuses:
        for key, status in run.trials.items():
            if status.reason:
                problems.append(status.reason)
            elif options.trials and status.state is not TrialState.FINISHED:
                sentence = f"{status.state.value}: {run.path}/{key}, {status.tasks_done} tasks done"
                console.print(sentence, soft_wrap=True, markup=False)
    for problem in problems:
        console.print(f"damaged: {problem}", soft_wrap=True, markup=False)
    if options.json:
        content = {
            str(run.path): {
                key: {"state": status.state.value, "tasks": status.tasks_done, "reason": status.reason}
                for key, status in run.trials.items()
            }
            for run in statuses
        }
        cli.write_json(content, options.json)
    return cli.EXIT_UNEXPECTED if problems else 0


if __name__ == "__main__":
    cli.run(main, Options, "sfr_fa.status", __doc__ or "")
