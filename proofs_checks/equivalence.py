"""Proposition 1 (prop:xi-q-equivalence) and Corollary 1 (cor:xi-banach): classes of xi and Q-functions.

xi_1 ~ xi_2 if sum over phi of R xi_1 = sum over phi of R xi_2 at every (s, a). The map [xi] -> Q_xi is
injective by definition. The paper shows that it is onto by scaling an arbitrary xi,

    xi_Q(s, a, phi) = Q(s, a) xi(s, a, phi) / (sum over phi' of R(phi') xi(s, a, phi')),

which divides by 0 where xi(s, a, .) has value 0; and if R = 0 (almost everywhere) there is one class
only and nothing is onto. With R != 0 a right inverse can be written down:

    xi_Q(s, a, phi) = Q(s, a) R(phi) / |R|^2,        |R|^2 = sum over phi of R(phi)^2 > 0.

On a continuum R is in L1 and need not be in L2. There, with E a set of finite measure on which R is bounded
and int_E |R| > 0, the function Q(s, a) sign(R) 1_E / int_E |R| is in L1 and reaches Q.

So for R != 0 the classes with ||xi||_R = sup |sum over phi of R xi| are an isometric copy of the bounded
Q-functions. The norm that the text of Theorem 2 writes in the same way, sup over (s, a) of the sum of |R xi|,
is another one: it differs on representatives of one class and is not isometric to ||Q||.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from proofs_checks.argument import Proof, Step, broken, incomplete, proved, refuted
from proofs_checks.symbolic import identity, in_kernel_of, unknowns
from sfr_theory.arithmetic import Array, Number, exact_array
from sfr_theory.claims import Method
from sfr_theory.examples import two_buttons
from sfr_theory.operators import absolute_norm, q_from_xi, value_seminorm
from sfr_theory.solve import policy_xi

SCOPE = (
    "all rewards R != 0 and all xi; 2 states, 2 actions, 3 features; symbolic. For R in L1 on a continuum "
    "Q sign(R) 1_E / int_E |R| takes the place of Q R/|R|^2, R bounded on E of finite measure"
)


# --- Proposition 1 --------------------------------------------------------------------------------


def value_of(xi: Sequence[int], reward: Sequence[int]) -> Number:
    """sum over phi of R xi at one (s, a)."""
    return q_from_xi(exact_array([[list(xi)]]), exact_array(list(reward)))[0, 0]


def printed_facts(vanishing_reward: Sequence[int], arbitrary_xi: Sequence[int]) -> Iterator[Step]:
    """One state, one action, two features, so that Q is a number: both ways in which the proof breaks."""
    yield Step(
        f"for R = {vanishing_reward} every xi has Q = 0: there is one class, and Q = 1 has no xi",
        all(value_of(basis, vanishing_reward) == 0 for basis in ((1, 0), (0, 1))),
    )
    yield Step(
        f"for R = (1, 1) xi = {arbitrary_xi} has sum R xi = 0, by which the printed xi_Q divides",
        value_of(arbitrary_xi, (1, 1)) == 0,
    )


def one_class_facts(reward: Sequence[int]) -> Iterator[Step]:
    yield Step(
        f"for R = {tuple(reward)} every xi has N_R(xi) = 0: one class, no isometric copy of all bounded Q",
        all(value_of(basis, reward) == 0 for basis in ((1, 0), (0, 1))),
    )


def right_inverse(q: Array, reward: Array) -> Array:
    """|R|^2 times xi_Q = Q R/|R|^2."""
    return q[..., None] * reward


def corrected_steps(lift: Callable[[Array, Array], Array]) -> Iterator[Step]:
    free = unknowns(Q=(2, 2), R=(3,), xi=(2, 2, 3), v=(2, 2, 3))
    q, reward, xi = free["Q"], free["R"], free["xi"]
    yield identity(
        "Q depends on the class only: adding f with sum R f = 0 leaves it; and different classes differ in Q",
        (xi + in_kernel_of(reward, free["v"])) @ reward,
        xi @ reward,
    )
    yield identity(
        "onto: xi_Q = Q R/|R|^2 has sum R xi_Q = Q, and |R|^2 > 0 for R != 0",
        lift(q, reward) @ reward,
        q * (reward @ reward),
    )


# --- Corollary 1 ----------------------------------------------------------------------------------


def isometry_steps(read_with: str = "R") -> Iterator[Step]:
    """||xi||_R is the sup of |Q_xi|: what must be shown is that Q is a linear bijection of classes."""
    free = unknowns(R=(3,), R_i=(3,), xi=(2, 2, 3), eta=(2, 2, 3), v=(2, 2, 3), x=(), y=(), Q=(2, 2))
    reward, read = free["R"], free[read_with]
    xi, eta = free["xi"], free["eta"]
    yield identity(
        "the norm does not depend on the representative of an R-class",
        (xi + in_kernel_of(reward, free["v"])) @ read,
        xi @ read,
    )
    yield identity(
        "Q is linear in xi, so the norm inherits scaling and the triangle inequality from sup |Q|",
        (free["x"] * xi + free["y"] * eta) @ read,
        free["x"] * (xi @ read) + free["y"] * (eta @ read),
    )
    yield identity(
        "Q is onto (Q R/|R|^2), so the classes are an isometric copy of the complete space of bounded Q",
        right_inverse(free["Q"], reward) @ read,
        free["Q"] * (reward @ reward),
    )


def two_norms_facts(reward: Sequence[int]) -> Iterator[Step]:
    """One state, gamma = 1/2; action j emits feature j. The two policies are 'always a' and 'always b'."""
    first, second = (policy_xi(two_buttons(), np.array([action])) for action in (0, 1))
    weights = exact_array(list(reward))
    difference = first - second
    in_value, absolute = value_seminorm(difference, weights), absolute_norm(difference, weights)
    distance = np.abs(q_from_xi(first, weights) - q_from_xi(second, weights)).max()
    yield Step(
        f"R = {tuple(reward)}: two policies with ||Q_1 - Q_2|| = {distance}", bool(distance == in_value)
    )
    yield Step(
        f"sup |sum R (xi_1 - xi_2)| = {in_value} equals it, sup sum |R (xi_1 - xi_2)| = {absolute} does not",
        bool(absolute != in_value),
    )


PROOFS: tuple[Proof, ...] = (
    incomplete("prop1/printed",
            "R is not 0 almost everywhere (and xi is integrable against |R|); then prop1/corrected",
            lambda: printed_facts((0, 0), (1, -1)),
            "one state, one action, two features; exact",
            broken("for R = (1, 0) too, every xi has Q = 0", lambda: printed_facts((1, 0), (1, -1))),
            broken("xi = (1, 1) too has value 0 under R = (1, 1)", lambda: printed_facts((0, 0), (1, 1)))),
    proved("prop1/corrected", Method.SYMBOLIC, lambda: corrected_steps(right_inverse),
           SCOPE,
           broken("the factor R forgotten in xi_Q",
                  lambda: corrected_steps(lambda q, reward: q[..., None] * reward**0))),
    proved("cor1/isometry-corrected", Method.SYMBOLIC, isometry_steps,
           SCOPE,
           broken("the class of R read under another reward R_i", lambda: isometry_steps(read_with="R_i"))),
    incomplete("cor1/isometry", "R is not 0 almost everywhere, as in prop1/corrected",
               lambda: one_class_facts((0, 0)),
               "one state, one action, two features; exact",
               broken("R = (1, 0) has one class, too", lambda: one_class_facts((1, 0)))),
    refuted("cor1/two-norms-differ", lambda: two_norms_facts((1, 1)),
            "one state, two actions, two features, gamma = 1/2; exact",
            broken("R = (1, -1): here both norms agree", lambda: two_norms_facts((1, -1)))),
)  # fmt: skip
