"""The comparison with a peer: small runs, and a page whose table is that of its results."""

import importlib.util

import numpy as np
import pytest

from experiments import peers
from tests.commands import ROOT
from tests.refusals import refused

pytestmark = pytest.mark.filterwarnings("ignore:.*precision lowered by casting")


def options(path, **changes):
    small = {"environments": ("deep-sea-treasure",), "agents": ("SFR",), "seeds": 1, "train_steps": 9,
             "few_steps": 2, "output": str(path)}  # fmt: skip
    return peers.Options(**(small | changes))


@pytest.mark.parametrize("environment", peers.WORLDS)
def test_a_small_run_of_each_environment(environment, tmp_path, capsys):
    path = tmp_path / "peers.csv"
    assert peers.main(options(path, environments=(environment,), agents=("SF", "SFR", "CSFR"))) == 0
    rows = peers.read_rows(path)
    found = {(row.agent, row.utility, row.steps) for row in rows}
    names = {"new weights 1", "new weights 2", *peers.WORLDS[environment].other}
    assert {(agent, name, steps) for agent in ("SF", "SFR") for name in names for steps in (0, 2)} <= found
    additive = [name for name, task in peers.WORLDS[environment].other.items() if hasattr(task, "component")]
    assert {name for agent, name, _ in found if agent == "CSFR"} == {
        "new weights 1",
        "new weights 2",
        *additive,
    }
    assert np.isfinite([row.discounted_return for row in rows]).all()
    assert environment in capsys.readouterr().out


def test_what_is_there_is_not_run_again(tmp_path, monkeypatch):
    path = tmp_path / "peers.csv"
    peers.main(options(path))
    before = path.read_bytes()
    monkeypatch.setattr(peers, "ours", lambda *_: pytest.fail("run again"))
    assert peers.main(options(path)) == 0
    peers.write_rows(peers.read_rows(path), path)
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("changes", "place"), [({"train_steps": 12}, "--train-steps 12"), ({"few_steps": 3}, "--few-steps 3")]
)
def test_results_of_other_sizes_are_not_taken_for_its_own(changes, place, tmp_path):
    path = tmp_path / "peers.csv"
    peers.write_rows([peers.Row("sea", "SFR", 0, 9, "new weights 1", True, 2, 1.0, 1.0, 1.0)], path)
    with refused("peers.csv", place, "another --output", unchanged=path.read_bytes):
        peers.main(options(path, **changes))


def test_another_table_is_not_written_over(tmp_path):
    path = tmp_path / "precious.csv"
    path.write_text("name,value\n")
    with refused("precious.csv", "columns", unchanged=path.read_bytes):
        peers.main(options(path))


def test_means_and_intervals_are_over_seeds():
    def row(seed, utility, earned):
        return peers.Row("sea", "SFR", seed, 9, utility, True, 0, earned, 2.0, 0.0)

    rows = [row(0, "new weights 1", 1.0), row(0, "new weights 2", 3.0), row(1, "new weights 1", 4.0)]
    # Means of the seeds are 2 and 4; Student's t with one degree of freedom is 12.706.
    assert "| sea | new weights | 0 | 3.00 ± 12.71 |" in peers.markdown(rows)


@pytest.mark.parametrize(
    ("changes", "place"),
    [({"agents": ("SFX",)}, "SFX"), ({"environments": ("sea",)}, "sea"), ({"seeds": 0}, "--seeds"),
     ({"seeds": 10**30}, "--seeds")],
)  # fmt: skip
def test_bad_input(changes, place, tmp_path):
    with refused(place):
        peers.main(options(tmp_path / "peers.csv", **changes))


@pytest.mark.skipif(importlib.util.find_spec("morl_baselines") is not None, reason="the peer is installed")
def test_without_the_peer_a_sentence_says_what_to_install(tmp_path):
    with refused("pip install morl-baselines"):
        peers.main(options(tmp_path / "peers.csv", agents=("GPI-LS",)))


def test_the_page_shows_the_table_of_the_results_or_says_that_there_are_none():
    rows = peers.read_rows(ROOT / "results" / "peers.csv")
    page = (ROOT / "docs" / "peers.md").read_text()
    assert (peers.markdown(rows) if rows else "has not been run") in page
