"""Agents that sum a code of features and fit rewards to it: what a fit says, and what the values are."""

import functools
import warnings

import numpy as np
import pytest
import torch

from sfr_fa.agents import FitWarning, RidgeFit, SharedNetwork, Transition, ValueShape, make_agent
from sfr_fa.agents.cumulants import JointCode
from sfr_fa.feature_codes import CellCode, FourierCode, KernelCode, code_by_name
from sfr_fa.feature_spaces import BoxFeatures
from sfr_fa.interactions import distances_of_random_places, sample_parity_task
from sfr_fa.tasks import FunctionTask, LinearTask, sample_racer_task
from tests.fa.agent_checks import BOX, FIT_POINTS, STATE_DIM, VECTORS, small_agent, some_state
from tests.refusals import refused

CUBE = BoxFeatures(np.zeros(3), np.ones(3))
PLACES = distances_of_random_places(np.random.default_rng(0), 1500)


def test_a_fit_says_what_it_misses_and_warns_where_that_is_much():
    """Tents express sums over dimensions, and no parity; bumps express both."""
    rng = np.random.default_rng(1)
    code = KernelCode.observed(PLACES, 100, rng)
    parity, additive = sample_parity_task(rng), sample_racer_task(rng)
    bumps, tents = (
        small_agent(name, space=CUBE, fit_points=PLACES, **of)
        for name, of in (("SFR-K", {"feature_code": code}), ("CSFR-F", {}))
    )
    assert bumps.readout_rule.known.fit(lambda phi: phi[..., 0]).rms < 0.02, (
        "a function of features is a task"
    )
    bumps.start_task(parity)
    with pytest.warns(FitWarning, match="misses"):
        tents.start_task(parity)
    known = tents.readout_rule.known
    missed = known.fit(parity)
    assert missed.rms > 0.5 * missed.spread > 2 * bumps.readout_rule.known.fit(parity).rms
    assert missed.rms < missed.largest <= 1.5
    # The numbers of the warning are those of a fit to four fifths of the points, on the others.
    held = np.random.default_rng(0).permutation(len(PLACES)) % 5 == 0
    codes, rewards = known.code.encode(PLACES).reshape(len(PLACES), -1), parity.reward(PLACES)
    ridge = np.sqrt(known.ridge) * np.eye(codes.shape[1])
    rows = np.concatenate([codes[~held], ridge]), np.concatenate([rewards[~held], np.zeros(len(ridge))])
    errors = rewards[held] - codes[held] @ np.linalg.lstsq(*rows)[0]
    assert missed.rms == pytest.approx(np.sqrt((errors**2).mean()))
    tents.start_task(additive)


def test_csfr_reads_sums_at_its_bins_and_fits_the_rest():
    product = FunctionTask(lambda phi: phi[..., 0] * phi[..., 1])
    with refused("fit_points"):
        small_agent("CSFR").start_task(product)
    agent = small_agent("CSFR", fit_points=FIT_POINTS)
    with pytest.warns(FitWarning):
        agent.start_task(product)
    task = LinearTask(np.array([1.0, -2.0, 0.5]))
    agent.start_task(task)
    at_bins = np.concatenate([task.component(k, x) for k, x in enumerate(agent.cumulant.centres)])
    np.testing.assert_allclose(agent.readouts[-1].vector, at_bins)
    # Fitted, the parts may be shifted against each other, but not their sum.
    fitted = small_agent("CSFR-F", ridge=1e-9)
    fitted.start_task(task)
    codes = fitted.cumulant.encode(FIT_POINTS).reshape(len(FIT_POINTS), -1)
    np.testing.assert_allclose(codes @ fitted.readouts[0].vector.numpy(), task.reward(FIT_POINTS), atol=1e-6)


@pytest.mark.parametrize(
    "code",
    [
        KernelCode(VECTORS, 0.7),
        CellCode(VECTORS),
        FourierCode.random(3, 7, 0.5, np.random.default_rng(3)),
    ],
    ids=["bumps", "cells", "waves"],
)
def test_values_read_by_any_w_follow_scalar_learning_of_w_z(code):
    """Vector TD along a path, read by w, is scalar TD on the reward w . z: path by path, for every w.

    The greedy action of a target is that of the task; both learners are told it by learning one policy from
    terminal steps and from steps whose next action is forced (one action).
    """
    rng = np.random.default_rng(4)
    settings = {"gamma": 0.8, "epsilon": 0.3, "learning_rate": 0.03, "dtype": torch.float64}
    vector = make_agent("SFR-K", STATE_DIM, 1, BOX, feature_code=code, fit_points=FIT_POINTS, **settings)
    vector.start_task(FunctionTask(lambda phi: code.encode(phi) @ np.ones(code.size)))
    readings = rng.normal(size=(3, code.size))
    scalars = [make_agent("Q", STATE_DIM, 1, **settings) for _ in readings]
    theta = vector.policies.parameters["weight"][0].numpy()
    for w, scalar in zip(readings, scalars, strict=True):
        scalar.start_task(None)
        scalar.policies.parameters["weight"][0].copy_(torch.tensor(np.einsum("d,ads->as", w, theta)[:, None]))
    for _ in range(30):
        state, next_state, phi = some_state(rng), some_state(rng), rng.uniform(BOX.low, BOX.high)
        terminal = bool(rng.random() < 0.2)
        vector.learn(Transition(state, 0, 0.0, phi, next_state, terminal))
        for w, scalar in zip(readings, scalars, strict=True):
            scalar.learn(Transition(state, 0, float(w @ code.encode(phi)), None, next_state, terminal))
    for w, scalar in zip(readings, scalars, strict=True):
        np.testing.assert_allclose(
            np.einsum("d,ads->as", w, theta)[:, None], scalar.policies.parameters["weight"][0], atol=1e-12
        )


def test_a_code_of_ones_own_dimensions_is_all_that_fits():
    for code, place in ((KernelCode(np.eye(2), 1.0), "3"), ("bumps", "KernelCode")):
        with refused("feature_code", place):
            small_agent("SFR-K", feature_code=code)
    agent = small_agent("SFR-K", fit_points=None)
    with refused("fit_points"):
        agent.start_task(LinearTask(np.ones(3)))


@pytest.mark.parametrize("values", [[1.0, 2.0], [1.0, np.nan, 2.0]], ids=["two of three", "NaN"])
def test_a_code_that_does_not_code_is_refused(values):
    class Own:
        size, dimensions = 3, 3

        def encode(self, features):
            return np.broadcast_to(values, (*np.shape(features)[:-1], len(values)))

    with refused("feature_code", "3 finite numbers"):
        small_agent("SFR-K", feature_code=Own())


@pytest.mark.parametrize(
    ("encode", "size", "words"),
    [
        (lambda phi: np.ones(3) / 0, 3, ("finite",)),
        (lambda phi: 1 / 0, 3, ("cannot encode", "division by zero")),
        (lambda phi: torch.ones(3, requires_grad=True), 3, ("cannot encode",)),
        (lambda phi: np.ones((*phi.shape[:-1], 3)), 3.0, ("size", "positive integer")),
        # Only where the agent comes later, not at the corner that is tried.
        (lambda phi: np.full((*phi.shape[:-1], 3), np.nan if phi.any() else 1.0), 3, ("finite",)),
    ],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_code_of_ones_own_that_fails_is_named(encode, size, words):
    class Own:
        dimensions = 3

        def __init__(self):
            self.size = size

        def encode(self, features):
            return encode(np.asarray(features))

    with refused("feature_code", *words):
        agent = small_agent("SFR-K", feature_code=Own())
        agent.start_task(FunctionTask(lambda phi: phi[..., 0]))


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda code: RidgeFit(code.code, PLACES), ("code", "JointCode")),
        (lambda code: RidgeFit(code, PLACES, ridge=-1.0), ("ridge", "positive")),
        (lambda code: RidgeFit(code, PLACES, tolerance=np.nan), ("tolerance", "finite")),
        (lambda code: RidgeFit(code, PLACES[:4]), ("fit_points", "5")),
        (lambda code: RidgeFit(code, 10 + PLACES), ("fit_points", "between")),
        (lambda code: RidgeFit(code, PLACES[:, :2]), ("fit_points", "3 feature dimensions")),
    ],
)
def test_fits_that_cannot_be_made(make, words):
    cumulant = JointCode(CUBE, KernelCode(PLACES[:8], 0.2))
    with refused(*words):
        make(cumulant)


def test_what_was_learned_is_read_by_better_fits_after_loading():
    """Other points and another ridge change how rewards are read, not what the stored weights mean."""
    few, many = (
        small_agent(
            "SFR-K", space=CUBE, feature_code=KernelCode(PLACES[:20], 0.2), fit_points=points, **ridge
        )
        for points, ridge in ((PLACES[:30], {}), (PLACES, {"ridge": 1e-6}))
    )
    task = sample_parity_task(np.random.default_rng(8))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FitWarning)
        few.start_task(task)
        many.load_state_dict(few.state_dict())
        for name, values in few.policies.parameters.items():
            np.testing.assert_array_equal(values, many.policies.parameters[name])
        worse, better = (agent.readout_rule.known.fit(task).vector for agent in (few, many))
    errors = [
        np.square(task.reward(PLACES) - many.cumulant.encode(PLACES) @ vector).mean()
        for vector in (worse, better)
    ]
    assert errors[1] < errors[0]


def test_codes_by_name():
    rng = np.random.default_rng(5)
    assert isinstance(code_by_name("bumps 12")(PLACES, rng), KernelCode)
    cells = code_by_name("cells 9")(PLACES, rng)
    assert isinstance(cells, CellCode)
    assert cells.size == 9
    waves = code_by_name("waves 9")(PLACES, rng)
    assert isinstance(waves, FourierCode)
    assert waves.frequencies.shape == (9, PLACES.shape[1])
    for wrong in ("bumps", "bumps x", "spikes 3", "cells 0", "bumps " + "9" * 5000):
        with refused("bumps 128"):
            code_by_name(wrong)


def test_the_head_of_a_shared_network_learns_at_its_own_rate():
    """Against a network all of whose layers learn alike, the head moves ten times as far, others the same."""
    moves = []
    for rate in (1, 10):
        network = functools.partial(SharedNetwork, hidden=(6, 6), head_rate=rate)
        agent = small_agent("SFR-K", approximator=network)
        agent.start_task(FunctionTask(lambda phi: KernelCode(VECTORS, 0.7).encode(phi)[..., 0]))
        before = {name: value.clone() for name, value in agent.policies.parameters.items()}
        rng = np.random.default_rng(6)
        agent.learn(Transition(some_state(rng), 1, 0.0, VECTORS[1], some_state(rng), False))
        moves.append({name: (agent.policies.parameters[name] - before[name]).numpy() for name in before})
    for name, move in moves[0].items():
        factor = 10 if name.endswith(".2") else 1
        np.testing.assert_allclose(moves[1][name], factor * move, atol=1e-12, err_msg=name)
        assert np.abs(move).max() > 0, name


def test_a_shared_network_is_one_for_all_groups():
    shape = ValueShape(state_dim=4, num_actions=3, groups=3, size=5)
    module = SharedNetwork(shape, np.random.default_rng(7), hidden=(8, 6))
    assert [tuple(weight.shape) for weight in module.weights] == [(1, 8, 4), (1, 6, 8), (1, 45, 6)]
    assert module(torch.ones(2, 4, dtype=torch.float64)).shape == (2, 3, 15)
