"""Figures show the numbers of the results, each agent distinguishable, and nothing else happens."""

from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.collections import PolyCollection
from PIL import Image

from experiments.analysis import figures
from sfr_fa.runs import load as runs
from sfr_theory.errors import InputError
from tests.experiments.synthetic import agent, key_of, setting, write_run

COMMITTED = Path(__file__).parents[2] / "docs" / "images" / "environments.png"
GENERAL = setting("general")
KINDS = {
    "Q": "Q", "SF": "SF", "SF-R": "SF-R", "SF-4": "SF-h", "SF-8": "SF-h", "SFR": "SFR", "SFR-R": "SFR-R",
    "CSFR-4": "CSFR-h", "MB SFR": "MB SFR", "MB SFR-R": "MB SFR-R",
}  # fmt: skip
AGENTS = [agent(label, kind) for label, kind in KINDS.items()]


def returns(place, setup, repetition, rng):
    """Repetitions 0, 1, 2 differ by 0, 1, 2; task t adds t; each agent has its own level."""
    return 10.0 * list(KINDS).index(setup["label"]) + repetition + np.arange(12)


@pytest.fixture
def run(tmp_path):
    lost = {key_of(GENERAL, AGENTS[1], 2)}
    return runs.load(write_run(tmp_path, "mine", [(GENERAL, AGENTS)], returns, leave_out=lost))


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
    assert "profile reduced: 12 tasks x 20,000 steps x 3 repetitions" in picture.caption


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


def levels_run(folder, repetitions=3, labels=("Q", "SF", "SFR")):
    agents = [agent(label) for label in labels]
    parts = [(setting(f"level_{k}", tasks=f"nonlinearity_{k}"), agents) for k in range(7)]

    def returns(place, setup, repetition, rng):
        share = {"Q": 0.1, "SF": 1 - 0.1 * int(place[-1]), "SFR": 1.0}[setup["label"]]
        return np.full(12, share * (10.0 + repetition))

    return runs.load(write_run(folder, "nonlinearity", parts, returns, size=(12, 20, repetitions)))


def test_ratios_over_the_level_of_nonlinearity(tmp_path):
    run = levels_run(tmp_path)
    axes = figures.nonlinearity(run).figure.axes[0]
    ratios = {container.get_label(): container.lines[0].get_ydata() for container in axes.containers}
    np.testing.assert_allclose(ratios["SF / SFR"], 100 - 10 * np.arange(7))
    np.testing.assert_allclose(ratios["Q / SFR"], 10.0)
    assert [picture.name for picture in figures.pictures(run)] == ["nonlinearity"]


def test_one_repetition_is_drawn_without_intervals(tmp_path):
    figures.nonlinearity(levels_run(tmp_path, repetitions=1))
    run = runs.load(write_run(tmp_path, "one", [(GENERAL, AGENTS[:2])], returns, size=(12, 10, 1)))
    assert not figures.curves(run, "general").figure.axes[0].collections
    figures.total_return(run, "general").encoded("png")


def test_the_same_results_give_the_same_files(run):
    first, again = (figures.total_return(run, "general").encoded("svg") for _ in range(2))
    assert first == again
    assert ElementTree.fromstring(first).tag.endswith("svg")
    assert figures.curves(run, "general").encoded("png").startswith(b"\x89PNG")


def test_the_command_writes_svg_and_png_and_says_what_is_missing(run, tmp_path, capsys):
    assert figures.main(figures.Options((str(run.path),), str(tmp_path / "out"))) == 0
    assert "SF has 2 of 3 repetitions; missing: 2" in capsys.readouterr().out
    written = sorted(path.name for path in (tmp_path / "out" / "mine" / "reduced").iterdir())
    assert written == [f"{n}_general.{e}" for n in ("curves", "total_return") for e in ("png", "svg")]


def test_bad_input_gets_a_sentence(tmp_path):
    with pytest.raises(InputError, match="holds no runs"):
        figures.main(figures.Options((str(tmp_path),)))
    with pytest.raises(InputError, match="must be svg, png or pdf"):
        figures.main(figures.Options((str(tmp_path),), formats=("bmp",)))


# --- Environments


def test_the_environments_are_drawn_alike_each_time():
    first = figures.environments()
    figures.environments.cache_clear()
    second = figures.environments()
    assert len(first) == 3
    assert list(map(figures.small_png, first.values())) == list(map(figures.small_png, second.values()))


def test_the_picture_of_the_readme_is_the_one_of_the_command(tmp_path):
    options = figures.Options(environments=str(tmp_path / "e.png"))
    assert figures.main(options) == 0
    pictures = [
        np.array(Image.open(path).convert("RGB"), dtype=float) for path in (tmp_path / "e.png", COMMITTED)
    ]
    assert pictures[0].shape == pictures[1].shape
    assert (
        np.abs(pictures[0] - pictures[1]).mean() < 2
    )  # fonts may differ a little between versions of Pillow


def test_agents_without_clipping_have_a_colour_of_their_own(tmp_path):
    agents = [agent("SFR"), agent("free", "SFR", clipping="none")]
    run = runs.load(write_run(tmp_path, "mine", [(GENERAL, agents)], lambda *_: np.ones(12)))
    styles = figures.looks(run.in_setting("general"))
    assert styles["SFR"].colour != styles["free"].colour
