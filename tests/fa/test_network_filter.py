"""The filter of networks changes speed only: bounds hold in whole cells, weights are those of full GPI."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from numba import njit

from sfr_fa.agents import FeatureSubnetworks, SharedNetwork
from sfr_fa.environments.layouts import ANGLE_CELLS, RACER_CELLS, RACER_LAYOUT
from sfr_fa.environments.racer import Racer
from sfr_fa.kernels import network_filter
from sfr_fa.kernels.cells import TOLERANCE, boxes
from sfr_fa.kernels.network_values import NetworkValues
from tests.fa.engine_checks import compiled, engine_of, next_task
from tests.fa.test_kernels_networks import DTYPES, SEEDS, drawn_networks

BOXES = [boxes(block) for block in RACER_LAYOUT.blocks]
WORLD = RACER_LAYOUT.new_world()
KINDS = st.sampled_from(["usual", "negative", "large", "tiny", "some zero", "saturated"])


def places(cell, count, rng):
    """Poses in a cell (x, y, angle), and at its corners."""
    low = np.array(cell) / (RACER_CELLS, RACER_CELLS, ANGLE_CELLS)
    high = (np.array(cell) + 1) / (RACER_CELLS, RACER_CELLS, ANGLE_CELLS)
    inside = rng.uniform(low, high, (count, 3))
    corners = low + (high - low) * np.array(list(np.ndindex(2, 2, 2))) * (1 - 1e-9)
    return np.concatenate([inside, corners]) * (1, 1, 2 * math.pi) - (0, 0, math.pi)


def state_and_cell(pose, dtype):
    state = np.zeros(120)
    WORLD.pose[:] = pose
    WORLD.encode(state)
    return state.astype(dtype), WORLD.cell()


def values_of(networks, readouts, *, projects, clips=False, boxes=BOXES):
    floor = 0.0 if clips else -math.inf
    return NetworkValues.new(networks, readouts, 3, floor=floor, head=1.0, projects=projects, boxes=boxes)


def spoil(networks, kind, rng):
    """Weights of the size that learning gives, or of an extreme kind; in place."""
    for weights in networks[1:]:
        if kind == "negative":
            np.negative(np.abs(weights), out=weights)
        elif kind == "some zero":
            weights[rng.random(weights.shape) < 0.7] = 0
        elif kind in ("large", "tiny"):
            weights *= weights.dtype.type(100 if kind == "large" else 1e-8)
        elif kind == "saturated":
            np.abs(weights, out=weights)


@njit
def best_value(values, k):
    return values.best_value(k)


def exact_values(values, state):
    """max over a of Q_k as GPI computes it, for all k."""
    values.state[:] = state
    seen = np.flatnonzero(state)
    values.seen[: len(seen)], values.num_seen[0] = seen, len(seen)
    return np.array([best_value(values, k) for k in range(len(values.readouts))])


@given(
    shape=st.sampled_from([(3, 11, 20, 20), (1, 16, 24, 32), (2, 5, 7, 9), (3, 1, 20, 20)]),
    kind=KINDS,
    head=st.sampled_from(["projected", "clipped", "plain"]),
    dtype=DTYPES,
    seed=SEEDS,
)
@settings(max_examples=60, deadline=None)
def test_a_bound_holds_in_all_of_its_cell(shape, kind, head, dtype, seed):
    """For values as they are computed, so that rounding is covered, too."""
    rng = np.random.default_rng(seed)
    networks = drawn_networks(2, shape, dtype, seed)
    spoil(networks, kind, rng)
    readouts = rng.normal(size=(2, shape[0] * shape[1])).astype(dtype)
    readouts[:, rng.random(readouts.shape[1]) < 0.2] = 0
    values = values_of(networks, readouts, projects=head == "projected", clips=head == "clipped")
    values.begin_task()
    cell = tuple(rng.integers(0, (RACER_CELLS, RACER_CELLS, ANGLE_CELLS)))
    poses, bound = places(cell, 12, rng), None
    for pose in poses:
        state, number = state_and_cell(pose, dtype)
        if not compiled(network_filter.locate)(values.tables, number, state):
            continue
        if bound is None:
            bound = compiled(network_filter.bound_cell)(
                values.tables, networks, 0, readouts[1], head == "clipped", head == "projected",
                values.heads, values.head_biases,
            )  # fmt: skip
        best = exact_values(values, state)[0]
        assert bound >= best
    assert bound is None or bound < np.inf


def test_bounds_follow_values_closely():
    """Or they would rule nothing out: in a cell they miss less than values vary from place to place."""
    rng = np.random.default_rng(5)
    networks = drawn_networks(1, (1, 16, 32, 32), np.float64, 5, copies=2)
    values = values_of(networks, rng.normal(size=(2, 16)), projects=True)
    values.begin_task()
    widths, bests = [], []
    for _ in range(40):
        state, number = state_and_cell(rng.uniform((0, 0, -math.pi), (1, 1, math.pi)), np.float64)
        if compiled(network_filter.locate)(values.tables, number, state):
            bound = compiled(network_filter.bound_cell)(
                values.tables, networks, 0, values.readouts[1], False, True, values.heads, values.head_biases
            )
            bests.append(exact_values(values, state)[0])
            widths.append(bound - bests[-1])
    assert len(bests) > 30
    assert 0 < np.mean(widths) < np.std(bests)


def test_nearly_all_states_are_in_the_boxes_of_their_cells():
    rng, values = np.random.default_rng(7), None
    networks = drawn_networks(3, (3, 1, 4, 4), np.float32, 0)
    values = values_of(networks, np.ones((3, 3), np.float32), projects=True)
    poses = rng.uniform((0, 0, -math.pi), (1, 1, math.pi), (2000, 3))
    inside = [
        compiled(network_filter.locate)(values.tables, number, state)
        for state, number in (state_and_cell(pose, np.float32) for pose in poses)
    ]
    assert np.mean(inside) > 0.98
    for box in BOXES:
        assert box.vectors.shape[1] <= 8
        assert (box.rests <= 2 * TOLERANCE).all()


def test_outside_its_box_a_state_rules_nothing_out():
    """A world may say any cell: what it says is tested."""
    networks = drawn_networks(3, (3, 1, 8, 8), np.float32, 0)
    values = values_of(networks, np.ones((3, 3), np.float32), projects=True)
    values.begin_task()
    state, number = state_and_cell((0.3, 0.4, 1.0), np.float32)
    others = (number + 1, number - 5 * ANGLE_CELLS, -1, len(values.tables.visits))
    for cell, known in ((number, True), *((other, False) for other in others)):
        for _ in range(network_filter.VISITS):
            bound_all(values, cell, state)
        assert (values.search.bound[:2] < np.inf).all() == known
        assert values.search.bound[2] == np.inf
    slightly = state.copy()
    slightly[3] += 0.01
    bound_all(values, number, slightly)
    assert (values.search.bound[:3] == np.inf).all()
    # In the directions of the box it is where it was, and yet elsewhere.
    vectors = BOXES[0].vectors[number // ANGLE_CELLS]
    aside = np.random.default_rng(0).normal(size=100)
    aside -= vectors.T @ (vectors @ aside)
    slightly = state.copy()
    slightly[:100] += (0.01 * aside / np.linalg.norm(aside)).astype(np.float32)
    bound_all(values, number, slightly)
    assert (values.search.bound[:3] == np.inf).all()


def bound_all(values, cell, state, c=-1):
    compiled(network_filter.bound_networks)(
        values.tables, values.networks, cell, c, state, values.readouts[-1], values.floor == 0,
        values.projects, values.heads, values.head_biases, values.search.bound,
    )  # fmt: skip


def test_a_policy_that_has_learned_is_not_bounded_by_what_it_was():
    networks = drawn_networks(3, (3, 1, 8, 8), np.float32, 1)
    values = values_of(networks, np.ones((3, 3), np.float32), projects=True)
    values.begin_task()
    state, number = state_and_cell((0.3, 0.4, 1.0), np.float32)
    for _ in range(network_filter.VISITS):
        bound_all(values, number, state)
    before = values.search.bound[:2].copy()
    networks.b2[:] += 5  # of all
    values.begin_task()
    compiled(network_filter.note_learned)(values.tables, 0)
    bound_all(values, number, state)
    assert values.search.bound[0] == np.inf
    assert values.search.bound[1] == before[1]
    values.tables.clock[0] += network_filter.PATIENCE
    bound_all(values, number, state)
    assert before[0] < exact_values(values, state)[0] <= values.search.bound[0] < np.inf


def test_a_policy_may_learn_before_it_is_bounded():
    networks = drawn_networks(2, (3, 1, 8, 8), np.float32, 1)
    values = values_of(networks, np.ones((2, 3), np.float32), projects=True)
    values.begin_task()
    compiled(network_filter.note_learned)(values.tables, 0)
    values.tables.clock[0] += network_filter.PATIENCE
    state, number = state_and_cell((0.7, 0.1, -2.0), np.float32)
    for _ in range(network_filter.VISITS):
        bound_all(values, number, state)
    assert exact_values(values, state)[0] <= values.search.bound[0] < np.inf
    np.testing.assert_allclose(values.tables.norms[0], np.linalg.norm(networks.W1[:120], axis=0), rtol=1e-3)


@pytest.mark.parametrize("directions", range(6))
def test_a_layer_maps_zonotopes_of_any_number_of_directions(directions):
    """Columns as it maps vectors, margins by absolute weights; of units that are part of a larger layer."""
    rng, units, size, begin, into = np.random.default_rng(directions), 8, 16, 8, 16
    columns, result = rng.normal(size=(1 + directions, 24)), np.full((1 + directions, 40), 7.0)
    margins, wide = rng.uniform(size=24), np.full(40, 7.0)
    weights, biases = rng.normal(size=(20, size)), rng.normal(size=30)
    compiled(network_filter.apply_layer)(
        network_filter.Zonotope(columns.ravel(), margins), begin, units, weights, 5, biases, 9,
        network_filter.Zonotope(result.reshape(-1), wide), into, size, 0.125, np.zeros(units, np.int64),
    )  # fmt: skip
    W, b = weights[5 : 5 + units], biases[9 : 9 + size]
    expected = columns[:, begin : begin + units] @ W
    expected[0] += b
    part = slice(into, into + size)
    np.testing.assert_allclose(result[:, part], expected)
    np.testing.assert_allclose(wide[part], margins[begin : begin + units] @ np.abs(W) + 0.125 * np.abs(b))
    for array in (result, wide):
        assert (np.delete(array, np.r_[part], axis=-1) == 7).all(), "other groups are left as they are"


def test_values_that_are_not_clipped_are_as_uncertain_as_their_sums():
    columns, margins = np.array([[1.0, -2.0], [-3.0, 0.0], [0.5, 4.0]]), np.array([0.25, 0.0])
    compiled(network_filter.widen)(network_filter.Zonotope(columns.ravel(), margins), 0.5)
    assert margins.tolist() == [0.25 + 4.75, 6.0]


@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("layer", ["W1", "b1", "W2", "b2", "W3", "b3"])
@pytest.mark.parametrize("projects", [True, False])
@np.errstate(invalid="ignore")
def test_what_is_not_finite_rules_nothing_out(bad, layer, projects):
    networks = drawn_networks(3, (1, 4, 8, 8), np.float32, 2)
    for array in (networks.b1, networks.b2):
        array += 10  # all units are active
    getattr(networks, layer).reshape(3, -1)[1, :3] = bad
    values = values_of(networks, np.ones((3, 4), np.float32), projects=projects)
    values.begin_task()
    state, number = state_and_cell((0.3, 0.4, 1.0), np.float32)
    for _ in range(network_filter.VISITS):
        bound_all(values, number, state)
    assert values.search.bound[1] == np.inf or not exact_values(values, state)[1] > values.search.bound[1]
    assert values.search.bound[0] < np.inf


# --- Whole tasks --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("agent", "changes"),
    [
        ("CSFR", {}),
        ("CSFR-R", {}),
        ("SF", {}),
        ("SFR-K", {"approximator": SharedNetwork}),
    ],
)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.filterwarnings("ignore::sfr_fa.agents.readouts.FitWarning")
@pytest.mark.slow
def test_weights_are_those_of_full_gpi_to_the_bit(agent, changes, dtype, monkeypatch):
    """With bounds from the second visit of a cell on, and soon after a policy has learned."""
    monkeypatch.setattr(network_filter, "VISITS", 2)
    monkeypatch.setattr(network_filter, "PATIENCE", 20)
    monkeypatch.setattr("sfr_fa.engines.packing.FILTER_NETWORKS_FROM", 2)
    ends = []
    for is_on in (True, False):
        settings = {"approximator": FeatureSubnetworks, "learning_rate": 0.005, **changes}
        engine = engine_of("compiled", agent, Racer, gpi_filter=is_on, dtype=dtype, **settings)
        results = [engine.run_task(next_task(engine, agent), 1500) for _ in range(5)]
        tables = engine._last.tables
        ends.append((engine, [(result.total_reward, *result.gpi_counts) for result in results]))
        assert is_on or not len(tables.blocks)
        if is_on and agent == "CSFR-R":
            assert not len(tables.blocks), "its readout changes at every step"
        elif is_on:
            assert (tables.bounded >= 0).sum() > 100
            assert (tables.bounds[tables.bounded >= 0] < np.inf).all()
    (on, results), (off, expected) = ends
    assert results == expected
    assert any(sum(result[1:-1]) > 0 for result in results), "older policies win, too"
    for name, weights in on.agent.policies.parameters.items():
        np.testing.assert_array_equal(weights, off.agent.policies.parameters[name])
