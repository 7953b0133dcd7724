"""Sets of features that grow: learning is the same as if all of them had been known from the start."""

import copy
import functools
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from torch import nn

from sfr_fa.agents import AGENT_SPECS, FeatureSubnetworks, LinearPerAction, make_agent
from sfr_fa.agents.policies import CopyPrevious
from sfr_fa.agents.replay import Replay
from sfr_fa.engines import make_engine
from sfr_fa.environments.adapters import WithFeatures
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import FunctionTask, LinearTask, TableTask
from tests.fa.engine_checks import Corridor
from tests.refusals import refused

SIZE = 7


def cell(state, action, next_state, info):
    place = float(next_state.argmax())
    return [place, place**2]


def wrapped(space, task=None):
    return WithFeatures(Corridor(SIZE, slip=0.2), cell, space, task or LinearTask([1.0, 0.0]))


def tasks():
    return [
        FunctionTask(lambda phi: np.sin(phi[..., 0])),
        LinearTask([1.0, -0.1]),
        FunctionTask(lambda phi: np.cos(phi[..., 1])),
    ]


def small_weights(shape, rng):
    """Weights of the first feature only, the same however many there are."""
    result = torch.zeros(shape.num_actions, shape.dimensions, shape.state_dim, dtype=torch.float64)
    draw = np.random.default_rng(0).normal(0, 0.1, (shape.num_actions, shape.state_dim))
    result[:, 0] = torch.from_numpy(draw)
    return result


def engine_with(space, agent="SFR", **settings):
    spec = AGENT_SPECS[agent]
    if settings.get("approximator", LinearPerAction) is LinearPerAction:
        spec = replace(spec, new_task=CopyPrevious(small_weights))
    if spec.learns_rewards:
        settings["reward_learning_rate"] = 0.001
    common = {"seed": 4, "epsilon": 0.6, "learning_rate": 0.1, "dtype": torch.float64}
    return make_engine("reference", wrapped(space), spec, **(common | settings))


def in_order_of_appearance():
    """A set that has grown over all features."""
    engine = engine_with(DiscreteFeatures([[3.0, 9.0]], grow=True))
    for task in tasks():
        engine.run_task(task, 120)
    return engine.agent.cumulant.space.vectors


FOUND = in_order_of_appearance()


def test_all_features_are_found():
    assert sorted(FOUND[:, 0].tolist()) == [0, 1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize(
    ("agent", "settings"),
    [
        ("SFR", {}),
        ("SFR", {"optimiser": functools.partial(torch.optim.SGD, momentum=0.5)}),
        ("SFR", {"optimiser": torch.optim.Adam, "learning_rate": 0.01}),
        ("SFR", {"replay": Replay(capacity=50, batch=4, target_every=3)}),
        ("SFR-R", {}),
    ],
)
def test_growing_is_equal_to_having_known_all_from_the_start(agent, settings):
    growing = engine_with(DiscreteFeatures([[3.0, 9.0]], grow=True), agent, **settings)
    knowing = engine_with(DiscreteFeatures(FOUND), agent, **settings)
    sizes = []
    for task in tasks():
        results = [engine.run_task(task, 120) for engine in (growing, knowing)]
        np.testing.assert_array_equal(results[0].actions, results[1].actions)
        assert results[0].total_reward == pytest.approx(results[1].total_reward, abs=1e-12)
        sizes.append(growing.agent.shape.size)
    assert sizes[-1] == SIZE
    # Sums over more zeros may round in another way.
    ours, theirs = (engine.agent.policies.parameters["weight"] for engine in (growing, knowing))
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-12)
    for mine, yours in zip(growing.agent.readouts, knowing.agent.readouts, strict=True):
        np.testing.assert_allclose(mine.vector, yours.vector, rtol=0, atol=1e-12)
    state, _ = growing.environment.reset()
    new = FunctionTask(lambda phi: phi[..., 0] ** 3)
    np.testing.assert_allclose(
        growing.agent.values(state, new), knowing.agent.values(state, new), rtol=0, atol=1e-9
    )
    one, other = (engine.evaluate(new, episodes=3) for engine in (growing, knowing))
    np.testing.assert_array_equal(one.lengths, other.lengths)


def test_networks_grow_by_units_of_zeros():
    growing = engine_with(DiscreteFeatures([[3.0, 9.0]], grow=True), approximator=FeatureSubnetworks)
    agent = growing.agent
    growing.start_task(tasks()[0])
    state, _ = growing.environment.reset()
    before = agent.policies.values(torch.from_numpy(state)[None])[:, 0]
    assert before.shape == (1, 2, 1)
    agent.cumulant.space.observe([5.0, 25.0])
    agent.cumulant.space.observe([6.0, 36.0])
    agent.act(state)
    after = agent.policies.values(torch.from_numpy(state)[None])[:, 0]
    np.testing.assert_array_equal(after[..., :1], before)
    np.testing.assert_array_equal(after[..., 1:], torch.zeros(1, 2, 2))
    growing.run_task(tasks()[1], 100)
    assert agent.policies.values(torch.from_numpy(state)[None])[:, 0].shape == (
        2,
        2,
        agent.cumulant.space.size,
    )


def test_sf_needs_no_new_entries():
    results = []
    for space in (DiscreteFeatures([[3.0, 9.0]], grow=True), DiscreteFeatures(FOUND)):
        engine = make_engine("reference", wrapped(space), "SF", seed=4, learning_rate=1e-4)
        results.append(engine.run_task(LinearTask([1.0, -0.1]), 100).actions)
    np.testing.assert_array_equal(*results)


# --- Files ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("agent", ["SFR", "SFR-R"])
def test_what_has_grown_is_saved_and_goes_on_bit_for_bit(agent, tmp_path):
    first = LinearTask([1.0, -0.1])
    saved = engine_with(DiscreteFeatures([[3.0, 9.0]], grow=True), agent)
    saved.run_task(first, 3)
    grown = saved.agent.shape.size
    assert 1 < grown < SIZE
    saved.save(tmp_path / "agent")
    loaded = engine_with(DiscreteFeatures([[3.0, 9.0]], grow=True), agent)
    loaded.load(tmp_path / "agent")
    np.testing.assert_array_equal(loaded.agent.cumulant.space.vectors, saved.agent.cumulant.space.vectors)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the task is data, and is in the file
        results = [engine.run_task(tasks()[0], 200) for engine in (saved, loaded)]
    np.testing.assert_array_equal(results[0].actions, results[1].actions)
    np.testing.assert_array_equal(
        saved.agent.policies.parameters["weight"], loaded.agent.policies.parameters["weight"]
    )
    assert loaded.agent.shape.size > grown
    # Into one that has found more already, in the same order.
    loaded.load(tmp_path / "agent")
    assert loaded.agent.values(np.eye(SIZE)[3]).shape == (1, 2)
    # And into one that has found others first.
    other = engine_with(DiscreteFeatures([[3.0, 9.0], [0.0, 0.0]], grow=True), agent)
    with refused("anew"):
        other.load(tmp_path / "agent")


def test_a_function_of_an_earlier_task_that_no_file_holds_counts_as_zero_with_a_warning(tmp_path):
    saved = engine_with(DiscreteFeatures([[3.0, 9.0]], grow=True))
    saved.run_task(tasks()[0], 3)
    saved.save(tmp_path / "agent")
    loaded = engine_with(DiscreteFeatures([[3.0, 9.0]], grow=True))
    loaded.load(tmp_path / "agent")
    with pytest.warns(UserWarning, match="as 0"):
        loaded.run_task(tasks()[1], 200)
    old = loaded.agent.readouts[0].vector
    assert (old[saved.agent.shape.size :] == 0).all()


def test_a_set_that_grows_and_one_that_does_not_are_not_the_same_agent(tmp_path):
    make_agent("SFR", 3, 2, DiscreteFeatures(np.eye(2))).save(tmp_path / "agent")
    with refused("cumulant"):
        make_agent("SFR", 3, 2, DiscreteFeatures(np.eye(2), grow=True)).load(tmp_path / "agent")


# --- What cannot grow -------------------------------------------------------------------------------


def test_without_growing_an_unseen_feature_names_itself_and_both_ways_out():
    engine = make_engine("reference", wrapped(DiscreteFeatures([[2.0, 4.0], [4.0, 16.0]])), "SFR", seed=0)
    with refused("[1.0, 1.0]", "including([1.0, 1.0])", "grow=True"):
        engine.run_task(LinearTask([1.0, 0.0]), 200)


def test_the_one_step_model_cannot_grow():
    space = DiscreteFeatures(np.eye(2), grow=True)
    with refused("MB SFR"):
        make_agent("MB SFR", 3, 2, space, model_learning_rate=0.1)


class Own(nn.Module):
    def __init__(self, shape, rng):
        super().__init__()
        self.inner = LinearPerAction(shape, rng)

    def forward(self, states):
        return self.inner(states)


def test_a_network_that_cannot_grow_is_refused_before_anything_is_learned():
    with refused("Own", "grown"):
        make_agent("SFR", 3, 2, DiscreteFeatures(np.eye(2), grow=True), approximator=Own)
    make_agent("SFR", 3, 2, DiscreteFeatures(np.eye(2)), approximator=Own)


def test_a_table_has_no_reward_for_what_is_new():
    space = DiscreteFeatures([[3.0, 9.0], [2.0, 4.0]], grow=True)
    engine = make_engine("reference", wrapped(space), "SFR", seed=0)
    with refused("declared feature vectors", "a function"):
        engine.run_task(TableTask(space, [0.0, 1.0]), 50)


# --- The set itself ---------------------------------------------------------------------------------


def test_a_set_grows_by_what_is_observed_only():
    space = DiscreteFeatures([[0.0], [1.0]], grow=True)
    same, twin = space, copy.deepcopy(space)
    assert space.observe([1.0 + 1e-9]) == 1
    assert space.observe([2.0]) == 2
    assert same.size == 3
    assert twin.size == 2
    with refused("[5.0]"):
        space.index_of([5.0])
    with refused("finite"):
        space.observe([np.nan])
    for wrong in ([1.0, 2.0], [[1.0], [7.0]], 3.0):
        with refused("shape"):
            space.observe(wrong)
    assert space.size == 3
    assert hash(space) == hash(twin)
    assert space != twin
    assert space == DiscreteFeatures([[0.0], [1.0], [2.0]])
    fixed = DiscreteFeatures([[0.0]])
    with refused("grow=True"):
        fixed.observe([1.0])


def test_what_an_environment_shows_may_be_the_beginning():
    space = DiscreteFeatures.observed(wrapped(DiscreteFeatures(FOUND)), steps=3, seed=0, grow=True)
    assert space.grow
    assert space.size < SIZE
    engine = engine_with(space)
    engine.run_task(LinearTask([1.0, 0.0]), 300)
    assert space.size == engine.agent.shape.size == SIZE
