"""Linear values of K stored policies, with GPI over those that can win.

Where Q is linear in the values (no clipping) and the readout v is given, Q_k(s, a) = (sum_d v_d
theta_{k,a,d}) . s, and GPI runs on these folded weights, D times fewer. Its values differ from the unfolded
ones by rounding.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import Integers, Reals, copy_from, padded, part
from sfr_fa.kernels.gpi import (
    LANES,
    Search,
    begin_policy,
    begin_search,
    gather,
    may_win,
    new_search,
    note_largest,
    note_value,
    rule_nothing_out,
    winner,
)
from sfr_fa.kernels.gpi_filter import (
    ENOUGH_FOR_A_MEAN,
    Filter,
    arrive,
    begin_filter,
    continued,
    new_filter,
    note_readout,
    note_update,
    refine,
    serves_again,
)
from sfr_fa.kernels.linear import (
    ROWS_AT_ONCE,
    action_values,
    descend,
    first_largest,
    fold,
    policy_values,
    read_action,
    read_out,
)
from sfr_fa.kernels.values import learner


class LinearValues(NamedTuple):
    """K policies, the last one is learned."""

    theta: Reals
    """(K, A D or more, S): rows are padded to a multiple of ROWS_AT_ONCE, states to one of PADDING."""
    readouts: Reals
    """(K, D): v_k of each policy's own task."""
    weights: Reals
    """What GPI compares: theta, or (K, A or more, S) if it is folded..."""
    gpi_readout: Reals
    """... and the readout of it: v_i, or 1."""
    clip: bool
    folds: bool
    search: Search
    values: Reals
    """(K, rows): theta_{k,a,d} . s of the policies that the search has evaluated."""
    tables: Filter
    changed: Integers
    """Policies whose weights are others than when they were read into the tables."""
    own_values: Reals
    """(1, A D): room for one policy..."""
    own_q: Reals
    """(1, A)."""
    next_value: Reals
    """(D,)."""

    @staticmethod
    def new(
        theta: Reals,
        readouts: Reals,
        state_dim: int,
        num_actions: int,
        *,
        clip: bool,
        folds: bool,
        learns_rewards: bool,
        bases: Reals,
        cell_of: Integers,
        steps: int,
        before: Filter | None = None,
        changed: Integers | None = None,
    ) -> LinearValues:
        """Room for a task of `steps` steps; without bases of cells nothing is filtered.

        `before`, the tables of an earlier task, serve again if that is worth it; changed: the policies whose
        weights are not those that were read into them. All are, unless it is said which.
        """
        (K, _, S), dtype, D = theta.shape, theta.dtype, readouts.shape[1]
        weights = np.zeros((K, padded(num_actions, ROWS_AT_ONCE), S), dtype) if folds else theta
        changed = np.arange(K) if changed is None else changed
        # Folded weights are others for each readout.
        if before is not None and not folds and serves_again(before, K, len(changed)):
            tables = continued(before, K, steps)
        else:
            changed, some = np.arange(K), theta[:: -(-K // ENOUGH_FOR_A_MEAN), : num_actions * D]
            with np.errstate(over="ignore", invalid="ignore"):
                reference = some.mean(axis=0)
                if folds:
                    reference = np.tensordot(readouts[-1], reference.reshape(num_actions, D, S), (0, 1))
            tables = new_filter(
                bases, cell_of, reference, state_dim, num_actions, K, steps, clip=clip,
                keeps_places=not learns_rewards,
            )  # fmt: skip
        return LinearValues(
            theta,
            readouts,
            weights,
            gpi_readout=np.ones(1, dtype) if folds else readouts[-1],
            clip=clip,
            folds=folds,
            search=new_search(K, num_actions, dtype),
            values=np.zeros(weights.shape[:2], dtype),
            tables=tables,
            changed=changed,
            own_values=np.zeros((1, num_actions * D), dtype),
            own_q=np.zeros((1, num_actions), dtype),
            next_value=np.zeros(D, dtype),
        )

    def begin_task(self) -> None:
        """Fold, and read into the tables of the filter what has changed."""
        theta, weights, v = self.theta, self.weights, self.readouts[self.readouts.shape[0] - 1]
        if self.folds:
            for k in range(theta.shape[0]):
                for a in range(self.search.q.shape[1]):
                    fold(theta, k, a, v, weights)
        if self.tables.seen.shape[0] > 0:
            begin_filter(self.tables, weights, self.gpi_readout, self.changed)

    def readout_changed(self) -> None:
        """Bounds depend on the readout."""
        if self.tables.seen.shape[0] > 0:
            note_readout(self.tables, self.gpi_readout)

    def look(self, cell: int, c: int, state: Reals) -> int:
        """GPI over those that can win; i and c are evaluated in any case."""
        weights, gpi_readout, clip, search = self.weights, self.gpi_readout, self.clip, self.search
        i = weights.shape[0] - 1
        if self.tables.seen.shape[0] > 0:
            arrive(self.tables, weights, cell, state, gpi_readout, search)
        else:
            rule_nothing_out(search)
        begin_search(search)
        evaluate(i, weights, state, gpi_readout, clip, self.values, search)
        if c != i:
            evaluate(c, weights, state, gpi_readout, clip, self.values, search)
        return best_policy(self.tables, weights, state, gpi_readout, clip, self.values, search)

    def greedy_action(self, k: int) -> int:
        """Of a policy that has been evaluated."""
        return first_largest(self.search.q[k])

    def recall(self, c: int, action: int, state: Reals, value_i: Reals, value_c: Reals) -> None:
        """Known from the search, unless that ran on folded weights or on other actions of c."""
        i = self.theta.shape[0] - 1
        if not self.folds and self.search.known[c, action] == 0:
            action_rows(self.weights, c, action, self.gpi_readout.shape[0], state, self.values)
        copy_value(self.theta, self.folds, self.values, i, action, state, value_i)
        if c != i:
            copy_value(self.theta, self.folds, self.values, c, action, state, value_c)

    def add_next(
        self, cell: int, c: int, state: Reals, gamma: float, target_i: Reals, target_c: Reals
    ) -> None:
        """target_{k,d} += gamma theta_{k,abar,d} . s."""
        theta, folds, values, own = self.theta, self.folds, self.values, self.own_values
        i, D = theta.shape[0] - 1, target_i.shape[0]
        abar = first_largest(self.search.q[self.look(cell, c, state)])
        copy_value(theta, folds, values, i, abar, state, self.next_value)
        for d in range(D):
            target_i[d] += gamma * self.next_value[d]
        if c != i:
            # All actions of policy c, under the reward of its own task.
            copy_value(theta, folds, values, c, 0, state, own[0])
            read_out(own, 0, self.readouts[c], self.clip, self.own_q)
            abar = first_largest(self.own_q[0])
            for d in range(D):
                target_c[d] += gamma * own[0, abar * D + d]

    def descend(self, c: int, action: int, state: Reals, error_i: Reals, error_c: Reals, rate: float) -> bool:
        """theta_{k,a,d} += rate error_{k,d} s."""
        theta, weights, finite = self.theta, self.weights, True
        i, D = theta.shape[0] - 1, error_i.shape[0]
        for e in range(1 if c == i else 2):
            k, error = learner(e, i, c), error_i if e == 0 else error_c
            finite = descend(theta, k, action * D, state, error, rate) and finite
            if self.folds:
                fold(theta, k, action, self.readouts[i], weights)
            if self.tables.seen.shape[0] > 0 and e == 1:
                note_update(self.tables, k, action, weights, self.gpi_readout)
        return finite

    def look_again(self, c: int, action: int, state: Reals) -> int:
        """All values are known but for the action that has learned."""
        weights, gpi_readout, clip, search = self.weights, self.gpi_readout, self.clip, self.search
        i = weights.shape[0] - 1
        for e in range(1 if c == i else 2):
            evaluate_again(learner(e, i, c), action, weights, state, gpi_readout, clip, self.values, search)
        return best_policy(self.tables, weights, state, gpi_readout, clip, self.values, search)


@part()
def evaluate(
    k: int, weights: Reals, state: Reals, readout: Reals, clip: bool, values: Reals, search: Search
) -> None:
    """The exact values of policy k at this state."""
    policy_values(weights, k, 0, weights.shape[1], state, values)
    note_value(search, k, read_out(values, k, readout, clip, search.q))


@part()
def action_rows(weights: Reals, k: int, action: int, outputs: int, state: Reals, values: Reals) -> None:
    """values[k, r] = theta_{k,r} . s for all rows of an action, and for those that are read with them."""
    first, last = action * outputs, (action + 1) * outputs
    begin, end = first - first % ROWS_AT_ONCE, -(-last // ROWS_AT_ONCE) * ROWS_AT_ONCE
    policy_values(weights, k, begin, end, state, values)


@part()
def evaluate_actions(
    k: int, of_actions: Reals, weights: Reals, state: Reals, readout: Reals, clip: bool, values: Reals,
    search: Search,
) -> None:  # fmt: skip
    """The exact values of those actions of policy k whose bounds reach the largest value."""
    q, known, n, lane = search.q, search.known, k // LANES, k % LANES
    if search.begun[k] != search.number[0]:
        begin_policy(search, k)
        search.best[k] = -np.inf
        for a in range(q.shape[1]):
            q[k, a] = -np.inf
            known[k, a] = 0
    while True:
        next_one, bound = -1, q.dtype.type(-np.inf)
        for a in range(q.shape[1]):
            if known[k, a] == 0 and of_actions[n, a, lane] > bound:
                next_one, bound = a, of_actions[n, a, lane]
        search.bound[k] = bound
        if next_one < 0 or bound < search.largest[0]:
            return
        action_rows(weights, k, next_one, readout.shape[0], state, values)
        value = read_action(values, k, next_one, readout, clip)
        q[k, next_one] = value
        known[k, next_one] = 1
        search.best[k] = max(search.best[k], value)
        search.largest[0] = max(search.largest[0], value)


@part()
def evaluate_again(
    k: int, action: int, weights: Reals, state: Reals, readout: Reals, clip: bool, values: Reals,
    search: Search,
) -> None:  # fmt: skip
    """The values of an evaluated policy after an update of an action.

    A correction by delta s . s' would be cheaper still, but rounds differently: two policies that equal
    updates have made equal, as happens in front of a wall, would not tie any more.
    """
    action_rows(weights, k, action, readout.shape[0], state, values)
    search.best[k] = read_out(values, k, readout, clip, search.q)


@part(inlined=True)
def best_policy(
    tables: Filter, weights: Reals, state: Reals, readout: Reals, clip: bool, values: Reals, search: Search
) -> int:
    """The first policy of largest value; evaluates whatever might be it."""
    note_largest(search)
    if tables.seen.shape[0] > 0:
        refine(tables, readout, search)
    for e in range(gather(search)):
        k = search.candidates[e]
        if may_win(search, k):
            if tables.seen.shape[0] > 0:
                evaluate_actions(k, tables.of_actions, weights, state, readout, clip, values, search)
            else:
                evaluate(k, weights, state, readout, clip, values, search)
    return winner(search)


@part()
def copy_value(
    theta: Reals, folds: bool, values: Reals, k: int, action: int, state: Reals, value: Reals
) -> None:
    """Rows of theta_k . s from those of an action on, as many as there is room for.

    The search knows them, unless it ran on folded weights.
    """
    first = action * value.shape[0]
    if folds:
        action_values(theta, k, first, state, value)
    else:
        copy_from(values, k, first, value)
