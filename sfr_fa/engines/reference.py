"""The reference engine: any Gymnasium environment whose info has features, any agent, step by step.

The environment is told its task by `reset(options={"task": task})`. One that does not listen rewards by
another function than the agent is told, which the first step of a task shows.
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np

from sfr_fa.agents import DivergedError, Transition
from sfr_fa.agents.gpi_agent import explored
from sfr_fa.engines.base import Engine, Evaluation, Trip, Walk
from sfr_fa.tasks import Task, check_task, rewards_of
from sfr_theory.errors import InputError


class ReferenceEngine(Engine):
    """Loops over `env.step`, `agent.act` and `agent.learn`."""

    name = "reference"

    def _check(self, task: Task) -> None:
        if self.environment.has_wrapper_attr("feature_space"):
            check_task(task, self.environment.get_wrapper_attr("feature_space"))

    def _walk(self, task: Task, steps: int) -> Walk:
        environment, agent = self.environment, self.agent
        environment.unwrapped.np_random = self.streams.environment
        state, _ = environment.reset(options={"task": task})
        total_reward, episodes, steps_of_episode = 0.0, 1, 0
        actions: list[int] = []
        for _ in range(steps):
            try:
                action = agent.act(state)
                actions.append(action)
                next_state, reward, terminated, truncated, info = environment.step(action)
                steps_of_episode += 1
                truncated = truncated or steps_of_episode == self.limit.steps
                terminal = terminated or (truncated and self.limit.is_terminal)
                features = info.get("features")
                total_reward += float(reward)
                agent.learn(Transition(state, action, float(reward), features, next_state, bool(terminal)))
                if len(actions) == 1:
                    _warn_of_another_reward(task, features, float(reward))
            except DivergedError:
                return Walk(total_reward, episodes, np.array(actions, dtype=np.int64), diverged=True)
            state = next_state
            if (terminated or truncated) and len(actions) < steps:
                state, _ = environment.reset()
                episodes, steps_of_episode = episodes + 1, 0
        return Walk(total_reward, episodes, np.array(actions, dtype=np.int64), diverged=False)

    def _evaluate(self, trip: Trip) -> Evaluation:
        environment, agent = trip.environment, self.agent
        E, counts = trip.episodes, np.zeros(agent.num_policies, np.int64)
        returns, discounted, lengths = np.zeros(E), np.zeros(E), np.zeros(E, np.int64)
        ended = np.zeros(E, np.bool_)
        # A seed for whatever else is random in the environment; its own generator is that of both engines.
        environment.reset(seed=trip.seed)
        environment.unwrapped.np_random = trip.noise
        for e in range(E):
            state, _ = environment.reset(options={"task": trip.task})
            weight, truncated = 1.0, False
            while not (ended[e] or truncated):
                policy, action = agent.choose(state, trip.contest)
                counts[policy] += 1
                action = explored(action, trip.epsilon, agent.num_actions, trip.exploration)
                state, reward, ended[e], truncated, info = environment.step(action)
                if not lengths.any():
                    _warn_of_another_reward(trip.task, info.get("features"), float(reward))
                returns[e] += float(reward)
                discounted[e] += weight * float(reward)
                lengths[e] += 1
                weight *= agent.gamma
                truncated = truncated or lengths[e] == trip.episode_steps
        return Evaluation(returns, discounted, lengths, ended, counts / counts.sum())


def _warn_of_another_reward(task: Task, features: Any, reward: float) -> None:
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
