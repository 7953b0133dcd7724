"""What a trial will take: time and disk, before it is run.

With K stored policies of W weights each, a step costs about a + b W + c K microseconds, so a trial of n tasks
of T steps takes about n T (a + b W + c n / 2). Where the run has finished trials of the agent, their
seconds are taken instead. The constants are those of one core of a server, and are meant to tell minutes from
days.
"""

from __future__ import annotations

from dataclasses import dataclass

from sfr_fa.engines import Engine
from sfr_fa.runs.config import Trial
from sfr_fa.runs.store import RunFolder
from sfr_theory.errors import InputError

COMPILED = (0.8, 4.5e-4)
"""a, b."""
PER_WEIGHT = {"linear": 2e-5}
"""c / W of policies with linear values, which are mostly passed over by their bounds..."""
PER_NETWORK = 0.9
"""... and c of networks, most of which are not evaluated, either."""
REFERENCE = (900.0, 2.0)
"""a and c, for any W."""
FEATURE_LEARNING_MICROSECONDS = 15.0
"""For one iteration and one learned dimension."""
BYTES_PER_ROW, BYTES_PER_TRIAL = 70, 2000


@dataclass(frozen=True)
class Estimate:
    """Seconds and bytes of one trial."""

    seconds: float
    result_bytes: int
    checkpoint_bytes: int
    measured: bool


def estimate(trial: Trial, engine: Engine, folder: RunFolder) -> Estimate:
    """One trial; `engine` has its agent, with two tasks started (`check_trials`)."""
    stacks = engine.agent.policies.parameters.values()
    policies = 1 if engine.agent.num_policies == 1 else trial.tasks
    weights = sum(stack[0].numel() for stack in stacks)
    size = max(stack.element_size() for stack in stacks)
    seconds = measured_seconds(trial, folder)
    return Estimate(
        seconds=rough_seconds(trial, engine.name, weights, policies) if seconds is None else seconds,
        result_bytes=BYTES_PER_TRIAL + BYTES_PER_ROW * trial.tasks,
        checkpoint_bytes=2 * policies * weights * size,
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


def rough_seconds(trial: Trial, engine: str, weights: int, policies: int) -> float:
    """What a trial takes if its agent has stored this many policies of this many weights in the end."""
    if engine == "compiled":
        linear = trial.setting.approximator in PER_WEIGHT
        per_policy = PER_WEIGHT[trial.setting.approximator] * weights if linear else PER_NETWORK
        per_step = COMPILED[0] + COMPILED[1] * weights
    else:
        per_step, per_policy = REFERENCE
    microseconds = trial.tasks * trial.steps * (per_step + per_policy * (policies - 1) / 2)
    if trial.agent.learned_dimensions is not None:
        iterations = trial.feature_learning.iterations * trial.agent.learned_dimensions
        microseconds += iterations * FEATURE_LEARNING_MICROSECONDS
    return microseconds / 1e6
