"""Ours: how many stored policies does GPI need, and which?

The m nearest in reward, the m of the sharpest bound (nearest up to scale and shift), the m most recent, m at
random: the paper stores all and names their number as the cost of GPI.

Predicted before the runs: one policy of the sharpest bound keeps more than nine tenths of the return of all
300, recent and random ones less than the chosen ones at the same m, and 20 chosen ones lose nothing.
"""

from dataclasses import replace

from experiments.configs._shared import GENERAL, LINEAR, OBJECT_COLLECTION_PROFILES, SFR
from sfr_fa.runs.config import ExperimentConfig, Part

RULES = ("nearest", "bound", "recent", "random")
COUNTS = (1, 5, 20)
AGENTS = (
    replace(SFR, label="SFR, all"),
    *(replace(SFR, label=f"SFR, {rule} {m}", gpi_policies=f"{rule} {m}") for rule in RULES for m in COUNTS),
)

CONFIG = ExperimentConfig(
    name="subset_gpi",
    title="GPI over fewer policies",
    parts=(Part(LINEAR, AGENTS), Part(GENERAL, AGENTS)),
    profiles=OBJECT_COLLECTION_PROFILES,
)
