"""The environments keep Gymnasium's contract and do what the paper says."""

import copy
import math
import pickle
import warnings
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from hypothesis import given, settings
from hypothesis import strategies as st

import sfr_fa  # noqa: F401  registers the environments
from sfr_fa.environments.adapters import WithFeatures
from sfr_fa.environments.layouts import BARRETO_LAYOUT, OBJECT_COLLECTION_LAYOUT, RACER_LAYOUT
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.environments.racer import Racer
from sfr_fa.environments.registration import ENVIRONMENTS
from sfr_fa.feature_spaces import (
    OBJECT_COLLECTION_FEATURES,
    RACER_FEATURES,
    BoxFeatures,
    DiscreteFeatures,
)
from sfr_fa.kernels import dynamics
from sfr_fa.kernels.dynamics import DOWN, LEFT, RIGHT, STRAIGHT, TURN_LEFT, TURN_RIGHT, UP
from sfr_fa.tasks import FunctionTask, LinearTask, as_task, sample_general_task, sample_racer_task
from tests.fa.engine_checks import WritesOver
from tests.refusals import refused

NAMES = tuple(ENVIRONMENTS)
GEOMETRY = OBJECT_COLLECTION_LAYOUT.geometry
NOTHING_COLLECTED = np.zeros(12)


@pytest.fixture(params=NAMES)
def env(request):
    made = gymnasium.make(request.param)
    yield made
    made.close()


def run(env, seed, steps):
    """(observation, reward, terminated, truncated, features) of a walk with actions of a fixed stream."""
    actions = np.random.default_rng(99).integers(env.action_space.n, size=steps)
    path = [(env.reset(seed=seed)[0], 0.0, False, False, np.zeros(env.unwrapped.feature_space.dimensions))]
    for action in actions:
        observation, reward, terminated, truncated, info = env.step(action)
        path.append((observation, reward, terminated, truncated, info["features"]))
        if terminated or truncated:
            env.reset()
    return path


class TestContract:
    @pytest.mark.parametrize("name", NAMES)
    def test_gymnasium_accepts_it(self, name):
        check_env(gymnasium.make(name, render_mode="rgb_array").unwrapped)

    def test_what_a_step_returns_is_never_changed_later(self, env):
        env.reset(seed=0)
        observation, _, _, _, info = env.step(0)
        kept = observation.copy(), info["features"].copy()
        info["features"][:] = 7.0
        observation[:] = 7.0
        _, _, _, _, later = env.step(1)
        assert not np.any(later["features"] == 7.0)
        again = gymnasium.make(env.spec)
        again.reset(seed=0)
        replayed, _, _, _, replayed_info = again.step(0)
        np.testing.assert_array_equal(replayed, kept[0])
        np.testing.assert_array_equal(replayed_info["features"], kept[1])

    def test_step_needs_a_running_episode(self):
        with pytest.raises(gymnasium.error.ResetNeeded):
            ObjectCollection().step(np.int64(0))
        racer = Racer()
        racer.reset(seed=0)
        for _ in range(RACER_LAYOUT.episode_steps):
            racer.step(np.int64(STRAIGHT))
        with pytest.raises(gymnasium.error.ResetNeeded):
            racer.step(np.int64(STRAIGHT))

    @pytest.mark.parametrize("action", [-1, 4, 1.5, "up", None])
    def test_a_wrong_action_is_refused_and_changes_nothing(self, action):
        env, twin = ObjectCollection(), ObjectCollection()
        for each in (env, twin):
            each.reset(seed=0)
        with refused("action is", "integer"):
            env.step(action)
        np.testing.assert_array_equal(env.step(np.int64(RIGHT))[0], twin.step(np.int64(RIGHT))[0])

    def test_an_unknown_reset_option_or_render_mode_is_refused(self):
        with refused("'taks'", "'task'"):
            Racer().reset(options={"taks": None})
        with refused("render_mode is 'human'", "'rgb_array'"):
            Racer(render_mode="human")

    @pytest.mark.parametrize("name", NAMES)
    @pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda env: pickle.loads(pickle.dumps(env))])
    def test_a_copy_shows_and_does_what_the_original_does(self, name, make_copy):
        env = gymnasium.make(name, render_mode="rgb_array").unwrapped
        env.reset(seed=3)
        for action in (1, 1, 1):
            env.step(action)
        picture = env.render()
        other = make_copy(env)
        np.testing.assert_array_equal(other.render(), picture)
        for action in (0, 1, 2, 0):
            np.testing.assert_array_equal(other.step(action)[0], env.step(action)[0])

    @pytest.mark.parametrize("name", NAMES)
    def test_vector_environments_stack_the_features(self, name):
        vector = gymnasium.make_vec(name, num_envs=2)
        vector.reset(seed=0)
        *_, infos = vector.step(np.array([0, 1]))
        singles = []
        for seed, action in ((0, 0), (1, 1)):
            single = gymnasium.make(name)
            single.reset(seed=seed)
            singles.append(single.step(action)[4]["features"])
        np.testing.assert_array_equal(infos["features"], singles)

    def test_a_step_limit_can_be_added(self):
        env = gymnasium.make("sfr/ObjectCollection-v0", max_episode_steps=3)
        env.reset(seed=0)
        assert [env.step(DOWN)[2:4] for _ in range(3)] == [(False, False), (False, False), (False, True)]


def difference(observation, action, next_observation, info):
    return np.asarray(next_observation - observation, dtype=np.float64)


STEPS = BoxFeatures(np.full(5, -1.0), np.ones(5))
HEIGHTS = BoxFeatures(np.zeros(1), np.full(1, 10.0))


class TestWrappers:
    def test_an_observation_that_is_written_over_is_remembered(self):
        env = WithFeatures(WritesOver(), difference, STEPS, LinearTask(np.arange(5)))
        env.reset(seed=0)
        assert [env.step(action)[1] for action in (0, 1, 1, 0)] == [-1.0, 1.0, 1.0, -1.0]

    def test_the_spec_of_a_wrapped_environment_makes_it_again(self):
        inner = gymnasium.make("CartPole-v1")

        def angle(observation, action, next_observation, info):
            return np.abs(next_observation[2:3]).astype(np.float64)

        env = WithFeatures(inner, angle, HEIGHTS, LinearTask([2.0]))
        again = gymnasium.make(env.spec)
        assert isinstance(again, WithFeatures)
        for each in (env, again):
            each.reset(seed=1)
        assert [env.step(a)[1] for a in (0, 1, 1)] == [again.step(a)[1] for a in (0, 1, 1)]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # about CartPole, and that there is a wrapper
            check_env(env, skip_render_check=True)

    @pytest.mark.parametrize("bad", [np.eye(2), gymnasium.spaces.Box(0, 1, (2,))])
    def test_spaces_of_others_are_refused(self, bad):
        with refused("feature_space", "DiscreteFeatures or BoxFeatures"):
            WithFeatures(WritesOver(), difference, bad, LinearTask(np.ones(5)))
        with refused("features is", "function"):
            WithFeatures(WritesOver(), bad, STEPS, LinearTask(np.ones(5)))


class TestTasks:
    def test_a_task_that_writes_to_its_argument_leaves_the_features_alone(self):
        def careless(phi):
            phi *= 0
            return phi[..., 0]

        for task in (careless, FunctionTask(careless), SimpleNamespace(reward=careless)):
            env, twin = Racer(task), Racer()
            for each in (env, twin):
                each.reset(seed=0)
            info, expected = (each.step(np.int64(0))[4] for each in (env, twin))
            np.testing.assert_array_equal(info["features"], expected["features"])
            ObjectCollection(task)

    def test_a_reward_that_is_not_finite_is_never_handed_out(self):
        # At the three points that are probed when the task is set it is finite.
        probed = SimpleNamespace(reward=lambda phi: np.where(np.isin(phi[..., 0], (0, 0.5, 1)), 1.0, np.nan))
        env = Racer(probed)
        env.reset(seed=0)
        with refused("nan", "finite"):
            env.step(np.int64(0))

    def test_default_task_rewards_every_object_and_the_goal(self):
        env = ObjectCollection()
        np.testing.assert_array_equal(env.task.reward(OBJECT_COLLECTION_FEATURES.vectors), [0, 1, 1, 1, 1, 1])

    @pytest.mark.parametrize(
        "task", [sample_racer_task(np.random.default_rng(0)), lambda phi: 3 * phi[..., 0]]
    )
    def test_a_task_can_come_from_constructor_method_or_reset_and_changes_rewards_only(self, task):
        by_method, by_reset = Racer(), Racer()
        by_method.set_task(task)
        by_reset.reset(options={"task": task})
        walks = [run(env, 3, 30)[1:] for env in (Racer(task), by_method, by_reset, Racer())]
        for one, two, three, usual in zip(*walks, strict=True):
            assert one[1] == two[1] == three[1] == as_task(task).reward(one[4]) != usual[1]
            np.testing.assert_array_equal(one[0], usual[0])

    def test_reward_is_the_tasks_reward_of_the_reported_features(self, env):
        space = env.unwrapped.feature_space
        rng = np.random.default_rng(1)
        discrete = isinstance(space, DiscreteFeatures)
        task = sample_general_task(rng, space) if discrete else sample_racer_task(rng)
        env.unwrapped.set_task(task)
        seen = set()
        for _, reward, _, _, features in run(env, 2, 4000 if discrete else 100)[1:]:
            assert reward == task.reward(features)
            seen.add(tuple(features))
        assert len(seen) >= 4  # several kinds of object, so the table was really used

    @pytest.mark.parametrize(
        ("bad", "word"),
        [
            (LinearTask(np.ones(3)), "vectors of 3 features"),
            (FunctionTask(lambda phi: phi), "shape"),
            (FunctionTask(lambda phi: phi[..., 0] + np.inf), "finite"),
            (42, "reward"),
            (sample_general_task(np.random.default_rng(0), BARRETO_LAYOUT.feature_space), "features"),
        ],
    )
    def test_a_task_that_does_not_fit_is_refused_and_the_old_one_stays(self, bad, word):
        env = ObjectCollection()
        for give in (env.set_task, lambda task: env.reset(options={"task": task})):
            with refused(word, unchanged=lambda: env.task):
                give(bad)


class TestObjectCollection:
    def test_feature_spaces_of_the_layouts_are_the_papers(self):
        assert OBJECT_COLLECTION_LAYOUT.feature_space == OBJECT_COLLECTION_FEATURES
        assert BARRETO_LAYOUT.feature_space == DiscreteFeatures(np.vstack([np.zeros(4), np.eye(4)]))

    def test_default_layout_has_three_objects_of_each_of_four_kinds_and_four_of_three(self):
        assert np.bincount(OBJECT_COLLECTION_LAYOUT.kind_of_object).tolist() == [3, 3, 3, 3]
        assert np.bincount(BARRETO_LAYOUT.kind_of_object).tolist() == [4, 4, 4]

    @pytest.mark.parametrize(
        ("action", "expected"),
        [(UP, (0.3, 0.36)), (DOWN, (0.3, 0.24)), (LEFT, (0.24, 0.3)), (RIGHT, (0.36, 0.3))],
    )
    def test_a_move_changes_one_axis_by_length_and_noise(self, action, expected):
        assert dynamics.walk(0.3, 0.3, action, 2.0, GEOMETRY) == pytest.approx(expected, abs=1e-15)

    @pytest.mark.parametrize(
        ("x", "y", "action"),
        [
            (0.03, 0.30, LEFT),  # out of the square
            (0.97, 0.30, RIGHT),
            (0.30, 0.97, UP),
            (0.30, 0.02, DOWN),
            (0.45, 0.05, RIGHT),  # into the wall x = 1/2 below its door
            (0.45, 0.50, RIGHT),  # into the crossing
            (0.60, 0.45, UP),  # into the wall y = 1/2 beside its doors
            (0.05, 0.55, DOWN),
        ],
    )
    def test_a_move_into_a_wall_or_outside_is_undone(self, x, y, action):
        assert dynamics.walk(x, y, action, 0.0, GEOMETRY) == (x, y)

    @pytest.mark.parametrize(
        ("x", "y", "action"),
        [(0.45, 0.20, RIGHT), (0.45, 0.80, RIGHT), (0.20, 0.45, UP), (0.80, 0.55, DOWN)],
    )
    def test_doors_let_the_agent_through(self, x, y, action):
        x, y = dynamics.walk(*dynamics.walk(x, y, action, 0.0, GEOMETRY), action, 0.0, GEOMETRY)
        assert (x > 0.52 or y > 0.52) if action in (RIGHT, UP) else y < 0.48

    def test_only_the_end_of_a_move_counts_so_a_thin_wall_can_be_passed(self):
        assert dynamics.walk(0.479, 0.05, RIGHT, 0.0, GEOMETRY) == pytest.approx((0.529, 0.05))

    def test_an_object_is_picked_up_once_with_the_feature_of_its_kind(self):
        for j, (x, y) in enumerate(GEOMETRY.objects.tolist()):
            memory = np.zeros(12)
            # Stay put: noise of -10 standard deviations makes the length of the move 0.
            step = dynamics.object_collection_step(x, y, memory, UP, -10.0, GEOMETRY)
            assert step == (x, y, j, 1 + OBJECT_COLLECTION_LAYOUT.kind_of_object[j])
            memory[j] = 1.0
            assert dynamics.object_collection_step(x, y, memory, UP, -10.0, GEOMETRY) == (x, y, -1, 0)

    def test_an_object_reaches_as_far_as_its_radius(self):
        x, y = GEOMETRY.objects[8]
        assert dynamics.touched_object(x + 0.0399, y, NOTHING_COLLECTED, GEOMETRY) == 8
        assert dynamics.touched_object(x, y - 0.0399, NOTHING_COLLECTED, GEOMETRY) == 8
        assert dynamics.touched_object(x + 0.0401, y, NOTHING_COLLECTED, GEOMETRY) == -1
        assert dynamics.touched_object(x + 0.03, y + 0.03, NOTHING_COLLECTED, GEOMETRY) == -1

    def test_the_goal_is_a_disc_of_radius_one_tenth(self):
        assert dynamics.at_goal(0.86 - 0.0999, 0.86, GEOMETRY)
        assert not dynamics.at_goal(0.86 - 0.1001, 0.86, GEOMETRY)
        assert not dynamics.at_goal(0.86 + 0.08, 0.86 - 0.08, GEOMETRY)

    def test_goal_wins_over_an_object_in_the_same_step(self):
        objects = GEOMETRY.objects.copy()
        objects[0] = 0.86, 0.80
        geometry = GEOMETRY._replace(objects=objects)
        assert dynamics.touched_object(0.86, 0.80, NOTHING_COLLECTED, geometry) == 0
        _, _, *seen = dynamics.object_collection_step(0.86, 0.75, NOTHING_COLLECTED, UP, 0.0, geometry)
        assert seen == [-1, 5]

    def test_an_episode_through_a_door_collects_ends_at_the_goal_and_starts_afresh(self):
        env = ObjectCollection(LinearTask([0.25, 0.5, 0.125, 0.0625, 1.0]))
        env.reset(seed=4)
        rewards, observation, terminated = [], None, False
        towards = [(UP, 1, 0.19), (RIGHT, 0, 0.60), (UP, 1, 0.25), (RIGHT, 0, 0.75), (UP, 1, 0.80)]
        for action, axis, until in towards:
            while env.position[axis] < until and not terminated:
                observation, reward, terminated, truncated, info = env.step(np.int64(action))
                rewards.append(reward)
                assert not truncated
        assert terminated
        assert info["feature_index"] == 5
        # The two blue boxes in the doors, 0.5 + 0.125 each, and the goal.
        assert [reward for reward in rewards if reward] == [0.625, 0.625, 1.0]
        np.testing.assert_array_equal(np.flatnonzero(env.collected), [2, 7])
        assert observation is not None
        np.testing.assert_array_equal(observation[100:112], env.collected)
        fresh, _ = env.reset()
        assert env.position == (0.05, 0.05)
        np.testing.assert_array_equal(fresh[100:], np.append(np.zeros(12), 1.0))

    def test_a_pre_drawn_stream_replays_the_environment(self):
        env = ObjectCollection()
        steps = 3000
        noise = np.random.default_rng(11).standard_normal(steps)
        actions = np.random.default_rng(12).integers(4, size=steps)
        env.reset(seed=11)
        (x, y), memory = OBJECT_COLLECTION_LAYOUT.start, np.zeros(12)
        ends = 0
        for action, z in zip(actions, noise, strict=True):
            _, _, terminated, _, info = env.step(action)
            x, y, picked, feature = dynamics.object_collection_step(x, y, memory, action, z, GEOMETRY)
            if picked >= 0:
                memory[picked] = 1.0
            assert (env.position, info["feature_index"]) == ((x, y), feature)
            if terminated:
                ends += 1
                env.reset()
                (x, y), memory = OBJECT_COLLECTION_LAYOUT.start, np.zeros(12)
        assert memory.any() or ends

    @settings(max_examples=60, deadline=None)
    @given(
        seed=st.integers(0, 2**32 - 1),
        name=st.sampled_from(["sfr/ObjectCollection-v0", "sfr/ObjectCollectionBarreto-v0"]),
        runs=st.lists(st.tuples(st.integers(0, 3), st.integers(1, 25)), min_size=1, max_size=12),
    )
    def test_always_inside_memory_only_grows_and_features_are_declared(self, seed, name, runs):
        env = gymnasium.make(name).unwrapped
        assert isinstance(env, ObjectCollection)
        observation, _ = env.reset(seed=seed)
        space = env.feature_space
        assert isinstance(space, DiscreteFeatures)
        for action in (action for action, times in runs for _ in range(times)):
            before = env.collected
            observation, _, terminated, truncated, info = env.step(np.int64(action))
            assert not dynamics.blocked(*env.position, env.layout.walls)
            assert (env.collected >= before).all()
            assert env.collected.sum() - before.sum() == (0 < info["feature_index"] < space.size - 1)
            assert space.index_of(info["features"]) == info["feature_index"]
            assert env.observation_space.contains(observation)
            assert terminated == (info["feature_index"] == space.size - 1)
            assert not truncated
            if terminated:
                env.reset()


@pytest.mark.parametrize(
    ("x", "y", "cell"),
    [
        (0, 0, 0),
        (0.01, 0.99, 39),
        (0.99, 0.01, 1560),
        (0.31, 0.77, 510),
        (1, 0, 1560),
        (0, 1, 39),
        (1, 1, 1599),
    ],
)
def test_cells_of_the_filter_are_forty_by_forty_squares(x, y, cell):
    """Borders included: a cell is an index into tables of compiled code."""
    world = ObjectCollection().world
    world.position[:] = x, y
    assert world.cell() == cell


@pytest.mark.parametrize(
    ("pose", "cell"),
    [
        ((0, 0, -math.pi), (0, 0, 0)),
        ((0.5, 0.99, 0.1), (12, 24, 10)),
        ((0.99, 0.05, 3.1), (24, 1, 19)),
        ((1, 1, math.pi), (24, 24, 19)),
    ],
)
def test_cells_of_the_filter_of_networks(pose, cell):
    """Borders included, as above."""
    world = Racer().world
    world.pose[:] = pose
    assert world.cell() == np.ravel_multi_index(cell, (25, 25, 20))


def test_actions_by_number():
    """Files hold numbers of actions, so that they must not change."""
    assert (UP, DOWN, LEFT, RIGHT) == (0, 1, 2, 3)
    assert (TURN_RIGHT, STRAIGHT, TURN_LEFT) == (0, 1, 2)


@pytest.mark.parametrize(
    ("x", "y", "is_blocked"),
    [
        (0.0, 0.0, False), (1.0, 1.0, False), (-1e-9, 0.5, True), (0.5, 1 + 1e-9, True),
        (1 + 1e-9, 0.5, True), (0.5, -1e-9, True), (0.25, 0.5, True), (0.5, 0.75, True),
        (0.25 - 1e-9, 0.6, False),
        (0.5 + 1e-9, 0.6, False), (0.3, 0.5 - 1e-9, False), (0.3, 0.75 + 1e-9, False),
    ],
)  # fmt: skip
def test_borders_belong_to_the_square_and_to_walls(x, y, is_blocked):
    assert dynamics.blocked(x, y, np.array([[0.25, 0.5, 0.5, 0.75]])) == is_blocked


class TestRacer:
    @pytest.mark.parametrize(
        ("action", "turn", "length"),
        [(TURN_RIGHT, math.pi / 7, 0.06), (STRAIGHT, 0.0, 0.075), (TURN_LEFT, -math.pi / 7, 0.06)],
    )
    def test_turns_come_before_the_drive(self, action, turn, length):
        x, y, angle = dynamics.drive(0.5, 0.5, 0.3, action, np.zeros(3), RACER_LAYOUT.geometry)
        assert angle == pytest.approx(0.3 + turn, abs=1e-15)
        expected = 0.5 + length * math.cos(0.3 + turn), 0.5 + length * math.sin(0.3 + turn)
        assert (x, y) == pytest.approx(expected, abs=1e-15)

    def test_noise_is_added_after_the_drive(self):
        x, y, angle = dynamics.drive(
            0.5, 0.5, 0.0, STRAIGHT, np.array([1.0, -2.0, 3.0]), RACER_LAYOUT.geometry
        )
        assert (x, y, angle) == pytest.approx((0.58, 0.49, 0.015), abs=1e-15)

    def test_the_square_is_a_torus_and_angles_a_circle(self):
        x, y, _ = dynamics.drive(0.97, 0.5, 0.0, STRAIGHT, np.zeros(3), RACER_LAYOUT.geometry)
        assert (x, y) == pytest.approx((0.045, 0.5), abs=1e-15)
        x, y, _ = dynamics.drive(0.5, 0.02, -math.pi / 2, STRAIGHT, np.zeros(3), RACER_LAYOUT.geometry)
        assert (x, y) == pytest.approx((0.5, 0.945), abs=1e-15)
        *_, angle = dynamics.drive(0.5, 0.5, 3.0, TURN_RIGHT, np.zeros(3), RACER_LAYOUT.geometry)
        assert angle == pytest.approx(3.0 + math.pi / 7 - 2 * math.pi, abs=1e-15)

    @given(st.floats(-10, 10), st.sampled_from([(0.0, 1.0), (-math.pi, 2 * math.pi)]))
    def test_wrapping_stays_in_the_half_open_interval_and_moves_by_whole_periods(self, value, circle):
        low, period = circle
        result = dynamics.wrapped(value, low, period)
        assert low <= result < low + period
        turns = (value - result) / period
        assert turns == pytest.approx(round(turns), abs=1e-14)

    def test_wrapping_a_negative_number_below_rounding_gives_zero(self):
        assert -1e-18 % 1.0 == 1.0  # why it needs care
        assert dynamics.wrapped(-1e-18, 0.0, 1.0) == 0.0

    @pytest.mark.parametrize(
        ("marker", "dx", "dy"),
        [
            ((0.9, 0.9), 0.2, 0.0),  # the paper's example, 0.2 and not 0.8, around the sides
            ((0.1, 0.1), 0.0, 0.2),  # the same over top and bottom
            ((0.8, 0.2), 0.3, 0.3),  # both
            ((0.4, 0.5), 0.3, 0.4),  # neither
        ],
    )
    def test_distances_are_measured_on_the_torus(self, marker, dx, dy):
        features = dynamics.marker_distances(0.1, 0.9, np.array([marker]))
        np.testing.assert_allclose(features, math.hypot(dx, dy) / math.sqrt(0.5), rtol=1e-14)

    def test_the_largest_distance_is_normalised_to_one(self):
        grid = np.arange(40) / 40
        x, y = np.meshgrid(grid, grid)
        features = dynamics.marker_distances(x[..., None], y[..., None], RACER_LAYOUT.markers)
        assert features.min() >= 0.0
        assert features.max() == 1.0
        np.testing.assert_array_equal(dynamics.marker_distances(0.75, 0.25, np.array([[0.25, 0.75]])), [1.0])

    def test_it_is_truncated_never_terminated_after_200_steps(self):
        env = Racer()
        env.reset(seed=1)
        ends = [env.step(np.int64(STRAIGHT))[2:4] for _ in range(200)]
        assert ends == [(False, False)] * 199 + [(False, True)]

    def test_a_pre_drawn_stream_replays_the_environment(self):
        env, rng = Racer(), np.random.default_rng(21)
        actions = np.random.default_rng(22).integers(3, size=(2, 200))
        env.reset(seed=21)
        for episode in actions:
            x, y, turn = rng.random(3)
            angle = -math.pi + 2 * math.pi * turn
            assert (*env.position, env.orientation) == (x, y, angle)
            for action, noise in zip(episode, rng.standard_normal((200, 3)), strict=True):
                _, _, _, _, info = env.step(action)
                x, y, angle = dynamics.drive(x, y, angle, action, noise, RACER_LAYOUT.geometry)
                assert (*env.position, env.orientation) == (x, y, angle)
                distances = dynamics.marker_distances(x, y, RACER_LAYOUT.markers)
                np.testing.assert_array_equal(info["features"], distances)
            env.reset()

    @settings(max_examples=30, deadline=None)
    @given(seed=st.integers(0, 2**32 - 1), actions=st.lists(st.integers(0, 2), min_size=1, max_size=100))
    def test_always_on_the_torus_with_declared_features(self, seed, actions):
        env = Racer()
        env.reset(seed=seed)
        for action in actions:
            observation, reward, _, _, info = env.step(np.int64(action))
            assert all(0 <= coordinate < 1 for coordinate in env.position)
            assert -math.pi <= env.orientation < math.pi
            RACER_FEATURES.check(info["features"])
            assert env.observation_space.contains(observation)
            assert 0 <= reward <= 1


class TestEncoding:
    @given(st.floats(0, 1), st.floats(0, 1))
    def test_product_form_equals_the_printed_formula(self, x, y):
        state = OBJECT_COLLECTION_LAYOUT.state_at(x, y)
        c = np.linspace(0, 1, 10)
        printed = np.exp(-((x - c[:, None]) ** 2 + (y - c[None, :]) ** 2) / 0.1)
        # The exponent is at most 20 and rounded a few times, so exp is off by at most 20 * 4 units (2e-14).
        np.testing.assert_allclose(state[:100], printed.ravel(), rtol=2e-14)

    def test_racer_code_by_hand(self):
        state = RACER_LAYOUT.state_at(0.95, 0.2, math.pi)
        assert state.shape == (120,)
        # Centres (i/10, j/10); 0.95 is 0.05 away from 0.9 and, around the torus, from 0.0.
        assert state[2] == pytest.approx(math.exp(-0.0025 / 0.1), rel=1e-13)
        assert state[92] == pytest.approx(math.exp(-0.0025 / 0.1), rel=1e-13)
        assert state[42] == pytest.approx(math.exp(-(0.45**2) / 0.1), rel=1e-13)
        assert state[9] == pytest.approx(math.exp(-(0.0025 + 0.09) / 0.1), rel=1e-13)
        # The orientation pi is the centre -pi; neighbours are pi/10 away, the opposite centre pi.
        assert state[100] == pytest.approx(1.0, rel=1e-14)
        assert state[101] == pytest.approx(math.exp(-math.pi / 20), rel=1e-13)
        assert state[119] == pytest.approx(math.exp(-math.pi / 20), rel=1e-13)
        assert state[110] == pytest.approx(math.exp(-5 * math.pi), rel=1e-13)

    @pytest.mark.parametrize("environment", [ObjectCollection, Racer])
    def test_sigma_is_an_option_of_an_environment(self, environment):
        """s^(0.1 / sigma) is the code of width sigma."""
        usual, wide = environment(), environment(sigma=0.2)
        (one, _), (other, _) = usual.reset(seed=0), wide.reset(seed=0)
        np.testing.assert_allclose(other[:100], np.sqrt(one[:100]), rtol=1e-13)
        np.testing.assert_array_equal(other[100:], one[100:])
        for bad in (0, -1.0, "wide", math.nan):
            with refused("sigma is"):
                environment(sigma=bad)

    def test_kinds_are_an_option_of_object_collection(self):
        env = ObjectCollection(kinds=[3] * 12)
        assert env.layout.kind_of_object == (3,) * 12
        np.testing.assert_array_equal(env.layout.objects, OBJECT_COLLECTION_LAYOUT.objects)
        assert env.feature_space == OBJECT_COLLECTION_FEATURES
        for bad in ([0] * 11, [4] * 12, [0.5] * 12, 3):
            with refused("kind_of_object"):
                ObjectCollection(kinds=bad)
