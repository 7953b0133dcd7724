"""Racer: drive on a torus at preferred distances to three markers."""

from __future__ import annotations

import math
from typing import Any

import gymnasium
import numpy as np

from sfr_fa.arrays import FloatArray
from sfr_fa.environments.feature_env import FeatureEnv
from sfr_fa.environments.layouts import RACER_LAYOUT, RacerLayout, layout_of
from sfr_fa.environments.rendering import RacerPicture
from sfr_fa.kernels.dynamics import drive, marker_distances
from sfr_fa.kernels.encoding import (
    ANGLE_CENTRES,
    ANGLE_SIGMA,
    POSITION_SIGMA,
    TORUS_CENTRES,
    racer_state,
)
from sfr_fa.tasks import GaussianTask, TaskOrFunction


class Racer(FeatureEnv):
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
    ) -> None:
        self.layout = layout_of(layout, RacerLayout, RACER_LAYOUT)
        if task is None:
            task = GaussianTask(tuple(np.array([[0.3, 0.005]]) for _ in self.layout.markers))
        super().__init__(self.layout.feature_space, task, render_mode)
        size = TORUS_CENTRES.size**2 + ANGLE_CENTRES.size
        self.observation_space = gymnasium.spaces.Box(0.0, 1.0, (size,), np.float64)
        self.action_space = gymnasium.spaces.Discrete(3)
        self._x, self._y, self._angle = 0.5, 0.5, 0.0
        self._steps = 0

    @property
    def position(self) -> tuple[float, float]:
        """Where the agent is, in [0, 1)^2."""
        return self._x, self._y

    @property
    def orientation(self) -> float:
        """Where it heads, in [-pi, pi)."""
        return self._angle

    def set_task(self, task: TaskOrFunction) -> None:
        """Reward by `task` from now on."""
        super().set_task(task)
        self._picture = None

    def _start_episode(self) -> None:
        x, y, turn = self.np_random.random(3)
        self._x, self._y, self._angle = float(x), float(y), -math.pi + 2 * math.pi * float(turn)
        self._steps = 0

    def _advance(self, action: int) -> tuple[float, bool, bool, dict[str, Any]]:
        noise = self.np_random.standard_normal(3)
        geometry = self.layout.geometry
        self._x, self._y, self._angle = drive(self._x, self._y, self._angle, action, noise, geometry)
        self._steps += 1
        reward, info = self._rewards.of_features(marker_distances(self._x, self._y, geometry.markers))
        return reward, False, self._steps >= self.layout.episode_steps, info

    def _observation(self) -> FloatArray:
        return racer_state(
            self._x, self._y, self._angle, TORUS_CENTRES, POSITION_SIGMA, ANGLE_CENTRES, ANGLE_SIGMA
        )

    def render(self) -> Any:
        """The square with the reward as its ground, as an array (480, 480, 3) of bytes."""
        if self.render_mode is None:
            return None
        if self._picture is None:
            self._picture = RacerPicture(self.layout, self.task)
        return self._picture.draw(self.position, self._angle)
