"""Many small linear programmes as one: they share no variable, so the sum is best where each of them is."""

from __future__ import annotations

import numpy as np
from scipy import sparse

from sfr_theory.arithmetic import Array


def block_diagonal(blocks: Array) -> sparse.csr_array:
    """Blocks (B, m, n) along the diagonal of one sparse matrix."""
    count, height, width = blocks.shape
    matrix = sparse.bsr_array(
        (blocks, np.arange(count), np.arange(count + 1)), shape=(count * height, count * width)
    ).tocsr()
    matrix.eliminate_zeros()
    return matrix
