"""Statements about GPI over many transfer problems: draw, evaluate, judge, and shrink what refutes.

A `Plan` says what to check and on which problems. Problems are drawn in chunks, each from its own seed
(seed, family, number), so that results do not depend on how many processes share the work and any problem
can be drawn again. A run ends in one `BoundSummary` for each statement.
"""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from sfr_theory.arithmetic import float_array, rational
from sfr_theory.bounds import STATEMENTS, BoundTerms, SolvedProblem
from sfr_theory.catalogue import CATALOGUE
from sfr_theory.claims import Claim, Method, Verdict
from sfr_theory.errors import InputError
from sfr_theory.mdp import TransferProblem, discount
from sfr_theory.random_mdp import FAMILIES, ProblemBatch, Shape
from sfr_theory.shrink import PerturbedProblem, shrink, violates
from sfr_theory.transfer import TooManyTiesError, evaluate, evaluate_all_ties, evaluate_batch

CHUNK = 100
MAX_MDPS = 10**9
"""A day's work; more is a slip of the hand."""
SHRUNK_CANDIDATES = 2
LARGEST_EPSILON = 1e6
SURE_REFUTATION = 100
"""This many adversarial problems with three or more states refute what is false: every tenth violates it."""

Ties = Literal["first", "worst"]


def choose(flag: str, chosen: Iterable[str], known: Iterable[str]) -> tuple[str, ...]:
    """The chosen names without repetition, or all known ones if none was chosen."""
    names = tuple(dict.fromkeys(chosen))
    for name in names:
        if name not in known:
            raise InputError(f"--{flag} {name} is unknown; choose from {', '.join(known)}")
    return names or tuple(known)


@dataclass(frozen=True)
class Plan:
    """What to check: which statements, in which arithmetic, on which generated problems."""

    mdps: int = 2000
    shape: Shape = field(default_factory=Shape)
    gamma: str = "9/10"
    epsilon: float = 0.1
    families: tuple[str, ...] = ()
    seed: int = 0
    statements: tuple[str, ...] = ()
    exact: bool = False
    ties: Ties = "first"

    def __post_init__(self) -> None:
        if not 1 <= self.mdps <= MAX_MDPS:
            raise InputError(f"--mdps is {self.mdps}; it must be at least 1 and at most {MAX_MDPS}")
        if self.seed < 0:
            raise InputError(f"--seed is {self.seed}; it must be at least 0")
        if not 0 <= self.epsilon <= LARGEST_EPSILON:
            raise InputError(f"--epsilon is {self.epsilon}; it must lie between 0 and {LARGEST_EPSILON:g}")
        if self.ties == "worst" and not self.exact:
            raise InputError("--ties worst needs --exact: in floats a tie cannot be told from a near tie")
        discount(self.gamma, exact=self.exact)
        object.__setattr__(self, "families", choose("family", self.families, FAMILIES))
        object.__setattr__(self, "statements", choose("statement", self.statements, STATEMENTS))

    @property
    def exact_gamma(self) -> Any:
        return discount(self.gamma, exact=True)

    def terms(self, evaluation: SolvedProblem) -> dict[str, BoundTerms]:
        """Both sides of every statement of the plan."""
        return {name: STATEMENTS[name](evaluation) for name in self.statements}

    def chunks(self) -> list[Chunk]:
        """The requested number of problems, spread over the families, in batches."""
        share, extra = divmod(self.mdps, len(self.families))
        result = []
        for f, family in enumerate(self.families):
            count = share + (f < extra)
            for c, start in enumerate(range(0, count, CHUNK)):
                seed = (self.seed, list(FAMILIES).index(family), c)
                result.append(Chunk(self, family, min(CHUNK, count - start), seed))
        return result

    @property
    def must_refute(self) -> bool:
        """Whether the adversarial family had every chance to refute what is false."""
        share = self.mdps // len(self.families)
        return (
            "adversarial" in self.families
            and share >= SURE_REFUTATION
            and rational("1/2") <= self.exact_gamma <= rational("99/100")
            and min(self.shape.states, self.shape.actions, self.shape.features, self.shape.tasks) >= 3
        )


@dataclass(frozen=True)
class Chunk:
    """A batch of generated problems: enough to draw it again anywhere."""

    plan: Plan
    family: str
    count: int
    seed: tuple[int, ...]

    def draw(self) -> ProblemBatch:
        plan = self.plan
        rng = np.random.default_rng(self.seed)
        return FAMILIES[self.family](rng, self.count, plan.shape, float(plan.exact_gamma), plan.epsilon)

    def exact_problem(self, batch: ProblemBatch, b: int) -> PerturbedProblem:
        """Problem b, exactly. A family may set its own gamma; otherwise it is the number behind the float."""
        own = batch.mdps.gamma != float(self.plan.exact_gamma)
        gamma = rational(batch.mdps.gamma) if own else self.plan.exact_gamma
        return PerturbedProblem.from_batch(batch, b, gamma)


@dataclass(frozen=True)
class ChunkResult:
    """Both sides of every statement on every problem of a chunk."""

    terms: dict[str, BoundTerms]
    first_only: int = 0  # problems with too many ties to try all: checked with the first action


def check_chunk(chunk: Chunk) -> ChunkResult:
    plan, batch = chunk.plan, chunk.draw()
    if not plan.exact:
        evaluation = evaluate_batch(batch.mdps, batch.target, batch.sources, batch.perturbation)
        return ChunkResult(plan.terms(evaluation))
    rows = [_exact_terms(plan, chunk.exact_problem(batch, b)) for b in range(len(batch))]
    return ChunkResult(_stack([terms for terms, _ in rows]), sum(first_only for _, first_only in rows))


def _exact_terms(plan: Plan, problem: PerturbedProblem) -> tuple[dict[str, BoundTerms], bool]:
    """Both sides on one problem, and whether its ties were too many to try all."""
    if plan.ties == "worst":
        try:
            return worst_ties(plan, problem.to_problem()), False
        except TooManyTiesError:
            return plan.terms(problem.evaluate()), True
    return plan.terms(problem.evaluate()), False


def check_problem(plan: Plan, problem: TransferProblem) -> dict[str, BoundTerms]:
    """Both sides of every statement on one problem, in the plan's arithmetic."""
    if plan.ties == "worst":
        return worst_ties(plan, problem)
    if plan.exact:
        return plan.terms(evaluate(problem.to_exact()))
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is answered by the bounds
        return plan.terms(evaluate(problem.to_float()))


def worst_ties(plan: Plan, problem: TransferProblem) -> dict[str, BoundTerms]:
    """For each statement the ties that make its left side largest, then its right side smallest."""
    worst: dict[str, BoundTerms] = {}
    for evaluation in evaluate_all_ties(problem):
        for name, terms in plan.terms(evaluation).items():
            best = worst.get(name)
            if best is None or (terms.left, -terms.right) > (best.left, -best.right):
                worst[name] = terms
    return worst


def _stack(rows: list[dict[str, BoundTerms]]) -> dict[str, BoundTerms]:
    return {name: BoundTerms.join(np.stack, [row[name] for row in rows]) for name in rows[0]}


def run_chunks(work: list[Chunk], workers: int) -> Iterator[ChunkResult]:
    """Results in the order of the chunks, on as many processes as asked for."""
    workers = min(workers, len(work))
    if workers == 1:
        yield from map(check_chunk, work)
        return
    # Fresh processes: forking a process that has threads (BLAS) may deadlock.
    with ProcessPoolExecutor(workers, mp_context=multiprocessing.get_context("spawn")) as pool:
        try:
            yield from pool.map(check_chunk, work)
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise


@dataclass(frozen=True)
class BoundSummary:
    """A claim over all problems of a run."""

    claim: Claim
    terms: BoundTerms
    verdict: Verdict
    as_expected: bool
    counterexample: TransferProblem | None = None
    first_only: int = 0  # problems whose ties were too many to try all

    @property
    def violations(self) -> int:
        return int(self.terms.violated.sum())

    @property
    def undecided(self) -> int:
        return int(self.terms.undecided.sum())

    @property
    def worst(self) -> int:
        """The problem with the largest left/right."""
        return int(np.argmax(self.terms.ratio))

    @property
    def worst_ratio(self) -> float:
        return float(self.terms.ratio[self.worst])


def summarise(name: str, terms: BoundTerms, must_refute: bool) -> BoundSummary:
    """The verdict of a run on one statement, and whether it is what we expect.

    A violation refutes, whatever else is undecided; without one, what is undecided supports nothing.
    """
    claim = CATALOGUE[name]
    expected = Method.INSTANCES.at_best(claim.expected)
    if terms.violated.any():
        return BoundSummary(claim, terms, Verdict.REFUTED, as_expected=expected is Verdict.REFUTED)
    if expected is Verdict.REFUTED:
        return BoundSummary(claim, terms, Verdict.INCONCLUSIVE, as_expected=not must_refute)
    if terms.undecided.any():
        return BoundSummary(claim, terms, Verdict.INCONCLUSIVE, as_expected=False)
    return BoundSummary(claim, terms, Verdict.SUPPORTED, as_expected=expected is Verdict.SUPPORTED)


def check_generated(plan: Plan, workers: int, advance: Callable[[int], None]) -> list[BoundSummary]:
    """Draw and check all problems of a plan; `advance` is told how many are done."""
    work = plan.chunks()
    results = []
    for chunk, result in zip(work, run_chunks(work, workers), strict=True):
        results.append(result)
        advance(chunk.count)
    joined = {
        name: BoundTerms.join(np.concatenate, [result.terms[name] for result in results])
        for name in plan.statements
    }
    first_only = sum(result.first_only for result in results)
    return [
        replace(summarise(name, terms, plan.must_refute), first_only=first_only)
        for name, terms in joined.items()
    ]


def smallest_counterexample(plan: Plan, summary: BoundSummary) -> TransferProblem | None:
    """Shrink the clearest violations and keep the simplest.

    None if nothing fails, or if what fails does so only by the way ties are broken.
    """
    work, terms = plan.chunks(), summary.terms
    excess = float_array(terms.left) - float_array(terms.right)
    ends = np.cumsum([chunk.count for chunk in work])
    shrunk: list[PerturbedProblem] = []
    for index in np.argsort(-excess, kind="stable")[: 10 * SHRUNK_CANDIDATES]:
        if excess[index] <= 0 or len(shrunk) == SHRUNK_CANDIDATES:
            break
        owner = int(np.searchsorted(ends, index, side="right"))
        chunk = work[owner]
        problem = chunk.exact_problem(chunk.draw(), int(index - ends[owner] + chunk.count))
        bound = STATEMENTS[summary.claim.id]
        if violates(problem, bound):
            shrunk.append(shrink(problem, bound))
    return min(shrunk, key=PerturbedProblem.complexity).to_problem() if shrunk else None
