"""Mutation scores: break a module in many small ways (`tests.meta.mutants`), and count what its tests notice.

    python -m tests.meta.mutation sfr_theory/gpi.py         one module; all of them without a name
    python -m tests.meta.mutation --sample 40 --seed 3      at most 40 mutants per module, drawn with a seed

Each mutant is written into a copy of the tree, where the tests that `mutation.toml` names for the module run
until the first one fails. The copy of Python that runs them is forked from one that has already imported the
libraries, so a mutant costs little more than its tests. What took longer than the time limit was noticed.
Kernels are `interpreted`: to compile a mutant takes longer than most of its tests, and an index that it has
moved out of an array is then an error, not a read of other memory.

Results are kept in build/mutation and used again: a mutant that was killed is not run again while its module
stays as it is, one that survived only when its tests have changed. The score is killed / (all - accepted);
accepted are those that `mutation.toml` gives a reason for.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
import importlib
import json
import os
import random
import shlex
import sys
import tempfile
import time
import tomllib
from dataclasses import dataclass
from pathlib import Path

from tests.forks import in_fork
from tests.meta.mutants import Mutant, mutants
from tests.meta.planting import FIRST_PARTY, PYTEST_OPTIONS, ROOT, copy_of_the_tree

TABLE = Path(__file__).with_name("mutation.toml")
KEPT = ROOT / "build" / "mutation"
FORKED_OPTIONS = (
    "--hypothesis-profile=mutants",
    "-W",
    "ignore::pytest.PytestAssertRewriteWarning",  # plugins were imported before the fork
)


@dataclass(frozen=True)
class Guarded:
    """A module, the pytest arguments that test it, and the mutants that may survive, with the reason."""

    module: str
    tests: tuple[str, ...]
    accepted: dict[str, str]
    interpreted: bool = False

    @property
    def arguments(self) -> list[str]:
        return [argument for test in self.tests for argument in shlex.split(test)]

    def digest(self) -> str:
        """Of all tests and helpers beside the named ones."""
        files = sorted({f for a in self.arguments if a.startswith("tests") for f in _beside(a)})
        return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()[:12]


def _beside(argument: str) -> list[Path]:
    file = ROOT / argument.partition("::")[0]
    helpers = [f for f in file.parent.glob("*.py") if not f.name.startswith("test_")]
    return [file, *helpers, ROOT / "tests" / "strategies.py"]


def load() -> dict[str, Guarded]:
    """The table of modules."""
    rows = tomllib.loads(TABLE.read_text())
    return {
        module: Guarded(module, tuple(row["tests"]), row.get("accepted", {}), row.get("interpreted", False))
        for module, row in rows.items()
    }


class Runner:
    """Runs pytest on a copy of the tree, in forks of this process."""

    def __init__(self, folder: Path, *, interpreted: bool) -> None:
        self.interpreted = interpreted
        self.copy = copy_of_the_tree(folder / "tree")
        self.output, self.modules = folder / "output.txt", folder / "modules.txt"
        self.caches, self.count = folder / "caches", 0

    def run(self, arguments: list[str], limit: float) -> int | None:
        """The exit code of pytest; None if it took longer than the limit, in seconds."""
        self.count += 1
        return in_fork(lambda: self._pytest(arguments), limit)

    def _pytest(self, arguments: list[str]) -> int:
        output = os.open(self.output, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.chdir(self.copy)
        for name in [name for name in sys.modules if name.partition(".")[0] in FIRST_PARTY]:
            del sys.modules[name]
        sys.path.insert(0, str(self.copy))
        # Numba knows a function by its own file only: it must not find code compiled with another mutant.
        cache = self.caches / str(self.count)
        os.environ |= {"NUMBA_CACHE_DIR": str(cache), "NUMBA_DISABLE_JIT": str(int(self.interpreted))}
        if "numba" in sys.modules:
            settings = sys.modules["numba"].config
            settings.CACHE_DIR, settings.DISABLE_JIT = str(cache), int(self.interpreted)
        import pytest

        code = int(pytest.main([*PYTEST_OPTIONS, *FORKED_OPTIONS, *arguments]))
        self.modules.write_text("\n".join(sys.modules))
        sys.stdout.flush()
        return code

    def warm_up(self, arguments: list[str]) -> float:
        """How long the tests take when all is well; from then on this process has imported what they need."""
        self._require_green(arguments)
        for name in self.modules.read_text().splitlines():
            if name.partition(".")[0] not in FIRST_PARTY:
                with contextlib.suppress(Exception):
                    importlib.import_module(name)
        started = time.monotonic()
        self._require_green(arguments)
        return time.monotonic() - started

    def _require_green(self, arguments: list[str]) -> None:
        if self.run(arguments, 600) != 0:
            sys.exit(f"the tests fail without any mutant:\n{self.output.read_text()[-3000:]}")

    def notices(self, module: str, source: str, arguments: list[str], limit: float) -> bool:
        """Whether the tests fail with this source of the module."""
        file = self.copy / module
        original = file.read_text()
        try:
            file.write_text(source)
            # Compiled files are told apart by the whole second in which their source was written.
            os.utime(file, (self.count, self.count))
            return self.run(arguments, limit) != 0
        finally:
            file.write_text(original)


def measure(guarded: Guarded, sample: int, seed: int) -> dict[str, bool]:
    """Which mutants (a sample of them) are killed, by name."""
    source = (ROOT / guarded.module).read_text()
    everything = mutants(source)
    chosen: list[Mutant] = everything
    if len(everything) > sample:
        chosen = random.Random(f"{seed} {guarded.module}").sample(everything, sample)
    kept = KEPT / f"{guarded.module.replace('/', '.')}.jsonl"
    kept.parent.mkdir(parents=True, exist_ok=True)
    code, tests = hashlib.sha256(source.encode()).hexdigest()[:12], guarded.digest()
    known: dict[str, bool] = {}
    for line in kept.read_text().splitlines() if kept.exists() else ():
        entry = json.loads(line)
        if entry["code"] == code and (entry["killed"] or entry["tests"] == tests):
            known[entry["name"]] = entry["killed"]
    waiting = [m for m in chosen if m.name not in known and m.name not in guarded.accepted]
    if waiting:
        with tempfile.TemporaryDirectory() as folder, kept.open("a") as file:
            runner = Runner(Path(folder), interpreted=guarded.interpreted)
            usual = runner.warm_up(guarded.arguments)
            _say(f"{guarded.module}: {len(waiting)} mutants, at most {usual:.1f} s each where none is caught")
            for number, mutant in enumerate(waiting, 1):
                changed = mutant.source(source)
                killed = runner.notices(guarded.module, changed, guarded.arguments, 10 + 4 * usual)
                known[mutant.name] = killed
                entry = {"name": mutant.name, "killed": killed, "code": code, "tests": tests}
                print(json.dumps(entry), file=file, flush=True)
                if not killed:
                    _say(f"  [{number}/{len(waiting)}] survived, line {mutant.line}: {mutant.name}")
    return {m.name: m.name not in guarded.accepted and known[m.name] for m in chosen}


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


HEAD = ("| module | mutants | drawn from | accepted | killed | score |", "|---|---|---|---|---|---|")


def main() -> None:
    table = load()
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("modules", nargs="*", help=f"all by default: {', '.join(table)}")
    parser.add_argument("--sample", type=int, default=100, help="at most that many mutants per module")
    parser.add_argument("--seed", type=int, default=0, help="which ones are drawn")
    arguments = parser.parse_args()
    unknown = set(arguments.modules) - set(table)
    if unknown:
        parser.error(f"{', '.join(unknown)}: give the module its tests in {TABLE.relative_to(ROOT)} first")
    print(*HEAD, sep="\n")
    for module in arguments.modules or table:
        guarded = table[module]
        killed = measure(guarded, arguments.sample, arguments.seed)
        accepted = sum(name in guarded.accepted for name in killed)
        caught, counted = sum(killed.values()), len(killed) - accepted
        total = len(mutants((ROOT / module).read_text()))
        cells = (module, len(killed), total, accepted, caught, f"{caught / max(counted, 1):.0%}")
        print(f"| {' | '.join(map(str, cells))} |", flush=True)


if __name__ == "__main__":
    main()
