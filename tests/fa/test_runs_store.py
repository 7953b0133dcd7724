"""Results on disk: exact, never overwritten, and damage is noticed."""

import contextlib
import hashlib
import json
import math
import os
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfr_fa.runs import store as results
from sfr_fa.runs.store import RunFolder, TaskRow, TrialResult, TrialState, TrialStatus
from sfr_theory.errors import InputError
from tests.refusals import refused

KEY = "general/SFR/alpha_0.005/rep-00"
TRIAL = {
    "setting": {"name": "general"},
    "agent": {"label": "SFR"},
    "repetition": 0,
    "rates": {"learning_rate": 0.005},
}


def row(task, total_return=1.5, diverged=False):
    return TaskRow(task, total_return, 100, 3, 60, 2, 0, 40, diverged)


ROWS = (row(0), row(1))


def write(folder, key=KEY, trial=TRIAL, rows=ROWS, tasks="abc"):
    seconds = [0.5] * len(rows)
    folder.write_result(TrialResult(key, trial, rows, seconds, tasks, {"engine": "reference"}, ["a note"]))


@pytest.fixture
def folder(tmp_path):
    run = RunFolder(tmp_path / "run")
    run.start({"name": "tiny", "seed": 3}, [KEY], {})
    return run


def test_gpi_choices_in_four_numbers():
    assert TaskRow.of_counts(np.array([3, 0, 7, 5])) == {
        "gpi_current": 5,
        "gpi_policies": 3,
        "gpi_favourite": 2,
        "gpi_favourite_count": 7,
    }
    assert TaskRow.of_counts(np.array([0, 0, 9]))["gpi_favourite"] == -1
    assert TaskRow.of_counts(np.array([9]))["gpi_favourite_count"] == 0


@given(st.floats(allow_nan=False), st.booleans())
def test_tables_are_read_back_exactly(total_return, diverged):
    rows = (row(0, total_return, diverged), row(1, -0.0))
    assert results.rows_from_csv(results.rows_to_csv(rows), None) == rows


def test_a_trial_is_read_back(folder):
    write(folder)
    result = folder.read_result(KEY)
    assert result.rows == (row(0), row(1))
    assert result.seconds == (0.5, 0.5)
    assert result.total_return == 3.0
    assert result.notes == ("a note",)
    assert folder.status(KEY).state is TrialState.FINISHED
    assert results.read_run(folder.path).trials[KEY] == result


def test_a_table_with_other_columns_is_damaged():
    table = results.rows_to_csv(ROWS).replace(b"episodes", b"lengths")
    with refused("here.csv", "episodes"):
        results.rows_from_csv(table, Path("here.csv"))


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_every_flipped_byte_is_noticed(folder, kind):
    write(folder)
    path = folder.path / f"{KEY}.{kind}"
    good = path.read_bytes()
    for position in range(0, len(good), 7):
        path.write_bytes(good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :])
        with contextlib.suppress(InputError):
            folder.read_result(KEY)
            # Only white space between the entries of the JSON may change unseen.
            assert kind == "json"
            assert json.loads(path.read_bytes()) == json.loads(good)
    path.write_bytes(good[: len(good) // 2])
    with pytest.raises(InputError):
        folder.read_result(KEY)
    status = folder.status(KEY)
    assert status.state is TrialState.DAMAGED
    assert path.name in status.reason
    assert results.read_run(folder.path).problems == (status.reason,)


def test_a_renamed_result_is_noticed(folder):
    write(folder)
    other = KEY.replace("SFR", "SF")
    folder.json_path(other).parent.mkdir(parents=True)
    folder.json_path(KEY).rename(folder.json_path(other))
    folder.csv_path(KEY).rename(folder.csv_path(other))
    with refused(f"is the result of {KEY}"):
        folder.read_result(other)


def test_a_signed_result_of_somebody_else_gets_a_sentence(folder):
    write(folder)
    path = folder.json_path(KEY)
    content = json.loads(results.signed({"format": "sfr-trial", "version": 1}))
    path.write_text(json.dumps({**content, "seconds_sha256": results.digest(None)}))
    with refused(f"{path} is not"):
        folder.read_result(KEY)


def test_nothing_is_overwritten(folder):
    write(folder)
    before = folder.json_path(KEY).read_bytes()
    write(folder)  # the same once more is fine, and keeps the first times
    assert folder.json_path(KEY).read_bytes() == before
    with refused("exists with other content"):
        write(folder, rows=(row(0), row(1, 2.5)))
    assert folder.read_result(KEY).rows == (row(0), row(1))


def test_a_config_may_change_until_a_trial_has_finished(folder):
    """What the old one had begun is gone; while it is running, it may not."""
    folder.start({"name": "tiny", "seed": 1}, [KEY], {})
    checkpoint = folder.checkpoint_path(KEY, 1)
    with folder.working_on(KEY):
        checkpoint.write_text("of another seed")
        with refused("seed was 1 and is 2", "stop"):
            folder.start({"name": "tiny", "seed": 2}, [KEY], {})
    folder.start({"name": "tiny", "seed": 2}, [KEY], {})
    assert folder.manifest()["config"]["seed"] == 2
    assert not checkpoint.exists()


def test_a_changed_config_is_refused(folder):
    folder.start({"name": "tiny", "seed": 3}, [KEY], {})
    write(folder)
    with refused("seed was 3 and is 4"):
        folder.start({"name": "tiny", "seed": 4}, [KEY], {})


def test_a_manifest_of_the_first_version_can_be_read(tmp_path):
    content = {"format": "sfr-run", "version": 1, "config": {"seed": 3}, "trials": [KEY], "provenance": {}}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    signature = hashlib.sha256(text.encode()).hexdigest()
    (tmp_path / "manifest.json").write_text(json.dumps({**content, "sha256": signature}))
    assert RunFolder(tmp_path).manifest() == content


@pytest.mark.parametrize("key", ["", "a\0b", "/etc/hosts", "../x", "a/../../x", 7])
def test_trials_are_inside_the_folder(tmp_path, key):
    """A manifest may come from somebody else, and its names are read, written and removed."""
    RunFolder(tmp_path).start({}, ["fine", key], {})
    with refused(f"{tmp_path / 'manifest.json'} is not"):
        RunFolder(tmp_path).manifest()


@pytest.mark.parametrize("entry", [{"config": []}, {"trials": {}}, {"provenance": None}])
def test_a_manifest_of_other_things_is_refused(tmp_path, entry):
    content = {"format": "sfr-run", "version": 1, "config": {}, "trials": [], "provenance": {}} | entry
    (tmp_path / "manifest.json").write_bytes(results.signed(content))
    with refused(str(tmp_path / "manifest.json"), next(iter(entry))):
        RunFolder(tmp_path).manifest()


def test_results_without_a_manifest_are_not_added_to(tmp_path):
    (tmp_path / "a.csv").write_text("1")
    with refused("no manifest.json"):
        RunFolder(tmp_path).start({}, [], {})


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ({"a": 1}, {"a": 1}, ""),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "a.b.1 was 2 and is 3"),
        ({"a": [1]}, {"a": [1, 2]}, "the length of a was 1 and is 2"),
        ({"a": 1}, {}, "a is gone"),
        ({}, {"a": {"b": 1}}, "a is new"),
        ({"a": [1]}, {"a": 1}, "a was [1] and is 1"),
    ],
)
def test_differences_in_words(old, new, words):
    assert results.first_difference(old, new) == words


def test_agents_of_a_repetition_must_have_had_the_same_tasks(tmp_path):
    folder = RunFolder(tmp_path)
    keys = ["general/SF/a/rep-00", "general/SFR/a/rep-00"]
    folder.start({}, [*keys, "general/Q/a/rep-00"], {})
    write(folder, keys[0], TRIAL | {"agent": {"label": "SF"}}, tasks="abc")
    write(folder, keys[1], TRIAL, tasks="xyz")
    run = results.read_run(tmp_path)
    assert list(run.trials) == keys
    assert run.problems == (f"{keys[0]} and {keys[1]} are of one repetition but had different tasks",)


def test_a_lock_ends_with_its_holder_and_keeps_others_out(folder):
    with folder.working_on(KEY):
        assert folder.status(KEY).state is TrialState.RUNNING
        with (
            refused("another process is working on"),
            folder.working_on(KEY, patience=0),
        ):
            pass
    assert folder.status(KEY) == TrialStatus(TrialState.MISSING, 0)


@pytest.mark.parametrize("left", ["a state", "a table"])
def test_a_trial_that_has_left_something_was_stopped(folder, left):
    path = folder.checkpoint_path(KEY, 7) if left == "a state" else folder.csv_path(KEY)
    path.parent.mkdir(parents=True)
    path.touch()
    assert folder.status(KEY) == TrialStatus(TrialState.STOPPED, 7 if left == "a state" else 0)


def test_whatever_is_in_the_place_of_a_file_is_removed_and_nothing_behind_it(tmp_path):
    precious = tmp_path / "folder" / "file"
    precious.parent.mkdir()
    precious.touch()
    link = tmp_path / "link"
    link.symlink_to(precious.parent)
    results.remove(link)
    results.remove(tmp_path / "gone")
    assert list(tmp_path.rglob("*")) == [precious.parent, precious]
    results.remove(precious.parent)
    assert not list(tmp_path.iterdir())


def test_a_lock_does_not_follow_a_link(folder, tmp_path):
    precious = tmp_path / "precious"
    precious.write_text("content")
    lock = folder.unfinished / f"{KEY}.lock"
    lock.parent.mkdir(parents=True)
    lock.symlink_to(precious)
    with refused(str(lock)), folder.working_on(KEY, patience=0):
        pass
    assert folder.status(KEY).state is TrialState.MISSING
    assert precious.read_text() == "content"


def test_a_file_in_the_place_of_a_folder_of_locks(folder):
    place = (folder.unfinished / KEY).parent
    place.parent.mkdir(parents=True)
    place.write_text("content")
    with refused(str(place)), folder.working_on(KEY):
        pytest.fail("there is no lock")


def test_a_pipe_in_the_place_of_a_lock_does_not_block(folder):
    lock = folder.unfinished / f"{KEY}.lock"
    lock.parent.mkdir(parents=True)
    os.mkfifo(lock)
    started = time.monotonic()
    with contextlib.suppress(InputError), folder.working_on(KEY, patience=1):
        pass
    folder.status(KEY)
    assert time.monotonic() - started < 10


def test_states_of_fewer_tasks_and_what_cannot_be_read_are_forgotten(folder):
    kept = [folder.checkpoint_path(KEY, tasks) for tasks in (12, 3)]
    other = folder.unfinished / f"{KEY}0.task-0001{results.SUFFIX}"
    half = kept[0].with_name(f".{kept[0].name}.{'0' * 16}")
    gone = [folder.checkpoint_path(KEY, 2), folder.checkpoint_path(KEY, 3).with_suffix(".npz"), half]
    kept[0].parent.mkdir(parents=True)
    for path in (*kept, other, *gone):
        path.touch()
    folder.forget_checkpoints(KEY, before=3)
    assert set(kept[0].parent.iterdir()) == {*kept, other}
    assert list(folder.checkpoints(KEY).items()) == [(12, kept[0]), (3, kept[1])]


def test_runners_that_tidy_up_at_the_same_time(folder):
    problems = []

    def tidy_up(name):
        for _ in range(200):
            with contextlib.suppress(OSError):  # another one removes what this one makes
                (folder.unfinished / KEY).mkdir(parents=True, exist_ok=True)
            try:
                with folder.working_on(f"general/{name}"):
                    folder.checkpoints(KEY)
                folder.tidy()
            except (OSError, InputError) as error:
                problems.append(error)

    threads = [threading.Thread(target=tidy_up, args=(k,)) for k in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not problems
    assert not folder.unfinished.exists()


@pytest.mark.parametrize("kind", ["credentials", "stop"])
def test_tidying_up_removes_what_is_old_and_nothing_younger(folder, kind):
    """Keys that a killed run has left, and orders to stop, which stay until all have read them."""
    old, young = (folder.unfinished / f"{kind}-{age}" for age in ("old", "young"))
    for place in (old, young):
        inside = place / "key" if kind == "credentials" else place
        inside.parent.mkdir(parents=True, exist_ok=True)
        inside.write_text("secret")
    os.utime(old, (time.time() - 2 * results.ORDER_SECONDS,) * 2)
    folder.tidy()
    assert (old.exists(), young.exists()) == (False, True)


def test_tidying_up_removes_half_written_files_unless_a_trial_is_under_way(folder):
    left = [folder.path / name for name in (f".manifest.json.{'0' * 16}", f"features/.rep-00.x.{'a' * 16}")]
    for path in left:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"half")
    mine = folder.path / ".notes.txt"
    mine.touch()
    with folder.working_on(KEY):
        folder.tidy()
        assert all(path.exists() for path in left)
    folder.tidy()
    assert not any(path.exists() for path in left)
    assert mine.exists()


@pytest.mark.parametrize("finished", [True, False])
def test_tidying_up_removes_what_was_left_by_who_was_killed(folder, finished):
    """Between writing the result and letting go of the trial, which is not run again, or before that."""
    state = folder.checkpoint_path(KEY, 2)
    state.parent.mkdir(parents=True)
    state.touch()
    lock = folder.unfinished / f"{KEY}.lock"
    lock.touch()
    if finished:
        write(folder)
    folder.tidy()
    assert not lock.exists()
    assert state.exists() is not finished
    assert folder.unfinished.exists() is not finished


def test_tidying_up_leaves_whoever_works_alone(folder):
    state = folder.checkpoint_path(KEY, 2)
    write(folder)
    with folder.working_on(KEY):
        state.touch()
        folder.tidy()
        assert state.exists()
        assert (folder.unfinished / f"{KEY}.lock").exists()


def test_who_waits_for_a_lock_does_not_get_one_that_is_gone(folder):
    """The first holder removes its file; a third one makes a new file before the second looks again."""
    holders, most = [], []

    def hold(name, seconds):
        with folder.working_on(KEY, patience=20):
            holders.append(name)
            most.append(len(holders))
            time.sleep(seconds)
            holders.remove(name)

    second = threading.Thread(target=hold, args=("second", 0.1))
    with folder.working_on(KEY):
        second.start()
        time.sleep(0.1)  # it has opened the file by now
    hold("third", 0.6)
    second.join()
    assert most == [1, 1]


def test_the_best_rates_have_the_highest_mean_return(tmp_path):
    folder = RunFolder(tmp_path)
    returns = {0.0025: (1.0, 4.0), 0.005: (2.0, 3.5), 0.025: (9.0, math.nan)}
    for rate, totals in returns.items():
        for repetition, total in enumerate(totals):
            diverged = math.isnan(total)
            trial = TRIAL | {"rates": {"learning_rate": rate}, "repetition": repetition}
            write(folder, f"{rate}/{repetition}", trial, [row(0, 0.0 if diverged else total, diverged)])
    found = [folder.read_result(f"{rate}/{k}") for rate in returns for k in (0, 1)]
    planned = {("general", "SFR"): 3}
    points = results.grid_points(found, planned, 2, frozenset())
    assert [(p.rates["learning_rate"], p.mean_total_return, p.diverged, p.best) for p in points] == [
        (0.0025, 2.5, 0, False),
        (0.005, 2.75, 0, True),
        (0.025, 4.5, 1, False),
    ]
    # One repetition is missing, a combination is missing, all have one repetition too few.
    for unfinished in (found[1:], found[2:], found[::2]):
        points_so_far = results.grid_points(unfinished, planned, 2, frozenset())
        assert not any(point.best for point in points_so_far), "it has no winner"
    assert results.grid_to_csv(points).decode().splitlines()[2] == "general,SFR,0.005,2,2.75,0,1,,,"


def test_a_race_that_is_finished_has_a_winner_and_says_who_fell(folder):
    returns = {0.0025: (9.0, 9.4), 0.005: (20.0, 20.5, 19.8, 20.2, 20.1), 0.025: (1.0, 1.1)}
    for rate, totals in returns.items():
        for repetition, total in enumerate(totals):
            trial = TRIAL | {"rates": {"learning_rate": rate}, "repetition": repetition}
            write(folder, f"{rate}/{repetition}", trial, [row(0, total)])
    keys = [f"{rate}/{repetition}" for rate, totals in returns.items() for repetition in range(len(totals))]
    found, place = [folder.read_result(key) for key in keys], ("general", "SFR")
    for races, best, fell in ((frozenset(), [], []), (frozenset({place}), [0.005], [0.0025, 0.025])):
        points = results.grid_points(found, {place: 3}, 5, races)
        assert [point.rates["learning_rate"] for point in points if point.best] == best
        assert [point.rates["learning_rate"] for point in points if point.dropped] == fell


def test_a_folder_remembers_who_has_raced(folder):
    assert folder.races() == frozenset()
    first, second = frozenset({("general", "Q")}), frozenset({("general", "Q"), ("linear", "SFR")})
    folder.add_races(first)
    assert folder.races() == first
    folder.add_races(second)
    [file] = folder.path.glob("race.json")
    os.utime(file, (1, 1))
    folder.add_races(first)
    assert folder.races() == second
    assert file.stat().st_mtime == 1, "nothing new"
