"""Object collection: four rooms, objects to pick up on the way, and a goal that ends the episode."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np

from sfr_fa.arrays import FloatArray
from sfr_fa.environments.layouts import BARRETO_LAYOUT, OBJECT_COLLECTION_LAYOUT, ObjectLayout, layout_of
from sfr_fa.environments.rendering import ObjectCollectionPicture
from sfr_fa.environments.world_env import WorldEnv
from sfr_fa.kernels.cells import Block
from sfr_fa.kernels.object_collection import ObjectCollectionWorld
from sfr_fa.tasks import TableTask, TaskOrFunction


class ObjectCollection(WorldEnv[ObjectCollectionWorld]):
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

    ## Options
    `sigma` is the width of the position's code (0.1) and `kinds` the kind of each of the twelve objects (0 to
    3), in place of what the layout says.

    ## Randomness
    Each step draws one standard normal from `np_random`; a reset draws nothing.
    """

    default_layout: ObjectLayout = OBJECT_COLLECTION_LAYOUT

    def __init__(
        self,
        task: TaskOrFunction | None = None,
        layout: ObjectLayout | None = None,
        render_mode: str | None = None,
        *,
        sigma: float | None = None,
        kinds: Sequence[int] | None = None,
    ) -> None:
        self.layout = layout_of(layout, self.default_layout, sigma=sigma, kind_of_object=kinds)
        space = self.layout.feature_space
        super().__init__(
            self.layout.new_world(),
            state_dim=self.layout.state_dim,
            num_actions=4,
            feature_space=space,
            task=TableTask(space, np.append(0.0, np.ones(space.size - 1))) if task is None else task,
            render_mode=render_mode,
        )

    @property
    def position(self) -> tuple[float, float]:
        """Where the agent is."""
        x, y = self.world.position.tolist()
        return x, y

    @property
    def collected(self) -> FloatArray:
        """(M,): 1 for each object that was collected in this episode."""
        return self.world.memory.copy()

    def coded_blocks(self) -> tuple[Block, ...]:
        """The position."""
        return self.layout.blocks

    @cached_property
    def _picture(self) -> ObjectCollectionPicture:
        return ObjectCollectionPicture(self.layout)

    def render(self) -> Any:
        """The rooms from above, as an array (480, 480, 3) of bytes."""
        if self.render_mode is None:
            return None
        return self._picture.draw(self.position, self.world.memory)


class ObjectCollectionBarreto(ObjectCollection):
    """The task of Barreto et al.: three kinds of object, and features (orange, blue, pink, goal)."""

    default_layout = BARRETO_LAYOUT
