"""ReLU networks of K stored policies (`sfr_fa.kernels.mlp`), with GPI over those that can win.

States come in float64 and are rounded to the precision of the networks. SGD at s_t needs the activations of i
and c there, after the networks have been evaluated at s_{t+1}: `recall` keeps them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import numpy as np

from sfr_fa.kernels.arrays import Integers, Reals, copy_to, within_measure
from sfr_fa.kernels.cells import Boxes
from sfr_fa.kernels.gpi import (
    Search,
    begin_search,
    gather,
    may_win,
    new_search,
    note_largest,
    note_tops,
    note_value,
    rule_nothing_out,
    winner,
)
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
from sfr_fa.kernels.network_filter import (
    NetworkFilter,
    bound_networks,
    new_network_filter,
    note_learned,
)
from sfr_fa.kernels.rows import list_active
from sfr_fa.kernels.values import learner
from sfr_fa.kernels.world import compile_methods


class _Looking(Protocol):
    """What methods of `NetworkValues` call."""

    def search_at(self, cell: int, c: int, state: Reals) -> int: ...

    def best_policy(self) -> int: ...

    def best_value(self, k: int) -> float: ...


compile_methods(_Looking, called=("search_at", "best_policy", "best_value"))


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
    """(S,): where the networks have been evaluated..."""
    seen: Integers
    """(S,): ... its entries that are not 0..."""
    num_seen: Integers
    """(1,): ... how many these are..."""
    values: Activations
    """... and what came out."""
    kept_state: Reals
    """s_t..."""
    kept: Activations
    """... and what i and c, in this order, have computed there; no outputs."""
    gradients: Gradients
    search: Search
    tables: NetworkFilter
    own_q: Reals
    """(1, A): of policy c in its own."""
    total: Reals
    """(H_3,): for `read_out`."""

    @staticmethod
    def new(
        networks: Networks,
        readouts: Reals,
        num_actions: int,
        *,
        floor: float,
        head: float,
        projects: bool,
        boxes: Sequence[Boxes] = (),
    ) -> NetworkValues:
        """Room for a task; without boxes of cells nothing is filtered.

        Bounds of cells are for one readout: where it is learned, there must be no boxes.
        """
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
            state=np.zeros(shape.inputs, dtype),
            seen=np.zeros(shape.inputs, np.int64),
            num_seen=np.zeros(1, np.int64),
            values=new_activations(networks),
            kept_state=np.zeros(shape.inputs, dtype),
            kept=Activations(
                np.zeros(two * shape.units1, dtype),
                np.zeros(two * shape.units2, dtype),
                outputs=np.zeros(0, dtype),
                active=np.zeros(0, np.int64),
            ),
            gradients=new_gradients(networks),
            search=new_search(len(readouts), num_actions, dtype),
            tables=new_network_filter(networks, boxes, num_actions, projects=projects),
            own_q=np.zeros((1, num_actions), dtype),
            total=np.zeros(shape.outputs, dtype),
        )

    def begin_task(self) -> None:
        """Project all heads, or spread all readouts."""
        K, A = self.search.q.shape
        for k in range(K):
            if self.projects:
                for a in range(A):
                    project(self.networks, k, a, self.readouts[K - 1], self.heads, self.head_biases)
            spread_readout(self.readouts[k], self.networks.shape, A, k, self.spread)

    def readout_changed(self) -> None:
        """Spread the readout of policy i."""
        K, A = self.search.q.shape
        spread_readout(self.readouts[K - 1], self.networks.shape, A, K - 1, self.spread)

    def look(self, cell: int, c: int, state: Reals) -> int:
        """GPI over those that can win; i and c are evaluated in any case."""
        return self.search_at(cell, c, state)

    def search_at(self, cell: int, c: int, state: Reals) -> int:
        """Compiled once, and called: to pass the arrays on is little next to a pass through networks."""
        search, i = self.search, self.readouts.shape[0] - 1
        copy_to(state, self.state)
        self.num_seen[0] = list_active(self.state, 0, self.state.shape[0], self.seen)
        if self.tables.blocks.shape[0] > 0:
            bound_networks(
                self.tables, self.networks, cell, c, self.state, self.readouts[i], self.floor == 0,
                self.projects, self.heads, self.head_biases, search.bound,
            )  # fmt: skip
            note_tops(search.bound, search.tops)
        else:
            rule_nothing_out(search)
        begin_search(search)
        for e in range(1 if c == i else 2):
            k = learner(e, i, c)
            note_value(search, k, self.best_value(k))
        return self.best_policy()

    def best_policy(self) -> int:
        """The first policy of largest value; evaluates whatever might be it."""
        search = self.search
        note_largest(search)
        for e in range(gather(search)):
            k = search.candidates[e]
            if may_win(search, k):
                note_value(search, k, self.best_value(k))
        return winner(search)

    def best_value(self, k: int) -> float:
        """max over a of Q_k(s, a), with all that policy k computes where the loop has looked last."""
        networks, values, q, shape = self.networks, self.values, self.search.q, self.networks.shape
        if self.projects:
            size = shape.groups * shape.units2
            evaluate_hidden(networks, k, self.state, self.seen, self.num_seen[0], values)
            read_projection(values.hidden2, k * size, size, k, self.heads, self.head_biases, q, k)
        else:
            size, U = shape.groups * shape.outputs, self.readouts.shape[1] // shape.groups
            evaluate(networks, k, self.state, self.seen, self.num_seen[0], values)
            read_out(
                values.outputs, k * size, shape, self.spread, q.shape[0] - 1, self.floor, U, self.total, q, k
            )
        return q[k, first_largest(q[k])]

    def greedy_action(self, k: int) -> int:
        """Of a policy that has been evaluated."""
        return first_largest(self.search.q[k])

    def recall(self, c: int, action: int, state: Reals, value_i: Reals, value_c: Reals) -> None:
        """The outputs; hidden activations, and the state, are kept for `descend`."""
        shape, values, kept = self.networks.shape, self.values, self.kept
        G, H_1, H_2, i = shape.groups, shape.units1, shape.units2, self.readouts.shape[0] - 1
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
        networks, value, i = self.networks, self.value, self.readouts.shape[0] - 1
        shape = networks.shape
        abar = first_largest(self.search.q[self.look(cell, c, state)])
        for e in range(1 if c == i else 2):
            k, target = learner(e, i, c), target_i if e == 0 else target_c
            if e == 1:
                # Policy c under the reward of its own task.
                if self.projects:
                    for a in range(self.own_q.shape[1]):
                        action_value(networks, c, a, self.values, value)
                        self.own_q[0, a] = row_product(self.readouts, c, 0, value, 0, value.shape[0])
                else:
                    size, U = shape.groups * shape.outputs, value.shape[0] // shape.groups
                    read_out(
                        self.values.outputs, c * size, shape, self.spread, c, self.floor, U, self.total,
                        self.own_q, 0,
                    )  # fmt: skip
                abar = first_largest(self.own_q[0])
            action_value(networks, k, abar, self.values, value)
            for d in range(value.shape[0]):
                target[d] += gamma * value[d]

    def descend(self, c: int, action: int, state: Reals, error_i: Reals, error_c: Reals, rate: float) -> bool:
        """Through the activations that were kept."""
        finite, i = True, self.readouts.shape[0] - 1
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
            if self.tables.blocks.shape[0] > 0 and e == 1:
                note_learned(self.tables, k)
            finite = within_measure(error) and finite
        return finite

    def look_again(self, c: int, action: int, state: Reals) -> int:
        """All values are known but for the policies that have learned."""
        search, i = self.search, self.readouts.shape[0] - 1
        for e in range(1 if c == i else 2):
            k = learner(e, i, c)
            search.best[k] = self.best_value(k)
        return self.best_policy()
