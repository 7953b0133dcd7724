"""Object collection: four rooms, objects to pick up on the way, and a goal that ends the episode."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import gymnasium
import numpy as np

from sfr_fa.arrays import FloatArray
from sfr_fa.environments.feature_env import FeatureEnv
from sfr_fa.environments.layouts import BARRETO_LAYOUT, OBJECT_COLLECTION_LAYOUT, ObjectLayout, layout_of
from sfr_fa.environments.rendering import ObjectCollectionPicture
from sfr_fa.kernels.dynamics import object_collection_step
from sfr_fa.kernels.encoding import POSITION_SIGMA, SQUARE_CENTRES, object_collection_state
from sfr_fa.tasks import TableTask, TaskOrFunction


class ObjectCollection(FeatureEnv):
    """Collect objects with rewards of a task, and reach the goal (c:appendix_object_collection_env).

    ## Description
    A point moves through four connected rooms. Objects that it touches are collected and disappear for the
    rest of the episode. Each has a kind, and the task says what a kind is worth.

    ## Actions
    `Discrete(4)`: up, down, left, right, by 0.05 with Gaussian noise of standard deviation 0.005. A move
    that ends outside or in a wall is undone.

    ## Observations
    `Box(0, 1, (113,), float64)`: 100 radial basis functions of the position, a bit for each of the 12
    objects (1 if collected), and a constant 1.

    ## Features and reward
    `info["features"]` are (orange, blue, box, triangle, goal): properties of the object collected in this
    step, or the goal; all 0 otherwise. If the goal and an object are reached in one step, the goal counts.
    The reward is the task's reward of the features; by default 1 for every object and for the goal.

    ## Episodes
    start at (0.05, 0.05) and end (`terminated`) in the goal area around (0.86, 0.86). There is no step limit;
    `gymnasium.make(..., max_episode_steps=500)` adds one.

    ## Randomness
    Each step draws one standard normal from `np_random`; a reset draws nothing.
    """

    default_layout: ObjectLayout = OBJECT_COLLECTION_LAYOUT

    def __init__(
        self,
        task: TaskOrFunction | None = None,
        layout: ObjectLayout | None = None,
        render_mode: str | None = None,
    ) -> None:
        self.layout = layout_of(layout, ObjectLayout, self.default_layout)
        space = self.layout.feature_space
        if task is None:
            task = TableTask(space, np.append(0.0, np.ones(space.size - 1)))
        super().__init__(space, task, render_mode)
        size = SQUARE_CENTRES.size**2 + len(self.layout.objects) + 1
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (size,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(4)
        self._start_episode()

    @property
    def position(self) -> tuple[float, float]:
        """Where the agent is."""
        return self._x, self._y

    @property
    def collected(self) -> FloatArray:
        """(M,): 1 for each object that was collected in this episode."""
        return self._memory.copy()

    def _start_episode(self) -> None:
        self._x, self._y = self.layout.start
        self._memory = np.zeros(len(self.layout.objects))

    def _advance(self, action: int) -> tuple[float, bool, bool, dict[str, Any]]:
        noise = self.np_random.standard_normal()
        self._x, self._y, picked, feature = object_collection_step(
            self._x, self._y, self._memory, action, noise, self.layout.geometry
        )
        if picked >= 0:
            self._memory[picked] = 1.0
        reward, info = self._rewards.of_index(int(feature))
        return reward, bool(feature == len(self.layout.kinds) + 1), False, info

    def _observation(self) -> FloatArray:
        return object_collection_state(self._x, self._y, self._memory, SQUARE_CENTRES, POSITION_SIGMA)

    @cached_property
    def _picture(self) -> ObjectCollectionPicture:
        return ObjectCollectionPicture(self.layout)

    def render(self) -> Any:
        """The rooms from above, as an array (480, 480, 3) of bytes."""
        if self.render_mode is None:
            return None
        return self._picture.draw(self.position, self._memory)


class ObjectCollectionBarreto(ObjectCollection):
    """The task of Barreto et al.: three kinds of object, and features (orange, blue, pink, goal)."""

    default_layout = BARRETO_LAYOUT
