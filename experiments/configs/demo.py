"""A taste of transfer for `make demo`: Q, SF and SFR on a handful of general tasks."""

from experiments.configs._shared import GENERAL, SF, SFR, Q
from sfr_fa.runs.config import ExperimentConfig, Part, Profile

CONFIG = ExperimentConfig(
    name="demo",
    title="A small transfer experiment",
    parts=(Part(GENERAL, (Q, SF, SFR)),),
    # Four repetitions are the fewest with which a two-sided test can tell two agents apart at 5 %.
    profiles={"smoke": Profile(tasks=12, steps=20_000, repetitions=4)},
)
