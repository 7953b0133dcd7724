"""A Gymnasium environment made of a world (`sfr_fa.kernels.world`): one place for its dynamics.

    env = WorldEnv(world, state_dim=25, num_actions=4, feature_space=DiscreteFeatures(vectors))

A step returns the reward of the current task and the features in `info` (`sfr_fa.environments.feature_env`).
Worlds are tried when an environment is made: a missing method, a field that is neither an array nor a number,
an index outside an array or a feature that is not in the feature space gets a sentence before anything is
compiled.
"""

from __future__ import annotations

import copy
import inspect
from typing import Any, Generic, TypeVar

import gymnasium
import numpy as np

from sfr_fa.arrays import FloatArray, positive_integer
from sfr_fa.environments.feature_env import HasTask, take_task
from sfr_fa.feature_spaces import DiscreteFeatures, FeatureSpace
from sfr_fa.kernels.cells import Block
from sfr_fa.kernels.world import Moves, World
from sfr_fa.tasks import LinearTask, TaskOrFunction
from sfr_theory.errors import InputError

PROBE_STEPS = 100
"""How many steps a new world is tried for."""

AnyWorld = TypeVar("AnyWorld", bound=Moves)


class WorldEnv(HasTask, gymnasium.Env[FloatArray, np.int64], Generic[AnyWorld]):
    """An environment whose scalar reward is a task's reward of a world's features.

    world           a NamedTuple of arrays and numbers with the methods of `sfr_fa.kernels.world`
    state_dim       how many numbers `encode` writes, between `low` and `high`
    feature_space   DiscreteFeatures if the world has `feature`, BoxFeatures if it has `features`
    task            the sum of all features unless another one is given
    episode_steps   an episode is truncated after this many steps; None for never
    """

    metadata = {"render_modes": ["rgb_array"], "render_fps": 15, "limit_is_terminal": True}  # noqa: RUF012
    """Gymnasium's attribute; the last entry is for engines (`EpisodeLimit`)."""

    def __init__(
        self,
        world: AnyWorld,
        *,
        state_dim: int,
        num_actions: int,
        feature_space: FeatureSpace,
        task: TaskOrFunction | None = None,
        episode_steps: int | None = None,
        low: float = 0.0,
        high: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        if render_mode is not None and render_mode not in self.metadata["render_modes"]:
            raise InputError(f"render_mode is {render_mode!r}; it must be None or 'rgb_array'")
        state_dim = positive_integer(state_dim, "state_dim")
        num_actions = positive_integer(num_actions, "num_actions")
        if episode_steps is not None:
            episode_steps = positive_integer(episode_steps, "episode_steps")
        self.render_mode, self.episode_steps, self.world = render_mode, episode_steps, world
        self._begin_with(
            feature_space, LinearTask(np.ones(feature_space.dimensions)) if task is None else task
        )
        self.observation_space = gymnasium.spaces.Box(low, high, (state_dim,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(num_actions)
        self._state_dim, self._running, self._steps = state_dim, False, 0
        check_world(world, state_dim, num_actions, feature_space)
        world.reset(np.random.default_rng(0))

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
        self._running, self._steps = True, 0
        self.world.reset(self.np_random)
        return self._observation(), {}

    def step(self, action: np.int64) -> tuple[FloatArray, float, bool, bool, dict[str, Any]]:
        """One step of the world."""
        if not self._running:
            raise gymnasium.error.ResetNeeded("No episode is running; call reset before step.")
        if not self.action_space.contains(action):
            raise InputError(f"action is {action!r}; it must be an integer in {self.action_space}")
        terminated = bool(self.world.step(int(action), self.np_random))
        self._steps += 1
        truncated = self._steps == self.episode_steps
        self._running = not (terminated or truncated)
        shown = shown_features(self.world, self.feature_space)
        reward, info = self._of_index(shown) if isinstance(shown, int) else self._of_features(shown)
        return self._observation(), reward, terminated, truncated, info

    def coded_blocks(self) -> tuple[Block, ...]:
        """What codes of a world with cells begin with, for filters of GPI; `cell` numbers all cells.

        With several blocks it runs along the cells of the last one first.
        """
        return ()

    def _observation(self) -> FloatArray:
        """The state as the agent sees it, in a new array."""
        state = np.zeros(self._state_dim)
        self.world.encode(state)
        return state


def shown_features(world: Any, space: FeatureSpace) -> int | FloatArray:
    """What the last step of a world has shown: a number of a finite set, or a vector in a box."""
    if isinstance(space, DiscreteFeatures):
        index = world.feature()
        if not isinstance(index, (int, np.integer)) or not 0 <= index < space.size:
            raise InputError(
                f"{type(world).__name__}.feature() is {index!r}; the feature space has {space.size}, from 0"
            )
        return int(index)
    phi = np.zeros(space.dimensions)
    world.features(phi)
    return phi


# --- Worlds of users ------------------------------------------------------------------------------


def check_world(world: Any, state_dim: int, num_actions: int, space: FeatureSpace) -> None:
    """Refuse what is not a world, and a world that fails within a few steps, tried on a copy."""
    name = type(world).__name__
    if not isinstance(world, tuple) or not hasattr(world, "_fields"):
        raise InputError(f"world is {world!r}; it must be a NamedTuple of arrays and numbers")
    of_features = "feature" if isinstance(space, DiscreteFeatures) else "features"
    for method in ("reset", "step", "encode", of_features):
        found, wanted = getattr(type(world), method, None), inspect.signature(getattr(World, method))
        if not callable(found):
            raise InputError(f"{name} has no method {method}{_arguments(wanted)}")
        given = inspect.signature(getattr(found, "py_func", found))
        if len(given.parameters) != len(wanted.parameters):
            raise InputError(f"{name}.{method} takes {_arguments(given)}; it must take {_arguments(wanted)}")
    _check_fields(world, name)
    _try_out(copy.deepcopy(world), name, state_dim, num_actions, space)


def _arguments(signature: inspect.Signature) -> str:
    return f"({', '.join(list(signature.parameters)[1:])})"


def _check_fields(world: Any, name: str) -> None:
    for field, value in zip(world._fields, world, strict=True):
        if hasattr(value, "_fields"):
            _check_fields(value, f"{name}.{field}")
        elif isinstance(value, np.ndarray):
            if value.dtype.kind not in "fiub":
                raise InputError(f"{name}.{field} is an array of {value.dtype}; it must hold numbers")
        elif not isinstance(value, (bool, int, float, np.number, np.bool_)):
            raise InputError(f"{name}.{field} is {value!r}; it must be an array or a number")


def _try_out(world: Any, name: str, state_dim: int, num_actions: int, space: FeatureSpace) -> None:
    rng = np.random.default_rng(0)
    method, ended = "reset", True
    try:
        for _ in range(PROBE_STEPS):
            if ended:
                method = "reset"
                world.reset(rng)
            method, state = "encode", np.zeros(state_dim)
            world.encode(state)
            if not np.isfinite(state).all():
                raise ValueError("the state is not finite")
            method = "step"
            ended = world.step(int(rng.integers(num_actions)), rng)
            if not isinstance(ended, (bool, int, np.bool_, np.integer)):
                raise InputError(f"{name}.step returns {ended!r}; it must say whether the episode has ended")
            method = "features"
            shown = shown_features(world, space)
            if not isinstance(shown, int):
                space.check(shown)
        starts = np.zeros((2, state_dim))
        for start in starts:
            world.reset(np.random.default_rng(0))
            world.encode(start)
        if not np.array_equal(*starts):
            raise InputError(
                f"{name}.reset begins elsewhere if it is called again with the same random numbers; nothing "
                f"may be left of earlier episodes: engines do not reset equally often"
            )
    except InputError:
        raise
    except Exception as error:
        raise InputError(f"{name}.{method} fails with {type(error).__name__}: {error}") from error
