"""Fig. 2d: the object collection environment with general reward functions."""

from experiments.configs._shared import GENERAL, OBJECT_COLLECTION_PROFILES, object_collection_agents
from sfr_fa.runs.config import ExperimentConfig, Part

CONFIG = ExperimentConfig(
    name="object_collection_general",
    title="Object collection, general reward functions (Fig. 2d)",
    parts=(Part(GENERAL, object_collection_agents(reward_model="mlp")),),
    profiles=OBJECT_COLLECTION_PROFILES,
)
