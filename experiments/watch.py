"""Watch a trained agent: learn some tasks, then write a GIF of how it acts on the last one.

Example: `python -m experiments.watch --environment racer --agent CSFR --tasks 3`. The agent acts by GPI over
all the policies that it has learned, and explores as it does when it learns: without that it may push against
a wall for ever. What it does here is not learned from.
"""

from __future__ import annotations

import functools
import io
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from experiments.configs._shared import BARRETO, GENERAL, MB_SFR, RACER, SF_R
from sfr_fa.agents import GpiAgent, agent_spec
from sfr_fa.runs.config import AgentSetup, FeatureLearning, Trial
from sfr_fa.runs.store import RunFolder
from sfr_fa.runs.trial import build, learned_feature_map
from sfr_fa.tasks import Task
from sfr_theory import cli
from sfr_theory.errors import InputError
from sfr_theory.gpi import gpi_choice

SETTINGS = {"object-collection": GENERAL, "barreto": BARRETO, "racer": RACER}
RATES = {**SF_R.rates, **MB_SFR.rates}


@dataclass(frozen=True)
class Options:
    environment: Literal["object-collection", "barreto", "racer"] = "object-collection"
    agent: str = "SFR"
    """Q, SF, SF-R, SFR, SFR-R, MB SFR, MB SFR-R; on the racer Q, SF-R, CSFR, CSFR-R; or an AgentSpec of your
    own as module:ROW."""
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


def trial_of(options: Options) -> Trial:
    """What is learned before the film, at the paper's rates."""
    general = options.rewards == "general" and options.environment != "racer"
    setting = replace(SETTINGS[options.environment], environment_options={"render_mode": "rgb_array"})
    if options.environment != "racer":
        setting = replace(setting, tasks=options.rewards)
    spec = agent_spec(options.agent)
    rates: dict[str, Any] = {rate: RATES[rate] for rate in spec.rates}
    setup = AgentSetup(
        options.agent,
        options.agent,
        **rates,
        reward_model="mlp" if general and spec.learns_rewards and not spec.readout.linear_only else None,
        learned_dimensions=4 if spec.learns_features else None,
    )
    return Trial(
        setting, setup, 0, options.seed, options.tasks, options.steps, options.engine,
        FeatureLearning(iterations=100_000),
    )  # fmt: skip


def play(
    environment: Any, agent: GpiAgent, task: Task, frames: int, seed: int
) -> Iterator[NDArray[np.uint8]]:
    """Pictures of epsilon-greedy GPI steps."""
    exploration = np.random.default_rng(seed)
    state, _ = environment.reset(seed=seed, options={"task": task})
    for _ in range(frames):
        yield environment.render()
        action = int(gpi_choice(agent.values(state))[1])
        if exploration.random() < agent.schedules.at(agent.steps_of_task).epsilon:
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
    for name, least in (("tasks", 1), ("steps", 1), ("frames", 1), ("size", 16), ("seed", 0)):
        if getattr(options, name) < least:
            raise InputError(f"--{name} is {getattr(options, name)}; it must be at least {least}")
    trial = trial_of(options)
    with tempfile.TemporaryDirectory() as folder:
        engine, tasks, notes = build(trial, functools.partial(learned_feature_map, folder=RunFolder(folder)))
    console = cli.output_console(None)
    for note in notes:
        console.print(f"note: {note}")
    if engine.name == "compiled":
        console.print("The first run compiles its kernel, once; that takes up to a minute.")
    with cli.progress(options.tasks, f"{options.agent} learns") as advance:
        for number, task in enumerate(tasks, start=1):
            result = engine.run_task(task, options.steps)
            per_step = result.total_reward / result.steps
            console.print(f"task {number}: reward {per_step:+.4f} per step, {result.episodes} episodes")
            advance(1)
    film = play(engine.environment, engine.agent, tasks[-1], options.frames, options.seed)
    write_gif(film, options.size, Path(options.output))
    console.print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.watch", __doc__ or "")
