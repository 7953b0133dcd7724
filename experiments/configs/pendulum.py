"""Ours: SFR-K in a world that others wrote, Gymnasium's Pendulum, with utilities of height and speed.

Three torques push the pendulum, weaker than its weight. Its features are how high it is and how fast it
turns, both from 0 to 1. Three kinds of utility, each a part of its own:

    exchange   slow above or fast below: two bumps in the plane of height and speed
    corners    slow below or fast above: the same, the other way round
    sums       a height and a speed, each rewarded for itself

All agents have linear values on the same code of states, 15 x 15 bumps over angle and speed, and one rate.
CSFR fits the sum nearest to a utility (CSFR-F); SFR-K sums 40 bumps over height and speed.

Predicted before the runs, of total returns: where height turns into speed and back without loss, slow above
and fast below are one motion, which no sum of a height and a speed singles out. So on exchange SFR-K is at
least 20 % above CSFR. Slow below is rest, which sums find as well: on corners the two are within 10 %, and on
sums within 5 %. SF, which knows linear utilities only, comes last on exchange. Q needs no code, but learns
every task anew: it is behind SFR-K.
"""

from dataclasses import replace
from typing import Any

import gymnasium
import numpy as np
from gymnasium.wrappers import TransformAction, TransformObservation

from sfr_fa.arrays import FloatArray
from sfr_fa.environments.adapters import WithFeatures
from sfr_fa.feature_spaces import BoxFeatures
from sfr_fa.runs.config import AgentSetup, ExperimentConfig, Part, Profile, Setting
from sfr_fa.tasks import ProductTask

FASTEST, TORQUE = 8.0, 2.0  # the environment's own
GRID = 15
ANGLES = np.linspace(0, 2 * np.pi, GRID, endpoint=False)
SPEEDS = np.linspace(-FASTEST, FASTEST, GRID)
SHARPNESS = 20.0


def height_and_speed(before: Any, action: Any, after: FloatArray, info: Any) -> FloatArray:
    """Of an observation (cos, sin of the angle to the top, angular velocity)."""
    return np.array([(1 + after[0]) / 2, abs(after[2]) / FASTEST])


def bumps(observation: FloatArray) -> FloatArray:
    """Bumps over angle and velocity as far apart as they are wide; those of each sum to 1."""
    turned = np.arctan2(observation[1], observation[0]) - ANGLES
    angle = np.exp(-np.square(np.angle(np.exp(1j * turned)) / (ANGLES[1] - ANGLES[0])))
    speed = np.exp(-np.square((observation[2] - SPEEDS) / (SPEEDS[1] - SPEEDS[0])))
    code: FloatArray = np.outer(angle / angle.sum(), speed / speed.sum()).ravel().astype(np.float32)
    return code


def environment() -> gymnasium.Env[Any, Any]:
    """Pendulum-v1 with torques -2, 0 and 2, features of height and speed, and states in R^225."""
    env = TransformAction(
        gymnasium.make("Pendulum-v1"),
        lambda action: np.array([TORQUE * (action - 1)], dtype=np.float32),
        gymnasium.spaces.Discrete(3),
    )
    rewarded = WithFeatures(
        env, height_and_speed, BoxFeatures(np.zeros(2), np.ones(2)), utility([[1, 0]], [[SHARPNESS] * 2])
    )
    states = gymnasium.spaces.Box(0.0, 1.0, (GRID * GRID,), np.float32)
    return TransformObservation(rewarded, bumps, states)


def utility(places: Any, sharpness: Any) -> ProductTask:
    return ProductTask(np.ones(len(places)), places, sharpness)


def _two_places(below: float, above: float, rng: np.random.Generator) -> ProductTask:
    """Speeds of about `below` near the bottom, and of about `above` near the top."""
    heights = np.array([rng.uniform(0, 0.3), rng.uniform(0.7, 1)])
    speeds = np.array([below, above]) + rng.uniform(-0.15, 0.15, 2)
    return utility(np.stack([heights, speeds], axis=1), np.full((2, 2), SHARPNESS))


SLOW, FAST = 0.15, 0.75


def sample_exchange(rng: np.random.Generator, space: BoxFeatures) -> ProductTask:
    return _two_places(FAST, SLOW, rng)


def sample_corners(rng: np.random.Generator, space: BoxFeatures) -> ProductTask:
    return _two_places(SLOW, FAST, rng)


def sample_sum(rng: np.random.Generator, space: BoxFeatures) -> ProductTask:
    """A bump in each dimension, whatever the other is."""
    return utility(np.diag(rng.uniform(0, 1, 2)), SHARPNESS * np.eye(2))


PENDULUM = Setting(
    "exchange", f"{__name__}:environment", f"{__name__}:sample_exchange", 0.95, limit_is_terminal=False
)
AGENTS = tuple(
    AgentSetup(label, agent, learning_rate=0.5, feature_code=code)
    for label, agent, code in (
        ("Q", "Q", None),
        ("SF", "SF", None),
        ("CSFR", "CSFR-F", None),
        ("SFR-K", "SFR-K", "bumps 40"),
    )
)
CONFIG = ExperimentConfig(
    name="pendulum",
    title="Pendulum with utilities of height and speed",
    parts=(
        Part(PENDULUM, AGENTS),
        Part(replace(PENDULUM, name="corners", tasks=f"{__name__}:sample_corners"), AGENTS),
        Part(replace(PENDULUM, name="sums", tasks=f"{__name__}:sample_sum"), AGENTS),
    ),
    profiles={
        "smoke": Profile(tasks=2, steps=200, repetitions=2),
        "reduced": Profile(tasks=3, steps=5000, repetitions=5),
        "full": Profile(tasks=10, steps=20_000, repetitions=10),
    },
    seed=17_100,
    engine="reference",
)
