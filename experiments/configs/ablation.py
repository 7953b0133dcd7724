"""Ours: where does SFR's advantage on linear tasks come from?

Without clipping and with matched initial weights SFR and SF are the same algorithm on linear tasks.
"""

from dataclasses import replace

from experiments.configs._shared import GENERAL, LINEAR, OBJECT_COLLECTION_PROFILES, SF, SFR
from sfr_fa.runs.config import NAMES, ExperimentConfig, Part

VARIANTS = (SF, SFR, replace(SFR, label="SFR without clipping", clipping="none"))
AGENTS = tuple(
    replace(agent, label=f"{agent.label}, {weights} weights", initial_weights=weights)
    for agent in VARIANTS
    for weights in NAMES["initial_weights"]
)

CONFIG = ExperimentConfig(
    name="ablation",
    title="Clipping and initial weights, a full factorial",
    parts=(Part(LINEAR, AGENTS), Part(GENERAL, AGENTS)),
    profiles=OBJECT_COLLECTION_PROFILES,
)
