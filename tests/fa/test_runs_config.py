"""Experiments as data: a user's own configs are found, unfold into trials, or are refused with a sentence."""

import itertools
import json
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from experiments.configs import pendulum
from sfr_fa.runs import trial as trial_module
from sfr_fa.runs.config import (
    AgentSetup,
    ExperimentConfig,
    Part,
    Profile,
    Setting,
    Trial,
    file_name,
    grid,
    load_config,
    thing,
)
from sfr_fa.runs.store import RunFolder
from sfr_fa.runs.trial import run_trial
from sfr_fa.streams import stream
from tests.fa.tiny import write_config
from tests.refusals import refused


def returns(tmp_path, steps=200, **setup):
    setting = Setting("linear", "object_collection", "linear", gamma=0.95)
    agent = AgentSetup("agent", precision="float64", **setup)
    trial = Trial(setting, agent, 0, seed=1, tasks=3, steps=steps, engine="reference")
    folder = RunFolder(tmp_path / f"{setup}")
    run_trial(trial, folder)
    return [(row.total_return, row.gpi_current) for row in folder.read_result(trial.key).rows]


def test_a_config_may_name_what_it_defines_itself(tmp_path, monkeypatch):
    """As those of experiments/configs do: a copy of one is a template."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.setitem(sys.modules, "taken", ModuleType("taken"))
    source = Path(pendulum.__file__).read_text("utf-8")
    for name in ("my_pendulum", "taken", "my-pendulum"):  # the last two are no names for a module of ours
        path = tmp_path / f"{name}.py"
        path.write_text(source, "utf-8")
        config = load_config(str(path))
        assert callable(thing("environment", config.parts[0].setting.environment))


def test_without_clipping_and_with_matched_weights_sfr_is_sf(tmp_path):
    """The two ends of the ablation are one algorithm on linear tasks, and nothing else is."""
    sf = returns(tmp_path, agent="SF", initial_weights="matched")
    assert returns(tmp_path, agent="SFR", initial_weights="matched", clipping="none") == sf
    assert returns(tmp_path, agent="SFR", initial_weights="paper", clipping="none") == sf
    assert returns(tmp_path, agent="SFR", initial_weights="matched") != sf
    assert returns(tmp_path, agent="SF", initial_weights="paper") != sf
    assert returns(tmp_path, agent="SF", initial_weights="matched", clipping="at zero") != sf
    zero = returns(tmp_path, agent="SF", initial_weights="zero")
    assert returns(tmp_path, agent="SFR", initial_weights="zero", clipping="none") == zero


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        ({"agent": "Q", "initial_weights": "zero"}, "whose policies carry over"),
        ({"agent": "SFR", "initial_weights": "zero", "transfer": "none"}, "whose policies carry over"),
        ({"agent": "CSFR", "initial_weights": "matched"}, "SF, SFR"),
    ],
)
def test_initial_weights_that_would_not_be_used_are_refused(tmp_path, setup, reason):
    with refused(reason):
        returns(tmp_path, **setup)


def test_initial_weights_of_networks_are_refused(tmp_path):
    setting = Setting("racer", "racer", "racer", gamma=0.9, approximator="networks")
    trial = Trial(setting, AgentSetup("CSFR", "CSFR", initial_weights="zero"), 0, seed=1, tasks=1, steps=5)
    with refused("initial_weights are for linear values"):
        run_trial(trial, RunFolder(tmp_path))


@pytest.mark.parametrize("text", ["", ".", "..", "../..", "a/b", "SFR, zero weights"])
def test_a_name_is_a_file_in_its_folder(tmp_path, text):
    path = (tmp_path / file_name(text)).resolve()
    assert path.parent == tmp_path.resolve()


def test_the_commit_is_of_our_sources(tmp_path, monkeypatch):
    """Not of a repository that the package happens to be installed in."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "trial.py").touch()
    monkeypatch.setattr(trial_module, "__file__", str(tmp_path / "trial.py"))
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(
        ["git", "-C", str(tmp_path), *identity, "commit", "--quiet", "--allow-empty", "-m", "."], check=True
    )
    assert trial_module.provenance.__wrapped__("reference")["commit"] is None
    subprocess.run(["git", "-C", str(tmp_path), "add", "trial.py"], check=True)
    subprocess.run(["git", "-C", str(tmp_path), *identity, "commit", "--quiet", "-m", "."], check=True)
    commit = trial_module.provenance.__wrapped__("reference")["commit"]
    assert re.fullmatch("[0-9a-f]{40}", commit)
    source = tmp_path / "sfr_fa" / "changed.py"
    source.parent.mkdir()
    source.touch()
    subprocess.run(["git", "-C", str(tmp_path), "add", "sfr_fa"], check=True)
    assert trial_module.provenance.__wrapped__("reference")["commit"] == f"{commit}+"


def test_a_stream_depends_on_seed_repetition_and_name_only():
    draws = {
        (seed, repetition, name): stream(seed, repetition, name).random()
        for seed, repetition, name in itertools.product((0, 1), (0, 1, 11), ("tasks", "weights"))
    }
    assert len(set(draws.values())) == len(draws)
    assert stream(1, 11, "tasks").random() == draws[1, 11, "tasks"]


def test_grid_gives_all_combinations():
    agents = grid(AgentSetup("SF-R", "SF-R"), learning_rate=(1.0, 2.0), reward_learning_rate=(3.0, 4.0, 5.0))
    assert [tuple(agent.rates.values()) for agent in agents] == list(
        itertools.product((1.0, 2.0), (3.0, 4.0, 5.0))
    )


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CONFIG = 3", "must define CONFIG"),
        ("1/0", "ZeroDivisionError"),
        ("from sfr_fa.runs.config import AgentSetup as A; A('x', 'SFRR')", "there is no agent 'SFRR'"),
    ],
)
def test_a_file_that_is_no_config_is_refused(tmp_path, text, words):
    path = tmp_path / "bad.py"
    path.write_text(text)
    with refused(words):
        load_config(str(path))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: AgentSetup("x", "nowhere:ROW"), ("nowhere:ROW",)),
        (lambda: AgentSetup("x", "math:pi"), ("AgentSpec",)),
        (lambda: AgentSetup("x", "SF-h"), ("learns features and needs it",)),
        (lambda: AgentSetup("x", "Q", clipping="maybe"), ("no clipping 'maybe'",)),
        (lambda: AgentSetup("x", "Q", learning_rate=-1), ("learning_rate of x is -1",)),
        (lambda: AgentSetup("x", "Q", replay={"batches": 3}), ("fields are capacity, batch, every",)),
        (lambda: AgentSetup("x", "Q", replay={"batch": 0}), ("replay of x: batch is 0",)),
        (lambda: AgentSetup("x", "Q", hysteresis=3), ("hysteresis of x is 3; its fields are scale, kappa",)),
        (lambda: Setting("x", "object_colection", "linear", 0.9), ("no environment 'object_colection'",)),
        (lambda: Setting("x", "racer", "racer", 2), ("gamma of x is 2",)),
        (
            lambda: Setting("x", "racer", "racer", 0.9, environment_options={"a": [{1}]}),
            ("options['a'][0] is {1}",),
        ),
        (lambda: Setting("x", "racer", "racer", "y"), ("gamma of x", "'y'", "below 1")),
        (lambda: Setting("x", ":y", "racer", 0.9), ("environment", "':y'")),
        (lambda: Setting("x", ".y:z", "racer", 0.9), ("environment", "'.y:z'")),
        (lambda: Setting(5, "racer", "racer", 0.9), ("name is 5", "text")),
        (lambda: Setting("x", "racer", "racer", 0.9, limit_is_terminal="no"), ("limit_is_terminal", "'no'")),
        (lambda: AgentSetup("x", ":y"), ("agent", "':y'")),
        (lambda: AgentSetup("x", "Q", gpi_policies=5), ("gpi_policies is 5", "text")),
        (lambda: experiment(name=5), ("name is 5", "text")),
        (lambda: experiment(title=5), ("title is 5", "text")),
        (lambda: experiment(profiles=5), ("profiles is 5", "dictionary")),
        (lambda: experiment(profiles={"smoke": 5}), ("smoke", "5", "Profile(")),
        (lambda: experiment(profiles={"../../x": Profile(1, 1, 1)}), ("profile", "'../../x'", "letters")),
    ],
)
def test_fields_that_cannot_be_are_refused_by_name(make, words):
    with refused(*words):
        make()


def experiment(**changes):
    part = Part(Setting("a", "racer", "racer", 0.9), (AgentSetup("Q", "Q"),))
    fields = {"name": "mine", "title": "", "parts": (part,), "profiles": {"smoke": Profile(1, 1, 1)}}
    return ExperimentConfig(**(fields | changes))


def test_numbers_of_numpy_are_numbers():
    """Of np.logspace, say: a manifest of JSON must hold them."""
    rates = np.array([0.5, 0.25], dtype=np.float32)
    setting = Setting("a", "racer", "racer", rates[0], environment_options={"b": [np.True_, np.int8(3)]})
    agents = grid(AgentSetup("CSFR", "CSFR", bins=(np.int64(3), 4, 5)), learning_rate=tuple(rates))
    config = ExperimentConfig(
        "mine", "", (Part(setting, agents),), {"one": Profile(*np.array([1, 2, 3]))}, seed=np.int64(7)
    )
    content = json.loads(json.dumps(config.to_json("one")))
    assert content["parts"][0]["setting"]["environment_options"] == {"b": [True, 3]}
    assert [agent["learning_rate"] for agent in content["parts"][0]["agents"]] == [0.5, 0.25]
    assert (content["size"]["repetitions"], content["seed"]) == (3, 7)
    with refused("seed is 1.5"):
        replace(config, seed=1.5)


def test_a_trial_that_is_there_twice_is_refused(tmp_path):
    with refused("give its agents different labels"):
        load_config(write_config(tmp_path / "bad.py", agents='AgentSetup("Q", "Q"), AgentSetup("Q", "Q"),'))


def test_a_file_that_is_not_there_and_a_run_that_is_too_large(tmp_path):
    with refused("there is no file"):
        load_config("nowhere/mine.py")
    with refused("300,000,000 trials", "fewer repetitions"):
        load_config(write_config(tmp_path / "large.py", repetitions=10**8))


def test_options_of_an_environment_are_part_of_a_trial_and_absent_where_there_are_none():
    plain = Setting("a", "object_collection", "linear", 0.9)
    other = Setting("a", "object_collection", "linear", 0.9, environment_options={"render_mode": "rgb_array"})
    assert "environment_options" not in plain.to_json()
    assert other.to_json() == plain.to_json() | {"environment_options": {"render_mode": "rgb_array"}}
    assert other.make_environment().render_mode == "rgb_array"
    old = AgentSetup("Q", "Q").to_json()
    assert not {"optimiser", "bins", "model_rule", "replay"} & set(old), (
        "manifests of earlier versions stay valid"
    )
    assert AgentSetup("Q", "Q", optimiser="adam").to_json() == old | {"optimiser": "adam"}
