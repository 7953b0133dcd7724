"""Claims, checks and verdicts: how this project says what is true.

A `Claim` is data and stands in the catalogue alone: what is said, by whom and where, how grave an error in it
is, the verdict that we expect, and the claims that it rests on. A check names a claim by its id and adds
evidence: a `Method` and what it found, a `CheckResult`. The two together are an `Outcome`.

A method can say so much and no more. What holds on ten thousand instances is SUPPORTED, never PROVED; no
finite run refutes a limit. `Outcome` refuses a verdict beyond its method, and expects of a method the
strongest verdict that it can give. A verdict that differs from this is a failure of the command (exit code
1), whichever way it differs.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import Any

from rich.markup import escape
from rich.table import Table


class Verdict(StrEnum):
    """What a check found out."""

    PROVED = "PROVED"  # for all cases of the scope
    SUPPORTED = "SUPPORTED"  # on instances; the evidence says how many, how close, which seed
    NEEDS_ASSUMPTION = "NEEDS ASSUMPTION"  # true with a condition that the text leaves out, false without it
    REFUTED = "REFUTED"  # false as stated (also if a condition is misstated): a counterexample, recomputed
    REPRODUCED = "REPRODUCED"  # an empirical claim, at the scale that the evidence names
    NOT_REPRODUCED = "NOT REPRODUCED"
    INCONCLUSIVE = "INCONCLUSIVE"
    NOT_CHECKED = "NOT CHECKED"  # the evidence says why


UNDECIDED = frozenset({Verdict.INCONCLUSIVE, Verdict.NOT_CHECKED})
FAULTS = frozenset({Verdict.REFUTED, Verdict.NEEDS_ASSUMPTION})
_PROOF = frozenset({Verdict.PROVED, Verdict.REFUTED, Verdict.NEEDS_ASSUMPTION})


class Method(Enum):
    """How something was found out: a name, and the verdicts beside "undecided" that it can give."""

    COQ = ("Coq", _PROOF)  # machine-checked, for all finite sizes
    SYMBOLIC = ("symbolic", _PROOF)  # identities with every number an unknown, at the sizes of the scope
    SMT = ("SMT", _PROOF)  # inequalities for all reals, decided by z3, at the sizes of the scope
    EXACT = ("exact", _PROOF)  # all cases of the scope, counted or computed in rational arithmetic
    COUNTEREXAMPLE = ("counterexample", FAULTS)  # computed anew
    INSTANCES = ("instances", frozenset({Verdict.SUPPORTED, Verdict.REFUTED}))  # problems that were drawn
    SIMULATION = ("simulation", frozenset({Verdict.SUPPORTED}))  # learning runs
    RESULTS = (  # the paper's experiments, in the worlds that its text leaves open
        "results",
        frozenset({Verdict.REPRODUCED, Verdict.NOT_REPRODUCED, Verdict.NEEDS_ASSUMPTION}),
    )

    def __init__(self, label: str, verdicts: frozenset[Verdict]) -> None:
        self.label = label
        self.verdicts = verdicts

    def can_say(self, verdict: Verdict) -> bool:
        return verdict in self.verdicts | UNDECIDED

    def at_best(self, expected: Verdict) -> Verdict:
        """What this method should find of a claim of which we expect `expected`."""
        if expected is Verdict.PROVED and not self.can_say(expected):
            expected = Verdict.SUPPORTED
        return expected if self.can_say(expected) else Verdict.INCONCLUSIVE


class Kind(StrEnum):
    """What sort of statement a claim is; the first two are the paper's, the others ours."""

    STATEMENT = "statement"
    EXPERIMENT = "experiment"  # decided by results
    READING = "reading"  # what one may be led to believe but the paper does not say
    CORRECTION = "correction"  # of a statement of the paper
    RESULT = "result"  # what the paper does not treat
    STEP = "step"  # of a proof

    @property
    def is_ours(self) -> bool:
        return self not in (Kind.STATEMENT, Kind.EXPERIMENT)


class Gravity(StrEnum):
    """What an error in the paper costs."""

    THEOREM = "theorem"  # it falls, or a conclusion does
    ASSUMPTION = "assumption"  # one is missing or misstated; with it the statement is true
    SLIP = "slip"  # of notation or counting: what is meant is clear, and true


class Skipped(StrEnum):
    """Why a claim was not checked in a run, which is no failure."""

    FAST = "--fast"
    NO_Z3 = "no z3"
    NO_RESULTS = "no results"
    TOO_SHORT = "runs too short"
    DEPENDENCY = "rests on what was skipped"


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, or one of ours on it."""

    id: str
    label: str  # the LaTeX label or the section where the paper says it; empty if it is ours
    sentence: str
    expected: Verdict
    kind: Kind = Kind.STATEMENT
    gravity: Gravity | None = None  # of a statement of the paper that is false or incomplete
    depends_on: tuple[str, ...] = ()  # ids of claims without which it is not proved
    about: str = ""  # of a statement of ours: the place in the paper that it bears on

    def __post_init__(self) -> None:
        if self.is_ours == bool(self.label):
            raise ValueError(f"{self.id}: the paper's statements have a label, ours a kind of their own")
        if (self.gravity is not None) != (self.expected in FAULTS and not self.is_ours):
            raise ValueError(f"{self.id}: exactly the paper's false statements have a gravity")

    @property
    def is_ours(self) -> bool:
        """Whether the paper does not state it."""
        return self.kind.is_ours

    @property
    def place(self) -> str:
        """Where the paper says it, or that it is ours and what it bears on."""
        return self.label or (f"ours, on {self.about}" if self.about else "ours")


@dataclass(frozen=True)
class CheckResult:
    """A verdict, one sentence of evidence with its numbers, and details for machines."""

    verdict: Verdict
    evidence: str
    scope: str = ""
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Outcome:
    """A claim with what a method found out about it."""

    claim: Claim
    result: CheckResult
    method: Method | None  # None: nothing was checked
    skipped: Skipped | None = None
    seconds: float = 0.0

    def __post_init__(self) -> None:
        verdict = self.result.verdict
        if verdict not in UNDECIDED and (self.method is None or not self.method.can_say(verdict)):
            how = "nothing" if self.method is None else self.method.label
            raise ValueError(f"{self.claim.id} cannot be {verdict.value} by {how}")

    @property
    def as_expected(self) -> bool:
        """Of results, which may be fewer than the paper's, only another decision contradicts."""
        expected, verdict = self.claim.expected, self.result.verdict
        if self.skipped:
            return True
        if self.claim.kind is Kind.EXPERIMENT:
            return verdict in UNDECIDED or expected in (Verdict.NOT_CHECKED, verdict)
        return verdict is (expected if self.method is None else self.method.at_best(expected))

    def to_json(self) -> dict[str, Any]:
        claim, result = self.claim, self.result
        return {
            "label": claim.label,
            "about": claim.about,
            "place": claim.place,
            "claim": claim.sentence,
            "kind": claim.kind.value,
            "gravity": None if claim.gravity is None else claim.gravity.value,
            "depends_on": list(claim.depends_on),
            "verdict": result.verdict.value,
            "expected": claim.expected.value,
            "as_expected": self.as_expected,
            "skipped": None if self.skipped is None else self.skipped.value,
            "method": "" if self.method is None else self.method.label,
            "evidence": result.evidence,
            "scope": result.scope,
            "seconds": round(self.seconds, 3),
            "details": dict(result.details),
        }


ERRORS: Mapping[Gravity, str] = {
    Gravity.THEOREM: "Theorems or conclusions that fall",
    Gravity.ASSUMPTION: "Assumptions that are missing or misstated",
    Gravity.SLIP: "Slips of notation or counting",
}


def head(claims: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """What a ledger (claims as `Outcome.to_json` gives them, by id) comes to, in a few lines.

    Verdicts of the paper's statements and of ours, and the paper's errors by what they cost.
    """
    lines = []
    for whose, ours in (("of the paper", False), ("of ours", True)):
        chosen = (entry for entry in claims.values() if Kind(entry["kind"]).is_ours is ours)
        counts = Counter(Verdict(entry["verdict"]) for entry in chosen)
        listed = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
        if listed:
            lines.append(f"{counts.total()} claims {whose}: {listed}.")
    lines += [
        f"{ERRORS[gravity]}: {len(names)} ({', '.join(names)})." for gravity, names in errors(claims).items()
    ]
    return lines


def errors(claims: Mapping[str, Mapping[str, Any]]) -> dict[Gravity, list[str]]:
    """The paper's statements that were found false or incomplete, by what that costs."""
    found: dict[Gravity, list[str]] = {}
    for gravity in Gravity:
        names = [
            name
            for name, entry in claims.items()
            if entry["gravity"] == gravity.value and Verdict(entry["verdict"]) in FAULTS
        ]
        if names:
            found[gravity] = names
    return found


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
COLUMNS = (
    "claim: id, where the paper says it, the statement. verdict: what this run found. by: the method. "
    "evidence: what was computed, and for which cases (scope)."
)


def styled(verdict: Verdict, as_expected: bool = True) -> str:
    """The verdict with terminal markup; one that was not expected stands out."""
    if not as_expected:
        return f"[bold white on red]{verdict.value} (unexpected)[/]"
    return f"[{VERDICT_STYLES[verdict]}]{verdict.value}[/]"


def outcome_table(title: str, rows: Iterable[Outcome | str], in_full: bool = True) -> Table:
    """Claims, verdicts and evidence as a terminal table; text among the rows is a heading.

    In an overview, not `in_full`, a proof shows its scope only; its steps are in the files.
    """
    table = Table(title=title, title_justify="left", caption=COLUMNS, caption_justify="left", pad_edge=False)
    table.add_column("claim", ratio=5)
    table.add_column("verdict", no_wrap=True)
    table.add_column("by", no_wrap=True)
    table.add_column("evidence", ratio=6)
    for row in rows:
        table.add_section()
        if isinstance(row, str):
            table.add_row(f"[bold underline]{escape(row)}[/]")
            continue
        claim, result = row.claim, row.result
        evidence, scope = escape(result.evidence), escape(result.scope)
        if scope:
            brief = result.verdict is Verdict.PROVED and not in_full
            evidence = scope if brief else f"{evidence} [dim]Scope: {scope}[/]"
        table.add_row(
            f"[bold]{escape(claim.id)}[/] [dim]{escape(claim.place)}[/]\n{escape(claim.sentence)}",
            styled(result.verdict, row.as_expected),
            "" if row.method is None else row.method.label,
            evidence,
        )
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
    return f"<td class='verdict {html.escape(style)}'>{html.escape(verdict)}</td>"


def claims_html(claims: Mapping[str, Mapping[str, Any]]) -> str:
    """Claims as `Outcome.to_json` gives them, by id, as an HTML table."""
    rows = ["<tr><th>claim</th><th>verdict</th><th>evidence and scope</th></tr>"]
    for name, entry in claims.items():
        text = {key: html.escape(entry[key]) for key in ("place", "claim", "method", "evidence", "scope")}
        method = f"<span class='scope'>By {text['method']}.</span> " if text["method"] else ""
        scope = f"<br><span class='scope'>Scope: {text['scope']}</span>" if text["scope"] else ""
        rows.append(
            f"<tr><td><code>{html.escape(name)}</code> <span class='label'>{text['place']}</span>"
            f"<br>{text['claim']}</td>{verdict_html(entry['verdict'], entry['as_expected'])}"
            f"<td>{method}{text['evidence']}{scope}</td></tr>"
        )
    return "<table class='claims'>\n" + "\n".join(rows) + "\n</table>\n"
