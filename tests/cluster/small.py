"""Six trials of some ten seconds each in the reference engine: long enough to be disturbed."""

from sfr_fa.runs.config import AgentSetup, ExperimentConfig, Part, Profile, Setting

CONFIG = ExperimentConfig(
    name="small",
    title="Six short trials",
    parts=(
        Part(
            Setting("general", "object_collection", "general", gamma=0.95),
            (AgentSetup("Q", "Q"), AgentSetup("SF", "SF"), AgentSetup("SFR", "SFR")),
        ),
    ),
    profiles={"smoke": Profile(tasks=6, steps=600, repetitions=2)},
    engine="reference",
)
