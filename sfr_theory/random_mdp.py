"""Seeded generators of MDPs and transfer problems.

A *structure* draws a batch of MDPs, a *family* draws a batch of transfer problems on a structure:
rewards and perturbations of the approximations. `FAMILIES` names them all.

Every number is dyadic (an integer over a power of two), so that float64 holds it exactly, rows sum to 1
exactly, planted ties are ties, and reading the same problem in rational arithmetic loses nothing.

Garnet (Archibald, McKinnon & Thomas 1995): each (s, a) leads to `branching` states drawn without
replacement, with random probabilities. Here each outcome also carries a random feature.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from sfr_theory.arithmetic import Array
from sfr_theory.errors import InputError
from sfr_theory.mdp import MDPBatch, TransferProblem

PROBABILITY_GRID = 1 << 10
REWARD_GRID = 1 << 6
EPSILON_GRID = 1 << 20
MAX_ENTRIES = 10_000_000
"""Of the joint kernel, and of the successor representations of all tasks: as many as a file may hold."""


@dataclass(frozen=True)
class Shape:
    """Sizes of the problems to draw."""

    states: int = 5
    actions: int = 3
    features: int = 4
    tasks: int = 3

    def __post_init__(self) -> None:
        for name in ("states", "actions", "features", "tasks"):
            if getattr(self, name) < 1:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least 1")
        entries = self.states * self.actions * self.features * max(self.states, self.tasks)
        if entries > MAX_ENTRIES:
            raise InputError(
                f"problems of {self.states} states, {self.actions} actions, {self.features} features and "
                f"{self.tasks} tasks have arrays of {entries} entries; at most {MAX_ENTRIES} can be checked"
            )


@dataclass(frozen=True, eq=False)
class ProblemBatch:
    """Transfer problems of one shape; xi~_i = xi_i + perturbation_i."""

    mdps: MDPBatch
    target: Array  # (B, F)
    sources: Array  # (B, I, F)
    perturbation: Array  # (B, I, S, A, F)

    def __len__(self) -> int:
        return len(self.mdps)

    def problem(self, b: int, approximations: Array) -> TransferProblem:
        """Problem b of the batch, with the approximations that its solution gave."""
        return TransferProblem(self.mdps[b], self.target[b], self.sources[b], approximations)


def _probabilities(rng: Generator, shape: tuple[int, ...], branching: int) -> Array:
    """Dyadic distributions over `branching` outcomes: gaps between sorted random cuts of [0, 1]."""
    cuts = np.sort(rng.integers(0, PROBABILITY_GRID + 1, size=(*shape, branching - 1)), axis=-1)
    edges = np.concatenate(
        [np.zeros((*shape, 1), dtype=int), cuts, np.full((*shape, 1), PROBABILITY_GRID)], axis=-1
    )
    return np.diff(edges, axis=-1) / PROBABILITY_GRID


def _distinct(rng: Generator, shape: tuple[int, ...], count: int, limit: int) -> Array:
    """Uniform subsets of {0, ..., limit - 1} of size `count` by Floyd's algorithm: (*shape, count)."""
    chosen = np.empty((*shape, count), dtype=np.int64)
    for k, last in enumerate(range(limit - count, limit)):
        draw = rng.integers(0, last + 1, size=shape)
        taken = (chosen[..., :k] == draw[..., None]).any(axis=-1)
        chosen[..., k] = np.where(taken, last, draw)
    return chosen


def garnet(rng: Generator, count: int, shape: Shape, gamma: float, branching: int = 3) -> MDPBatch:
    """Garnet MDPs: `branching` distinct next states for each (s, a), each outcome with a random feature."""
    branching = min(branching, shape.states)
    pairs = (count, shape.states, shape.actions)
    next_state = _distinct(rng, pairs, branching, shape.states)
    feature = rng.integers(0, shape.features, size=(*pairs, branching))
    dimensions = max(1, shape.features - 1)
    vectors = rng.integers(0, 2, size=(count, shape.features, dimensions)).astype(float)
    return MDPBatch(
        next_state, feature, _probabilities(rng, pairs, branching), shape.features, gamma, vectors
    )


def deterministic(rng: Generator, count: int, shape: Shape, gamma: float) -> MDPBatch:
    """One next state and one feature for each (s, a)."""
    return garnet(rng, count, shape, gamma, branching=1)


def layered(rng: Generator, count: int, shape: Shape, gamma: float, layers: int = 3) -> MDPBatch:
    """States in layers; every transition leads to the next layer, the last one to the first."""
    mdps = garnet(rng, count, shape, gamma)
    layer_of = np.arange(shape.states) * min(layers, shape.states) // shape.states
    depth = layer_of[-1] + 1
    members = [np.flatnonzero(layer_of == layer) for layer in range(depth)]
    next_state = np.empty_like(mdps.next_state)
    for s in range(shape.states):
        following = members[(layer_of[s] + 1) % depth]
        next_state[:, s] = following[rng.integers(0, len(following), size=mdps.next_state[:, s].shape)]
    return replace(mdps, next_state=next_state)


def absorbing(rng: Generator, count: int, shape: Shape, gamma: float) -> MDPBatch:
    """The last state leads to itself whatever the action, always with feature 0."""
    mdps = garnet(rng, count, shape, gamma)
    next_state, feature = mdps.next_state.copy(), mdps.feature.copy()
    next_state[:, -1], feature[:, -1] = shape.states - 1, 0
    return replace(mdps, next_state=next_state, feature=feature)


def unreachable(rng: Generator, count: int, shape: Shape, gamma: float) -> MDPBatch:
    """No transition leads to the last state (unless it is the only one)."""
    mdps = garnet(rng, count, shape, gamma)
    return replace(mdps, next_state=mdps.next_state % max(1, shape.states - 1))


def duplicated_action(rng: Generator, count: int, shape: Shape, gamma: float) -> MDPBatch:
    """The last action does what the first does, so every state has a tie."""
    mdps = garnet(rng, count, shape, gamma)
    parts = {name: getattr(mdps, name).copy() for name in ("next_state", "feature", "probability")}
    for part in parts.values():
        part[:, :, -1] = part[:, :, 0]
    return replace(mdps, **parts)


def dyadic(rng: Generator, shape: tuple[int, ...], grid: int = REWARD_GRID) -> Array:
    """Uniform on the multiples of 1/grid in [-1, 1]."""
    return rng.integers(-grid, grid + 1, size=shape, dtype=np.int16) / float(grid)


Structure = Callable[[Generator, int, Shape, float], MDPBatch]
Family = Callable[[Generator, int, Shape, float, float], ProblemBatch]


def _problems(rng: Generator, mdps: MDPBatch, shape: Shape, epsilon: float) -> ProblemBatch:
    """Random rewards, and perturbations up to epsilon in every entry."""
    count = len(mdps)
    dyadic_epsilon = round(epsilon * EPSILON_GRID) / EPSILON_GRID
    entries = (count, shape.tasks, shape.states, shape.actions, shape.features)
    return ProblemBatch(
        mdps=mdps,
        target=dyadic(rng, (count, shape.features)),
        sources=dyadic(rng, (count, shape.tasks, shape.features)),
        perturbation=dyadic_epsilon * dyadic(rng, entries),
    )


def _on(structure: Structure) -> Family:
    def family(rng: Generator, count: int, shape: Shape, gamma: float, epsilon: float) -> ProblemBatch:
        return _problems(rng, structure(rng, count, shape, gamma), shape, epsilon)

    return family


def ties(rng: Generator, count: int, shape: Shape, gamma: float, epsilon: float) -> ProblemBatch:
    """A duplicated action, rewards from {-1, 0, 1}, and exact approximations in every other problem."""
    problems = _problems(rng, duplicated_action(rng, count, shape, gamma), shape, epsilon)
    exact = np.arange(count) % 2 == 0
    return replace(
        problems,
        target=np.round(problems.target),
        sources=np.round(problems.sources),
        perturbation=np.where(exact[:, None, None, None, None], 0.0, problems.perturbation),
    )


def negative(rng: Generator, count: int, shape: Shape, gamma: float, epsilon: float) -> ProblemBatch:
    """Every reward of every task is negative."""
    problems = _problems(rng, garnet(rng, count, shape, gamma), shape, epsilon)
    lowest = 1 / REWARD_GRID
    return replace(
        problems,
        target=-np.abs(problems.target) - lowest,
        sources=-np.abs(problems.sources) - lowest,
    )


def myopic(rng: Generator, count: int, shape: Shape, gamma: float, epsilon: float) -> ProblemBatch:
    """gamma = 0: only the immediate reward counts."""
    return _problems(rng, garnet(rng, count, shape, 0.0), shape, epsilon)


def adversarial(rng: Generator, count: int, shape: Shape, gamma: float, epsilon: float) -> ProblemBatch:
    """Perturbations inside the kernel of R_i: invisible under R_i, visible under R.

    The first source is close to the target. In even problems the other sources are sparse and a perturbation
    lives on features with R_i = 0, so that it has absolute norm 0 under R_i. In odd ones it is a sum of
    terms c (R_i(k) e_j - R_i(j) e_k), which have value 0 under R_i. Both hold exactly in float64.
    """
    problems = _problems(rng, garnet(rng, count, shape, gamma), shape, epsilon)
    sources = problems.sources * rng.integers(0, 2, size=problems.sources.shape)
    sources[:, 0] = problems.target + dyadic(rng, problems.target.shape) / 16
    free = 16 * dyadic(rng, problems.perturbation.shape)
    reward = sources[:, :, None, None, :]
    on_zeros = free * (reward == 0)
    in_kernel = free * np.roll(reward, -1, axis=-1) - np.roll(free * reward, 1, axis=-1)
    even = (np.arange(count) % 2 == 0)[:, None, None, None, None]
    # The kernel of a single number is {0}, or everything where the number is 0.
    perturbation = np.where(even | (shape.features == 1), on_zeros, in_kernel)
    return replace(problems, sources=sources, perturbation=perturbation)


FAMILIES: dict[str, Family] = {
    "garnet": _on(garnet),
    "deterministic": _on(deterministic),
    "layered": _on(layered),
    "absorbing": _on(absorbing),
    "unreachable": _on(unreachable),
    "ties": ties,
    "negative": negative,
    "gamma-zero": myopic,
    "adversarial": adversarial,
}
