"""Generalised policy improvement at one state, over those policies that can win.

    c = argmax over k of max over a of Q_k(s, a)                        the first of ties

A search knows for each policy an upper bound of max_a Q_k(s, a). It evaluates a policy exactly when the bound
reaches the largest exact value found so far; all others are smaller than the winner and cannot tie with it.
With infinite bounds every policy is evaluated: that is full GPI. The answer does not depend on the bounds,
because exact values come from one function that knows nothing of them.

How a policy is evaluated is up to the family of values, which asks in a loop:

    for e in range(gather(search)):
        if may_win(search, search.candidates[e]):
            evaluate it, and note_value
    c = winner(search)

After the update of a policy it is evaluated again and the search goes on: those that the old values ruled out
may now have a chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import REASSOCIATE, Integers, Reals, fill, padded, part

LANES = 16
"""Bounds are padded to a multiple of this many entries, a whole number of vector registers."""


class Search(NamedTuple):
    """What is known of K policies at the present state."""

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
    largest: Reals
    """(1,): of all values found so far."""
    candidates: Integers
    """(K,): room for the policies that may win."""


def new_search(policies: int, num_actions: int, dtype: np.dtype) -> Search:
    """Nothing is known, and nothing is ruled out."""
    L = padded(policies, LANES)
    return Search(
        q=np.zeros((policies, num_actions), dtype),
        best=np.zeros(policies, dtype),
        bound=np.full(L, np.inf, dtype),
        tops=np.full(L // LANES, np.inf, dtype),
        evaluated=np.zeros(policies, dtype=np.int64),
        how_many=np.zeros(1, dtype=np.int64),
        largest=np.zeros(1, dtype),
        candidates=np.zeros(policies, dtype=np.int64),
    )


@part(fastmath=REASSOCIATE)
def note_tops(bound: Reals, tops: Reals) -> None:
    """tops[j] = max over m of bound[m T + j]."""
    T = np.uintp(tops.shape[0])
    for j in range(T):
        tops[j] = -np.inf
    # One m after the other: a loop over the few of each j would not be vectorised.
    for m in range(np.uintp(LANES)):
        for j in range(T):
            value = bound[m * T + j]
            tops[j] = value if value > tops[j] else tops[j]


@part()
def rule_nothing_out(search: Search) -> None:
    """Full GPI."""
    fill(search.bound, np.inf)
    fill(search.tops, np.inf)


@part()
def note_value(search: Search, k: int, best: float) -> None:
    """Policy k has been evaluated, for the first time at this state: max over a of Q_k(s, a)."""
    search.best[k] = best
    search.bound[k] = -np.inf
    search.evaluated[search.how_many[0]] = k
    search.how_many[0] += 1
    search.largest[0] = max(search.largest[0], best)


@part()
def gather(search: Search) -> int:
    """How many candidates there are that might be the best; the most promising one comes first.

    Its value rules out most of the others: ask `may_win` before each is evaluated.
    """
    best, bound, evaluated, candidates = search.best, search.bound, search.evaluated, search.candidates
    largest = -np.inf
    for e in range(search.how_many[0]):
        largest = max(largest, best[evaluated[e]])
    search.largest[0] = largest
    count, promising = 0, 0
    K, T = best.shape[0], search.tops.shape[0]
    for j in range(T):
        if search.tops[j] >= largest:
            for k in range(j, K, T):
                if may_win(search, k):
                    candidates[count] = k
                    if bound[k] > bound[candidates[promising]]:
                        promising = count
                    count += 1
    if count > 0:
        candidates[0], candidates[promising] = candidates[promising], candidates[0]
    return count


@part()
def may_win(search: Search, k: int) -> bool:
    """Whether policy k has not been evaluated, and its bound reaches the largest value."""
    # Policies that are evaluated have the bound -infinity; it reaches `largest` if no value is a number.
    return search.bound[k] >= search.largest[0] and search.bound[k] != -np.inf


@part()
def winner(search: Search) -> int:
    """The first policy of largest value of those that were evaluated."""
    best, evaluated = search.best, search.evaluated
    first = evaluated[0]
    for e in range(1, search.how_many[0]):
        k = evaluated[e]
        if best[k] > best[first] or (best[k] == best[first] and k < first):
            first = k
    return first
