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


def check_state(state: Any, dimensions: int, name: str = "the state") -> FloatArray:
    """`state` as float64, if it is a vector of `dimensions` finite numbers."""
    try:
        values = np.asarray(state, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} must be a vector of {dimensions} numbers, not {state!r}") from None
    if values.shape != (dimensions,):
        raise InputError(f"{name} has shape {values.shape}; this agent needs ({dimensions},)")
    if not np.isfinite(values).all():
        k = int(np.argmin(np.isfinite(values)))
        raise InputError(f"{name} has {values[k]} at position {k}; every entry must be a finite number")
    return values


def check_transition(transition: Transition, state_dim: int, num_actions: int) -> Transition:
    """The transition in plain types: float64 states, int action, float reward, bool terminal."""
    action, reward, terminal = transition.action, transition.reward, transition.terminal
    if not isinstance(action, (int, np.integer)) or not 0 <= action < num_actions:
        raise InputError(f"the action is {action!r}; it must be an integer from 0 to {num_actions - 1}")
    try:
        reward = float(reward)
    except (TypeError, ValueError):
        raise InputError(f"the reward is {reward!r}; it must be a number") from None
    if not math.isfinite(reward):
        raise InputError(f"the reward is {reward}; it must be a finite number")
    if not isinstance(terminal, (bool, np.bool_)):
        raise InputError(f"terminal is {terminal!r}; it must be True or False")
    return Transition(
        check_state(transition.state, state_dim, "the state"),
        int(action),
        reward,
        transition.features,
        check_state(transition.next_state, state_dim, "the next state"),
        bool(terminal),
    )
