"""Claims, checks and verdicts: how this project says what is true.

A `Claim` is data: an id, where the paper says it, the sentence in short, and the verdict that we
expect. A check is a function without arguments, or with the options of a command line, that computes
a `CheckResult`. A command compares the two; a verdict that differs from the expectation is a failure
of the command (exit code 1), whichever way it differs.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from rich.markup import escape
from rich.table import Table


class Verdict(StrEnum):
    """What a check found out."""

    PROVED = "PROVED"  # symbolically, exactly or by SMT; the scope says for what
    SUPPORTED = "SUPPORTED"  # on instances; the evidence says how many, how close, which seed
    NEEDS_ASSUMPTION = "NEEDS ASSUMPTION"  # true with a condition that the text leaves out, false without it
    REFUTED = "REFUTED"  # false as stated (also if a condition is misstated): a counterexample, recomputed
    REPRODUCED = "REPRODUCED"  # an empirical claim, at the scale that the evidence names
    NOT_REPRODUCED = "NOT REPRODUCED"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_CHECKED = "NOT CHECKED"  # the evidence says why


VERDICT_STYLES: Mapping[Verdict, str] = {
    Verdict.PROVED: "bold green",
    Verdict.SUPPORTED: "green",
    Verdict.NEEDS_ASSUMPTION: "yellow",
    Verdict.REFUTED: "red",
    Verdict.REPRODUCED: "green",
    Verdict.NOT_REPRODUCED: "red",
    Verdict.INCONCLUSIVE: "yellow",
    Verdict.NOT_CHECKED: "dim",
}


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or our correction of one."""

    id: str
    label: str  # the LaTeX label or the section where the paper says it; empty if it is ours
    sentence: str
    expected: Verdict
    about: str = ""  # of a statement of ours: the place in the paper that it bears on

    @property
    def is_ours(self) -> bool:
        """Whether the paper does not state it."""
        return not self.label


@dataclass(frozen=True)
class CheckResult:
    """A verdict, one sentence of evidence with its numbers, and details for machines."""

    verdict: Verdict
    evidence: str
    scope: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """A claim with the result of its check."""

    claim: Claim
    result: CheckResult

    @property
    def as_expected(self) -> bool:
        return self.result.verdict == self.claim.expected

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.claim.label,
            "about": self.claim.about,
            "claim": self.claim.sentence,
            "verdict": self.result.verdict.value,
            "expected": self.claim.expected.value,
            "as_expected": self.as_expected,
            "evidence": self.result.evidence,
            "scope": self.result.scope,
            "details": dict(self.result.details),
        }


def styled(verdict: Verdict, as_expected: bool = True) -> str:
    """The verdict with terminal markup; one that was not expected stands out."""
    if not as_expected:
        return f"[bold white on red]{verdict.value} (unexpected)[/]"
    return f"[{VERDICT_STYLES[verdict]}]{verdict.value}[/]"


def outcome_table(title: str, outcomes: Iterable[Outcome]) -> Table:
    """Claims, verdicts and evidence as a terminal table."""
    table = Table(title=title, title_justify="left", show_lines=True)
    table.add_column("claim", ratio=3)
    table.add_column("verdict", no_wrap=True)
    table.add_column("evidence", ratio=4)
    for outcome in outcomes:
        claim, result = outcome.claim, outcome.result
        name = f"[bold]{claim.id}[/]\n{escape(claim.sentence)}"
        evidence = escape(result.evidence) + (
            f"\n[dim]Scope: {escape(result.scope)}[/]" if result.scope else ""
        )
        table.add_row(name, styled(result.verdict, outcome.as_expected), evidence)
    return table


HTML_STYLE = """
.claims { border-collapse: collapse; width: 100%; font-size: .86rem; line-height: 1.4; }
.claims th, .claims td { border-bottom: 1px solid #d9dee5; padding: .35rem .55rem; text-align: left; }
.claims td { vertical-align: top; overflow-wrap: break-word; }
.claims code { font-size: .92em; } .claims .label, .claims .scope { color: #5b6675; }
.verdict { font-weight: 600; white-space: nowrap; }
.PROVED, .SUPPORTED, .REPRODUCED { color: #17692b; } .REFUTED, .NOT_REPRODUCED { color: #b00020; }
.NEEDS_ASSUMPTION, .INCONCLUSIVE { color: #8a5a00; } .NOT_CHECKED { color: #666; }
.unexpected { background: #b00020; color: #fff; }
@media (max-width: 40rem) {
  .claims th { display: none; } .claims td { display: block; border: 0; padding: .15rem 0; }
  .claims tr { display: block; border-bottom: 1px solid #d9dee5; padding: .5rem 0; }
}
"""
"""What the two functions below need of a page's style."""


def verdict_html(verdict: str, as_expected: bool) -> str:
    """A table cell with a verdict; one that was not expected stands out."""
    style = verdict.replace(" ", "_") + ("" if as_expected else " unexpected")
    return f"<td class='verdict {style}'>{html.escape(verdict)}</td>"


def claims_html(claims: Mapping[str, Mapping[str, Any]]) -> str:
    """Claims as `Outcome.to_json` gives them, by id, as an HTML table."""
    rows = ["<tr><th>claim</th><th>verdict</th><th>evidence and scope</th></tr>"]
    for name, entry in claims.items():
        text = {key: html.escape(entry[key]) for key in ("label", "claim", "evidence", "scope")}
        kind = f"<span class='scope'>By {html.escape(entry['kind'])}.</span> " if entry.get("kind") else ""
        scope = f"<br><span class='scope'>Scope: {text['scope']}</span>" if text["scope"] else ""
        about = html.escape(entry.get("about", ""))
        place = text["label"] or ("ours, on " + about if about else "ours")
        rows.append(
            f"<tr><td><code>{html.escape(name)}</code> <span class='label'>{place}</span>"
            f"<br>{text['claim']}</td>{verdict_html(entry['verdict'], entry['as_expected'])}"
            f"<td>{kind}{text['evidence']}{scope}</td></tr>"
        )
    return "<table class='claims'>\n" + "\n".join(rows) + "\n</table>\n"
