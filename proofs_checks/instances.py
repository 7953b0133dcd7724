"""Random transfer problems, as evidence for statements that hold on all of them.

Every family of `sfr_theory.random_mdp` gives the same number of problems; the seed is fixed, so that a
ledger is reproducible. `python -m sfr_theory.check_gpi_bound` does the same at any scale.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sfr_theory.bounds import Bound
from sfr_theory.claims import CheckResult, Verdict
from sfr_theory.random_mdp import FAMILIES, ProblemBatch, Shape
from sfr_theory.transfer import evaluate_batch

SEED, PROBLEMS_PER_FAMILY, GAMMA, EPSILON = 0, 200, 0.9, 0.1
SHAPE = Shape()


def _as_drawn(batch: ProblemBatch) -> ProblemBatch:
    return batch


def supports(bound: Bound, change: Callable[[ProblemBatch], ProblemBatch] = _as_drawn) -> CheckResult:
    """SUPPORTED if no problem violates the bound, with the largest left/right; REFUTED otherwise."""
    rng = np.random.default_rng(SEED)
    problems, violations, worst = 0, 0, 0.0
    for family in FAMILIES.values():
        batch = change(family(rng, PROBLEMS_PER_FAMILY, SHAPE, GAMMA, EPSILON))
        terms = bound(evaluate_batch(batch.mdps, batch.target, batch.sources, batch.perturbation))
        problems += len(batch)
        violations += int(terms.violated.sum())
        worst = max(worst, float(terms.ratio.max()))
    return CheckResult(
        Verdict.REFUTED if violations else Verdict.SUPPORTED,
        f"{violations} violations on {problems} random problems, largest left/right {worst:.3g}, seed {SEED}",
        f"S={SHAPE.states}, A={SHAPE.actions}, F={SHAPE.features}, {SHAPE.tasks} sources, gamma = {GAMMA}, "
        f"families {', '.join(FAMILIES)}",
        {"instances": problems, "violations": violations, "worst_ratio": worst},
    )
