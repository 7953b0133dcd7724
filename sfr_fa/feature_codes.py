"""Joint codes z(phi) in R^D of all feature dimensions at once, and how a reward function is fitted to them.

SF sums phi itself, SFR the indicator of phi, CSFR a tent code of each dimension. What rewards can be valued
follows from the code: Q = v . psi_z is exact where R(phi) = v . z(phi). Tents of single dimensions add up
functions of one dimension each; a code of all dimensions together knows interactions too, at the price of a D
that grows with the volume that features fill.

    KernelCode    z_j = exp(-|phi - c_j|^2 / (2 w^2)) / sum_i exp(-|phi - c_i|^2 / (2 w^2))    sums to 1
    FourierCode   z_j = sqrt(2 / D) cos(omega_j . phi + b_j),  omega_j ~ N(0, w^-2), b_j ~ U(0, 2 pi)
    CellCode      z_j = 1 if c_j is the nearest centre to phi, else 0

Centres come from features that were observed (`place_centres`: k-means); the width w of bumps is the median
distance of a centre to the nearest other one.

A known reward is read with the v that minimises sum_m (R(phi_m) - v . z(phi_m))^2 + ridge |v|^2 over points
phi_m that occur (`ridge_fit`). A fit to four fifths of them is measured on the others; the residuals there
are what no amount of learning can repair (T2'' in docs/theory.md). Then all points count.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np
from scipy.cluster.vq import kmeans2
from scipy.spatial import cKDTree

from sfr_fa.arrays import (
    FloatArray,
    KeepsArraysReadOnly,
    finite_array,
    positive_integer,
    positive_number,
    random_generator,
)
from sfr_theory.errors import InputError, in_short


@runtime_checkable
class FeatureCode(Protocol):
    """z(phi), vectorised over leading axes: (..., n) -> (..., D)."""

    @property
    def dimensions(self) -> int:
        """n."""

    @property
    def size(self) -> int:
        """D."""

    def encode(self, features: FloatArray) -> FloatArray: ...


LEAST_WIDTH, MOST_WIDTH = 1e-100, 1e100
"""Beyond these, squares of distances in widths are no numbers."""
MOST_WAVES = 1_000_000


def features_of(code: FeatureCode, features: FloatArray) -> FloatArray:
    """Features that a code is given, if they are numbers, as many as it codes."""
    try:
        found = np.asarray(features, dtype=np.float64)
    except (TypeError, ValueError, RuntimeError):
        raise InputError(f"features are {in_short(features)}; a code needs arrays of numbers") from None
    if found.ndim == 0 or found.shape[-1] != code.dimensions:
        raise InputError(
            f"features have shape {found.shape}; this code needs {code.dimensions} numbers in the last axis"
        )
    if not np.isfinite(found).all():
        raise InputError("features hold a number that is not finite; there is no code of it")
    return found


@dataclass(frozen=True, eq=False)
class _CentredCode(KeepsArraysReadOnly):
    """A code with an entry for each of its centres (D, n)."""

    centres: FloatArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "centres", finite_array(self.centres, "centres", ("centres", "dimensions")))

    @property
    def dimensions(self) -> int:
        return self.centres.shape[1]

    @property
    def size(self) -> int:
        return len(self.centres)


@dataclass(frozen=True, eq=False)
class KernelCode(_CentredCode):
    """Normalised Gaussian bumps at centres (D, n), all of one width."""

    width: float

    def __post_init__(self) -> None:
        super().__post_init__()
        width = positive_number(self.width, "width")
        if not LEAST_WIDTH <= width <= MOST_WIDTH:
            raise InputError(f"width is {width}; it must be from {LEAST_WIDTH} to {MOST_WIDTH}")
        object.__setattr__(self, "width", width)

    @staticmethod
    def observed(points: FloatArray, size: int, rng: np.random.Generator) -> KernelCode:
        """`size` bumps where features were observed, as wide as the distance between their centres."""
        centres = place_centres(points, size, rng)
        return KernelCode(centres, distance_between(centres))

    def encode(self, features: FloatArray) -> FloatArray:
        exponent = -squared_distances(features_of(self, features), self.centres) / (2 * self.width**2)
        # Relative to the nearest centre: far from all of them the code is that centre's and not 0 / 0.
        bumps = np.exp(exponent - exponent.max(axis=-1, keepdims=True))
        return bumps / bumps.sum(axis=-1, keepdims=True)


@dataclass(frozen=True, eq=False)
class FourierCode(KeepsArraysReadOnly):
    """Random Fourier features (Rahimi & Recht 2007) of a Gaussian kernel: frequencies (D, n), phases (D,)."""

    frequencies: FloatArray
    phases: FloatArray

    def __post_init__(self) -> None:
        frequencies = finite_array(self.frequencies, "frequencies", ("waves", "dimensions"))
        phases = finite_array(self.phases, "phases", ("waves",))
        if len(phases) != len(frequencies):
            raise InputError(
                f"phases has {len(phases)} entries; it needs one for each of the {len(frequencies)} waves"
            )
        object.__setattr__(self, "frequencies", frequencies)
        object.__setattr__(self, "phases", phases)

    @staticmethod
    def random(dimensions: int, size: int, width: float, rng: np.random.Generator) -> FourierCode:
        """Waves of a Gaussian kernel of this width."""
        dimensions, size = positive_integer(dimensions, "dimensions"), positive_integer(size, "size")
        if size > MOST_WAVES:
            raise InputError(f"size is {size}; it may be {MOST_WAVES} at most")
        rng, width = random_generator(rng), positive_number(width, "width")
        return FourierCode(rng.normal(0.0, 1 / width, (size, dimensions)), rng.uniform(0.0, 2 * np.pi, size))

    @staticmethod
    def observed(points: FloatArray, size: int, rng: np.random.Generator) -> FourierCode:
        """`size` waves of the kernel whose width `size` bumps would have where features were observed."""
        centres = place_centres(points, size, rng)
        return FourierCode.random(centres.shape[1], size, distance_between(centres), rng)

    @property
    def dimensions(self) -> int:
        return self.frequencies.shape[1]

    @property
    def size(self) -> int:
        return len(self.frequencies)

    def encode(self, features: FloatArray) -> FloatArray:
        waves = features_of(self, features) @ self.frequencies.T + self.phases
        return np.sqrt(2 / self.size) * np.cos(waves)


@dataclass(frozen=True, eq=False)
class CellCode(_CentredCode):
    """The indicator of the nearest of the centres (D, n); of equally near ones, the first."""

    @staticmethod
    def observed(points: FloatArray, size: int, rng: np.random.Generator) -> CellCode:
        """`size` cells around the centres of features that were observed."""
        return CellCode(place_centres(points, size, rng))

    def encode(self, features: FloatArray) -> FloatArray:
        nearest = squared_distances(features_of(self, features), self.centres).argmin(axis=-1)
        return np.eye(self.size)[nearest]


def squared_distances(features: FloatArray, centres: FloatArray) -> FloatArray:
    """|phi - c_j|^2: (..., n) -> (..., D)."""
    return np.square(features[..., None, :] - centres).sum(axis=-1)


def place_centres(points: FloatArray, size: int, rng: np.random.Generator) -> FloatArray:
    """`size` centres that k-means finds in observed features (m, n)."""
    points = finite_array(points, "points", ("points", "dimensions"))
    size, rng = positive_integer(size, "size"), random_generator(rng)
    with np.errstate(over="ignore"):
        if not np.isfinite(len(points) * np.square(np.abs(points).max() * points.shape[1])):
            raise InputError(
                f"points are as large as {np.abs(points).max():.3g}; scale them: squares overflow"
            )
    distinct = len(np.unique(points, axis=0))
    if distinct < size:
        raise InputError(
            f"points has {distinct} distinct features for {size} centres; observe more steps or take fewer "
            f"centres"
        )
    centres, _ = kmeans2(points, size, minit="++", rng=rng)
    return np.asarray(centres, dtype=np.float64)


def distance_between(centres: FloatArray) -> float:
    """The median distance of a centre to the nearest other one."""
    if len(centres) < 2:
        raise InputError("one centre has no neighbour to take its width from; pass the width yourself")
    distances, _ = cKDTree(centres).query(centres, k=2)
    return float(np.median(distances[:, 1]))


def code_by_name(name: str) -> Callable[[FloatArray, np.random.Generator], FeatureCode]:
    """(observed features, rng) -> code, for "bumps 128", "waves 128" or "cells 128": a kind and its size."""
    kind, _, count = str(name).partition(" ")
    if kind not in CODES or not count.isdecimal() or len(count) > MOST_DIGITS or int(count) < 1:
        raise InputError(
            f'there is no code {in_short(name)}; say "bumps 128", "waves 128" or "cells 128", with a number '
            f"of up to {MOST_DIGITS} digits"
        )
    return lambda points, rng: CODES[kind].observed(points, int(count), rng)


CODES: dict[str, type[KernelCode | FourierCode | CellCode]] = {
    "bumps": KernelCode,
    "waves": FourierCode,
    "cells": CellCode,
}
MOST_DIGITS = 6


HELD_OUT = 5
"""One point in so many is held out to measure a fit."""


@dataclass(frozen=True, eq=False)
class Fit:
    """v, and what a fit misses on points that it has not seen."""

    vector: FloatArray
    rms: float
    largest: float
    spread: float
    """The standard deviation of the rewards there: rms / spread is the part that the code cannot express."""
    scale: float
    """The largest reward there, in absolute value."""


def ridge_fit(encoded: FloatArray, rewards: FloatArray, ridge: float) -> Fit:
    """Fit v to all points (encoded (m, D), rewards (m,)); what it misses is measured beforehand.

    That is done on a fifth of the points, drawn at random, by a fit to the others. Where there are only a
    few, they are all there is to be expressed, and the fit is measured on themselves.
    """
    if not len(encoded):
        raise InputError("a fit needs at least one point")
    encoded = finite_array(encoded, "encoded", ("points", "entries"))
    rewards, ridge = finite_array(rewards, "rewards", ("points",)), positive_number(ridge, "ridge")
    if len(rewards) != len(encoded):
        raise InputError(f"there are {len(rewards)} rewards for {len(encoded)} encoded points")

    def solved(z: FloatArray, R: FloatArray) -> FloatArray:
        return np.asarray(np.linalg.solve(z.T @ z + ridge * np.eye(z.shape[1]), z.T @ R), np.float64)

    vector, few = solved(encoded, rewards), len(encoded) < HELD_OUT
    held = few | (np.random.default_rng(0).permutation(len(encoded)) % HELD_OUT == 0)
    measured = vector if few else solved(encoded[~held], rewards[~held])
    missed = rewards[held] - encoded[held] @ measured
    return Fit(
        vector,
        rms=float(np.sqrt(np.mean(missed**2))),
        largest=float(np.abs(missed).max()),
        spread=float(rewards[held].std()),
        scale=float(np.abs(rewards[held]).max()),
    )
