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
from collections.abc import Mapping
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


COMMANDS = {
    "gpi_bound": "python -m sfr_theory.check_gpi_bound",
    "tightness": "python -m sfr_theory.check_tightness",
    "convergence": "python -m sfr_theory.check_convergence",
    "ledger": "python -m proofs_checks",
}
"""Part of the page about theory, by the name of its file -> what writes that."""


@dataclass(frozen=True)
class Shown:
    """A picture inside the page."""

    uri: Markup
    caption: str = ""
    is_wide: bool = False

    @classmethod
    def of_svg(cls, drawing: bytes, caption: str = "") -> Shown:
        return cls(Markup(svg.data_uri(drawing)), caption, svg.width(drawing) > 700)

    @classmethod
    def of_png(cls, content: bytes, caption: str) -> Shown:
        return cls(Markup("data:image/png;base64," + base64.b64encode(content).decode()), caption)


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


def theory_section(name: str, folder: Path, decided: Mapping[str, Mapping[str, Any]]) -> Markup:
    """A part of the page; `decided` are verdicts on results, in the place of NOT CHECKED in the ledger."""
    path, drawing, command = folder / f"{name}.json", folder / f"{name}.svg", COMMANDS[name]
    content = read(path)
    drawn = Shown.of_svg(svg.compact(drawing.read_bytes())) if drawing.exists() else None
    try:
        if content is not None and name == "ledger":
            claims = {claim: decided.get(claim, entry) for claim, entry in content["claims"].items()}
            sections = [
                (s.title, {c.id: claims[c.id] for c in s.claims if c.id in claims}, s is EXPERIMENTS)
                for s in SECTIONS
            ]
            content = {"head": head(claims), "sections": sections}
        return Markup(
            render(
                "section.html",
                name=name,
                command=command,
                content=content,
                drawn=drawn,
                claims_table=claims_table,
                counts=verdict_counts,
            )
        )
    except (KeyError, TypeError, ValueError, AttributeError, jinja2.UndefinedError) as error:
        # Whatever another program wrote there: it is not what the command writes.
        raise InputError(
            f"{path} is not what `{command} --json` writes ({type(error).__name__}: {error}); "
            f"run it again, or `make demo`"
        ) from None


# --- Experiments -------------------------------------------------------------------------------------


def experiments(folder: Path, demo: Path) -> dict[str, Any]:
    """The environments, the demo's experiment, and every run below a folder of results."""
    # The theory's part of the page needs none of these packages.
    from experiments.analysis import claims, compare, figures
    from sfr_fa.runs import load

    def runs(place: Path) -> tuple[list[Run], list[str]]:
        return load.load_all(place) if place.is_dir() else ([], [])

    def pictures(run: Run) -> list[Shown]:
        return [Shown.of_svg(p.encoded("svg"), p.caption) for p in figures.pictures(run)]

    found = runs(folder)
    results = compare.Results(found[0])
    return {
        "folder": folder,
        "environments": [
            Shown.of_png(figures.small_png(image), text) for text, image in figures.environments().items()
        ],
        "demo": runs(demo),
        "found": found,
        "pictures": pictures,
        "compare": compare,
        "results": results,
        "judged": claims.judged_pairs(results),
        "decided": claims.to_json(claims.check(results)) if any(found) else {},
    }


def page(folder: Path, results: Path) -> str:
    """The whole page; the ledger is long, so it comes last."""
    try:
        learned = experiments(results, folder / DEMO_RESULTS)
    except ModuleNotFoundError as error:
        learned = {"missing_package": str(error), "decided": {}}
    *theory, ledger = COMMANDS
    return render(
        "report.html",
        theory={name: theory_section(name, folder, {}) for name in theory},
        ledger=theory_section(ledger, folder, learned["decided"]),
        claims_table=claims_table,
        claims_style=Markup(HTML_STYLE),
        counts=verdict_counts,
        **{"missing_package": "", **learned},
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
