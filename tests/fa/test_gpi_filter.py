"""The GPI filter changes speed only: bounds are bounds, and weights are those of full GPI to the bit."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from sfr_fa.engines.packing import AXIS_CELLS_TOGETHER, FILTER_FROM
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.kernels import gpi_filter, places
from sfr_fa.kernels.cells import directions, larger_cells
from sfr_fa.kernels.gpi import LANES, begin_search, new_search
from sfr_fa.kernels.groups import RANK
from sfr_fa.kernels.linear_values import LinearValues, best_policy, evaluate
from sfr_fa.kernels.object_collection import move_to
from sfr_fa.tasks import TableTask
from tests.fa.engine_checks import compiled, engine_of, next_task, set_policies, weights_of

A, M, P, S, PADDED = 4, 12, 100, 113, 128
PLACE = (0.3, 0.42)
ENVIRONMENT = ObjectCollection()
LARGER, CELL_OF = larger_cells(*ENVIRONMENT.coded_blocks(), AXIS_CELLS_TOGETHER)
BASES = directions(LARGER, RANK)


class Policies:
    """K policies with D outputs, a filter over them, and the exact search beside it."""

    def __init__(self, weights, D, dtype, clip=True, keeps_places=True):
        self.weights = np.zeros((len(weights), A * D, PADDED), dtype)
        self.weights[..., :S] = weights
        self.dtype, self.clip = np.dtype(dtype), clip
        K = len(weights)
        reference = self.weights.mean(axis=0)
        self.tables = gpi_filter.new_filter(
            BASES, CELL_OF, reference, S, A, K, 100, clip=clip, keeps_places=keeps_places
        )
        self.readout = np.ones(D, dtype)
        compiled(gpi_filter.begin_filter)(self.tables, self.weights, self.readout, np.arange(K))

    def update(self, k, action, change):
        D = len(change)
        self.weights[k, action * D : (action + 1) * D, :S] += change
        compiled(gpi_filter.note_update)(self.tables, k, action, self.weights, self.readout)

    def begin_task(self, readout):
        self.readout = readout.astype(self.dtype)
        nobody = np.zeros(0, dtype=np.int64)
        compiled(gpi_filter.begin_filter)(self.tables, self.weights, self.readout, nobody)

    def bounds_and_values(self, x, y, memory, readout):
        """(K,) bounds, and max over a of Q_k as GPI computes it.

        Leaves in `all_hold` whether those of actions and of the place hold, too.
        """
        state, world = np.zeros(PADDED, self.dtype), ENVIRONMENT.world
        move_to(world, x, y)
        world.memory[:] = memory
        world.encode(state)
        K = len(self.weights)
        search, values = new_search(K, A, self.dtype), np.zeros(self.weights.shape[:2], self.dtype)
        readout = readout.astype(self.dtype)
        if not np.array_equal(readout, self.readout):
            self.readout = readout
            if self.tables.keeps_places:
                self.begin_task(readout)
            else:
                compiled(gpi_filter.note_readout)(self.tables, readout)
        compiled(gpi_filter.arrive)(self.tables, self.weights, world.cell(), state, readout, search)
        self.of_place = search.tops.copy()
        search.largest[0] = -np.inf
        compiled(gpi_filter.refine)(self.tables, readout, search)
        bound = search.bound[:K].copy()
        np.testing.assert_array_equal(search.tops, search.bound.reshape(-1, LANES).max(axis=1))
        compiled(begin_search)(search)
        for k in range(K):
            compiled(evaluate)(k, self.weights, state, readout, self.clip, values, search)
        best = np.full(len(search.bound), -np.inf)
        best[:K] = search.best
        of_actions = self.tables.of_actions.transpose(0, 2, 1).reshape(-1, A)[:K]
        np.testing.assert_array_equal(of_actions.max(axis=1), bound)
        places_hold = (self.of_place >= best.reshape(-1, LANES).max(axis=1)).all()
        self.all_hold = bool(places_hold and (of_actions >= search.q).all())
        return bound, search.best.copy()


def some_weights(rng, K, D, kind):
    """Weights of the size that learning gives, or of an extreme kind."""
    weights = rng.normal(0, 0.2, (K, A * D, S))
    if kind == "negative":
        return -np.abs(weights)
    if kind == "copies":
        return np.repeat(weights[:1], K, axis=0)
    if kind == "alike":
        return weights[:1] + 0.01 * weights
    if kind == "huge":
        return weights * 1e6
    if kind == "zero":
        return np.zeros_like(weights)
    return weights


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    K=st.integers(1, 40),
    D=st.sampled_from([1, 5, 6, 44]),
    kind=st.sampled_from(["usual", "negative", "copies", "alike", "huge", "zero"]),
    rewards=st.sampled_from(["mixed", "negative", "zero", "some zero", "huge"]),
    clip=st.booleans(),
    dtype=st.sampled_from([np.float32, np.float64]),
    place=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    updates=st.lists(
        st.tuples(st.integers(0, 39), st.integers(0, 3), st.booleans(), st.floats(-0.01, 0.01)), max_size=40
    ),
    keeps_places=st.booleans(),
)
def test_no_value_exceeds_its_bound(seed, K, D, kind, rewards, clip, dtype, place, updates, keeps_places):
    """For policies at rest and for those that have learned, wherever the agent stands and has collected.

    Some updates are followed by a visit not far from the last one, so that tables and bounds of places are
    made and read again in any order.
    """
    rng = np.random.default_rng(seed)
    policies = Policies(some_weights(rng, K, D, kind), D, dtype, clip, keeps_places)
    readout = rng.normal(size=D)
    if rewards == "negative":
        readout = -np.abs(readout)
    elif rewards == "zero":
        readout[:] = 0
    elif rewards == "some zero":
        readout[::2] = 0
    elif rewards == "huge":
        readout *= 1e4
    memory = (rng.random(M) < 0.4).astype(float)
    for k, action, visits, apart in updates:
        policies.update(k % K, action, rng.normal(0, 0.1, (D, S)))
        if visits:
            x, y = np.clip([place[0] + apart, place[1] - apart / 2], 0, 1)
            policies.bounds_and_values(x, y, memory, readout)
            assert policies.all_hold
    policies.bounds_and_values(*place, memory, readout)
    assert policies.all_hold


def test_a_table_that_had_not_been_read_again_would_be_wrong():
    """So the test above can fail: the log of updates is what brings a cell up to date."""
    policies = Policies(some_weights(np.random.default_rng(0), 20, 6, "usual"), 6, np.float32)
    readout = READOUT
    policies.bounds_and_values(0.3, 0.42, np.zeros(M), readout)
    policies.update(3, 1, np.ones((6, S)) * np.sign(readout)[:, None])
    policies.tables.num_updates[0] -= 1
    bound, best = policies.bounds_and_values(0.3, 0.42, np.zeros(M), readout)
    assert bound[3] < best[3]
    policies.tables.num_updates[0] += 1
    bound, best = policies.bounds_and_values(0.3, 0.42, np.zeros(M), readout)
    assert bound[3] >= best[3]


READOUT = np.array([0, 0.5, -0.5, 0.7, -1, 1])


def test_the_filter_rules_out_most_policies():
    policies = Policies(some_weights(np.random.default_rng(0), 200, 6, "usual"), 6, np.float32)
    bound, best = policies.bounds_and_values(0.3, 0.42, np.zeros(M), READOUT)
    assert (bound >= best.max()).sum() < 40


def some_places(policies, count=30, memory=0.0):
    """The bounds of the groups at places that differ by little, once the place is known."""
    rng, tops = np.random.default_rng(8), []
    for x, y in rng.uniform(0.301, 0.324, (count, 2)):
        policies.bounds_and_values(x, y, np.full(M, memory), READOUT)
        tops.append(policies.of_place)
    return np.array(tops)


def test_places_rule_out_whole_groups():
    """The bounds of a place are the same wherever the agent stands there, and not much above the values."""
    weights = some_weights(np.random.default_rng(0), 200, 6, "usual")
    weights[16:64, :, P + M] += 10 * READOUT.repeat(A).reshape(6, A).T.ravel()  # three groups that are better
    policies = Policies(weights, 6, np.float32)
    tops = some_places(policies)
    assert np.isinf(tops[: places.VISITS_NEEDED - 1]).all()
    assert np.isfinite(tops[places.VISITS_NEEDED - 1 :]).all()
    assert len(np.unique(tops[-10:], axis=0)) < 10
    _, best = policies.bounds_and_values(0.31, 0.31, np.zeros(M), READOUT)
    assert set(np.flatnonzero(policies.of_place >= best.max())) <= {1, 2, 3}
    some_places(policies, 2, memory=1.0)
    visits = policies.tables.places.records[:, places.VISITS]
    assert visits[visits > 0].tolist() == [31, 2], "another memory is another place"


def test_a_place_follows_the_policies_that_learn_and_would_be_wrong_if_it_did_not():
    policies = Policies(some_weights(np.random.default_rng(0), 100, 6, "usual"), 6, np.float32)
    before = some_places(policies)[-1]
    policies.update(37, 1, np.ones((6, S)) * np.sign(READOUT)[:, None])
    policies.tables.latest[:] = 0
    policies.bounds_and_values(0.31, 0.31, np.zeros(M), READOUT)
    assert not policies.all_hold
    policies.update(37, 1, np.zeros((6, S)))
    policies.bounds_and_values(0.31, 0.31, np.zeros(M), READOUT)
    assert (policies.of_place != before).tolist() == [n == 37 // LANES for n in range(len(before))]


def test_a_state_outside_of_its_box_makes_it_larger():
    policies = Policies(some_weights(np.random.default_rng(0), 20, 6, "usual"), 6, np.float64)
    some_places(policies)
    found = policies.tables.places
    [cell] = np.flatnonzero(found.versions)
    version, (low, high) = found.versions[cell], found.boxes[:, cell].copy()
    policies.bounds_and_values(0.31, 0.31, np.zeros(M), READOUT)
    assert found.versions[cell] == version, "in the middle nothing changes"
    policies.bounds_and_values(0.3249, 0.3249, np.zeros(M), READOUT)
    assert found.versions[cell] == version + 1
    new_low, new_high = found.boxes[:, cell]
    assert (new_low <= low).all()
    assert (new_high >= high).all()
    assert (new_high > high).any()
    here = policies.tables.here
    assert ((new_low <= here) & (here <= new_high)).all()


def test_many_memories_are_forgotten_and_begin_anew():
    policies = Policies(some_weights(np.random.default_rng(0), 20, 2, "usual"), 2, np.float32)
    for number in range(2 * places.MOST_MEMORIES + 3):
        memory = np.array([number >> bit & 1 for bit in range(M)], dtype=float)
        for _ in range(2):
            policies.bounds_and_values(0.31, 0.31, memory, np.array([1.0, -0.5]))
            assert policies.all_hold
    found = policies.tables.places
    assert found.counts.tolist() == [3, 2]
    assert (found.records[:, places.VISITS] > 0).sum() == 3


def test_a_place_is_of_one_memory():
    """Where what was collected makes all values smaller, its bounds would be wrong elsewhere."""
    weights = some_weights(np.random.default_rng(0), 20, 6, "usual")
    weights[:, :, P : P + M] = -np.tile(READOUT, A)[:, None]
    policies = Policies(weights, 6, np.float32)
    for memory in (0.0, 1.0, 0.0, 1.0, 0.0):
        tops = some_places(policies, 3, memory)
        assert policies.all_hold
        assert np.isfinite(tops[-1]).all()
    assert policies.tables.places.counts.tolist() == [2, 0]


def test_a_new_task_forgets_all_places():
    """Also those of other memories than the present one, which is looked up anew where it has not changed."""
    policies = Policies(some_weights(np.random.default_rng(0), 20, 6, "usual"), 6, np.float32)
    for memory in (0.0, 1.0, 0.0):
        some_places(policies, 4, memory)
    found = policies.tables.places
    assert sorted(found.records[:, places.VISITS])[-2:] == [4, 8]
    policies.begin_task(-READOUT)
    assert not found.records[:, places.VISITS].any()
    assert not found.records[:, places.VERSION].any()
    policies.bounds_and_values(0.31, 0.31, np.zeros(M), -READOUT)
    assert policies.all_hold
    assert np.isinf(policies.of_place).all(), "nothing is known at the first visit"
    [p] = np.flatnonzero(found.records[:, places.VISITS])
    assert p == ENVIRONMENT.world.cell()
    assert found.counts.tolist() == [1, 0]


def test_a_cell_that_there_is_not_rules_nothing_out():
    policies = Policies(some_weights(np.random.default_rng(0), 20, 6, "usual"), 6, np.float32)
    policies.bounds_and_values(0.31, 0.31, np.zeros(M), READOUT)
    for cell in (-1, len(CELL_OF)):
        search = new_search(20, A, np.dtype(np.float32))
        search.bound[:], search.tops[:] = -np.inf, -np.inf
        state = np.zeros(PADDED, np.float32)
        compiled(gpi_filter.arrive)(policies.tables, policies.weights, cell, state, policies.readout, search)
        search.largest[0] = -np.inf
        compiled(gpi_filter.refine)(policies.tables, policies.readout, search)
        assert (search.bound[:20] == np.inf).all()
        assert (policies.tables.of_actions == np.inf).all()


@pytest.mark.parametrize("kind", ["copies", "alike"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_bounds_of_policies_with_much_in_common(kind, dtype):
    """They are tight, so that what is in common must be right: without it some value exceeds its bound."""
    rng = np.random.default_rng(1)
    policies = Policies(some_weights(rng, 20, 6, kind), 6, dtype)
    reference, exceeded = policies.tables.reference.copy(), False
    for x, y in rng.random((50, 2)):
        readout = rng.normal(size=6)
        bound, best = policies.bounds_and_values(x, y, np.zeros(M), readout)
        assert policies.all_hold
        policies.tables.reference[:] = 0
        bound, best = policies.bounds_and_values(x, y, np.zeros(M), readout)
        exceeded = exceeded or bool((bound < best).any())
        policies.tables.reference[:] = reference
    assert exceeded


def test_a_table_errs_by_half_a_quantum_and_the_bound_counts_it():
    """Margins would hide it in most states: the table and the sum are compared with formulas."""
    rng, D = np.random.default_rng(5), 6
    policies = Policies(some_weights(rng, 20, D, "usual"), D, np.float64)
    for _ in range(2):
        policies.bounds_and_values(0.3, 0.42, np.zeros(M), np.ones(D))
    tables = policies.tables
    [g] = np.flatnonzero(tables.seen >= 0)
    apart = (policies.weights[:, :, :P] - tables.reference[:, :P]).reshape(20, A, D, P)
    exact = np.einsum("ji,kadi->kadj", tables.bases[g, :, :P], apart)
    quantum = tables.quantum[g].reshape(RANK, A, D).transpose(1, 2, 0)
    inner = tables.inner[g].transpose(0, 4, 1, 2, 3).reshape(-1, A, D, RANK)[:20]
    kept = inner * quantum
    assert (np.abs(kept - exact) <= 0.5 * quantum).all()
    assert (np.abs(kept - exact) > 0.4 * quantum).any()
    assert np.abs(tables.inner[g]).max() == gpi_filter.QUANTA
    for low, high in ((tables.here, tables.here), (tables.here - 0.3, tables.here + 0.2)):
        compiled(gpi_filter.weigh)(tables, low, high, np.ones(D))
        farthest = np.maximum(np.abs(low), np.abs(high))[:RANK]
        half = np.einsum("d,j,adj->a", np.ones(D), farthest, quantum) / 2
        assert (half < tables.halves).all()
        assert (tables.halves < 1.05 * half).all()


def test_a_policy_that_outgrows_its_table_gets_another():
    rng, D = np.random.default_rng(6), 6
    policies = Policies(some_weights(rng, 20, D, "alike"), D, np.float32)
    readout = rng.normal(size=D)
    policies.bounds_and_values(0.3, 0.42, np.zeros(M), readout)
    [g] = np.flatnonzero(policies.tables.seen >= 0)
    before = policies.tables.quantum[g].copy()
    policies.update(3, 1, rng.normal(0, 1e-4, (D, S)))
    policies.bounds_and_values(0.3, 0.42, np.zeros(M), readout)
    assert (policies.tables.quantum[g] == before).all(), "a small change fits"
    policies.update(3, 1, rng.normal(0, 10, (D, S)))
    policies.bounds_and_values(0.3, 0.42, np.zeros(M), readout)
    assert (policies.tables.quantum[g, :, D : 2 * D] > 10 * before[:, D : 2 * D]).any()
    assert (policies.tables.quantum[g, :, :D] == before[:, :D]).all(), "other actions are as they were"
    assert policies.all_hold


def along(directions, D, K=50):
    """Weights of K policies that differ in multiples of these directions of the position's code only."""
    rng = np.random.default_rng(7)
    weights = np.zeros((K, A * D, S))
    weights[..., :P] = rng.normal(size=(K, A * D, len(directions))) @ directions
    return weights


def code_and_basis():
    """The position's code at PLACE, and the directions of its cell."""
    world = ENVIRONMENT.world
    move_to(world, *PLACE)
    state = np.zeros(PADDED)
    world.encode(state)
    return state[:P], BASES[CELL_OF[world.cell()]]


@pytest.mark.parametrize("part", ["margins", "memory_part", "inner"])
def test_a_filter_without_one_of_its_parts_would_be_wrong(part):
    """So the tests above can fail: without widths, memory or tables some value exceeds its bound."""
    p, basis = code_and_basis()
    rest = p - p @ basis.T @ basis
    weights = {
        "margins": along([rest / np.linalg.norm(rest)], 6),  # Cauchy-Schwarz is an equality
        "memory_part": some_weights(np.random.default_rng(0), 50, 6, "usual"),
        "inner": along(basis, 6),
    }[part]
    policies, readout = Policies(weights, 6, np.float32), np.array([0, 0.5, -0.5, 0.7, -1, 1])
    bound, best = policies.bounds_and_values(*PLACE, np.ones(M), readout)
    assert policies.all_hold
    getattr(policies.tables, part)[:] = 0
    bound, best = policies.bounds_and_values(*PLACE, np.ones(M), readout)
    assert (bound < best).any()


def test_margins_follow_the_weights_and_the_readout():
    rng = np.random.default_rng(2)
    policies = Policies(some_weights(rng, 20, 6, "usual"), 6, np.float64)
    before = policies.tables.margins.copy()
    for readout in (np.array([0, 0.5, -0.5, 0.7, -1, 1]), rng.normal(size=6)):
        policies.bounds_and_values(0.3, 0.42, np.zeros(M), readout)
        policies.update(3, 1, rng.normal(size=(6, S)))
        tables = policies.tables
        np.testing.assert_allclose(tables.margins, np.abs(readout) @ tables.norms)
        np.testing.assert_allclose(tables.slacks, np.abs(readout) @ tables.sizes)
        np.testing.assert_array_equal(tables.signs.reshape(A, 6), np.tile(np.sign(readout), (A, 1)))
        assert (tables.margins != before).any()


def test_a_readout_that_has_changed_reaches_the_filter():
    """Bounds of agents that learn rewards are wrong without it, but seldom so wrong that a choice changes."""
    rng = np.random.default_rng(3)
    theta = np.zeros((FILTER_FROM, A * 2, PADDED))
    theta[..., :S] = some_weights(rng, FILTER_FROM, 2, "usual")
    readouts = rng.normal(size=(FILTER_FROM, 2))
    values = LinearValues.new(
        theta,
        readouts,
        S,
        A,
        clip=True,
        folds=False,
        learns_rewards=True,
        bases=BASES,
        cell_of=CELL_OF,
        steps=1,
    )
    values.begin_task()
    readouts[-1] = [3.0, -2.0]
    values.readout_changed()
    np.testing.assert_allclose(values.tables.margins, np.array([3.0, 2.0]) @ values.tables.norms)
    np.testing.assert_allclose(values.tables.slacks, np.array([3.0, 2.0]) @ values.tables.sizes)


def test_an_output_without_value_may_have_weights_beyond_bounds():
    """0 times an infinite norm would be no number, and would rule out a policy that wins."""
    weights = np.zeros((20, A * 2, S))
    weights[3, 0] = 1e30  # its square is no float32
    weights[3, 1] = 1.0
    policies = Policies(weights, 2, np.float32)
    for _ in range(2):  # after a new readout, and after an update
        _, best = policies.bounds_and_values(0.3, 0.42, np.zeros(M), np.array([0.0, 1.0]))
        policies.update(3, 0, np.zeros((2, S)))
        assert best.argmax() == 3
        assert policies.all_hold


def test_a_code_without_remainder_leaves_a_width():
    """0 times an infinite norm would be no number here, too."""
    bases, state = np.zeros((1, RANK, P)), np.zeros(PADDED)
    bases[0, 0, 0] = state[0] = 1.0
    nowhere, D = np.zeros(1, dtype=np.int64), 2
    tables = gpi_filter.new_filter(bases, nowhere, np.zeros((A * D, PADDED)), S, A, 20, 1, clip=True)
    compiled(gpi_filter.locate)(tables.bases, 0, state, P, tables.reference, tables.here, tables.rest)
    assert not tables.rest.any()
    rho, sigma = compiled(gpi_filter.weigh)(tables, tables.here, tables.here, np.ones(D))
    assert rho == sigma > 0


def test_the_first_of_tied_policies_wins_whoever_is_evaluated_first():
    weights = np.zeros((9, A, PADDED))
    weights[[2, 5, 7], 1, 112] = 1.0
    state, readout = np.zeros(PADDED), np.ones(1)
    state[112] = 1.0
    for evaluated_first in range(9):
        search, values = new_search(9, A, np.dtype(np.float64)), np.zeros((9, A))
        compiled(evaluate)(evaluated_first, weights, state, readout, False, values, search)
        off = gpi_filter.new_filter(BASES[:0], CELL_OF[:0], weights[0], S, A, 9, 1, clip=False)
        assert compiled(best_policy)(off, weights, state, readout, False, values, search) == 2


# --- Whole tasks ------------------------------------------------------------------------------------


def both_ways(agent, policies, task, dtype=torch.float32, kind="usual", steps=300):
    """The weights after a task, with the filter and with full GPI."""
    ends = []
    for gpi_filter_on in (True, False):
        engine = engine_of("compiled", agent, gpi_filter=gpi_filter_on, dtype=dtype)
        engine.run_task(next_task(engine, agent), 5)
        if agent != "Q":
            shape = weights_of(engine).shape[1:]
            rng = np.random.default_rng(policies)
            weights = some_weights(rng, policies - 1, shape[1], kind).reshape(policies - 1, *shape)
            set_policies(engine, weights)
        result = engine.run_task(task(engine), steps)
        assert engine.agent.num_policies == policies
        ends.append((weights_of(engine), result))
    (filtered, with_filter), (full, without) = ends
    np.testing.assert_array_equal(with_filter.actions, without.actions)
    np.testing.assert_array_equal(with_filter.gpi_counts, without.gpi_counts)
    assert filtered.tobytes() == full.tobytes()
    return with_filter


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize(
    "agent", ["SF", "SF-R", "SFR", "SFR-R (MLP)", "MB SFR", "MB SFR-R", "CSFR", "CSFR-h"]
)
def test_weights_are_those_of_full_gpi_to_the_bit(agent, dtype):
    result = both_ways(agent, 37, lambda engine: next_task(engine, agent), dtype)
    assert (result.gpi_counts > 0).sum() > 3  # many source policies were learned on the way


@pytest.mark.parametrize("policies", sorted({15, 16, 17, 33, FILTER_FROM - 1, FILTER_FROM, FILTER_FROM + 1}))
def test_any_number_of_policies(policies):
    both_ways("SFR", policies, lambda engine: next_task(engine, "SFR"))


@pytest.mark.parametrize("kind", ["usual", "negative", "copies", "zero"])
@pytest.mark.parametrize("rewards", [-1.0, 0.0])
@pytest.mark.parametrize("agent", ["SFR", "SF"])
def test_negative_and_zero_rewards_and_ties(agent, rewards, kind):
    """With rewards below 0 all Q are below 0; with zero rewards all policies tie."""

    def task(engine):
        space = engine.environment.feature_space
        return TableTask(space, np.full(space.size, rewards))

    both_ways(agent, 19, task, kind=kind, steps=150)


# --- Several tasks ----------------------------------------------------------------------------------


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**20),
    K=st.integers(8, 40),
    more=st.integers(0, 20),
    visits=st.lists(st.tuples(st.sampled_from([0.05, 0.32, 0.33, 0.71]), st.booleans()), max_size=12),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_tables_serve_again_in_the_next_task(seed, K, more, visits, dtype):
    """With more policies than before, some of which have changed since; and in the task after that."""
    rng, D = np.random.default_rng(seed), 6
    policies = Policies(some_weights(rng, K, D, "alike"), D, dtype)

    def go_about():
        for x, learns in visits:
            memory, readout = (rng.random(M) < 0.4).astype(float), rng.normal(size=D)
            policies.bounds_and_values(x, 0.42, memory, readout)
            assert policies.all_hold
            if learns:
                policies.update(rng.integers(len(policies.weights)), rng.integers(A), rng.normal(size=(D, S)))

    go_about()
    for _ in range(2):
        seen = policies.tables.seen >= 0
        weights = np.zeros((len(policies.weights) + more, A * D, PADDED), dtype)
        weights[: len(policies.weights)] = policies.weights
        changed = np.union1d(
            rng.integers(0, len(policies.weights), 3), np.arange(len(weights) - more, len(weights))
        )
        weights[changed, :, :S] += rng.normal(size=(len(changed), A * D, S))
        policies.weights = weights
        policies.tables = gpi_filter.continued(policies.tables, len(weights), 100)
        assert ((policies.tables.seen >= 0) == seen).all()
        compiled(gpi_filter.begin_filter)(policies.tables, weights, policies.readout, changed)
        go_about()


def last_tables(engine):
    return engine._last.tables


def test_what_has_changed_between_tasks_is_read_again():
    """Learned by the last task, loaded, or written by hand; bit for bit as without a filter."""
    engines = [engine_of("compiled", "SFR", gpi_filter=uses, dtype=torch.float32) for uses in (True, False)]
    made = []
    for engine in engines:
        rng = np.random.default_rng(0)
        engine.run_task(next_task(engine, "SFR"), 5)
        shape = weights_of(engine).shape[1:]
        set_policies(engine, some_weights(rng, 40, shape[1], "alike").reshape(40, *shape))
        for number in range(5):
            engine.run_task(next_task(engine, "SFR"), 200)
            engine.continue_task(100)
            if engine is engines[0]:
                made.append(last_tables(engine).made_for)
            parameters = engine.agent.policies.parameters["weight"].numpy()
            if number == 1:
                parameters[3, 1] += 0.5 * rng.normal(size=shape[1:])  # one action
            elif number == 2:
                state = engine.state_dict()
                engine.run_task(next_task(engine, "SFR"), 100)
                engine.load_state_dict(state)
    assert made[:3] == [41, 41, 41], "tables are not made anew for every task"
    assert weights_of(engines[0]).tobytes() == weights_of(engines[1]).tobytes()


def test_policies_are_compared_by_what_they_hold():
    """One weight that was changed by hand is noticed, and the last policy is read in any case."""
    engine = engine_of("compiled", "SFR", dtype=torch.float32)
    engine.run_task(next_task(engine, "SFR"), 5)
    shape, rng = weights_of(engine).shape[1:], np.random.default_rng(0)
    set_policies(engine, some_weights(rng, 150, shape[1], "alike").reshape(150, *shape))
    engine.run_task(next_task(engine, "SFR"), 20)
    for k in (0, 63, 64, 149):
        engine.agent.policies.parameters["weight"].numpy()[k, 2, 1, 5] += 1e-3
        agent, before = engine.agent, engine._last
        readouts = before.readouts
        values = engine.family.pack(agent.participants, readouts, 1, before)
        assert values.changed.tolist() == [k, 150]
        weights = weights_of(engine)
        np.testing.assert_array_equal(values.theta[..., :S].reshape(weights.shape), weights)


def test_tables_are_made_anew_where_that_is_better():
    engine = engine_of("compiled", "SFR", dtype=torch.float32)
    engine.run_task(next_task(engine, "SFR"), 5)
    shape, rng = weights_of(engine).shape[1:], np.random.default_rng(0)
    made = []
    for policies in (8, 9, 30, 31, 8):  # as many as before, more by a few, by many; others; fewer
        set_policies(engine, some_weights(rng, policies, shape[1], "usual").reshape(policies, *shape))
        engine.run_task(next_task(engine, "SFR"), 50)
        made.append(last_tables(engine).made_for)
        engine.continue_task(50)
        assert last_tables(engine).made_for == made[-1]
    assert made == [9, 10, 31, 32, 9]
