"""Array types of the kernels, and what all of them compile with.

`REASSOCIATE` lets the compiler add the terms of a sum in another order and fuse multiplications into it,
which is what vectorises a scalar product; unlike `fastmath=True` it leaves NaN and infinity alone, so that
divergence can be seen. Numba's cache does not notice when the set changes: delete `__pycache__` after editing
it.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Reals = NDArray[Any]
"""float32 or float64; all arrays of one call have the same."""
Integers = NDArray[np.int64]

REASSOCIATE = {"reassoc", "contract", "nsz", "arcp"}
