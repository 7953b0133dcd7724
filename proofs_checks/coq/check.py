"""Runs Coq on the development and reports what each theorem assumes.

The .v files are compiled in a temporary folder, so the source tree stays as it is. Then Coq prints what the
theorems of `theorems.THEOREMS` assume: all together first, and one by one only if that is anything. A theorem
is verified when it assumes nothing ("Closed under the global context") and no file contains a command that
could hide a gap. Nothing is cached between runs.

Coq is not a Python package, so it may be missing; `CoqUnavailableError` then says how to get it.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any

from proofs_checks.coq.theorems import THEOREMS, Theorem
from sfr_theory.claims import CheckResult, Verdict

SOURCES = Path(__file__).parent
INSTALL = (
    "sudo apt install coq libcoq-mathcomp-ssreflect libcoq-mathcomp-algebra libcoq-mathcomp-algebra-tactics"
)
LIBRARY = "SFR"
"""The logical name under which files require each other."""
ASSUMPTIONS = "assumptions"
CLOSED = "Closed under the global context"
WORKERS = 2
FILE_TIMEOUT_SECONDS = 600

FORBIDDEN = re.compile(
    r"\b(Admitted|admit|give_up|Axioms?|Parameters?|Conjectures?|Primitive|bypass_check"
    r"|Unset\s+(?:Guard|Positivity|Universe)\s+Checking)\b"
)
"""Commands that leave a gap, or switch off a check of Coq's own."""


class CoqUnavailableError(RuntimeError):
    """Coq or one of its libraries is not installed; the message is the sentence for the user."""


@dataclass(frozen=True)
class CoqOutcome:
    """A theorem with what Coq says of it: nothing if it is verified, else the reason why it is not."""

    theorem: Theorem
    reason: str = ""

    @property
    def verified(self) -> bool:
        return not self.reason

    def to_json(self) -> dict[str, Any]:
        theorem = self.theorem
        return {
            "name": theorem.name,
            "file": theorem.file,
            "statement": theorem.statement,
            "claims": list(theorem.claims),
            "refutes": list(theorem.refutes),
            "verified": self.verified,
            "reason": self.reason,
        }


@dataclass(frozen=True)
class Report:
    """What one run found: `problems` are those of files, the others are with their theorems."""

    version: str
    outcomes: tuple[CoqOutcome, ...]
    problems: tuple[str, ...]
    seconds: float

    @property
    def verified(self) -> bool:
        return not self.problems and all(outcome.verified for outcome in self.outcomes)

    def to_json(self) -> dict[str, Any]:
        return {
            "available": True,
            "reason": "",
            "verified": self.verified,
            "coq": self.version,
            "seconds": round(self.seconds, 1),
            "problems": list(self.problems),
            "theorems": [outcome.to_json() for outcome in self.outcomes],
        }


def coqc() -> str:
    """The compiler."""
    program = shutil.which("coqc")
    if program is None:
        raise CoqUnavailableError(f"coqc is not installed; on Debian and Ubuntu: {INSTALL}")
    return program


def without_comments(text: str) -> str:
    """A Coq file without its comments, which nest."""
    kept, depth = [], 0
    for part in re.split(r"(\(\*|\*\))", text):
        if part == "(*":
            depth += 1
        elif part == "*)":
            depth -= 1
        elif depth == 0:
            kept.append(part)
    return "".join(kept)


def forbidden_commands(sources: Mapping[str, str]) -> tuple[str, ...]:
    """One sentence for each command that could hide a gap in a proof."""
    return tuple(
        f"{name}.v uses {found.group(0)!r}, which leaves a gap in a proof"
        for name, text in sources.items()
        for found in FORBIDDEN.finditer(without_comments(text))
    )


def requirements(text: str) -> frozenset[str]:
    """The files of this library that a file requires."""
    found = re.findall(rf"From {LIBRARY} Require Import ([\w\s]+)\.", without_comments(text))
    return frozenset(name for group in found for name in group.split())


def compile_file(folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    """Compile folder/name.v."""
    warnings = "-notation-overridden,-ambiguous-paths"  # mathcomp's own
    return subprocess.run(
        [coqc(), "-q", "-w", warnings, "-R", ".", LIBRARY, f"{name}.v"],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=FILE_TIMEOUT_SECONDS,
        check=False,
    )


def compile_all(folder: Path, advance: Callable[[int], None] = lambda _: None) -> dict[str, str]:
    """Compile all files of a folder, each after those that it requires; the errors by file name.

    What requires a file that failed is not tried.
    """
    graph = {path.stem: requirements(path.read_text("utf-8")) for path in sorted(folder.glob("*.v"))}
    order = TopologicalSorter(graph)
    order.prepare()
    errors: dict[str, str] = {}
    running: dict[Future[subprocess.CompletedProcess[str]], str] = {}
    with ThreadPoolExecutor(WORKERS) as pool:
        while order.is_active():
            for name in order.get_ready():
                if failed := sorted(graph[name] & errors.keys()):
                    errors[name] = f"{name}.v was not compiled, because {failed[0]}.v was not"
                    order.done(name)
                else:
                    running[pool.submit(compile_file, folder, name)] = name
            if not running:
                continue
            for future in wait(running, return_when=FIRST_COMPLETED).done:
                name, result = running.pop(future), future.result()
                if result.returncode:
                    if "Cannot find a physical path bound to logical path" in result.stderr:
                        raise CoqUnavailableError(
                            f"a library of Coq is not installed; on Debian and Ubuntu: {INSTALL}"
                        )
                    errors[name] = f"{name}.v does not compile: {result.stderr.strip()}"
                order.done(name)
                advance(1)
    return errors


def all_at_once(theorems: Sequence[Theorem]) -> str:
    """A Coq file that prints what all theorems together assume: Coq walks its libraries only once."""
    names = ", ".join(f"@{theorem.name}" for theorem in theorems)
    return f"{_require(theorems)}Definition all_of_them := ({names}).\nPrint Assumptions all_of_them.\n"


def one_by_one(theorems: Sequence[Theorem]) -> str:
    """A Coq file that prints the name of each theorem, then what it assumes."""
    queries = (
        f'Goal True. idtac "theorem {theorem.name}". Abort.\nPrint Assumptions {theorem.name}.\n'
        for theorem in theorems
    )
    return _require(theorems) + "".join(queries)


def _require(theorems: Sequence[Theorem]) -> str:
    return f"From {LIBRARY} Require {' '.join(sorted({theorem.stem for theorem in theorems}))}.\n"


def parse_assumptions(output: str) -> dict[str, str]:
    """Theorem name -> what Coq printed after it."""
    parts = re.split(r"^theorem (\S+)$", output, flags=re.MULTILINE)
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}


def assumptions(folder: Path, theorems: Sequence[Theorem]) -> dict[str, str]:
    """Theorem name -> what Coq prints as its assumptions, in a folder of compiled files."""

    def ask(text: str) -> str:
        (folder / f"{ASSUMPTIONS}.v").write_text(text, "utf-8")
        return compile_file(folder, ASSUMPTIONS).stdout

    if theorems and ask(all_at_once(theorems)).strip() == CLOSED:
        return {theorem.name: CLOSED for theorem in theorems}
    return parse_assumptions(ask(one_by_one(theorems)))


def check(
    sources: Mapping[str, str],
    theorems: Sequence[Theorem] = THEOREMS,
    advance: Callable[[int], None] = lambda _: None,
) -> Report:
    """Compile these files (name -> text) and ask for the assumptions of these theorems."""
    started = time.perf_counter()
    version = subprocess.run(
        [coqc(), "--print-version"], capture_output=True, text=True, check=True
    ).stdout.split()[0]
    with tempfile.TemporaryDirectory(prefix="coq-") as name:
        folder = Path(name)
        for stem, text in sources.items():
            (folder / f"{stem}.v").write_text(text, "utf-8")
        errors = compile_all(folder, advance)
        there = [theorem for theorem in theorems if not _missing(theorem, sources, errors)]
        printed = assumptions(folder, there)
        advance(1)
    return Report(
        version=version,
        outcomes=tuple(
            CoqOutcome(theorem, _missing(theorem, sources, errors) or _reason(printed.get(theorem.name, "")))
            for theorem in theorems
        ),
        problems=(*forbidden_commands(sources), *errors.values()),
        seconds=time.perf_counter() - started,
    )


def _missing(theorem: Theorem, sources: Mapping[str, str], errors: Mapping[str, str]) -> str:
    """Why Coq cannot be asked about this theorem; empty if it can."""
    if theorem.stem in errors:
        return errors[theorem.stem]
    text = without_comments(sources.get(theorem.stem, ""))
    short = theorem.name.partition(".")[2]
    return (
        "" if re.search(rf"\b(Theorem|Lemma)\s+{short}\b", text) else f"{theorem.file} has no theorem {short}"
    )


def _reason(printed: str) -> str:
    return (
        "" if printed == CLOSED else f"it is not closed: {' '.join(printed.split()) or 'Coq did not answer'}"
    )


def development(stems: Iterable[str] | None = None) -> dict[str, str]:
    """The files of the development, name -> text: all, or these and what they require."""
    texts = {path.stem: path.read_text("utf-8") for path in sorted(SOURCES.glob("*.v"))}
    needed: set[str] = set()
    waiting = list(texts if stems is None else stems)
    while waiting:
        if (stem := waiting.pop()) not in needed:
            needed.add(stem)
            waiting += requirements(texts[stem])
    return {stem: text for stem, text in texts.items() if stem in needed}


@cache
def verified_theorems(theorems: tuple[Theorem, ...] = THEOREMS) -> frozenset[Theorem]:
    """Those that Coq verified in this process: none where a file has a gap, or Coq is not installed."""
    try:
        report = check(development({theorem.stem for theorem in theorems}), theorems)
    except CoqUnavailableError:
        return frozenset()
    return frozenset(
        outcome.theorem for outcome in report.outcomes if outcome.verified and not report.problems
    )


def findings(claims: Collection[str]) -> dict[str, CheckResult]:
    """What Coq finds of these claims, by id: those of which every theorem is verified in this process."""
    naming: dict[str, list[tuple[Verdict, Theorem]]] = {}
    for theorem in THEOREMS:
        for verdict, ids in ((Verdict.PROVED, theorem.claims), (Verdict.REFUTED, theorem.refutes)):
            for claim in ids:
                if claim in claims:
                    naming.setdefault(claim, []).append((verdict, theorem))
    chosen = {theorem for pairs in naming.values() for _, theorem in pairs}
    if not chosen:
        return {}
    verified = verified_theorems(tuple(theorem for theorem in THEOREMS if theorem in chosen))
    found = {}
    for claim, pairs in naming.items():
        if verified.issuperset(theorem for _, theorem in pairs):
            names = [theorem.name for _, theorem in pairs]
            evidence = f"closed under the global context: {', '.join(names)}"
            scope = pairs[0][1].scope
            found[claim] = CheckResult(pairs[0][0], evidence, scope, details={"coq": names})
    return found
