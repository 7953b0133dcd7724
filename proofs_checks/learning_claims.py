"""Theorem 1, learning rules and T_xi: limits, so supported by runs, or refuted by exact examples.

The checks are those of `python -m sfr_theory.check_convergence`, at a smaller scale; their modules in
`sfr_theory.checks` carry the mathematics, `docs/theory.md` the proofs of T1', T1-MB and T1-GPI. The
identity that carries T1' (along any path the class of xi_n is the Q-learning iterate) is proved
symbolically as thm1/pathwise.

Broken variants: what supports convergence must not support it for constant step sizes, which do not converge;
what refutes must not refute the mended statement.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from fractions import Fraction
from functools import cache, partial

import numpy as np

from proofs_checks.argument import Broken, Proof
from sfr_theory.arithmetic import Array
from sfr_theory.check_convergence import CHECKS
from sfr_theory.checks import gpi_learning, hysteresis, model_based, operators
from sfr_theory.checks.settings import CONTROL, Settings
from sfr_theory.claims import CheckResult, Verdict
from sfr_theory.learning import Harmonic
from sfr_theory.mdp import FiniteMDP
from sfr_theory.operators import bellman_xi_policy

SETTINGS = Settings(mdps=4, steps=200_000)
"""Enough steps for constant step sizes to level off, which is what tells them from decreasing ones."""


@cache
def run(claim: str) -> CheckResult:
    """The result of a check of `check_convergence` at this scale."""
    return CHECKS[claim].run(SETTINGS)


class ConstantSteps(Settings):
    """The same paths, with step sizes that do not converge where there is noise."""

    step_size = CONTROL


def _constant_steps(claim: str) -> Broken:
    return Broken(
        "with constant step sizes it converges, too, on the same paths",
        _not(Verdict.SUPPORTED, lambda: CHECKS[claim].run(ConstantSteps(**asdict(SETTINGS)))),
    )


def _clock_per_pair_converges() -> bool:
    """With a clock for each pair the same path comes closer than half the gap of the wrong limit."""
    details = run("thm1/printed").details
    error = details["curves"]["clock per pair"]["error"][-1]
    return bool(error < (details["optimal"] - details["limit"]) / 2)


def _at_a_fixed_policy(mdp: FiniteMDP, reward: Array, xi: Array) -> Array:
    return bellman_xi_policy(mdp, np.zeros(mdp.num_states, dtype=int), xi)


def _not(verdict: Verdict, check: Callable[[], CheckResult]) -> Callable[[], bool]:
    """The check itself, with what its variant changes, must not find this."""
    return lambda: check().verdict is not verdict


def _proof(claim: str, variant: Broken, slow: bool = False) -> Proof:
    return Proof(claim, CHECKS[claim].method, lambda: run(claim), (variant,), slow)


PROOFS: tuple[Proof, ...] = (
    _proof("prop2/txi-contraction",
           Broken("the operator of a fixed policy jumps",
                  _not(Verdict.REFUTED, partial(operators.discontinuity, SETTINGS, _at_a_fixed_policy)))),
    _proof("thm1/printed", Broken("a clock for each pair fails on the same path", _clock_per_pair_converges)),
    _proof("thm1/corrected", _constant_steps("thm1/corrected"), slow=True),
    _proof("thm1/pointwise", _constant_steps("thm1/pointwise"), slow=True),
    _proof("mb/unbiased",
           Broken("it is biased at beta = 1",
                  _not(Verdict.REFUTED, partial(model_based.unbiased, SETTINGS, [Fraction(1)])))),
    _proof("mb/beta-zero",
           Broken("with beta = 1/10 it ends there, too",
                  _not(Verdict.REFUTED, partial(model_based.beta_zero, SETTINGS, 0.1)))),
    _proof("thm1/hysteresis",
           Broken("with constant step sizes it converges, too",
                  _not(Verdict.SUPPORTED, partial(hysteresis.converges, SETTINGS, CONTROL))),
           slow=True),
    _proof("thm1-thm2/hysteresis",
           Broken("without the rule eps_R tends to 0, too",
                  _not(Verdict.SUPPORTED, partial(hysteresis.feeds_transfer, SETTINGS, keep=False))),
           slow=True),
    _proof("mb/convergence", _constant_steps("mb/convergence"), slow=True),
    _proof("mb/variance",
           Broken("next values that agree with the reward raise it, too",
                  _not(Verdict.NEEDS_ASSUMPTION,
                       partial(model_based.variance, SETTINGS, -model_based.OPPOSED)))),
    _proof("gpi-learning/covered-by-theorem-1",
           Broken("stored values that learn mislead, too",
                  _not(Verdict.NEEDS_ASSUMPTION,
                       partial(gpi_learning.covered_by_theorem_1, SETTINGS, Harmonic())))),
    _proof("gpi-learning/frozen-limit",
           Broken("g eta/(1-g)^2 lowered by 1/100",
                  lambda: gpi_learning.frozen_limit(SETTINGS, Fraction(99, 100)).verdict is Verdict.REFUTED),
           slow=True),
)  # fmt: skip
