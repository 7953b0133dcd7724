"""How fast the engines are: microseconds per step, against the listing written plainly in PyTorch.

Three ways to run the same agent, timed in one process, one after another, on the same stored policies:

    plain       the listing module by module, autograd, a loop over policies (benchmarks.plain_listing)
    reference   our PyTorch engine: stacked policies, autograd for the updates
    compiled    our Numba engine: a whole task in one call

SFR on object collection with K = 1 ... 300 policies, CSFR on the racer with K = 1 ... 40 and SFR in a world
of a user (examples/own_world.py), float32, one core. Policies come from short tasks, learned first. Times are
processor time of the fastest of several repeats, since others may share the machine; what counts are ratios.
A step of the compiled engine is measured over 20,000 steps, including the packing of weights; in the racer,
where bounds of policies are made during a task, over 100,000, half of a task.

Full GPI (K = 300, the compiled engine without its filter) must read every weight once per step, padding
included. Its limit is the rate at which a compiled, vectorised sum reads an array of the same size over and
over.

Seconds of whole runs are estimated for all agents: the compiled engine is timed at a few K, and times between
them are interpolated. `--whole` runs them. Last, the same tasks run in one process and in two at once.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, Any

import gymnasium
import numpy as np
import torch
import tyro
from numba import njit
from rich.table import Table
from torch import nn

from benchmarks import goals
from benchmarks.goals import goal_table
from benchmarks.plain_listing import Info, LinearXi, PlainListing, SubnetworksXi
from sfr_fa.agents import FeatureSubnetworks, LearnedFeatures, MlpRewardModel, SharedNetwork
from sfr_fa.engines import Engine, Streams, make_engine
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.environments.racer import Racer
from sfr_fa.feature_codes import KernelCode
from sfr_fa.interactions import distances_of_random_places, sample_mixed_task
from sfr_fa.kernels.arrays import REASSOCIATE, padded
from sfr_fa.kernels.linear import PADDING
from sfr_fa.tasks import Task, sample_general_task, sample_racer_task
from sfr_theory import cli
from sfr_theory.errors import InputError

SEED = 1
own_world = importlib.import_module("examples.own_world")
"""Examples are written for readers, without types."""


@dataclass(frozen=True)
class TimedAgent:
    """An agent in an environment, with the paper's constants."""

    title: str
    agent: str
    environment: Callable[[], gymnasium.Env[Any, Any]]
    task: Callable[[np.random.Generator], Task]
    settings: Mapping[str, Any]
    policies: tuple[int, ...] = ()
    """Numbers of stored policies that are measured."""
    module: Callable[..., nn.Module] = LinearXi.of_policy
    """A stored policy as a module of the plain listing."""
    cumulant: Callable[[Any, Info], np.ndarray] = lambda cumulant, info: np.zeros(0)
    """What the plain listing sums up, of the agent's cumulant and the info of a step."""
    tasks: int = 300
    steps: int = 20_000
    measured_steps: int = 20_000
    """Of the compiled engine, at a time."""

    def engine(self, name: str, streams: Streams, **changes: Any) -> Engine:
        settings = {"dtype": torch.float32, **self.settings, **changes}
        return make_engine(name, self.environment(), self.agent, seed=streams, **settings)


def _encode(code: Any, info: Info) -> np.ndarray:
    encoded: np.ndarray = code.encode(info["features"]).ravel()
    return encoded


LINEAR = {"gamma": 0.95, "epsilon": 0.15, "learning_rate": 0.005}
OBJECTS = TimedAgent(
    title="SFR, object collection", agent="SFR", environment=ObjectCollection, task=sample_general_task,
    settings=LINEAR, policies=(1, 10, 50, 150, 300),
    cumulant=lambda indicator, info: np.eye(indicator.size)[info["feature_index"]],
)  # fmt: skip
RACER = TimedAgent(
    title="CSFR, racer", agent="CSFR", environment=Racer, task=sample_racer_task,
    settings={
        "gamma": 0.9, "epsilon": 0.15, "learning_rate": 0.0025, "approximator": FeatureSubnetworks,
    },
    policies=(1, 10, 40), module=SubnetworksXi.of_policy, cumulant=_encode, tasks=40, steps=200_000,
    measured_steps=100_000,
)  # fmt: skip
RACER_60 = replace(
    RACER, title="CSFR, 3 x 60 units",
    settings={**RACER.settings, "approximator": functools.partial(FeatureSubnetworks, hidden=(60, 60))},
)  # fmt: skip
_PLACES = distances_of_random_places(np.random.default_rng(SEED), 3000)
RACER_CODE = replace(
    RACER, title="SFR-K, 128 bumps, 128 units", agent="SFR-K", task=sample_mixed_task,
    settings={
        **RACER.settings, "approximator": functools.partial(SharedNetwork, hidden=(128, 128), head_rate=10),
        "feature_code": KernelCode.observed(_PLACES, 128, np.random.default_rng(SEED)), "fit_points": _PLACES,
    },
)  # fmt: skip
RACER_SF = replace(RACER, title="SF, racer", agent="SF", settings={**RACER.settings, "fit_points": _PLACES})
RACER_SF_FULL = replace(
    RACER_SF, title="evaluating all policies", settings={**RACER_SF.settings, "gpi_filter": False},
    measured_steps=20_000,
)  # fmt: skip
OWN_WORLD = TimedAgent(
    title="SFR, examples/own_world.py", agent="SFR", environment=own_world.environment,
    task=lambda rng: sample_general_task(rng, own_world.FEATURES), settings={**LINEAR, "learning_rate": 0.1},
    policies=(1, 10), cumulant=OBJECTS.cumulant,
)  # fmt: skip

_ONLINE = {"reward_learning_rate": 0.025}
_MLP = {**_ONLINE, "reward_model": MlpRewardModel}
_MODEL = {"model_learning_rate": 0.2}
_FOUR = {**_ONLINE, "feature_map": LearnedFeatures(np.random.default_rng(SEED).normal(0, 0.5, (226, 4)))}
WHOLE_RUNS: dict[str, tuple[str, dict[str, Any]]] = {
    "Q": ("Q", {}),
    "SF": ("SF", {}),
    "SFR": ("SFR", {}),
    "MB SFR": ("MB SFR", _MODEL),
    "SFR-R": ("SFR-R", _MLP),
    "MB SFR-R": ("MB SFR-R", {**_MODEL, **_MLP}),
    "CSFR-4": ("CSFR-h", _FOUR),
    "racer": ("CSFR", {}),
}
"""Agents and their settings; `benchmarks.goals` has how long they may take."""


def whole_setting(name: str) -> TimedAgent:
    """The agent of a whole run."""
    agent, changes = WHOLE_RUNS[name]
    setting = RACER if name == "racer" else OBJECTS
    # Q keeps no policies: its cost does not grow.
    policies = (1,) if name == "Q" else setting.policies
    settings = {**setting.settings, **changes}
    return replace(setting, title=name, agent=agent, settings=settings, policies=policies)


PAIR_TASKS = 5
"""Tasks of each K, one after another, when two runs are timed at once."""
PATIENCE = 600.0
"""Seconds until a process that says nothing is taken for dead."""


@dataclass(frozen=True)
class Options:
    """What to measure."""

    whole: tuple[str, ...] = ()
    """Also measure whole runs: any of Q, SF, SFR, "MB SFR", SFR-R, "MB SFR-R", CSFR-4 and racer, or all."""
    learn_steps: int = 2000
    """Steps of the short tasks from which the stored policies come."""
    repeats: int = 3
    """Timings of each kind; the fastest counts."""
    json: Annotated[str | None, tyro.conf.arg(metavar="FILE")] = None
    """Write all figures as JSON; "-" is standard output."""


# --- Measuring ------------------------------------------------------------------------------------


@dataclass
class Timings:
    """Microseconds per step of one setting: engine -> K -> time."""

    setting: TimedAgent
    plain: dict[int, float] = field(default_factory=dict)
    reference: dict[int, float] = field(default_factory=dict)
    compiled: dict[int, float] = field(default_factory=dict)
    weight_bytes: dict[int, int] = field(default_factory=dict)

    def ratio(self, K: int) -> float:
        return self.plain[K] / self.compiled[K]

    @property
    def growth(self) -> float:
        """The cost of a step at the largest K, in steps at K = 1."""
        return self.compiled[max(self.compiled)] / self.compiled[min(self.compiled)]

    @property
    def estimate(self) -> float:
        """Seconds of a whole run of the compiled engine: times between the measured K are interpolated."""
        K = np.arange(1, self.setting.tasks + 1)
        steps = np.interp(K, list(self.compiled), list(self.compiled.values())) * 1e-6
        return float(steps.sum() * self.setting.steps)


def plain_listing(setting: TimedAgent, engine: Engine, task: Task) -> PlainListing:
    """The listing with the policies of an engine's agent, which has started the task, on the same streams."""
    agent, environment = engine.agent, engine.environment
    environment.unwrapped.np_random = engine.streams.environment
    environment.unwrapped.set_task(task)  # type: ignore[attr-defined]
    parameters, cumulant = agent.policies.parameters, agent.cumulant
    return PlainListing(
        environment=environment,
        xi=[setting.module(parameters, k, agent.num_actions) for k in range(agent.num_policies)],
        rewards=[readout.vector.clone() for readout in agent.readouts],
        cumulant=lambda info: setting.cumulant(cumulant, info),
        gamma=agent.gamma,
        epsilon=agent.schedules.at(0).epsilon,
        alpha=setting.settings["learning_rate"],
        exploration=engine.streams.exploration,
    )


def snapshots(
    setting: TimedAgent, learn_steps: int, advance: Callable[[int], None]
) -> Iterable[tuple[int, dict[str, Any], Task]]:
    """For each K the state of an engine with K - 1 policies, and the task to come."""
    streams = Streams.spawn(SEED)
    engine = setting.engine("compiled", streams)
    for K in range(1, max(setting.policies) + 1):
        task = setting.task(streams.tasks)
        if K in setting.policies:
            yield K, engine.state_dict(), task
        engine.run_task(task, learn_steps)
        advance(1)


def at_task(setting: TimedAgent, name: str, state: Any, task: Task, **changes: Any) -> Engine:
    """An engine with stored policies whose agent has just started a task."""
    engine = setting.engine(name, Streams.spawn(SEED), **changes)
    engine.load_state_dict(state)
    engine.start_task(task)
    return engine


def microseconds(run: Callable[[int], Any], steps: int) -> float:
    """Processor time of a step."""
    start = time.process_time()
    run(steps)
    return (time.process_time() - start) / steps * 1e6


def fastest(repeats: int, *ways: tuple[Callable[[int], Any], int]) -> list[float]:
    """Microseconds of a step of each way, (run, steps), timed in turn; the fastest round counts."""
    rounds = [[microseconds(run, steps) for run, steps in ways] for _ in range(repeats)]
    shortest: list[float] = np.min(rounds, axis=0).tolist()
    return shortest


def measure_compiled(setting: TimedAgent, options: Options) -> Timings:
    """The compiled engine alone, at every K."""
    timings = Timings(setting)
    with cli.progress(max(setting.policies), setting.title) as advance:
        for K, state, task in snapshots(setting, options.learn_steps, advance):
            engine = at_task(setting, "compiled", state, task)
            [timings.compiled[K]] = fastest(options.repeats, (engine.continue_task, setting.measured_steps))
    return timings


def measure(setting: TimedAgent, options: Options) -> tuple[Timings, Any, Task]:
    """All three ways at every K; the state and the task of the largest K are handed back for more."""
    timings = Timings(setting)
    with cli.progress(max(setting.policies), setting.title) as advance:
        for K, state, task in snapshots(setting, options.learn_steps, advance):
            reference, compiled, beside = (
                at_task(setting, name, state, task) for name in ("reference", "compiled", "reference")
            )
            plain = plain_listing(setting, beside, task)
            timings.plain[K], timings.reference[K], timings.compiled[K] = fastest(
                options.repeats,
                (plain.run, max(10, 100 // K)),
                (reference.continue_task, 60),
                (compiled.continue_task, setting.measured_steps),
            )
            weights = reference.agent.policies.parameters.values()
            timings.weight_bytes[K] = sum(w.numel() * w.element_size() for w in weights)
    return timings, state, task


def measure_in_turn(settings: tuple[TimedAgent, ...], options: Options) -> list[float]:
    """Microseconds per step of the compiled engine at the largest K of several settings, timed in turn."""
    engines = []
    for setting in settings:
        last = replace(setting, policies=(max(setting.policies),))
        with cli.progress(max(setting.policies), setting.title) as advance:
            for _, state, task in snapshots(last, options.learn_steps, advance):
                engines.append((at_task(setting, "compiled", state, task), setting.measured_steps))
    return fastest(options.repeats, *((engine.continue_task, steps) for engine, steps in engines))


@njit(fastmath=REASSOCIATE)
def _sum(values: np.ndarray) -> float:
    total = values[0] - values[0]
    for j in range(values.shape[0]):
        total += values[j]
    return total


def read_bandwidth(size: int, repeats: int) -> float:
    """Bytes per second at which a compiled sum reads an array of this size over and over."""
    values = np.ones(size // 4, dtype=np.float32)
    _sum(values)
    passes = max(1, 400_000_000 // size)
    [taken] = fastest(repeats, (lambda steps: [_sum(values) for _ in range(steps)], passes))
    return size / taken * 1e6


def whole_run(name: str) -> float:
    """Processor seconds of all tasks of a run in the compiled engine."""
    setting, streams = whole_setting(name), Streams.spawn(SEED)
    engine = setting.engine("compiled", streams)
    total = 0.0
    with cli.progress(setting.tasks, name) as advance:
        for _ in range(setting.tasks):
            task = setting.task(streams.tasks)
            started = time.process_time()
            engine.run_task(task, setting.steps)
            total += time.process_time() - started
            advance(1)
    return total


def peak_memory() -> float:
    """Bytes that this process has had at most; nan where the system does not tell (Windows)."""
    try:
        import resource
    except ImportError:
        return float("nan")
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def compile_seconds() -> float:
    """Processor seconds of compiling both kernels in both precisions, in a process with an empty cache."""
    with tempfile.TemporaryDirectory() as folder:
        finished = subprocess.run(
            [sys.executable, "-c", "from benchmarks.engines import first_use; print(first_use())"],
            env={**os.environ, "NUMBA_CACHE_DIR": folder},
            capture_output=True,
            text=True,
            check=True,
        )
    return float(finished.stdout)


def first_use() -> float:
    """Processor seconds until both kernels have run in both precisions: they are compiled or loaded."""
    started = time.process_time()
    for setting in (OBJECTS, RACER):
        for dtype in (torch.float32, torch.float64):
            engine = setting.engine("compiled", Streams.spawn(0), dtype=dtype)
            engine.run_task(setting.task(np.random.default_rng(0)), 10)
    return time.process_time() - started


def _run_beside(together: Any, seconds: Any) -> None:
    """Estimate a whole run from wall-clock times at every K; all processes start each K together."""
    torch.set_num_threads(1)
    timings = Timings(OBJECTS)
    for K, state, task in snapshots(OBJECTS, 500, lambda _: None):
        engine = at_task(OBJECTS, "compiled", state, task)
        engine.continue_task(10)  # loads the kernel
        together.wait(timeout=PATIENCE)
        started = time.perf_counter()
        for _ in range(PAIR_TASKS):
            engine.continue_task(OBJECTS.steps)
        timings.compiled[K] = (time.perf_counter() - started) / (PAIR_TASKS * OBJECTS.steps) * 1e6
    seconds.put(timings.estimate)


def seconds_beside(processes: int) -> float:
    """Mean seconds of a whole run, estimated, with this many processes at once."""
    context = multiprocessing.get_context("spawn")
    together, seconds = context.Barrier(processes), context.Queue()
    workers = [
        context.Process(target=_run_beside, args=(together, seconds), daemon=True) for _ in range(processes)
    ]
    for worker in workers:
        worker.start()
    # One that fails must not leave the others, and us, waiting.
    times = [seconds.get(timeout=PATIENCE) for _ in workers]
    for worker in workers:
        worker.join()
    return float(np.mean(times))


# --- Reporting ------------------------------------------------------------------------------------


def timing_table(timings: Timings) -> Table:
    title = f"{timings.setting.title}: microseconds per step, float32"
    table = cli.table(title, "K, stored policies", *cli.numbers(*map(str, timings.compiled)))
    for name, times in (
        ("plain listing, PyTorch autograd", timings.plain),
        ("reference engine", timings.reference),
        ("compiled engine", timings.compiled),
    ):
        table.add_row(name, *(f"{value:,.1f}" for value in times.values()))
    table.add_row("plain / compiled", *(f"{timings.ratio(K):,.0f}" for K in timings.compiled))
    table.add_row(
        "reference / compiled",
        *(f"{timings.reference[K] / timings.compiled[K]:,.0f}" for K in timings.compiled),
    )
    table.add_row("weights, MB", *(f"{size / 1e6:.2f}" for size in timings.weight_bytes.values()))
    return table


def main(options: Options) -> int:
    """Measure, print, and write JSON if asked to."""
    names = tuple(WHOLE_RUNS) if options.whole == ("all",) else options.whole
    for name in names:
        if name not in WHOLE_RUNS:
            raise InputError(f"there is no whole run {name!r}; there are {', '.join(WHOLE_RUNS)} and all")
    if options.repeats < 1 or options.learn_steps < 1:
        raise InputError("repeats and learn_steps must be at least 1")
    torch.set_num_threads(1)
    console = cli.output_console(options.json)
    compiling, loading = compile_seconds(), first_use()
    console.print(f"Compiling all kernels takes {compiling:.0f} s, once; here they took {loading:.1f} s.")

    objects, state, task = measure(OBJECTS, options)
    timed = [objects, *(measure(setting, options)[0] for setting in (RACER, OWN_WORLD))]
    for timings in timed:
        console.print(timing_table(timings))
    racer = timed[1]

    K, K_racer = max(OBJECTS.policies), max(RACER.policies)
    full_gpi = at_task(OBJECTS, "compiled", state, task, gpi_filter=False)
    [full] = fastest(options.repeats, (full_gpi.continue_task, 4000))
    weights = full_gpi.agent.policies.parameters["weight"]
    size = weights[..., 0].numel() * padded(weights.shape[-1], PADDING) * weights.element_size()
    limit = read_bandwidth(size, options.repeats)
    reading = size / full * 1e6
    peak = peak_memory()
    console.print(
        f"Full GPI, K = {K}: {full:.1f} us per step; it reads {reading / 1e9:.1f} of {limit / 1e9:.1f} GB/s. "
        f"With the filter a step is {full / objects.compiled[K]:.1f} times faster.\n"
        f"Memory: {peak / 1e6:,.0f} MB at its peak, Python, PyTorch and Numba included."
    )
    estimates = {"SFR": objects.estimate, "racer": racer.estimate}
    for name in WHOLE_RUNS:
        if name not in estimates:
            estimates[name] = measure_compiled(whole_setting(name), options).estimate
    rounds = [(seconds_beside(1), seconds_beside(2)) for _ in range(options.repeats)]
    alone, beside = np.min(rounds, axis=0).tolist()
    console.print(
        f"A whole SFR run alone takes {alone:.1f} s, two at once take {beside:.1f} s each, estimated."
    )

    code, tents = measure_in_turn((RACER_CODE, RACER_60), options)
    console.print(
        f"Racer, K = {K_racer}: {RACER_CODE.title} {code:.0f} us per step, {RACER_60.title} {tents:.0f} us."
    )
    filtered, unfiltered = measure_in_turn((RACER_SF, RACER_SF_FULL), options)
    console.print(f"{RACER_SF.title}: {filtered:.1f} us per step, {RACER_SF_FULL.title} {unfiltered:.1f} us.")

    runs = {name: whole_run(name) for name in names}
    reached = [
        goals.FASTER_THAN_PLAIN.at(objects.ratio(K)),
        goals.STEP_AT_300.at(objects.compiled[K]),
        goals.GROWTH_TO_300.at(objects.growth),
        goals.BANDWIDTH.at(reading / limit),
        goals.RACER_FASTER_THAN_PLAIN.at(racer.ratio(K_racer)),
        goals.JOINT_CODE.at(code / tents),
        goals.SF_IN_THE_RACER.at(unfiltered / filtered),
        goals.COMPILING.at(compiling),
        goals.TWO_AT_ONCE.at(beside / alone),
    ]
    for seconds, how in ((estimates, "estimated"), (runs, "measured")):
        of_runs = [(goal, seconds[name]) for name, goal in goals.WHOLE_RUNS.items() if name in seconds]
        reached += [replace(goal, name=f"{goal.name}, {how}", measured=taken) for goal, taken in of_runs]
    console.print(goal_table(reached))
    if options.json is not None:
        payload = {
            "microseconds_per_step": {
                timings.setting.title: {
                    name: getattr(timings, name)
                    for name in ("plain", "reference", "compiled", "weight_bytes")
                }
                for timings in timed
            },
            "full_gpi": {"microseconds_per_step": full, "bytes_per_second": reading, "limit": limit},
            "peak_memory_bytes": peak,
            "goals": [goal.to_json() for goal in reached],
        }
        cli.write_json(payload, options.json)
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "benchmarks.engines", __doc__ or "")
