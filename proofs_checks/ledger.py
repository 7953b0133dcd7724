"""The ledger: every claim of the catalogue with the verdict that its proof computed in this run.

A proof counts only with its teeth: each broken variant beside it must be rejected by the same machinery, or
the entry is INCONCLUSIVE. A proof that raises is INCONCLUSIVE, too. Entries whose proof was left out
(--fast) or could not run (no z3) are NOT CHECKED with that reason; this is said, and it is no failure.
Every other verdict that differs from the catalogue's expectation is one.

Verdicts on experiments are read from the folder of results (`sfr_theory.empirical`), where they were computed
from runs that nobody wants to wait for here.

Proofs are found, not listed: every module of this package that has a tuple `PROOFS`. They run in a pool of
fresh processes, which find them by claim id.
"""

from __future__ import annotations

import html
import importlib
import multiprocessing
import pkgutil
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from rich.markup import escape
from rich.table import Table

import proofs_checks
from proofs_checks import smt
from proofs_checks.proof import Proof
from sfr_theory import empirical
from sfr_theory.catalogue import CATALOGUE, EXPERIMENTS, SECTIONS, UNCHECKED
from sfr_theory.claims import HTML_STYLE, CheckResult, Claim, Verdict, claims_html, styled
from sfr_theory.errors import InputError

Z3_INSTALL = "pip install '.[proofs]'"
LEFT_OUT = "left out by --fast"
Z3_MISSING = f"needs z3, which is not installed: {Z3_INSTALL}"
NO_PROOF = "no proof covers it"
RESULTS = Path("results")
FROM_RESULTS = "results"
"""The kind of evidence of empirical claims."""


@dataclass(frozen=True)
class Entry:
    """A claim with what was found out about it in this run."""

    claim: Claim
    result: CheckResult
    kind: str  # of evidence; empty where nothing was checked
    skipped: bool = False  # left out on purpose, or for want of z3
    seconds: float = 0.0

    @property
    def as_expected(self) -> bool:
        if self.kind == FROM_RESULTS:
            return empirical.is_as_expected(self.claim, self.result.verdict)
        return self.skipped or self.result.verdict == self.claim.expected

    def to_json(self) -> dict[str, Any]:
        return {
            "id": self.claim.id,
            "label": self.claim.label,
            "about": self.claim.about,
            "claim": self.claim.sentence,
            "verdict": self.result.verdict.value,
            "expected": self.claim.expected.value,
            "as_expected": self.as_expected,
            "skipped": self.skipped,
            "kind": self.kind,
            "evidence": self.result.evidence,
            "scope": self.result.scope,
            "seconds": round(self.seconds, 3),
            "details": dict(self.result.details),
        }


@cache
def collect() -> Mapping[str, Proof]:
    """Every proof of this package, by the id of its claim."""
    proofs: dict[str, Proof] = {}
    for module in pkgutil.iter_modules(proofs_checks.__path__):
        if module.name == "__main__":
            continue
        for proof in getattr(importlib.import_module(f"proofs_checks.{module.name}"), "PROOFS", ()):
            if proof.claim in proofs:
                raise ValueError(f"two proofs of {proof.claim}; each claim has one")
            proofs[proof.claim] = proof
    return proofs


def select(only: Iterable[str]) -> tuple[Claim, ...]:
    """The claims with these ids, or whose ids begin so (thm2/); all of them if none is named."""
    wanted = tuple(only)
    for name in wanted:
        if name not in CATALOGUE and not any(_begins(claim, name) for claim in CATALOGUE):
            near = get_close_matches(name, CATALOGUE, n=3, cutoff=0.5)
            hint = (
                f"did you mean {' or '.join(near)}?" if near else "`python -m proofs_checks` lists them all"
            )
            raise InputError(f"no claim has the id {name!r}; {hint}")
    chosen = (
        claim
        for claim in CATALOGUE.values()
        if not wanted or claim.id in wanted or any(_begins(claim.id, name) for name in wanted)
    )
    return tuple(chosen)


def _begins(claim: str, prefix: str) -> bool:
    return claim.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


def kind_of_evidence(proof: Proof, result: CheckResult) -> str:
    """How it was found out: SMT, symbolic, exact, instances or a counterexample."""
    if "kind" in result.details:
        return str(result.details["kind"])
    if result.verdict in (Verdict.REFUTED, Verdict.NEEDS_ASSUMPTION):
        return "counterexample"
    if result.verdict is Verdict.SUPPORTED:
        return "instances"
    if proof.needs_z3:
        return "SMT"
    return "symbolic" if "symbolic" in result.scope else "exact"


def run_proof(proof: Proof) -> CheckResult:
    """Run a proof, then its teeth."""
    try:
        result = proof.check()
        if not proof.teeth:
            return CheckResult(Verdict.INCONCLUSIVE, "the proof has no broken variant beside it")
        for tooth in proof.teeth:
            if not tooth.is_rejected():
                return CheckResult(
                    Verdict.INCONCLUSIVE, f"a broken variant was not rejected: {tooth.sentence}", result.scope
                )
    except Exception as error:  # a proof that breaks must not take the ledger with it
        return CheckResult(Verdict.INCONCLUSIVE, f"the check failed with {type(error).__name__}: {error}")
    return result


def _run_by_id(claim: str) -> tuple[str, CheckResult, float]:
    started = time.perf_counter()
    result = run_proof(collect()[claim])
    return claim, result, time.perf_counter() - started


def _skipped(claim: Claim, reason: str) -> Entry:
    return Entry(claim, CheckResult(Verdict.NOT_CHECKED, reason), "", skipped=True)


def from_results(folder: Path) -> dict[str, Entry]:
    """The empirical claims, as the folder of results decides them."""
    verdicts = empirical.read(folder)
    missing = empirical.NO_RESULTS.format(path=folder / empirical.FILE)
    return {
        claim.id: Entry(claim, verdicts[claim.id], FROM_RESULTS)
        if claim.id in verdicts
        else _skipped(claim, missing)
        for claim in EXPERIMENTS.claims
    }


def run(
    claims: Iterable[Claim],
    fast: bool,
    workers: int,
    advance: Callable[[int], None] = lambda _: None,
    results: Path = RESULTS,
) -> list[Entry]:
    """Run the proofs of these claims; `advance` is called after each."""
    proofs = collect()
    decided = from_results(results)
    has_z3 = smt.is_available()
    entries: dict[str, Entry] = {}
    waiting: list[Claim] = []
    claims = tuple(claims)
    for claim in claims:
        proof = proofs.get(claim.id)
        if claim.id in decided:
            entries[claim.id] = decided[claim.id]
        elif proof is None:
            reason = UNCHECKED.get(claim.id, NO_PROOF)
            entries[claim.id] = Entry(claim, CheckResult(Verdict.NOT_CHECKED, reason), "")
        elif fast and proof.slow:
            entries[claim.id] = _skipped(claim, LEFT_OUT)
        elif proof.needs_z3 and not has_z3:
            entries[claim.id] = _skipped(claim, Z3_MISSING)
        else:
            waiting.append(claim)
            continue
        advance(1)
    # The long ones first, so that no worker is left with one at the end.
    order = sorted(
        (claim.id for claim in waiting), key=lambda name: (not proofs[name].slow, not proofs[name].needs_z3)
    )
    for name, result, seconds in _results(order, workers):
        claim = CATALOGUE[name]
        entries[name] = Entry(claim, result, kind_of_evidence(proofs[name], result), seconds=seconds)
        advance(1)
    return [entries[claim.id] for claim in claims]


def _results(names: list[str], workers: int) -> Iterable[tuple[str, CheckResult, float]]:
    if workers == 1 or len(names) < 2:
        yield from map(_run_by_id, names)
        return
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(min(workers, len(names)), mp_context=context) as pool:
        submitted = {pool.submit(_run_by_id, name): name for name in names}
        for done in as_completed(submitted):
            try:
                yield done.result()
            except BrokenProcessPool:
                died = "a process that ran proofs died, perhaps for want of memory; try --workers 1"
                yield submitted[done], CheckResult(Verdict.INCONCLUSIVE, died), 0.0


# --- Rendering ---------------------------------------------------------------------------------------------


def in_sections(entries: Iterable[Entry]) -> list[tuple[str, list[Entry]]]:
    """The entries under the titles of the catalogue; empty sections are left out."""
    by_id = {entry.claim.id: entry for entry in entries}
    sections = (
        (section.title, [by_id[claim.id] for claim in section.claims if claim.id in by_id])
        for section in SECTIONS
    )
    return [(title, listed) for title, listed in sections if listed]


def summary(entries: Iterable[Entry]) -> str:
    """How many of each verdict, for the paper's statements and for ours."""
    entries = tuple(entries)
    parts = []
    for whose, ours in (("of the paper", False), ("of ours", True)):
        counts = Counter(entry.result.verdict for entry in entries if entry.claim.is_ours is ours)
        listed = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
        if listed:
            parts.append(f"{counts.total()} {whose}: {listed}")
    return f"{len(entries)} claims. {'. '.join(parts)}"


def _place(claim: Claim, quote: str = "") -> str:
    """Where the paper says it, or that it is ours and what it bears on."""
    if not claim.is_ours:
        return f"{quote}{claim.label}{quote}"
    return f"ours, on {quote}{claim.about}{quote}" if claim.about else "ours"


def _what_was_found(entry: Entry, in_full: bool) -> str:
    """Evidence and scope; in the overview a proof shows its scope only, and its steps are in the files."""
    evidence, scope = escape(entry.result.evidence), escape(entry.result.scope)
    if entry.result.verdict is Verdict.PROVED and scope and not in_full:
        return scope
    return f"{evidence} [dim]Scope: {scope}[/]" if scope else evidence


def table(entries: Iterable[Entry], in_full: bool) -> Table:
    """The ledger for a terminal."""
    grid = Table(title="Claims of the paper", title_justify="left", pad_edge=False)
    grid.add_column("claim", ratio=5)
    grid.add_column("verdict", no_wrap=True)
    grid.add_column("by", no_wrap=True)
    grid.add_column("scope, or what was found", ratio=6)
    for title, listed in in_sections(entries):
        grid.add_section()
        grid.add_row(f"[bold underline]{escape(title)}[/]")
        for entry in listed:
            place = escape(_place(entry.claim))
            grid.add_row(
                f"[bold]{escape(entry.claim.id)}[/] [dim]{place}[/]\n{escape(entry.claim.sentence)}",
                styled(entry.result.verdict, entry.as_expected),
                entry.kind,
                _what_was_found(entry, in_full),
            )
    return grid


def _markdown_cell(text: str) -> str:
    """Text inside a table cell: no markup but what we write, no line breaks."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#~$" else c for c in text.replace("\n", " "))


def to_markdown(entries: Iterable[Entry]) -> str:
    """The ledger as a page."""
    entries = tuple(entries)
    lines = [
        "# Claims of the paper, and what is true",
        "",
        "Made by `python -m proofs_checks --markdown docs/claims.md`; do not edit. Every verdict was",
        "computed in that run, and beside each proof a broken variant had to be rejected. Verdicts on",
        "experiments are read from `results/claims.json`, which `make results` computes from the runs there.",
        "Below a claim stands the label in the paper's source where it is stated, or that it is ours: a",
        "correction, a step of a proof, or what the paper does not say but one may be led to believe.",
        "",
        f"{summary(entries)}.",
    ]
    for title, listed in in_sections(entries):
        lines += [
            "",
            f"## {title}",
            "",
            "| claim | says | verdict | by | evidence | scope |",
            "|---|---|---|---|---|---|",
        ]
        for entry in listed:
            cells = (
                f"`{entry.claim.id}` <br>{_place(entry.claim, '`')}",
                _markdown_cell(entry.claim.sentence),
                f"**{entry.result.verdict.value}**" + ("" if entry.as_expected else " (unexpected)"),
                entry.kind,
                _markdown_cell(entry.result.evidence),
                _markdown_cell(entry.result.scope),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def to_html_fragment(entries: Iterable[Entry]) -> str:
    """The ledger as a piece of a page: one table for each section."""
    entries = tuple(entries)
    parts = [f"<p>{html.escape(summary(entries))}.</p>"]
    for title, listed in in_sections(entries):
        parts.append(f"<h3>{html.escape(title)}</h3>")
        parts.append(claims_html({entry.claim.id: entry.to_json() for entry in listed}))
    return "\n".join(parts) + "\n"


def to_html_page(entries: Iterable[Entry]) -> str:
    """The fragment as a page of its own."""
    return (
        "<!doctype html>\n<html lang='en'>"
        "<head><meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>Claims of the paper</title><style>body {{ font-family: system-ui, sans-serif; }}{HTML_STYLE}"
        "</style></head>\n"
        f"<body>\n<h1>Claims of the paper, and what is true</h1>\n{to_html_fragment(entries)}</body></html>\n"
    )


def to_json(entries: Iterable[Entry]) -> dict[str, Any]:
    """The ledger for machines."""
    entries = tuple(entries)
    return {
        "claims": {entry.claim.id: entry.to_json() for entry in entries},
        "verdicts": dict(Counter(entry.result.verdict.value for entry in entries)),
        "as_expected": all(entry.as_expected for entry in entries),
    }
