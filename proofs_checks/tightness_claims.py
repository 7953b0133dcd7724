"""How tight T2' is, and how far from tight the paper's constant: the checks of `check_tightness`, smaller.

Attained: a family of problems with one or two states on which both sides of T2' are equal, in rational
arithmetic. Never exceeded: for every choice of deterministic dynamics and policies the worst rewards and
errors are the solution of a linear programme (`sfr_theory.tightness`); here all of them with up to two
states, two actions and one source.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import cache

import numpy as np

from proofs_checks.proof import Broken, Proof
from sfr_theory import check_tightness as tightness
from sfr_theory.claims import CheckResult, Verdict
from sfr_theory.tightness import Size

GAMMAS = [Fraction(1, 2), Fraction(9, 10), Fraction(99, 100)]
SIZES = (Size(1, tightness.ACTIONS, 1), Size(2, tightness.ACTIONS, 1))
SEED = 0


@cache
def rows() -> tuple[tightness.Row, ...]:
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


def attained(distance: int, epsilon: int, states: int, gammas: list[Fraction]) -> CheckResult:
    return tightness.check_attained(gammas, [(Fraction(distance), Fraction(epsilon))], states)


def jointly_attained() -> CheckResult:
    members = [(Fraction(1), proportion) for proportion in tightness.PROPORTIONS]
    return tightness.check_attained(GAMMAS, members, states=2)


def _larger(row: tightness.Row, factor: float) -> tightness.Row:
    """The row as it would be if every programme had found a ratio larger by a factor."""
    return replace(
        row,
        ratios={
            name: replace(ratio, programme=None if ratio.programme is None else factor * ratio.programme)
            for name, ratio in row.ratios.items()
        },
    )


def _would_notice(check: Callable[[list[tightness.Row]], CheckResult]) -> Broken:
    """A ratio larger by 1/1000 must change the verdict."""
    return Broken(
        "ratios larger by 1/1000 pass",
        lambda: check([_larger(row, 1.001) for row in rows()]).verdict is not Verdict.SUPPORTED,
    )


def _slack_is_noticed() -> bool:
    """A member of the family with slack is below 1, and the check must see it."""
    problem = tightness.attaining_problem(GAMMAS[0], 1, 1, slack=Fraction(1, 1000))
    ratio = tightness.MEASURES["sharp-q"].ratio(tightness.evaluate(problem))
    return ratio is not None and ratio < 1


SLACK = Broken("a problem with slack 1/1000 attains it, too", _slack_is_noticed)

PROOFS: tuple[Proof, ...] = (
    Proof("tightness/sharp-attained-epsilon", lambda: attained(0, 1, 1, GAMMAS), (SLACK,)),
    Proof("tightness/sharp-attained-distance", lambda: attained(1, 0, 2, GAMMAS), (SLACK,)),
    Proof("tightness/joint", jointly_attained, (SLACK,)),
    Proof("tightness/no-tie-limit", lambda: tightness.check_no_ties(GAMMAS), (SLACK,)),
    Proof("tightness/sharp-never-exceeded", lambda: tightness.check_never_exceeded(list(rows())),
          (_would_notice(tightness.check_never_exceeded),)),
    Proof("tightness/printed-never-tight", lambda: tightness.check_printed(list(rows())),
          (_would_notice(tightness.check_printed),)),
)  # fmt: skip
