"""Identities behind the learning rules: Theorem 1 (th:convergence-xi-learning) and the two feature estimates.

SFRQ-learning (eqn:xi_learning) with an estimate p^ of p(. | s_t, a_t), at a transition (s, a, s', phi_t):

    xi(s, a, .) <- (1 - alpha) xi(s, a, .) + alpha (p^ + gamma xi(s', abar, .)),   abar greedy

thm1/pathwise      Read under R this is Q-learning with reward sum R p^, on the same path: the greedy action
                   depends on Q alone, so by induction Q_n = sum R xi_n for ever.
thm1/pathwise-code The same for linear values theta_a s in R^D of any code z(phi_t), semi-gradient TD: read by
                   w, theta is the weights of scalar TD on the reward w . z, whatever w is.
mf/...             p^ = indicator of phi_t: then sum R p^ = R(phi_t), and E[update] = T_xi xi. For a density
                   the indicator of a point has mean 0.
mb/...             p^ = p~, a model updated by p~ <- p~ + beta (1_{phi_t} - p~) (eq:sf_model_update) before it
                   is used. After n updates its mean error is (1 - beta)^n (p~_0 - p). With r~_n = sum R p~_n,

                       r~_n = R(phi_n) - c (r~_n - r~_{n-1}),       c = (1 - beta)/beta,

                   and Y_n = Q_n + c alpha_n r~_n obeys Q-learning's recursion with reward R(phi_n), up to

                       c r~_{n-1} (alpha_n - alpha_{n-1} + alpha_n alpha_{n-1}),

                   which is summable for nonincreasing square-summable alpha (T1-MB in docs/theory.md).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import sympy
from sympy import Expr, Rational

from proofs_checks.argument import Proof, Step, broken, every, proved, refuted
from proofs_checks.symbolic import Polynomial, identity, joint_kernel, unknowns, with_last_probability
from sfr_theory.arithmetic import Array
from sfr_theory.claims import Method

# --- Theorem 1, path by path ----------------------------------------------------------------------


Pair = tuple[int, int]
PAIRS: tuple[Pair, ...] = tuple(itertools.product(range(2), range(2)))


def td_update(
    values: Array, at: Pair, bootstrap: Pair, cumulant: Array, rate: Polynomial, gamma: Polynomial
) -> Array:
    """eqn:xi_learning, and eq:q_learning with gamma in its place: `at` = (s_t, a_t), then (s_{t+1}, abar)."""
    updated = values.copy()
    updated[at] = values[at] * (1 - rate) + (cumulant + values[bootstrap] * gamma) * rate
    return updated


def linear_update(
    theta: Array, at: tuple[int, Array], bootstrap: tuple[int, Array], cumulant: Array, rate: Array,
    gamma: Array,
) -> Array:  # fmt: skip
    """Semi-gradient TD of linear values theta_a x, (A, D, X): `at` = (a_t, x_t), then (abar, x_{t+1})."""
    (action, state), (next_action, following) = at, bootstrap
    error = cumulant + theta[next_action] @ following * gamma - theta[action] @ state
    updated = theta.copy()
    updated[action] = theta[action] + np.outer(error, state) * rate
    return updated


def pathwise_steps(read_with: str = "R") -> Iterator[Step]:
    free = unknowns(gamma=(), alpha=(), R=(3,), R_other=(3,), xi=(2, 2, 3), estimate=(3,))
    rates = free["alpha"][()], free["gamma"][()]
    reward, xi, read = free["R"], free["xi"], free[read_with]

    def commutes(at: Pair, bootstrap: Pair) -> Step:
        learned = td_update(xi, at, bootstrap, free["estimate"], *rates)
        twin = td_update(xi @ read, at, bootstrap, free["estimate"] @ reward, *rates)
        return identity(f"(s, a) = {at}, (s', abar) = {bootstrap}", learned @ read, twin)

    yield every(
        "sum R (one update of xi) = one Q-learning update of sum R xi with reward sum R p^",
        itertools.starmap(commutes, itertools.product(PAIRS, repeat=2)),
    )
    indicators = np.eye(3, dtype=int)
    yield identity("sum R 1_{phi_t} = R(phi_t) = r_t: the model-free update", indicators @ reward, reward)


def code_steps(read_with: str = "w") -> Iterator[Step]:
    """One update of theta (A, D, S) at (s, a, s', abar), read by w, against that of w . theta (A, 1, S)."""
    free = unknowns(gamma=(), alpha=(), w=(2,), w_other=(2,), z=(2,), theta=(2, 2, 2), s=(2,), after=(2,))
    rates, theta, read = (free["alpha"], free["gamma"]), free["theta"], free[read_with][None]

    def commutes(action: int, bootstrap: int) -> Step:
        places = (action, free["s"]), (bootstrap, free["after"])
        learned = linear_update(theta, *places, free["z"], *rates)
        twin = linear_update(read @ theta, *places, free["w"][None] @ free["z"], *rates)
        return identity(f"a = {action}, abar = {bootstrap}", read @ learned, twin)

    yield every(
        "w . (one TD update of theta on z) = one TD update of w . theta on the reward w . z",
        itertools.starmap(commutes, PAIRS),
    )


# --- model-free: the indicator --------------------------------------------------------------------


def indicator_steps(estimate: Callable[[int, int], int]) -> Iterator[Step]:
    """`estimate(phi, phi_t)` is the estimate of p(phi | s, a) from the observed phi_t."""
    states, features = 2, 3
    free = unknowns(gamma=(), p=(states, 2, states * features - 1), xi=(states, 2, features))
    kernel, xi = joint_kernel(free["p"], states, features), free["xi"]
    table = np.array([[estimate(phi, seen) for phi in range(features)] for seen in range(features)])
    yield identity(
        "E[1_{phi_t = phi} | s, a] = p(phi | s, a)", kernel.sum(axis=2) @ table, kernel.sum(axis=2)
    )

    def unbiased(selection: tuple[int, ...]) -> Step:
        chosen = xi[np.arange(states), list(selection)]
        target = table[None, :, :] + free["gamma"] * chosen[:, None, :]  # (s', phi_t, phi)
        mean = (kernel[..., None] * target).sum(axis=(2, 3))
        operator = kernel.sum(axis=2) + free["gamma"] * (kernel.sum(axis=3) @ chosen)
        return identity(f"greedy actions {selection}", mean, operator)

    yield every(
        "E[1_{phi_t} + gamma xi(s', abar(s'), .)] = T_xi(xi), also where s' and phi_t are dependent",
        map(unbiased, itertools.product(range(2), repeat=states)),
    )


def indicator_density_facts(
    probability_within: Callable[[Expr, Expr], Expr], density_at: Expr
) -> Iterator[Step]:
    """`probability_within(phi, h)` = Pr(|phi_t - phi| <= h); the indicator's mean is its limit at h = 0."""
    phi, h = sympy.symbols("phi h", positive=True)
    mean = sympy.limit(probability_within(phi, h), h, 0)
    yield Step(f"E[1_{{phi_t = phi}}] = Pr(phi_t = phi) = {mean} at every phi", mean == 0)
    rate = sympy.limit(probability_within(phi, h) / (2 * h), h, 0)
    yield Step(
        f"while the density is {density_at}: only Pr(|phi_t - phi| <= h)/(2h) tends to it",
        sympy.expand(rate - density_at) == 0 and density_at != 0,
    )


C0, C1, C2, PHI = sympy.symbols("c0 c1 c2 phi", positive=True)


def quadratic_density(phi: Expr) -> Expr:
    return C0 + C1 * phi + C2 * phi**2


def quadratic_window(phi: Expr, h: Expr) -> Expr:
    x = sympy.Symbol("x", positive=True)
    return sympy.integrate(quadratic_density(x), (x, phi - h, phi + h))


def window_with_an_atom(phi: Expr, h: Expr) -> Expr:
    """Half of the probability sits at phi itself: a discrete feature."""
    return Rational(1, 2) + quadratic_window(phi, h) / 2


# --- model-based: the one-step model --------------------------------------------------------------


def model_after(initial: Array, features_seen: tuple[int, ...], beta: Array) -> Array:
    """eq:sf_model_update along a sequence of observed features."""
    model = initial
    for seen in features_seen:
        indicator = np.eye(len(initial), dtype=int)[seen]
        model = model + (indicator - model) * beta[()]
    return model


def mean_model(p: Array, initial: Array, beta: Array, length: int) -> Array:
    """E[p~_n]: the mean over all sequences of n independent draws from p."""
    total = 0 * initial
    for seen in itertools.product(range(len(p)), repeat=length):
        total = total + model_after(initial, seen, beta) * np.prod([p[j] for j in seen], initial=1)
    return total


def bias_steps(power: Callable[[int], int] = lambda n: n) -> Iterator[Step]:
    free = unknowns(beta=(), p=(1,), initial=(1,), mean=(2,))
    p, initial = with_last_probability(free["p"]), with_last_probability(free["initial"])
    beta, mean = free["beta"], free["mean"]
    yield identity(
        "one update: E[p~_n] - p = (1 - beta) (E[p~_{n-1}] - p)",
        mean + (p - mean) * beta[()] - p,
        (mean - p) * (1 - beta[()]),
    )
    yield every(
        "hence E[p~_n] - p = (1 - beta)^n (p~_0 - p); again by summing over all sequences of features",
        (
            identity(
                f"n = {n}",
                mean_model(p, initial, beta, n) - p,
                (initial - p) * (1 - beta[()]) ** power(n),
            )
            for n in (1, 2, 3)
        ),
    )


def exact_identity_steps(forget_product: bool = False) -> Iterator[Step]:
    """beta is invertible; everything is multiplied by it, so c beta = 1 - beta."""
    free = unknowns(
        gamma=(),
        beta=(),
        R=(3,),
        model=(3,),
        r_previous=(),
        r_seen=(),
        rate=(),
        rate_previous=(),
        Q=(),
        value=(),
    )
    beta, reward = free["beta"][()], free["R"]

    def shows_the_sampled_reward(seen: int) -> Step:
        before = free["model"] @ reward
        after = model_after(free["model"], (seen,), free["beta"]) @ reward
        return identity(
            f"phi_n = phi_{seen + 1}", beta * after, beta * reward[seen] - (1 - beta) * (after - before)
        )

    yield every(
        "r~_n = R(phi_n) - c (r~_n - r~_{n-1}), whichever feature is seen",
        map(shows_the_sampled_reward, range(3)),
    )
    previous, r = free["r_previous"][()], free["r_seen"][()]
    rate, rate_previous = free["rate"][()], free["rate_previous"][()]
    current = previous + beta * (r - previous)
    bootstrap = free["gamma"][()] * free["value"][()]
    q = free["Q"][()]
    updated = q + rate * (current + bootstrap - q)
    # beta Y_n, with Y_n = Q_n + c alpha_n r~_n.
    y = beta * updated + (1 - beta) * rate * current
    y_previous = beta * q + (1 - beta) * rate_previous * previous
    remainder = (
        (1 - beta) * previous * (rate - rate_previous + (0 if forget_product else rate * rate_previous))
    )
    yield identity(
        "Y_n = (1 - alpha_n) Y_{n-1} + alpha_n (R(phi_n) + gamma V_{n-1}(s')) + rho_n with "
        "rho_n = c r~_{n-1} (alpha_n - alpha_{n-1} + alpha_n alpha_{n-1})",
        np.array([y], dtype=object),
        np.array([(1 - rate) * y_previous + rate * beta * (r + bootstrap) + remainder], dtype=object),
    )


PROOFS: tuple[Proof, ...] = (
    proved("thm1/pathwise", Method.SYMBOLIC, pathwise_steps,
           "all xi, R, p^, alpha, gamma, transitions, greedy rules that depend on Q only; 2 states, 2 "
           "actions, 3 features; symbolic. All further steps by induction",
           broken("xi read under another reward than Q-learning's", lambda: pathwise_steps("R_other"))),
    proved("thm1/pathwise-code", Method.SYMBOLIC, code_steps,
           "all theta, w, z, states, alpha, gamma and bootstrap actions that both are told; 2 actions, codes "
           "and states of 2 entries; symbolic. All further steps by induction",
           broken("theta read by other weights than the reward's", lambda: code_steps("w_other"))),
    proved("mf/indicator-unbiased", Method.SYMBOLIC,
           lambda: indicator_steps(lambda phi, seen: int(phi == seen)),
           "all joint kernels p(s', phi | s, a), xi, gamma, greedy choices; 2 states, 2 actions, 3 features; "
           "symbolic",
           broken("the indicator of the next feature in the list",
                  lambda: indicator_steps(lambda phi, seen: int(phi == (seen + 1) % 3)))),
    refuted("mf/indicator-density", lambda: indicator_density_facts(quadratic_window, quadratic_density(PHI)),
            "every quadratic density, at every interior point; symbolic integrals and limits",
            broken("a feature with an atom at phi has mean 0 there",
                   lambda: indicator_density_facts(window_with_an_atom, quadratic_density(PHI)))),
    proved("mb/bias-formula", Method.SYMBOLIC, bias_steps,
           "all p, p~_0 and beta, 2 features; every n by induction, n = 1, 2, 3 also by enumeration; "
           "symbolic", broken("one power of 1 - beta too many", lambda: bias_steps(lambda n: n + 1))),
    proved("mb/exact-identity", Method.SYMBOLIC, exact_identity_steps,
           "all beta in (0, 1], rates, gamma, rewards, models and features seen, 3 features; symbolic",
           broken("alpha_n alpha_{n-1} dropped from the remainder",
                  lambda: exact_identity_steps(forget_product=True))),
)  # fmt: skip
