"""Reading runs: what is sound is used, what is not is noticed and said."""

import importlib
import sys

import numpy as np
import pytest

from sfr_fa.runs import load as runs
from sfr_fa.runs.store import RunFolder, TaskRow
from tests.experiments.synthetic import agent, flat, key_of, setting, sign_again, write_again, write_run
from tests.fa.tiny import run_config, write_config
from tests.refusals import refused

GENERAL = setting("general")
Q, SF, SFR = agent("Q"), agent("SF"), agent("SFR")
LEVELS = {"Q": 1.0, "SF": 5.0, "SFR": 7.0}


constant = flat(lambda place, setup, repetition: LEVELS[setup["label"]] + repetition)


@pytest.fixture
def folder(tmp_path):
    return write_run(tmp_path, "mine", [(GENERAL, [Q, SF, SFR])], constant)


def test_a_sound_run_is_read_whole(folder):
    run = runs.load(folder)
    assert not run.problems
    assert not run.notes
    assert [a.label for a in run.in_setting("general")] == ["Q", "SF", "SFR"]
    assert run.agents["general", "SF"].totals.tolist() == [60.0, 72.0, 84.0]
    assert run.agents["general", "SF"].returns.shape == (3, 12)
    assert run.agents["general", "SF"].seconds.tolist() == [6.0, 6.0, 6.0]
    assert run.environment("general") == "object_collection"
    assert not run.is_grid


def test_names_that_were_swapped_under_fresh_checksums_are_noticed_and_left_out(folder):
    for mine, other in ((SF, "SFR"), (SFR, "SF")):
        path = RunFolder(folder).json_path(key_of(GENERAL, mine, 1))
        sign_again(path, lambda c, other=other: c["trial"]["agent"].update(label=other, agent=other))
    run = runs.load(folder)
    assert len(run.problems) == 2
    assert "agent.agent was 'SF' and is 'SFR'" in run.problems[0]
    assert run.agents["general", "SF"].repetitions == (0, 2)


def test_a_repetition_lost_from_the_manifest_too_is_noticed(folder):
    sign_again(folder / "manifest.json", lambda content: content["trials"].remove(key_of(GENERAL, SF, 1)))
    run = runs.load(folder)
    assert any("lists 8 trials; its config has 9" in problem for problem in run.problems)
    assert any("is not named in the manifest" in problem for problem in run.problems)
    assert not run.agents  # nothing can be told apart any more


def test_what_is_missing_is_said_once(tmp_path):
    """Many agents in many settings make few sentences: alike ones go together."""
    places = [setting(f"level_{k}") for k in range(3)]
    lost = {key_of(place, setup, 2) for place in places for setup in (Q, SF)}
    lost |= {key_of(place, SFR, k) for place in places[1:] for k in range(3)}
    run = runs.load(
        write_run(tmp_path, "mine", [(p, [Q, SF, SFR]) for p in places], constant, leave_out=lost)
    )
    assert run.not_run == "Not run: SFR (level_1, level_2)."
    assert run.notes[0] == "level_0: Q, SF have 2 of 3 repetitions; missing: 2"
    assert len(run.notes) == 3


@pytest.mark.parametrize("rate", [0.2, "schedules:slow"])
def test_a_rate_that_was_not_run_is_said(rate, tmp_path):
    grid = [agent("SF", learning_rate=rate) for rate in (0.1, rate)]
    lost = {key_of(GENERAL, grid[1], k) for k in range(3)}
    run = runs.load(write_run(tmp_path, "grid", [(GENERAL, grid)], constant, leave_out=lost))
    assert run.not_run == f"Not run: SF (rate {rate})."


def test_an_agent_of_many_rates_that_was_not_run_is_named_once(tmp_path):
    grid = [agent("Q", learning_rate=0.1), *(agent("SF", learning_rate=rate) for rate in (0.1, 0.2))]
    lost = {key_of(GENERAL, setup, k) for setup in grid[1:] for k in range(3)}
    run = runs.load(write_run(tmp_path, "grid", [(GENERAL, grid)], constant, leave_out=lost))
    assert run.not_run == "Not run: SF."


def test_a_manifest_with_other_content_gets_a_sentence(folder):
    sign_again(folder / "manifest.json", lambda content: content["config"].pop("parts"))
    with refused(str(folder), "is not what"):
        runs.load(folder)


def test_diverged_and_short_trials_are_left_out(folder):
    row = TaskRow(0, 3.0, 20_000, 1, 20_000, 1, -1, 0, False)
    write_again(folder, key_of(GENERAL, SF, 0), [row])
    write_again(folder, key_of(GENERAL, SFR, 2), [row, TaskRow(1, np.nan, 77, 1, 77, 1, -1, 0, True)])
    run = runs.load(folder)
    assert ["has 1 of 12 tasks" in problem for problem in run.problems] == [True]
    diverged, missing = run.notes
    assert "diverged in task 1" in diverged
    assert "SF has 2 of 3 repetitions" in missing
    assert run.agents["general", "SF"].repetitions == (1, 2)
    assert run.agents["general", "SFR"].repetitions == (0, 1)


def test_an_agent_is_shown_at_its_best_rates(tmp_path):
    grid = [agent("SF", learning_rate=rate) for rate in (0.1, 0.2, 0.3)]

    levels = {0.1: 1.0, 0.2: 5.0, 0.3: 3.0}
    returns = flat(lambda place, setup, repetition: levels[setup["learning_rate"]] + repetition)
    run = runs.load(write_run(tmp_path, "grid", [(GENERAL, grid)], returns))
    assert run.is_grid
    assert run.agents["general", "SF"].rates == {"learning_rate": 0.2}
    unfinished = write_run(
        tmp_path / "later", "grid", [(GENERAL, grid)], returns, leave_out={key_of(GENERAL, grid[1], 2)}
    )
    run = runs.load(unfinished)
    assert run.agents["general", "SF"].rates == {"learning_rate": 0.2}
    assert any("best so far" in note for note in run.notes)


def test_runs_are_found_and_unreadable_ones_named(folder, tmp_path):
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "manifest.json").write_text("{")
    found, unreadable = runs.load_all(tmp_path)
    assert [run.name for run in found] == ["mine"]
    assert len(unreadable) == 1
    assert "not JSON" in unreadable[0]
    with refused("other"):
        runs.load(tmp_path / "other")


def test_code_of_your_own_that_changed_between_trials_is_named(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    config = write_config(
        tmp_path / "mine.py",
        repetitions=2,
        agents='AgentSetup("Q", "Q"),',
        setting='Setting("general", "rooms_of_mine:environment", "general", gamma=0.95)',
    )
    source = "from sfr_fa.environments.object_collection import ObjectCollection as environment\n"
    folder = tmp_path / "results"
    for repetition, text in enumerate((source, source + "# changed\n")):
        (tmp_path / "rooms_of_mine.py").write_text(text)
        sys.modules.pop("rooms_of_mine", None)
        importlib.invalidate_caches()
        assert run_config(config, folder, repetitions=(repetition,)) == 0
        [run] = runs.load_all(folder)[0]
        changed = [note for note in run.notes if "rooms_of_mine" in note]
        assert len(changed) == repetition


def test_an_agent_of_your_own_and_what_it_imports_are_recorded(tmp_path, monkeypatch):
    """Of what it imports, that which lies in its folder: packages that are installed have versions."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "my_parts").mkdir()
    (tmp_path / "my_parts/__init__.py").write_text("import json, numpy\nfrom . import inner\n")
    (tmp_path / "my_parts/inner.py").write_text("from sfr_fa.agents import AGENT_SPECS\n")
    (tmp_path / "my_row.py").write_text("from my_parts.inner import AGENT_SPECS\nROW = AGENT_SPECS['Q']\n")
    config = write_config(tmp_path / "mine.py", agents='AgentSetup("Q", "my_row:ROW"),')
    assert run_config(config, tmp_path / "results") == 0
    [run] = runs.load_all(tmp_path / "results")[0]
    assert list(run.trials[0].provenance["modules"]) == ["my_parts", "my_parts.inner", "my_row"]
