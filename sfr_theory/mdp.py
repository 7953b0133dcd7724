"""Finite Markov decision processes with features, and transfer problems on them.

An MDP here is p(s', phi | s, a) on S states, A actions and F features, with a discount gamma in
[0, 1). The feature of a transition may be random and may depend on (s, a, s'), so the *joint* kernel
of next state and feature is kept. A task is a reward for each feature, R in R^F; tasks on one MDP
differ in R only. The marginals

    p(s' | s, a)  = sum over phi of p(s', phi | s, a)     `transition`           (S, A, S)
    p(phi | s, a) = sum over s'  of p(s', phi | s, a)     `feature_probability`  (S, A, F)

determine every value function; the joint kernel is needed to sample paths.

Everything is checked once, in the constructors, and frozen. Arrays are float64 or exact rationals
(`sfr_theory.arithmetic`); one object never mixes the two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from flint import fmpq
from numpy.typing import ArrayLike

from sfr_theory.arithmetic import Array, Number, exact_array, float_array, is_exact, rational
from sfr_theory.errors import InputError

ROW_SUM_TOLERANCE = 1e-9
"""How far from 1 the probabilities of a row may sum when they are floats; they are then normalised."""


class Dynamics(Protocol):
    """What solvers need to know about an MDP or a batch of MDPs (batch axes come first)."""

    @property
    def transition(self) -> Array: ...

    @property
    def feature_probability(self) -> Array: ...

    @property
    def gamma(self) -> Number: ...


def _frozen(array: Array) -> Array:
    array = array.copy()
    array.setflags(write=False)
    return array


def _numbers(values: Any, name: str, exact: bool, axes: tuple[str, ...]) -> Array:
    """`values` as a frozen array of the given arithmetic with one axis for each name in `axes`."""
    try:
        array = exact_array(values) if exact else _floats(values)
    except (ValueError, TypeError, OverflowError) as error:
        detail = str(error) if isinstance(error, InputError) else "its entries must be numbers in equal rows"
        raise InputError(f"{name}: {detail}") from None
    if array.ndim != len(axes):
        raise InputError(f"{name} has {array.ndim} axes; it needs {len(axes)}: ({', '.join(axes)})")
    if not exact and not np.isfinite(array).all():
        place = tuple(int(i) for i in np.argwhere(~np.isfinite(array))[0])
        entry = np.asarray(values, dtype=object)[place]
        where = f"{name}[{_place(place)}] is {entry}"
        if isinstance(entry, float):
            raise InputError(f"{where}; every entry must be a finite number")
        raise InputError(f"{where}, too large for float64; use exact arithmetic (--exact)")
    return _frozen(array)


def _floats(values: Any) -> Array:
    array = np.asarray(values)
    if array.dtype.kind in "US":  # text such as "1/2"
        array = exact_array(array.tolist())
    if array.dtype.kind == "c":
        raise InputError("its entries are complex; they must be real numbers")
    return float_array(array)


def _place(index: Iterable[Any]) -> str:
    return ", ".join(str(int(i)) for i in index)


def _contains_exact(values: Any) -> bool:
    """Whether any entry is a rational or text, so that the caller wants exact arithmetic."""
    if isinstance(values, np.ndarray) and values.dtype != object:
        return False
    entries = np.array(values, dtype=object).reshape(-1)
    return any(isinstance(entry, (str, Fraction, fmpq)) for entry in entries)


SMALLEST_GAMMA = 1e-100
"""Powers and inverses of what is smaller leave the range of float64."""


def discount(value: object, exact: bool) -> Number:
    """A discount factor, checked to lie in [0, 1)."""
    try:
        number = rational(value)
    except InputError as error:
        raise InputError(f"gamma: {error}") from None
    if not 0 <= number < 1:
        raise InputError(f"gamma is {value}; it must be at least 0 and less than 1")
    if not exact and float(number) == 1:
        raise InputError(f"gamma is {value}, which float64 rounds to 1; use exact arithmetic (--exact)")
    if not exact and 0 < float(number) < SMALLEST_GAMMA:
        raise InputError(f"gamma is {value}; in floats it must be 0 or at least {SMALLEST_GAMMA:g}")
    return number if exact else float(number)


@dataclass(frozen=True, eq=False)
class FiniteMDP:
    """p(s', phi | s, a), shape (S, A, S, F), with a discount; optionally a vector for each feature.

    Arithmetic is exact if any number is a Fraction, an fmpq or text, and float64 otherwise.
    """

    kernel: Array
    gamma: Number
    feature_vectors: Array | None = None

    def __post_init__(self) -> None:
        exact = _contains_exact(self.kernel) or _contains_exact(self.gamma)
        kernel = _numbers(self.kernel, "kernel", exact, ("states", "actions", "states", "features"))
        if 0 in kernel.shape:
            raise InputError(
                f"kernel has shape {kernel.shape}; there must be a state, an action and a feature"
            )
        if kernel.shape[0] != kernel.shape[2]:
            raise InputError(
                f"kernel has {kernel.shape[0]} states on its first axis and {kernel.shape[2]} next states on "
                f"its third; the two must agree"
            )
        object.__setattr__(self, "gamma", discount(self.gamma, exact))
        rounded = not exact or (isinstance(self.kernel, np.ndarray) and self.kernel.dtype.kind == "f")
        object.__setattr__(self, "kernel", _frozen(_stochastic_rows(kernel, rounded)))
        if self.feature_vectors is not None:
            vectors = _numbers(self.feature_vectors, "feature_vectors", exact, ("features", "dimensions"))
            if vectors.shape[0] != self.num_features:
                raise InputError(
                    f"feature_vectors has {vectors.shape[0]} rows; it needs one for each of the "
                    f"{self.num_features} features"
                )
            object.__setattr__(self, "feature_vectors", vectors)

    @staticmethod
    def from_gymnasium(env: Any, features: Callable[..., Any], gamma: float) -> FiniteMDP:
        """A tabular environment (FrozenLake, Taxi, ...): see `sfr_theory.from_gymnasium`."""
        from sfr_theory.from_gymnasium import mdp_from_gymnasium  # which builds FiniteMDPs

        return mdp_from_gymnasium(env, features, gamma)

    def __reduce__(self) -> tuple[Any, ...]:
        return FiniteMDP, (self.kernel, self.gamma, self.feature_vectors)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FiniteMDP) and all(
            np.array_equal(mine, theirs)
            for mine, theirs in (
                (self.kernel, other.kernel),
                (self.gamma, other.gamma),
                (self.linear_features, other.linear_features),
            )
        )

    __hash__ = None  # type: ignore[assignment]

    @property
    def num_states(self) -> int:
        return self.kernel.shape[0]

    @property
    def num_actions(self) -> int:
        return self.kernel.shape[1]

    @property
    def num_features(self) -> int:
        return self.kernel.shape[3]

    @property
    def is_exact(self) -> bool:
        return is_exact(self.kernel)

    @cached_property
    def transition(self) -> Array:
        """p(s' | s, a), shape (S, A, S)."""
        return _frozen(self.kernel.sum(axis=3))

    @cached_property
    def feature_probability(self) -> Array:
        """p(phi | s, a), shape (S, A, F)."""
        return _frozen(self.kernel.sum(axis=2))

    @cached_property
    def linear_features(self) -> Array:
        """The feature vectors, shape (F, n); where none were given, the one-hot code of the feature."""
        if self.feature_vectors is not None:
            return self.feature_vectors
        one_hot = np.eye(self.num_features, dtype=int)
        return _frozen(exact_array(one_hot) if self.is_exact else one_hot.astype(float))

    def to_exact(self) -> FiniteMDP:
        """The same MDP in rational arithmetic."""
        if self.is_exact:
            return self
        return FiniteMDP(self.kernel, rational(self.gamma), self.feature_vectors)

    def to_float(self) -> FiniteMDP:
        """The same MDP in float64."""
        vectors = None if self.feature_vectors is None else float_array(self.feature_vectors)
        return FiniteMDP(float_array(self.kernel), discount(self.gamma, exact=False), vectors)


def _stochastic_rows(kernel: Array, rounded: bool) -> Array:
    """Check that each p(. | s, a) is a distribution; rows that were rounded to floats are normalised."""
    negative = np.argwhere(kernel < 0)
    if len(negative):
        place = tuple(negative[0])
        raise InputError(f"kernel[{_place(place)}] is {kernel[place]}; a probability cannot be negative")
    totals = kernel.sum(axis=(2, 3))
    wrong = np.argwhere(np.abs(float_array(totals) - 1) > ROW_SUM_TOLERANCE if rounded else totals != 1)
    if len(wrong):
        place = tuple(wrong[0])
        raise InputError(f"kernel[{_place(place)}] sums to {totals[place]}; each row must sum to 1")
    if is_exact(kernel):
        return kernel / totals[:, :, None, None]
    # A row that sums to 1 as well as floats can is left alone, so that storing and loading changes nothing.
    rounding = np.finfo(float).eps * kernel.shape[2] * kernel.shape[3]
    divisor = np.where(np.abs(totals - 1.0) > rounding, totals, 1.0)
    return kernel / divisor[:, :, None, None]


def deterministic_mdp(
    next_state: ArrayLike, feature: ArrayLike, gamma: object, feature_vectors: ArrayLike | None = None
) -> FiniteMDP:
    """(s, a) leads to next_state[s, a] and shows feature[s, a]; both (S, A)."""
    following, shown = np.asarray(next_state), np.asarray(feature)
    features = shown.max() + 1 if feature_vectors is None else len(np.asarray(feature_vectors))
    kernel = np.zeros((*following.shape, len(following), features), dtype=int)
    s, a = np.indices(following.shape)
    kernel[s, a, following, shown] = 1
    return FiniteMDP(kernel, gamma, feature_vectors)  # type: ignore[arg-type]


@dataclass(frozen=True, eq=False)
class TransferProblem:
    """A target task, source tasks, and what is known of an optimal policy of each source task.

    target          R, shape (F,)
    sources         R_i, shape (I, F)
    approximations  xi~_i, shape (I, S, A, F), or None for the exact xi of an optimal policy

    Rewards and approximations take the arithmetic of the MDP.
    """

    mdp: FiniteMDP
    target: Array
    sources: Array
    approximations: Array | None = None

    def __post_init__(self) -> None:
        mdp, exact = self.mdp, self.mdp.is_exact
        target = _numbers(self.target, "target", exact, ("features",))
        if len(np.atleast_1d(np.asarray(self.sources, dtype=object))) == 0:
            raise InputError("sources is empty; give at least one source task")
        sources = _numbers(self.sources, "sources", exact, ("tasks", "features"))
        for name, rewards in (("target", target), ("sources", sources)):
            if rewards.shape[-1] != mdp.num_features:
                raise InputError(
                    f"{name} gives {rewards.shape[-1]} rewards; it needs one for each of the "
                    f"{mdp.num_features} features"
                )
        object.__setattr__(self, "target", target)
        object.__setattr__(self, "sources", sources)
        if self.approximations is not None:
            axes = ("tasks", "states", "actions", "features")
            approximations = _numbers(self.approximations, "approximations", exact, axes)
            shape = (len(sources), mdp.num_states, mdp.num_actions, mdp.num_features)
            if approximations.shape != shape:
                raise InputError(
                    f"approximations has shape {approximations.shape}; it needs {shape}: "
                    f"(sources, states, actions, features)"
                )
            object.__setattr__(self, "approximations", approximations)

    def __reduce__(self) -> tuple[Any, ...]:
        return TransferProblem, (self.mdp, self.target, self.sources, self.approximations)

    def to_exact(self) -> TransferProblem:
        """The same problem in rational arithmetic."""
        return TransferProblem(self.mdp.to_exact(), self.target, self.sources, self.approximations)

    def to_float(self) -> TransferProblem:
        """The same problem in float64."""
        return TransferProblem(self.mdp.to_float(), self.target, self.sources, self.approximations)


@dataclass(frozen=True, eq=False)
class MDPBatch:
    """Many MDPs of one shape and one gamma, float64, as sparse outcomes.

    Outcome k of (s, a) in MDP b leads to next_state[b, s, a, k] with feature[b, s, a, k] and has
    probability[b, s, a, k]; shapes (B, S, A, K). Made by the generators, which are trusted; indexing
    gives a `FiniteMDP`, which checks.
    """

    next_state: Array
    feature: Array
    probability: Array
    num_features: int
    gamma: float
    feature_vectors: Array

    def __len__(self) -> int:
        return len(self.next_state)

    @cached_property
    def transition(self) -> Array:
        """p(s' | s, a), shape (B, S, A, S)."""
        return _scatter(self.next_state, self.probability, self.next_state.shape[1])

    @cached_property
    def feature_probability(self) -> Array:
        """p(phi | s, a), shape (B, S, A, F)."""
        return _scatter(self.feature, self.probability, self.num_features)

    @property
    def linear_features(self) -> Array:
        """The feature vectors, shape (B, F, n)."""
        return self.feature_vectors

    def __getitem__(self, b: int) -> FiniteMDP:
        states, features = self.next_state.shape[1], self.num_features
        joint = _scatter(
            self.next_state[b] * features + self.feature[b], self.probability[b], states * features
        )
        kernel = joint.reshape(*joint.shape[:2], states, features)
        return FiniteMDP(kernel, self.gamma, self.feature_vectors[b])


def _scatter(index: Array, probability: Array, size: int) -> Array:
    """Add up the probabilities of equal indices: two arrays (..., K) -> (..., size)."""
    rows = index.reshape(-1, index.shape[-1])
    flat = np.arange(len(rows))[:, None] * size + rows
    totals = np.bincount(flat.reshape(-1), probability.reshape(-1), minlength=len(rows) * size)
    return totals.reshape(*index.shape[:-1], size)
