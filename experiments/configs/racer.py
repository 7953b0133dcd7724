"""Fig. 3b: the racer; each agent at the better of two rates."""

from experiments.configs._shared import RACER, RACER_AGENTS, RACER_FEATURE_LEARNING, RACER_PROFILES, over
from sfr_fa.runs.config import ExperimentConfig, Part

ALPHA = (0.0025, 0.005)

CONFIG = ExperimentConfig(
    name="racer",
    title="Racer (Fig. 3b)",
    parts=(Part(RACER, over(RACER_AGENTS, learning_rate=ALPHA)),),
    profiles=RACER_PROFILES,
    feature_learning=RACER_FEATURE_LEARNING,
)
