"""Running proofs, what counts as a failure, and how the ledger is shown."""

import json
from collections.abc import Callable
from concurrent.futures import Future
from concurrent.futures.process import BrokenProcessPool
from pathlib import Path

import pytest
from rich.console import Console

from proofs_checks import __main__, gpi_bound, ledger
from proofs_checks.argument import Broken, Proof, proved
from sfr_theory import empirical
from sfr_theory.catalogue import CATALOGUE, EXPERIMENTS, SECTIONS
from sfr_theory.claims import (
    CheckResult,
    Claim,
    Gravity,
    Kind,
    Method,
    Outcome,
    Skipped,
    Verdict,
    claims_html,
    head,
    markdown_cell,
)
from sfr_theory.errors import InputError
from tests import commands
from tests.refusals import refused

ROOT = Path(__file__).parents[2]


CLAIM = "xi/series"
"""A claim that rests on no other."""


def made_up(
    check=lambda: CheckResult(Verdict.PROVED, "because", "everything"),
    rejected=True,
    method=Method.SYMBOLIC,
    claim=CLAIM,
    slow=False,
) -> Proof:
    return Proof(claim, method, check, (Broken("the contrary", lambda: rejected),), slow)


def raising() -> CheckResult:
    raise ZeroDivisionError("by zero")


def test_a_proof_whose_broken_variants_are_rejected_counts() -> None:
    assert ledger.run_proof(made_up()).result.verdict is Verdict.PROVED


@pytest.mark.parametrize(
    ("proof", "reason"),
    [
        (made_up(rejected=False), "the contrary"),
        (Proof(CLAIM, Method.SYMBOLIC, made_up().check, ()), "no broken variant"),
        (made_up(check=raising), "ZeroDivisionError"),
        (made_up(method=Method.INSTANCES), "cannot be PROVED by instances"),
    ],
    ids=["variant accepted", "no variant", "raises", "beyond its method"],
)
def test_what_does_not_count_is_inconclusive(proof: Proof, reason: str) -> None:
    outcome = ledger.run_proof(proof)
    assert outcome.result.verdict is Verdict.INCONCLUSIVE
    assert reason in outcome.result.evidence
    assert not outcome.as_expected


def run_alone(proof: Proof | None, monkeypatch: pytest.MonkeyPatch, **options) -> Outcome:
    """The entry of the claim when `proof` is the only one there is."""
    monkeypatch.setattr(ledger, "collect", lambda: {} if proof is None else {CLAIM: proof})
    (outcome,) = ledger.run([CATALOGUE[CLAIM]], **({"fast": False, "workers": 1} | options))
    return outcome


def test_fast_leaves_out_slow_proofs_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = made_up(slow=True)
    outcome = run_alone(slow, monkeypatch, fast=True)
    assert (outcome.result.verdict, outcome.skipped) == (Verdict.NOT_CHECKED, Skipped.FAST)
    assert outcome.as_expected
    assert run_alone(slow, monkeypatch).result.verdict is Verdict.PROVED


def test_an_unexpected_verdict_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = CATALOGUE["thm2/printed"]
    hoped = Claim(claim.id, claim.label, claim.sentence, Verdict.PROVED)
    monkeypatch.setattr(ledger, "CATALOGUE", {**CATALOGUE, claim.id: hoped})
    assert __main__.main(__main__.Options(only=(claim.id,), workers=1, fast=True)) == 1
    assert "UNEXPECTED thm2/printed: REFUTED, expected PROVED" in capsys.readouterr().out


def test_a_claim_without_proof_is_a_failure_and_says_why(monkeypatch: pytest.MonkeyPatch) -> None:
    outcome = run_alone(None, monkeypatch)
    assert (outcome.result.verdict, outcome.result.evidence) == (Verdict.NOT_CHECKED, "no proof covers it")
    assert not outcome.as_expected
    monkeypatch.setattr(ledger, "UNCHECKED", {CLAIM: "it is a matter of taste"})
    assert run_alone(None, monkeypatch).result.evidence == "it is a matter of taste"


def test_the_time_of_a_proof_is_measured() -> None:
    for proof in (made_up(), made_up(rejected=False)):
        assert 0 <= ledger.run_proof(proof).seconds < 60


def test_one_proof_for_each_claim_and_main_has_none(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    imported: list[str] = []

    class Module:
        PROOFS = (made_up(),)

    def import_module(name: str) -> type[Module]:
        imported.append(name)
        return Module

    monkeypatch.setattr(ledger.importlib, "import_module", import_module)
    with pytest.raises(ValueError, match=CLAIM):
        ledger.collect.__wrapped__()
    Module.PROOFS = ()
    assert ledger.collect.__wrapped__() == {}
    assert "proofs_checks.xi_definition" in imported
    assert "proofs_checks.__main__" not in imported


# --- In a pool


class Pool:
    """Runs what is submitted at once; what names a claim that kills its process breaks it."""

    size = 0

    def __init__(self, size: int, **options: object) -> None:
        Pool.size, self.dying = size, {"xi/mass"}

    def __enter__(self) -> "Pool":
        return self

    def __exit__(self, *exception: object) -> None:
        pass

    def submit(self, function: Callable[[str], Outcome], name: str) -> Future[Outcome]:
        future: Future[Outcome] = Future()
        if name in self.dying:
            future.set_exception(BrokenProcessPool("died"))
        else:
            future.set_result(function(name))
        return future


def test_a_process_that_dies_takes_one_entry_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ["xi/mass", CLAIM]
    monkeypatch.setattr(ledger, "ProcessPoolExecutor", Pool)
    monkeypatch.setattr(ledger, "collect", lambda: {name: made_up(claim=name) for name in names})
    died, lived = ledger.run([CATALOGUE[name] for name in names], fast=False, workers=9)
    assert Pool.size == 2, "no more processes than proofs"
    assert died.result.verdict is Verdict.INCONCLUSIVE
    assert "--workers 1" in died.result.evidence
    assert (lived.result.verdict, lived.result.evidence) == (Verdict.PROVED, "because")


def test_a_single_proof_needs_no_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger, "ProcessPoolExecutor", None)
    assert run_alone(made_up(), monkeypatch, workers=2).result.evidence == "because"


def test_progress_counts_every_claim_and_the_long_proofs_come_first(monkeypatch: pytest.MonkeyPatch) -> None:
    proofs = {
        "xi/mass": made_up(claim="xi/mass"),
        "thm2/step-greedy": made_up(claim="thm2/step-greedy", method=Method.SMT),
        CLAIM: made_up(slow=True),
    }
    order: list[str] = []
    run_by_id = ledger._run_by_id

    def record(name: str) -> Outcome:
        order.append(name)
        return run_by_id(name)

    monkeypatch.setattr(ledger, "collect", lambda: proofs)
    monkeypatch.setattr(ledger, "_run_by_id", record)
    steps: list[int] = []
    claims = [CATALOGUE[name] for name in (*proofs, "stats/exact-test")]  # the last has no proof here
    ledger.run(claims, fast=False, workers=1, advance=steps.append)
    assert order == [CLAIM, "thm2/step-greedy", "xi/mass"]
    assert steps == [1, 1, 1, 1]


# --- What rests on what


def run_section(proofs: dict[str, Proof], monkeypatch: pytest.MonkeyPatch, **options) -> dict[str, Outcome]:
    """The whole catalogue with these proofs, and ones that succeed at once for all else that is PROVED."""
    easy = {
        claim.id: made_up(claim=claim.id) for claim in CATALOGUE.values() if claim.expected is Verdict.PROVED
    }
    monkeypatch.setattr(ledger, "collect", lambda: {**easy, **proofs})
    claims = [CATALOGUE[name] for name in easy]
    return {o.claim.id: o for o in ledger.run(claims, fast=True, workers=1, **options)}


T2 = {
    "thm2/sharp", "thm2/sharp-value", "thm2/corrected", "thm2/sharp-affine", "thm2/sharp-value-affine",
    "gpi/linear-sharp", "gpi/linear", "thm2/code", "thm2/code-value", "tightness/code",
}  # fmt: skip
"""T2' and all that is proved from it."""


def test_breaking_a_step_of_t2_takes_with_it_what_rests_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """Telescoping with its constant lowered by 1/1000: the step is false, and T2' and its heirs fall."""
    name = "thm2/step-telescoping"
    lowered = proved(
        name, Method.SMT, lambda: gpi_bound.telescoping_steps(gpi_bound.LOWERED), "",
        Broken("any", lambda: True),
    )  # fmt: skip
    outcomes = run_section({name: lowered}, monkeypatch)
    assert outcomes[name].result.verdict is Verdict.REFUTED
    fallen = {key for key, outcome in outcomes.items() if outcome.result.verdict is Verdict.INCONCLUSIVE}
    assert fallen == T2
    assert all(not outcomes[key].as_expected for key in fallen)
    assert name in outcomes["thm2/sharp"].result.evidence
    assert "thm2/sharp (INCONCLUSIVE)" in outcomes["thm2/corrected"].result.evidence


def test_what_rests_on_a_skipped_step_is_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    name = "thm2/step-greedy"
    outcomes = run_section({name: made_up(claim=name, slow=True)}, monkeypatch)
    assert {key for key, outcome in outcomes.items() if outcome.skipped is Skipped.DEPENDENCY} == T2
    assert all(outcome.as_expected for outcome in outcomes.values())


def test_what_rests_on_a_skipped_step_and_a_failed_one_is_no_longer_proved(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    skipped, failed = CATALOGUE["thm2/sharp"].depends_on[:2]
    proofs = {skipped: made_up(claim=skipped, slow=True), failed: made_up(claim=failed, check=raising)}
    sharp = run_section(proofs, monkeypatch)["thm2/sharp"]
    assert (sharp.result.verdict, sharp.skipped) == (Verdict.INCONCLUSIVE, None)
    assert skipped in sharp.result.evidence
    assert failed in sharp.result.evidence


def test_a_selection_brings_what_it_rests_on() -> None:
    names = [claim.id for claim in ledger.select(["thm2/corrected"])]
    assert set(names) == {
        "thm2/corrected", "thm2/sharp", "thm2/reward-distance", *CATALOGUE["thm2/sharp"].depends_on,
    }  # fmt: skip
    assert names == [name for name in CATALOGUE if name in names]


# --- The hook for Coq


def test_what_coq_checked_has_its_scope_and_rests_on_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    formal = {"thm2/corrected": CheckResult(Verdict.PROVED, "theorem corrected", "all sizes")}
    broken = {"thm2/sharp": made_up(claim="thm2/sharp", check=raising)}
    outcomes = run_section(broken, monkeypatch, formal=formal)
    corrected = outcomes["thm2/corrected"]
    assert (corrected.result.verdict, corrected.method) == (Verdict.PROVED, Method.COQ)
    assert corrected.result.scope == "all sizes"
    assert "theorem corrected" in corrected.result.evidence
    assert "symbolic (everything)" in corrected.result.evidence
    assert outcomes["thm2/sharp"].result.verdict is Verdict.INCONCLUSIVE


@pytest.mark.parametrize(
    ("verdict", "method", "agrees"),
    [
        (Verdict.PROVED, Method.SMT, True),
        (Verdict.SUPPORTED, Method.INSTANCES, True),
        (Verdict.REFUTED, Method.INSTANCES, False),
        (Verdict.INCONCLUSIVE, Method.SMT, False),
    ],
)
def test_coq_must_agree_with_what_ran_beside_it(
    verdict: Verdict, method: Method, agrees: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    proof = made_up(lambda: CheckResult(verdict, "x", "y"), method=method)
    outcome = run_alone(proof, monkeypatch, formal={CLAIM: CheckResult(Verdict.PROVED, "theorem")})
    assert outcome.result.verdict is (Verdict.PROVED if agrees else Verdict.INCONCLUSIVE)


# --- Selection and command line


def test_selection_by_id_and_by_prefix() -> None:
    assert [claim.id for claim in ledger.select([CLAIM])] == [CLAIM]
    stats = ledger.select(["stats/"])
    assert stats == ledger.select(["stats"])
    assert {claim.id.split("/")[0] for claim in stats} == {"stats"}
    assert len(ledger.select([])) == len(CATALOGUE)
    assert set(ledger.select(["stats", CLAIM])) == {*stats, CATALOGUE[CLAIM]}
    # thm2/printed is a claim, and no prefix of thm2/printed-value-norm.
    assert [claim.id for claim in ledger.select(["thm2/printed"])] == ["thm2/printed"]


def test_an_unknown_id_is_bad_input_and_near_ones_are_named() -> None:
    with refused("thm2/printd", "did you mean thm2/printed"):
        ledger.select(["thm2/printd"])
    with refused("lists them all"):
        ledger.select(["@@@"])
    with pytest.raises(InputError) as many:
        ledger.select(["thm2/sharp-valu"])
    assert str(many.value).count("thm2/") == 1 + 3


def test_the_command_exits_with_2_for_bad_input(tmp_path: Path) -> None:
    for arguments, words in (
        (("--only", "thm2/nonsense"), "^error: no claim has the id 'thm2/nonsense'"),
        (("--workers", "0", "--only", "xi/mass"), "workers"),
    ):
        commands.refuses("proofs_checks.__main__", *arguments, words=words)


def test_the_command_in_a_pool_writes_all_formats(tmp_path: Path) -> None:
    page, markdown = tmp_path / "page.html", tmp_path / "claims.md"
    only = [part for claim in ("thm2/printed", "stats/exact-test", "results/") for part in ("--only", claim)]
    done = commands.run(
        "proofs_checks.__main__",
        *only,
        "--fast",
        "--workers",
        "2",
        "--json",
        "-",
        "--html",
        str(page),
        "--markdown",
        str(markdown),
    )
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["as_expected"]
    assert content["claims"]["thm2/printed"]["verdict"] == "REFUTED"
    assert content["claims"]["thm2/printed"]["method"] == "counterexample"
    incomplete = [claim.id for claim in EXPERIMENTS.claims if claim.gravity is Gravity.ASSUMPTION]
    assert content["errors"] == {"theorem": ["thm2/printed"], "assumption": incomplete}
    assert "thm2/printed" in page.read_text()
    assert "thm2/printed" in markdown.read_text()


# --- Verdicts on experiments


def entry_of(results: Path, claim: str = "results/single-task") -> Outcome:
    (entry,) = ledger.run([CATALOGUE[claim]], fast=True, workers=1, results=results)
    return entry


def test_without_results_they_are_left_out(tmp_path: Path) -> None:
    entry = entry_of(tmp_path)
    assert entry.result.verdict is Verdict.NOT_CHECKED
    assert entry.skipped is Skipped.NO_RESULTS
    assert str(tmp_path) in entry.result.evidence


def test_they_are_what_the_tables_decide(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = CheckResult(Verdict.REPRODUCED, "n = 10")
    monkeypatch.setattr(empirical, "decide", lambda folder: {"results/single-task": found})
    entry = entry_of(tmp_path)
    assert (entry.claim, entry.result, entry.method) == (
        CATALOGUE["results/single-task"],
        found,
        Method.RESULTS,
    )
    assert entry_of(tmp_path, "results/racer-csfr-best").skipped is Skipped.NO_RESULTS


def experiment(expected: Verdict, found: Verdict) -> Outcome:
    claim = Claim("results/x", "fig:x", "x", expected, Kind.EXPERIMENT)
    return Outcome(claim, CheckResult(found, "n = 10"), Method.RESULTS)


def test_only_another_decision_on_results_is_unexpected() -> None:
    assert not experiment(Verdict.NOT_REPRODUCED, Verdict.REPRODUCED).as_expected
    assert experiment(Verdict.NOT_CHECKED, Verdict.REPRODUCED).as_expected
    for undecided in (Verdict.NOT_CHECKED, Verdict.INCONCLUSIVE):
        assert experiment(Verdict.REPRODUCED, undecided).as_expected


def test_a_table_that_cannot_be_believed_gets_a_sentence(tmp_path: Path) -> None:
    """What sound tables decide is tested with the experiments."""
    for ending in ("csv", "json"):
        (tmp_path / f"racer.{ending}").write_text("{}")
    arguments = ("--only", "results/single-task", "--results", tmp_path)
    commands.refuses("proofs_checks.__main__", *arguments, words="racer.json")


ODD = Outcome(
    Claim("xi/mass", "eq:a_b", "a | b < c", Verdict.PROVED),
    CheckResult(Verdict.REFUTED, "x_1 | *y* [bold] <script>", "a_b"),
    Method.COUNTEREXAMPLE,
)


def test_markdown_cells_are_escaped() -> None:
    row = next(line for line in ledger.to_markdown([ODD]).splitlines() if line.startswith("| `xi/mass`"))
    assert row.replace("\\|", "").count("|") == 7
    assert "\\*y\\*" in row
    assert "(unexpected)" in row


def test_html_is_escaped() -> None:
    page = ledger.to_html_page([ODD])
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "unexpected" in page


def test_terminal_markup_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(width=200)
    console.print(ledger.table([ODD], in_full=True))
    assert "[bold]" in capsys.readouterr().out


def test_markdown_has_sections_and_says_how_each_was_found() -> None:
    unchecked = Outcome(CATALOGUE["stats/exact-test"], CheckResult(Verdict.NOT_CHECKED, "later"), None)
    lines = ledger.to_markdown([ODD, unchecked]).splitlines()
    cells = {
        line.split("`")[1]: line.replace("\\|", "").split(" | ") for line in lines if line.startswith("| `")
    }
    assert cells["xi/mass"][3] == Method.COUNTEREXAMPLE.label
    assert cells["stats/exact-test"][3].strip() == ""
    assert [line for line in lines if line.startswith("## ")] == [
        f"## {section.title}"
        for section in SECTIONS
        if {"xi/mass", "stats/exact-test"} & {c.id for c in section.claims}
    ]


def test_the_whole_is_as_expected_only_if_every_entry_is() -> None:
    fine = refuted("a/slip", Gravity.SLIP)
    assert ledger.to_json([fine])["as_expected"] is True
    assert ledger.to_json([fine, ODD])["as_expected"] is False


def refuted(name: str, gravity: Gravity | None = None) -> Outcome:
    """A refuted statement of the paper, or of ours if its error has no gravity."""
    label, kind, about = ("eq:x", Kind.STATEMENT, "") if gravity else ("", Kind.READING, "eq:x")
    claim = Claim(name, label, name, Verdict.REFUTED, kind, gravity, about=about)
    return Outcome(claim, CheckResult(Verdict.REFUTED, "because"), Method.COUNTEREXAMPLE)


def test_the_head_tells_ours_from_the_papers_and_theorems_from_slips() -> None:
    outcomes = [
        refuted("a/theorem", Gravity.THEOREM),
        refuted("a/slip", Gravity.SLIP),
        refuted("b/slip", Gravity.SLIP),
        refuted("c/reading"),
    ]
    lines = head(ledger.as_json(outcomes))
    assert lines[:2] == ["3 claims of the paper: 3 REFUTED.", "1 claim of ours: 1 REFUTED."]
    assert len(lines) == 4
    assert "1 (a/theorem)" in lines[2]
    assert "2 (a/slip, b/slip)" in lines[3]
    for page in (ledger.to_markdown, ledger.to_html_page):
        assert "2 (a/slip, b/slip)" in page(outcomes)
    assert ledger.to_json(outcomes)["errors"] == {"theorem": ["a/theorem"], "slip": ["a/slip", "b/slip"]}


def test_tables_say_whose_a_claim_is() -> None:
    assert "ours, on eq:x" in claims_html({"": ledger.as_json([refuted("c/d")])})
    assert "ours" not in claims_html({"": ledger.as_json([refuted("a/b", Gravity.SLIP)])})


def test_the_overview_shows_the_scope_of_a_proof_and_the_evidence_of_the_rest() -> None:
    result = CheckResult(Verdict.PROVED, "step by step", "all of them")
    proof = Outcome(CATALOGUE["xi/mass"], result, Method.EXACT)

    def shown(outcome: Outcome, in_full: bool) -> str:
        return list(ledger.table([outcome], in_full).columns[-1].cells)[-1]

    assert shown(proof, in_full=False) == "all of them"
    assert "step by step" in shown(proof, in_full=True)
    assert "<script>" in shown(ODD, in_full=False)


def test_the_committed_page_is_up_to_date() -> None:
    """docs/claims.md has every claim with its verdict; figures of proofs may move, of results not."""
    lines = (ROOT / "docs" / "claims.md").read_text().splitlines()
    shown, evidence = {}, {}
    for line in lines:
        if line.startswith("| `"):
            cells = line.replace("\\|", "").split(" | ")
            name = cells[0].split("`")[1]
            shown[name], evidence[name] = cells[2].strip("*"), cells[4]
    decided = empirical.decide(ROOT / "results")
    expected = {claim.id: claim.expected.value for claim in CATALOGUE.values()}
    waiting = {claim.id: Verdict.NOT_CHECKED.value for claim in EXPERIMENTS.claims}
    assert shown == expected | waiting | {name: result.verdict.value for name, result in decided.items()}
    for name, result in decided.items():
        assert evidence[name] == markdown_cell(result.evidence).replace("\\|", "")
