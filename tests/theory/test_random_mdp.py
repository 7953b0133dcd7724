"""Generators give what their names say, the same for the same seed, and nothing that rounds."""

import numpy as np
import pytest

from sfr_theory.arithmetic import exact_array
from sfr_theory.errors import InputError
from sfr_theory.random_mdp import (
    FAMILIES,
    Shape,
    absorbing,
    deterministic,
    duplicated_action,
    garnet,
    layered,
    unreachable,
)

SHAPE = Shape(6, 3, 4, 2)


def draw(family, seed=0, count=40, shape=SHAPE):
    return FAMILIES[family](np.random.default_rng(seed), count, shape, 0.9, 0.1)


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_is_seeded_valid_and_exact(family):
    batch, again = draw(family), draw(family)
    for name in ("target", "sources", "perturbation"):
        assert (getattr(batch, name) == getattr(again, name)).all()
        array = getattr(batch, name)[:2]
        assert (exact_array(array).astype(float) == array).all()
    assert (batch.mdps.transition == again.mdps.transition).all()
    assert (batch.target != draw(family, seed=1).target).any()
    mdp = batch.mdps[0].to_exact()  # validates that rows sum to 1 exactly
    assert (mdp.to_float().kernel == batch.mdps[0].kernel).all()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    "shape", [Shape(1, 1, 1, 1), Shape(1, 2, 1, 1), Shape(2, 1, 2, 3), Shape(2, 2, 2, 1)]
)
def test_the_smallest_shapes_work(family, shape):
    batch = draw(family, shape=shape, count=3)
    assert batch.mdps[2].num_states == shape.states


def test_garnet_has_distinct_next_states():
    mdps = garnet(np.random.default_rng(0), 20, SHAPE, 0.9, branching=3)
    ordered = np.sort(mdps.next_state, axis=-1)
    assert (np.diff(ordered, axis=-1) > 0).all()


def test_structures():
    rng = np.random.default_rng(0)
    assert (deterministic(rng, 5, SHAPE, 0.9).transition.max(axis=-1) == 1).all()
    assert (absorbing(rng, 5, SHAPE, 0.9).transition[:, -1, :, -1] == 1).all()
    assert (absorbing(rng, 5, SHAPE, 0.9).feature_probability[:, -1, :, 0] == 1).all()
    tied = duplicated_action(rng, 5, SHAPE, 0.9)
    assert (tied.transition[:, :, 0] == tied.transition[:, :, -1]).all()
    assert (tied.feature_probability[:, :, 0] == tied.feature_probability[:, :, -1]).all()


def test_what_is_drawn_fills_its_range():
    """Multiples of 1/64 in [-1, 1], of epsilon/64 up to epsilon, probabilities of 1/1024; both ends occur."""
    batch = draw("garnet", count=400)
    for array, largest in ((batch.target, 1.0), (batch.sources, 1.0), (batch.perturbation, 104858 / 2**20)):
        assert array.min() == -largest
        assert array.max() == largest
        assert (array / largest * 64 == np.round(array / largest * 64)).all()
        assert len(np.unique(array)) == 129
        assert abs(array.mean()) < 0.1 * largest
    probability = batch.mdps.probability
    assert probability.shape == (400, 6, 3, 3)
    assert probability.min() == 0
    assert (probability * 1024 == np.round(probability * 1024)).all()
    assert (probability * 1024 % 2 == 1).any()
    assert (probability.sum(axis=-1) == 1).all()
    assert np.abs(probability.mean(axis=(0, 1, 2)) - 1 / 3).max() < 0.02  # cuts of [0, 1] at random
    vectors = batch.mdps.feature_vectors
    assert vectors.shape == (400, 4, 3)
    assert set(np.unique(vectors)) == {0, 1}
    for part, limit in ((batch.mdps.next_state, 6), (batch.mdps.feature, 4)):
        counts = np.bincount(part.reshape(-1), minlength=limit)
        assert len(counts) == limit
        assert np.abs(counts / counts.sum() - 1 / limit).max() < 0.02
    assert draw("garnet", shape=Shape(2, 1, 1, 1)).mdps.feature_vectors.shape == (40, 1, 1)
    assert Shape() == Shape(5, 3, 4, 3)


def test_layers_reach_every_state_of_the_next():
    reached = layered(np.random.default_rng(0), 50, Shape(7, 3, 4, 2), 0.9).transition.sum(axis=(0, 2)) > 0
    layer = np.arange(7) * 3 // 7
    assert (reached == (layer[None, :] == (layer[:, None] + 1) % 3)).all()
    other = unreachable(np.random.default_rng(0), 50, Shape(7, 3, 4, 2), 0.9).transition.sum(axis=(0, 2)) > 0
    assert (other.any(axis=0) == [True] * 6 + [False]).all()


def test_families():
    assert draw("gamma-zero").mdps.gamma == 0
    batch = draw("ties")
    assert set(np.unique(batch.target)) <= {-1, 0, 1}
    assert [bool(errors.any()) for errors in batch.perturbation] == [False, True] * 20
    negative = draw("negative", count=400)
    assert negative.target.max() == negative.sources.max() == -1 / 64
    assert negative.sources.min() == -1 - 1 / 64


def test_adversarial_sources_and_errors():
    batch = draw("adversarial", count=400)
    near = batch.sources[:, 0] - batch.target
    assert np.abs(near).max() == 1 / 16
    sparse = batch.sources[:, 1] == 0
    assert 0.45 < sparse.mean() < 0.56
    assert np.abs(batch.perturbation[::2]).max() == 16
    assert not (np.abs(batch.perturbation[1::2] * batch.sources[1::2, :, None, None, :]) == 0).all()
    single = draw("adversarial", shape=Shape(2, 2, 1, 2))
    assert (single.perturbation * single.sources[:, :, None, None, :] == 0).all()
    assert (np.einsum("bisaf,bif->bisa", batch.perturbation, batch.sources) == 0).all()
    assert (batch.perturbation[::2] * batch.sources[::2, :, None, None, :] == 0).all()
    under_target = np.einsum("bisaf,bf->bisa", batch.perturbation, batch.target)
    assert (np.abs(under_target).max(axis=(1, 2, 3)) > 0).mean() > 0.8


@pytest.mark.parametrize("name", ["states", "actions", "features", "tasks"])
def test_bad_shapes(name):
    with pytest.raises(InputError, match=f"{name} is 0; it must be at least 1"):
        Shape(**{name: 0})
