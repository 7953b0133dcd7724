"""Everything in a few minutes, ending in one page: `python -m experiments.demo`, or `make demo`.

The checks of the theory, the ledger of claims, a small transfer experiment (Q, SF and SFR on a handful of
tasks) and the training of policies to try rewards on each run as the command that a reader would type, and
are shown with their time and outcome. Two run at a time. What they write goes to OUTPUT/data, the page to
OUTPUT/index.html; results at the paper's scale from the folder `results` are on it, too. Exit code 0
if every verdict is as expected.
"""

from __future__ import annotations

import itertools
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from experiments import report
from sfr_theory import cli


@dataclass(frozen=True)
class Options:
    output: str = "report"
    """Folder for the page and for what it is made from."""


@dataclass(frozen=True)
class DemoStep:
    """A command that leaves results in the data folder."""

    name: str
    module: str
    flags: tuple[str, ...]

    @property
    def command(self) -> str:
        """As a reader would type it, without the folders of the demo."""
        return " ".join(("python -m", self.module, *itertools.takewhile(lambda f: f[0] != "-", self.flags)))


def steps(data: Path) -> tuple[DemoStep, ...]:
    """The commands, the longest first; the experiment compiles its kernels when it first runs."""

    def files(name: str) -> tuple[str, ...]:
        return ("--json", str(data / f"{name}.json"), "--plot", str(data / f"{name}.svg"))

    found = ("--counterexamples", str(data / "counterexamples"), "--workers", "1")
    return (
        DemoStep(
            "a small transfer experiment",
            "experiments.run",
            ("demo", "--results", str(data / report.DEMO_RESULTS)),
        ),
        DemoStep(
            "policies to try rewards on",
            "experiments.live",
            ("--output", str(data / report.LIVE), "--fragment"),
        ),
        DemoStep(
            "every claim of the paper", "proofs_checks", ("--fast", "--workers", "1", *files("ledger")[:2])
        ),
        DemoStep("how tight the bound is", "sfr_theory.check_tightness", files("tightness")),
        DemoStep("what SFRQ-learning converges to", "sfr_theory.check_convergence", files("convergence")),
        DemoStep("what GPI guarantees", "sfr_theory.check_gpi_bound", (*files("gpi_bound"), *found)),
    )


def run(step: DemoStep) -> tuple[float, subprocess.CompletedProcess[str]]:
    """One command in a process of its own, on one core: how long it took, and how it ended."""
    start = time.perf_counter()
    single_threaded = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
    result = subprocess.run(
        [sys.executable, "-m", step.module, *step.flags],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, **single_threaded},
    )
    return time.perf_counter() - start, result


def main(options: Options) -> int:
    console = cli.PatientConsole(highlight=False)
    folder = Path(options.output)
    cli.require_writable(str(folder / "index.html"), str(folder / "data/any"))
    plan = steps(folder / "data")
    # What is finished would not be run again, and this page is about this run.
    shutil.rmtree(folder / "data" / report.DEMO_RESULTS / "demo", ignore_errors=True)
    failed = []
    console.print("[bold]Successor Feature Representations: the theory checked, and a taste of transfer[/]")
    with (
        ThreadPoolExecutor(min(len(plan), os.cpu_count() or 1)) as pool,
        cli.progress(len(plan), "checks") as advance,
    ):
        for step, (seconds, result) in zip(plan, pool.map(run, plan), strict=True):
            good = result.returncode == 0
            failed += [] if good else [(step, result)]
            mark = "[green]as expected[/]" if good else f"[red]exit code {result.returncode}[/]"
            console.print(f"  {step.name:34}{seconds:5.0f} s  {mark}  [dim]{step.command}[/]", soft_wrap=True)
            advance(1)
    for step, result in failed:
        console.rule(f"python -m {step.module} {' '.join(step.flags)}")
        console.print(result.stdout + result.stderr, markup=False)
    report.main(report.Options(str(folder / "data"), str(folder / "index.html")))
    return cli.EXIT_UNEXPECTED if failed else 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.demo", __doc__ or "")
