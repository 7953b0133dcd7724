"""Where features live: a finite set of vectors, or a box.

A transition (s, a, s') shows a feature vector phi(s, a, s') in Phi, a subset of R^n, and a task rewards it
with R(phi). Phi is either a set of F distinct vectors, so that R and xi(s, a, .) are tables with F entries,
or a box [low, high], on which the C-SFR agents discretise each dimension. An agent is told Phi; a feature
outside it is an error of the environment and is reported as one, unless the set may grow.

Features are recognised within TOLERANCE: 0.7 in float32 is 0.7, and 0.1 + 0.2 is 0.3. Of a set that is the
declared vector; in a box the edge, for features that lie no farther outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfr_fa.arrays import FloatArray, KeepsArraysReadOnly, finite_array, positive_integer
from sfr_theory.errors import InputError

TOLERANCE = 1e-6
"""phi is the nearest feature v with |phi_k - v_k| <= TOLERANCE max(1, |v_k|) in every dimension k."""


@dataclass(frozen=True, eq=False)
class DiscreteFeatures:
    """F distinct feature vectors, shape (F, n); a feature is known by its row number.

    A set with `grow` takes in what a step shows for the first time, as a further row; all who share it (the
    environment, its agents) see that. It is the one thing here that changes.
    """

    vectors: FloatArray
    grow: bool = False
    _row: dict[tuple[float, ...], int] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        vectors = finite_array(self.vectors, "vectors", ("features", "dimensions"))
        for index, vector in enumerate(vectors):
            same = _same(vector, vectors[:index])
            if same.any():
                raise InputError(
                    f"vectors[{int(same.argmax())}] and vectors[{index}] are the same feature within "
                    f"{TOLERANCE:g}: {vector.tolist()}; leave one of them out"
                )
        row = {tuple(vector): index for index, vector in enumerate(vectors.tolist())}
        object.__setattr__(self, "vectors", vectors)
        object.__setattr__(self, "_row", row)

    @staticmethod
    def observed(
        env: Any,
        *,
        steps: int,
        seed: int,
        policy: Callable[[Any], Any] | None = None,
        grow: bool = False,
    ) -> DiscreteFeatures:
        """The features that an environment shows in `steps` steps, by random actions or those of a policy.

        A feature is what the environment reports as `info["features"]`, or its reward where that is a vector,
        as in MO-Gymnasium. Those that are hard to reach may be missing: `including` adds them, and `grow`
        takes them in when they are seen.
        """
        shown = _features_shown(env, steps, seed, policy)
        found = dict.fromkeys(tuple(vector.tolist()) for vector in shown)
        distinct: list[tuple[float, ...]] = []
        for vector in sorted(found):
            if not distinct or not _same(np.array(vector), np.array(distinct)).any():
                distinct.append(vector)
        return DiscreteFeatures(np.array(distinct), grow)

    def including(self, *vectors: Any) -> DiscreteFeatures:
        """This set with further vectors behind it; those that it holds already are not repeated."""
        space = self
        for vector in vectors:
            values = _numbers(vector, self.dimensions)
            if not _same(values, space.vectors).any():
                space = DiscreteFeatures(np.vstack([space.vectors, values]), self.grow)
        return space

    def observe(self, features: Any) -> int:
        """The row of the features of a step; a set that grows takes in those that are new."""
        values = self._one_vector(features)
        if self.grow:
            self._take_over(self.including(values))
        return self._lookup(values)

    def extend_to(self, vectors: FloatArray) -> None:
        """Grow to the rows of a set that was saved, if one is the beginning of the other."""
        common = min(self.size, len(vectors))
        if not np.array_equal(self.vectors[:common], vectors[:common]):
            raise InputError(
                "the saved features are not those that were found here, or not in this order; load the file "
                "into an agent whose environment has been made anew"
            )
        if len(vectors) > self.size:
            self._take_over(DiscreteFeatures(vectors, grow=True))

    def _take_over(self, other: DiscreteFeatures) -> None:
        object.__setattr__(self, "vectors", other.vectors)
        object.__setattr__(self, "_row", other._row)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DiscreteFeatures) and np.array_equal(self.vectors, other.vectors)

    def __hash__(self) -> int:
        return hash(self.vectors[0].tobytes())  # what does not change when a set grows

    def __reduce__(self) -> tuple[Any, ...]:
        return DiscreteFeatures, (self.vectors, self.grow)

    @property
    def size(self) -> int:
        """F, how many features there are."""
        return self.vectors.shape[0]

    @property
    def dimensions(self) -> int:
        """n, the length of a feature vector."""
        return self.vectors.shape[1]

    def index_of(self, features: Any) -> int:
        """The row of `vectors` that `features` is, within TOLERANCE."""
        return self._lookup(self._one_vector(features))

    def indices_of(self, features: Any) -> NDArray[np.intp]:
        """`index_of` for every vector of an array: (..., n) -> (...)."""
        values = _numbers(features, self.dimensions)
        rows = [self._lookup(vector) for vector in values.reshape(-1, self.dimensions)]
        return np.array(rows, dtype=np.intp).reshape(values.shape[:-1])

    def check(self, features: Any) -> FloatArray:
        """`features`, shape (..., n), as float64; all of them are in the set."""
        return self.vectors[self.indices_of(features)]

    def _one_vector(self, features: Any) -> FloatArray:
        values = _numbers(features, self.dimensions)
        if values.ndim != 1:
            raise InputError(f"features have shape {values.shape}; one vector of {self.dimensions} is needed")
        return values

    def _lookup(self, vector: FloatArray) -> int:
        values = vector.tolist()
        row = self._row.get(tuple(values))
        if row is not None:
            return row
        same = _same(vector, self.vectors)
        if not same.any():
            raise InputError(
                f"features {values} are none of the {self.size} declared feature vectors; declare them with "
                f"feature_space.including({values}), or DiscreteFeatures(vectors, grow=True), which takes in "
                f"what is new"
            )
        distance = np.abs(self.vectors - vector).max(axis=1)
        return int(np.where(same, distance, np.inf).argmin())


@dataclass(frozen=True, eq=False)
class BoxFeatures(KeepsArraysReadOnly):
    """All feature vectors phi with low_k <= phi_k <= high_k, shapes (n,)."""

    low: FloatArray
    high: FloatArray

    def __post_init__(self) -> None:
        low = finite_array(self.low, "low", ("dimensions",))
        high = finite_array(self.high, "high", ("dimensions",))
        if low.shape != high.shape:
            raise InputError(f"low has {low.size} dimensions and high has {high.size}; they must agree")
        if not (low < high).all():
            k = int(np.argmin(low < high))
            raise InputError(f"low[{k}] is {low[k]} and high[{k}] is {high[k]}; low must be less than high")
        object.__setattr__(self, "low", low)
        object.__setattr__(self, "high", high)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, BoxFeatures)
            and np.array_equal(self.low, other.low)
            and np.array_equal(self.high, other.high)
        )

    def __hash__(self) -> int:
        return hash((self.low.tobytes(), self.high.tobytes()))

    @property
    def dimensions(self) -> int:
        """n, the length of a feature vector."""
        return self.low.size

    @cached_property
    def tolerance(self) -> FloatArray:
        """(n,): how far outside a feature counts as the edge."""
        return TOLERANCE * np.maximum(1.0, np.maximum(np.abs(self.low), np.abs(self.high)))

    def check(self, features: Any) -> FloatArray:
        """`features`, shape (..., n), as float64; all of them are in the box."""
        values = _numbers(features, self.dimensions)
        inside = (self.low - self.tolerance <= values) & (values <= self.high + self.tolerance)  # not NaN
        if not inside.all():
            place = tuple(int(i) for i in np.argwhere(~inside)[0])
            k = place[-1]
            raise InputError(
                f"feature {k} is {values[place]}; it must lie between {self.low[k]} and {self.high[k]}"
            )
        return np.clip(values, self.low, self.high)


FeatureSpace = DiscreteFeatures | BoxFeatures


def observed_features(
    env: Any, *, steps: int, seed: int, policy: Callable[[Any], Any] | None = None
) -> FloatArray:
    """(steps, n): what an environment shows step by step, by random actions or those of a policy.

    Centres of a code of continuous features are placed among them, and rewards are fitted to them
    (`sfr_fa.feature_codes`). `DiscreteFeatures.observed` is the set of them.
    """
    return np.array(list(_features_shown(env, steps, seed, policy)))


def _features_shown(
    env: Any, steps: int, seed: int, policy: Callable[[Any], Any] | None
) -> Iterator[FloatArray]:
    env.action_space.seed(seed)
    state, _ = env.reset(seed=seed)
    for _ in range(positive_integer(steps, "steps")):
        action = env.action_space.sample() if policy is None else policy(state)
        state, reward, terminated, truncated, info = env.step(action)
        vector = info.get("features", reward)
        if np.ndim(vector) != 1:
            raise InputError(
                f"{env} shows no features, neither in info nor as a vector reward; wrap it in "
                f"sfr_fa.environments.adapters.WithFeatures"
            )
        yield np.array(vector, dtype=np.float64)
        if terminated or truncated:
            state, _ = env.reset()


def _same(vector: FloatArray, vectors: FloatArray) -> NDArray[np.bool_]:
    """Which rows of `vectors` the vector is, within TOLERANCE."""
    return np.all(np.abs(vectors - vector) <= TOLERANCE * np.maximum(1.0, np.abs(vectors)), axis=1)


def _numbers(features: Any, dimensions: int) -> FloatArray:
    try:
        given = np.asarray(features)
        # NumPy would read text, and leave out imaginary parts.
        if given.dtype.kind not in "fiubO":
            raise TypeError
        values = given.astype(np.float64)
    except (TypeError, ValueError):
        raise InputError(f"features must be real numbers, not {features!r}") from None
    if values.ndim == 0 or values.shape[-1] != dimensions:
        raise InputError(
            f"features have shape {values.shape}; the last axis must have the {dimensions} feature dimensions"
        )
    return values


OBJECT_COLLECTION_FEATURES = DiscreteFeatures(
    np.array(
        [
            [0, 0, 0, 0, 0],  # nothing happened
            [1, 0, 1, 0, 0],  # orange box
            [1, 0, 0, 1, 0],  # orange triangle
            [0, 1, 1, 0, 0],  # blue box
            [0, 1, 0, 1, 0],  # blue triangle
            [0, 0, 0, 0, 1],  # goal
        ],
        dtype=np.float64,
    )
)
"""phi_1 ... phi_6 of the object collection environment: (orange, blue, box, triangle, goal)."""

RACER_FEATURES = BoxFeatures(np.zeros(3), np.ones(3))
"""Distances to the racer's three markers, as parts of the largest distance on the torus."""
