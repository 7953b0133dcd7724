"""Tables say what the results say, and where they agree with the paper."""

import json

import numpy as np
import pytest

from experiments import tables
from experiments.config import load_config
from experiments.tables import Agreement
from proofs_checks import p_values as printed
from sfr_fa.runs import load as runs
from sfr_fa.statistics import compare
from tests.experiments.synthetic import agent, setting, write_run
from tests.experiments.test_figures import AGENTS, GENERAL, KINDS, levels_run


def steps_apart(place, setup, repetition, rng):
    """Agents do not overlap: level 100 k for agent k."""
    return np.full(3, 100.0 * list(KINDS).index(setup["label"]) + repetition)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    size = (3, 20_000, 10)
    return runs.load(
        write_run(folder, "object_collection_general", [(GENERAL, AGENTS)], steps_apart, "reduced", size)
    )


def test_totals(run):
    sheet = tables.totals(run, "general")
    row = dict(zip(sheet.header, sheet.rows[1], strict=True))
    # Totals of SF are 300 + 3 k for k = 0, ..., 9.
    assert row["agent"] == "SF"
    assert row["repetitions"] == "10 of 10"
    assert row["mean"] == row["median"] == "313.5"
    assert row["q1"] == "306.8"
    assert row["IQM [95 %]"].startswith("313.5 [")
    assert row["mean a task"] == "104.5"


# --- Agreement with the printed tables


FAR, NEAR = (np.arange(10.0), 100 + np.arange(10.0)), (np.arange(10.0), np.arange(10.0) + 0.5)


@pytest.mark.parametrize(
    ("value", "ahead", "samples", "expected"),
    [
        ("<", "B", FAR, Agreement.AGREES),
        ("<", "", FAR, Agreement.AGREES),
        ("<", "A", FAR, Agreement.ORDER),
        ("0.049", "B", FAR, Agreement.AGREES),
        ("0.050", "B", FAR, Agreement.SIGNIFICANCE),
        ("0.186", "B", NEAR, Agreement.AGREES),
        ("0.186", "A", NEAR, Agreement.AGREES),  # who is ahead counts only where it is significant
        ("<", "B", NEAR, Agreement.SIGNIFICANCE),
        ("<", "B", (FAR[0][:3], FAR[1][:3]), Agreement.TOO_FEW),
    ],
)
def test_agreement(value, ahead, samples, expected):
    assert tables.agreement(value, ahead, "A", "B", compare(*samples)) is expected


def test_every_printed_pair_is_compared(run):
    pairs = list(tables.pairs(run, "general"))
    assert len(pairs) == 45
    by_name = {(pair.first, pair.second): pair for pair in pairs}
    # MB SFR-R has the highest level here, so SFR is not ahead of it as the text says.
    assert by_name["SFR", "MB SFR-R"].agreement is Agreement.ORDER
    assert by_name["SF", "SFR"].agreement is Agreement.AGREES
    assert by_name["SF-4", "SFR-R"].agreement is Agreement.SIGNIFICANCE  # printed 0.186
    sheet = tables.p_values(run, "general")
    assert sheet.rows[1][0] == "SF"
    assert sheet.rows[1][1] == ""  # the triangle
    assert sheet.rows[1][2] == "✓ <0.001\n(<0.001)\n[<0.001]"
    row = next(row for row in sheet.rows if row[0] == "SFR")
    assert row[-1] == "⇄ <0.001\n(<0.001)\n[<0.001]"
    row = next(row for row in sheet.rows if row[0] == "SF-4")
    assert row[sheet.header.index("SFR-R")] == "✗ <0.001\n(<0.001)\n[0.186]"


def test_pairs_that_were_not_run_are_counted(tmp_path):
    parts = [(setting("linear", tasks="linear"), AGENTS[:2])]
    small = runs.load(write_run(tmp_path, "object_collection_linear", parts, steps_apart, size=(3, 20, 3)))
    pairs = list(tables.pairs(small, "linear"))
    assert [pair.agreement for pair in pairs].count(Agreement.NOT_RUN) == 44
    assert pairs[0].agreement is Agreement.TOO_FEW
    notes = " ".join(tables.p_values(small, "linear").notes)
    assert "44 more are printed" in notes
    assert "no p-value can be below 0.05" in notes


def test_a_run_of_ours_is_not_compared_with_the_paper(tmp_path):
    own = runs.load(write_run(tmp_path, "single_task", [(GENERAL, AGENTS)], steps_apart, size=(3, 20, 2)))
    assert not list(tables.pairs(own, "general"))
    assert "paper's value" not in " ".join(tables.p_values(own, "general").notes)


def test_who_is_ahead_is_said_once_and_of_printed_agents():
    for table in printed.TABLES:
        pairs = [frozenset(pair) for pair in tables.AHEAD[table.name]]
        assert len(set(pairs)) == len(pairs)
        assert set().union(*pairs) <= set(table.agents)


def test_the_text_contradicts_its_own_tables_nowhere_but_where_the_ledger_says():
    """Pairs with a stated order contain all that proofs_checks calls reported differences."""
    for table, first, second in printed.REPORTED_DIFFERENCES:
        assert any({first, second} == set(pair) for pair in tables.AHEAD[table.name])


# --- Times and rates


def test_printed_hours_are_of_the_printed_agents():
    assert set(tables.HOURS) == {printed.LINEAR.name, printed.GENERAL.name, printed.RACER.name}
    for table in (printed.LINEAR, printed.GENERAL, printed.RACER):
        assert tuple(tables.HOURS[table.name].hours) == table.agents
    # The sums of the three printed lists, added up by hand.
    assert [sum(entry.hours.values()) for entry in tables.HOURS.values()] == [147, 199, 434]


def test_times_are_compared_only_at_the_same_size(run, tmp_path):
    sheet = tables.times(run)
    assert sheet.rows[5][1:] == ("SFR", "10", "1.5 s", "1.5 s to 1.5 s", "14 h", "-")
    assert "another size" in sheet.notes[-1]

    def flat(place, setup, repetition, rng):
        return np.zeros(300)

    parts = [(GENERAL, AGENTS[:1])]
    full = write_run(tmp_path, "object_collection_general", parts, flat, size=(300, 20_000, 1))
    # 300 tasks of half a second against one hour.
    assert tables.times(runs.load(full)).rows[0][3:] == ("2.5 min", "2.5 min to 2.5 min", "1 h", "24")


def test_best_rates(tmp_path):
    grid = [agent("SF", learning_rate=rate) for rate in (0.1, 0.2)]

    def returns(place, setup, repetition, rng):
        return np.full(3, 100 * setup["learning_rate"])

    found = runs.load(write_run(tmp_path, "grid", [(GENERAL, grid)], returns, size=(3, 20, 2)))
    assert tables.best_rates(found).rows == (("general", "SF", "α 0.2", "60", "2", "30", "0"),)
    # A mean of two repetitions is not compared with a mean of one.
    (folder,) = (tmp_path / "grid").rglob("manifest.json")
    next(path for path in sorted(folder.parent.rglob("rep-01.json")) if "0.1" in str(path)).unlink()
    (unfinished,) = tables.best_rates(runs.load(folder.parent)).rows
    assert (unfinished[2], unfinished[5]) == ("unfinished: α 0.2", "-")
    assert next(tables.sheets(found)).title == "Best rates of the grid"


def test_levels(tmp_path):
    sheet = tables.levels(levels_run(tmp_path))
    assert sheet.rows[6][0] == "1.625"
    assert sheet.rows[6][4].startswith("0.400 [")
    assert [s.title for s in tables.sheets(levels_run(tmp_path / "again"))] == [
        sheet.title,
        "Time of one repetition",
    ]


# --- Overview and ablation


def test_the_overview_by_hand(tmp_path):
    """Two repetitions of 3 tasks: means, standard errors and the ratio can be computed in the head."""
    place = setting("racer", "racer", "racer")
    agents = [agent("Q"), agent("SF"), agent("CSFR")]
    levels = {"Q": 100.0, "SF": 120.0, "CSFR": 240.0}

    def returns(place, setup, repetition, rng):
        return np.full(3, levels[setup["label"]] + 2 * repetition)

    run = runs.load(write_run(tmp_path, "racer", [(place, agents)], returns, "smoke"))
    [row] = tables.overview([run]).rows
    assert row[0].startswith("racer")
    assert row[1:6] == ("2", "101.0 ± 1.0", "121.0 ± 1.0", "241.0 ± 1.0", "-")
    assert row[6].startswith("0.50 [0.50, 0.50]")
    assert row[7:] == ("0.245", "<0.001")
    assert not tables.overview([]).rows


def test_errors_have_as_many_digits_as_they_tell(tmp_path):
    def returns(place, setup, repetition, rng):
        return np.full(3, 40_000.0 + 1000 * repetition)

    run = runs.load(write_run(tmp_path, "mine", [(GENERAL, [agent("SF")])], returns, "smoke"))
    assert tables.a_task(run, "general", "SF") == "40,500 ± 500"
    assert tables.a_task(run, "general", "SFR") == "-"


def test_the_ablation_is_a_table_of_clipping_and_weights(tmp_path):
    agents = [
        agent(f"{variant}, {weights} weights", "SF" if variant == "SF" else "SFR")
        for variant in tables.VARIANTS
        for weights in tables.INITIAL
    ]
    place = setting("linear", tasks="linear")

    def returns(place, setup, repetition, rng):
        return np.full(3, 10.0 * agents.index(setup))

    run = runs.load(write_run(tmp_path, "ablation", [(place, agents)], returns, "smoke"))
    sheet = tables.ablation(run, "linear")
    assert [row[0] for row in sheet.rows] == list(tables.VARIANTS)
    assert [row[1:] for row in sheet.rows] == [
        ("0.0 ± 0.0", "10.0 ± 0.0", "20.0 ± 0.0"),
        ("30.0 ± 0.0", "40.0 ± 0.0", "50.0 ± 0.0"),
        ("60.0 ± 0.0", "70.0 ± 0.0", "80.0 ± 0.0"),
    ]
    titles = [s.title for s in tables.sheets(run)]
    assert titles[0] == sheet.title
    assert not any("p-values" in title for title in titles)


def test_the_ablation_has_the_agents_of_its_config():
    labels = {f"{variant}, {weights} weights" for variant in tables.VARIANTS for weights in tables.INITIAL}
    assert labels == set(load_config("ablation").labels)


def test_rates_that_all_share_are_said_once(tmp_path):
    same = [agent("Q"), agent("SF")]
    run = runs.load(write_run(tmp_path, "mine", [(GENERAL, same)], lambda *_: np.ones(3), "smoke"))
    sheet = tables.totals(run, "general")
    assert "rates" not in sheet.header
    assert sheet.notes == ("All at α 0.005.",)


def test_times_of_levels_are_put_together(tmp_path):
    parts = [(setting(f"level_{k}", tasks=f"nonlinearity_{k}"), [agent("SF")]) for k in range(7)]
    run = runs.load(write_run(tmp_path, "nonlinearity", parts, lambda *_: np.ones(3), "smoke"))
    assert tables.times(run).rows == (("all levels", "SF", "14", "1.5 s", "1.5 s to 1.5 s", "-", "-"),)


# --- Forms


def test_words_are_set_to_the_left_and_numbers_to_the_right():
    sheet = tables.Sheet("", ("a", "b", "c", "d"), (("1", "2 s", "x", ""), ("1", "-", "3", "<0.001")))
    assert sheet.to_markdown().splitlines()[1] == "|---|---:|---|---:|"


def test_forms_escape_what_they_must():
    sheet = tables.Sheet("A & B", ("x", "<y>"), (("a|b", "1\n<2"),), ("note",))
    assert "| a\\|b | 1<br>&lt;2 |" in sheet.to_markdown()
    assert "<td class=number>1<br>&lt;2</td>" in sheet.to_html()
    assert "<h4>A &amp; B</h4>" in sheet.to_html()


def test_the_command(run, tmp_path, capsys):
    files = {"markdown": str(tmp_path / "t.md"), "html": str(tmp_path / "t.html"), "json": "-"}
    assert tables.main(tables.Options((str(run.path),), **files)) == 0
    written = capsys.readouterr()
    pairs = json.loads(written.out)[str(run.path)]
    assert len(pairs) == 45
    assert pairs[0]["ours"]["ahead"] == "SF"
    assert "general: p-values of all pairs" in written.err
    assert "### general: p-values of all pairs" in (tmp_path / "t.md").read_text()
    assert "<table class='sheet'>" in (tmp_path / "t.html").read_text()
