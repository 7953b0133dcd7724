"""What the compiled engine supports, and a sentence about what it does not."""

from __future__ import annotations

import functools
from typing import Any

import gymnasium
import numpy as np

from sfr_fa.agents import (
    FeatureSubnetworks,
    GpiAgent,
    LearnedFeatures,
    LinearPerAction,
    LinearRewardModel,
    MlpRewardModel,
    SharedNetwork,
    clip_at_zero,
    no_clip,
    squares_averaged_over_dimensions,
    summed_squares,
)
from sfr_fa.agents.cumulants import (
    FeatureCumulant,
    Indicator,
    JointCode,
    OneStepModel,
    RewardCumulant,
    TentCode,
    delta_rule,
    squares,
)
from sfr_fa.agents.features import EnvironmentFeatures, NoFeatures
from sfr_fa.agents.readouts import Given, LearnedOnline, OneForReward
from sfr_fa.environments.world_env import WorldEnv
from sfr_fa.feature_codes import CellCode, FourierCode, KernelCode
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_theory.errors import InputError

_CUMULANTS = (RewardCumulant, FeatureCumulant, Indicator, TentCode, OneStepModel, JointCode)


def why_not_compiled(environment: gymnasium.Env[Any, Any], agent: GpiAgent) -> str | None:
    """Why the compiled engine cannot run this agent here, or None."""
    return (
        _unsupported_world(environment)
        or _unsupported_wrapper(environment)
        or _unsupported_network(agent)
        or _unsupported_part(agent)
        or _unsupported_feature(environment, agent)
    )


def _unsupported_wrapper(environment: gymnasium.Env[Any, Any]) -> str | None:
    """Why a wrapped environment cannot be compiled: a wrapper does more than check."""
    checks_only = (gymnasium.wrappers.OrderEnforcing, gymnasium.wrappers.PassiveEnvChecker)
    while isinstance(environment, gymnasium.Wrapper):
        if type(environment) not in checks_only:
            wrapper = type(environment).__name__
            return f"the environment is wrapped in {wrapper}, which compiled code would not call"
        environment = environment.env
    return None


def _unsupported_world(environment: gymnasium.Env[Any, Any]) -> str | None:
    """Why an environment cannot be compiled: it is not a world, or does more than its world."""
    kind = type(environment.unwrapped)
    if not issubclass(kind, WorldEnv):
        return f"{kind.__name__} is not made of a world (sfr_fa.environments.world_env)"
    for method in ("reset", "step", "_observation"):
        if getattr(kind, method) is not getattr(WorldEnv, method):
            return f"{kind.__name__} has a {method} of its own, which compiled code would not call"
    return None


def _unsupported_network(agent: GpiAgent) -> str | None:
    """Why an agent's networks cannot be compiled."""
    approximator = agent.policies.approximator
    hidden: tuple[int, ...] = (20, 20)
    known = {"hidden", "head_rate"}
    if isinstance(approximator, functools.partial) and set(approximator.keywords) <= known:
        hidden = approximator.keywords.get("hidden", hidden)
        approximator = approximator.func
    if approximator is LinearPerAction:
        return None
    if approximator in (FeatureSubnetworks, SharedNetwork) and len(hidden) == 2:
        return None
    return (
        "its approximator is none of LinearPerAction, FeatureSubnetworks with two hidden layers and "
        "SharedNetwork with two"
    )


def _unsupported_feature(environment: gymnasium.Env[Any, Any], agent: GpiAgent) -> str | None:
    """Why an agent of other features cannot be compiled: code checks none, and may know them by number."""
    space, features = environment.get_wrapper_attr("feature_space"), agent.feature_map
    if any(isinstance(known, DiscreteFeatures) and known.grow for known in (space, features.space)):
        return "its set of features may grow, and compiled code knows features by their number"
    if isinstance(agent.cumulant, (Indicator, OneStepModel)) and agent.cumulant.space != space:
        return "its feature space is not that of the environment, by which compiled code numbers features"
    if isinstance(features, EnvironmentFeatures):
        corners = space.vectors if isinstance(space, DiscreteFeatures) else np.stack([space.low, space.high])
        try:
            features.space.check(corners)
        except InputError:
            return "its feature space does not hold all features of the environment"
    return None


def _unsupported_part(agent: GpiAgent) -> str | None:
    """Why an agent cannot be compiled whatever its network: some part of it is not one that kernels know."""
    if not agent.policies.is_plain_sgd:
        return "its optimiser is not plain SGD"
    if agent.memory is not None:
        return "it learns from minibatches (replay)"
    if agent.kept_actions is not None:
        return "it keeps actions to bootstrap on (hysteresis)"
    rule = agent.readout_rule
    known_parts = (
        ("clip", any(agent.clip is part for part in (clip_at_zero, no_clip))),
        ("loss", any(agent.loss is part for part in (summed_squares, squares_averaged_over_dimensions))),
        ("cumulant", type(agent.cumulant) in _CUMULANTS),
        ("features", type(agent.feature_map) in (NoFeatures, EnvironmentFeatures, LearnedFeatures)),
        ("readout", type(rule) in (OneForReward, Given, LearnedOnline)),
    )
    for name, is_known in known_parts:
        if not is_known:
            return f"its {name} is a part of your own"
    if isinstance(rule, LearnedOnline) and rule.model not in (LinearRewardModel, MlpRewardModel):
        return "its reward model is a network of your own"
    codes = (KernelCode, FourierCode, CellCode)
    if isinstance(agent.cumulant, JointCode) and type(agent.cumulant.code) not in codes:
        return "its feature code is one of your own"
    if isinstance(agent.cumulant, TentCode) and not isinstance(agent.cumulant.bins, int):
        return "its dimensions have different numbers of bins"
    if isinstance(agent.cumulant, OneStepModel) and agent.cumulant.rule not in (delta_rule, squares):
        return "its one-step model learns by a rule of your own"
    return None
