"""One page of everything that was found out: `python -m experiments.report`.

Reads the JSON files and pictures that the checks wrote into one folder (with the results of the demo's
experiment) and the results of experiments in another, and writes one self-contained HTML page (pictures
inline, no scripts). Nothing is proved or trained here: what is missing in the folders is missing on the page,
and the page says so. It also says what is wrong with a file of results: a checksum that does not match, a
repetition that is lost, an agent under another's name.
"""

from __future__ import annotations

import base64
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jinja2
from markupsafe import Markup

from experiments.analysis import svg
from experiments.render import render
from sfr_theory import cli
from sfr_theory.catalogue import EXPERIMENTS, SECTIONS
from sfr_theory.claims import HTML_STYLE, Verdict, claims_html, head
from sfr_theory.errors import InputError

if TYPE_CHECKING:
    from experiments.analysis.tables import Sheet
    from sfr_fa.runs.load import Run

DEMO_RESULTS = "demo"
"""Folder of the demo's experiment within the data."""


@dataclass(frozen=True)
class Options:
    data: str = "report/data"
    """Folder with what the checks wrote: gpi_bound.json, convergence.json, tightness.json, ledger.json and
    pictures of the same names; `demo` in it holds the demo's experiment. `make demo` fills it."""
    output: str = "report/index.html"
    """The page."""
    results: str = "results"
    """Folder with published tables and runs; it need not exist."""


@dataclass(frozen=True)
class Section:
    """A part of the page about theory, by the name of the file that it is made from."""

    name: str
    title: str
    introduction: str
    command: str
    caption: str = ""
    """Of its picture."""


THEORY = (
    Section(
        "gpi_bound",
        "What GPI guarantees",
        "Each statement was evaluated on generated transfer problems, some of them adversarial: errors of "
        "the approximations hide where the source reward does not see them. A ratio above 1 violates a "
        "bound.",
        "python -m sfr_theory.check_gpi_bound",
        "Left side over right side of each bound; a dot is a problem, a cross right of the line violates it.",
    ),
    Section(
        "tightness",
        "How tight the bound is",
        "The sharp constants are attained by explicit problems; the printed constant never is.",
        "python -m sfr_theory.check_tightness",
        "How close left and right side come: lines are what T2' allows, marks what was found, over gamma.",
    ),
    Section(
        "convergence",
        "What SFRQ-learning converges to",
        "The value of xi follows Q-learning path by path, so its class converges; xi itself need not.",
        "python -m sfr_theory.check_convergence",
        "Learning xi: its value converges at the rate of Q-learning, xi itself may swing for ever.",
    ),
)
LEDGER = Section(
    "ledger",
    "Every claim of the paper",
    "Each verdict was computed in the run that made this page; beside each proof a broken variant had "
    "to be rejected.",
    "python -m proofs_checks",
)


@dataclass(frozen=True)
class Shown:
    """A picture inside the page."""

    caption: str
    uri: Markup
    is_wide: bool = False

    @classmethod
    def of_svg(cls, drawing: bytes, caption: str) -> Shown:
        return cls(caption, Markup(svg.data_uri(drawing)), svg.width(drawing) > 700)

    @classmethod
    def of_png(cls, content: bytes, caption: str) -> Shown:
        return cls(caption, Markup("data:image/png;base64," + base64.b64encode(content).decode()))


# --- Theory ------------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any] | None:
    """A JSON file; None if it is not there."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {path}: {error}; run `make demo` to make it anew") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} does not hold results; run `make demo` to make it anew")
    return content


def claims_table(entries: Mapping[str, Mapping[str, Any]]) -> Markup:
    return Markup(claims_html(entries))


def verdict_counts(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """58 PROVED, 10 SUPPORTED, ..."""
    counts = Counter(Verdict(entry["verdict"]) for entry in entries.values())
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])


def theory_section(section: Section, folder: Path, decided: Mapping[str, Mapping[str, Any]]) -> Markup:
    """A section of the page; `decided` are verdicts on results, which are in the place of NOT CHECKED."""
    path = folder / f"{section.name}.json"
    content = read(path)
    drawing = folder / f"{section.name}.svg"
    try:
        if content is not None and section is LEDGER:
            merged = {name: decided.get(name, entry) for name, entry in content["claims"].items()}
            content = {"head": head(merged), "sections": list(ledger_sections(merged))}
        drawn = Shown.of_svg(svg.compact(drawing.read_bytes()), section.caption) if drawing.exists() else None
        made = render(
            "section.html", section=section, content=content, drawn=drawn, claims_table=claims_table,
            counts=verdict_counts,
        )  # fmt: skip
        return Markup(made)
    except (KeyError, TypeError, ValueError, AttributeError, jinja2.UndefinedError) as error:
        # Whatever another program wrote there: it is not what the command writes.
        raise InputError(
            f"{path} is not what `{section.command} --json` writes ({type(error).__name__}: {error}); "
            f"run it again, or `make demo`"
        ) from None


def ledger_sections(
    claims: Mapping[str, Mapping[str, Any]],
) -> Iterator[tuple[str, Mapping[str, Any], bool]]:
    """(title, claims, whether experiments decide them), in the paper's order."""
    for section in SECTIONS:
        chosen = {claim.id: claims[claim.id] for claim in section.claims if claim.id in claims}
        if chosen:
            yield section.title, chosen, section is EXPERIMENTS


# --- Experiments -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ShownRun:
    """A run with its figures and tables."""

    run: Run
    facts: Mapping[str, Any]
    pictures: tuple[Shown, ...]
    sheets: tuple[Sheet, ...]


@dataclass(frozen=True)
class ShownRuns:
    """The runs of a folder, and a sentence for each that cannot be read."""

    runs: tuple[ShownRun, ...]
    unreadable: tuple[str, ...]

    @property
    def there(self) -> bool:
        return bool(self.runs or self.unreadable)


@dataclass(frozen=True)
class Experiments:
    """The part of the page about experiments."""

    folder: Path
    environments: tuple[Shown, ...]
    demo: ShownRuns
    results: ShownRuns
    overview: Sheet
    pairs: Sheet
    claims: Mapping[str, Mapping[str, Any]]
    """Verdicts; they belong into the ledger, too."""
    counts: str


def shown_run(run: Run) -> ShownRun:
    from experiments.analysis import figures, tables

    found = run.provenance
    packages = ", ".join(f"{name} {version}" for name, version in found.get("packages", {}).items())
    facts = {
        "size": run.size, "seed": run.config["seed"], "engine": run.config["engine"], "commit": run.commits,
        "started on": f"{found.get('platform')}, Python {found.get('python')}, {packages}", "files": run.path,
    }  # fmt: skip
    drawn = tuple(Shown.of_svg(p.encoded("svg"), p.caption) for p in figures.pictures(run))
    return ShownRun(run, facts, drawn, tuple(tables.sheets(run)))


def experiments(folder: Path, demo: Path) -> Experiments:
    """The environments, the demo's experiment, and every run below a folder of results."""
    # The theory's part of the page needs none of these packages.
    from experiments.analysis import claims, compare, figures, tables
    from sfr_fa.runs import load

    def runs(place: Path) -> tuple[list[Run], list[str]]:
        return load.load_all(place) if place.is_dir() else ([], [])

    def shown(found: Iterable[Run], unreadable: Iterable[str]) -> ShownRuns:
        return ShownRuns(tuple(map(shown_run, found)), tuple(unreadable))

    found, unreadable = runs(folder)
    results = compare.Results(found)
    judged = claims.to_json(claims.check(results))
    return Experiments(
        folder,
        tuple(Shown.of_png(figures.small_png(p.image), p.caption) for p in figures.environments()),
        shown(*runs(demo)),
        shown(found, unreadable),
        tables.overview(results),
        tables.pairs(claims.judged_pairs(results)),
        judged,
        verdict_counts(judged),
    )


def page(folder: Path, results: Path) -> str:
    """The whole page; the ledger is long, so it comes last."""
    learned, missing_package = None, ""
    try:
        learned = experiments(results, folder / DEMO_RESULTS)
    except ModuleNotFoundError as error:
        missing_package = str(error)
    decided = learned.claims if learned and learned.results.there else {}
    contents = [(section.name, section.title) for section in THEORY]
    contents += [("experiments", "Experiments"), (LEDGER.name, LEDGER.title)]
    return render(
        "report.html",
        contents=contents,
        theory=[theory_section(section, folder, {}) for section in THEORY],
        experiments=learned,
        missing_package=missing_package,
        ledger=theory_section(LEDGER, folder, decided),
        claims_table=claims_table,
        claims_style=Markup(HTML_STYLE),
    )


def main(options: Options) -> int:
    folder = Path(options.data)
    if not folder.is_dir() and options.data != Options.data:
        raise InputError(f"there is no folder {folder}; `make demo` fills one, --data names another")
    cli.write_atomic(Path(options.output), page(folder, Path(options.results)).encode())
    print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.report", __doc__ or "")
