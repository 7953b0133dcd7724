"""Ours: how many stored policies does GPI need? The m nearest in reward, the m most recent, m at random."""

from dataclasses import replace

from experiments.configs._shared import GENERAL, OBJECT_COLLECTION_PROFILES, SFR
from sfr_fa.runs.config import ExperimentConfig, Part

SUBSETS = (
    *(f"nearest {m}" for m in (1, 2, 5, 10, 20)),
    *(f"{which} {m}" for which in ("recent", "random") for m in (5, 20)),
)

CONFIG = ExperimentConfig(
    name="subset_gpi",
    title="GPI over fewer policies",
    parts=(Part(GENERAL, (SFR, *(replace(SFR, label=f"SFR, {s}", gpi_policies=s) for s in SUBSETS))),),
    profiles=OBJECT_COLLECTION_PROFILES,
)
