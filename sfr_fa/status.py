"""What is finished, running, stopped or damaged: `python -m sfr_fa.status RESULTS`.

Reads the folder of results and nothing else; every finished trial is read and its checksum compared. A trial
is running while a process holds its lock. Exit code 1 if something is damaged.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import tyro
from rich.table import Table

from sfr_fa.runs.load import existing
from sfr_fa.runs.store import RunFolder, TrialState
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
    trials: dict[str, dict[str, Any]]
    tasks: int = 0
    """Of each trial."""
    problem: str = ""

    def count(self, state: TrialState) -> int:
        return Counter(entry["state"] for entry in self.trials.values())[state.value]

    @property
    def tasks_done(self) -> float:
        """The fraction of all tasks that is done."""
        finished = self.count(TrialState.FINISHED) * self.tasks
        under_way = sum(
            entry["tasks"] for entry in self.trials.values() if entry["state"] != TrialState.FINISHED.value
        )
        return (finished + under_way) / max(1, self.tasks * len(self.trials))


def status_of(path: Path) -> RunStatus:
    folder = RunFolder(path)
    try:
        manifest = folder.manifest()
        with known_content(path, "sfr_fa.run"):
            tasks = int(manifest["config"]["size"]["tasks"])
    except InputError as error:
        return RunStatus(path, {}, problem=str(error))
    trials = {}
    for key in manifest["trials"]:
        status = folder.status(key)
        trials[key] = {"state": status.state.value, "tasks": status.tasks_done, "reason": status.reason}
    return RunStatus(path, trials, tasks)


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
        for key, entry in run.trials.items():
            if entry["reason"]:
                problems.append(entry["reason"])
            elif options.trials and entry["state"] != TrialState.FINISHED.value:
                place = f"{run.path}/{key}"
                sentence = f"{entry['state']}: {place}, {entry['tasks']} tasks done"
                console.print(sentence, soft_wrap=True, markup=False)
    for problem in problems:
        console.print(f"damaged: {problem}", soft_wrap=True, markup=False)
    if options.json:
        cli.write_json({str(run.path): run.trials for run in statuses}, options.json)
    return cli.EXIT_UNEXPECTED if problems else 0


if __name__ == "__main__":
    cli.run(main, Options, "sfr_fa.status", __doc__ or "")
