"""The report shows what is in the folder, says what is missing, and refuses what it cannot read."""

import json
import re
import subprocess
import sys

import pytest

from experiments import demo, report
from sfr_theory.errors import InputError

STATEMENT = {
    "instances": 10,
    "violations": 2,
    "worst_ratio": None,
    "verdict": "REFUTED",
    "as_expected": True,
    "counterexample": {
        "gamma": "1/2",
        "num_features": 1,
        "transitions": [{"state": 0, "action": 0, "next_state": 0, "feature": 0, "probability": "1"}],
        "target": ["1"],
        "sources": [["-7/3"]],
        "approximations": [[[["11/5"]]]],
    },
}
CLAIM = {
    "label": "th:x",
    "claim": "a < b & c",
    "verdict": "PROVED",
    "expected": "PROVED",
    "as_expected": False,
    "evidence": "<script>alert(1)</script>",
    "scope": "",
}


def test_statements_and_counterexamples_appear(tmp_path):
    (tmp_path / "gpi_bound.json").write_text(json.dumps({"statements": {"thm2/printed": STATEMENT}}))
    page = report.render(tmp_path)
    for text in ("thm2/printed", "∞", "REFUTED", "-7/3", "11/5"):
        assert text in page


def test_claims_are_escaped_and_the_unexpected_stands_out(tmp_path):
    (tmp_path / "tightness.json").write_text(json.dumps({"claims": {"a/b": CLAIM}}))
    page = report.render(tmp_path)
    assert "<script>" not in page
    assert "a &lt; b &amp; c" in page
    assert "PROVED unexpected" in page


def test_pictures_are_inside_the_page(tmp_path):
    (tmp_path / "convergence.json").write_text(json.dumps({"claims": {}}))
    (tmp_path / "convergence.svg").write_text("<svg xmlns='http://www.w3.org/2000/svg'/>")
    page = report.render(tmp_path)
    assert page.count("data:image/svg+xml;base64,") == 1
    assert not re.search(r"(src|href)='(?!data:|#)", page)  # nothing is fetched from elsewhere


def test_what_is_missing_is_said(tmp_path):
    page = report.render(tmp_path)
    assert page.count("No results yet") == len(report.PAGE)


@pytest.mark.parametrize("content", ["{", "[]"])
def test_damaged_results_get_a_sentence(tmp_path, content):
    (tmp_path / "ledger.json").write_text(content)
    with pytest.raises(InputError, match="make demo"):
        report.render(tmp_path)


def test_a_missing_folder_exits_with_2(tmp_path):
    command = [sys.executable, "-m", "experiments.report", "--data", str(tmp_path / "nowhere")]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("error: there is no folder")


def test_a_failing_check_fails_the_demo_and_shows_why(tmp_path, monkeypatch, capsys):
    step = demo.Step("a check", "sfr_theory.check_gpi_bound", ("--mdps", "0"))
    monkeypatch.setattr(demo, "steps", lambda data: (data.mkdir(parents=True), (step,))[1])
    assert demo.main(demo.Options(str(tmp_path / "report"))) == 1
    assert "--mdps is 0; it must be at least 1" in capsys.readouterr().out


@pytest.mark.slow
def test_the_demo_writes_a_whole_page(tmp_path):
    command = [sys.executable, "-m", "experiments.demo", "--output", str(tmp_path)]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stdout + result.stderr
    page = (tmp_path / "index.html").read_text()
    assert "No results yet" not in page
    assert page.count("<img ") == 3
    assert "unexpected'" not in page
