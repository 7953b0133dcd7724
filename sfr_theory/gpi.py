"""Generalised policy improvement on arrays of Q-values.

Given Q_k(s, a) of K policies under the current rewards, GPI acts greedily on their maximum
(eq:gpi_policy):

    pi(s) in argmax over a of max over k of Q_k(s, a).

The paper's listings choose in two stages, first the policy c = argmax over k of max over a, then the
action argmax over a of Q_c. Both pick the largest entry of the table, so they agree wherever it is
unique. Ties go to the first policy, then to the first action.
"""

from __future__ import annotations

from sfr_theory.arithmetic import Array


def gpi_values(q: Array) -> Array:
    """max over k of Q_k: (..., K, S, A) -> (..., S, A)."""
    return q.max(axis=-3)


def gpi_policy(q: Array) -> Array:
    """argmax over a of max over k of Q_k, the first of tied actions: (..., K, S, A) -> (..., S)."""
    return gpi_values(q).argmax(axis=-1)


def gpi_choice(q: Array) -> tuple[Array, Array]:
    """The listings' two stages at given states: (..., K, A) -> policy c (...), action (...)."""
    actions = q.shape[-1]
    best = q.reshape(*q.shape[:-2], -1).argmax(axis=-1)
    return best // actions, best % actions
