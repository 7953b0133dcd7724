"""Learning: closed forms on one state, the path-wise identities, and the same numbers compiled or not."""

from __future__ import annotations

import os
import subprocess
import sys
from fractions import Fraction

import numpy as np
import pytest

from sfr_theory import learning
from sfr_theory.arithmetic import Array, exact_array, fraction, rational
from sfr_theory.checks.model_based import one_pair_path
from sfr_theory.errors import InputError
from sfr_theory.learning import (
    Constant,
    FeatureEstimate,
    Harmonic,
    Path,
    Polynomial,
    SlowDecay,
    learn,
    learn_psi,
    learn_q,
    learn_task,
    learn_tasks,
    learn_xi,
    path_of_visits,
    sample_path,
    sweeps,
    uniform_behaviour,
    uniform_model,
)
from sfr_theory.mdp import FiniteMDP
from sfr_theory.operators import q_from_xi
from sfr_theory.random_mdp import Shape, dyadic, garnet
from sfr_theory.solve import optimal
from tests.refusals import refused


def random_mdp(seed: int, gamma: float = 0.75, shape: Shape | None = None) -> FiniteMDP:
    return garnet(np.random.default_rng(seed), 1, shape or Shape(4, 3, 4), gamma)[0]


# --- Analytic answers ---------------------------------------------------------------------------


def test_one_state_closed_form() -> None:
    """One pair with reward 1 and constant step alpha: Q_n = (1 - (1 - alpha (1 - g))^n) / (1 - g)."""
    alpha, gamma, steps = rational("1/3"), rational("3/4"), 20
    path = one_pair_path(np.zeros(steps, dtype=int))
    cumulants = exact_array([[1]] * steps)
    zero, one = exact_array([[[0]]]), exact_array([1])
    step_sizes = Constant(alpha)(path.visit_number)
    q = learn(path, cumulants, one, step_sizes, gamma, zero, np.arange(steps + 1))[:, 0, 0, 0]
    for n in range(steps + 1):
        assert q[n] == (1 - (1 - alpha * (1 - gamma)) ** n) / (1 - gamma)


def test_harmonic_steps_average_the_observations() -> None:
    """At gamma = 0 with alpha = 1/n, xi is the empirical distribution of the features."""
    features = [0, 2, 2, 1, 2, 0]
    path = one_pair_path(np.array(features))
    mdp = FiniteMDP([[[["1/3", "1/3", "1/3"]]]], 0)
    estimates = FeatureEstimate.indicator(mdp).along(path)
    xi = learn_xi(
        mdp, path, exact_array([1, 5, -2]), estimates, Harmonic()(exact_array(path.visit_number)),
        exact_array(np.full((1, 1, 3), 7)), np.array([6]),
    )  # fmt: skip
    assert [fraction(x) for x in xi[0, 0, 0]] == [Fraction(2, 6), Fraction(1, 6), Fraction(3, 6)]


def test_bootstrap_takes_the_greedy_action_of_the_next_state_before_the_update() -> None:
    """Two states: the target is read in the next state at its best action under R."""
    path = Path(np.array([0]), np.array([1]), np.array([1]), np.array([0]))
    initial = np.zeros((2, 2, 2))
    initial[1, 0] = [0.0, 3.0]  # value -3
    initial[1, 1] = [1.0, 2.0]  # value -1: greedy
    xi = learn(
        path, np.array([[1.0, 0.0]]), np.array([1.0, -1.0]), np.array([0.5]), 0.5, initial, np.array([0, 1])
    )
    assert np.array_equal(xi[0], initial)
    assert np.array_equal(xi[1, 0, 1], 0.5 * (np.array([1.0, 0.0]) + 0.5 * initial[1, 1]))
    assert np.array_equal(
        np.delete(xi[1].reshape(4, 2), 1, axis=0), np.delete(initial.reshape(4, 2), 1, axis=0)
    )


def test_feature_estimates() -> None:
    path = Path(np.array([0, 0, 0]), np.array([0, 1, 0]), np.array([0, 0, 0]), np.array([1, 0, 0]))
    mdp = FiniteMDP([[[["1/4", "3/4"]], [["1/2", "1/2"]]]], "1/2")
    known = FeatureEstimate.known(mdp).along(path)
    assert np.array_equal(known, mdp.feature_probability[0, [0, 1, 0]])
    assert np.array_equal(FeatureEstimate.indicator(mdp).along(path), exact_array([[0, 1], [1, 0], [1, 0]]))
    model = FeatureEstimate.one_step_model(uniform_model(mdp), rational("1/3")).along(path)
    # (1/2, 1/2) -> (1/3, 2/3) after feature 1 -> (5/9, 4/9) after feature 0; the other pair keeps its own.
    assert np.array_equal(model, exact_array([["1/3", "2/3"], ["2/3", "1/3"], ["5/9", "4/9"]]))


def test_schedules() -> None:
    n = np.arange(1, 6)
    assert np.allclose(Harmonic()(n), 1 / n)
    assert np.allclose(Harmonic(10)(n), 10 / (9 + n))
    assert np.allclose(Polynomial(0.75)(n), n**-0.75)
    assert np.allclose(Polynomial(1)(n), 1 / n)
    assert np.allclose(SlowDecay(2.0, 0.25)(n), 2 * n**-0.25)
    assert not SlowDecay(0.0, 0.25)(n).any()
    assert [Constant(value)(n)[0] for value in (0, 1)] == [0, 1]
    assert np.array_equal(Constant(0.25)(n), [0.25] * 5)
    assert [fraction(x) for x in Harmonic()(exact_array([1, 4]))] == [1, Fraction(1, 4)]


def test_visit_numbers_count_each_pair() -> None:
    rng = np.random.default_rng(3)
    mdp = random_mdp(3)
    path = sample_path(mdp, uniform_behaviour(mdp), 500, rng)
    seen: dict[tuple[int, int], int] = {}
    for t in range(len(path)):
        pair = int(path.states[t]), int(path.actions[t])
        seen[pair] = seen.get(pair, 0) + 1
        assert path.visit_number[t] == seen[pair]
    assert np.array_equal(path.clock, np.arange(1, 501))


# --- Paths --------------------------------------------------------------------------------------


def test_paths_follow_the_kernel() -> None:
    """Frequencies of (s', phi) given (s, a): each cell within 5 standard deviations of a binomial."""
    mdp = random_mdp(1)
    rng = np.random.default_rng(11)
    walked = sample_path(mdp, uniform_behaviour(mdp), 100_000, rng, restart=0.2)
    assert ((walked.states[1:] != walked.next_states[:-1]).mean() > 0.1).all()  # restarts happen
    for path in (walked, sweeps(mdp, 8_000, rng)):
        counts = np.zeros(mdp.kernel.shape)
        np.add.at(counts, (path.states, path.actions, path.next_states, path.features), 1)
        visits = counts.sum(axis=(2, 3), keepdims=True)
        assert visits.min() > 1000
        deviation = np.sqrt(visits * mdp.kernel * (1 - mdp.kernel))
        assert (np.abs(counts - visits * mdp.kernel) <= 5 * deviation + 1e-9).all()


def test_rounding_leaves_no_gap_above_the_last_outcome() -> None:
    """Ten times 0.1 add up to less than 1 in float64; another action has eleven outcomes."""
    kernel = np.zeros((1, 2, 1, 11))
    kernel[0, 0, 0, :10] = 0.1
    kernel[0, 1] = 1 / 11
    assert kernel[0, 0].cumsum()[-1] < 1
    cumulative, *_ = learning._outcomes(FiniteMDP(kernel, 0.5))
    assert cumulative[0, 0, 8] < 0.95
    assert cumulative[0, 0, 9] == cumulative[0, 0, 10] == cumulative[0, 1, 10] == 1


@pytest.mark.parametrize("restart", [0.0, 0.3, 1.0])
def test_a_path_uses_its_random_numbers_in_order(restart: float) -> None:
    """Deterministic MDP: action by the first number, restart if the third is below, at the fourth."""
    mdp = garnet(np.random.default_rng(1), 1, Shape(5, 3, 4), 0.5, branching=1)[0]
    behaviour = np.tile([0.5, 0.25, 0.25], (5, 1))
    path = sample_path(mdp, behaviour, 200, np.random.default_rng(4), start=1, restart=restart)
    assert sample_path(mdp, behaviour, 1, np.random.default_rng(0)).states[0] == 0
    s = 1
    for t, (choice, _, jump, where) in enumerate(np.random.default_rng(4).random((200, 4))):
        a = 0 if choice < 0.5 else 1 if choice < 0.75 else 2
        [(after, feature)] = np.argwhere(mdp.kernel[s, a] == 1)
        step = (path.states, path.actions, path.next_states, path.features)
        assert [int(array[t]) for array in step] == [s, a, after, feature]
        s = int(where * 5) if jump < restart else after
    pairs = path_of_visits(mdp, path.states, path.actions, np.random.default_rng(0))
    assert np.array_equal(pairs.next_states, path.next_states)
    assert np.array_equal(pairs.features, path.features)


# --- Identities ---------------------------------------------------------------------------------


def all_estimates(mdp: FiniteMDP) -> list[FeatureEstimate]:
    beta = rational("1/5") if mdp.is_exact else 0.2
    model = FeatureEstimate.one_step_model(uniform_model(mdp), beta)
    return [FeatureEstimate.known(mdp), FeatureEstimate.indicator(mdp), model]


@pytest.mark.parametrize("seed", range(4))
def test_xi_q_and_psi_are_one_algorithm_exactly(seed: int) -> None:
    rng = np.random.default_rng(seed)
    mdp = random_mdp(seed).to_exact()
    path = sample_path(mdp, uniform_behaviour(mdp), 80, rng, restart=0.1)
    weights = exact_array(rng.integers(-4, 5, mdp.linear_features.shape[1]))
    reward = (mdp.linear_features * weights).sum(axis=1)
    step_sizes = Harmonic()(exact_array(path.visit_number))
    every = np.arange(81)
    initial = exact_array(rng.integers(-3, 4, mdp.feature_probability.shape))
    initial_psi = (initial[..., None] * mdp.linear_features).sum(axis=-2)
    for estimate in all_estimates(mdp):
        p = estimate.along(path)
        xi = learn_xi(mdp, path, reward, p, step_sizes, initial, every)
        psi = learn_psi(mdp, path, weights, p, step_sizes, initial_psi, every)
        q = learn_q(mdp, path, reward, p, step_sizes, q_from_xi(initial, reward), every)
        assert np.array_equal(q_from_xi(xi, reward), q)
        assert np.array_equal((xi[..., None] * mdp.linear_features).sum(axis=-2), psi)
        assert not np.array_equal(q[-1], q[0])


def reference_q_learning(path: Path, rewards: Array, step_sizes: Array, gamma: float, q: Array) -> Array:
    """Q-learning as a textbook writes it, apart from the package."""
    q = q.copy()
    for t in range(len(path)):
        s, a, after = path.states[t], path.actions[t], path.next_states[t]
        q[s, a] += step_sizes[t] * (rewards[t] + gamma * q[after].max() - q[s, a])
    return q


def test_the_q_twin_is_textbook_q_learning() -> None:
    rng = np.random.default_rng(5)
    mdp = random_mdp(5)
    reward = dyadic(rng, (4,))
    path = sample_path(mdp, uniform_behaviour(mdp), 3000, rng, restart=0.1)
    step_sizes = Harmonic(4)(path.visit_number)
    p = FeatureEstimate.indicator(mdp).along(path)
    xi = learn_xi(mdp, path, reward, p, step_sizes, np.zeros((4, 3, 4)), np.array([3000]))[0]
    textbook = reference_q_learning(path, reward[path.features], step_sizes, mdp.gamma, np.zeros((4, 3)))
    # 3000 updates, each rounding values of size <= 1/(1-gamma) = 4 a few times.
    tolerance = 3000 * 8 * 4 * np.finfo(float).eps
    assert np.abs(xi @ reward - textbook).max() < tolerance


def test_learning_reaches_the_optimum() -> None:
    """Deterministic MDP, all pairs swept with step size 1: value iteration, error <= gamma^n ||Q*||."""
    mdp = garnet(np.random.default_rng(8), 1, Shape(5, 2, 3), 0.5, branching=1)[0]
    reward = np.array([1.0, -0.5, 0.25])
    path = sweeps(mdp, 40, np.random.default_rng(0))
    p = FeatureEstimate.indicator(mdp).along(path)
    xi = learn_xi(mdp, path, reward, p, np.ones(len(path)), np.zeros((5, 2, 3)), np.array([len(path)]))[0]
    q_star = optimal(mdp, reward).q
    assert np.abs(xi @ reward - q_star).max() <= 0.5**40 * np.abs(q_star).max() + 1e-15


# --- Several tasks ------------------------------------------------------------------------------


def replay(run_of, mdp, task, values, readouts, embedding, schedules, estimate, uniforms, epsilon, restart):
    """algo:MBXI on a deterministic MDP: policies 0..task take part, and each counts its own visits."""
    current_step, source_step = schedules
    values, model = values.copy(), estimate.initial.copy()
    visits, model_visits = np.zeros(values.shape[:3], dtype=int), np.zeros(values.shape[1:3], dtype=int)
    s = 0
    for t, (explore, other, _, jump, where) in enumerate(uniforms):
        tables = np.stack([values[k] @ readouts[task] for k in range(task + 1)])
        source, a = np.unravel_index(tables[:, s].argmax(), tables[:, s].shape)
        if explore < epsilon:
            a = int(other * mdp.num_actions)
        [(after, feature)] = np.argwhere(mdp.kernel[s, a] == 1)
        step = (run_of.path.states, run_of.path.actions, run_of.path.next_states, run_of.path.features)
        assert [int(array[t]) for array in step] == [s, a, after, feature]
        assert run_of.sources[t] == source
        model_visits[s, a] += 1
        beta = estimate.beta(model_visits[s, a])
        model[s, a] = (1 - beta) * model[s, a] + beta * np.eye(mdp.num_features)[feature]
        visits[task, s, a] += 1
        tables = np.stack([values[k] @ readouts[task] for k in range(task + 1)])
        _, best = np.unravel_index(tables[:, after].argmax(), tables[:, after].shape)
        alpha = current_step(visits[task, s, a])
        target = model[s, a] @ embedding + mdp.gamma * values[task, after, best]
        values[task, s, a] = (1 - alpha) * values[task, s, a] + alpha * target
        if source != task:
            visits[source, s, a] += 1
            own = (values[source, after] @ readouts[source]).argmax()
            alpha = source_step(visits[source, s, a])
            target = model[s, a] @ embedding + mdp.gamma * values[source, after, own]
            values[source, s, a] = (1 - alpha) * values[source, s, a] + alpha * target
        s = int(where * mdp.num_states) if jump < restart else after
    return values, visits, model, model_visits


@pytest.mark.parametrize(
    ("task", "epsilon", "restart"), [(0, 0.3, 0.1), (2, 0.3, 0.2), (1, 0.0, 0.3), (3, 1.0, 0.0)]
)
def test_a_task_by_the_listing(task: int, epsilon: float, restart: float) -> None:
    """Three step sizes that differ; the policies after `task` would win every maximum, but take no part."""
    mdp = garnet(np.random.default_rng(3), 1, Shape(4, 3, 4), 0.5, branching=1)[0]
    rng = np.random.default_rng(task)
    values, readouts, embedding = (
        rng.normal(size=(5, 4, 3, 2)),
        rng.normal(size=(5, 2)),
        rng.normal(size=(4, 2)),
    )
    values[task + 1 :] = 100 * np.sign(readouts[task])
    schedules = (Harmonic(3), Polynomial(0.9))
    estimate = FeatureEstimate.one_step_model(uniform_model(mdp), lambda count: 1 / (count + 1.0))
    run = learn_task(
        mdp, task, values, readouts, embedding, estimate, *schedules, 60, epsilon,
        np.random.default_rng(5), restart=restart,
    )  # fmt: skip
    uniforms = np.random.default_rng(5).random((60, 5))
    expected = replay(
        run, mdp, task, values, readouts, embedding, [lambda n: 3 / (n + 2), lambda n: float(n) ** -0.9],
        estimate, uniforms, epsilon, restart,
    )  # fmt: skip
    for found, right in zip((run.values, run.visits, run.model, run.model_visits), expected, strict=True):
        np.testing.assert_allclose(found, right, rtol=1e-12, atol=1e-13)
    assert len(set(run.sources.tolist())) > 1 or task == 0
    assert (run.sources <= task).all()
    assert np.array_equal(run.values[task + 1 :], values[task + 1 :])


def test_outcomes_of_a_task_use_a_random_number_of_their_own() -> None:
    """The third of five: the first outcome, in the order of probability, whose cumulative exceeds it."""
    mdp = random_mdp(3)
    run = learn_task(
        mdp, 0, np.zeros((1, 4, 3, 4)), np.ones((1, 4)), np.eye(4), FeatureEstimate.indicator(mdp),
        Constant(0.5), Constant(0), 80, 0.5, np.random.default_rng(5), restart=0.5,
    )  # fmt: skip
    for t, (_, _, uniform, _, _) in enumerate(np.random.default_rng(5).random((80, 5))):
        row = mdp.kernel[run.path.states[t], run.path.actions[t]].reshape(-1)
        order = np.argsort(-row, kind="stable")
        chosen = order[(row[order].cumsum() <= uniform).sum()]
        assert divmod(chosen, 4) == (run.path.next_states[t], run.path.features[t])


def test_a_task_in_fractions_is_the_task_in_floats() -> None:
    mdp = random_mdp(1, gamma=0.5)
    rng = np.random.default_rng(1)
    values, readouts = dyadic(rng, (2, 4, 3, 4)), dyadic(rng, (2, 4))
    runs = []
    for m, convert in ((mdp, lambda x: x), (mdp.to_exact(), exact_array)):
        estimate = FeatureEstimate.one_step_model(uniform_model(m), rational("1/4") if m.is_exact else 0.25)
        runs.append(learn_task(
            m, 1, convert(values), convert(readouts), convert(np.eye(4)), estimate, Harmonic(2), Harmonic(4),
            40, 0.25, np.random.default_rng(0), restart=0.1,
        ))  # fmt: skip
    assert np.array_equal(runs[0].path.actions, runs[1].path.actions)
    assert runs[1].values.dtype == object
    np.testing.assert_allclose(runs[1].values.astype(float), runs[0].values, rtol=1e-12, atol=1e-14)


def test_new_task_starts_from_the_values_of_the_last() -> None:
    mdp = random_mdp(6)
    readouts = dyadic(np.random.default_rng(6), (2, 4))
    runs = learn_tasks(
        mdp, readouts, np.zeros((4, 3, 4)), np.eye(4), FeatureEstimate.indicator(mdp), Constant(0.5), 1, 0.0,
        np.random.default_rng(0),
    )  # fmt: skip
    first = runs[0].values[0]
    assert first.any()
    changed = (runs[1].values[1] != first).any(axis=-1)
    assert changed.sum() <= 1  # one step later only one pair of the copy has changed


def test_a_run_in_pieces_is_the_run_in_one() -> None:
    """Counts of visits and the model go on where the run before stopped."""
    mdp = FiniteMDP(np.eye(2)[None, :, None, :], 0.5)
    estimate = FeatureEstimate.one_step_model(np.full((1, 2, 2), 0.5), 0.25)

    def run(values: Array, steps: int, before: learning.TaskRun | None = None) -> learning.TaskRun:
        readouts = np.array([[1.0, 0.0]])
        return learn_task(
            mdp, 0, values, readouts, np.eye(2), estimate, Harmonic(2), Constant(0), steps, 0.0,
            np.random.default_rng(0), before=before,
        )  # fmt: skip

    start = np.zeros((1, 1, 2, 2))
    whole, half = run(start, 10), run(start, 5)
    assert np.array_equal(run(half.values, 5, half).values, whole.values)


# --- Compiled or not ----------------------------------------------------------------------------

SCRIPT = """
import hashlib
import numpy as np
from sfr_theory import learning as L
from sfr_theory.random_mdp import Shape, garnet
rng = np.random.default_rng(1)
mdp = garnet(rng, 1, Shape(6, 3, 5), 0.9)[0]
reward = rng.normal(size=5)
path = L.sample_path(mdp, L.uniform_behaviour(mdp), 4000, rng, restart=0.1)
p = L.FeatureEstimate.one_step_model(L.uniform_model(mdp), 0.1).along(path)
steps = L.Polynomial(0.7)(path.visit_number)
xi = L.learn_xi(mdp, path, reward, p, steps, rng.normal(size=(6, 3, 5)), np.arange(0, 4001, 500))
model = L.FeatureEstimate.one_step_model(L.uniform_model(mdp), 0.1)
initial = rng.normal(size=(6, 3, 5))
last = L.learn_tasks(
    mdp, rng.normal(size=(3, 5)), initial, np.eye(5), model, L.Harmonic(5), 1500, 0.2, rng, 0.1
)[-1]
arrays = (path.states, path.features, p, xi, last.values, last.sources)
print(L._compiled(L._walk) is L._walk, hashlib.sha256(b"".join(map(bytes, arrays))).hexdigest())
"""


@pytest.mark.slow
def test_interpreted_the_same_numbers_bit_for_bit() -> None:
    (compiled, digest), (interpreted, other) = (
        subprocess.run(
            [sys.executable, "-c", SCRIPT], check=True, capture_output=True, text=True,
            env=os.environ | {"NUMBA_DISABLE_JIT": disabled},
        ).stdout.split()
        for disabled in "01"
    )  # fmt: skip
    assert (compiled, interpreted) == ("False", "True")
    assert digest == other


# --- Bad input ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Polynomial(0.5), "omega is 0.5"),
        (lambda: Polynomial(1.1), "omega is 1.1"),
        (lambda: Harmonic(0), "horizon is 0"),
        (lambda: Harmonic(-1), "horizon is -1"),
        (lambda: Constant(1.5), "must lie in"),
        (lambda: Constant(-0.5), "must lie in"),
        (lambda: FeatureEstimate.one_step_model(np.ones((1, 1, 1)), 0), "beta is 0"),
        (lambda: FeatureEstimate.one_step_model(np.ones((1, 1, 1)), 1.5), "beta is 1.5"),
        (lambda: one_pair_path(np.array([])), "path.states"),
        (lambda: Path(np.array([0]), np.array([0]), np.array([0]), np.array([0, 1])), "one length"),
        (lambda: Path(np.array([-1]), np.array([0]), np.array([0]), np.array([0])), "non-negative"),
        (lambda: Path(np.array([0]), np.array([0.5]), np.array([0]), np.array([0])), "path.actions"),
        (lambda: Path(np.array([0]), np.array([0]), np.array([[0]]), np.array([0])), "path.next_states"),
    ],
)
def test_bad_arguments_are_named(call: object, message: str) -> None:
    with pytest.raises(InputError, match=message):
        call()  # type: ignore[operator]


def test_bad_learning_input_is_named() -> None:
    mdp = random_mdp(0)
    rng = np.random.default_rng(0)
    path = path_of_visits(mdp, np.array([0, 1]), np.array([0, 2]), rng)
    good = {
        "path": path, "cumulants": np.zeros((2, 4)), "readout": np.ones(4), "step_sizes": np.ones(2),
        "gamma": 0.5, "initial": np.zeros((4, 3, 4)), "checkpoints": np.array([2]),
    }  # fmt: skip
    learn(**good)  # type: ignore[arg-type]
    for change, message in (
        ({"checkpoints": np.array([3])}, "checkpoint 3"),
        ({"checkpoints": np.array([2, 1])}, "increasing"),
        ({"checkpoints": np.array([-1, 1])}, "increasing"),
        ({"checkpoints": np.array([[1, 2]])}, "increasing"),
        ({"cumulants": np.zeros((2, 3))}, "cumulants has shape"),
        ({"readout": np.ones(3)}, "initial has shape"),
        ({"step_sizes": np.array([0.5, 1.5])}, "step_sizes"),
        ({"step_sizes": np.array([-0.5, 0.5])}, "step_sizes"),
        ({"step_sizes": np.array([0.5])}, "step_sizes"),
        ({"initial": np.zeros((4, 4))}, "initial has shape"),
        ({"initial": np.zeros((1, 3, 4))}, "a state beyond"),
        ({"initial": np.zeros((4, 2, 4))}, "an action beyond"),
    ):
        with pytest.raises(InputError, match=message):
            learn(**(good | change))  # type: ignore[arg-type]
    late = Path(np.array([0]), np.array([0]), np.array([3]), np.array([0]))
    with refused("a state beyond"):
        learn(late, np.zeros((1, 4)), np.ones(4), np.ones(1), 0.5, np.zeros((3, 3, 4)), np.array([1]))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"start": 4}, "start"),
        ({"start": -1}, "start"),
        ({"steps": 0}, "steps"),
        ({"restart": 1.5}, "restart"),
        ({"restart": -0.5}, "restart"),
        ({"behaviour": np.ones((4, 3))}, "behaviour"),
        ({"behaviour": np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [0.5, 0.5, 1e-6]])}, "behaviour"),
        ({"behaviour": np.array([[1.0, 0, 0], [0, 1, 0], [0, 0, 1], [1.5, -0.5, 0]])}, "behaviour"),
        ({"behaviour": np.full((4, 2), 0.5)}, "behaviour"),
    ],
)
def test_bad_paths_are_named(change: dict[str, object], place: str) -> None:
    mdp = random_mdp(0)
    good = {"behaviour": uniform_behaviour(mdp), "steps": 1, "start": 3, "restart": 1.0}
    assert len(sample_path(mdp, rng=np.random.default_rng(0), **good)) == 1
    with pytest.raises(InputError, match=place):
        sample_path(mdp, rng=np.random.default_rng(0), **(good | change))


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"epsilon": -0.1}, "epsilon"),
        ({"epsilon": 1.1}, "epsilon"),
        ({"task": 2}, "task"),
        ({"task": -1}, "task"),
        ({"values": np.zeros((2, 4, 3, 3))}, "values"),
        ({"values": np.zeros((3, 4, 3, 4))}, "values"),
        ({"embedding": np.eye(3)}, "embedding"),
        ({"start": 4}, "start"),
    ],
)
def test_bad_tasks_are_named(change: dict[str, object], place: str) -> None:
    mdp = random_mdp(0)
    good = {
        "task": 1, "values": np.zeros((2, 4, 3, 4)), "readouts": np.ones((2, 4)), "embedding": np.eye(4),
        "estimate": FeatureEstimate.indicator(mdp), "current_step": Constant(1), "source_step": Constant(0),
        "steps": 1, "epsilon": 1.0, "start": 3,
    }  # fmt: skip
    learn_task(mdp, rng=np.random.default_rng(0), **good)
    with pytest.raises(InputError, match=place):
        learn_task(mdp, rng=np.random.default_rng(0), **(good | change))
