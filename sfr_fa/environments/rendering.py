"""Pictures of the environments, drawn from their state alone.

A picture is set up once, with everything that stays (rooms, walls, reward field), and then drawn for each
state. Points are drawn with y upwards on a canvas three times as large as the result and averaged down,
which smooths all edges.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageColor, ImageDraw, ImageFont

from sfr_fa.arrays import FloatArray
from sfr_fa.environments.layouts import ObjectLayout, RacerLayout
from sfr_fa.kernels.dynamics import marker_distances
from sfr_fa.tasks import Task

SIZE = 480
OVERSAMPLING = 3
MARGIN = 0.035
"""The frame around the unit square, in units of the square; objects at the border reach into it."""

Pixels = NDArray[np.uint8]
Point = tuple[float, float]

FLOOR = "#f7f3ea"
FRAME = "#3b4252"
WALL = "#3b4252"
START = "#9aa3b2"
GOAL = "#57a773"
GOAL_FLOOR = "#cfe8d6"
AGENT = "#1d2330"
RACER = "#e4572e"
WHITE = "#ffffff"

FIELD_COLOURS = ("#fdfaf3", "#f3e0b5", "#9ec7b5", "#3d86a0", "#1d3f6e", "#121d3d")
"""From the least to the largest reward; dark is high, as in the paper's figure."""


class _Canvas:
    """An image on which things are placed by coordinates of the unit square."""

    def __init__(self, image: Image.Image) -> None:
        self.image = image
        self.draw = ImageDraw.Draw(image)
        self.scale = image.width / (1 + 2 * MARGIN)

    @classmethod
    def blank(cls, colour: str) -> _Canvas:
        side = SIZE * OVERSAMPLING
        return cls(Image.new("RGB", (side, side), colour))

    def copy(self) -> _Canvas:
        return _Canvas(self.image.copy())

    def pixels(self, point: Point) -> Point:
        return (point[0] + MARGIN) * self.scale, (1 + MARGIN - point[1]) * self.scale

    def rectangle(self, x_low: float, x_high: float, y_low: float, y_high: float, colour: str) -> None:
        left, top = self.pixels((x_low, y_high))
        right, bottom = self.pixels((x_high, y_low))
        self.draw.rectangle((left, top, right, bottom), fill=colour)

    def disc(self, centre: Point, radius: float, fill: str | None, line: str, width: float = 0.006) -> None:
        x, y = self.pixels(centre)
        r = radius * self.scale
        self.draw.ellipse((x - r, y - r, x + r, y + r), fill=fill, outline=line, width=self._line(width))

    def polygon(self, corners: Sequence[Point], fill: str | None, line: str, width: float = 0.006) -> None:
        pixels = [self.pixels(corner) for corner in corners]
        if fill is not None:
            self.draw.polygon(pixels, fill=fill)
        closed = [*pixels, *pixels[:2]]
        self.draw.line(closed, fill=line, width=self._line(width), joint="curve")

    def text(self, centre: Point, text: str, height: float, colour: str) -> None:
        font = ImageFont.load_default(size=height * self.scale)
        self.draw.text(self.pixels(centre), text, fill=colour, font=font, anchor="mm")

    def frame(self, colour: str) -> None:
        """Cover everything outside the unit square."""
        outside = -MARGIN, 1 + MARGIN
        for low, high in ((-MARGIN, 0.0), (1.0, 1 + MARGIN)):
            self.rectangle(low, high, *outside, colour)
            self.rectangle(*outside, low, high, colour)

    def finished(self) -> Pixels:
        return np.array(self.image.reduce(OVERSAMPLING))

    def _line(self, width: float) -> int:
        return max(1, round(width * self.scale))


def _around(centre: Point, angles: Sequence[float], radii: Sequence[float]) -> list[Point]:
    return [
        (centre[0] + radius * math.cos(angle), centre[1] + radius * math.sin(angle))
        for angle, radius in zip(angles, radii, strict=True)
    ]


def _mixed(colour: str, other: str, part: float) -> str:
    """`part` of one colour and the rest of another."""
    one, two = np.array(ImageColor.getrgb(colour)), np.array(ImageColor.getrgb(other))
    red, green, blue = np.rint(part * one + (1 - part) * two).astype(int)
    return f"#{red:02x}{green:02x}{blue:02x}"


class ObjectCollectionPicture:
    """Rooms, start, goal, objects by colour and shape, and the agent; collected objects are faint."""

    def __init__(self, layout: ObjectLayout) -> None:
        self._layout = layout
        canvas = _Canvas.blank(FRAME)
        canvas.rectangle(0, 1, 0, 1, FLOOR)
        canvas.disc(layout.goal, layout.goal_radius, GOAL_FLOOR, GOAL)
        for wall in layout.walls.tolist():
            x_low, x_high, y_low, y_high = np.clip(wall, 0, 1)
            canvas.rectangle(x_low, x_high, y_low, y_high, WALL)
        canvas.text(layout.goal, "G", 0.1, GOAL)
        canvas.disc(layout.start, 0.034, None, START, width=0.005)
        canvas.text(layout.start, "S", 0.042, START)
        self._ground = canvas

    def draw(self, position: Point, memory: FloatArray) -> Pixels:
        """The picture for an agent at `position` that has collected the objects with memory 1."""
        canvas = self._ground.copy()
        for (x, y), kind, taken in zip(
            self._layout.objects.tolist(), self._layout.kind_of_object, memory, strict=True
        ):
            self._object(canvas, (x, y), kind, bool(taken))
        canvas.disc(position, 0.027, WHITE, WHITE)
        canvas.disc(position, 0.021, AGENT, AGENT)
        return canvas.finished()

    def _object(self, canvas: _Canvas, centre: Point, kind: int, taken: bool) -> None:
        look = self._layout.kinds[kind]
        fill = None if taken else look.colour
        line = _mixed(look.colour, FLOOR, 0.3) if taken else _mixed(look.colour, "#000000", 0.7)
        radius = self._layout.object_radius
        if look.shape == "box":
            side = radius * 0.74
            corners = [(centre[0] + dx, centre[1] + dy) for dx, dy in _SQUARE * side]
            canvas.polygon(corners, fill, line)
        elif look.shape == "triangle":
            angles = [math.pi / 2 + turn * 2 * math.pi / 3 for turn in range(3)]
            middle = (centre[0], centre[1] - radius * 0.15)
            canvas.polygon(_around(middle, angles, [radius] * 3), fill, line)
        else:
            canvas.disc(centre, radius * 0.82, fill, line)


_SQUARE = np.array([(-1.0, -1.0), (1.0, -1.0), (1.0, 1.0), (-1.0, 1.0)])


class RacerPicture:
    """The reward field (dark is high), the markers, and a triangle that points where the agent heads."""

    FIELD_POINTS = 240

    def __init__(self, layout: RacerLayout, task: Task) -> None:
        self._ground = _Canvas.blank(FRAME)
        field = Image.fromarray(_colours(self._field(layout, task)))
        left, top = self._ground.pixels((0, 1))
        right, bottom = self._ground.pixels((1, 0))
        box = (round(left), round(top), round(right), round(bottom))
        smooth = field.resize((box[2] - box[0], box[3] - box[1]), Image.Resampling.BICUBIC)
        self._ground.image.paste(smooth, box[:2])
        for number, (x, y) in enumerate(layout.markers.tolist(), start=1):
            self._ground.disc((x, y), 0.026, WHITE, FRAME, width=0.004)
            self._ground.text((x, y), str(number), 0.036, FRAME)

    def _field(self, layout: RacerLayout, task: Task) -> FloatArray:
        """Rewards at the middle of each cell of a grid, highest y first."""
        middles = (np.arange(self.FIELD_POINTS) + 0.5) / self.FIELD_POINTS
        x, y = np.meshgrid(middles, middles[::-1])
        return np.asarray(task.reward(marker_distances(x[..., None], y[..., None], layout.markers)))

    def draw(self, position: Point, angle: float) -> Pixels:
        """The picture for an agent at `position` with orientation `angle`."""
        canvas = self._ground.copy()
        turns = [angle, angle + 2.5, angle + math.pi, angle - 2.5]
        radii = [0.045, 0.036, 0.016, 0.036]
        for dx in (-1, 0, 1):  # the torus repeats: an agent at the border is also seen at the opposite one
            for dy in (-1, 0, 1):
                corners = _around((position[0] + dx, position[1] + dy), turns, radii)
                canvas.polygon(corners, RACER, WHITE, width=0.007)
        canvas.frame(FRAME)
        return canvas.finished()


def _colours(field: FloatArray) -> Pixels:
    """A colour for each number, from the least to the largest."""
    low, high = field.min(), field.max()
    part = (field - low) / (high - low) if high > low else np.zeros_like(field)
    stops = np.linspace(0, 1, len(FIELD_COLOURS))
    colours = np.array([ImageColor.getrgb(colour) for colour in FIELD_COLOURS])
    return np.stack([np.interp(part, stops, channel) for channel in colours.T], axis=-1).astype(np.uint8)
