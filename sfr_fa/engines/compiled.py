"""The compiled engine: many steps in one call of the loop, in any world, for agents of known parts."""

from __future__ import annotations

import copy
import re
from typing import Any

import gymnasium
import numpy as np
from numba.core.errors import NumbaError
from numpy.typing import NDArray

from sfr_fa.agents import GpiAgent
from sfr_fa.agents.transition import check_size
from sfr_fa.engines import packing
from sfr_fa.engines.base import Engine, EpisodeLimit, Evaluation, SeenPath, Trip, Walk
from sfr_fa.engines.reference import evaluated
from sfr_fa.engines.support import why_not_compiled
from sfr_fa.environments.world_env import WorldEnv, shown_features
from sfr_fa.feature_spaces import FeatureSpace
from sfr_fa.kernels import Loop, has_changed, loop, loop_for
from sfr_fa.kernels.evaluation import Episodes, run_episodes
from sfr_fa.kernels.retrace import retrace
from sfr_fa.streams import Streams
from sfr_fa.tasks import Task, check_task
from sfr_theory.errors import InputError


class CompiledEngine(Engine):
    """Runs `sfr_fa.kernels.loop.run_task` on an agent's weights, in a copy of the environment's world."""

    name = "compiled"
    _steps_of_episode: int
    """Of the episode in progress; 0 if the next step begins one."""
    _last: Any
    """The values that have learned last; none if that was interrupted."""

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
        world = type(unwrapped.world)
        if has_changed(world):
            raise InputError(
                f"what {world.__name__} names has changed since it was compiled; start Python again, or make "
                f"what changes a field of the world"
            )
        self.world, self.space = copy.deepcopy(unwrapped.world), unwrapped.feature_space
        self.family = packing.family_of(agent, unwrapped.coded_blocks() if gpi_filter else ())
        limits = [steps for steps in (unwrapped.episode_steps, limit.steps) if steps is not None]
        self.episodes = loop.Limit(min(limits, default=0), bool(self.limit.is_terminal))
        self._last: Any = None

    def _check(self, task: Task) -> None:
        packing.pack_rewards(task, self.space, self.family.feature_dtype)

    def _check_scored(self, task: Task) -> None:
        check_task(task, self.space)

    def _walk(self, steps: int, total_reward: float) -> Walk:
        agent, family, K = self.agent, self.family, len(self.agent.participants)
        assert self.task is not None
        before = loop.Before(agent.steps_of_task, self._steps_of_episode, total_reward)
        # What fails on the way leaves the world somewhere: the next step begins an episode then.
        self._forget_episode()
        rewards = packing.pack_rewards(self.task, self.space, family.feature_dtype)
        before_it, self._last = self._last, None
        values: Any = family.pack(
            agent.participants,
            packing.readouts_of(agent, agent.participants),
            steps,
            before_it,
        )
        cumulant = packing.pack_cumulant(agent, self.space, family)
        reward_model = packing.pack_reward_model(agent, values.readouts[-1], family.reward_dtype)
        record = loop.Record(np.zeros(steps, np.int64), np.zeros(K, np.int64))
        room = packing.new_room(agent, self.space, family, len(cumulant.H_now))
        after, episodes, ending = self._run(
            loop_for(self.world.__class__),
            self.world,
            rewards,
            values,
            cumulant,
            reward_model,
            agent.numpy_dtype.type(agent.gamma),
            packing.pack_rates(agent, steps),
            self.episodes,
            before,
            record,
            room,
            agent.state_dim,
            agent.num_actions,
            self.streams.environment,
            self.streams.exploration,
        )
        _refuse_what_is_wrong(self.world, self.space, ending, room.state, room.next_state)
        # Those that GPI has chosen, and the policy of the task, which learns at every step.
        family.unpack(values, np.unique([*np.flatnonzero(record.gpi_counts), K - 1]))
        self._last = values
        packing.unpack_cumulant(cumulant, agent)
        packing.unpack_reward_model(reward_model, agent)
        made, self._steps_of_episode = after.steps - before.steps, after.steps_of_episode
        agent.count_steps(made, record.gpi_counts, diverged=ending == loop.DIVERGED)
        return Walk(after.total_reward, episodes, record.actions[:made], diverged=ending == loop.DIVERGED)

    def _forget_episode(self) -> None:
        self._steps_of_episode = 0

    def _retrace(self, task: Task, actions: NDArray[np.int64], noise: np.random.Generator) -> SeenPath:
        """In a copy of the engine's world."""
        world, space, T, S = copy.deepcopy(self.world), self.space, len(actions), self.agent.state_dim
        path = SeenPath(np.zeros((T, S), np.float32), np.zeros((T, S), np.float32), np.zeros(T))
        state, phi = np.zeros(S), np.zeros(space.dimensions)
        rewards = packing.pack_rewards(task, space, phi.dtype)
        ending = self._run(
            loop_for(world.__class__, retrace),
            world, rewards, actions, self.episodes.steps, *path, state, phi, noise,
        )  # fmt: skip
        _refuse_what_is_wrong(world, space, ending, state)
        return path

    def _evaluate(self, trip: Trip) -> Evaluation:
        agent, family, policies = self.agent, self.family, trip.contest.policies
        reason = why_not_compiled(trip.environment, agent)
        if reason is not None:
            raise InputError(f"the compiled engine cannot evaluate in this environment: {reason}")
        environment = trip.environment.unwrapped
        assert isinstance(environment, WorldEnv)
        if not packing.compiles(trip.task, environment.feature_space):
            return evaluated(agent, trip)  # the same path, step by step
        world, space, E, K = environment.world, environment.feature_space, trip.episodes, len(policies)
        readouts = np.tile(trip.contest.readout.numpy(), (K, 1))
        episodes = Episodes(
            np.zeros(E), np.zeros(E), np.zeros(E, np.int64), np.zeros(E, np.int64), np.zeros(K, np.int64)
        )
        state = np.zeros(family.state_width, family.feature_dtype)
        ending = self._run(
            loop_for(world.__class__, run_episodes),
            world,
            packing.pack_rewards(trip.task, space, family.feature_dtype),
            family.pack(policies, readouts, 0),
            episodes,
            agent.gamma,
            trip.epsilon,
            min(trip.episode_steps, environment.episode_steps or trip.episode_steps),
            state,
            np.zeros(space.dimensions, family.feature_dtype),
            agent.state_dim,
            agent.num_actions,
            trip.noise,
            trip.exploration,
        )
        _refuse_what_is_wrong(world, space, ending, state)
        shares = np.zeros(agent.num_policies)
        shares[policies] = episodes.gpi_counts / episodes.lengths.sum()
        returns, discounted, lengths, ended, _ = episodes
        return Evaluation(returns, discounted, lengths, ended.astype(np.bool_), shares)

    def _run(self, compiled: Loop, world: Any, *arguments: Any) -> Any:
        """A loop; what a world does wrong is refused, and the agent keeps the weights that it had."""
        name = type(world).__name__
        try:
            return compiled((world, *arguments))
        except IndexError:
            raise InputError(
                f'{name} has used an index outside one of its arrays; the engine "reference" shows where'
            ) from None
        except ZeroDivisionError:
            raise InputError(
                f'{name} has divided by zero; the engine "reference" shows where, with '
                f'numpy.seterr(all="raise")'
            ) from None
        except NumbaError as error:
            raise InputError(f"{name} cannot be compiled: {_reason(str(error))}") from error


def _refuse_what_is_wrong(world: Any, space: FeatureSpace, ending: int, *states: Any) -> None:
    """A loop does not finish because of the world, or because learning diverges."""
    if ending == loop.FINISHED:
        return
    for state in states:
        check_size(state, np.finfo(state.dtype).max, f"the state that {type(world).__name__} has encoded")
    if ending == loop.OUTSIDE:
        # Numbers that are none of a feature space get a sentence of their own.
        space.check(shown_features(world, space))
        raise InputError(
            f"{type(world).__name__} has shown features outside of the feature space, and others when it was "
            f"asked for those of the same step again"
        )


def _reason(message: str) -> str:
    """What Numba says last, and of which line: the innermost of many. Its colours are left out."""
    message = re.sub(r"\x1b\[[\d;]*m", "", message)
    places = re.findall(r"During: typing of .* at (.*) \((\d+)\)", message)
    reasons = (
        re.findall(r"(?:Unknown attribute|Cannot unify) .+", message)
        or re.findall(r"\w*Error: (?!Failed in nopython mode)(.+)", message)
        or message.strip().splitlines()
    )
    path, line = places[0] if places else ("its source", "?")
    return f"{path}, line {line}: {reasons[-1]}"
