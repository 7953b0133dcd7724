"""Check the theorems that hold for all finite sizes with Coq, and print what each of them assumes.

The files are compiled in a temporary folder. A theorem is verified when Coq prints that it is closed under
the global context: it rests on no axiom and on no gap. It takes about half a minute.

Exit code 0: every theorem is verified. 1: one is not. 2: Coq or one of its libraries is not installed; the
message says how to install it.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass

from rich.markup import escape
from rich.table import Table

from proofs_checks.coq import check
from sfr_theory import cli


@dataclass(frozen=True)
class Options:
    """Where the report goes."""

    json: str | None = None
    """Write the report as JSON to this file; - is standard output."""


def main(options: Options) -> int:
    """Run Coq, print a line for each theorem."""
    cli.require_writable(options.json)
    console = cli.output_console(options.json)
    sources = check.development()
    try:
        with cli.progress(len(sources) + 1, "compiling") as advance:
            report = check.check(sources, advance=advance)
    except check.CoqUnavailableError as error:
        if options.json:
            cli.write_json({"available": False, "reason": str(error), "theorems": []}, options.json)
        print(f"error: {error}", file=sys.stderr)
        return cli.EXIT_BAD_INPUT
    table = Table("theorem", "statement", "assumptions", title="Theorems for all finite sizes, in Coq")
    for outcome in report.outcomes:
        answer = f"[green]{check.CLOSED}[/]" if outcome.verified else f"[red]{escape(outcome.reason)}[/]"
        table.add_row(outcome.theorem.name, escape(outcome.theorem.statement), answer)
    console.print(table)
    for problem in report.problems:
        console.print(problem, markup=False)
    count = sum(outcome.verified for outcome in report.outcomes)
    console.print(
        f"{count} of {len(report.outcomes)} theorems are closed under the global context "
        f"(Coq {report.version}, {report.seconds:.0f} s)."
    )
    if options.json:
        cli.write_json(report.to_json(), options.json)
    return 0 if report.verified else cli.EXIT_UNEXPECTED


if __name__ == "__main__":
    cli.run(main, Options, "proofs_checks.coq", __doc__ or "")
