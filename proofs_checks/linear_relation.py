"""SFR and classical SF (c:appendix_relation_xi_classical_sf_linear_case, c:appendix_relation_xi_and_sf).

Theorem 3 for linear rewards R_i(phi) = phi . w_i, step by step as printed:

    Q_i = sum_phi xi R_i = sum_phi xi phi . w_i = w_i . sum_k gamma^k sum_phi Pr(phi_{t+k} = phi) phi
        = w_i . sum_k gamma^k E[phi_{t+k}] = psi . w_i

So psi = sum_phi xi phi: the values agree. So do the iterates of learning on tables: with psi = sum_phi xi phi
before an update of xi, the same holds after it, because both read the same values and so take the same greedy
actions. Under its assumption Theorem 3 is true, then.

Without it, it is not: psi is the mean of xi over phi, different xi have the same mean, and a reward that is
not linear in phi tells them apart. Theorem 3 does not say otherwise; the row that refutes this is ours.

For discrete features the one-hot code makes every reward linear, and then psi is xi.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import numpy as np

from proofs_checks.argument import Proof, Step, broken, every, incomplete, proved, refuted
from proofs_checks.learning_identities import PAIRS, linear_update, td_update
from proofs_checks.symbolic import identity, symbolic_mdp, unknowns
from sfr_theory.arithmetic import Array, exact_array
from sfr_theory.claims import Method
from sfr_theory.mdp import FiniteMDP
from sfr_theory.operators import q_from_xi
from sfr_theory.solve import policy_psi, policy_xi


def values_steps(linear: bool = True) -> Iterator[Step]:
    mdp = symbolic_mdp(states=2, features=3, phi=(3, 2), w=(2,), R=(3,))
    phi, w = mdp.given["phi"], mdp.given["w"]
    reward = phi @ w if linear else mdp.given["R"]
    p = mdp.feature_probability
    xi = mdp.discounted(p)
    yield identity("Q = sum_phi xi R_i", mdp.discounted(mdp.expected_reward(reward))[..., 0], xi @ reward)
    yield identity("= sum_phi xi phi . w_i = w_i . sum_phi xi phi", xi @ reward, (xi @ phi) @ w)
    yield identity(
        "sum_k < 2 gamma^k sum_phi Pr(phi_{t+k} = phi) phi = sum_k < 2 gamma^k E[phi_{t+k}]",
        mdp.partial_sum(p, 2) @ phi,
        mdp.partial_sum(p @ phi, 2),
    )
    yield identity("in the limit sum_phi xi phi = psi", xi @ phi, mdp.discounted(p @ phi))


def equivalence_steps(linear: bool = True) -> Iterator[Step]:
    """One update of xi, seen through phi, is one update of psi; and both choose by the same values."""
    free = unknowns(gamma=(), alpha=(), phi=(3, 2), w=(2,), R=(3,), xi=(2, 2, 3), estimate=(3,))
    phi, w, xi, estimate = free["phi"], free["w"], free["xi"], free["estimate"]
    reward = phi @ w if linear else free["R"]
    psi = xi @ phi
    yield identity("xi under R_i and psi = sum_phi xi phi under w_i have the same Q", xi @ reward, psi @ w)
    rates = free["alpha"][()], free["gamma"][()]
    yield every(
        "sum_phi (one update of xi) phi = one update of psi with the feature sum_phi p^ phi",
        (
            identity(
                f"(s, a) = {at}, (s', abar) = {bootstrap}",
                td_update(xi, at, bootstrap, estimate, *rates) @ phi,
                td_update(psi, at, bootstrap, estimate @ phi, *rates),
            )
            for at, bootstrap in itertools.product(PAIRS, repeat=2)
        ),
    )


def psi_determines_xi_facts(features: Sequence[int], reward: Sequence[int]) -> Iterator[Step]:
    """One state, gamma = 1/2: action a shows the middle feature, action b the first or the last, evenly."""
    kernel = exact_array(np.zeros((1, 2, 1, 3), dtype=int))
    kernel[0, :, 0] = exact_array([[0, 1, 0], ["1/2", 0, "1/2"]])
    mdp = FiniteMDP(kernel, "1/2", feature_vectors=np.array(features)[:, None])
    a, b = np.array([0]), np.array([1])
    psi = [policy_psi(mdp, policy)[0, policy[0], 0] for policy in (a, b)]
    xi = [policy_xi(mdp, policy)[0, policy[0]] for policy in (a, b)]
    weights = exact_array(list(reward))
    q = [q_from_xi(values[None, None], weights)[0, 0] for values in xi]
    yield Step(f"always a and always b have the same psi = {psi[0]}", bool(psi[0] == psi[1]))
    yield Step(f"but xi = {_shown(xi[0])} and xi = {_shown(xi[1])}", bool((xi[0] != xi[1]).any()))
    yield Step(
        f"and R = {tuple(reward)} on phi = {tuple(features)} values them {q[0]} and {q[1]}",
        bool(q[0] != q[1]),
    )


def _shown(values: Array) -> str:
    return "(" + ", ".join(str(value) for value in values) + ")"


def linear_image_steps(psi_rate: int = 1) -> Iterator[Step]:
    """One update of linear maps xi = theta.x(s) and psi = W.x(s), W = sum_phi phi theta_phi; gradient steps.

    `psi_rate` is psi's learning rate in units of that of xi.
    """
    free = unknowns(gamma=(), alpha=(), phi=(3, 2), theta=(2, 3, 2), x=(2,), following=(2,), estimate=(3,))
    phi, theta, alpha, gamma = free["phi"], free["theta"], free["alpha"], free["gamma"]

    def commutes(bootstrap: int) -> Step:
        places = (0, free["x"]), (bootstrap, free["following"])
        image = phi.T @ linear_update(theta, *places, free["estimate"], alpha, gamma)
        psi = linear_update(phi.T @ theta, *places, free["estimate"] @ phi, alpha * psi_rate, gamma)
        return identity(f"abar = {bootstrap}", image, psi)

    yield every(
        "sum_phi phi (one step of theta) = one step of W with the feature sum_phi p^ phi",
        map(commutes, range(2)),
    )


def choice_steps(clipped: bool = True) -> Iterator[Step]:
    """Two actions, xi~ = (1, -1) and (1/2, 0), R = (1, 1): SF reads their image, SFR clips xi~ at 0."""
    reward, xi = exact_array([1, 1]), exact_array([[[1, -1], ["1/2", 0]]])
    read = np.maximum(xi, exact_array(0)[()]) if clipped else xi
    sf, sfr = (q_from_xi(values, reward)[0] for values in (xi, read))
    yield Step(
        f"xi~ = (1, -1) and (1/2, 0), R = (1, 1): the values are {_shown(sf)} as learned by SF and "
        f"{_shown(sfr)} if xi~ is clipped at 0, so the greedy actions differ",
        bool(sf.argmax() != sfr.argmax()),
    )


def new_features_facts(linear_image: bool) -> Iterator[Step]:
    """Features phi are replaced by phi' = B phi, or by any other vectors."""
    mdp = symbolic_mdp(states=2, features=3, phi=(3, 2), B=(2, 2), other=(3, 2))
    phi, change = mdp.given["phi"], mdp.given["B"]
    new = phi @ change if linear_image else mdp.given["other"]
    p = mdp.feature_probability
    yield identity("psi of phi' = B phi is B psi: the old psi can be used", mdp.discounted(p @ new),
                   mdp.discounted(p @ phi) @ change)  # fmt: skip


def one_hot_steps(code: Array) -> Iterator[Step]:
    """`code` has a row for each feature: the identity matrix is the one-hot code."""
    mdp = symbolic_mdp(features=3, R=(3,))
    reward, p = mdp.given["R"], mdp.feature_probability
    weights = reward[: code.shape[1]]
    yield identity("r(phi_j) = varphi(phi_j) . w with w_j = r(phi_j)", code @ weights, reward)
    yield identity(
        "psi of the code, element j, is xi(s, a, phi_j)", mdp.discounted(p @ code), mdp.discounted(p)
    )


PROOFS: tuple[Proof, ...] = (
    proved("thm3/values", Method.SYMBOLIC, values_steps,
           "all kernels, stochastic policies, weights, gamma; 2 states, 2 actions, 3 features with vectors "
           "in R^2; symbolic",
           broken("a reward that is not linear in phi", lambda: values_steps(linear=False))),
    proved("thm3/equivalent-frameworks", Method.SYMBOLIC, equivalence_steps,
           "values: thm3/values; learning: all tables xi, phi, w, p^, rates, transitions, and greedy rules "
           "that depend on Q only; 2 states, 2 actions, 3 features in R^2; symbolic. With networks or "
           "clipping they may learn differently, as the paper says below the theorem",
           broken("for a reward that is not linear in phi", lambda: equivalence_steps(linear=False))),
    refuted("thm3/psi-determines-xi", lambda: psi_determines_xi_facts(features=(0, 1, 2), reward=(0, 1, 4)),
            "one state, two policies, R(phi) = phi^2, gamma = 1/2; exact. Theorem 3 assumes linear rewards "
            "and does not say this",
            broken("a linear reward tells them apart",
                   lambda: psi_determines_xi_facts(features=(0, 1, 2), reward=(0, 1, 2))),
            broken("features 0, 1, 3 have the same mean, too",
                   lambda: psi_determines_xi_facts(features=(0, 1, 3), reward=(0, 1, 9)))),
    proved("approx/linear-image", Method.SYMBOLIC, linear_image_steps,
           "all linear maps of two state features, phi in R^2, p^, rates and next actions; 2 actions, 3 "
           "features; by "
           "induction along any path, if psi starts at the image of xi, losses are summed and nothing is "
           "clipped",
           broken("psi with twice the rate", lambda: linear_image_steps(2))),
    proved("thm3/learning-differs", Method.EXACT, choice_steps,
           "one state, two actions, two features; the paper says that a difference is possible, and clips "
           "xi. With linear maps, the same losses and starts, and no clipping there is none: "
           "approx/linear-image",
           broken("they differ without clipping, too", lambda: choice_steps(clipped=False))),
    incomplete("features/old-psi", "new features that are no linear image of the old ones",
               lambda: new_features_facts(linear_image=True),
               "all kernels, policies, features in R^2 and linear changes B; 2 states, 3 features; symbolic",
               broken("for any new features", lambda: new_features_facts(linear_image=False))),
    proved("onehot/discrete", Method.SYMBOLIC, lambda: one_hot_steps(np.eye(3, dtype=int)),
           "all kernels, stochastic policies, rewards and gamma; 3 states, 2 actions, 3 features; symbolic",
           broken("two features share an entry of the code",
                  lambda: one_hot_steps(np.array([[1, 0, 0], [0, 1, 0], [0, 1, 0]])))),
)  # fmt: skip
