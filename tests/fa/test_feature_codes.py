"""Joint codes of features, against answers by hand, and what fits to them can and cannot express."""

import numpy as np
import pytest
import torch

from sfr_fa.feature_codes import (
    CellCode,
    FourierCode,
    KernelCode,
    distance_between,
    place_centres,
    ridge_fit,
)
from sfr_fa.interactions import distances_of_random_places
from tests.refusals import refused

CENTRES = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 2.0]])
POINTS, RNG = np.random.default_rng(4).random((50, 2)), np.random.default_rng(6)


def test_bumps_by_hand():
    code = KernelCode(CENTRES, width=0.5)
    near = np.exp(-np.array([0.25, 0.25, 4.25]) / 0.5)
    np.testing.assert_allclose(code.encode([0.5, 0.0]), near / near.sum(), rtol=1e-14)
    many = np.random.default_rng(0).normal(0, 50, (4, 7, 2))
    np.testing.assert_allclose(code.encode(many).sum(axis=-1), 1)
    # A place from where every bump has underflown belongs to the nearest centre.
    np.testing.assert_allclose(code.encode([400.0, 0.0]), [0, 1, 0], atol=1e-12)


def test_waves_make_the_gaussian_kernel():
    """E[z(x) . z(y)] = exp(-|x - y|^2 / (2 w^2)); with D waves it is off by about D^-1/2."""
    code = FourierCode.random(2, 40_000, 0.7, np.random.default_rng(1))
    x, y = np.array([0.1, 0.4]), np.array([0.5, -0.2])
    kernel = np.exp(-np.square(x - y).sum() / (2 * 0.49))
    assert code.encode(x) @ code.encode(y) == pytest.approx(kernel, abs=0.02)


def test_cells_are_indicators_of_the_nearest_centre():
    np.testing.assert_array_equal(CellCode(CENTRES).encode([[0.9, 0.1], [0.5, 0.0]]), [[0, 1, 0], [1, 0, 0]])


def test_centres_lie_where_features_were_seen():
    rng = np.random.default_rng(2)
    blobs = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 9.0]])
    points = (blobs[:, None] + rng.normal(0, 0.01, (3, 50, 2))).reshape(-1, 2)
    centres = place_centres(points, 3, rng)
    np.testing.assert_allclose(centres[np.lexsort(centres.T)], blobs, atol=0.01)
    assert distance_between(blobs) == 5


def test_ridge_fit_is_the_normal_equations_and_reports_what_it_missed():
    rng = np.random.default_rng(3)
    z, v = rng.normal(size=(400, 6)), rng.normal(size=6)
    exact = ridge_fit(z, z @ v, 1e-12)
    np.testing.assert_allclose(exact.vector, v, atol=1e-10)
    assert exact.largest < 1e-9
    # What the code cannot express is measured on points that were not fitted...
    noise = rng.normal(size=400)
    missed = ridge_fit(z, z @ v + noise, 1e-12)
    assert missed.rms == pytest.approx(1, rel=0.15)
    # ... and all points count in the end.
    np.testing.assert_allclose(missed.vector, np.linalg.lstsq(z, z @ v + noise)[0], atol=1e-9)
    assert np.linalg.norm(ridge_fit(z, z @ v, 1e4).vector) < 0.1 * np.linalg.norm(v)


@pytest.mark.parametrize("count", [100, 3])
def test_a_cell_for_each_point_reads_every_reward(count):
    rewards = np.random.default_rng(4).normal(size=count)
    fit = ridge_fit(np.eye(count), rewards, 1e-12)
    np.testing.assert_allclose(fit.vector, rewards, atol=1e-9)
    # Nobody can know the reward of a cell that was not seen; a few points are all that there is.
    assert (fit.rms > 0.5) is (count == 100)


def test_a_constant_reward_is_exact_for_bumps():
    points = distances_of_random_places(np.random.default_rng(5), 500)
    code = KernelCode.observed(points, 10, np.random.default_rng(6))
    fit = ridge_fit(code.encode(points), np.full(len(points), 2.0), 1e-9)
    np.testing.assert_allclose(fit.vector, 2, rtol=1e-5)


@pytest.mark.parametrize(
    ("make", "place", "fix"),
    [
        (lambda: KernelCode(CENTRES, 0.0), "width", "positive"),
        (lambda: KernelCode([[np.nan]], 1.0), "centres[0, 0]", "finite"),
        (lambda: FourierCode(np.ones((3, 2)), np.ones(2)), "phases", "3"),
        (lambda: place_centres(np.ones((50, 2)), 4, np.random.default_rng(0)), "points", "fewer"),
        (lambda: distance_between(np.ones((1, 2))), "one centre", "width"),
        (lambda: ridge_fit(np.ones((0, 2)), np.ones(0), 1.0), "point", "at least one"),
        (lambda: KernelCode.observed(POINTS * 1e155, 5, RNG), "points", "scale"),  # SciPy would crash
        (lambda: KernelCode.observed(POINTS * 1e140, 5, RNG), "width", "1e+100"),
        (lambda: KernelCode.observed(POINTS + 1j, 5, RNG), "points", "real numbers"),
        (lambda: KernelCode.observed(POINTS, 5, None), "rng", "default_rng"),
        (lambda: KernelCode(torch.zeros((2, 2), requires_grad=True), 1.0), "centres", "detach"),
        (lambda: KernelCode(CENTRES, 1e200), "width", "1e+100"),
        (lambda: KernelCode(CENTRES, 1e-200), "width", "1e-100"),
        (lambda: FourierCode.random(2, -5, 1.0, RNG), "size", "positive integer"),
        (lambda: FourierCode.random(2.5, 5, 1.0, RNG), "dimensions", "positive integer"),
        (lambda: FourierCode.random(2, 10**12, 1.0, RNG), "size", "at most"),
        (lambda: FourierCode.random(2, 5, 1.0, 0), "rng", "default_rng"),
        (lambda: ridge_fit(np.ones((9, 3)), np.ones(9), 0.0), "ridge", "positive"),
        (lambda: ridge_fit(np.ones((9, 3)), np.ones(8), 1.0), "8 rewards", "9"),
        (lambda: ridge_fit(np.ones((2, 3)), np.array([0.0, np.nan]), 1.0), "rewards[1]", "finite"),
    ],
)
def test_bad_input_names_the_place_and_the_fix(make, place, fix):
    with refused(place, fix):
        make()


CODES = {
    "bumps": KernelCode(CENTRES, 0.5),
    "waves": FourierCode.random(2, 4, 0.5, np.random.default_rng(5)),
    "cells": CellCode(CENTRES),
}


@pytest.mark.parametrize("code", CODES.values(), ids=CODES)
@pytest.mark.parametrize(
    ("features", "place"),
    [
        ([1.0], "2 numbers"),
        ([1.0, 2.0, 3.0], "2 numbers"),
        (1.0, "2 numbers"),
        (["a", "b"], "numbers"),
        ([np.nan, 1.0], "finite"),
        ([[0.0, np.inf]], "finite"),
    ],
)
def test_features_that_a_code_does_not_know(code, features, place):
    """One number would be broadcast, and the nearest centre of NaN is the first one."""
    with refused("features", place):
        code.encode(features)
