"""The configs say what the paper says."""

import itertools

import numpy as np
import pytest

from experiments.configs import known_configs, load_config, pendulum
from sfr_theory.paper import BARRETO, GENERAL, LINEAR, RACER
from tests.refusals import refused

PAPER_TASKS = {"racer": 40, "grid_racer": 40, "multiverse_racer": 40, "racer_interactions": 40}
MORE_PROFILES = {"racer_interactions": ["ten"], "grid_object_collection": ("race",)}


def test_the_demo_is_small():
    """The page of `make demo` must be there in under three minutes."""
    [profile] = load_config("demo").profiles.values()
    assert profile.tasks * profile.steps * profile.repetitions <= 1_000_000


@pytest.mark.parametrize("name", sorted({*known_configs()} - {"demo", "pendulum"}))
def test_every_config_is_complete(name):
    config = load_config(name)
    assert config.name == name
    assert list(config.profiles) == ["smoke", "reduced", *MORE_PROFILES.get(name, ()), "paper"]
    paper = config.profiles["paper"]
    assert paper.repetitions == 10
    assert paper.tasks == PAPER_TASKS.get(name, 300)
    assert paper.steps == (200_000 if name in PAPER_TASKS else 20_000)
    assert paper.feature_iterations == 1_000_000
    assert paper.feature_tasks == (10 if name in PAPER_TASKS else 20)
    sizes = [config.profiles[p].tasks * config.profiles[p].steps for p in config.profiles]
    assert sizes == sorted(sizes)


def combinations(name, setting):
    counts = {}
    for part in load_config(name).parts:
        if part.setting.name == setting:
            for agent in part.agents:
                counts[agent.label] = counts.get(agent.label, 0) + 1
    return counts


@pytest.mark.parametrize("setting", ["linear", "general"])
def test_the_grid_of_object_collection_is_the_papers(setting):
    assert combinations("grid_object_collection", setting) == {
        "Q": 3, "SF": 3, "SF-R": 9, "SF-4": 9, "SF-8": 9, "SFR": 3, "SFR-R": 9, "CSFR-4": 9, "MB SFR": 9,
        "MB SFR-R": 27,
    }  # fmt: skip


def test_the_grid_of_the_racer_is_the_papers():
    counts = combinations("grid_racer", "racer")
    assert counts == {
        "Q": 4, "SF": 4, "SF-R": 12, "SF-3": 12, "SF-6": 12, "CSFR": 4, "CSFR-R": 12, "CSFR-3": 12,
    }  # fmt: skip
    assert sum(counts.values()) == 72  # as the paper says


def test_figures_have_the_agents_of_the_papers_tables():
    printed = {"object_collection_linear": LINEAR, "object_collection_general": GENERAL, "barreto": BARRETO}
    for name, table in printed.items():
        assert load_config(name).labels == (*table.agents, "MB SFR, squares")
    assert load_config("racer").labels == RACER.agents
    assert len(load_config("nonlinearity").parts) == 7


def test_the_ablation_is_a_full_factorial():
    agents = load_config("ablation").parts[0].agents
    cells = {(agent.agent, agent.clipping, agent.initial_weights) for agent in agents}
    variants = [("SF", "cumulant"), ("SFR", "cumulant"), ("SFR", "none")]
    factorial = {(*v, weights) for v, weights in itertools.product(variants, ("paper", "matched", "zero"))}
    assert cells == factorial | {("SF", "at zero", "paper")}


def test_an_unknown_experiment_is_named_with_those_that_exist():
    with refused("no experiment 'object_colection'", "object_collection_general"):
        load_config("object_colection")


def test_the_pendulum_shows_its_height_and_speed():
    environment = pendulum.environment()
    state, _ = environment.reset(seed=0)
    assert environment.observation_space.contains(state)
    np.testing.assert_allclose(state.sum(), 1, rtol=1e-6)
    for action in (0, 2, 2, 1):
        state, *_, info = environment.step(action)
        angle, velocity = environment.unwrapped.state
        np.testing.assert_allclose(info["features"], [np.cos(angle / 2) ** 2, abs(velocity) / 8], atol=1e-6)
        row, column = np.unravel_index(state.argmax(), (pendulum.GRID, pendulum.GRID))
        nearest = np.abs(np.exp(1j * pendulum.ANGLES) - np.exp(1j * angle)).argmin()
        assert (row, column) == (nearest, np.abs(pendulum.SPEEDS - velocity).argmin())


@pytest.mark.parametrize(("sample", "joint"), [("exchange", True), ("corners", True), ("sum", False)])
def test_utilities_of_the_pendulum_are_sums_where_they_say_so(sample, joint):
    """A sum over dimensions has no mixed differences."""
    reward = getattr(pendulum, f"sample_{sample}")(np.random.default_rng(0), None).reward
    x, y = np.meshgrid(np.linspace(0, 1, 6), np.linspace(0, 1, 6), indexing="ij")
    mixed = np.diff(np.diff(reward(np.stack([x, y], axis=-1)), axis=0), axis=1)
    assert np.abs(mixed).max() > 0.1 if joint else np.abs(mixed).max() < 1e-12
