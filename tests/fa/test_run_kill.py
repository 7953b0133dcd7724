"""sfr_fa.run in processes that are killed: the final files are those of an undisturbed run.

`python -m experiments.kill_test` does this at length, at random moments.
"""

import json
import math
import os
import pty
import re
import select
import signal
import subprocess
import sys
import time

import pytest

from experiments import kill_test
from experiments.kill_test import workers_of
from sfr_fa.runs.store import RunFolder
from tests.commands import ROOT, python
from tests.fa.tiny import RACER, checkpoints, command, contents, outcome, run_config, wait_for, write_config
from tests.refusals import refused

# Runs sfr_fa.run and kills itself with SIGKILL where the n-th file would get its final name.
KILLED_WHILE_WRITING = """
import os, signal, sys
from pathlib import Path
count, replace = int(sys.argv.pop(1)), Path.replace
def counted(self, target):
    global count
    count -= 1
    if count == 0:
        os.truncate(self, os.stat(self).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
    return replace(self, target)
Path.replace = counted
from sfr_fa import run
from sfr_theory import cli
cli.run(run.main, run.Options, "sfr_fa.run", "")
"""


@pytest.fixture
def config(tmp_path):
    return write_config(tmp_path / "tiny.py", tasks=5, steps=150, repetitions=2)


def finish(process):
    output, _ = process.communicate(timeout=180)
    return process.returncode, output


def test_killed_in_the_middle_of_writing_a_checkpoint(tmp_path):
    config = write_config(tmp_path / "tiny.py")
    assert run_config(config, tmp_path / "undisturbed") == 0
    results = tmp_path / "r"
    for number in (1, 3, 7):  # the manifest, a checkpoint, the JSON of a trial
        process = python(
            "-c", KILLED_WHILE_WRITING, number, config, "--results", results, cwd=ROOT, timeout=120
        )
        assert process.returncode == -signal.SIGKILL, process.stderr
        assert list(results.rglob(".*")), "half a file is left behind"
    assert outcome(config, results) == contents(tmp_path / "undisturbed")
    assert not (results / "tiny/smoke/unfinished").exists()


@pytest.mark.slow
def test_runner_and_workers_killed(config, undisturbed, tmp_path, launch):
    results = tmp_path / "r"
    for _ in range(2):
        process = launch(config, "--results", results, "--workers", 2)
        before = set(checkpoints(results))
        wait_for(lambda before=before: set(checkpoints(results)) - before)
        process.kill()
        process.communicate()
    process = launch(config, "--results", results, "--workers", 2)
    wait_for(lambda: len(workers_of(process)) == 2)
    before = set(checkpoints(results))
    wait_for(lambda: set(checkpoints(results)) - before)
    workers_of(process)[0].kill()
    code, output = finish(process)
    assert code == 0, output
    assert contents(results) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("workers", [1, 2])
def test_control_c(config, undisturbed, tmp_path, launch, workers):
    results = tmp_path / "r"
    process = launch(config, "--results", results, "--workers", workers)
    wait_for(lambda: checkpoints(results))
    pressed = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)  # as a terminal does: to workers as well
    code, output = finish(process)
    assert code == 130
    assert time.monotonic() - pressed < 10
    assert "interrupted; the same command" in output
    assert "Traceback" not in output
    assert outcome(config, results) == undisturbed


@pytest.mark.slow
@pytest.mark.parametrize("module", ["sfr_fa.run", "experiments.reproduce"])
def test_control_c_does_not_wait_for_compiled_code(tmp_path, launch, module):
    arguments = ("--profile", "paper", "--workers", 1)
    if module == "sfr_fa.run":
        long = {"tasks": 1, "steps": 6_000_000, "engine": "compiled", "setting": RACER}
        arguments = [write_config(tmp_path / "long.py", 'AgentSetup("CSFR", "CSFR"),', **long)]
    process = launch(*arguments, "--results", tmp_path / "r", module=module)
    wait_for(lambda: list((tmp_path / "r").rglob("*.lock")))
    time.sleep(3)  # it is in the kernel by then, for some twenty seconds
    pressed = time.monotonic()
    os.killpg(process.pid, signal.SIGINT)
    code, output = finish(process)
    assert time.monotonic() - pressed < 5
    assert code == 130
    assert "interrupted; the same command" in output


def read_terminal(terminal, process, until=b"\0"):
    """What a process writes to a terminal until it ends, or until some text comes."""
    seen = b""
    deadline = time.monotonic() + 60
    while until not in seen and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.1)[0]:
            try:
                seen += os.read(terminal, 65536)
            except OSError:  # Linux: the other end is closed
                break
        elif process.poll() is not None:
            break
    return seen.decode()


@pytest.mark.slow
def test_progress_on_a_terminal(tmp_path):
    config = write_config(tmp_path / "tiny.py", tasks=5, steps=1000, repetitions=2)  # seconds for each trial
    terminal, other_end = pty.openpty()
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "120"}
    process = subprocess.Popen(
        command(config, "--results", tmp_path / "r"), cwd=ROOT, env=environment, start_new_session=True,
        stdin=other_end, stdout=other_end, stderr=other_end,
    )  # fmt: skip
    os.close(other_end)
    try:
        shown = read_terminal(terminal, process, until=b"1/6 trials")
        os.killpg(process.pid, signal.SIGINT)
        shown += read_terminal(terminal, process)
        assert process.wait(60) == 130
    finally:
        process.kill()
        process.wait()
        os.close(terminal)
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    # Trials done, part of the work, speed, time left.
    lines = re.findall(r"(\d)/6 trials \S+ +(\d+) %  ([\d,-]+) steps/s +(\d:\d\d:\d\d|-:--:--) left", plain)
    assert lines[0] == ("0", "0", "-", "-:--:--")
    trials, percent, speed, left = lines[-1]
    assert int(trials) >= 1
    assert int(percent) >= 16
    assert int(speed.replace(",", "")) > 0
    assert left.startswith("0:0")
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l"), "the cursor is back"
    assert plain.rstrip().endswith("interrupted; the same command continues from here")


@pytest.mark.slow
def test_a_scheduler_with_two_workers_one_of_which_is_killed(config, undisturbed, tmp_path, launch):
    results = tmp_path / "r"
    address_file = tmp_path / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    quiet = {"cwd": ROOT, "env": environment, "stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    scheduler = [sys.executable, "-m", "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard"]
    started = [subprocess.Popen([*scheduler, "--scheduler-file", str(address_file)], **quiet)]
    try:
        wait_for(address_file.exists)
        worker = [sys.executable, "-m", "distributed.cli.dask_worker", "--scheduler-file", str(address_file)]
        options = ["--nthreads", "1", "--no-dashboard", "--no-nanny", "--local-directory", str(tmp_path)]
        started += [subprocess.Popen([*worker, *options], **quiet) for _ in range(2)]
        address = json.loads(address_file.read_text())["address"]
        process = launch(config, "--results", results, "--scheduler", address)
        wait_for(lambda: checkpoints(results))
        started[1].kill()
        code, output = finish(process)
        assert code == 0, output
        assert contents(results) == undisturbed
    finally:
        for one in started:
            one.kill()
            one.wait()


def test_a_scheduler_that_is_not_there(tmp_path):
    config = write_config(tmp_path / "tiny.py")
    options = ("--results", tmp_path / "r", "--scheduler", "tcp://127.0.0.1:9")
    process = python("-m", "sfr_fa.run", config, *options, cwd=ROOT, timeout=120)
    assert process.returncode == 2, process.stdout
    assert process.stderr.startswith("error: no Dask scheduler answers at tcp://127.0.0.1:9")
    assert "the scheduler at tcp://127.0.0.1:9 is open" in " ".join(process.stdout.split())
    assert process.stderr.count("\n") == 1
    assert not list(RunFolder(tmp_path / "r").path.rglob("*.csv"))


@pytest.mark.parametrize(
    ("changes", "place"),
    [({"kills": 0}, "--kills"), ({"profile": "a\0b"}, "profile"), ({"experiment": "a\0b"}, "experiment"),
     ({"longest_wait": math.nan}, "--longest-wait"), ({"patience": -1.0}, "--patience")],
)  # fmt: skip
def test_the_long_test_refuses_bad_input_before_it_starts(changes, place):
    with refused(place):
        kill_test.main(kill_test.Options(**changes))
