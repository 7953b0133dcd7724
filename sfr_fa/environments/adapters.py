"""Features for environments that others have written.

`FeaturesFromVectorReward` wraps a MO-Gymnasium environment: its vector reward becomes the features, and the
scalar reward is a utility of them, linear or not. `WithFeatures` wraps any Gymnasium environment and
computes features with a function of the transition. Both report them as our own environments do
(`sfr_fa.environments.feature_env`), so every agent can learn on them.

A utility is a function of the features of *one step*, and what an agent maximises is the expected discounted
sum of utilities, E[sum_t gamma^t u(phi_t)]. Multi-objective learning also has utilities of returns,
u(E[sum_t gamma^t phi_t]) (SER) and E[u(sum_t gamma^t phi_t)] (ESR). They agree for linear u; for others they
are different problems, which these agents do not solve.

`OneHot` makes states of whole numbers (cells, counts, flags) into indicators, for which linear values are a
table.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium.utils import RecordConstructorArgs
from numpy.typing import NDArray

from sfr_fa.environments.feature_env import HasTask, take_task
from sfr_fa.feature_spaces import BoxFeatures, FeatureSpace
from sfr_fa.tasks import TaskOrFunction
from sfr_theory.errors import InputError


class _FeatureWrapper(HasTask, gymnasium.Wrapper, RecordConstructorArgs):
    """An environment that is rewarded by a task on features that a subclass finds in its steps.

    A subclass records its arguments, so that `gymnasium.make(env.spec)` can make it again.
    """

    def __init__(self, env: gymnasium.Env, feature_space: FeatureSpace, task: TaskOrFunction) -> None:
        super().__init__(env)
        self._begin_with(feature_space, task)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode; `options={"task": task}` changes the task first, other options are passed on."""
        task, others = take_task(options)
        if task is not None:
            self.set_task(task)
        return self.env.reset(seed=seed, options=others or None)


class FeaturesFromVectorReward(_FeatureWrapper):
    """A MO-Gymnasium environment whose vector reward is the features phi, rewarded by `utility.reward(phi)`.

    Without a `feature_space`, the box of the environment's `reward_space` is taken. A component that is
    always c there (the -1 per step of deep-sea-treasure) is declared to lie between 0 and c, as a box needs
    some width.
    """

    def __init__(
        self, env: gymnasium.Env, utility: TaskOrFunction, feature_space: FeatureSpace | None = None
    ) -> None:
        RecordConstructorArgs.__init__(self, utility=utility, feature_space=feature_space)
        super().__init__(env, _box_of_reward_space(env) if feature_space is None else feature_space, utility)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; the features are the vector reward."""
        observation, vector_reward, terminated, truncated, info = self.env.step(action)
        reward, feature_info = self._of_features(vector_reward)
        return observation, reward, terminated, truncated, info | feature_info


class WithFeatures(_FeatureWrapper):
    """Any Gymnasium environment, with phi = features(observation, action, next_observation, info)."""

    def __init__(
        self,
        env: gymnasium.Env,
        features: Callable[[Any, Any, Any, dict[str, Any]], Any],
        feature_space: FeatureSpace,
        task: TaskOrFunction,
    ) -> None:
        if not callable(features):
            raise InputError(f"features is {features!r}; it must be a function of a transition")
        RecordConstructorArgs.__init__(self, features=features, feature_space=feature_space, task=task)
        super().__init__(env, feature_space, task)
        self._features = features
        self._last_observation: Any = None

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Start an episode, as the wrapped environment does."""
        observation, info = super().reset(seed=seed, options=options)
        # A copy, since some environments write every observation into the same array.
        self._last_observation = copy.deepcopy(observation)
        return observation, info

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """One step; the features are the function of the transition."""
        observation, _, terminated, truncated, info = self.env.step(action)
        features = self._features(self._last_observation, action, observation, info)
        reward, feature_info = self._of_features(features)
        self._last_observation = copy.deepcopy(observation)
        return observation, reward, terminated, truncated, info | feature_info


class OneHot(gymnasium.ObservationWrapper, RecordConstructorArgs):
    """Observations of whole numbers as indicators: one 1 for each block of dimensions, in float32.

    `blocks` lists the dimensions whose values are counted together: [[0, 1], [2]] is an indicator of the pair
    (x_0, x_1) followed by one of x_2. By default all dimensions are one block, so that linear values are a
    table with an entry for each state.
    """

    LARGEST = 100_000
    """Longer indicators are refused: the dimensions need smaller blocks."""

    def __init__(self, env: gymnasium.Env, blocks: Sequence[Sequence[int]] | None = None) -> None:
        RecordConstructorArgs.__init__(self, blocks=blocks)
        super().__init__(env)
        self._low, counts = _whole_numbers(env)
        every = range(len(counts))
        self._blocks = [list(every)] if blocks is None else [list(block) for block in blocks]
        if sorted(k for block in self._blocks for k in block) != list(every):
            raise InputError(f"blocks is {blocks!r}; it must list each dimension 0 to {every[-1]} once")
        self._shapes = [tuple(int(counts[k]) for k in block) for block in self._blocks]
        sizes = [math.prod(shape) for shape in self._shapes]
        if sum(sizes) > self.LARGEST:
            raise InputError(
                f"one indicator of all values of blocks {self._blocks} has {sum(sizes)} entries; pass "
                f"smaller blocks of dimensions that are counted together, such as blocks=[[0, 1], [2], [3]]"
            )
        self._starts, self._length = np.cumsum([0, *sizes[:-1]]), sum(sizes)
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (self._length,), np.float32)

    def observation(self, observation: Any) -> NDArray[np.float32]:
        """The indicators of one observation."""
        values = np.ravel(observation).astype(np.int64) - self._low
        indicator = np.zeros(self._length, dtype=np.float32)
        for start, block, shape in zip(self._starts, self._blocks, self._shapes, strict=True):
            indicator[start + np.ravel_multi_index(tuple(values[block]), shape)] = 1.0
        return indicator


def _whole_numbers(env: gymnasium.Env) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The least value of each dimension of the observations, and how many there are."""
    space = env.observation_space
    if isinstance(space, gymnasium.spaces.Discrete):
        return np.array([space.start]), np.array([space.n])
    if isinstance(space, gymnasium.spaces.MultiDiscrete):
        return np.ravel(space.start).astype(np.int64), np.ravel(space.nvec).astype(np.int64)
    if isinstance(space, gymnasium.spaces.MultiBinary):
        return np.zeros(math.prod(space.shape), np.int64), np.full(math.prod(space.shape), 2)
    if isinstance(space, gymnasium.spaces.Box) and space.dtype.kind in "iub":
        low, high = ([int(bound) for bound in np.ravel(bounds)] for bounds in (space.low, space.high))
        counts = [last - first + 1 for first, last in zip(low, high, strict=True)]
        if max(counts) > OneHot.LARGEST:
            raise InputError(
                f"OneHot has an entry for each value, and a dimension of {env} has {max(counts)} values; it "
                f"takes up to {OneHot.LARGEST}"
            )
        return np.array(low), np.array(counts)
    raise InputError(
        f"OneHot needs observations of whole numbers; those of {env} are {space}: a network takes a vector "
        f"of numbers as it is (approximator=FeatureSubnetworks), and gymnasium.wrappers.FlattenObservation "
        f"makes one of other spaces"
    )


def _box_of_reward_space(env: gymnasium.Env) -> BoxFeatures:
    space = getattr(env.unwrapped, "reward_space", None)
    if not isinstance(space, gymnasium.spaces.Box) or len(space.shape) != 1:
        raise InputError(
            f"{env} has no reward_space for vector rewards; wrap a MO-Gymnasium environment, "
            f"or pass feature_space"
        )
    if not space.is_bounded():
        raise InputError(f"the vector reward of {env} is not bounded; pass the feature_space it stays in")
    low, high = space.low.astype(np.float64), space.high.astype(np.float64)
    constant = low == high
    return BoxFeatures(
        np.where(constant, np.minimum(low, 0.0), low),
        np.where(constant, np.where(high == 0.0, 1.0, np.maximum(high, 0.0)), high),
    )
