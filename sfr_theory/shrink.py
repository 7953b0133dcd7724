"""Make a counterexample small enough to be read.

A counterexample is a transfer problem on which a bound fails. It is held as (kernel, gamma, target,
sources, perturbation), with xi~_i = xi_i + perturbation_i, because a perturbation keeps its meaning when a
state or a reward changes while xi~_i would not. Greedy descent: try simpler variants (fewer sources, states,
actions, features; deterministic rows; rounder numbers), keep one as soon as the bound still fails on it, stop
when none does. Every test is in rational arithmetic; so that the result does not depend on ties or on how
rounding would break them, GPI actions must be unique and the bound must fail in float64 as well.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sfr_theory.arithmetic import Array, Number, exact_array, float_array, fraction, rational, zeros
from sfr_theory.bounds import Bound, SolvedProblem
from sfr_theory.mdp import FiniteMDP, TransferProblem
from sfr_theory.random_mdp import ProblemBatch
from sfr_theory.solve import optimal_actions
from sfr_theory.transfer import evaluate_batch

MAX_EVALUATIONS = 3000


@dataclass(frozen=True, eq=False)
class PerturbedProblem:
    """An exact transfer problem whose approximations are given by their errors."""

    kernel: Array  # (S, A, S, F)
    gamma: Number
    feature_vectors: Array | None  # (F, n)
    target: Array  # (F,)
    sources: Array  # (I, F)
    perturbation: Array  # (I, S, A, F)

    @classmethod
    def from_batch(cls, batch: ProblemBatch, b: int, gamma: Number) -> PerturbedProblem:
        """Problem b of a batch, exactly; `gamma` is the number that the batch's float stands for."""
        mdp = batch.mdps[b].to_exact()
        rewards = (exact_array(batch.target[b]), exact_array(batch.sources[b]))
        return cls(mdp.kernel, gamma, mdp.feature_vectors, *rewards, exact_array(batch.perturbation[b]))

    @property
    def mdp(self) -> FiniteMDP:
        return FiniteMDP(self.kernel, self.gamma, self.feature_vectors)

    def evaluate(self) -> SolvedProblem:
        return evaluate_batch(self.mdp, self.target, self.sources, self.perturbation)

    def evaluate_in_floats(self) -> SolvedProblem:
        arrays = (float_array(array) for array in (self.target, self.sources, self.perturbation))
        return evaluate_batch(self.mdp.to_float(), *arrays)

    def to_problem(self) -> TransferProblem:
        """The same with explicit approximations, as files hold it."""
        return TransferProblem(self.mdp, self.target, self.sources, self.evaluate().approximations)

    def complexity(self) -> tuple[int, ...]:
        """What shrinking minimises: sizes first, then non-zero numbers, then digits."""
        numbers = [self.gamma, *self.target, *self.sources.reshape(-1), *self.perturbation.reshape(-1)]
        if self.feature_vectors is not None:
            numbers += [*self.feature_vectors.reshape(-1)]
        parts = [fraction(number) for number in numbers]
        return (
            self.kernel.size * len(self.sources),
            int((self.kernel != 0).sum()) + sum(part != 0 for part in parts),
            sum(abs(part.numerator) + part.denominator for part in parts),
        )


def violates(problem: PerturbedProblem, bound: Bound) -> bool:
    """Whether the bound fails, whichever way tied GPI actions are broken, in both arithmetics."""
    evaluation = problem.evaluate()
    if not bool(bound(evaluation).violated):
        return False
    if (optimal_actions(evaluation.gpi_values).sum(axis=-1) > 1).any():
        return False
    return bool(bound(problem.evaluate_in_floats()).violated)


def shrink(problem: PerturbedProblem, bound: Bound) -> PerturbedProblem:
    """A simpler problem on which the bound still fails; the problem itself if none was found."""
    evaluations = 0
    current, complexity = problem, problem.complexity()
    improved = True
    while improved:
        improved = False
        for candidate in simpler(current):
            candidate_complexity = candidate.complexity()
            if candidate_complexity >= complexity:
                continue
            evaluations += 1
            if evaluations > MAX_EVALUATIONS:
                return current
            if violates(candidate, bound):
                current, complexity, improved = candidate, candidate_complexity, True
                break
    return current


def simpler(problem: PerturbedProblem) -> Iterator[PerturbedProblem]:
    """Variants to try, the most simplifying first."""
    yield from _smaller(problem)
    if problem.feature_vectors is not None:
        yield replace(problem, feature_vectors=None)
    yield from _deterministic_rows(problem)
    yield from _without_errors(problem)
    yield from _rounder(problem)


def _smaller(problem: PerturbedProblem) -> Iterator[PerturbedProblem]:
    kernel, perturbation = problem.kernel, problem.perturbation
    states, actions, _, features = kernel.shape
    for i in range(len(problem.sources) if len(problem.sources) > 1 else 0):
        yield replace(
            problem, sources=np.delete(problem.sources, i, 0), perturbation=np.delete(perturbation, i, 0)
        )
    for a in range(actions if actions > 1 else 0):
        yield replace(problem, kernel=np.delete(kernel, a, 1), perturbation=np.delete(perturbation, a, 2))
    for dropped, kept in np.ndindex(states, states):
        if dropped != kept:
            merged = kernel.copy()
            merged[:, :, kept] += merged[:, :, dropped]
            merged = np.delete(np.delete(merged, dropped, 2), dropped, 0)
            yield replace(problem, kernel=merged, perturbation=np.delete(perturbation, dropped, 1))
    for dropped, kept in np.ndindex(features, features):
        if dropped != kept:
            merged = kernel.copy()
            merged[..., kept] += merged[..., dropped]
            vectors = problem.feature_vectors
            yield replace(
                problem,
                kernel=np.delete(merged, dropped, 3),
                feature_vectors=None if vectors is None else np.delete(vectors, dropped, 0),
                target=np.delete(problem.target, dropped),
                sources=np.delete(problem.sources, dropped, 1),
                perturbation=np.delete(perturbation, dropped, 3),
            )


def _deterministic_rows(problem: PerturbedProblem) -> Iterator[PerturbedProblem]:
    """Every (s, a) on its own: all probability on one of its outcomes."""
    for s, a in np.ndindex(problem.kernel.shape[:2]):
        row = problem.kernel[s, a]
        outcomes = np.argwhere(row != 0)
        for outcome in outcomes if len(outcomes) > 1 else ():
            kernel = problem.kernel.copy()
            kernel[s, a] = zeros(row.shape, like=row)
            kernel[(s, a, *outcome)] = rational(1)
            yield replace(problem, kernel=kernel)


def _without_errors(problem: PerturbedProblem) -> Iterator[PerturbedProblem]:
    """No error in one source, one (source, state, action), one entry."""
    shape = problem.perturbation.shape
    for depth in (1, 3, 4):
        for index in np.ndindex(shape[:depth]):
            if np.any(problem.perturbation[index] != 0):
                perturbation = problem.perturbation.copy()
                perturbation[index] = rational(0)
                yield replace(problem, perturbation=perturbation)


def _rounder(problem: PerturbedProblem) -> Iterator[PerturbedProblem]:
    """Numbers of small denominator: whole arrays first, then one at a time; gamma; R_i = R."""

    def rounded(value: Number, denominator: int) -> Number:
        return rational(round(fraction(value) * denominator)) / denominator

    if problem.gamma != rational("1/2"):
        yield replace(problem, gamma=rational("1/2"))
    for i in range(len(problem.sources)):
        if (problem.sources[i] != problem.target).any():
            sources = problem.sources.copy()
            sources[i] = problem.target
            yield replace(problem, sources=sources)
    for denominator in (1, 2, 4, 8):
        for name in ("target", "sources", "perturbation"):
            array = getattr(problem, name)
            flat = exact_array([rounded(value, denominator) for value in array.reshape(-1)])
            yield replace(problem, **{name: flat.reshape(array.shape)})
    for name in ("target", "sources", "perturbation"):
        array = getattr(problem, name)
        for index in np.ndindex(array.shape):
            simple = {
                rational(0),
                rational(1),
                rational(-1),
                rounded(array[index], 1),
                rounded(array[index], 2),
            }
            simple |= {array[index] / 2, rounded(array[index] / 2, 1)}
            for value in sorted(simple, key=lambda v: (abs(v), v)):
                if value != array[index]:
                    changed = array.copy()
                    changed[index] = value
                    yield replace(problem, **{name: changed})
