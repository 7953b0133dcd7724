"""Tables in the paper's form, from results: `python -m experiments.analysis.tables results/racer.json`.

    overview      the main results of all runs, a row for each of the paper's settings
    ablation      clipping against initial weights
    levels        SF and Q relative to SFR, for each level of non-linearity
    totals        return over all tasks: mean, sd, quartiles, IQM with its bootstrap interval
    p_values      all pairs by Mann-Whitney's U, ours above the exact value and the one that the paper prints
    against       the size of the effect against one agent
    pairs         the pairs that the paper prints, one by one
    times         time of a repetition beside the paper's hours
    best_rates    the best combination of a grid, for each agent

A `Sheet` is a table of text. The terminal shows it here; templates turn it into HTML and Markdown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import tyro
from rich.table import Table as RichTable
from rich.text import Text

from experiments.analysis import compare
from experiments.analysis.compare import Agreement, Pair, Place, Results, Versus
from experiments.analysis.formats import number, p_value, plus_minus, printed_p, share
from sfr_fa.runs import load
from sfr_fa.runs.load import AgentRun, Run
from sfr_fa.runs.wording import duration, rates_text
from sfr_theory import cli, paper


@dataclass(frozen=True)
class Column:
    name: str
    is_number: bool
    """Numbers are set to the right, words to the left."""


def words(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, False) for name in names)


def numbers(*names: str) -> tuple[Column, ...]:
    return tuple(Column(name, True) for name in names)


@dataclass(frozen=True)
class Sheet:
    """A table of text; a line break in a cell is one in every form."""

    title: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]
    notes: tuple[str, ...] = ()

    def to_rich(self) -> RichTable:
        table = RichTable(
            title=Text(self.title), title_justify="left", caption=Text("\n".join(self.notes)) or None
        )
        table.caption_justify = "left"
        for column in self.columns:
            table.add_column(Text(column.name), justify="right" if column.is_number else "left")
        for row in self.rows:
            table.add_row(*map(Text, row))
        return table


# --- Total return ------------------------------------------------------------------------------------


def totals(run: Run, setting: str) -> Sheet:
    """What each agent reached; rates that all share are said once."""
    rates = {rates_text(agent.rates) for agent in run.in_setting(setting)}
    several = len(rates) > 1
    rows = []
    for agent in run.in_setting(setting):
        found = compare.standing(run, agent)
        box, iqm = found.total, found.interquartile_mean
        interval = f" [{number(iqm.low)}, {number(iqm.high)}]" if box.repetitions > 1 else ""
        rows.append((
            agent.label, *((rates_text(agent.rates),) if several else ()),
            f"{box.repetitions} of {run.repetitions}", number(box.mean), number(box.standard_deviation),
            number(box.lower_quartile), number(box.median), number(box.upper_quartile),
            number(iqm.estimate) + interval, number(found.per_task.mean),
        ))  # fmt: skip
    return Sheet(
        f"{setting}: return over all tasks",
        (*words("agent", *(("rates",) if several else ())),
         *numbers("repetitions", "mean", "sd", "q1", "median", "q3", "IQM [95 %]", "mean per task")),
        tuple(rows),
        () if several else (f"All at {rates.pop()}.",),
    )  # fmt: skip


def per_task(run: Run | None, setting: str, label: str) -> str:
    """Mean return per task and its standard error over repetitions: 812 ± 6."""
    agent = compare.agent_in(run, setting, label)
    return plus_minus(compare.standing(run, agent).per_task) if run and agent else "-"


OVERVIEW = (
    (compare.LINEAR, "object collection, linear rewards", "SFR"),
    (compare.GENERAL, "object collection, general rewards", "SFR"),
    (compare.BARRETO, "Barreto's task, linear rewards", "SFR"),
    (compare.RACER, "racer (SFR is CSFR)", "CSFR"),
)
"""(where, name, the agent that the paper is about)."""


def overview(results: Results) -> Sheet:
    """A row for each of the paper's settings that was run."""
    rows = []
    for place, title, ours in OVERVIEW:
        run = results.run(place.experiment)
        if run is None or not run.in_setting(place.setting):
            continue
        found = compare.versus(run, place.setting, "SF", ours)
        counts = sorted({len(agent.trials) for agent in run.in_setting(place.setting)})
        rows.append((
            title, " to ".join(map(str, dict.fromkeys((counts[0], counts[-1])))),
            *(per_task(run, place.setting, label) for label in ("Q", "SF", ours, "MB SFR")),
            share(results.ratio(place, "SF", ours)), p_value(found.test.asymptotic_p) if found else "-",
            printed_p(compare.PRINTED[place].printed("SF", ours)),
        ))  # fmt: skip
    columns = (
        *words("tasks"),
        *numbers("n", "Q", "SF", "SFR", "MB SFR", "SF / SFR [95 %]", "p", "p in the paper"),
    )
    notes = (
        "Mean return per task ± standard error over n repetitions; the ratio is of total returns; p is of SF "
        "against SFR by Mann-Whitney's U (two-sided, asymptotic, as in the paper).",
    )
    return Sheet("The main results", columns, tuple(rows), notes)


ABLATION = "ablation"
VARIANTS, INITIAL = ("SF", "SFR", "SFR without clipping"), ("paper", "matched", "zero")


def ablation(run: Run, setting: str) -> Sheet:
    """Return per task of SF and SFR, with and without clipping, from each kind of initial weights."""
    rows = tuple(
        (variant, *(per_task(run, setting, f"{variant}, {weights} weights") for weights in INITIAL))
        for variant in VARIANTS
    )
    return Sheet(
        f"{setting}: clipping and initial weights",
        (*words(""), *numbers("weights as in the paper", "matched", "zero")),
        rows,
        ("Mean return per task ± standard error over repetitions. Matched: both start from the same values; "
         "on linear tasks SF and SFR without clipping are then one algorithm.",),
    )  # fmt: skip


# --- Pairs -------------------------------------------------------------------------------------------

MARKS = {Agreement.AGREES: "✓", Agreement.SIGNIFICANCE: "✗", Agreement.ORDER: "⇄", Agreement.TOO_FEW: "?"}


def p_values(run: Run, setting: str) -> Sheet:
    """All pairs as a triangle; where the paper prints a value it stands below ours."""
    agents = run.in_setting(setting)
    printed = {frozenset((pair.first, pair.second)): pair for pair in compare.pairs(run, setting)}

    def cell(x: AgentRun, y: AgentRun) -> str:
        found = compare.versus(run, setting, x.label, y.label)
        assert found is not None
        lines = [p_value(found.test.asymptotic_p), f"({p_value(found.test.exact_p)})"]
        pair = printed.get(frozenset((x.label, y.label)))
        if pair is not None:
            lines = [f"{MARKS[pair.agreement]} {lines[0]}", lines[1], f"[{printed_p(pair.printed)}]"]
        return "\n".join(lines)

    rows = tuple(
        (x.label, *("" for _ in agents[1 : k + 1]), *(cell(x, y) for y in agents[k + 1 :]))
        for k, x in enumerate(agents[:-1])
    )
    notes = [
        "Two-sided Mann-Whitney U on total returns: asymptotic with continuity correction as the paper "
        "printed, the exact test in round brackets"
        + (", the paper's value in square ones." if printed else ".")
    ]
    if printed:
        notes.append(agreement_sentence(printed.values()))
    columns = (*words(""), *numbers(*(agent.label for agent in agents[1:])))
    return Sheet(f"{setting}: p-values of all pairs", columns, rows, tuple(notes))


def agreement_sentence(pairs: Iterable[Pair], printed: int | None = None) -> str:
    """How many pairs agree, in words; `printed` is the number of printed pairs, if there are more."""
    pairs = tuple(pairs)
    printed = printed or len(pairs)
    kinds = {kind: [p for p in pairs if p.agreement is kind] for kind in Agreement}
    counted = len(pairs) - len(kinds[Agreement.NOT_RUN])
    if not counted:
        return f"None of the {printed} printed pairs was run."
    sentence = (
        f"{len(kinds[Agreement.AGREES])} of {counted} pairs that were run agree with the paper (✓: "
        f"the same side of {paper.SIGNIFICANT:g}, and the same agent ahead where the text says which)"
    )
    if counted < printed:
        sentence += f"; {printed - counted} more are printed"
    several = len({pair.table.name for pair in pairs if pair.versus}) > 1
    for kind in (Agreement.SIGNIFICANCE, Agreement.ORDER):
        if kinds[kind]:
            names = ", ".join(
                f"{p.first} and {p.second}" + (f" ({p.table.name})" if several else "") for p in kinds[kind]
            )
            sentence += f"; {MARKS[kind]} {kind.value}: {names}"
    if kinds[Agreement.TOO_FEW]:
        sentence += (
            f"; ? {len(kinds[Agreement.TOO_FEW])} have so few repetitions that no p-value can be below "
            f"{paper.SIGNIFICANT:g}"
        )
    return sentence + "."


def _tests(found: Versus) -> tuple[str, str]:
    return p_value(found.test.asymptotic_p), p_value(found.test.exact_p)


def _counts(found: Versus) -> str:
    return ", ".join(map(str, found.repetitions))


def pairs(judged: Sequence[tuple[Pair, str]]) -> Sheet:
    """The printed pairs that were run, each with a verdict."""
    rows = tuple(
        (pair.table.name, f"{pair.first}, {pair.second}", printed_p(pair.printed), *_tests(pair.versus),
         pair.ahead or "-", pair.versus.ahead, _counts(pair.versus), verdict)
        for pair, verdict in judged
        if pair.versus is not None
    )  # fmt: skip
    columns = (
        *words("table", "pair"),
        *numbers("p, paper", "p, ours", "p, exact"),
        *words("ahead, paper", "ahead, ours"),
        *numbers("n"),
        *words("verdict"),
    )
    total = sum(len(list(table.cells())) for table in paper.TABLES)
    left = f"{total - len(rows)} of the {total} printed pairs were not run." if len(rows) < total else ""
    return Sheet("The printed p-values, pair by pair", columns, rows, (left,) if left else ())


def against(run: Run, setting: str) -> Sheet:
    """Effects against SFR (or CSFR); no rows if there is nobody to compare."""
    name = compare.reference_agent(run, setting)
    rows = tuple(
        (effect.versus.first, _counts(effect.versus), number(effect.versus.test.difference),
         share(effect.ratio), f"{effect.versus.test.superiority:.2f}",
         f"{effect.versus.test.cliffs_delta:+.2f}", *_tests(effect.versus))
        for effect in compare.effects(run, setting)
    )  # fmt: skip
    return Sheet(
        f"{setting}: each agent against {name}",
        (*words("agent"), *numbers("repetitions", "difference of means", "ratio of means [95 %]",
                                   "P(superior)", "Cliff's delta", "p", "p exact")),
        rows,
        (f"P(superior) is the chance that a repetition of the agent beats one of {name}. The ratio is over "
         f"the repetitions that both have; it is left out where {name}'s return is not positive.",),
    )  # fmt: skip


def levels(run: Run) -> Sheet:
    """SF and Q relative to SFR at each level of non-linearity."""
    rows = tuple(
        (f"{level.error:g}",
         *(number(level.means[label]) if label in level.means else "-" for label in ("SFR", "SF", "Q")),
         *(share(level.ratios[label], digits=3) for label in ("SF", "Q")),
         str(level.ratios["SF"].repetitions))
        for level in compare.levels(run)
    )  # fmt: skip
    names = ("SFR", "SF", "Q", "SF / SFR [95 %]", "Q / SFR [95 %]", "repetitions")
    return Sheet(
        "Total return over the non-linearity of the rewards",
        (*words("error of the best linear model"), *numbers(*names)),
        rows,
        ("Ratios of mean total returns in the repetitions that both agents have.",),
    )


# --- Times and rates ---------------------------------------------------------------------------------


def times(runs: Sequence[Run]) -> Sheet:
    """Time of one repetition, beside the paper's where it is printed and the size is the same."""
    found = [(run, time) for run in runs for time in compare.times(run)]
    rows = tuple(
        (run.name, time.setting or "all levels", time.agent, str(len(time.seconds)), duration(time.median),
         f"{duration(time.seconds.min())} to {duration(time.seconds.max())}",
         "-" if time.hours is None else f"{time.hours:g} h",
         "-" if time.times_faster is None else f"{time.times_faster:,.0f}")
        for run, time in found
    )  # fmt: skip
    notes = ["Learning of features is not counted, and the first repetition may include compilation."]
    tables = [compare.PRINTED.get(Place(run.name, time.setting)) for run, time in found]
    sources = dict.fromkeys(table.hours_source for table in tables if table and table.hours)
    if sources:
        notes.append(
            f"The paper's hours ({'; '.join(sources)}) are of a cluster of Xeon nodes and, as it says, of "
            f"code that was not optimised for speed."
        )
    if any(time.hours is not None and not time.same_size for _, time in found):
        notes.append("Where the paper's runs are of another size no factor is given.")
    columns = (
        *words("experiment", "setting", "agent"),
        *numbers("n", "ours, median", "range", "paper", "times faster"),
    )
    return Sheet("Time of one repetition", columns, rows, tuple(notes))


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
    columns = (
        *words("setting", "agent", "best rates"),
        *numbers("mean total return", "combinations", "second best", "diverged"),
    )
    return Sheet("Best rates of the grid", columns, tuple(rows))


def sheets(run: Run) -> Iterator[Sheet]:
    """Every table that the results of a run suffice for."""
    if not run.agents:
        return
    if run.is_grid:
        yield best_rates(run)
    if compare.level_settings(run):
        yield levels(run)
    for setting in run.settings:
        if not run.in_setting(setting) or setting in compare.level_settings(run):
            continue
        if run.name == ABLATION:
            yield ablation(run, setting)
        yield totals(run, setting)
        if (effects := against(run, setting)).rows:
            yield effects
            if run.name != ABLATION:  # its names are too long for a triangle
                yield p_values(run, setting)
    yield times([run])


# --- Command line ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Options:
    runs: tyro.conf.Positional[tuple[str, ...]] = ("results",)
    """Published tables, folders of runs, or folders that hold some."""


def main(options: Options) -> int:
    console = cli.output_console(None)
    for run in map(load.load, load.named(options.runs)):
        console.print(Text(f"\n{run.title}: {run.size}", style="bold"), soft_wrap=True)
        for remark in run.remarks:
            console.print(f"note: {remark}", soft_wrap=True, markup=False)
        for sheet in sheets(run):
            console.print(sheet.to_rich())
    return 0


if __name__ == "__main__":
    cli.run(main, Options, "experiments.analysis.tables", __doc__ or "")
