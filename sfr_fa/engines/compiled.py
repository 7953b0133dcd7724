"""The compiled engine: a whole task in one call of the loop, in any world, for agents of parts it knows."""

from __future__ import annotations

import copy
import re
from typing import Any

import gymnasium
import numpy as np
from numba.core.errors import NumbaError

from sfr_fa.agents import GpiAgent
from sfr_fa.engines import packing
from sfr_fa.engines.base import Engine, EpisodeLimit, Walk
from sfr_fa.environments.world_env import WorldEnv, shown_features
from sfr_fa.kernels import loop, loop_for
from sfr_fa.kernels.gpi_filter import RANK
from sfr_fa.streams import Streams
from sfr_fa.tasks import Task
from sfr_theory.errors import InputError

FILTER_FROM = 8
"""With fewer stored policies full GPI is faster than the filter."""


class CompiledEngine(Engine):
    """Runs `sfr_fa.kernels.loop.run_task` on an agent's weights, in a copy of the environment's world."""

    name = "compiled"

    def __init__(
        self,
        environment: gymnasium.Env[Any, Any],
        agent: GpiAgent,
        streams: Streams,
        limit: EpisodeLimit,
        *,
        gpi_filter: bool,
    ) -> None:
        super().__init__(environment, agent, streams, limit)
        unwrapped = environment.unwrapped
        assert isinstance(unwrapped, WorldEnv)
        self.world, self.space = copy.deepcopy(unwrapped.world), unwrapped.feature_space
        self.family = packing.family_of(agent)
        limits = [steps for steps in (unwrapped.episode_steps, limit.steps) if steps is not None]
        self.episodes = loop.Limit(min(limits, default=0), limit.is_terminal)
        bases = unwrapped.cell_bases() if gpi_filter else None
        self.bases = np.zeros((0, RANK, agent.state_dim)) if bases is None else bases

    def _check(self, task: Task) -> None:
        packing.pack_rewards(task, self.space, self.family.feature_dtype)

    def _walk(self, task: Task, steps: int) -> Walk:
        agent, family, K = self.agent, self.family, len(self.agent.participants)
        rewards = packing.pack_rewards(task, self.space, family.feature_dtype)
        values: Any = family.pack(steps, self.bases if K >= FILTER_FROM else self.bases[:0])
        cumulant = packing.pack_cumulant(agent, self.space, family)
        reward_model = packing.pack_reward_model(agent, values.readouts[-1], family.reward_dtype)
        record = loop.Record(np.zeros(steps, np.int64), np.zeros(K, np.int64))
        total, episodes, made, ending = self._run(
            rewards,
            values,
            cumulant,
            reward_model,
            packing.pack_rates(agent),
            self.episodes,
            record,
            packing.new_room(agent, self.space, family, len(cumulant.H_now)),
            agent.state_dim,
            agent.num_actions,
            self.streams.environment,
            self.streams.exploration,
        )
        family.unpack(values)
        packing.unpack_cumulant(cumulant, agent)
        packing.unpack_reward_model(reward_model, agent)
        agent.take_over(made, record.gpi_counts, diverged=ending == loop.DIVERGED)
        return Walk(total, episodes, record.actions[:made], diverged=ending == loop.DIVERGED)

    def _run(self, *arguments: Any) -> tuple[float, int, int, int]:
        """The loop; what a world does wrong is refused, and the agent keeps the weights that it had."""
        name = type(self.world).__name__
        try:
            outcome = loop_for(self.world.__class__)(self.world, *arguments)
        except IndexError:
            raise InputError(
                f'{name} has used an index outside one of its arrays; the engine "reference" shows where'
            ) from None
        except NumbaError as error:
            raise InputError(f"{name} cannot be compiled: {_reason(str(error))}") from error
        if outcome[3] == loop.OUTSIDE:
            # Numbers that are none of a feature space get a sentence of their own.
            self.space.check(shown_features(self.world, self.space))
        return outcome


def _reason(message: str) -> str:
    """What Numba says last, and of which line: the innermost of many."""
    places = re.findall(r"During: typing of .* at (.*) \((\d+)\)", message)
    reasons = re.findall(r"\w*Error: (.+)", message) or message.strip().splitlines()
    path, line = places[0] if places else ("its source", "?")
    return f"{path}, line {line}: {reasons[-1]}"
