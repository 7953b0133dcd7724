"""Fig. 2b: the object collection environment with linear reward functions."""

from dataclasses import replace

from experiments.configs._shared import (
    LINEAR,
    MB_SFR,
    OBJECT_COLLECTION_PROFILES,
    SF_R,
    Q,
    object_collection_agents,
    sfr_r,
)
from sfr_fa.runs.config import ExperimentConfig, Part

RACED = (
    replace(Q, learning_rate=0.0025),
    replace(SF_R, reward_learning_rate=0.075),
    replace(sfr_r("linear"), learning_rate=0.025),
    replace(MB_SFR, model_learning_rate=0.6),
)

CONFIG = ExperimentConfig(
    name="object_collection_linear",
    title="Object collection, linear reward functions (Fig. 2b)",
    parts=(Part(LINEAR, object_collection_agents("linear", *RACED)),),
    profiles=OBJECT_COLLECTION_PROFILES,
)
