"""Claims, checks and verdicts: how this project says what is true.

A `Claim` is data and stands in the catalogue alone: what is said, by whom and where, how grave an error in it
is, the verdict that we expect, and the claims that it rests on. A check names a claim by its id and adds
evidence: a `Method` and what it found, a `CheckResult`. The two together are an `Outcome`.

Each method can say only so much. What holds on ten thousand instances is SUPPORTED, never PROVED; no
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
    """How something was found out: a name, and the verdicts that it can give besides "undecided"."""

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
    PREDICTION = "prediction"  # of an experiment of ours; decided by results

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
        if self.claim.kind in (Kind.EXPERIMENT, Kind.PREDICTION):
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
    return verdict_counts(claims) + [
        f"{ERRORS[gravity]}: {len(names)} ({', '.join(names)})." for gravity, names in errors(claims).items()
    ]


def verdict_counts(claims: Mapping[str, Mapping[str, Any]]) -> list[str]:
    """How often each verdict was found, of the paper's statements and of ours."""
    lines = []
    for whose, ours in (("of the paper", False), ("of ours", True)):
        chosen = (entry for entry in claims.values() if Kind(entry["kind"]).is_ours is ours)
        counts = Counter(Verdict(entry["verdict"]) for entry in chosen)
        listed = ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])
        total = counts.total()
        if total:
            lines.append(f"{total} claim{'' if total == 1 else 's'} {whose}: {listed}.")
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


def markdown_cell(text: str) -> str:
    """Text inside a table cell: no markup but what we write, no line breaks."""
    return "".join(f"\\{c}" if c in "\\`*_[]<>|#~$" else c for c in text.replace("\n", " "))


HTML_STYLE = """
.claims { border-collapse: collapse; width: 100%; font-size: .88rem; line-height: 1.45; table-layout: fixed; }
.claims th, .claims td { border-bottom: 1px solid var(--line, #d9dee5); padding: .45rem .55rem; }
.claims th, .claims td { text-align: left; }
.claims td { vertical-align: top; overflow-wrap: anywhere; } .claims th:nth-child(2) { width: 9.5rem; }
.claims tr.section th { padding-top: 1.4rem; font-size: 1.05rem; white-space: normal; }
.claims .label, .claims .scope { color: var(--soft, #5b6675); font-size: .92em; }
.claims tr:target { background: var(--panel, #f5f7f9); } .verdict { font-weight: 600; white-space: nowrap; }
.verdict small { display: block; font-weight: 400; white-space: normal; color: var(--soft, #5b6675); }
.PROVED, .SUPPORTED, .REPRODUCED { color: var(--good, #17692b); }
.REFUTED, .NOT_REPRODUCED { color: var(--bad, #b00020); }
.NEEDS_ASSUMPTION, .INCONCLUSIVE { color: var(--doubt, #8a5a00); } .NOT_CHECKED { color: var(--soft, #666); }
.unexpected { background: #b00020; color: #fff; }
@media screen and (max-width: 40rem) {
  .claims, .claims tbody { display: block; } .claims thead { display: none; }
  .claims td, .claims tr.section th { display: block; border: 0; padding: .15rem 0; }
  .claims tr { display: block; border-bottom: 1px solid var(--line, #d9dee5); padding: .6rem 0; }
  .claims tr[hidden] { display: none; }
}
"""
"""What `claims_html` needs of a page's style; a page may define the variables."""


def claims_html(sections: Mapping[str, Mapping[str, Mapping[str, Any]]], is_home: bool = True) -> str:
    """Claims as `Outcome.to_json` gives them, by id, in sections with a title (or none), as an HTML table.

    What is said comes first, then where, then the id, a link to the row of the claim. Rows of a table that is
    their home have that id; a claim has one home on a page.
    """
    bodies = []
    for title, claims in sections.items():
        rows = [f"<tr class='section'><th colspan='3'>{html.escape(title)}</th></tr>"] if title else []
        rows += [_claim_row(name, entry, is_home) for name, entry in claims.items()]
        bodies.append("<tbody>" + "\n".join(rows) + "</tbody>")
    heads = "<thead><tr><th>claim</th><th>verdict</th><th>evidence and scope</th></tr></thead>"
    return f"<table class='claims'>{heads}\n" + "\n".join(bodies) + "\n</table>\n"


def _claim_row(name: str, entry: Mapping[str, Any], is_home: bool) -> str:
    keys = ("place", "claim", "method", "evidence", "scope", "verdict")
    text = {key: html.escape(entry[key]) for key in keys}
    ident, gravity = html.escape(name), html.escape(entry["gravity"] or "")
    style = text["verdict"].replace(" ", "_") + ("" if entry["as_expected"] else " unexpected")
    scope = f"<br><span class='scope'>Scope: {text['scope']}</span>" if text["scope"] else ""
    method = f"<small>by {text['method']}</small>" if text["method"] else ""
    home = f" id='{ident}'" if is_home else ""
    return (
        f"<tr{home} data-verdict='{text['verdict']}' data-gravity='{gravity}'><td>{text['claim']}<br>"
        f"<span class='label'>{text['place']} · <a href='#{ident}'><code>{ident}</code></a></span></td>"
        f"<td class='verdict {style}'>{text['verdict']}{method}</td><td>{text['evidence']}{scope}</td></tr>"
    )
