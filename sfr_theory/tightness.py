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

By relabelling, pi takes action 0 everywhere and the loss is read in state 0.

**From a programme to a problem** (`certify`). The solution is rounded to rationals and mended: a bonus on
pi_1's actions restores its optimality exactly, eps becomes what the choice of pi needs. Both sides of the
bound are then computed in rational arithmetic like those of any other problem, so that rounding can cost
tightness and never truth.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property, lru_cache

import numpy as np
from scipy.optimize import linprog

from sfr_theory.arithmetic import Array, Number, exact_array, fraction, rational, zeros
from sfr_theory.bounds import STATEMENTS, BoundTerms, Evaluation
from sfr_theory.errors import InputError
from sfr_theory.gpi import gpi_values
from sfr_theory.mdp import FiniteMDP, TransferProblem
from sfr_theory.operators import q_from_xi
from sfr_theory.solve import optimal, optimal_actions, policy_q, policy_xi
from sfr_theory.transfer import evaluate

FEASIBILITY_TOLERANCE = 1e-9
"""How far the solver may overstep a constraint of a linear programme."""

RATIO_TOLERANCE = 4 * FEASIBILITY_TOLERANCE
"""How far the ratio of a linear programme may then exceed the truth.

An overstep of t is mended (see `certify`) by a bonus of t on pi_1's actions, which with the overstepped
distance adds at most 2 t to d, and by t/2 more eps: by T2' with a budget of 1, at most 3 t more ratio."""

LARGEST_DENOMINATOR = 10**6
"""Rewards of a programme's solution are rounded to fractions with at most this denominator."""


# --- Problems with one feature for each (s, a) -------------------------------------------------------------


def free_reward_mdp(next_state: Array, gamma: object) -> FiniteMDP:
    """Deterministic dynamics (S, A) with feature s * A + a at (s, a), so that a reward is any r(s, a)."""
    states, actions = next_state.shape
    s, a = np.indices(next_state.shape)
    kernel = np.zeros((states, actions, states, states * actions), dtype=int)
    kernel[s, a, next_state, s * actions + a] = 1
    return FiniteMDP(kernel, gamma)


def _misread(xi: Array, target: Array, q_error: Array) -> Array:
    """xi~ that the target reads with the given error: sum R (xi~ - xi) = q_error, (..., S, A).

    The error is put on the feature of the largest |R|. Where R = 0 nothing can be misread.
    """
    loudest = np.abs(target).argmax()
    misread = xi.copy()
    if target[loudest] != 0:
        misread[..., loudest] = misread[..., loudest] + q_error / target[loudest]
    return misread


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
    islands = range(2, states)
    next_state = np.array([[0, min(1, states - 1)], [0, 1], *([s, s] for s in islands)][:states])
    target = exact_array(
        [[move, 2 * eps], [2 * eps, 2 * eps + 2 * d - move], *([0, -d - eps] for _ in islands)][:states]
    ).reshape(-1)
    shift = exact_array([[0, d], [d, -d], *([0, 0] for _ in islands)][:states]).reshape(-1)
    sources = np.stack([target + shift] * tasks)
    mdp = free_reward_mdp(next_state, rational(gamma))
    go_and_leave = np.array([1, 0, *(0 for _ in islands)][:states])
    xi = np.stack([policy_xi(mdp, go_and_leave)] * tasks)
    q_error = zeros((tasks, *next_state.shape), like=target)
    q_error[:, 0] = [eps, -eps]
    return TransferProblem(mdp, target, sources, _misread(xi, target, q_error))


def has_ties(problem: TransferProblem) -> bool:
    """Whether a task of an exact problem has two optimal policies, or GPI a choice of actions."""
    rewards = np.concatenate([problem.target[None], problem.sources])
    best = optimal_actions(optimal(problem.mdp, rewards).q)
    chosen = optimal_actions(gpi_values(q_from_xi(evaluate(problem).approximations, problem.target[None])))
    return bool((best.sum(axis=-1) > 1).any() or (chosen.sum(axis=-1) > 1).any())


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
    def ranges(self) -> tuple[int, ...]:
        """How many values each entry of a `Combination`, written as one list of integers, can take."""
        pairs = self.states * self.actions
        return (
            (self.states,) * pairs
            + (self.actions,) * (self.tasks * self.states)
            + (self.actions,) * self.states
            + (self.tasks,) * self.states
        )

    @property
    def num_combinations(self) -> int:
        return math.prod(self.ranges)


@dataclass(frozen=True, eq=False)
class Combination:
    """All that is discrete in a worst-case problem; the GPI policy takes action 0 everywhere."""

    next_state: Array  # (S, A)
    source_policies: Array  # (T, S); source 0 is the closest
    rival: Array  # (S,), the policy mu
    followed: Array  # (S,), the source whose value makes GPI take action 0

    @classmethod
    def from_entries(cls, size: Size, entries: Array) -> Combination:
        pairs, policies = size.states * size.actions, size.tasks * size.states
        next_state, source_policies, rival, followed = np.split(
            np.asarray(entries), np.cumsum([pairs, policies, size.states])
        )
        return cls(
            next_state.reshape(size.states, size.actions),
            source_policies.reshape(size.tasks, size.states),
            rival,
            followed,
        )

    @property
    def gpi_policy(self) -> Array:
        return np.zeros(len(self.rival), dtype=int)

    @property
    def loses_q(self) -> bool:
        """Whether some (s, a) leads to state 0, so that a loss of V there is a loss of Q."""
        return bool((self.next_state == 0).any())

    @property
    def rival_is_canonical(self) -> bool:
        """Whether the rival leaves the GPI policy on its way from state 0, and nowhere else.

        What it does in states that it never meets has no effect; all zeros is the GPI policy itself.
        """
        met, state = set(), 0
        while state not in met:
            met.add(state)
            state = int(self.next_state[state, self.rival[state]])
        unmet = [s for s in range(len(self.rival)) if s not in met]
        return bool(self.rival.any() and not self.rival[unmet].any())


def combinations(size: Size) -> Iterator[Combination]:
    """Every combination of a size, up to relabelling and to what the rival does in states it never meets."""
    for entries in itertools.product(*map(range, size.ranges)):
        combination = Combination.from_entries(size, np.array(entries))
        if combination.rival_is_canonical:
            yield combination


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
    """The optimum of the linear programme: the loss of V in state 0, and rewards that cause it."""

    combination: Combination
    loss: float
    reward: Array  # (S * A,)
    source_reward: Array  # (S * A,)


@lru_cache(maxsize=1024)
def _cached_mdp(next_state: bytes, shape: tuple[int, int], gamma: float) -> FiniteMDP:
    return free_reward_mdp(np.frombuffer(next_state, dtype=int).reshape(shape), gamma)


def worst_loss(combination: Combination, gamma: float, budget: Budget) -> WorstLoss:
    """Maximise V^mu(0) - V^pi(0) over rewards and errors; the module's text states the programme."""
    c = combination
    states, actions = c.next_state.shape
    pairs = states * actions
    mdp = _cached_mdp(c.next_state.astype(int).tobytes(), (states, actions), gamma)
    q_rows = policy_xi(mdp, np.vstack([c.gpi_policy, c.rival, c.source_policies]))  # Q^rho(s, a) = row . r
    gpi_rows, rival_rows, source_rows = q_rows[0], q_rows[1], q_rows[2:]
    s = np.arange(states)

    def rows(reward: Array | float, source_reward: Array | float, d: float, eps: float, count: int) -> Array:
        """Coefficients of (r, r_1, d, eps), one row a constraint."""
        block = np.zeros((count, 2 * pairs + 2))
        block[:, :pairs], block[:, pairs : 2 * pairs] = reward, source_reward
        block[:, -2], block[:, -1] = d, eps
        return block

    closest = source_rows[0]
    regret = (closest - closest[s, c.source_policies[0]][:, None]).reshape(pairs, pairs)
    followed = source_rows[c.followed, s, c.gpi_policy]
    temptation = (source_rows - followed[:, None])[:, :, 1:].reshape(-1, pairs)
    unit = np.eye(pairs)
    at_most_zero = np.vstack(
        [
            rows(0, regret, 0, 0, pairs),
            rows(unit, -unit, -1, 0, pairs),
            rows(-unit, unit, -1, 0, pairs),
            rows(temptation, 0, 0, -2, len(temptation)),
        ]
    )
    gain = rival_rows[0, c.rival[0]] - gpi_rows[0, c.gpi_policy[0]]
    equations = budget.equations(gamma)
    solution = linprog(
        rows(-gain, 0, 0, 0, 1)[0],
        A_ub=at_most_zero,
        b_ub=np.zeros(len(at_most_zero)),
        A_eq=np.vstack([rows(0, 0, u, v, 1) for u, v, _ in equations]),
        b_eq=[w for _, _, w in equations],
        bounds=[(None, None)] * (2 * pairs) + [(0, None)] * 2,
        method="highs",
        options={
            "primal_feasibility_tolerance": FEASIBILITY_TOLERANCE,
            "dual_feasibility_tolerance": FEASIBILITY_TOLERANCE,
        },
    )
    if solution.status != 0:
        raise ArithmeticError(f"the linear programme of {c} at gamma = {gamma}: {solution.message}")
    return WorstLoss(c, -solution.fun, solution.x[:pairs], solution.x[pairs : 2 * pairs])


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

    def worst(self, solved: list[WorstLoss]) -> WorstLoss:
        """The solved programme with the largest loss that this measure sees."""
        return max((w for w in solved if w.combination.loses_q or not self.is_of_q), key=lambda w: w.loss)

    def ratio(self, evaluation: Evaluation) -> Fraction | None:
        """The ratio of an evaluated problem, exactly."""
        return exact_ratio(STATEMENTS[self.statement].terms(evaluation))


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


@dataclass(frozen=True, eq=False)
class Witness:
    """An exact problem and the branch of its ties that loses most."""

    problem: TransferProblem
    evaluation: Evaluation


def evaluate_branch(problem: TransferProblem, source_policies: Array, gpi_policy: Array) -> Evaluation:
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
    values = gpi_values(q_from_xi(approximations, problem.target[None]))
    if not among(optimal_actions(values), gpi_policy):
        raise ArithmeticError("GPI cannot choose the given policy")
    return replace(
        base,
        source_xi=source_xi,
        approximations=approximations,
        gpi_policy=gpi_policy,
        gpi_xi=policy_xi(mdp, gpi_policy),
    )


def _rounded(values: Array) -> Array:
    return exact_array([Fraction(float(value)).limit_denominator(LARGEST_DENOMINATOR) for value in values])


def certify(worst: WorstLoss, gamma: object) -> Witness:
    """An exact problem that loses what the linear programme says, up to rounding; see the module's text."""
    c = worst.combination
    states, actions = c.next_state.shape
    s = np.arange(states)
    mdp = free_reward_mdp(c.next_state, rational(gamma))
    target, source = _rounded(worst.reward), _rounded(worst.source_reward)

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
    return Witness(problem, evaluate_branch(problem, c.source_policies, c.gpi_policy))


# --- Searches ----------------------------------------------------------------------------------------------


def solve_all(size: Size, gamma: float, budget: Budget) -> list[WorstLoss]:
    """The worst loss of every combination of a size: its largest is the worst case of that size."""
    return [worst_loss(combination, gamma, budget) for combination in combinations(size)]


def climb(rng: np.random.Generator, size: Size, gamma: float, budget: Budget, steps: int) -> list[WorstLoss]:
    """Local search with the linear programme as objective: change one entry, keep what is no worse.

    It moves among combinations where some (s, a) leads to state 0, so that its losses count for V and for
    Q, and ends early where T2' leaves no room. Returns every programme solved.
    """
    ranges = np.array(size.ranges)
    movable = np.flatnonzero(ranges > 1)
    entries = rng.integers(ranges)
    entries[0] = 0  # action 0 stays in state 0: a start inside the search space
    best = worst_loss(Combination.from_entries(size, entries), gamma, budget)
    solved = [best]
    enough = budget.ceiling(gamma) * (1 - RATIO_TOLERANCE)
    while best.loss < enough and len(solved) <= steps:
        candidate = entries.copy()
        place = rng.choice(movable)
        candidate[place] = (candidate[place] + rng.integers(1, ranges[place])) % ranges[place]
        combination = Combination.from_entries(size, candidate)
        if not combination.loses_q:
            continue
        solved.append(worst_loss(combination, gamma, budget))
        if solved[-1].loss >= best.loss:
            entries, best = candidate, solved[-1]
    return solved
