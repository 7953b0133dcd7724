"""Tabular SFRQ-learning with its Q-learning and SF-learning twins: one recursion.

All three learn the discounted sum of a *cumulant* c_t in R^D and value it by a *readout* v in R^D.
After the transition (s_t, a_t, phi_t, s_{t+1}), with step size alpha_t, only the visited pair changes:

    values(s_t, a_t) += alpha_t ( c_t + gamma values(s_{t+1}, abar) - values(s_t, a_t) )
    abar = argmax over a of v . values(s_{t+1}, a)

    SFRQ-learning (eqn:xi_learning)  values = xi,   c_t = p^_t,            v = R,   D = F
    SF-learning                      values = psi,  c_t = Phi^T p^_t,      v = w,   D = n
    Q-learning (eq:q_learning)       values = Q,    c_t = R . p^_t,        v = 1,   D = 1

Here p^_t in R^F estimates p(. | s_t, a_t) and c_t = E^T p^_t with an *embedding* E in R^{F x D}: the
identity, the feature vectors Phi, or R as a column. The recursion is linear in (c, values) once abar is
chosen, and abar depends on v . values only. So on one path R . xi_t *is* the Q-learning iterate, and
Phi^T xi_t the SF iterate where R = Phi w: exactly in rational arithmetic, to round-off in float64.

The three estimates of the paper are one mechanism (eq:sf_model_update): at the n-th visit of a pair

    p~ <- p~ + beta_n (indicator of phi_t - p~),        p^_t = p~ after the update.

    known p          p~_0 = p(. | s, a),  beta = 0
    indicator        p~_0 = 0,            beta = 1
    one-step model   p~_0 anything,       beta in (0, 1]

**Step sizes.** Convergence of Q_t = v . values to Q* (Theorem 1, th:convergence-xi-learning) needs, for
*each pair* (s, a) separately, 0 <= alpha <= 1, sum alpha = infinity, sum alpha^2 < infinity (Robbins and
Monro) over the visits of that pair. `Harmonic` and `Polynomial` on `Path.visit_number` satisfy it when
each pair is visited for ever; `Constant` does not, and neither does any schedule on the global clock.

**Ties.** Where greedy actions tie, xi may swing between optimal policies for ever. `TabularHysteresis` keeps
the action that was bootstrapped on in a state until another is better by more than tau_t; with tau_t -> 0
slowly, xi converges to the xi of one optimal policy (T1-H in docs/theory.md). Without it the first of the
greedy actions is taken, as in the paper. The kept action belongs to the state s', not to the pair (s, a) that
is updated: all pairs must follow one policy for their limit to be the xi of a policy.

**Several tasks** (algo:MFXI, algo:MBXI): `learn_task`. While task i is learned, actions are GPI actions
over the policies 1..i, policy i bootstraps on the GPI action of s_{t+1}, and the source policy c that GPI
chose at s_t is updated towards its own greedy action under its own readout. The listings clip xi at 0
when it is read out, which matters for function approximation; here nothing is clipped.

**Arithmetic and speed.** Each loop is written once, in plain Python on arrays or nested lists. On float64
arrays Numba compiles it; under NUMBA_DISABLE_JIT the same function runs as it stands and gives the same
numbers bit for bit, some hundred times slower. On rational arrays (`sfr_theory.arithmetic`) it runs as it
stands and is exact.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from sfr_theory.arithmetic import Array, Number, exact_array, float_array, is_exact, matmul, rational
from sfr_theory.compiled import stored
from sfr_theory.errors import InputError
from sfr_theory.mdp import FiniteMDP

Integers = NDArray[np.int64]


# --- Loops: plain Python that Numba can compile -------------------------------------------------


def _readout_value(values: Array, s: int, a: int, readout: Array) -> Any:
    """v . values(s, a), summed from the first entry on."""
    row = values[s][a]
    total = readout[0] * row[0]
    for d in range(1, len(readout)):
        total += readout[d] * row[d]
    return total


def _greedy_action(values: Array, s: int, readout: Array) -> int:
    """The first of the best actions."""
    best_action, best = 0, _readout_value(values, s, 0, readout)
    for a in range(1, len(values[s])):
        value = _readout_value(values, s, a, readout)
        if value > best:
            best_action, best = a, value
    return best_action


def _kept_action(values: Array, s: int, readout: Array, kept: Integers, threshold: Any) -> int:
    """The action kept in s, replaced by the greedy one if that is better by more than the threshold.

    A negative threshold keeps nothing: the greedy action.
    """
    best = _greedy_action(values, s, readout)
    gain = _readout_value(values, s, best, readout) - _readout_value(values, s, kept[s], readout)
    if gain > threshold:
        kept[s] = best
    return kept[s]


def _gpi_choice(stored: Array, policies: int, s: int, readout: Array) -> tuple[int, int]:
    """The first of the best (policy, action) pairs among the first `policies` stored values."""
    best_policy, best_action, best = 0, 0, _readout_value(stored[0], s, 0, readout)
    for k in range(policies):
        for a in range(len(stored[k][s])):
            value = _readout_value(stored[k], s, a, readout)
            if value > best:
                best_policy, best_action, best = k, a, value
    return best_policy, best_action


def _td_update(
    values: Array, s: int, a: int, cumulant: Array, next_s: int, next_a: int, step: Any, gamma: Any
) -> None:
    """values(s, a) += step (cumulant + gamma values(s', a') - values(s, a))."""
    row, next_row = values[s][a], values[next_s][next_a]
    for d in range(len(cumulant)):
        row[d] += step * (cumulant[d] + gamma * next_row[d] - row[d])


def _model_update(model: Array, s: int, a: int, feature: int, beta: Any) -> None:
    """p~(s, a) += beta (indicator of the feature - p~(s, a)) (eq:sf_model_update)."""
    row = model[s][a]
    for f in range(len(row)):
        observed = 1 if f == feature else 0
        row[f] += beta * (observed - row[f])


def _copy(source: Array, target: Array) -> None:
    """target[...] = source; Numba takes seconds to compile the assignment of a whole array."""
    for s in range(len(source)):
        for a in range(len(source[s])):
            for d in range(len(source[s][a])):
                target[s][a][d] = source[s][a][d]


def _first_above(cumulative: Array, uniform: float) -> int:
    """Inverse of a cumulative distribution: the first index whose entry exceeds a uniform number."""
    k = 0
    while k < len(cumulative) - 1 and cumulative[k] <= uniform:
        k += 1
    return k


_HELPERS = (
    _readout_value,
    _greedy_action,
    _kept_action,
    _gpi_choice,
    _td_update,
    _model_update,
    _copy,
    _first_above,
)


@functools.cache
def _compiled(loop: Callable[..., None]) -> Callable[..., None]:
    """The loop compiled by Numba, or the loop itself under NUMBA_DISABLE_JIT."""
    from numba.extending import register_jitable

    for helper in _HELPERS:
        register_jitable(helper)
    return stored(loop)


def _execute(loop: Callable[..., None], *arguments: Any) -> None:
    """Run a loop on arrays, some of which it fills."""
    exact = any(isinstance(argument, np.ndarray) and is_exact(argument) for argument in arguments)
    runner = loop if exact else _compiled(loop)
    if runner is not loop:
        runner(*arguments)
        return
    # Python is several times faster on nested lists than on arrays, and its floats are the same float64.
    lists = [argument.tolist() if isinstance(argument, np.ndarray) else argument for argument in arguments]
    loop(*lists)
    for argument, filled in zip(arguments, lists, strict=True):
        if isinstance(argument, np.ndarray) and argument.flags.writeable:
            argument[...] = filled


def _walk(
    cumulative_behaviour: Array,
    cumulative: Array,
    outcome_state: Integers,
    outcome_feature: Integers,
    restart: float,
    uniforms: Array,
    states: Integers,
    actions: Integers,
    next_states: Integers,
    features: Integers,
) -> None:
    """Fill a path; states[0] is given, `uniforms` holds four numbers per step."""
    count = len(outcome_state)
    s = states[0]
    for t in range(len(states)):
        uniform = uniforms[t]
        a = _first_above(cumulative_behaviour[s], uniform[0])
        outcome = _first_above(cumulative[s][a], uniform[1])
        states[t], actions[t] = s, a
        next_states[t], features[t] = outcome_state[s][a][outcome], outcome_feature[s][a][outcome]
        s = next_states[t]
        if uniform[2] < restart:
            s = int(uniform[3] * count)


def _follow_model(
    states: Integers, actions: Integers, features: Integers, beta: Array, model: Array, estimates: Array
) -> None:
    """The one-step model after each step of a path."""
    for t in range(len(states)):
        s, a = states[t], actions[t]
        _model_update(model, s, a, features[t], beta[t])
        row, estimate = model[s][a], estimates[t]
        for f in range(len(row)):
            estimate[f] = row[f]


def _follow_path(
    states: Integers,
    actions: Integers,
    next_states: Integers,
    cumulants: Array,
    readout: Array,
    step_sizes: Array,
    gamma: Any,
    thresholds: Array,
    kept: Integers,
    values: Array,
    checkpoints: Integers,
    snapshots: Array,
) -> None:
    """The recursion of the module's text along a path; `values` is updated in place."""
    saved = 0
    for t in range(len(states) + 1):
        while saved < len(checkpoints) and checkpoints[saved] == t:
            _copy(values, snapshots[saved])
            saved += 1
        if t < len(states):
            next_a = _kept_action(values, next_states[t], readout, kept, thresholds[t])
            _td_update(
                values, states[t], actions[t], cumulants[t], next_states[t], next_a, step_sizes[t], gamma
            )


def _learn_online(
    task: int,
    stored: Array,
    visits: Integers,
    readouts: Array,
    model: Array,
    model_visits: Integers,
    embedding: Array,
    current_steps: Array,
    source_steps: Array,
    model_steps: Array,
    cumulative: Array,
    outcome_state: Integers,
    outcome_feature: Integers,
    gamma: Any,
    epsilon: float,
    restart: float,
    uniforms: Array,
    states: Integers,
    actions: Integers,
    next_states: Integers,
    features: Integers,
    sources: Integers,
) -> None:
    """One task of algo:MFXI / algo:MBXI; stored values, model and counts are updated in place."""
    count, choices = len(outcome_state), len(outcome_state[0])
    cumulant = readouts[0].copy()
    s = states[0]
    for t in range(len(states)):
        uniform = uniforms[t]
        source, a = _gpi_choice(stored, task + 1, s, readouts[task])
        if uniform[0] < epsilon:
            a = int(uniform[1] * choices)
        outcome = _first_above(cumulative[s][a], uniform[2])
        next_s, feature = outcome_state[s][a][outcome], outcome_feature[s][a][outcome]

        # The model learns first, then it is used (appendix on MB SFRQ-learning).
        model_visits[s][a] += 1
        _model_update(model, s, a, feature, model_steps[model_visits[s][a]])
        estimate = model[s][a]
        for d in range(len(cumulant)):
            cumulant[d] = estimate[0] * embedding[0][d]
            for f in range(1, len(embedding)):
                cumulant[d] += estimate[f] * embedding[f][d]

        visits[task][s][a] += 1
        _, next_a = _gpi_choice(stored, task + 1, next_s, readouts[task])
        _td_update(stored[task], s, a, cumulant, next_s, next_a, current_steps[visits[task][s][a]], gamma)
        if source != task:
            visits[source][s][a] += 1
            next_a = _greedy_action(stored[source], next_s, readouts[source])
            step = source_steps[visits[source][s][a]]
            _td_update(stored[source], s, a, cumulant, next_s, next_a, step, gamma)

        states[t], actions[t], next_states[t], features[t], sources[t] = s, a, next_s, feature, source
        s = next_s
        if uniform[3] < restart:
            s = int(uniform[4] * count)


# --- Step sizes ---------------------------------------------------------------------------------


Schedule = Callable[[Array], Array]
"""Step sizes as a function of a count 1, 2, 3, ...: of visits to the pair, or of all steps."""


@dataclass(frozen=True)
class Harmonic:
    """alpha_n = h / (h + n - 1) with h > 0: sum infinite, sum of squares finite.

    h = 1 is 1/n, under which Q-learning's initial error fades only like n^-(1-gamma). With
    h > 1 / (2 (1 - gamma)) it fades faster than the noise, and the error is of order n^-1/2.
    """

    horizon: Number = 1

    def __post_init__(self) -> None:
        if not self.horizon > 0:
            raise InputError(f"horizon is {self.horizon}; a harmonic step size needs one above 0")

    def __call__(self, count: Array) -> Array:
        return self.horizon / (self.horizon + (count - 1))


@dataclass(frozen=True)
class Polynomial:
    """alpha_n = n^-omega with omega in (1/2, 1]: sum infinite, sum of squares finite. float64 only."""

    omega: float

    def __post_init__(self) -> None:
        if not 0.5 < self.omega <= 1:
            raise InputError(
                f"omega is {self.omega}; the Robbins-Monro conditions need 1/2 < omega <= 1: below, the sum "
                f"of squares is infinite, above, the sum is finite"
            )

    def __call__(self, count: Array) -> Array:
        return float_array(count) ** -self.omega


@dataclass(frozen=True)
class Constant:
    """alpha_n = c in [0, 1]. Not Robbins-Monro: c > 0 never averages noise out, c = 0 never learns."""

    value: Number

    def __post_init__(self) -> None:
        if not 0 <= self.value <= 1:
            raise InputError(f"a constant step size is {self.value}; it must lie in [0, 1]")

    def __call__(self, count: Array) -> Array:
        return np.full(count.shape, self.value)


@dataclass(frozen=True)
class SlowDecay:
    """tau_t = c t^-kappa: thresholds of `TabularHysteresis`. float64 only.

    With step sizes n^-omega per pair, 1/2 < omega < 1, T1-H needs 0 < kappa < omega - 1/2; where rewards are
    bounded, kappa < omega/2 will do.
    """

    scale: float
    kappa: float

    def __post_init__(self) -> None:
        if not (self.scale >= 0 and self.kappa > 0):
            raise InputError(
                f"scale is {self.scale} and kappa {self.kappa}; thresholds need a scale of at least 0 and a "
                f"kappa above 0, so that they fade"
            )

    def __call__(self, count: Array) -> Array:
        return self.scale * float_array(count) ** -self.kappa


# --- Which action to bootstrap on -----------------------------------------------------------------


class TabularHysteresis:
    """Keep the bootstrap action of each state until another is better by more than tau_t (T1-H).

    `threshold` gives tau_t >= 0 on the clock 1, 2, 3, ... of all steps. `kept` (S,) holds the actions; they
    start at 0 and `learn` changes them, so that a rule belongs to one run.
    """

    def __init__(self, threshold: Schedule, num_states: int) -> None:
        self.threshold = threshold
        self.kept = np.zeros(num_states, dtype=np.int64)


# --- Paths --------------------------------------------------------------------------------------


def _visit_numbers(pairs: Integers) -> Integers:
    """How often each entry has occurred so far, itself included."""
    order = np.argsort(pairs, kind="stable")
    ordered = pairs[order]
    first_of_run = np.concatenate([[True], ordered[1:] != ordered[:-1]])
    start = np.maximum.accumulate(np.where(first_of_run, np.arange(len(pairs)), 0))
    numbers = np.empty(len(pairs), dtype=np.int64)
    numbers[order] = np.arange(len(pairs)) - start + 1
    return numbers


@dataclass(frozen=True, eq=False)
class Path:
    """Transitions (s_t, a_t, phi_t, s'_t), t = 0..T-1, as int64 arrays of one length.

    The state of a step need not be the next state of the one before: paths may restart.
    """

    states: Integers
    actions: Integers
    next_states: Integers
    features: Integers

    def __post_init__(self) -> None:
        names = ("states", "actions", "next_states", "features")
        for name in names:
            array = np.array(getattr(self, name))
            if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "iu" or array.min() < 0:
                raise InputError(f"path.{name} must be a list of non-negative integers, one for each step")
            array = array.astype(np.int64)
            array.setflags(write=False)
            object.__setattr__(self, name, array)
        if len({len(getattr(self, name)) for name in names}) != 1:
            raise InputError("states, actions, next_states and features of a path must have one length")

    def __len__(self) -> int:
        return len(self.states)

    @cached_property
    def visit_number(self) -> Integers:
        """The number of visits of the pair (s_t, a_t) up to and including step t."""
        return _visit_numbers(self.states * (int(self.actions.max()) + 1) + self.actions)

    @property
    def clock(self) -> Integers:
        """The global clock 1..T; step sizes on it do *not* satisfy the conditions of Theorem 1."""
        return np.arange(1, len(self) + 1)


def _outcomes(mdp: FiniteMDP) -> tuple[Array, Integers, Integers]:
    """Cumulative probability, next state and feature of the outcomes, padded to one number: (S, A, K)."""
    joint = float_array(mdp.kernel).reshape(mdp.num_states, mdp.num_actions, -1)
    likely_first = np.argsort(-joint, axis=-1, kind="stable")[..., : (joint > 0).sum(axis=-1).max()]
    probability = np.take_along_axis(joint, likely_first, axis=-1)
    cumulative = probability.cumsum(axis=-1)
    # Rounding must not let a uniform number fall beyond the last possible outcome.
    last = (probability > 0).sum(axis=-1, keepdims=True) - 1
    cumulative[np.arange(cumulative.shape[-1]) >= last] = 1.0
    return cumulative, likely_first // mdp.num_features, likely_first % mdp.num_features


def uniform_behaviour(mdp: FiniteMDP) -> Array:
    """Every action with the same probability: with restarts it visits every pair for ever."""
    return np.full((mdp.num_states, mdp.num_actions), 1 / mdp.num_actions)


def _check_start(mdp: FiniteMDP, start: int, steps: int, restart: float) -> None:
    if not 0 <= start < mdp.num_states:
        raise InputError(f"start is {start}; it must name a state from 0 to {mdp.num_states - 1}")
    if steps < 1:
        raise InputError(f"steps is {steps}; a path needs at least 1")
    if not 0 <= restart <= 1:
        raise InputError(f"restart is {restart}; it must be a probability")


def sample_path(
    mdp: FiniteMDP, behaviour: Array, steps: int, rng: Generator, start: int = 0, restart: float = 0.0
) -> Path:
    """A path under a stochastic policy (S, A).

    After each step, with probability `restart`, the path goes on from a state drawn uniformly. Any
    restart > 0 with a positive behaviour visits each pair for ever, whatever the MDP.
    """
    _check_start(mdp, start, steps, restart)
    behaviour = float_array(behaviour)
    if behaviour.shape != (mdp.num_states, mdp.num_actions):
        raise InputError(
            f"behaviour has shape {behaviour.shape}; it needs {(mdp.num_states, mdp.num_actions)}"
        )
    if (behaviour < 0).any() or np.abs(behaviour.sum(axis=1) - 1).max() > 1e-9:
        raise InputError("each row of behaviour must be non-negative and sum to 1")
    states, actions, next_states, features = np.zeros((4, steps), dtype=np.int64)
    states[0] = start
    _execute(
        _walk, behaviour.cumsum(axis=1), *_outcomes(mdp), float(restart), rng.random((steps, 4)), states,
        actions, next_states, features,
    )  # fmt: skip
    return Path(states, actions, next_states, features)


def path_of_visits(mdp: FiniteMDP, states: Array, actions: Array, rng: Generator) -> Path:
    """A path through prescribed pairs, outcomes drawn from p(s', phi | s, a)."""
    states, actions = np.asarray(states, dtype=np.int64), np.asarray(actions, dtype=np.int64)
    cumulative, next_state, feature = _outcomes(mdp)
    above = cumulative[states, actions] > rng.random((len(states), 1))
    pick = above.argmax(axis=1)
    return Path(states, actions, next_state[states, actions, pick], feature[states, actions, pick])


def sweeps(mdp: FiniteMDP, count: int, rng: Generator) -> Path:
    """A path that visits all pairs in turn, `count` times."""
    states, actions = np.divmod(np.arange(mdp.num_states * mdp.num_actions), mdp.num_actions)
    return path_of_visits(mdp, np.tile(states, count), np.tile(actions, count), rng)


# --- Estimates of p(. | s, a), cumulants --------------------------------------------------------


@dataclass(frozen=True, eq=False)
class FeatureEstimate:
    """p~ <- p~ + beta_n (indicator - p~) from p~_0 = `initial` (S, A, F); see the module's text."""

    initial: Array
    beta: Schedule

    @staticmethod
    def known(mdp: FiniteMDP) -> FeatureEstimate:
        """p(. | s, a) itself."""
        return FeatureEstimate(mdp.feature_probability, Constant(0))

    @staticmethod
    def indicator(mdp: FiniteMDP) -> FeatureEstimate:
        """The indicator of the observed feature: model-free SFRQ-learning (eq:stoch_xi_update)."""
        return FeatureEstimate(0 * mdp.feature_probability, Constant(1))

    @staticmethod
    def one_step_model(initial: Array, beta: Number | Schedule) -> FeatureEstimate:
        """A model learned with rate beta in (0, 1], or with a schedule on the visits of the pair."""
        if callable(beta):
            return FeatureEstimate(initial, beta)
        if not 0 < beta <= 1:
            raise InputError(f"beta is {beta}; the one-step model needs 0 < beta <= 1 (at 0 it never learns)")
        return FeatureEstimate(initial, Constant(beta))

    def along(self, path: Path) -> Array:
        """p^_t of each step, shape (T, F), in the arithmetic of `initial`."""
        exact = is_exact(self.initial)
        counts = exact_array(path.visit_number) if exact else path.visit_number
        beta = _in_arithmetic(self.beta(counts), exact)
        model = self.initial.copy()
        estimates = np.empty((len(path), model.shape[2]), dtype=model.dtype)
        _execute(_follow_model, path.states, path.actions, path.features, beta, model, estimates)
        return estimates


def _in_arithmetic(numbers: Array, exact: bool) -> Array:
    return exact_array(numbers) if exact else float_array(numbers)


def uniform_model(mdp: FiniteMDP) -> Array:
    """p~_0 = 1/F everywhere, in the arithmetic of the MDP."""
    share = rational(f"1/{mdp.num_features}") if mdp.is_exact else 1 / mdp.num_features
    return 0 * mdp.feature_probability + share


# --- Learning one task --------------------------------------------------------------------------


def learn(
    path: Path,
    cumulants: Array,
    readout: Array,
    step_sizes: Array,
    gamma: Number,
    initial: Array,
    checkpoints: Array,
    hysteresis: TabularHysteresis | None = None,
) -> Array:
    """The values after the given numbers of steps: (C, S, A, D).

    cumulants (T, D), readout (D,), step_sizes (T,), initial (S, A, D), checkpoints increasing in 0..T.
    The arithmetic is that of `initial`. Without `hysteresis`, greedy actions are bootstrapped on.
    """
    exact = is_exact(initial)
    checkpoints = np.asarray(checkpoints, dtype=np.int64)
    if checkpoints.ndim != 1 or (np.diff(checkpoints) < 0).any() or (checkpoints < 0).any():
        raise InputError("checkpoints must be numbers of steps in increasing order")
    if checkpoints.size and checkpoints[-1] > len(path):
        raise InputError(f"checkpoint {checkpoints[-1]} lies beyond the path's {len(path)} steps")
    if initial.ndim != 3 or readout.shape != initial.shape[2:]:
        raise InputError(f"initial has shape {initial.shape}; it needs (states, actions, {len(readout)})")
    if cumulants.shape != (len(path), len(readout)):
        raise InputError(f"cumulants has shape {cumulants.shape}; it needs {(len(path), len(readout))}")
    if max(path.states.max(), path.next_states.max()) >= len(initial):
        raise InputError(f"the path visits a state beyond the {len(initial)} that initial has")
    if path.actions.max() >= initial.shape[1]:
        raise InputError(f"the path takes an action beyond the {initial.shape[1]} that initial has")
    step_sizes = _in_arithmetic(np.asarray(step_sizes), exact)
    if step_sizes.shape != (len(path),) or (step_sizes < 0).any() or (step_sizes > 1).any():
        raise InputError("step_sizes must give a number in [0, 1] for each step of the path")
    if hysteresis is None:
        thresholds, kept = np.full(len(path), -1), np.zeros(len(initial), dtype=np.int64)
    else:
        thresholds, kept = hysteresis.threshold(path.clock), hysteresis.kept
        if kept.shape != initial.shape[:1] or (thresholds < 0).any():
            raise InputError(
                f"hysteresis keeps actions of {len(kept)} states with a least threshold of "
                f"{thresholds.min()}; it needs {len(initial)} states and thresholds of at least 0"
            )
    snapshots = np.empty((len(checkpoints), *initial.shape), dtype=initial.dtype)
    gamma = rational(gamma) if exact else float(gamma)
    _execute(
        _follow_path, path.states, path.actions, path.next_states, cumulants, readout, step_sizes, gamma,
        _in_arithmetic(thresholds, exact), kept, initial.copy(), checkpoints, snapshots,
    )  # fmt: skip
    return snapshots


def learn_xi(
    mdp: FiniteMDP, path: Path, reward: Array, estimates: Array, step_sizes: Array, initial: Array,
    checkpoints: Array, hysteresis: TabularHysteresis | None = None,
) -> Array:  # fmt: skip
    """SFRQ-learning (eqn:xi_learning): xi after the given numbers of steps, (C, S, A, F)."""
    return learn(path, estimates, reward, step_sizes, mdp.gamma, initial, checkpoints, hysteresis)


def learn_psi(
    mdp: FiniteMDP, path: Path, weights: Array, estimates: Array, step_sizes: Array, initial: Array,
    checkpoints: Array, hysteresis: TabularHysteresis | None = None,
) -> Array:  # fmt: skip
    """SF-learning on the MDP's feature vectors: psi after the given numbers of steps, (C, S, A, n)."""
    cumulants = matmul(estimates, mdp.linear_features)
    return learn(path, cumulants, weights, step_sizes, mdp.gamma, initial, checkpoints, hysteresis)


def learn_q(
    mdp: FiniteMDP, path: Path, reward: Array, estimates: Array, step_sizes: Array, initial: Array,
    checkpoints: Array, hysteresis: TabularHysteresis | None = None,
) -> Array:  # fmt: skip
    """Q-learning (eq:q_learning, with the gamma that is missing in print): Q, (C, S, A)."""
    cumulants = matmul(estimates, reward[:, None])
    one = _in_arithmetic(np.ones(1, dtype=int), is_exact(initial))
    initial = initial[..., None]
    return learn(path, cumulants, one, step_sizes, mdp.gamma, initial, checkpoints, hysteresis)[..., 0]


# --- Learning several tasks with GPI ------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class TaskRun:
    """What a task left behind, and the path that it took.

    values (K, S, A, D) and visits (K, S, A) of all policies, model (S, A, F) and its visits, and for each
    step the source policy c that GPI chose.
    """

    values: Array
    visits: Integers
    model: Array
    model_visits: Integers
    path: Path
    sources: Integers


def learn_task(
    mdp: FiniteMDP,
    task: int,
    values: Array,
    readouts: Array,
    embedding: Array,
    estimate: FeatureEstimate,
    current_step: Schedule,
    source_step: Schedule,
    steps: int,
    epsilon: float,
    rng: Generator,
    start: int = 0,
    restart: float = 0.0,
    before: TaskRun | None = None,
) -> TaskRun:
    """Task number `task` (from 0) of algo:MFXI / algo:MBXI, on finite tables.

    values     (K, S, A, D): policies 0..task take part; policy `task` is the one to be learned
    readouts   (K, D): how each task values the cumulants
    embedding  (F, D): the identity for xi, the feature vectors for psi
    estimate   known p, indicator (MF) or one-step model (MB)
    before     an earlier run, of this task or of the one before: its model and its counts of visits go on
    steps      of each (policy, s, a) count its own visits; source_step = Constant(0) freezes the sources
    """
    _check_start(mdp, start, steps, restart)
    if not 0 <= epsilon <= 1:
        raise InputError(f"epsilon is {epsilon}; it must be a probability")
    if not 0 <= task < len(values):
        raise InputError(f"task is {task}; values are stored for policies 0 to {len(values) - 1}")
    pairs = (mdp.num_states, mdp.num_actions)
    dimensions = readouts.shape[-1]
    if values.shape != (len(readouts), *pairs, dimensions):
        raise InputError(f"values has shape {values.shape}; it needs {(len(readouts), *pairs, dimensions)}")
    if embedding.shape != (mdp.num_features, dimensions):
        raise InputError(f"embedding has shape {embedding.shape}; it needs {(mdp.num_features, dimensions)}")
    exact = is_exact(values)
    stored = values.copy()
    visits = np.zeros((len(values), *pairs), dtype=np.int64) if before is None else before.visits.copy()
    model = estimate.initial.copy() if before is None else before.model.copy()
    model_visits = np.zeros(pairs, dtype=np.int64) if before is None else before.model_visits.copy()

    def table(schedule: Schedule, most: int) -> Array:
        """Step sizes at the visits 1..most; entry 0 is never used."""
        counts = np.maximum(np.arange(most + 1), 1)
        return _in_arithmetic(schedule(exact_array(counts) if exact else counts), exact)

    most = int(visits.max()) + steps
    states, actions, next_states, features, sources = np.zeros((5, steps), dtype=np.int64)
    states[0] = start
    _execute(
        _learn_online, task, stored, visits, readouts, model, model_visits, embedding,
        table(current_step, most), table(source_step, most),
        table(estimate.beta, int(model_visits.max()) + steps),
        *_outcomes(mdp), mdp.gamma, float(epsilon), float(restart), rng.random((steps, 5)), states, actions,
        next_states, features, sources,
    )  # fmt: skip
    path = Path(states, actions, next_states, features)
    return TaskRun(stored, visits, model, model_visits, path, sources)


def learn_tasks(
    mdp: FiniteMDP,
    readouts: Array,
    initial: Array,
    embedding: Array,
    estimate: FeatureEstimate,
    step: Schedule,
    steps: int,
    epsilon: float,
    rng: Generator,
    restart: float = 0.0,
) -> list[TaskRun]:
    """The outer loop of the listings: each task starts from a copy of the values of the one before."""
    values = np.repeat(initial[None], len(readouts), axis=0)
    runs: list[TaskRun] = []
    for task in range(len(readouts)):
        if task:
            values[task] = values[task - 1]
        before = runs[-1] if runs else None
        run = learn_task(
            mdp, task, values, readouts, embedding, estimate, step, step, steps, epsilon, rng,
            restart=restart, before=before,
        )  # fmt: skip
        values = run.values.copy()
        runs.append(run)
    return runs
