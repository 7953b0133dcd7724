"""Figures show the numbers of the results, each agent distinguishable, and nothing else happens."""

from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.collections import PolyCollection

from sfr_fa.analysis import figures
from sfr_fa.runs import load as runs
from tests.experiments.synthetic import AGENTS, GENERAL, KINDS, agent, all_agents, apart, write_run


@pytest.fixture
def run(tmp_path):
    return all_agents(tmp_path)


def test_curves_are_means_with_standard_errors(run):
    picture = figures.curves(run, "general")
    axes = picture.figure.axes[0]
    lines = {line.get_label(): line.get_ydata() for line in axes.lines}
    np.testing.assert_allclose(lines["SFR"], 50 + 1 + np.arange(12))
    np.testing.assert_allclose(lines["SF"], 10 + 0.5 + np.arange(12))  # repetitions 0 and 1 only
    bands = [band for band in axes.collections if isinstance(band, PolyCollection)]
    widths = [np.ptp(band.get_paths()[0].vertices[:, 1]) - 11 for band in bands]
    # Twice the standard error: of 0, 1, 2 it is 1/sqrt(3), of 0, 1 it is 1/2.
    np.testing.assert_allclose(widths[0], 2 / np.sqrt(3))
    np.testing.assert_allclose(widths[1], 1.0)
    assert "3 repetitions (fewer: SF 2)" in picture.caption
    assert picture.caption.endswith("profile reduced: 12 tasks x 20,000 steps")


def test_the_legend_follows_the_order_at_the_end(run):
    legend = figures.curves(run, "general").figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == list(KINDS)[::-1]


def test_long_runs_are_smoothed_and_the_caption_says_so(tmp_path):
    def rising(place, setup, repetition, rng):
        return np.arange(90.0)

    run = runs.load(write_run(tmp_path, "long", [(GENERAL, [AGENTS[0]])], rising, size=(90, 10, 2)))
    picture = figures.curves(run, "general")
    assert "running mean over 3 tasks" in picture.caption
    line = picture.figure.axes[0].lines[0].get_ydata()
    assert line[0] == 0.5
    assert line[40] == 40.0


def test_box_plots_have_a_dot_for_each_repetition(run):
    axes = figures.total_return(run, "general").figure.axes[0]
    assert axes.get_xlim()[0] == 0.0  # lengths can be compared
    dots = [line for line in axes.lines if line.get_linestyle() == "None"]
    assert [len(line.get_xdata()) for line in dots] == [3, 2, *[3] * 8]
    total = 12 * 50 + 66  # level, and 0 + ... + 11
    assert dots[5].get_xdata().tolist() == [total, total + 12, total + 24]
    medians = [line.get_xdata()[0] for line in axes.lines if line.get_linewidth() == 2.4]
    assert medians[5] == total + 12
    assert [text.get_text() for text in axes.get_yticklabels()] == list(KINDS)


def test_agents_differ_without_colour(run):
    looks = figures.looks(run.in_setting("general"))
    assert len({look.marker for look in looks.values()}) == len(KINDS)
    assert len({(look.colour, look.line) for look in looks.values()}) == len(KINDS)
    assert looks["SF"].colour == looks["SF-4"].colour != looks["SFR"].colour


def test_one_repetition_is_drawn_without_bands(tmp_path):
    run = runs.load(write_run(tmp_path, "one", [(GENERAL, AGENTS[:2])], apart, size=(12, 10, 1)))
    picture = figures.curves(run, "general")
    assert not picture.figure.axes[0].collections
    assert picture.numbers["panels"][0]["series"][0]["error"] == [None] * 12
    figures.total_return(run, "general").encoded("png")


def test_the_same_results_give_the_same_files(run):
    first, again = (figures.total_return(run, "general").encoded("svg") for _ in range(2))
    assert first == again
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert figures.curves(run, "general").encoded("png").startswith(b"\x89PNG")


def test_kinds_of_initial_weights_have_a_panel_each(tmp_path):
    """With one scale, and the same agent under the same name and colour in all."""
    agents = [
        agent(f"{label}, {weights}", kind, initial_weights=weights, clipping=clipping)
        for label, kind, clipping in (
            ("SF", "SF", "cumulant"),
            ("SFR", "SFR", "cumulant"),
            ("free", "SFR", "none"),
        )
        for weights in ("paper", "zero")
    ]
    run = runs.load(write_run(tmp_path, "mine", [(GENERAL, agents)], lambda *_: np.arange(12.0)))
    picture = figures.curves(run, "general")
    first, second = picture.figure.axes
    assert first.get_ylim() == second.get_ylim()
    names = [[line.get_label() for line in axes.lines] for axes in (first, second)]
    assert names[0] == names[1] == ["SF", "SFR", "SFR without clipping"]
    colours = [[line.get_color() for line in axes.lines] for axes in (first, second)]
    assert colours[0] == colours[1]
    assert len(set(colours[0])) == 3
    assert len(picture.numbers["panels"]) == 2


def test_numbers_under_the_pointer_are_those_of_the_figure(run):
    """What look.js is told: the place of series k, and mean, error and range over its repetitions."""
    picture = figures.curves(run, "general")
    found = picture.numbers
    names = [name for name, _ in found["series"]]
    [panel] = found["panels"]
    assert panel["at"] == list(range(1, 13))
    assert panel["ylim"] == list(picture.figure.axes[0].get_ylim())
    shown = panel["series"][names.index("SF")]
    assert shown["n"] == 2  # one is lost
    np.testing.assert_allclose(shown["mean"], 10.5 + np.arange(12))
    np.testing.assert_allclose(shown["low"], 10 + np.arange(12))
    np.testing.assert_allclose(shown["high"], 11 + np.arange(12))
    np.testing.assert_allclose(shown["error"], 0.5)
    assert f'id="s{names.index("SF")}-line-0"' in picture.encoded("svg").decode()
    rows = figures.total_return(run, "general").numbers["panels"][0]["rows"]
    assert rows[1][-1] == "repetitions: 0: 186, 1: 198"
