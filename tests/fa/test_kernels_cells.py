"""Directions of cells: products of those of the axes are those of the whole; boxes hold their codes."""

import numpy as np
import pytest

from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.environments.racer import Racer
from sfr_fa.kernels.cells import LEAST, MARGIN, TOLERANCE, boxes, codes_of, directions, larger_cells

BLOCKS = [block for world in (ObjectCollection(), Racer()) for block in world.coded_blocks()]


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{len(block)} axes")
@pytest.mark.parametrize("count", [1, 4, 7])
def test_directions_leave_out_as_little_as_possible(block, count):
    """The rest is that of the singular values, by the theorem of Eckart, Young and Mirsky."""
    codes, basis = codes_of(block), directions(block, count)
    assert basis.shape == (len(codes), count, codes.shape[2])
    np.testing.assert_allclose(
        basis @ basis.transpose(0, 2, 1), np.tile(np.eye(count), (len(codes), 1, 1)), atol=1e-12
    )
    some = slice(None, None, 7)
    rest = codes[some] - codes[some] @ basis[some].transpose(0, 2, 1) @ basis[some]
    values = np.linalg.svd(codes[some], compute_uv=False)
    np.testing.assert_allclose(
        np.square(rest).sum(axis=(1, 2)), np.square(values[:, count:]).sum(axis=1), atol=1e-12
    )


@pytest.mark.parametrize("block", BLOCKS, ids=lambda block: f"{len(block)} axes")
def test_boxes_hold_the_codes_of_their_grids(block):
    codes, found = codes_of(block), boxes(block)
    apart = codes - found.middles[:, None]
    along = apart @ found.vectors.transpose(0, 2, 1)
    rest = np.linalg.norm(apart - along @ found.vectors, axis=-1)
    assert (np.abs(along) <= found.radii[:, None]).all()
    assert (rest <= found.rests[:, None]).all()
    assert found.rests.max() <= MARGIN * TOLERANCE + LEAST
    # No larger than that: each side is touched but for the margin.
    touched = np.abs(along).max(axis=1)
    np.testing.assert_allclose(MARGIN * touched + LEAST, found.radii, atol=1e-9)


@pytest.mark.parametrize("most", [1, 3, 4])
def test_a_cell_is_in_the_larger_one_that_has_its_middle(most):
    (block,) = ObjectCollection().coded_blocks()
    larger, number = larger_cells(block, most)
    fine, coarse = ([(np.arange(axis.cells) + 0.5) / axis.cells for axis in axes] for axes in (block, larger))
    assert [axis.cells % of.cells for axis, of in zip(block, larger, strict=True)] == [0, 0]
    assert block[0].cells // larger[0].cells == {1: 1, 3: 2, 4: 4}[most]
    middles = np.stack(np.meshgrid(*fine, indexing="ij"), axis=-1).reshape(-1, 2)
    of_larger = np.stack(np.meshgrid(*coarse, indexing="ij"), axis=-1).reshape(-1, 2)
    nearest = np.abs(middles[:, None] - of_larger).max(axis=-1).argmin(axis=1)
    np.testing.assert_array_equal(number, nearest)
