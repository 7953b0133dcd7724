"""The agents of the paper, each a choice of parts.

    features   from the environment, or learned (the -h agents)
    cumulant   what is summed (sfr_fa.agents.cumulants)
    readout    where rewards are read to value it; given, or learned online (the -R and -h agents)
    new task   what a new task does to the stored policies

A part is a function that builds it from the settings of `make_agent`; a setting that no part has asked for is
refused. A new agent is a new row: `make_agent` takes a row in place of a name.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch.optim import Optimizer

from sfr_fa.agents.approximators import Approximator, LinearPerAction
from sfr_fa.agents.cumulants import (
    Cumulant,
    FeatureCumulant,
    Indicator,
    ModelRule,
    OneStepModel,
    RewardCumulant,
    TentCode,
    delta_rule,
)
from sfr_fa.agents.features import EnvironmentFeatures, FeatureMap, LearnedFeatureMap, NoFeatures
from sfr_fa.agents.gpi_agent import AgentStreams, Clip, GpiAgent, Loss, summed_squares
from sfr_fa.agents.gpi_policies import GpiPolicies, all_policies
from sfr_fa.agents.policies import NewTask, copy_previous, start_afresh
from sfr_fa.agents.readouts import (
    AtBins,
    AtFeatures,
    Given,
    KnownReward,
    LearnedOnline,
    LinearRewardModel,
    OneForReward,
    ReadoutRule,
    RewardModel,
    Weights,
)
from sfr_fa.arrays import FloatArray, positive_integer, positive_number
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures, FeatureSpace
from sfr_fa.reward_fitting import WeightFit, l1_weights
from sfr_theory.errors import InputError


class Settings:
    """What `make_agent` was told; remembers which settings the parts have asked for."""

    def __init__(self, agent: str, given: dict[str, Any]) -> None:
        self.agent = agent
        self._given = {name: value for name, value in given.items() if value is not None}
        self._used: set[str] = set()

    def need(self, name: str, why: str) -> Any:
        """A setting without which the agent cannot be built."""
        if name not in self._given:
            raise InputError(f"{self.agent} {why}: it needs {name}")
        return self.take(name, None)

    def take(self, name: str, default: Any) -> Any:
        self._used.add(name)
        return self._given.get(name, default)

    def refuse_unused(self) -> None:
        unused = sorted(set(self._given) - self._used)
        if unused:
            raise InputError(f"{self.agent} has no use for {', '.join(unused)}; leave it out")


# --- The parts, built from settings ---------------------------------------------------------------

BuildFeatures = Callable[[Settings], FeatureMap]
BuildCumulant = Callable[[FeatureMap, Settings], Cumulant]
BuildReadout = Callable[[Any, Settings], ReadoutRule]


def no_features(settings: Settings) -> FeatureMap:
    settings.take("feature_space", None)
    return NoFeatures()


def environment(settings: Settings) -> FeatureMap:
    space = settings.need("feature_space", "learns from the environment's features")
    if isinstance(space, (DiscreteFeatures, BoxFeatures)):
        return EnvironmentFeatures(space)
    raise InputError(
        f"feature_space is {space!r}; it must be DiscreteFeatures(vectors) for a finite set of features or "
        f"BoxFeatures(low, high) for a box, which from a Gymnasium Box is BoxFeatures(box.low, box.high)"
    )


def learned_features(settings: Settings) -> FeatureMap:
    settings.take("feature_space", None)
    feature_map = settings.need("feature_map", "learns from learned features")
    if not isinstance(feature_map, LearnedFeatureMap):
        raise InputError(
            f"feature_map is {feature_map!r}; it must be LearnedFeatures(matrix), or a function of "
            f"transitions with state_dim and space"
        )
    state_dim = settings.take("state_dim", None)
    if feature_map.state_dim != state_dim:
        raise InputError(
            f"feature_map was learned on states of {feature_map.state_dim} dimensions; this agent's have "
            f"{state_dim}"
        )
    return feature_map


def reward(features: FeatureMap, settings: Settings) -> Cumulant:
    return RewardCumulant()


def phi(features: Any, settings: Settings) -> Cumulant:
    return FeatureCumulant(features.space)


def indicator(features: Any, settings: Settings) -> Cumulant:
    return Indicator(features.space)


def one_step_model(features: Any, settings: Settings) -> Cumulant:
    return OneStepModel(
        features.space,
        settings.take("state_dim", None),
        settings.take("num_actions", None),
        settings.need("model_learning_rate", "learns a one-step feature model"),
        settings.take("streams", None).weights,
        settings.take("dtype", None),
        settings.take("model_rule", delta_rule),
    )


def tent_code(features: Any, settings: Settings) -> Cumulant:
    return TentCode(features.space, settings.take("bins", 11))


def weights(cumulant: Any, settings: Settings) -> KnownReward:
    fit, points = settings.take("weight_fit", l1_weights), settings.take("fit_points", None)
    return Weights(cumulant.space, fit, points)


def at_features(cumulant: Any, settings: Settings) -> KnownReward:
    return AtFeatures(cumulant.space)


def at_bins(cumulant: Any, settings: Settings) -> KnownReward:
    return AtBins(cumulant)


def one(cumulant: Any, settings: Settings) -> ReadoutRule:
    return OneForReward()


def given(read: Callable[[Any, Settings], KnownReward]) -> BuildReadout:
    """The reward function comes with the task."""
    return lambda cumulant, settings: Given(read(cumulant, settings))


def learned(read: Callable[[Any, Settings], KnownReward]) -> BuildReadout:
    """The reward function is learned online."""
    return lambda cumulant, settings: LearnedOnline(
        read(cumulant, settings),
        settings.take("reward_model", LinearRewardModel),
        settings.need("reward_learning_rate", "learns the reward function online"),
    )


# --- The agents -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentSpec:
    """One row of the table: how each part of an agent is built."""

    features: BuildFeatures
    cumulant: BuildCumulant
    readout: BuildReadout
    new_task: NewTask


AGENT_SPECS = {
    #                     features          cumulant        readout               new task
    "Q":        AgentSpec(no_features,      reward,         one,                  start_afresh),
    "SF":       AgentSpec(environment,      phi,            given(weights),       copy_previous),
    "SF-R":     AgentSpec(environment,      phi,            learned(weights),     copy_previous),
    "SF-h":     AgentSpec(learned_features, phi,            learned(weights),     copy_previous),
    "SFR":      AgentSpec(environment,      indicator,      given(at_features),   copy_previous),
    "SFR-R":    AgentSpec(environment,      indicator,      learned(at_features), copy_previous),
    "MB SFR":   AgentSpec(environment,      one_step_model, given(at_features),   copy_previous),
    "MB SFR-R": AgentSpec(environment,      one_step_model, learned(at_features), copy_previous),
    "CSFR":     AgentSpec(environment,      tent_code,      given(at_bins),       copy_previous),
    "CSFR-R":   AgentSpec(environment,      tent_code,      learned(at_bins),     copy_previous),
    "CSFR-h":   AgentSpec(learned_features, tent_code,      learned(at_bins),     copy_previous),
}  # fmt: skip


def make_agent(
    agent: str | AgentSpec,
    state_dim: int,
    num_actions: int,
    feature_space: FeatureSpace | None,
    *,
    gamma: float,
    epsilon: float,
    learning_rate: float,
    rng: np.random.Generator | AgentStreams | int,
    reward_learning_rate: float | None = None,
    model_learning_rate: float | None = None,
    model_rule: ModelRule | None = None,
    feature_map: LearnedFeatureMap | None = None,
    reward_model: RewardModel | None = None,
    weight_fit: WeightFit | None = None,
    fit_points: FloatArray | None = None,
    bins: int | None = None,
    approximator: Approximator = LinearPerAction,
    optimiser: Callable[..., Optimizer] = torch.optim.SGD,
    clip: Clip | None = None,
    gpi_policies: GpiPolicies = all_policies,
    loss: Loss = summed_squares,
    dtype: torch.dtype = torch.float32,
) -> GpiAgent:
    """An agent of the paper by its name in AGENT_SPECS, or any other AgentSpec.

    feature_space         the environment's features; None for agents that do not read them
    learning_rate         alpha, of the value networks
    rng                   spawns the streams of initial weights and of exploration; or its seed, or both ready
                          made
    reward_learning_rate  alpha_w or alpha_R, for agents that learn the reward online (-R, -h)
    model_learning_rate   beta, for the one-step model (MB)
    model_rule            how the one-step model learns: delta_rule (default), or squares as printed
    feature_map           learned features, for -h agents
    reward_model          LinearRewardModel (default) or MlpRewardModel, for SFR-R and MB SFR-R
    weight_fit            how SF fits weights to a reward that is not linear: l1_weights (default),
                          least_squares_weights or printed_rule_weights of sfr_fa.reward_fitting
    fit_points            features on which it is fitted; the whole set, if features are discrete
    bins                  U of the tent code, 11 if not given
    approximator          (ValueShape, Generator) -> nn.Module: LinearPerAction, FeatureSubnetworks, or yours
    optimiser             called as optimiser(parameters, lr=learning_rate) for each policy
    clip                  clip_at_zero or no_clip; by default what the cumulant allows
    gpi_policies          all_policies (default), or Nearest(m), Recent(m), Random(m) of
                          sfr_fa.agents.gpi_policies
    loss                  summed_squares (the listings) or squares_averaged_over_dimensions (eq:loss_cxi)
    """
    if isinstance(agent, str) and agent not in AGENT_SPECS:
        raise InputError(f"there is no agent {agent!r}; the agents are {', '.join(AGENT_SPECS)}")
    if not isinstance(agent, (str, AgentSpec)):
        raise InputError(f"agent is {agent!r}; it must be a name ({', '.join(AGENT_SPECS)}) or an AgentSpec")
    name, spec = (agent, AGENT_SPECS[agent]) if isinstance(agent, str) else ("this agent", agent)
    state_dim = positive_integer(state_dim, "state_dim")
    num_actions = positive_integer(num_actions, "num_actions")
    learning_rate = positive_number(learning_rate, "learning_rate")
    for label, function in (("optimiser", optimiser), ("weight_fit", weight_fit or l1_weights),
                            ("model_rule", model_rule or delta_rule),
                            ("reward_model", reward_model or LinearRewardModel)):  # fmt: skip
        if not callable(function):
            raise InputError(f"{label} is {function!r}; it must be a function or a class")
    streams = _streams(rng)
    general = {"state_dim": state_dim, "num_actions": num_actions, "streams": streams, "dtype": dtype}
    optional = {
        "feature_space": feature_space, "reward_learning_rate": reward_learning_rate,
        "model_learning_rate": model_learning_rate, "model_rule": model_rule, "feature_map": feature_map,
        "reward_model": reward_model, "weight_fit": weight_fit, "fit_points": fit_points, "bins": bins,
    }  # fmt: skip
    settings = Settings(name, general | optional)
    for setting in general:
        settings.take(setting, None)
    features = spec.features(settings)
    cumulant = spec.cumulant(features, settings)
    readout = spec.readout(cumulant, settings)
    settings.refuse_unused()
    return GpiAgent(
        state_dim=state_dim,
        num_actions=num_actions,
        feature_map=features,
        cumulant=cumulant,
        readout=readout,
        new_task=spec.new_task,
        approximator=approximator,
        optimiser=functools.partial(optimiser, lr=learning_rate),
        gamma=gamma,
        epsilon=epsilon,
        streams=streams,
        clip=clip,
        gpi_policies=gpi_policies,
        loss=loss,
        dtype=dtype,
    )


def _streams(rng: np.random.Generator | AgentStreams | int) -> AgentStreams:
    if isinstance(rng, AgentStreams):
        return rng
    if isinstance(rng, (int, np.integer)) and not isinstance(rng, bool) and rng >= 0:
        rng = np.random.default_rng(rng)
    if not isinstance(rng, np.random.Generator):
        raise InputError(f"rng is {rng!r}; it must be a numpy.random.Generator, a seed, or AgentStreams")
    return AgentStreams.spawn(rng)
