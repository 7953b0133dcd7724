"""Section 2 of the paper: Q-functions, Q-learning, successor representations, successor features.

With r_t = R(phi_t), phi_t = phi(s_t, a_t, s_{t+1}), and a policy pi:

    eq:q_function            Q(s, a) = E[sum_k gamma^k r_{t+k}] = E[r_t + gamma Q(s_{t+1}, a_{t+1})]
    eq:q_learning            Q <- Q + alpha (r_t + gamma max Q(s_{t+1}, .) - Q)          printed without gamma
    eq:sr, eq:sr_q           M(s, a, s') = sum_k gamma^k Pr(s_{t+k} = s'),  Q = sum over s' of M R
    eq:psi_function          Q_i = psi . w_i  where r_i = phi . w_i; and Q_j of pi_i = psi of pi_i . w_j
    eq:psi_function_bellman  psi(s, a) = E[phi_t + gamma psi(s_{t+1}, pi(s_{t+1}))]     printed with phi_{t+1}

Identities are between polynomials, after multiplication by det(I - gamma P_pi) (`proofs_checks.symbolic`).
Every discounted sum here solves C = c + gamma E[C(s_{t+1}, a_{t+1})]; that such a C is the sum of the series
of c is the last step of `bg/q-bellman` and serves them all.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction

import numpy as np

from proofs_checks.argument import Proof, Step, broken, every, proved, refuted
from proofs_checks.symbolic import SymbolicMDP, identity, joint_kernel, series_steps, symbolic_mdp, unknowns
from sfr_theory.arithmetic import Array
from sfr_theory.claims import Method
from sfr_theory.mdp import deterministic_mdp
from sfr_theory.operators import at_policy, expected_next
from sfr_theory.solve import policy_psi

SCOPE = "all kernels, stochastic policies, rewards and gamma; {} states, 2 actions, {} features; symbolic"


# --- eq:q_function -------------------------------------------------------------------------------


def q_bellman_steps(forget_gamma: bool = False) -> Iterator[Step]:
    mdp = symbolic_mdp(R=(2,))
    r = mdp.expected_reward(mdp.given["R"])
    q = mdp.discounted(r)
    bootstrap = mdp.shifted(q) if forget_gamma else mdp.gamma * mdp.shifted(q)
    yield identity("Q(s, a) = E[r_t + gamma Q(s_{t+1}, a_{t+1})]", q, mdp.det * r + bootstrap)
    yield from series_steps()


# --- eq:q_learning -------------------------------------------------------------------------------


def q_learning_printed_facts(discount: int | Fraction = 1) -> Iterator[Step]:
    """One state, one action, reward 1, gamma = 1/2; `discount` multiplies the bootstrap, 1 as printed."""
    gamma = Fraction(1, 2)
    optimal = 1 / (1 - gamma)
    free = unknowns(q=(), alpha=())
    q, alpha = free["q"], free["alpha"]

    def change(value: Array | Fraction) -> Array:
        return alpha * (1 + discount * value - value)

    yield Step(
        f"one state, reward 1, gamma 1/2: Q* = {optimal}, yet the update moves it",
        bool(change(optimal) != 0),
    )
    yield identity(
        "the update adds alpha whatever Q is: no fixed point, and Q grows for ever", change(q), alpha
    )


def q_learning_corrected_steps(forget_gamma: bool = False) -> Iterator[Step]:
    states, actions, features = 2, 2, 2
    free = unknowns(
        gamma=(), alpha=(), p=(states, actions, states * features - 1), Q=(states, actions), R=(features,)
    )
    kernel = joint_kernel(free["p"], states, features)
    alpha, q, reward = free["alpha"], free["Q"], free["R"]
    gamma = 1 if forget_gamma else free["gamma"]
    r = kernel.sum(axis=2) @ reward

    def mean_update_is_bellman(selection: tuple[int, ...]) -> Step:
        value = q[np.arange(states), list(selection)]
        # Over outcomes (s', phi) of each (s, a): the target of the update, then its mean.
        target = reward[None, None, None, :] + gamma * value[None, None, :, None]
        updated = q[:, :, None, None] + alpha * (target - q[:, :, None, None])
        mean = (kernel * updated).sum(axis=(2, 3))
        bellman = r + free["gamma"] * (kernel.sum(axis=3) @ value)
        return identity(f"greedy actions {selection}", mean, q + alpha * (bellman - q))

    yield every(
        "E[update] = Q + alpha (T Q - Q), whichever actions are greedy",
        map(mean_update_is_bellman, itertools.product(range(actions), repeat=states)),
    )
    mdp = symbolic_mdp(R=(2,))
    fixed = mdp.discounted(mdp.expected_reward(mdp.given["R"]))
    factor = 1 if forget_gamma else mdp.gamma
    yield identity(
        "T Q* = Q*: at the Q of a policy that is greedy on it the mean update is 0",
        mdp.det * mdp.expected_reward(mdp.given["R"]) + factor * mdp.shifted(fixed),
        fixed,
    )


# --- eq:sr, eq:sr_q ------------------------------------------------------------------------------


def sr_steps(rewarded: Callable[[SymbolicMDP, Array], Array]) -> Iterator[Step]:
    """`rewarded` gives r(s, a) from a reward of states: that of the current one, as the paper says."""
    mdp = symbolic_mdp(R=(3,))
    states, actions, _ = mdp.transition.shape
    current_state = np.broadcast_to(np.eye(states, dtype=int)[:, None, :], (states, actions, states))
    mdp = replace(mdp, feature_probability=current_state + 0 * mdp.gamma)
    representation = mdp.discounted(mdp.feature_probability)
    reward = mdp.given["R"]
    q = mdp.discounted(rewarded(mdp, reward))
    yield identity("Q(s, a) = sum over s' of M(s, a, s') R(s')", q[..., 0], representation @ reward)


# --- eq:psi_function, eq:psi_function_bellman ----------------------------------------------------


def psi_steps(read_with: str = "w", rewarded_with: str = "w", linear: bool = True) -> Iterator[Step]:
    """psi of any policy, read with one weight vector, against Q under the rewards of another."""
    mdp = symbolic_mdp(states=2, features=3, vectors=(3, 2), w=(2,), w_other=(2,), R=(3,))
    vectors = mdp.given["vectors"]
    psi = mdp.discounted(mdp.feature_probability @ vectors)
    reward = vectors @ mdp.given[rewarded_with] if linear else mdp.given["R"]
    q = mdp.discounted(mdp.expected_reward(reward))[..., 0]
    yield identity("Q(s, a) = psi(s, a) . w where R(phi) = phi . w", q, psi @ mdp.given[read_with])


def psi_bellman_steps(cumulant: Callable[[SymbolicMDP, Array], Array]) -> Iterator[Step]:
    mdp = symbolic_mdp(states=2, features=3, vectors=(3, 2))
    expected = mdp.feature_probability @ mdp.given["vectors"]
    psi = mdp.discounted(expected)
    yield identity(
        "psi(s, a) = E[phi_t + gamma psi(s_{t+1}, pi(s_{t+1}))]",
        psi,
        mdp.det * cumulant(mdp, expected) + mdp.gamma * mdp.shifted(psi),
    )


def psi_bellman_printed_facts(printed: bool = True) -> Iterator[Step]:
    """State 0 leads to state 1 with phi = 1; state 1 stays with phi = 0."""
    mdp = deterministic_mdp([[1], [1]], [[1], [0]], Fraction(1, 2), [[0], [1]])
    policy = np.zeros(2, dtype=int)
    psi = policy_psi(mdp, policy)
    expected = mdp.feature_probability @ mdp.linear_features
    cumulant = expected_next(mdp, at_policy(expected, policy)) if printed else expected
    right = cumulant + mdp.gamma * expected_next(mdp, at_policy(psi, policy))
    yield Step(
        f"a chain 0 -> 1 -> 1 ... with phi = 1, 0, 0, ...: psi(0) = {psi[0, 0, 0]}, but "
        f"E[phi_{{t+1}} + gamma psi(s_{{t+1}})] = {right[0, 0, 0]}",
        bool(psi[0, 0, 0] != right[0, 0, 0]),
    )


PROOFS: tuple[Proof, ...] = (
    proved("bg/q-bellman", Method.SYMBOLIC, q_bellman_steps,
           SCOPE.format(3, 2),
           broken("gamma forgotten in the bootstrap", lambda: q_bellman_steps(forget_gamma=True))),
    refuted("bg/q-learning-printed", q_learning_printed_facts,
            "one state, one action; every learning rate; exact",
            broken("with gamma in its place Q* stays where it is",
                   lambda: q_learning_printed_facts(Fraction(1, 2)))),
    proved("bg/q-learning-corrected", Method.SYMBOLIC, q_learning_corrected_steps,
           "mean update: all kernels, rewards, Q, rates, gamma and greedy choices; 2x2 MDPs, 2 features; "
           "fixed point: 3 states; symbolic. It is the only one: prop2/fixed-point-corrected",
           broken("gamma forgotten", lambda: q_learning_corrected_steps(forget_gamma=True))),
    proved("bg/sr", Method.SYMBOLIC, lambda: sr_steps(SymbolicMDP.expected_reward),
           "all kernels, stochastic policies, rewards of states and gamma; 3 states, 2 actions; symbolic",
           broken("R(s_{t+1}) for R(s_t)",
                  lambda: sr_steps(lambda mdp, reward: mdp.expected_next(reward[:, None])))),
    proved("bg/psi-linear", Method.SYMBOLIC, psi_steps,
           SCOPE.format(2, 3) + ", feature vectors in R^2",
           broken("a reward that is not linear in phi", lambda: psi_steps(linear=False))),
    proved("bg/psi-transfer", Method.SYMBOLIC,
           lambda: psi_steps(read_with="w_other", rewarded_with="w_other"),
           SCOPE.format(2, 3)
           + ", feature vectors in R^2; the policy is any, so also one that is optimal for w_i",
           broken("read with w_i under the rewards of w_j", lambda: psi_steps("w", "w_other"))),
    refuted("bg/psi-bellman-printed", psi_bellman_printed_facts,
            "two states, one action, gamma = 1/2; exact",
            broken("with phi_t the two sides agree", lambda: psi_bellman_printed_facts(printed=False))),
    proved("bg/psi-bellman-corrected", Method.SYMBOLIC,
           lambda: psi_bellman_steps(lambda mdp, expected: expected),
           SCOPE.format(2, 3) + ", feature vectors in R^2",
           broken("phi_{t+1} for phi_t",
                  lambda: psi_bellman_steps(lambda mdp, expected: mdp.shifted(expected)))),
)  # fmt: skip
