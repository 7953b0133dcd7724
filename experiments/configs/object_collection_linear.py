"""Fig. 2b: the object collection environment with linear reward functions."""

from experiments.configs._shared import LINEAR, OBJECT_COLLECTION_PROFILES, object_collection_agents
from sfr_fa.runs.config import ExperimentConfig, Part

CONFIG = ExperimentConfig(
    name="object_collection_linear",
    title="Object collection, linear reward functions (Fig. 2b)",
    parts=(Part(LINEAR, object_collection_agents(reward_model="linear")),),
    profiles=OBJECT_COLLECTION_PROFILES,
)
