"""Several environments at once: a Gymnasium vector environment in the reference engine.

All N environments have the same task. A step of the vector environment is N steps of the agent: it acts at
the N states in one pass over all stored policies, and then learns from the N transitions, one after the
other. With `replay=Replay(batch=B, every=N)` that is one minibatch per step of the vector environment.

Environments that end an episode are reset by the vector environment, in its next step (Gymnasium's default);
that step does not count as one of the agent's. Noise is the environments' own: a task begins with
`reset(seed=...)`, drawn from the stream of the environment, so that `AsyncVectorEnv` gives what
`SyncVectorEnv` gives.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from multiprocessing.reduction import ForkingPickler
from typing import Any

import gymnasium
import numpy as np
from gymnasium.vector import AsyncVectorEnv, AutoresetMode, VectorEnv
from numpy.typing import NDArray

from sfr_fa.agents import DivergedError, GpiAgent, Transition
from sfr_fa.engines.base import EpisodeLimit, SeenPath, Walk
from sfr_fa.engines.reference import USED, ReferenceEngine, checked_start, warn_of_another_reward
from sfr_fa.streams import Streams
from sfr_fa.tasks import Task
from sfr_theory.errors import InputError, in_short

_LAST_USER: weakref.WeakKeyDictionary[Any, weakref.ref[Any]] = weakref.WeakKeyDictionary()
"""Which engine has stepped a vector environment: it holds one task for all who use it."""


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

    def _retrace(self, task: Task, actions: NDArray[np.int64], noise: np.random.Generator) -> SeenPath:
        raise InputError("paths are retraced in one environment; make an engine with one of them")

    def _check(self, task: Task) -> None:
        super()._check(task)
        if isinstance(self.environment.unwrapped, AsyncVectorEnv):
            try:
                ForkingPickler.dumps(task)
            except Exception as error:
                raise InputError(
                    f"AsyncVectorEnv sends tasks to other processes, and this one cannot be sent ({error}); "
                    f"use SyncVectorEnv, a task that is data (LinearTask, ...) or a function of a module"
                ) from error

    def _forget_episode(self) -> None:
        self._states, self._pending = None, []

    def _copied_environment(self) -> gymnasium.Env[Any, Any]:
        raise InputError("evaluate needs a single environment: evaluate(task, environment=env)")

    def _walk(self, steps: int, total_reward: float) -> Walk:
        episodes, actions = 0, np.zeros(steps, dtype=np.int64)
        for t in range(steps):
            try:
                while not self._pending:
                    episodes += self._step_all()
                step, source_policy = self._pending.pop(0)
                actions[t] = step.action
                total_reward += step.reward
                first = self.agent.steps_of_task == 0
                self.agent.learn(step, source_policy)
                if first and self.task is not None:
                    warn_of_another_reward(self.task, step.features, step.reward)
            except DivergedError:
                return Walk(total_reward, episodes, actions[: t + 1], diverged=True)
            except BaseException:
                # What fails leaves the environments somewhere: the next step begins episodes.
                self._forget_episode()
                raise
        return Walk(total_reward, episodes, actions, diverged=False)

    def _step_all(self) -> int:
        """One step of the vector environment, to be learned from; how many episodes it began."""
        begun = 0
        user = _LAST_USER.get(self.environment)
        if self._states is not None and (user is None or user() is not self):
            raise InputError(USED)
        _LAST_USER[self.environment] = weakref.ref(self)
        if self._states is None:
            seed = int(self.streams.environment.integers(2**31))
            start = checked_start(self.environment.reset(seed=seed, options={"task": self.task}))
            self._states = _of_each("observations", start, self.environment.num_envs, STATES)
            self._over = np.zeros(self.environment.num_envs, dtype=bool)
            begun = self.environment.num_envs
        states, running = self._states, np.flatnonzero(~self._over)
        actions = np.zeros(self.environment.num_envs, dtype=np.int64)
        actions[running], sources = self.agent.act_at(states[running])
        self._states, rewards, terminated, truncated, features = checked_steps(
            self.environment.step(actions), self.environment.num_envs
        )
        cut = terminated | (truncated if self.limit.is_terminal else False)
        for n, source_policy in zip(running.tolist(), sources, strict=True):
            step = Transition(
                states[n], int(actions[n]), float(rewards[n]), features[n], self._states[n], bool(cut[n])
            )
            self._pending.append((step, int(source_policy)))
        begun += int(self._over.sum())
        self._over = terminated | truncated
        return begun


STATES, NUMBERS, FLAGS = "states", "numbers", "True or False"


def checked_steps(
    answer: Any, count: int
) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_], NDArray[np.bool_], list[Any]]:
    """What `step` of `count` environments returned, with features (or None) in place of info.

    The agent checks single states and features.
    """
    if not isinstance(answer, tuple) or len(answer) != 5:
        raise InputError(
            f"the vector environment's step returned {in_short(answer)}; it must return "
            f"(observations, rewards, terminated, truncated, info)"
        )
    states, rewards, terminated, truncated, info = answer
    if not isinstance(info, Mapping):
        raise InputError(f"the vector environment's info is {in_short(info)}; it must be a dictionary")
    features: Any = info.get("features")
    features = [None] * count if features is None else features
    if not (isinstance(features, (list, tuple)) or np.ndim(features)) or len(features) != count:
        raise InputError(
            f'the vector environment\'s info["features"] is {in_short(features)}; it must be {count} of '
            f"them, one for each environment"
        )
    # Gymnasium fills in zeros for members that report none, and says so here.
    given = _of_each('info["_features"]', info.get("_features", [True] * count), count, FLAGS)
    return (
        _of_each("observations", states, count, STATES),
        _of_each("rewards", rewards, count, NUMBERS),
        _of_each("terminated", terminated, count, FLAGS).astype(bool),
        _of_each("truncated", truncated, count, FLAGS).astype(bool),
        [features[n] if given[n] else None for n in range(count)],
    )


def _of_each(name: str, values: Any, count: int, kind: str) -> NDArray[Any]:
    """A copy of the values, one for each environment: the next step may write over them."""
    try:
        found = np.array(values)
    except (TypeError, ValueError):  # of different lengths
        found = np.array(None)
    is_fine = found.shape[:1] == (count,) and found.dtype.kind in "fiub"
    if is_fine and kind is not STATES:
        is_fine = found.ndim == 1 and (kind is NUMBERS or bool(np.isin(found, (0, 1)).all()))
    if not is_fine:
        raise InputError(
            f"the vector environment's {name} are {in_short(values)}; they must be {count} {kind}, one for "
            f"each environment"
        )
    return found
