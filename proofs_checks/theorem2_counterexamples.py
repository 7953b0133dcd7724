"""Theorem 2 (t:xi_gpi_formulation) as printed is false, in two separate ways.

The theorem bounds ||xi* - xi^pi||_R by 2/(1-gamma) (min_i ||R - R_i||_p + eps), where
||xi_i - xi~_i||_{R_i} <= eps, for the policy pi that is greedy on max_i of the sum over phi of R xi~_i.

1. eps is measured under R_i, but GPI reads xi~_i under R. An error inside the kernel of R_i costs nothing
   on the right and can be arbitrarily large under R. This refutes both readings of ||.||_R.
2. The text defines ||f||_g as the sup of the integral of |f g|. With this absolute norm the left side is
   not the loss of value: two policies of equal value have xi that differ where R does not vanish.

The files live in `counterexamples/`; `proofs_checks.counterexamples` recomputes them in rational
arithmetic. Each comes with what repairs it, as a broken variant: with xi~ exact, or in the value
norm, the same tasks refute nothing.
"""

from __future__ import annotations

from collections.abc import Callable

from proofs_checks.argument import Broken, Proof, Step, broken, incomplete
from proofs_checks.counterexamples import (
    ABSOLUTE_NORM,
    ABSOLUTE_NORM_TIE,
    ERROR_UNDER_SOURCE,
    MASS_PRESERVING,
    Counterexample,
    exactly_solved,
    first_action,
    flaws,
    refutation,
    worst_terms,
)
from sfr_theory.claims import CheckResult, Method, Verdict
from sfr_theory.files import load_problem
from sfr_theory.operators import q_from_xi
from sfr_theory.transfer import evaluate


def _harmless_when_exact(example: Counterexample) -> Broken:
    """The same tasks with xi~ = xi must not pass as this counterexample."""
    return Broken(
        f"{example.name}.json with exact approximations refutes Theorem 2",
        lambda: bool(flaws(example, exactly_solved(load_problem(example.path)))),
    )


def _holds_on(statement: str, example: Counterexample) -> Broken:
    """The statement must survive the example."""
    return Broken(
        f"{example.name}.json also refutes {statement}",
        lambda: bool(worst_terms(load_problem(example.path), statement, example.ties).holds),
    )


def _all_refute(*refutations: CheckResult) -> CheckResult:
    """The first of several refutations, or the first that failed."""
    failed = (result for result in refutations if result.verdict is not Verdict.REFUTED)
    return next(failed, refutations[0])


def printed() -> CheckResult:
    """Both sides in the absolute norm."""
    by_norm = refutation(
        "thm2/printed",
        ABSOLUTE_NORM_TIE,
        "one state, two actions, two features, gamma = 1/2, xi~ exact",
        "Two optimal policies have equal values and different xi; absolute_norm.json shows it without ties.",
    )
    by_error = refutation("thm2/printed", ERROR_UNDER_SOURCE, "", "")
    without_ties = refutation("thm2/printed", ABSOLUTE_NORM, "", "")
    return _all_refute(by_norm, by_error, without_ties)


def printed_value_norm() -> CheckResult:
    """Both sides in the norm of Corollary 1."""
    return refutation(
        "thm2/printed-value-norm",
        ERROR_UNDER_SOURCE,
        "one state, two actions, two features, two sources, gamma = 1/2; no ties",
        "The error of xi~_2 lies in the kernel of R_2, so eps = 0; the target sees it.",
    )


def printed_without_ties() -> CheckResult:
    """Neither an optimal action nor the GPI action is tied."""
    by_norm = refutation(
        "thm2/printed",
        ABSOLUTE_NORM,
        "one state, two actions, two features, one source R_1 = R, gamma = 1/2; all argmaxes unique",
        "An error of 1/5 costs 1/10 in value, but the policies' xi are 19/10 apart. "
        "error_under_source.json has no ties either and refutes both norms.",
    )
    by_error = refutation("thm2/printed-value-norm", ERROR_UNDER_SOURCE, "", "")
    return _all_refute(by_norm, by_error)


def printed_distribution_like() -> CheckResult:
    """xi~ is non-negative and has the mass of a true xi."""
    return refutation(
        "thm2/printed-value-norm",
        MASS_PRESERVING,
        "one state, two actions, three features, gamma = 1/2; no ties (with eps = 0 and no ties two features "
        "cannot do it)",
        "Mass moves between two features that R_2 values alike and R does not.",
    )


def _kernel_function_facts(exact: bool) -> list[Step]:
    """What adding kappa in Ker(R_2) to xi_2 does to the target's policy; with kappa = 0 if `exact`."""
    problem = load_problem(ERROR_UNDER_SOURCE.path)
    solved = exactly_solved(problem)
    changed = evaluate(solved if exact else problem)
    before = evaluate(solved)
    kappa = changed.approximations[1] - before.approximations[1]
    under_source, under_target = (q_from_xi(kappa, reward) for reward in (problem.sources[1], problem.target))
    loss = worst_terms(solved if exact else problem, "thm2/sharp", first_action).left[()]
    return [
        Step("kappa has zero reward under R_2 everywhere", not bool(under_source.any())),
        Step(f"under R it is worth {under_target.max()}", bool(under_target.any())),
        Step(
            f"GPI changes its action from {before.gpi_policy[0]} to {changed.gpi_policy[0]}",
            bool((before.gpi_policy != changed.gpi_policy).any()),
        ),
        Step(f"and loses {loss} in Q", bool(loss > 0)),
    ]


def _proof(claim: str, check: Callable[[], CheckResult], *variants: Broken) -> Proof:
    return Proof(claim, Method.COUNTEREXAMPLE, check, variants)


PROOFS: tuple[Proof, ...] = (
    _proof("thm2/printed", printed, _holds_on("thm2/printed-value-norm", ABSOLUTE_NORM_TIE),
           _harmless_when_exact(ERROR_UNDER_SOURCE), _harmless_when_exact(ABSOLUTE_NORM)),
    _proof("thm2/printed-value-norm", printed_value_norm,
           _harmless_when_exact(ERROR_UNDER_SOURCE), _holds_on("thm2/corrected", ERROR_UNDER_SOURCE)),
    _proof("thm2/printed-no-ties", printed_without_ties,
           _harmless_when_exact(ABSOLUTE_NORM), _holds_on("thm2/printed-value-norm", ABSOLUTE_NORM)),
    _proof("thm2/printed-nonnegative-mass-preserving", printed_distribution_like,
           _harmless_when_exact(MASS_PRESERVING), _holds_on("thm2/corrected", MASS_PRESERVING)),
    incomplete("thm1/kernel-meaningless", "that xi is read under this one reward only, not in another task",
               lambda: _kernel_function_facts(exact=False), "error_under_source.json",
               broken("kappa = 0 changes the policy", lambda: _kernel_function_facts(exact=True))),
)  # fmt: skip
