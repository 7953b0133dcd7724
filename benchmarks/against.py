"""Is the compiled loop slower than in another checkout? `python -m benchmarks.against ../before`.

Both checkouts train the same agents on the same streams, each in a process of its own. They are timed in
turns, so that whatever else slows the machine meets both, and the fastest of all turns counts: processor time
per step, and the processor time of compiling everything. Equal returns show that both walk the same path.
The other checkout needs an environment of its own in .venv.
"""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import tyro
from rich.table import Table

from sfr_theory import cli
from sfr_theory.errors import InputError

CASES = {"SFR": (1, 50, 300), "Q": (1,), "racer": (40,)}
"""Whole runs of `benchmarks.engines`, and at how many stored policies a step is timed."""
LEARNED_STEPS = 500
"""Of each stored policy."""

WORKER = f"""
import json, sys
import numpy as np, torch
from benchmarks import engines

torch.set_num_threads(1)
CASES = {CASES!r}

def at_task(name, K):
    setting = engines.whole_setting(name)
    streams = engines.Streams(*map(np.random.default_rng, range(4)))
    engine = setting.engine("compiled", streams)
    rewards = [engine.run_task(setting.task(streams.tasks), {LEARNED_STEPS}).total_reward for _ in range(K)]
    task = setting.task(streams.tasks)
    engine.run_task(task, 10)
    return engine, task, sum(rewards)

ready = {{f"{{name}}, K = {{K}}": at_task(name, K - 1) for name in CASES for K in CASES[name]}}
for line in sys.stdin:
    case, steps = json.loads(line)
    if case == "compile":
        print(json.dumps([engines.compile_seconds(), 0]), flush=True)
    else:
        engine, task, reward = ready[case]
        # Checkouts from before there was continue_task have _walk.
        run = getattr(engine, "continue_task", lambda n: engine._walk(task, n))
        print(json.dumps([engines.microseconds(run, steps), reward]), flush=True)
"""


@dataclass(frozen=True)
class Options:
    other: tyro.conf.Positional[Path]
    """The checkout to compare with."""
    turns: int = 30
    """Timings of each case and checkout; the fastest counts."""
    steps: int = 20_000
    """Steps of each timing."""
    compilations: int = 2
    """How often each checkout compiles everything."""
    json: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Write all figures as JSON; "-" is standard output."""


class Checkout:
    """A process that answers how long a case takes in a checkout."""

    def __init__(self, folder: Path, python: Path) -> None:
        if not python.exists():
            raise InputError(f"{folder} has no {python}; install it there first, for instance by make lint")
        self._process = subprocess.Popen(
            [python, "-c", WORKER], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def time(self, case: str, steps: int) -> tuple[float, float]:
        """The time, and the return of the tasks that were learned beforehand."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps([case, steps]), file=self._process.stdin, flush=True)
        answer: tuple[float, float] = tuple(json.loads(self._process.stdout.readline()))
        return answer

    def close(self) -> None:
        self._process.communicate()


def main(options: Options) -> int:
    console = cli.output_console(options.json)
    other = options.other.absolute()
    checkouts = (
        Checkout(other, other / ".venv/bin/python"),
        Checkout(Path(__file__).parent.parent, Path(sys.executable)),
    )
    turns = {f"{name}, K = {K}": options.turns for name in CASES for K in CASES[name]}
    turns["compile"] = options.compilations
    table = Table("microseconds per step (compile: seconds)", "other", "this", "this / other", "same path")
    figures: dict[str, Any] = {}
    with cli.progress(sum(turns.values()), "turns") as advance:
        for case, count in turns.items():
            times: tuple[list[float], list[float]] = ([], [])
            returns = set()
            for turn in range(count):
                for k in (0, 1) if turn % 2 else (1, 0):
                    seconds, reward = checkouts[k].time(case, options.steps)
                    times[k].append(seconds)
                    returns.add(reward)
                advance(1)
            before, now = map(min, times)
            same = "yes" if len(returns) == 1 else "no"
            table.add_row(case, f"{before:.2f}", f"{now:.2f}", f"{now / before:.3f}", same)
            figures[case] = {"other": before, "this": now, "same_path": same}
    for checkout in checkouts:
        checkout.close()
    console.print(table)
    if options.json is not None:
        cli.write_json(figures, options.json)
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "benchmarks.against", __doc__ or "")
