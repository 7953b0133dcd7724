"""Bad values for every option of every command: `python -m tests.hostile_options [PART OF A NAME]`.

A command with such a value must end within seconds, without a traceback; where it refuses the value, with
exit code 2 and one sentence, its own or that of the parser. Each case runs in a fork and in a folder of its
own, with little work to do if the value is one that can be taken after all. `tests/test_hostile_input.py`
tries some of the cases.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import re
import resource
import runpy
import shutil
import sys
import tempfile
import time
import typing
import warnings
from collections.abc import Iterator
from pathlib import Path

from tests.commands import ROOT
from tests.fa.tiny import run_config, write_config
from tests.forks import in_fork
from tests.hostile import MEMORY, silence

PACKAGES = ("sfr_theory", "sfr_fa", "experiments", "proofs_checks", "benchmarks")
SECONDS = 30
RUNS = "runs/tiny/smoke"
LITTLE = {
    "benchmarks.against": ["tree", "--turns", "1", "--steps", "1", "--compilations", "1"],
    "benchmarks.engines": ["--learn-steps", "1", "--repeats", "1"],
    "benchmarks.growth": ["--learn-steps", "1", "--steps", "1", "--repeats", "1"],
    "benchmarks.networks": ["--steps", "1", "--repeats", "1"],
    "experiments.analysis.claims": ["--results", "tables"],
    "experiments.analysis.figures": [RUNS, "--output", "figures"],
    "experiments.calibration": ["--tasks", "1", "--task-steps", "1", "--steps", "2"],
    "experiments.kill_test": ["--experiment", "nothing"],
    "experiments.live.film": ["page.html", "--frames", "1"],
    "experiments.peers": ["--environments", "nothing"],
    "experiments.reproduce": ["--dry-run"],
    "experiments.run": ["tiny.py", "--results", "runs"],
    "experiments.tables": [RUNS],
    "experiments.unseen": ["--tasks", "1", "--steps", "5", "--new", "1", "--starts", "2", "--seeds", "1",
                           "--engine", "reference"],
    "experiments.watch": ["--tasks", "1", "--steps", "3", "--frames", "1", "--engine", "reference"],
    "proofs_checks": ["--only", "nothing"],
    "sfr_fa.report": [RUNS],
    "sfr_fa.run": ["tiny.py", "--results", "runs"],
    "sfr_fa.runs.publish": [RUNS, "--output", "tables"],
    "sfr_fa.status": ["runs"],
    "sfr_theory.check_convergence": ["--mdps", "1", "--steps", "1000"],
    "sfr_theory.check_gpi_bound": ["--mdps", "9", "--workers", "1"],
    "sfr_theory.check_tightness": ["--restarts", "1", "--states", "1", "--tasks", "1"],
}  # fmt: skip
"""Arguments with which a command has little to do, or something else to refuse."""
LONG = ("experiments.demo",)
"""Has nothing to make it short, so that it may be at work."""
NO_NUMBERS = ("", "x", "nan", "1/0")
VALUES = {
    int: (*NO_NUMBERS, "1.5", "-1", "0", str(10**12), str(10**30), "-" + "9" * 5000),
    float: (*NO_NUMBERS, "-1", "0", "inf", "1e308", "1e-320"),
    str: (
        "",
        "no such thing",
        "\udcff\udcfe",
        "x" * 5000,
        ".",
        "/dev/full",
        "/dev/null/x",
        "a\nb",
        "[bold]",
        "-1",
    ),
}
NEVER = {int: (*NO_NUMBERS, "1.5", "-1"), float: NO_NUMBERS, str: ()}
"""Of these, what must be refused."""


@dataclasses.dataclass(frozen=True)
class Case:
    """A value for an option of a command."""

    module: str
    option: str
    value: str
    must_be_refused: bool

    @property
    def arguments(self) -> list[str]:
        """After those with little to do, which it overrules; a position takes the place of the first."""
        little = LITTLE.get(self.module, [])
        if self.option.startswith("--"):
            return [*little, self.option, self.value]
        return [self.value, *little[1:]]


def commands() -> Iterator[tuple[str, type]]:
    """Modules with options, as `python -m` names them."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            if re.search(r"\b(run|command)\(main, Options", path.read_text(encoding="utf-8")):
                name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
                yield name.removesuffix(".__main__"), importlib.import_module(name).Options


def cases() -> Iterator[Case]:
    for module, options in commands():
        hints = typing.get_type_hints(options, include_extras=True)
        for field in dataclasses.fields(options):
            hint = str(hints[field.name])
            if "bool" in hint:
                continue
            kind = next((k for k in (int, float) if re.search(rf"\b{k.__name__}\b", hint)), str)
            flag = field.name if "Positional" in hint else "--" + field.name.replace("_", "-")
            # Who measures may ask for as much as they like.
            for value in NEVER[kind] if module.startswith("benchmarks.") else VALUES[kind]:
                yield Case(module, flag, value, value in NEVER[kind] or (value == "x" and "Literal" in hint))


def material(folder: Path) -> None:
    """What the arguments above name."""
    config = write_config(folder / "tiny.py", agents='AgentSetup("Q", "Q"),', tasks=1, steps=3, repetitions=1)
    with silence():
        run_config(config, folder / "runs")
    (folder / "page.html").write_text("<html></html>")
    (folder / "tree").mkdir()


def tried(case: Case, good: Path, seconds: float = SECONDS) -> str:
    """Empty if the command ends as it should, else what happened."""
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as name:
        folder = shutil.copytree(good, Path(name, "copy"))
        code = in_fork(lambda: _in_child(case, folder, Path(name)), seconds)
        if code is None:
            return "" if case.module in LONG else f"at work after {seconds:g} s"
        errors = Path(name, "errors").read_text(errors="replace")
    return judged(code, errors, must_be_refused=case.must_be_refused)


def _in_child(case: Case, folder: Path, above: Path) -> int:
    for number, name in ((1, "output"), (2, "errors")):
        os.dup2(os.open(above / name, os.O_WRONLY | os.O_CREAT), number)
    sys.stdout, sys.stderr = os.fdopen(1, "w"), os.fdopen(2, "w")
    os.chdir(folder)
    os.environ |= {"PATH": "", "PYTHONPATH": str(ROOT)}  # no Coq, no cluster
    sys.argv = [case.module, *case.arguments]
    # As in a process without pytest, whose warnings are errors, and which takes kill_test for a test.
    warnings.resetwarnings()
    sys.meta_path[:] = [finder for finder in sys.meta_path if "pytest" not in type(finder).__module__]
    sys.modules.pop(case.module, None)
    code: object = 0
    try:
        runpy.run_module(case.module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    sys.stderr.flush()
    return code if isinstance(code, int) else int(code is not None)


def judged(code: int, errors: str, *, must_be_refused: bool) -> str:
    """What is wrong with an exit code and what was printed beside it."""
    lines = [line for line in errors.splitlines() if "warn" not in line.lower()]
    if "Traceback" in errors:
        return f"traceback: {lines[-1][:150] if lines else errors[-150:]}"
    if must_be_refused and code != 2:
        return f"taken, exit code {code}"
    if code not in (0, 1, 2):
        return f"exit code {code}"
    is_sentence = len(lines) == 1 and lines[0].startswith("error: ") and len(lines[0]) < 2000
    by_parser = "For full helptext" in errors
    if code == 2 and not (by_parser or is_sentence):
        return f"not a sentence: {errors[-200:]!r}"
    return ""


def main(part: str = "") -> int:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    found = count = 0
    with tempfile.TemporaryDirectory() as name:
        material(Path(name))
        for case in cases():
            if part not in f"{case.module} {case.option}":
                continue
            began = time.monotonic()
            wrong = tried(case, Path(name))
            count += 1
            if wrong:
                found += 1
                print(f"{case.module} {case.option} {case.value[:30]!r}: {wrong}", flush=True)
            elif time.monotonic() - began > 5:
                print(
                    f"  ({case.module} {case.option} {case.value[:30]!r}: {time.monotonic() - began:.0f} s)"
                )
    print(f"{found} of {count} not taken as they should be")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
