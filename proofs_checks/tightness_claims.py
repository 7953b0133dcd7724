"""How tight T2' is, and how far from tight the paper's constant: the checks of `check_tightness`, smaller.

Attained: a family of problems with one or two states (`sfr_theory.tightness`) on which both sides of T2' are
equal: in closed form for all gamma = k/(1+k) with k >= 0, all d >= 0 and eps >= 0, and in rational arithmetic
for some, with everything solved anew. V^rho = (I - gamma P_rho)^-1 r_rho is a rational function of the three,
and every inequality that the argument needs is one between polynomials without a negative coefficient.

Never exceeded: for every choice of deterministic dynamics and policies the worst rewards and
errors are the solution of a linear programme (`sfr_theory.tightness`); here all of them with up to two
states, two actions and one source.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np
import sympy

from proofs_checks.argument import Broken, Proof, Step, broken, every, proved, proves
from proofs_checks.symbolic import Expression, is_nonnegative, vanishes
from sfr_theory import check_tightness as tightness
from sfr_theory.claims import CheckResult, Method, Verdict
from sfr_theory.tightness import Size, attaining_family

GAMMAS = [Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)]
SIZES = (Size(1, tightness.ACTIONS, 1), Size(2, tightness.ACTIONS, 1))
SEED = 0


@cache
def rows() -> tuple[tightness.TightnessRow, ...]:
    """The worst ratios by family, linear programmes and random problems."""
    rng = np.random.default_rng(SEED)
    return tuple(
        row
        for gamma in GAMMAS
        for size in SIZES
        for row in (
            tightness.family_row(gamma, size),
            tightness.programme_row(gamma, size, 1, rng),
            tightness.random_row(gamma, size, rng),
        )
    )


def closed_form_steps(
    states: int, d: Expression, eps: Expression, slack: Expression = 0, without_ties: bool = False
) -> Iterator[Step]:
    """Why the family attains T2', with every value in closed form.

    `without_ties` every greedy choice must be strict, and V may miss T2' by (1+g) slack/(1-g), with one state
    by slack/(1-g).
    """
    k = K if without_ties else sympy.Symbol("k", nonnegative=True)
    g = k / (1 + k)
    family = attaining_family(d, eps, states, slack)
    pairs = [(s, a) for s in range(states) for a in range(2)]
    target, shift, error = (sympy.Matrix(rows) for rows in (family.target, family.shift, family.q_error))

    def action_values(policy: list[int], reward: sympy.Matrix) -> tuple[sympy.Matrix, sympy.Matrix]:
        """Q and V of a policy."""
        follow = sympy.zeros(states, states)
        for s, a in enumerate(policy):
            follow[s, family.next_state[s][a]] = 1
        earned = sympy.Matrix([reward[s, a] for s, a in enumerate(policy)])
        value = (sympy.eye(states) - g * follow).inv() * earned
        q = sympy.Matrix(states, 2, lambda s, a: reward[s, a] + g * value[family.next_state[s][a]])
        return q, value

    def is_greedy(policy: list[int], q: sympy.Matrix) -> bool:
        leads = [q[s, policy[s]] - q[s, a] for s, a in pairs if a != policy[s]]
        return all(is_nonnegative(lead) and not (without_ties and vanishes(lead)) for lead in leads)

    source_q, _ = action_values(family.source_policy, target + shift)
    yield Step(
        "pi_1 is greedy for its own values under r_1, so optimal", is_greedy(family.source_policy, source_q)
    )
    distances = [vanishes(shift[pair]) or vanishes(shift[pair] ** 2 - d**2) for pair in pairs]
    yield Step("|r - r_1| is 0 or d everywhere", all(distances))
    errors = [vanishes(error[pair]) or vanishes(error[pair] ** 2 - eps**2) for pair in pairs]
    yield Step("errors of Q^{pi_1} under the target are 0 or eps in size", all(errors))
    read, _ = action_values(family.source_policy, target)
    yield Step(
        "pi is greedy on Q^{pi_1} with its errors, so GPI may choose it",
        is_greedy(family.gpi_policy, read + error),
    )
    best_q, best = action_values(family.optimal_policy, target)
    yield Step(
        "the rival is greedy for its own values, so V* is its value", is_greedy(family.optimal_policy, best_q)
    )
    gpi_q, gpi = action_values(family.gpi_policy, target)
    gap = slack * (1 + (states - 1) * g) if without_ties else 0
    right = (2 * (g * d + eps) - gap) / (1 - g)
    missed = ", up to a multiple of the slack" if without_ties else ""
    yield Step(f"V*(0) - V^pi(0) = 2/(1-g) (g d + eps){missed}", vanishes(best[0] - gpi[0] - right))
    yield Step("Q*(0, stay) - Q^pi(0, stay) = g times that", vanishes(best_q[0, 0] - gpi_q[0, 0] - g * right))


ZERO, ONE, SOME = Fraction(0), Fraction(1), Fraction(1, 1000)


def attained(
    claim: str, states: int, d: Expression, eps: Expression, *members: tuple[Fraction, Fraction]
) -> Proof:
    """That a part of the family attains T2': (d, eps) as unknowns, and members to compute with."""

    def steps(slack: Fraction = ZERO) -> Iterator[Step]:
        return closed_form_steps(states, d, eps, sympy.Rational(slack))

    def computed(slack: Fraction = ZERO) -> CheckResult:
        return tightness.check_attained(GAMMAS, members, states, slack)

    def check() -> CheckResult:
        found = computed()
        agrees = Step(f"solved anew: {found.evidence}, {found.scope}", found.verdict is Verdict.SUPPORTED)
        return proves(
            [*steps(), agrees],
            f"(d, eps) = ({d}, {eps}), all reals >= 0, and all gamma in [0, 1); {states} "
            f"state{'s' if states > 1 else ''}; symbolic. That nothing exceeds it: thm2/sharp and "
            f"thm2/sharp-value",
        )

    return Proof(claim, Method.SYMBOLIC, check, (
        broken("with slack 1/1000 the closed forms attain it, too", lambda: steps(SOME)),
        Broken("with slack 1/1000 the ratio is 1, too", lambda: computed(SOME).verdict is Verdict.REFUTED),
    ))  # fmt: skip


D, EPS = sympy.symbols("d eps", nonnegative=True)
K, SLACK, X, Y = sympy.symbols("k slack x y", positive=True)


def no_tie_steps(slack: Expression = SLACK) -> Iterator[Step]:
    """d alone, eps alone and both; all d > slack/g and eps > slack, since x and y are any positive reals."""
    least = SLACK * (1 + K) / K  # slack/g
    for name, states, d, eps in (
        ("exact xi", 2, least + X, sympy.Integer(0)),
        ("d = 0", 1, sympy.Integer(0), SLACK + Y),
        ("both", 2, least + X, SLACK + Y),
    ):
        yield every(
            f"{name}: no ties, and the loss misses T2' by a multiple of the slack",
            closed_form_steps(states, d, eps, slack, without_ties=True),
        )


def _ties_are_noticed(slack_of: Callable[[Fraction], Fraction]) -> bool:
    return tightness.check_no_ties(GAMMAS, slack_of).verdict is Verdict.REFUTED


def _larger(row: tightness.TightnessRow, factor: float) -> tightness.TightnessRow:
    """The row as it would be if every programme had found a ratio larger by a factor."""
    return replace(
        row,
        ratios={
            name: replace(ratio, programme=None if ratio.programme is None else factor * ratio.programme)
            for name, ratio in row.ratios.items()
        },
    )


def _would_notice(check: Callable[[list[tightness.TightnessRow]], CheckResult]) -> Broken:
    """A ratio larger by 1/1000 must change the verdict."""
    return Broken(
        "ratios larger by 1/1000 pass",
        lambda: check([_larger(row, 1.001) for row in rows()]).verdict is not Verdict.SUPPORTED,
    )


PROOFS: tuple[Proof, ...] = (
    attained("tightness/sharp-attained-epsilon", 1, sympy.Integer(0), EPS, (ZERO, ONE)),
    attained("tightness/sharp-attained-distance", 2, D, sympy.Integer(0), (ONE, ZERO)),
    attained("tightness/joint", 2, D, EPS, *((ONE, proportion) for proportion in tightness.PROPORTIONS)),
    proved("tightness/no-tie-limit", Method.SYMBOLIC, no_tie_steps,
           "all gamma in (0, 1), slack > 0, d > slack/g and eps > slack; as the slack tends to 0 the "
           "ratio tends "
           "to 1; two states, one where d = 0",
           broken("without slack nothing ties", lambda: no_tie_steps(sympy.Integer(0))),
           Broken("in rational arithmetic: without slack nothing ties",
                  lambda: _ties_are_noticed(lambda slack: Fraction(0))),
           Broken("in rational arithmetic: the gap is proportional to the root of the slack",
                  lambda: _ties_are_noticed(lambda slack: slack**2))),
    Proof("tightness/sharp-never-exceeded", Method.INSTANCES,
          lambda: tightness.check_never_exceeded(list(rows())),
          (_would_notice(tightness.check_never_exceeded),)),
    Proof("tightness/printed-never-tight", Method.INSTANCES, lambda: tightness.check_printed(list(rows())),
          (_would_notice(tightness.check_printed),)),
)  # fmt: skip
