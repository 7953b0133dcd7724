"""Run all experiments one after another: `python -m experiments.reproduce --profile reduced`.

Each is a command of experiments.run, in an order in which the main results come first: of every figure and
table the agents that its claims are about, then the ablation and single tasks, then the remaining agents, our
own experiments, and finally what takes longest, the grids and the multiverse. Kill it at any moment; the same
command continues where it stopped. It ends with the report.

Exit code 0: all trials are finished. 1: some failed. 2: bad input. 130: interrupted.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import tyro

from experiments import report, run
from experiments.configs import load_config
from sfr_theory import cli


@dataclass(frozen=True)
class Stage:
    """An experiment, or some of its agents."""

    experiment: str
    agents: tuple[str, ...] = ()


MAIN = ("Q", "SF", "SFR", "MB SFR")
PLAN = (
    Stage("object_collection_linear", MAIN),
    Stage("object_collection_general", MAIN),
    Stage("barreto", MAIN),
    Stage("nonlinearity"),
    Stage("racer", ("Q", "SF", "CSFR")),
    Stage("ablation"),
    Stage("single_task"),
    Stage("object_collection_linear"),
    Stage("object_collection_general"),
    Stage("barreto"),
    Stage("racer"),
    Stage("subset_gpi"),
    Stage("racer_interactions"),
    Stage("pendulum"),
    Stage("multiverse_racer"),
    Stage("grid_object_collection"),
    Stage("grid_racer"),
    Stage("multiverse"),
)
"""An experiment that is listed twice is completed the second time."""


FOR_PAPER = {"pendulum": "full", "multiverse": "reduced", "multiverse_racer": "reduced"}
"""What is published of experiments that are not the paper's; hundreds of worlds at full size take days."""


def profile_of(experiment: str, profile: str) -> str:
    chosen = FOR_PAPER.get(experiment, profile) if profile == "paper" else profile
    load_config(experiment).profile(chosen)  # which refuses a name that it does not have
    return chosen


@dataclass(frozen=True)
class Options:
    profile: str = "reduced"
    """smoke (seconds each), reduced (minutes each) or paper (the paper's size; --dry-run says how long)."""
    results: str = "reproduced"
    """Folder for results."""
    workers: int = 2
    """How many trials run at once."""
    data: str = "report/data"
    """What the checks of the theory left, for the report; it need not be there."""
    output: str = "report/index.html"
    """The report."""
    dry_run: tyro.conf.FlagCreatePairsOff[bool] = False
    """Print what each experiment would take, and do nothing."""


def main(options: Options) -> int:
    console = cli.PatientConsole(highlight=False)
    if not options.dry_run:
        cli.require_writable(
            options.output, str(Path(options.data) / "any"), str(Path(options.results) / "any")
        )
    profiles = {stage.experiment: profile_of(stage.experiment, options.profile) for stage in PLAN}
    failed = []
    for number, stage in enumerate(PLAN, start=1):
        console.print(f"[bold]{number} of {len(PLAN)}: {stage.experiment} {', '.join(stage.agents)}[/]")
        code = run.main(
            run.Options(
                stage.experiment,
                profile=profiles[stage.experiment],
                results=options.results,
                workers=options.workers,
                agents=stage.agents,
                dry_run=options.dry_run,
            )
        )
        if code == cli.EXIT_INTERRUPTED:
            return code
        failed += [stage.experiment] if code else []
    if not options.dry_run:
        Path(options.data).mkdir(parents=True, exist_ok=True)
        report.main(report.Options(options.data, options.output, options.results))
    if failed:
        console.print(f"not finished: {', '.join(dict.fromkeys(failed))}; the same command tries again")
    return cli.EXIT_UNEXPECTED if failed else 0


if __name__ == "__main__":
    run.command(main, Options, "experiments.reproduce", __doc__ or "")
