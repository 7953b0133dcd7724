"""The ledger: every claim of the catalogue with the verdict that its proof computed in this run.

A proof counts only if each broken variant beside it is rejected by the same machinery; otherwise the entry is
INCONCLUSIVE. The same holds where a proof raises, or says more than its method can. Entries whose proof was
left out (--fast) are NOT CHECKED with that reason; this is reported, and is not a failure. Every other
verdict that differs from what the catalogue expects is a failure.

A claim that rests on others (`depends_on`) is PROVED only if all of them are, in the same run: `settle`
follows the chain, so that a step that fails takes with it whatever was built on it.

What Coq has checked, most of it for all finite sizes, rests on nothing else (`coq.findings`); where it did
not run, the entry says what the other proof covers and no more.

Verdicts on experiments are computed from the published tables (`sfr_theory.empirical`).

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
from dataclasses import replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from rich.table import Table

import proofs_checks
from proofs_checks.argument import Proof
from sfr_theory import empirical
from sfr_theory.catalogue import CATALOGUE, EXPERIMENTS, SECTIONS, UNCHECKED
from sfr_theory.claims import (
    HTML_STYLE,
    CheckResult,
    Claim,
    Method,
    Outcome,
    Skipped,
    Verdict,
    claims_html,
    errors,
    head,
    markdown_cell,
    outcome_table,
)
from sfr_theory.errors import InputError

RESULTS = Path("results")


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
    """The claims with these ids, or whose ids begin so (thm2/), and all that they rest on.

    Without a name: all claims.
    """
    wanted = tuple(only)
    for name in wanted:
        if name not in CATALOGUE and not any(_begins(claim, name) for claim in CATALOGUE):
            near = get_close_matches(name, CATALOGUE, n=3, cutoff=0.5)
            hint = (
                f"did you mean {' or '.join(near)}?" if near else "`python -m proofs_checks` lists them all"
            )
            raise InputError(f"no claim has the id {name!r}; {hint}")
    chosen = {
        name
        for name in CATALOGUE
        if not wanted or name in wanted or any(_begins(name, prefix) for prefix in wanted)
    }
    return tuple(CATALOGUE[name] for name in CATALOGUE if name in _with_dependencies(chosen))


def _with_dependencies(names: Iterable[str]) -> set[str]:
    """These claims and, transitively, those that they rest on."""
    found: set[str] = set()
    waiting = list(names)
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += CATALOGUE[name].depends_on
    return found


def _begins(claim: str, prefix: str) -> bool:
    return claim.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


# --- Running -----------------------------------------------------------------------------------------------


def run_proof(proof: Proof) -> Outcome:
    """Run a proof, then its broken variants."""
    claim, started = CATALOGUE[proof.claim], time.perf_counter()

    def outcome(result: CheckResult) -> Outcome:
        return Outcome(claim, result, proof.method, seconds=time.perf_counter() - started)

    def inconclusive(reason: str, scope: str = "") -> Outcome:
        return outcome(CheckResult(Verdict.INCONCLUSIVE, reason, scope))

    try:
        found = outcome(proof.check())
        if not proof.broken:
            return inconclusive("the proof has no broken variant beside it")
        for variant in proof.broken:
            if not variant.is_rejected():
                return inconclusive(
                    f"a broken variant was not rejected: {variant.sentence}", found.result.scope
                )
    except Exception as error:  # a proof that breaks must not take the ledger with it
        return inconclusive(f"the check failed with {type(error).__name__}: {error}")
    return replace(found, seconds=time.perf_counter() - started)


def _run_by_id(claim: str) -> Outcome:
    return run_proof(collect()[claim])


def _skipped(claim: Claim, why: Skipped, evidence: str) -> Outcome:
    return Outcome(claim, CheckResult(Verdict.NOT_CHECKED, evidence), None, skipped=why)


def from_results(folder: Path) -> dict[str, Outcome]:
    """The empirical claims, as the folder of results decides them."""
    verdicts = empirical.decide(folder)
    missing = empirical.NO_RESULTS.format(path=folder)
    return {
        claim.id: Outcome(claim, verdicts[claim.id], Method.RESULTS)
        if claim.id in verdicts
        else _skipped(claim, Skipped.NO_RESULTS, missing)
        for claim in EXPERIMENTS.claims
    }


def run(
    claims: Iterable[Claim],
    fast: bool,
    workers: int,
    advance: Callable[[int], None] = lambda _: None,
    results: Path = RESULTS,
    formal: Mapping[str, CheckResult] | None = None,
) -> list[Outcome]:
    """Run the proofs of these claims, then settle what rests on what; `advance` is called after each."""
    proofs = collect()
    outcomes: dict[str, Outcome] = {}
    claims = tuple(claims)
    decided = from_results(results) if set(claims) & set(EXPERIMENTS.claims) else {}
    for claim in claims:
        proof = proofs.get(claim.id)
        if claim.id in decided:
            outcomes[claim.id] = decided[claim.id]
        elif proof is None:
            reason = UNCHECKED.get(claim.id, "no proof covers it")
            outcomes[claim.id] = Outcome(claim, CheckResult(Verdict.NOT_CHECKED, reason), None)
        elif fast and proof.slow:
            outcomes[claim.id] = _skipped(claim, Skipped.FAST, "left out by --fast")
    advance(len(outcomes))
    # The long ones first, so that no worker is left with one at the end.
    waiting = sorted(
        (claim.id for claim in claims if claim.id not in outcomes),
        key=lambda name: (not proofs[name].slow, proofs[name].method is not Method.SMT),
    )
    for outcome in _outcomes(waiting, workers):
        outcomes[outcome.claim.id] = outcome
        advance(1)
    for name, found in (formal or {}).items():
        if name in outcomes:
            outcomes[name] = _also_in_coq(outcomes[name], found)
    settled = settle(outcomes)
    return [settled[claim.id] for claim in claims]


def _outcomes(names: list[str], workers: int) -> Iterable[Outcome]:
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
                died = "a process that ran proofs died, perhaps because memory ran out; try --workers 1"
                claim = CATALOGUE[submitted[done]]
                yield Outcome(claim, CheckResult(Verdict.INCONCLUSIVE, died), None)


def _also_in_coq(outcome: Outcome, formal: CheckResult) -> Outcome:
    """An entry with what Coq says of it; where the two contradict each other, neither counts."""
    own = outcome.result
    agreeing = {formal.verdict, Verdict.NOT_CHECKED}
    if formal.verdict is Verdict.PROVED:
        agreeing.add(Verdict.SUPPORTED)
    if own.verdict not in agreeing:
        reason = (
            f"Coq says {formal.verdict.value} ({formal.evidence}), but {own.verdict.value}: {own.evidence}"
        )
        return replace(outcome, result=CheckResult(Verdict.INCONCLUSIVE, reason, own.scope))
    also = "" if outcome.method is None else f". Also {outcome.method.label} ({own.scope}): {own.evidence}"
    details = {**own.details, **formal.details}
    result = CheckResult(formal.verdict, formal.evidence + also, formal.scope, details)
    return Outcome(outcome.claim, result, Method.COQ, seconds=outcome.seconds)


def settle(outcomes: Mapping[str, Outcome]) -> dict[str, Outcome]:
    """The outcomes, where a claim is PROVED only if all that it rests on is, in this run."""
    settled: dict[str, Outcome] = {}

    def visit(name: str) -> Outcome:
        if name not in settled:
            rests_on = [visit(other) for other in outcomes[name].claim.depends_on]
            settled[name] = _resting_on(outcomes[name], rests_on)
        return settled[name]

    return {name: visit(name) for name in outcomes}


def _resting_on(outcome: Outcome, others: list[Outcome]) -> Outcome:
    weak = [other for other in others if other.result.verdict is not Verdict.PROVED]
    if outcome.result.verdict is not Verdict.PROVED or outcome.method is Method.COQ or not weak:
        return outcome
    listed = ", ".join(f"{other.claim.id} ({other.result.verdict.value})" for other in weak)
    evidence = f"it rests on what is not proved in this run: {listed}. By itself: {outcome.result.evidence}"
    if all(other.skipped for other in weak):
        return _skipped(outcome.claim, Skipped.DEPENDENCY, evidence)
    return replace(outcome, result=CheckResult(Verdict.INCONCLUSIVE, evidence, outcome.result.scope))


# --- Rendering ---------------------------------------------------------------------------------------------


def in_sections(outcomes: Iterable[Outcome]) -> list[tuple[str, list[Outcome]]]:
    """The outcomes under the titles of the catalogue; empty sections are left out."""
    by_id = {outcome.claim.id: outcome for outcome in outcomes}
    sections = (
        (section.title, [by_id[claim.id] for claim in section.claims if claim.id in by_id])
        for section in SECTIONS
    )
    return [(title, listed) for title, listed in sections if listed]


def as_json(outcomes: Iterable[Outcome]) -> dict[str, dict[str, Any]]:
    return {outcome.claim.id: outcome.to_json() for outcome in outcomes}


def table(outcomes: Iterable[Outcome], in_full: bool) -> Table:
    """The ledger for a terminal."""
    rows: list[Outcome | str] = []
    for title, listed in in_sections(outcomes):
        rows += [title, *listed]
    return outcome_table("Claims of the paper", rows, in_full)


def to_markdown(outcomes: Iterable[Outcome]) -> str:
    """The ledger as a page."""
    outcomes = tuple(outcomes)
    lines = [
        "# Claims of the paper, and what is true",
        "",
        "Made by `python -m proofs_checks --markdown docs/claims.md`; do not edit. Every verdict was",
        "computed in that run, and beside each proof a broken variant had to be rejected. Verdicts on",
        "experiments are computed from the published tables in `results/`.",
        "Below a claim stands the label in the paper's source where it is stated, or that it is ours: a",
        "correction, a step of a proof, or what the paper does not say but one may be led to believe.",
        "",
        *(f"- {markdown_cell(line)}" for line in head(as_json(outcomes))),
    ]
    for title, listed in in_sections(outcomes):
        lines += [
            "",
            f"## {title}",
            "",
            "| claim | says | verdict | by | evidence | scope |",
            "|---|---|---|---|---|---|",
        ]
        for outcome in listed:
            claim, result = outcome.claim, outcome.result
            place = claim.label or claim.about
            cells = (
                f"`{claim.id}` <br>{claim.place.replace(place, f'`{place}`') if place else claim.place}",
                markdown_cell(claim.sentence),
                f"**{result.verdict.value}**" + ("" if outcome.as_expected else " (unexpected)"),
                "" if outcome.method is None else outcome.method.label,
                markdown_cell(result.evidence),
                markdown_cell(result.scope),
            )
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def to_html_page(outcomes: Iterable[Outcome]) -> str:
    """The ledger as a page: its head, and one table for each section."""
    outcomes = tuple(outcomes)
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in head(as_json(outcomes)))
    sections = claims_html({title: as_json(listed) for title, listed in in_sections(outcomes)})
    return (
        "<!doctype html>\n<html lang='en'>"
        "<head><meta charset='utf-8'><meta name='viewport' content='width=device-width, initial-scale=1'>"
        f"<title>Claims of the paper</title><style>body {{ font-family: system-ui, sans-serif; }}{HTML_STYLE}"
        "</style></head>\n"
        f"<body>\n<h1>Claims of the paper, and what is true</h1>\n<ul>{lines}</ul>\n{sections}"
        "</body></html>\n"
    )


def to_json(outcomes: Iterable[Outcome]) -> dict[str, Any]:
    """The ledger for machines."""
    outcomes = tuple(outcomes)
    claims = as_json(outcomes)
    return {
        "claims": claims,
        "verdicts": dict(Counter(entry["verdict"] for entry in claims.values())),
        "errors": {gravity.value: names for gravity, names in errors(claims).items()},
        "as_expected": all(outcome.as_expected for outcome in outcomes),
    }
