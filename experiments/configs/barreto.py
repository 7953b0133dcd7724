"""Appendix: the object collection task of Barreto et al., three kinds of object."""

from experiments.configs._shared import BARRETO, OBJECT_COLLECTION_PROFILES, object_collection_agents
from sfr_fa.runs.config import ExperimentConfig, Part

CONFIG = ExperimentConfig(
    name="barreto",
    title="Object collection by Barreto et al. (appendix)",
    parts=(Part(BARRETO, object_collection_agents("linear")),),
    profiles=OBJECT_COLLECTION_PROFILES,
)
