"""One page of everything that was found out: `python -m experiments.report`.

Reads the JSON files and pictures that the checks wrote into one folder and the results of experiments in
another, and writes one self-contained HTML page (pictures inline, no scripts). Nothing is proved or trained
here: what is missing in the folders is missing on the page, and the page says so. It also says what is wrong
with a file of results: a checksum that does not match, a repetition that is lost, an agent under another's
name.
"""

from __future__ import annotations

import base64
import html
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sfr_theory import cli
from sfr_theory.catalogue import SECTIONS
from sfr_theory.claims import HTML_STYLE, claims_html, verdict_html
from sfr_theory.errors import InputError

if TYPE_CHECKING:
    from experiments.runs import Run

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
table { border-collapse: collapse; width: 100%; font-size: .86rem; }
th, td { padding: .35rem .55rem; border-bottom: 1px solid var(--line); text-align: left; vertical-align: top; }
th { border-bottom: 2px solid var(--line); white-space: nowrap; } .number { text-align: right; }
.sheet td:first-child { white-space: nowrap; } td.number { font-variant-numeric: tabular-nums; white-space: nowrap; }
code, pre { font-size: .84em; } code { overflow-wrap: anywhere; }
pre { background: var(--panel); padding: .7rem; overflow-x: auto; border-radius: .3rem; }
figure { margin: 1rem 0; } figure img { max-width: 100%; height: auto; } figcaption { color: var(--soft); font-size: .86rem; }
nav { display: flex; flex-wrap: wrap; gap: .2rem 1.2rem; } a { color: #0b57a4; }
@media print { body { max-width: none; font-size: 11pt; } h2 { break-after: avoid; } figure, tr { break-inside: avoid; } nav { display: none; } }
"""  # noqa: E501


@dataclass(frozen=True)
class Options:
    data: str = "report/data"
    """Folder with what the checks wrote: gpi_bound.json, convergence.json, tightness.json, ledger.json and
    pictures of the same names. `make demo` fills it."""
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

    def render(self, content: Mapping[str, Any] | None, folder: Path) -> str:
        head = f"<h2 id='{self.name}'>{html.escape(self.title)}</h2>\n<p>{self.introduction}</p>\n"
        made_by = f"<p class='soft'>Made by <code>{html.escape(self.command)}</code>.</p>\n"
        if content is None:
            return (
                head + f"<p class='soft'>No results yet; run <code>{html.escape(self.command)}</code>.</p>\n"
            )
        body = "".join(BODIES[self.name](content))
        path = folder / f"{self.name}.svg"
        drawing = picture(path.read_bytes(), self.title) if path.exists() else ""
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


def picture(svg: bytes, caption: str) -> str:
    """A picture inside the page."""
    data = base64.b64encode(svg).decode()
    return (
        f"<figure><img alt='{html.escape(caption)}' src='data:image/svg+xml;base64,{data}'>"
        f"<figcaption>{html.escape(caption)}</figcaption></figure>\n"
    )


def table(header: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table of ready-made cells; a cell that starts with a digit or a sign is set as a number."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in header)

    def cell(content: str) -> str:
        kind = " class='number'" if content[:1].isdigit() or content[:1] in "∞-" else ""
        return content if content.startswith("<td") else f"<td{kind}>{content}</td>"

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
    """The whole ledger in the paper's order."""
    counts = ", ".join(f"{count} {html.escape(verdict)}" for verdict, count in content["verdicts"].items())
    yield f"<p>{len(content['claims'])} claims: {counts}.</p>\n"
    for section in SECTIONS:
        chosen = {
            claim.id: content["claims"][claim.id] for claim in section.claims if claim.id in content["claims"]
        }
        if chosen:
            yield f"<h3>{html.escape(section.title)}</h3>\n"
            yield from claims({"claims": chosen})


BODIES = {"gpi_bound": gpi_bound, "convergence": claims, "tightness": claims, "ledger": ledger}

PAGE = (
    Section(
        "gpi_bound",
        "What GPI guarantees",
        "Each statement was evaluated on generated transfer problems, some of them adversarial: errors of "
        "the approximations hide where the source reward does not see them. A ratio above 1 violates a "
        "bound.",
        "python -m sfr_theory.check_gpi_bound",
    ),
    Section(
        "tightness",
        "How tight the bound is",
        "The sharp constants are attained by explicit problems; the printed constant never is.",
        "python -m sfr_theory.check_tightness",
    ),
    Section(
        "convergence",
        "What SFRQ-learning converges to",
        "The value of xi follows Q-learning path by path, so its class converges; xi itself need not.",
        "python -m sfr_theory.check_convergence",
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
    verdicts: Mapping[str, Mapping[str, Any]]


def experiments(folder: Path) -> Experiments:
    """Every run below a folder: where it comes from, what is wrong with it, figures, tables, verdicts."""
    head = "<h2 id='experiments'>Experiments</h2>\n"
    made_by = "<p class='soft'>Made by <code>python -m experiments.report</code> from the files of "
    made_by += f"<code>{html.escape(str(folder))}</code>; nothing was trained for it.</p>\n"
    if not folder.is_dir():
        missing = f"There is no folder <code>{html.escape(str(folder))}</code>; "
        return Experiments(f"{head}<p class='soft'>{missing}<code>{RUN_COMMAND}</code> makes one.</p>\n", {})
    try:
        # The theory's part of the page needs neither of these packages.
        from experiments import empirical_claims, runs
    except ModuleNotFoundError as error:
        sentence = f"{error}; the results in {folder} need more packages: pip install 'sfr[fa]'"
        return Experiments(f"{head}<p class='soft'>{html.escape(sentence)}</p>\n", {})
    found, unreadable = runs.load_all(folder)
    if not found and not unreadable:
        empty = f"<p class='soft'>{html.escape(str(folder))} holds no runs; "
        return Experiments(f"{head}{empty}<code>{RUN_COMMAND}</code> makes one.</p>\n", {})
    outcomes = empirical_claims.check(found)
    verdicts = empirical_claims.to_json(outcomes)
    parts = [head, made_by, warning("Runs that cannot be read", unreadable)]
    parts.append("<h3>The paper's empirical claims</h3>\n")
    parts.append(
        "<p>Only runs of the paper's size can reproduce its claims or fail to; smaller ones say which way "
        "they point.</p>\n"
    )
    parts.extend(claims({"claims": verdicts}))
    parts.extend(run_section(run) for run in found)
    return Experiments("".join(parts), verdicts)


def run_section(run: Run) -> str:
    """One run."""
    from experiments import figures, tables

    title = f"{run.config['title']}, profile {run.profile}"
    provenance = run.manifest["provenance"]
    packages = ", ".join(f"{name} {version}" for name, version in provenance.get("packages", {}).items())
    facts = (
        ("size", run.size),
        ("seed", str(run.config["seed"])),
        ("engine", str(run.config["engine"])),
        ("commit", provenance.get("commit") or "unknown"),
        ("started on", f"{provenance.get('platform')}, Python {provenance.get('python')}, {packages}"),
        ("files", str(run.path)),
    )  # fmt: skip
    listed = "".join(f"<li>{name}: <code>{html.escape(value)}</code></li>" for name, value in facts)
    parts = [f"<h3>{html.escape(title)}</h3>\n<ul class='soft'>{listed}</ul>\n"]
    parts.append(warning("These files contradict themselves or their manifest", run.problems))
    parts.append(warning("What is missing or left out", run.notes, kind="warning note"))
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
    merged = {name: verdicts.get(name, entry) for name, entry in content["claims"].items()}
    counts = Counter(entry["verdict"] for entry in merged.values())
    return {**content, "claims": merged, "verdicts": dict(counts)}


def render(folder: Path, results: Path) -> str:
    """The whole page."""
    contents: dict[str, Mapping[str, Any] | None] = {
        section.name: read(folder / f"{section.name}.json") for section in PAGE
    }
    learned = experiments(results)
    ledger_content = contents["ledger"]
    if ledger_content is not None:
        contents["ledger"] = with_verdicts(ledger_content, learned.verdicts)
    links = "".join(f"<a href='#{section.name}'>{html.escape(section.title)}</a>" for section in PAGE)
    sections = "".join(section.render(contents[section.name], folder) for section in PAGE)
    return (
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'>"
        "<meta name='viewport' content='width=device-width, initial-scale=1'>"
        "<title>Successor Feature Representations, checked</title>"
        f"<style>{STYLE}{HTML_STYLE}</style></head>\n<body>\n"
        "<h1>Successor Feature Representations, checked</h1>\n"
        "<p>What is true of the paper by Reinke and Alameda-Pineda (TMLR 2023): statements checked on finite "
        "MDPs, proofs, counterexamples, corrected theorems, and its experiments run again.</p>\n"
        f"<nav>{links}<a href='#experiments'>Experiments</a></nav>\n"
        f"{sections}{learned.page}</body></html>\n"
    )


def main(options: Options) -> int:
    folder = Path(options.data)
    if not folder.is_dir():
        raise InputError(f"there is no folder {folder}; `make demo` fills one, --data names another")
    cli.write_atomic(Path(options.output), render(folder, Path(options.results)).encode())
    print(f"wrote {options.output}")
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.report", __doc__ or "")
