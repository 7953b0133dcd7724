"""How the environments move: pure functions of state, action and noise.

Object collection. The agent is a point in the unit square. An action moves it along one axis by step_length
+ step_noise * z, z ~ N(0, 1); a move that *ends* outside or in a wall is undone (it may pass over a wall
that is thinner than the step). Then it reaches the goal, or else an object that is still there, or nothing:
one feature per step, and the goal wins.

Racer. The agent is a point on the torus [0, 1)^2 with an orientation in [-pi, pi). Straight drives 0.075;
right and left first turn by pi/7 and drive 0.06 towards the new direction; noise is added to the final x, y
and orientation. Features are distances to markers, as parts of sqrt(1/2), the largest distance on the
torus.

Everything random is an argument, and all state is passed in and returned, so that the Gymnasium classes and
a compiled loop run the same lines: the functions are plain Python, and Numba compiles them into any `njit`
function that calls them. Geometry comes in named tuples of arrays and numbers
(`sfr_fa.environments.layouts` makes and checks them).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from sfr_fa.kernels.arrays import FloatArray, part

Numbers = float | FloatArray

UP, DOWN, LEFT, RIGHT = 0, 1, 2, 3
TURN_RIGHT, STRAIGHT, TURN_LEFT = 0, 1, 2

LARGEST_TORUS_DISTANCE = math.sqrt(0.5)
"""The distance of (0, 0) and (1/2, 1/2) on the torus of side 1; no two points are farther apart."""


class ObjectGeometry(NamedTuple):
    """Object collection in numbers."""

    walls: FloatArray
    """(W, 4): x_low, x_high, y_low, y_high of each wall, boundary included."""
    objects: FloatArray
    """(M, 2): centres of the objects."""
    kinds: NDArray[np.int64]
    """(M,): the kind of each object, 0 ... K - 1."""
    num_kinds: int
    object_radius: float
    start_x: float
    start_y: float
    goal_x: float
    goal_y: float
    goal_radius: float
    step_length: float
    step_noise: float


class RacerGeometry(NamedTuple):
    """The racer in numbers."""

    markers: FloatArray
    """(n, 2): the points that features measure the distance to."""
    straight_length: float
    turn_length: float
    turn_angle: float
    noise: float


@part()
def blocked(x: float, y: float, walls: FloatArray) -> bool:
    """Whether a point is outside the unit square or in a wall."""
    if not (0.0 <= x <= 1.0 and 0.0 <= y <= 1.0):
        return True
    for wall in walls:  # noqa: SIM110  any() over a generator does not compile
        if wall[0] <= x <= wall[1] and wall[2] <= y <= wall[3]:
            return True
    return False


@part()
def walk(x: float, y: float, action: int, noise: float, geometry: ObjectGeometry) -> tuple[float, float]:
    """The position after a move of length step_length + step_noise * noise, or (x, y) if that is blocked."""
    length = geometry.step_length + geometry.step_noise * noise
    new_x, new_y = x, y
    if action == UP:
        new_y = y + length
    elif action == DOWN:
        new_y = y - length
    elif action == LEFT:
        new_x = x - length
    else:
        new_x = x + length
    if blocked(new_x, new_y, geometry.walls):
        return x, y
    return new_x, new_y


@part()
def touched_object(x: float, y: float, memory: FloatArray, geometry: ObjectGeometry) -> int:
    """The object within reach of (x, y) that has not been collected, or -1."""
    for j in range(len(geometry.objects)):
        dx = x - geometry.objects[j, 0]
        dy = y - geometry.objects[j, 1]
        if memory[j] == 0.0 and dx * dx + dy * dy <= geometry.object_radius * geometry.object_radius:
            return j
    return -1


@part()
def at_goal(x: float, y: float, geometry: ObjectGeometry) -> bool:
    """Whether (x, y) is in the goal area."""
    dx = x - geometry.goal_x
    dy = y - geometry.goal_y
    return dx * dx + dy * dy <= geometry.goal_radius * geometry.goal_radius


@part()
def object_collection_step(
    x: float, y: float, memory: FloatArray, action: int, noise: float, geometry: ObjectGeometry
) -> tuple[float, float, int, int]:
    """One step: the new position, the object picked up (or -1), and the index of the feature.

    Features are numbered 0 for nothing, 1 + k for an object of kind k, and 1 + num_kinds for the goal,
    which ends the episode. `memory` holds 1 for each collected object; the caller sets the entry of the
    object picked up.
    """
    new_x, new_y = walk(x, y, action, noise, geometry)
    if at_goal(new_x, new_y, geometry):
        return new_x, new_y, -1, 1 + geometry.num_kinds
    picked = touched_object(new_x, new_y, memory, geometry)
    feature = 1 + geometry.kinds[picked] if picked >= 0 else 0
    return new_x, new_y, picked, feature


@part()
def wrapped(value: float, low: float, period: float) -> float:
    """`value` modulo `period`, in [low, low + period)."""
    offset = (value - low) % period
    # A negative offset below rounding comes out as the period itself, which is the point 0 of the circle.
    return low + offset if low + offset < low + period else low


@part()
def drive(
    x: float, y: float, angle: float, action: int, noise: Sequence[float], geometry: RacerGeometry
) -> tuple[float, float, float]:
    """Position and orientation after an action; `noise` has a standard normal for x, y and orientation."""
    length = geometry.turn_length
    if action == TURN_RIGHT:
        angle = angle + geometry.turn_angle
    elif action == TURN_LEFT:
        angle = angle - geometry.turn_angle
    else:
        length = geometry.straight_length
    new_x = wrapped(x + length * math.cos(angle) + geometry.noise * noise[0], 0.0, 1.0)
    new_y = wrapped(y + length * math.sin(angle) + geometry.noise * noise[1], 0.0, 1.0)
    return new_x, new_y, wrapped(angle + geometry.noise * noise[2], -math.pi, 2 * math.pi)


@part()
def torus_distance(x: Numbers, y: Numbers, to_x: Numbers, to_y: Numbers) -> Any:
    """The distance of two points on the torus of side 1, divided by the largest one."""
    dx = np.abs(x - to_x)
    dy = np.abs(y - to_y)
    dx = np.minimum(dx, 1.0 - dx)
    dy = np.minimum(dy, 1.0 - dy)
    return np.minimum(np.sqrt(dx * dx + dy * dy) / LARGEST_TORUS_DISTANCE, 1.0)


def marker_distances(x: Numbers, y: Numbers, markers: FloatArray) -> FloatArray:
    """phi_k: the torus distance of (x, y) to marker k.

    Arrays x and y of shape (..., 1) give features of shape (..., n).
    """
    distances: FloatArray = torus_distance(x, y, markers[:, 0], markers[:, 1])
    return distances
