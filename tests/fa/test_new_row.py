"""A new agent is a new row: declared once, it goes through all that the agents of the paper go through."""

import importlib

import numpy as np
import pytest

from experiments import watch
from sfr_fa.agents import AgentSpec, agent_spec, make_agent
from sfr_fa.agents.policies import start_afresh
from sfr_fa.agents.specs import at_features, environment, indicator, learned
from sfr_fa.analysis import figures
from sfr_fa.engines import ENGINES, make_engine
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.runs import load
from sfr_fa.tasks import sample_general_task
from tests.fa.tiny import run_config, write_config
from tests.refusals import refused

# SFR-R that forgets its policies: no agent of the paper.
ROW = AgentSpec(environment, indicator, learned(at_features), start_afresh)
NAME = f"{__name__}:ROW"


def test_a_row_says_what_it_is():
    assert agent_spec(NAME) is ROW
    assert ROW.family == "SFR"
    assert ROW.rates == ("learning_rate", "reward_learning_rate")
    assert (ROW.learns_rewards, ROW.learns_features, ROW.fits_rewards) == (True, False, False)


def test_an_agent_is_made_from_it():
    agent = make_agent(ROW, 113, 4, ObjectCollection().feature_space, reward_learning_rate=0.1)
    for _ in range(2):
        agent.start_task()
    assert agent.num_policies == 1


def test_both_engines_run_it_on_the_same_path():
    results = []
    for name in ENGINES:
        engine = make_engine(name, ObjectCollection(), NAME, reward_learning_rate=0.1)
        tasks = [sample_general_task(engine.streams.tasks) for _ in range(2)]
        results.append(np.concatenate([engine.run_task(task, 40).actions for task in tasks]))
        assert engine.name == name
    np.testing.assert_array_equal(*results)


@pytest.fixture
def config(tmp_path):
    row = f'AgentSetup("mine", "{NAME}", reward_learning_rate=0.1), AgentSetup("SFR", "SFR"),'
    return write_config(tmp_path / "mine.py", agents=row, tasks=3, repetitions=2)


def test_a_config_names_it_and_a_figure_shows_it(config, tmp_path, capsys):
    assert run_config(config, tmp_path / "r", dry_run=True) == 0
    assert "mine" in capsys.readouterr().out
    assert not (tmp_path / "r").exists()
    assert run_config(config, tmp_path / "r") == 0
    looks = figures.looks(load.load(tmp_path / "r/tiny/smoke").in_setting("general"))
    assert looks["mine"].colour == looks["SFR"].colour, "they are of one family"
    assert looks["mine"].line != looks["SFR"].line


def test_reading_results_imports_no_module_that_they_name(config, tmp_path, monkeypatch):
    assert run_config(config, tmp_path / "r") == 0
    monkeypatch.setattr(importlib, "import_module", None)
    figures.looks(load.load(tmp_path / "r/tiny/smoke").in_setting("general"))


def test_a_film_shows_it(tmp_path):
    path = tmp_path / "film.gif"
    options = watch.Options(agent=NAME, tasks=1, steps=20, frames=3, size=64, output=str(path))
    assert watch.main(options) == 0
    assert path.read_bytes().startswith(b"GIF")


def test_a_row_that_lacks_a_rate_is_refused_before_anything_is_written(tmp_path):
    config = write_config(tmp_path / "mine.py", agents=f'AgentSetup("mine", "{NAME}"),')
    with refused("general, mine:", "needs reward_learning_rate"):
        run_config(config, tmp_path / "r")
    assert not (tmp_path / "r").exists()
