"""Several environments at once: a Gymnasium vector environment in the reference engine.

All N environments have the same task. A step of the vector environment is N steps of the agent: it acts at
the N states by one pass over all stored policies, and then learns from the N transitions, one after the
other. With `replay=Replay(batch=B, every=N)` that is one minibatch per step of the vector environment.

Environments that end an episode are reset by the vector environment, in its next step (Gymnasium's default);
that step is none of the agent's. Noise is the environments' own: a task begins with `reset(seed=...)`, drawn
from the stream of the environment, so that `AsyncVectorEnv` gives what `SyncVectorEnv` gives.
"""

from __future__ import annotations

from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AutoresetMode, VectorEnv
from numpy.typing import NDArray

from sfr_fa.agents import DivergedError, GpiAgent, Transition
from sfr_fa.engines.base import EpisodeLimit, Walk
from sfr_fa.engines.reference import ReferenceEngine
from sfr_fa.streams import Streams
from sfr_fa.tasks import Task, check_task
from sfr_theory.errors import InputError


class VectorEngine(ReferenceEngine):
    """Loops over the steps of a vector environment; `steps` counts transitions, N at a time."""

    environment: Any
    _states: NDArray[Any] | None
    """Where the environments are; None if the next step begins episodes."""
    _over: NDArray[np.bool_]
    """Whose episode is over."""
    _pending: list[tuple[Transition, int]]
    """Transitions that were made and not yet learned from, each with its source policy."""

    def __init__(
        self, environment: VectorEnv, agent: GpiAgent, streams: Streams, limit: EpisodeLimit
    ) -> None:
        mode = environment.metadata.get("autoreset_mode")
        if mode is not AutoresetMode.NEXT_STEP:
            raise InputError(f"the vector environment has autoreset_mode {mode}; make it with NEXT_STEP")
        if limit.steps is not None:
            raise InputError(
                "limit has steps; several environments need limits of their own: "
                "gymnasium.wrappers.TimeLimit around each"
            )
        super().__init__(environment, agent, streams, limit)  # type: ignore[arg-type]

    def _check(self, task: Task) -> None:
        check_task(task, self.environment.get_attr("feature_space")[0])

    def _forget_episode(self) -> None:
        self._states, self._pending = None, []

    def _copied_environment(self) -> gymnasium.Env[Any, Any]:
        raise InputError("several environments cannot be evaluated in; pass evaluate(task, environment=one)")

    def _walk(self, steps: int, total_reward: float) -> Walk:
        episodes, actions = 0, np.zeros(steps, dtype=np.int64)
        for t in range(steps):
            try:
                while not self._pending:
                    episodes += self._step_all()
                step, source_policy = self._pending.pop(0)
                actions[t] = step.action
                total_reward += step.reward
                self.agent.learn(step, source_policy)
            except DivergedError:
                return Walk(total_reward, episodes, actions[: t + 1], diverged=True)
        return Walk(total_reward, episodes, actions, diverged=False)

    def _step_all(self) -> int:
        """One step of the vector environment, to be learned from; how many episodes it began."""
        begun = 0
        if self._states is None:
            seed = int(self.streams.environment.integers(2**31))
            self._states, _ = self.environment.reset(seed=seed, options={"task": self.task})
            self._over = np.zeros(self.environment.num_envs, dtype=bool)
            begun = self.environment.num_envs
        states, running = self._states, np.flatnonzero(~self._over)
        actions = np.zeros(self.environment.num_envs, dtype=np.int64)
        actions[running], sources = self.agent.act_at(states[running])
        self._states, rewards, terminated, truncated, info = self.environment.step(actions)
        cut = terminated | (truncated if self.limit.is_terminal else False)
        for n, source_policy in zip(running, sources, strict=True):
            features = info["features"][n] if "features" in info else None
            step = Transition(
                states[n], int(actions[n]), float(rewards[n]), features, self._states[n], bool(cut[n])
            )
            self._pending.append((step, int(source_policy)))
        begun += int(self._over.sum())
        self._over = terminated | truncated
        return begun
