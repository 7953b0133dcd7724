"""What the compiled loop asks of K stored policies, of whatever family: their values, GPI, and SGD.

The last policy, i = K - 1, is the one that is learned; v_k are the readouts. The loop is at a state s_t, has
looked at it, and looks at s_{t+1} before it moves on. Two policies learn there, i and c, or one if they are
the same; what concerns c is not touched then.
"""

from __future__ import annotations

from typing import Protocol

from sfr_fa.kernels.arrays import Reals, part
from sfr_fa.kernels.world import compile_methods


class Values(Protocol):
    """A family of values: linear (`linear_values`) or networks (`network_values`)."""

    def begin_task(self) -> None:
        """Prepare for the readout and the weights of a new task."""

    def readout_changed(self) -> None:
        """The reward model has learned, and v_i is another."""

    def look(self, cell: int, c: int, state: Reals) -> int:
        """GPI at a state: argmax over k of max over a of v_i . value_k(s, a); c is asked for there, too."""

    def greedy_action(self, k: int) -> int:
        """argmax over a of v_i . value_k(s, a), of a policy that `look` has found best."""

    def recall(self, c: int, action: int, state: Reals, value_i: Reals, value_c: Reals) -> None:
        """value_i(s_t, a) and value_c(s_t, a), where the loop has looked last."""

    def add_next(
        self, cell: int, c: int, state: Reals, gamma: float, target_i: Reals, target_c: Reals
    ) -> None:
        """Look at s_{t+1} and add gamma value_k(s_{t+1}, abar) to the targets of k = i and c.

        abar is the best action of all policies under v_i for i, and the best of policy c under v_c for c.
        """

    def descend(self, c: int, action: int, state: Reals, error_i: Reals, error_c: Reals, rate: float) -> bool:
        """theta_k += rate error_k . d value_k(s_t, a) / d theta_k for k = i and c; is it `within_measure`?"""

    def look_again(self, c: int, action: int, state: Reals) -> int:
        """GPI where the loop has looked last; an action of i and c has learned since."""


@part()
def learner(e: int, i: int, c: int) -> int:
    """The policies that learn are i, then c."""
    return i if e == 0 else c


compile_methods(Values, called=("begin_task", "readout_changed", "look"))
