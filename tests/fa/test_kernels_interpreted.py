"""Short paths through the loop as Python runs it, in which an index outside an array is an error."""

import functools

import numpy as np
import pytest

from examples.own_world import environment as keys_and_doors
from sfr_fa.agents import FeatureSubnetworks, SharedNetwork
from sfr_fa.engines import ENGINES, EpisodeLimit, compiled, packing
from sfr_fa.engines.packing import FILTER_FROM
from sfr_fa.feature_codes import CellCode, FourierCode
from sfr_fa.kernels import network_filter
from sfr_fa.kernels.loop import run_task
from sfr_fa.kernels.racer import RacerWorld
from sfr_fa.tasks import LinearTask
from tests.fa.engine_checks import BUMPS, engine_of, next_task, retrace_both, short_racer, walk_both
from tests.fa.test_evaluate import assert_same
from tests.fa.test_own_world import GONE_WRONG, Drift, drift_engine
from tests.refusals import refused

MANY = (6,) * (FILTER_FROM + 1)
"""So many policies that those which cannot win are passed over."""
RACER_CELL = RacerWorld.cell
SMALL = {"approximator": functools.partial(FeatureSubnetworks, hidden=(3, 5))}
FAST_HEAD = {"approximator": functools.partial(SharedNetwork, hidden=(3, 5), head_rate=5)}
CELLS = {"feature_code": CellCode(BUMPS.centres)}
WAVES = {"feature_code": FourierCode.random(3, 6, 0.3, np.random.default_rng(15))}


@pytest.fixture(autouse=True)
def interpreted(monkeypatch):
    monkeypatch.setattr(compiled, "loop_for", lambda world, loop=run_task: lambda arguments: loop(*arguments))
    monkeypatch.setattr(compiled, "has_changed", lambda world: False)
    for world in (RacerWorld, Drift, type(keys_and_doors().world)):
        monkeypatch.setattr(world, "cell", lambda self: 0, raising=False)  # Numba adds it to all worlds


@pytest.mark.filterwarnings("ignore::sfr_fa.agents.FitWarning")
@pytest.mark.parametrize(
    ("agent", "options"),
    [
        ("Q", {}), ("SF", {}), ("SF-R", {}), ("SF-h", {"limit": EpisodeLimit(3)}), ("CSFR", {"bins": 3}),
        ("SFR-K", {}), ("SFR-K-R", CELLS), ("SFR-K", WAVES), ("SFR-K", FAST_HEAD),
    ],
    ids=["Q", "SF", "SF-R", "SF-h", "CSFR", "bumps", "cells", "waves", "fast head"],
)  # fmt: skip
def test_the_interpreted_loop_walks_the_path_of_the_reference(agent, options):
    walk_both(agent, functools.partial(short_racer, episode_steps=5), steps=(8, 8), **SMALL | options)


@pytest.mark.parametrize(
    ("agent", "steps"),
    [
        ("Q", (9,)),
        ("SF-h", (9,)),
        ("SFR-R (MLP)", (9, 9)),
        ("MB SFR", (9,)),
        ("MB SFR (squares)", (9,)),
        ("SF", (9, 9)),
        ("SFR", MANY),
        ("SFR-R", MANY),
    ],
)
@pytest.mark.parametrize(
    "limit", [EpisodeLimit(4), EpisodeLimit(4, is_terminal=False)], ids=["ends", "goes on"]
)
def test_linear_agents_walk_it_too(agent, steps, limit):
    walk_both(agent, steps=steps, limit=limit)


def test_the_filter_of_networks_leaves_the_path_as_it_is(monkeypatch):
    monkeypatch.setattr(RacerWorld, "cell", RACER_CELL)
    monkeypatch.setattr(network_filter, "VISITS", 1)
    monkeypatch.setattr(network_filter, "PATIENCE", 5)
    monkeypatch.setattr(packing, "FILTER_NETWORKS_FROM", 2)
    options = SMALL | {"bins": 3, "learning_rate": 0.2}
    results, (engine, _) = walk_both("CSFR", short_racer, steps=(25,) * 5, **options)
    tables = engine._last.tables
    assert (tables.bounds[tables.bounded >= 0] < np.inf).sum() > 10
    assert any(result.gpi_counts[:-1].any() for result in results), "older policies win, too"


@pytest.mark.parametrize(
    ("agent", "where", "ends"), [("SFR", keys_and_doors, True), ("SF", short_racer, False)]
)
def test_episodes_are_those_of_the_reference(agent, where, ends):
    pair = [engine_of(kind, agent, where) for kind in ENGINES]
    for engine in pair:
        for _ in range(3):
            engine.run_task(next_task(engine, agent), 30)
    one, other = (engine.evaluate(episodes=6, episode_steps=150, epsilon=0.5, seed=4) for engine in pair)
    assert_same(one, other)
    assert set(one.ended) == ({True, False} if ends else {False})
    assert (one.gpi_shares > 0).sum() > 1 or not ends
    assert len(set(one.returns)) > 1


@pytest.mark.parametrize(("wrong", "sentence"), GONE_WRONG)
def test_episodes_in_a_world_that_goes_wrong_are_refused(wrong, sentence):
    engine = drift_engine(wrong)
    with refused(sentence):
        engine.evaluate(LinearTask([0.0, 1.0]), epsilon=1.0, episodes=50)


@pytest.mark.parametrize(("agent", "where"), [("SFR", ()), ("CSFR", ()), ("SFR", (keys_and_doors,))])
def test_paths_are_retraced(agent, where):
    """Also in a world that writes few of the entries of a state."""
    retrace_both(agent, 30, EpisodeLimit(7), *where)


def test_a_path_that_leaves_the_feature_space_is_refused():
    (wrong, sentence), steps = GONE_WRONG[1], np.full(100, 2)
    with refused(sentence):
        drift_engine(wrong).retrace(LinearTask([0.0, 1.0]), steps, np.random.default_rng(0))
