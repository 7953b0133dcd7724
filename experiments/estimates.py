"""What a trial will take: time and disk, before it is run.

With K stored policies a step costs a + b K microseconds, so a trial of n tasks of T steps takes about
n T (a + b n / 2). Where the run has finished trials of the agent, their seconds are taken instead. The
constants are of one core of a server and are meant to tell minutes from days.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfr_fa.feature_spaces import BoxFeatures
from sfr_fa.results import RunFolder
from sfr_fa.runner import ENVIRONMENTS, Trial
from sfr_theory.errors import InputError

COMPILED = {
    # agent: microseconds a step (a, b): linear values, networks
    "Q": ((1.0, 0.0), (1.5, 0.0)),
    "SF": ((1.0, 0.035), (4.0, 0.6)),
    "SF-R": ((1.2, 0.045), (4.0, 0.6)),
    "SF-h": ((2.0, 0.06), (4.0, 0.6)),
    "SFR": ((3.0, 0.055), (3.0, 0.8)),
    "SFR-R": ((4.0, 0.075), (4.0, 0.8)),
    "MB SFR": ((3.7, 0.055), (4.0, 0.8)),
    "MB SFR-R": ((4.7, 0.075), (5.0, 0.8)),
    "CSFR": ((6.0, 0.5), (5.0, 1.5)),
    "CSFR-R": ((6.0, 0.5), (5.0, 1.5)),
    "CSFR-h": ((6.0, 0.5), (5.0, 1.5)),
}
REFERENCE = (900.0, 2.0)
FEATURE_LEARNING_MICROSECONDS = 15.0
"""For one iteration and one learned dimension."""
BYTES_A_ROW, BYTES_A_TRIAL = 70, 2000


@dataclass(frozen=True)
class Estimate:
    """Seconds and bytes of trials; checkpoints are those of one trial at a time, the largest."""

    seconds: float
    result_bytes: int
    checkpoint_bytes: int
    measured: bool

    def __add__(self, other: Estimate) -> Estimate:
        return Estimate(
            self.seconds + other.seconds,
            self.result_bytes + other.result_bytes,
            max(self.checkpoint_bytes, other.checkpoint_bytes),
            self.measured and other.measured,
        )

    def times(self, count: int) -> Estimate:
        checkpoints = self.checkpoint_bytes if count else 0
        return Estimate(
            self.seconds * count, self.result_bytes * count, checkpoints, self.measured or not count
        )


def estimate(trial: Trial, folder: RunFolder) -> Estimate:
    """One trial from its start to its end."""
    seconds = measured_seconds(trial, folder)
    return Estimate(
        seconds=seconds if seconds is not None else rough_seconds(trial),
        result_bytes=BYTES_A_TRIAL + BYTES_A_ROW * trial.tasks,
        checkpoint_bytes=2 * weights_bytes(trial),
        measured=seconds is not None,
    )


def measured_seconds(trial: Trial, folder: RunFolder) -> float | None:
    """What another repetition of the same trial took, if one is finished."""
    for path in sorted(folder.json_path(trial.key).parent.glob("rep-*.json")):
        try:
            result = folder.read_result(str(path.relative_to(folder.path).with_suffix("")))
        except InputError:
            continue
        return sum(result.seconds)
    return None


def rough_seconds(trial: Trial) -> float:
    networks = trial.setting.approximator == "networks"
    a, b = COMPILED[trial.agent.agent][networks] if trial.engine == "compiled" else REFERENCE
    policies = 1 if trial.agent.agent == "Q" or trial.agent.transfer == "none" else trial.tasks
    seconds = trial.tasks * trial.steps * (a + b * policies / 2) / 1e6
    if trial.agent.learned_dimensions is not None:
        iterations = trial.feature_learning.iterations * trial.agent.learned_dimensions
        seconds += iterations * FEATURE_LEARNING_MICROSECONDS / 1e6
    return seconds


def weights_bytes(trial: Trial) -> int:
    """The weights of all policies at the end of a trial."""
    environment = ENVIRONMENTS.get(trial.setting.environment)
    if environment is None:
        return 0
    made = environment()
    state, actions = made.observation_space.shape[0], int(made.action_space.n)  # type: ignore[index,attr-defined]
    space = made.unwrapped.feature_space  # type: ignore[attr-defined]
    n = trial.agent.learned_dimensions or space.dimensions
    discrete = 0 if isinstance(space, BoxFeatures) else space.size
    kind = trial.agent.agent.removesuffix("-R").removesuffix("-h").removeprefix("MB ")
    groups, size = {"Q": (1, 1), "SF": (n, 1), "SFR": (1, discrete), "CSFR": (n, 11)}[kind]
    if trial.setting.approximator == "networks":
        weights = groups * (20 * state + 20 * 20 + 20 * actions * size + 40 + actions * size)
    else:
        weights = actions * groups * size * state
    policies = 1 if kind == "Q" or trial.agent.transfer == "none" else trial.tasks
    return policies * weights * (8 if trial.agent.precision == "float64" else 4)
