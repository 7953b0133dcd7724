"""How tight is the GPI bound? Problems that attain it, and linear programmes for the worst problem.

T2' (`thm2/sharp`, `thm2/sharp-value` in `sfr_theory.bounds`) bounds what GPI loses. With g = gamma,
d = min over i of d_i and eps = eps_R:

    ||V* - V^pi|| <= 2/(1-g) (g d + eps),        ||Q* - Q^pi|| <= 2g/(1-g) (g d + eps),

while the paper's constant is 2/(1-g) (d + eps). This module looks for the largest ratio of left to
right side. Because Q*(s, a) - Q^pi(s, a) = g E[V*(s') - V^pi(s')], a loss of V at a state to which some
(s, a) surely leads is, times g, a loss of Q.

**A family that attains T2'** (`attaining_problem`), for every d >= 0 and eps >= 0 at once. Two states:

    state 0:  stay, reward 0              state 1:  leave to 0, reward 2 eps
              go to 1, reward 2 eps                 stay, reward 2 eps + 2 d

The source's rewards are d higher on `go` and `leave` and d lower on staying in state 1, so that pi_1 = (go,
leave) is optimal for it. Under the target, staying in state 0 looks worse than going by exactly 2 eps, which
errors of +eps and -eps turn into a tie. GPI stays for ever: V^pi(0) = 0, while
V*(0) = 2 eps + g (2 eps + 2 d)/(1-g), which is the right side. A slack moves two rewards so that no tie is
left, at a cost proportional to it.

**The worst problem as a linear programme** (`worst_loss`). Fix what is discrete, a `Combination`: dynamics
without chance, the sources' policies, the GPI policy pi, a rival policy mu, and for each state the source
whose value GPI follows. With one feature for each (s, a) the rewards r(s, a) are free, and Q^rho of a fixed
policy rho is linear in r. Then

    maximise    V^mu(0) - V^pi(0)                                          over r, r_1, d, eps >= 0
    subject to  pi_1 optimal for r_1:   Q_1^{pi_1}(s, a) <= Q_1^{pi_1}(s, pi_1(s))
                |r - r_1| <= d
                GPI may choose pi:      Q^{pi_i}(s, a) - eps <= Q^{pi_j(s)}(s, pi(s)) + eps,    a != pi(s)
                a budget:               g d + eps = 1 for T2', d + eps = 1 for the paper's constant

is the exact worst case of the combination, because

* V* is the largest V^mu, so the maximum over mu needs no constraint that mu be optimal;
* errors in [-eps, eps] that favour pi(s) most are extreme: +eps for the followed source there, and
  -eps everywhere else;
* a source i >= 2 need not be close to the target, so its policy is arbitrary: R_i = M on its own actions and
  0 elsewhere makes it optimal. Hence r_i is no variable, and source 1 is the closest one.

By relabelling, pi takes action 0 everywhere and the loss is read in state 0. Adding h(s) - g h(s') to r and
to r_1 adds h(s) to every Q(s, a) and changes nothing above; with h = -V^pi it makes r(s, pi(s)) = 0. So those
rewards are fixed at 0, and V^pi = 0. Without this the programme is flat along every h, and rounding may
tilt it.

**From a programme to a problem** (`certify`). The solution is rounded to rationals and mended: a bonus on
pi_1's actions restores its optimality exactly, eps becomes what the choice of pi needs. Both sides of the
bound are then computed in rational arithmetic like those of any other problem, so that rounding can cost
tightness and never truth.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from scipy.optimize import linprog

from sfr_theory.arithmetic import Array, Number, exact_array, fraction, rational, zeros
from sfr_theory.bounds import STATEMENTS, BoundTerms, SolvedProblem
from sfr_theory.errors import InputError
from sfr_theory.mdp import FiniteMDP, MDPBatch, TransferProblem, deterministic_mdp
from sfr_theory.operators import at_policy, q_from_xi
from sfr_theory.programmes import block_diagonal, rounded
from sfr_theory.solve import optimal, optimal_actions, policy_q, policy_xi
from sfr_theory.transfer import evaluate

FEASIBILITY_TOLERANCE = 1e-9
"""How far the solver may overstep a constraint of a linear programme."""

PROGRAMMES_AT_ONCE = 128
"""How many linear programmes are handed to the solver as one; more would cost memory and save no time."""

NEIGHBOURS = 12
"""Linear programmes for each step of the local search."""


# --- Problems with one feature for each (s, a) -------------------------------------------------------------


def free_reward_mdp(next_state: Array, gamma: object) -> FiniteMDP:
    """Deterministic dynamics (S, A) with feature s * A + a at (s, a), so that a reward is any r(s, a)."""
    return deterministic_mdp(next_state, np.arange(next_state.size).reshape(next_state.shape), gamma)


def _misread(xi: Array, target: Array, q_error: Array) -> Array:
    """xi~ that the target reads with the given error: sum R (xi~ - xi) = q_error, (..., S, A).

    The error is put on the feature of the largest |R|. Where R = 0 nothing can be misread.
    """
    loudest = np.abs(target).argmax()
    misread = xi.copy()
    if target[loudest] != 0:
        misread[..., loudest] = misread[..., loudest] + q_error / target[loudest]
    return misread


@dataclass(frozen=True)
class AttainingFamily:
    """The family of the module's text, for numbers of any kind: rows are states, columns the two actions."""

    next_state: list[list[int]]
    target: list[list[Any]]  # r
    shift: list[list[Any]]  # r_1 - r
    q_error: list[list[Any]]  # Q~ - Q^{pi_1}
    source_policy: list[int]  # pi_1
    gpi_policy: list[int]
    optimal_policy: list[int]


def attaining_family(d: Any, eps: Any, states: int = 2, slack: Any = 0) -> AttainingFamily:
    """Two states, or the first alone with `go` leading back; fractions or symbols."""
    return AttainingFamily(
        [[0, min(1, states - 1)], [0, 1]][:states],
        [[slack, 2 * eps], [2 * eps, 2 * eps + 2 * d - slack]][:states],
        [[0, d], [d, -d]][:states],
        [[eps, -eps], [0, 0]][:states],
        [1, 0][:states],
        [0, 1][:states],
        [1, 1][:states],
    )


def attaining_problem(
    gamma: object,
    distance: object,
    epsilon: object,
    states: int = 2,
    tasks: int = 1,
    slack: object = 0,
) -> TransferProblem:
    """The family of the module's text, in rational arithmetic: d = distance, eps_R = epsilon.

    Without slack, ties go to the first action, as in `transfer.evaluate`. With a small slack nothing ties:
    staying pays `slack` more in state 0 and `slack` less in state 1. More states than two are islands, more
    tasks are copies. With one state `go` leads back, and there is no room for a distance.
    """
    d, eps, move = rational(distance), rational(epsilon), rational(slack)
    if d < 0 or eps < 0 or d + eps == 0 or move < 0:
        raise InputError("distance, epsilon and slack must not be negative, nor distance and epsilon both 0")
    if states < 1 or tasks < 1:
        raise InputError(f"{states} states and {tasks} tasks: there must be at least one of each")
    if states == 1 and d != 0:
        raise InputError("with one state and exact values GPI is optimal; a distance needs two states")
    family = attaining_family(d, eps, min(states, 2), move)
    islands = range(2, states)
    next_state = np.array([*family.next_state, *([s, s] for s in islands)])
    target = exact_array([*family.target, *([0, -d - eps] for _ in islands)]).reshape(-1)
    shift = exact_array([*family.shift, *([0, 0] for _ in islands)]).reshape(-1)
    sources = np.stack([target + shift] * tasks)
    mdp = free_reward_mdp(next_state, rational(gamma))
    go_and_leave = np.array([*family.source_policy, *(0 for _ in islands)])
    xi = np.stack([policy_xi(mdp, go_and_leave)] * tasks)
    q_error = zeros((tasks, *next_state.shape), like=target)
    q_error[:, : len(family.q_error)] = exact_array(family.q_error)
    return TransferProblem(mdp, target, sources, _misread(xi, target, q_error))


def attaining_code_problem(gamma: object, gap: object, distance: object, epsilon: object) -> TransferProblem:
    """A problem that attains T2'' (`thm2/code`): rho = gap, min d'_i = distance, eps = epsilon.

    The family of the module's text is what the code sees, r' = E[w . z]. The true reward is `gap` higher on
    the way of an optimal policy (go, then stay) and `gap` lower where GPI stays. The code is the one vector
    r', so that r' is the best fit to r: a feature that is never shown makes r - r' orthogonal to it.
    """
    rho, d, eps = rational(gap), rational(distance), rational(epsilon)
    family = attaining_family(d, eps)
    seen = exact_array([*family.target[0], *family.target[1], 1])  # r', and 1 for what is never shown
    missed = exact_array([-rho, rho, 0, rho, 0])
    missed[-1] = -(seen * missed).sum()
    shift = exact_array([*family.shift[0], *family.shift[1], 0])
    mdp = deterministic_mdp(family.next_state, [[0, 1], [2, 3]], rational(gamma), seen[:, None])
    xi = policy_xi(mdp, np.array(family.source_policy))[None]
    error = exact_array([family.q_error])
    return TransferProblem(mdp, seen + missed, (seen + shift)[None], _misread(xi, seen, error))


def has_ties(problem: TransferProblem) -> bool:
    """Whether a task of an exact problem has two optimal policies, or GPI a choice of actions."""
    rewards = np.concatenate([problem.target[None], problem.sources])
    tables = (*optimal(problem.mdp, rewards).q, evaluate(problem).gpi_values)
    return any(bool((optimal_actions(q).sum(axis=-1) > 1).any()) for q in tables)


def exact_ratio(terms: BoundTerms) -> Fraction | None:
    """left / right of a bound in rational arithmetic; None where both are 0."""
    left, right = fraction(terms.left[()]), fraction(terms.right[()])
    if right == 0:
        if left != 0:
            raise ArithmeticError(f"the right side of a bound is 0 and its left side {left}")
        return None
    return left / right


# --- The discrete part of a worst-case problem -------------------------------------------------------------


@dataclass(frozen=True)
class Size:
    """How large the problems of a search are."""

    states: int
    actions: int
    tasks: int

    @cached_property
    def ranges(self) -> Array:
        """How many values each entry of a `Combination`, written as one row of integers, can take."""
        pairs, policies = self.states * self.actions, (self.tasks + 1) * self.states
        return np.repeat([self.states, self.actions, self.tasks], [pairs, policies, self.states])

    @property
    def num_combinations(self) -> int:
        return math.prod(self.ranges.tolist())


@dataclass(frozen=True, eq=False)
class Combination:
    """All that is discrete in a worst-case problem; leading axes are batch axes.

    The GPI policy takes action 0 everywhere.
    """

    next_state: Array  # (..., S, A)
    source_policies: Array  # (..., T, S); source 0 is the closest
    rival: Array  # (..., S), the policy mu
    followed: Array  # (..., S), the source whose value makes GPI take action 0

    @classmethod
    def from_entries(cls, size: Size, entries: Array) -> Combination:
        """Rows of integers (..., N), one below each of `size.ranges`, as combinations."""
        pairs, policies = size.states * size.actions, size.tasks * size.states
        next_state, source_policies, rival, followed = np.split(
            entries, np.cumsum([pairs, policies, size.states]), axis=-1
        )
        lead = entries.shape[:-1]
        return cls(
            next_state.reshape(*lead, size.states, size.actions),
            source_policies.reshape(*lead, size.tasks, size.states),
            rival,
            followed,
        )

    def __getitem__(self, index: Any) -> Combination:
        """Part of a batch."""
        return Combination(
            self.next_state[index], self.source_policies[index], self.rival[index], self.followed[index]
        )

    @property
    def gpi_policy(self) -> Array:
        return np.zeros_like(self.rival)

    @property
    def loses_q(self) -> Array:
        """Whether some (s, a) leads to state 0, so that a loss of V there is a loss of Q."""
        return (self.next_state == 0).any(axis=(-2, -1))

    @property
    def is_canonical(self) -> Array:
        """Whether no other combination of the enumeration stands for the same problems.

        The rival must leave the GPI policy (all zeros) on its way from state 0, and only there: what it does
        in states that it never meets has no effect. Where all sources have one policy, the first is followed.
        """
        step = np.take_along_axis(self.next_state, self.rival[..., None], axis=-1)[..., 0]
        met = np.zeros(self.rival.shape, dtype=bool)
        state = np.zeros((*self.rival.shape[:-1], 1), dtype=int)
        for _ in range(self.rival.shape[-1]):
            np.put_along_axis(met, state, True, axis=-1)
            state = np.take_along_axis(step, state, axis=-1)
        leaves = self.rival != 0
        same_policy = (self.source_policies == self.source_policies[..., :1, :]).all(axis=(-2, -1))
        return (
            leaves.any(axis=-1) & ~(leaves & ~met).any(axis=-1) & ~(same_policy & self.followed.any(axis=-1))
        )


def combinations(size: Size) -> Combination:
    """Every combination of a size, up to relabelling, as one batch."""
    entries = np.indices(size.ranges.tolist()).reshape(len(size.ranges), -1).T
    every = Combination.from_entries(size, entries)
    return every[every.is_canonical]


# --- Linear programmes -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Budget:
    """What is held fixed while the loss grows: equations u d + v eps = w, as rows (u, v, w) given gamma."""

    id: str
    sentence: str
    equations: Callable[[float], tuple[tuple[float, float, float], ...]]
    largest: Callable[[Number], Number]  # the largest g d + eps that the equations admit

    def ceiling(self, gamma: Number) -> Number:
        """The largest loss of V that T2' allows."""
        return 2 * self.largest(gamma) / (1 - gamma)

    def feasible(self, gamma: float) -> bool:
        """Whether some d, eps meet the equations; g d > 0 is impossible at gamma = 0."""
        return all(w == 0 or u != 0 or v != 0 for u, v, w in self.equations(gamma))


SHARP = Budget("sharp", "g d + eps = 1", lambda g: ((g, 1, 1),), lambda g: 1)
PRINTED = Budget("printed", "d + eps = 1", lambda g: ((1, 1, 1),), lambda g: 1)
EXACT_XI = Budget("exact-xi", "d = 1, eps = 0", lambda g: ((1, 0, 1), (0, 1, 0)), lambda g: g)
JOINT = Budget("joint", "g d = eps = 1/2", lambda g: ((g, 0, 1 / 2), (0, 1, 1 / 2)), lambda g: 1)


@dataclass(frozen=True, eq=False)
class WorstLoss:
    """Optima of linear programmes: the loss of V in state 0, and rewards that cause it; batch axes first."""

    combination: Combination
    loss: Array  # (...)
    reward: Array  # (..., S * A)
    source_reward: Array  # (..., S * A)

    def ratio_tolerance(self, gamma: float) -> Array:
        """How far a ratio to a right side of 2/(1-g) may exceed the truth.

        The solver oversteps a constraint by at most t. Coefficients of Q have a relative error of order
        S u (1+g)/(1-g) (see `sfr_theory.solve`), so that Q, of size max|r|/(1-g), is off by at most
        q = 2 S u max|r|/(1-g)^2 and a difference of two by 2 q. An overstep of t' = t + 2 q is mended by a
        bonus of t' on pi_1's actions (see `certify`), which with the overstepped distance adds at most 2 t'
        to d, and by t'/2 more eps: by T2', with a budget of 1, less than 3 t' more ratio. The loss itself is
        off by 2 q, which is less than t' of the ratio.
        """
        states = self.combination.rival.shape[-1]
        largest = np.abs(self.reward).max(axis=-1)
        q = 2 * states * np.finfo(float).eps * largest / (1 - gamma) ** 2
        return 4 * (FEASIBILITY_TOLERANCE + 2 * q)

    def __getitem__(self, index: Any) -> WorstLoss:
        """Part of a batch."""
        return WorstLoss(
            self.combination[index], self.loss[index], self.reward[index], self.source_reward[index]
        )


def _free_reward_batch(next_state: Array, gamma: float) -> MDPBatch:
    """`free_reward_mdp` for many dynamics (B, S, A) at once, in float64."""
    pairs = next_state[0].size
    feature = np.broadcast_to(np.arange(pairs).reshape(next_state.shape[1:]), next_state.shape)[..., None]
    one_hot = np.broadcast_to(np.eye(pairs), (len(next_state), pairs, pairs))
    return MDPBatch(next_state[..., None], feature, np.ones(feature.shape), pairs, gamma, one_hot)


def _constraints(c: Combination, gamma: float) -> tuple[Array, Array]:
    """The programmes of a batch as coefficients of (r, r_1, d, eps): what is at most 0, and V^mu(0).

    Shapes (B, constraints, 2 S A + 2) and (B, 2 S A + 2).
    """
    batch, states, actions = c.next_state.shape
    pairs = states * actions
    policies = np.concatenate([c.rival[:, None], c.source_policies], axis=1)
    # With a feature for each (s, a), xi of a policy holds the coefficients of Q in r.
    q = policy_xi(_free_reward_batch(c.next_state, gamma), policies)
    rival_q, source_q = q[:, 0], q[:, 1:]

    own = at_policy(source_q[:, 0], c.source_policies[:, 0])
    regret = (source_q[:, 0] - own[:, :, None]).reshape(batch, pairs, pairs)
    followed = np.take_along_axis(source_q[..., 0, :], c.followed[:, None, :, None], axis=1)
    temptation = (source_q[..., 1:, :] - followed[..., None, :]).reshape(batch, -1, pairs)

    r, r_1, d, eps = slice(pairs), slice(pairs, 2 * pairs), -2, -1
    optimal_source, above, below, chosen = (
        np.zeros((batch, count, 2 * pairs + 2)) for count in (pairs, pairs, pairs, temptation.shape[1])
    )
    optimal_source[..., r_1] = regret
    above[..., r], above[..., r_1], above[..., d] = np.eye(pairs), -np.eye(pairs), -1
    below[..., r], below[..., r_1], below[..., d] = -np.eye(pairs), np.eye(pairs), -1
    chosen[..., r], chosen[..., eps] = temptation, -2
    gain = np.zeros((batch, 2 * pairs + 2))
    gain[:, r] = at_policy(rival_q, c.rival)[:, 0]
    return np.concatenate([optimal_source, above, below, chosen], axis=1), gain


def worst_loss(combination: Combination, gamma: float, budget: Budget) -> WorstLoss:
    """Maximise V^mu(0) - V^pi(0) over rewards and errors, for each combination of a batch (B, ...).

    The module's text states the programme. Programmes share no variable, so that many of them are one
    programme with a block-diagonal matrix: the sum is largest where each of them is.
    """
    parts = [
        _solve_together(combination[start : start + PROGRAMMES_AT_ONCE], gamma, budget)
        for start in range(0, len(combination.rival), PROGRAMMES_AT_ONCE)
    ]
    optimum, gain = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
    pairs = combination.next_state[0].size
    loss = (gain * optimum).sum(axis=-1)
    return WorstLoss(combination, loss, optimum[:, :pairs], optimum[:, pairs : 2 * pairs])


def _solve_together(combination: Combination, gamma: float, budget: Budget) -> tuple[Array, Array]:
    """The optimal (r, r_1, d, eps) of each combination, and what it maximises; both (B, 2 S A + 2)."""
    at_most_zero, gain = _constraints(combination, gamma)
    batch, variables = gain.shape
    *d_and_eps, fixed = np.array(budget.equations(gamma)).T
    equations = np.zeros((batch, len(fixed), variables))
    equations[..., -2], equations[..., -1] = d_and_eps
    constraints = block_diagonal(at_most_zero)
    lowest, highest = np.full((batch, variables), -np.inf), np.full((batch, variables), np.inf)
    lowest[:, -2:] = 0  # d and eps
    states, actions = combination.next_state.shape[1:]
    gpi_pairs = np.arange(states) * actions
    lowest[:, gpi_pairs] = highest[:, gpi_pairs] = 0  # r(s, pi(s))
    solution = linprog(
        -gain.reshape(-1),
        A_ub=constraints,
        b_ub=np.zeros(constraints.shape[0]),
        A_eq=block_diagonal(equations),
        b_eq=np.tile(fixed, batch),
        bounds=np.stack([lowest.reshape(-1), highest.reshape(-1)], axis=-1),
        method="highs",
        options={
            "primal_feasibility_tolerance": FEASIBILITY_TOLERANCE,
            "dual_feasibility_tolerance": FEASIBILITY_TOLERANCE,
        },
    )
    if solution.status != 0:
        raise ArithmeticError(f"a linear programme ({budget.sentence}, gamma {gamma}): {solution.message}")
    return solution.x.reshape(batch, variables), gain


# --- Measures: which ratio a budget is for -----------------------------------------------------------------


@dataclass(frozen=True)
class Measure:
    """A ratio of left to right side: a statement of `bounds`, and the budget of its linear programme.

    Under the budget the right side is `right_side`; `left_side` is the statement's loss for a loss of V of 1.
    `members` are the (d, eps) of the attaining family that meet the budget, up to scale.
    """

    id: str
    title: str
    statement: str
    budget: Budget
    left_side: Callable[[Number], Number]
    right_side: Callable[[Number], Number]
    members: Callable[[Number], tuple[tuple[Number, Number], ...]]

    @property
    def is_of_q(self) -> bool:
        return self.statement != "thm2/sharp-value"

    def is_defined(self, gamma: Number) -> bool:
        """Whether the right side can be positive; without it both sides are 0."""
        return self.right_side(gamma) != 0 and self.budget.feasible(float(gamma))

    def ratio_of_loss(self, gamma: Number, loss: Number) -> Number:
        """The ratio that a loss of V amounts to, under the budget."""
        return self.left_side(gamma) * loss / self.right_side(gamma)

    def ceiling(self, gamma: Number) -> Number:
        """The largest ratio that T2' allows."""
        return self.ratio_of_loss(gamma, self.budget.ceiling(gamma))

    def worst(self, solved: WorstLoss) -> WorstLoss:
        """The solved programme with the largest loss that this measure sees."""
        seen = solved.combination.loses_q | (not self.is_of_q)
        return solved[np.where(seen, solved.loss, -np.inf).argmax()]

    def ratio(self, evaluation: SolvedProblem) -> Fraction | None:
        """The ratio of an evaluated problem, exactly."""
        return exact_ratio(STATEMENTS[self.statement](evaluation))


MEASURES: dict[str, Measure] = {
    measure.id: measure
    for measure in (
        Measure("sharp-q", "sharp, Q", "thm2/sharp", SHARP,
                lambda g: g, lambda g: 2 * g / (1 - g), lambda g: ((0, 1), (1, 0), (1, 1))),
        Measure("sharp-v", "sharp, V", "thm2/sharp-value", SHARP,
                lambda g: 1, lambda g: 2 / (1 - g), lambda g: ((0, 1), (1, 0), (1, 1))),
        Measure("joint-v", "sharp, V, g d = eps", "thm2/sharp-value", JOINT,
                lambda g: 1, lambda g: 2 / (1 - g), lambda g: ((1, g),)),
        Measure("printed-q", "printed, Q", "thm2/corrected", PRINTED,
                lambda g: g, lambda g: 2 / (1 - g), lambda g: ((0, 1),)),
        Measure("printed-q-exact-xi", "printed, Q, eps = 0", "thm2/corrected", EXACT_XI,
                lambda g: g, lambda g: 2 / (1 - g), lambda g: ((1, 0),)),
    )
}  # fmt: skip
"""The ratios that are reported. `thm2/corrected` is the paper's constant with the error read under R."""


# --- From a linear programme back to a problem -------------------------------------------------------------


def evaluate_branch(problem: TransferProblem, source_policies: Array, gpi_policy: Array) -> SolvedProblem:
    """The evaluation in which ties are broken towards the given policies (one of `evaluate_all_ties`).

    Raises ArithmeticError unless each source policy is optimal and GPI may choose `gpi_policy`.
    """
    mdp, base = problem.mdp, evaluate(problem)

    def among(best: Array, policy: Array) -> bool:
        return bool(np.take_along_axis(best, policy[..., None], axis=-1).all())

    own_q = policy_q(mdp, source_policies, problem.sources)
    if not among(optimal_actions(own_q), source_policies):
        raise ArithmeticError("a source policy is not optimal for its task")
    source_xi = policy_xi(mdp, source_policies)
    approximations = source_xi if problem.approximations is None else problem.approximations
    branch = replace(
        base,
        source_xi=source_xi,
        approximations=approximations,
        gpi_policy=gpi_policy,
        gpi_xi=policy_xi(mdp, gpi_policy),
    )
    if not among(optimal_actions(branch.gpi_values), gpi_policy):
        raise ArithmeticError("GPI cannot choose the given policy")
    return branch


def certify(worst: WorstLoss, gamma: object) -> SolvedProblem:
    """An exact problem that loses what one linear programme says, up to rounding; see the module's text.

    Of its ties, the branch that loses most.
    """
    c = worst.combination
    states, actions = c.next_state.shape
    s = np.arange(states)
    mdp = free_reward_mdp(c.next_state, rational(gamma))
    target, source = rounded(worst.reward), rounded(worst.source_reward)

    # A bonus b on pi_1's actions raises Q_1(s, pi_1(s)) by b/(1-g) and the other actions' by g b/(1-g).
    own_q = policy_q(mdp, c.source_policies[0], source)
    bonus = (own_q.max(axis=-1) - own_q[s, c.source_policies[0]]).max()
    source.reshape(states, actions)[s, c.source_policies[0]] += bonus

    # Far sources: their own actions pay so much that they are optimal, and source 0 stays the closest.
    far = 1 + 2 * np.abs(target).max() + np.abs(target - source).max()
    sources = zeros((len(c.source_policies), states, actions), like=target)
    sources[0] = source.reshape(states, actions)
    for task, policy in enumerate(c.source_policies[1:], start=1):
        sources[task, s, policy] = far

    xi = policy_xi(mdp, c.source_policies)
    q = q_from_xi(xi, target[None])
    followed = q[c.followed, s, c.gpi_policy]
    temptation = (q[:, :, 1:] - followed[:, None]).max()
    epsilon = max(temptation, rational(0)) / 2
    q_error = zeros(q.shape, like=q) - epsilon
    q_error[c.followed, s, c.gpi_policy] = epsilon

    problem = TransferProblem(mdp, target, sources.reshape(len(sources), -1), _misread(xi, target, q_error))
    return evaluate_branch(problem, c.source_policies, c.gpi_policy)


# --- Searches ----------------------------------------------------------------------------------------------


def solve_all(size: Size, gamma: float, budget: Budget) -> WorstLoss:
    """The worst loss of every combination of a size: its largest is the worst case of that size."""
    return worst_loss(combinations(size), gamma, budget)


def climb(
    rng: np.random.Generator, size: Size, gamma: float, budget: Budget, steps: int
) -> tuple[WorstLoss, int]:
    """Local search with the linear programme as objective: where it ended (a batch of one), and how many
    programmes it solved.

    Each step solves `NEIGHBOURS` combinations that differ in one random entry, and moves to the worst of them
    unless it is better than the present one. It moves among combinations where some (s, a) leads to state
    0, so that its losses count for V and for Q, and ends early where T2' leaves no room.
    """
    movable = np.flatnonzero(size.ranges > 1)
    ceiling = budget.ceiling(gamma)

    def worst_of(rows: Array) -> tuple[Array, WorstLoss]:
        """The row of entries that loses most, and its solution as a batch of one."""
        inside = rows[Combination.from_entries(size, rows).loses_q]
        solved = worst_loss(Combination.from_entries(size, inside), gamma, budget)
        k = int(solved.loss.argmax())
        return inside[k], solved[k : k + 1]

    entries = rng.integers(size.ranges)
    entries[0] = 0  # action 0 stays in state 0: a start inside the search space
    entries, worst = worst_of(entries[None])
    programmes = 1
    while programmes < steps * NEIGHBOURS and worst.loss[0] < ceiling * (1 - worst.ratio_tolerance(gamma)[0]):
        neighbours = np.tile(entries, (NEIGHBOURS, 1))
        row, place = np.arange(NEIGHBOURS), rng.choice(movable, size=NEIGHBOURS)
        values = size.ranges[place]
        neighbours[row, place] = (neighbours[row, place] + rng.integers(1, values)) % values
        # The present one comes last: of equal losses the first is taken, so that plateaus are crossed.
        entries, worst = worst_of(np.vstack([neighbours, entries]))
        programmes += NEIGHBOURS
    return worst, programmes
