"""The paper's grid search in the racer: 72 combinations of rates."""

from experiments.configs._shared import (
    CSFR,
    CSFR_3,
    CSFR_R,
    RACER,
    RACER_FEATURE_LEARNING,
    RACER_PROFILES,
    SF,
    SF_3,
    SF_6,
    SF_R,
    Q,
)
from sfr_fa.runs.config import ExperimentConfig, Part, Profile, grid
from sfr_theory.paper import RACER_RATES

ALPHA, ALPHA_W = RACER_RATES.values()

CONFIG = ExperimentConfig(
    name="grid_racer",
    title="Grid search over learning rates, racer",
    parts=(
        Part(
            RACER,
            (
                *(setup for agent in (Q, SF, CSFR) for setup in grid(agent, learning_rate=ALPHA)),
                *(
                    setup
                    for agent in (SF_R, SF_3, SF_6, CSFR_R, CSFR_3)
                    for setup in grid(agent, learning_rate=ALPHA, reward_learning_rate=ALPHA_W)
                ),
            ),
        ),
    ),
    profiles=RACER_PROFILES
    | {
        "smoke": Profile(tasks=2, steps=50, repetitions=1, feature_tasks=1, feature_iterations=100),
        "reduced": Profile(tasks=4, steps=20_000, repetitions=2, feature_tasks=2, feature_iterations=20_000),
    },
    feature_learning=RACER_FEATURE_LEARNING,
)
