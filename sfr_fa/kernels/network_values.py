"""ReLU networks of K stored policies (`sfr_fa.kernels.mlp`); GPI evaluates all of them.

States come in float64 and are rounded to the precision of the networks. SGD at s_t needs the activations of i
and c there, after the networks have been evaluated at s_{t+1}: `recall` keeps them.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import Reals, copy_to, part, within_measure
from sfr_fa.kernels.linear import first_largest
from sfr_fa.kernels.mlp import (
    Activations,
    Gradients,
    Networks,
    action_value,
    copy_block,
    descend,
    evaluate,
    evaluate_hidden,
    new_activations,
    new_gradients,
    project,
    read_out,
    read_projection,
    row_product,
    spread_readout,
)
from sfr_fa.kernels.values import learner


class NetworkValues(NamedTuple):
    """K policies, the last one is learned."""

    networks: Networks
    readouts: Reals
    """(K, D): v_k of each policy's own task."""
    floor: float
    """Values are clipped there when they are read: 0, or minus infinity."""
    head: float
    """How many times as fast as the layers below it the last layer learns."""
    projects: bool
    """Whether heads are projected: values are not clipped, and the readout stays as it is for the task."""
    heads: Reals
    """(A, K G H_2): P_{k,a} of all policies under v_i..."""
    head_biases: Reals
    """(K, A): ... and p_{k,a}."""
    value: Reals
    """(D,): of one action; scratch."""
    spread: Reals
    """Readouts laid out as the outputs of all networks are."""
    state: Reals
    """(S, padded): where the networks have been evaluated..."""
    values: Activations
    """... and what came out."""
    kept_state: Reals
    """s_t..."""
    kept: Activations
    """... and what i and c, in this order, have computed there; no outputs."""
    gradients: Gradients
    q: Reals
    """(K, A): of all policies in the current task."""
    own_q: Reals
    """(1, A): of policy c in its own."""
    total: Reals
    """(A U,): for `read_out`."""

    @staticmethod
    def new(
        networks: Networks, readouts: Reals, num_actions: int, *, floor: float, head: float, projects: bool
    ) -> NetworkValues:
        """Room for a task."""
        shape, dtype = networks.shape, readouts.dtype
        two = 2 * shape.groups
        return NetworkValues(
            networks,
            readouts,
            floor,
            head,
            projects,
            heads=np.zeros((num_actions, len(networks.b2) if projects else 0), dtype),
            head_biases=np.zeros((len(readouts), num_actions), dtype),
            value=np.zeros(readouts.shape[1], dtype),
            spread=np.zeros_like(networks.b3),
            state=np.zeros(len(networks.W1), dtype),
            values=new_activations(networks),
            kept_state=np.zeros(len(networks.W1), dtype),
            kept=Activations(
                np.zeros(two * shape.units1, dtype), np.zeros(two * shape.units2, dtype), np.zeros(0, dtype)
            ),
            gradients=new_gradients(networks),
            q=np.zeros((len(readouts), num_actions), dtype),
            own_q=np.zeros((1, num_actions), dtype),
            total=np.zeros(shape.outputs, dtype),
        )

    def begin_task(self) -> None:
        """Project all heads, or spread all readouts."""
        K = self.readouts.shape[0]
        for k in range(K):
            if self.projects:
                for a in range(self.q.shape[1]):
                    project(self.networks, k, a, self.readouts[K - 1], self.heads, self.head_biases)
            spread_readout(self.readouts[k], self.networks.shape, self.q.shape[1], k, self.spread)

    def readout_changed(self) -> None:
        """Spread the readout of policy i."""
        i = self.readouts.shape[0] - 1
        spread_readout(self.readouts[i], self.networks.shape, self.q.shape[1], i, self.spread)

    def look(self, cell: int, c: int, state: Reals) -> int:
        """Full GPI."""
        networks, values, q = self.networks, self.values, self.q
        K = q.shape[0]
        copy_to(state, self.state)
        # Not a plain 0: Numba would compile `evaluate` a second time for a literal.
        if self.projects:
            evaluate_hidden(networks, K - K, K, self.state, values)
            for k in range(K):
                read_projection(values, networks.shape, k, self.heads, self.head_biases, q)
        else:
            evaluate(networks, K - K, K, self.state, values)
            for k in range(K):
                read_out(values.outputs, networks.shape, k, self.spread, K - 1, self.floor, self.total, q, k)
        return best_row(q)

    def greedy_action(self, k: int) -> int:
        """Of any policy."""
        return first_largest(self.q[k])

    def recall(self, c: int, action: int, state: Reals, value_i: Reals, value_c: Reals) -> None:
        """The outputs; hidden activations, and the state, are kept for `descend`."""
        shape, values, kept = self.networks.shape, self.values, self.kept
        G, H_1, H_2, i = shape.groups, shape.units1, shape.units2, self.q.shape[0] - 1
        copy_to(self.state, self.kept_state)
        for e in range(1 if c == i else 2):
            k, value = learner(e, i, c), value_i if e == 0 else value_c
            copy_block(values.hidden1, k * G * H_1, kept.hidden1, e * G * H_1, G * H_1)
            copy_block(values.hidden2, k * G * H_2, kept.hidden2, e * G * H_2, G * H_2)
            action_value(self.networks, k, action, values, value)

    def add_next(
        self, cell: int, c: int, state: Reals, gamma: float, target_i: Reals, target_c: Reals
    ) -> None:
        """target_{k,g,j} += gamma value_k(s, abar)_{g,j}."""
        networks, value, i = self.networks, self.value, self.q.shape[0] - 1
        abar = first_largest(self.q[self.look(cell, c, state)])
        for e in range(1 if c == i else 2):
            k, target = learner(e, i, c), target_i if e == 0 else target_c
            if e == 1:
                # Policy c under the reward of its own task.
                if self.projects:
                    for a in range(self.q.shape[1]):
                        action_value(networks, c, a, self.values, value)
                        self.own_q[0, a] = row_product(self.readouts, c, 0, value, 0, value.shape[0])
                else:
                    outputs = self.values.outputs
                    read_out(
                        outputs, networks.shape, c, self.spread, c, self.floor, self.total, self.own_q, 0
                    )
                abar = first_largest(self.own_q[0])
            action_value(networks, k, abar, self.values, value)
            for d in range(value.shape[0]):
                target[d] += gamma * value[d]

    def descend(self, c: int, action: int, state: Reals, error_i: Reals, error_c: Reals, rate: float) -> bool:
        """Through the activations that were kept."""
        finite, i = True, self.q.shape[0] - 1
        for e in range(1 if c == i else 2):
            k, error = learner(e, i, c), error_i if e == 0 else error_c
            descend(
                self.networks,
                k,
                self.kept_state,
                action,
                self.kept,
                e,
                error,
                rate,
                self.head,
                self.gradients,
            )
            if self.projects:
                project(self.networks, k, action, self.readouts[i], self.heads, self.head_biases)
            finite = within_measure(error) and finite
        return finite

    def look_again(self, c: int, action: int, state: Reals) -> int:
        """All values are known but for the policies that have learned."""
        networks, values, q = self.networks, self.values, self.q
        i = q.shape[0] - 1
        for e in range(1 if c == i else 2):
            k = learner(e, i, c)
            if self.projects:
                evaluate_hidden(networks, k, k + 1, self.state, values)
                read_projection(values, networks.shape, k, self.heads, self.head_biases, q)
            else:
                evaluate(networks, k, k + 1, self.state, values)
                read_out(values.outputs, networks.shape, k, self.spread, i, self.floor, self.total, q, k)
        return best_row(q)


@part()
def best_row(q: Reals) -> int:
    """The first k with the largest q[k, a] of all."""
    best, largest = 0, q[0, 0]
    for k in range(q.shape[0]):
        for a in range(q.shape[1]):
            if q[k, a] > largest:
                best, largest = k, q[k, a]
    return best
