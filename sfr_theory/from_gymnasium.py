"""A tabular Gymnasium environment as a finite MDP with features.

Tabular environments (FrozenLake, Taxi, CliffWalking and the like) carry their dynamics as a table

    env.unwrapped.P[s][a] = [(probability, s', reward, terminated), ...]

and `features(s, a, s', reward)` gives the feature vector of a transition. Together they are the joint
kernel p(s', phi | s, a). Nothing is collected after the end of an episode: a transition that terminates leads
to one more state, which is never left and shows one more feature, "the episode is over". Both are the last of
their kind. The vector of that feature is 0 and so must be its reward; then

    Q = sum over phi of R(phi) xi(s, a, phi)

is the value of the episodes, and that feature's mass in xi is what the episode leaves of 1 / (1 - gamma).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from sfr_theory.errors import InputError
from sfr_theory.mdp import FiniteMDP

Features = Callable[[int, int, int, float], Sequence[float]]


def mdp_from_gymnasium(env: Any, features: Features, gamma: float) -> FiniteMDP:
    """The joint kernel of `env.unwrapped.P` and `features`; the last state and feature are an episode's end.

    Features are numbered in the order in which the table shows them; `mdp.feature_vectors` are their vectors.
    """
    table = _table(env)
    if not callable(features):
        raise InputError(
            f"features is {features!r}; it must be a function of (state, action, next state, reward)"
        )
    num_states, num_actions = len(table), len(table[0])
    row: dict[tuple[float, ...], int] = {}
    outcomes: list[tuple[int, int, int, int, float]] = []
    for state in range(num_states):
        for action in range(num_actions):
            for outcome in table[state][action]:
                probability, next_state, reward, terminated = _outcome(outcome, state, action, num_states)
                vector = _vector(features(state, action, next_state, reward), (state, action, next_state))
                feature = row.setdefault(vector, len(row))
                following = num_states if terminated else next_state
                outcomes.append((state, action, following, feature, probability))
    lengths = {len(vector) for vector in row}
    if len(lengths) > 1:
        raise InputError(
            f"features returns vectors of {sorted(lengths)} numbers; all must have the same length"
        )
    kernel = np.zeros((num_states + 1, num_actions, num_states + 1, len(row) + 1))
    for state, action, following, feature, probability in outcomes:
        kernel[state, action, following, feature] += probability
    kernel[-1, :, -1, -1] = 1
    return FiniteMDP(kernel, gamma, np.array([*row, (0.0,) * lengths.pop()]))


def _table(env: Any) -> Mapping[int, Mapping[int, Sequence[tuple[float, int, float, bool]]]]:
    """P of the environment, with every state and action from 0 on."""
    table: Any = getattr(getattr(env, "unwrapped", env), "P", None)
    try:
        num_actions = len(table[0])
        complete = all(
            len(table[state]) == num_actions and all(action in table[state] for action in range(num_actions))
            for state in range(len(table))
        )
    except (TypeError, KeyError, IndexError):
        complete = False
    if not complete:
        raise InputError(
            f"{env} has no table unwrapped.P of dynamics for every state and action; a tabular environment "
            f"such as FrozenLake, Taxi or CliffWalking is needed"
        )
    return table


def _outcome(outcome: Any, state: int, action: int, num_states: int) -> tuple[float, int, float, bool]:
    try:
        probability, next_state, reward, terminated = outcome
        if next_state in range(num_states):
            return float(probability), int(next_state), float(reward), bool(terminated)
    except (TypeError, ValueError):
        pass
    raise InputError(
        f"P[{state}][{action}] holds {outcome!r}; an outcome is (probability, next state from 0 to "
        f"{num_states - 1}, reward, terminated)"
    )


def _vector(features: Any, transition: tuple[int, int, int]) -> tuple[float, ...]:
    try:
        vector = tuple(float(value) for value in features)
    except (TypeError, ValueError):
        raise InputError(f"features{transition} is {features!r}; it must be a sequence of numbers") from None
    if not vector or not np.isfinite(vector).all():
        raise InputError(f"features{transition} is {list(vector)}; it needs at least one number, all finite")
    return vector
