"""Numbers that may change while a task is learned: constants, or functions of the step.

    epsilon=0.15                                    the same at every step
    epsilon=lambda t: max(0.05, 1 - t / 10_000)     less and less exploration

The step t is that of the task: 0 at its first step, counted on where the task is continued, and 0 again when
the next task starts. A function must give the same answer whenever it is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from sfr_fa.arrays import finite_number, positive_number
from sfr_theory.errors import InputError

Schedule = float | Callable[[int], float]


def check_probability(value: Any, name: str) -> float:
    """`value` as a float, if it is one number from 0 to 1."""
    number = finite_number(value, name)
    if not 0 <= number <= 1:
        raise InputError(f"{name} is {number}; it must be a probability")
    return number


def probability_at(schedule: Schedule, step: int, name: str) -> float:
    """The probability of a step of the task."""
    return check_probability(schedule(step), f"{name}({step})") if callable(schedule) else schedule


def rate_at(schedule: Schedule | None, step: int, name: str) -> float:
    """The rate of a step of the task, 0 where there is none; a function may come down to 0."""
    if not callable(schedule):
        return schedule or 0.0
    number = finite_number(schedule(step), f"{name}({step})")
    if number < 0:
        raise InputError(f"{name}({step}) is {number}; it must not be negative")
    return number


def check_epsilon(schedule: Any, name: str) -> Schedule:
    """A probability, or a function of the step that begins with one."""
    return _checked(schedule, name, check_probability, probability_at)


def check_rate(schedule: Any, name: str) -> Schedule:
    """A positive number, or a function of the step whose first value is one."""
    return _checked(schedule, name, positive_number, rate_at)


def _checked(
    schedule: Any,
    name: str,
    as_number: Callable[[Any, str], float],
    at: Callable[[Schedule, int, str], float],
) -> Schedule:
    if not callable(schedule):
        return as_number(schedule, name)
    try:
        at(schedule, 0, name)
    except TypeError as error:
        raise InputError(
            f"{name} cannot be asked for step 0 ({error}); give a function of one number"
        ) from None
    return schedule


class RatesAtStep(NamedTuple):
    """Of one step; 0 for what an agent does not have."""

    epsilon: float
    value: float
    reward: float
    model: float


@dataclass
class Schedules:
    """Epsilon and the learning rates of an agent."""

    epsilon: Schedule
    learning_rate: Schedule
    reward_learning_rate: Schedule | None
    model_learning_rate: Schedule | None

    @property
    def vary(self) -> bool:
        """Whether any of them depends on the step."""
        return any(map(callable, vars(self).values()))

    def at(self, step: int) -> RatesAtStep:
        """Those of a step of the task."""
        return RatesAtStep(
            probability_at(self.epsilon, step, "epsilon"),
            rate_at(self.learning_rate, step, "learning_rate"),
            rate_at(self.reward_learning_rate, step, "reward_learning_rate"),
            rate_at(self.model_learning_rate, step, "model_learning_rate"),
        )
