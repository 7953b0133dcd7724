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

from sfr_fa.kernels.arrays import Integers, Reals, padded, part
from sfr_fa.kernels.gpi_filter import LANES
from sfr_fa.kernels.linear import ROWS_AT_ONCE, policy_values, read_out


class Search(NamedTuple):
    """What is known of K policies at the present state."""

    values: Reals
    """(K, rows): theta_{k,a,d} . s, if evaluated here."""
    q: Reals
    """(K, A): Q_k(s, a), if evaluated here."""
    best: Reals
    """(K,): max over a of Q_k(s, a), if evaluated here."""
    bound: Reals
    """(K or more,): no less than that, for every policy not evaluated here; -infinity for the others."""
    tops: Reals
    """(T,): of every T-th bound the largest; no less than that, once some are evaluated."""
    evaluated: Integers
    """(K,): the policies that were evaluated here..."""
    how_many: Integers
    """(1,): ... and how many they are."""
    candidates: Integers
    """(K,): room for the policies that may win."""


def new_search(policies: int, rows: int, num_actions: int, dtype: np.dtype) -> Search:
    """Nothing is known, and nothing is ruled out."""
    L = padded(policies, LANES)
    return Search(
        values=np.zeros((policies, rows), dtype),
        q=np.zeros((policies, num_actions), dtype),
        best=np.zeros(policies, dtype),
        bound=np.full(L, np.inf, dtype),
        tops=np.full(L // LANES, np.inf, dtype),
        evaluated=np.zeros(policies, dtype=np.int64),
        how_many=np.zeros(1, dtype=np.int64),
        candidates=np.zeros(policies, dtype=np.int64),
    )


@part()
def evaluate(k: int, weights: Reals, state: Reals, readout: Reals, clip: bool, search: Search) -> None:
    """The exact values of policy k at this state."""
    policy_values(weights, k, 0, weights.shape[1], state, search.values)
    search.best[k] = read_out(search.values, k, readout, clip, search.q)
    search.bound[k] = -np.inf
    search.evaluated[search.how_many[0]] = k
    search.how_many[0] += 1


@part()
def evaluate_again(
    k: int, first: int, last: int, weights: Reals, state: Reals, readout: Reals, clip: bool, search: Search
) -> None:
    """The values of an evaluated policy after an update of its rows from `first` to `last`.

    A correction by delta s . s' would be cheaper still, but rounds differently: two policies that equal
    updates have made equal, as happens in front of a wall, would not tie any more.
    """
    begin, end = first - first % ROWS_AT_ONCE, -(-last // ROWS_AT_ONCE) * ROWS_AT_ONCE
    policy_values(weights, k, begin, end, state, search.values)
    search.best[k] = read_out(search.values, k, readout, clip, search.q)


@part()
def best_policy(weights: Reals, state: Reals, readout: Reals, clip: bool, search: Search) -> int:
    """The first policy of largest value; evaluates whatever might be it."""
    best, bound, evaluated, candidates = search.best, search.bound, search.evaluated, search.candidates
    largest = -np.inf
    for e in range(search.how_many[0]):
        largest = max(largest, best[evaluated[e]])
    count, promising = 0, -1
    K, T = best.shape[0], search.tops.shape[0]
    for j in range(T):
        if search.tops[j] >= largest:
            for k in range(j, K, T):
                # Policies that are evaluated have the bound -infinity; it reaches `largest` if no value is a
                # number.
                if bound[k] >= largest and bound[k] != -np.inf:
                    candidates[count] = k
                    count += 1
                    if promising < 0 or bound[k] > bound[promising]:
                        promising = k
    # The most promising one first: its value rules out most of the others.
    if promising >= 0:
        evaluate(promising, weights, state, readout, clip, search)
        largest = max(largest, best[promising])
    for e in range(count):
        k = candidates[e]
        if bound[k] >= largest and bound[k] != -np.inf:
            evaluate(k, weights, state, readout, clip, search)
            largest = max(largest, best[k])
    winner = evaluated[0]
    for e in range(1, search.how_many[0]):
        k = evaluated[e]
        if best[k] > best[winner] or (best[k] == best[winner] and k < winner):
            winner = k
    return winner
