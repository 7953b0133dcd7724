"""xi may oscillate for ever while its class converges, also under Robbins-Monro rates.

On a cycle of four states, in sweeps that keep opposite values opposite, learning is a linear recursion for
u = V(x_0) and w = V(x_1) (`sfr_theory.examples.sweep_of_four`). With a = alpha, g = gamma = 1/2:

    u' = (1 - a) u + a g w,        w' = (1 - a) w - a g u'.

The proof follows the ratio rho = w/u. With x = a g/(1 - a) and D = 1 + x rho, one sweep is

    u' = (1 - a) u D,        rho' = rho/D - a g,        1/(rho/D) = 1/rho + x.

While u keeps its sign, D > 0; so rho falls by a g at least, and once it is negative, 1/rho rises by
x >= a g at least and stays negative. Neither can go on for ever, because the sum of the a is infinite: u
changes sign for ever, and w with it. And rho needs a sum of a of at least 3/10 to fall from -1/4 to below
-1, so the two greedy actions rule for times that do not shrink. docs/theory.md, section 2, has the whole
argument; checked here are its identities and inequalities for all reals, the recursion against the learning
rule itself, and the distance of the two limits of xi.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import sympy

from proofs_checks.argument import Broken, Proof, Step, broken, refuted
from proofs_checks.learning_claims import run
from proofs_checks.symbolic import Expression, is_nonnegative, vanishes
from sfr_theory.arithmetic import exact_array, fraction
from sfr_theory.checks import theorem_1
from sfr_theory.claims import Verdict
from sfr_theory.examples import cycle_swing, sweep_of_four, two_entries_to_a_cycle
from sfr_theory.operators import bellman_xi
from sfr_theory.solve import optimal, optimal_actions, policy_xi

HALF = sympy.Rational(1, 2)
SWEEPS = 60


def turning_steps(gamma: Expression = HALF, lower: Expression = 1) -> Iterator[Step]:
    """The algebra of the proof; `lower` is the factor in 'rho falls by a g at least'."""
    # a = 1/(1 + k) with k >= 0 runs through all rates in (0, 1]; k > 0 are those below 1.
    k = sympy.Symbol("k", positive=True)
    a = 1 / (1 + k)
    u, w, s = sympy.symbols("u w s", positive=True)
    first, second = sweep_of_four((u, w), a)
    x = a * gamma / (1 - a)
    rho = w / u
    shrink = 1 + x * rho
    matrix = sympy.Matrix([[sympy.diff(value, z) for z in (u, w)] for value in (first, second)])
    yield Step(
        "a sweep has determinant (1 - a)^2: (u, w) never becomes 0", vanishes(matrix.det() - (1 - a) ** 2)
    )
    discriminant = sympy.cancel((matrix.trace() ** 2 - 4 * matrix.det()) / a**2)
    yield Step(
        "as a -> 0 its eigenvalues are 1 - a (1 -+ i g) up to a^2: discriminant/a^2 -> -4 g^2",
        bool(sympy.limit(discriminant, k, sympy.oo) == -4 * gamma**2),
    )
    yield Step("u' = (1 - a) u D", vanishes(first - (1 - a) * u * shrink))
    yield Step("rho' = rho/D - a g", vanishes(second / first - (rho / shrink - a * gamma)))
    yield Step("1/(rho/D) - 1/rho = x", vanishes(shrink / rho - 1 / rho - x))
    yield Step("x >= a g", is_nonnegative(x - a * gamma))
    # In what follows rho is any real with D > 0; rho^2/D is then nonnegative.
    fall = sympy.cancel((rho - (rho / shrink - a * gamma) - lower * a * gamma) * shrink / rho**2)
    yield Step("rho - rho' = a g + x rho^2/D >= a g where D > 0", vanishes(fall - x))
    # a <= 1/2 is k = 1 + m, and -1 <= rho < 0 is rho = -1/(1 + s), with m, s >= 0.
    m = sympy.Symbol("m", positive=True)
    small = {k: 1 + m}
    for where, value in (("-1 <= rho < 0", -1 / (1 + s)), ("rho = 0", sympy.Integer(0))):
        yield Step(f"for a <= 1/2 and {where}: D >= 1/2", is_nonnegative((1 + x * value).subs(small) - HALF))
        fallen = (value - (value / (1 + x * value) - a * gamma)).subs(small)
        most = (sympy.Rational(5, 2) * a).subs(small)
        yield Step(f"for a <= 1/2 and {where}: rho falls by at most 5a/2", is_nonnegative(most - fallen))


def limit_facts() -> Iterator[Step]:
    """Both actions of s are optimal, and the limits of xi(t, .) that belong to them differ in feature 1."""
    example = two_entries_to_a_cycle(4)
    ties = optimal_actions(optimal(example.mdp, example.reward).q)[1].all()
    policies = np.zeros((2, example.mdp.num_states), dtype=int)
    policies[1, 1] = 1
    limits = [fraction(value) for value in policy_xi(example.mdp, policies)[:, 0, 0, 1]]
    yield Step(
        f"both actions of s are optimal; xi(t, phi_1) has the limits {limits[0]} and {limits[1]} under them",
        bool(ties) and limits[0] - limits[1] == cycle_swing(4) != 0,
    )


def oscillation_facts() -> Iterator[Step]:
    operator = run("thm1/oscillation")
    yield Step(operator.evidence, operator.verdict is Verdict.REFUTED)
    yield Step(
        f"learning along the sweeps is the recursion for (u, w), and s keeps the values of x_3 and x_1, at "
        f"each of {SWEEPS} sweeps in rational arithmetic",
        theorem_1.follows_the_wave(SWEEPS),
    )
    yield from limit_facts()
    yield from turning_steps()


def _settles_without_ties() -> bool:
    """With the tie of the example broken by a reward of 1/10, iterates of T_xi settle in every feature."""
    example = two_entries_to_a_cycle(2)
    reward = example.reward + exact_array([0, "1/10", 0])
    xi = example.initial
    for _ in range(60):
        before, xi = xi, bellman_xi(example.mdp, reward, xi)
    jump = fraction(np.abs(xi - before).max())
    return bool(jump <= fraction(example.mdp.gamma) ** 40)


PROOFS: tuple[Proof, ...] = (
    refuted("thm1/oscillation", oscillation_facts,
            "a four-cycle without randomness, gamma = 1/2, each pair visited once a sweep; all rates a_n in "
            "(0, 1) with sum a_n infinite and a_n -> 0; algebra symbolic, the argument in docs/theory.md. "
            "Two-cycle, T_xi iterated: exact. Stochastic path: one run",
            Broken("xi oscillates also where the greedy action is unique", _settles_without_ties),
            broken("rho falls by 2 a g at least", lambda: turning_steps(lower=2)),
            broken("the recursion has another gamma", lambda: turning_steps(gamma=sympy.Rational(1, 3)))),
)  # fmt: skip
