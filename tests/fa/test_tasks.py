"""Tasks value features as written, are sampled as the paper says, and survive a file."""

import copy
import json
import math
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

from sfr_fa.environments.layouts import BARRETO_LAYOUT
from sfr_fa.feature_spaces import (
    OBJECT_COLLECTION_FEATURES,
    RACER_FEATURES,
    BoxFeatures,
    DiscreteFeatures,
)
from sfr_fa.interactions import sample_mixed_task, sample_parity_task
from sfr_fa.tasks import (
    NONLINEARITY_BRACKETS,
    AdditiveReward,
    AdditiveTask,
    FunctionTask,
    GaussianTask,
    LinearTask,
    TableTask,
    check_task,
    nonlinearity,
    sample_general_task,
    sample_linear_task,
    sample_racer_task,
    sample_task_of_nonlinearity,
    task_from_json,
)
from tests.refusals import refused

BARRETO_FEATURES = BARRETO_LAYOUT.feature_space

SAMPLERS = {
    "linear": sample_linear_task,
    "linear Barreto": lambda rng: sample_linear_task(rng, BARRETO_FEATURES),
    "general": sample_general_task,
    "general Barreto": lambda rng: sample_general_task(rng, BARRETO_FEATURES),
    "level 3": lambda rng: sample_task_of_nonlinearity(rng, 3),
    "racer": sample_racer_task,
    "parity": sample_parity_task,
    "mixed": sample_mixed_task,
}


BOX = BoxFeatures(np.array([0.0, -1.0]), np.array([1.0, 1.0]))


class TestFeatureSpaces:
    @pytest.mark.parametrize("space", [OBJECT_COLLECTION_FEATURES, RACER_FEATURES])
    def test_spaces_are_frozen_comparable_and_survive_pickling(self, space):
        copy = pickle.loads(pickle.dumps(space))
        assert copy == space
        assert hash(copy) == hash(space)
        assert space != BARRETO_FEATURES
        array = space.vectors if isinstance(space, DiscreteFeatures) else space.low
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 1.0


class TestRewards:
    def test_linear(self):
        task = LinearTask([1.0, -2.0, 0.5])
        np.testing.assert_array_equal(task.reward([[1, 1, 1], [0, 0, 2]]), [-0.5, 1.0])
        assert task.reward(np.array([0.0, 1.0, 0.0])) == -2.0

    def test_table(self):
        task = TableTask(BARRETO_FEATURES, np.arange(5.0))
        np.testing.assert_array_equal(task.reward(BARRETO_FEATURES.vectors[[[4, 0]]]), [[4.0, 0.0]])
        with refused("none of the 5"):
            task.reward([1, 1, 0, 0])

    def test_gaussian_is_the_printed_formula(self):
        task = GaussianTask(([[0.2, 0.01]], [[0.2, 0.01], [0.1, 0.004]], [[0.0, 0.005]]))
        phi = np.array([0.25, 0.14, 0.3])
        by_hand = (
            math.exp(-(0.05**2) / 0.01)
            + max(math.exp(-(0.06**2) / 0.01), math.exp(-(0.04**2) / 0.004))  # 0.698 and 0.670
            + math.exp(-(0.3**2) / 0.005)
        ) / 3
        assert task.reward(phi) == pytest.approx(by_hand, rel=1e-14)
        assert task.reward(np.stack([phi, phi])).shape == (2,)
        assert task.component(0, 0.2) == pytest.approx(1 / 3)

    @pytest.mark.parametrize("seed", range(5))
    def test_additive_tasks_are_the_sum_of_their_components(self, seed):
        rng = np.random.default_rng(seed)
        gaussian = sample_racer_task(rng)
        tasks = [
            gaussian,
            LinearTask(rng.normal(size=3)),
            AdditiveTask((np.sin, np.square, lambda x: 0 * x + 2.0)),
        ]
        phi = rng.random((4, 7, 3))
        for task in tasks:
            assert isinstance(task, AdditiveReward)
            total = sum(task.component(k, phi[..., k]) for k in range(task.dimensions))
            # A dot product may add in another order: three terms of size at most 3, so a few 1e-16.
            np.testing.assert_allclose(task.reward(phi), total, rtol=0, atol=1e-14)
        assert not isinstance(sample_general_task(rng), AdditiveReward)

    @pytest.mark.parametrize(
        "best_of_two",
        [
            lambda phi: max(phi[0], 2 * phi[1]),
            lambda phi: phi[0] if phi[0] > 2 * phi[1] else 2 * phi[1],
            np.vectorize(lambda phi: max(phi[0], 2 * phi[1]), signature="(n)->()"),
            lambda phi: np.maximum(phi[..., 0], 2 * phi[..., 1]),
        ],
    )
    def test_a_function_may_be_of_one_vector_or_vectorised(self, best_of_two):
        task = FunctionTask(best_of_two)
        # Of as many vectors as dimensions: what is not vectorised might be taken for a row of rewards.
        np.testing.assert_array_equal(task.reward([[1.0, 0.0], [1.0, 3.0]]), [1.0, 6.0])
        np.testing.assert_array_equal(task.reward(np.ones((2, 3, 2))), np.full((2, 3), 2.0))
        assert task.reward([1.0, 0.25]) == 1.0

    def test_a_function_of_tables_is_asked_at_once(self):
        for phi, expected in (([[1.0, 2.0]], [2.0]), ([1.0, 2.0], 2.0), ([[[1.0, 2.0]]], [[2.0]])):
            np.testing.assert_array_equal(FunctionTask(lambda phi: phi[:, 1]).reward(phi), expected)

    def test_a_component_need_not_be_vectorised(self):
        task = AdditiveTask((lambda x: 1.0 if x > 0.5 else 0.0, abs))
        np.testing.assert_array_equal(task.reward([[0.7, -2.0], [0.2, 1.0]]), [3.0, 1.0])

    @pytest.mark.parametrize(
        ("make", "words"),
        [
            (lambda: OBJECT_COLLECTION_FEATURES.index_of([0, 0, 0, 0]), ("last axis", "5")),
            (lambda: OBJECT_COLLECTION_FEATURES.index_of("abc"), ("features", "numbers")),
            (lambda: OBJECT_COLLECTION_FEATURES.index_of(1.0), ("last axis", "5")),
            (lambda: OBJECT_COLLECTION_FEATURES.index_of(np.zeros((2, 5))), ("one vector of 5",)),
            (lambda: BOX.check([0.5, 1.1]), ("feature 1 is 1.1", "-1.0 and 1.0")),
            (lambda: BOX.check([0.0]), ("2 feature dimensions",)),
            (lambda: DiscreteFeatures([[0, 1], [1]]), ("vectors", "equal length")),
            (lambda: DiscreteFeatures(np.zeros((0, 2))), ("vectors", "empty")),
            (lambda: DiscreteFeatures(np.zeros(2)), ("vectors", "needs 2")),
            (lambda: BoxFeatures(np.zeros(2), np.array([1.0, 0.0])), ("low[1]", "high[1]", "less")),
            (lambda: BoxFeatures(np.zeros(2), np.ones(3)), ("low", "high", "agree")),
            (lambda: LinearTask([1.0, math.inf]), ("weights[1] is inf",)),
            (lambda: LinearTask([[1.0]]), ("weights", "needs 1")),
            (lambda: LinearTask(["a"]), ("weights", "numbers")),
            (lambda: LinearTask([1.0]).reward([1.0, 2.0]), ("vectors of 1 feature",)),
            (lambda: TableTask(BARRETO_FEATURES, np.zeros(4)), ("rewards", "each of the 5")),
            (lambda: TableTask([1, 2], [1, 2]), ("DiscreteFeatures first",)),
            (lambda: GaussianTask(()), ("components", "at least one")),
            (lambda: GaussianTask("ab"), ("components", "Gaussians")),
            (lambda: GaussianTask(([[0.1, 0.0]],)), ("sigma 0.0", "positive")),
            (lambda: GaussianTask(([[0.1, 0.1, 0.1]],)), ("components[0]", "(mu, sigma)")),
            *((lambda bad=bad: AdditiveTask(bad), ("components", "function")) for bad in ((), (1.0,), abs)),
            (lambda: AdditiveTask((lambda x: [x, x],)).reward(np.zeros((2, 1))), ("components[0]",)),
            (lambda: FunctionTask(3), ("function", "3")),
            (lambda: FunctionTask(lambda phi: phi[..., 0] + math.nan).reward([1.0]), ("finite",)),
            (lambda: FunctionTask(lambda phi: phi[:, 5]).reward([[1.0, 2.0]]), ("one vector", "vectorised")),
            (lambda: check_task(lambda phi: phi, RACER_FEATURES), ("vectorised",)),
            (lambda: check_task(3, RACER_FEATURES), ("3", "reward(features)")),
            (lambda: check_task(LinearTask, RACER_FEATURES), ("LinearTask", "neither")),
            (lambda: sample_racer_task(np.random.default_rng(0), "a"), ("unit is 'a'",)),
            (lambda: sample_racer_task(np.random.default_rng(0), 0.0), ("unit is 0",)),
            (lambda: sample_task_of_nonlinearity(np.random.default_rng(0), 7), ("level is 7", "0 to 6")),
            (lambda: nonlinearity(TableTask(BARRETO_FEATURES, np.zeros(5))), ("object collection",)),
            *((lambda bad=bad: task_from_json(bad), ("kind", "linear, table, gaussian"))
              for bad in ([], {"kind": "cubic"}, {"kind": ["x"]})),
            (lambda: task_from_json({"kind": "linear"}), ("kind, weights",)),
            (lambda: task_from_json({"kind": "linear", "weights": [1.0], "extra": 0}), ("extra",)),
            (lambda: task_from_json({"kind": "linear", "weights": ["x"]}), ("weights", "numbers")),
            (lambda: task_from_json({"kind": "gaussian", "components": 3}), ("components",)),
        ],
    )  # fmt: skip
    def test_what_is_no_task_or_feature_is_refused(self, make, words):
        with refused(*words):
            make()


class TestWhatAUserMayHandIn:
    def test_gaussians_may_come_as_one_array(self):
        assert GaussianTask(np.ones((3, 1, 2))) == GaussianTask([[[1, 1]]] * 3)

    @pytest.mark.parametrize("make_copy", [copy.deepcopy, lambda task: pickle.loads(pickle.dumps(task))])
    def test_copies_are_as_read_only_as_the_original(self, make_copy):
        rng = np.random.default_rng(0)
        linear, table, gaussian = map(
            make_copy, (sample_linear_task(rng), sample_general_task(rng), sample_racer_task(rng))
        )
        box = make_copy(RACER_FEATURES)
        for array in (
            linear.weights, table.rewards, table.space.vectors, *gaussian.components, box.low, box.high
        ):  # fmt: skip
            assert not array.flags.writeable
        assert box == RACER_FEATURES

    def test_a_function_that_writes_to_its_argument_harms_nobody(self):
        def careless(phi):
            phi *= 0
            return phi[..., 0]

        features = np.ones((2, 3))
        assert check_task(FunctionTask(careless), OBJECT_COLLECTION_FEATURES)
        FunctionTask(careless).reward(features)
        AdditiveTask((lambda x: np.negative(x, out=x),) * 3).reward(features)
        assert (features == 1).all()


class TestJson:
    @pytest.mark.parametrize("name", SAMPLERS)
    @pytest.mark.parametrize("seed", [0, 1])
    def test_a_task_survives_a_file_exactly(self, name, seed):
        rng = np.random.default_rng(seed)
        task, other = SAMPLERS[name](rng), SAMPLERS[name](rng)
        read = task_from_json(json.loads(json.dumps(task.to_json())))
        assert type(read) is type(task)
        assert read == task
        assert hash(read) == hash(task)
        assert task != other
        assert pickle.loads(pickle.dumps(task)) == task


class TestSamplers:
    @pytest.mark.parametrize("name", SAMPLERS)
    def test_a_seed_gives_the_same_tasks_again(self, name):
        one, two = np.random.default_rng(5), np.random.default_rng(5)
        assert [SAMPLERS[name](one) for _ in range(3)] == [SAMPLERS[name](two) for _ in range(3)]

    def test_linear_tasks(self):
        rng, n = np.random.default_rng(0), 4000
        for space in (OBJECT_COLLECTION_FEATURES, BARRETO_FEATURES):
            weights = np.array([sample_linear_task(rng, space).weights for _ in range(n)])
            assert weights.shape == (n, space.dimensions)
            assert (weights[:, -1] == 1).all()
            assert_uniform(weights[:, :-1], -1, 1)

    def test_general_tasks(self):
        rng, n = np.random.default_rng(1), 4000
        for space in (OBJECT_COLLECTION_FEATURES, BARRETO_FEATURES):
            rewards = np.array([sample_general_task(rng, space).rewards for _ in range(n)])
            assert rewards.shape == (n, space.size)
            assert (rewards[:, 0] == 0).all()
            assert (rewards[:, -1] == 1).all()
            assert_uniform(rewards[:, 1:-1], -1, 1)

    def test_racer_tasks(self):
        rng, n = np.random.default_rng(2), 2000
        tasks = [sample_racer_task(rng) for _ in range(n)]
        counts = np.array([[len(gaussians) for gaussians in task.components] for task in tasks])
        assert counts.shape == (n, 3)
        assert set(counts.ravel()) == {1, 2}
        # A fair coin: standard error 1/2 / sqrt(n) for each marker.
        np.testing.assert_allclose(counts.mean(axis=0), 1.5, rtol=0, atol=4 * 0.5 / math.sqrt(n))
        mu, sigma = np.concatenate([gaussians for task in tasks for gaussians in task.components]).T
        assert_uniform(mu[:, None], 0.0, 0.7)
        assert_uniform(sigma[:, None], 0.001, 0.01)

    def test_racer_tasks_in_raw_distance(self):
        normalised = sample_racer_task(np.random.default_rng(3))
        raw = sample_racer_task(np.random.default_rng(3), unit=math.sqrt(2))
        phi = np.random.default_rng(4).random((50, 3))
        # The same numbers, read as distances on the torus: a feature phi is a distance sqrt(1/2) phi.
        np.testing.assert_allclose(raw.reward(phi), normalised.reward(phi * math.sqrt(0.5)), rtol=1e-10)


class TestNonlinearity:
    @given(st.lists(st.floats(-1, 1), min_size=4, max_size=4))
    def test_it_is_the_error_of_the_best_linear_model(self, rewards):
        task = TableTask(OBJECT_COLLECTION_FEATURES, np.array([0.0, *rewards, 1.0]))
        phi = OBJECT_COLLECTION_FEATURES.vectors
        # min over w, e of sum e subject to |R - phi w| <= e.
        eye = np.eye(6)
        solution = linprog(
            np.append(np.zeros(5), np.ones(6)),
            A_ub=np.block([[phi, -eye], [-phi, -eye]]),
            b_ub=np.append(task.rewards, -task.rewards),
            bounds=[(None, None)] * 5 + [(0, None)] * 6,
        )
        # HiGHS stops within 1e-7 of feasibility in each of 12 rows.
        assert nonlinearity(task) == pytest.approx(solution.fun, abs=2e-6)

    @pytest.mark.parametrize("level", range(7))
    def test_samples_are_in_their_bracket(self, level):
        rng = np.random.default_rng(level)
        low, high = NONLINEARITY_BRACKETS[level]
        values = [nonlinearity(sample_task_of_nonlinearity(rng, level)) for _ in range(100)]
        assert low <= min(values) < max(values) < high
        assert max(values) - min(values) > 0.2  # all over it

    def test_brackets_have_the_probabilities_of_a_sum_of_four_uniforms(self):
        rng, n = np.random.default_rng(9), 20_000
        values = [nonlinearity(sample_general_task(rng)) for _ in range(n)]
        edges = [low for low, _ in NONLINEARITY_BRACKETS] + [NONLINEARITY_BRACKETS[-1][1]]
        share = np.histogram(values, edges)[0] / n
        # Differences of the Irwin-Hall distribution of four uniforms on [-1, 1].
        expected = np.array([8131, 7789, 7171, 6349, 5395, 4381, 3379]) / 49152
        assert (np.abs(share - expected) < 4 * np.sqrt(expected * (1 - expected) / n)).all()


def assert_uniform(samples, low, high):
    """Each column looks uniform: range, and mean within four standard errors."""
    n = len(samples)
    assert samples.min() >= low
    assert samples.max() <= high
    # The chance that n uniforms leave the first or last 10/n of the range empty is exp(-10).
    assert (samples.min(axis=0) < low + 10 / n * (high - low)).all()
    assert (samples.max(axis=0) > high - 10 / n * (high - low)).all()
    four_errors = 4 * (high - low) / math.sqrt(12 * n)
    np.testing.assert_allclose(samples.mean(axis=0), (low + high) / 2, rtol=0, atol=four_errors)
