"""Pictures show the state: read back from their pixels, and drawn without touching it."""

import math

import gymnasium
import numpy as np
import pytest
from PIL import ImageColor

from sfr_fa.environments.layouts import BARRETO_LAYOUT, OBJECT_COLLECTION_LAYOUT, RACER_LAYOUT
from sfr_fa.environments.racer import Racer
from sfr_fa.environments.registration import ENVIRONMENTS
from sfr_fa.environments.rendering import (
    AGENT,
    FLOOR,
    MARGIN,
    RACER,
    SIZE,
    WALL,
    ObjectCollectionPicture,
    RacerPicture,
)
from sfr_fa.kernels.dynamics import marker_distances
from sfr_fa.tasks import LinearTask, sample_racer_task

FAR_AWAY = (0.3, 0.3)


def pixel(picture, point):
    """The colour that is drawn at a point of the unit square."""
    scale = SIZE / (1 + 2 * MARGIN)
    return picture[int((1 + MARGIN - point[1]) * scale), int((point[0] + MARGIN) * scale)].astype(int)


def close(colour, name):
    return bool(np.abs(colour - ImageColor.getrgb(name)[:3]).max() <= 2)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_pictures_are_bytes_and_drawing_changes_nothing(name):
    env = gymnasium.make(name, render_mode="rgb_array")
    twin = gymnasium.make(name)
    for made in (env, twin):
        made.reset(seed=0)
    assert twin.unwrapped.render() is None
    frames = []
    for action in (0, 1, 2, 0):
        frames.append(env.render())
        np.testing.assert_array_equal(env.step(action)[0], twin.step(action)[0])
    for frame in frames:
        assert isinstance(frame, np.ndarray)
        assert (frame.shape, frame.dtype) == ((SIZE, SIZE, 3), np.uint8)
    assert not np.array_equal(frames[0], frames[1])
    env.reset(seed=0)
    np.testing.assert_array_equal(env.render(), frames[0])


@pytest.mark.parametrize("layout", [OBJECT_COLLECTION_LAYOUT, BARRETO_LAYOUT])
def test_objects_have_their_colour_until_they_are_collected(layout):
    picture = ObjectCollectionPicture(layout)
    for j, kind in enumerate(layout.kind_of_object):
        memory = np.zeros(12)
        centre = (float(layout.objects[j, 0]), float(layout.objects[j, 1]))
        assert close(pixel(picture.draw(FAR_AWAY, memory), centre), layout.kinds[kind].colour)
        memory[j] = 1.0
        assert not close(pixel(picture.draw(FAR_AWAY, memory), centre), layout.kinds[kind].colour)


def test_kinds_of_one_colour_differ_in_shape():
    picture = ObjectCollectionPicture(OBJECT_COLLECTION_LAYOUT).draw(FAR_AWAY, np.zeros(12))
    for j, kind in enumerate(OBJECT_COLLECTION_LAYOUT.kind_of_object):
        x, y = OBJECT_COLLECTION_LAYOUT.objects[j]
        look = OBJECT_COLLECTION_LAYOUT.kinds[kind]
        upper_corner = pixel(picture, (x - 0.022, y + 0.022))  # within a box, beside a triangle
        assert close(upper_corner, look.colour) == (look.shape == "box")


def test_rooms_walls_and_agent_are_where_they_are():
    picture = ObjectCollectionPicture(OBJECT_COLLECTION_LAYOUT).draw((0.3, 0.7), np.zeros(12))
    assert close(pixel(picture, (0.3, 0.7)), AGENT)
    assert close(pixel(picture, (0.7, 0.3)), FLOOR)
    for wall in OBJECT_COLLECTION_LAYOUT.walls:
        assert close(pixel(picture, (wall[:2].mean(), wall[2:].mean())), WALL)
    assert close(pixel(picture, (0.5, 0.26)), FLOOR)  # a door


def test_racer_ground_is_darker_where_the_reward_is_higher():
    task = sample_racer_task(np.random.default_rng(1))
    picture = RacerPicture(RACER_LAYOUT, task).draw((0.02, 0.02), 0.0)
    points = np.random.default_rng(2).uniform(0.05, 0.95, (400, 2))
    away = [np.hypot(*(points - marker).T) > 0.05 for marker in RACER_LAYOUT.markers]
    points = points[np.logical_and.reduce(away)]
    rewards = task.reward(marker_distances(points[:, :1], points[:, 1:], RACER_LAYOUT.markers))
    brightness = np.array([pixel(picture, (x, y)).mean() for x, y in points])
    order = np.argsort(rewards)
    assert brightness[order[-20:]].max() < brightness[order[:20]].min() - 50


def test_a_constant_reward_can_be_drawn():
    picture = RacerPicture(RACER_LAYOUT, LinearTask(np.zeros(3))).draw((0.5, 0.5), 0.0)
    assert close(pixel(picture, (0.5, 0.5)), RACER)


@pytest.mark.parametrize("angle", [0.0, 1.0, math.pi, -2.0])
def test_racer_points_where_it_heads_and_is_seen_across_the_border(angle):
    picture = RacerPicture(RACER_LAYOUT, LinearTask(np.zeros(3)))
    tip = 0.5 + 0.02 * math.cos(angle), 0.5 + 0.02 * math.sin(angle)
    tail = 0.5 - 0.02 * math.cos(angle), 0.5 - 0.02 * math.sin(angle)
    drawn = picture.draw((0.5, 0.5), angle)
    assert close(pixel(drawn, tip), RACER)
    assert not close(pixel(drawn, tail), RACER)
    at_border = picture.draw((0.995, 0.5), 0.0)
    assert close(pixel(at_border, (0.01, 0.5)), RACER)


def test_racer_picture_follows_the_task():
    env = Racer(render_mode="rgb_array")
    env.reset(seed=0)
    before = env.render()
    env.set_task(sample_racer_task(np.random.default_rng(5)))
    assert not np.array_equal(env.render(), before)
