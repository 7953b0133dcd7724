"""Comparisons and tables say what the results say, and where they agree with the paper."""

import subprocess
import sys

import numpy as np
import pytest

from experiments.analysis import compare, tables
from experiments.analysis.compare import Agreement, Pair, Results, Versus
from experiments.config import load_config
from sfr_fa import statistics
from sfr_fa.runs import load
from sfr_theory import paper
from tests.experiments.synthetic import agent, setting, write_run
from tests.experiments.test_figures import AGENTS, GENERAL, KINDS, levels_run

SMALL = (3, 20, 2)


def written(folder, name, agents, returns, place=GENERAL, size=SMALL):
    return load.load(write_run(folder, name, [(place, agents)], returns, "reduced", size))


def steps_apart(place, setup, repetition, rng):
    """Agents do not overlap: level 100 k for agent k."""
    return np.full(3, 100.0 * list(KINDS).index(setup["label"]) + repetition)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return written(folder, "object_collection_general", AGENTS, steps_apart, size=(3, 20_000, 10))


def rows(sheet):
    """Each row by the names of the columns."""
    names = [column.name for column in sheet.columns]
    return [dict(zip(names, row, strict=True)) for row in sheet.rows]


def test_totals(run):
    row = rows(tables.totals(run, "general"))[1]
    # Totals of SF are 300 + 3 k for k = 0, ..., 9.
    assert row["agent"] == "SF"
    assert row["repetitions"] == "10 of 10"
    assert row["mean"] == row["median"] == "313.5"
    assert row["q1"] == "306.8"
    assert row["IQM [95 %]"].startswith("313.5 [")
    assert row["mean per task"] == "104.5"


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
    said = {"A": (("A", "B"),), "B": (("B", "A"),), "": ()}[ahead]
    table = paper.Table("mine", 3, 20, ("A", "B"), (value,), said)
    found = Versus("mine", "A", "B", (0.0, 0.0), statistics.compare(*samples))
    assert Pair(table, "A", "B", value, found).agreement is expected


def test_every_printed_pair_is_compared(run):
    pairs = {(pair.first, pair.second): pair for pair in compare.pairs(run, "general")}
    assert len(pairs) == 45
    # MB SFR-R has the highest level here, so SFR is not ahead of it as the text says.
    assert pairs["SFR", "MB SFR-R"].agreement is Agreement.ORDER
    assert pairs["SF", "SFR"].agreement is Agreement.AGREES
    assert pairs["SF-4", "SFR-R"].agreement is Agreement.SIGNIFICANCE  # printed 0.186
    shown = {row[""]: row for row in rows(tables.p_values(run, "general"))}
    assert shown["SF-R"]["SF"] == ""  # the triangle
    assert shown["SF"]["SF-R"] == "✓ <0.001\n(<0.001)\n[<0.001]"
    assert shown["SFR"]["MB SFR-R"] == "⇄ <0.001\n(<0.001)\n[<0.001]"
    assert shown["SF-4"]["SFR-R"] == "✗ <0.001\n(<0.001)\n[0.186]"


def test_pairs_that_were_not_run_are_counted(tmp_path):
    place = setting("linear", tasks="linear")
    small = written(tmp_path, "object_collection_linear", AGENTS[:2], steps_apart, place, (3, 20, 3))
    agreements = [pair.agreement for pair in compare.pairs(small, "linear")]
    assert agreements == [Agreement.TOO_FEW, *[Agreement.NOT_RUN] * 44]
    notes = " ".join(tables.p_values(small, "linear").notes)
    assert "44 more are printed" in notes
    assert "no p-value can be below 0.05" in notes


def test_a_run_of_ours_is_not_compared_with_the_paper(tmp_path):
    own = written(tmp_path, "single_task", AGENTS, steps_apart)
    assert not compare.pairs(own, "general")
    assert "paper's value" not in " ".join(tables.p_values(own, "general").notes)


# --- Times and rates


def test_times_are_compared_only_at_the_same_size(run, tmp_path):
    row = rows(tables.times([run]))[5]
    assert row["agent"] == "SFR"
    assert (row["ours, median"], row["range"]) == ("1.5 s", "1.5 s to 1.5 s")
    assert (row["paper"], row["times faster"]) == ("14 h", "-")
    assert "another size" in tables.times([run]).notes[-1]
    size = (300, 20_000, 1)
    full = written(tmp_path, "object_collection_general", AGENTS[:1], lambda *_: np.zeros(300), size=size)
    # 300 tasks of half a second against one hour.
    assert rows(tables.times([full]))[0]["times faster"] == "24"


def test_times_of_levels_are_put_together(tmp_path):
    [row] = rows(tables.times([levels_run(tmp_path, labels=("SF",))]))
    assert (row["setting"], row["n"]) == ("all levels", "21")


def test_best_rates(tmp_path):
    grid = [agent("SF", learning_rate=rate) for rate in (0.1, 0.2)]
    found = written(tmp_path, "grid", grid, lambda place, setup, *_: np.full(3, 100 * setup["learning_rate"]))
    assert tables.best_rates(found).rows == (("general", "SF", "α 0.2", "60", "2", "30", "0"),)
    # A mean of two repetitions is not compared with a mean of one.
    next(path for path in sorted(found.path.rglob("rep-01.json")) if "0.1" in str(path)).unlink()
    [unfinished] = rows(tables.best_rates(load.load(found.path)))
    assert (unfinished["best rates"], unfinished["second best"]) == ("unfinished: α 0.2", "-")
    assert next(tables.sheets(found)).title == "Best rates of the grid"


def test_levels(tmp_path):
    run = levels_run(tmp_path)
    last = rows(tables.levels(run))[6]
    assert last["error of the best linear model"] == "1.625"
    assert last["SF / SFR [95 %]"].startswith("0.400 [")
    titles = [sheet.title for sheet in tables.sheets(run)]
    assert titles == [tables.levels(run).title, "Time of one repetition"]


# --- Overview and ablation


def test_the_overview_by_hand(tmp_path):
    """Two repetitions of 3 tasks: means, standard errors and the ratio can be computed in the head."""
    levels = {"Q": 100.0, "SF": 120.0, "CSFR": 240.0}
    agents = [agent(label) for label in levels]

    def returns(place, setup, repetition, rng):
        return np.full(3, levels[setup["label"]] + 2 * repetition)

    run = written(tmp_path, "racer", agents, returns, setting("racer", "racer", "racer"))
    [row] = rows(tables.overview(Results([run])))
    assert row["n"] == "2"
    assert [row[name] for name in ("Q", "SF", "SFR", "MB SFR")] == [
        "101.0 ± 1.0", "121.0 ± 1.0", "241.0 ± 1.0", "-",
    ]  # fmt: skip
    assert row["SF / SFR [95 %]"] == "0.50 [0.50, 0.50]"
    assert (row["p"], row["p in the paper"]) == ("0.245", "<0.001")
    assert not tables.overview(Results([])).rows


def test_the_ablation_is_a_table_of_clipping_and_weights(tmp_path):
    labels = [f"{variant}, {weights} weights" for variant in tables.VARIANTS for weights in tables.INITIAL]
    assert set(labels) == set(load_config("ablation").labels)
    agents = [agent(label, label.split(",")[0].split()[0]) for label in labels]
    run = written(
        tmp_path, "ablation", agents, lambda place, setup, *_: np.full(3, 10.0 * agents.index(setup))
    )
    sheet = tables.ablation(run, "general")
    assert sheet.rows[1] == ("SFR", "30.0 ± 0.0", "40.0 ± 0.0", "50.0 ± 0.0")
    titles = [found.title for found in tables.sheets(run)]
    assert titles[0] == sheet.title
    assert not any("p-values" in title for title in titles)


def test_rates_that_all_share_are_said_once(tmp_path):
    run = written(tmp_path, "mine", [agent("Q"), agent("SF")], lambda *_: np.ones(3))
    sheet = tables.totals(run, "general")
    assert "rates" not in rows(sheet)[0]
    assert sheet.notes == ("All at α 0.005.",)


def test_tables_need_neither_matplotlib_nor_numba_nor_torch():
    """What compares and tabulates is quick to import."""

    code = (
        "import sys, experiments.analysis.claims; print({'matplotlib', 'numba', 'torch'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"


def test_the_command(run, capsys):
    assert tables.main(tables.Options((str(run.path),))) == 0
    shown = capsys.readouterr().out
    assert "general: p-values of all pairs" in shown
    assert "45 pairs that were run agree with the paper" in " ".join(shown.split())
