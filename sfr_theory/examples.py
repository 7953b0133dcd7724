"""Small MDPs, in exact rationals, on which statements about SFRQ-learning fail.

Each function returns an `Example`: the MDP, the rewards, a starting point, and in its docstring the
reason why it works. All have gamma = 1/2. States, actions and features are named in the docstrings in the
order of their indices.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.random import default_rng

from sfr_theory.arithmetic import Array, Number, exact_array
from sfr_theory.errors import InputError
from sfr_theory.learning import Path, path_of_visits
from sfr_theory.mdp import FiniteMDP, deterministic_mdp

HALF = Fraction(1, 2)


@dataclass(frozen=True, eq=False)
class Example:
    """An MDP with rewards and the xi to start from, all exact."""

    mdp: FiniteMDP
    reward: Array  # (F,)
    initial: Array  # (S, A, F)


def _example(mdp: FiniteMDP, reward: list[int], initial: dict[tuple[int, int, int], int]) -> Example:
    xi = exact_array(np.zeros(mdp.feature_probability.shape, dtype=int))
    for place, value in initial.items():
        xi[place] += value
    return Example(mdp, exact_array(reward), xi)


def two_entries_to_a_cycle(length: int) -> Example:
    """xi oscillates for ever while its class converges; no randomness at all.

    States t, s, x_0 .. x_{L-1} with L even. t leads to s; in s the actions lead to x_0 or to x_{L/2}; x_j
    leads to x_{j+1}, the last to the first. Features: 0 where t is left (reward 1), 1 where s or the first
    half of the cycle is left, 2 where the second half is (reward 0 both). So V* = 0 on the cycle, both
    actions in s are optimal, and xi(t, .) tells which one is taken.

    Let V_0 = 1 on the first half and -1 on the second, the weight being put on feature 0, and let the two
    actions in s start with the values of x_{L-1} and x_{L/2-1}, which lead to the same two states. Iterating
    T_xi, V_n(x_j) = gamma^n V_0(x_{j+n}): V_n(x_0) - V_n(x_{L/2}) shrinks to 0 and changes its sign every L/2
    iterations, for ever. With it changes the greedy action in s, and xi_n(t, .) jumps between two limits
    that differ in feature 1 by gamma^2 sum_{j < L/2} gamma^j / (1 + gamma^{L/2}) (`cycle_swing`).

    With Robbins-Monro step sizes the same happens for L = 4 along `antipodal_sweeps`; docs/theory.md has the
    proof. The wave goes round in the time tau = sum of alpha, which grows without bound. Since V* = 0 there,
    float64 keeps the signs as the values shrink.
    """
    if length < 2 or length % 2:
        raise InputError(f"length is {length}; the cycle needs an even number of states")
    half = length // 2
    s, cycle = 1, range(2, 2 + length)
    next_state = [[s, s], [cycle[0], cycle[half]], *([cycle[(j + 1) % length]] * 2 for j in range(length))]
    feature = [[0, 0], [1, 1], *([1 if j < half else 2] * 2 for j in range(length))]
    wave = {(cycle[j], action, 0): 1 if j < half else -1 for j in range(length) for action in range(2)}
    wave |= {(s, 0, 0): -1, (s, 1, 0): 1}
    return _example(deterministic_mdp(next_state, feature, HALF), [1, 0, 0], wave)


def cycle_swing(length: int) -> Fraction:
    """Distance in feature 1 of the two limits of xi_n(t, .) in `two_entries_to_a_cycle`."""
    half = length // 2
    return HALF**2 * sum((HALF**j for j in range(half)), Fraction(0)) / (1 + HALF**half)


def antipodal_sweeps(length: int, count: int) -> Path:
    """All pairs of `two_entries_to_a_cycle` in turn, `count` times, opposite states of the cycle together.

    Opposite states do not read each other (L >= 4), so this order keeps V(x_{j+L/2}) = -V(x_j), in float64
    too: rounding is symmetric under a change of sign. The mean of V, which fades more slowly than
    the wave and would hide it, then stays exactly 0. t comes first and s last: s and x_{L-1}, x_{L/2-1} then
    read x_0 and x_{L/2} after the same update, and keep the same values.
    """
    half = length // 2
    order = [(0, action) for action in (0, 1)]
    for j in range(half):
        order += [(2 + j + opposite, action) for action in (0, 1) for opposite in (0, half)]
    order += [(1, action) for action in (0, 1)]
    states, actions = np.array(order * count).T
    return path_of_visits(two_entries_to_a_cycle(length).mdp, states, actions, default_rng(0))


def sweep_of_four(wave: tuple[Number, Number], alpha: Number) -> tuple[Number, Number]:
    """(V(x_0), V(x_1)) of `two_entries_to_a_cycle(4)` after a sweep of `antipodal_sweeps` with rate alpha.

    x_0 reads x_1, and x_1 then reads x_2, whose value is -V(x_0) already updated.
    """
    first, second = wave
    first = (1 - alpha) * first + alpha * HALF * second
    return first, (1 - alpha) * second - alpha * HALF * first


def coin_behind_two_doors() -> Example:
    """In long runs xi oscillates while its class converges: ties of Q* broken by noise. A run, not a proof.

    States t, s, high, low. t leads to s; in s each action leads to high or low with probability 1/2, and
    emits feature 1 or 2 according to the action; high emits feature 3 (reward 1), low feature 4 (reward -1);
    both lead back to t. Features 0, 1, 2 have reward 0.

    Q*(s, .) = 0 for both actions. The iterates Q_n(s, a), Q_n(s, b) are averages of independent fair
    coins, so one expects their difference, rescaled, to behave like a stationary Gaussian process in tau =
    sum of alpha, which changes sign for ever. xi_n(t, 1) follows the greedy action: towards 4/7 while it is
    a, towards 0 while it is b. The noise is in the next state, so it is there also where p(phi | s, a)
    is known.
    """
    t, s, high, low = range(4)
    kernel = np.zeros((4, 2, 4, 5), dtype=object)
    kernel[t, :, s, 0] = kernel[high, :, t, 3] = kernel[low, :, t, 4] = 1
    for action in range(2):
        kernel[s, action, [high, low], 1 + action] = HALF
    return _example(FiniteMDP(kernel, HALF), [0, 0, 0, 1, -1], {})


def two_buttons() -> FiniteMDP:
    """One state; action j emits feature j."""
    return deterministic_mdp([[0, 0]], [[0, 1]], HALF)


def frozen_overestimate(stored_value: Fraction | int = 10) -> tuple[Example, Array]:
    """GPI with a stored over-estimate that is never updated: learning converges to a wrong limit.

    `two_buttons` with R = (1, 0): Q* = (2, 1). The stored xi~(b) = (m, 0) is worth m. While m exceeds Q(a),
    the GPI action is b and policy i evaluates "b for ever": Q(b) = 0 + Q(b)/2 = 0, Q(a) = 1 + Q(b)/2 = 1.
    With m = 10 that is more than anything policy i ever reaches. It starts at the optimum, xi*(a) = (2, 0),
    xi*(b) = (1, 1), and leaves it: n synchronous updates give Q(b) = 2^-n, Q(a) = 1 + 2^-n.

    Started at 0 instead, Q(b) stays 0 and Q(a) rises to 1, so that any m > 1 misleads. M = (0, m) overshoots
    TM by m/2 at b: the bound of T1-GPI is m, the error 1, and as m -> 1 nothing is left between them.
    Returns the example and the stored xi~, shape (1, 2, 2).
    """
    stored = exact_array([[[0, 0], [stored_value, 0]]])
    optimum = {(0, 0, 0): 2, (0, 1, 0): 1, (0, 1, 1): 1}
    return _example(two_buttons(), [1, 0], optimum), stored


def rare_visits(steps: int) -> tuple[Example, Path]:
    """Step sizes on the global clock that are Robbins-Monro as printed, and a limit that is not Q*.

    `two_buttons` with R = (1, 2): Q* = (3, 4). At the times k = 2, 4, 8, 16, ... the action is a, at all
    others b: both are taken infinitely often. With alpha_k = 1/k on the global clock, the sum of alpha over
    the visits of a is 1/2 + 1/4 + ... = 1: finite. Started at xi(b) = (0, 2), where Q(b) = 4 is already right
    and stays so, and at xi(a) = 0, the error of Q(a) is multiplied by 1 - 2^-j at the j-th visit:

        Q(a) -> 3 (1 - prod over j >= 1 of (1 - 2^-j)) = 3 (1 - 0.288788...) = 2.13363...
    """
    times = np.arange(1, steps + 1)
    is_rare = (times >= 2) & (times & (times - 1) == 0)
    mdp = two_buttons()
    # The outcomes are deterministic, so the generator is never heard.
    path = path_of_visits(mdp, np.zeros(steps, dtype=int), np.where(is_rare, 0, 1), default_rng(0))
    return _example(mdp, [1, 2], {(0, 1, 1): 2}), path


def rare_visits_factor(visits: int) -> Fraction:
    """prod over j = 1..visits of (1 - 2^-j): what is left of the initial error in `rare_visits`."""
    product = Fraction(1)
    for j in range(1, visits + 1):
        product *= 1 - HALF**j
    return product


def near_tie(delta: Fraction) -> tuple[Example, Array, Array]:
    """T_xi jumps at a tie: xi and xi' are 2 delta apart, their images at least gamma, for every delta > 0.

    `two_buttons` with R = (1, 1). xi(a) = (1 + delta, 0) and xi'(a) = (1 - delta, 0), with xi(b) = xi'(b) =
    (0, 1): the greedy action is a for xi and b for xi', and T_xi xi - T_xi xi' = gamma (1 + delta, -1) in
    every pair. All norms on a finite space are equivalent, so T_xi is continuous, and a contraction, in none.
    """
    xi = exact_array([[[1 + delta, 0], [0, 1]]])
    other = exact_array([[[1 - delta, 0], [0, 1]]])
    return _example(two_buttons(), [1, 1], {}), xi, other
