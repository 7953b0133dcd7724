"""The one agent body behind all agents of the paper (algo:QL, algo:sfql, algo:MFXI, algo:MBXI, algo:CMFXI).

Task i is learned with stored policies k = 1 ... i. Each has value_k(s, a) in R^D and the readout v_k of its
own task; Q_k(s, a) = v_i . value_k(s, a) is its value under the current task. A step:

    c   = argmax over k of max over a of Q_k(s_t, a)                          the source policy
    a_t = argmax over a of Q_c(s_t, a), or at random with probability epsilon
    observe r_t, phi_t, s_{t+1};  gamma_t = 0 where s_{t+1} is terminal, else gamma
    the reward model of v_i learns, then the cumulant's model; c_t is the cumulant
    abar = argmax over a of max over k of Q_k(s_{t+1}, a)
    SGD on  | c_t + gamma_t value_i(s_{t+1}, abar) - value_i(s_t, a_t) |^2     summed over the D entries
    if c != i:  abar = argmax over a of v_c . value_c(s_{t+1}, a)
                SGD on | c_t + gamma_t value_c(s_{t+1}, abar) - value_c(s_t, a_t) |^2

Targets are constants for the gradient, and the 2 of the square belongs to it: with one-hot states a rate
alpha here is a tabular step size of 2 alpha. Values of non-negative cumulants are clipped at 0 where Q is
computed, not in targets. Ties go to the first policy, then to its first action.

**Randomness** enters by two streams. `weights` draws the one-step model when the agent is built; when a task
starts, first what its readout needs, then a fresh network if there is one to start. `exploration` draws two
uniform numbers at every `act`, whether they are used or not: u_1 < epsilon explores, and then the action is
floor(u_2 A). So `rng.random((T, 2))` drawn ahead replays T steps.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sfr_fa.agents.approximators import ValueShape
from sfr_fa.agents.checkpoint import describe, load_state, read_checkpoint, write_checkpoint
from sfr_fa.agents.cumulants import Cumulant, Indicator
from sfr_fa.agents.errors import DivergedError
from sfr_fa.agents.features import EnvironmentFeatures, FeatureMap, one_member
from sfr_fa.agents.gpi_policies import check_participants, participants
from sfr_fa.agents.hysteresis import KeptActions
from sfr_fa.agents.policies import NewTask, PolicyLibrary
from sfr_fa.agents.readouts import Readout, ReadoutRule, check_dimensions, readout_vector
from sfr_fa.agents.replay import Memory
from sfr_fa.agents.schedules import Schedule, Schedules, check_epsilon, check_probability
from sfr_fa.agents.settings import AgentSettings, Clip, clip_at_zero, no_clip
from sfr_fa.agents.transition import Transition, check_size, check_state, check_transition
from sfr_fa.arrays import FloatArray
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.kernels.arrays import LARGEST_ERROR
from sfr_fa.tasks import Task, TaskOrFunction, as_task
from sfr_theory.errors import InputError, in_short
from sfr_theory.gpi import gpi_choice


class _Choice(NamedTuple):
    """What GPI chose at a state."""

    state: bytes
    source_policy: int


class Contest(NamedTuple):
    """Which stored policies GPI compares, and under which reward."""

    policies: NDArray[np.int64]
    """Their indices, increasing."""
    readout: Tensor
    """v, (D,)."""


class GpiAgent:
    """Learns a sequence of tasks and transfers between them by generalised policy improvement.

        agent.start_task(task)
        action = agent.act(state)
        agent.learn(Transition(state, action, reward, features, next_state, terminal))
        agent.values(state, reward)      every stored policy under any reward function
        agent.act(state, reward)         the best action of them all under it

    `sfr_fa.agents.make_agent` builds the agents of the paper; the parts can be combined in other ways.
    """

    def __init__(
        self,
        settings: AgentSettings,
        *,
        feature_map: FeatureMap,
        cumulant: Cumulant,
        readout: ReadoutRule,
        new_task: NewTask,
    ) -> None:
        self.state_dim, self.num_actions = settings.state_dim, settings.num_actions
        self.gamma, self.dtype = settings.gamma, settings.dtype
        self.numpy_dtype = torch.empty(0, dtype=self.dtype).numpy().dtype
        self.schedules = Schedules(
            settings.epsilon,
            settings.learning_rate,
            settings.reward_learning_rate,
            settings.model_learning_rate,
        )
        self.loss, self.gpi_policies, self.streams = settings.loss, settings.gpi_policies, settings.streams
        self.feature_map, self.cumulant, self.readout_rule = feature_map, cumulant, readout
        self.new_task = new_task
        self.clip: Clip = settings.clip or (clip_at_zero if cumulant.nonnegative else no_clip)
        self.shape = ValueShape(self.state_dim, self.num_actions, cumulant.groups, cumulant.size)
        optimiser = functools.partial(settings.optimiser, lr=self.schedules.at(0).value)
        self.policies = PolicyLibrary(settings.approximator, self.shape, optimiser, self.dtype)
        self._probe_functions()
        if self._growing:
            self.policies.check_can_grow()
        replay = settings.replay
        self.memory = None if replay is None else Memory(replay, self.shape, self.dtype, self.streams)
        rule = settings.hysteresis
        self.kept_actions = None if rule is None else KeptActions(rule)
        self.readouts: list[Readout] = []
        self.participants: NDArray[np.int64] = np.zeros(0, dtype=np.int64)
        """Indices of the policies that take part in GPI during the current task."""
        self.gpi_counts_by_task: list[NDArray[np.int64]] = []
        self.steps_learned = 0
        self.steps_of_task = 0
        """Steps learned in the current task, on which schedules depend."""
        self._choice: _Choice | None = None
        self._failure: str | None = None
        parts = {
            "feature_map": feature_map, "cumulant": cumulant, "readout": readout, "new_task": new_task,
            "clip": self.clip, "approximator": settings.approximator, "optimiser": settings.optimiser,
            "state_dim": self.state_dim, "num_actions": self.num_actions,
            "gamma": self.gamma, "dtype": self.dtype,
            "generators": (self.streams.weights.bit_generator, self.streams.exploration.bit_generator),
        }  # fmt: skip
        if replay is not None:
            parts["replay"] = replay
        if rule is not None:
            parts["hysteresis"] = rule
        self.description = {name: describe(part) for name, part in parts.items()}

    def _probe_functions(self) -> None:
        """Refuse a loss or a clip that fails on one value, or returns something other than it must."""
        errors = torch.ones(self.shape.groups, self.shape.size, dtype=self.dtype, requires_grad=True)
        loss = _tried("loss", self.loss, errors)
        if not (isinstance(loss, Tensor) and loss.shape == () and loss.requires_grad):
            raise InputError(
                f"loss returned {_returned(loss)}; it must return a tensor with one number that "
                f"depends on its argument, a tensor of shape {tuple(errors.shape)}"
            )
        values = torch.ones(1, self.num_actions, self.shape.dimensions, dtype=self.dtype)
        clipped = _tried("clip", self.clip, values)
        if not (isinstance(clipped, Tensor) and clipped.shape == values.shape):
            raise InputError(
                f"clip returned {_returned(clipped)}; it must return a tensor of the shape of its argument, "
                f"{tuple(values.shape)}"
            )

    # --- The three verbs --------------------------------------------------------------------------

    def start_task(self, task: TaskOrFunction | None = None) -> None:
        """Begin the next task: a task, or a function of features.

        Agents that learn the reward function online need not be told what it is.
        """
        self._refuse_if_diverged()
        self._refuse_weights_that_are_not_finite()
        self._take_in_new_features()
        known = None if task is None else self._of_our_features(as_task(task))
        before = self.streams.weights.bit_generator.state
        try:
            readout = self.readout_rule.start(known, self.streams.weights, self.dtype)
            chosen = participants(self.gpi_policies, [r.vector for r in (*self.readouts, readout)])
            self.new_task(self.policies, self.streams.weights)
        except BaseException:
            self.streams.weights.bit_generator.state = before
            raise
        # Policies that were forgotten take their readouts with them.
        self.readouts = [*self.readouts[: len(self.policies) - 1], readout]
        if chosen[-1] != len(self.readouts) - 1:
            chosen = participants(self.gpi_policies, [stored.vector for stored in self.readouts])
        self.participants = chosen
        self.gpi_counts_by_task.append(np.zeros(len(self.policies), dtype=np.int64))
        self.steps_of_task = 0
        self._choice = None
        if self.memory is not None:
            self.memory.start_task(self)
        if self.kept_actions is not None:
            self.kept_actions.forget(len(self.policies) - 1)

    def act(
        self,
        state: Any,
        reward: TaskOrFunction | None = None,
        *,
        epsilon: float | None = None,
        rng: np.random.Generator | None = None,
    ) -> int:
        """The GPI action at a state.

            act(state)                  a step of learning: the current task, the agent's own epsilon
            act(state, reward)          greedy for any reward function that `values` can be asked for
            act(state, epsilon=0)       greedy for the current task
            act(state, reward, epsilon=0.1, rng=rng)

        All but the first are mere queries: they change nothing, and draw from `rng` alone.
        """
        if reward is None and epsilon is None:
            return self._act(state)
        _, action = self.choose(state, self.contest(reward))
        probability = 0.0 if epsilon is None else check_probability(epsilon, "epsilon")
        if probability > 0 and rng is None:
            raise InputError("to explore, act needs a generator: pass rng=numpy.random.default_rng(seed)")
        return action if rng is None else explored(action, probability, self.num_actions, rng)

    def _act(self, state: Any) -> int:
        self.refuse_if_not_ready()
        self._take_in_new_features()
        state = check_state(state, self.state_dim, self._largest)
        try:
            source_policy, greedy_action = self._gpi(self._all_values(state))
        except DivergedError as error:
            self._failure = str(error)
            raise
        self._choice = _Choice(state.tobytes(), source_policy)
        self.gpi_counts[source_policy] += 1
        epsilon = self.schedules.at(self.steps_of_task).epsilon
        return explored(greedy_action, epsilon, self.num_actions, self.streams.exploration)

    def act_at(self, states: Any) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """`act` at several states in one pass over all policies: the actions, and the policies that chose."""
        self.refuse_if_not_ready()
        self._take_in_new_features()
        checked = [check_state(state, self.state_dim, self._largest) for state in states]
        if not checked:
            return np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        try:
            values = self._all_values_at(self._tensor(np.stack(checked)))
        except DivergedError as error:
            self._failure = str(error)
            raise
        q = self._q(values[self.participants], self.readouts[-1].vector)  # (P, N, A)
        among, greedy = gpi_choice(q.swapaxes(0, 1))
        sources = self.participants[among]
        epsilon = self.schedules.at(self.steps_of_task).epsilon
        actions = [explored(int(a), epsilon, self.num_actions, self.streams.exploration) for a in greedy]
        return np.array(actions, dtype=np.int64), sources

    def learn(self, transition: Transition, source_policy: int | None = None) -> float:
        """One step of the listing; returns the loss of the current policy before its update.

        With `replay`, the loss of a minibatch, or nan where none was due. `source_policy` is the one that
        `act_at` named; after `act` the agent knows it.
        """
        self.refuse_if_not_ready()
        step = check_transition(transition, self.state_dim, self.num_actions, self._largest)
        phi_t = self.feature_map(step)
        if self.feature_map.space is not None:
            phi_t = check_size(one_member(self.feature_map.space, phi_t), self._largest, "the feature vector")
        self._take_in_new_features()
        current = len(self.policies) - 1
        try:
            if source_policy is None:
                source_policy = self._source_policy(step.state)
            else:
                self.gpi_counts[source_policy] += 1  # `act` has counted its own
            self._choice = None
            loss = self._learn(step, phi_t, current, source_policy)
        except DivergedError as error:
            self._failure = str(error)
            raise
        self.steps_learned += 1
        self.steps_of_task += 1
        return loss

    def _learn(self, step: Transition, phi_t: FloatArray, current: int, source_policy: int) -> float:
        state = self._tensor(step.state)
        self._follow_schedules()
        self.readouts[current].learn(phi_t, step.reward)
        cumulant_t = self._tensor(self.cumulant.observe(state, step.action, phi_t, step.reward))
        discount_t = self._discount(step)
        if self.memory is not None:
            return self.memory.learn(
                self, state, step.action, cumulant_t, discount_t, self._tensor(step.next_state), source_policy
            )
        next_values = self._all_values(step.next_state)  # (K, A, D)

        _, next_action = self._gpi(next_values)
        if self.kept_actions is not None:
            q = self._q(next_values[self.participants], self.readouts[current].vector).max(axis=0)
            next_action = self.kept_actions.choose(current, step.next_state, q, self.steps_learned + 1)
        target = cumulant_t + discount_t * next_values[current, next_action]
        loss = self._descend(current, state, step.action, target)

        if source_policy != current:
            next_action = self._own_greedy_action(source_policy, next_values[source_policy])
            if self.kept_actions is not None:
                q = self._q(next_values[source_policy], self.readouts[source_policy].vector)
                next_action = self.kept_actions.choose(
                    source_policy, step.next_state, q, self.steps_learned + 1
                )
            target = cumulant_t + discount_t * next_values[source_policy, next_action]
            self._descend(source_policy, state, step.action, target)
        return loss

    def _follow_schedules(self) -> None:
        """Set the rates of this step, where they depend on it."""
        schedules = self.schedules
        if not schedules.vary:
            return
        rates = schedules.at(self.steps_of_task)
        self.policies.set_rate(rates.value)
        parts: tuple[tuple[Schedule | None, Any, float], ...] = (
            (schedules.reward_learning_rate, self.readouts[-1], rates.reward),
            (schedules.model_learning_rate, self.cumulant, rates.model),
        )
        for schedule, part, rate in parts:
            if callable(schedule):
                part.set_rate(rate)

    # --- What can be asked ------------------------------------------------------------------------

    def values(self, state: Any, reward: TaskOrFunction | None = None) -> FloatArray:
        """Q_k(s, a) of all stored policies under a reward function of the agent's features: (K, A).

        `reward` is a task or a function of features; without it, the current task counts. What can
        be asked depends on what the agent sums:

            SFR, MB SFR       any reward function
            SF                any that is linear; another is fitted, in a box on make_agent's `fit_points`
            CSFR              a sum over feature dimensions: LinearTask, GaussianTask, AdditiveTask; another
                              is fitted by such a sum on `fit_points`
            SFR-K             any, fitted on `fit_points`; a warning says what the fit misses
            Q                 none but the current task

        Learned features (-h) are what `reward` is a function of then. Asking changes nothing.
        """
        readout = self.contest(reward).readout
        values = self._all_values(check_state(state, self.state_dim, self._largest))
        return self._q(values, readout).astype(np.float64)

    def contest(self, reward: TaskOrFunction | None = None, policy: int | None = None) -> Contest:
        """Who competes for the next action, and under which reward.

        contest()             the policies that take part in GPI, under the current task
        contest(reward)       all stored policies, under a reward function that `values` can be asked for
        contest(policy=k)     policy k alone, under the reward of its own task
        """
        self.refuse_if_not_ready()
        self._take_in_new_features()
        if policy is not None:
            if reward is not None:
                raise InputError("one policy follows the reward of its own task; leave the other one out")
            whole = isinstance(policy, (int, np.integer)) and not isinstance(policy, bool)
            if not whole or not 0 <= policy < self.num_policies:
                raise InputError(
                    f"policy is {policy!r}; the stored policies are 0 to {self.num_policies - 1}"
                )
            return Contest(np.array([policy], dtype=np.int64), self.readouts[policy].vector)
        if reward is None:
            return Contest(self.participants, self.readouts[-1].vector)
        # A fit that starts at random must not disturb the agent's own stream.
        vector = readout_vector(
            self.readout_rule.known, as_task(reward), np.random.default_rng(0), self.dtype
        )
        return Contest(np.arange(self.num_policies), vector)

    def choose(self, state: Any, contest: Contest) -> tuple[int, int]:
        """The best policy of a contest at a state, and its greedy action; changes nothing."""
        self.refuse_if_not_ready()
        return self._gpi(self._all_values(check_state(state, self.state_dim, self._largest)), contest)

    @property
    def epsilon(self) -> Schedule:
        """How often an action is drawn at random, or a function of the step; may be set."""
        return self.schedules.epsilon

    @epsilon.setter
    def epsilon(self, epsilon: Schedule) -> None:
        self.schedules.epsilon = check_epsilon(epsilon, "epsilon")

    @property
    def num_policies(self) -> int:
        """K, how many policies are stored."""
        return len(self.policies)

    @property
    def gpi_counts(self) -> NDArray[np.int64]:
        """How often `act` found each policy best during the current task, shape (K,)."""
        if not self.gpi_counts_by_task:
            raise InputError("no task has started; call start_task first")
        return self.gpi_counts_by_task[-1]

    # --- Files ------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next steps depend on, as a tree of tensors, lists and numbers."""
        self._take_in_new_features()
        return {
            **({"features": self._growing.vectors} if self._growing else {}),
            "library": self.policies.state_dict(),
            "readouts": [readout.state_dict() for readout in self.readouts],
            "cumulant": self.cumulant.state_dict(),
            # One array: many small ones are slow to write.
            "gpi_counts": np.concatenate([np.zeros(0, np.int64), *self.gpi_counts_by_task]),
            "gpi_tasks": [len(counts) for counts in self.gpi_counts_by_task],
            "participants": self.participants.tolist(),
            "steps_learned": self.steps_learned,
            "steps_of_task": self.steps_of_task,
            "failure": self._failure,
            "memory": None if self.memory is None else self.memory.state_dict(),
            "kept_actions": None if self.kept_actions is None else self.kept_actions.state_dict(),
            "streams": {
                "weights": self.streams.weights.bit_generator.state,
                "exploration": self.streams.exploration.bit_generator.state,
            },
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over the state of an agent that was built alike; continues bit for bit."""
        if self._growing:
            self._growing.extend_to(state["features"])
            self.shape = self.policies.shape = replace(self.shape, size=len(state["features"]))
        readouts = [self.readout_rule.restore(saved, self.dtype) for saved in state["readouts"]]
        self.policies.load_state_dict(state["library"])
        self.readouts = readouts
        self.cumulant.load_state_dict(state["cumulant"])
        ends, counts = np.cumsum(state["gpi_tasks"], dtype=np.int64), np.array(state["gpi_counts"], np.int64)
        self.gpi_counts_by_task = np.split(counts, ends[:-1]) if len(ends) else []
        saved = state["participants"]
        self.participants = (
            check_participants(saved, len(self.policies)) if len(saved) else np.zeros(0, np.int64)
        )
        self.steps_learned = int(state["steps_learned"])
        self.steps_of_task = int(state.get("steps_of_task", 0))
        self._failure = state["failure"]
        if self.memory is not None and state.get("memory") is not None:
            self.memory.load_state_dict(state["memory"])
        if self.kept_actions is not None:
            self.kept_actions.load_state_dict(state["kept_actions"])
        self._choice = None
        self.streams.weights.bit_generator.state = state["streams"]["weights"]
        self.streams.exploration.bit_generator.state = state["streams"]["exploration"]

    @property
    def _growing(self) -> DiscreteFeatures | None:
        """The set of features by which values may get new entries."""
        cumulant = self.cumulant
        return cumulant.space if isinstance(cumulant, Indicator) and cumulant.space.grow else None

    def _take_in_new_features(self) -> None:
        """New features of a set that grows: entries of 0 in all values, and their rewards in all readouts."""
        if self.cumulant.size == self.shape.size:
            return
        self.shape = replace(self.shape, size=self.cumulant.size)
        self.policies.grow(self.shape)
        if self.memory is not None:
            self.memory.grow(self)
        self.readouts = [self.readout_rule.grown(readout, self.dtype) for readout in self.readouts]

    def save(self, path: str | Path) -> None:
        """Write the state to one file; `load` continues bit for bit."""
        write_checkpoint(Path(path), self.description, self.state_dict())

    def load(self, path: str | Path) -> None:
        """Take over what an agent built alike has learned; a file that does not fit is refused.

        Epsilon, learning rates, the loss and the rule of `gpi_policies` may differ from those of the agent
        that was saved: those of this agent count. All else (gamma, features, cumulant, readout, networks and
        their optimiser, clipping, shapes, precision) is part of what the weights mean.
        """
        state = read_checkpoint(Path(path), self.description)
        if "agent" in state:
            raise InputError(f"{path} holds an agent with its engine; load it with engine.load")
        load_state(self, state, Path(path))

    # --- Engines ----------------------------------------------------------------------------------

    def count_steps(self, steps: int, gpi_counts: NDArray[np.int64], *, diverged: bool) -> None:
        """Count steps of the current task that an engine has made on this agent's own weights.

        `gpi_counts` has an entry for each policy that takes part in GPI.
        """
        self.gpi_counts[self.participants] += gpi_counts
        self.steps_learned += steps
        self.steps_of_task += steps
        self._choice = None
        if diverged:
            self._failure = f"the values have diverged after {self.steps_learned} steps; {_ADVICE}"

    # --- The equations ----------------------------------------------------------------------------

    @property
    def _largest(self) -> float:
        """The largest number of this agent's arithmetic."""
        return torch.finfo(self.dtype).max

    def _of_our_features(self, task: Task) -> Task:
        """`task`, if it rewards vectors of the length that the agent learns from."""
        # Learned features are not those that the task rewards, and rewards alone (Q) have none.
        if isinstance(self.feature_map, EnvironmentFeatures) and hasattr(task, "dimensions"):
            check_dimensions(task, self.feature_map.space)
        return task

    def _tensor(self, array: FloatArray) -> Tensor:
        """A copy; NumPy makes it in a third of the time that torch.tensor takes."""
        return torch.from_numpy(np.array(array, dtype=self.numpy_dtype))

    def _all_values(self, state: FloatArray) -> Tensor:
        """value_k(s, a): (K, A, D)."""
        return self._all_values_at(self._tensor(state)[None])[:, 0]

    def _all_values_at(self, states: Tensor, parameters: Mapping[str, Tensor] | None = None) -> Tensor:
        """value_k(s_b, a) at states (B, state), by default with the policies' own weights: (K, B, A, D)."""
        values = self.policies.values(states, parameters)
        if not _finite(values):
            raise DivergedError(f"the values have diverged after {self.steps_learned} steps; {_ADVICE}")
        return values

    def _q(self, values: Tensor, readout: Tensor) -> FloatArray:
        """Q = v . value, clipped where the cumulant allows: (..., D) -> (...)."""
        # Summed so that equal policies stay equal bit for bit (see sfr_fa.agents.approximators).
        q: FloatArray = (self.clip(values) * readout).sum(-1).numpy()
        return q

    def _gpi(self, values: Tensor, contest: Contest | None = None) -> tuple[int, int]:
        """The best policy and its best action: under the current task, or of another contest."""
        policies, readout = contest or Contest(self.participants, self.readouts[-1].vector)
        values = values if len(policies) == len(values) else values[policies]
        among, action = gpi_choice(self._q(values, readout))
        return int(policies[among]), int(action)

    def _own_greedy_action(self, policy: int, values: Tensor) -> int:
        """argmax over a of v_c . value_c(s, a): policy c under the reward of its own task; (A, D) -> a."""
        return int(self._q(values, self.readouts[policy].vector).argmax())

    def _source_policy(self, state: FloatArray) -> int:
        """c of the state: remembered from `act`, or computed for a step that someone else chose."""
        if self._choice is not None and self._choice.state == state.tobytes():
            return self._choice.source_policy
        return self._gpi(self._all_values(state))[0]

    def _discount(self, step: Transition) -> float:
        """gamma_t: nothing follows a terminal state."""
        return 0.0 if step.terminal else self.gamma

    def _descend(self, policy: int, state: Tensor, action: int, target: Tensor) -> float:
        """One optimiser step of a policy on the loss of target - value(s, a)."""
        error = target - self.policies.modules[policy](state[None])[0, action]
        if not np.abs(error.detach().numpy()).max() <= LARGEST_ERROR:  # also where it is NaN
            raise DivergedError(f"the values have diverged after {self.steps_learned} steps; {_ADVICE}")
        return self._step(policy, self.loss(error.reshape(self.shape.groups, self.shape.size)))

    def _step(self, policy: int, loss: Tensor) -> float:
        """One optimiser step of a policy on a loss."""
        optimiser = self.policies.optimiser_of(policy)
        parameters = [parameter for group in optimiser.param_groups for parameter in group["params"]]
        for parameter in parameters:
            parameter.grad = None  # what zero_grad does, without its hooks
        loss.backward()
        optimiser.step()
        if not all(map(_finite, parameters)):
            raise DivergedError(
                f"the weights of policy {policy} have diverged after {self.steps_learned} steps; {_ADVICE}"
            )
        return float(loss.detach())

    # --- Refusals ---------------------------------------------------------------------------------

    def _refuse_if_diverged(self) -> None:
        if self._failure is not None:
            raise DivergedError(self._failure)

    def _refuse_weights_that_are_not_finite(self) -> None:
        """Only code from outside can have written them; GPI over such policies would mean nothing."""
        for name, weights in self.policies.parameters.items():
            finite = np.isfinite(weights.detach().numpy().reshape(len(self.policies), -1)).all(axis=1)
            if not finite.all():
                raise DivergedError(
                    f"{name} of policy {int(finite.argmin())} has entries that are not finite"
                )

    def refuse_if_not_ready(self) -> None:
        """Raise what `act` and `learn` would: learning has diverged, or no task has started."""
        self._refuse_if_diverged()
        if not self.readouts:
            raise InputError("no task has started; call start_task first")


_ADVICE = "a smaller learning_rate may help"


def explored(action: int, epsilon: float, num_actions: int, rng: np.random.Generator) -> int:
    """The action, or a random one with probability epsilon; draws two numbers in either case."""
    explores, which = rng.random(2)
    return int(which * num_actions) if explores < epsilon else action


def _finite(tensor: Tensor) -> bool:
    """Whether all entries are finite; NumPy asks several times faster than torch."""
    return bool(np.isfinite(tensor.detach().numpy()).all())


def _tried(name: str, function: Any, argument: Tensor) -> Any:
    try:
        return function(argument)
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"{name} fails on a tensor of shape {tuple(argument.shape)}: {what}") from error


def _returned(value: Any) -> str:
    return f"a tensor of shape {tuple(value.shape)}" if isinstance(value, Tensor) else in_short(value)
