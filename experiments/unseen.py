"""Rewards that were not trained on: what trained agents earn under them, and how well they value them.

    python -m experiments.unseen

CSFR and SFR-K on the same network of 128 units (`experiments.configs.racer_interactions`) learn a few tasks
of the racer. Then, without learning, for new reward functions R of the same kind:

    zero-shot     GPI acts greedily by Q_k^R, all stored policies read under R: reward per step, next to that
                  of random actions
    values        Q_k^R(s, a) of each stored policy, at places and actions drawn at random, against the
                  discounted return of following that policy from there (Monte Carlo): their correlation, and
                  the root mean square of their difference in standard deviations of the returns

Returns are of single rollouts, whose noise no estimate can foresee: even a perfect one correlates below 1.
Intervals are Student's t over seeds, which are not those of the experiment.
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import gymnasium
import numpy as np

from experiments.configs.racer_interactions import CONFIG
from experiments.peers import interval
from sfr_fa.agents import FitWarning, LearnedFeatures
from sfr_fa.arrays import FloatArray
from sfr_fa.engines import Engine
from sfr_fa.runs.config import Part, Trial
from sfr_fa.runs.trial import build
from sfr_fa.tasks import Task, rewards_of
from sfr_theory import cli
from sfr_theory.errors import InputError

AGENTS = ("CSFR, 1 x 128", "SFR-K")
SEED = CONFIG.seed + 1
HORIZON = 80
"""gamma^80 is 0.0002: what comes later does not count."""
EPISODES = 10
MOST = 10**9
"""Of anything that is counted."""


@dataclass(frozen=True)
class UnseenRow:
    """What one trained agent reaches under new rewards, on average over them."""

    kind: str
    agent: str
    seed: int
    random: float
    """Reward per step of random actions."""
    zero_shot: float
    correlation: float
    error: float
    """Root mean square of Q - return, in standard deviations of the returns."""


def reward_per_step(engine: Engine, task: Task, epsilon: float, seed: int) -> float:
    found = engine.evaluate(task, EPISODES, epsilon=epsilon, episode_steps=200, seed=seed)
    return float(found.returns.sum() / found.lengths.sum())


def followed(
    engine: Engine, environment: gymnasium.Env[Any, Any], policy: int, action: int, rng: np.random.Generator
) -> tuple[FloatArray, FloatArray]:
    """A random place, and the features of what follows: an action, then those of a stored policy."""
    contest = engine.agent.contest(policy=policy)
    environment.unwrapped.np_random = rng
    start, _ = environment.reset()
    features = []
    for _ in range(HORIZON):
        state, *_, info = environment.step(action)
        features.append(info["features"])
        _, action = engine.agent.choose(state, contest)
    return start, np.array(features)


def valued(engine: Engine, tasks: Sequence[Task], starts: int, seed: int) -> tuple[float, float]:
    """Correlation and error of Q_k^R(s, a), on average over stored policies and new rewards."""
    agent, environment = engine.agent, copy.deepcopy(engine.environment)
    discounts = agent.gamma ** np.arange(HORIZON)
    read, returns = np.empty((2, len(tasks), agent.num_policies, starts))
    for i in range(starts):
        action = i % agent.num_actions
        for policy in range(agent.num_policies):
            # The same place for all policies, and the same noise.
            rng = np.random.default_rng((seed, i))
            start, features = followed(engine, environment, policy, action, rng)
            returns[:, policy, i] = [rewards_of(task, features) @ discounts for task in tasks]
        read[:, :, i] = [agent.values(start, task)[:, action] for task in tasks]
    deviation = returns.std(axis=-1)
    error = np.sqrt(np.mean((read - returns) ** 2, axis=-1)) / deviation
    together = ((read - read.mean(axis=-1, keepdims=True)) * returns).mean(axis=-1)
    return float(np.mean(together / (read.std(axis=-1) * deviation))), float(np.mean(error))


def trained(part: Part, label: str, seed: int, options: Options) -> UnseenRow:
    """Train one agent, then show it new rewards of the same kind."""
    [agent] = (agent for agent in part.agents if agent.label == label)
    size = options.tasks + options.new
    trial = Trial(part.setting, agent, seed, SEED, size, options.steps, options.engine)
    engine, tasks, _ = build(trial, no_features)
    for task in tasks[: options.tasks]:
        engine.run_task(task, options.steps)
    new = tasks[options.tasks :]
    random, greedy = (
        float(np.mean([reward_per_step(engine, task, epsilon, seed) for task in new]))
        for epsilon in (1.0, 0.0)
    )
    correlation, error = valued(engine, new, options.starts, seed)
    return UnseenRow(part.setting.name, label, seed, random, greedy, correlation, error)


def no_features(trial: Trial) -> LearnedFeatures:
    raise InputError(f"{trial.agent.label} learns features; this command is for agents that are given them")


def markdown(rows: Sequence[UnseenRow]) -> str:
    """The table of docs/kernel.md."""
    lines = [
        "| rewards | agent | random | zero-shot | correlation of values | error of values |",
        "|---|---|---:|---:|---:|---:|",
    ]
    for kind, label in dict.fromkeys((row.kind, row.agent) for row in rows):
        here = [row for row in rows if (row.kind, row.agent) == (kind, label)]
        columns = zip(*((r.random, r.zero_shot, r.correlation, r.error) for r in here), strict=True)
        lines.append(f"| {kind} | {label} | {' | '.join(interval([*values]) for values in columns)} |")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Options:
    tasks: int = 4
    """How many tasks to learn first."""
    steps: int = 50_000
    """Steps for each of these tasks."""
    new: int = 4
    """How many new rewards to meet."""
    starts: int = 50
    """Places at which values are compared with returns, for each stored policy."""
    seeds: int = 3
    """How many seeds; intervals are over them."""
    engine: str = "compiled"
    json: str | None = None
    """Write the numbers of every seed as JSON to this file; - is standard output."""


def main(options: Options) -> int:
    for name, least in (("tasks", 1), ("steps", 1), ("new", 1), ("starts", 2), ("seeds", 1)):
        if not least <= getattr(options, name) <= MOST:
            value = getattr(options, name)
            raise InputError(f"--{name} is {value}; it must be at least {least} and at most {MOST}")
    cli.require_writable(options.json)
    console = cli.output_console(options.json)
    runs = [(part, label, k) for k in range(options.seeds) for part in CONFIG.parts for label in AGENTS]
    rows = []
    with warnings.catch_warnings(), cli.progress(len(runs), "trained agents") as advance:
        warnings.simplefilter("ignore", FitWarning)
        for part, label, seed in runs:
            rows.append(trained(part, label, seed, options))
            advance(1)
    console.print(markdown(rows), markup=False, soft_wrap=True)
    if options.json:
        cli.write_json({"options": asdict(options), "rows": [asdict(row) for row in rows]}, options.json)
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.unseen", __doc__ or "")
