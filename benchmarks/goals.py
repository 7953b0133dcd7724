"""What the engines are meant to reach: every figure that a benchmark is held against, in one place.

Ratios are of two times from the same run; seconds and microseconds are processor time on one core of the
machine that runs the benchmark.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

from rich.table import Table

from sfr_theory import cli


@dataclass(frozen=True)
class Goal:
    """A figure, and what it is meant to be."""

    name: str
    wanted: float
    unit: str
    why: str
    """The likely reason if it is missed."""
    at_least: bool = False
    measured: float = math.nan

    def at(self, measured: float) -> Goal:
        """With what was measured."""
        return replace(self, measured=measured)

    @property
    def reached(self) -> bool:
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted

    def to_json(self) -> dict[str, Any]:
        return {**asdict(self), "reached": self.reached}

    @property
    def verdict(self) -> str:
        if self.reached:
            return "reached"
        ratio = self.wanted / self.measured if self.at_least else self.measured / self.wanted
        return f"missed by a factor of {ratio:.2f}: {self.why}"


_PLAIN = "see the microseconds above: PyTorch's speed on this machine enters, too"
_CORE = "a slower or shared core; see the microseconds per step"
_BOUNDS = "policies within a percent or two of the best, and the bounds of their groups"
_NORMS = "the weights of all policies are compared with those that the last task has left"
_SUMS = "each row ends in a sum across a vector register, and each policy in a readout"
_LAYERS = "its hidden layers are one and a half times as large"
_KERNEL = "each kernel is one large function, compiled for float32 and for float64"
_CACHE = "two runs share the last level of cache, where the weights of 300 policies are"
_NETWORKS = "policies that learn, and first visits of cells, where no bounds are known"
_CALLS = "small networks, for which a pass costs as much as its calls"
_FILES = "the state of all policies is written after every task"

FASTER_THAN_PLAIN = Goal("SFR, K = 300: times faster than plain", 1500.0, "x", _PLAIN, True)
RACER_FASTER_THAN_PLAIN = Goal("CSFR racer, K = 40: times faster than plain", 400.0, "x", _PLAIN, True)
STEP_AT_300 = Goal("SFR, K = 300", 4.5, "us", _CORE)
GROWTH_TO_300 = Goal("SFR: cost of K = 300 in steps at K = 1", 5.0, "x", _BOUNDS)
GROWTH_FROM_300 = {
    K: Goal(f"SFR: cost of K = {K:,} in steps at K = 300", times, "x", _BOUNDS)
    for K, times in ((1000, 2.0), (3000, 4.0))
}
START = Goal("Start of a task, K = 3,000", 20.0, "ms", _NORMS)
BANDWIDTH = Goal("Full GPI, K = 300: part of the limit", 0.6, "", _SUMS, True)
JOINT_CODE = Goal("SFR-K with 128 units, K = 40: time of a step, CSFR with 3 x 60 = 1", 1.1, "x", _LAYERS)
SF_IN_THE_RACER = Goal(
    "SF, racer, K = 40: times faster than evaluating all policies", 2.0, "x", _NETWORKS, True
)
COMPILING = Goal("Compiling all kernels", 38.0, "s", _KERNEL)
TWO_AT_ONCE = Goal("Two runs at once: time of each, alone = 1", 1.1, "x", _CACHE)
_SECONDS = {
    "Q": 5.0, "SF": 50.0, "SFR": 60.0, "MB SFR": 70.0, "SFR-R": 110.0, "MB SFR-R": 130.0, "CSFR-4": 600.0,
    "racer": 150.0,
}  # fmt: skip
WHOLE_RUNS = {
    name: Goal(f"{name}, whole run", seconds, "s", _NETWORKS if name == "racer" else _CORE)
    for name, seconds in _SECONDS.items()
}
"""300 x 20,000 steps of object collection, or CSFR for 40 x 200,000 steps of the racer."""
AGENT_AGAINST_PLAIN = Goal(
    "one step at a time, K = 2: speed, plain loop = 1", 1.0, "x", "checks of every step", True
)
REPLAY = Goal("Replay(batch=32), K = 10: transitions, one at a time = 1", 3.0, "x", _CALLS, True)
COST_OF_RUNNER = Goal("SFR, a run with checkpoints: cost beside the engine", 10.0, "%", _FILES)


def goal_table(rows: list[Goal]) -> Table:
    table = cli.table("Goals", "goal", *cli.numbers("measured", "wanted"), "verdict")
    for goal in rows:
        sign = "≥" if goal.at_least else "≤"
        wanted = f"{sign} {goal.wanted:,.6g} {goal.unit}"
        table.add_row(goal.name, f"{goal.measured:,.3g} {goal.unit}", wanted, goal.verdict)
    return table
