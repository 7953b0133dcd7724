"""What the listings and the procedure sections say, where it can be computed.

* Steps of stochastic gradient descent: on a loss (y - q)^2 the step of rate alpha moves q by
  2 alpha (y - q); a sum of losses moves n times as far as their mean; a weight that is right already does
  not move.
* eq:linear_model_fitting as printed adds the same number to every weight and stands still wherever the
  errors cancel. A step along sign(R - phi.w) phi, averaged, descends the mean absolute error, because s is a
  subgradient of |.| at e exactly if |s| <= 1 and s e = |e|.
* Algorithm 5 (algo:CMFXI) takes the greedy action of s_t where that of s_{t+1} is meant. The operator

      (P Q)(s, a) = r(s, a) + gamma E[Q(s', argmax_b Q(s, b))]

  does not fix Q*.
* The model-free update at gamma = 0 is a running mean: with alpha_k = 1/k the empirical distribution; with
  rates that decrease too fast, such as 2^-k, the start keeps a weight of prod (1 - 2^-k) >= 9/32 for ever.
* Counts: dimensions and grid sizes, from the numbers as printed.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from math import prod

import numpy as np
import sympy

from proofs_checks.argument import Proof, Step, broken, incomplete, proved, refuted
from sfr_theory.arithmetic import Array, exact_array
from sfr_theory.claims import Method
from sfr_theory.mdp import FiniteMDP, deterministic_mdp
from sfr_theory.operators import bellman_q, expected_reward, greedy
from sfr_theory.paper import OBJECT_AGENTS, OBJECT_GRID, RACER_GRID, RACER_RATES
from sfr_theory.solve import optimal, policy_psi, policy_q

# --- Gradient steps ----------------------------------------------------------------------------------------


def _step_length(
    loss: Callable[[list[sympy.Expr], list[sympy.Expr]], sympy.Expr], dimensions: int
) -> sympy.Expr:
    """How far SGD(1) moves the first prediction, in units of its error."""
    targets, predictions = (list(sympy.symbols(f"{name}:{dimensions}")) for name in "yq")
    step = -sympy.diff(loss(targets, predictions), predictions[0])
    return sympy.cancel(step / (targets[0] - predictions[0]))


def _sum_of_squares(y: list[sympy.Expr], q: list[sympy.Expr]) -> sympy.Expr:
    return sum((a - b) ** 2 for a, b in zip(y, q, strict=True))


def _mean_of_squares(y: list[sympy.Expr], q: list[sympy.Expr]) -> sympy.Expr:
    return _sum_of_squares(y, q) / len(y)


def half_rate_steps(factor: sympy.Expr) -> Iterator[Step]:
    length = _step_length(_sum_of_squares, 1)
    yield Step(f"SGD(alpha) on (y - q)^2 moves q by {length} alpha (y - q)", length == 2)
    yield Step("at half the rate that is the tabular update q + alpha (y - q)", factor * length == 1)


def loss_facts(dimensions: int) -> Iterator[Step]:
    of_sum, of_mean = (_step_length(loss, dimensions) for loss in (_sum_of_squares, _mean_of_squares))
    yield Step(
        f"with {dimensions} dimensions a step on the sum is {of_sum / of_mean} times that on the mean",
        of_sum != of_mean,
    )


def given_weights_facts(linear: bool) -> Iterator[Step]:
    """The gradient of (R(phi) - phi.w)^2 in w, at the least-squares w, for the four objects."""
    features = sympy.Matrix([[1, 0, 1, 0], [1, 0, 0, 1], [0, 1, 1, 0], [0, 1, 0, 1]])
    weights = sympy.Matrix(sympy.symbols("w:4"))
    reward = features * weights
    if not linear:
        reward = reward + sympy.Matrix([1, 0, 0, 0])
    gradients = [-2 * (reward[k] - (features * weights)[k]) * features[k, :] for k in range(4)]
    moves = any(sympy.expand(entry) != 0 for gradient in gradients for entry in gradient)
    yield Step("a reward that differs from phi.w on one object moves w there, so the given w drifts", moves)


# --- eq:linear_model_fitting -------------------------------------------------------------------------------


def printed_fit_facts(reward: tuple[int, int]) -> Iterator[Step]:
    """Features e_1, e_2; the printed step at w = 0."""
    printed_step = Fraction(sum(reward), 2)
    error = Fraction(sum(map(abs, reward)), 2)
    yield Step(
        f"features e_1, e_2, R = {reward}: at w = 0 the printed step is {printed_step}", printed_step == 0
    )
    yield Step(f"although the mean absolute error is {error}, and 0 at w = R", error > 0)


def subgradient_steps(direction: Callable[[sympy.Expr], sympy.Expr]) -> Iterator[Step]:
    """`direction(e)` must be a subgradient of |.| at e; the chain rule then gives -direction(e) phi."""
    positive, negative = sympy.Symbol("e", positive=True), sympy.Symbol("e", negative=True)
    for error, name in ((positive, "e > 0"), (negative, "e < 0"), (sympy.Integer(0), "e = 0")):
        s = direction(error)
        yield Step(f"{name}: |s| <= 1", (sympy.Abs(s) <= 1) == True)  # noqa: E712 - sympy's truth values
        yield Step(f"{name}: s e = |e|", sympy.simplify(s * error - sympy.Abs(error)) == 0)


# --- Algorithm 5's bootstrap -------------------------------------------------------------------------------


def listed_operator(mdp: FiniteMDP, reward: Array, q: Array) -> Array:
    """P of the module's text: the greedy action of s_t, used in s_{t+1}."""
    chosen = q[:, greedy(q)].T  # (S, S'): Q(s', argmax_b Q(s, b))
    return expected_reward(mdp, reward) + mdp.gamma * (mdp.transition * chosen[:, None, :]).sum(axis=-1)


def _deterministic_mdps() -> Iterator[FiniteMDP]:
    """Every deterministic MDP with two states, two actions and two features, gamma = 1/2."""
    tables = np.indices((2,) * 4).reshape(4, -1).T.reshape(-1, 2, 2)
    for next_state, feature in itertools.product(tables, repeat=2):
        yield deterministic_mdp(next_state, feature, Fraction(1, 2), np.eye(2))


Operator = Callable[[FiniteMDP, Array, Array], Array]


def bootstrap_steps(operator: Operator) -> Iterator[Step]:
    reward = exact_array([0, 1])
    mdps = list(_deterministic_mdps())
    moved = 0
    for mdp in mdps:
        q = optimal(mdp, reward).q
        moved += not np.array_equal(operator(mdp, reward, q), q)
    yield Step(f"the operator fixes Q* on all {len(mdps)} MDPs", moved == 0, f"not on {moved} of them")


def printed_bootstrap_facts(operator: Operator) -> Iterator[Step]:
    """Two states that lead to each other; action 0 pays in the first, action 1 in the second."""
    mdp = deterministic_mdp([[1, 1], [0, 0]], [[1, 0], [0, 1]], Fraction(1, 2))
    reward = exact_array([0, 1])
    q = optimal(mdp, reward).q
    image = operator(mdp, reward, q)
    yield Step(
        f"two states in turn, action 0 pays in one, action 1 in the other: Q*(0, 0) = {q[0, 0]}, "
        f"the listed target has mean {image[0, 0]}",
        bool(image[0, 0] != q[0, 0]),
    )


# --- The model-free update at gamma = 0 --------------------------------------------------------------------


def initial_weight(rates: list[Fraction]) -> Fraction:
    """The weight of xi_0 in xi_n."""
    return prod((1 - rate for rate in rates), start=Fraction(1))


def observation_weights(rates: list[Fraction]) -> list[Fraction]:
    """The weight of each observation in xi_n."""
    return [rate * initial_weight(rates[k + 1 :]) for k, rate in enumerate(rates)]


def harmonic_rates(count: int) -> list[Fraction]:
    return [Fraction(1, k) for k in range(1, count + 1)]


def rate_facts(rates: list[Fraction]) -> Iterator[Step]:
    yield Step(
        "alpha_k = 1/k weighs all observations alike (checked to n = 20)",
        set(observation_weights(harmonic_rates(20))) == {Fraction(1, 20)},
    )
    kept = initial_weight(rates)
    yield Step(
        f"alpha_k = 2^-k keeps a weight of at least 9/32 on xi_0 (n = 40: {float(kept):.4f})",
        kept >= Fraction(9, 32),
    )


# --- Q for general rewards on discrete features ------------------------------------------------------------


def decomposition_steps(reward: tuple[int, int]) -> Iterator[Step]:
    """One state; the actions emit phi = 1 and phi = 2, valued by `reward`; the policy takes the first."""
    mdp = deterministic_mdp([[0, 0]], [[0, 1]], Fraction(1, 2), [[1], [2]])
    policy = np.zeros(1, dtype=int)
    psi, q = policy_psi(mdp, policy)[0, :, 0], policy_q(mdp, policy, exact_array(list(reward)))[0]
    yield Step(
        f"R(1) = {reward[0]}, R(2) = {reward[1]}: psi of phi is {psi[0]}, {psi[1]} and Q is {q[0]}, {q[1]}: "
        "no w has Q = psi w",
        bool(psi[0] * q[1] != psi[1] * q[0]),
    )


# --- Counts ------------------------------------------------------------------------------------------------

POSITION, MEMORY, CONSTANT = 10 * 10, 12, 1


def count_step(name: str, counted: int, printed: int, right: bool = True) -> list[Step]:
    return [Step(f"{name}: {counted} counted, {printed} printed", (counted == printed) is right)]


miscount_fact = partial(count_step, right=False)


def names_facts(grid: set[str]) -> list[Step]:
    odd = sorted(grid - set(OBJECT_AGENTS))
    return [Step(f"in the grid but in no table or figure: {', '.join(odd)}", bool(odd))]


def torus_facts(largest_offset: sympy.Expr) -> list[Step]:
    """Each coordinate of a difference is at most `largest_offset`."""
    largest = sympy.sqrt(2 * largest_offset**2)
    return [Step(f"no distance exceeds {largest} < 1", bool(largest < 1))]


PROOFS: tuple[Proof, ...] = (
    proved("xi/no-linear-decomposition", Method.EXACT, lambda: decomposition_steps((1, 0)),
           "an example: one state, two actions, gamma = 1/2; exact. In other features it can be split: the "
           "one-hot code (onehot/discrete)",
           broken("nor for a linear reward", lambda: decomposition_steps((1, 2)))),
    incomplete("mf/learns-distribution", "the Robbins-Monro conditions; 'decreasing over time' is not enough",
               lambda: rate_facts([Fraction(1, 2**k) for k in range(1, 41)]),
               "gamma = 0, one pair; (1-1/2)(1-1/4)(1 - sum of the other 2^-k) = 9/32 bounds every n; exact",
               broken("alpha_k = 1/k keeps some of xi_0, too", lambda: rate_facts(harmonic_rates(40)))),
    proved("alg/half-rates", Method.SYMBOLIC, lambda: half_rate_steps(sympy.Rational(1, 2)),
           "one entry, any rate and target; symbolic. The paper gives another reason for half the rates: "
           "Barreto et al. use absolute error losses",
           broken("the full rate gives the tabular rule", lambda: half_rate_steps(sympy.Integer(1)))),
    incomplete("alg/sfql-updates-given-weights", "r = phi.w exactly (linear tasks with the true w)",
               lambda: given_weights_facts(linear=False),
               "object features, all w; for general rewards the fitted w is not kept; symbolic",
               broken("w moves also where r = phi.w", lambda: given_weights_facts(linear=True))),
    refuted("alg/csfr-listing-printed", lambda: printed_bootstrap_facts(listed_operator),
            "two states, two actions, gamma = 1/2; exact",
            broken("the greedy action of s_{t+1} fails, too", lambda: printed_bootstrap_facts(bellman_q))),
    proved("alg/csfr-listing-corrected", Method.EXACT, lambda: bootstrap_steps(bellman_q),
           "that operator is the Bellman operator, and Q* its only fixed point by "
           "prop2/fixed-point-corrected; here "
           "it is applied to Q* on every deterministic 2-state 2-action MDP with R = (0, 1), gamma = 1/2; "
           "exact", broken("the greedy action of s_t", lambda: bootstrap_steps(listed_operator))),
    refuted("alg/loss-sum-or-mean", lambda: loss_facts(3),
            "n = 3 as in the racer: the two differ by a factor in the learning rate; symbolic",
            broken("they differ for n = 1", lambda: loss_facts(1))),
    refuted("alg/linear-model-fitting-printed", lambda: printed_fit_facts((1, -1)),
            "two features; the step is a number where a vector is needed, and has no sign; exact",
            broken("it stands still where the errors do not cancel", lambda: printed_fit_facts((1, 1)))),
    proved("alg/linear-model-fitting-corrected", Method.SYMBOLIC, lambda: subgradient_steps(sympy.sign),
           "every error e; averaging over features keeps it; symbolic",
           broken("without the sign", lambda: subgradient_steps(lambda e: e))),
    refuted("alg/state-dimension",
            lambda: miscount_fact("position, memory and constant", POSITION + MEMORY + CONSTANT, 112),
            "the printed parts; 112 leaves out the constant, the appendix says 113",
            broken("113 is wrong, too", lambda: miscount_fact("state", POSITION + MEMORY + CONSTANT, 113))),
    proved("alg/feature-input-dimension", Method.EXACT,
           lambda: count_step("two states", 2 * (POSITION + MEMORY + CONSTANT), 226),
           "the printed parts",
           broken("without the constant", lambda: count_step("two states", 2 * (POSITION + MEMORY), 226))),
    refuted("alg/object-grid-total", lambda: miscount_fact("combinations", sum(OBJECT_GRID.values()), 100),
            "the printed numbers, added up",
            broken("90 is wrong, too", lambda: miscount_fact("combinations", sum(OBJECT_GRID.values()), 90))),
    refuted("alg/object-grid-names", lambda: names_facts(set(OBJECT_GRID)),
            "the printed names; CSFR-4 is meant (h = 4 and 8 were used)",
            broken("without CSFR-3 a name is left over", lambda: names_facts(set(OBJECT_GRID) - {"CSFR-3"}))),
    proved("alg/racer-grid-total", Method.EXACT,
           lambda: count_step("combinations", sum(RACER_GRID.values()), 72),
           "the printed numbers, added up",
           broken("with three alphas", lambda: count_step("all", 3 * sum(RACER_GRID.values()) // 4, 72))),
    refuted("alg/racer-three-settings",
            lambda: miscount_fact("values of alpha", len(RACER_RATES["learning_rate"]), 3),
            "the printed table",
            broken("alpha_w does not have three",
                   lambda: miscount_fact("alpha_w", len(RACER_RATES["reward_learning_rate"]), 3))),
    refuted("alg/racer-feature-range", lambda: torus_facts(sympy.Rational(1, 2)),
            "attained between (0, 0) and (1/2, 1/2). The paper normalises to [0, 1] and does not say by "
            "what", broken("on a square without wrap-around", lambda: torus_facts(sympy.Integer(1)))),
)  # fmt: skip
