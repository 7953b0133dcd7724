"""The reference engine: any Gymnasium environment whose info has features, any agent, step by step.

The environment is told its task by `reset(options={"task": task})`. One that does not listen rewards by a
different function than the agent was told, which the first step of a task shows.
"""

from __future__ import annotations

import copy
import math
import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sfr_fa.agents import DivergedError, GpiAgent, Transition
from sfr_fa.agents.gpi_agent import explored
from sfr_fa.engines.base import Engine, EpisodeLimit, Evaluation, SeenPath, Trip, Walk
from sfr_fa.environments.feature_env import feature_space_of
from sfr_fa.tasks import Task, check_task, rewards_of
from sfr_theory.errors import InputError, in_short

USED = "someone else has used the environment since; to continue a task, give each engine its own"


@dataclass
class _Episode:
    """An episode in progress."""

    state: Any
    """A copy: some environments write every observation into the same array."""
    steps: int = 0


class ReferenceEngine(Engine):
    """Loops over `env.step`, `agent.act` and `agent.learn`."""

    name = "reference"
    _episode: _Episode | None
    """The one in progress; None if the next step begins one."""

    def _check(self, task: Task) -> None:
        space = feature_space_of(self.environment)
        if space is not None:
            check_task(task, space)

    def _walk(self, steps: int, total_reward: float) -> Walk:
        environment, agent, task = self.environment, self.agent, self.task
        assert task is not None
        episodes, actions = 0, np.zeros(steps, dtype=np.int64)
        episode = self._current_episode()
        # What fails on the way leaves the environment somewhere: the next step begins an episode then.
        self._forget_episode()
        for t in range(steps):
            if episode is None:
                # The environment is told its task once, and keeps it.
                options = None
                if not self._told:
                    options = {"task": task}
                    seed_all(environment, self.streams.environment)
                episode = _Episode(copy.copy(checked_start(environment.reset(options=options))))
                self._told = True
                if environment.unwrapped.np_random is not self.streams.environment:
                    self._take_back_noise()
                episodes += 1
            try:
                actions[t] = action = agent.act(episode.state)
                next_state, reward, terminated, truncated, info = checked_step(environment.step(action))
                episode.steps += 1
                truncated = truncated or episode.steps == self.limit.steps
                terminal = bool(terminated or (truncated and self.limit.is_terminal))
                features = info.get("features")
                total_reward += reward
                first = agent.steps_of_task == 0
                agent.learn(Transition(episode.state, action, reward, features, next_state, terminal))
                if first:
                    warn_of_another_reward(task, features, reward)
            except DivergedError:
                return Walk(total_reward, episodes, actions[: t + 1], diverged=True)
            episode.state = copy.copy(next_state)
            if terminated or truncated:
                episode = None
        self._episode = episode
        return Walk(total_reward, episodes, actions, diverged=False)

    def _current_episode(self) -> _Episode | None:
        """The episode in progress, if the environment is still in it."""
        noise = self.streams.environment
        if self.environment.unwrapped.np_random is not noise:
            if self._episode is not None:
                raise InputError(USED)
            self._told = False
        self.environment.unwrapped.np_random = noise
        return self._episode

    def _take_back_noise(self) -> None:
        """A reset without a seed made a generator of its own: at least what follows can be repeated."""
        warnings.warn(
            "the environment's reset makes a new np_random, so that runs cannot be repeated; it should call "
            "super().reset(seed=seed) instead",
            stacklevel=2,
        )
        self.environment.unwrapped.np_random = self.streams.environment

    def _forget_episode(self) -> None:
        self._episode = None

    def _retrace(self, task: Task, actions: NDArray[np.int64], noise: np.random.Generator) -> SeenPath:
        """In the engine's environment; the episode in progress ends."""
        self._forget_episode()
        self._told = False
        return retraced(self.environment, task, actions, noise, self.limit)

    def _evaluate(self, trip: Trip) -> Evaluation:
        return evaluated(self.agent, trip)


def evaluated(agent: GpiAgent, trip: Trip) -> Evaluation:
    """Episodes in which nothing is learned."""
    environment = trip.environment
    E, counts = trip.episodes, np.zeros(agent.num_policies, np.int64)
    returns, discounted, lengths = np.zeros(E), np.zeros(E), np.zeros(E, np.int64)
    ended = np.zeros(E, np.bool_)
    # A seed for whatever else is random in the environment; its own generator is that of both engines.
    environment.reset(seed=trip.seed)
    environment.unwrapped.np_random = trip.noise
    for e in range(E):
        state = checked_start(environment.reset(options={"task": trip.task}))
        weight, truncated = 1.0, False
        while not (ended[e] or truncated):
            policy, action = agent.choose(state, trip.contest)
            counts[policy] += 1
            action = explored(action, trip.epsilon, agent.num_actions, trip.exploration)
            state, reward, ended[e], truncated, info = checked_step(environment.step(action))
            if not lengths.any():
                warn_of_another_reward(trip.task, info.get("features"), reward)
            returns[e] += reward
            discounted[e] += weight * reward
            lengths[e] += 1
            weight *= agent.gamma
            truncated = truncated or lengths[e] == trip.episode_steps
    return Evaluation(returns, discounted, lengths, ended, counts / counts.sum())


def retraced(
    environment: Any,
    task: Task,
    actions: NDArray[np.int64],
    noise: np.random.Generator,
    limit: EpisodeLimit,
) -> SeenPath:
    """States, next states and rewards on the path of given actions."""

    def copied(state: Any) -> NDArray[np.float32]:
        """Some environments write every observation into the same array."""
        return np.array(state, dtype=np.float32)

    seed_all(environment, noise)
    states: list[Any] = []
    next_states, rewards = [], []
    over, steps_of_episode = True, 0
    for action in actions:
        if over:
            state = copied(environment.reset(options=None if states else {"task": task})[0])
            steps_of_episode = 0
        states.append(state)
        observation, reward, terminated, truncated, _ = environment.step(int(action))
        steps_of_episode += 1
        state = copied(observation)
        next_states.append(state)
        rewards.append(float(reward))
        over = terminated or truncated or steps_of_episode == limit.steps
    return SeenPath(np.array(states), np.array(next_states), np.array(rewards))


def seed_all(environment: Any, noise: np.random.Generator) -> None:
    """Make what follows depend on `noise` alone, from which nothing is drawn here.

    An environment may have generators besides `np_random`, which follow the seed of a reset.
    """
    environment.reset(seed=int(copy.deepcopy(noise).integers(2**31)))
    environment.unwrapped.np_random = noise


def checked_step(answer: Any) -> tuple[Any, float, bool, bool, Mapping[str, Any]]:
    """What `env.step` returned, in plain types; the agent checks states and features."""
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise InputError(
            f"the environment's step returned {in_short(answer)}; it must return "
            f"(observation, reward, terminated, truncated, info)"
        )
    state, reward, terminated, truncated, info = answer
    if type(reward) is not float and not _is_number(reward):
        raise InputError(
            f"the environment's reward is {in_short(reward)}; it must be a number. For a vector of rewards "
            f"there is sfr_fa.environments.adapters.FeaturesFromVectorReward"
        )
    for name, value in (("terminated", terminated), ("truncated", truncated)):
        if not isinstance(value, (bool, np.bool_, int, np.integer)) or value not in (0, 1):
            raise InputError(f"the environment's {name} is {in_short(value)}; it must be True or False")
    if not isinstance(info, Mapping):
        raise InputError(f"the environment's info is {in_short(info)}; it must be a dictionary")
    return state, float(reward), bool(terminated), bool(truncated), info


def checked_start(answer: Any) -> Any:
    """The first state, of what `env.reset` returned."""
    if not isinstance(answer, tuple) or len(answer) != 2:
        raise InputError(
            f"the environment's reset returned {in_short(answer)}; it must return (observation, info)"
        )
    return answer[0]


def _is_number(value: Any) -> bool:
    number = np.asarray(value)
    return number.shape == () and number.dtype.kind in "fiub"


def warn_of_another_reward(task: Task, features: Any, reward: float) -> None:
    """Agents that use features have checked them; others (Q) take environments with any, or with none."""
    try:
        told = float(rewards_of(task, np.asarray(features, dtype=np.float64)))
    except (InputError, TypeError, ValueError, IndexError):
        return
    if not math.isclose(reward, told, rel_tol=1e-6, abs_tol=1e-9):
        warnings.warn(
            f"the environment rewards {reward:g} where the task says {told:g}; if it does not follow "
            'reset(options={"task": ...}), wrap it in sfr_fa.environments.adapters.WithFeatures',
            stacklevel=4,
        )
