"""What the engines are meant to reach: every figure that a benchmark is held against, in one place.

Ratios are of two times from the same run; seconds and microseconds are processor time on one core of the
machine that runs the benchmark.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

WHOLE_RUNS = {
    "Q": 5.0, "SF": 50.0, "SFR": 60.0, "MB SFR": 70.0, "SFR-R": 110.0, "MB SFR-R": 130.0, "CSFR-4": 600.0,
    "racer": 150.0,
}  # fmt: skip
"""Seconds: 300 x 20,000 steps of object collection, or CSFR for 40 x 200,000 steps of the racer."""
FASTER_THAN_PLAIN = 1500.0
"""SFR at K = 300, times faster than the listing in PyTorch..."""
RACER_FASTER_THAN_PLAIN = 400.0
"""... and CSFR on the racer at K = 40."""
STEP_AT_300 = 4.5
"""Microseconds of a step of SFR with 300 stored policies..."""
GROWTH_TO_300 = 5.0
"""... in steps at K = 1..."""
GROWTH_FROM_300 = {1000: 2.0, 3000: 4.0}
"""... and of one with more, in steps at K = 300."""
START = 20.0
"""Milliseconds of the beginning of a task at the largest K."""
BANDWIDTH = 0.6
"""Full GPI: part of the rate at which weights can be read."""
JOINT_CODE = 1.1
"""SFR-K with 128 units on the racer, in steps of CSFR with 3 x 60."""
COMPILING = 38.0
"""Seconds of compiling the loop for both environments in both precisions."""
TWO_AT_ONCE = 1.1
"""Time of each of two runs at once, alone = 1."""

AGENT_AGAINST_PLAIN = 1.0
"""Speed of the reference engine with a network, a plain loop = 1..."""
REPLAY = 3.0
"""... and transitions that it learns from with replay, one at a time = 1."""
COST_OF_RUNNER = 10.0
"""Per cent that a run with checkpoints costs on top of the engine."""


@dataclass(frozen=True)
class Goal:
    """A figure, and what it is meant to be."""

    name: str
    measured: float
    wanted: float
    at_least: bool
    unit: str
    why: str
    """The likely reason if it is missed."""

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
