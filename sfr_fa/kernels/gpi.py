"""Generalised policy improvement at one state, over those policies that can win.

    c = argmax over k of max over a of Q_k(s, a)                        the first of ties

A search knows for each policy an upper bound of max_a Q_k(s, a). It evaluates a policy exactly when the bound
reaches the largest exact value found so far; all others are smaller than the winner and cannot tie with it.
With infinite bounds every policy is evaluated: that is full GPI. The answer does not depend on the bounds,
because exact values come from one function that knows nothing of them.

After the update of a policy it is evaluated again and the search goes on: those that the old values ruled out
may now have a chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sfr_fa.kernels.arrays import Integers, Reals
from sfr_fa.kernels.gpi_filter import LANES
from sfr_fa.kernels.linear import policy_values, read_out


class Search(NamedTuple):
    """What is known of K policies at the present state."""

    values: Reals
    """(K, rows): theta_{k,a,d} . s, if evaluated here."""
    q: Reals
    """(K, A): Q_k(s, a), if evaluated here."""
    best: Reals
    """(K,): max over a of Q_k(s, a), if evaluated here."""
    bound: Reals
    """(K or more,): no less than that, for every policy that has not been evaluated here."""
    where: Integers
    """(K,): the number of the search in which a policy was last evaluated."""


def new_search(policies: int, rows: int, num_actions: int, dtype: np.dtype) -> Search:
    """Nothing is known, and nothing is ruled out."""
    return Search(
        values=np.zeros((policies, rows), dtype),
        q=np.zeros((policies, num_actions), dtype),
        best=np.zeros(policies, dtype),
        bound=np.full(-(-policies // LANES) * LANES, np.inf, dtype),
        where=np.full(policies, -1, dtype=np.int64),
    )


@njit(cache=True)
def evaluate(
    k: int, weights: Reals, state: Reals, readout: Reals, clip: bool, search: Search, number: int
) -> None:
    """The exact values of policy k."""
    policy_values(weights[k], state, search.values[k])
    search.best[k] = read_out(search.values[k], readout, clip, search.q[k])
    search.where[k] = number


@njit(cache=True)
def best_policy(weights: Reals, state: Reals, readout: Reals, clip: bool, search: Search, number: int) -> int:
    """The first policy of largest value; evaluates whatever might be it."""
    best, bound, where = search.best, search.bound, search.where
    K = best.shape[0]
    largest = -np.inf
    for k in range(K):
        if where[k] == number and best[k] > largest:
            largest = best[k]
    winner = 0
    found = -np.inf
    for k in range(K):
        if where[k] != number and bound[k] >= largest:
            evaluate(k, weights, state, readout, clip, search, number)
            largest = max(largest, best[k])
        if where[k] == number and best[k] > found:
            found, winner = best[k], k
    return winner
