"""The agents of the paper, and our own, CSFR-F and SFR-K (docs/kernel.md), each a row of parts.

    features   from the environment, or learned (the -h agents)
    cumulant   what is summed (sfr_fa.agents.cumulants)
    readout    where rewards are read to value it; given, or learned online (the -R and -h agents)
    new task   what a new task does to the stored policies

A part is a `Builder`: a function that builds it from what comes before it and from the settings, together
with the settings that it needs or takes. So a row says what it is (what it learns, which rates it has), and
all other code asks the row. A new agent is a new row: `make_agent`, engines, configs ("module:ROW") and films
take a row in place of a name.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

import numpy as np

from sfr_fa.agents.cumulants import (
    Cumulant,
    FeatureCumulant,
    Indicator,
    JointCode,
    OneStepModel,
    RewardCumulant,
    TentCode,
    delta_rule,
)
from sfr_fa.agents.features import EnvironmentFeatures, FeatureMap, LearnedFeatureMap, NoFeatures
from sfr_fa.agents.gpi_agent import GpiAgent
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
    RidgeFit,
    Weights,
)
from sfr_fa.agents.settings import RATES, AgentSettings
from sfr_fa.arrays import FloatArray
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures, FeatureSpace
from sfr_fa.reward_fitting import l1_weights
from sfr_fa.streams import Streams
from sfr_theory.errors import InputError

FOR_SOME_AGENTS = ("feature_map", "reward_learning_rate", "model_learning_rate", "model_rule", "reward_model",
                   "weight_fit", "fit_points", "bins", "ridge", "feature_code")  # fmt: skip
"""Settings that are refused where no part asks for them."""


@dataclass(frozen=True)
class Builder:
    """How a part is built, from the part before it and the settings."""

    build: Callable[[Any, AgentSettings], Any]
    needs: Mapping[str, str] = field(default_factory=dict)
    """Settings without which it cannot be built, each with the reason: the agent "learns ..."."""
    takes: tuple[str, ...] = ()
    """Settings that it also uses if they are given."""


@dataclass(frozen=True)
class CumulantBuilder(Builder):
    """A part that is summed."""

    family: str = "own"
    """Agents of one family sum the same cumulant and differ in what they are told: one colour in figures."""
    space_of: Callable[[FeatureSpace], FeatureSpace] = lambda space: space
    """The feature space that it works on, made from the environment's."""
    from_indicator: Callable[[DiscreteFeatures], FloatArray] | None = None
    """M (F, D) with E[c_t] = sum_j M_j P(phi_t = phi_j), for cumulants of discrete features."""


@dataclass(frozen=True)
class ReadoutBuilder(Builder):
    """A part that values cumulants."""

    linear_only: bool = True
    """Whether a reward model that it learns must be linear."""


# --- The parts ------------------------------------------------------------------------------------


def _environment(_: Any, settings: AgentSettings) -> FeatureMap:
    space = settings.feature_space
    if isinstance(space, (DiscreteFeatures, BoxFeatures)):
        return EnvironmentFeatures(space)
    raise InputError(
        f"feature_space is {space!r}; it must be DiscreteFeatures(vectors) for a finite set of features or "
        f"BoxFeatures(low, high) for a box, which from a Gymnasium Box is BoxFeatures(box.low, box.high)"
    )


def _learned_features(_: Any, settings: AgentSettings) -> FeatureMap:
    feature_map = settings.feature_map
    if not isinstance(feature_map, LearnedFeatureMap):
        raise InputError(
            f"feature_map is {feature_map!r}; it must be LearnedFeatures(matrix), or a function of "
            f"transitions with state_dim and space"
        )
    if feature_map.state_dim != settings.state_dim:
        raise InputError(
            f"feature_map was learned on states of {feature_map.state_dim} dimensions; this agent's have "
            f"{settings.state_dim}"
        )
    return feature_map


def _one_step_model(features: Any, settings: AgentSettings) -> Cumulant:
    return OneStepModel(
        features.space,
        settings.state_dim,
        settings.num_actions,
        settings.model_learning_rate or 0.0,
        settings.streams.weights,
        settings.dtype,
        settings.model_rule or delta_rule,
    )


def _tent_code(features: Any, settings: AgentSettings) -> Cumulant:
    return TentCode(features.space, 11 if settings.bins is None else settings.bins)


def _joint_code(features: Any, settings: AgentSettings) -> Cumulant:
    assert settings.feature_code is not None
    return JointCode(features.space, settings.feature_code)


def _ridge_fit(cumulant: Any, settings: AgentSettings) -> RidgeFit:
    return RidgeFit(cumulant, settings.fit_points, settings.ridge or 1e-3)


def _weights(cumulant: Any, settings: AgentSettings) -> KnownReward:
    return Weights(cumulant.space, settings.weight_fit or l1_weights, settings.fit_points)


def smallest_box(space: FeatureSpace) -> FeatureSpace:
    """The box that a discrete set of features fills; a box stays as it is.

    A dimension in which all features are equal needs only one bin: whatever width it is given, they lie in
    its first.
    """
    if isinstance(space, DiscreteFeatures):
        low, high = space.vectors.min(axis=0), space.vectors.max(axis=0)
        return BoxFeatures(low, np.where(low < high, high, low + np.maximum(1.0, np.abs(low))))
    return space


no_features = Builder(lambda _, settings: NoFeatures())
environment = Builder(
    _environment,
    {
        "feature_space": "learns from the environment's features, which sfr_fa.environments.adapters."
        "WithFeatures gives to one that has none"
    },
)
learned_features = Builder(_learned_features, {"feature_map": "learns from learned features"})

reward = CumulantBuilder(lambda features, settings: RewardCumulant(), family="Q")
phi = CumulantBuilder(
    lambda features, settings: FeatureCumulant(features.space),
    family="SF", from_indicator=lambda space: space.vectors,
)  # fmt: skip
indicator = CumulantBuilder(
    lambda features, settings: Indicator(features.space),
    family="SFR", from_indicator=lambda space: np.eye(space.size),
)  # fmt: skip
one_step_model = CumulantBuilder(
    _one_step_model, {"model_learning_rate": "learns a one-step feature model"}, ("model_rule",),
    family="MB SFR", from_indicator=lambda space: np.eye(space.size),
)  # fmt: skip
tent_code = CumulantBuilder(_tent_code, takes=("bins",), family="CSFR", space_of=smallest_box)
joint_code = CumulantBuilder(
    _joint_code,
    {"feature_code": "sums a code of all feature dimensions"}, family="SFR-K",
)  # fmt: skip

one = ReadoutBuilder(lambda cumulant, settings: OneForReward())
weights = ReadoutBuilder(_weights, takes=("weight_fit", "fit_points"))
at_features = ReadoutBuilder(lambda cumulant, settings: AtFeatures(cumulant.space), linear_only=False)
at_bins = ReadoutBuilder(
    lambda cumulant, settings: AtBins(cumulant, _ridge_fit(cumulant, settings)), takes=("fit_points", "ridge")
)
fitted = ReadoutBuilder(_ridge_fit, takes=("fit_points", "ridge"))


def given(read: ReadoutBuilder) -> ReadoutBuilder:
    """The reward function comes with the task."""
    return replace(read, build=lambda cumulant, settings: Given(read.build(cumulant, settings)))


def learned(read: ReadoutBuilder) -> ReadoutBuilder:
    """The reward function is learned online."""

    def build(cumulant: Any, settings: AgentSettings) -> ReadoutRule:
        known: KnownReward = read.build(cumulant, settings)
        model = settings.reward_model or LinearRewardModel
        return LearnedOnline(known, model, settings.reward_learning_rate or 0.0)

    needs = {**read.needs, "reward_learning_rate": "learns the reward function online"}
    return replace(read, build=build, needs=needs, takes=(*read.takes, "reward_model"))


# --- The agents -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class AgentSpec:
    """One row of the table: how each part of an agent is built, and what follows from that."""

    features: Builder
    cumulant: CumulantBuilder
    readout: ReadoutBuilder
    new_task: NewTask

    @property
    def needs(self) -> dict[str, str]:
        """Settings without which the agent cannot be built, with reasons."""
        return {**self.features.needs, **self.cumulant.needs, **self.readout.needs}

    @property
    def uses(self) -> set[str]:
        """Settings that make a difference to the agent."""
        return {*self.needs, *self.features.takes, *self.cumulant.takes, *self.readout.takes}

    @property
    def family(self) -> str:
        return self.cumulant.family

    @property
    def rates(self) -> tuple[str, ...]:
        """The learning rates that it has."""
        return tuple(rate for rate in RATES if rate == "learning_rate" or rate in self.uses)

    @property
    def learns_features(self) -> bool:
        """Whether its features are learned beforehand, from the transitions of another agent."""
        return "feature_map" in self.uses

    @property
    def learns_rewards(self) -> bool:
        return "reward_learning_rate" in self.uses

    @property
    def fits_rewards(self) -> bool:
        """Whether it fits weights to given rewards; in a box, on features that occur there."""
        return "fit_points" in self.uses and not self.learns_rewards


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
    "CSFR-F":   AgentSpec(environment,      tent_code,      given(fitted),        copy_previous),
    "SFR-K":    AgentSpec(environment,      joint_code,     given(fitted),        copy_previous),
    "SFR-K-R":  AgentSpec(environment,      joint_code,     learned(fitted),      copy_previous),
}  # fmt: skip


def agent_spec(agent: Any) -> AgentSpec:
    """The row of a name, one of yours by "module:ROW", or a row itself."""
    found = agent
    if isinstance(agent, str):
        module, colon, row = agent.partition(":")
        try:
            found = getattr(importlib.import_module(module), row) if colon else AGENT_SPECS[agent]
        except KeyError:
            raise InputError(
                f"there is no agent {agent!r}; the agents are {', '.join(AGENT_SPECS)}, or module:ROW"
            ) from None
        except (ImportError, AttributeError, ValueError, TypeError) as error:  # an empty or relative name
            raise InputError(f"there is no agent {agent!r}: {error}") from None
    if not isinstance(found, AgentSpec):
        raise InputError(f"agent is {agent!r}; it must be a name ({', '.join(AGENT_SPECS)}) or an AgentSpec")
    return found


def make_agent(
    agent: str | AgentSpec,
    state_dim: int,
    num_actions: int,
    feature_space: FeatureSpace | None = None,
    *,
    seed: int | Streams = 0,
    **settings: Any,
) -> GpiAgent:
    """An agent of the paper by its name in AGENT_SPECS, or any other AgentSpec.

    `settings` are those of `sfr_fa.agents.AgentSettings` (gamma, epsilon, learning_rate, ...); one that this
    agent has no use for is refused.
    """
    spec = agent_spec(agent)
    name = agent if isinstance(agent, str) else "this agent"
    unknown = set(settings) - {entry.name for entry in fields(AgentSettings)}
    if unknown:
        raise TypeError(
            f"make_agent has no setting {', '.join(sorted(unknown))}; see sfr_fa.agents.AgentSettings"
        )
    if isinstance(feature_space, (DiscreteFeatures, BoxFeatures)):
        feature_space = spec.cumulant.space_of(feature_space)
    told = AgentSettings(
        state_dim=state_dim,
        num_actions=num_actions,
        feature_space=feature_space,
        streams=Streams.spawn(seed),
        **settings,
    )
    for setting, why in spec.needs.items():
        if getattr(told, setting) is None:
            raise InputError(f"{name} {why}: it needs {setting}")
    unused = [s for s in FOR_SOME_AGENTS if getattr(told, s) is not None and s not in spec.uses]
    if unused:
        raise InputError(f"{name} has no use for {', '.join(unused)}; leave it out")
    features = spec.features.build(None, told)
    cumulant = spec.cumulant.build(features, told)
    readout = spec.readout.build(cumulant, told)
    return GpiAgent(told, feature_map=features, cumulant=cumulant, readout=readout, new_task=spec.new_task)
