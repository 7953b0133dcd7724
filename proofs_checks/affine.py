"""T2' up to scale and shift: d_i may be replaced by the infimum over a > 0 and c of sup |r - a r_i - c|.

Why: a r_i + c with a > 0 has the same optimal policies as r_i, so T2' holds for it in the place of r_i. A
negative scale turns optimal policies into worst ones, and the bound fails: that is the broken variant.
"""

from __future__ import annotations

import numpy as np

from proofs_checks.instances import EPSILON, GAMMA, PROBLEMS_PER_FAMILY, SEED, SHAPE, supports
from proofs_checks.proof import Broken, Proof
from sfr_theory.bounds import STATEMENTS
from sfr_theory.random_mdp import FAMILIES
from sfr_theory.transfer import evaluate_batch


def _negative_scale_is_refuted(statement: str) -> bool:
    """With R_i = -R and exact xi, a = -1 would make the right side 0; GPI loses something nevertheless."""
    rng = np.random.default_rng(SEED)
    batch = FAMILIES["garnet"](rng, PROBLEMS_PER_FAMILY, SHAPE, GAMMA, EPSILON)
    evaluation = evaluate_batch(
        batch.mdps, batch.target, -batch.target[:, None, :], 0 * batch.perturbation[:, :1]
    )
    terms = STATEMENTS[statement].terms(evaluation)
    return bool((terms.left > terms.rounding).any())


PROOFS: tuple[Proof, ...] = (
    Proof(
        "thm2/sharp-affine",
        lambda: supports(STATEMENTS["thm2/sharp-affine"].terms),
        (Broken("a < 0 is allowed", lambda: _negative_scale_is_refuted("thm2/sharp-affine")),),
    ),
    Proof(
        "thm2/sharp-value-affine",
        lambda: supports(STATEMENTS["thm2/sharp-value-affine"].terms),
        (Broken("a < 0 is allowed", lambda: _negative_scale_is_refuted("thm2/sharp-value-affine")),),
    ),
)
