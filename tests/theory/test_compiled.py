"""Compiled code on disk: found again, and compiled anew where it was damaged, with a word about it."""

import os
import subprocess
import sys
import textwrap

import pytest

from sfr_theory import compiled

MODULE = """
from sfr_theory.compiled import stored

def add(a, b):
    return a + b

def twice(x):
    return 2 * x

if __name__ == "__main__":
    from module import add
    fast = stored(add)
    print(fast(1, 2), fast(1.5, 2.0))
    print(sum(fast.dispatcher.stats.cache_hits.values()), sum(fast.dispatcher.stats.cache_misses.values()))
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "module.py").write_text(textwrap.dedent(MODULE))

    def run():
        """How often a new process loads and compiles, "loaded compiled", and its warnings."""
        environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            [sys.executable, "module.py"],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        results, counts = done.stdout.splitlines()
        assert results == "3 3.5"
        return counts, done.stderr

    return run


def files(tmp_path, ending):
    return sorted((tmp_path / "cache").rglob(f"*{ending}"))


def flip(path):
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 0xFF
    path.write_bytes(bytes(content))


def test_compiled_once_and_found_again(run, tmp_path):
    assert run() == ("0 2", "")
    assert len(files(tmp_path, ".nbc")) == 2
    assert run() == ("2 0", "")


@pytest.mark.parametrize(
    ("ending", "damage"),
    [
        (".nbc", flip),
        (".nbi", flip),
        (".nbi", lambda path: path.write_bytes(b"")),
        (".nbc", lambda path: path.write_bytes(path.read_bytes()[:100])),
    ],
    ids=["code flipped", "index flipped", "index empty", "code cut short"],
)
def test_damaged_files_are_compiled_again_with_a_warning(run, tmp_path, ending, damage):
    run()
    damaged = files(tmp_path, ending)[0]
    damage(damaged)
    counts, warning = run()
    assert counts != "2 0"
    assert damaged.name in warning
    assert run() == ("2 0", "")


def test_files_that_were_never_finished_are_not_believed(run, tmp_path):
    """As after a kill between writing code and recording its checksum: no word, but nothing is used."""
    run()
    [checksums] = files(tmp_path, compiled.CHECKSUMS)
    checksums.unlink()
    assert run() == ("0 2", "")
    checksums.write_text("[")
    assert run() == ("0 2", "")


def test_other_sources_have_another_folder(run, tmp_path):
    run()
    (tmp_path / "module.py").write_text(textwrap.dedent(MODULE).replace("2 * x", "3 * x"))
    assert run() == ("0 2", "")
    assert len(files(tmp_path, compiled.CHECKSUMS)) == 2


def test_a_folder_that_cannot_be_written(tmp_path, monkeypatch):
    (tmp_path / "file").touch()
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "file" / "cache"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "of the user"))
    assert compiled.writable_folder(tmp_path, "x") == tmp_path / "of the user" / "sfr" / "x"
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    own = compiled.writable_folder(tmp_path, "x")
    assert own.is_dir()
    assert tmp_path not in own.parents
