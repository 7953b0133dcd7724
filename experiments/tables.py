"""Tables in the paper's form, from results on disk: `python -m experiments.tables results/racer/paper`.

    overview      the main results of all runs, a row for each of the paper's settings
    ablation      clipping against initial weights
    levels        SF and Q relative to SFR, for each level of non-linearity
    totals        return over all tasks: mean, sd, quartiles, IQM with its bootstrap interval
    p_values      all pairs by Mann-Whitney's U, ours above the exact value and the one that the paper prints
    against       the size of the effect against one agent
    times         time of a repetition beside the paper's hours
    best_rates    the best combination of a grid, for each agent

A pair agrees with the paper if both p-values lie on the same side of 0.05 and, where both are significant and
the text says who is ahead, the same agent is ahead. Whether a difference can become significant at all
depends on the number of repetitions; where it cannot, no agreement is stated. Nothing is trained here.
"""

from __future__ import annotations

import enum
import html
import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tyro
from rich.table import Table as RichTable
from rich.text import Text

from experiments.figures import MIDDLES, SEED, level_settings, ratio
from experiments.wording import duration, rates_text
from proofs_checks import p_values as printed_tables
from proofs_checks.p_values import BELOW, DIGITS, SIGNIFICANT, Table
from sfr_fa import statistics
from sfr_fa.runs import load as runs
from sfr_fa.runs.load import AgentRun, Run
from sfr_fa.statistics import Comparison, FloatArray, Interval
from sfr_theory import cli
from sfr_theory.errors import InputError

# --- What the paper prints ---------------------------------------------------------------------------

PRINTED: Mapping[tuple[str, str], Table] = {
    ("object_collection_linear", "linear"): printed_tables.LINEAR,
    ("object_collection_general", "general"): printed_tables.GENERAL,
    ("barreto", "barreto"): printed_tables.BARRETO,
    ("racer", "racer"): printed_tables.RACER,
    ("grid_object_collection", "linear"): printed_tables.LINEAR,
    ("grid_object_collection", "general"): printed_tables.GENERAL,
    ("grid_racer", "racer"): printed_tables.RACER,
}
"""(experiment, setting) -> the printed p-values."""


def _above_all(best: str, table: Table) -> tuple[tuple[str, str], ...]:
    return tuple((best, other) for other in table.agents if other != best)


_LEARNED_REWARDS = (("SFR-R", "SF-R"), ("SFR-R", "Q"))
_LEARNED_FEATURES = (("SF-4", "SFR-R"), ("CSFR-4", "SFR-R"), ("SF-4", "SF-8"))
_GIVEN_OR_REWARDS = ("SF", "SF-R", "SFR-R", "MB SFR", "MB SFR-R")
AHEAD: Mapping[str, tuple[tuple[str, str], ...]] = {
    # Caption of fig:object_collection_env; Results of c:environment_object_collection.
    printed_tables.LINEAR.name: (
        *_above_all("SFR", printed_tables.LINEAR),
        *_LEARNED_REWARDS,
        *_LEARNED_FEATURES,
    ),
    printed_tables.GENERAL.name: (
        *_above_all("SFR", printed_tables.GENERAL),
        *_LEARNED_REWARDS,
        *_LEARNED_FEATURES,
    ),
    # Results of c:appendix_barreto_task_results.
    printed_tables.BARRETO.name: (
        *_above_all("SFR", printed_tables.BARRETO),
        ("SFR-R", "SF-R"),
        *((other, "Q") for other in printed_tables.BARRETO.agents if other not in ("Q", "SFR")),
        *((above, below) for above in _GIVEN_OR_REWARDS for below in ("SF-4", "SF-8", "CSFR-4")),
    ),
    # Results of c:environment_racer.
    printed_tables.RACER.name: (
        *_above_all("CSFR", printed_tables.RACER),
        *(("Q", other) for other in printed_tables.RACER.agents if other not in ("Q", "CSFR")),
    ),
}
"""Table -> (ahead, behind): the pairs of which the text says who is ahead."""


@dataclass(frozen=True)
class PaperHours:
    """Hours of one repetition, as printed under "Computational Resources and Performance"."""

    source: str
    tasks: int
    steps: int
    hours: Mapping[str, float]


HOURS: Mapping[str, PaperHours] = {
    printed_tables.LINEAR.name: PaperHours(
        "successor_feature_representations.tex, line 1505",
        300,
        20_000,
        {"Q": 1, "SF": 4, "SF-R": 4, "SF-4": 4, "SF-8": 4, "SFR": 15, "SFR-R": 42, "CSFR-4": 14,
         "MB SFR": 16, "MB SFR-R": 43},
    ),
    printed_tables.GENERAL.name: PaperHours(
        "successor_feature_representations.tex, line 1506",
        300,
        20_000,
        {"Q": 1, "SF": 5, "SF-R": 4, "SF-4": 4, "SF-8": 5, "SFR": 14, "SFR-R": 68, "CSFR-4": 13,
         "MB SFR": 18, "MB SFR-R": 67},
    ),
    printed_tables.RACER.name: PaperHours(
        "successor_feature_representations.tex, line 1784",
        40,
        200_000,
        {"Q": 9, "SF": 73, "SF-R": 70, "SF-3": 20, "SF-6": 19, "CSFR": 88, "CSFR-R": 80, "CSFR-3": 75},
    ),
}  # fmt: skip
"""Table -> hours; the paper prints none for the environment by Barreto et al."""


# --- A table in three forms --------------------------------------------------------------------------


@dataclass(frozen=True)
class Sheet:
    """A table of text; a line break in a cell is one in every form."""

    title: str
    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def is_text(self, column: int) -> bool:
        """Whether a column holds words, which are set to the left; numbers are set to the right."""
        first = [row[column][:1] for row in self.rows]
        return column == 0 or any(
            character.isalpha() or character in "`*" for character in first if character
        )

    def to_rich(self) -> RichTable:
        table = RichTable(title=self.title, title_justify="left", caption="\n".join(self.notes) or None)
        table.caption_justify = "left"
        for k, name in enumerate(self.header):
            table.add_column(Text(name), justify="left" if self.is_text(k) else "right")
        for row in self.rows:
            table.add_row(*(Text(cell) for cell in row))
        return table

    def to_markdown(self) -> str:
        def line(cells: Iterable[str]) -> str:
            escaped = (c.replace("|", "\\|").replace("<", "&lt;").replace("\n", "<br>") for c in cells)
            return f"| {' | '.join(escaped)} |\n"

        rule = "".join("|---" if self.is_text(k) else "|---:" for k in range(len(self.header))) + "|\n"
        return f"{line(self.header)}{rule}{''.join(map(line, self.rows))}"

    def to_markdown_section(self) -> str:
        """The table below its title, with what there is to say about it."""
        notes = "".join(f"\n{note}\n" for note in self.notes)
        return f"### {self.title}\n\n{self.to_markdown()}{notes}"

    def to_html(self) -> str:
        def cells(row: Iterable[str], tag: str) -> str:
            text = (html.escape(cell).replace("\n", "<br>") for cell in row)
            return "".join(
                f"<{tag}{'' if self.is_text(k) else ' class=number'}>{content}</{tag}>"
                for k, content in enumerate(text)
            )

        head = f"<tr>{cells(self.header, 'th')}</tr>\n"
        body = "".join(f"<tr>{cells(row, 'td')}</tr>\n" for row in self.rows)
        notes = "".join(f"<p class='soft'>{html.escape(note)}</p>\n" for note in self.notes)
        return (
            f"<h4>{html.escape(self.title)}</h4>\n"
            f"<div class='scroll'><table class='sheet'>{head}{body}</table></div>\n{notes}"
        )


def number(value: float) -> str:
    """Four digits, or whole numbers where there are more."""
    if not math.isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def p_text(value: float) -> str:
    """As the paper prints p-values."""
    if math.isnan(value):
        return "-"
    return UNDER if value < 10.0**-DIGITS else f"{value:.{DIGITS}f}"


UNDER = f"<{10.0**-DIGITS:g}"


# --- Total return ------------------------------------------------------------------------------------


def totals(run: Run, setting: str) -> Sheet:
    """What each agent reached; rates that all share are said once."""
    agents = run.in_setting(setting)
    rates = {rates_text(agent.rates) for agent in agents}
    rows = []
    for agent in agents:
        box = statistics.summary(agent.totals)
        iqm = statistics.bootstrap(agent.totals, statistics.interquartile_mean, np.random.default_rng(SEED))
        interval = f" [{number(iqm.low)}, {number(iqm.high)}]" if math.isfinite(iqm.low) else ""
        rows.append((
            agent.label, *((rates_text(agent.rates),) if len(rates) > 1 else ()),
            f"{box.repetitions} of {run.repetitions}", number(box.mean),
            number(box.standard_deviation), number(box.lower_quartile), number(box.median),
            number(box.upper_quartile), number(iqm.estimate) + interval, number(box.mean / run.tasks),
        ))  # fmt: skip
    return Sheet(
        f"{setting}: return over all tasks",
        ("agent", *(("rates",) if len(rates) > 1 else ()), "repetitions", "mean", "sd", "q1", "median", "q3",
         "IQM [95 %]", "mean a task"),
        tuple(rows),
        () if len(rates) > 1 else (f"All at {rates.pop()}.",),
    )  # fmt: skip


def a_task(run: Run, setting: str, label: str) -> str:
    """Mean return a task and its standard error over repetitions: 812 ± 6."""
    agent = run.agents.get((setting, label))
    if agent is None:
        return "-"
    described = statistics.summary(agent.totals / run.tasks)
    error = described.standard_error
    if not math.isfinite(error):
        return number(described.mean)
    digits = 0 if error >= 10 else 1
    return f"{described.mean:,.{digits}f} ± {error:,.{digits}f}"


OVERVIEW = (
    ("object_collection_linear", "linear", "object collection, linear rewards", "SFR"),
    ("object_collection_general", "general", "object collection, general rewards", "SFR"),
    ("barreto", "barreto", "Barreto's task, linear rewards", "SFR"),
    ("racer", "racer", "racer (SFR is CSFR)", "CSFR"),
)
"""(experiment, setting, name, the agent that the paper is about)."""


def overview(runs_found: Iterable[Run]) -> Sheet:
    """A row for each of the paper's settings that was run."""
    by_name = {run.name: run for run in runs_found}
    rows = []
    for experiment, setting, title, ours in OVERVIEW:
        run = by_name.get(experiment)
        if run is None or not run.in_setting(setting):
            continue
        pair = next((p for p in pairs(run, setting) if {p.first, p.second} == {"SF", ours}), None)
        found = pair.comparison if pair else None
        counts = sorted({len(agent.trials) for agent in run.in_setting(setting)})
        rows.append((
            title, " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))),
            *(a_task(run, setting, label) for label in ("Q", "SF", ours, "MB SFR")),
            _share(ratio(run, setting, "SF", ours), digits=2),
            p_text(found.asymptotic_p) if found else "-", pair.printed_text if pair else "-",
        ))  # fmt: skip
    header = ("tasks", "n", "Q", "SF", "SFR", "MB SFR", "SF / SFR [95 %]", "p", "p in the paper")
    notes = (
        "Mean return a task ± standard error over n repetitions; the ratio is of total returns; p is of SF "
        "against SFR by Mann-Whitney's U (two-sided, asymptotic, as in the paper).",
    )
    return Sheet("The main results", header, tuple(rows), notes)


def _share(interval: Interval, digits: int) -> str:
    """0.86 [0.84, 0.88]"""
    if not math.isfinite(interval.estimate):
        return "-"
    text = f"{interval.estimate:.{digits}f}"
    if math.isfinite(interval.low):
        text += f" [{interval.low:.{digits}f}, {interval.high:.{digits}f}]"
    return text


ABLATION = "ablation"
VARIANTS, INITIAL = ("SF", "SFR", "SFR without clipping"), ("paper", "matched", "zero")


def ablation(run: Run, setting: str) -> Sheet:
    """Return a task of SF and SFR, with and without clipping, from each kind of initial weights."""
    rows = tuple(
        (variant, *(a_task(run, setting, f"{variant}, {weights} weights") for weights in INITIAL))
        for variant in VARIANTS
    )
    return Sheet(
        f"{setting}: clipping and initial weights",
        ("", "weights as in the paper", "matched", "zero"),
        rows,
        ("Mean return a task ± standard error over repetitions. Matched: both start from the same values; on "
         "linear tasks SF and SFR without clipping are then one algorithm.",),
    )  # fmt: skip


# --- Pairs -------------------------------------------------------------------------------------------


class Agreement(enum.StrEnum):
    AGREES = "agrees"
    SIGNIFICANCE = "significance differs"
    ORDER = "the other agent is ahead"
    TOO_FEW = "too few repetitions"
    NOT_RUN = "not run"


MARKS = {
    Agreement.AGREES: "✓",
    Agreement.SIGNIFICANCE: "✗",
    Agreement.ORDER: "⇄",
    Agreement.TOO_FEW: "?",
}


@dataclass(frozen=True)
class Pair:
    """Two agents of a printed table, with our test of them."""

    table: str
    first: str
    second: str
    printed: str
    ahead: str
    """Who the text says is ahead; empty if it does not."""
    comparison: Comparison | None
    agreement: Agreement

    @property
    def printed_text(self) -> str:
        return UNDER if self.printed == BELOW else self.printed

    @property
    def ahead_here(self) -> str:
        """Who is ahead in our runs; empty if the pair was not run."""
        if self.comparison is None:
            return ""
        return self.first if self.comparison.superiority > 0.5 else self.second

    def to_json(self) -> dict[str, Any]:
        found = self.comparison
        ours = {} if found is None else {
            "asymptotic_p": found.asymptotic_p, "exact_p": found.exact_p, "superiority": found.superiority,
            "repetitions": [found.first_repetitions, found.second_repetitions],
            "ahead": self.ahead_here,
        }  # fmt: skip
        return {
            "table": self.table, "first": self.first, "second": self.second,
            "printed": self.printed_text,
            "ahead_in_the_paper": self.ahead or None, "ours": ours or None, "agreement": self.agreement.value,
        }  # fmt: skip


def agreement(printed: str, ahead: str, first: str, second: str, found: Comparison) -> Agreement:
    """Whether a test of ours says what the paper says."""
    if statistics.smallest_p_value(found.first_repetitions, found.second_repetitions) >= SIGNIFICANT:
        return Agreement.TOO_FEW
    theirs = printed == BELOW or float(printed) < SIGNIFICANT
    ours = found.asymptotic_p < SIGNIFICANT
    if theirs != ours:
        return Agreement.SIGNIFICANCE
    if ours and ahead and ahead != (first if found.superiority > 0.5 else second):
        return Agreement.ORDER
    return Agreement.AGREES


def pairs(run: Run, setting: str) -> Iterator[Pair]:
    """Every pair of the printed table of a setting; nothing if the paper prints none."""
    table = PRINTED.get((run.name, setting))
    if table is None:
        return
    for first, second, printed in table.cells():
        ahead = next((a for a, b in AHEAD[table.name] if {a, b} == {first, second}), "")
        x, y = run.agents.get((setting, first)), run.agents.get((setting, second))
        if x is None or y is None:
            yield Pair(table.name, first, second, printed, ahead, None, Agreement.NOT_RUN)
            continue
        found = statistics.compare(x.totals, y.totals)
        verdict = agreement(printed, ahead, first, second, found)
        yield Pair(table.name, first, second, printed, ahead, found, verdict)


def p_values(run: Run, setting: str) -> Sheet:
    """All pairs as a triangle; where the paper prints a value it stands below ours."""
    agents = run.in_setting(setting)
    printed = {frozenset((pair.first, pair.second)): pair for pair in pairs(run, setting)}

    def cell(x: AgentRun, y: AgentRun) -> str:
        found = statistics.compare(x.totals, y.totals)
        ours, exact = p_text(found.asymptotic_p), f"({p_text(found.exact_p)})"
        pair = printed.get(frozenset((x.label, y.label)))
        if pair is None:
            return f"{ours}\n{exact}"
        return f"{MARKS[pair.agreement]} {ours}\n{exact}\n[{pair.printed_text}]"

    rows = tuple(
        (x.label, *("" for _ in agents[1 : k + 1]), *(cell(x, y) for y in agents[k + 1 :]))
        for k, x in enumerate(agents[:-1])
    )
    counted = [pair for pair in printed.values() if pair.comparison is not None]
    notes = [
        "Two-sided Mann-Whitney U on total returns: asymptotic with continuity correction as the paper "
        "printed, the exact test in round brackets"
        + (", the paper's value in square ones." if printed else ".")
    ]
    if printed:
        notes.append(agreement_sentence(counted, len(printed)))
    return Sheet(
        f"{setting}: p-values of all pairs", ("", *(a.label for a in agents[1:])), rows, tuple(notes)
    )


def agreement_sentence(counted: Iterable[Pair], printed: int) -> str:
    """How many pairs agree, in words."""
    counted = tuple(counted)
    if not counted:
        return f"None of the {printed} printed pairs was run."
    kinds = {kind: [p for p in counted if p.agreement is kind] for kind in Agreement}
    sentence = (
        f"{len(kinds[Agreement.AGREES])} of {len(counted)} pairs that were run agree with the paper (✓: "
        f"the same side of {SIGNIFICANT:g}, and the same agent ahead where the text says which)"
    )
    if len(counted) < printed:
        sentence += f"; {printed - len(counted)} more are printed"
    several = len({pair.table for pair in counted}) > 1
    for kind, mark in ((Agreement.SIGNIFICANCE, "✗"), (Agreement.ORDER, "⇄")):
        if kinds[kind]:
            names = ", ".join(
                f"{p.first} and {p.second}" + (f" ({p.table})" if several else "") for p in kinds[kind]
            )
            sentence += f"; {mark} {kind.value}: {names}"
    if kinds[Agreement.TOO_FEW]:
        sentence += (
            f"; ? {len(kinds[Agreement.TOO_FEW])} have so few repetitions that no p-value can be below "
            f"{SIGNIFICANT:g}"
        )
    return sentence + "."


def reference_agent(run: Run, setting: str) -> str | None:
    """The agent that the paper is about: SFR, or CSFR where features are continuous."""
    labels = [agent.label for agent in run.in_setting(setting)]
    known = ("SFR", "CSFR", "SFR, paper weights")
    return next((label for label in known if label in labels), labels[0] if labels else None)


def against(run: Run, setting: str) -> Sheet | None:
    """Effects against SFR (or CSFR); nothing if there is nobody to compare."""
    name = reference_agent(run, setting)
    others = [agent for agent in run.in_setting(setting) if agent.label != name]
    if name is None or not others:
        return None
    reference = run.agents[setting, name]
    rows = []
    for agent in others:
        found = statistics.compare(agent.totals, reference.totals)
        share = ratio(run, setting, agent.label, name)
        rows.append((
            agent.label, f"{found.first_repetitions}, {found.second_repetitions}", number(found.difference),
            _share(share, digits=2),
            f"{found.superiority:.2f}", f"{found.cliffs_delta:+.2f}",
            p_text(found.asymptotic_p), p_text(found.exact_p),
        ))  # fmt: skip
    return Sheet(
        f"{setting}: each agent against {name}",
        ("agent", "repetitions", "difference of means", "ratio of means [95 %]", "P(superior)",
         "Cliff's delta", "p", "p exact"),
        tuple(rows),
        (f"P(superior) is the chance that a repetition of the agent beats one of {name}. The ratio is over "
         f"the repetitions that both have; it is left out where {name}'s return is not positive.",),
    )  # fmt: skip


def levels(run: Run) -> Sheet:
    """SF and Q relative to SFR at each level of non-linearity."""
    rows = []
    for middle, setting in zip(MIDDLES, level_settings(run), strict=True):
        shares = [ratio(run, setting, label, "SFR") for label in ("SF", "Q")]
        means = [
            number(float(run.agents[setting, label].totals.mean())) if (setting, label) in run.agents else "-"
            for label in ("SFR", "SF", "Q")
        ]
        texts = [_share(share, digits=3) for share in shares]
        rows.append((f"{middle:g}", *means, *texts, str(shares[0].repetitions)))
    return Sheet(
        "Total return over the non-linearity of the rewards",
        (
            "error of the best linear model",
            "SFR",
            "SF",
            "Q",
            "SF / SFR [95 %]",
            "Q / SFR [95 %]",
            "repetitions",
        ),
        tuple(rows),
        ("Ratios of mean total returns in the repetitions that both agents have.",),
    )


# --- Times and rates ---------------------------------------------------------------------------------


ALL_LEVELS = "all levels"


def _seconds(run: Run, setting: str) -> dict[str, FloatArray]:
    """Agent -> seconds of its repetitions, in one setting or in all."""
    found: dict[str, list[FloatArray]] = {}
    for (place, label), agent in run.agents.items():
        if setting in (place, ALL_LEVELS):
            found.setdefault(label, []).append(agent.seconds)
    return {label: np.concatenate(parts) for label, parts in found.items()}


def times(run: Run) -> Sheet:
    """Time of one repetition, beside the paper's where it is printed and the size is the same."""
    rows, sources, other_size = [], [], False
    for setting in (ALL_LEVELS,) if level_settings(run) else run.settings:
        table = PRINTED.get((run.name, setting))
        paper = HOURS.get(table.name) if table else None
        same_size = paper is not None and (paper.tasks, paper.steps) == (run.tasks, run.steps)
        if paper is not None:
            sources.append(paper.source)
            other_size |= not same_size
        for label, seconds in _seconds(run, setting).items():
            ours = float(np.median(seconds))
            hours = paper.hours.get(label) if paper else None
            faster = f"{3600 * hours / ours:,.0f}" if hours is not None and same_size and ours > 0 else "-"
            rows.append((
                setting, label, str(len(seconds)), duration(ours),
                f"{duration(seconds.min())} to {duration(seconds.max())}",
                f"{hours:g} h" if hours is not None else "-", faster,
            ))  # fmt: skip
    notes = [
        f"Ours: {run.tasks:,} tasks x {run.steps:,} steps; learning of features is not counted, and the "
        "first repetition may include compilation."
    ]
    if sources:
        notes.append(
            f"The paper's hours ({'; '.join(dict.fromkeys(sources))}) are of a cluster of Xeon nodes and, as "
            f"it says, of code that was not optimised for speed."
        )
    if other_size:
        notes.append("The paper's runs are of another size, so no factor is given.")
    header = ("setting", "agent", "repetitions", "ours, median", "range", "paper", "times faster")
    return Sheet("Time of one repetition", header, tuple(rows), tuple(notes))


def best_rates(run: Run) -> Sheet:
    """The winners of a grid; an agent whose combinations are not all finished has none, and no second."""
    rows = []
    for (setting, label), agent in run.agents.items():
        points = [point for point in run.grid if (point.setting, point.agent) == (setting, label)]
        best = next((point for point in points if point.best), None)
        others = sorted(point.mean_total_return for point in points if point is not best)
        rows.append((
            setting, label, rates_text(best.rates) if best else "unfinished: " + rates_text(agent.rates),
            number(best.mean_total_return if best else float(agent.totals.mean())), str(len(points)),
            number(others[-1]) if best and others else "-", str(sum(point.diverged for point in points)),
        ))  # fmt: skip
    header = (
        "setting",
        "agent",
        "best rates",
        "mean total return",
        "combinations",
        "second best",
        "diverged",
    )
    return Sheet("Best rates of the grid", header, tuple(rows))


def sheets(run: Run) -> Iterator[Sheet]:
    """Every table that the results of a run suffice for."""
    if not run.agents:
        return
    if run.is_grid:
        yield best_rates(run)
    if level_settings(run):
        yield levels(run)
    for setting in run.settings:
        if not run.in_setting(setting) or setting in level_settings(run):
            continue
        if run.name == ABLATION:
            yield ablation(run, setting)
        yield totals(run, setting)
        effects = against(run, setting)
        if effects is not None:
            yield effects
        if effects is not None and run.name != ABLATION:  # its names are too long for a triangle
            yield p_values(run, setting)
    yield times(run)


# --- Command line ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    runs: tyro.conf.Positional[tuple[str, ...]] = ("results",)
    """Folders of runs, or folders that hold some."""
    markdown: str | None = None
    """Also write the tables as Markdown to this file."""
    html: str | None = None
    """Also write them as a piece of HTML to this file."""
    json: str | None = None
    """Write every printed pair with our test of it as JSON to this file; - is standard output."""


def main(options: Options) -> int:
    console = cli.output_console(options.json)
    folders = [path for folder in options.runs for path in runs.find(Path(folder))]
    if not folders:
        raise InputError(f"{', '.join(options.runs)} holds no runs; experiments.run makes them")
    markdown, pieces, content = [], [], {}
    for folder in folders:
        run = runs.load(folder)
        title = f"{run.config['title']}, profile {run.profile}: {run.size}"
        remarks = (*run.problems, *run.notes, *filter(None, (run.not_run,)))
        console.print(f"\n[bold]{title}[/]", soft_wrap=True)
        for remark in remarks:
            console.print(f"note: {remark}", soft_wrap=True, markup=False)
        found = list(sheets(run))
        for sheet in found:
            console.print(sheet.to_rich())
        remark_lines = "".join(f"- {remark}\n" for remark in remarks)
        markdown.append("\n".join([f"## {title}\n", remark_lines, *(s.to_markdown_section() for s in found)]))
        pieces.append(f"<h3>{html.escape(title)}</h3>\n" + "".join(sheet.to_html() for sheet in found))
        content[str(folder)] = [pair.to_json() for name in run.settings for pair in pairs(run, name)]
    if options.markdown:
        cli.write_atomic(Path(options.markdown), "\n".join(markdown).encode())
    if options.html:
        cli.write_atomic(Path(options.html), "".join(pieces).encode())
    if options.json:
        cli.write_json(content, options.json)
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.tables", __doc__ or "")
