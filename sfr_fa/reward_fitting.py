"""Linear models of general rewards: weights w with phi . w close to R(phi).

Successor features can value a policy under linear rewards only. Where a task is not linear, SF is given the
weights of a linear model that is fitted before the task, on points phi_j with rewards R_j, j = 1 ... m:

    L1             min over w of sum_j |R_j - phi_j . w|, exactly, as a linear programme
    least squares  min over w of sum_j (R_j - phi_j . w)^2; of many, the shortest w
    as printed     w <- w + eta 1/m sum_j (R_j - phi_j . w), the same number for every weight
                   (eq:linear_model_fitting)

The printed rule is meant as a descent of the L1 error but lacks phi and the sign; what it settles at is any w
whose *mean* error is 0. L1 weights need not be unique: the programme returns a vertex, which predicts as many
points exactly as the rank of all points and leaves the error on the others.

A rule is a function (points (m, n), rewards (m,), rng) -> weights (n,).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy import sparse
from scipy.optimize import linprog

from sfr_fa.arrays import INITIAL_DEVIATION, FloatArray
from sfr_theory.errors import InputError

WeightFit = Callable[[FloatArray, FloatArray, np.random.Generator], FloatArray]

PRINTED_ITERATIONS, PRINTED_RATE = 10_000, 1.0


def l1_weights(points: FloatArray, rewards: FloatArray, rng: np.random.Generator | None = None) -> FloatArray:
    """min over w, e of sum e subject to -e <= R - points w <= e."""
    m, n = points.shape
    identity = sparse.eye_array(m)  # dense, it would take m^2 numbers for m points
    solution = linprog(
        np.concatenate([np.zeros(n), np.ones(m)]),
        A_ub=sparse.block_array([[points, -identity], [-points, -identity]], format="csr"),
        b_ub=np.concatenate([rewards, -rewards]),
        bounds=[(None, None)] * n + [(0, None)] * m,
        method="highs",
    )
    if not solution.success:
        raise InputError(f"no L1-optimal weights were found for these rewards: {solution.message}")
    weights: FloatArray = solution.x[:n]
    return weights


def least_squares_weights(
    points: FloatArray, rewards: FloatArray, rng: np.random.Generator | None = None
) -> FloatArray:
    """The shortest w that minimises |R - points w|^2."""
    weights: FloatArray = np.linalg.lstsq(points, rewards, rcond=None)[0].astype(np.float64)
    return weights


def printed_rule_weights(points: FloatArray, rewards: FloatArray, rng: np.random.Generator) -> FloatArray:
    """10,000 steps of eq:linear_model_fitting as it stands, from w ~ N(0, 0.01^2), with eta = 1."""
    mean_point, mean_reward = points.mean(axis=0), rewards.mean()
    weights: FloatArray = rng.normal(0.0, INITIAL_DEVIATION, (points.shape[1],))
    # The mean error is multiplied by 1 - eta sum_k mean phi_k each time: features that sum to more than 2 on
    # average make it grow without bound.
    with np.errstate(over="ignore", invalid="ignore"):
        for _ in range(PRINTED_ITERATIONS):
            weights = weights + PRINTED_RATE * (mean_reward - mean_point @ weights)
    if not np.isfinite(weights).all():
        raise InputError("the printed fitting rule diverges on these features; choose l1_weights instead")
    return weights
