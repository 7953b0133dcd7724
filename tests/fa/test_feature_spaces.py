"""Finite sets of features: what is one and the same, what is found by walking, what is refused."""

import gymnasium
import numpy as np
import pytest

from experiments.peers import mo_make
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.feature_spaces import OBJECT_COLLECTION_FEATURES, TOLERANCE, BoxFeatures, DiscreteFeatures
from tests.refusals import refused

SPACE = DiscreteFeatures([[0.0, 0.0], [0.7, 1000.0], [0.3, 0.0]])


@pytest.mark.parametrize(
    ("vector", "row"),
    [
        (np.array([0.7, 1000.0], dtype=np.float32), 1),
        ([0.1 + 0.2, 0.0], 2),
        ([0.7 + 0.9 * TOLERANCE, 1000.0 - 900 * TOLERANCE], 1),
        ([-0.0, 0.0], 0),
    ],
)
def test_rounding_does_not_make_another_feature(vector, row):
    assert SPACE.index_of(vector) == row
    np.testing.assert_array_equal(SPACE.check([vector]), SPACE.vectors[[row]])


@pytest.mark.parametrize("vector", [[0.7 + 3 * TOLERANCE, 1000.0], [0.7, 1000.01], [0.3, 0.7], [np.nan, 0.0]])
def test_a_feature_that_is_not_declared_says_how_to_declare_it(vector):
    with refused("none of the 3", f"including({vector}"):
        SPACE.index_of(vector)


def test_vectors_that_could_be_taken_for_each_other_are_refused():
    with refused("vectors[0]", "vectors[2]", "leave one"):
        DiscreteFeatures([[0.0, 1.0], [5.0, 5.0], [0.9 * TOLERANCE, 1.0]])


def test_what_lies_between_two_features_is_the_nearer_one():
    """However near they are, a set takes in all that it does not recognise."""
    space = DiscreteFeatures([[0.0, 1.0]]).including([1.5 * TOLERANCE, 1.0])
    assert space.size == 2
    assert [space.index_of([k * TOLERANCE, 1.0]) for k in (0.7, 0.8)] == [0, 1]
    growing = DiscreteFeatures([[0.0, 1.0]], grow=True)
    assert [growing.observe([k * TOLERANCE, 1.0]) for k in (1.5, 0.7, 0.8, 3.0)] == [1, 0, 1, 2]


def test_including_adds_what_is_new_behind_what_is_known():
    space = SPACE.including([0.3, 0.0], [2.0, 2.0])
    np.testing.assert_array_equal(space.vectors, [*SPACE.vectors, [2.0, 2.0]])


def test_walking_finds_the_features_of_our_own_environment():
    found = DiscreteFeatures.observed(ObjectCollection(), steps=20_000, seed=0)
    assert {tuple(v) for v in found.vectors} <= {tuple(v) for v in OBJECT_COLLECTION_FEATURES.vectors}
    assert found.size >= 4
    assert found == DiscreteFeatures.observed(ObjectCollection(), steps=20_000, seed=0)


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("deep-sea-treasure-v0", 11),  # ten treasures, and none
        ("resource-gathering-v0", 5),  # nothing, an enemy, gold, gems, both
        ("four-room-v0", 5),  # nothing, three kinds of object, the goal
        ("fruit-tree-v0", 65),  # 64 fruits, and none
    ],
)
def test_walking_finds_the_vector_rewards_of_mo_gymnasium(name, size):
    assert DiscreteFeatures.observed(mo_make(name), steps=20_000, seed=0).size == size


def test_a_policy_of_ones_own_can_lead_the_walk():
    """To the right until the first treasure: it takes one step down."""
    space = DiscreteFeatures.observed(
        mo_make("deep-sea-treasure-v0"), steps=5, seed=0, policy=lambda state: 1
    )
    np.testing.assert_allclose(space.vectors, [[0.7, -1.0]], rtol=1e-6)


def test_an_environment_without_features_says_what_to_do():
    with refused("WithFeatures"):
        DiscreteFeatures.observed(gymnasium.make("CartPole-v1"), steps=5, seed=0)


def test_the_edge_of_a_box_in_float32_is_the_edge():
    box = BoxFeatures([-1.2, 0.0], np.array([0.6, 0.7], np.float32))
    np.testing.assert_array_equal(box.check(np.array([-1.2, 0.5], np.float32))[0], -1.2)
    np.testing.assert_array_equal(box.check([0.0, 0.7]), [0.0, np.float32(0.7)])
    for outside in ([-1.20001, 0.0], [0.0, 0.70001], [np.nan, 0.0]):
        with refused("must lie between"):
            box.check(outside)


@pytest.mark.parametrize("features", [[1j], ["1"], [b"1"], [{}]])
def test_features_are_real_numbers(features):
    for space in (BoxFeatures([0.0], [1.0]), DiscreteFeatures([[0.0], [1.0]])):
        with refused("real numbers"):
            space.check(features)
