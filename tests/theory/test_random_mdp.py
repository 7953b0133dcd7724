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
    assert (unreachable(rng, 5, SHAPE, 0.9).transition[..., -1] == 0).all()
    tied = duplicated_action(rng, 5, SHAPE, 0.9)
    assert (tied.transition[:, :, 0] == tied.transition[:, :, -1]).all()
    assert (tied.feature_probability[:, :, 0] == tied.feature_probability[:, :, -1]).all()
    steps = layered(rng, 5, SHAPE, 0.9).transition.sum(axis=2) > 0  # six states in layers 001122
    layer = np.array([0, 0, 1, 1, 2, 2])
    for s, n in np.ndindex(6, 6):
        if layer[n] != (layer[s] + 1) % 3:
            assert not steps[:, s, n].any()


def test_families():
    assert (draw("negative").target < 0).all()
    assert (draw("negative").sources < 0).all()
    assert draw("gamma-zero").mdps.gamma == 0
    assert set(np.unique(draw("ties").target)) <= {-1, 0, 1}
    assert (draw("ties").perturbation[0] == 0).all()


def test_adversarial_errors_are_invisible_under_the_sources_reward():
    batch = draw("adversarial", count=200)
    error = batch.perturbation
    value = np.einsum("bisaf,bif->bisa", error, batch.sources)
    assert (value == 0).all()
    absolute = np.abs(error * batch.sources[:, :, None, None, :]).sum(axis=-1)
    assert (absolute[::2] == 0).all()
    under_target = np.einsum("bisaf,bf->bisa", error, batch.target)
    assert (np.abs(under_target).max(axis=(1, 2, 3)) > 0).mean() > 0.8


@pytest.mark.parametrize("name", ["states", "actions", "features", "tasks"])
def test_bad_shapes(name):
    with pytest.raises(InputError, match=f"{name} is 0; it must be at least 1"):
        Shape(**{name: 0})
