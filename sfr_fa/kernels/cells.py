"""Cells of coded places, and the few directions in which the codes of one cell lie.

Radial basis functions code a coordinate by n numbers, and a place by all products of them. Within a small
cell these codes are nearly in a space of few dimensions, which singular vectors of the codes on a fine grid
in the cell span. Filters of GPI use that: `sfr_fa.kernels.gpi_filter` reads weights in the leading
directions, `sfr_fa.kernels.network_filter` puts a box around the codes of a cell. What either leaves out of a
code is measured at every state: a poor basis, or a box that is too small, costs time only.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import FloatArray, Integers
from sfr_fa.kernels.encoding import write_circle_code, write_interval_code

POINTS = 9
"""Of the fine grid, along each axis of a cell."""
ENOUGH = 16
"""Directions in which the codes of a cell lie, but for what nobody notices."""
TOLERANCE = 2e-3
"""How much of a code the directions of a box may leave out."""
MARGIN = 1.05
"""How much larger a box is than the codes on a grid."""
LEAST = 3e-4
"""And by how much at least: codes between the points of a grid may lie outside."""


@dataclass(frozen=True)
class CodedAxis:
    """A coordinate from `low` on, in cells of equal length, and its basis functions."""

    centres: tuple[float, ...]
    sigma: float
    cells: int
    low: float = 0.0
    length: float = 1.0
    is_circle: bool = False

    def codes(self) -> FloatArray:
        """(cells, points, n): on the fine grids."""
        grid = np.arange(self.cells)[:, None] + np.linspace(0.0, 1.0, POINTS)
        codes, centres = np.zeros((*grid.shape, len(self.centres))), np.array(self.centres)
        for place in np.ndindex(grid.shape):
            x = float(self.low + self.length * grid[place] / self.cells)
            if self.is_circle:
                write_circle_code(x, centres, self.length, self.sigma, codes[place])
            else:
                write_interval_code(x, centres, self.sigma, codes[place])
        return codes


Block = tuple[CodedAxis, ...]
"""One or two coordinates that are coded together; cells are numbered along the last one first."""


def codes_of(block: Block) -> FloatArray:
    """(G, points, P): codes on the fine grid of each cell."""
    codes = block[0].codes()
    for axis in block[1:]:
        more = axis.codes()
        codes = (codes[:, None, :, None, :, None] * more[None, :, None, :, None, :]).reshape(
            len(codes) * len(more), codes.shape[1] * more.shape[1], -1
        )
    return codes


def larger_cells(block: Block, most: int) -> tuple[Block, Integers]:
    """Up to so many cells along each axis taken together; and of each cell the number of the one it is in."""
    larger, number = [], np.zeros(1, np.int64)
    for axis in block:
        together = next(count for count in range(most, 0, -1) if axis.cells % count == 0)
        larger.append(replace(axis, cells=axis.cells // together))
        number = np.add.outer(number * larger[-1].cells, np.arange(axis.cells) // together).ravel()
    return tuple(larger), number


@functools.cache
def directions(block: Block, count: int) -> FloatArray:
    """(G, count or fewer, P): the leading right singular vectors of the codes of each cell.

    Those of products are the products of those of the axes, U kron V with singular values s t: a few small
    decompositions in place of one of (points^2, P) for each cell.
    """
    values, vectors = np.ones((1, 1)), np.ones((1, 1, 1))
    for axis in block:
        _, more_values, more_vectors = np.linalg.svd(axis.codes(), full_matrices=False)
        more_values, more_vectors = more_values[:, :count], more_vectors[:, :count]
        values = np.einsum("gi,hj->ghij", values, more_values).reshape(len(values) * axis.cells, -1)
        rows, columns = values.shape[1], vectors.shape[2] * more_vectors.shape[2]
        vectors = np.einsum("gip,hjq->ghijpq", vectors, more_vectors).reshape(-1, rows, columns)
    leading = np.argsort(-values, axis=1, kind="stable")[:, :count]
    return np.take_along_axis(vectors, leading[..., None], axis=1)


class Boxes(NamedTuple):
    """Around the codes of each cell: |U_j . (p - m)| <= r_j, and the rest of p - m is at most rho."""

    middles: FloatArray
    """(G, P): m."""
    vectors: FloatArray
    """(G, R, P): U_j."""
    radii: FloatArray
    """(G, R): r_j."""
    rests: FloatArray
    """(G,): rho."""


@functools.cache
def boxes(block: Block) -> Boxes:
    """Boxes in as many directions as leave TOLERANCE; somewhat larger than those of the grid."""
    codes = codes_of(block)
    middles = codes.mean(axis=1)
    apart = codes - middles[:, None]
    # Nearly all of them lies in a few directions, in which the decomposition takes no time.
    basis = directions(block, ENOUGH)
    vectors = np.linalg.svd(apart @ basis.transpose(0, 2, 1), full_matrices=False)[2] @ basis
    along = apart @ vectors.transpose(0, 2, 1)
    within = np.pad(np.square(along).cumsum(axis=-1), ((0, 0), (0, 0), (1, 0)))
    left = np.sqrt(np.maximum(np.square(apart).sum(axis=-1, keepdims=True) - within, 0.0))
    R = min(int((left.max(axis=(0, 1)) > TOLERANCE).sum()), vectors.shape[1])
    low, high = along[..., :R].min(axis=1), along[..., :R].max(axis=1)
    middles = middles + ((low + high)[:, None] @ vectors[:, :R])[:, 0] / 2
    rests = MARGIN * left[..., R].max(axis=1) + LEAST
    return Boxes(middles, vectors[:, :R], MARGIN * (high - low) / 2 + LEAST, rests)
