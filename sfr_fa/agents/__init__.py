"""Agents that learn sequences of tasks and transfer by generalised policy improvement."""

from sfr_fa.agents.approximators import (
    Approximator,
    FeatureSubnetworks,
    LinearPerAction,
    SharedNetwork,
    ValueShape,
)
from sfr_fa.agents.cumulants import delta_rule, squares
from sfr_fa.agents.errors import DivergedError
from sfr_fa.agents.features import LearnedFeatures
from sfr_fa.agents.gpi_agent import GpiAgent
from sfr_fa.agents.hysteresis import Hysteresis
from sfr_fa.agents.readouts import FitWarning, LinearRewardModel, MlpRewardModel, RidgeFit
from sfr_fa.agents.replay import Replay
from sfr_fa.agents.settings import (
    AgentSettings,
    clip_at_zero,
    no_clip,
    squares_averaged_over_dimensions,
    summed_squares,
)
from sfr_fa.agents.specs import AGENT_SPECS, AgentSpec, agent_spec, make_agent
from sfr_fa.agents.transition import Transition

__all__ = [
    "AGENT_SPECS",
    "AgentSettings",
    "AgentSpec",
    "Approximator",
    "DivergedError",
    "FeatureSubnetworks",
    "FitWarning",
    "GpiAgent",
    "Hysteresis",
    "LearnedFeatures",
    "LinearPerAction",
    "LinearRewardModel",
    "MlpRewardModel",
    "Replay",
    "RidgeFit",
    "SharedNetwork",
    "Transition",
    "ValueShape",
    "agent_spec",
    "clip_at_zero",
    "delta_rule",
    "make_agent",
    "no_clip",
    "squares",
    "squares_averaged_over_dimensions",
    "summed_squares",
]
