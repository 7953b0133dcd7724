"""One page of everything that was found out: `python -m experiments.report`.

Reads the JSON files and pictures that the checks wrote into one folder (with the results of the demo's
experiment) and the results of experiments in another, and writes one self-contained HTML page (pictures
inline, no scripts). Nothing is proved or trained here: what is missing in the folders is missing on the page,
and the page says so. It also says what is wrong with a file of results: a checksum that does not match, a
repetition that is lost, an agent under another's name.
"""

from __future__ import annotations

import base64
import html
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from experiments import svg
from sfr_theory import cli
from sfr_theory.catalogue import EXPERIMENTS, SECTIONS
from sfr_theory.claims import HTML_STYLE, Verdict, claims_html, head, verdict_html
from sfr_theory.errors import InputError

if TYPE_CHECKING:
    from sfr_fa.runs.load import Run

STYLE = """
:root { --ink: #1d2530; --soft: #5b6675; --line: #d9dee5; --panel: #f6f8fa; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 68rem; padding: 1.2rem; color: var(--ink); background: #fff;
       font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, sans-serif; }
h1 { font-size: 1.7rem; line-height: 1.2; margin: .4rem 0; }
h2 { font-size: 1.3rem; margin: 2.4rem 0 .5rem; border-bottom: 2px solid var(--ink); padding-bottom: .2rem; }
h3 { font-size: 1.1rem; margin: 1.8rem 0 .4rem; } h4 { font-size: .95rem; margin: 1.2rem 0 .3rem; }
.warning { border-left: 4px solid #b00020; background: #fdf1f2; padding: .5rem .8rem; margin: .8rem 0;
           overflow-wrap: anywhere; } .warning ul { margin: .2rem 0; padding-left: 1.2rem; }
.note { border-left-color: #8a5a00; background: #fdf8ee; }
p, li { max-width: 46rem; } .soft { color: var(--soft); }
.scroll { overflow-x: auto; margin: .6rem 0; }
table { border-collapse: collapse; width: 100%; font-size: .86rem; } table.sheet { width: auto; }
th, td { padding: .35rem .55rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { border-bottom: 2px solid var(--line); white-space: nowrap; } .number { text-align: right; }
.sheet td { white-space: nowrap; } .sheet td, .sheet th { padding: .3rem .42rem; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
.claims td:first-child { width: 30%; }
code, pre { font-size: .84em; } code { overflow-wrap: anywhere; } table:not(.claims) td code { white-space: nowrap; }
pre { background: var(--panel); padding: .7rem; overflow-x: auto; border-radius: .3rem; }
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; vertical-align: top; } figcaption { color: var(--soft); font-size: .86rem; }
.row { display: flex; flex-wrap: wrap; gap: 1rem; } .row figure { flex: 1 1 14rem; max-width: 22rem; margin: .4rem 0; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; } a { color: #0b57a4; }
@media screen and (max-width: 40rem) { .scroll img.wide { max-width: none; width: 60rem; } }
@media print { body { max-width: none; padding: 0; font-size: 10pt; } h2, h3, h4 { break-after: avoid; } figure, tr { break-inside: avoid; } nav { display: none; }
  .scroll { overflow: visible; } table, table.claims { font-size: 7pt; } th, td, table.claims th, table.claims td { padding: .12rem .28rem; } th { white-space: normal; }
  figure img { max-height: 11cm; } .row figure { flex: 1 1 5cm; max-width: 6cm; } }
"""  # noqa: E501


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
    """Folder with the results of experiments.run; it need not exist."""


@dataclass(frozen=True)
class Section:
    """A part of the page: its anchor and title, the file it is made from, and how it is rendered."""

    name: str
    title: str
    introduction: str
    command: str
    caption: str = ""
    """Of its picture."""

    def render(self, content: Mapping[str, Any] | None, folder: Path) -> str:
        head = f"<h2 id='{self.name}'>{html.escape(self.title)}</h2>\n<p>{self.introduction}</p>\n"
        made_by = f"<p class='soft'>Made by <code>{html.escape(self.command)}</code>.</p>\n"
        if content is None:
            return (
                head + f"<p class='soft'>No results yet; run <code>{html.escape(self.command)}</code>.</p>\n"
            )
        try:
            body = "".join(BODIES[self.name](content))
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            # Whatever another program wrote there: it is not what the command writes.
            path = folder / f"{self.name}.json"
            raise InputError(
                f"{path} is not what `{self.command} --json` writes ({type(error).__name__}: {error}); "
                f"run it again, or `make demo`"
            ) from None
        path = folder / f"{self.name}.svg"
        drawing = picture(svg.compact(path.read_bytes()), self.caption) if path.exists() else ""
        return head + body + drawing + made_by


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


def picture(drawing: bytes, caption: str) -> str:
    """An SVG inside the page; on a phone a wide one scrolls, rather than shrink until nothing can be read."""
    wide = " class='wide'" if svg.width(drawing) > 700 else ""
    text = html.escape(caption)
    return (
        f"<figure><div class='scroll'><img{wide} alt='{text}' src='{svg.data_uri(drawing)}'></div>"
        f"<figcaption>{text}</figcaption></figure>\n"
    )


def table(header: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of ready-made cells; a cell that starts with a digit or a sign is set as a number."""
    rows = [tuple(row) for row in rows]

    def kind(content: str) -> str:
        return " class='number'" if content[:1].isdigit() or content[:1] in "∞-" else ""

    def cell(content: str) -> str:
        return content if content.startswith("<td") else f"<td{kind(content)}>{content}</td>"

    below = rows[0] if rows else [" "] * len(header)
    head = "".join(f"<th{kind(c)}>{html.escape(name)}</th>" for name, c in zip(header, below, strict=True))
    body = "".join(f"<tr>{''.join(map(cell, row))}</tr>\n" for row in rows)
    return f"<div class='scroll'><table><tr>{head}</tr>\n{body}</table></div>\n"


def gpi_bound(content: Mapping[str, Any]) -> Iterator[str]:
    """Statements with margins, and the counterexamples in fractions."""
    statements = content["statements"]
    rows = (
        (
            f"<code>{html.escape(name)}</code>",
            f"{entry['instances']:,}",
            f"{entry['violations']:,}",
            "∞" if entry["worst_ratio"] is None else f"{entry['worst_ratio']:.3g}",
            verdict_html(entry["verdict"], entry["as_expected"]),
        )
        for name, entry in statements.items()
    )
    yield table(("statement", "problems", "violations", "worst left/right", "verdict"), rows)
    for name, entry in statements.items():
        if entry["counterexample"] is not None:
            yield f"<h3>The smallest counterexample to <code>{html.escape(name)}</code> that was found</h3>\n"
            yield f"<pre>{html.escape(compact(entry['counterexample']))}</pre>\n"


def compact(problem: Mapping[str, Any]) -> str:
    """A small transfer problem, a line for each part."""
    lines = [f"gamma {problem['gamma']}, target R = ({', '.join(problem['target'])})"]
    for outcome in problem["transitions"]:
        lines.append(
            f"state {outcome['state']}, action {outcome['action']} -> state {outcome['next_state']}, "
            f"feature {outcome['feature']}, probability {outcome['probability']}"
        )
    for i, reward in enumerate(problem["sources"]):
        lines.append(f"source {i + 1}: R = ({', '.join(reward)})")
        for s, actions in enumerate(problem["approximations"][i]):
            for a, xi in enumerate(actions):
                lines.append(f"           xi~(state {s}, action {a}) = ({', '.join(xi)})")
    return "\n".join(lines)


def claims(content: Mapping[str, Any]) -> Iterator[str]:
    """Claims with verdict and evidence."""
    yield f"<div class='scroll'>{claims_html(content['claims'])}</div>\n"


def ledger(content: Mapping[str, Any]) -> Iterator[str]:
    """The whole ledger in the paper's order; what experiments decide stands with them."""
    lines = "".join(f"<li>{html.escape(line)}</li>" for line in head(content["claims"]))
    yield f"<ul>{lines}</ul>\n"
    for section in SECTIONS:
        chosen = {
            claim.id: content["claims"][claim.id] for claim in section.claims if claim.id in content["claims"]
        }
        if chosen:
            yield f"<h3>{html.escape(section.title)}</h3>\n"
        if chosen and section is EXPERIMENTS:
            counted = verdict_counts(chosen)
            yield f"<p>{counted}: <a href='#experiments'>see the experiments</a>.</p>\n"
        elif chosen:
            yield from claims({"claims": chosen})


def verdict_counts(entries: Mapping[str, Mapping[str, Any]]) -> str:
    """58 PROVED, 10 SUPPORTED, ..."""
    counts = Counter(entry["verdict"] for entry in entries.values())
    order = [verdict.value for verdict in Verdict]
    return ", ".join(f"{counts[name]} {html.escape(name)}" for name in sorted(counts, key=order.index))


BODIES = {"gpi_bound": gpi_bound, "convergence": claims, "tightness": claims, "ledger": ledger}

PAGE = (
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
    Section(
        "ledger",
        "Every claim of the paper",
        "Each verdict was computed in the run that made this page; beside each proof a broken variant had "
        "to be rejected.",
        "python -m proofs_checks",
    ),
)


# --- Results of experiments --------------------------------------------------------------------------

RUN_COMMAND = "python -m experiments.run object_collection_general --profile reduced"


@dataclass(frozen=True)
class Experiments:
    """The part of the page about experiments, and the verdicts that belong into the ledger."""

    page: str
    verdicts: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def experiments(folder: Path, demo: Path) -> Experiments:
    """The environments, the demo's experiment, and every run below a folder of results."""
    head = "<h2 id='experiments'>Experiments</h2>\n"
    try:
        # The theory's part of the page needs neither of these packages.
        from experiments import figures
    except ModuleNotFoundError as error:
        sentence = f"{error}; experiments need more packages: pip install '.[fa]'"
        return Experiments(f"{head}<p class='soft'>{html.escape(sentence)}</p>\n")
    drawn = "".join(
        f"<figure><img alt='{html.escape(p.caption)}' src='data:image/png;base64,"
        f"{base64.b64encode(figures.small_png(p.image)).decode()}'>"
        f"<figcaption>{html.escape(p.caption)}</figcaption></figure>\n"
        for p in figures.environments()
    )
    results = all_runs(folder)
    page = f"{head}<div class='row'>{drawn}</div>\n{demo_section(demo)}{results.page}"
    return Experiments(page, results.verdicts)


def demo_section(folder: Path) -> str:
    """What `make demo` has just run; nothing if it has not."""
    from sfr_fa.runs import load as runs

    found, unreadable = runs.load_all(folder) if folder.is_dir() else ([], [])
    if not found and not unreadable:
        return ""
    introduction = (
        "<p>A handful of tasks with general rewards, one after the other: Q-learning starts each afresh, SF "
        "transfers through a linear model of the reward, SFR through the reward itself. Too small for any "
        "claim of the paper.</p>\n"
    )
    parts = ["<h3 id='demo'>What this demo has run</h3>\n", introduction]
    parts += [warning("Runs that cannot be read", unreadable), *map(run_section, found)]
    return "".join(parts)


def all_runs(folder: Path) -> Experiments:
    """Every run below a folder: the claims that they decide, then each with its figures and tables."""
    from experiments import empirical_claims, tables
    from sfr_fa.runs import load as runs

    shown = html.escape(str(folder))
    found, unreadable = runs.load_all(folder) if folder.is_dir() else ([], [])
    if not found and not unreadable:
        missing = (
            f"<code>{shown}</code> holds no runs"
            if folder.is_dir()
            else f"There is no folder <code>{shown}</code>"
        )
        return Experiments(f"<p class='soft'>{missing}; <code>{RUN_COMMAND}</code> makes one.</p>\n")
    made_by = (
        f"<p class='soft'>Made from the files of <code>{shown}</code>; nothing was trained for it.</p>\n"
    )
    verdicts = empirical_claims.to_json(empirical_claims.check(found))
    parts = ["<h3 id='results'>The paper's experiments, run again</h3>\n", made_by]
    parts.append(warning("Runs that cannot be read", unreadable))
    largest = empirical_claims.Results(found)
    main = tables.overview(largest.runs)
    if main.rows:
        parts.append(main.to_html())
    parts.append(f"<h4>The paper's empirical claims: {verdict_counts(verdicts)}</h4>\n")
    parts.append(
        "<p>Only runs of the paper's size can reproduce its claims or fail to; smaller ones say which way "
        "they point.</p>\n"
    )
    parts.extend(claims({"claims": verdicts}))
    pairs = empirical_claims.pair_sheet(largest)
    if pairs.rows:
        parts.append(pairs.to_html())
    parts.extend(run_section(run) for run in found)
    return Experiments("".join(parts), verdicts)


def run_section(run: Run) -> str:
    """One run."""
    from experiments import figures, tables

    title = f"{run.config['title']}, profile {run.profile}"
    provenance = run.provenance
    packages = ", ".join(f"{name} {version}" for name, version in provenance.get("packages", {}).items())
    facts = (
        ("size", run.size),
        ("seed", str(run.config["seed"])),
        ("engine", str(run.config["engine"])),
        ("commit", run.commits),
        ("started on", f"{provenance.get('platform')}, Python {provenance.get('python')}, {packages}"),
        ("files", str(run.path)),
    )  # fmt: skip
    listed = " · ".join(f"{name}: <code>{html.escape(value)}</code>" for name, value in facts)
    parts = [f"<h3>{html.escape(title)}</h3>\n<p class='soft'>{listed}</p>\n"]
    parts.append(warning("These files contradict themselves or their manifest", run.problems))
    parts.append(warning("What is missing or left out", run.notes, kind="warning note"))
    if run.not_run:
        parts.append(f"<p class='soft'>{html.escape(run.not_run)}</p>\n")
    if not run.agents:
        parts.append("<p class='soft'>No trial is finished and usable.</p>\n")
    parts.extend(picture(drawn.encoded("svg"), drawn.caption) for drawn in figures.pictures(run))
    parts.extend(sheet.to_html() for sheet in tables.sheets(run))
    return "".join(parts)


def warning(title: str, sentences: Sequence[str], kind: str = "warning") -> str:
    """A box that cannot be overlooked; nothing if there is nothing to say."""
    if not sentences:
        return ""
    listed = "".join(f"<li>{html.escape(sentence)}</li>" for sentence in sentences)
    return f"<div class='{kind}'><strong>{html.escape(title)}</strong><ul>{listed}</ul></div>\n"


def with_verdicts(content: Mapping[str, Any], verdicts: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Any]:
    """The ledger with the verdicts on results, which are computed here, in place of NOT CHECKED."""
    if not isinstance(content.get("claims"), dict):
        return content  # rendering says what is wrong with it
    return {"claims": {name: verdicts.get(name, entry) for name, entry in content["claims"].items()}}


def render(folder: Path, results: Path) -> str:
    """The whole page; the ledger is long, so it comes last."""
    contents = {section.name: read(folder / f"{section.name}.json") for section in PAGE}
    *theory, ledger_section = PAGE
    parts = [
        (section.name, section.title, section.render(contents[section.name], folder)) for section in theory
    ]
    learned = experiments(results, folder / DEMO_RESULTS)
    parts.append(("experiments", "Experiments", learned.page))
    found = contents[ledger_section.name]
    merged = None if found is None else with_verdicts(found, learned.verdicts)
    parts.append((ledger_section.name, ledger_section.title, ledger_section.render(merged, folder)))
    links = "".join(f"<a href='#{anchor}'>{html.escape(title)}</a>" for anchor, title, _ in parts)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<title>Successor Feature Representations, checked</title>"
        f"<style>{STYLE}{HTML_STYLE}</style></head>\n<body>\n"
        "<h1>Successor Feature Representations, checked</h1>\n"
        "<p>What is true of the paper by Reinke and Alameda-Pineda (TMLR 2023): statements checked on finite "
        "MDPs, proofs, counterexamples, corrected theorems, and its experiments run again.</p>\n"
        f"<nav>{links}</nav>\n{''.join(part for _, _, part in parts)}</body></html>\n"
    )


def main(options: Options) -> int:
    folder = Path(options.data)
    if not folder.is_dir() and options.data != Options.data:
        raise InputError(f"there is no folder {folder}; `make demo` fills one, --data names another")
    cli.write_atomic(Path(options.output), render(folder, Path(options.results)).encode())
    print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.report", __doc__ or "")
