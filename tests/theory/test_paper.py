"""The transcribed tables are whole, and agree with themselves."""

import itertools

import pytest

from sfr_theory.paper import BARRETO, BELOW, GENERAL, LINEAR, RACER, TABLES


def test_the_tables_are_complete():
    assert [len(list(table.cells())) for table in TABLES] == [45, 45, 45, 28]
    for table in TABLES:
        agents = table.agents
        assert [(a, b) for a, b, _ in table.cells()] == list(itertools.combinations(agents, 2))


@pytest.mark.parametrize(
    ("table", "agent", "other", "printed"),
    [
        (BARRETO, "SF", "MB SFR", "0.121"),
        (BARRETO, "SFR", "MB SFR", "0.001"),
        (LINEAR, "SF-4", "CSFR-4", "0.970"),
        (LINEAR, "CSFR-4", "MB SFR-R", "0.427"),
        (GENERAL, "SF-R", "SF-4", "0.104"),
        (GENERAL, "CSFR-4", "MB SFR-R", "0.007"),
        (RACER, "SF", "CSFR-3", "0.089"),
        (RACER, "SF-6", "CSFR-3", "0.121"),
        (RACER, "Q", "SF", BELOW),
    ],
)
def test_cells_stand_where_the_paper_has_them(table, agent, other, printed):
    assert table.printed(agent, other) == table.printed(other, agent) == printed


@pytest.mark.parametrize("table", TABLES, ids=lambda table: table.name)
def test_who_is_ahead_is_said_once_and_of_printed_agents(table):
    pairs = [frozenset(pair) for pair in table.ahead]
    assert len(set(pairs)) == len(pairs)
    assert set().union(*pairs) <= set(table.agents)
    for first, second in table.ahead:
        assert table.said_ahead(second, first) == first
        assert second in table.behind(first)
        assert first in table.ahead_of(second)


def test_printed_hours_are_of_the_printed_agents():
    for table in (LINEAR, GENERAL, RACER):
        assert tuple(table.hours) == table.agents
    assert not BARRETO.hours
    # The sums of the three printed lists, added up by hand.
    assert [sum(table.hours.values()) for table in (LINEAR, GENERAL, RACER)] == [147, 199, 434]
