"""The reference engine: any Gymnasium environment whose info has features, any agent, step by step."""

from __future__ import annotations

import numpy as np

from sfr_fa.agents import DivergedError, Transition
from sfr_fa.engines.base import Engine, Walk
from sfr_fa.tasks import Task


class ReferenceEngine(Engine):
    """Loops over `env.step`, `agent.act` and `agent.learn`."""

    name = "reference"

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
            except DivergedError:
                return Walk(total_reward, episodes, np.array(actions, dtype=np.int64), diverged=True)
            state = next_state
            if (terminated or truncated) and len(actions) < steps:
                state, _ = environment.reset()
                episodes, steps_of_episode = episodes + 1, 0
        return Walk(total_reward, episodes, np.array(actions, dtype=np.int64), diverged=False)
