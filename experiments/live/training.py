"""Policies to look at: trained once, valued under any reward afterwards.

Both agents of a world learn the same tasks, one after another and each from the policy before, with the
rates of the experiments (`experiments.configs`). SF is given the least-squares weights of rewards that are
not linear. In object collection, how well policies do once they stop learning differs a lot between seeds,
since values are affine in the memory and an agent may linger at what it has already collected. So each agent
has the seed, of 0 to 15, with which GPI over its policies collects most, under eleven rewards of the kind
that the page offers.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import gymnasium
import numpy as np

from sfr_fa.agents import FeatureSubnetworks, GpiAgent
from sfr_fa.arrays import FloatArray
from sfr_fa.engines import EpisodeLimit, make_engine
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.environments.racer import Racer
from sfr_fa.kernels.dynamics import marker_distances
from sfr_fa.reward_fitting import least_squares_weights
from sfr_fa.tasks import GaussianTask, TableTask, Task

DISLIKE = -0.5
"""The reward of what is to be left alone; in the presets of the page, too."""
FIT_SIDE = 16
"""The racer's linear rewards are fitted on the features of FIT_SIDE x FIT_SIDE places."""


@dataclass(frozen=True)
class LiveWorld:
    """An environment, what its policies are trained for, and rewards to begin with."""

    name: str
    environment: gymnasium.Env[Any, Any]
    agents: Mapping[str, str]
    """What the page calls "sfr" and "sf", by the names of the agents."""
    seeds: Mapping[str, int]
    tasks: Mapping[str, Task]
    """By the name of the policy that learns it."""
    steps: int
    limit: EpisodeLimit
    settings: Mapping[str, Any]


def rooms() -> LiveWorld:
    """Object collection: SFR and SF."""
    environment = ObjectCollection()
    tasks = {
        "everything": (1, 1, 1, 1),
        "orange boxes": (1, DISLIKE, DISLIKE, DISLIKE),
        "orange triangles": (DISLIKE, 1, DISLIKE, DISLIKE),
        "blue boxes": (DISLIKE, DISLIKE, 1, DISLIKE),
        "blue triangles": (DISLIKE, DISLIKE, DISLIKE, 1),
        "orange": (1, 1, DISLIKE, DISLIKE),
        "boxes": (1, DISLIKE, 1, DISLIKE),
        "home": (DISLIKE, DISLIKE, DISLIKE, DISLIKE),
    }
    return LiveWorld(
        name="rooms",
        environment=environment,
        agents={"sfr": "SFR", "sf": "SF"},
        seeds={"sfr": 0, "sf": 14},
        tasks={
            name: TableTask(environment.layout.feature_space, np.array([0.0, *kinds, 1.0]))
            for name, kinds in tasks.items()
        },
        steps=60_000,
        limit=EpisodeLimit(100, is_terminal=False),
        settings={"gamma": 0.95, "epsilon": 0.15, "learning_rate": 0.005},
    )


def racer() -> LiveWorld:
    """The racer: CSFR and SF, with networks."""
    # (mu, sigma) for each marker; a bump so wide that it is flat makes a distance indifferent.
    flat = (0.5, 1e4)
    preferred = {
        "around 1": ((0.3, 0.01), flat, flat),
        "around 2": (flat, (0.3, 0.01), flat),
        "around 3": (flat, flat, (0.3, 0.01)),
        "far from all": ((0.7, 0.02), (0.7, 0.02), (0.6, 0.02)),
        "near 2 and 3": (flat, (0.2, 0.01), (0.25, 0.01)),
    }
    return LiveWorld(
        name="racer",
        environment=Racer(),
        agents={"sfr": "CSFR", "sf": "SF"},
        seeds={"sfr": 0, "sf": 0},
        tasks={
            name: GaussianTask(tuple(np.array([bump]) for bump in bumps)) for name, bumps in preferred.items()
        },
        steps=100_000,
        limit=EpisodeLimit(is_terminal=False),
        settings={
            "gamma": 0.9,
            "epsilon": 0.15,
            "learning_rate": 0.005,
            "approximator": FeatureSubnetworks,
        },
    )


def train(world: LiveWorld, which: str, advance: Callable[[int], None] = lambda steps: None) -> GpiAgent:
    """The agent that the page calls `which`, after all tasks of its world; `advance(1)` after each."""
    settings = dict(world.settings)
    if which == "sf":
        settings["weight_fit"] = least_squares_weights
        if world.name == "racer":
            settings["fit_points"] = fit_points()
    engine = make_engine(
        "compiled",
        world.environment,
        world.agents[which],
        seed=world.seeds[which],
        limit=world.limit,
        **settings,
    )
    for task in world.tasks.values():
        engine.run_task(task, world.steps)
        advance(1)
    return engine.agent


def fit_points() -> FloatArray:
    """Features of the racer at the middle of each cell of a grid, y first: (FIT_SIDE^2, n)."""
    middles = (np.arange(FIT_SIDE) + 0.5) / FIT_SIDE
    x, y = np.meshgrid(middles, middles, indexing="ij")
    return marker_distances(x.reshape(-1, 1), y.reshape(-1, 1), Racer().layout.markers)
