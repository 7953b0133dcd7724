"""Discussion: does SFR also outperform SF without transfer? Every task is learned from scratch."""

from dataclasses import replace

from experiments.configs._shared import GENERAL, LINEAR, OBJECT_COLLECTION_PROFILES, SF, SFR, Q
from sfr_fa.runs.config import ExperimentConfig, Part

AGENTS = tuple(replace(agent, transfer="none") for agent in (Q, SF, SFR))

CONFIG = ExperimentConfig(
    name="single_task",
    title="Single tasks without transfer (a claim of the discussion)",
    parts=(Part(LINEAR, AGENTS), Part(GENERAL, AGENTS)),
    profiles=OBJECT_COLLECTION_PROFILES,
)
