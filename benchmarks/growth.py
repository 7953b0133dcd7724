"""How the cost of a step grows with the number of stored policies: `python -m benchmarks.growth`.

SFR on object collection with K = 1 ... 3,000 policies, which come from short tasks. In turn, at each K:

    filter      the compiled engine, exact GPI with the filter of `sfr_fa.kernels.gpi_filter`
    full        the same without it: every weight is read at every step
    tasks       the filter over whole tasks, as in a run: their beginning, and what is new in a task, counts
    start       processor time of the beginning of a task, and of its first step
    close       how many policies come within 1 % of the best value, on average over states of a path

The first two are of a task that has gone on for a while; the fastest of several timings counts. Tasks differ,
so `tasks` is a mean of several. The last row is what exactness asks for: a policy that close to the best has
to be evaluated, or bounded more closely than that. Figures are drawn with `--plot docs/images/growth.png`.
"""

from __future__ import annotations

import copy
import functools
from dataclasses import asdict, dataclass, field, replace
from typing import Annotated, Any

import numpy as np
import torch
import tyro

from benchmarks import goals
from benchmarks.engines import OBJECTS, SEED, TimedAgent, at_task, microseconds, snapshots
from benchmarks.goals import Goal, goal_table
from sfr_fa.engines import Streams
from sfr_fa.tasks import Task
from sfr_theory import cli
from sfr_theory.errors import InputError

POLICIES = (1, 3, 10, 30, 100, 300, 1000, 3000)
CLOSE = 0.01
TASKS = 8
"""Over which whole tasks are averaged, after one that is not counted."""
STATES = 200
"""At which closeness is counted, of a path of ten times as many steps."""
EVALUATIONS = 200_000
"""How many policies are evaluated in one timing of full GPI."""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    learn_steps: int = 500
    """Steps of the short tasks from which the stored policies come."""
    steps: int = 20_000
    """Steps of a timing."""
    repeats: int = 3
    """Timings of each kind; the fastest counts."""
    plot: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Draw the growth; the ending names the format."""
    json: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Write all figures as JSON; "-" is standard output."""


@dataclass
class Growth:
    """K -> microseconds of a step, with the filter, also over whole tasks, and in full, milliseconds of the
    start of a task, and how many policies come close to the best."""

    filtered: dict[int, float] = field(default_factory=dict)
    tasks: dict[int, float] = field(default_factory=dict)
    full: dict[int, float] = field(default_factory=dict)
    start: dict[int, float] = field(default_factory=dict)
    close: dict[int, float] = field(default_factory=dict)


def measure(options: Options, policies: tuple[int, ...] = POLICIES) -> Growth:
    """All of it at every K."""
    growth = Growth()
    setting = replace(OBJECTS, policies=policies)
    with cli.progress(max(policies), setting.title) as advance:
        for K, state, task in snapshots(setting, options.learn_steps, advance):
            full, filtered = (
                at_task(setting, "compiled", state, task, gpi_filter=uses) for uses in (False, True)
            )
            rounds = [
                (
                    microseconds(full.continue_task, max(100, EVALUATIONS // K)),
                    microseconds(filtered.continue_task, options.steps),
                    start_milliseconds(setting, state, task),
                )
                for _ in range(options.repeats)
            ]
            growth.full[K], growth.filtered[K], growth.start[K] = np.min(rounds, axis=0).tolist()
            growth.tasks[K] = over_whole_tasks(setting, state, options.steps)
            growth.close[K] = close_to_the_best(setting, state, task)
    return growth


def over_whole_tasks(setting: TimedAgent, state: Any, steps: int) -> float:
    """Microseconds of a step, all tasks with the same stored policies."""
    engine, tasks, times = setting.engine("compiled", Streams.spawn(SEED)), np.random.default_rng(SEED), []
    for _ in range(1 + TASKS):
        engine.load_state_dict(state)
        times.append(microseconds(functools.partial(engine.run_task, setting.task(tasks)), steps))
    return float(np.mean(times[1:]))


def start_milliseconds(setting: TimedAgent, state: Any, task: Task) -> float:
    """Of a task until its first step is made, after another one with policies that have been loaded."""
    engine = setting.engine("compiled", Streams.spawn(SEED))
    engine.load_state_dict(state)

    def begin(steps: int) -> None:
        engine.start_task(task)
        engine.continue_task(steps)

    begin(1)
    return microseconds(begin, 1) / 1000


def close_to_the_best(setting: TimedAgent, state: Any, task: Task) -> float:
    """How many policies have a value of at least (1 - CLOSE) times the best one, that one included."""
    engine = at_task(setting, "compiled", state, task)
    noise = copy.deepcopy(engine.streams.environment)
    actions = engine.continue_task(10 * STATES).actions
    states = engine.retrace(task, actions, noise).states[::10]
    weights = engine.agent.policies.parameters["weight"].numpy()
    readout = engine.agent.readouts[-1].vector.numpy()
    counts = []
    for s in states:
        values = np.maximum(weights @ s, 0.0) @ readout
        best = values.max(axis=1)
        counts.append(np.count_nonzero(best >= best.max() - CLOSE * abs(best.max())))
    return float(np.mean(counts))


def reached(growth: Growth) -> list[Goal]:
    """The goals, next to what was measured."""
    step = growth.filtered
    later = [goal.at(step[K] / step[300]) for K, goal in goals.GROWTH_FROM_300.items()]
    return [goals.GROWTH_TO_300.at(step[300] / step[1]), *later, goals.START.at(growth.start[3000])]


def written(time: float) -> str:
    return f"{time:,.0f}" if time >= 10 else f"{time:.1f}"


def plot(growth: Growth, path: str) -> None:
    """Microseconds of a step over K, both axes logarithmic."""
    from matplotlib.figure import Figure  # takes a second
    from matplotlib.ticker import StrMethodFormatter

    figure = Figure(figsize=(5.8, 3.6), layout="constrained")
    axes = figure.subplots()
    for times, colour, marker, above, label in (
        (growth.full, "#D55E00", "s", 6, "every policy"),
        (growth.filtered, "#0072B2", "o", -13, "with the filter, the same choices"),
    ):
        axes.plot(list(times), list(times.values()), color=colour, marker=marker, label=label)
        for K, time in times.items():
            axes.annotate(
                written(time), (K, time), (0, above), textcoords="offset points", ha="center", fontsize=8
            )
    axes.set(xscale="log", yscale="log", xlabel="K, stored policies", ylabel="microseconds per step")
    axes.set_xticks(list(growth.full))
    axes.minorticks_off()
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_formatter(StrMethodFormatter("{x:,.10g}"))
    axes.grid(alpha=0.3)
    axes.legend(frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    cli.save_figure(figure, path)


def main(options: Options) -> int:
    """Measure, print, draw."""
    if min(options.learn_steps, options.steps, options.repeats) < 1:
        raise InputError("learn_steps, steps and repeats must be at least 1")
    cli.require_writable(options.json, plot=options.plot)
    torch.set_num_threads(1)
    console = cli.output_console(options.json)
    growth = measure(options)
    table = cli.table(
        "SFR, object collection: processor time, float32",
        "K, stored policies",
        *cli.numbers(*(f"{K:,}" for K in growth.full)),
    )
    for name, times in (
        ("every policy, us per step", growth.full),
        ("with the filter, us per step", growth.filtered),
        ("whole tasks, us per step", growth.tasks),
        ("start of a task, ms", growth.start),
        ("policies within 1 % of the best", growth.close),
    ):
        table.add_row(name, *map(written, times.values()))
    console.print(table)
    rows = reached(growth)
    console.print(goal_table(rows))
    if options.plot is not None:
        plot(growth, options.plot)
    if options.json is not None:
        goal_rows = [goal.to_json() for goal in rows]
        cli.write_json({**asdict(growth), "goals": goal_rows}, options.json)
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "benchmarks.growth", __doc__ or "")
