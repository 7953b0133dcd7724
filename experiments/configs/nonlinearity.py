"""Fig. 2c: general reward functions of seven levels of non-linearity."""

from experiments.configs._shared import LEVELS, OBJECT_COLLECTION_PROFILES, SF, SFR, Q
from sfr_fa.runs.config import ExperimentConfig, Part

CONFIG = ExperimentConfig(
    name="nonlinearity",
    title="Object collection, levels of non-linearity (Fig. 2c)",
    parts=tuple(Part(level, (Q, SF, SFR)) for level in LEVELS),
    profiles=OBJECT_COLLECTION_PROFILES,
)
