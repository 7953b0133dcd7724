"""Ours: how the one-step model of MB SFR learns decides whether it reaches SFR (docs/decisions.md)."""

from dataclasses import replace

from experiments.configs._shared import BARRETO, GENERAL, LINEAR, MB_SFR, OBJECT_COLLECTION_PROFILES
from sfr_fa.runs.config import ExperimentConfig, Part

AGENTS = tuple(
    replace(MB_SFR, label=f"MB SFR, {name}", model_rule=rule)
    for name, rule in (("delta rule", "delta_rule"), ("squares", "squares"))
)

CONFIG = ExperimentConfig(
    name="model_rule",
    title="The rule of the one-step model",
    parts=tuple(Part(setting, AGENTS) for setting in (LINEAR, GENERAL, BARRETO)),
    profiles=OBJECT_COLLECTION_PROFILES,
)
