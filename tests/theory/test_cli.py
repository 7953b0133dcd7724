"""Output: whole files, links followed, devices left alone; what cannot be written is said first."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from sfr_theory.cli import require_writable, write_atomic, write_json
from tests.refusals import refused


def test_a_link_is_followed(tmp_path):
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("old")
    link.symlink_to(target)
    write_atomic(link, b"new")
    assert link.is_symlink()
    assert target.read_text() == "new"
    assert {path.name for path in tmp_path.iterdir()} == {"link", "target"}


def test_a_pipe_is_written_to(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code = "import sys, pathlib, sfr_theory.cli as cli; cli.write_atomic(pathlib.Path(sys.argv[1]), b'x')"
    with subprocess.Popen([sys.executable, "-c", code, str(pipe)]) as process:
        assert pipe.read_bytes() == b"x"
    assert process.returncode == 0
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@pytest.mark.parametrize("name", ["file/x.json", "file/deeper/x.json"])
def test_what_cannot_be_written_is_said_first(tmp_path, name):
    (tmp_path / "file").write_text("")
    with refused("cannot write"):
        require_writable(str(tmp_path / name))


def test_nothing_to_write_is_fine(tmp_path):
    require_writable(None, "-", str(tmp_path / "new" / "x.json"))


def test_infinite_numbers_become_null(tmp_path):
    write_json({"a": float("inf"), "b": [float("nan"), 1.5]}, str(tmp_path / "x.json"))
    assert json.loads((tmp_path / "x.json").read_text()) == {"a": None, "b": [None, 1.5]}


def small_run(output="-", **streams):
    """A short command, JSON to `output`; its streams are pipes if nothing else is said."""
    flags = ["--mdps", "9", "--workers", "1", "--json", str(output)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    command = [sys.executable, "-m", "sfr_theory.check_gpi_bound", *flags]
    return subprocess.run(command, text=True, check=False, **(pipes | streams))


@pytest.fixture
def no_reader():
    """The end of a pipe from which nobody reads, as in `| head -1`."""
    read, write = os.pipe()
    os.close(read)
    yield write
    os.close(write)


def test_without_a_reader_the_work_is_done_and_written(tmp_path, no_reader):
    """The exit code still is that of the result."""
    result = small_run(tmp_path / "x.json", stdout=no_reader)
    assert (result.returncode, result.stderr) == (0, "")
    assert json.loads((tmp_path / "x.json").read_text())


def test_without_a_reader_of_the_tables_the_json_is_printed(no_reader):
    """With `--json -` tables go to standard error."""
    result = small_run(stderr=no_reader)
    assert result.returncode == 0
    assert json.loads(result.stdout)


def test_a_full_disk_is_a_sentence():
    with Path("/dev/full").open("w") as full:
        result = small_run(stdout=full)
    assert result.returncode == 2
    assert "cannot write the output: No space left on device" in result.stderr
    assert "Traceback" not in result.stderr
