"""The compiled engine: a whole task in one call of a kernel, for agents and environments that have one.

A *compiled task* knows one environment. It says in a sentence what it cannot run, and otherwise moves the
agent's weights through its kernel. `COMPILED_TASKS` lists them; another environment is another entry.
"""

from __future__ import annotations

from typing import Any, Protocol

import gymnasium

from sfr_fa.agents import GpiAgent
from sfr_fa.engines.base import Engine, EpisodeLimit, Walk
from sfr_fa.engines.object_collection import CompiledObjectCollection
from sfr_fa.engines.racer import CompiledRacer
from sfr_fa.streams import Streams
from sfr_fa.tasks import Task


class CompiledTask(Protocol):
    """How an agent learns a task of one environment in compiled code."""

    @staticmethod
    def obstacle(environment: gymnasium.Env[Any, Any], agent: GpiAgent) -> str | None:
        """Why this agent cannot be run here, or None."""

    @staticmethod
    def knows(environment: gymnasium.Env[Any, Any]) -> bool:
        """Whether this is the environment."""

    def __init__(
        self,
        environment: gymnasium.Env[Any, Any],
        agent: GpiAgent,
        streams: Streams,
        limit: EpisodeLimit,
        **options: Any,
    ) -> None: ...

    def check(self, task: Task) -> None:
        """Refuse a task that compiled code cannot run."""

    def walk(self, task: Task, steps: int) -> Walk:
        """Run a task that the agent has just started; leaves weights and counts in the agent."""


COMPILED_TASKS: tuple[type[CompiledTask], ...] = (CompiledObjectCollection, CompiledRacer)


def compiled_task_for(environment: gymnasium.Env[Any, Any]) -> type[CompiledTask] | None:
    """The compiled task that knows this environment, if there is one."""
    return next((kind for kind in COMPILED_TASKS if kind.knows(environment)), None)


def obstacle(environment: gymnasium.Env[Any, Any], agent: GpiAgent) -> str | None:
    """Why the compiled engine cannot run this agent here, or None."""
    kind = compiled_task_for(environment)
    if kind is None:
        return f"{type(environment.unwrapped).__name__} has no compiled version"
    return kind.obstacle(environment, agent)


class CompiledEngine(Engine):
    """Runs a task in one call; see `sfr_fa.kernels`."""

    name = "compiled"

    def __init__(
        self,
        environment: gymnasium.Env[Any, Any],
        agent: GpiAgent,
        streams: Streams,
        limit: EpisodeLimit,
        **options: Any,
    ) -> None:
        super().__init__(environment, agent, streams, limit)
        kind = compiled_task_for(environment)
        assert kind is not None
        self._task = kind(environment, agent, streams, limit, **options)

    def _check(self, task: Task) -> None:
        self._task.check(task)

    def _walk(self, task: Task, steps: int) -> Walk:
        return self._task.walk(task, steps)
