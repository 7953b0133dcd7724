"""Layouts: an environment as data, checked once: geometry, noise, kinds of object, and the code of states.

Object collection in the paper's figure shows four rooms whose coordinates are not printed. The default here
puts walls of width 0.04 on x = 1/2 and y = 1/2, with two doors each, and twelve objects on the cell centres
of a 13 x 13 grid (docs/decisions.md).

A layout is refused if an object or the start is in a wall, if two objects overlap, if an object lies where it
would be taken before the first step or never (at the start, in the goal area), or if the goal or an object
cannot be reached. Reachability is decided by a flood fill over points start + h (i, j), where h divides the
step length (by ten, unless steps are tiny), with moves of every multiple of h within three standard
deviations of the step length: the points the agent can be near.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from PIL import ImageColor

from sfr_fa.arrays import (
    FloatArray,
    KeepsArraysReadOnly,
    finite_array,
    finite_number,
    positive_integer,
    positive_number,
)
from sfr_fa.feature_spaces import BoxFeatures, DiscreteFeatures
from sfr_fa.kernels.cells import Block, CodedAxis
from sfr_fa.kernels.dynamics import ObjectGeometry, RacerGeometry, at_goal, blocked
from sfr_fa.kernels.object_collection import ObjectCollectionWorld, move_to
from sfr_fa.kernels.racer import RacerWorld
from sfr_theory.errors import InputError

SHAPES = ("box", "triangle", "circle")
SHORTEST_STEP = 1 / 400
CELLS = 40
"""Cells of GPI's filter along each axis, in object collection..."""
RACER_CELLS, ANGLE_CELLS = 25, 20
"""... and in the racer, where networks want smaller ones; and of its orientation."""

Layout = TypeVar("Layout", "ObjectLayout", "RacerLayout")


@dataclass(frozen=True)
class ObjectKind:
    """What an object is: its properties as features (without the goal's), and how it is drawn."""

    name: str
    features: tuple[float, ...]
    colour: str
    shape: str

    def __post_init__(self) -> None:
        features = finite_array(self.features, f"the features of {self.name}", ("properties",))
        object.__setattr__(self, "features", tuple(features.tolist()))
        if self.shape not in SHAPES:
            raise InputError(f"{self.name} has shape {self.shape!r}; shapes are {', '.join(SHAPES)}")
        try:
            ImageColor.getrgb(self.colour)
        except (ValueError, TypeError, AttributeError):
            raise InputError(f"{self.name} has colour {self.colour!r}; write it as '#e8862e'") from None


@dataclass(frozen=True, eq=False)
class ObjectLayout(KeepsArraysReadOnly):
    """Walls, objects, start and goal of an object collection environment on the unit square."""

    walls: FloatArray
    """(W, 4): x_low, x_high, y_low, y_high of each wall; W may be 0."""
    objects: FloatArray
    """(M, 2): where the objects are."""
    kind_of_object: Sequence[int]
    """(M,): for each object an index into `kinds`."""
    kinds: Sequence[ObjectKind]
    start: tuple[float, float] = (0.05, 0.05)
    goal: tuple[float, float] = (0.86, 0.86)
    goal_radius: float = 0.1
    object_radius: float = 0.04
    step_length: float = 0.05
    step_noise: float = 0.005
    centres: FloatArray = field(default_factory=lambda: np.linspace(0.0, 1.0, 10))
    """(n,): coordinates of the centres of the position's code on each axis, both ends included..."""
    sigma: float = 0.1
    """... and its width."""

    def __post_init__(self) -> None:
        if not isinstance(self.walls, (Sequence, np.ndarray)):
            raise InputError(f"walls is {self.walls!r}; it must list walls, or be [] if there are none")
        walls = np.zeros((0, 4))
        walls.setflags(write=False)
        if len(self.walls):
            walls = finite_array(self.walls, "walls", ("walls", "x_low x_high y_low y_high"))
        objects = finite_array(self.objects, "objects", ("objects", "x and y"))
        for name, array, columns in (("walls", walls, 4), ("objects", objects, 2)):
            if array.shape[1] != columns:
                raise InputError(f"{name} has rows of {array.shape[1]} numbers; each needs {columns}")
        object.__setattr__(self, "walls", walls)
        object.__setattr__(self, "objects", objects)
        object.__setattr__(self, "centres", finite_array(self.centres, "centres", ("centres",)))
        object.__setattr__(self, "sigma", positive_number(self.sigma, "sigma"))
        object.__setattr__(self, "kinds", _members(self.kinds, "kinds", ObjectKind))
        kinds = _members(self.kind_of_object, "kind_of_object", (int, np.integer))
        object.__setattr__(self, "kind_of_object", tuple(int(kind) for kind in kinds))
        for name in ("start", "goal"):
            point = finite_array(getattr(self, name), name, ("x and y",))
            if point.size != 2:
                raise InputError(f"{name} has {point.size} numbers; it needs x and y")
            object.__setattr__(self, name, (float(point[0]), float(point[1])))
        self._check_numbers()
        self._check_places()
        self._check_reachability()

    @cached_property
    def feature_space(self) -> DiscreteFeatures:
        """Nothing, one feature for each kind of object, and the goal, which has the last dimension."""
        nothing = [0.0] * len(self.kinds[0].features)
        rows = [nothing, *(list(kind.features) for kind in self.kinds)]
        return DiscreteFeatures(np.array([[*row, 0.0] for row in rows] + [[*nothing, 1.0]]))

    @cached_property
    def geometry(self) -> ObjectGeometry:
        """What the dynamics need."""
        return ObjectGeometry(
            walls=self.walls,
            objects=self.objects,
            kinds=np.array(self.kind_of_object, dtype=np.int64),
            num_kinds=len(self.kinds),
            object_radius=self.object_radius,
            start_x=self.start[0],
            start_y=self.start[1],
            goal_x=self.goal[0],
            goal_y=self.goal[1],
            goal_radius=self.goal_radius,
            step_length=self.step_length,
            step_noise=self.step_noise,
        )

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Cells of the position's code."""
        return ((CodedAxis(tuple(self.centres.tolist()), self.sigma, CELLS),) * 2,)

    def new_world(self) -> ObjectCollectionWorld:
        """The world, for one environment or engine."""
        return ObjectCollectionWorld.new(self.geometry, self.centres, self.sigma, CELLS)

    def state_at(self, x: float, y: float, memory: Any = 0.0) -> FloatArray:
        """The state of an agent at (x, y) that has collected the objects with memory 1."""
        world, state = self.new_world(), np.zeros(self.state_dim)
        move_to(world, x, y)
        world.memory[:] = memory
        world.encode(state)
        return state

    @property
    def state_dim(self) -> int:
        """Radial basis functions, a bit for each object, and a constant."""
        return self.centres.size**2 + len(self.objects) + 1

    def _check_numbers(self) -> None:
        for name in ("goal_radius", "object_radius"):
            object.__setattr__(self, name, positive_number(getattr(self, name), name))
        for name in ("step_length", "step_noise"):
            object.__setattr__(self, name, finite_number(getattr(self, name), name))
        if not self.step_length >= SHORTEST_STEP:
            raise InputError(f"step_length is {self.step_length}; it must be at least {SHORTEST_STEP}")
        if not self.step_noise >= 0:
            raise InputError(f"step_noise is {self.step_noise}; it must be at least 0")
        if not self.kinds:
            raise InputError("kinds is empty; there must be a kind of object")
        if len(self.kind_of_object) != len(self.objects):
            raise InputError(
                f"kind_of_object has {len(self.kind_of_object)} entries for {len(self.objects)} objects"
            )
        for j, kind in enumerate(self.kind_of_object):
            if kind not in range(len(self.kinds)):
                raise InputError(f"kind_of_object[{j}] is {kind}; there are {len(self.kinds)} kinds, from 0")
        for kind_ in self.kinds:
            if len(kind_.features) != len(self.kinds[0].features):
                raise InputError(
                    f"{kind_.name} has {len(kind_.features)} features and {self.kinds[0].name} has "
                    f"{len(self.kinds[0].features)}; all kinds need the same number"
                )
        _ = self.feature_space  # refuses two kinds with the same features

    def _check_places(self) -> None:
        for i, (x_low, x_high, y_low, y_high) in enumerate(self.walls):
            if not (x_low < x_high and y_low < y_high):
                raise InputError(f"walls[{i}] is empty: it needs x_low < x_high and y_low < y_high")
        if blocked(*self.start, self.walls):
            raise InputError(f"the start at {self.start} is in a wall or outside the unit square")
        if blocked(*self.goal, self.walls):
            raise InputError(f"the goal at {self.goal} is in a wall or outside the unit square")
        if at_goal(*self.start, self.geometry):
            raise InputError(f"the start at {self.start} is within the goal area")
        for j, (x, y) in enumerate(self.objects.tolist()):
            if blocked(x, y, self.walls):
                raise InputError(f"object {j} at ({x:.4g}, {y:.4g}) is in a wall or outside the unit square")
            if at_goal(x, y, self.geometry):
                raise InputError(
                    f"object {j} at ({x:.4g}, {y:.4g}) is within the goal area, where the goal counts"
                )
            if math.dist((x, y), self.start) <= self.object_radius:
                raise InputError(f"object {j} at ({x:.4g}, {y:.4g}) is touched at the start {self.start}")
        between = np.linalg.norm(self.objects[:, None] - self.objects[None], axis=-1)
        np.fill_diagonal(between, np.inf)
        if between.min() <= 2 * self.object_radius:
            i, j = sorted(int(k) for k in np.unravel_index(between.argmin(), between.shape))
            raise InputError(
                f"objects {i} and {j} overlap: they are {between[i, j]:.4g} apart and have radius "
                f"{self.object_radius}"
            )

    def _check_reachability(self) -> None:
        x, y, reached = self.reachable_points()
        places = [("the goal", self.goal, self.goal_radius)]
        places += [
            (f"object {j}", (u, v), self.object_radius) for j, (u, v) in enumerate(self.objects.tolist())
        ]
        for name, place, radius in places:
            squared_distance = (x[:, None] - place[0]) ** 2 + (y[None, :] - place[1]) ** 2
            if not (reached & (squared_distance <= radius**2)).any():
                raise InputError(f"{name} at {place} cannot be reached from the start at {self.start}")

    def reachable_points(self) -> tuple[FloatArray, FloatArray, NDArray[np.bool_]]:
        """Coordinates x (X,) and y (Y,) of the flood fill's points, and which of them it reached (X, Y)."""
        cells_per_step = min(10, math.floor(self.step_length / SHORTEST_STEP))
        h = self.step_length / cells_per_step
        before_start = [math.floor(at / h) for at in self.start]
        x, y = (
            np.array([at + h * i for i in range(-before, math.floor((1 - at) / h) + 1)])
            for at, before in zip(self.start, before_start, strict=True)
        )
        free = np.ones((x.size, y.size), dtype=bool)
        for x_low, x_high, y_low, y_high in self.walls:
            free[np.ix_((x_low <= x) & (x <= x_high), (y_low <= y) & (y <= y_high))] = False
        reached = np.zeros(free.shape, dtype=np.bool_)
        reached[*before_start] = True
        most = max(free.shape)  # a longer move ends outside
        spread = round(min(3 * self.step_noise / h, most))
        moves = range(max(1, cells_per_step - spread), min(cells_per_step + spread, most) + 1)
        count = 0
        while count != (count := int(reached.sum())):
            before = reached.copy()
            for move in moves:
                reached[move:] |= before[:-move]
                reached[:-move] |= before[move:]
                reached[:, move:] |= before[:, :-move]
                reached[:, :-move] |= before[:, move:]
            reached &= free
        return x, y, reached


@dataclass(frozen=True, eq=False)
class RacerLayout(KeepsArraysReadOnly):
    """Markers and motion of the racer on the torus of side 1."""

    markers: FloatArray = field(default_factory=lambda: np.array([(0.25, 0.75), (0.75, 0.25), (0.75, 0.6)]))
    """(n, 2): what the features measure the distance to."""
    straight_length: float = 0.075
    turn_length: float = 0.06
    turn_angle: float = math.pi / 7
    noise: float = 0.005
    episode_steps: int = 200
    centres: FloatArray = field(default_factory=lambda: np.arange(10) / 10)
    """(n,): coordinates of the centres of the position's code on each axis; 0 and 1 are one point..."""
    sigma: float = 0.1
    """... and its width."""
    angle_centres: FloatArray = field(default_factory=lambda: -math.pi + 2 * math.pi * np.arange(20) / 20)
    """Centres of the orientation's code, on the circle on which -pi and pi are one point..."""
    angle_sigma: float = math.pi / 5
    """... and its width."""

    def __post_init__(self) -> None:
        markers = finite_array(self.markers, "markers", ("markers", "x and y"))
        if markers.shape[1] != 2:
            raise InputError(f"markers has rows of {markers.shape[1]} numbers; each needs x and y")
        if not ((markers >= 0) & (markers < 1)).all():
            k = int(np.argmin(((markers >= 0) & (markers < 1)).all(axis=1)))
            raise InputError(f"marker {k} is at {markers[k].tolist()}; coordinates must be in [0, 1)")
        object.__setattr__(self, "markers", markers)
        for name in ("straight_length", "turn_length", "turn_angle", "noise"):
            object.__setattr__(self, name, finite_number(getattr(self, name), name))
            if not getattr(self, name) >= 0:
                raise InputError(f"{name} is {getattr(self, name)}; it must be at least 0")
        object.__setattr__(self, "episode_steps", positive_integer(self.episode_steps, "episode_steps"))
        for name in ("centres", "angle_centres"):
            object.__setattr__(self, name, finite_array(getattr(self, name), name, ("centres",)))
        for name in ("sigma", "angle_sigma"):
            object.__setattr__(self, name, positive_number(getattr(self, name), name))

    @cached_property
    def feature_space(self) -> BoxFeatures:
        """A normalised distance for each marker."""
        return BoxFeatures(np.zeros(len(self.markers)), np.ones(len(self.markers)))

    @cached_property
    def geometry(self) -> RacerGeometry:
        """What the dynamics need."""
        return RacerGeometry(
            self.markers, self.straight_length, self.turn_length, self.turn_angle, self.noise
        )

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """Cells of the position's code, and of the orientation's."""
        axis = CodedAxis(tuple(self.centres.tolist()), self.sigma, RACER_CELLS, is_circle=True)
        angle = CodedAxis(
            tuple(self.angle_centres.tolist()), self.angle_sigma, ANGLE_CELLS, -math.pi, 2 * math.pi, True
        )
        return (axis, axis), (angle,)

    def new_world(self) -> RacerWorld:
        """The world, for one environment or engine."""
        return RacerWorld.new(
            self.geometry,
            self.centres,
            self.sigma,
            self.angle_centres,
            self.angle_sigma,
            RACER_CELLS,
            ANGLE_CELLS,
        )

    def state_at(self, x: float, y: float, angle: float) -> FloatArray:
        """The state of a racer at (x, y) with an orientation."""
        world, state = self.new_world(), np.zeros(self.state_dim)
        world.pose[:] = x, y, angle
        world.encode(state)
        return state

    @property
    def state_dim(self) -> int:
        """Radial basis functions of the position and of the orientation."""
        return self.centres.size**2 + self.angle_centres.size


def _members(values: Any, name: str, kind: type | tuple[type, ...]) -> tuple[Any, ...]:
    """`values` as a tuple, all of one kind."""
    if not isinstance(values, (Sequence, np.ndarray)):
        raise InputError(f"{name} is {values!r}; it must be a list")
    for j, value in enumerate(values):
        if not isinstance(value, kind) or isinstance(value, bool):
            wanted = "an ObjectKind" if kind is ObjectKind else "an integer"
            raise InputError(f"{name}[{j}] is {value!r}; it must be {wanted}")
    return tuple(values)


def layout_of(layout: Layout | None, default: Layout, **changes: Any) -> Layout:
    """The layout of an environment: the one that was given, if it is of the right kind, or the default.

    Changes that are not None replace what it says.
    """
    if layout is None:
        layout = default
    if not isinstance(layout, type(default)):
        raise InputError(f"layout is {layout!r}; it must be of type {type(default).__name__}")
    wanted = {name: value for name, value in changes.items() if value is not None}
    return replace(layout, **wanted) if wanted else layout


def _four_rooms() -> FloatArray:
    """Walls on x = 1/2 and y = 1/2 with doors on cells 2-3 and 9-10 of 13."""
    solid = [(0.0, 2 / 13), (4 / 13, 9 / 13), (11 / 13, 1.0)]
    across = (0.48, 0.52)
    return np.array([(*across, *along) for along in solid] + [(*along, *across) for along in solid])


def _cell_centres(cells: Sequence[tuple[int, int]]) -> FloatArray:
    return (np.array(cells) + 0.5) / 13


_OBJECT_CELLS = (
    *((0, 12), (6, 10), (10, 6), (12, 0)),
    *((5, 12), (0, 7), (7, 5), (6, 2)),
    *((5, 7), (2, 6), (12, 5), (7, 0)),
)

OBJECT_COLLECTION_LAYOUT = ObjectLayout(
    walls=_four_rooms(),
    objects=_cell_centres(_OBJECT_CELLS),
    kind_of_object=(0, 1, 2, 3, 1, 0, 3, 2, 2, 3, 0, 1),
    kinds=(
        ObjectKind("orange box", (1, 0, 1, 0), "#e8862e", "box"),
        ObjectKind("orange triangle", (1, 0, 0, 1), "#e8862e", "triangle"),
        ObjectKind("blue box", (0, 1, 1, 0), "#2f74c0", "box"),
        ObjectKind("blue triangle", (0, 1, 0, 1), "#2f74c0", "triangle"),
    ),
)
"""Four kinds of object, three of each: the paper's modified task."""

BARRETO_LAYOUT = ObjectLayout(
    walls=_four_rooms(),
    objects=_cell_centres(_OBJECT_CELLS),
    kind_of_object=(0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2),
    kinds=(
        ObjectKind("orange object", (1, 0, 0), "#e8862e", "box"),
        ObjectKind("blue object", (0, 1, 0), "#2f74c0", "triangle"),
        ObjectKind("pink object", (0, 0, 1), "#d9559f", "circle"),
    ),
)
"""Three kinds of object, four of each: the task of Barreto et al."""

RACER_LAYOUT = RacerLayout()
