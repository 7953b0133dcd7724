"""What every environment with features shares: a task that can change, and the info of a step.

A step returns the scalar reward R(phi) of the current task, and in `info`

    features        phi(s, a, s'), a fresh float64 vector
    feature_index   its row in `feature_space.vectors`, if the features are discrete.

The task is given to the constructor, to `set_task`, or to `reset(options={"task": task})`; it holds until
the next one is given. Changing it changes rewards only, never the path of the agent. A function of features
will do as a task.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
from gymnasium.vector import VectorEnv

from sfr_fa.arrays import FloatArray
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures, FeatureSpace
from sfr_fa.tasks import Task, TaskOrFunction, check_task, rewards_of
from sfr_theory.errors import InputError


def take_task(options: Mapping[str, Any] | None) -> tuple[TaskOrFunction | None, dict[str, Any]]:
    """The task in the options of a reset, and the other options."""
    others = dict(options or {})
    return others.pop("task", None), others


def feature_space_of(environment: gymnasium.Env[Any, Any] | VectorEnv) -> FeatureSpace | None:
    """Of an environment, if it has one; of several at once, that of their members, or of them as a whole."""
    if not isinstance(environment, VectorEnv):
        # Asked of the wrappers too: features may be what a wrapper adds.
        offers = environment.has_wrapper_attr("feature_space")
        return environment.get_wrapper_attr("feature_space") if offers else None
    whole: Any = environment.unwrapped
    if not hasattr(whole, "call"):
        return getattr(whole, "feature_space", None)
    has_one = all(whole.call("has_wrapper_attr", "feature_space"))
    return whole.get_attr("feature_space")[0] if has_one else None


class HasTask:
    """What our environments and the wrappers of others offer: rewards of a task that can be exchanged."""

    _feature_space: FeatureSpace
    _task: Task
    _table: tuple[FloatArray, FloatArray]
    """Feature vectors and their rewards, if features are discrete."""

    def _begin_with(self, feature_space: FeatureSpace, task: TaskOrFunction) -> None:
        if not isinstance(feature_space, (DiscreteFeatures, BoxFeatures)):
            raise InputError(
                f"feature_space is {feature_space!r}; it must be DiscreteFeatures or BoxFeatures"
            )
        self._feature_space = feature_space
        HasTask.set_task(self, task)

    @property
    def feature_space(self) -> FeatureSpace:
        """Where the features live."""
        return self._feature_space

    @property
    def task(self) -> Task:
        """The current reward function; `set_task` exchanges it."""
        return self._task

    def set_task(self, task: TaskOrFunction) -> None:
        """Reward by `task` from now on; the old one stays if the new one does not fit the features."""
        self._task = check_task(task, self.feature_space)
        if isinstance(self.feature_space, DiscreteFeatures):
            vectors = self.feature_space.vectors
            self._table = vectors, rewards_of(self.task, vectors)

    def _of_index(self, index: int) -> tuple[float, dict[str, Any]]:
        """Reward and info of a discrete feature that is known by its index."""
        vectors, rewards = self._table
        return float(rewards[index]), {"features": vectors[index].copy(), "feature_index": index}

    def _of_features(self, features: Any) -> tuple[float, dict[str, Any]]:
        """Reward and info of a feature vector."""
        if isinstance(self.feature_space, DiscreteFeatures):
            index = self.feature_space.observe(features)
            if index >= len(self._table[0]):
                self.set_task(self.task)  # the set has grown
            return self._of_index(index)
        values = self.feature_space.check(features).copy()
        return float(rewards_of(self.task, values)), {"features": values}
