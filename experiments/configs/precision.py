"""Ours: does it matter whether numbers have 32 or 64 bits?"""

from dataclasses import replace

from experiments.configs._shared import GENERAL, LINEAR, OBJECT_COLLECTION_PROFILES, SF, SFR
from sfr_fa.runs.config import ExperimentConfig, Part

AGENTS = tuple(
    replace(agent, label=f"{agent.label} {precision}", precision=precision)
    for agent in (SF, SFR)
    for precision in ("float32", "float64")
)

CONFIG = ExperimentConfig(
    name="precision",
    title="float32 against float64",
    parts=(Part(LINEAR, AGENTS), Part(GENERAL, AGENTS)),
    profiles=OBJECT_COLLECTION_PROFILES,
)
