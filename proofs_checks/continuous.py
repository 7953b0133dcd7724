"""Continuous features: the tent code of CSFR (c:appendix_cmf_xi), what it approximates, clipping, and L^1.

Centres x_j = j Delta, j = 0..10, Delta = 1/10, and the code of algo:CMFXI

    u_j(phi) = max(0, 1 - |x_j - phi|/Delta).

On each cell [x_i, x_{i+1}], with phi = x_i + t Delta, it is u_i = 1 - t, u_{i+1} = t and 0 elsewhere. So it
sums to 1, reproduces phi, and reads a function r as

    sum_j r(x_j) u_j(phi) = (1 - t) r(x_i) + t r(x_{i+1}) = (I r)(phi),

its piecewise linear interpolant. CSFR learns the discounted mean of u_j, so its Q is exactly the Q of the
rewards I r_k, and differs from that of r_k by at most sum_k sup |r_k - I r_k|/(1-gamma).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fractions import Fraction

import numpy as np
import sympy
from sympy import Expr, Rational, oo

from proofs_checks.argument import Proof, Step, broken, every, incomplete, proved, refuted
from proofs_checks.smt import Formula, absolute, entails, equal, maximum, number, real, reals
from proofs_checks.symbolic import determinant, identity, symbolic_mdp, unknowns
from proofs_checks.xi_definition import PHI, bounded_reading, integral
from sfr_theory.arithmetic import Array, exact_array
from sfr_theory.claims import Method
from sfr_theory.operators import q_from_xi

CENTRES = 11
DELTA = Fraction(1, CENTRES - 1)


# --- the tent code --------------------------------------------------------------------------------


def tent(index: int, phi: Formula) -> Formula:
    """algo:CMFXI: max(0, 1 - |x_j - phi|/Delta)."""
    return maximum([0, 1 - absolute(number(index * DELTA) - phi) / number(DELTA)])


def slipped_bracket(index: int, phi: Formula) -> Formula:
    """As the text prints it: max(0, (1 - |x_j - phi|)/Delta)."""
    return maximum([0, (1 - absolute(number(index * DELTA) - phi)) / number(DELTA)])


Code = Callable[[int, Formula], Formula]


def code_of(phi: Formula, code: Code, indices: range) -> Array:
    return np.array([code(j, phi) for j in indices], dtype=object)


def in_unit_interval(phi: Formula) -> list[Formula]:
    return [phi >= 0, phi <= 1]


def partition_steps(code: Code = tent, indices: range = range(CENTRES)) -> Iterator[Step]:
    phi = real("phi")
    yield entails(
        "sum_j u_j(phi) = 1 for every phi in [0, 1]",
        in_unit_interval(phi),
        code_of(phi, code, indices).sum() == 1,
    )


def reproduces_steps(code: Code = tent, indices: range = range(CENTRES)) -> Iterator[Step]:
    phi = real("phi")
    centres = np.array([number(j * DELTA) for j in indices], dtype=object)
    yield entails(
        "sum_j x_j u_j(phi) = phi for every phi in [0, 1]",
        in_unit_interval(phi),
        centres @ code_of(phi, code, indices) == phi,
    )


def exact_code(phi: Fraction, indices: range, slipped: bool = False) -> list[Fraction]:
    """The code at a rational point; `slipped` reads the bracket as the text prints it."""
    distances = [abs(j * DELTA - phi) for j in indices]
    return [max(Fraction(0), (1 - x) / DELTA if slipped else 1 - x / DELTA) for x in distances]


def misbracketed_facts(slipped: bool = True) -> Iterator[Step]:
    code = exact_code(3 * DELTA, range(CENTRES), slipped)
    yield Step(f"at the centre phi = x_3 = 3/10 it is u_3 = {code[3]}, where the text says 1", code[3] != 1)
    yield Step(f"at its neighbour it is u_4 = {code[4]}, where the text says 0", code[4] != 0)


def printed_centres_facts(indices: range = range(1, CENTRES)) -> Iterator[Step]:
    """0 < j < U as printed."""
    yield Step(f"0 < j < U = 11 gives {len(indices)} centres, not 11", len(indices) != CENTRES)
    yield Step(
        f"the lowest is {indices[0] * DELTA}, not phi_min = 0 as the text says", indices[0] * DELTA != 0
    )
    totals = {phi: sum(exact_code(phi, indices)) for phi in (Fraction(0), DELTA / 2)}
    shown = ", ".join(f"phi = {phi}: {total}" for phi, total in totals.items())
    yield Step(
        f"features near 0 are lost; sum of the code at {shown}", all(total != 1 for total in totals.values())
    )


def binary_facts(phi: Fraction) -> Iterator[Step]:
    code = exact_code(phi, range(CENTRES))
    between = [value for value in code if value not in (0, 1)]
    yield Step(
        f"phi = {phi} has the code {' '.join(map(str, code))}: two entries strictly between 0 and 1",
        len(between) == 2,
    )


# --- CSFR -----------------------------------------------------------------------------------------


def decomposition_steps(joint_reward: Callable[[Array, Array], Array]) -> Iterator[Step]:
    """Two feature dimensions with 2 values each, in any joint distribution: features (0,0) (0,1) (1,0) (1,1).

    `joint_reward` combines r_1 and r_2 into R: their sum, in the paper.
    """
    mdp = symbolic_mdp(states=2, features=4, r_1=(2,), r_2=(2,))
    p = mdp.feature_probability.reshape(2, 2, 2, 2)
    r_1, r_2 = mdp.given["r_1"], mdp.given["r_2"]
    reward = joint_reward(r_1[:, None], r_2[None, :]).reshape(4)
    xi = mdp.discounted(mdp.feature_probability).reshape(2, 2, 2, 2)
    marginals = [mdp.discounted(p.sum(axis=axis)) for axis in (3, 2)]
    for k, (marginal, axis) in enumerate(zip(marginals, (3, 2), strict=True), start=1):
        yield identity(
            f"xi_{k}, learned from phi_{k} alone, is the marginal of xi", marginal, xi.sum(axis=axis)
        )
    yield identity(
        "Q = sum over phi of R xi = sum_k sum over phi_k of r_k xi_k",
        mdp.discounted(mdp.expected_reward(reward))[..., 0],
        marginals[0] @ r_1 + marginals[1] @ r_2,
    )


def cell_steps(code: Code = tent) -> Iterator[Step]:
    """The code on the cell [x_i, x_{i+1}] in the coordinate t."""
    t = real("t")

    def on_cell(i: int) -> Step:
        expected = [1 - t if j == i else t if j == i + 1 else number(Fraction(0)) for j in range(CENTRES)]
        phi = number(i * DELTA) + t * number(DELTA)
        return entails(
            f"cell {i}",
            [t >= 0, t <= 1],
            equal(code_of(phi, code, range(CENTRES)), np.array(expected, dtype=object)),
        )

    yield every(
        "on [x_i, x_{i+1}] the code is 1 - t at i, t at i + 1, 0 elsewhere", map(on_cell, range(CENTRES - 1))
    )


def interpolant_steps(code: Code = tent, factor: Fraction = Fraction(1)) -> Iterator[Step]:
    yield from cell_steps(code)
    free = unknowns(r=(CENTRES,), t=())
    r, t = free["r"], free["t"][()]

    def reads_interpolant(i: int) -> Step:
        u = 0 * r
        u[i], u[i + 1] = 1 - t, t
        interpolant = r[i] + t * (r[i + 1] - r[i])
        return identity(f"cell {i}", np.array([r @ u], dtype=object), np.array([interpolant], dtype=object))

    yield every(
        "sum_j r(x_j) u_j(phi) = (I r)(phi), so CSFR's Q is the Q of the rewards I r_k",
        map(reads_interpolant, range(CENTRES - 1)),
    )
    yield bounded_reading(factor)


# --- linear reformulation -------------------------------------------------------------------------


def linear_weights(features: list[Expr], reward: Expr) -> list[Expr] | None:
    """w with reward = sum_k w_k features_k, or None: solved at points, then verified as an identity."""
    points = [Rational(k + 1, len(features) + 2) for k in range(len(features))]
    matrix = sympy.Matrix([[feature.subs(PHI, point) for feature in features] for point in points])
    values = sympy.Matrix([reward.subs(PHI, point) for point in points])
    weights = matrix.LUsolve(values)
    difference = reward - sum(w * feature for w, feature in zip(weights, features, strict=True))
    return list(weights) if sympy.simplify(difference) == 0 else None


REWARDS = [sympy.exp(-((PHI - Rational(1, 2)) ** 2)), PHI**2, 1 / (1 + PHI)]
"""Three rewards on a continuum that are not linear in phi; the first is the paper's own example."""


def reformulation_facts(features: list[Expr]) -> Iterator[Step]:
    for reward in REWARDS:
        weights = linear_weights(features, reward)
        yield Step(
            f"R = {reward} is linear in the features, w = {tuple(weights) if weights else 'none'}",
            weights is not None,
        )


def all_rewards_steps(extra_features: int = 0) -> Iterator[Step]:
    """n features at n + 1 points: rewards that single out one point each are the identity matrix there."""

    def misses_a_reward(n: int) -> Step:
        free = unknowns(code=(n + 1, n + extra_features), weights=(n + extra_features, n + 1))
        rewards = free["code"] @ free["weights"]
        return identity(f"n = {n}", np.array([determinant(rewards)], dtype=object), 0)

    yield every(
        "n + 1 rewards that are linear in n features are a singular matrix at any n + 1 points; "
        "the rewards R_i(phi_j) = 1_{i = j} are not",
        map(misses_a_reward, (1, 2, 3)),
    )


# --- L^1 and the norms of Theorem 2 ---------------------------------------------------------------


def hoelder_facts(density: Expr) -> Iterator[Step]:
    """One state, the feature drawn from `density` on (0, 1); R_n = n on [0, 1/n] and 0 elsewhere."""
    n = sympy.Symbol("n", positive=True)
    norm = sympy.integrate(n, (PHI, 0, 1 / n))
    value = sympy.simplify(sympy.integrate(n * density, (PHI, 0, 1 / n)))
    yield Step(f"p = {density} is a density", integral(density) == 1)
    yield Step(f"R_n = n on [0, 1/n] has L^1 norm {norm}", norm == 1)
    yield Step(
        f"but ||R_n||_p = {value} grows without bound: no constant times the L^1 norm bounds it",
        sympy.limit(value, n, oo) == oo,
    )
    reward = PHI ** Rational(-1, 2)
    yield Step(
        f"and R = {reward}, with L^1 norm {integral(reward)}, has ||R||_p = {integral(reward * density)}",
        integral(reward * density) == oo,
    )


# --- clipping at 0 --------------------------------------------------------------------------------


def clip_steps(truth_may_be_negative: bool = False) -> Iterator[Step]:
    """Entry by entry; weighted with any |R| and summed it stays an inequality."""
    truth, approximation = real("xi"), real("xi~")
    yield entails(
        "|max(0, xi~) - xi| <= |xi~ - xi| where xi >= 0",
        [] if truth_may_be_negative else [truth >= 0],
        absolute(maximum([approximation, 0]) - truth) <= absolute(approximation - truth),
    )
    weights, before, after = reals("R", 3), reals("before", 3), reals("after", 3)
    yield entails(
        "hence sum |R| |max(0, xi~) - xi| <= sum |R| |xi~ - xi|",
        [w >= 0 for w in weights] + [x <= y for x, y in zip(after, before, strict=True)],
        weights @ after <= weights @ before,
    )


def clip_q_facts(approximation: tuple[int, int]) -> Iterator[Step]:
    """R = (1, 1), xi = (1, 1)."""
    truth, reward = exact_array([[(1, 1)]]), exact_array([1, 1])
    raw = exact_array([[approximation]])
    clipped = np.maximum(raw, exact_array(0)[()])
    errors = [abs(q_from_xi(values - truth, reward)[0, 0]) for values in (raw, clipped)]
    yield Step(
        f"R = (1, 1), xi = (1, 1), xi~ = {approximation}: the error of Q is {errors[0]} before clipping and "
        f"{errors[1]} after",
        bool(errors[1] > errors[0]),
    )


POWERS_WILL_DO = broken(
    "1, phi, phi^2 do for all three tasks", lambda: reformulation_facts([sympy.Integer(1), PHI, PHI**2])
)

PROOFS: tuple[Proof, ...] = (
    proved("tent/partition", Method.SMT, partition_steps,
           "every real phi in [0, 1], 11 centres; z3",
           broken("the bracket as printed", lambda: partition_steps(slipped_bracket)),
           broken("the centres as printed, 0 < j < U", lambda: partition_steps(indices=range(1, CENTRES)))),
    proved("tent/reproduces", Method.SMT, reproduces_steps,
           "every real phi in [0, 1], 11 centres; z3",
           broken("the bracket as printed", lambda: reproduces_steps(slipped_bracket)),
           broken("the last centre left out", lambda: reproduces_steps(indices=range(CENTRES - 1)))),
    refuted("tent/printed-misbracketed", misbracketed_facts,
            "phi = 3/10, 11 centres; exact",
            broken("the algorithm's bracket fails as well", lambda: misbracketed_facts(slipped=False))),
    refuted("tent/printed-centres", printed_centres_facts,
            "exact", broken("0 <= j < U fails as well", lambda: printed_centres_facts(range(CENTRES)))),
    refuted("tent/binary", lambda: binary_facts(DELTA / 4),
            "11 centres; exact. An index of bins can be constructed, as the paper says (onehot/discrete on "
            "bins); rewards are linear in CSFR's code as well",
            broken("the code of a centre is not binary", lambda: binary_facts(3 * DELTA))),
    proved("csfr/decomposition", Method.SYMBOLIC, lambda: decomposition_steps(lambda x, y: x + y),
           "all joint (also dependent) distributions of two features with 2 values each, kernels, "
           "policies, r_k and gamma; 2 states, 2 actions; symbolic",
           broken("R = r_1 r_2", lambda: decomposition_steps(lambda x, y: x * y))),
    proved("csfr/interpolant-bias", Method.SMT, interpolant_steps,
           "11 centres, every phi and r; the bias is the last step with R = r_k - I r_k and mass "
           "1/(1-gamma) (xi/mass), summed over k by csfr/decomposition; symbolic and z3",
           broken("the bracket as printed", lambda: interpolant_steps(slipped_bracket)),
           broken("the bound lowered by 1/1000", lambda: interpolant_steps(factor=Fraction(999, 1000)))),
    refuted("continuous/no-linear-reformulation", lambda: reformulation_facts(REWARDS),
            "features in [0, 1]; three tasks whose rewards are taken as the feature vector, which works for "
            "any finite number of tasks; symbolic. The paper means a code for all rewards at once, and "
            "there it is right: continuous/no-linear-for-all-rewards",
            POWERS_WILL_DO),
    incomplete("continuous/sf-cannot-solve",
               "that features are chosen before the tasks are known; then "
               "continuous/no-linear-for-all-rewards",
               lambda: reformulation_facts(REWARDS),
               "features in [0, 1]; three tasks and their rewards as the feature vector, which works for any "
               "finite number of tasks; symbolic. With learned features the paper says the same: "
               "features/learned",
               POWERS_WILL_DO),
    proved("features/learned", Method.SYMBOLIC, lambda: reformulation_facts(REWARDS),
           "features in [0, 1]; three tasks whose rewards are the new features, in which they are linear; "
           "then Q = psi.w (bg/psi-linear). With features that come close: thm2/code",
           POWERS_WILL_DO),
    proved("continuous/no-linear-for-all-rewards", Method.EXACT, all_rewards_steps,
           "n = 1, 2, 3 as polynomial identities; every n because a product through n dimensions has rank "
           "at most n. A continuum has n + 1 points for every n; continuous rewards (tents) will do",
           broken("n + 1 features are singular, too", lambda: all_rewards_steps(extra_features=1))),
    refuted("continuous/hoelder-gap", lambda: hoelder_facts(PHI ** Rational(-1, 2) / 2),
            "one state, features in (0, 1); symbolic integrals",
            broken("the same for a bounded density", lambda: hoelder_facts(sympy.Integer(1)))),
    proved("clip/absolute-error", Method.SMT, clip_steps,
           "all real xi >= 0 and xi~, all weights, 3 features; z3",
           broken("xi < 0 allowed", lambda: clip_steps(truth_may_be_negative=True))),
    refuted("clip/q-error", lambda: clip_q_facts((3, -1)),
            "one state, one action, two features; exact",
            broken("clipping hurts where xi~ >= 0", lambda: clip_q_facts((3, 1))),
            broken("clipping hurts where Q was too low", lambda: clip_q_facts((1, -1)))),
)  # fmt: skip
