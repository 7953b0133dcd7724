"""A verdict is only as good as its worst step."""

import pytest

from proofs_checks.argument import (
    Step,
    broken,
    every,
    incomplete,
    needs_assumption,
    proved,
    proves,
    refuted,
    refutes,
    rejected,
)
from sfr_theory.claims import Method, Verdict

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
    assert every("all", [TRUE, TRUE]) == Step("all (2 cases)", True)
    assert every("all", [OPEN, TRUE]).holds is None
    worst = every("all", [OPEN, FALSE])
    assert worst.holds is False
    assert worst.witness == "no; here"


def test_an_empty_argument_proves_nothing() -> None:
    assert proves([], "scope").verdict == Verdict.INCONCLUSIVE
    assert refutes([], "scope").verdict == Verdict.INCONCLUSIVE
    assert every("all", []).holds is None


def test_proofs_are_made_of_their_steps() -> None:
    variant = broken("half of it", lambda: [FALSE])
    assert variant.sentence == "half of it"
    assert variant.is_rejected()
    proof = proved("a/claim", Method.SMT, lambda: [TRUE], "all sizes", variant)
    assert (proof.claim, proof.method, proof.broken) == ("a/claim", Method.SMT, (variant,))
    refutation = refuted("a/claim", lambda: [TRUE], "one", variant)
    needed = incomplete("a/claim", "x > 0", lambda: [TRUE], "one", variant)
    for made, verdict in ((refutation, Verdict.REFUTED), (needed, Verdict.NEEDS_ASSUMPTION)):
        assert (made.claim, made.method, made.broken) == ("a/claim", Method.COUNTEREXAMPLE, (variant,))
        assert made.check().verdict is verdict
    assert proof.check().verdict is Verdict.PROVED
    assert proof.check().scope == "all sizes"
    assert "x > 0" in needed.check().evidence
