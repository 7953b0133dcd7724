"""No traceback and no hang on bad input: files of every kind, spoiled in every way, and impossible output.

`python -m tests.hostile 1000` and `python -m tests.hostile_options` try more of the same.
"""

import ast
import dataclasses
import itertools
import os
import random
import sys
from pathlib import Path

import pytest

from sfr_theory import reading
from sfr_theory.atomic import write_atomic
from tests import hostile, hostile_options
from tests.commands import ROOT
from tests.refusals import refused

PACKAGES = ("sfr_theory", "sfr_fa", "experiments", "proofs_checks")
SOURCES = {
    path.relative_to(ROOT).as_posix(): path for package in PACKAGES for path in (ROOT / package).rglob("*.py")
}


@pytest.fixture(scope="module")
def good(tmp_path_factory):
    folder = tmp_path_factory.mktemp("hostile") / "good"
    folder.mkdir()
    return folder, hostile.material(folder)


def test_files_that_are_right_are_taken(good):
    folder, targets = good
    hostile.check_material(targets, folder)


def test_spoiled_files(good):
    folder, targets = good
    rng = random.Random(1)
    assert [finding for target in targets for finding in hostile.attack(target, folder, 6, rng)] == []


def test_what_is_no_file(good):
    """A pipe in the place of each file, and one other kind; `python -m tests.hostile` tries all."""
    folder, targets = good
    kinds = itertools.cycle(hostile.other_files(folder))
    for target in targets:
        read = next(iter(target.readers.values()))
        for kind in ("pipe", next(kinds)):
            with hostile.copied(folder) as copy:
                path = copy / target.file
                path.unlink()
                hostile.other_files(path)[kind]()
                assert hostile.taken(read, copy) == "", (target.file, kind)


# --- Everything is read and written in one way --------------------------------------------------------

READS = {"read_text", "read_bytes", "open", "load", "loads", "safe_open", "load_file", "fromfile", "loadtxt"}
MAY_READ = {
    "sfr_theory/reading.py",
    "sfr_theory/compiled.py",  # its own cache, under checksums
    "sfr_theory/files.py",  # arrays of an archive that is in memory
    "sfr_fa/agents/checkpoint.py",  # safetensors, after `check_readable`
    "experiments/kill_test.py",  # what it has just made
    "experiments/live/film.py",  # a picture of its own
    "experiments/live/page.py",  # files of the package
    "proofs_checks/coq/check.py",  # files of the package
}
OWN = {"load", "publish", "reading", "store", "engine", "os", "Image", "webbrowser", "builder"}
"""Ours, whose `load` is a reader itself; `open` of descriptors, of bytes, of pages; and LLVM's `load`."""


@pytest.mark.parametrize("name", sorted(SOURCES.keys() - MAY_READ))
def test_files_are_read_through_one_module(name):
    """A reader of its own would meet pipes, devices and sizes on its own."""
    for node in ast.walk(ast.parse(SOURCES[name].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in READS:
            owner = node.func.value
            of = owner.id if isinstance(owner, ast.Name) else ""
            if of in OWN or (of == "json" and node.func.attr == "loads"):
                continue
            mode = node.args[0].value if node.args and isinstance(node.args[0], ast.Constant) else "r"
            if node.func.attr == "open" and not str(mode).startswith("r"):
                continue
            pytest.fail(f"{name}:{node.lineno} reads a file; sfr_theory.reading does that")


def test_sizes_have_limits(tmp_path):
    path = tmp_path / "large"
    path.write_bytes(b"12345")
    assert reading.read_bytes(path, limit=5) == b"12345"
    with refused(str(path), "5", "4"):
        reading.read_bytes(path, limit=4)
    os.truncate(path, reading.MAX_JSON_BYTES + 1)
    with refused(str(path), "67,108,864"):
        reading.read_json(path)


# --- Options ------------------------------------------------------------------------------------------

MENDED = (
    ("sfr_theory.check_gpi_bound", "--mdps", str(10**12)),
    ("sfr_theory.check_gpi_bound", "--features", str(10**30)),
    ("sfr_theory.check_tightness", "--states", str(10**12)),
    ("sfr_theory.check_convergence", "--gamma", "1e-320"),
    ("experiments.unseen", "--starts", str(10**30)),
    ("sfr_fa.report", "--title", "\udcff\udcfe"),
    ("sfr_fa.report", "--output", "x" * 5000),
    ("sfr_fa.status", "results", "a\nb"),
)


def test_values_that_no_option_can_have(good):
    """One for each command; `python -m tests.hostile_options` tries all for all options."""
    rng = random.Random(2)
    never = [case for case in hostile_options.cases() if case.must_be_refused]
    tried = [rng.choice(list(cases)) for _, cases in itertools.groupby(never, key=lambda case: case.module)]
    tried += [hostile_options.Case(*case, must_be_refused=True) for case in MENDED]
    wrong = {case: hostile_options.tried(case, good[0]) for case in tried}
    assert {case: words for case, words in wrong.items() if words} == {}
    assert len(tried) > 20


# --- Output -------------------------------------------------------------------------------------------

OUTPUTS = ("output", "json", "plot", "markdown", "html", "counterexamples")
NEEDED = {"sfr_fa.runs.publish": {"runs": ("results",)}, "experiments.live.film": {"page": "README.md"}}


WITH_OUTPUT = [
    (module, options, field.name)
    for module, options in hostile_options.commands()
    for field in dataclasses.fields(options)
    if field.name in OUTPUTS and not module.startswith("benchmarks.")
]


@pytest.mark.parametrize(("module", "options", "field"), WITH_OUTPUT)
def test_output_that_cannot_be_written_is_refused_before_the_work(module, options, field, tmp_path):
    """Beside a file, where only folders can be, and at a link that leads to itself."""
    (tmp_path / "file").touch()
    (tmp_path / "loop.svg").symlink_to(tmp_path / "loop.svg")
    for place in ("file/x.svg", "loop.svg"):
        given = options(**NEEDED.get(module, {}), **{field: str(tmp_path / place)})
        with hostile.deadline(10), refused("" if module.endswith("film") else place.partition("/")[0]):
            sys.modules[options.__module__].main(given)


def test_a_pipe_that_nobody_reads_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    with hostile.deadline(10), refused("pipe"):
        write_atomic(tmp_path / "pipe", b"content")


def test_a_full_disk_is_told(tmp_path):
    with refused("/dev/full"):
        write_atomic(Path("/dev/full"), b"content")
