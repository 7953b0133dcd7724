"""Short paths through the loop as Python runs it, in which an index outside an array is an error."""

import functools

import numpy as np
import pytest

from sfr_fa.agents import FeatureSubnetworks
from sfr_fa.engines import EpisodeLimit, compiled
from sfr_fa.engines.compiled import FILTER_FROM
from sfr_fa.feature_codes import CellCode, FourierCode
from sfr_fa.kernels.loop import run_task
from sfr_fa.kernels.racer import RacerWorld
from tests.fa.engine_checks import BUMPS, short_racer, walk_both

MANY = (6,) * (FILTER_FROM + 1)
"""So many policies that those which cannot win are passed over."""
SMALL = {"approximator": functools.partial(FeatureSubnetworks, hidden=(3, 5))}
CELLS = {"feature_code": CellCode(BUMPS.centres)}
WAVES = {"feature_code": FourierCode.random(3, 6, 0.3, np.random.default_rng(15))}


@pytest.mark.filterwarnings("ignore::sfr_fa.agents.FitWarning")
@pytest.mark.parametrize(
    ("agent", "options"),
    [
        ("Q", {}), ("SF", {}), ("SF-R", {}), ("SF-h", {"limit": EpisodeLimit(3)}), ("CSFR", {"bins": 3}),
        ("SFR-K", {}), ("SFR-K-R", CELLS), ("SFR-K", WAVES),
    ],
    ids=["Q", "SF", "SF-R", "SF-h", "CSFR", "bumps", "cells", "waves"],
)  # fmt: skip
def test_the_interpreted_loop_walks_the_path_of_the_reference(agent, options, monkeypatch):
    monkeypatch.setattr(compiled, "loop_for", lambda world, loop=run_task: loop)
    monkeypatch.setattr(RacerWorld, "cell", lambda self: 0, raising=False)  # Numba adds it to all worlds
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
def test_linear_agents_walk_it_too(agent, steps, limit, monkeypatch):
    monkeypatch.setattr(compiled, "loop_for", lambda world, loop=run_task: loop)
    walk_both(agent, steps=steps, limit=limit)
