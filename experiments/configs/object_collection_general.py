"""Fig. 2d: the object collection environment with general reward functions."""

from dataclasses import replace

from experiments.configs._shared import (
    GENERAL,
    MB_SFR,
    OBJECT_COLLECTION_PROFILES,
    SF_R,
    object_collection_agents,
    sfr_r,
)
from sfr_fa.runs.config import ExperimentConfig, Part

RACED = (
    replace(SF_R, reward_learning_rate=0.075),
    replace(sfr_r("mlp"), reward_learning_rate=0.075),
    replace(MB_SFR, learning_rate=0.0025, model_learning_rate=0.6),
)

CONFIG = ExperimentConfig(
    name="object_collection_general",
    title="Object collection, general reward functions (Fig. 2d)",
    parts=(Part(GENERAL, object_collection_agents("mlp", *RACED)),),
    profiles=OBJECT_COLLECTION_PROFILES,
)
