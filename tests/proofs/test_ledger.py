"""Running proofs, what counts as a failure, and how the ledger is shown."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from rich.console import Console

from proofs_checks import (
    __main__,
    affine,
    composition,
    learning_claims,
    ledger,
    linear_gpi,
    listings,
    nonlinearity,
    oscillation,
    p_values,
    smt,
    theorem2_counterexamples,
    tightness_claims,
)
from proofs_checks.ledger import Entry
from proofs_checks.proof import Broken, Proof
from sfr_theory import empirical
from sfr_theory.catalogue import CATALOGUE, EXPERIMENTS
from sfr_theory.claims import CheckResult, Claim, Outcome, Verdict, claims_html
from sfr_theory.errors import InputError
from tests.proofs.harness import each_proof, each_tooth

ROOT = Path(__file__).parents[2]

# The other proof files have tests of their own.
PROOFS = [
    proof
    for module in (
        affine,
        composition,
        learning_claims,
        linear_gpi,
        listings,
        nonlinearity,
        oscillation,
        p_values,
        theorem2_counterexamples,
        tightness_claims,
    )
    for proof in module.PROOFS
]


@pytest.mark.parametrize("proof", each_proof(PROOFS))
def test_verdicts_are_as_expected(proof: Proof) -> None:
    result = proof.check()
    assert result.verdict is CATALOGUE[proof.claim].expected, result.evidence
    assert result.evidence
    assert result.scope


@pytest.mark.parametrize("tooth", each_tooth(PROOFS))
def test_broken_variants_are_rejected(tooth: Broken) -> None:
    assert tooth.is_rejected()


def made_up(
    check=lambda: CheckResult(Verdict.PROVED, "because", "everything"), rejected=True, **options
) -> Proof:
    return Proof("xi/mass", check, (Broken("the contrary", lambda: rejected),), **options)


def raising() -> CheckResult:
    raise ZeroDivisionError("by zero")


def test_a_proof_with_teeth_counts() -> None:
    assert ledger.run_proof(made_up()).verdict is Verdict.PROVED


def test_a_tooth_that_does_not_bite_spoils_the_proof() -> None:
    result = ledger.run_proof(made_up(rejected=False))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "the contrary" in result.evidence


def test_a_proof_without_teeth_does_not_count() -> None:
    proof = Proof("xi/mass", made_up().check, ())
    assert ledger.run_proof(proof).verdict is Verdict.INCONCLUSIVE


def test_a_proof_that_raises_does_not_count() -> None:
    result = ledger.run_proof(made_up(check=raising))
    assert result.verdict is Verdict.INCONCLUSIVE
    assert "ZeroDivisionError" in result.evidence


def run_alone(proof: Proof | None, monkeypatch: pytest.MonkeyPatch, fast: bool = False) -> Entry:
    """The entry of xi/mass when `proof` is the only one there is."""
    monkeypatch.setattr(ledger, "collect", lambda: {} if proof is None else {"xi/mass": proof})
    (entry,) = ledger.run([CATALOGUE["xi/mass"]], fast=fast, workers=1)
    return entry


def test_a_claim_without_proof_is_a_failure(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = run_alone(None, monkeypatch)
    assert entry.result.verdict is Verdict.NOT_CHECKED
    assert not entry.as_expected


def test_fast_leaves_out_slow_proofs_and_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = made_up(slow=True)
    entry = run_alone(slow, monkeypatch, fast=True)
    assert (entry.result.verdict, entry.result.evidence) == (Verdict.NOT_CHECKED, ledger.LEFT_OUT)
    assert entry.as_expected
    assert run_alone(slow, monkeypatch).result.verdict is Verdict.PROVED


def test_without_z3_its_proofs_are_not_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(smt, "is_available", lambda: False)
    entry = run_alone(made_up(needs_z3=True), monkeypatch)
    assert entry.result.verdict is Verdict.NOT_CHECKED
    assert ledger.Z3_INSTALL in entry.result.evidence
    assert entry.as_expected
    assert run_alone(made_up(), monkeypatch).result.verdict is Verdict.PROVED


def test_without_z3_the_command_says_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(smt, "is_available", lambda: False)
    code = __main__.main(__main__.Options(only=("thm2/step-greedy", "thm2/printed"), workers=1))
    lines = [line for line in capsys.readouterr().out.splitlines() if line.startswith("z3 is missing")]
    assert code == 0
    assert lines == [f"z3 is missing, so 1 claims are NOT CHECKED: {ledger.Z3_INSTALL}"]


def test_an_unexpected_verdict_exits_with_1(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    claim = CATALOGUE["thm2/printed"]
    hoped = Claim(claim.id, claim.label, claim.sentence, Verdict.PROVED)
    monkeypatch.setattr(ledger, "CATALOGUE", {**CATALOGUE, claim.id: hoped})
    assert __main__.main(__main__.Options(only=(claim.id,), workers=1)) == 1
    assert "UNEXPECTED thm2/printed: REFUTED, expected PROVED" in capsys.readouterr().out


def test_selection_by_id_and_by_prefix() -> None:
    assert [claim.id for claim in ledger.select(["xi/mass"])] == ["xi/mass"]
    stats = ledger.select(["stats/"])
    assert stats == ledger.select(["stats"])
    assert {claim.id.split("/")[0] for claim in stats} == {"stats"}
    assert len(ledger.select([])) == len(CATALOGUE)
    # thm2/printed is a claim, and no prefix of thm2/printed-value-norm.
    assert [claim.id for claim in ledger.select(["thm2/printed"])] == ["thm2/printed"]


def test_an_unknown_id_is_bad_input_and_near_ones_are_named() -> None:
    with pytest.raises(InputError, match=r"thm2/printd.*did you mean thm2/printed"):
        ledger.select(["thm2/printd"])
    with pytest.raises(InputError, match="lists them all"):
        ledger.select(["@@@"])


def command(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "proofs_checks", *arguments],
        capture_output=True,
        text=True,
        cwd=ROOT,
        check=False,
    )


def test_the_command_exits_with_2_for_bad_input(tmp_path: Path) -> None:
    unknown = command("--only", "thm2/nonsense")
    assert unknown.returncode == 2
    assert unknown.stderr.startswith("error: no claim has the id 'thm2/nonsense'")
    assert len(unknown.stderr.splitlines()) == 1
    assert command("--workers", "0", "--only", "xi/mass").returncode == 2


def test_the_command_in_a_pool_writes_all_formats(tmp_path: Path) -> None:
    page, markdown = tmp_path / "page.html", tmp_path / "claims.md"
    only = [part for claim in ("thm2/printed", "stats/exact-test", "results/") for part in ("--only", claim)]
    done = command(*only, "--workers", "2", "--json", "-", "--html", str(page), "--markdown", str(markdown))
    assert done.returncode == 0, done.stderr
    content = json.loads(done.stdout)
    assert content["as_expected"]
    assert content["claims"]["thm2/printed"]["verdict"] == "REFUTED"
    assert content["claims"]["thm2/printed"]["kind"] == "counterexample"
    assert "thm2/printed" in page.read_text()
    assert "thm2/printed" in markdown.read_text()


# --- Verdicts on experiments


def write_results(folder: Path, verdict: str = "REPRODUCED") -> Path:
    """A folder of results with one run, and one verdict for all empirical claims."""
    run = folder / "mine" / "paper"
    run.mkdir(parents=True)
    (run / "manifest.json").write_text("{}")
    (run / "rep-00.csv").write_text("task,total_return\n0,1.5\n")
    outcomes = [
        Outcome(claim, CheckResult(Verdict(verdict), "n = 10", "paper")) for claim in EXPERIMENTS.claims
    ]
    (folder / empirical.FILE).write_text(json.dumps(empirical.to_json([run], folder, outcomes)))
    return run


def entry_of(results: Path, claim: str = "results/single-task") -> Entry:
    (entry,) = ledger.run([CATALOGUE[claim]], fast=True, workers=1, results=results)
    return entry


def test_results_decide_the_empirical_claims(tmp_path: Path) -> None:
    write_results(tmp_path)
    entry = entry_of(tmp_path)
    assert entry.result == CheckResult(Verdict.REPRODUCED, "n = 10", "paper")
    assert entry.kind == "results"


def test_without_results_they_are_left_out(tmp_path: Path) -> None:
    entry = entry_of(tmp_path)
    assert entry.result.verdict is Verdict.NOT_CHECKED
    assert entry.skipped
    assert "claims.json" in entry.result.evidence


def test_an_unexpected_verdict_on_results_is_one(tmp_path: Path) -> None:
    write_results(tmp_path)
    result = CheckResult(Verdict.REPRODUCED, "n = 10")
    for expected, good in ((Verdict.NOT_REPRODUCED, False), (Verdict.NOT_CHECKED, True)):
        entry = Entry(Claim("results/x", "", "x", expected), result, ledger.FROM_RESULTS)
        assert entry.as_expected is good
    for undecided in (Verdict.NOT_CHECKED, Verdict.INCONCLUSIVE):
        claim = Claim("results/x", "", "x", Verdict.REPRODUCED)
        assert Entry(claim, CheckResult(undecided, "n = 2"), ledger.FROM_RESULTS).as_expected


@pytest.mark.parametrize(
    "plant",
    [
        lambda run: (run / "rep-00.csv").write_text("task,total_return\n0,2.5\n"),
        lambda run: (run / "rep-00.csv").unlink(),
        lambda run: (run / "rep-00.csv").rename(run / "rep-01.csv"),
        lambda run: (run / "manifest.json").unlink(),
        lambda run: (run / "rep-01.csv").write_text("task,total_return\n"),
    ],
    ids=["changed", "lost", "renamed", "no manifest", "added"],
)
def test_verdicts_on_results_that_changed_do_not_count(tmp_path: Path, plant) -> None:
    plant(write_results(tmp_path))
    entry = entry_of(tmp_path)
    assert entry.result.verdict is Verdict.INCONCLUSIVE
    assert "mine/paper changed" in entry.result.evidence


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"runs": {}, "claims": {"results/single-task": 3}}'])
def test_damaged_verdicts_get_a_sentence(tmp_path: Path, content: str) -> None:
    (tmp_path / empirical.FILE).write_text(content)
    done = command("--only", "results/single-task", "--results", str(tmp_path))
    assert done.returncode == 2
    assert "claims.json is not what" in done.stderr
    assert len(done.stderr.splitlines()) == 1


ODD = Entry(
    Claim("xi/mass", "eq:a_b", "a | b < c", Verdict.PROVED),
    CheckResult(Verdict.REFUTED, "x_1 | *y* [bold] <script>", "a_b"),
    "counterexample",
)


def test_markdown_cells_are_escaped() -> None:
    row = next(line for line in ledger.to_markdown([ODD]).splitlines() if line.startswith("| `xi/mass`"))
    assert row.replace("\\|", "").count("|") == 7
    assert "\\*y\\*" in row
    assert "(unexpected)" in row


def test_ours_and_the_papers_are_told_apart() -> None:
    result = CheckResult(Verdict.REFUTED, "because")
    paper = Entry(Claim("a/b", "eq:x", "x", Verdict.REFUTED), result, "counterexample")
    ours = Entry(Claim("c/d", "", "y", Verdict.REFUTED, about="eq:x"), result, "counterexample")
    assert ledger.summary([paper, ours, ours]) == (
        "3 claims. 1 of the paper: 1 REFUTED. 2 of ours: 2 REFUTED"
    )
    assert (ledger._place(paper.claim), ledger._place(ours.claim)) == ("eq:x", "ours, on eq:x")
    assert "ours, on eq:x" in claims_html({"c/d": ours.to_json()})
    assert "ours" not in claims_html({"a/b": paper.to_json()})


def test_html_is_escaped() -> None:
    page = ledger.to_html_page([ODD])
    assert "<script>" not in page
    assert "&lt;script&gt;" in page
    assert "unexpected" in page


def test_terminal_markup_is_escaped(capsys: pytest.CaptureFixture[str]) -> None:
    console = Console(width=200)
    console.print(ledger.table([ODD], in_full=True))
    assert "[bold]" in capsys.readouterr().out


def test_the_overview_shows_the_scope_of_a_proof_and_the_evidence_of_the_rest() -> None:
    proved = Entry(CATALOGUE["xi/mass"], CheckResult(Verdict.PROVED, "step by step", "all of them"), "exact")
    assert ledger._what_was_found(proved, in_full=False) == "all of them"
    assert "step by step" in ledger._what_was_found(proved, in_full=True)
    assert "<script>" in ledger._what_was_found(ODD, in_full=False)


def test_the_committed_page_is_up_to_date() -> None:
    """docs/claims.md has every claim with its verdict; figures of proofs may move, of results not."""
    lines = (ROOT / "docs" / "claims.md").read_text().splitlines()
    shown, evidence = {}, {}
    for line in lines:
        if line.startswith("| `"):
            cells = line.replace("\\|", "").split(" | ")
            name = cells[0].split("`")[1]
            shown[name], evidence[name] = cells[2].strip("*"), cells[4]
    decided = empirical.read(ROOT / "results")
    expected = {claim.id: claim.expected.value for claim in CATALOGUE.values()}
    waiting = {claim.id: Verdict.NOT_CHECKED.value for claim in EXPERIMENTS.claims}
    assert shown == expected | waiting | {name: result.verdict.value for name, result in decided.items()}
    for name, result in decided.items():
        assert evidence[name] == ledger._markdown_cell(result.evidence).replace("\\|", "")


@pytest.mark.slow
def test_the_whole_ledger_is_as_expected(tmp_path: Path) -> None:
    output = tmp_path / "ledger.json"
    done = command("--json", str(output))
    assert done.returncode == 0, done.stdout[-3000:]
    content = json.loads(output.read_text())["claims"]
    assert set(content) == set(CATALOGUE)
    skipped = {name for name, entry in content.items() if entry["skipped"]}
    assert skipped == set() if smt.is_available() else skipped <= set(CATALOGUE)
