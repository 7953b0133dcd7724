"""Which bound on what GPI loses is the smallest? Certificates against T2', on random problems.

Every family of `sfr_theory.random_mdp` gives the same number of problems, once with exact xi~_i and once with
errors. Compared are bounds on the loss of V by the same policy, so that the smallest of them is the best
thing to know (`BOUNDS`, and what each `NEEDS`).

A bound counts as the smallest if no other is smaller by more than float64 or the solver of the linear
programmes can tell; several may be.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from rich.table import Table

from sfr_theory import cli
from sfr_theory.arithmetic import Array
from sfr_theory.bounds import STATEMENTS, SolvedProblem
from sfr_theory.random_mdp import FAMILIES, Shape
from sfr_theory.transfer import evaluate_batch

BOUNDS = {
    "T2'": "thm2/sharp-value",
    "affine": "thm2/sharp-value-affine",
    "span": "certificate/residual-value",
    "greedy": "certificate/greedy-residual-value",
    "sources": "certificate/sources-value",
}
NEEDS = {
    "thm2/sharp-value": "the truth: eps_R",
    "thm2/sharp-value-affine": "the truth: eps_R",
    "certificate/residual-value": "one sweep of the model",
    "certificate/greedy-residual-value": "one sweep of the model",
    "certificate/sources-value": "the same, and the sources' optimal values",
}
"""What one has to know for a bound on what V loses by GPI on the xi~_i under the target reward."""
SHAPE = Shape()
PROBLEMS_PER_FAMILY = 100
ERRORS = (0.0, 0.05)
TOLERANCE = 1e-6
"""Relative to the largest of the bounds: more than the solver's tolerance."""


@dataclass(frozen=True)
class BoundComparison:
    """The bounds on many problems of one gamma and one size of errors; arrays over problems."""

    gamma: float
    epsilon: float
    loss: Array
    limits: dict[str, Array]

    @property
    def smallest(self) -> dict[str, float]:
        """In which share of the problems a bound is the smallest."""
        stacked = np.stack(list(self.limits.values()))
        slack = TOLERANCE * np.maximum(stacked.max(axis=0), 1e-300)
        return {
            name: float((limit <= stacked.min(axis=0) + slack).mean()) for name, limit in self.limits.items()
        }

    @property
    def medians(self) -> dict[str, float]:
        return {name: float(np.median(limit)) for name, limit in self.limits.items()}

    def to_json(self) -> dict[str, Any]:
        return {
            "gamma": self.gamma,
            "epsilon": self.epsilon,
            "problems": len(self.loss),
            "mean_loss": float(self.loss.mean()),
            "median_bound": self.medians,
            "smallest": self.smallest,
        }


def compare(gamma: float, epsilon: float, seed: int) -> BoundComparison:
    """All bounds on problems of every family."""
    rng = np.random.default_rng(seed)
    loss: list[Array] = []
    limits: dict[str, list[Array]] = {name: [] for name in BOUNDS}
    for family in FAMILIES.values():
        batch = family(rng, PROBLEMS_PER_FAMILY, SHAPE, gamma, epsilon)
        perturbation = batch.perturbation if epsilon else 0 * batch.perturbation
        evaluation: SolvedProblem = evaluate_batch(batch.mdps, batch.target, batch.sources, perturbation)
        terms = {name: STATEMENTS[statement](evaluation) for name, statement in BOUNDS.items()}
        loss.append(terms["T2'"].left)
        for name, bound in terms.items():
            limits[name].append(bound.right)
    joined = {name: np.concatenate(parts) for name, parts in limits.items()}
    return BoundComparison(gamma, epsilon, np.concatenate(loss), joined)


def comparison_table(comparisons: list[BoundComparison]) -> Table:
    table = cli.table(
        "Bounds on what V loses: median, and in how many problems it is the smallest",
        *cli.numbers("gamma", "errors", "problems", "mean loss", *BOUNDS),
        caption="T2' and its affine form know the true error; span and greedy need one sweep of the model, "
        "sources also the sources' values. Of bounds that agree, each counts as the smallest.",
    )
    for comparison in comparisons:
        medians, smallest = comparison.medians, comparison.smallest
        table.add_row(
            f"{comparison.gamma:g}",
            f"{comparison.epsilon:g}" if comparison.epsilon else "none",
            f"{len(comparison.loss):,}",
            f"{comparison.loss.mean():.3g}",
            *(f"{medians[name]:.3g} ({smallest[name]:.0%})" for name in BOUNDS),
        )
    return table


def draw_comparison(panels: Any, comparisons: list[BoundComparison]) -> None:
    """Two axes: medians of the bounds, and how often each is the smallest, by gamma and errors."""
    labels = [f"γ = {c.gamma:g}\n{'errors' if c.epsilon else 'exact ξ'}" for c in comparisons]
    colours = ("#999999", "#E69F00", "#56B4E9", "#0072B2", "#D55E00")
    place = np.arange(len(comparisons))
    width = 0.8 / len(BOUNDS)
    for k, (name, colour) in enumerate(zip(BOUNDS, colours, strict=True)):
        at = place + (k - (len(BOUNDS) - 1) / 2) * width
        panels[0].bar(at, [c.medians[name] for c in comparisons], width, color=colour, label=name)
        panels[1].bar(at, [c.smallest[name] for c in comparisons], width, color=colour, label=name)
    panels[0].set_yscale("log")
    panels[0].set_title("median bound on what V loses", loc="left", fontsize=9)
    panels[1].set_title("share of problems in which it is the smallest", loc="left", fontsize=9)
    for axes in panels:
        axes.set_xticks(place, labels, fontsize=7)
        axes.spines[["top", "right"]].set_visible(False)
    panels[0].legend(fontsize=7, frameon=False, ncols=2)
