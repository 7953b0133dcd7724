"""All finite MDPs of one shape at once: kernels, policies, rewards, gamma as unknowns of a polynomial ring.

A distribution on n points is n - 1 unknowns and one minus their sum, so that every row sums to 1
identically. The discounted sum of a cumulant c(s, a) along a policy pi is a rational function,

    C = c + gamma P V,    (I - gamma P_pi) V = c_pi,    V = adj(I - gamma P_pi) c_pi / det(I - gamma P_pi),

and its denominator det = det(I - gamma P_pi) does not depend on c. So Q, psi, xi and the successor
representation of one policy share it, and each identity between them is one between the polynomials det * C
(`SymbolicMDP.discounted`). For a stochastic P_pi and 0 <= gamma < 1 the matrix is strictly diagonally
dominant, hence det > 0: nothing is lost by multiplying by it.

An identity that holds in the ring holds for every kernel, every (also stochastic) policy, every reward and
every gamma, for that many states, actions and features. Arrays have dtype object and hold ring elements;
in a product of an array with a single element the array comes first, so that NumPy carries it out.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import sympy
from sympy import QQ
from sympy.polys.matrices import DomainMatrix
from sympy.polys.rings import ring

from proofs_checks.argument import Step
from sfr_theory.arithmetic import Array

Polynomial = Any
"""An element of a sympy polynomial ring over the rationals."""


def _objects(values: list[Any], shape: tuple[int, ...]) -> Array:
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array.reshape(shape)


def unknowns(**shapes: tuple[int, ...]) -> dict[str, Array]:
    """Arrays of independent unknowns of one ring: `unknowns(R=(3,), alpha=())["R"]` has shape (3,)."""
    names = [f"{name}{i}" for name, shape in shapes.items() for i in range(math.prod(shape))]
    _, *generators = ring(names, QQ)
    arrays = {}
    for name, shape in shapes.items():
        size = math.prod(shape)
        arrays[name] = _objects(generators[:size], shape)
        generators = generators[size:]
    return arrays


def with_last_probability(free: Array) -> Array:
    """Append 1 - sum on the last axis: n - 1 free numbers become a row that sums to 1."""
    last = 1 - free.sum(axis=-1, keepdims=True)
    return np.concatenate([free, last], axis=-1)


def determinant(matrix: Array) -> Polynomial:
    """The determinant of a square array of ring elements."""
    return _domain_matrix(matrix).det()


def _domain_matrix(matrix: Array) -> DomainMatrix:
    return DomainMatrix(matrix.tolist(), matrix.shape, matrix.flat[0].ring.to_domain())


@dataclass(frozen=True, eq=False)
class SymbolicMDP:
    """p(s' | s, a), p(phi | s, a), a stochastic policy, gamma, and other unknowns of a statement.

    No value function depends on more of the joint kernel p(s', phi | s, a) than these two marginals, and
    independent unknowns for both cover the marginals of every joint kernel.
    """

    gamma: Array  # ()
    transition: Array  # (S, A, S)
    feature_probability: Array  # (S, A, F)
    policy: Array  # (S, A)
    given: Mapping[str, Array] = field(default_factory=dict)

    def along_policy(self, values: Array) -> Array:
        """sum over a of pi(a | s) values(s, a, .): (S, A, D) -> (S, D)."""
        return (self.policy[:, :, None] * values).sum(axis=1)

    def expected_next(self, values: Array) -> Array:
        """E[values(s', .) | s, a]: (S, D) -> (S, A, D)."""
        return self.transition @ values

    def shifted(self, values: Array) -> Array:
        """E[values(s_{t+1}, a_{t+1}, .) | s_t, a_t] with a_{t+1} drawn from pi: (S, A, D) -> (S, A, D)."""
        return self.expected_next(self.along_policy(values))

    def expected_reward(self, reward: Array) -> Array:
        """r(s, a) = sum over phi of R(phi) p(phi | s, a): (F,) -> (S, A, 1)."""
        return self.feature_probability @ reward[:, None]

    @cached_property
    def _adjugate_and_determinant(self) -> tuple[Array, Array]:
        step = self.along_policy(self.transition)
        adjugate, det = _domain_matrix(np.eye(len(step), dtype=int) - self.gamma * step).adj_det()
        return _objects([entry for row in adjugate.to_list() for entry in row], step.shape), _objects(
            [det], ()
        )

    @property
    def det(self) -> Array:
        """det(I - gamma P_pi), the common denominator, shape ()."""
        return self._adjugate_and_determinant[1]

    def discounted(self, cumulant: Array) -> Array:
        """det times the discounted sum of a cumulant along the policy: (S, A, D) -> (S, A, D)."""
        adjugate, det = self._adjugate_and_determinant
        on_policy = adjugate @ self.along_policy(cumulant)
        return det * cumulant + self.gamma * self.expected_next(on_policy)

    def partial_sum(self, cumulant: Array, length: int) -> Array:
        """The first `length` terms of the series: sum over k < length of gamma^k E[c(s_{t+k}, a_{t+k})]."""
        total, term = 0 * cumulant, cumulant
        for _ in range(length):
            total, term = total + term, self.gamma * self.shifted(term)
        return total

    def remainder(self, values: Array, length: int) -> Array:
        """gamma^length E[values(s_{t+length}, a_{t+length})]."""
        for _ in range(length):
            values = self.gamma * self.shifted(values)
        return values


def symbolic_mdp(
    states: int = 3, actions: int = 2, features: int = 2, **given: tuple[int, ...]
) -> SymbolicMDP:
    """Every MDP and policy of this shape; `given` names further unknowns with their shapes."""
    free = unknowns(
        gamma=(),
        p=(states, actions, states - 1),
        f=(states, actions, features - 1),
        pi=(states, actions - 1),
        **given,
    )
    transition, feature_probability, policy = (with_last_probability(free[name]) for name in ("p", "f", "pi"))
    extra = {name: free[name] for name in given}
    return SymbolicMDP(free["gamma"], transition, feature_probability, policy, extra)


def joint_kernel(free: Array, states: int, features: int) -> Array:
    """p(s', phi | s, a) from (S, A, S * F - 1) unknowns, for statements about sampled transitions."""
    return with_last_probability(free).reshape(*free.shape[:2], states, features)


def identity(sentence: str, left: Array, right: Array | int) -> Step:
    """The step that two arrays of ring elements agree, entry by entry, as polynomials."""
    difference = np.atleast_1d(np.asarray(left - right, dtype=object))
    if not difference.size:
        return Step(sentence, None, "there is nothing to compare")
    nonzero = [tuple(int(i) for i in place) for place in np.argwhere(difference != 0)]
    witness = f"the two sides differ by {_short(difference[nonzero[0]])}" if nonzero else ""
    return Step(sentence, not nonzero, witness)


def _short(polynomial: Polynomial, limit: int = 60) -> str:
    text = str(polynomial)
    return text if len(text) <= limit else text[:limit] + " ..."


def series_steps(lengths: tuple[int, ...] = (1, 2)) -> Iterator[Step]:
    """What solves C = c + gamma E[C(s', a')] is the sum of the series of c, with an exact remainder.

    C is any array and c the cumulant that it solves the equation for. Since E[.] is an average, the
    remainder is at most gamma^n sup |C|, and the series converges to C.
    """
    mdp = symbolic_mdp(C=(3, 2, 1))
    values = mdp.given["C"]
    cumulant = values - mdp.gamma * mdp.shifted(values)
    for length in lengths:
        yield identity(
            f"C = sum over k < {length} of gamma^k E[c_{{t+k}}] + gamma^{length} E[C_{{t+{length}}}]",
            values,
            mdp.partial_sum(cumulant, length) + mdp.remainder(values, length),
        )


def in_kernel_of(reward: Array, free: Array) -> Array:
    """All f with sum over phi of R f = 0, for three features: f = R x v, where v is free; (..., 3).

    The cross product with R != 0 maps R^3 onto the plane orthogonal to R.
    """
    r, v = reward, np.moveaxis(free, -1, 0)
    return np.stack(
        [v[2] * r[1] - v[1] * r[2], v[0] * r[2] - v[2] * r[0], v[1] * r[0] - v[0] * r[1]], axis=-1
    )


# --- Rational functions of a few unknowns, as sympy expressions --------------------------------------------

Expression = Any
"""A sympy expression."""


def vanishes(expression: Expression) -> bool:
    """Whether a rational function is 0."""
    return bool(sympy.cancel(sympy.together(expression)) == 0)


def is_nonnegative(expression: Expression) -> bool:
    """Whether numerator and denominator have no negative coefficient: >= 0 for nonnegative unknowns.

    Sufficient, not necessary: False decides nothing.
    """
    numerator, denominator = sympy.fraction(sympy.cancel(sympy.together(expression)))
    parts = (
        sympy.Poly(part, sympy.Symbol("unused"), *part.free_symbols) for part in (numerator, denominator)
    )
    return all(coefficient >= 0 for part in parts for coefficient in part.coeffs())
