"""The Coq development: every theorem is closed, broken statements do not compile, and all lists agree."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from proofs_checks.coq import check
from proofs_checks.coq.theorems import THEOREMS, Theorem, to_markdown
from sfr_theory.catalogue import CATALOGUE
from sfr_theory.claims import Verdict

ROOT = Path(__file__).parents[2]
needs_coq = pytest.mark.usefixtures("coq")


@pytest.fixture(scope="session")
def coq() -> None:
    """Coq with its libraries; without them a test is left out, and says how to get them."""
    try:
        check.check({"libraries": "From mathcomp Require Import all_ssreflect all_algebra ring.\n"}, ())
    except check.CoqUnavailableError as error:
        pytest.skip(str(error))


# The lists


def test_names_are_unique_and_their_files_are_there() -> None:
    names = [theorem.name for theorem in THEOREMS]
    assert len(names) == len(set(names)) > 70
    assert {theorem.stem for theorem in THEOREMS} == set(check.development())


def test_every_theorem_stands_in_its_file_and_what_is_called_theorem_is_listed() -> None:
    """Lemmas are a file's own affair."""
    stated = [
        (kind, f"{stem}.{name}")
        for stem, text in check.development().items()
        for kind, name in re.findall(r"^(Theorem|Lemma) (\w+)", check.without_comments(text), re.MULTILINE)
    ]
    listed, found = {theorem.name for theorem in THEOREMS}, [name for _, name in stated]
    assert all(found.count(name) == 1 for name in listed)
    assert {name for kind, name in stated if kind == "Theorem"} <= listed


def test_the_page_lists_the_same_theorems() -> None:
    page = (ROOT / "docs" / "theory.md").read_text("utf-8")
    rows = re.findall(r"^\| .* \| `(\w+)` \| \[`(\w+)\.v`\]\(\S+\) \|$", page, re.MULTILINE)
    assert [f"{stem}.{name}" for name, stem in rows] == [theorem.name for theorem in THEOREMS]
    assert to_markdown() in page


def test_claims_are_of_the_catalogue_and_expected_so() -> None:
    proved = {claim for theorem in THEOREMS for claim in theorem.claims}
    refuted = {claim for theorem in THEOREMS for claim in theorem.refutes}
    assert proved | refuted <= set(CATALOGUE)
    assert not proved & refuted
    assert {CATALOGUE[claim].expected for claim in proved} == {Verdict.PROVED}
    assert {CATALOGUE[claim].expected for claim in refuted} == {Verdict.REFUTED}


def test_a_claim_counts_only_if_all_its_theorems_are_verified(monkeypatch: pytest.MonkeyPatch) -> None:
    verified = set(THEOREMS)
    monkeypatch.setattr(check, "verified_theorems", lambda theorems: verified)
    found = check.findings(CATALOGUE)
    assert found["prop2/fixed-point-corrected"].verdict is Verdict.PROVED
    assert found["thm2/printed"].verdict is Verdict.REFUTED
    verified -= {theorem for theorem in THEOREMS if theorem.name == "mdp.value_iteration"}
    assert check.findings(CATALOGUE).keys() == found.keys() - {"prop2/fixed-point-corrected"}


@needs_coq
def test_a_selection_compiles_only_what_it_needs(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = []
    compile_file = check.compile_file

    def recording(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
        compiled.append(name)
        return compile_file(folder, name)

    monkeypatch.setattr(check, "compile_file", recording)
    assert check.findings(["lemma/max-difference", "alg/half-rates"]).keys() == {"lemma/max-difference"}
    assert set(compiled) == {"maxima", check.ASSUMPTIONS}
    assert check.findings(["alg/half-rates"]) == {}


# Gaps in proofs


def test_comments_nest_and_hide_nothing_else() -> None:
    assert check.without_comments("a (* b (* Axiom *) c *) d") == "a  d"


@pytest.mark.parametrize(
    "command",
    [
        "Axiom a : False.",
        "Parameter a : nat.",
        "Admitted.",
        "admit.",
        "Unset Guard Checking.",
        "Conjecture a : True.",
    ],
)
def test_commands_that_leave_a_gap_are_found(command: str) -> None:
    assert check.forbidden_commands({"toy": f"(* Axiom *)\n{command}"})
    assert not check.forbidden_commands({"toy": f"(* {command} *) Definition administrator := 0."})


def test_there_is_no_gap_in_the_development() -> None:
    assert check.forbidden_commands(check.development()) == ()


TOY = "Theorem fine : True. Proof. exact I. Qed.\n"


@needs_coq
def test_a_theorem_that_rests_on_an_axiom_is_not_verified() -> None:
    text = TOY + "Axiom cheat : False.\nTheorem bad : 1 = 2. Proof. destruct cheat. Qed.\n"
    report = check.check({"toy": text}, (Theorem("toy.fine", ""), Theorem("toy.bad", "")))
    fine, bad = report.outcomes
    assert fine.verified
    assert not bad.verified
    assert "cheat" in bad.reason
    assert not report.verified


@needs_coq
def test_a_gap_counts_also_where_no_theorem_uses_it() -> None:
    report = check.check({"toy": TOY + "Lemma open : 1 = 2. Admitted.\n"}, (Theorem("toy.fine", ""),))
    assert report.outcomes[0].verified
    assert not report.verified


@needs_coq
def test_a_theorem_that_is_not_there_is_not_verified() -> None:
    report = check.check({"toy": TOY}, (Theorem("toy.fine", ""), Theorem("toy.gone", "")))
    assert [outcome.verified for outcome in report.outcomes] == [True, False]
    assert "gone" in report.outcomes[1].reason


@needs_coq
def test_what_requires_a_broken_file_is_not_verified() -> None:
    sources = {
        "base": "Theorem wrong : 1 = 2. Proof. reflexivity. Qed.\n",
        "toy": "From SFR Require Import base.\n" + TOY,
        "apart": TOY,
    }
    theorems = [Theorem(f"{name}", "") for name in ("base.wrong", "toy.fine", "apart.fine")]
    report = check.check(sources, theorems)
    assert [outcome.verified for outcome in report.outcomes] == [False, False, True]
    assert "base.v" in report.outcomes[1].reason


@needs_coq
def test_a_missing_library_is_said() -> None:
    with pytest.raises(check.CoqUnavailableError, match="apt install"):
        check.check({"toy": "From nowhere Require Import nothing.\n" + TOY}, (Theorem("toy.fine", ""),))


def test_without_coq_the_command_says_how_to_get_it(tmp_path: Path) -> None:
    """Exit code 2, one line with the install command, and the same as data; nothing counts as verified."""
    empty = tmp_path / "bin"
    empty.mkdir()
    script = (
        "import json, runpy, sys\n"
        "from proofs_checks.coq import verified_theorems\n"
        "assert not verified_theorems()\n"
        "sys.argv = ['coq', '--json', '-']\n"
        "runpy.run_module('proofs_checks.coq', run_name='__main__')\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", script],
        env={"PATH": str(empty), "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert result.stderr.count("\n") == 1
    assert check.INSTALL in result.stderr
    report = json.loads(result.stdout)
    assert report["available"] is False
    assert check.INSTALL in report["reason"]


# The development itself


@pytest.fixture(scope="module")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the compiled development: the control of every broken variant."""
    folder = tmp_path_factory.mktemp("coq")
    for stem, text in check.development().items():
        (folder / f"{stem}.v").write_text(text, "utf-8")
    assert check.compile_all(folder) == {}
    return folder


@pytest.mark.slow
@needs_coq
def test_every_theorem_is_closed(compiled: Path) -> None:
    printed = check.assumptions(compiled, THEOREMS)
    assert printed == {theorem.name: check.CLOSED for theorem in THEOREMS}


ABOVE = "\n\nLocal Notation g := (discount M).\n\n(* The optimal"
"""What follows one of two such hypotheses."""
VARIANTS = {
    "discount may be 1": ("mdp", "g1", "discount < 1", "discount <= 1"),
    "probabilities may be negative": ("mdp", "E_mono",
        "0 <= prob x y", "prob x y <= 1"),
    "contraction by g^2": ("mdp", "T_contracts",
        "dist (T r q) (T r q') <= g * dist", "dist (T r q) (T r q') <= g * g * dist"),
    "mass 1": ("xi", "xi_mass",
        "\\sum_phi xi pi x phi = 1 / (1 - g).", "\\sum_phi xi pi x phi = 1."),
    "T_xi with any action": ("xi", "Txi_is_bellman",
        "greedy b (value R z) -> value R (Txi b z) x = T W", "True -> value R (Txi b z) x = T W"),
    "bootstrap on any action": ("learning", "pathwise",
        "value R (z n) (s' n, a) <= value R (z n) (s' n, b n)", "a = a"),
    "rewards that are not linear": ("learning", "table_image",
        "R t phi = \\sum_k w t k * z phi k", "R t phi = R t phi"),
    "T2' with a smaller constant": ("gpi", "sharp_V_values",
        "V M pi r s + 2%:R / (1 - g) * (g * d + eps).",
        "V M pi r s + 2%:R / (1 - g) * (g * g * d + eps)."),
    "T2' with half the error": ("gpi", "sharp_V_values",
        "V M pi r s + 2%:R / (1 - g) * (g * d + eps).",
        "V M pi r s + 2%:R / (1 - g) * (g * d + eps / 2%:R)."),
    "sources need not be optimal": ("gpi", "sharp_V_values",
        "Hypothesis source_optimal : optimal M (pis i) (rs i).",
        "Hypothesis source_optimal : True."),
    "scale may be negative": ("gpi", "affine_optimal",
        "scale_gt0 : forall i, 0 < b i", "scale_gt0 : forall i, b i != 0"),
    "error read under the source": ("transfer", "corrected_paper_bound",
        "(fun X Phi R _ => @value_dist F X Phi R)", "(fun X Phi _ R => @value_dist F X Phi R)"),
    "weights may be negative": ("certificates", "Qstar_sublinear",
        "Hypothesis a_ge0 : forall i, 0 <= a i." + ABOVE,
        "Hypothesis a_ge0 : forall i, a i <= 1." + ABOVE),
    "multipliers may be negative": ("certificates", "sources_certificate_V",
        "[/\\ forall i, 0 <= a i,", "[/\\ forall i, a i <= 1,"),
    "what comes later is not summed up": ("certificates", "conical_value",
        "(Qstar M (rs i) x - rs i x) + g * (b / (1 - g)).",
        "(Qstar M (rs i) x - rs i x) + g * b."),
    "half the spread": ("certificates", "spread_certificate_Q",
        "<= g * spread / (1 - g).", "<= g * spread / (1 - g) / 2%:R."),
    "attained beyond the bound": ("sharpness", "sharp_attained",
        "dist (Vstar M r) (V M pi r) = 2%:R / (1 - g) * (g * d + e) /\\",
        "dist (Vstar M r) (V M pi r) = 3%:R / (1 - g) * (g * d + e) /\\"),
    "the corrected theorem refuted": ("sharpness", "printed_false_error_under_source",
        "~ paper_bound (@value_dist F) (fun X Phi _ Ri => @absolute_dist F X Phi Ri).",
        "~ paper_bound (@value_dist F) (fun X Phi R _ => @absolute_dist F X Phi R)."),
}  # fmt: skip
"""A statement is made false: in which file, where Coq must stop, what is replaced and by what."""


def statements(text: str) -> Iterator[tuple[int, str]]:
    """The line at which each lemma begins, and its name."""
    for number, line in enumerate(text.splitlines(), 1):
        if found := re.match(r"(?:Theorem|Lemma|Let|Definition) (\w+)", line):
            yield number, found.group(1)


@pytest.mark.slow
@needs_coq
@pytest.mark.parametrize("variant", VARIANTS.values(), ids=VARIANTS)
def test_a_broken_statement_does_not_compile(
    variant: tuple[str, str, str, str], compiled: Path, tmp_path: Path
) -> None:
    stem, fails_in, old, new = variant
    text = check.development()[stem]
    assert text.count(old) == 1
    broken = text.replace(old, new)
    for path in compiled.glob("*.vo"):
        if path.stem != stem:
            shutil.copy(path, tmp_path)
    (tmp_path / f"{stem}.v").write_text(broken, "utf-8")
    result = check.compile_file(tmp_path, stem)
    assert result.returncode
    # It is the proof that fails, not the parser, and the proof of that statement.
    assert "Syntax error" not in result.stderr
    line = int(re.search(r"line (\d+)", result.stderr).group(1))  # type: ignore[union-attr]
    *_, where = (name for number, name in statements(broken) if number <= line)
    assert where == fails_in, result.stderr
