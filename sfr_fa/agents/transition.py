"""One step of experience, and the check that every agent makes before it changes anything."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfr_fa.arrays import FloatArray
from sfr_theory.errors import InputError


@dataclass(frozen=True)
class Transition:
    """(s_t, a_t, r_t, phi_t, s_{t+1}) and whether s_{t+1} is terminal.

    `features` may be None for agents that do not read the environment's features (Q and those on learned
    features). A step that a time limit cuts off is terminal in the listings; pass terminal=False to
    bootstrap there instead (docs/decisions.md).
    """

    state: Any
    action: int
    reward: float
    features: Any
    next_state: Any
    terminal: bool


def check_state(state: Any, dimensions: int, largest: float, name: str = "the state") -> FloatArray:
    """`state` as float64, if it is a vector of `dimensions` numbers of at most `largest`.

    `largest` is the largest number of the agent's own arithmetic, in which anything larger would be infinite.
    """
    try:
        values = np.asarray(state, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(
            f"{name} must be a vector of {dimensions} numbers, not {state!r}; {_FLATTEN}"
        ) from None
    if values.shape != (dimensions,):
        advice = "" if values.ndim == 1 else f"; {_FLATTEN}"
        raise InputError(f"{name} has shape {values.shape}; this agent needs ({dimensions},){advice}")
    return check_size(values, largest, name)


_FLATTEN = "gymnasium.wrappers.FlattenObservation makes vectors of other observations"


def check_size(values: FloatArray, largest: float, name: str) -> FloatArray:
    """`values` (n,), if all are finite and at most `largest`."""
    fits = np.abs(values) <= largest  # false for NaN
    if not fits.all():
        k = int(np.argmin(fits))
        limit = f" of at most {largest:.3g}" if np.isfinite(values[k]) else ""
        raise InputError(
            f"{name} has {values[k]} at position {k}; every entry must be a finite number{limit}"
        )
    return values


def check_transition(transition: Transition, state_dim: int, num_actions: int, largest: float) -> Transition:
    """The transition in plain types: float64 states, int action, float reward, bool terminal."""
    action, reward, terminal = transition.action, transition.reward, transition.terminal
    if not isinstance(action, (int, np.integer)) or not 0 <= action < num_actions:
        raise InputError(f"the action is {action!r}; it must be an integer from 0 to {num_actions - 1}")
    try:
        reward = float(reward)
    except (TypeError, ValueError):
        raise InputError(f"the reward is {reward!r}; it must be a number") from None
    if not abs(reward) <= largest:
        limit = f" of at most {largest:.3g}" if math.isfinite(reward) else ""
        raise InputError(f"the reward is {reward}; it must be a finite number{limit}")
    if not isinstance(terminal, (bool, np.bool_)):
        raise InputError(f"terminal is {terminal!r}; it must be True or False")
    return Transition(
        check_state(transition.state, state_dim, largest, "the state"),
        int(action),
        reward,
        transition.features,
        check_state(transition.next_state, state_dim, largest, "the next state"),
        bool(terminal),
    )
