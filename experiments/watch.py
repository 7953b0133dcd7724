"""Watch a trained agent: learn some tasks, then write a GIF of how it acts on the last one.

Example: `python -m experiments.watch --environment racer --agent CSFR --tasks 3`. The agent acts by GPI over
all the policies that it has learned, and explores as it does when it learns: without that it may push against
a wall for ever. It does not learn from what it does here. The caption shows what each kind of object is worth
(the racer's ground shows its rewards), the score, and which of the stored policies GPI follows.
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
from PIL import Image, ImageDraw, ImageFont

from experiments.configs._shared import BARRETO, GENERAL, MB_SFR, RACER, SF_R
from sfr_fa.agents import GpiAgent, agent_spec
from sfr_fa.environments import rendering
from sfr_fa.environments.layouts import ObjectLayout
from sfr_fa.runs.config import AgentSetup, FeatureLearning, Trial
from sfr_fa.runs.store import RunFolder
from sfr_fa.runs.trial import build, learned_feature_map
from sfr_fa.tasks import Task, rewards_of
from sfr_theory import cli
from sfr_theory.errors import InputError

SETTINGS = {"object-collection": GENERAL, "barreto": BARRETO, "racer": RACER}
LIMITS = {
    "tasks": (1, 10_000),
    "steps": (1, 10**9),
    "frames": (1, 10_000),
    "size": (16, 4096),
    "seed": (0, 2**63),
}
RATES = {**SF_R.rates, **MB_SFR.rates}


@dataclass(frozen=True)
class Options:
    environment: Literal["object-collection", "barreto", "racer"] = "object-collection"
    agent: str = "SFR"
    """Q, SF, SF-R, SFR, SFR-R, MB SFR, MB SFR-R; on the racer Q, SF, SF-R, CSFR, CSFR-R; or an AgentSpec of
    your own as module:ROW."""
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
    """Width in pixels; a caption adds to the height."""
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


@dataclass(frozen=True)
class Scene:
    """A moment of the film."""

    picture: NDArray[np.uint8]
    score: float
    """Rewards since the film began."""
    reward: float
    """Of the step that led here."""
    followed: int | None
    """The policy whose action comes next; None: one is drawn at random, or the episode is over."""


def play(environment: Any, agent: GpiAgent, task: Task, frames: int, seed: int) -> Iterator[Scene]:
    """Epsilon-greedy GPI steps."""
    exploration = np.random.default_rng(seed)
    state, _ = environment.reset(seed=seed, options={"task": task})
    score = reward = 0.0
    contest = agent.contest()
    for _ in range(frames):
        policy, action = agent.choose(state, contest)
        explores = exploration.random() < agent.schedules.at(agent.steps_of_task).epsilon
        if explores:
            action = int(exploration.integers(agent.num_actions))
        yield Scene(environment.render(), score, reward, None if explores else policy)
        state, reward, terminated, truncated, _ = environment.step(action)
        score += reward
        if terminated or truncated:
            yield Scene(environment.render(), score, reward, None)
            state, _ = environment.reset()
            reward = 0.0


class Caption:
    """The strip below a picture: what things are worth, the score, and which stored policy is followed."""

    def __init__(self, environment: Any, task: Task, num_policies: int, width: int) -> None:
        self.width, self.height = width, round(0.3 * width)
        self.num_policies = num_policies
        self._line = self.height / 3
        self._font = ImageFont.load_default(size=max(6.0, 0.47 * self._line))
        self._ground = Image.new("RGB", (width, self.height), rendering.FLOOR)
        self._draw_worth(environment, task)

    def below(self, scene: Scene) -> Image.Image:
        """The picture of a scene with its caption."""
        square = Image.fromarray(scene.picture).resize((self.width, self.width), Image.Resampling.LANCZOS)
        strip = self._ground.copy()
        draw = ImageDraw.Draw(strip)
        last = f"  ({scene.reward:+.2f})" if scene.reward else ""
        self._text(draw, 0.02, 1, f"score {scene.score:+.2f}{last}")
        chosen = (
            "random step" if scene.followed is None else f"policy {scene.followed + 1} of {self.num_policies}"
        )
        self._text(draw, 0.02, 2, chosen)
        left, right = 0.45 * self.width, 0.98 * self.width
        cell = (right - left) / self.num_policies
        for k in range(self.num_policies):
            box = (left + k * cell, 2.2 * self._line, left + (k + 0.85) * cell, 2.8 * self._line)
            draw.rectangle(
                box, fill=rendering.RACER if k == scene.followed else rendering.WHITE, outline=rendering.START
            )
        whole = Image.new("RGB", (self.width, self.width + self.height))
        whole.paste(square, (0, 0))
        whole.paste(strip, (0, self.width))
        return whole

    def _draw_worth(self, environment: Any, task: Task) -> None:
        """Each kind of object with its reward, or what the colours of a field say."""
        draw = ImageDraw.Draw(self._ground)
        layout = environment.unwrapped.layout
        if not isinstance(layout, ObjectLayout):
            self._text(draw, 0.02, 0, "reward: dark is high")
            return
        rewards = rewards_of(task, layout.feature_space.vectors)[1:]  # the first feature is nothing
        looks = [*((kind.shape, kind.colour) for kind in layout.kinds), ("disc", rendering.GOAL)]
        step, radius = self.width / len(looks), 0.22 * self._line
        for k, ((shape, colour), reward) in enumerate(zip(looks, rewards, strict=True)):
            x, y = k * step + 1.5 * radius, 0.5 * self._line
            if shape == "box":
                draw.rectangle((x - radius, y - radius, x + radius, y + radius), fill=colour)
            elif shape == "triangle":
                draw.polygon(
                    [(x, y - radius), (x - radius, y + radius), (x + radius, y + radius)], fill=colour
                )
            else:
                draw.ellipse((x - radius, y - radius, x + radius, y + radius), fill=colour)
            self._text(draw, (x + 1.4 * radius) / self.width, 0, f"{reward:+.2f}")

    def _text(self, draw: ImageDraw.ImageDraw, x: float, line: int, text: str) -> None:
        place = (x * self.width, (line + 0.5) * self._line)
        draw.text(place, text, fill=rendering.AGENT, font=self._font, anchor="lm")


def write_gif(images: list[Image.Image], path: Path) -> None:
    """An animated GIF that repeats forever."""
    palette = images[0].quantize(64)
    first, *others = [image.quantize(palette=palette) for image in images]
    buffer = io.BytesIO()
    first.save(buffer, "GIF", save_all=True, append_images=others, duration=60, loop=0, optimize=True)
    cli.write_atomic(path, buffer.getvalue())


def main(options: Options) -> int:
    for name, (least, most) in LIMITS.items():
        if not least <= getattr(options, name) <= most:
            raise InputError(f"--{name} is {getattr(options, name)}; it must be {least} to {most:,}")
    if Path(options.output).suffix.lower() != ".gif":
        raise InputError(f"--output is {options.output}; the film is a GIF, so its name must end with .gif")
    cli.require_writable(options.output)
    trial = trial_of(options)
    with tempfile.TemporaryDirectory() as folder:
        engine, tasks, notes = build(trial, functools.partial(learned_feature_map, folder=RunFolder(folder)))
    console = cli.output_console(None)
    for note in notes:
        console.print(f"note: {note}", markup=False)
    if engine.name == "compiled":
        console.print("The first run compiles its kernel, once; that takes up to a minute.")
    with cli.progress(options.tasks, f"{options.agent} learns") as advance:
        for number, task in enumerate(tasks, start=1):
            result = engine.run_task(task, options.steps)
            per_step = result.total_reward / result.steps
            console.print(f"task {number}: reward {per_step:+.4f} per step, {result.episodes} episodes")
            advance(1)
    film = play(engine.environment, engine.agent, tasks[-1], options.frames, options.seed)
    caption = Caption(engine.environment, tasks[-1], engine.agent.num_policies, options.size)
    write_gif([caption.below(scene) for scene in film], Path(options.output))
    console.print(f"wrote {options.output}", markup=False)
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.watch", __doc__ or "")
