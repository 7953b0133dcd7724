"""Racer: drive on a torus at preferred distances to three markers."""

from __future__ import annotations

from typing import Any

import numpy as np

from sfr_fa.environments.layouts import RACER_LAYOUT, RacerLayout, layout_of
from sfr_fa.environments.rendering import RacerPicture
from sfr_fa.environments.world_env import WorldEnv
from sfr_fa.kernels.cells import Block
from sfr_fa.kernels.racer import RacerWorld
from sfr_fa.tasks import GaussianTask, TaskOrFunction


class Racer(WorldEnv[RacerWorld]):
    """Drive where the distances to the markers are worth most (c:appendix_racer_env).

    ## Description
    A point with an orientation drives on the unit square, whose opposite sides are joined. It cannot stop.

    ## Actions
    `Discrete(3)`: right, straight, left. Straight drives 0.075; right and left add pi/7 to the orientation
    or subtract it, and drive 0.06 towards the new one. Gaussian noise of standard deviation 0.005 is added
    to x, y and orientation.

    ## Observations
    `Box(0, 1, (120,), float64)`: 100 radial basis functions of the position and 20 of the orientation.

    ## Features and reward
    `info["features"]` are the torus distances from the new position to the markers, divided by sqrt(1/2),
    the largest one. The reward is the task's reward of the features; by default a distance of 0.3 to each
    marker is preferred.

    ## Episodes
    start at a random place and orientation and are `truncated` after 200 steps. Nothing ever terminates.

    ## Options
    `sigma` is the width of the position's code (0.1), in place of what the layout says.

    ## Randomness
    A reset draws three uniforms from `np_random` (x, y, orientation), each step three standard normals (the
    same order).
    """

    _picture: RacerPicture | None = None

    def __init__(
        self,
        task: TaskOrFunction | None = None,
        layout: RacerLayout | None = None,
        render_mode: str | None = None,
        *,
        sigma: float | None = None,
    ) -> None:
        self.layout = layout_of(layout, RACER_LAYOUT, sigma=sigma)
        if task is None:
            task = GaussianTask(tuple(np.array([[0.3, 0.005]]) for _ in self.layout.markers))
        super().__init__(
            self.layout.new_world(),
            state_dim=self.layout.state_dim,
            num_actions=3,
            feature_space=self.layout.feature_space,
            task=task,
            episode_steps=self.layout.episode_steps,
            render_mode=render_mode,
        )

    @property
    def position(self) -> tuple[float, float]:
        """Where the agent is, in [0, 1)^2."""
        x, y, _ = self.world.pose.tolist()
        return x, y

    @property
    def orientation(self) -> float:
        """Where it heads, in [-pi, pi)."""
        return float(self.world.pose[2])

    def coded_blocks(self) -> tuple[Block, ...]:
        """The position, and the orientation."""
        return self.layout.blocks

    def set_task(self, task: TaskOrFunction) -> None:
        """Reward by `task` from now on."""
        super().set_task(task)
        self._picture = None

    def render(self) -> Any:
        """The square with the reward as its ground, as an array (480, 480, 3) of bytes."""
        if self.render_mode is None:
            return None
        if self._picture is None:
            self._picture = RacerPicture(self.layout, self.task)
        return self._picture.draw(self.position, self.orientation)
