"""What an agent sums: the cumulant c_t in R^D.

Every agent learns value(s, a) = E[ sum_t gamma^t c_t ] in R^D and reads Q(s, a) = v . value(s, a).

    reward            c_t = r_t                                            D = 1      Q-learning
    features          c_t = phi_t                                          D = n      SF: value = psi
    indicator         c_t = (phi_t == phi_j)_j                             D = F      SFR: value = xi
    one-step model    c_t = p~(. | s_t, a_t), learned first                D = F      MB SFR
    tent code         c_t[k, j] = max(0, 1 - |x_j - phi_{t,k}| / Delta)    D = n U    CSFR
    joint code        c_t = z(phi_t), of all dimensions at once            D          SFR-K

The D entries come in `groups` blocks of `size`, one block for each feature dimension that is predicted
separately; networks give each block a subnetwork. If no cumulant is ever negative, neither is its discounted
sum, and `nonnegative` says so: agents then clip values at 0 when they read them, never in targets.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sfr_fa.agents.approximators import sgd_step
from sfr_fa.agents.checkpoint import MAY_CHANGE
from sfr_fa.agents.schedules import Schedule, rate_at
from sfr_fa.arrays import INITIAL_DEVIATION, FloatArray, positive_integer
from sfr_fa.feature_codes import FeatureCode
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures, FeatureSpace
from sfr_theory.errors import InputError, in_short


class Cumulant(Protocol):
    """c_t of a step; `observe` may learn from the step before it answers."""

    @property
    def groups(self) -> int: ...

    @property
    def size(self) -> int: ...

    @property
    def nonnegative(self) -> bool: ...

    def observe(self, state: Tensor, action: int, features: FloatArray, reward: float) -> FloatArray:
        """c_t, shape (groups * size,)."""

    def state_dict(self) -> Mapping[str, Any]:
        """What has been learned, as tensors; by default nothing: most cumulants are computed."""
        return {}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what was learned."""
        return


@dataclass(frozen=True)
class RewardCumulant(Cumulant):
    """c_t = r_t: plain Q-learning."""

    groups = 1
    size = 1
    nonnegative = False

    def observe(self, state: Tensor, action: int, features: FloatArray, reward: float) -> FloatArray:
        return np.array([reward])


@dataclass(frozen=True)
class FeatureCumulant(Cumulant):
    """c_t = phi_t: successor features."""

    space: FeatureSpace
    size = 1
    # Features may be non-negative, but the paper clips xi only, never psi.
    nonnegative = False

    @property
    def groups(self) -> int:
        return self.space.dimensions

    def observe(self, state: Tensor, action: int, features: FloatArray, reward: float) -> FloatArray:
        return features


@dataclass(frozen=True)
class Indicator(Cumulant):
    """c_t = 1 at the observed feature, 0 elsewhere: model-free SFRQ-learning (algo:MFXI)."""

    space: DiscreteFeatures
    groups = 1
    nonnegative = True

    def __post_init__(self) -> None:
        _need_discrete(self.space)

    @property
    def size(self) -> int:
        return self.space.size

    def observe(self, state: Tensor, action: int, features: FloatArray, reward: float) -> FloatArray:
        indicator = np.zeros(self.space.size)
        indicator[self.space.index_of(features)] = 1.0
        return indicator


@dataclass(frozen=True)
class TentCode(Cumulant):
    """c_t[k, j] = max(0, 1 - |x_{k,j} - phi_{t,k}| / Delta_k) at U bin centres x (algo:CMFXI).

    The centres are x_{k,j} = low_k + j Delta_k for j = 0 ... U_k - 1, from one end of the range to the other.
    At most two neighbouring bins are active and a block sums to 1, so sum_j f(x_j) c[k, j] is the piecewise
    linear interpolant of f at phi_k. All blocks have the size of the largest, U; after
    its U_k bins a block holds zeros.
    """

    space: BoxFeatures
    bins: int | tuple[int, ...] = 11
    """U of all dimensions, or U_k of each."""
    nonnegative = True

    def __post_init__(self) -> None:
        if not isinstance(self.space, BoxFeatures):
            raise InputError("the tent code discretises a box of features; a discrete set has its own (SFR)")
        if np.ndim(self.bins) == 0:
            bins: int | tuple[int, ...] = positive_integer(self.bins, "bins")
        else:
            bins = tuple(positive_integer(count, f"bins[{k}]") for k, count in enumerate(self.bins))  # type: ignore[arg-type]
            if len(bins) != self.space.dimensions:
                raise InputError(
                    f"bins has {len(bins)} entries; there are {self.space.dimensions} feature dimensions"
                )
            bins = bins if len(set(bins)) > 1 else bins[0]
        object.__setattr__(self, "bins", bins)
        if self.counts.min() < 2:
            raise InputError(f"bins is {self.bins}; the tent code needs at least 2 bins for each dimension")

    @property
    def groups(self) -> int:
        return self.space.dimensions

    @property
    def counts(self) -> NDArray[np.int64]:
        """U_k, shape (n,)."""
        return np.broadcast_to(self.bins, self.space.dimensions)

    @property
    def size(self) -> int:
        return int(self.counts.max())

    @property
    def centres(self) -> FloatArray:
        """x_{k,j}, shape (n, U), infinite behind the last bin of a dimension."""
        if isinstance(self.bins, int):
            return np.linspace(self.space.low, self.space.high, self.bins, axis=1)
        centres = np.full((self.groups, self.size), np.inf)
        for k, count in enumerate(self.bins):
            centres[k, :count] = np.linspace(self.space.low[k], self.space.high[k], count)
        return centres

    def encode(self, features: FloatArray) -> FloatArray:
        """(..., n) -> (..., n, U)."""
        width = (self.space.high - self.space.low) / (self.counts - 1)
        distance = np.abs(self.centres - features[..., None]) / width[:, None]
        return np.maximum(0.0, 1.0 - distance)

    def observe(self, state: Tensor, action: int, features: FloatArray, reward: float) -> FloatArray:
        return self.encode(features).ravel()


@dataclass(frozen=True)
class JointCode(Cumulant):
    """c_t = z(phi_t) for a code of all feature dimensions at once (`sfr_fa.feature_codes`)."""

    space: FeatureSpace
    code: FeatureCode
    groups = 1
    # Bumps are never negative, but clipping gains nothing here, and without it a policy is read by a
    # projection of its last layer, whatever the size of the code (docs/kernel.md).
    nonnegative = False

    def __post_init__(self) -> None:
        if not isinstance(self.code, FeatureCode):
            raise InputError(
                f"feature_code is {self.code!r}; it must be a code of features, as "
                f"KernelCode.observed(points, 128, rng) of sfr_fa.feature_codes"
            )
        if self.code.dimensions != self.space.dimensions:
            raise InputError(
                f"feature_code codes {self.code.dimensions} feature dimensions; this agent's features have "
                f"{self.space.dimensions}"
            )
        positive_integer(self.code.size, "feature_code.size")
        self.encode(
            self.space.vectors[:1] if isinstance(self.space, DiscreteFeatures) else self.space.low[None]
        )

    @property
    def size(self) -> int:
        return self.code.size

    def encode(self, features: FloatArray) -> FloatArray:
        """(..., n) -> (..., D)."""
        given = np.asarray(features)
        try:
            code = np.asarray(self.code.encode(features), dtype=np.float64)
        except (TypeError, ValueError, ArithmeticError, RuntimeError) as error:
            raise InputError(f"feature_code cannot encode {in_short(given.tolist())}: {error}") from None
        if code.shape != (*given.shape[:-1], self.code.size) or not np.isfinite(code).all():
            raise InputError(
                f"feature_code encodes {in_short(given.tolist())} as {in_short(code.tolist())}; it must be "
                f"{self.code.size} finite numbers for each vector"
            )
        return code

    def observe(self, state: Tensor, action: int, features: FloatArray, reward: float) -> FloatArray:
        return self.encode(features)


ModelRule = Callable[[Tensor, int], Tensor]
"""(logits of p~, which feature was observed) -> the loss that a step of SGD with rate beta descends."""


def delta_rule(logits: Tensor, observed: int) -> Tensor:
    """-log p~(phi_t): theta_{a,j} += beta (1[phi_t = phi_j] - p~_j) s, eq:sf_model_update on weights."""
    return -logits.log_softmax(dim=-1)[observed]


def squares(logits: Tensor, observed: int) -> Tensor:
    """sum_j (1[phi_t = phi_j] - p~_j)^2, the loss L_p that algo:MBXI prints."""
    indicator = torch.zeros_like(logits)
    indicator[observed] = 1.0
    return (indicator - logits.softmax(dim=-1)).square().sum()


class LogitsPerAction(nn.Module):
    """Logits s . theta_{a,j} of p~(phi_j | s, a); (batch, state) -> (batch, A, F)."""

    def __init__(self, state_dim: int, num_actions: int, size: int, rng: np.random.Generator) -> None:
        super().__init__()
        initial = rng.normal(0.0, INITIAL_DEVIATION, (num_actions, size, state_dim))
        self.weight = nn.Parameter(torch.from_numpy(initial))

    def forward(self, states: Tensor) -> Tensor:
        return torch.einsum("bs,ajs->baj", states, self.weight)


@dataclass(eq=False)
class OneStepModel:
    """c_t = p~(. | s_t, a_t), a softmax model of the next feature that is kept over all tasks (algo:MBXI).

    Each step first moves p~ by SGD with rate beta on the loss of its rule. The squares that the paper prints
    carry a factor p~_j in their gradient and give up on rare features; see docs/decisions.md.
    """

    space: DiscreteFeatures
    state_dim: int
    num_actions: int
    learning_rate: Schedule = field(metadata=MAY_CHANGE)
    rng: np.random.Generator = field(repr=False)
    dtype: torch.dtype
    rule: ModelRule = delta_rule
    groups = 1
    nonnegative = True

    def __post_init__(self) -> None:
        _need_discrete(self.space)
        if self.space.grow:
            raise InputError(
                "the one-step model (MB SFR) is a softmax over all features, which a new one would change; "
                "declare all of them, without grow"
            )
        model = LogitsPerAction(self.state_dim, self.num_actions, self.space.size, self.rng)
        self.model = model.to(self.dtype)
        self._rate = rate_at(self.learning_rate, 0, "model_learning_rate")

    def set_rate(self, rate: float) -> None:
        """Learn at this rate from now on."""
        self._rate = rate

    @property
    def size(self) -> int:
        return self.space.size

    def observe(self, state: Tensor, action: int, features: FloatArray, reward: float) -> FloatArray:
        loss = self.rule(self.model(state[None])[0, action], self.space.index_of(features))
        sgd_step(loss, self.model, self._rate)
        with torch.no_grad():
            estimate: FloatArray = self.model(state[None])[0, action].softmax(dim=-1).numpy()
        return estimate.astype(np.float64)

    def state_dict(self) -> Mapping[str, Any]:
        return {"model": self.model.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.model.load_state_dict(state["model"])


def _need_discrete(space: FeatureSpace) -> None:
    if not isinstance(space, DiscreteFeatures):
        raise InputError("SFR counts a discrete set of features; features in a box need a tent code (CSFR)")
