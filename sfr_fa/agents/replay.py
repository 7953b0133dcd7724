"""Experience replay: minibatches of remembered steps, and target networks. The paper uses neither.

A step leaves (s, a, c, gamma_t, s') and its source policy k in a memory of the last `capacity` steps. Every
`every` steps B of them are drawn, with replacement, and each policy that one of them concerns makes one
optimiser step on its part of

    1/B sum_b   | c_b + gamma_b value^_i(s'_b, abar_b) - value_i(s_b, a_b) |^2
              + | c_b + gamma_b value^_k(s'_b, abar'_b) - value_k(s_b, a_b) |^2    if k = k_b is not i,

the mean of the losses of the listing, for the current policy i and for sources (sfr_fa.agents.gpi_agent, with
the same abar). One pass gives the values of all K policies at all B next states. value^ are the values
themselves or, with `target_every`, those of copies of all networks, made at the start of a task and after
every `target_every` minibatches.

Reward models and one-step models learn once from each step, as it happens; c is remembered as it was then. A
memory outlives its task, since cumulants of features do not depend on rewards; only an agent that forgets its
policies (Q) forgets its steps, too. With capacity, batch and every 1 and no target_every this is the listing.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.func import vmap

from sfr_fa.agents.approximators import ValueShape
from sfr_fa.arrays import positive_integer
from sfr_fa.streams import Streams
from sfr_theory.gpi import gpi_choice

if TYPE_CHECKING:
    from sfr_fa.agents.gpi_agent import GpiAgent


@dataclass(frozen=True)
class Replay:
    """How an agent learns from what it remembers: `make_engine(..., replay=Replay())`."""

    capacity: int = 10_000
    """How many of the last steps are remembered."""
    batch: int = 32
    """B, how many are drawn for a minibatch."""
    every: int = 1
    """Steps from one minibatch to the next."""
    target_every: int | None = None
    """Minibatches from one copy of the target networks to the next; None: there are none."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is not None or entry.name != "target_every":
                object.__setattr__(self, entry.name, positive_integer(value, entry.name))


@dataclass(frozen=True)
class Batch:
    """B steps, in the order of the rows."""

    states: Tensor
    """(B, state)"""
    actions: NDArray[np.int64]
    cumulants: Tensor
    """(B, D)"""
    discounts: Tensor
    """gamma_t, (B, 1)"""
    next_states: Tensor
    sources: NDArray[np.int64]
    """Which policy GPI followed."""

    def __len__(self) -> int:
        return len(self.actions)


def learn_batch(agent: GpiAgent, steps: Batch, next_values: Tensor) -> float:
    """One optimiser step of each policy concerned; next_values (K, B, A, D). The loss of the current one."""
    current, rows = agent.num_policies - 1, np.arange(len(steps))
    q = agent._q(next_values[agent.participants], agent.readouts[-1].vector)  # (P, B, A)
    abar = gpi_choice(q.swapaxes(0, 1))[1]
    loss = _descend(agent, current, steps, rows, next_values[current, rows, abar])
    for policy in sorted(set(steps.sources.tolist()) - {current}):
        rows = np.flatnonzero(steps.sources == policy)
        values = next_values[policy, rows]
        abar = agent._q(values, agent.readouts[policy].vector).argmax(axis=-1)
        _descend(agent, policy, steps, rows, values[np.arange(len(rows)), abar])
    return loss


def _descend(
    agent: GpiAgent, policy: int, steps: Batch, rows: NDArray[np.int64], next_values: Tensor
) -> float:
    """An optimiser step of one policy on its rows of a minibatch."""
    shape = agent.shape
    target = steps.cumulants[rows] + steps.discounts[rows] * next_values
    values = agent.policies.modules[policy](steps.states[rows])
    errors = (target - values[np.arange(len(rows)), steps.actions[rows]]).reshape(
        -1, shape.groups, shape.size
    )
    losses = agent.loss(errors[0]) if len(rows) == 1 else vmap(agent.loss)(errors)
    return agent._step(policy, losses.sum() / len(steps))


class Memory:
    """The last steps and the target networks of one agent."""

    def __init__(self, replay: Replay, shape: ValueShape, dtype: torch.dtype, streams: Streams) -> None:
        self.replay = replay
        # A child of its own, so that exploration draws what it draws without a memory.
        [self.rng] = streams.exploration.spawn(1)
        n = replay.capacity
        self.states, self.next_states = (torch.zeros((n, shape.state_dim), dtype=dtype) for _ in range(2))
        self.cumulants = torch.zeros((n, shape.dimensions), dtype=dtype)
        self.discounts = torch.zeros((n, 1), dtype=dtype)
        self.actions, self.sources = np.zeros(n, dtype=np.int64), np.zeros(n, dtype=np.int64)
        self.steps = 0
        """Steps ever taken in; the memory holds the last of them."""
        self.minibatches = 0
        self.targets: dict[str, Tensor] | None = None

    def start_task(self, agent: GpiAgent) -> None:
        """New target networks; nothing is kept of policies that were forgotten."""
        if agent.num_policies == 1:
            self.steps = 0
        self._copy_targets(agent)

    def learn(
        self, agent: GpiAgent, state: Tensor, action: int, cumulant: Tensor, discount: float,
        next_state: Tensor, source: int,
    ) -> float:  # fmt: skip
        """Take in a step and, if it is time, learn from a minibatch: its loss, or nan."""
        row = self.steps % self.replay.capacity
        self.states[row], self.actions[row], self.cumulants[row] = state, action, cumulant
        self.discounts[row], self.next_states[row], self.sources[row] = discount, next_state, source
        self.steps += 1
        if self.steps % self.replay.every:
            return float("nan")
        steps = self.draw()
        loss = learn_batch(agent, steps, agent._all_values_at(steps.next_states, self.targets))
        self.minibatches += 1
        if self.replay.target_every and self.minibatches % self.replay.target_every == 0:
            self._copy_targets(agent)
        return loss

    def draw(self) -> Batch:
        """A minibatch."""
        rows = self.rng.integers(min(self.steps, self.replay.capacity), size=self.replay.batch)
        return Batch(
            self.states[rows], self.actions[rows], self.cumulants[rows], self.discounts[rows],
            self.next_states[rows], self.sources[rows],
        )  # fmt: skip

    def _copy_targets(self, agent: GpiAgent) -> None:
        if self.replay.target_every:
            self.targets = {name: stack.clone() for name, stack in agent.policies.parameters.items()}

    def grow(self, agent: GpiAgent) -> None:
        """Values have new entries: 0 in what is remembered, and in the target networks."""
        more = agent.shape.dimensions - self.cumulants.shape[1]
        self.cumulants = torch.nn.functional.pad(self.cumulants, (0, more))
        if self.targets is not None:
            grown: Any = agent.policies.modules[0].grown
            self.targets = {name: grown(name, stack, agent.shape) for name, stack in self.targets.items()}

    def state_dict(self) -> dict[str, Any]:
        return {
            **{name: getattr(self, name) for name in _STATE},
            "targets": self.targets or {},
            "rng": self.rng.bit_generator.state,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for name in _STATE:
            setattr(self, name, copy.deepcopy(state[name]))
        self.targets = {name: stack.clone() for name, stack in state["targets"].items()} or None
        self.rng.bit_generator.state = state["rng"]


_STATE = ("states", "actions", "cumulants", "discounts", "next_states", "sources", "steps", "minibatches")
