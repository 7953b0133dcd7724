"""What a proof file exports, and arguments: steps, each found true or false by a computation.

A `Proof` belongs to one claim of the catalogue and computes a `CheckResult` for it by one method, anew at
every run. A proof that cannot fail proves nothing, so it comes with broken variants of the statement (a
constant lowered, an assumption dropped, gamma forgotten) that the same machinery must reject.

A proof holds if every step does; a refutation holds if every fact about its counterexample does. One step
that is false spoils either, and one that could not be decided (a solver that gave up) leaves it open.
The broken variants of a proof run through the same steps and must meet a false one: `rejected`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from sfr_theory.claims import CheckResult, Method, Verdict


@dataclass(frozen=True)
class Broken:
    """A broken variant; `is_rejected` runs the proof's machinery on it: was it found false?"""

    sentence: str
    is_rejected: Callable[[], bool]


@dataclass(frozen=True)
class Proof:
    """A check of one claim. `slow` ones are left out by --fast."""

    claim: str
    method: Method
    check: Callable[[], CheckResult]
    broken: tuple[Broken, ...]
    slow: bool = False


@dataclass(frozen=True)
class Step:
    """A sentence, whether it holds (None: undecided), and where it fails, if it does."""

    sentence: str
    holds: bool | None
    witness: str = ""


Steps = Iterable[Step]


def _concludes(verdict: Verdict, steps: Steps, scope: str, before: str = "") -> CheckResult:
    """The verdict if every step holds, else what the first false or undecided one forces."""
    listed = list(steps)
    if not listed:
        return CheckResult(Verdict.INCONCLUSIVE, "There was nothing to check", scope)
    when_false = Verdict.REFUTED if verdict is Verdict.PROVED else Verdict.INCONCLUSIVE
    for forced, value, phrase in (
        (when_false, False, "fails"),
        (Verdict.INCONCLUSIVE, None, "could not be decided"),
    ):
        for step in listed:
            if step.holds is value:
                where = f" ({step.witness})" if step.witness else ""
                return CheckResult(forced, f"This step {phrase}: {step.sentence}{where}", scope)
    return CheckResult(verdict, before + "; ".join(step.sentence for step in listed), scope)


def proves(steps: Steps, scope: str) -> CheckResult:
    """PROVED if every step holds."""
    return _concludes(Verdict.PROVED, steps, scope)


def refutes(facts: Steps, scope: str) -> CheckResult:
    """REFUTED if every fact about the counterexample holds."""
    return _concludes(Verdict.REFUTED, facts, scope)


def needs_assumption(assumption: str, without: Steps, scope: str) -> CheckResult:
    """NEEDS ASSUMPTION if every fact about the counterexample that lacks it holds."""
    return _concludes(Verdict.NEEDS_ASSUMPTION, without, scope, f"Needed: {assumption}. Without it: ")


def every(sentence: str, cases: Steps) -> Step:
    """One step that holds if it holds in every case; its witness is the first case that fails."""
    count, undecided = 0, None
    for case in cases:
        if case.holds is False:
            return Step(sentence, False, _witness(case))
        count += 1
        undecided = undecided or (case if case.holds is None else None)
    if undecided is not None or count == 0:
        return Step(sentence, None, _witness(undecided) if undecided else "there was no case to check")
    return Step(f"{sentence} ({count} cases)", True)


def _witness(case: Step) -> str:
    return "; ".join(filter(None, (case.sentence, case.witness)))


def rejected(steps: Steps) -> bool:
    """Whether a step is false. An undecided one rejects nothing; those after a false one are not run."""
    return any(step.holds is False for step in steps)


def broken(sentence: str, steps: Callable[[], Steps]) -> Broken:
    """A broken variant whose steps must meet a false one."""
    return Broken(sentence, lambda: rejected(steps()))


# --- Proofs whose check is an argument ---------------------------------------------------------------------


def proved(claim: str, method: Method, steps: Callable[[], Steps], scope: str, *variants: Broken) -> Proof:
    """A proof by steps."""
    return Proof(claim, method, lambda: proves(steps(), scope), variants)


def refuted(claim: str, facts: Callable[[], Steps], scope: str, *variants: Broken) -> Proof:
    """A refutation by the facts about a counterexample."""
    return Proof(claim, Method.COUNTEREXAMPLE, lambda: refutes(facts(), scope), variants)


def incomplete(
    claim: str, assumption: str, without: Callable[[], Steps], scope: str, *variants: Broken
) -> Proof:
    """A statement that needs an assumption: the facts about a counterexample without it."""
    return Proof(
        claim, Method.COUNTEREXAMPLE, lambda: needs_assumption(assumption, without(), scope), variants
    )
