"""All experiments are run, the main results first, and what fails does not stop the others."""

from pathlib import Path

import pytest

from experiments import reproduce
from experiments.configs import known_configs, load_config
from sfr_theory import cli
from tests.refusals import refused

NO_RESULTS = {"demo", "precision"}
PUBLISHED = {path.stem for path in (Path(__file__).parents[2] / "results").glob("*.json")}


def test_every_figure_and_table_is_in_the_plan():
    whole = {stage.experiment for stage in reproduce.PLAN if not stage.agents}
    assert whole == set(known_configs()) - NO_RESULTS
    assert whole >= PUBLISHED


def test_the_main_agents_come_first():
    for number, stage in enumerate(reproduce.PLAN):
        if stage.agents:
            assert set(stage.agents) < set(load_config(stage.experiment).labels)
            assert reproduce.Stage(stage.experiment) in reproduce.PLAN[number:]
    assert [stage.experiment for stage in reproduce.PLAN[:3]] == [
        "object_collection_linear",
        "object_collection_general",
        "barreto",
    ]


@pytest.fixture
def called(monkeypatch):
    """What experiments.run would have been asked; `called.codes` are the exit codes by experiment."""

    class Called(list):
        codes: dict = {}  # noqa: RUF012

    calls = Called()

    def main(options):
        calls.append(options)
        return calls.codes.get(options.experiment, 0)

    monkeypatch.setattr(reproduce.run, "main", main)
    return calls


def options(tmp_path, profile="smoke", **more):
    page = str(tmp_path / "page.html")
    return reproduce.Options(profile, str(tmp_path / "r"), data=str(tmp_path / "d"), output=page, **more)


def test_at_the_papers_size_our_own_experiments_have_the_size_that_is_published(called, tmp_path):
    reproduce.main(options(tmp_path, "paper"))
    profiles = {o.experiment: o.profile for o in called}
    assert {name: size for name, size in profiles.items() if size != "paper"} == reproduce.FOR_PAPER


def test_all_stages_run_and_the_report_is_written(called, tmp_path):
    assert reproduce.main(options(tmp_path, workers=3)) == 0
    assert [(o.experiment, o.agents) for o in called] == [(s.experiment, s.agents) for s in reproduce.PLAN]
    assert {(o.profile, o.results, o.workers) for o in called} == {("smoke", str(tmp_path / "r"), 3)}
    assert (tmp_path / "page.html").exists()


def test_a_failure_is_said_at_the_end(called, tmp_path, capsys):
    called.codes = {"racer": 1}
    assert reproduce.main(options(tmp_path)) == 1
    assert len(called) == len(reproduce.PLAN)
    assert "not finished: racer" in capsys.readouterr().out


def test_an_interruption_stops_everything(called, tmp_path):
    called.codes = {"barreto": cli.EXIT_INTERRUPTED}
    assert reproduce.main(options(tmp_path)) == cli.EXIT_INTERRUPTED
    assert len(called) == 3
    assert not (tmp_path / "page.html").exists()


def test_an_unknown_profile_is_refused_before_anything_runs(called, tmp_path):
    with refused("no profile 'papr'"):
        reproduce.main(reproduce.Options("papr"))
    assert not called
