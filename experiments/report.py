"""One page of everything that was found out: `python -m experiments.report`.

Reads the JSON files and pictures that the checks wrote into one folder (with the results of the demo's
experiment and the live part) and the results of experiments in another, and writes one self-contained HTML
page: what SFR is, three findings, xi to try, experiments, theory, every claim. Nothing is proved or trained
here: what is missing from the folders is missing from the page, and the page says so. It also says what is
wrong with a file of results: a checksum that does not match, a repetition that is lost, an agent under
another's name. The page needs no network and reads without scripts.
"""

from __future__ import annotations

import base64
import contextlib
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jinja2
import numpy as np
from markupsafe import Markup

from experiments.analysis import claims, compare, figures
from experiments.render import render
from sfr_fa.analysis import svg
from sfr_fa.report import Shown, in_page
from sfr_fa.runs import load
from sfr_fa.runs.load import Run
from sfr_theory import cli
from sfr_theory.catalogue import CATALOGUE, SECTIONS
from sfr_theory.claims import ERRORS, HTML_STYLE, Verdict, claims_html, errors, verdict_counts
from sfr_theory.errors import InputError
from sfr_theory.mdp import FiniteMDP
from sfr_theory.operators import q_from_xi
from sfr_theory.reading import read_bytes, read_json, read_text
from sfr_theory.solve import policy_xi

DEMO_RESULTS = "demo"
"""Folder of the demo's experiment within the data."""
LIVE = "live.html"
"""The live part within the data, as `python -m experiments.live --fragment` writes it."""
LEDGER = "python -m proofs_checks"
FIRST = (
    "object_collection_linear", "object_collection_general", "nonlinearity", "barreto", "racer", "ablation",
)  # fmt: skip
"""Experiments in the order of the paper; others follow."""


@dataclass(frozen=True)
class Options:
    data: str = "report/data"
    """Folder with what the checks wrote: gpi_bound.json, convergence.json, tightness.json, ledger.json and
    pictures of the same names; live.html; `demo` in it holds the demo's experiment. `make demo` fills it."""
    output: str = "report/index.html"
    """The page."""
    results: str = "results"
    """Folder with published tables and runs; it need not exist."""


IN_WORLDS = ("linear: SF / SFR", "general: SF / SFR")
"""Statements whose worlds the first screen counts."""
COMMANDS = {
    "gpi_bound": "python -m sfr_theory.check_gpi_bound",
    "tightness": "python -m sfr_theory.check_tightness",
    "convergence": "python -m sfr_theory.check_convergence",
}
"""Part of the page about theory, by the name of its file -> what writes that."""
CAPTIONS = {
    "gpi_bound": "Left side over right side of each bound; a dot is a problem, a cross right of the line "
    "violates it.",
    "tightness": "How close left and right side come: lines are what T2' allows, marks what was found, over "
    "gamma.",
    "convergence": "Learning xi: its value converges at the rate of Q-learning, xi itself may swing for "
    "ever.",
}


# --- What SFR is -----------------------------------------------------------------------------------------

CORRIDOR = ("", "box", "", "triangle", "", "", "goal")
THINGS = ("box", "triangle", "goal")
IDEAS = {"take everything": (1, 1, 1), "boxes, no triangles": (1, -1, 1), "straight home": (-1, -1, 1)}


def idea(gamma: float = 0.9) -> dict[str, Any]:
    """Exact xi of the policy that walks along a corridor, and its values under three rewards."""
    length, end = len(CORRIDOR), len(CORRIDOR) - 1
    kernel = np.zeros((length, 1, length, 1 + len(THINGS)))  # the first feature: nothing was met
    for state in range(length):
        after = min(state + 1, end)
        thing = CORRIDOR[after] if state < end else ""
        kernel[state, 0, after, 1 + THINGS.index(thing) if thing else 0] = 1
    xi = policy_xi(FiniteMDP(kernel, gamma=gamma), np.zeros(length, dtype=int))
    rewards = [
        (name, dict(zip(THINGS, values, strict=True)), float(q_from_xi(xi, np.array([0.0, *values]))[0, 0]))
        for name, values in IDEAS.items()
    ]
    met = {thing: float(xi[0, 0, 1 + k]) for k, thing in enumerate(THINGS)}
    return {"cells": CORRIDOR, "gamma": gamma, "xi": met, "rewards": rewards}


# --- Theory ------------------------------------------------------------------------------------------


def read(path: Path) -> dict[str, Any] | None:
    """A JSON file; None if it is not there."""
    if not path.exists():
        return None
    try:
        content = read_json(path)
    except InputError as error:
        raise InputError(f"{error}; run `make demo` to make it anew") from None
    if not isinstance(content, dict):
        raise InputError(f"{path} does not hold results; run `make demo` to make it anew")
    return content


def claims_table(sections: Mapping[str, Mapping[str, Mapping[str, Any]]], is_home: bool = True) -> Markup:
    return Markup(claims_html(sections, is_home))


def counted(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """58 PROVED, 10 SUPPORTED, ..."""
    counts = Counter(Verdict(entry["verdict"]) for entry in entries.values())
    return ", ".join(f"{counts[verdict]} {verdict.value}" for verdict in Verdict if counts[verdict])


@contextlib.contextmanager
def what_it_writes(path: Path, command: str) -> Iterator[None]:
    """Around what reads a file that another program wrote, which may hold anything."""
    try:
        yield
    except (KeyError, TypeError, ValueError, AttributeError, jinja2.UndefinedError) as error:
        raise InputError(
            f"{path} is not what `{command} --json` writes ({type(error).__name__}: {error}); "
            f"run it again, or `make demo`"
        ) from None


def rendered(path: Path, command: str, template: str, **content: Any) -> Markup:
    """A template over what another program wrote."""
    with what_it_writes(path, command):
        return Markup(render(template, command=command, claims_table=claims_table, **content))


def theory_section(name: str, folder: Path) -> Markup:
    """What a check wrote, with its picture."""
    path, drawing = folder / f"{name}.json", folder / f"{name}.svg"
    drawn = None
    if drawing.exists():
        content = svg.compact(read_bytes(drawing))
        caption = CAPTIONS[name]
        drawn = Shown(svg.inline(content, name, caption), caption, is_wide=svg.is_wide(content))
    return rendered(
        path, COMMANDS[name], "section.html", name=name, content=read(path), drawn=drawn, catalogue=CATALOGUE
    )


def ledger(folder: Path, decided: Mapping[str, Mapping[str, Any]]) -> Markup:
    """Every claim; `decided` are verdicts on results, in place of NOT CHECKED."""
    path = folder / "ledger.json"
    content = read(path)
    with what_it_writes(path, LEDGER):
        claims = {**(content["claims"] if content is not None else {}), **decided}
        sections = {s.title: {c.id: claims[c.id] for c in s.claims if c.id in claims} for s in SECTIONS}
        found = {
            "claims": claims,
            "sections": {title: chosen for title, chosen in sections.items() if chosen},
            "counts": verdict_counts(claims),
            "errors": errors(claims),
        }
    return rendered(path, LEDGER, "ledger.html", is_complete=content is not None, titles=ERRORS, **found)


# --- Experiments -------------------------------------------------------------------------------------


def runs_in(folder: Path) -> tuple[list[Run], list[str]]:
    return load.load_all(folder) if folder.is_dir() else ([], [])


def experiments(folder: Path, demo: Path) -> dict[str, Any]:
    """The environments, the demo's experiment, and every run below a folder of results."""
    runs, unreadable = runs_in(folder)
    found = (sorted(runs, key=lambda run: (*FIRST, run.name).index(run.name)), unreadable)
    results = compare.Results(found[0])
    ablation = results.run("ablation")
    return {
        "folder": folder,
        "environments": [
            (f"data:image/png;base64,{base64.b64encode(figures.small_png(image)).decode()}", caption)
            for caption, image in figures.environments().items()
        ],
        "demo": runs_in(demo),
        "found": found,
        "pictures": in_page(figures.pictures),
        "compare": compare,
        "results": results,
        "overview": [row for row in compare.overview(results) if row.ratio.repetitions],
        "worlds": [
            s for s in compare.specifications(results.by_name.values()) if s.statement.name in IN_WORLDS
        ],
        "ablation": compare.whole_ablation(ablation, "linear") if ablation else None,
        "judged": claims.judged_pairs(results),
        "decided": claims.to_json(claims.check(results)) if any(found) else {},
    }


def statement(folder: Path, name: str) -> Mapping[str, Any] | None:
    """What the check of the GPI bound found about a statement."""
    found = (read(folder / "gpi_bound.json") or {}).get("statements", {})
    return found.get(name) if isinstance(found, dict) else None


def live(folder: Path) -> Markup:
    """The live part; it is ours and brings its own style and script."""
    path = folder / LIVE
    if path.is_file():
        return Markup(read_text(path))
    command = f"python -m experiments.live --output {path} --fragment"
    return Markup(render("live.html", command=command))


def page(folder: Path, results: Path) -> str:
    """The whole page; the ledger is long, so it comes last."""
    learned = experiments(results, folder / DEMO_RESULTS)
    return render(
        "report.html",
        idea=idea(),
        printed=statement(folder, "thm2/printed-value-norm"),
        sharp=statement(folder, "thm2/sharp"),
        live=live(folder),
        theory={name: theory_section(name, folder) for name in COMMANDS},
        ledger=ledger(folder, learned["decided"]),
        claims_style=Markup(HTML_STYLE),
        counts=counted,
        **learned,
    )


def main(options: Options) -> int:
    cli.require_writable(options.output)
    folder = Path(options.data)
    if not folder.is_dir() and options.data != Options.data:
        raise InputError(f"there is no folder {folder}; `make demo` fills one, --data names another")
    text = page(folder, Path(options.results)).encode()
    cli.write_atomic(Path(options.output), text)
    print(f"wrote {options.output}, {len(text) / 1000:,.0f} kB")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.report", __doc__ or "")
