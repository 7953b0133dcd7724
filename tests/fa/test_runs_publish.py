"""A run as one table: nothing is lost or changed, more is added, and what differs is refused."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sfr_fa.runs import load, publish
from sfr_fa.runs.store import RunFolder, TaskRow, digest
from sfr_theory.errors import InputError
from tests.experiments.synthetic import agent, flat, key_of, setting, sign_again, write_again, write_run
from tests.refusals import refused

GENERAL, LINEAR = setting("general"), setting("linear", tasks="linear")
Q, SF, SFR = agent("Q"), agent("SF"), agent("SFR")
GRID = [agent("SF-R", reward_learning_rate=rate) for rate in (0.1, 1 / 3)]


def random(place, setup, repetition, rng):
    return rng.normal(100, 30, 12)


def command(*folders, output):
    return publish.main(publish.Options(tuple(map(str, folders)), str(output)))


@pytest.fixture
def folder(tmp_path):
    """Two settings, a grid of rates, and a repetition that is missing."""
    lost = {key_of(LINEAR, SF, 1)}
    return write_run(
        tmp_path / "runs", "mine", [(GENERAL, [Q, SF, *GRID]), (LINEAR, [SF])], random, leave_out=lost
    )


def test_a_published_run_is_the_run(folder, tmp_path):
    assert command(folder, output=tmp_path) == 0
    before, after = load.load(folder), load.load(tmp_path / "mine")
    assert list(after.agents) == list(before.agents)
    for place, run in before.agents.items():
        assert after.agents[place].rates == run.rates
        assert after.agents[place].repetitions == run.repetitions
        np.testing.assert_array_equal(after.agents[place].returns, run.returns)
        np.testing.assert_array_equal(after.agents[place].totals, run.totals)
        np.testing.assert_array_equal(after.agents[place].seconds, run.seconds)
    for name in ("config", "provenance", "notes", "problems", "not_run", "commits", "fingerprint"):
        assert getattr(after, name) == getattr(before, name)
    assert sorted(map(repr, after.grid)) == sorted(map(repr, before.grid))


def test_the_table_is_tidy(folder, tmp_path):
    command(folder, output=tmp_path)
    header, first, *rows = (tmp_path / "mine.csv").read_text().splitlines()
    assert header == "setting,agent,rates,repetition,task,total_return"
    expected = load.load(folder).agents["general", "Q"].returns[0, 0]
    assert first == f"general,Q,0.005,0,0,{float(expected)!r}"
    assert len(rows) + 1 == 12 * (5 * 3 - 1)
    assert any(row.startswith("general,SF-R,0.005/0.333333,2,11,") for row in rows)


def test_publishing_again_adds_what_is_new(folder, tmp_path):
    command(folder, output=tmp_path)
    before = (tmp_path / "mine.csv").read_bytes()
    command(folder, output=tmp_path)
    assert (tmp_path / "mine.csv").read_bytes() == before
    parts = [(GENERAL, [Q, SF, *GRID]), (LINEAR, [SF])]
    whole = write_run(tmp_path / "later", "mine", parts, random)
    command(whole, output=tmp_path)
    assert load.load(tmp_path / "mine").agents["linear", "SF"].repetitions == (0, 1, 2)
    # What an earlier folder has is there already.
    command(folder, output=tmp_path)
    assert load.load(tmp_path / "mine").agents["linear", "SF"].repetitions == (0, 1, 2)


def test_a_config_may_gain_agents_and_settings(tmp_path):
    constant = flat(lambda place, setup, repetition: repetition)
    first = write_run(tmp_path / "first", "mine", [(GENERAL, [Q, SFR])], constant)
    second = write_run(tmp_path / "second", "mine", [(GENERAL, [Q, SF, SFR]), (LINEAR, [SF])], constant)
    command(first, second, output=tmp_path / "one")
    command(second, first, output=tmp_path / "other")
    for order in ("one", "other"):
        run = load.load(tmp_path / order / "mine")
        assert list(run.agents) == [
            ("general", "Q"), ("general", "SF"), ("general", "SFR"), ("linear", "SF"),
        ]  # fmt: skip
    assert (tmp_path / "one" / "mine.csv").read_bytes() == (tmp_path / "other" / "mine.csv").read_bytes()


def test_a_config_may_gain_an_option_that_is_not_used(folder, tmp_path):
    """What a later version leaves at null is what an earlier one did not know."""
    command(folder, output=tmp_path)
    before = load.load(tmp_path / "mine")
    parts = [
        (place, [setup | {"rule": None} for setup in agents])
        for place, agents in ((GENERAL, [Q, SF, *GRID]), (LINEAR, [SF]))
    ]
    command(write_run(tmp_path / "later", "mine", parts, random), output=tmp_path)
    after = load.load(tmp_path / "mine")
    assert list(after.agents) == list(before.agents)
    assert not after.notes
    used = [(GENERAL, [agent("Q", rule="other")])]
    with refused("differs"):
        command(write_run(tmp_path / "other", "mine", used, lambda *_: np.ones(12)), output=tmp_path)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"returns": lambda *_: np.ones(12)}, "general/Q/0.005/rep-00 differs"),
        ({"seed": 1}, "seed was 0 and is 1"),
        ({"profile": "smoke", "size": (12, 20_000, 3)}, "profile"),
        ({"parts": [(GENERAL | {"gamma": 0.5}, [Q, SF, *GRID])]}, "setting.gamma was 0.95 and is 0.5"),
    ],
    ids=["numbers", "seed", "profile", "setting"],
)
def test_what_differs_is_refused_and_nothing_is_written(folder, tmp_path, change, words):
    command(folder, output=tmp_path)
    before = {path: path.read_bytes() for path in tmp_path.glob("mine.*")}
    options = {"parts": [(GENERAL, [Q, SF, *GRID]), (LINEAR, [SF])], "returns": random} | change
    other = write_run(tmp_path / "other", "mine", **options)
    with refused(words, "--output"):
        command(other, output=tmp_path)
    assert {path: path.read_bytes() for path in tmp_path.glob("mine.*")} == before


def test_a_damaged_trial_is_not_published(folder, tmp_path):
    table = RunFolder(folder).csv_path(key_of(GENERAL, Q, 0))
    table.write_bytes(table.read_bytes() + b"\n")
    with refused("rep-00.csv is damaged", "nothing of"):
        command(folder, output=tmp_path)
    assert not list(tmp_path.glob("mine.*"))


ROW = TaskRow(0, 1.5, 20_000, 1, 20_000, 1, -1, 0, diverged=False)
ROWS = [replace(ROW, task=task) for task in range(12)]


@pytest.mark.parametrize(
    ("changes", "rows", "words"),
    [
        ({"seed": 7}, ROWS, "seed was 0 and is 7"),
        ({"agent": SF}, ROWS, "agent.agent was"),
        ({}, ROWS[:-1], "11 of 12 tasks"),
        ({}, [*ROWS[:-2], ROWS[-1], ROWS[-2]], "order"),
        ({}, [*ROWS[:-1], replace(ROWS[-1], steps=19_999)], "20000 steps"),
        ({}, [*ROWS[:-1], replace(ROWS[-1], total_return=np.inf)], "finite"),
    ],
    ids=["seed", "agent", "fewer", "order", "steps", "infinite"],
)
def test_a_result_of_another_trial_is_not_published(folder, tmp_path, changes, rows, words):
    write_again(folder, key_of(GENERAL, Q, 1), rows, **changes)
    with refused(key_of(GENERAL, Q, 1), words, "nothing of"):
        command(folder, output=tmp_path)
    write_again(folder, key_of(GENERAL, Q, 2), rows, **changes)
    with refused("and 1 more"):
        command(folder, output=tmp_path)
    assert not list(tmp_path.glob("mine.*"))


def test_a_manifest_of_other_trials_than_its_config_has_is_not_published(folder, tmp_path):
    trials = json.loads((folder / "manifest.json").read_text())["trials"]
    sign_again(folder / "manifest.json", lambda content: content.update(trials=trials[:-1]))
    RunFolder(folder).csv_path(trials[-1]).unlink(missing_ok=True)
    with refused(str(folder), "14", "15"):
        command(folder, output=tmp_path)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [(b"setting,agent", b"agent,setting", "columns"), (b"general,Q,0.005,1,3,", None, "11")],
)
def test_a_table_of_another_form_gets_a_sentence(folder, tmp_path, old, new, words):
    """Its checksum is right."""
    command(folder, output=tmp_path)
    table = tmp_path / "mine.csv"
    lines = table.read_bytes().splitlines(keepends=True)
    changed = b"".join(
        line.replace(old, new) if new else line for line in lines if new or not line.startswith(old)
    )
    assert changed != table.read_bytes()
    table.write_bytes(changed)
    sign_again(tmp_path / "mine.json", lambda content: content.update(csv_sha256=digest(changed)))
    with refused("mine", words):
        publish.read(tmp_path / "mine")


def test_it_says_how_many_are_new(folder, tmp_path, capsys):
    for added in ("14 added", "0 added"):
        command(folder, output=tmp_path)
        assert f"{added}, 14 trials" in capsys.readouterr().out


def test_every_changed_number_is_noticed(folder, tmp_path):
    command(folder, output=tmp_path)
    for ending in ("csv", "json"):
        path = tmp_path / f"mine.{ending}"
        good = path.read_bytes()
        for position in range(50, len(good), len(good) // 40):
            changed = bytes([good[position] ^ 1])
            path.write_bytes(good[:position] + changed + good[position + 1 :])
            if ending == "json" and good[position : position + 1].isspace():
                continue
            with pytest.raises(InputError):
                load.load(tmp_path / "mine")
        path.write_bytes(good)
    load.load(tmp_path / "mine")
    (tmp_path / "mine.csv").unlink()
    with refused("mine.csv"):
        load.load(tmp_path / "mine")


@pytest.mark.parametrize("entry", ["config", "trials", "provenances", "csv_sha256"])
def test_signed_files_of_others_get_a_sentence(folder, tmp_path, entry):
    command(folder, output=tmp_path)
    sign_again(tmp_path / "mine.json", lambda content: content.pop(entry))
    found, unreadable = load.load_all(tmp_path)
    assert [run.path for run in found] == [folder]
    assert len(unreadable) == 1
    assert "mine is not what sfr_fa.runs.publish writes" in unreadable[0]


def test_a_diverged_trial_stays_one(folder, tmp_path):
    rows = [ROW, TaskRow(1, np.nan, 7, 1, 7, 1, -1, 0, diverged=True)]
    write_again(folder, key_of(GENERAL, Q, 1), rows)
    command(folder, output=tmp_path)
    run = load.load(tmp_path / "mine")
    assert run.notes == load.load(folder).notes
    assert run.agents["general", "Q"].repetitions == (0, 2)


def test_without_a_folder_there_is_a_sentence(tmp_path):
    with refused("name at least one folder"):
        command(output=tmp_path)
    with refused("cannot read"):
        command(tmp_path, output=tmp_path)


def test_a_folder_of_profiles_is_refused_by_their_names(folder, tmp_path):
    with refused("profile", str(folder)):
        command(folder.parent, output=tmp_path)


def test_a_table_without_its_manifest_is_not_written_over(folder, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("precious")
    with refused("mine.csv", "mine.json", "move", unchanged=table.read_text):
        command(folder, output=tmp_path)
