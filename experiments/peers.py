"""Compared with a peer: SF, SFR and CSFR against GPI-LS of morl-baselines on MO-Gymnasium.

Example: `python -m experiments.peers` runs what is missing in results/peers.csv, then prints the table of
docs/peers.md. GPI-LS needs `pip install morl-baselines` (an extra of its own, `.[peers]`); without it, use
`--agents SF SFR CSFR`.

Every agent learns from the same number of steps. Ours learn three linear utilities, one after the other;
GPI-LS (Alegre et al., 2023) chooses its own weights. Then all meet utilities that are new to them, greedily:
as they are (zero-shot), and after a few steps of learning the new one, each from the same trained state.
Linear ones have weights in the simplex; others are functions of one step's features that no weights can
state: GPI-LS cannot be told them, SF fits weights to them, CSFR knows sums over dimensions only.

States of whole numbers are indicators for all (`OneHot`). There ours have a table and SGD, at the largest
rate at which a minibatch that repeats one step does not overshoot; in minecart they have what GPI-LS has
everywhere, a network with two layers of 64 ReLU units and Adam. All learn from one minibatch of 32 remembered
steps per step, with gamma = 0.97. What counts is the discounted return of greedy episodes of at most 60
steps.

Features of which SFR and SF are told the set are collected with 20,000 steps of random actions, which are not
counted. Processor time of GPI-LS includes the evaluations of its own policies, by which it chooses weights.

With 4,500 steps all of it takes about half an hour on one core; --train-steps 30000 --output FILE gives
everybody more.
"""

from __future__ import annotations

import copy
import functools
import importlib.util
import itertools
import logging
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import gymnasium
import numpy as np
import torch
from gymnasium.wrappers import TransformObservation, TransformReward
from scipy.stats import t as student
from torch import Tensor, nn

from experiments import rows as rows_of
from sfr_fa.agents import Replay, ValueShape
from sfr_fa.engines import Engine, EpisodeLimit, make_engine
from sfr_fa.environments.adapters import FeaturesFromVectorReward, OneHot
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import AdditiveTask, FunctionTask, LinearTask, Task
from sfr_theory import cli
from sfr_theory.errors import InputError

GAMMA, EPSILON, BATCH, HIDDEN, EPISODE = 0.97, 0.3, 32, 64, 60
TRAIN_STEPS, FEW_STEPS, EPISODES = 4500, 225, 2
MOST_SEEDS = 1000
TASKS = 3
"""Linear utilities of our agents, and iterations of GPI-LS."""
NEW_LINEAR = 2
RATE = 0.001
"""Of Adam, for networks."""
AGENTS = ("SF", "SFR", "CSFR", "GPI-LS")


@dataclass(frozen=True)
class PeerWorld:
    """An environment with vector rewards, the features that it shows, and utilities of them."""

    make: Callable[[], gymnasium.Env[Any, Any]]
    features: Callable[[gymnasium.Env[Any, Any]], DiscreteFeatures]
    other: dict[str, Task]
    """Utilities that are not linear; additive where that is possible."""
    ones: int | None = 1
    """How many numbers of a state are 1, where states are indicators; None: they are not."""


def mo_make(name: str) -> gymnasium.Env[Any, Any]:
    import mo_gymnasium

    with warnings.catch_warnings():
        # Deep-sea-treasure declares the bounds of its rewards in float64 for a float32 space.
        warnings.filterwarnings("ignore", message=".*precision lowered by casting.*")
        env: gymnasium.Env[Any, Any] = mo_gymnasium.make(name)
        return env


observed = functools.partial(DiscreteFeatures.observed, steps=20_000, seed=0)
ROOMS = [[0, 1], *([k] for k in range(2, 14))]
ORE, FUEL = (0.0, 0.5, 1.0, 1.5), (-0.2, -0.1, 0.0)

WORLDS = {
    "deep-sea-treasure": PeerWorld(
        lambda: OneHot(mo_make("deep-sea-treasure-v0")),
        observed,
        {"treasures from 8 to 16": AdditiveTask((
            lambda x: np.where(abs(x - 12) <= 4, 1.0, 0.0), lambda x: 0.02 * x,
        ))},
    ),
    "resource-gathering": PeerWorld(
        lambda: OneHot(_counted(mo_make("resource-gathering-v0"), [5, 5, 2, 2])),
        observed,
        {"gold and gem together": FunctionTask(lambda phi: phi[..., 0] + phi[..., 1] * phi[..., 2])},
    ),
    "four-room": PeerWorld(
        lambda: OneHot(_counted(mo_make("four-room-v0"), [14, 14, *[2] * 12]), ROOMS),
        observed,
        {"objects, not the goal": FunctionTask(lambda phi: np.where(phi.sum(-1) == 1, 1.0, 0.0))},
        len(ROOMS),
    ),
    "minecart-deterministic": PeerWorld(
        # Amounts to the nearest half, fuel to a tenth, for all agents: a set of 48 features.
        lambda: TransformReward(mo_make("minecart-deterministic-v0"), _rounded),
        lambda env: DiscreteFeatures(np.array([*itertools.product(ORE, ORE, FUEL)])),
        {"full loads": AdditiveTask((
            lambda x: np.where(x >= 1, 1.0, 0.0), lambda x: np.where(x >= 1, 1.0, 0.0), lambda x: 0.1 * x,
        ))},
        None,
    ),
}  # fmt: skip


@functools.cache
def features_of(environment: str) -> DiscreteFeatures:
    """The set of features of a world."""
    world = WORLDS[environment]
    return world.features(world.make())


def _counted(env: gymnasium.Env[Any, Any], counts: list[int]) -> gymnasium.Env[Any, Any]:
    """The environment with the numbers that its states really have; it declares more."""
    return TransformObservation(env, lambda state: state, gymnasium.spaces.MultiDiscrete(counts))


def _rounded(phi: Any) -> Any:
    """Ore to the nearest half, of what a full cart holds, and fuel to a tenth; no -0."""
    ore = np.minimum(np.round(2 * np.asarray(phi, dtype=np.float64)[:2]) / 2, 1.5)
    return np.append(ore, np.round(phi[2], 1)) + 0.0


@dataclass(frozen=True)
class Row:
    """One line of the results."""

    environment: str
    agent: str
    seed: int
    train_steps: int
    """Before it met new utilities."""
    utility: str
    linear: bool
    steps: int
    """Of learning the new utility: 0 is zero-shot."""
    discounted_return: float
    training_seconds: float
    """Processor time of the training before."""
    seconds: float
    """Processor time of learning the new utility."""


class Network(nn.Module):
    """Two layers of ReLU units: (batch, state) -> (batch, A, D)."""

    def __init__(self, shape: ValueShape, rng: np.random.Generator) -> None:
        super().__init__()
        torch.manual_seed(int(rng.integers(2**31)))
        self.shape = shape
        self.layers = nn.Sequential(
            nn.Linear(shape.state_dim, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU(),
            nn.Linear(HIDDEN, shape.num_actions * shape.dimensions),
        )  # fmt: skip

    def forward(self, states: Tensor) -> Tensor:
        values: Tensor = self.layers(states)
        return values.unflatten(-1, (self.shape.num_actions, self.shape.dimensions))


def new_linear(dimensions: int) -> Iterator[tuple[str, LinearTask]]:
    """The same for all agents and seeds."""
    rng = np.random.default_rng(11)
    for number in range(1, NEW_LINEAR + 1):
        yield f"new weights {number}", LinearTask(rng.dirichlet(np.ones(dimensions)))


def trained_on(dimensions: int) -> list[LinearTask]:
    """Equal weights, then most of the weight on one dimension after another."""
    equal = np.ones(dimensions) / dimensions
    return [LinearTask(equal), *(LinearTask(0.9 * axis + 0.1 * equal) for axis in np.eye(dimensions))][:TASKS]


# --- Ours -----------------------------------------------------------------------------------------


def ours(environment: str, agent: str, seed: int, train_steps: int, few: int) -> Iterator[tuple[Any, ...]]:
    """(utility, linear, steps, return, training seconds, seconds) of one of our agents."""
    world, space = WORLDS[environment], features_of(environment)
    env = world.make()
    tasks = trained_on(space.dimensions)
    if world.ones is None:
        values: dict[str, Any] = {
            "approximator": Network,
            "optimiser": torch.optim.Adam,
            "learning_rate": RATE,
        }
    else:
        values = {"learning_rate": 0.5 / world.ones}
    engine = make_engine(
        "reference", FeaturesFromVectorReward(env, tasks[0], None if agent == "CSFR" else space), agent,
        seed=seed, gamma=GAMMA, epsilon=EPSILON, replay=Replay(capacity=10_000, batch=BATCH),
        limit=EpisodeLimit(is_terminal=False), **values,
    )  # fmt: skip
    started = time.process_time()
    for known in tasks:
        engine.run_task(known, train_steps // len(tasks))
    training = time.process_time() - started
    utilities = [*((*entry, True) for entry in new_linear(space.dimensions)),
                 *((*entry, False) for entry in world.other.items())]  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        engine.save(Path(folder) / "trained")
        for name, task, linear in utilities:
            if agent == "CSFR" and not hasattr(task, "component"):
                continue
            engine.load(Path(folder) / "trained")
            yield name, linear, 0, _earned(engine, task, seed), training, 0.0
            started = time.process_time()
            engine.run_task(task, few)
            seconds = time.process_time() - started
            yield name, linear, few, _earned(engine, task, seed), training, seconds


def _earned(engine: Engine, task: Task, seed: int) -> float:
    result = engine.evaluate(task, EPISODES, episode_steps=EPISODE, seed=seed)
    return float(result.discounted_returns.mean())


# --- The peer -------------------------------------------------------------------------------------


def peer(environment: str, agent: str, seed: int, train_steps: int, few: int) -> Iterator[tuple[Any, ...]]:
    """The same of GPI-LS, which knows linear utilities."""
    from morl_baselines.multi_policy.gpi_pd.gpi_pd import GPILS

    torch.manual_seed(seed)
    env, eval_env = WORLDS[environment].make(), WORLDS[environment].make()
    dimensions = features_of(environment).dimensions
    for made in (env, eval_env):
        made.unwrapped.reward_space = gymnasium.spaces.Box(-np.inf, np.inf, (dimensions,))  # type: ignore[attr-defined]
        made.reset(seed=seed)
        made.action_space.seed(seed)
    learner = GPILS(
        env, learning_rate=RATE, initial_epsilon=EPSILON, final_epsilon=EPSILON,
        net_arch=[HIDDEN, HIDDEN], batch_size=BATCH, gradient_updates=1, gamma=GAMMA, buffer_size=10_000,
        target_net_update_freq=200, log=False, seed=seed, device="cpu",
    )  # fmt: skip
    started = time.process_time()
    learner.train(
        train_steps, eval_env, np.zeros(dimensions), timesteps_per_iter=train_steps // TASKS,
        num_eval_episodes_for_front=1, checkpoints=False,
    )  # fmt: skip
    training = time.process_time() - started
    support = [w.numpy() for w in learner.weight_support]
    for name, task in new_linear(dimensions):
        copied = copy.deepcopy(learner)
        copied.set_weight_support(support)
        yield name, True, 0, _peer_earned(copied, eval_env, task, seed), training, 0.0
        started = time.process_time()
        copied.train_iteration(
            few, weight=task.weights, weight_support=[*support, task.weights],
            change_w_every_episode=False, reset_num_timesteps=False,
        )  # fmt: skip
        seconds = time.process_time() - started
        yield name, True, few, _peer_earned(copied, eval_env, task, seed), training, seconds


def _peer_earned(learner: Any, env: gymnasium.Env[Any, Any], task: LinearTask, seed: int) -> float:
    returns = []
    for episode in range(EPISODES):
        state, _ = env.reset(seed=1000 * seed + episode)
        earned, discount = 0.0, 1.0
        for _ in range(EPISODE):
            state, phi, terminated, truncated, _ = env.step(learner.eval(state, task.weights))
            earned += discount * float(task.reward(phi))
            discount *= GAMMA
            if terminated or truncated:
                break
        returns.append(earned)
    return float(np.mean(returns))


# --- Results --------------------------------------------------------------------------------------


def read_rows(path: Path) -> list[Row]:
    return rows_of.read(Row, path, "experiments.peers")


def write_rows(rows: list[Row], path: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    order = sorted(rows, key=lambda row: (row.environment, row.agent, row.seed, row.utility, row.steps))
    cli.write_atomic(path, rows_of.to_csv(Row, order))


def interval(values: list[float]) -> str:
    """The mean over seeds, with its 95 % interval by Student's t."""
    if not values:
        return "-"
    if len(values) == 1:
        return f"{values[0]:.2f}"
    half = student.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):.2f} ± {half:.2f}"


def markdown(rows: list[Row]) -> str:
    """The table of docs/peers.md."""
    agents = [agent for agent in AGENTS if any(row.agent == agent for row in rows)]
    lines = [
        f"| environment | utilities | steps on it | {' | '.join(agents)} |",
        "|---|---|---:|" + "---:|" * len(agents),
    ]
    for environment in dict.fromkeys(row.environment for row in rows):
        here = [row for row in rows if row.environment == environment]
        for linear in (True, False):
            for steps in sorted({row.steps for row in here}):
                cells = []
                for agent in agents:
                    found = [r for r in here if (r.agent, r.linear, r.steps) == (agent, linear, steps)]
                    seeds = sorted({r.seed for r in found})
                    means = [np.mean([r.discounted_return for r in found if r.seed == s]) for s in seeds]
                    cells.append(interval([float(mean) for mean in means]))
                other = ", ".join(dict.fromkeys(row.utility for row in here if not row.linear))
                kind = "new weights" if linear else other
                lines.append(f"| {environment} | {kind} | {steps} | {' | '.join(cells)} |")
        seconds = [
            interval(
                [
                    r.training_seconds
                    for r in here
                    if r.agent == agent and r.steps == 0 and r.utility == "new weights 1"
                ]
            )
            for agent in agents
        ]
        lines.append(f"| {environment} | CPU seconds of training | | {' | '.join(seconds)} |")
    return "\n".join(lines) + "\n"


@dataclass(frozen=True)
class Options:
    environments: tuple[str, ...] = tuple(WORLDS)
    """Which of deep-sea-treasure, resource-gathering, four-room, minecart-deterministic."""
    agents: tuple[str, ...] = AGENTS
    """Which of SF, SFR, CSFR, GPI-LS."""
    seeds: int = 5
    """How many seeds for each agent and environment."""
    train_steps: int = TRAIN_STEPS
    """Steps of training."""
    few_steps: int = FEW_STEPS
    """Steps of learning each new utility."""
    output: str = "results/peers.csv"
    """The table; what is already in it is not run again. All in it have the same steps."""


def main(options: Options) -> int:
    for name, chosen, known in (
        ("environments", options.environments, WORLDS),
        ("agents", options.agents, AGENTS),
    ):
        for word in chosen:
            if word not in known:
                raise InputError(f"--{name} has {word!r}; there are {', '.join(known)}")
    if min(options.seeds, options.few_steps, options.train_steps // TASKS) < 1:
        raise InputError(f"--seeds and --few-steps must be at least 1, --train-steps at least {TASKS}")
    if options.seeds > MOST_SEEDS:
        raise InputError(f"--seeds is {options.seeds}; at most {MOST_SEEDS} are run")
    path = Path(options.output)
    cli.require_writable(options.output)
    rows = read_rows(path)
    for row in rows:
        if row.train_steps != options.train_steps or row.steps not in (0, options.few_steps):
            raise InputError(
                f"{path} has results of {row.train_steps} steps of training and {row.steps} on a utility; "
                f"choose another --output for --train-steps {options.train_steps} and --few-steps "
                f"{options.few_steps}"
            )
    done = {(row.environment, row.agent, row.seed) for row in rows}
    runs = [
        run
        for seed in range(options.seeds) for environment in options.environments for agent in options.agents
        if (run := (environment, agent, seed)) not in done
    ]  # fmt: skip
    if any(agent == "GPI-LS" for _, agent, _ in runs) and importlib.util.find_spec("morl_baselines") is None:
        raise InputError("GPI-LS is not installed: pip install morl-baselines, or say --agents SF SFR CSFR")
    torch.set_num_threads(1)
    logging.getLogger().setLevel(logging.ERROR)
    console = cli.output_console(None)
    with cli.progress(len(runs), "runs") as advance:
        for environment, agent, seed in runs:
            learn = peer if agent == "GPI-LS" else ours
            results = [
                Row(environment, agent, seed, options.train_steps, *result)
                for result in learn(environment, agent, seed, options.train_steps, options.few_steps)
            ]
            write_rows([*read_rows(path), *results], path)
            advance(1)
    console.print(markdown(read_rows(path)), markup=False, soft_wrap=True)
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.peers", __doc__ or "")
