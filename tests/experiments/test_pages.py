"""Every number in README and docs that is about results is what the published tables say."""

import re
from collections import Counter
from pathlib import Path

import pytest
from markupsafe import Markup

from experiments import calibration, pages, render
from experiments.analysis import compare, figures
from experiments.analysis.compare import BARRETO, GENERAL, LINEAR, RACER, Place
from sfr_fa.analysis.render import markdown
from sfr_fa.runs import load, publish
from tests.commands import ROOT
from tests.experiments.synthetic import OBJECT_LEVELS, agent, key_of, rising, setting, write_run
from tests.refusals import refused

RESULTS = ROOT / "results"
CONSTANTS = {"300", "20,000", "40", "200,000", "10", "0.005", "0.4", "95", "5", "0.05"}
"""Sizes, rates and levels of the experiments: the only numbers that a page may state by itself."""


@pytest.fixture(scope="module")
def committed():
    return pages.Findings(RESULTS)


@pytest.mark.parametrize("name", pages.PAGES)
def test_pages_say_what_the_results_say(name, committed, monkeypatch):
    monkeypatch.chdir(ROOT)
    made = pages.page_text(Path(name), pages.PAGES[name], committed)
    assert Path(name).read_text() == made, "run `make results`"


def test_docs_state_no_number_by_themselves():
    text = (render.TEMPLATES / "results.md").read_text()
    text = re.sub(r"\{\{.*?\}\}|\{%.*?%\}", "", text)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    numbers_there = re.findall(
        r"(?<![\w.])(?<!\w-)\d[\d,.]*(?<![.,])", re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)
    )
    assert numbers_there
    assert set(numbers_there) <= CONSTANTS


ORDERINGS = (
    *((place, "SFR", other) for place in (LINEAR, GENERAL) for other in ("SF", "MB SFR, squares")),
    *((place, "SF", "Q") for place in (LINEAR, GENERAL)),
    (BARRETO, "SFR", "SF"),
    (BARRETO, "SFR", "MB SFR, squares"),
    (RACER, "CSFR", "Q"),
    (RACER, "Q", "SF"),
    *(
        (Place("single_task", kind), *pair)
        for kind in ("linear", "general")
        for pair in (("SFR", "Q"), ("Q", "SF"))
    ),
)  # fmt: skip
"""(where, who is ahead, of whom), as docs/results.md says in words."""


@pytest.mark.parametrize(("place", "ahead", "behind"), ORDERINGS)
def test_who_is_ahead_in_words_is_ahead_in_numbers(committed, place, ahead, behind):
    assert committed.results.versus(place, ahead, behind).test.difference > 0


def test_the_words_about_the_ablation(committed):
    """It is the clipping: without it SFR is nowhere ahead of SF, and from values of zero it gains less."""

    def mean(variant, weights):
        run = committed.results.run("ablation")
        return compare.agent_in(run, "linear", f"{variant}, {weights} weights").totals.mean()

    def gain(weights):
        return mean("SFR", weights) - mean("SFR without clipping", weights)

    assert 0 < gain("zero") < gain("paper") / 2
    assert abs(mean("SF", "matched") - mean("SFR without clipping", "matched")) < gain("paper") / 4
    for weights in ("paper", "matched", "zero"):
        assert mean("SFR without clipping", weights) <= mean("SF", weights)


def test_the_words_about_clipping_from_zero_weights_and_on_general_rewards(committed):
    """No gain is shown from zero weights; SFR without clipping is ahead of SF on general rewards."""
    run = committed.results.run("ablation")

    def paired(kind, first, second):
        return compare.versus(run, kind, first, second).paired_p < compare.SIGNIFICANT

    assert paired("linear", "SFR, paper weights", "SFR without clipping, paper weights")
    assert not paired("linear", "SFR, zero weights", "SFR without clipping, zero weights")
    for weights in ("paper", "matched", "zero"):
        pair = f"SFR without clipping, {weights} weights", f"SF, {weights} weights"
        assert compare.versus(run, "general", *pair).ahead == pair[0]
        assert paired("general", *pair)
    for kind in ("linear", "general"):
        for variant in ("SFR", "SFR without clipping"):
            one, other = (
                compare.agent_in(run, kind, f"{variant}, {weights} weights")
                for weights in ("paper", "matched")
            )
            assert (one.returns == other.returns).all()


def test_the_words_about_mb_sfr_on_linear_tasks(committed):
    """By the paper's test the two do not differ, in pairs they do."""
    found = committed.results.versus(LINEAR, "MB SFR", "SFR")
    assert not found.is_significant
    assert found.paired_p < compare.SIGNIFICANT
    assert found.ahead == "SFR"


SECTIONS = {
    "What reproduces": "REPRODUCED",
    "What depends on what the paper does not print": "NEEDS ASSUMPTION",
    "What does not reproduce": "NOT REPRODUCED",
    "What stays open": "INCONCLUSIVE",
}
"""Section of docs/results.md -> the verdict on what its paragraphs begin with."""


def test_paragraphs_stand_where_their_verdict_belongs(committed):
    found = {o.claim.id: o.result.verdict.value for o in committed.outcomes if not o.claim.is_ours}
    cited = {}
    text = (render.TEMPLATES / "results.md").read_text()
    for title, expected in SECTIONS.items():
        (section,) = re.findall(rf"^## {title}\n(.*?)(?=^## )", text, re.DOTALL | re.MULTILINE)
        leads = re.findall(r"^\*\*.*?verdict\(\"(.*?)\"\)", section, re.DOTALL | re.MULTILINE)
        assert leads
        for claim in leads:
            assert found[f"results/{claim}"] == expected, claim
        cited[expected] = set(re.findall(r"verdict\(\"(.*?)\"\)", section))
    for claim, verdict in found.items():
        if verdict == "NOT REPRODUCED":
            assert claim.removeprefix("results/") in cited[verdict]


def test_verdicts_add_up_to_the_rows(committed):
    text = (ROOT / "docs/results.md").read_text()
    total, counts = re.search(r"The paper's (\d+) empirical claims .*? verdicts: (.*?)\.", text).groups()
    rows = re.findall(r"^\| `[\w-]+` \|.*\*\*([A-Z ]+)\*\* \|$", text, re.MULTILINE)
    assert {verdict: int(number) for number, verdict in re.findall(r"(\d+) ([A-Z ]+)", counts)} == Counter(
        rows
    )
    assert int(total) == len(rows)


def test_pages_and_ledger_count_the_same_pairs(committed):
    evidence = {o.claim.id: o.result.evidence for o in committed.outcomes}
    assert evidence["results/p-values"].startswith(committed.agreement())


def test_figures_are_those_of_the_results(committed):
    """Each figure that the results suffice for is there, as SVG and PNG, drawn from what is there now."""
    folder = RESULTS / pages.FIGURES
    there = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.svg")}
    drawn = {
        f"{run.name}/{run.profile}/{picture.name}": run.fingerprint
        for run in committed.runs
        for picture in figures.pictures(run)
    }
    assert there == {*drawn, calibration.picture(committed.calibrations).name}, "run `make results`"
    for name, fingerprint in drawn.items():
        assert figures.source_comment(fingerprint) in (folder / f"{name}.svg").read_bytes()
        assert (folder / f"{name}.png").stat().st_size < 100_000


def test_verdicts_are_those_that_the_catalogue_expects(committed):
    for outcome in committed.outcomes:
        assert outcome.as_expected, outcome.claim.id


# --- The machinery, on results of our own

PLACE = setting("general")
AGENTS = [agent(label) for label in ("Q", "SF", "SFR", "MB SFR")]


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with pages that have a place for results."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "docs").mkdir()
    for page in pages.SECTIONS:
        (tmp_path / page).write_text("before\n<!-- results -->\nold\n<!-- /results -->\nafter\n")
    return tmp_path


@pytest.fixture
def results(place):
    """One published table beside them."""
    write(place / "runs", rising(lambda place, label: OBJECT_LEVELS[label], 12))
    return place / "results"


def write(folder, returns, **more):
    size = (12, 20_000, 5)
    path = write_run(folder, "object_collection_general", [(PLACE, AGENTS)], returns, "paper", size, **more)
    publish.main(publish.Options((str(path),)))


def test_pages_are_written_and_stay(results):
    assert pages.main(pages.Options(check=True)) == 1
    assert not Path("docs/results.md").exists()
    assert pages.main(pages.Options()) == 0
    readme, docs = Path("README.md").read_text(), Path("docs/results.md").read_text()
    assert readme.startswith("before\n<!-- results -->\n| tasks |")
    assert readme.endswith("\n<!-- /results -->\nafter\n")
    assert re.search(r"general rewards \| 5 \| \d", readme)
    assert re.search(r"\d\d % \[\d\d, \d\d\] on general ones", docs)
    assert "**INCONCLUSIVE**" in docs
    assert "*not run* of it" in docs  # Barreto's task
    link = re.search(r"!\[object_collection_general: curves_general\]\((.*?)\)", docs)[1]
    assert (Path("docs") / link).is_file()
    assert pages.main(pages.Options(check=True)) == 0


def test_more_results_make_a_page_out_of_date(place):
    write(place / "first", lambda *_: [1.0] * 12, leave_out={key_of(PLACE, AGENTS[1], 2)})
    pages.main(pages.Options())
    write(place / "second", lambda *_: [1.0] * 12)
    assert pages.main(pages.Options(check=True)) == 1


def test_a_page_or_folder_that_is_not_there_gets_a_sentence(results):
    with refused("there is no folder nowhere"):
        pages.main(pages.Options("nowhere"))
    Path("README.md").write_text("without a place")
    with refused("README.md", "<!-- results -->"):
        pages.main(pages.Options())


# --- Escaping

NASTY = "<script>|[a](b)|`x`*y*\n_z_ & \\ \"' a_b"


def test_markdown_shows_what_it_is_given():
    writer = render.render.environments["md"].get_template("writer.md").module
    for row in (writer.head([NASTY], ["n"]).splitlines()[0], writer.row([NASTY], [1])):
        cells = re.split(r"(?<!\\)\|", row)
        assert len(cells) == 4  # before, two cells, after
        assert cells[1].strip() == ("&lt;script>\\|[a\\](b)\\|\\`x\\`\\*y\\*<br>\\_z\\_ &amp; \\\\ \"' a_b")
    assert markdown(Markup("**made**")) == "**made**"


def test_html_escapes_text_and_attributes():
    writer, macros = (
        render.render.environments["html"].get_template(name).make_module({"compare": compare})
        for name in ("writer.html", "macros.html")
    )
    shown = "".join([
        writer.head([NASTY], [NASTY]), writer.row([NASTY], []), writer.note(NASTY), writer.heading(NASTY),
        macros.warning(NASTY, [NASTY], NASTY),
    ])  # fmt: skip
    assert "<script>" not in shown
    assert shown.count("&lt;script&gt;") == 8
    assert 'class="&lt;script&gt;|[a](b)|`x`*y*\n_z_ &amp; \\ &#34;&#39; a_b"' in shown


def test_runs_in_progress_are_not_on_pages(results):
    """Pages are about what is published; a folder of trials beside it is not."""
    write_run(results, "barreto", [(setting("barreto", "barreto"), AGENTS)], lambda *_: [1.0] * 12, "paper",
              (12, 20_000, 5))  # fmt: skip
    assert len(load.find(results)) == 2
    assert [run.name for run in pages.Findings(results).runs] == ["object_collection_general"]
