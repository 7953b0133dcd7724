"""Comparisons say what the results say and where they agree with the paper; tables show them."""

import numpy as np
import pytest

from experiments import tables
from experiments.analysis import compare
from experiments.analysis.compare import Agreement, Pair, Results, Versus
from experiments.configs import load_config
from experiments.render import render
from sfr_fa import statistics
from sfr_fa.runs import load
from sfr_theory import paper
from tests.experiments.synthetic import AGENTS, GENERAL, KINDS, agent, flat, key_of, setting, write_run
from tests.experiments.test_figures import levels_run


def written(folder, name, agents, returns, place=GENERAL, size=(3, 20, 2), **more):
    return load.load(write_run(folder, name, [(place, agents)], returns, "reduced", size, **more))


steps_apart = flat(lambda _, setup, repetition: 100 * list(KINDS).index(setup["label"]) + repetition, 3)
"""Agents do not overlap: level 100 k for agent k."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    return written(folder, "object_collection_general", AGENTS, steps_apart, size=(3, 20_000, 10))


def shown(run):
    """All tables of a run as Markdown."""
    return render("tables.md", runs=[run], compare=compare)


@pytest.fixture(scope="module")
def text(run):
    return shown(run)


def test_standings_and_effects(run, text):
    # Totals of SF are 300 + 3 k for k = 0, ..., 9.
    assert compare.per_task(run, "general", "SF").mean == 104.5
    effects = {versus.first: (versus, ratio) for versus, ratio in compare.effects(run, "general")}
    assert set(effects) == set(KINDS) - {"SFR"}
    assert effects["SF"][1].estimate == pytest.approx(313.5 / 1513.5)
    assert effects["SF"][0].test.difference == -1200
    assert (effects["SF"][0].ahead, effects["MB SFR"][0].ahead) == ("SFR", "MB SFR")
    assert "| SF | α 0.005 |" not in text  # rates that all share are said once
    assert "| SF | 10 of 10 | 313.5 | 9.083 | 306.8 | 313.5 | 320.2 | 313.5 [" in text
    assert "All at α 0.005." in text


def test_the_higher_mean_is_ahead_and_a_tie_has_none(tmp_path):
    """Not who wins more often: two of three repetitions of A beat B, whose mean is higher."""
    returns = {"A": (2.0, 2.0, 2.0), "B": (1.0, 1.0, 7.0), "C": (3.0, 1.0, 2.0)}
    mine = written(
        tmp_path,
        "mine",
        [agent(label) for label in returns],
        lambda place, setup, repetition, rng: [returns[setup["label"]][repetition]],
        size=(1, 10, 3),
    )
    found = compare.versus(mine, "general", "A", "B")
    assert found.test.superiority > 0.5
    assert found.ahead == "B"
    assert compare.versus(mine, "general", "A", "C").ahead == ""


def test_the_paired_test_sees_what_repetitions_share(tmp_path):
    """A is ahead in every repetition by less than these differ."""

    def returns(place, setup, repetition, rng):
        return [10.0 * repetition + (0.1 * (1 + repetition) if setup["label"] == "A" else 0)] * 2

    place, size = setting("general"), (2, 10, 8)
    lost = {key_of(place, agent("A"), 7), key_of(place, agent("B"), 0)}
    mine = written(tmp_path, "mine", [agent("A"), agent("B")], returns, place, size, leave_out=lost)
    for tasks in (slice(None), slice(1)):
        found = compare.versus(mine, "general", "A", "B", tasks)
        assert not found.is_significant
        assert found.repetitions == (7, 7)
        assert found.paired_p == pytest.approx(2 / 2**6)  # the six that both have


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


def test_every_printed_pair_is_compared(run, text):
    pairs = {(pair.first, pair.second): pair for pair in compare.pairs(run, "general")}
    assert len(pairs) == 45
    # MB SFR-R has the highest level here, so SFR is not ahead of it as the text says.
    assert pairs["SFR", "MB SFR-R"].agreement is Agreement.ORDER
    assert pairs["SF", "SFR"].agreement is Agreement.AGREES
    assert pairs["SF-4", "SFR-R"].agreement is Agreement.SIGNIFICANCE  # printed 0.186
    below = "&lt;0.001<br>(&lt;0.001)<br>"
    assert f"| SFR |  |  |  |  |  | ⇄ {below}[&lt;0.001] |" in text  # the triangle
    assert f"✗ {below}[0.186]" in text
    agree = sum(pair.agreement is Agreement.AGREES for pair in pairs.values())
    assert f"{agree} of 45 pairs that were run agree with the paper" in text


def test_pairs_that_were_not_run_are_counted(tmp_path):
    place = setting("linear", tasks="linear")
    small = written(tmp_path, "object_collection_linear", AGENTS[:2], steps_apart, place, (3, 20, 3))
    agreements = [pair.agreement for pair in compare.pairs(small, "linear")]
    assert agreements == [Agreement.TOO_FEW, *[Agreement.NOT_RUN] * 44]
    assert "44 more are printed" in shown(small)
    assert "no p-value can be below 0.05" in shown(small)


def test_a_run_of_ours_is_not_compared_with_the_paper(tmp_path):
    own = written(tmp_path, "single_task", AGENTS, steps_apart)
    assert not compare.pairs(own, "general")
    assert "paper's value" not in shown(own)


# --- Times, rates, levels


def test_times_are_compared_only_at_the_same_size(run, tmp_path):
    time = compare.times(run)[5]
    assert (time.agent, time.median, time.hours, time.times_faster) == ("SFR", 1.5, 14, None)
    assert "| SFR | 10 | 1.5 s | 1.5 s to 1.5 s | 14 h | - |" in shown(run)
    assert "another size" in shown(run)
    size = (300, 20_000, 1)
    full = written(tmp_path, "object_collection_general", AGENTS[:1], lambda *_: np.zeros(300), size=size)
    # 300 tasks of half a second against one hour.
    assert compare.times(full)[0].times_faster == 24


def test_levels_are_compared_with_sfr_and_timed_together(tmp_path):
    run = levels_run(tmp_path)
    last = compare.levels(run)[6]
    assert (last.error, last.ratios["SF"].estimate) == (1.625, pytest.approx(0.4))
    assert [(time.setting, len(time.seconds)) for time in compare.times(run)] == [("", 21)] * 3
    assert "| 1.625 | 132 | 52.8 | 13.2 | 0.400 [0.400, 0.400] |" in shown(run)
    assert "return over all tasks" not in shown(run)


def test_best_rates(tmp_path):
    grid = [agent("SF", learning_rate=rate) for rate in (0.1, 0.2)]
    found = written(tmp_path, "grid", grid, lambda place, setup, *_: np.full(3, 100 * setup["learning_rate"]))
    assert "| general | SF | α 0.2 | 60 | 30 | 2 | 0 | 4 | 6 s | 6 s |" in shown(found)
    # A mean of two repetitions is not compared with a mean of one.
    next(path for path in sorted(found.path.rglob("rep-01.json")) if "0.1" in str(path)).unlink()
    again = shown(load.load(found.path))
    assert "| general | SF | unfinished: α 0.2 | 60 | - | 2 | 0 | 3 | 4.5 s | 6 s |" in again


# --- Overview and ablation


def test_the_overview_by_hand(tmp_path):
    """Two repetitions of 3 tasks: means, standard errors and the ratio can be computed in the head."""
    levels = {"Q": 100.0, "SF": 120.0, "CSFR": 240.0}
    returns = flat(lambda _, setup, repetition: levels[setup["label"]] + 2 * repetition, 3)
    place = setting("racer", "racer", "racer")
    run = written(tmp_path, "racer", [agent(label) for label in levels], returns, place)
    assert render("overview.md", results=Results([run]), compare=compare).splitlines()[2] == (
        "| racer (SFR is CSFR) | 2 | 101.0 ± 1.0 | 121.0 ± 1.0 | 241.0 ± 1.0 | - | 0.50 [0.48, 0.53] | 0.245 "
        "| 0.500 | &lt;0.001 |"
    )
    assert not compare.overview(Results([]))


def test_the_ablation_is_a_table_of_clipping_and_weights(tmp_path):
    labels = [f"{v}, {weights} weights" for v in compare.VARIANTS for weights in compare.INITIAL]
    assert set(labels) > set(load_config("ablation").labels)
    agents = [agent(label, label.split(",")[0].split()[0]) for label in labels]
    returns = flat(lambda _, setup, repetition: 10 * agents.index(setup), 3)
    run = written(tmp_path, "ablation", agents, returns)
    assert compare.ablation(run, "general")["SFR"]["matched"].mean == 70
    assert "| SFR | 60.0 ± 0.0 | 70.0 ± 0.0 | 80.0 ± 0.0 |" in shown(run)
    assert compare.whole_ablation(run, "general")
    part = written(tmp_path / "part", "ablation", agents[:1], returns)
    assert compare.whole_ablation(part, "general") is None
    assert "p-values" not in shown(run)


def test_the_command(run, capsys):
    assert tables.main(tables.Options((str(run.path),))) == 0
    assert capsys.readouterr().out == shown(run)
