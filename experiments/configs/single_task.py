"""Discussion: does SFR outperform SF also without transfer? Every task is learned from scratch."""

from dataclasses import replace

from experiments.config import ExperimentConfig, Part
from experiments.configs._shared import GENERAL, LINEAR, OBJECT_COLLECTION_PROFILES, SF, SFR, Q

AGENTS = tuple(replace(agent, transfer="none") for agent in (Q, SF, SFR))

CONFIG = ExperimentConfig(
    name="single_task",
    title="Single tasks without transfer (a claim of the discussion)",
    parts=(Part(LINEAR, AGENTS), Part(GENERAL, AGENTS)),
    profiles=OBJECT_COLLECTION_PROFILES,
)
