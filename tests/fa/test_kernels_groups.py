"""Bounds of a group in vector registers are those of their plain twin, and bound every state of a box."""

import numpy as np
import pytest
from numba import njit

from sfr_fa.kernels import groups
from sfr_fa.kernels.groups import LANES, RANK

G, N, A, D = 3, 4, 3, 5


@njit
def compiled(*arguments):
    return groups.bound_group(*arguments)


def arguments_of(rng, dtype, is_box):
    """Whole numbers, whose sums are exact in any order."""

    def numbers(*shape):
        return rng.integers(-9, 10, shape).astype(dtype)

    readout = numbers(D)
    readout[2] = 0
    return {
        "inner": rng.integers(-127, 128, (G, N, A, D, RANK, LANES)).astype(np.int8),
        "g": 2, "n": 1, "memory": numbers(N * A * D * LANES), "margins": numbers(N * A * LANES),
        "slacks": numbers(N * A * LANES), "along": numbers(RANK, A * D), "across": numbers(RANK, A * D),
        "is_box": is_box, "shared": numbers(A * D), "halves": numbers(A), "rho": 3.0, "sigma": 2.0,
        "readout": readout, "floor": 0.0, "of_actions": numbers(N, A, LANES), "bound": numbers(N * LANES),
    }  # fmt: skip


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("is_box", [True, False])
@pytest.mark.parametrize("floor", [0.0, -np.inf])
def test_registers_hold_what_the_plain_twin_computes(dtype, is_box, floor):
    rng = np.random.default_rng(0)
    for _ in range(20):
        given = arguments_of(rng, dtype, is_box) | {"floor": floor}
        memory = given["memory"].reshape(N, A, D, LANES)
        memory[1, :, 2] = np.nan  # an output that does not count
        plain = given | {name: given[name].copy() for name in ("of_actions", "bound")}
        top = compiled(*given.values())
        assert top == groups.bound_group(*plain.values()) == given["bound"][LANES : 2 * LANES].max()
        for name in ("of_actions", "bound"):
            np.testing.assert_array_equal(given[name], plain[name])


@pytest.mark.parametrize("function", [compiled, groups.bound_group])
def test_what_is_no_number_rules_nothing_out(function):
    given = arguments_of(np.random.default_rng(1), np.float64, False)
    given["readout"][:] = [1, -1, 0, 2, 1]
    given["memory"].reshape(N, A, D, LANES)[1, 0, 0, 3] = np.nan
    given["margins"].reshape(N, A, LANES)[1, 2, 5] = np.inf
    with np.errstate(invalid="ignore"):
        assert function(*given.values()) == np.inf
    infinite = np.flatnonzero(given["bound"][LANES : 2 * LANES] == np.inf)
    assert infinite.tolist() == [3, 5]


def test_a_box_is_bounded_by_what_its_corners_need():
    """Of one output, for which the bound is that of the best corner; of several, for which it is no less."""
    rng = np.random.default_rng(2)
    for trial in range(200):
        given = arguments_of(rng, np.float64, True)
        given["readout"] = rng.normal(size=D) * (np.arange(D) < (1 if trial % 2 else D))
        middle, width = rng.normal(size=RANK), rng.random(RANK)
        sign = np.sign(np.tile(given["readout"], A))
        given["along"] = np.repeat(middle[:, None], A * D, axis=1)
        given["across"] = width[:, None] * sign
        of_box = given | {"of_actions": given["of_actions"].copy(), "bound": given["bound"].copy()}
        groups.bound_group(*of_box.values())
        corners = []
        for corner in np.ndindex((2,) * RANK):
            c = middle + width * (2 * np.array(corner) - 1)
            given["along"], given["is_box"] = np.repeat(c[:, None], A * D, axis=1), False
            groups.bound_group(*given.values())
            corners.append(given["of_actions"][1].copy())
        most = np.max(corners, axis=0)
        assert (of_box["of_actions"][1] >= most - 1e-9).all()
        if trial % 2:
            np.testing.assert_allclose(of_box["of_actions"][1], most)
