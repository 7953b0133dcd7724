"""How an agent values its cumulants: the readout v in R^D with Q(s, a) = v . value(s, a).

A *known* reward function R is read where the cumulant needs it:

    constant       v = 1                     the cumulant is the reward itself (Q)
    weights        v = w, R(phi) = phi . w   for c_t = phi; fitted first where R is not linear
    at features    v_j = R(phi_j)            for indicators and the one-step model
    at bins        v_{k,j} = r_k(x_j)        for the tent code, R(phi) = sum_k r_k(phi_k)
    fitted         R(phi) ~ v . c(phi)       for any code c of features: least squares on features that occur

An *unknown* one is learned online, R~ by SGD on (r_t - R~(phi_t))^2, and read at the same places. These are
vectors p_1 ... p_D in R^n with v_d = R~(p_d): the unit vectors, the features, or the bin centres x_j e_k. In
the first and the last case R~ must be linear, since only then do its values at single coordinates tell all.
A readout that is fitted where R is known is learned as R~(phi) = v . c(phi) where R is not known.

A rule (one per agent) starts a readout (one per task).
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from sfr_fa.agents.approximators import sgd_step
from sfr_fa.agents.checkpoint import MAY_CHANGE
from sfr_fa.agents.cumulants import JointCode, TentCode
from sfr_fa.agents.errors import DivergedError
from sfr_fa.agents.schedules import Schedule, rate_at
from sfr_fa.arrays import INITIAL_DEVIATION, FloatArray, finite_array, positive_number
from sfr_fa.feature_codes import HELD_OUT, Fit, ridge_fit
from sfr_fa.feature_spaces import DiscreteFeatures, FeatureSpace
from sfr_fa.reward_fitting import WeightFit, l1_weights
from sfr_fa.tasks import (
    AdditiveReward,
    GaussianTask,
    LinearTask,
    ProductTask,
    TableTask,
    Task,
    as_task,
    checked_rewards,
    rewards_of,
    task_from_json,
)
from sfr_theory.errors import InputError, in_short

# --- The readout of one task --------------------------------------------------------------------


class Readout(Protocol):
    """v of one task."""

    @property
    def vector(self) -> Tensor:
        """v, shape (D,)."""

    def learn(self, features: FloatArray, reward: float) -> None:
        """Take in what a step showed of the reward function."""

    def state_dict(self) -> Mapping[str, Any]: ...


@dataclass(frozen=True, eq=False)
class FixedReadout:
    """v is known when the task starts."""

    vector: Tensor
    task: Task | None = None
    """Whose it is, if the features may grow."""

    def learn(self, features: FloatArray, reward: float) -> None:
        """The reward function is known."""

    def state_dict(self) -> Mapping[str, Any]:
        if isinstance(self.task, (LinearTask, TableTask, GaussianTask, ProductTask)):
            return {"vector": self.vector, "task": self.task.to_json()}
        return {"vector": self.vector}


@dataclass(eq=False)
class LearnedReadout:
    """v_d = R~(p_d) for a model R~ that learns online; points (D, n)."""

    model: nn.Module
    points: Tensor
    learning_rate: float
    """Of the present step."""
    seen: Callable[[FloatArray], FloatArray] = lambda features: features
    """What R~ sees of a feature vector."""
    vector: Tensor = field(init=False)

    def __post_init__(self) -> None:
        self.read()

    def set_rate(self, rate: float) -> None:
        """Learn at this rate from now on."""
        self.learning_rate = rate

    def read(self) -> None:
        """v from the model as it is now."""
        with torch.no_grad():
            self.vector = self.model(self.points)

    def learn(self, features: FloatArray, reward: float) -> None:
        """One step of SGD on (r_t - R~(phi_t))^2."""
        phi = torch.tensor(self.seen(features), dtype=self.points.dtype)
        sgd_step((reward - self.model(phi[None])[0]).square(), self.model, self.learning_rate)
        self.read()
        if not torch.isfinite(self.vector).all():
            raise DivergedError(
                f"the reward model has diverged; reward_learning_rate {self.learning_rate} is too large"
            )

    def state_dict(self) -> Mapping[str, Any]:
        return {"model": self.model.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])
        self.read()


# --- Reading known rewards ----------------------------------------------------------------------


class KnownReward(Protocol):
    """Where a cumulant needs the rewards, and how to read a known reward function there."""

    @property
    def points(self) -> FloatArray:
        """p_1 ... p_D, shape (D, n)."""

    @property
    def linear_only(self) -> bool:
        """Whether rewards at the points determine Q only for linear models."""

    def seen(self, features: FloatArray) -> FloatArray:
        """What a reward model sees of features: (n,) -> (m,), where points are of m dimensions."""
        return features

    def read(self, task: Task, rng: np.random.Generator) -> FloatArray:
        """v, shape (D,); `rng` is for fits that start at random."""


@dataclass(frozen=True)
class ConstantReadout(KnownReward):
    """v = 1: the cumulant is the reward, and no other reward function can be read from it."""

    linear_only = True

    @property
    def points(self) -> FloatArray:
        raise InputError("an agent that sums rewards (Q) has no use for a reward model")

    def read(self, task: Task, rng: np.random.Generator) -> FloatArray:
        raise InputError("an agent that sums rewards (Q) cannot value its policies under another task")


@dataclass(frozen=True)
class Weights(KnownReward):
    """v = w for a linear task; for any other the weights that `fit` gives on the fit points.

    fit_points (m, n): a discrete feature set is its own default; in a box they must be given, since the
    features that occur in an environment rarely fill it.
    """

    space: FeatureSpace
    fit: WeightFit = l1_weights
    fit_points: FloatArray | None = field(default=None, metadata=MAY_CHANGE)
    linear_only = True

    def __post_init__(self) -> None:
        object.__setattr__(self, "fit_points", checked_fit_points(self.fit_points, self.space))

    @property
    def points(self) -> FloatArray:
        return np.eye(self.space.dimensions)

    def read(self, task: Task, rng: np.random.Generator) -> FloatArray:
        if isinstance(task, LinearTask):
            check_dimensions(task, self.space)
            return task.weights
        points = self.fit_points
        if points is None:
            if not isinstance(self.space, DiscreteFeatures):
                raise InputError(
                    "this task is not linear and its features fill a box; pass fit_points, a sample of "
                    "features that occur, on which SF fits its weights"
                )
            points = self.space.vectors
        weights = finite_array(self.fit(points, rewards_of(task, points), rng), "weight_fit", ("dimensions",))
        if weights.size != self.space.dimensions:
            raise InputError(
                f"weight_fit returned {weights.size} weights for {self.space.dimensions} feature dimensions"
            )
        return weights


@dataclass(frozen=True)
class AtFeatures(KnownReward):
    """v_j = R(phi_j)."""

    space: DiscreteFeatures
    linear_only = False

    @property
    def points(self) -> FloatArray:
        return self.space.vectors

    def read(self, task: Task, rng: np.random.Generator) -> FloatArray:
        return rewards_of(task, self.space.vectors)


def checked_fit_points(points: Any, space: FeatureSpace) -> FloatArray | None:
    """Features that occur, in those of a space; or None."""
    if points is None:
        return None
    found = finite_array(points, "fit_points", ("points", "dimensions"))
    try:
        return space.check(found)
    except InputError as error:
        raise InputError(f"fit_points: {error}") from None


class FitWarning(UserWarning):
    """A reward function is not what a code can express."""


@dataclass(frozen=True)
class RidgeFit(KnownReward):
    """v that minimises sum_m (R(phi_m) - v . c(phi_m))^2 + ridge |v|^2 over features phi_m that occur.

    A fifth of the points is kept back to measure what the fit misses (`sfr_fa.feature_codes`): the part of R
    that no learning of values can make up for (T2'' in docs/theory.md). A warning says so beyond a tolerance.
    """

    code: TentCode | JointCode
    fit_points: FloatArray | None = field(metadata=MAY_CHANGE)
    """(m, n); without them no reward function can be read. Other ones, or another ridge, change how rewards
    are read, and not what an agent has learned."""
    ridge: float = field(default=1e-3, metadata=MAY_CHANGE)
    tolerance: float = field(default=0.25, metadata=MAY_CHANGE)
    """Of the standard deviation of the rewards."""
    linear_only = True

    def __post_init__(self) -> None:
        if not isinstance(self.code, TentCode | JointCode):
            raise InputError(
                f"code is {in_short(self.code)}; it must be what an agent sums, JointCode(space, code) or a "
                f"TentCode"
            )
        points, space = checked_fit_points(self.fit_points, self.code.space), self.code.space
        if points is not None and len(points) < HELD_OUT and not isinstance(space, DiscreteFeatures):
            raise InputError(
                f"fit_points has {len(points)} points; a fit in a box needs at least {HELD_OUT}, and "
                f"thousands are better"
            )
        object.__setattr__(self, "fit_points", points)
        object.__setattr__(self, "ridge", positive_number(self.ridge, "ridge"))
        object.__setattr__(self, "tolerance", positive_number(self.tolerance, "tolerance"))

    @property
    def points(self) -> FloatArray:
        """Unit vectors: R~ is linear in the code, and v are its weights."""
        return np.eye(self.code.groups * self.code.size)

    def seen(self, features: FloatArray) -> FloatArray:
        return self.code.encode(features).ravel()

    @functools.cached_property
    def _encoded(self) -> FloatArray:
        points = self.fit_points
        if points is None:
            raise InputError(
                "this agent fits reward functions; pass fit_points, a sample of features that occur"
            )
        return self.code.encode(points).reshape(len(points), -1)

    def fit(self, task: Task | Callable[[FloatArray], FloatArray]) -> Fit:
        """v of a task or a function of features, and what it misses on points that were kept back."""
        encoded = self._encoded
        assert self.fit_points is not None
        return ridge_fit(encoded, rewards_of(as_task(task), self.fit_points), self.ridge)

    def read(self, task: Task, rng: np.random.Generator) -> FloatArray:
        found = self.fit(task)
        # The ridge shrinks even a reward that hardly varies, by very little.
        if found.rms > max(self.tolerance * found.spread, 1e-3 * found.scale):
            warnings.warn(
                f"the code of this agent cannot express the reward function: the best fit misses "
                f"{found.rms:.2g} (root mean square) and at most {found.largest:.2g} on features that were "
                f"kept back, where rewards have a standard deviation of {found.spread:.2g}",
                FitWarning,
                stacklevel=2,
            )
        return found.vector


@dataclass(frozen=True)
class AtBins(KnownReward):
    """v_{k,j} = r_k(x_{k,j}) for rewards R(phi) = sum_k r_k(phi_k); any other is fitted."""

    code: TentCode
    fit: RidgeFit
    """For rewards that are not such sums; without fit_points they are refused."""
    linear_only = True

    @property
    def points(self) -> FloatArray:
        """x_{k,j} e_k, and 0 where there is no bin."""
        n, centres = self.code.groups, self.code.centres
        return (np.where(np.isfinite(centres), centres, 0.0)[:, :, None] * np.eye(n)[:, None, :]).reshape(
            -1, n
        )

    def read(self, task: Task, rng: np.random.Generator) -> FloatArray:
        if not isinstance(task, AdditiveReward):
            if self.fit.fit_points is None:
                raise InputError(
                    "CSFR reads a reward function by its parts, R(phi) = sum_k r_k(phi_k); this task has no "
                    "component(k, x). AdditiveTask makes one from functions r_k; or pass fit_points, a "
                    "sample of features that occur, on which the sum nearest to the task is fitted"
                )
            return self.fit.read(task, rng)
        check_dimensions(task, self.code.space)
        vector = np.zeros((self.code.groups, self.code.size))
        for k, (count, centres) in enumerate(zip(self.code.counts, self.code.centres, strict=True)):
            rewards = task.component(k, centres[:count])
            vector[k, :count] = checked_rewards(rewards, f"the task's component({k}, x)", (count,))
        return vector.ravel()


def check_dimensions(task: Any, space: FeatureSpace) -> None:
    """A task with `dimensions` must reward vectors as long as those of `space`."""
    if task.dimensions != space.dimensions:
        raise InputError(
            f"the task rewards {task.dimensions} feature dimensions; this agent's features have "
            f"{space.dimensions}"
        )


# --- Reward models ------------------------------------------------------------------------------


class LinearRewardModel(nn.Module):
    """R~(phi) = phi . w, w ~ N(0, 0.01^2): (batch, n) -> (batch,)."""

    def __init__(self, dimensions: int, rng: np.random.Generator) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.from_numpy(rng.normal(0.0, INITIAL_DEVIATION, dimensions)))

    def forward(self, features: Tensor) -> Tensor:
        return features @ self.weight


class MlpRewardModel(nn.Module):
    """R~(phi) with one hidden layer of 10 ReLU units and a linear output: (batch, n) -> (batch,).

    Weights and biases ~ U(-1/sqrt(in), 1/sqrt(in)), PyTorch's default, drawn layer by layer, weights first.
    docs/decisions.md says why not N(0, 0.01^2).
    """

    def __init__(self, dimensions: int, rng: np.random.Generator, hidden: int = 10) -> None:
        super().__init__()
        self.hidden = nn.utils.skip_init(nn.Linear, dimensions, hidden)
        self.output = nn.utils.skip_init(nn.Linear, hidden, 1)
        for layer in (self.hidden, self.output):
            bound = layer.in_features**-0.5
            for name, parameter in list(layer.named_parameters()):
                initial = torch.from_numpy(rng.uniform(-bound, bound, parameter.shape))
                setattr(layer, name, nn.Parameter(initial))

    def forward(self, features: Tensor) -> Tensor:
        return self.output(self.hidden(features).relu())[..., 0]


RewardModel = Callable[[int, np.random.Generator], nn.Module]


# --- Rules: from a task to its readout ----------------------------------------------------------


class ReadoutRule(Protocol):
    """Starts the readout of a task, and reads any other known reward function."""

    @property
    def known(self) -> KnownReward: ...

    def start(self, task: Task | None, rng: np.random.Generator, dtype: torch.dtype) -> Readout: ...

    def restore(self, state: Mapping[str, Any], dtype: torch.dtype) -> Readout:
        """The readout whose `state_dict` was saved."""

    def grown(self, readout: Any, dtype: torch.dtype) -> Readout:
        """The readout of a task after the set of features has grown."""


class _StartsFixed:
    def restore(self, state: Mapping[str, Any], dtype: torch.dtype) -> Readout:
        return FixedReadout(
            state["vector"].to(dtype), task_from_json(state["task"]) if "task" in state else None
        )

    def grown(self, readout: FixedReadout, dtype: torch.dtype) -> Readout:
        return readout


@dataclass(frozen=True)
class OneForReward(_StartsFixed):
    """v = 1 whatever the task."""

    known: KnownReward = ConstantReadout()

    def start(self, task: Task | None, rng: np.random.Generator, dtype: torch.dtype) -> Readout:
        return FixedReadout(torch.ones(1, dtype=dtype))


@dataclass(frozen=True)
class Given(_StartsFixed):
    """The agent is told the task's reward function."""

    known: KnownReward

    def start(self, task: Task | None, rng: np.random.Generator, dtype: torch.dtype) -> Readout:
        if task is None:
            raise InputError("this agent is given the reward function: start_task needs the task")
        grows = getattr(getattr(self.known, "space", None), "grow", False)
        return FixedReadout(readout_vector(self.known, task, rng, dtype), task if grows else None)

    def grown(self, readout: FixedReadout, dtype: torch.dtype) -> Readout:
        """R at the new features, too; 0 where a table or a file does not tell it."""
        try:
            if readout.task is None:
                raise InputError("the file of the agent does not hold the task")
            vector = readout_vector(self.known, readout.task, np.random.default_rng(0), dtype)
        except InputError as error:
            warnings.warn(f"a new feature counts as 0 in an earlier task: {error}", stacklevel=2)
            vector = nn.functional.pad(readout.vector, (0, len(self.known.points) - len(readout.vector)))
        return FixedReadout(vector, readout.task)


def readout_vector(known: KnownReward, task: Task, rng: np.random.Generator, dtype: torch.dtype) -> Tensor:
    """v of a known task in the agent's arithmetic, where rewards may be too large."""
    vector = torch.tensor(known.read(task, rng), dtype=dtype)
    if not torch.isfinite(vector).all():
        raise InputError(
            f"the task's rewards are too large for {dtype}; no more than {torch.finfo(dtype).max:.3g}"
        )
    return vector


def _is_linear(model: RewardModel) -> bool:
    """Whether a reward model is the linear one, or one derived from it, perhaps with settings filled in."""
    while isinstance(model, functools.partial):
        model = model.func
    return isinstance(model, type) and issubclass(model, LinearRewardModel)


@dataclass(frozen=True)
class LearnedOnline:
    """The reward function is learned while the task runs; the task itself is not looked at."""

    known: KnownReward
    model: RewardModel
    learning_rate: Schedule = field(metadata=MAY_CHANGE)

    def __post_init__(self) -> None:
        if self.known.linear_only and not _is_linear(self.model):
            raise InputError(
                "successor features and tent codes value linear reward models only (LinearRewardModel); "
                "an MLP reward model needs values for whole features (SFR-R)"
            )

    def start(self, task: Task | None, rng: np.random.Generator, dtype: torch.dtype) -> LearnedReadout:
        points = torch.tensor(self.known.points, dtype=dtype)
        model = self.model(points.shape[1], rng)
        if not isinstance(model, nn.Module):
            raise InputError(f"reward_model returned {model!r}; it must be a torch.nn.Module")
        model = model.to(dtype)
        if not any(True for _ in model.parameters()):
            raise InputError("reward_model has no parameters; there is nothing to learn")
        try:
            with torch.no_grad():
                values = model(points)
        except Exception as error:
            raise InputError(
                f"reward_model fails on features of shape {tuple(points.shape)}: {error}"
            ) from error
        if not isinstance(values, Tensor) or values.shape != points.shape[:1]:
            found = tuple(values.shape) if isinstance(values, Tensor) else type(values).__name__
            raise InputError(
                f"reward_model maps features of shape {tuple(points.shape)} to {found}; it must give one "
                f"number for each: ({len(points)},)"
            )
        rate = rate_at(self.learning_rate, 0, "reward_learning_rate")
        return LearnedReadout(model, points, rate, self.known.seen)

    def grown(self, readout: LearnedReadout, dtype: torch.dtype) -> Readout:
        """R~ at the new features, too."""
        readout.points = torch.tensor(self.known.points, dtype=dtype)
        readout.read()
        return readout

    def restore(self, state: Mapping[str, Any], dtype: torch.dtype) -> LearnedReadout:
        readout = self.start(None, np.random.default_rng(0), dtype)
        try:
            readout.load_state_dict(state)
        except (RuntimeError, ValueError, KeyError) as error:
            raise InputError(f"the saved reward model is not one of this agent: {error}") from None
        return readout
