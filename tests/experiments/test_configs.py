"""The configs say what the paper says; a user's own are found, or refused with a sentence."""

import itertools
import subprocess

import pytest

from experiments.config import grid, known_configs, load_config
from sfr_fa import runner
from sfr_fa.results import RunFolder
from sfr_fa.runner import AgentSetup, Setting, Trial, run_trial, stream
from sfr_theory.errors import InputError
from tests.experiments.tiny import write_config

PAPER_TASKS = {"racer": 40, "grid_racer": 40}


def test_the_demo_is_small():
    """The page of `make demo` must be there in under three minutes."""
    [profile] = load_config("demo").profiles.values()
    assert profile.tasks * profile.steps * profile.repetitions <= 1_000_000


@pytest.mark.parametrize("name", sorted({*known_configs()} - {"demo"}))
def test_every_config_is_complete(name):
    config = load_config(name)
    assert config.name == name
    assert list(config.profiles) == ["smoke", "reduced", "paper"]
    paper = config.profiles["paper"]
    assert paper.repetitions == 10
    assert paper.tasks == PAPER_TASKS.get(name, 300)
    assert paper.steps == (200_000 if name in PAPER_TASKS else 20_000)
    assert paper.feature_iterations == 1_000_000
    assert paper.feature_tasks == (10 if name in PAPER_TASKS else 20)
    sizes = [config.profiles[p].tasks * config.profiles[p].steps for p in config.profiles]
    assert sizes == sorted(sizes)


def combinations(name, setting):
    counts = {}
    for part in load_config(name).parts:
        if part.setting.name == setting:
            for agent in part.agents:
                counts[agent.label] = counts.get(agent.label, 0) + 1
    return counts


@pytest.mark.parametrize("setting", ["linear", "general"])
def test_the_grid_of_object_collection_is_the_papers(setting):
    assert combinations("grid_object_collection", setting) == {
        "Q": 3, "SF": 3, "SF-R": 9, "SF-4": 9, "SF-8": 9, "SFR": 3, "SFR-R": 9, "CSFR-4": 9, "MB SFR": 9,
        "MB SFR-R": 27,
    }  # fmt: skip


def test_the_grid_of_the_racer_is_the_papers():
    counts = combinations("grid_racer", "racer")
    assert counts == {
        "Q": 4, "SF": 4, "SF-R": 12, "SF-3": 12, "SF-6": 12, "CSFR": 4, "CSFR-R": 12, "CSFR-3": 12,
    }  # fmt: skip
    assert sum(counts.values()) == 72  # as the paper says


def test_figures_have_the_agents_of_the_papers_tables():
    tables = ["Q", "SF", "SF-R", "SF-4", "SF-8", "SFR", "SFR-R", "CSFR-4", "MB SFR", "MB SFR-R"]
    for name in ("object_collection_linear", "object_collection_general", "barreto"):
        assert list(load_config(name).labels) == tables
    assert list(load_config("racer").labels) == [
        "Q",
        "SF",
        "SF-R",
        "SF-3",
        "SF-6",
        "CSFR",
        "CSFR-R",
        "CSFR-3",
    ]
    assert len(load_config("nonlinearity").parts) == 7


def test_the_ablation_is_a_full_factorial():
    agents = load_config("ablation").parts[0].agents
    cells = {(agent.agent, agent.clipping, agent.initial_weights) for agent in agents}
    variants = [("SF", "cumulant"), ("SFR", "cumulant"), ("SFR", "none")]
    assert cells == {
        (*v, weights) for v, weights in itertools.product(variants, ("paper", "matched", "zero"))
    }


def returns(tmp_path, steps=200, **setup):
    setting = Setting("linear", "object_collection", "linear", gamma=0.95)
    agent = AgentSetup("agent", precision="float64", **setup)
    trial = Trial(setting, agent, 0, seed=1, tasks=3, steps=steps, engine="reference")
    folder = RunFolder(tmp_path / f"{setup}")
    run_trial(trial, folder)
    return [(row.total_return, row.gpi_current) for row in folder.read_result(trial.key).rows]


def test_without_clipping_and_with_matched_weights_sfr_is_sf(tmp_path):
    """The two ends of the ablation are one algorithm on linear tasks, and nothing else is."""
    sf = returns(tmp_path, agent="SF", initial_weights="matched")
    assert returns(tmp_path, agent="SFR", initial_weights="matched", clipping="none") == sf
    assert returns(tmp_path, agent="SFR", initial_weights="paper", clipping="none") == sf
    assert returns(tmp_path, agent="SFR", initial_weights="matched") != sf
    assert returns(tmp_path, agent="SF", initial_weights="paper") != sf
    zero = returns(tmp_path, agent="SF", initial_weights="zero")
    assert returns(tmp_path, agent="SFR", initial_weights="zero", clipping="none") == zero


@pytest.mark.parametrize(
    ("setup", "reason"),
    [
        ({"agent": "Q", "initial_weights": "zero"}, "whose policies carry over"),
        ({"agent": "SFR", "initial_weights": "zero", "transfer": "none"}, "whose policies carry over"),
        ({"agent": "SF-R", "initial_weights": "matched", "reward_learning_rate": 0.1}, "SF and SFR"),
    ],
)
def test_initial_weights_that_would_not_be_used_are_refused(tmp_path, setup, reason):
    with pytest.raises(InputError, match=reason):
        returns(tmp_path, **setup)


def test_initial_weights_of_networks_are_refused(tmp_path):
    setting = Setting("racer", "racer", "racer", gamma=0.9, approximator="networks")
    trial = Trial(setting, AgentSetup("CSFR", "CSFR", initial_weights="zero"), 0, seed=1, tasks=1, steps=5)
    with pytest.raises(InputError, match="initial_weights are for linear values"):
        run_trial(trial, RunFolder(tmp_path))


@pytest.mark.parametrize("text", ["", ".", "..", "../..", "a/b", "SFR, zero weights"])
def test_a_name_is_a_file_in_its_folder(tmp_path, text):
    path = (tmp_path / runner.file_name(text)).resolve()
    assert path.parent == tmp_path.resolve()


def test_the_commit_is_of_our_sources(tmp_path, monkeypatch):
    """Not of a repository that the package happens to be installed in."""
    subprocess.run(["git", "init", "--quiet", str(tmp_path)], check=True)
    (tmp_path / "runner.py").touch()
    monkeypatch.setattr(runner, "__file__", str(tmp_path / "runner.py"))
    identity = ("-c", "user.name=a", "-c", "user.email=a@b.c")
    subprocess.run(
        ["git", "-C", str(tmp_path), *identity, "commit", "--quiet", "--allow-empty", "-m", "."], check=True
    )
    assert runner.provenance.__wrapped__("reference")["commit"] is None


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


def test_your_own_config_is_found_by_its_path(tmp_path):
    config = load_config(write_config(tmp_path / "mine.py", repetitions=2))
    assert [trial.key for trial in config.trials("smoke")][:2] == [
        "general/Q/alpha_0.005/rep-00",
        "general/SF/alpha_0.005/rep-00",
    ]
    assert len(config.trials("smoke")) == 6


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("CONFIG = 3", "must define CONFIG"),
        ("1/0", "ZeroDivisionError"),
        ("from sfr_fa.runner import AgentSetup\nAgentSetup('x', 'SFRR')", "there is no agent 'SFRR'"),
        ("from sfr_fa.runner import AgentSetup\nAgentSetup('x', 'SF-h')", "learns features and needs it"),
        (
            "from sfr_fa.runner import AgentSetup\nAgentSetup('x', 'Q', clipping='maybe')",
            "no clipping 'maybe'",
        ),
        (
            "from sfr_fa.runner import Setting\nSetting('x', 'object_colection', 'linear', 0.9)",
            "no environment 'object_colection'",
        ),
    ],
)
def test_a_bad_config_is_refused_with_a_sentence(tmp_path, text, words):
    path = tmp_path / "bad.py"
    path.write_text(text)
    with pytest.raises(InputError, match=words):
        load_config(str(path))


def test_a_trial_that_is_there_twice_is_refused(tmp_path):
    with pytest.raises(InputError, match="give its agents different labels"):
        load_config(write_config(tmp_path / "bad.py", agents='AgentSetup("Q", "Q"), AgentSetup("Q", "Q"),'))


def test_an_unknown_experiment_is_named_with_those_that_exist():
    with pytest.raises(InputError, match=r"no experiment 'object_colection'.*object_collection_general"):
        load_config("object_colection")
    with pytest.raises(InputError, match="there is no file"):
        load_config("nowhere/mine.py")
