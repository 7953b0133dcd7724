"""T2' up to scale and shift: d_i may be replaced by the infimum over a > 0 and c of sup |r - a r_i - c|.

Why: a r_i + c with a > 0 has the same optimal policies as r_i, so T2' holds for it in the place of r_i. A
negative scale turns optimal policies into worst ones, and the bound fails: that is the broken variant. Since
|r - a r_i - c| with a < 0 is |r - |a| (-r_i) - c|, it is the same bound with -r_i among the sources whose
distance counts. Beside random problems both run on those that can tell them apart: the only source is -R.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from proofs_checks.instances import supports
from proofs_checks.proof import Broken, Proof
from sfr_theory.bounds import STATEMENTS, Bound, BoundTerms, Evaluation
from sfr_theory.claims import CheckResult, Method, Verdict
from sfr_theory.random_mdp import ProblemBatch


def _opposite(batch: ProblemBatch) -> ProblemBatch:
    """The same targets, each with the one source -R and exact xi."""
    return replace(batch, sources=-batch.target[:, None, :], perturbation=0 * batch.perturbation[:, :1])


def _check(bound: Bound) -> CheckResult:
    usual, opposite = supports(bound), supports(bound, _opposite)
    if opposite.verdict is not Verdict.SUPPORTED:
        return opposite
    return replace(usual, evidence=f"{usual.evidence}; with -R as the only source: {opposite.evidence}")


def _any_scale(bound: Bound) -> Bound:
    """The bound with a < 0 allowed: -r_i counts where r_i does."""

    def terms(e: Evaluation) -> BoundTerms:
        return bound(replace(e, sources=np.concatenate([e.sources, -e.sources], axis=-2)))

    return terms


def _proof(statement: str) -> Proof:
    bound = STATEMENTS[statement]
    return Proof(
        statement,
        Method.INSTANCES,
        lambda: _check(bound),
        (Broken("a < 0 is allowed", lambda: _check(_any_scale(bound)).verdict is Verdict.REFUTED),),
    )


PROOFS: tuple[Proof, ...] = (
    _proof("thm2/sharp-affine"),
    _proof("thm2/sharp-value-affine"),
)  # fmt: skip
