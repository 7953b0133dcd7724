"""What every environment with features shares: a task that can change, and the info of a step.

A step returns the scalar reward R(phi) of the current task, and in `info`

    features        phi(s, a, s'), a fresh float64 vector
    feature_index   its row in `feature_space.vectors`, if the features are discrete.

The task is given to the constructor, to `set_task`, or to `reset(options={"task": task})`; it holds until
the next one is given. Changing it changes rewards only, never the path of the agent. A vectorised function of
features will do for a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np

from sfr_fa.arrays import FloatArray
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures, FeatureSpace
from sfr_fa.tasks import Task, TaskOrFunction, check_task, rewards_of
from sfr_theory.errors import InputError


class TaskRewards:
    """The reward of features under a task that can be exchanged."""

    task: Task
    _table: tuple[FloatArray, FloatArray]
    """Feature vectors and their rewards, if features are discrete."""

    def __init__(self, feature_space: FeatureSpace, task: TaskOrFunction) -> None:
        if not isinstance(feature_space, (DiscreteFeatures, BoxFeatures)):
            raise InputError(
                f"feature_space is {feature_space!r}; it must be DiscreteFeatures or BoxFeatures"
            )
        self.feature_space = feature_space
        self.set_task(task)

    def set_task(self, task: TaskOrFunction) -> None:
        """Reward by `task` from now on; the old one stays if the new one does not fit the features."""
        self.task = check_task(task, self.feature_space)
        if isinstance(self.feature_space, DiscreteFeatures):
            vectors = self.feature_space.vectors
            self._table = vectors, rewards_of(self.task, vectors)

    def of_index(self, index: int) -> tuple[float, dict[str, Any]]:
        """Reward and info of a discrete feature that is known by its index."""
        vectors, rewards = self._table
        return float(rewards[index]), {"features": vectors[index].copy(), "feature_index": index}

    def of_features(self, features: Any) -> tuple[float, dict[str, Any]]:
        """Reward and info of a feature vector."""
        if isinstance(self.feature_space, DiscreteFeatures):
            return self.of_index(self.feature_space.index_of(features))
        values = self.feature_space.check(features).copy()
        return float(rewards_of(self.task, values)), {"features": values}


def take_task(options: Mapping[str, Any] | None) -> tuple[TaskOrFunction | None, dict[str, Any]]:
    """The task in the options of a reset, and the other options."""
    others = dict(options or {})
    return others.pop("task", None), others


class HasTask:
    """What our environments and the wrappers of others offer."""

    _rewards: TaskRewards

    @property
    def feature_space(self) -> FeatureSpace:
        """Where the features live."""
        return self._rewards.feature_space

    @property
    def task(self) -> Task:
        """The current reward function."""
        return self._rewards.task

    def set_task(self, task: TaskOrFunction) -> None:
        """Reward by `task` from now on."""
        self._rewards.set_task(task)


class FeatureEnv(HasTask, gymnasium.Env[FloatArray, np.int64]):
    """A Gymnasium environment whose scalar reward is a task's reward of features."""

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15}  # noqa: RUF012  Gymnasium's attribute

    def __init__(self, feature_space: FeatureSpace, task: TaskOrFunction, render_mode: str | None) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise InputError(f"render_mode is {render_mode!r}; it must be None or 'rgb_array'")
        self.render_mode = render_mode
        self._rewards = TaskRewards(feature_space, task)
        self._running = False

    def __getstate__(self) -> dict[str, Any]:
        """Everything but the picture, whose canvas cannot be copied and is drawn again when it is needed."""
        return {name: value for name, value in self.__dict__.items() if name != "_picture"}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[FloatArray, dict[str, Any]]:
        """Start an episode; `options={"task": task}` changes the task first."""
        task, others = take_task(options)
        if others:
            raise InputError(f"reset has no option {', '.join(map(repr, others))}; there is only 'task'")
        if task is not None:
            self.set_task(task)
        super().reset(seed=seed)
        self._running = True
        self._start_episode()
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """One step of the environment."""
        if not self._running:
            raise gymnasium.error.ResetNeeded("No episode is running; call reset before step.")
        if not self.action_space.contains(action):
            raise InputError(f"action is {action!r}; it must be an integer in {self.action_space}")
        reward, terminated, truncated, info = self._advance(int(action))
        self._running = not (terminated or truncated)
        return self._observation(), reward, terminated, truncated, info

    def _start_episode(self) -> None:
        """Place the agent; all randomness comes from `self.np_random`."""
        raise NotImplementedError

    def _advance(self, action: int) -> tuple[float, bool, bool, dict[str, Any]]:
        """Move the agent: reward, terminated, truncated, info."""
        raise NotImplementedError

    def _observation(self) -> FloatArray:
        """The state as the agent sees it, in a new array."""
        raise NotImplementedError
