"""The paper's figures show the numbers of the results; the command writes all of a run."""

import numpy as np
import pytest
from PIL import Image

from experiments.analysis import figures
from sfr_fa.runs import load as runs
from tests.commands import ROOT
from tests.experiments.synthetic import agent, all_agents, setting, write_run
from tests.refusals import refused

COMMITTED = ROOT / "docs" / "images" / "environments.png"


@pytest.fixture
def run(tmp_path):
    return all_agents(tmp_path)


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


def test_the_command_writes_svg_and_png_and_says_what_is_missing(run, tmp_path, capsys):
    assert figures.main(figures.Options((str(run.path),), str(tmp_path / "out"))) == 0
    assert "SF has 2 of 3 repetitions; missing: 2" in capsys.readouterr().out
    written = sorted(path.name for path in (tmp_path / "out" / "mine" / "reduced").iterdir())
    assert written == [f"{n}_general.{e}" for n in ("curves", "total_return") for e in ("png", "svg")]


def test_bad_input_gets_a_sentence(tmp_path):
    with refused("holds no runs"):
        figures.main(figures.Options((str(tmp_path),)))
    with refused("must be svg, png or pdf"):
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
