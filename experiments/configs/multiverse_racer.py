"""Ours: the racer, where the paper does not say whether the time limit ends an episode or only cuts it off.

In the listings gamma_t = 0 where an episode ends, whatever ended it; most code of today bootstraps at a time
limit. The tasks and the code of states are the same.
"""

from dataclasses import replace

from experiments.configs._shared import CSFR, RACER, SF, Q
from sfr_fa.runs.config import ExperimentConfig, Part, Profile

LIMITS = {"limit ends": True, "limit cuts off": False}
AGENTS = tuple(replace(agent, learning_rate=0.0025) for agent in (Q, SF, CSFR))

CONFIG = ExperimentConfig(
    name="multiverse_racer",
    title="The racer's time limit",
    parts=tuple(
        Part(replace(RACER, name=f"racer, {name}", limit_is_terminal=ends), AGENTS)
        for name, ends in LIMITS.items()
    ),
    profiles={
        "smoke": Profile(tasks=2, steps=100, repetitions=1),
        "reduced": Profile(tasks=10, steps=200_000, repetitions=3),
        "paper": Profile(tasks=40, steps=200_000, repetitions=10, feature_tasks=10),
    },
)
