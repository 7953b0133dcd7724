"""The report shows what is in the folders, says what is missing or wrong, and looks right in a browser."""

import json
import re

import pytest

from experiments import demo, report
from sfr_fa.runs.store import RunFolder
from sfr_theory.catalogue import EXPERIMENTS
from sfr_theory.errors import InputError
from tests import commands
from tests.experiments import browser
from tests.experiments.synthetic import (
    AGENTS,
    GENERAL,
    OBJECT_LEVELS,
    agent,
    key_of,
    rising,
    setting,
    write_run,
)
from tests.experiments.test_figures import levels_run

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
    "place": "th:x",
    "kind": "statement",
    "gravity": None,
    "method": "symbolic",
    "claim": "a < b & c",
    "verdict": "PROVED",
    "expected": "PROVED",
    "as_expected": False,
    "evidence": "<script>alert(1)</script>",
    "scope": "",
}


def render(folder):
    """The page without results of experiments."""
    return report.page(folder, folder / "no results")


def test_statements_and_counterexamples_appear(tmp_path):
    (tmp_path / "gpi_bound.json").write_text(json.dumps({"statements": {"thm2/printed": STATEMENT}}))
    page = render(tmp_path)
    for text in ("thm2/printed", "∞", "REFUTED", "-7/3", "11/5"):
        assert text in page


def test_claims_are_escaped_and_the_unexpected_stands_out(tmp_path):
    (tmp_path / "tightness.json").write_text(json.dumps({"claims": {"a/b": CLAIM}}))
    page = render(tmp_path)
    assert "<script>alert" not in page
    assert "a &lt; b &amp; c" in page
    assert "PROVED unexpected" in page


def test_pictures_are_inside_the_page(tmp_path):
    (tmp_path / "convergence.json").write_text(json.dumps({"claims": {}}))
    (tmp_path / "convergence.svg").write_text("<svg viewBox=\"0 0 9 9\" xmlns='http://www.w3.org/2000/svg'/>")
    page = render(tmp_path)
    assert page.count("<svg ") == 2  # what SFR is, and this one
    assert not re.search(r"""(src|href)=["'](?!data:|#)""", page)  # nothing is fetched from elsewhere


def test_what_is_missing_is_said(tmp_path):
    page = render(tmp_path)
    assert page.count("No results yet") == len(report.COMMANDS) + 1  # and the ledger
    assert "There are no results in" in page
    (tmp_path / "empty").mkdir()
    assert "There are no results in" in report.page(tmp_path, tmp_path / "empty")


@pytest.mark.parametrize(
    ("name", "content"),
    [
        *(("ledger", content) for content in ([], {}, {"claims": 3}, {"claims": {"a": 3}}, {"claims": []})),
        ("gpi_bound", {"statements": {"a": 3}}),
        ("gpi_bound", {"statements": {"a": {**STATEMENT, "instances": "ten"}}}),
        ("gpi_bound", {"statements": {"a": {**STATEMENT, "counterexample": {"gamma": 1}}}}),
        ("tightness", {"claims": {"a": {"label": "x"}}}),
        ("convergence", {"claims": {"a": {**CLAIM, "evidence": None}}}),
        ("ledger", {"claims": {"bg/sr": {**CLAIM, "verdict": "PERHAPS"}}}),
    ],
)
def test_other_content_gets_a_sentence(tmp_path, name, content):
    (tmp_path / f"{name}.json").write_text(json.dumps(content))
    output = tmp_path / "page.html"
    with pytest.raises(InputError, match=f"{name}.json .*; run (it again|`make demo`)") as error:
        report.main(report.Options(str(tmp_path), str(output), str(tmp_path / "no results")))
    assert "\n" not in str(error.value)
    assert not output.exists()


def test_a_missing_folder_exits_with_2(tmp_path):
    commands.refuses("experiments.report", "--data", tmp_path / "nowhere", words="^error: there is no folder")


def test_without_a_demo_there_are_still_results(tmp_path, monkeypatch):
    """In a fresh clone the default folder of checks is not there yet."""
    write_general(tmp_path / "results")
    monkeypatch.chdir(tmp_path)
    assert report.main(report.Options(results="results")) == 0
    page = (tmp_path / "report/index.html").read_text()
    assert "Title of object_collection_general, profile reduced" in page


def test_a_failing_check_fails_the_demo_and_shows_why(tmp_path, monkeypatch, capsys):
    step = demo.DemoStep("a check", "sfr_theory.check_gpi_bound", ("--mdps", "0"))
    monkeypatch.setattr(demo, "steps", lambda data: (data.mkdir(parents=True, exist_ok=True), (step,))[1])
    monkeypatch.chdir(tmp_path)  # where no results are
    assert demo.main(demo.Options(str(tmp_path / "report"))) == 1
    assert "--mdps is 0; it must be at least 1" in capsys.readouterr().out


def test_the_demo_runs_its_experiment_anew(tmp_path, monkeypatch):
    """Results of an earlier demo are removed, and nothing beside them."""
    old = tmp_path / "data" / report.DEMO_RESULTS
    for name in ("demo", "mine"):
        (old / name).mkdir(parents=True)
        (old / name / "file").touch()
    monkeypatch.setattr(demo, "steps", lambda data: (demo.DemoStep("nothing", "sfr_theory.errors", ()),))
    monkeypatch.chdir(tmp_path)
    assert demo.main(demo.Options(str(tmp_path))) == 0
    assert [path.name for path in old.iterdir()] == ["mine"]


@pytest.mark.slow
def test_the_demo_writes_a_whole_page(tmp_path):
    commands.printed_by("-m", "experiments.demo", "--output", tmp_path)
    page = (tmp_path / "index.html").read_text()
    assert "No results yet" not in page
    assert "What this demo has run" in page
    assert page.count('<figure class="plot">') >= 3 + 2  # theory, the experiment
    assert page.count("<img ") == 3  # the environments
    assert "data-live-xi" in page
    assert "unexpected'" not in page
    assert len(page) < 3_000_000
    if browser.CHROMIUM is None:
        pytest.skip("chromium is not on the PATH; the page was not looked at")
    browser.check_screens(tmp_path / "index.html", tmp_path)


@browser.needed
def test_the_look_at_screens_sees_what_is_wrong(tmp_path):
    page = tmp_path / "page.html"
    page.write_text(
        "<style>@media print { div { width: 900px } }</style><body><h1>Title</h1>"
        "<p style='color: #aaa'>faint</p><figure style='margin-top: 1200px'><img width=10 height=10></figure>"
        "<div>wide</div><input><p style='overflow: hidden; width: 50px'>averylongwordnotshown</p></body>"
    )
    desktop, printed = (browser.looked_at(page, tmp_path, screen) for screen in ("desktop", "print"))
    assert printed["outside"] == ["DIV wide"]
    assert not desktop["outside"]
    assert desktop["clipped"] == ["P averylongwordnotshown"]
    assert desktop["broken"] == ["an image"]
    assert [words.split()[1] for words in desktop["faint"]] == ["faint"]
    assert (desktop["scroll"], printed["scroll"] > 0) == (0, True)
    assert desktop["picture"] > 900
    assert printed["controls"]
    assert printed["cut"]


# --- Results of experiments

TASKS = 12


def write_general(results, **more):
    returns = rising(lambda place, label: OBJECT_LEVELS[label], TASKS)
    return write_run(results, "object_collection_general", [(GENERAL, AGENTS)], returns, **more)


@pytest.fixture
def results(tmp_path):
    write_general(tmp_path / "results")
    return tmp_path / "results"


def test_a_run_appears_with_where_it_comes_from(results, tmp_path):
    page = report.page(tmp_path, results)
    for text in (
        "Title of object_collection_general, profile reduced",
        "12 tasks x 20,000 steps x 3 repetitions",
        "seed: <code>0</code>",
        "commit: <code>0123456789</code>",
        "general: p-values of all pairs",
        "Time of one repetition",
        "results/object-general-sfr-best",
        "Less than the paper&#x27;s scale, so no verdict",
    ):
        assert text in page, text
    assert page.count("<img ") == 3  # the environments
    assert page.count('<figure class="plot">') == 2
    assert not warnings(page)


def test_the_demo_has_a_place_of_its_own(results, tmp_path):
    """What the demo ran stands apart, and decides nothing about the paper."""
    assert "What this demo has run" not in report.page(tmp_path, results)
    parts = [(GENERAL, [agent(label) for label in ("Q", "SF", "SFR")])]
    returns = rising(lambda place, label: OBJECT_LEVELS[label], 3)
    write_run(tmp_path / report.DEMO_RESULTS, "demo", parts, returns, "smoke")
    page = report.page(tmp_path, tmp_path / "no results")
    assert page.index("What this demo has run") < page.index("Title of demo, profile smoke")
    assert "There are no results in" in page
    assert "REPRODUCED" not in re.sub(r"<style>.*?</style>", "", page, flags=re.DOTALL)


def test_agents_that_were_not_run_are_one_sentence(tmp_path):
    """Four of ten agents are no fault: nothing warns."""
    rest = [setup for setup in AGENTS if setup["label"] not in ("Q", "SF", "SFR", "MB SFR")]
    write_general(
        tmp_path / "results", leave_out={key_of(GENERAL, setup, k) for setup in rest for k in range(3)}
    )
    page = report.page(tmp_path, tmp_path / "results")
    assert page.count("Not run: SF-R, SF-4, SF-8, SFR-R, CSFR-4, MB SFR-R.") == 1
    assert not warnings(page)


def test_the_printed_pairs_stand_one_by_one(results, tmp_path):
    page = report.page(tmp_path, results)
    [sheet] = re.findall(r"The printed p-values, pair by pair</summary>.*?</table>", page, re.DOTALL)
    assert sheet.count("INCONCLUSIVE") == 45  # three repetitions
    assert "118 of the 163 printed pairs were not run" in page


def test_verdicts_on_results_go_into_the_ledger(results, tmp_path):
    entry = {**CLAIM, "verdict": "NOT CHECKED", "as_expected": True}
    claims = {"results/object-general-sfr-best": entry, "results/barreto-sfr-best": entry}
    content = {"claims": claims, "verdicts": {"NOT CHECKED": 2}}
    (tmp_path / "ledger.json").write_text(json.dumps(content))
    assert "2 claims of the paper: 2 NOT CHECKED." in render(tmp_path)
    page = report.page(tmp_path, results)
    about_results = sum(claim.label != "" for claim in EXPERIMENTS.claims)
    [counts] = re.findall(rf"{about_results} claims of the paper: (.*?)\.", page)
    assert re.fullmatch(r"\d+ INCONCLUSIVE, \d+ NOT CHECKED", counts)
    assert page.count("<tr id='results/object-general-sfr-best'") == 1


def warnings(page):
    """The text of the boxes that warn."""
    return " ".join(re.findall(r'<div class="warning.*?</div>', page, re.DOTALL))


def test_a_number_changed_in_a_result_is_on_the_page(results, tmp_path):
    folder = RunFolder(results / "object_collection_general" / "reduced")
    table = folder.csv_path(key_of(GENERAL, AGENTS[5], 1))
    table.write_bytes(table.read_bytes().replace(b"1", b"2", 1))
    page = report.page(tmp_path, results)
    assert "These files contradict themselves" in warnings(page)
    assert "checksum" in warnings(page)
    assert "1 contradiction in its files" in page
    assert "SFR has 2 of 3 repetitions; missing: 1" in warnings(page)


def test_a_manifest_that_cannot_be_read_is_on_the_page(results, tmp_path):
    path = results / "object_collection_general" / "reduced" / "manifest.json"
    path.write_text(path.read_text().replace('"seed": 0', '"seed": 1'))
    assert "checksum does not match" in warnings(report.page(tmp_path, results))


@browser.needed
def test_the_page_in_a_browser(results, tmp_path):
    """At the width of a phone and of a desktop: all images render, nothing sticks out or is clipped."""
    levels_run(results)
    (tmp_path / "gpi_bound.json").write_text(json.dumps({"statements": {"thm2/printed": STATEMENT}}))
    (tmp_path / "tightness.json").write_text(json.dumps({"claims": {"a/b": CLAIM}}))
    # A path without a space, and a warning, are what does not wrap by itself.
    table = RunFolder(results / "nonlinearity" / "reduced").csv_path(key_of(setting("level_3"), AGENTS[1], 0))
    table.write_bytes(b"broken")
    assert browser.check_fits(report.page(tmp_path, results), tmp_path)["images"] == 3


LEDGER = """
const ledger = Look.ledgers[0];
const shown = () => ledger.rows.filter(({ row }) => !row.hidden).map(({ row }) => row.id);
const set = (input, value) => { input.value = value; input.dispatchEvent(new Event('input')); };
const found = { all: shown(), count: ledger.count.textContent };
set(ledger.search, 'GPI two');
found.searched = shown();
set(ledger.search, '');
set(ledger.verdict, 'REFUTED');
found.refuted = shown();
set(ledger.gravity, 'slip');
found.slips = shown();
location.hash = '#gpi/two-stage';
ledger.reveal();
found.revealed = shown();
set(ledger.order, 'verdict');
found.sorted = [...ledger.table.querySelectorAll('tr[data-verdict]')].map((row) => row.id);
found.headings = [...ledger.table.querySelectorAll('tr.section')].filter((row) => !row.hidden).length;
set(ledger.order, 'as in the paper');
found.back = [...ledger.table.querySelectorAll('tr[data-verdict]')].map((row) => row.id);
return found;
"""


@browser.needed
def test_the_ledger_is_searched_filtered_and_sorted(tmp_path):
    entries = {
        "bg/q-bellman": {**CLAIM, "verdict": "PROVED"},
        "bg/q-learning-printed": {**CLAIM, "verdict": "REFUTED", "gravity": "slip"},
        "gpi/two-stage": {**CLAIM, "claim": "Two stages are GPI"},
        "thm2/printed": {**CLAIM, "verdict": "REFUTED", "gravity": "theorem"},
    }
    (tmp_path / "ledger.json").write_text(json.dumps({"claims": entries}))
    found = browser.evaluate(render(tmp_path), tmp_path, LEDGER)
    assert found["all"] == found["back"] == found["revealed"] == list(entries)
    assert found["count"] == "4 of 4 claims"
    assert found["searched"] == ["gpi/two-stage"]
    assert found["refuted"] == ["bg/q-learning-printed", "thm2/printed"]
    assert found["slips"] == ["bg/q-learning-printed"]
    assert found["sorted"] == ["bg/q-bellman", "gpi/two-stage", "bg/q-learning-printed", "thm2/printed"]
    assert found["headings"] == 0


def test_the_first_screen_has_findings_from_data(tmp_path, results):
    """Words before ids; every number from what was found; without data it says what to run."""
    empty = render(tmp_path)
    assert "Not checked yet" in empty
    assert "No results at hand" in empty
    statements = {
        "thm2/printed-value-norm": {**STATEMENT, "worst_ratio": 7.4},
        "thm2/sharp": {**STATEMENT, "violations": 0},
    }
    (tmp_path / "gpi_bound.json").write_text(json.dumps({"statements": statements}))
    page = report.page(tmp_path, results)
    head = page[page.index("<header>") : page.index("</header>")]
    assert "2 of 10 generated problems violate its bound, by up to 7 times" in head
    assert "Theorem 2 is false as printed" in head
    assert re.search(r"general rewards: <strong>\d\d % \[\d\d, \d\d\]</strong>", head)
    assert page.index("<header>") < page.index('id="live-title"') < page.index('id="experiments"')
    assert page.index('id="experiments"') < page.index('id="theory"') < page.index('id="ledger"')


def test_what_sfr_is_in_one_figure():
    """The policy meets the box at once, the triangle two steps later, the goal after five."""
    found = report.idea(gamma=0.5)
    assert found["xi"] == {"box": 1.0, "triangle": 0.25, "goal": 0.5**5}
    assert [value for _, _, value in found["rewards"]] == [1.28125, 0.78125, -1.21875]
