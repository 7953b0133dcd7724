"""Features learned from rewards: phi~ = sigmoid(H^T x), x = [s_t, s_{t+1}]  (c:appendix_feature_learning).

Given transitions (x_b, r_b) of tasks i_b, H in R^{2S x h} and weights w_i in R^h for each task minimise

    L(H, W) = mean over b of ( phi_b . w_{i_b} - r_b )^2,      phi_b = sigmoid(H^T x_b),

by Adam on random batches. With e_b = phi_b . w_{i_b} - r_b the gradient of a batch of B is

    dL/dw_i = 2/B sum over b with i_b = i of e_b phi_b
    dL/dH   = 2/B sum_b x_b (e_b w_{i_b} * phi_b * (1 - phi_b))^T

and is written out below; compiled, a million iterations of batch 128 take a minute or two. Numbers are
float32. All w_i are one parameter of Adam, as one tensor in PyTorch would be: a task that a batch misses
still moves by its momentum.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfr_fa import kernels
from sfr_fa.agents.features import LearnedFeatures
from sfr_fa.arrays import (
    FloatArray,
    KeepsArraysReadOnly,
    finite_array,
    positive_integer,
    positive_number,
)
from sfr_fa.kernels.arrays import REASSOCIATE, part
from sfr_theory.compiled import stored
from sfr_theory.errors import InputError

BETA_1, BETA_2, EPSILON = np.float32(0.9), np.float32(0.999), np.float32(1e-8)
CHUNK = 1000
"""Iterations between two entries of the loss curve; batches are drawn for this many at once."""


@dataclass(frozen=True, eq=False)
class RewardedTransitions(KeepsArraysReadOnly):
    """N transitions of several tasks: states and next states (N, S), rewards (N,), task numbers (N,)."""

    states: FloatArray
    next_states: FloatArray
    rewards: FloatArray
    tasks: NDArray[np.int64]

    def __post_init__(self) -> None:
        states = finite_array(self.states, "states", ("transitions", "state"))
        next_states = finite_array(self.next_states, "next_states", ("transitions", "state"))
        rewards = finite_array(self.rewards, "rewards", ("transitions",))
        tasks = np.array(self.tasks)
        if next_states.shape != states.shape:
            raise InputError(
                f"states has shape {states.shape} and next_states {next_states.shape}; they must agree"
            )
        if rewards.shape != states.shape[:1] or tasks.shape != states.shape[:1]:
            raise InputError(f"rewards and tasks need one entry for each of the {len(states)} transitions")
        if tasks.dtype.kind not in "iu" or tasks.min() < 0:
            raise InputError("tasks must be integers, counted from 0")
        for name, array in (("states", states), ("next_states", next_states), ("rewards", rewards)):
            object.__setattr__(self, name, array)
        tasks = tasks.astype(np.int64)
        tasks.setflags(write=False)
        object.__setattr__(self, "tasks", tasks)

    def __len__(self) -> int:
        return len(self.rewards)


@dataclass(frozen=True, eq=False)
class LearnedFeatureModel:
    """H (2S, h), the weights of the tasks (tasks, h), and the mean batch loss of each 1000 iterations."""

    matrix: FloatArray
    weights: FloatArray
    losses: FloatArray

    @property
    def feature_map(self) -> LearnedFeatures:
        """phi~, for agents to use."""
        return LearnedFeatures(self.matrix)


def learn_features(
    data: RewardedTransitions,
    dimensions: int,
    rng: np.random.Generator,
    *,
    iterations: int = 1_000_000,
    batch_size: int = 128,
    learning_rate: float = 0.003,
    initial_deviation: float = 0.05,
) -> LearnedFeatureModel:
    """H and w_i from N(0, 0.05^2) by Adam; the defaults are the paper's.

    `rng` draws H, then the weights, then the batches.
    """
    dimensions = positive_integer(dimensions, "dimensions")
    iterations = positive_integer(iterations, "iterations")
    batch_size = positive_integer(batch_size, "batch_size")
    learning_rate = positive_number(learning_rate, "learning_rate")
    initial_deviation = positive_number(initial_deviation, "initial_deviation")
    inputs = np.concatenate([data.states, data.next_states], axis=1, dtype=np.float32, casting="same_kind")
    rewards = data.rewards.astype(np.float32)
    tasks = int(data.tasks.max()) + 1
    matrix = rng.normal(0.0, initial_deviation, (inputs.shape[1], dimensions))
    directions = np.ascontiguousarray(matrix.T, dtype=np.float32)
    weights = rng.normal(0.0, initial_deviation, (tasks, dimensions)).astype(np.float32)
    parameters = (directions, weights)
    moments = tuple(np.zeros((2, *parameter.shape), dtype=np.float32) for parameter in parameters)
    adam = _compiled_adam()
    losses = []
    for first in range(0, iterations, CHUNK):
        batches = rng.integers(0, len(data), (min(CHUNK, iterations - first), batch_size))
        losses.append(adam(inputs, rewards, data.tasks, batches, *parameters, *moments, first, learning_rate))
        if not np.isfinite(losses[-1]):
            raise InputError(f"feature learning has diverged; learning_rate {learning_rate} is too large")
    return LearnedFeatureModel(directions.T.astype(np.float64), weights.astype(np.float64), np.array(losses))


@part(fastmath=REASSOCIATE)
def loss_and_gradients(
    inputs: Any,
    rewards: Any,
    tasks: Any,
    batch: Any,
    directions: Any,
    weights: Any,
    directions_gradient: Any,
    weights_gradient: Any,
    phi: Any,
) -> Any:
    """L of the rows `batch` of the data; dL/dH^T and dL/dW are written to the arguments of these names.

    inputs (N, 2S), rewards (N,), tasks (N,), batch (B,) row numbers; directions = H^T (h, 2S), weights
    (tasks, h); phi (h,) is room.
    """
    h, width = directions.shape
    scale = 2 / len(batch)
    directions_gradient[:] = 0
    weights_gradient[:] = 0
    loss = 0.0
    for b in range(len(batch)):
        row = inputs[batch[b]]
        w = weights[tasks[batch[b]]]
        error = -rewards[batch[b]]
        for d in range(h):
            direction = directions[d]
            activation = row[0] * direction[0]
            for k in range(1, width):
                activation += row[k] * direction[k]
            phi[d] = 1 / (1 + np.exp(-activation))
            error += phi[d] * w[d]
        loss += error * error / len(batch)
        for d in range(h):
            weights_gradient[tasks[batch[b]], d] += scale * error * phi[d]
            slope = directions.dtype.type(scale * error * w[d] * phi[d] * (1 - phi[d]))
            gradient = directions_gradient[d]
            for k in range(width):
                gradient[k] += slope * row[k]
    return loss


@part(fastmath=REASSOCIATE)
def _adam_step(
    parameter: Any, gradient: Any, first_moment: Any, second_moment: Any, rate: Any, correction: Any
) -> None:
    """One step of Adam (Kingma and Ba), in place.

    rate = learning rate / (1 - beta_1^t) and correction = sqrt(1 - beta_2^t).
    """
    one = np.float32(1.0)
    for i in range(parameter.shape[0]):
        p, g, m, v = parameter[i], gradient[i], first_moment[i], second_moment[i]
        for j in range(parameter.shape[1]):
            m[j] = BETA_1 * m[j] + (one - BETA_1) * g[j]
            v[j] = BETA_2 * v[j] + (one - BETA_2) * g[j] * g[j]
            p[j] -= rate * m[j] / (np.sqrt(v[j]) / correction + EPSILON)


def _adam(
    inputs: Any,
    rewards: Any,
    tasks: Any,
    batches: Any,
    directions: Any,
    weights: Any,
    directions_moments: Any,
    weights_moments: Any,
    iterations_before: int,
    learning_rate: float,
) -> float:
    """One step of Adam for each row of `batches`; returns the mean loss of the batches."""
    directions_gradient, weights_gradient = np.empty_like(directions), np.empty_like(weights)
    phi = np.empty(len(directions), dtype=directions.dtype)
    total = 0.0
    for step in range(len(batches)):
        total += loss_and_gradients(
            inputs, rewards, tasks, batches[step], directions, weights,
            directions_gradient, weights_gradient, phi,
        )  # fmt: skip
        t = iterations_before + step + 1
        rate = np.float32(learning_rate / (1.0 - 0.9**t))
        correction = np.float32(np.sqrt(1.0 - 0.999**t))
        _adam_step(
            directions, directions_gradient, directions_moments[0], directions_moments[1], rate, correction
        )
        _adam_step(weights, weights_gradient, weights_moments[0], weights_moments[1], rate, correction)
    return total / len(batches)


@functools.cache
def _compiled_adam() -> Callable[..., float]:
    # Without the interpreter lock, so that Ctrl-C and progress are handled meanwhile.
    return stored(_adam, sorted(Path(kernels.__file__).parent.glob("*.py")), nogil=True)
