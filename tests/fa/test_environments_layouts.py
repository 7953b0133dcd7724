"""A layout is data: good ones are accepted and walked in, bad ones get a sentence that names the place."""

import copy
import dataclasses
import functools
import math
import pickle

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from sfr_fa.environments.layouts import (
    BARRETO_LAYOUT,
    OBJECT_COLLECTION_LAYOUT,
    RACER_LAYOUT,
    ObjectKind,
    ObjectLayout,
    RacerLayout,
)
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.environments.racer import Racer
from sfr_fa.kernels import dynamics
from tests.refusals import refused

GEM = ObjectKind("gem", (1, 0), "#aa0000", "circle")
COIN = ObjectKind("coin", (0, 1), "#00aa00", "box")


def layout(**changes):
    """One wall with a door at the top, a gem and a coin."""
    plain = {
        "walls": [(0.45, 0.55, 0.0, 0.8)],
        "objects": [(0.2, 0.5), (0.8, 0.5)],
        "kind_of_object": [0, 1],
        "kinds": [GEM, COIN],
        "goal": (0.86, 0.14),
    }
    return ObjectLayout(**(plain | changes))


def test_a_layout_of_ones_own_makes_an_environment():
    env = ObjectCollection(layout=layout())
    check_env(env, skip_render_check=True)
    assert env.observation_space.shape == (100 + 2 + 1,)
    np.testing.assert_array_equal(
        layout().feature_space.vectors, [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]]
    )


def test_walls_may_be_missing():
    env = ObjectCollection(layout=layout(walls=[], goal=(0.86, 0.86)))
    env.reset(seed=0)
    while env.position[0] < 0.9:
        before = env.position[0]
        env.step(np.int64(dynamics.RIGHT))
        assert env.position[0] > before


BAD_LAYOUTS = [
    ({"objects": [(0.2, 0.5), (0.5, 0.5)]}, ("object 1", "wall")),
    ({"objects": [(0.2, 0.5), (1.2, 0.5)]}, ("object 1", "outside")),
    ({"objects": [(0.2, 0.5), (0.2, 0.57)]}, ("objects 0 and 1", "0.07 apart")),
    ({"objects": [(0.2, 0.5), (0.8, 0.2)]}, ("object 1", "goal area")),
    ({"objects": [(0.06, 0.07), (0.8, 0.5)]}, ("object 0", "start")),
    ({"objects": []}, ("objects",)),
    ({"start": (0.5, 0.1)}, ("start", "wall")),
    ({"start": (-0.1, 0.1)}, ("start", "outside")),
    ({"start": (0.8, 0.1)}, ("start", "goal area")),
    ({"start": (0.1, 0.1, 0.1)}, ("start", "x and y")),
    ({"goal": (0.5, 0.5)}, ("goal", "wall")),
    ({"walls": [(0.45, 0.55, 0.0, 1.0)]}, ("goal", "cannot be reached")),
    ({"walls": [(0.55, 0.45, 0.0, 0.8)]}, ("walls[0]", "empty")),
    ({"walls": [(0.4, 0.5, 0.1)]}, ("walls", "4")),
    ({"walls": [(0.4, math.nan, 0.0, 0.8)]}, ("walls[0, 1]", "finite")),
    ({"walls": None}, ("walls is None", "[]")),
    (
        {
            "walls": [(0.45, 0.55, 0.0, 0.8), (0.0, 0.4, 0.7, 0.77), (0.33, 0.4, 0.7, 1.0)],
            "objects": [(0.2, 0.9), (0.8, 0.5)],
        },
        ("object 0", "cannot be reached"),
    ),
    ({"kind_of_object": [0]}, ("kind_of_object", "2 objects")),
    ({"kind_of_object": [0, 2]}, ("kind_of_object[1] is 2",)),
    ({"kind_of_object": [0, 0.5]}, ("kind_of_object[1] is 0.5", "integer")),
    ({"kind_of_object": None}, ("kind_of_object is None", "list")),
    ({"kinds": []}, ("kinds", "empty")),
    ({"kinds": [GEM, GEM]}, ("same feature",)),
    ({"kinds": [GEM, ObjectKind("rock", (1,), "#000000", "box")]}, ("rock", "1 features")),
    ({"kinds": [GEM, "coin"]}, ("kinds[1] is 'coin'", "ObjectKind")),
    *(({name: value}, (f"{name} is {value!r}",)) for name, value in [
        ("object_radius", 0.0), ("step_length", 0.0), ("step_length", "a"), ("step_noise", -1.0),
        ("step_noise", math.inf),
    ]),
]  # fmt: skip
BAD_RACERS = [
    ({"markers": [(0.2, 1.0)]}, ("marker 0", "[0, 1)")),
    ({"markers": [(0.2, 0.1, 0.1)]}, ("markers", "x and y")),
    ({"noise": -0.1}, ("noise is -0.1",)),
    ({"turn_angle": math.inf}, ("turn_angle is inf",)),
    *(({"episode_steps": value}, ("episode_steps is", "positive integer"))
      for value in (0, 2.5, True, "many", math.inf)),
]  # fmt: skip
BAD_KINDS = [
    ({"shape": "star"}, ("gem", "'star'", "circle")),
    *(({"colour": colour}, ("gem", "colour", "#e8862e")) for colour in ("blurple", "", None, 7)),
]


@pytest.mark.parametrize(
    ("make", "changes", "words"),
    [
        *((layout, *case) for case in BAD_LAYOUTS),
        *((RacerLayout, *case) for case in BAD_RACERS),
        *((functools.partial(dataclasses.replace, GEM), *case) for case in BAD_KINDS),
    ],
)
def test_what_cannot_be_is_refused(make, changes, words):
    with refused(*words):
        make(**changes)


def test_environments_refuse_layouts_of_others_and_take_none_for_the_default():
    with refused("layout is", "ObjectLayout"):
        ObjectCollection(layout=RacerLayout())
    with refused("layout is", "RacerLayout"):
        Racer(layout=layout())
    assert Racer(layout=None).layout is RACER_LAYOUT


@pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda layout: pickle.loads(pickle.dumps(layout))])
def test_copies_of_a_layout_are_as_read_only_as_it_is(make_copy):
    rooms, racer = make_copy(OBJECT_COLLECTION_LAYOUT), make_copy(RACER_LAYOUT)
    for array in (rooms.walls, rooms.objects, racer.markers, make_copy(layout(walls=[])).walls):
        assert not array.flags.writeable
    assert rooms.feature_space == OBJECT_COLLECTION_LAYOUT.feature_space


class TestReachability:
    @pytest.mark.timeout(20)
    @pytest.mark.parametrize("noise", [1.0, 1e6, 1e308])
    def test_wild_noise_reaches_everything_at_once(self, noise):
        _, _, reached = layout(step_noise=noise).reachable_points()
        assert reached.any()

    def test_a_wall_thinner_than_a_step_does_not_separate_a_thicker_one_does(self):
        layout(walls=[(0.48, 0.52, 0.0, 1.0)])
        with refused("cannot be reached"):
            layout(walls=[(0.46, 0.54, 0.0, 1.0)])

    def test_a_door_narrower_than_the_grid_of_noiseless_steps_is_missed(self):
        # Without noise the agent stays on 0.05, 0.10, ...; a door between two of these lets nobody through.
        narrow = [(0.45, 0.55, 0.0, 0.81), (0.45, 0.55, 0.84, 1.0)]
        layout(walls=narrow)
        with refused("cannot be reached"):
            layout(walls=narrow, step_noise=0.0)

    @pytest.mark.parametrize("default", [OBJECT_COLLECTION_LAYOUT, BARRETO_LAYOUT])
    def test_every_object_of_the_default_layouts_can_be_reached(self, default):
        x, y, reached = default.reachable_points()
        for object_x, object_y in default.objects:
            near = (x[:, None] - object_x) ** 2 + (y[None, :] - object_y) ** 2 <= default.object_radius**2
            assert (near & reached).any()

    def test_flood_fill_and_dynamics_agree_on_what_is_blocked(self):
        x, y, reached = OBJECT_COLLECTION_LAYOUT.reachable_points()
        for i in range(0, x.size, 3):
            for j in range(0, y.size, 3):
                # In this layout every free point can be reached.
                assert reached[i, j] != dynamics.blocked(x[i], y[j], OBJECT_COLLECTION_LAYOUT.walls)

    def test_tiny_steps_arrive_and_huge_ones_do_not(self):
        layout(step_length=1 / 400, step_noise=0.0)
        with refused("cannot be reached"):
            layout(step_length=3.0, step_noise=0.1)
        with refused("step_length is 0.001"):
            layout(step_length=0.001)


def test_a_racer_with_other_markers_has_a_feature_for_each():
    env = Racer(layout=RacerLayout(markers=[(0.5, 0.5)], episode_steps=5))
    check_env(env, skip_render_check=True)
    env.reset(seed=0)
    *_, truncated, info = [env.step(np.int64(0)) for _ in range(5)][-1]
    assert truncated
    assert info["features"].shape == (1,)
