"""All that the paper prints of its experiments: sizes, rates, p-values, hours, and who it says is ahead.

Four tables compare all pairs of agents by Mann-Whitney's U on the total returns of ten repetitions
(fig:barreto_env_results_total_reward, fig:results_total_reward). A p-value is kept as it is printed: three
digits, or `BELOW` for "< 0.001".

`ahead` of a table lists the pairs (ahead, behind) for which the text says who is ahead: the paragraphs
"Results" of each environment, and the captions that call SFR the highest.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

REPETITIONS = 10
DIGITS = 3
BELOW = "<"
"""Stands for the printed "< 0.001"."""
SIGNIFICANT = 0.05


@dataclass(frozen=True)
class Table:
    """The upper triangle of a printed table: row i compares agent i with agents i+1, i+2, ..."""

    name: str
    tasks: int
    steps: int
    """Of each task."""
    agents: tuple[str, ...]
    rows: tuple[str, ...]
    ahead: tuple[tuple[str, str], ...]
    hours: Mapping[str, float] = field(default_factory=dict)
    """Of one repetition, from "Computational Resources and Performance"; empty if none are printed."""
    hours_source: str = ""

    def cells(self) -> Iterator[tuple[str, str, str]]:
        """(agent, other agent, printed value) for every pair."""
        for i, row in enumerate(self.rows):
            for other, printed in zip(self.agents[i + 1 :], row.split(), strict=True):
                yield self.agents[i], other, printed

    def printed(self, agent: str, other: str) -> str:
        """The printed p-value of a pair, in either order."""
        return next(p for first, second, p in self.cells() if {first, second} == {agent, other})

    def said_ahead(self, agent: str, other: str) -> str:
        """Which of a pair the text says is ahead; empty if it does not say."""
        return next((first for first, second in self.ahead if {first, second} == {agent, other}), "")

    def behind(self, agent: str) -> tuple[str, ...]:
        """The agents that the text says this agent is ahead of."""
        return tuple(other for other in self.agents if (agent, other) in self.ahead)

    def ahead_of(self, agent: str) -> tuple[str, ...]:
        """The agents that the text says are ahead of this agent."""
        return tuple(other for other in self.agents if (other, agent) in self.ahead)


def is_significant(printed: str, level: float = SIGNIFICANT) -> bool:
    return printed == BELOW or float(printed) < level


def _above_all(best: str, agents: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    return tuple((best, other) for other in agents if other != best)


# --- Object collection -------------------------------------------------------------------------------

OBJECT_AGENTS = ("Q", "SF", "SF-R", "SF-4", "SF-8", "SFR", "SFR-R", "CSFR-4", "MB SFR", "MB SFR-R")
OBJECT_SIZE = (300, 20_000)
"""Tasks, and steps of each."""
OBJECT_RATES = {
    "learning_rate": (0.0025, 0.005, 0.025),
    "reward_learning_rate": (0.025, 0.05, 0.075),
    "model_learning_rate": (0.2, 0.4, 0.6),
}
"""The grid that is searched; which combination won is not printed."""
OBJECT_GRID = dict(
    zip(
        ("Q", "SF", "SF-R", "SF-4", "SF-8", "SFR", "SFR-R", "CSFR-3", "MB SFR", "MB SFR-R"),
        (3, 3, 9, 9, 9, 3, 9, 9, 9, 27),
        strict=True,
    )
)
"""Combinations of rates, as printed: one name is not an agent of the tables."""
_OBJECT_AHEAD = (
    # Caption of fig:object_collection_env; Results of c:environment_object_collection.
    *_above_all("SFR", OBJECT_AGENTS),
    *(("SFR-R", other) for other in ("SF-R", "Q")),
    *((agent, "SFR-R") for agent in ("SF-4", "CSFR-4")),
    ("SF-4", "SF-8"),
)
BARRETO = Table(
    "object collection by Barreto et al.",
    *OBJECT_SIZE,
    OBJECT_AGENTS,
    (
        "< < < < < < < < <",
        "< < < < < < 0.121 <",
        "< 0.002 < 0.045 0.002 < 0.076",
        "< < < 0.017 < <",
        "< < 0.473 < <",
        "< < 0.001 <",
        "< < 0.623",
        "< <",
        "<",
    ),
    (
        # Results of c:appendix_barreto_task_results.
        *_above_all("SFR", OBJECT_AGENTS),
        ("SFR-R", "SF-R"),
        *((agent, "Q") for agent in OBJECT_AGENTS if agent not in ("Q", "SFR")),
        *(
            (agent, learned)
            for agent in ("SF", "SF-R", "SFR-R", "MB SFR", "MB SFR-R")
            for learned in ("SF-4", "SF-8", "CSFR-4")
        ),
    ),
)
LINEAR = Table(
    "object collection, linear rewards",
    *OBJECT_SIZE,
    OBJECT_AGENTS,
    (
        "< < < < < < < < <",
        "< < < < < < < <",
        "< < < < < < <",
        "< < 0.006 0.970 < 0.241",
        "< 0.004 < < <",
        "< < 0.186 <",
        "0.011 < 0.054",
        "< 0.427",
        "<",
    ),
    _OBJECT_AHEAD,
    dict(zip(OBJECT_AGENTS, (1, 4, 4, 4, 4, 15, 42, 14, 16, 43), strict=True)),
    "successor_feature_representations.tex, line 1505",
)
GENERAL = Table(
    "object collection, general rewards",
    *OBJECT_SIZE,
    OBJECT_AGENTS,
    (
        "< < < < < < < < <",
        "< < < < < < < <",
        "0.104 < < 0.045 0.241 < 0.011",
        "< < 0.186 0.623 < 0.017",
        "< < < < <",
        "< < < <",
        "0.121 < 0.241",
        "< 0.007",
        "<",
    ),
    _OBJECT_AHEAD,
    dict(zip(OBJECT_AGENTS, (1, 5, 4, 4, 5, 14, 68, 13, 18, 67), strict=True)),
    "successor_feature_representations.tex, line 1506",
)
LEVELS = tuple(0.125 + 0.25 * level for level in range(7))
"""The middles of the seven levels of non-linearity, [0, 0.25] to [1.5, 1.75] (Fig. 2c)."""
EARLY_TASKS, EARLY_TASKS_LEARNED_REWARDS = 40, 70
"""In which MB SFR, and the agents of SFR with learned rewards, are said to learn faster (Barreto et al.)."""

# --- Racer -------------------------------------------------------------------------------------------

RACER_AGENTS = ("Q", "SF", "SF-R", "SF-3", "SF-6", "CSFR", "CSFR-R", "CSFR-3")
RACER_RATES = {
    "learning_rate": (0.0025, 0.005, 0.025, 0.5),
    "reward_learning_rate": (0.025, 0.05, 0.075),
}
RACER_SIZE = (40, 200_000)
RACER_GRID = dict(zip(RACER_AGENTS, (4, 4, 12, 12, 12, 4, 12, 12), strict=True))
RACER = Table(
    "racer",
    *RACER_SIZE,
    RACER_AGENTS,
    (
        "< < < < < < <",
        "0.021 < 0.009 < 0.014 0.089",
        "< < < 0.623 <",
        "0.031 < < <",
        "< < 0.121",
        "< <",
        "<",
    ),
    (
        # Results of c:environment_racer.
        *_above_all("CSFR", RACER_AGENTS),
        *(("Q", other) for other in RACER_AGENTS if other not in ("Q", "CSFR")),
    ),
    dict(zip(RACER_AGENTS, (9, 73, 70, 20, 19, 88, 80, 75), strict=True)),
    "successor_feature_representations.tex, line 1784",
)
TABLES = (BARRETO, LINEAR, GENERAL, RACER)
