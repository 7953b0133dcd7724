"""Rewards with interactions: whether one feature pays depends on another.

    R(phi) = sum_t c_t exp(-sum_k s_{t,k} (phi_k - mu_{t,k})^2)

is a sum of products of Gaussians; a dimension with s = 0 takes no part in a product. With gates
g_k = exp(-(phi_k - mu_k)^2 / sigma_k), "feature k is about mu_k", it holds every function of gates:

    AND        g_i g_j                       and_not    g_i - g_i g_j
    XOR        g_i + g_j - 2 g_i g_j         parity     (1 - prod_k (1 - 2 g_k)) / 2
    bumps      places in the space of all features at once

None of them is a sum of functions of single features, which is all that the tents of CSFR can express.
"""

from __future__ import annotations

import itertools

import numpy as np

from sfr_fa.arrays import FloatArray
from sfr_fa.environments.layouts import RACER_LAYOUT
from sfr_fa.feature_spaces import RACER_FEATURES
from sfr_fa.kernels.dynamics import marker_distances
from sfr_fa.tasks import ProductTask


def of_gates(coefficients: dict[frozenset[int], float], mu: FloatArray, sigma: FloatArray) -> ProductTask:
    """sum over sets A of c_A prod_{k in A} g_k, with g_k = exp(-(phi_k - mu_k)^2 / sigma_k)."""
    takes_part = np.array([[k in members for k in range(len(mu))] for members in coefficients])
    sharpness = np.where(takes_part, 1 / sigma, 0.0)
    return ProductTask(np.array(list(coefficients.values())), np.where(takes_part, mu, 0.0), sharpness)


def conjunction(i: int, j: int) -> dict[frozenset[int], float]:
    return {frozenset({i, j}): 1.0}


def but_not(i: int, j: int) -> dict[frozenset[int], float]:
    return {frozenset({i}): 1.0, frozenset({i, j}): -1.0}


def exclusive(i: int, j: int) -> dict[frozenset[int], float]:
    return {frozenset({i}): 1.0, frozenset({j}): 1.0, frozenset({i, j}): -2.0}


def parity(dimensions: int) -> dict[frozenset[int], float]:
    """(1 - prod_k (1 - 2 g_k)) / 2, expanded: a set of m gates has the coefficient -(-2)^m / 2."""
    return {
        frozenset(members): -((-2.0) ** size) / 2
        for size in range(1, dimensions + 1)
        for members in itertools.combinations(range(dimensions), size)
    }


GATE_MU, GATE_SIGMA = (0.2, 0.7), (0.02, 0.04)
"""Gates of the samplers: mu and sigma are uniform in these ranges."""
BUMP_SIGMA = 0.02


def _gates(rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
    n = RACER_FEATURES.dimensions
    return rng.uniform(*GATE_MU, n), rng.uniform(*GATE_SIGMA, n)


def distances_of_random_places(rng: np.random.Generator, count: int) -> FloatArray:
    """Features of places that are uniform on the racer's torus, (count, n)."""
    x, y = np.split(rng.random((count, 2)), 2, axis=1)
    return marker_distances(x, y, RACER_LAYOUT.markers)


def sample_parity_task(rng: np.random.Generator) -> ProductTask:
    """An odd number of the racer's three gates is open."""
    mu, sigma = _gates(rng)
    return of_gates(parity(len(mu)), mu, sigma)


def sample_mixed_task(rng: np.random.Generator) -> ProductTask:
    """AND, AND NOT or XOR of two of the racer's markers, or two bumps in the space of all three distances."""
    n = RACER_FEATURES.dimensions
    kind = rng.integers(4)
    if kind == 3:
        # Bumps lie where a place on the torus can be: at the distances of a random place from the markers.
        return ProductTask(np.ones(2), distances_of_random_places(rng, 2), np.full((2, n), 1 / BUMP_SIGMA))
    mu, sigma = _gates(rng)
    i, j = rng.permutation(n)[:2]
    return of_gates((conjunction, but_not, exclusive)[kind](int(i), int(j)), mu, sigma)
