"""Watch a trained agent: learn some tasks, then write a GIF of how it acts on the last one.

Example: `python -m experiments.watch --environment racer --agent CSFR --tasks 3`. The agent acts by GPI over
all the policies that it has learned, and explores as it does when it learns: without that it may push against
a wall for ever. What it does here is not learned from.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import gymnasium
import numpy as np
from numpy.typing import NDArray
from PIL import Image

from sfr_fa.agents import GpiAgent
from sfr_fa.agents.approximators import FeatureSubnetworks
from sfr_fa.agents.readouts import MlpRewardModel
from sfr_fa.engines import Streams, make_engine
from sfr_fa.tasks import Task, sample_general_task, sample_linear_task, sample_racer_task
from sfr_theory import cli
from sfr_theory.errors import InputError
from sfr_theory.gpi import gpi_choice


@dataclass(frozen=True)
class Setting:
    """An environment with the paper's constants, and the agents that the paper runs in it."""

    id: str
    agents: tuple[str, ...]
    constants: dict[str, Any]


DISCRETE = {"gamma": 0.95, "epsilon": 0.15, "learning_rate": 0.005}
DISCRETE_AGENTS = ("Q", "SF", "SF-R", "SFR", "SFR-R", "MB SFR", "MB SFR-R")
SETTINGS = {
    "object-collection": Setting("sfr_fa:sfr/ObjectCollection-v0", DISCRETE_AGENTS, DISCRETE),
    "barreto": Setting("sfr_fa:sfr/ObjectCollectionBarreto-v0", DISCRETE_AGENTS, DISCRETE),
    "racer": Setting(
        "sfr_fa:sfr/Racer-v0",
        ("Q", "SF-R", "CSFR", "CSFR-R"),
        {"gamma": 0.9, "epsilon": 0.15, "learning_rate": 0.0025, "approximator": FeatureSubnetworks},
    ),
}


@dataclass(frozen=True)
class Options:
    environment: Literal["object-collection", "barreto", "racer"] = "object-collection"
    agent: str = "SFR"
    """Q, SF, SF-R, SFR, SFR-R, MB SFR, MB SFR-R; on the racer Q, SF-R, CSFR, CSFR-R."""
    rewards: Literal["linear", "general"] = "general"
    """How rewards depend on the properties of objects; the racer has its own."""
    tasks: int = 10
    """How many tasks to learn, one after the other."""
    steps: int = 20_000
    """Steps for each task."""
    seed: int = 0
    engine: Literal["compiled", "reference"] = "compiled"
    frames: int = 200
    """Length of the film, in steps; episodes that end are followed by new ones."""
    size: int = 320
    """Width and height in pixels."""
    output: str = "watch.gif"


def task_sampler(options: Options, environment: Any) -> Callable[[np.random.Generator], Task]:
    if options.environment == "racer":
        return sample_racer_task
    sample = sample_linear_task if options.rewards == "linear" else sample_general_task
    space = environment.unwrapped.feature_space
    return lambda rng: sample(rng, space)


def play(
    environment: Any, agent: GpiAgent, task: Task, frames: int, seed: int
) -> Iterator[NDArray[np.uint8]]:
    """Pictures of epsilon-greedy GPI steps."""
    exploration = np.random.default_rng(seed)
    state, _ = environment.reset(seed=seed, options={"task": task})
    for _ in range(frames):
        yield environment.render()
        action = int(gpi_choice(agent.values(state))[1])
        if exploration.random() < agent.epsilon:
            action = int(exploration.integers(agent.num_actions))
        state, _, terminated, truncated, _ = environment.step(action)
        if terminated or truncated:
            yield environment.render()
            state, _ = environment.reset()


def write_gif(frames: Iterator[NDArray[np.uint8]], size: int, path: Path) -> None:
    """An animated GIF that repeats for ever."""
    images = [Image.fromarray(frame).resize((size, size), Image.Resampling.LANCZOS) for frame in frames]
    palette = images[0].quantize(64)
    first, *others = [image.quantize(palette=palette) for image in images]
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=60, loop=0, optimize=True)
    cli.write_atomic(path, buffer.getvalue())


def main(options: Options) -> int:
    setting = SETTINGS[options.environment]
    if options.agent not in setting.agents:
        raise InputError(f"--agent {options.agent} is none of {', '.join(setting.agents)}")
    for name, least in (("tasks", 1), ("steps", 1), ("frames", 1), ("size", 16), ("seed", 0)):
        if getattr(options, name) < least:
            raise InputError(f"--{name} is {getattr(options, name)}; it must be at least {least}")
    environment = gymnasium.make(setting.id, render_mode="rgb_array")
    streams = Streams.spawn(options.seed)
    constants = dict(setting.constants)
    if options.agent.endswith("-R"):
        constants["reward_learning_rate"] = 0.05
        if options.rewards == "general" and "SFR-R" in options.agent and options.environment != "racer":
            constants["reward_model"] = MlpRewardModel
    if options.agent.startswith("MB"):
        constants["model_learning_rate"] = 0.2
    engine = make_engine(options.engine, environment, options.agent, streams=streams, **constants)
    sample = task_sampler(options, environment)
    console = cli.output_console(None)
    if engine.name == "compiled":
        console.print("The first run compiles its kernel, once; that takes up to a minute.")
    with cli.progress(options.tasks, f"{options.agent} learns") as advance:
        for k in range(options.tasks):
            task = sample(streams.tasks)
            result = engine.run_task(task, options.steps)
            per_step = result.total_reward / result.steps
            console.print(f"task {k + 1}: reward {per_step:+.4f} a step, {result.episodes} episodes")
            advance(1)
    write_gif(
        play(environment, engine.agent, task, options.frames, options.seed),
        options.size,
        Path(options.output),
    )
    console.print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.watch", __doc__ or "")
