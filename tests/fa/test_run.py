"""sfr_fa.run in this process: resumable to the bit, idempotent, and good results are never lost."""

import errno
import json
import re
from dataclasses import replace
from pathlib import Path

import gymnasium
import numpy as np
import pytest

from benchmarks import runner as benchmark
from experiments.configs import load_config as load_ours
from sfr_fa import run, status
from sfr_fa.agents import AGENT_SPECS
from sfr_fa.agents.checkpoint import write_checkpoint
from sfr_fa.engines import ENGINES, make_engine
from sfr_fa.environments.adapters import WithFeatures
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.runs import publish
from sfr_fa.runs import trial as trial_module
from sfr_fa.runs.config import AgentSetup, Setting, Trial, load_config
from sfr_fa.runs.estimates import estimate
from sfr_fa.runs.load import load
from sfr_fa.runs.store import SUFFIX, RunFolder, TrialState
from sfr_fa.runs.trial import check_trials, learned_feature_map, run_trial, transitions_of_q
from sfr_fa.runs.workers import TrialOutcome
from sfr_fa.tasks import LinearTask, sample_general_task
from tests.fa.tiny import RACER, SETTING, contents, outcome, run_config, write_config
from tests.refusals import refused

SFR = 'AgentSetup("SFR", "SFR"),'


@pytest.fixture
def config(tmp_path):
    return write_config(tmp_path / "tiny.py")


class Crash(BaseException):
    """As sudden as a signal: nothing catches it on the way."""


def crash_after(config, results, tasks):
    """Run the trials of a config one after the other until this many tasks are done in all."""
    with pytest.raises(Crash):
        run_until(config, results, tasks)
    return RunFolder(results / "tiny/smoke")


def run_until(config, results, tasks):
    left = tasks

    def count(row):
        nonlocal left
        left -= 1
        if left <= 0:
            raise Crash

    loaded = load_config(config)
    folder = RunFolder(Path(results) / loaded.name / "smoke")
    trials = loaded.trials("smoke")
    folder.start(loaded.to_json("smoke"), [trial.key for trial in trials], {})
    for trial in trials:
        if folder.status(trial.key).state is not TrialState.FINISHED:
            run_trial(trial, folder, count)
    return folder, trials


def test_a_run_and_what_it_leaves(config, undisturbed, tmp_path, capsys):
    names = set(undisturbed)
    assert names == {"tiny/smoke/manifest.json"} | {
        f"tiny/smoke/general/{agent}/alpha_0.005/rep-00.{kind}"
        for agent in ("Q", "SF", "SFR")
        for kind in ("csv", "json")
    }
    lines = undisturbed["tiny/smoke/general/SFR/alpha_0.005/rep-00.csv"].decode().splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("task,total_return,steps,episodes,gpi_current")
    assert lines[4].split(",")[2] == "25"
    folder = RunFolder(tmp_path / "undisturbed" / "tiny" / "smoke")
    results = [folder.read_result(f"general/{agent}/alpha_0.005/rep-00") for agent in ("Q", "SF", "SFR")]
    assert len({result.tasks_sha256 for result in results}) == 1, "all agents meet the same tasks"
    assert results[0].provenance["engine"] == "reference"
    assert set(results[0].provenance["packages"]) >= {"numpy", "torch", "numba"}
    # A second time: nothing is done, nothing changes, not even the times.
    before = {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()}
    assert run_config(config, tmp_path / "undisturbed") == 0
    assert {path: path.read_bytes() for path in folder.path.rglob("*") if path.is_file()} == before
    assert "3 trials, 3 finished before" in capsys.readouterr().out


def test_interrupted_after_every_task_the_numbers_are_the_same(config, undisturbed, tmp_path):
    for _ in range(12):
        crash_after(config, tmp_path / "r", 1)
    run_until(config, tmp_path / "r", 1)
    assert contents(tmp_path / "r") == undisturbed


@pytest.mark.parametrize("extra", ["replay=Replay(capacity=30, batch=4)", "hysteresis={'scale': 0.5}"])
def test_what_an_agent_remembers_survives_an_interruption(extra, tmp_path):
    """Steps that replay draws from, and the actions that hysteresis keeps."""
    path = Path(write_config(tmp_path / "tiny.py", agents=f'AgentSetup("SFR", "SFR", {extra}),'))
    path.write_text("from sfr_fa.agents import Replay\n" + path.read_text())
    undisturbed, plain = outcome(str(path), tmp_path / "a"), write_config(tmp_path / "plain.py", agents=SFR)
    crash_after(str(path), tmp_path / "b", 2)
    assert outcome(str(path), tmp_path / "b") == undisturbed
    [table] = (name for name in undisturbed if name.endswith(".csv"))
    assert undisturbed[table] != outcome(plain, tmp_path / "c")[table]


@pytest.mark.parametrize(("given", "terminal"), [(None, False), (True, True)])
def test_a_time_limit_of_a_foreign_environment_is_an_end_if_the_config_says_so(given, terminal):
    setting = Setting("pole", f"{__name__}:pole", f"{__name__}:pole_tasks", 0.9, limit_is_terminal=given)
    [engine] = check_trials([Trial(setting, AgentSetup("SFR", "SFR"), 0, 0, 1, 1, "reference")]).values()
    assert engine.limit.is_terminal is terminal


def pole():
    space = DiscreteFeatures([[0.0], [1.0]])
    return WithFeatures(gymnasium.make("CartPole-v1"), lambda *step: [1.0], space, LinearTask([1.0]))


def pole_tasks(rng, space):
    return LinearTask(rng.normal(size=1))


@pytest.mark.parametrize("damage", ["truncated", "flipped", "empty", "text"])
def test_a_damaged_checkpoint_is_passed_over_for_the_one_before(
    config, undisturbed, tmp_path, capsys, damage
):
    checkpoints = crash_after(config, tmp_path / "r", 3).checkpoints("general/Q/alpha_0.005/rep-00")
    assert list(checkpoints) == [3, 2]
    path = checkpoints[3]
    good = path.read_bytes()
    path.write_bytes(
        {
            "truncated": good[: len(good) // 2],
            "flipped": good[:5000] + bytes([good[5000] ^ 8]) + good[5001:],
            "empty": b"",
            "text": b"import os; os.abort()",
        }[damage]
    )
    assert outcome(config, tmp_path / "r") == undisturbed
    output = capsys.readouterr().out
    assert "note: general/Q/alpha_0.005/rep-00: " in output
    assert "an earlier state was taken instead of the one after 3 tasks" in output


def test_a_checkpoint_of_other_things_is_passed_over_by_name(config, undisturbed, tmp_path, capsys):
    """Its checksum is right, but nobody knows what it holds."""
    key = "general/Q/alpha_0.005/rep-00"
    path = crash_after(config, tmp_path / "r", 3).checkpoints(key)[3]
    trial = next(trial for trial in load_config(config).trials("smoke") if trial.key == key)
    path.unlink()
    write_checkpoint(path, trial.to_json(), {"rows": 7})
    assert outcome(config, tmp_path / "r") == undisturbed
    assert f"note: {key}: {path} is not what" in capsys.readouterr().out.replace("\n", "")


def test_with_no_checkpoint_left_the_trial_starts_again(config, undisturbed, tmp_path):
    crash_after(config, tmp_path / "r", 3)
    for path in (tmp_path / "r").rglob(f"*{SUFFIX}"):
        path.write_bytes(b"")
    assert outcome(config, tmp_path / "r") == undisturbed


def test_a_damaged_result_is_said_and_kept_while_the_others_finish(config, undisturbed, tmp_path, capsys):
    crash_after(config, tmp_path / "r", 5)  # Q is finished
    path = tmp_path / "r/tiny/smoke/general/Q/alpha_0.005/rep-00.csv"
    damaged = bytearray(path.read_bytes())
    damaged[-5] ^= 1
    path.write_bytes(damaged)
    assert run_config(config, tmp_path / "r") == 1
    output = capsys.readouterr().out
    assert "rep-00.csv is damaged: its checksum does not match" in output
    assert "2 of 3 trials are finished" in output
    assert path.read_bytes() == damaged, "it is for the user to delete"
    assert status.main(status.Options(str(tmp_path / "r"))) == 1
    assert "damaged: " in capsys.readouterr().out
    path.unlink()
    path.with_suffix(".json").unlink()
    assert outcome(config, tmp_path / "r") == undisturbed


def test_a_config_that_changed_under_its_name_is_refused(config, undisturbed, tmp_path):
    write_config(Path(config), steps=26)
    with refused("another config", "size.steps was 25 and is 26", "--results"):
        run_config(config, tmp_path / "undisturbed")
    assert contents(tmp_path / "undisturbed") == undisturbed
    with refused("engine was 'reference' and is 'compiled'"):
        run_config(write_config(Path(config)), tmp_path / "undisturbed", engine="compiled")


def test_a_full_disk_fails_the_trial_and_loses_nothing(config, undisturbed, tmp_path, capsys, monkeypatch):
    def no_space(self, target):
        raise OSError(errno.ENOSPC, "No space left on device")

    crash_after(config, tmp_path / "r", 6)  # Q is finished, SF has two tasks
    with monkeypatch.context() as patch:
        patch.setattr(Path, "replace", no_space)
        assert run_config(config, tmp_path / "r") == 1
    output = capsys.readouterr().out
    assert "failed: general/SF/alpha_0.005/rep-00: cannot write" in output
    assert "No space left on device" in output
    assert not list((tmp_path / "r").rglob(".*")), "nothing half written stays"
    assert RunFolder(tmp_path / "r/tiny/smoke").checkpoints("general/SF/alpha_0.005/rep-00")
    assert outcome(config, tmp_path / "r") == undisturbed


def test_results_and_curves_cannot_be_where_a_file_is(config, tmp_path):
    (tmp_path / "file").touch()
    with refused("cannot write", "file"):
        run_config(config, tmp_path / "file" / "results")
    with refused("file"):
        run_config(config, tmp_path / "r", tensorboard=str(tmp_path / "file"))
    assert not (tmp_path / "r").exists()


def test_a_trial_that_keeps_failing_is_reported_and_the_others_finish(tmp_path, capsys):
    (tmp_path / "my_tasks.py").write_text(
        "from sfr_fa.tasks import LinearTask, sample_general_task\n"
        "calls = []\n"
        "def unlucky(rng, space):\n"
        "    calls.append(1)\n"
        "    if len(calls) > 2: raise MemoryError('too large')\n"
        "    return sample_general_task(rng, space)\n"
    )
    text = Path(write_config(tmp_path / "mine.py", agents=SFR)).read_text()
    parts = 'Setting("mine", "object_collection", "my_tasks:unlucky", gamma=0.95), (AgentSetup("Q", "Q"),)'
    (tmp_path / "mine.py").write_text(text.replace("    parts=(", f"    parts=(Part({parts}), "))
    assert run_config(str(tmp_path / "mine.py"), tmp_path / "r") == 1
    output = capsys.readouterr().out
    assert re.search(r"failed: mine/Q/.*MemoryError: too large \(.*my_tasks.py:5\), tried 3", output)
    assert "1 of 2 trials are finished" in output


class OwnStep(ObjectCollection):
    def step(self, action):
        return super().step(action)


def test_an_environment_of_your_own(tmp_path):
    setting = f'Setting("general", "{__name__}:OwnStep", "linear", gamma=0.95)'
    path = write_config(tmp_path / "mine.py", agents=SFR, engine="compiled", setting=setting)
    assert run_config(path, tmp_path / "r") == 0
    result = RunFolder(tmp_path / "r/tiny/smoke").read_result("general/SFR/alpha_0.005/rep-00")
    assert result.provenance["engine"] == "reference"
    (note,) = result.notes
    assert "OwnStep has a step of its own" in note


def test_an_environment_whose_features_are_a_wrapper(tmp_path):
    setting = f'Setting("mine", "{__name__}:pole", "{__name__}:pole_tasks", gamma=0.95)'
    assert run_config(write_config(tmp_path / "mine.py", agents=SFR, setting=setting), tmp_path / "r") == 0


def test_divergence_is_a_result(tmp_path, capsys):
    agents = 'AgentSetup("SF", "SF", learning_rate=1e30), AgentSetup("SF", "SF"),'
    assert run_config(write_config(tmp_path / "c.py", agents=agents), tmp_path / "r") == 0
    output = capsys.readouterr().out
    assert "diverged: general/SF/alpha_1e+30/rep-00 in task 0" not in output  # + is no letter of a file name
    assert "diverged: general/SF/alpha_1e_30/rep-00 in task 0" in output
    folder = RunFolder(tmp_path / "r/tiny/smoke")
    rows = folder.read_result("general/SF/alpha_1e_30/rep-00").rows
    assert len(rows) == 1
    assert rows[0].diverged
    assert rows[0].steps < 25
    grid = (folder.path / "grid.csv").read_text().splitlines()
    assert grid[0].startswith("setting,agent,learning_rate,repetitions,mean_total_return,diverged,best,")
    assert [line.split(",")[2:4] + line.split(",")[5:7] for line in grid[1:]] == [
        ["1e+30", "1", "1", "0"],
        ["0.005", "1", "0", "1"],
    ]


# --- Every agent -------------------------------------------------------------------------------------


RATES = {"learning_rate": 0.005, "reward_learning_rate": 0.05, "model_learning_rate": 0.4}
NOT_FOR = {
    # its features are discrete and few, SFR needs no bins and no code
    SETTING: {"CSFR", "CSFR-R", "CSFR-F", "SFR-K", "SFR-K-R"},
    RACER: {"SFR", "SFR-R", "MB SFR", "MB SFR-R"},  # its features are continuous
}


def setups(setting):
    """Every agent that the paper's environment of this setting is for."""
    for agent in AGENT_SPECS:
        spec = AGENT_SPECS[agent]
        extra = [f"{rate}={RATES[rate]}" for rate in spec.rates]
        if spec.learns_features:
            extra.append("learned_dimensions=3")
        if "feature_code" in spec.uses:
            extra.append('feature_code="bumps 12"')
        if spec.learns_rewards and not spec.readout.linear_only:
            extra.append('reward_model="mlp"')
        if agent not in NOT_FOR[setting]:
            yield ", ".join([f'AgentSetup("{agent}", "{agent}"', *extra]) + "),"


@pytest.mark.slow  # compiles all kernels, once
@pytest.mark.parametrize("setting", [SETTING, RACER], ids=["object collection", "racer"])
def test_both_engines_write_the_same_files_for_every_agent(tmp_path, setting):
    agents = list(setups(setting))
    tables = {}
    for engine in ENGINES:
        config = write_config(tmp_path / "c.py", agents=" ".join(agents), engine=engine, setting=setting)
        assert run_config(config, tmp_path / engine, precision="float64") == 0
        found = contents(tmp_path / engine)
        tables[engine] = {name: text for name, text in found.items() if name.endswith(".csv")}
        used = {
            json.loads(path.read_text())["provenance"]["engine"]
            for path in (tmp_path / engine).rglob("rep-*.json")
        }
        assert used == {engine}
    assert len(tables["reference"]) == len(agents)
    assert tables["compiled"] == tables["reference"]


def test_every_agent_is_compared_in_some_environment():
    assert len(AGENT_SPECS) == 14
    assert not NOT_FOR[SETTING] & NOT_FOR[RACER]


def test_learned_features_are_those_of_the_q_agent_of_the_repetition(tmp_path):
    agents = "".join(
        f'AgentSetup("{name}-2", "{name}-h", reward_learning_rate=0.05, learned_dimensions=2),'
        for name in ("SF", "CSFR")
    )
    loaded = load_config(write_config(tmp_path / "c.py", agents=agents, repetitions=2))
    sf, csfr, other_repetition, _ = loaded.trials("smoke")
    maps = [
        learned_feature_map(trial, RunFolder(tmp_path / name)).matrix
        for trial, name in ((sf, "a"), (sf, "b"), (csfr, "a"), (other_repetition, "a"))
    ]
    assert (maps[0] == maps[1]).all(), "made twice"
    assert (maps[0] == maps[2]).all(), "read from the file that SF left"
    assert (maps[0] != maps[3]).any()
    assert maps[0].shape == (2 * 113, 2)
    assert len(list((tmp_path / "a").rglob(f"*{SUFFIX}"))) == 2
    # A damaged file is made again.
    path = next((tmp_path / "b").rglob(f"*{SUFFIX}"))
    path.write_bytes(path.read_bytes()[:1000])
    assert (learned_feature_map(sf, RunFolder(tmp_path / "b")).matrix == maps[0]).all()
    # Another Q agent, other features.
    learning = replace(sf.feature_learning, tasks=1)
    assert (
        learned_feature_map(replace(sf, feature_learning=learning), RunFolder(tmp_path / "c")).matrix
        != maps[0]
    ).any()


def test_transitions_to_learn_features_from_are_thinned_out_as_the_config_says(tmp_path):
    setup = 'AgentSetup("SF-2", "SF-h", reward_learning_rate=0.05, learned_dimensions=2),'
    trial = load_config(write_config(tmp_path / "c.py", agents=setup, steps=1000)).trials("smoke")[0]

    def rewards(**how):
        thinned = replace(trial, feature_learning=replace(trial.feature_learning, **how))
        return transitions_of_q(thinned, 2, np.random.default_rng(0)).rewards

    everything = rewards(drop_zero_rewards=0.0)
    assert len(everything) == 2000
    zeros = int((everything == 0).sum())
    assert 0 < zeros < 2000
    np.testing.assert_array_equal(rewards(drop_zero_rewards=1.0), everything[everything != 0])
    # Binomial: four standard deviations.
    assert abs((rewards() == 0).sum() - zeros / 4) < 4 * (zeros * 3 / 16) ** 0.5
    assert abs(len(rewards(drop_zero_rewards=0.0, keep=0.5)) - 1000) < 4 * 500**0.5


@pytest.mark.parametrize(
    ("agent", "code", "points"), [("SFR-K", "bumps 5", 40), ("CSFR-F", None, 40), ("SF", None, 20)]
)
def test_readouts_are_fitted_where_a_random_walk_leads(agent, code, points, tmp_path, monkeypatch):
    """Codes of features on more points; and they are where the points are."""
    monkeypatch.setattr(trial_module, "FIT_POINTS", 20)
    monkeypatch.setattr(trial_module, "CODE_POINTS", 40)
    seen = []
    walk = trial_module.features_of_random_steps
    monkeypatch.setattr(
        trial_module, "features_of_random_steps", lambda *a: seen.append(walk(*a)) or seen[-1]
    )
    setup = f'AgentSetup("mine", "{agent}", feature_code={code!r}),'
    config = write_config(tmp_path / "c.py", agents=setup, setting=RACER)
    engine, _, _ = trial_module.build(load_config(config).trials("smoke")[0], None)
    assert [walked.shape for walked in seen] == [(points, 3)]
    if code:
        assert engine.agent.cumulant.code.size == 5


def test_without_transfer_every_task_starts_afresh(tmp_path):
    agents = 'AgentSetup("SFR", "SFR", transfer="none"),'
    assert run_config(write_config(tmp_path / "c.py", agents=agents), tmp_path / "r") == 0
    rows = RunFolder(tmp_path / "r/tiny/smoke").read_result("general/SFR/alpha_0.005/rep-00").rows
    assert {row.gpi_policies for row in rows} == {1}
    assert {row.gpi_current for row in rows} == {25}


# --- The command line --------------------------------------------------------------------------------


def test_some_agents_now_and_the_others_later(config, undisturbed, tmp_path, capsys):
    assert run_config(config, tmp_path / "r", agents=("SFR",)) == 0
    assert "1 of 3 trials are finished" in capsys.readouterr().out
    assert outcome(config, tmp_path / "r", repetitions=(0,)) == undisturbed


def test_one_rate_of_a_grid_can_be_repeated_more_often(tmp_path, capsys):
    """It is known by what tables print of it."""
    agents = 'AgentSetup("SFR", "SFR"), AgentSetup("SFR", "SFR", learning_rate=0.0099999999),'
    config = write_config(tmp_path / "c.py", agents=agents)
    assert run_config(config, tmp_path / "r", learning_rates=(0.01,)) == 0
    assert "1 of 2 trials are finished" in capsys.readouterr().out
    assert (tmp_path / "r/tiny/smoke/general/SFR/alpha_0.01/rep-00.csv").exists()


def test_a_race_gives_repetitions_only_to_rates_that_can_win(tmp_path, capsys):
    rates = ("0.005", "0.01", "1e30")
    agents = "".join(f'AgentSetup("SF", "SF", learning_rate={rate}), ' for rate in rates)
    config = write_config(tmp_path / "c.py", agents=agents, repetitions=3)
    assert run_config(config, tmp_path / "r", race=True) == 0
    folder = tmp_path / "r/tiny/smoke"
    assert sorted(path.stem for path in folder.rglob("alpha_1e_30/*.csv")) == ["rep-00", "rep-01"]
    assert len(list(folder.rglob("alpha_0.0*/*.csv"))) == 6
    grid = [line.split(",") for line in (folder / "grid.csv").read_text().splitlines()]
    dropped = {line[2]: line[grid[0].index("dropped_after")] for line in grid[1:]}
    assert dropped == {"0.005": "", "0.01": "", "1e+30": "2"}
    assert "8 of 9" in capsys.readouterr().out
    # Once it is decided there is nothing left to run, and whoever reads the results knows the winner.
    before = contents(tmp_path / "r")
    assert outcome(config, tmp_path / "r", race=True) == before
    found = load(folder)
    assert not any("unfinished" in note for note in found.notes)
    assert sum(point.best for point in found.grid) == 1
    # What is damaged is named, once, and the race does without it.
    next(folder.rglob("alpha_0.005/rep-00.csv")).write_text("spoiled")
    capsys.readouterr()
    assert run_config(config, tmp_path / "r", race=True) == 1
    assert capsys.readouterr().out.count("failed: general/SF/alpha_0.005/rep-00") == 1


def test_a_grid_is_decided_by_all_repetitions_or_by_a_race(tmp_path):
    agents = 'AgentSetup("SF", "SF", learning_rate=1e-9), AgentSetup("SF", "SF", learning_rate=1e30),'
    config = write_config(tmp_path / "c.py", agents=agents, repetitions=3)
    folder = tmp_path / "r/tiny/smoke"

    def is_decided(**options):
        assert run_config(config, tmp_path / "r", **options) == 0
        assert publish.main(publish.Options((str(folder),), str(tmp_path))) == 0
        decided = {any(point.best for point in load(path).grid) for path in (folder, tmp_path / "tiny")}
        assert decided == {(folder / "grid.csv").exists()}
        return decided.pop()

    assert not is_decided(repetitions=(0, 1)), "equally many, but not all"
    assert not is_decided(learning_rates=(1e-9,)), "what a race would leave, but nobody asked for one"
    assert is_decided(race=True), "now it is one, though nothing is left to run"
    raced = (folder / "grid.csv").read_text()
    assert is_decided(), "the whole grid"
    assert (folder / "grid.csv").read_text() != raced


def test_a_trial_that_fails_is_run_once_in_a_race(tmp_path, capsys, monkeypatch):
    started = []

    def fails(jobs, *_):
        started.extend(job.trial.key for job in jobs)
        return [TrialOutcome(job.trial.key, error="it failed") for job in jobs]

    monkeypatch.setattr(run, "run_here", fails)
    agents = 'AgentSetup("SF", "SF", learning_rate=0.005), AgentSetup("SF", "SF", learning_rate=0.01),'
    config = write_config(tmp_path / "c.py", agents=agents, repetitions=3)
    assert run_config(config, tmp_path / "r", race=True) == 1
    assert len(started) == len(set(started)) == 4
    assert capsys.readouterr().out.count("it failed") == 4


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"profile": "huge"}, ("'huge'", "smoke")),
        ({"agents": ("SFRR",)}, ("'SFRR'", "Q, SF, SFR")),
        ({"settings": ("mars",)}, ("'mars'", "general")),
        ({"learning_rates": (0.3,)}, ("0.3", "0.005")),
        ({"repetitions": (1,)}, ("repetition 1", "0 to 0")),
        ({"repetitions": (0,), "race": True}, ("--race", "leave out --repetitions")),
        ({"race": True}, ("--race", "at least 2 repetitions")),
        ({"agents": ("Q",), "learning_rates": (0.01,)}, ("no trial", "agents, rates and repetitions")),
        ({"engine": "warp"}, ("'warp'", "compiled, reference")),
        ({"precision": "float16"}, ("'float16'", "float32, float64")),
        ({"workers": 0}, ("--workers is 0", "at least one")),
        ({"workers": 10**9}, (f"--workers is {10**9}", "at most")),
        ({"slurm": True, "scheduler": "tcp://a:1"}, ("one of", "--slurm")),
        ({"slurm": True, "pbs": True}, ("one of", "--pbs")),
        ({"cluster_options": ("queue=a",)}, ("--cluster-options", "--slurm")),
        ({"slurm": True, "cluster_options": ("queue",)}, ("--cluster-options", "KEY=VALUE")),
    ],
)
def test_bad_options_are_refused_before_anything_is_written(tmp_path, options, words):
    agents = 'AgentSetup("Q", "Q"), AgentSetup("SF", "SF"), AgentSetup("SFR", "SFR", learning_rate=0.01),'
    config = write_config(tmp_path / "c.py", agents=agents)
    with refused(*words):
        run_config(config, tmp_path / "r", **options)
    assert not (tmp_path / "r").exists()


def test_a_dry_run_tells_and_does_nothing(config, tmp_path, capsys):
    assert run_config(config, tmp_path / "r", dry_run=True, workers=2) == 0
    output = capsys.readouterr().out
    assert "3 trials, 3 to do" in output
    assert "4 x 25" in output
    assert "s on 2 workers (roughly" in output
    assert "MB of results" in output
    assert not (tmp_path / "r").exists()
    assert run_config(config, tmp_path / "r") == 0
    capsys.readouterr()
    assert run_config(config, tmp_path / "r", dry_run=True) == 0
    output = capsys.readouterr().out
    assert "3 trials, 0 to do" in output
    assert "as measured here" in output


OWN_PARTS = """
import functools, torch
from sfr_fa.agents import AGENT_SPECS, LinearPerAction
from sfr_fa.runs.workers import TrialOutcome
from sfr_fa.tasks import LinearTask, sample_general_task

ROW, NO_ROW = AGENT_SPECS["SFR"], "SFR"
def tasks(rng, space): return sample_general_task(rng, space)
def tasks_of_one(rng): return sample_general_task(rng)
def numbers(rng, space): return 3
def network(shape, rng): return LinearPerAction(shape, rng)
def flat(shape, rng): return torch.nn.Linear(shape.state_dim, 2).double()
def failing(shape, rng): return shape.nothing
momentum = functools.partial(torch.optim.SGD, momentum=0.5)
def no_optimiser(parameters, lr): return None
def less_and_less(step): return 0.2 / (1 + step)
def never(): return 0.2
def too_often(step): return 2 - step
"""


@pytest.fixture
def own_parts(tmp_path):
    """The name of a module beside the config."""
    module = f"own_parts_{tmp_path.name}"
    (tmp_path / f"{module}.py").write_text(OWN_PARTS)
    return module


@pytest.mark.parametrize(
    ("tasks", "network", "agent", "optimiser", "words"),
    [
        ("tasks", "network", "ROW", "momentum", None),
        ("tasks_of_one", "network", "ROW", "momentum", ("tasks_of_one", "takes 1 positional")),
        ("numbers", "network", "ROW", "momentum", ("3", "neither")),
        ("tasks", "flat", "ROW", "momentum", ("approximator",)),
        ("tasks", "failing", "ROW", "momentum", ("nothing", "own_parts_", ".py:")),
        ("tasks", "network", "NO_ROW", "momentum", ("AgentSpec",)),
        ("tasks", "network", "ROW", "no_optimiser", ("optimiser",)),
    ],
)
def test_parts_of_ones_own_are_tried_by_a_dry_run(
    tasks, network, agent, optimiser, words, own_parts, tmp_path
):
    parts = f'"{own_parts}:{tasks}", 0.9, approximator="{own_parts}:{network}"'
    config = write_config(
        tmp_path / "mine.py",
        setting=f'Setting("mine", "object_collection", {parts})',
        agents=f'AgentSetup("Mine", "{own_parts}:{agent}", optimiser="{own_parts}:{optimiser}"),',
    )
    if words is None:
        assert run_config(config, tmp_path / "r", dry_run=True) == 0
    else:
        with refused(*words):
            run_config(config, tmp_path / "r", dry_run=True)
    assert not (tmp_path / "r").exists()


def test_schedules_of_ones_own(own_parts, tmp_path):
    """The step counts from 0 in each task, so tasks of one step know only the first number."""

    def totals(steps, value):
        config = write_config(
            tmp_path / "mine.py", steps=steps,
            setting=f'Setting("mine", "object_collection", "general", 0.9, epsilon={value})',
            agents=f'AgentSetup("SFR", "SFR", learning_rate={value}),',
        )  # fmt: skip
        results = tmp_path / f"r{steps}{len(value)}"
        assert run_config(config, results) == 0
        [table] = results.glob("**/rep-00.csv")
        assert ("own_parts_" in str(table)) == (":" in value)
        publish.main(publish.Options((str(table.parents[3]),), output=str(results / "published")))
        return table.read_text()

    schedule = f'"{own_parts}:less_and_less"'
    assert totals(1, schedule) == totals(1, "0.2")
    assert totals(60, schedule) != totals(60, "0.2")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ('epsilon="{}:too_often"', ("epsilon of mine", "2", "probability")),
        ('epsilon="{}:never"', ("epsilon of mine", "function of one number")),
        ('epsilon="{}:nowhere"', ("epsilon", "nowhere")),
        ('epsilon="slowly"', ("epsilon", "slowly", "module:attribute")),
    ],
)
def test_schedules_that_cannot_be_are_refused(fields, words, own_parts, tmp_path):
    setting = f'Setting("mine", "object_collection", "general", 0.9, {fields.format(own_parts)})'
    config = write_config(tmp_path / "mine.py", setting=setting)
    with refused(*words):
        run_config(config, tmp_path / "r", dry_run=True)


@pytest.mark.parametrize(
    ("experiment", "seconds"),
    [
        # of one trial, as python -m benchmarks.engines --whole all measures them
        ("object_collection_general", {"Q": 5, "SF": 45, "SFR": 65, "MB SFR": 70}),
        ("racer", {"CSFR": 225}),
    ],
)
def test_estimates_are_of_the_right_size(experiment, seconds, tmp_path):
    trials = load_ours(experiment).trials("paper")
    engines = check_trials(trials)
    found = {
        trial.agent.label: estimate(
            trial, engines[trial.setting.name, trial.agent.label], RunFolder(tmp_path)
        ).seconds
        for trial in trials
    }
    for agent, expected in seconds.items():
        assert expected / 1.5 < found[agent] < expected * 1.5


def test_settings_select_parts_of_an_experiment():
    options = run.Options("racer_interactions", settings=("parity", "mixed"), repetitions=(1,))
    chosen = options.chosen(load_ours("racer_interactions"))
    assert {trial.setting.name for trial in chosen} == {"parity", "mixed"}
    assert {trial.repetition for trial in chosen} == {1}


def test_curves_for_tensorboard(config, tmp_path):
    assert run_config(config, tmp_path / "r", tensorboard=str(tmp_path / "curves"), agents=("Q",)) == 0
    events = list((tmp_path / "curves/general/Q/alpha_0.005/rep-00").glob("events*"))
    assert len(events) == 1
    assert b"return" in events[0].read_bytes()


def test_status_of_finished_stopped_and_running_trials(config, tmp_path, capsys):
    folder = crash_after(config, tmp_path / "r", 6)
    with folder.working_on("general/SFR/alpha_0.005/rep-00"):
        assert (
            status.main(status.Options(str(tmp_path / "r"), trials=True, json=str(tmp_path / "s.json"))) == 0
        )
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].split()[1:] == ["1", "1", "1", "0", "0", "50%"]
    assert any(
        line.startswith("stopped: ") and line.endswith("SF/alpha_0.005/rep-00, 2 tasks done")
        for line in lines
    )
    (trials,) = json.loads((tmp_path / "s.json").read_text()).values()
    assert [entry["state"] for entry in trials.values()] == ["finished", "stopped", "running"]
    (folder.path / "manifest.json").write_text("{")
    assert status.main(status.Options(str(tmp_path / "r"))) == 1
    assert "manifest.json is not JSON" in capsys.readouterr().out


def test_brackets_in_names_are_no_markup(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    label, name = "Q[bold]x[/nope]", "[red]r[/nope]"
    agents = "".join(f'AgentSetup("{label}", "Q", learning_rate={rate}), ' for rate in (0.1, 0.01))
    config = Path(write_config(tmp_path / "c.py", agents=agents))
    config.write_text(config.read_text().replace("A tiny experiment", label))
    # Its title, then a row for each rate; its title, then a row of the best ones.
    for options, times in (({"dry_run": True}, 3), ({}, 2)):
        assert run_config(str(config), name, **options) == 0
        assert capsys.readouterr().out.count(label) == times
    (tmp_path / name / "tiny/smoke/general/Q_bold_x__nope_/alpha_0.1/rep-00.json").unlink()
    assert status.main(status.Options(name, trials=True)) == 0
    assert capsys.readouterr().out.count(name) == 2


@pytest.mark.slow  # compiles a kernel
def test_the_benchmark_tells_the_engine_from_the_rest(monkeypatch):
    quiet = benchmark.measure("smoke")
    write = trial_module.write_checkpoint
    monkeypatch.setattr(trial_module, "write_checkpoint", lambda *a: [write(*a) for _ in range(80)])
    busy = benchmark.measure("smoke")
    assert quiet["engine"] > 0
    assert busy["runner"] > 2 * quiet["runner"] > 0
    assert busy["engine"] < 2 * quiet["engine"]


def test_status_of_nothing(tmp_path):
    with refused("nothing", "start a run"):
        status.main(status.Options(str(tmp_path / "nothing")))
    with refused(str(tmp_path), "no runs"):
        status.main(status.Options(str(tmp_path)))


def test_an_agent_setup_tells_its_rates():
    assert AgentSetup("x", "MB SFR-R", reward_learning_rate=0.1, model_learning_rate=0.2).rates == {
        "learning_rate": 0.005,
        "reward_learning_rate": 0.1,
        "model_learning_rate": 0.2,
    }
    assert run.Options("x", slurm=True, cluster_options=("cores=2", "queue=long")).cluster_keywords() == {
        "cores": 2,
        "queue": "long",
    }


def test_an_engine_with_a_seed_draws_what_repetition_0_of_a_run_draws(config, undisturbed, tmp_path):
    folder = RunFolder(tmp_path / "undisturbed/tiny/smoke")
    rows = folder.read_result("general/SFR/alpha_0.005/rep-00").rows
    engine = make_engine("reference", ObjectCollection(), "SFR", seed=3, gamma=0.95)
    tasks = [sample_general_task(engine.streams.tasks) for _ in rows]
    found = [engine.run_task(task, 25) for task in tasks]
    assert [result.total_reward for result in found] == [row.total_return for row in rows]
    assert [result.gpi_counts[-1] for result in found] == [row.gpi_current for row in rows]
    assert any(0 < row.gpi_current < 25 for row in rows)
