"""A layout is data: good ones are accepted and walked in, bad ones get a sentence that names the place."""

import copy
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
from sfr_theory.errors import InputError

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


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"objects": [(0.2, 0.5), (0.5, 0.5)]}, r"object 1 at \(0.5, 0.5\) is in a wall"),
        ({"objects": [(0.2, 0.5), (1.2, 0.5)]}, r"object 1 at \(1.2, 0.5\) is in a wall or outside"),
        ({"start": (0.5, 0.1)}, r"start at \(0.5, 0.1\) is in a wall"),
        ({"start": (-0.1, 0.1)}, "start at .* outside"),
        ({"start": (0.8, 0.1)}, "start .* is within the goal area"),
        ({"goal": (0.5, 0.5)}, "goal at .* is in a wall"),
        ({"objects": [(0.2, 0.5), (0.2, 0.57)]}, "objects 0 and 1 overlap: they are 0.07 apart"),
        ({"walls": [(0.45, 0.55, 0.0, 1.0)]}, "goal at .* cannot be reached"),
        ({"walls": [(0.55, 0.45, 0.0, 0.8)]}, r"walls\[0\] is empty"),
        ({"walls": [(0.4, 0.5, 0.1)]}, "rows of 3 numbers; each needs 4"),
        ({"walls": [(0.4, math.nan, 0.0, 0.8)]}, r"walls\[0, 1\] is nan"),
        ({"objects": []}, "objects has 1 axes|objects is empty"),
        ({"kind_of_object": [0]}, "1 entries for 2 objects"),
        ({"kind_of_object": [0, 2]}, r"kind_of_object\[1\] is 2"),
        ({"kinds": []}, "kinds is empty"),
        ({"kinds": [GEM, GEM]}, "same feature"),
        ({"kinds": [GEM, ObjectKind("rock", (1,), "#000000", "box")]}, "rock has 1 features"),
        ({"object_radius": 0.0}, "object_radius is 0.0"),
        ({"step_length": 0.0}, "step_length is 0.0"),
        ({"step_noise": -1.0}, "step_noise is -1.0"),
        ({"start": (0.1, 0.1, 0.1)}, "start has 3 numbers"),
        ({"objects": [(0.2, 0.5), (0.8, 0.2)]}, r"object 1 at \(0.8, 0.2\) is within the goal area"),
        ({"objects": [(0.06, 0.07), (0.8, 0.5)]}, r"object 0 at \(0.06, 0.07\) is touched at the start"),
        (
            {
                "walls": [(0.45, 0.55, 0.0, 0.8), (0.0, 0.4, 0.7, 0.77), (0.33, 0.4, 0.7, 1.0)],
                "objects": [(0.2, 0.9), (0.8, 0.5)],
            },
            r"object 0 at \(0.2, 0.9\) cannot be reached",
        ),
        ({"kind_of_object": [0, 0.5]}, r"kind_of_object\[1\] is 0.5; it must be an integer"),
        ({"kind_of_object": None}, "kind_of_object is None"),
        ({"kinds": [GEM, "coin"]}, r"kinds\[1\] is 'coin'; it must be an ObjectKind"),
        ({"walls": None}, "walls is None"),
        ({"step_length": "a"}, "step_length is 'a'"),
        ({"step_noise": math.inf}, "step_noise is inf"),
    ],
)
def test_a_bad_layout_gets_a_sentence(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        layout(**changes)


def test_an_unknown_shape_gets_a_sentence():
    with pytest.raises(InputError, match="gem has shape 'star'"):
        ObjectKind("gem", (1, 0), "#aa0000", "star")


@pytest.mark.parametrize("colour", ["blurple", "", None, 7])
def test_an_unknown_colour_gets_a_sentence(colour):
    with pytest.raises(InputError, match="gem has colour"):
        ObjectKind("gem", (1, 0), colour, "box")


@pytest.mark.parametrize("steps", [0, 2.5, True, "many", math.inf])
def test_an_episode_has_a_whole_number_of_steps(steps):
    with pytest.raises(InputError, match=r"episode_steps is .* positive integer"):
        RacerLayout(episode_steps=steps)


def test_environments_refuse_layouts_of_others_and_take_none_for_the_default():
    with pytest.raises(InputError, match="needs a ObjectLayout"):
        ObjectCollection(layout=RacerLayout())
    with pytest.raises(InputError, match="needs a RacerLayout"):
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
        with pytest.raises(InputError, match="cannot be reached"):
            layout(walls=[(0.46, 0.54, 0.0, 1.0)])

    def test_a_door_narrower_than_the_grid_of_noiseless_steps_is_missed(self):
        # Without noise the agent stays on 0.05, 0.10, ...; a door between two of these lets nobody through.
        narrow = [(0.45, 0.55, 0.0, 0.81), (0.45, 0.55, 0.84, 1.0)]
        layout(walls=narrow)
        with pytest.raises(InputError, match="cannot be reached"):
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
        with pytest.raises(InputError, match="cannot be reached"):
            layout(step_length=3.0, step_noise=0.1)
        with pytest.raises(InputError, match=r"step_length is 0\.001"):
            layout(step_length=0.001)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"markers": [(0.2, 1.0)]}, r"marker 0 is at \[0.2, 1.0\]"),
        ({"markers": [(0.2, 0.1, 0.1)]}, "rows of 3 numbers"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"turn_angle": math.inf}, "turn_angle is inf"),
        ({"episode_steps": 0}, "episode_steps is 0"),
    ],
)
def test_a_bad_racer_gets_a_sentence(changes, sentence):
    with pytest.raises(InputError, match=sentence):
        RacerLayout(**changes)


def test_a_racer_with_other_markers_has_a_feature_for_each():
    env = Racer(layout=RacerLayout(markers=[(0.5, 0.5)], episode_steps=5))
    check_env(env, skip_render_check=True)
    env.reset(seed=0)
    *_, truncated, info = [env.step(np.int64(0)) for _ in range(5)][-1]
    assert truncated
    assert info["features"].shape == (1,)
