"""Networks of your own in the reference engine: transitions learned from per second of processor time.

SFR on object collection with a plain `nn.Sequential` (two layers of 64 ReLU units), one core, float32:

    plain       the listing module by module, a loop over policies (benchmarks.plain_listing)
    stacked     the reference engine with all policies in one pass of torch.func.vmap, whatever their number
    reference   the reference engine: few policies one by one, many in one pass
    replay      the same with Replay(batch=32): 32 transitions per step

The first three learn from each step once. They are timed in turns in one process; the fastest turn counts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Any
from unittest import mock

import numpy as np
import torch
import tyro
from torch import Tensor, nn

from benchmarks import goals
from benchmarks.engines import LINEAR, OBJECTS, fastest, plain_listing
from benchmarks.goals import goal_table
from benchmarks.plain_listing import PlainListing
from experiments.peers import Network
from sfr_fa.agents import Replay, policies
from sfr_fa.engines import Engine, Streams, make_engine
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.tasks import Task, sample_general_task
from sfr_theory import cli
from sfr_theory.errors import InputError

FEW, MANY = 2, 10
"""Stored policies."""
BATCH = 32


@dataclass(frozen=True)
class Options:
    """What to measure."""

    steps: int = 200
    """Steps of each timing."""
    repeats: int = 5
    """Timings of each kind; the fastest counts."""
    json: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Write all figures as JSON; "-" is standard output."""


class OneState(nn.Module):
    """A network for the plain listing, which has one state at a time."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, state: Tensor) -> Tensor:
        values: Tensor = self.network(state[None])[0]
        return values


def at_task(K: int, **settings: Any) -> tuple[Engine, Task]:
    """An engine with K policies that has just started the last task."""
    rng = np.random.default_rng(0)
    settings = {**LINEAR, "approximator": Network, **settings}
    engine = make_engine("reference", ObjectCollection(), "SFR", seed=Streams.spawn(1), **settings)
    for _ in range(K - 1):
        engine.run_task(sample_general_task(rng), 20)
    task = sample_general_task(rng)
    engine.start_task(task)
    return engine, task


def plain(K: int) -> PlainListing:
    """The same policies in the plain listing."""
    engine, task = at_task(K)
    modules = engine.agent.policies.modules
    networks = replace(OBJECTS, module=lambda parameters, k, num_actions: OneState(modules[k]))
    return plain_listing(networks, engine, task)


def walker(K: int, **settings: Any) -> Callable[[int], Any]:
    engine, _ = at_task(K, **settings)
    return engine.continue_task


def stacked(K: int) -> Callable[[int], Any]:
    """The engine without its way for few policies."""
    walk = walker(K)

    def run(steps: int) -> None:
        with mock.patch.object(policies, "FEW", 0):
            walk(steps)

    return run


def measure(K: int, options: Options) -> dict[str, float]:
    """Transitions learned from per second."""
    ways = {
        "plain": plain(K).run,
        "stacked": stacked(K),
        "reference": walker(K),
        "replay": walker(K, replay=Replay(batch=BATCH)),
    }
    for run in ways.values():
        run(20)
    taken = fastest(options.repeats, *((run, options.steps) for run in ways.values()))
    learned = [BATCH if name == "replay" else 1 for name in ways]
    return {name: count * 1e6 / time for name, count, time in zip(ways, learned, taken, strict=True)}


def main(options: Options) -> int:
    """Measure, print, and write JSON if asked to."""
    if min(options.steps, options.repeats) < 1:
        raise InputError("steps and repeats must be at least 1")
    torch.set_num_threads(1)
    console = cli.output_console(options.json)
    rates = {K: measure(K, options) for K in (FEW, MANY)}
    title = "SFR with networks of one's own: transitions learned from per second"
    table = cli.table(title, *cli.numbers("K, stored policies", *rates[FEW]))
    for K, measured in rates.items():
        table.add_row(str(K), *(f"{rate:,.0f}" for rate in measured.values()))
    console.print(table)
    rows = [
        goals.AGENT_AGAINST_PLAIN.at(rates[FEW]["reference"] / rates[FEW]["plain"]),
        goals.REPLAY.at(rates[MANY]["replay"] / rates[MANY]["stacked"]),
    ]
    console.print(goal_table(rows))
    if options.json is not None:
        goal_rows = [goal.to_json() for goal in rows]
        cli.write_json({"transitions_per_second": rates, "goals": goal_rows}, options.json)
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "benchmarks.networks", __doc__ or "")
