"""Tasks: reward functions R(phi) of features, and the paper's distributions over them.

Tasks of one environment share states, actions and features, and differ in R only. A task is anything with
`reward(features)`, vectorised over leading axes: (..., n) -> (...).

    LinearTask     R(phi) = phi . w
    TableTask      R(phi_j) for each of F discrete features
    GaussianTask   R(phi) = sum_k r_k(phi_k),  r_k(x) = 1/n max_j exp(-(x - mu_j)^2 / sigma_j)
    ProductTask    R(phi) = sum_t c_t exp(-sum_k s_{t,k} (phi_k - mu_{t,k})^2): interactions of features
    AdditiveTask   R(phi) = sum_k r_k(phi_k)   for any functions r_k
    FunctionTask   any function, even one that is not vectorised

An *additive* task can also tell its parts, `component(k, x)` = r_k(x): it is what the C-SFR agents read their
values with. The first four are data: `to_json` and `task_from_json` write and read them exactly.

How linear is a table? The best linear model of the object collection's rewards misses by

    min over w of sum_j |R(phi_j) - phi_j . w|  =  |R_2 - R_3 - R_4 + R_5|,

since the four object features obey phi_2 - phi_3 - phi_4 + phi_5 = 0 and no other linear relation, and the
goal has a weight of its own. This *sum* of errors is the level of non-linearity (docs/decisions.md says why
it is not the mean).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

import numpy as np

from sfr_fa.arrays import FloatArray, KeepsArraysReadOnly, finite_array, positive_number
from sfr_fa.feature_spaces import OBJECT_COLLECTION_FEATURES, RACER_FEATURES, DiscreteFeatures, FeatureSpace
from sfr_theory.errors import InputError


@runtime_checkable
class Task(Protocol):
    """A reward function of features, (..., n) -> (...)."""

    def reward(self, features: Any) -> FloatArray: ...


TaskOrFunction = Task | Callable[[FloatArray], Any]
"""What users may hand in: a task, or a function of features."""


@runtime_checkable
class AdditiveReward(Task, Protocol):
    """A task R(phi) = sum_k r_k(phi_k) that can tell its parts."""

    @property
    def dimensions(self) -> int: ...

    def component(self, k: int, x: Any) -> FloatArray: ...


class DataTask(KeepsArraysReadOnly):
    """A task that is fully described by `to_json`, which also tells when two tasks are equal."""

    def to_json(self) -> dict[str, Any]:
        raise NotImplementedError

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DataTask) and self.to_json() == other.to_json()

    def __hash__(self) -> int:
        return hash(str(self.to_json()))


@dataclass(frozen=True, eq=False)
class LinearTask(DataTask):
    """R(phi) = phi . w, weights of shape (n,)."""

    weights: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "weights", finite_array(self.weights, "weights", ("dimensions",)))

    @property
    def dimensions(self) -> int:
        return self.weights.size

    def component(self, k: int, x: Any) -> FloatArray:
        """r_k(x) = w_k x."""
        return self.weights[k] * np.asarray(x, dtype=np.float64)

    def reward(self, features: Any) -> FloatArray:
        return features_of(features, self.dimensions) @ self.weights

    def to_json(self) -> dict[str, Any]:
        return {"kind": "linear", "weights": self.weights.tolist()}


@dataclass(frozen=True, eq=False)
class TableTask(DataTask):
    """A reward for each feature of a discrete set, rewards of shape (F,)."""

    space: DiscreteFeatures
    rewards: FloatArray

    def __post_init__(self) -> None:
        if not isinstance(self.space, DiscreteFeatures):
            raise InputError(f"a table of rewards needs its DiscreteFeatures first, not {self.space!r}")
        if self.space.grow:
            # The features of today: the table has no rewards for others.
            object.__setattr__(self, "space", DiscreteFeatures(self.space.vectors))
        rewards = finite_array(self.rewards, "rewards", ("features",))
        if rewards.size != self.space.size:
            raise InputError(
                f"rewards has {rewards.size} entries; it needs one for each of the {self.space.size} features"
            )
        object.__setattr__(self, "rewards", rewards)

    @property
    def dimensions(self) -> int:
        return self.space.dimensions

    def reward(self, features: Any) -> FloatArray:
        try:
            return self.rewards[self.space.indices_of(features)]
        except InputError as error:
            raise InputError(f"a table rewards its own features only, a function any: {error}") from None

    def to_json(self) -> dict[str, Any]:
        return {"kind": "table", "features": self.space.vectors.tolist(), "rewards": self.rewards.tolist()}


@dataclass(frozen=True, eq=False)
class GaussianTask(DataTask):
    """Preferred values of each feature: r_k(x) = 1/n max_j exp(-(x - mu_j)^2 / sigma_j).

    This is eq:racer_env_reward_func: `components[k]` lists the (mu_j, sigma_j) of dimension k, and the factor
    1/n, 1/3 in the racer, keeps R in [0, 1].
    """

    components: tuple[FloatArray, ...]

    def __post_init__(self) -> None:
        listed = isinstance(self.components, (Sequence, np.ndarray)) and not isinstance(self.components, str)
        if not listed or len(self.components) == 0:
            raise InputError(
                "components must list the Gaussians (mu, sigma) of at least one feature dimension"
            )
        components = tuple(
            finite_array(gaussians, f"components[{k}]", ("Gaussians", "mu and sigma"))
            for k, gaussians in enumerate(self.components)
        )
        for k, gaussians in enumerate(components):
            if gaussians.shape[1] != 2:
                raise InputError(
                    f"components[{k}] has rows of {gaussians.shape[1]} numbers; each is (mu, sigma)"
                )
            if not (gaussians[:, 1] > 0).all():
                j = int(np.argmin(gaussians[:, 1] > 0))
                raise InputError(f"components[{k}][{j}] has sigma {gaussians[j, 1]}; sigma must be positive")
        object.__setattr__(self, "components", components)

    @property
    def dimensions(self) -> int:
        return len(self.components)

    def component(self, k: int, x: Any) -> FloatArray:
        """r_k(x)."""
        mu, sigma = self.components[k].T
        distance = np.asarray(x, dtype=np.float64)[..., None] - mu
        # A product, as in the kernel, so that both engines give the same sums (up to exp).
        return np.exp(-(distance**2) / sigma).max(axis=-1) * (1 / self.dimensions)

    def reward(self, features: Any) -> FloatArray:
        return _sum_of_components(self, features)

    def to_json(self) -> dict[str, Any]:
        return {"kind": "gaussian", "components": [gaussians.tolist() for gaussians in self.components]}


@dataclass(frozen=True, eq=False)
class ProductTask(DataTask):
    """R(phi) = sum_t c_t exp(-sum_k s_{t,k} (phi_k - mu_{t,k})^2): coefficients (T,), mu and s (T, n)."""

    coefficients: FloatArray
    mu: FloatArray
    sharpness: FloatArray

    def __post_init__(self) -> None:
        coefficients = finite_array(self.coefficients, "coefficients", ("terms",))
        mu = finite_array(self.mu, "mu", ("terms", "dimensions"))
        sharpness = finite_array(self.sharpness, "sharpness", ("terms", "dimensions"))
        if not len(coefficients) == len(mu) or mu.shape != sharpness.shape:
            raise InputError(
                f"coefficients, mu and sharpness have shapes {coefficients.shape}, {mu.shape} and "
                f"{sharpness.shape}; they need (terms,), (terms, dimensions) and (terms, dimensions)"
            )
        if (sharpness < 0).any():
            raise InputError(f"sharpness has an entry of {sharpness.min()}; none may be negative")
        for name, array in (("coefficients", coefficients), ("mu", mu), ("sharpness", sharpness)):
            object.__setattr__(self, name, array)

    @property
    def dimensions(self) -> int:
        return self.mu.shape[1]

    def reward(self, features: Any) -> FloatArray:
        distance = features_of(features, self.dimensions)[..., None, :] - self.mu
        return np.exp(-(self.sharpness * distance**2).sum(axis=-1)) @ self.coefficients

    def to_json(self) -> dict[str, Any]:
        return {
            "kind": "products",
            "coefficients": self.coefficients.tolist(),
            "mu": self.mu.tolist(),
            "sharpness": self.sharpness.tolist(),
        }


@dataclass(frozen=True)
class AdditiveTask:
    """R(phi) = sum_k r_k(phi_k) for functions r_k of arrays, (...) -> (...)."""

    components: tuple[Callable[[FloatArray], Any], ...]

    def __post_init__(self) -> None:
        components = tuple(self.components) if isinstance(self.components, Iterable) else ()
        if not components or not all(callable(component) for component in components):
            raise InputError("components must list a function r_k for each feature dimension")
        object.__setattr__(self, "components", components)

    @property
    def dimensions(self) -> int:
        return len(self.components)

    def component(self, k: int, x: Any) -> FloatArray:
        """r_k(x)."""
        x = np.array(x, dtype=np.float64)  # a copy, which the function may write to
        return _rewards_by_function(self.components[k], x, f"components[{k}]", axes=0)

    def reward(self, features: Any) -> FloatArray:
        return _sum_of_components(self, features)


@dataclass(frozen=True)
class FunctionTask:
    """Any function of features, vectorised, (..., n) -> (...), or of one vector: called for each."""

    function: Callable[[FloatArray], Any]

    def __post_init__(self) -> None:
        if not callable(self.function):
            raise InputError(f"a FunctionTask needs a function of features, not {self.function!r}")

    def reward(self, features: Any) -> FloatArray:
        values = np.array(features, dtype=np.float64)  # a copy, which the function may write to
        return _rewards_by_function(self.function, values, "the reward function", axes=1)


def as_task(task: Any) -> Task:
    """`task` itself, or the FunctionTask of a function."""
    if isinstance(task, Task) and not isinstance(task, type):
        return task
    if callable(task) and not isinstance(task, type):
        return FunctionTask(task)
    raise InputError(
        f"a task has a method reward(features) or is a function of features; {task!r} is neither"
    )


def rewards_of(task: Task, features: FloatArray) -> FloatArray:
    """R(phi) of any task, checked: (..., n) -> (...); the task gets a copy, which it may write to."""
    return checked_rewards(task.reward(features.copy()), "the task's reward", features.shape[:-1])


def check_task(task: Any, space: FeatureSpace) -> Task:
    """`task` as a task, if it can reward the features of `space`; otherwise a sentence that says why not."""
    task = as_task(task)
    if isinstance(space, DiscreteFeatures):
        probes = space.vectors
    else:
        probes = np.stack([space.low, (space.low + space.high) / 2, space.high])
    rewards_of(task, probes)
    return task


def task_from_json(content: Any) -> Task:
    """The task that `to_json` wrote."""
    if not isinstance(content, Mapping) or content.get("kind") not in tuple(_KINDS):
        raise InputError(f"a task is an object whose kind is one of {', '.join(_KINDS)}")
    kind = content["kind"]
    make, keys = _KINDS[kind]
    if set(content) != {"kind", *keys}:
        raise InputError(f"a {kind} task has the keys kind, {', '.join(keys)}, not {', '.join(content)}")
    return make(*(content[key] for key in keys))


_KINDS: dict[str, tuple[Callable[..., Task], tuple[str, ...]]] = {
    "linear": (LinearTask, ("weights",)),
    "table": (lambda features, rewards: TableTask(DiscreteFeatures(features), rewards),
              ("features", "rewards")),
    "gaussian": (GaussianTask, ("components",)),
    "products": (ProductTask, ("coefficients", "mu", "sharpness")),
}  # fmt: skip


def sample_linear_task(
    rng: np.random.Generator, space: DiscreteFeatures = OBJECT_COLLECTION_FEATURES
) -> LinearTask:
    """w_k ~ U(-1, 1) for each property of an object, and 1 for the goal, which is the last dimension."""
    return LinearTask(np.append(rng.uniform(-1, 1, space.dimensions - 1), 1.0))


def sample_general_task(
    rng: np.random.Generator, space: DiscreteFeatures = OBJECT_COLLECTION_FEATURES
) -> TableTask:
    """R ~ U(-1, 1) for each kind of object; 0 for the first feature (nothing) and 1 for the last (goal)."""
    return TableTask(space, np.concatenate([[0.0], rng.uniform(-1, 1, space.size - 2), [1.0]]))


NONLINEARITY_BRACKETS = tuple((k / 4, (k + 1) / 4) for k in range(7))
"""The seven levels of non-linearity, [0, 0.25) to [1.5, 1.75)."""


def nonlinearity(task: TableTask) -> float:
    """|R_2 - R_3 - R_4 + R_5|: what the best linear model of an object collection task misses, in sum."""
    if task.space != OBJECT_COLLECTION_FEATURES:
        raise InputError("non-linearity is defined for tables over the object collection's six features")
    _, orange_box, orange_triangle, blue_box, blue_triangle, _ = task.rewards
    return float(abs(orange_box - orange_triangle - blue_box + blue_triangle))


def sample_task_of_nonlinearity(rng: np.random.Generator, level: int) -> TableTask:
    """A general task whose non-linearity is in NONLINEARITY_BRACKETS[level], by rejection."""
    if level not in range(len(NONLINEARITY_BRACKETS)):
        raise InputError(
            f"level is {level}; the levels of non-linearity are 0 to {len(NONLINEARITY_BRACKETS) - 1}"
        )
    low, high = NONLINEARITY_BRACKETS[level]
    while True:  # accepts with probability 3379/49152 at the rarest level
        task = sample_general_task(rng)
        if low <= nonlinearity(task) < high:
            return task


def sample_racer_task(rng: np.random.Generator, unit: float = 1.0) -> GaussianTask:
    """For each marker 1 or 2 Gaussians with mu ~ U(0, 0.7), sigma ~ U(0.001, 0.01).

    `unit` is the length in which mu and sigma are measured, as a part of the largest distance: 1 draws them
    for the normalised feature, sqrt(2) for the distance itself on the torus of side 1.
    """
    unit = positive_number(unit, "unit")
    components = []
    for _ in range(RACER_FEATURES.dimensions):
        count = rng.integers(1, 3)
        mu = rng.uniform(0.0, 0.7, count)
        sigma = rng.uniform(0.001, 0.01, count)
        components.append(np.stack([unit * mu, unit**2 * sigma], axis=-1))
    return GaussianTask(tuple(components))


def features_of(features: Any, dimensions: int) -> FloatArray:
    """`features` as vectors of the length that a task rewards: (..., n)."""
    values = np.asarray(features, dtype=np.float64)
    if values.ndim == 0 or values.shape[-1] != dimensions:
        raise InputError(
            f"features have shape {values.shape}; this task rewards vectors of {dimensions} "
            f"feature{'' if dimensions == 1 else 's'}"
        )
    return values


def _sum_of_components(task: AdditiveReward, features: Any) -> FloatArray:
    values = features_of(features, task.dimensions)
    return sum(
        (task.component(k, values[..., k]) for k in range(task.dimensions)), np.zeros(values.shape[:-1])
    )


def _rewards_by_function(
    function: Callable[[FloatArray], Any], values: FloatArray, name: str, axes: int
) -> FloatArray:
    """What a user's function says of each entry, where an entry has this many axes.

    It need not be vectorised. One that takes only arrays, phi[:, 0], fails for a single entry and is called
    for all of them at once.
    """
    shape = values.shape[: values.ndim - axes]
    entries = values.reshape(-1, *values.shape[len(shape) :])
    try:
        rewards = [checked_rewards(function(entry.copy()), name, ()) for entry in entries]
    except InputError:
        raise
    except (IndexError, TypeError, ValueError) as error:
        try:
            return checked_rewards(function(entries.copy()), name, entries.shape[:1]).reshape(shape)
        except (IndexError, TypeError, ValueError):
            raise InputError(
                f"{name} fails for features of shape {entries.shape[1:]}: {type(error).__name__}: {error}; "
                f"it must take one vector, or be vectorised"
            ) from error
    return np.array(rewards, dtype=np.float64).reshape(shape)


def checked_rewards(rewards: Any, name: str, shape: tuple[int, ...]) -> FloatArray:
    """What a function of a user returned, as finite float64 numbers of the right shape."""
    try:
        array = np.asarray(rewards, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{name} returned {rewards!r}; rewards must be finite numbers") from None
    if array.shape != shape:
        raise InputError(
            f"{name} returned an array of shape {array.shape} where {shape} is needed; it must be vectorised "
            f"(numpy.vectorize can do that)"
        )
    if not np.isfinite(array).all():
        raise InputError(f"{name} returned {array[~np.isfinite(array)][0]}; rewards must be finite numbers")
    return array
