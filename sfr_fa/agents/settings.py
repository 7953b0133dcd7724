"""What describes an agent apart from its parts: sizes, rates, and functions that can be exchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.optim import Optimizer

from sfr_fa.agents.approximators import Approximator, LinearPerAction
from sfr_fa.agents.cumulants import ModelRule
from sfr_fa.agents.features import LearnedFeatureMap
from sfr_fa.agents.gpi_policies import GpiPolicies, all_policies
from sfr_fa.agents.hysteresis import Hysteresis
from sfr_fa.agents.readouts import RewardModel
from sfr_fa.agents.replay import Replay
from sfr_fa.agents.schedules import Schedule, check_epsilon, check_rate
from sfr_fa.arrays import FloatArray, finite_number, positive_integer, positive_number
from sfr_fa.feature_codes import FeatureCode
from sfr_fa.feature_spaces import FeatureSpace
from sfr_fa.reward_fitting import WeightFit
from sfr_fa.streams import Streams
from sfr_theory.errors import InputError

Clip = Callable[[Tensor], Tensor]
Loss = Callable[[Tensor], Tensor]


def clip_at_zero(values: Tensor) -> Tensor:
    """max(0, values): for discounted sums of what is never negative."""
    return values.clamp(min=0)


def no_clip(values: Tensor) -> Tensor:
    """The values as they are."""
    return values


def summed_squares(error: Tensor) -> Tensor:
    """sum_{k,x} error_{k,x}^2, as the listings print it; `error` has shape (groups, size)."""
    return error.square().sum()


def squares_averaged_over_dimensions(error: Tensor) -> Tensor:
    """1/n sum_k sum_x error_{k,x}^2 over the n feature dimensions, as eq:loss_cxi prints it."""
    return error.square().sum() / error.shape[0]


RATES = ("learning_rate", "reward_learning_rate", "model_learning_rate")


@dataclass(frozen=True, kw_only=True)
class AgentSettings:
    """What `make_agent` was told. Settings that are None are for some agents only, or depend on the agent."""

    state_dim: int
    num_actions: int
    streams: Streams
    feature_space: FeatureSpace | None = None
    """The environment's features; None for agents that do not read them."""
    gamma: float = 0.95
    epsilon: Schedule = 0.15
    """How often an action is drawn at random; this and the rates may be functions of the step in the task
    (sfr_fa.agents.schedules)."""
    learning_rate: Schedule = 0.005
    """alpha, of the values."""
    reward_learning_rate: Schedule | None = None
    """alpha_w or alpha_R, for agents that learn the reward online (-R, -h)."""
    model_learning_rate: Schedule | None = None
    """beta, for the one-step model (MB)."""
    model_rule: ModelRule | None = None
    """How the one-step model learns: delta_rule (default), or squares as printed."""
    feature_map: LearnedFeatureMap | None = None
    """Learned features, for -h agents."""
    reward_model: RewardModel | None = None
    """LinearRewardModel (default) or MlpRewardModel, for SFR-R and MB SFR-R."""
    weight_fit: WeightFit | None = None
    """How SF fits weights to a reward that is not linear: l1_weights (default), least_squares_weights or
    printed_rule_weights of sfr_fa.reward_fitting."""
    fit_points: FloatArray | None = None
    """Features on which it is fitted; for SF the whole set, if features are discrete."""
    ridge: float | None = None
    """The ridge of a least-squares fit of rewards (CSFR, SFR-K), 1e-3 if not given."""
    feature_code: FeatureCode | None = None
    """z(phi) of SFR-K, such as KernelCode.observed(points, 128, rng) of sfr_fa.feature_codes."""
    bins: int | tuple[int, ...] | None = None
    """U of the tent code, or a number for each feature dimension; 11 if not given."""
    approximator: Approximator = LinearPerAction
    """(ValueShape, Generator) -> nn.Module: LinearPerAction, FeatureSubnetworks, or yours."""
    optimiser: Callable[..., Optimizer] = torch.optim.SGD
    """Called as optimiser(parameters, lr=learning_rate) for each policy."""
    clip: Clip | None = None
    """clip_at_zero or no_clip; by default what the cumulant allows."""
    gpi_policies: GpiPolicies = all_policies
    """all_policies, or Nearest(m), Bound(m), Recent(m), Random(m) of sfr_fa.agents.gpi_policies."""
    loss: Loss = summed_squares
    """summed_squares (the listings) or squares_averaged_over_dimensions (eq:loss_cxi)."""
    replay: Replay | None = None
    """Replay(capacity, batch, ...) learns from minibatches of remembered steps; by default a step is learned
    from once, as in the paper."""
    hysteresis: Hysteresis | None = None
    """Hysteresis(scale, kappa) keeps the bootstrap action of a state until another is clearly better, so that
    xi settles where actions tie; for states that recur."""
    dtype: torch.dtype = torch.float32

    def __post_init__(self) -> None:
        def check(name: str, as_plain: Callable[[Any, str], Any]) -> None:
            object.__setattr__(self, name, as_plain(getattr(self, name), name))

        check("state_dim", positive_integer)
        check("num_actions", positive_integer)
        check("gamma", finite_number)
        check("epsilon", check_epsilon)
        if self.ridge is not None:
            check("ridge", positive_number)
        for rate in RATES:
            if getattr(self, rate) is not None:
                check(rate, check_rate)
        if not 0 <= self.gamma < 1:
            raise InputError(f"gamma is {self.gamma}; it must be at least 0 and below 1")
        if self.dtype not in (torch.float32, torch.float64):
            raise InputError(f"dtype is {self.dtype}; it must be torch.float32 or torch.float64")
        most = torch.finfo(self.dtype).max
        for rate in ("learning_rate", "model_learning_rate"):
            number = getattr(self, rate)
            if isinstance(number, float) and number > most:
                raise InputError(f"{rate} is {number}; it may be {most:.3g} at most in {self.dtype}")
        if not isinstance(self.replay, Replay | None):
            raise InputError(f"replay is {self.replay!r}; pass Replay(capacity=10_000, batch=32)")
        if not isinstance(self.hysteresis, Hysteresis | None):
            raise InputError(f"hysteresis is {self.hysteresis!r}; pass Hysteresis(scale=1.0, kappa=0.2)")
        if self.replay is not None and self.hysteresis is not None:
            raise InputError("replay and hysteresis do not go together; leave one of them out")
        for name in ("model_rule", "reward_model", "weight_fit", "approximator", "optimiser", "clip",
                     "gpi_policies", "loss"):  # fmt: skip
            function = getattr(self, name)
            if function is not None and not callable(function):
                raise InputError(f"{name} is {function!r}; it must be a function or a class")
