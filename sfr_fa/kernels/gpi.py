"""Generalised policy improvement at one state, over those policies that can win.

    c = argmax over k of max over a of Q_k(s, a)                        the first of ties

A search knows for each policy an upper bound of max_a Q_k(s, a). It evaluates a policy exactly when the bound
reaches the largest exact value found so far; all others are smaller than the winner and cannot tie with it.
With infinite bounds every policy is evaluated: that is full GPI. The answer does not depend on the bounds,
because exact values come from one function that knows nothing of them.

How a policy is evaluated is up to the family of values, which asks in a loop:

    note_largest(search)
    for e in range(gather(search)):
        if may_win(search, search.candidates[e]):
            evaluate it, and note_value
    c = winner(search)

A family that has bounds of actions evaluates only those that can win, and leaves in `bound` what bounds the
others: a winner's other actions are smaller, and are evaluated when somebody asks for them.

After the update of a policy it is evaluated again and the search goes on: those that the old values ruled out
may now have a chance.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import REASSOCIATE, Bytes, Integers, Reals, fill, padded, part

LANES = 16
"""Policies are in groups of this many, a whole number of vector registers; the last group is padded."""


class Search(NamedTuple):
    """What is known of K policies at the present state."""

    q: Reals
    """(K, A): Q_k(s, a), if evaluated here, or -infinity."""
    known: Bytes
    """(K, A): whether it is evaluated here..."""
    begun: Integers
    """(K,): ... if this is the number of the present state..."""
    number: Integers
    """(1,): ... which counts them."""
    best: Reals
    """(K,): of the actions evaluated here the largest Q_k(s, a)."""
    bound: Reals
    """(K or more,): no less than Q_k(s, a) of all others; -infinity if there are none."""
    tops: Reals
    """(N,): the largest bound of each group; no less than that, once some are evaluated."""
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
        known=np.zeros((policies, num_actions), np.int8),
        begun=np.zeros(policies, dtype=np.int64),
        number=np.zeros(1, dtype=np.int64),
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
    """The largest bound of each group."""
    for n in range(np.uintp(tops.shape[0])):
        first = n * np.uintp(LANES)
        top = bound[first]
        for lane in range(np.uintp(LANES)):
            value = bound[first + lane]
            top = value if value > top else top
        tops[n] = top


@part()
def rule_nothing_out(search: Search) -> None:
    """Full GPI."""
    fill(search.bound, np.inf)
    fill(search.tops, np.inf)


@part()
def begin_search(search: Search) -> None:
    """At another state, where nothing is evaluated."""
    search.how_many[0] = 0
    search.number[0] += 1


@part()
def begin_policy(search: Search, k: int) -> None:
    """Policy k is about to be evaluated, for the first time at this state."""
    search.begun[k] = search.number[0]
    search.evaluated[search.how_many[0]] = k
    search.how_many[0] += 1


@part()
def note_value(search: Search, k: int, best: float) -> None:
    """All actions of policy k have been evaluated, for the first time at this state: max_a Q_k(s, a)."""
    begin_policy(search, k)
    for a in range(search.known.shape[1]):
        search.known[k, a] = 1
    search.best[k] = best
    search.bound[k] = -np.inf
    search.largest[0] = max(search.largest[0], best)


@part()
def note_largest(search: Search) -> None:
    """Of the values of the policies that are evaluated."""
    largest = -np.inf
    for e in range(search.how_many[0]):
        largest = max(largest, search.best[search.evaluated[e]])
    search.largest[0] = largest


@part()
def gather(search: Search) -> int:
    """How many candidates there are that might be the best; the most promising one comes first.

    Its value rules out most of the others: ask `may_win` before each is evaluated.
    """
    bound, candidates, K = search.bound, search.candidates, search.best.shape[0]
    count, promising = 0, 0
    for n in range(search.tops.shape[0]):
        if search.tops[n] >= search.largest[0]:
            for k in range(n * LANES, min((n + 1) * LANES, K)):
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
    """Whether the bound of actions of policy k that have not been evaluated reaches the largest value."""
    # If there are none it is -infinity, which reaches `largest` if no value is a number.
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
