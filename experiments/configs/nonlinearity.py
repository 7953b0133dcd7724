"""Fig. 2c: general reward functions of seven levels of non-linearity."""

from experiments.configs._shared import OBJECT_COLLECTION_PROFILES, SF, SFR, Q
from sfr_fa.runs.config import ExperimentConfig, Part, Setting

CONFIG = ExperimentConfig(
    name="nonlinearity",
    title="Object collection, levels of non-linearity (Fig. 2c)",
    parts=tuple(
        Part(
            Setting(f"level_{level}", "object_collection", f"nonlinearity_{level}", gamma=0.95), (Q, SF, SFR)
        )
        for level in range(7)
    ),
    profiles=OBJECT_COLLECTION_PROFILES,
)
