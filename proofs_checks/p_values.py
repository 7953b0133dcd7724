"""Which test can have produced the p-values of the paper's four tables (`sfr_theory.paper`).

Each table compares all pairs of agents by Mann-Whitney's U on the total returns of 10 repetitions against
10 (fig:barreto_env_results_total_reward, fig:results_total_reward). Without ties U is one of 0, ..., 100,
and the p-value is a function of U, so a test can print only finitely many values. With m = n = 10 the two
candidates are

    asymptotic   2 (1 - Phi((|U - 50| - 1/2) / sqrt(m n (m + n + 1) / 12)))      continuity correction 1/2
    exact        2 P(U' <= min(U, 100 - U)) under random ranks, at most 1

A printed value is attainable if some U rounds to it in the three printed digits ("< 0.001": if some U has
p < 0.001). SciPy computes both from samples that realise each U.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from scipy.stats import mannwhitneyu

from proofs_checks.argument import Broken, Proof, Step, broken, proved, refuted
from sfr_theory.arithmetic import Array
from sfr_theory.claims import Method
from sfr_theory.paper import BELOW, DIGITS, REPETITIONS, SIGNIFICANT, TABLES, is_significant


def samples_with_statistic(u: int, first: int, second: int) -> tuple[Array, Array]:
    """Samples without ties whose U is u: point i of the first lies above `above[i]` points of the second."""
    above = [min(second, max(0, u - second * i)) for i in range(first)]
    offsets = np.arange(first) / (2 * first)  # distinct, and within one gap of the second sample
    return np.array(above) - 0.75 + offsets, np.arange(second, dtype=float)


@cache
def attainable(method: str, continuity: bool, first: int = REPETITIONS, second: int = REPETITIONS) -> Array:
    """The p-values that a test can give without ties, one for each U."""
    values = []
    for u in range(first * second + 1):
        samples = samples_with_statistic(u, first, second)
        values.append(mannwhitneyu(*samples, method=method, use_continuity=continuity).pvalue)
    return np.array(values)


def is_attainable(printed: str, values: Array) -> bool:
    """Whether one of the p-values prints like this."""
    if printed == BELOW:
        return bool((values < 10.0**-DIGITS).any())
    return bool((np.round(values, DIGITS) == float(printed)).any())


def _printed_values() -> list[str]:
    return [printed for table in TABLES for _, _, printed in table.cells()]


def unattainable(values: Array) -> list[str]:
    """The printed values, one for each cell, that a test cannot give."""
    return [printed for printed in _printed_values() if not is_attainable(printed, values)]


def _asymptotic_steps(values: Array) -> list[Step]:
    printed = _printed_values()
    missing = unattainable(values)
    numbers = sum(value != BELOW for value in printed)
    different = len({round(float(value), DIGITS) for value in values})
    sentence = (
        f"all {len(printed)} printed values are attainable: {numbers} numbers, {len(printed) - numbers} "
        f'times "< 0.001", where the test gives {different} different numbers of a possible 1001'
    )
    return [
        Step(
            "the tables have 45 + 45 + 45 + 28 pairs",
            [len(list(t.cells())) for t in TABLES] == [45, 45, 45, 28],
        ),
        Step(sentence, not missing, f"not attainable: {', '.join(sorted(set(missing)))}"),
    ]


def _exact_test_facts(method: str = "exact") -> list[Step]:
    """The printed values are not those of the exact test, although n = 10 is small enough for it."""
    missing = unattainable(attainable(method, True))
    numbers = [value for value in _printed_values() if value != BELOW]
    distinct = sorted(set(missing))
    return [
        Step(
            f"{len(missing)} of the {len(numbers)} printed numbers cannot come from the {method} test: "
            f"{', '.join(distinct)}",
            len(missing) > len(numbers) / 2,
        )
    ]


def _conclusion_steps(threshold: float) -> list[Step]:
    """Whether a p-value below the threshold in one test is so in the other, for the same U."""
    approximate, exact = attainable("asymptotic", True), attainable("exact", True)
    printed = [value for value in _printed_values() if value != BELOW]
    matching = [np.round(approximate, DIGITS) == float(value) for value in printed]
    changed = sorted(
        {
            value
            for value, rows in zip(printed, matching, strict=True)
            if ((approximate[rows] < threshold) != (exact[rows] < threshold)).any()
        }
    )
    return [
        Step(
            "every printed number lies on the same side of 0.05 as the exact p-value of its U",
            not changed,
            f"changed: {', '.join(changed)}",
        )
    ]


def _reported_facts(level: float = SIGNIFICANT) -> list[Step]:
    """Some differences that the text reports are not significant in its own tables."""
    found = [
        f"{agent} and {other} in {table.name} (p = {table.printed(agent, other)})"
        for table in TABLES
        for agent, other in table.ahead
        if not is_significant(table.printed(agent, other), level)
    ]
    count = f"{len(found)} of {sum(len(table.ahead) for table in TABLES)}"
    return [Step(f"{count} reported differences have p >= 0.05: {'; '.join(found)}", bool(found))]


PROOFS: tuple[Proof, ...] = (
    proved("stats/asymptotic-test", Method.EXACT, lambda: _asymptotic_steps(attainable("asymptotic", True)),
           "all 101 values of U at 10 against 10 without ties, two-sided, normal approximation, "
           "continuity correction",
           broken("the same without continuity correction",
                  lambda: _asymptotic_steps(attainable("asymptotic", False))),
           broken("9 repetitions against 10", lambda: _asymptotic_steps(attainable("asymptotic", True, 9))),
           Broken("20 repetitions against 20",
                  lambda: not is_attainable("0.970", attainable("asymptotic", True, 20, 20)))),
    refuted("stats/exact-test", _exact_test_facts,
            "all 101 values of U at 10 against 10 without ties; the conclusions at the 5% level are compared "
            "in stats/exact-test-conclusions",
            broken("nor by the asymptotic one", lambda: _exact_test_facts("asymptotic"))),
    proved("stats/exact-test-conclusions", Method.EXACT, lambda: _conclusion_steps(SIGNIFICANT),
           "the printed numbers; p < 0.001 is far from 0.05 in both tests",
           broken("nor at the 5.3% level", lambda: _conclusion_steps(0.053))),
    refuted("stats/reported-differences", _reported_facts,
            'Results paragraphs and captions ("the highest": above every other agent) against the printed '
            "p-values; nothing was run. That every difference is significant the paper does not say",
            broken("nor at a level of 1", lambda: _reported_facts(level=1.0))),
)  # fmt: skip
