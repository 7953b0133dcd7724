"""Engines by name."""

from __future__ import annotations

import warnings
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from sfr_fa.agents import AgentSpec, GpiAgent, make_agent
from sfr_fa.engines.base import Engine, EpisodeLimit, spaces_of
from sfr_fa.engines.compiled import CompiledEngine
from sfr_fa.engines.reference import ReferenceEngine
from sfr_fa.engines.several import VectorEngine
from sfr_fa.engines.support import why_not_compiled
from sfr_fa.environments.feature_env import feature_space_of
from sfr_fa.streams import Streams
from sfr_theory.errors import InputError

ENGINES = ("compiled", "reference")


def make_engine(
    name: str,
    environment: gymnasium.Env[Any, Any] | VectorEnv,
    agent: str | AgentSpec | GpiAgent,
    *,
    seed: int | Streams = 0,
    limit: EpisodeLimit | None = None,
    gpi_filter: bool = True,
    **settings: Any,
) -> Engine:
    """An engine that runs an agent in an environment.

    name         "compiled" or "reference"; an agent that cannot be compiled runs in the reference, with a
                 warning
    environment  one environment, or a Gymnasium vector environment of several (sfr_fa.engines.several)
    agent        a name or AgentSpec, built here with `settings` (see `sfr_fa.agents.make_agent`), or an agent
                 that was built with the same `seed=Streams`
    seed         of all randomness, the same as for repetition 0 of a run with this seed; or Streams
    limit        of episodes, beyond the environment's own
    gpi_filter   whether the compiled engine skips policies that provably lose; it changes speed only
    """
    if name not in ENGINES:
        raise InputError(f"there is no engine {name!r}; the engines are {', '.join(ENGINES)}")
    if not isinstance(environment, gymnasium.Env | VectorEnv):
        raise InputError(f"environment is {environment!r}; it must be a Gymnasium environment")
    if not isinstance(agent, (str, AgentSpec, GpiAgent)):
        raise InputError(f"agent is {agent!r}; it must be a name, an AgentSpec or a GpiAgent")
    if not isinstance(limit, EpisodeLimit | None):
        raise InputError(f"limit is {limit!r}; pass EpisodeLimit({limit!r})")
    streams = Streams.spawn(seed)
    limit = limit or EpisodeLimit()
    if isinstance(agent, GpiAgent):
        if settings:
            raise InputError(f"the agent is built already; give {', '.join(settings)} to make_agent")
    else:
        agent = _build(agent, environment, streams, settings)
    if isinstance(environment, VectorEnv):
        if name == "compiled":
            warnings.warn("the reference engine runs several environments at once", stacklevel=2)
        return VectorEngine(environment, agent, streams, limit)
    if name == "compiled":
        reason = why_not_compiled(environment, agent)
        if reason is None:
            return CompiledEngine(environment, agent, streams, limit, gpi_filter=gpi_filter)
        warnings.warn(f"the reference engine runs this agent: {reason}", stacklevel=2)
    return ReferenceEngine(environment, agent, streams, limit)


def _build(
    agent: str | AgentSpec,
    environment: gymnasium.Env[Any, Any] | VectorEnv,
    streams: Streams,
    settings: dict[str, Any],
) -> GpiAgent:
    observations, actions = spaces_of(environment)
    settings.setdefault("feature_space", feature_space_of(environment))
    if not isinstance(observations, gymnasium.spaces.Box) or len(observations.shape) != 1:
        raise InputError(
            "agents need observations that are vectors; wrap the environment in FlattenObservation"
        )
    if not isinstance(actions, gymnasium.spaces.Discrete):
        raise InputError(f"agents choose among finitely many actions; this environment has {actions}")
    return make_agent(agent, observations.shape[0], int(actions.n), seed=streams, **settings)
