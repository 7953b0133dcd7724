"""T2' up to scale and shift: d_i may be replaced by the infimum over a > 0 and c of sup |r - a r_i - c|.

Why: a r_i + c with a > 0 has the same optimal policies as r_i, so T2' holds for it in place of r_i. A
negative scale turns optimal policies into worst ones, and the bound fails: that is the broken variant. Since
|r - a r_i - c| with a < 0 is |r - |a| (-r_i) - c|, it is the same bound with -r_i among the sources whose
distance counts. Both run on problems that can tell them apart: the only source is -R.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from proofs_checks.argument import Broken, Proof, Step, broken, proved
from proofs_checks.smt import entails, real
from proofs_checks.symbolic import identity, symbolic_mdp
from sfr_theory.bounds import STATEMENTS, Bound, BoundTerms, SolvedProblem
from sfr_theory.claims import Method
from sfr_theory.random_mdp import FAMILIES, Shape
from sfr_theory.transfer import evaluate_batch

PROBLEMS_PER_FAMILY = 200


def _is_violated(bound: Bound) -> bool:
    """Whether the bound fails on random problems, each with the one source -R and exact xi."""
    rng = np.random.default_rng(0)
    for family in FAMILIES.values():
        batch = family(rng, PROBLEMS_PER_FAMILY, Shape(), 0.9, 0.0)
        opposite, exact = -batch.target[:, None, :], 0 * batch.perturbation[:, :1]
        if bound(evaluate_batch(batch.mdps, batch.target, opposite, exact)).violated.any():
            return True
    return False


def _any_scale(bound: Bound) -> Bound:
    """The bound with a < 0 allowed: -r_i counts where r_i does."""

    def terms(e: SolvedProblem) -> BoundTerms:
        return bound(replace(e, sources=np.concatenate([e.sources, -e.sources], axis=-2)))

    return terms


def affine_steps(scale_may_be_negative: bool = False) -> Iterator[Step]:
    mdp = symbolic_mdp(R=(2,), a=(), c=())
    r = mdp.expected_reward(mdp.given["R"])
    a, c = mdp.given["a"], mdp.given["c"]
    yield identity(
        "Q of any policy under a r + c is a Q + c/(1-g)",
        mdp.discounted(r * a[()] + c[()]) * (1 - mdp.gamma[()]),
        mdp.discounted(r) * a[()] * (1 - mdp.gamma[()]) + c[()] * mdp.det,
    )
    first, second, scale, shift = (real(name) for name in ("Q", "Q'", "a", "shift"))
    yield entails(
        "with a > 0 the order of policies stays, so pi_i is optimal for a r_i + c too, and its xi is the "
        "same: T2' holds with a r_i + c in the place of r_i, for every a > 0 and c",
        [first >= second, *([] if scale_may_be_negative else [scale > 0])],
        scale * first + shift >= scale * second + shift,
    )


def _proof(statement: str) -> Proof:
    bound = STATEMENTS[statement]
    return proved(
        statement, Method.SMT, affine_steps,
        "all kernels, rewards, policies, a > 0, c and gamma; 3 states, 2 actions, 2 features; symbolic and "
        "z3. The infimum over a and c: the left side does not depend on them",
        broken("a < 0 keeps the order", lambda: affine_steps(scale_may_be_negative=True)),
        Broken("a < 0 is allowed", lambda: _is_violated(_any_scale(bound)) and not _is_violated(bound)),
    )  # fmt: skip


PROOFS: tuple[Proof, ...] = (_proof("thm2/sharp-affine"), _proof("thm2/sharp-value-affine"))
