"""Where an agent's features come from: the environment, or a learned map.

    environment features   phi_t = phi(s_t, a_t, s_{t+1}), told by the environment
    learned features       phi~_t = sigmoid(H^T [s_t, s_{t+1}]) in (0, 1)^h  (c:appendix_feature_learning)

Everything behind the feature map (cumulant, readout, reward model) sees phi_t only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np
from scipy.special import expit

from sfr_fa.agents.transition import Transition
from sfr_fa.arrays import FloatArray, KeepsArraysReadOnly, finite_array
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures, FeatureSpace
from sfr_theory.errors import InputError


class FeatureMap(Protocol):
    """phi_t of a checked transition, shape (n,), an element of `space`."""

    @property
    def space(self) -> FeatureSpace | None: ...

    def __call__(self, transition: Transition) -> FloatArray: ...


@runtime_checkable
class LearnedFeatureMap(FeatureMap, Protocol):
    """A feature map that was learned on states of `state_dim` dimensions, for the -h agents."""

    @property
    def state_dim(self) -> int: ...


@dataclass(frozen=True)
class NoFeatures:
    """For agents that learn from rewards alone (Q): phi_t has no entries."""

    @property
    def space(self) -> None:
        return None

    def __call__(self, transition: Transition) -> FloatArray:
        return np.zeros(0)


def one_member(space: FeatureSpace, features: Any) -> FloatArray:
    """`features` as float64, if they are one vector of the space."""
    values = space.check(features)
    if values.ndim != 1:
        raise InputError(f"features have shape {values.shape}; a transition has one feature vector")
    return values


@dataclass(frozen=True)
class EnvironmentFeatures:
    """The features that the environment reports; one outside the declared space is refused."""

    space: FeatureSpace

    def __call__(self, transition: Transition) -> FloatArray:
        if transition.features is None:
            raise InputError("the transition has no features; this agent learns from the environment's")
        if isinstance(self.space, DiscreteFeatures) and self.space.grow:
            self.space.observe(transition.features)
        return one_member(self.space, transition.features)


@dataclass(frozen=True, eq=False)
class LearnedFeatures(KeepsArraysReadOnly):
    """phi~ = sigmoid(H^T [s_t, s_{t+1}]); H has shape (2 x state, h)."""

    matrix: FloatArray

    def __post_init__(self) -> None:
        matrix = finite_array(self.matrix, "matrix", ("current and next state", "features"))
        if matrix.shape[0] % 2:
            raise InputError(f"matrix has {matrix.shape[0]} rows; [s_t, s_t+1] has an even number of entries")
        object.__setattr__(self, "matrix", matrix)

    @property
    def state_dim(self) -> int:
        return self.matrix.shape[0] // 2

    @property
    def space(self) -> BoxFeatures:
        h = self.matrix.shape[1]
        return BoxFeatures(np.zeros(h), np.ones(h))

    def of_states(self, states: FloatArray, next_states: FloatArray) -> FloatArray:
        """phi~ for batches of states, (..., state) x (..., state) -> (..., h)."""
        return expit(np.concatenate([states, next_states], axis=-1) @ self.matrix)

    def __call__(self, transition: Transition) -> FloatArray:
        return self.of_states(transition.state, transition.next_state)
