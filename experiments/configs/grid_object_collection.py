"""The paper's grid search in object collection: all combinations of rates, both kinds of tasks.

With --race and the profile `race` it is affordable: 100 tasks in place of 300, and combinations that fall
behind with confidence get no more repetitions (sfr_fa.runs.racing).

Predicted before the race, from trials of other seeds: alpha = 0.005, the middle of the grid, wins for Q, SF,
SFR and MB SFR; agents that learn rewards prefer the largest alpha_R, 0.075, most of all on general rewards.
"""

from experiments.configs._shared import (
    CSFR_4,
    GENERAL,
    LINEAR,
    MB_SFR,
    OBJECT_COLLECTION_PROFILES,
    SF,
    SF_4,
    SF_8,
    SF_R,
    SFR,
    Q,
    mb_sfr_r,
    over,
    sfr_r,
)
from sfr_fa.runs.config import AgentSetup, ExperimentConfig, Part, Profile
from sfr_theory.paper import OBJECT_RATES

ALPHA, ALPHA_R, BETA = ({name: values} for name, values in OBJECT_RATES.items())


def agents(reward_model: str) -> tuple[AgentSetup, ...]:
    return (
        *over((Q, SF, SFR), **ALPHA),
        *over((SF_R, SF_4, SF_8, sfr_r(reward_model), CSFR_4), **ALPHA, **ALPHA_R),
        *over((MB_SFR,), **ALPHA, **BETA),
        *over((mb_sfr_r(reward_model),), **OBJECT_RATES),
    )


CONFIG = ExperimentConfig(
    name="grid_object_collection",
    title="Grid search over learning rates, object collection",
    parts=(Part(LINEAR, agents("linear")), Part(GENERAL, agents("mlp"))),
    profiles={
        "smoke": Profile(tasks=2, steps=50, repetitions=1, feature_tasks=2, feature_iterations=100),
        "reduced": Profile(tasks=10, steps=20_000, repetitions=2, feature_iterations=20_000),
        "race": Profile(tasks=100, steps=20_000, repetitions=5),
        "paper": OBJECT_COLLECTION_PROFILES["paper"],
    },
)
