"""A verdict on every claim of the paper, with its evidence, computed in this run.

Each claim of the catalogue is proved (symbolically, exactly, by SMT or in Coq), supported on instances,
refuted by a counterexample that is recomputed, found to need an assumption, or not checked, with the reason.
Each proof comes with a broken variant that must be rejected. Verdicts on experiments come from the folder
of results. All of it takes a minute or two; with --fast, some seconds.

Exit code 0: every verdict is the one that the catalogue expects. 1: one differs. 2: bad input.
"""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated

import tyro

from proofs_checks import coq, ledger
from sfr_theory import cli
from sfr_theory.claims import Skipped, head
from sfr_theory.errors import InputError


@dataclass(frozen=True)
class Options:
    """Which claims, and where the ledger goes."""

    only: tyro.conf.UseAppendAction[tuple[str, ...]] = ()
    """Only this claim, such as thm2/printed, or all whose ids begin like this, thm2/ (repeatable), with the
    claims that they rest on and the steps of their proofs."""
    fast: tyro.conf.FlagCreatePairsOff[bool] = False
    """Leave out the slow proofs, whose claims say NOT CHECKED, and Coq."""
    json: str | None = None
    """Write the ledger as JSON to this file; - is standard output."""
    markdown: str | None = None
    """Write the ledger as a Markdown page to this file."""
    html: str | None = None
    """Write the ledger as an HTML page to this file."""
    results: str = str(ledger.RESULTS)
    """Folder of published results, which decide the empirical claims; it need not exist."""
    workers: Annotated[int, tyro.conf.arg(help_behavior_hint="(default: one for each core)")] = field(
        default_factory=lambda: os.cpu_count() or 1
    )
    """How many processes run proofs."""


REMEDIES = {
    Skipped.FAST: "Leave out --fast to run these slow proofs.",
    Skipped.NO_RESULTS: "--results names a folder with published tables.",
    Skipped.DEPENDENCY: "They follow from claims that were not checked in this run.",
}


def main(options: Options) -> int:
    """Run the proofs, print the ledger, write the files."""
    if options.workers < 1:
        raise InputError(f"workers is {options.workers}; it must be at least 1")
    claims = ledger.select(options.only)
    cli.require_writable(options.json, options.markdown, options.html)
    console = cli.output_console(options.json)
    with cli.progress(len(claims), "proving") as advance:
        formal = {} if options.fast else coq.findings({claim.id for claim in claims})
        outcomes = ledger.run(claims, options.fast, options.workers, advance, Path(options.results), formal)
    console.print(ledger.table(outcomes, in_full=bool(options.only)))
    for line in head(ledger.as_json(outcomes)):
        console.print(line, markup=False)
    skipped = Counter(outcome.skipped for outcome in outcomes)
    for why, remedy in REMEDIES.items():
        if skipped[why]:
            console.print(f"NOT CHECKED, {why.value}: {skipped[why]}. {remedy}", markup=False)
    unexpected = [outcome for outcome in outcomes if not outcome.as_expected]
    for outcome in unexpected:
        console.print(
            f"UNEXPECTED {outcome.claim.id}: {outcome.result.verdict.value}, expected "
            f"{outcome.claim.expected.value}. {outcome.result.evidence}",
            markup=False,
        )
    if options.json:
        cli.write_json(ledger.to_json(outcomes), options.json)
    for path, text in ((options.markdown, ledger.to_markdown), (options.html, ledger.to_html_page)):
        if path:
            cli.write_atomic(Path(path), text(outcomes).encode())
    return cli.EXIT_UNEXPECTED if unexpected else 0


if __name__ == "__main__":
    cli.run(main, Options, "proofs_checks", __doc__ or "")
