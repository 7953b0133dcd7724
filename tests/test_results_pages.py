"""Every number in README and docs that is about results is what the committed results say."""

import re
from pathlib import Path

import pytest

from experiments import empirical_claims, figures, pages
from sfr_fa.runs import load as runs
from sfr_theory import empirical
from sfr_theory.catalogue import CATALOGUE
from sfr_theory.claims import Method, Outcome
from sfr_theory.errors import InputError
from tests.experiments.synthetic import OBJECT_LEVELS, agent, key_of, rising, setting, write_run

ROOT = Path(__file__).parent.parent
RESULTS = ROOT / "results"
CONSTANTS = {"300", "20,000", "40", "200,000", "10", "0.005", "0.4", "95", "5", "0.05"}
"""Sizes, rates and levels of the experiments: the only numbers that a page may state by itself."""


@pytest.fixture(scope="module")
def committed():
    return pages.Findings.load(RESULTS, ROOT)


@pytest.mark.parametrize("name", pages.PAGES)
def test_pages_say_what_the_results_say(name, committed):
    text = (ROOT / name).read_text()
    assert pages.PLACE.search(text), "nothing is made from results there"
    assert pages.updated(text, committed.on(ROOT / name)) == text, "run `make results`"


def own_words(text):
    """A page without what is made, code, and links."""
    text = pages.PLACE.sub("", text)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    return re.sub(r"`[^`]*`|\]\([^)]*\)", "", text)


def test_docs_state_no_number_by_themselves():
    words = own_words((ROOT / "docs" / "results.md").read_text())
    numbers = re.findall(r"(?<![\w.])\d[\d,.]*(?<![.,])", words)
    assert set(numbers) <= CONSTANTS
    assert numbers


ORDERINGS = (
    *(
        (experiment, setting, *pair)
        for experiment, setting in (
            ("object_collection_linear", "linear"),
            ("object_collection_general", "general"),
        )
        for pair in (("SFR", "SF"), ("SF", "Q"), ("SFR", "MB SFR"))
    ),
    ("barreto", "barreto", "SFR", "SF"),
    ("barreto", "barreto", "SFR", "MB SFR"),
    ("racer", "racer", "CSFR", "Q"),
    ("racer", "racer", "Q", "SF"),
    *(
        ("single_task", setting, *pair)
        for setting in ("linear", "general")
        for pair in (("SFR", "Q"), ("Q", "SF"))
    ),
)
"""(experiment, setting, who is ahead, of whom), as docs/results.md says in words."""


@pytest.mark.parametrize(("experiment", "place", "ahead", "behind"), ORDERINGS)
def test_who_is_ahead_in_words_is_ahead_in_numbers(committed, experiment, place, ahead, behind):
    if committed.run(experiment) is None:
        pytest.skip("it has not been run")
    first, second = (committed.agent(experiment, place, label) for label in (ahead, behind))
    assert first.totals.mean() > second.totals.mean()


def test_the_words_about_the_ablation(committed):
    """It is the clipping: without it SFR is nowhere ahead of SF, and from values of zero it gains less."""
    if committed.run("ablation") is None:
        pytest.skip("it has not been run")

    def mean(variant, weights):
        return committed.agent("ablation", "linear", f"{variant}, {weights} weights").totals.mean()

    def gain(weights):
        return mean("SFR", weights) - mean("SFR without clipping", weights)

    assert 0 < gain("zero") < gain("paper") / 2
    assert abs(mean("SF", "matched") - mean("SFR without clipping", "matched")) < gain("paper") / 4
    for weights in ("paper", "matched", "zero"):
        assert mean("SFR without clipping", weights) <= mean("SF", weights)


def test_figures_are_those_of_the_results(committed):
    """Each figure that the results suffice for is there, as SVG and PNG, drawn from what is there now."""
    folder = RESULTS / "figures"
    there = {str(path.relative_to(folder).with_suffix("")) for path in folder.rglob("*.svg")}
    drawn = {
        f"{run.name}/{run.profile}/{picture.name}": empirical.fingerprint(run.path)
        for run in committed.found
        for picture in figures.pictures(run)
    }
    assert there == set(drawn), "run `make results`"
    for name, fingerprint in drawn.items():
        assert figures.source_comment(fingerprint) in (folder / f"{name}.svg").read_bytes()
        assert (folder / f"{name}.png").stat().st_size < 100_000


def test_verdicts_are_those_of_the_results():
    if not (RESULTS / empirical.FILE).exists():
        assert not list(RESULTS.glob("*/paper/manifest.json")), "run `make results`"
        return
    content = empirical.json.loads((RESULTS / empirical.FILE).read_text())
    found = [runs.load(RESULTS / name) for name in content["runs"]]
    assert empirical.to_json((run.path for run in found), RESULTS, empirical_claims.check(found)) == content
    for name, result in empirical.read(RESULTS).items():
        assert Outcome(CATALOGUE[name], result, Method.RESULTS).as_expected, name


def test_committed_runs_are_sound(committed):
    """No contradiction in the files; repetitions that are missing are listed in results/README.md."""
    for run in committed.found:
        assert not run.problems


# --- The machinery, on results of our own

GENERAL = setting("general")
AGENTS = [agent(label) for label in ("Q", "SF", "SFR", "MB SFR")]
PAGE = """# Title
<!-- made: overview -->
old
<!-- /made -->
SF reaches <!-- made: ratio object_collection_general general SF SFR -->7 %<!-- /made -->, MB SFR
<!-- made: ratio object_collection_general general "MB SFR" SFR -->7 %<!-- /made -->; p
<!-- made: p object_collection_general general SF SFR --><!-- /made -->;
<!-- made: verdict object-general-sfr-best --><!-- /made -->;
<!-- made: mean barreto barreto SF -->5<!-- /made -->.
"""


@pytest.fixture
def results(tmp_path):
    size = (12, 20_000, 5)
    returns = rising(lambda place, label: OBJECT_LEVELS[label], 12)
    write_run(tmp_path / "results", "object_collection_general", [(GENERAL, AGENTS)], returns, "paper", size)
    (tmp_path / "page.md").write_text(PAGE)
    return tmp_path / "results"


def options(results, **more):
    return pages.Options((str(results.parent / "page.md"),), str(results), **more)


def test_places_are_filled_and_stay(results, tmp_path):
    page = tmp_path / "page.md"
    assert pages.main(options(results, check=True)) == 1
    assert page.read_text() == PAGE
    assert pages.main(options(results)) == 0
    text = page.read_text()
    assert "old" not in text
    assert re.search(r"general rewards \| 5 \| \d", text)
    assert re.search(r"SF reaches <!-- .*? -->\d\d % \[\d\d, \d\d\]<!-- /made -->, MB SFR", text)
    assert "**INCONCLUSIVE**" in text
    assert "barreto SF -->*not run*<" in text
    assert pages.main(options(results, check=True)) == 0


def test_a_changed_result_makes_a_page_out_of_date(results, tmp_path):
    pages.main(options(results))
    folder = results / "object_collection_general" / "paper"
    for ending in ("csv", "json"):
        (folder / f"{key_of(GENERAL, AGENTS[1], 2)}.{ending}").unlink()
    assert pages.main(options(results, check=True)) == 1


def test_smaller_profiles_are_not_read(tmp_path):
    write_run(tmp_path, "object_collection_general", [(GENERAL, AGENTS)], lambda *_: [1.0] * 12, "reduced")
    assert not pages.Findings.load(tmp_path, tmp_path).found


@pytest.mark.parametrize(
    ("what", "words"),
    [
        ("overvew", "there is no 'overvew'"),
        ("ratio racer", "has the wrong arguments"),
        ("ratio-at-level 7 SF", "below 7"),
        ("verdict nothing", "no empirical claim results/nothing"),
    ],
)
def test_a_place_that_cannot_be_filled_is_named(results, what, words):
    levels = [(setting(f"level_{k}", tasks=f"nonlinearity_{k}"), [agent("SF")]) for k in range(7)]
    write_run(results, "nonlinearity", levels, lambda *_: [1.0] * 12, "paper", (12, 20_000, 1))
    with pytest.raises(InputError, match=words):
        pages.made(what, pages.Findings.load(results, results))


def test_a_missing_page_is_named(tmp_path):
    with pytest.raises(InputError, match="cannot read"):
        pages.main(pages.Options((str(tmp_path / "nowhere.md"),)))
