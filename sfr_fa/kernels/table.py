"""A finite MDP as a world: every outcome (s', phi) of every pair (s, a), with its probability.

The outcomes of pair s A + a are entries first[s A + a] <= j < first[s A + a + 1] of the other arrays. One
uniform number u draws one of them: the first whose cumulated probability is above u.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import Integers, Reals, part
from sfr_fa.kernels.encoding import FloatArray


@part()
def drawn(cumulated: FloatArray, first: int, last: int, u: float) -> int:
    """The first j with u < cumulated[j], first <= j < last; sums may fall short of 1 by rounding."""
    for j in range(first, last - 1):
        if u < cumulated[j]:
            return j
    return last - 1


class TableWorld(NamedTuple):
    """The table, and where the agent is."""

    num_actions: int
    first: Integers
    """(S A + 1,)."""
    cumulated: FloatArray
    """(N,): probabilities of a pair's outcomes, summed up..."""
    next_states: Integers
    """(N,): ... where each leads to..."""
    shown: Integers
    """(N,): ... and the number of its feature."""
    starts: FloatArray
    """(S,): probabilities of the first state, summed up."""
    end: int
    """The state that ends an episode, -1 for none."""
    now: Integers
    """(2,): the state, and the feature that the last step has shown."""

    def reset(self, rng: np.random.Generator) -> None:
        """To one of the first states."""
        self.now[0] = drawn(self.starts, 0, self.starts.shape[0], rng.random())

    def step(self, action: int, rng: np.random.Generator) -> bool:
        """One outcome."""
        pair = self.now[0] * self.num_actions + action
        j = drawn(self.cumulated, self.first[pair], self.first[pair + 1], rng.random())
        self.now[0], self.now[1] = self.next_states[j], self.shown[j]
        return bool(self.now[0] == self.end)

    def encode(self, state: Reals) -> None:
        """A 1 for the state; the end has none."""
        if self.now[0] < state.shape[0]:
            state[self.now[0]] = 1

    def feature(self) -> int:
        """Of the last step."""
        return int(self.now[1])
