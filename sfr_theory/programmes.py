"""Many small linear programmes as one: they share no variable, so the sum is best where each of them is."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from scipy import sparse

from sfr_theory.arithmetic import Array, exact_array

LARGEST_DENOMINATOR = 10**6
"""In rational arithmetic a programme's solution is rounded to fractions with at most this denominator."""


def rounded(values: Array) -> Array:
    exact = (Fraction(value).limit_denominator(LARGEST_DENOMINATOR) for value in values.reshape(-1).tolist())
    return exact_array(list(exact)).reshape(values.shape)


def block_diagonal(blocks: Array) -> sparse.csr_array:
    """Blocks (B, m, n) along the diagonal of one sparse matrix."""
    count, height, width = blocks.shape
    matrix = sparse.bsr_array(
        (blocks, np.arange(count), np.arange(count + 1)), shape=(count * height, count * width)
    ).tocsr()
    matrix.eliminate_zeros()
    return matrix
