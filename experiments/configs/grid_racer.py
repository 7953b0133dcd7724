"""The paper's grid search in the racer: 72 combinations of rates."""

from experiments.configs._shared import RACER, RACER_AGENTS, RACER_FEATURE_LEARNING, RACER_PROFILES, over
from sfr_fa.runs.config import ExperimentConfig, Part, Profile
from sfr_theory.paper import RACER_RATES

ALPHA = {"learning_rate": RACER_RATES["learning_rate"]}

CONFIG = ExperimentConfig(
    name="grid_racer",
    title="Grid search over learning rates, racer",
    parts=(
        Part(
            RACER,
            tuple(
                setup
                for rates in (ALPHA, RACER_RATES)
                for setup in over((a for a in RACER_AGENTS if len(a.rates) == len(rates)), **rates)
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
