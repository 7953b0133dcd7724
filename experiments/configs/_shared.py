"""What several configs share: the paper's agents, settings and sizes.

The winning rates of the paper's grid are not printed; where an experiment uses one combination it is the
middle of the grid (docs/decisions.md). In the two settings of object collection agents whose rates were raced
(`grid_object_collection`) also have the winners of the race, and results show the better of the two.

Predicted before the winners ran at full size: SF-R and SFR-R gain more than a tenth over the middle of the
grid wherever the race chose other rates for them, MB SFR changes by less than 3 %, and SFR-R stays above
SF-R.
"""

from collections.abc import Iterable
from dataclasses import replace

from sfr_fa.runs.config import AgentSetup, FeatureLearning, Profile, Setting, grid
from sfr_theory.paper import OBJECT_SIZE, RACER_SIZE, REPETITIONS

LINEAR = Setting("linear", "object_collection", "linear", gamma=0.95, limit_is_terminal=True)
GENERAL = replace(LINEAR, name="general", tasks="general")
LEVELS = tuple(replace(LINEAR, name=f"level_{k}", tasks=f"nonlinearity_{k}") for k in range(7))
"""Of non-linearity."""
BARRETO = replace(LINEAR, name="barreto", environment="barreto")
RACER = Setting("racer", "racer", "racer", gamma=0.9, approximator="networks", limit_is_terminal=True)

Q = AgentSetup("Q", "Q")
SF = AgentSetup("SF", "SF")
SFR = AgentSetup("SFR", "SFR")
SF_R = AgentSetup("SF-R", "SF-R", reward_learning_rate=0.05)
SF_4 = AgentSetup("SF-4", "SF-h", reward_learning_rate=0.05, learned_dimensions=4)
SF_8 = AgentSetup("SF-8", "SF-h", reward_learning_rate=0.05, learned_dimensions=8)
CSFR_4 = AgentSetup("CSFR-4", "CSFR-h", reward_learning_rate=0.05, learned_dimensions=4)
MB_SFR = AgentSetup("MB SFR", "MB SFR", model_learning_rate=0.4)
MB_SFR_SQUARES = replace(MB_SFR, label="MB SFR, squares", model_rule="squares")
"""The one-step model learns on the loss that the paper prints (docs/decisions.md)."""

CSFR = AgentSetup("CSFR", "CSFR")
CSFR_R = AgentSetup("CSFR-R", "CSFR-R", reward_learning_rate=0.05)
SF_3 = AgentSetup("SF-3", "SF-h", reward_learning_rate=0.05, learned_dimensions=3)
SF_6 = AgentSetup("SF-6", "SF-h", reward_learning_rate=0.05, learned_dimensions=6)
CSFR_3 = AgentSetup("CSFR-3", "CSFR-h", reward_learning_rate=0.05, learned_dimensions=3)
RACER_AGENTS = (Q, SF, SF_R, SF_3, SF_6, CSFR, CSFR_R, CSFR_3)
"""Those of Fig. 3b, in the order of the paper's table."""


def sfr_r(reward_model: str) -> AgentSetup:
    """SFR-R: a linear reward model for linear rewards, a network for general ones."""
    return AgentSetup("SFR-R", "SFR-R", reward_learning_rate=0.05, reward_model=reward_model)


def mb_sfr_r(reward_model: str) -> AgentSetup:
    return AgentSetup(
        "MB SFR-R",
        "MB SFR-R",
        reward_learning_rate=0.05,
        model_learning_rate=0.4,
        reward_model=reward_model,
    )


def object_collection_agents(reward_model: str, *raced: AgentSetup) -> tuple[AgentSetup, ...]:
    """The ten agents of Fig. 2, in the order of the paper's tables, and MB SFR with the loss as printed.

    `raced`: some of them at the rates that have won a race, if these are not the middle of the grid.
    """
    return (
        *(Q, SF, SF_R, SF_4, SF_8, SFR, sfr_r(reward_model), CSFR_4, MB_SFR, mb_sfr_r(reward_model)),
        MB_SFR_SQUARES,
        *raced,
    )


def over(agents: Iterable[AgentSetup], **rates: tuple[float, ...]) -> tuple[AgentSetup, ...]:
    """Each agent with all combinations of rates."""
    return tuple(setup for agent in agents for setup in grid(agent, **rates))


OBJECT_COLLECTION_PROFILES = {
    "smoke": Profile(tasks=3, steps=200, repetitions=2, feature_tasks=2, feature_iterations=1000),
    "reduced": Profile(tasks=40, steps=20_000, repetitions=3, feature_iterations=100_000),
    "paper": Profile(*OBJECT_SIZE, REPETITIONS),
}
RACER_PROFILES = {
    "smoke": Profile(tasks=2, steps=400, repetitions=2, feature_tasks=1, feature_iterations=1000),
    "reduced": Profile(tasks=8, steps=50_000, repetitions=3, feature_tasks=4, feature_iterations=100_000),
    "paper": Profile(*RACER_SIZE, REPETITIONS, feature_tasks=10),
}
RACER_FEATURE_LEARNING = FeatureLearning(drop_zero_rewards=0.0, keep=0.1)
