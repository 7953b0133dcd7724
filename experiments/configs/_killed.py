"""What `experiments.kill_test` runs: short trials of agents that differ in what they store."""

from experiments.configs._shared import GENERAL, MB_SFR, SF, SF_4, SFR, Q
from sfr_fa.runs.config import ExperimentConfig, Part, Profile

CONFIG = ExperimentConfig(
    name="killed",
    title="A run to be killed",
    parts=(Part(GENERAL, (Q, SF, SF_4, SFR, MB_SFR)),),
    profiles={
        "smoke": Profile(tasks=12, steps=5_000, repetitions=2, feature_tasks=2, feature_iterations=2_000)
    },
)
