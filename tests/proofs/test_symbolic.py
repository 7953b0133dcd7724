"""The symbolic MDPs agree with the exact solver on numbers, and `identity` tells true from false."""

import math
from fractions import Fraction

import numpy as np
import pytest
import sympy

from proofs_checks.symbolic import (
    _short,
    determinant,
    identity,
    in_kernel_of,
    is_nonnegative,
    joint_kernel,
    series_steps,
    symbolic_mdp,
    unknowns,
    vanishes,
)
from sfr_theory.arithmetic import Array, exact_array, rational
from sfr_theory.mdp import FiniteMDP
from sfr_theory.solve import policy_xi


def _at(polynomials: Array, point: dict[str, Fraction]) -> Array:
    """Evaluate an array of ring elements at rational values of all unknowns."""
    values = [
        polynomial.evaluate([(generator, point[str(generator)]) for generator in polynomial.ring.gens])
        for polynomial in polynomials.reshape(-1)
    ]
    return exact_array([Fraction(int(value.numerator), int(value.denominator)) for value in values]).reshape(
        polynomials.shape
    )


def test_discounted_over_det_is_the_solvers_xi() -> None:
    rng = np.random.default_rng(7)
    states, actions, features = 3, 2, 2
    mdp = symbolic_mdp(states, actions, features)
    # Free probabilities in {0, 1/8, ..., 3/8}: two of them leave a non-negative rest.
    point = {
        str(generator): Fraction(int(rng.integers(0, 4)), 8)
        for generator in mdp.gamma[()].ring.gens
    }  # fmt: skip
    transition, feature, policy = (
        _at(part, point) for part in (mdp.transition, mdp.feature_probability, mdp.policy)
    )
    kernel = transition[..., :, None] * feature[..., None, :]
    expected = policy_xi(FiniteMDP(kernel, point["gamma0"]), policy)
    scaled, det = _at(mdp.discounted(mdp.feature_probability), point), _at(mdp.det, point)[()]
    assert (scaled / det == expected).all()
    assert det != rational(1)  # the common denominator was really there to divide by


def test_identity_names_a_difference() -> None:
    x = unknowns(x=(2,))["x"]
    assert identity("", (x[0] + x[1]) ** 2, x[0] ** 2 + 2 * x[0] * x[1] + x[1] ** 2).holds
    step = identity("", x, np.array([x[0], x[0]], dtype=object))
    assert step.holds is False
    assert "x1" in step.witness


def test_the_cross_product_spans_the_kernel_of_the_reward() -> None:
    free = unknowns(R=(3,), v=(3,))
    reward = free["R"]
    assert identity("", in_kernel_of(reward, free["v"]) @ reward, 0).holds
    basis = in_kernel_of(exact_array([1, 2, 3]), exact_array(np.eye(3)))
    assert basis.tolist() == [[0, 3, -2], [-3, 0, 1], [2, -1, 0]]


def test_series_has_its_exact_remainder() -> None:
    steps = list(series_steps())
    assert [step.holds for step in steps] == [True, True]
    assert ["k < 1" in steps[0].sentence, "k < 2" in steps[1].sentence] == [True, True]


def test_the_sizes_that_proofs_cover() -> None:
    mdp = symbolic_mdp(C=(2, 5))
    shapes = [array.shape for array in (mdp.gamma, mdp.transition, mdp.feature_probability, mdp.policy)]
    assert shapes == [(), (3, 2, 3), (3, 2, 2), (3, 2)]
    assert mdp.given["C"].shape == (2, 5)
    assert len(mdp.gamma[()].ring.gens) == 1 + 3 * 2 * 2 + 3 * 2 * 1 + 3 * 1 + 10
    assert symbolic_mdp(2, 3, 4).feature_probability.shape == (2, 3, 4)


def test_a_joint_kernel_is_one_distribution_per_pair() -> None:
    free = unknowns(p=(2, 3, 7))["p"]
    kernel = joint_kernel(free, 2, 4)
    assert kernel.shape == (2, 3, 2, 4)
    assert identity("", kernel.sum(axis=(2, 3)), 1).holds
    assert kernel[1, 2, 0, 3] == free[1, 2, 3]
    assert kernel[1, 2, 1, 0] == free[1, 2, 4]


def test_a_long_difference_is_shortened() -> None:
    x = unknowns(x=(1,))["x"]
    assert identity("", (x + 1) ** 40, 0).witness.endswith(" ...")
    assert _short("x" * 60) == "x" * 60
    assert _short("x" * 61) == "x" * 60 + " ..."


def test_nothing_is_not_an_identity() -> None:
    assert identity("", unknowns(x=(2, 0))["x"], 0).holds is None


@pytest.mark.parametrize("size", [1, 2, 3])
def test_determinant_of_a_vandermonde_matrix(size: int) -> None:
    x = unknowns(x=(size,))["x"]
    product = math.prod(x[j] - x[i] for i in range(size) for j in range(i + 1, size))
    assert determinant(np.stack([x**power for power in range(size)])) == product


def test_rational_functions_that_vanish_and_that_are_nonnegative() -> None:
    k, e = sympy.symbols("k e", nonnegative=True)
    g = k / (1 + k)
    assert vanishes(2 * e / (1 - g) - 2 * e * (1 + k))
    assert not vanishes(2 * e / (1 - g) - 2 * e * k)
    assert is_nonnegative(e / (1 - g) - e)
    assert is_nonnegative(sympy.Integer(0))
    assert not is_nonnegative(e - e / (1 - g))
    assert not is_nonnegative(sympy.Integer(-1))
    assert not is_nonnegative(e - k)
