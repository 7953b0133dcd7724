"""A verdict is only as good as its worst step."""

import pytest

from proofs_checks.argument import Step, every, needs_assumption, proves, refutes, rejected
from sfr_theory.claims import Verdict

TRUE, FALSE, OPEN = Step("yes", True), Step("no", False, "here"), Step("perhaps", None)


@pytest.mark.parametrize(
    ("steps", "proof", "refutation"),
    [
        ([TRUE, TRUE], Verdict.PROVED, Verdict.REFUTED),
        ([TRUE, FALSE], Verdict.REFUTED, Verdict.INCONCLUSIVE),
        ([OPEN, FALSE], Verdict.REFUTED, Verdict.INCONCLUSIVE),
        ([TRUE, OPEN], Verdict.INCONCLUSIVE, Verdict.INCONCLUSIVE),
    ],
)
def test_verdicts(steps: list[Step], proof: Verdict, refutation: Verdict) -> None:
    assert proves(steps, "scope").verdict == proof
    assert refutes(steps, "scope").verdict == refutation


def test_a_failed_step_is_named() -> None:
    evidence = proves([TRUE, FALSE], "scope").evidence
    assert "no" in evidence
    assert "here" in evidence


def test_an_assumption_is_needed_only_if_its_counterexample_stands() -> None:
    assert needs_assumption("x > 0", [TRUE], "scope").verdict == Verdict.NEEDS_ASSUMPTION
    assert needs_assumption("x > 0", [TRUE, FALSE], "scope").verdict == Verdict.INCONCLUSIVE


def test_only_a_false_step_rejects() -> None:
    assert rejected([TRUE, FALSE])
    assert not rejected([TRUE, OPEN])


def test_every_takes_the_worst_case() -> None:
    assert every("all", [TRUE, TRUE]).holds is True
    assert every("all", [OPEN, TRUE]).holds is None
    worst = every("all", [OPEN, FALSE])
    assert worst.holds is False
    assert worst.witness == "no; here"


def test_an_empty_argument_proves_nothing() -> None:
    assert proves([], "scope").verdict == Verdict.INCONCLUSIVE
    assert refutes([], "scope").verdict == Verdict.INCONCLUSIVE
    assert every("all", []).holds is None
