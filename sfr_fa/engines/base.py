"""What engines share: the result of a task, the limit of episodes, and state that can be stored.

An engine owns no weights. They are in its agent before and after every task, whichever engine has run it: an
engine's state can be loaded into the other kind, and the agent can be queried, saved or trained by hand in
between.
"""

from __future__ import annotations

import contextlib
import copy
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from sfr_fa.agents import GpiAgent, LearnedFeatures
from sfr_fa.agents.checkpoint import load_state, read_checkpoint, write_checkpoint
from sfr_fa.agents.gpi_agent import Contest
from sfr_fa.agents.readouts import Given, Weights
from sfr_fa.agents.schedules import check_probability
from sfr_fa.arrays import FloatArray, positive_integer
from sfr_fa.streams import Streams, check_seed, stream
from sfr_fa.tasks import LinearTask, Task, TaskOrFunction, as_task
from sfr_theory.errors import InputError


@dataclass(frozen=True)
class TaskResult:
    """What became of the steps that `run_task` or `continue_task` was asked for."""

    total_reward: float
    steps: int
    """Steps made; fewer than asked for if learning diverged or a callback stopped it."""
    episodes: int
    """Episodes begun."""
    gpi_counts: NDArray[np.int64]
    """(K,): how often each stored policy was the best one when an action was chosen."""
    actions: NDArray[np.int64]
    """(steps,): what was done."""
    seconds: float
    """Of processor time, which other programs on the machine do not change."""
    diverged: bool


Callback = Callable[[TaskResult], bool | None]
"""Called with the result so far; True stops."""


@dataclass(frozen=True)
class Evaluation:
    """What stored policies earned in episodes in which nothing was learned."""

    returns: FloatArray
    """(episodes,): sum_t r_t."""
    discounted_returns: FloatArray
    """(episodes,): sum_t gamma^t r_t."""
    lengths: NDArray[np.int64]
    """(episodes,): steps."""
    ended: NDArray[np.bool_]
    """(episodes,): whether the environment ended the episode; the others were cut off by a limit."""
    gpi_shares: FloatArray
    """(K,): the fraction of all steps in which each stored policy was followed."""


@dataclass(frozen=True)
class EpisodeLimit:
    """Ends an episode after a number of steps, on top of what the environment does (docs/decisions.md)."""

    steps: int | None = None
    """None: no limit but the environment's own."""
    is_terminal: bool | None = None
    """Whether a step that a limit cuts off, also the environment's own, is terminal (gamma_t = 0), or
    bootstraps. None: terminal in worlds, as in the listings; elsewhere it bootstraps, as in Gymnasium."""

    def __post_init__(self) -> None:
        if self.steps is not None:
            positive_integer(self.steps, "the limit of an episode")
        if not isinstance(self.is_terminal, bool | None):
            raise InputError(
                f"is_terminal of a limit is {self.is_terminal!r}; it must be True, False or None"
            )


@dataclass(frozen=True)
class Walk:
    """What an engine reports of its steps."""

    total_reward: float
    """Of these steps and those before."""
    episodes: int
    actions: NDArray[np.int64]
    diverged: bool


class SeenPath(NamedTuple):
    """What was seen on the way of some actions."""

    states: NDArray[np.float32]
    """(T, S): s_t..."""
    next_states: NDArray[np.float32]
    """(T, S): ... s_{t+1}..."""
    rewards: FloatArray
    """(T,): ... and r_t."""


@dataclass(frozen=True)
class Trip:
    """What `Engine.evaluate` asks an engine to do: episodes without learning."""

    task: Task
    """By which rewards are counted."""
    contest: Contest
    """Which policies act, and for which reward."""
    environment: gymnasium.Env[Any, Any]
    episodes: int
    episode_steps: int
    epsilon: float
    seed: int
    noise: np.random.Generator
    exploration: np.random.Generator


class Engine:
    """Runs tasks one after another; what was learned carries over.

    engine.run_task(task, steps)      a new task always starts a new episode
    engine.continue_task(steps)       goes on with it, as if all steps had been asked for in one go
    engine.evaluate(reward)           what the stored policies earn under any reward, without learning
    engine.values(state)              Q_k(s, a) of all stored policies under the current task
    engine.save(path)                 `load` continues bit for bit, in any engine
    """

    name: str

    def __init__(
        self, environment: gymnasium.Env[Any, Any], agent: GpiAgent, streams: Streams, limit: EpisodeLimit
    ) -> None:
        if (
            agent.streams.exploration is not streams.exploration
            or agent.streams.weights is not streams.weights
        ):
            raise InputError("the agent draws from other streams than its engine; build it with seed=streams")
        _check_fit(environment, agent)
        if limit.is_terminal is None:
            # Metadata are what wrappers and vector environments pass on.
            limit = replace(limit, is_terminal=bool(environment.metadata.get("limit_is_terminal", False)))
        self.environment, self.agent, self.streams, self.limit = environment, agent, streams, limit
        self.task: Task | None = None
        """The current one; None before the first, and after `load`."""
        self._told = False
        """Whether the environment knows the current task."""
        self._running = False
        self._tasks_started = 0
        self._forget_episode()

    def run_task(
        self, task: TaskOrFunction, steps: int, callback: Callback | None = None, *, every: int = 1000
    ) -> TaskResult:
        """Learn a new task, or a function of features, for `steps` steps.

        `callback(result)` is called every `every` steps, and after the last one, with the result so far. It
        may evaluate and save; if it returns True, the task stops there. It does not change the numbers.
        """
        self._check_steps(steps, callback, every)
        started = time.process_time()
        self.start_task(task)
        return self._go_on(int(steps), callback, every, started)

    def continue_task(
        self,
        steps: int,
        callback: Callback | None = None,
        *,
        every: int = 1000,
        task: TaskOrFunction | None = None,
    ) -> TaskResult:
        """Learn the current task for `steps` more steps; the episode in progress goes on, too.

        run_task(task, m) and continue_task(n) take the steps of run_task(task, m + n) exactly. The result
        is that of the n steps. After `load` the engine has to be told the `task` that its last policy was
        learning; an episode begins then.
        """
        self._check_steps(steps, callback, every)
        if task is not None:
            self._take_up(as_task(task))
        if self.task is None:
            raise InputError(
                "there is no task to continue; after load say which: continue_task(steps, task=task), or "
                "call run_task"
            )
        if self._tasks_started != len(self.agent.gpi_counts_by_task):
            raise InputError("the agent has started another task by itself; call run_task")
        self.agent.refuse_if_not_ready()
        return self._go_on(int(steps), callback, every, time.process_time())

    def start_task(self, task: TaskOrFunction) -> Task:
        """Make the agent ready for a new task, or refuse it before anything has changed."""
        self._refuse_in_a_callback()
        task = as_task(task)
        self._check(task)
        self.agent.start_task(task)
        self._begin(task)
        return task

    def _begin(self, task: Task) -> None:
        self.task, self._tasks_started, self._told = task, len(self.agent.gpi_counts_by_task), False
        self._forget_episode()

    def _take_up(self, task: Task) -> None:
        """Go on with the task that a loaded agent was learning."""
        if self.task is not None:
            raise InputError("the engine knows its task; leave task out, or call run_task for a new one")
        self._check(task)
        rule, contest = self.agent.readout_rule, self.agent.contest
        # Fits of weights may begin at random, and what is learned online tells nothing of the task.
        told = isinstance(rule, Given) and (
            isinstance(task, LinearTask) or not isinstance(rule.known, Weights)
        )
        # Fits are rounded in another way on another machine.
        if told and not torch.allclose(contest().readout, contest(task).readout, rtol=1e-4, atol=1e-5):
            raise InputError("task is not what the last policy was learning; call run_task for a new one")
        self._begin(task)

    def _check_steps(self, steps: Any, callback: Any, every: Any) -> None:
        positive_integer(steps, "steps")
        positive_integer(every, "every")
        if callback is not None and not callable(callback):
            raise InputError(f"callback is {callback!r}; it must be a function of a TaskResult")
        self._refuse_in_a_callback()

    def _refuse_in_a_callback(self) -> None:
        if self._running:
            raise InputError(
                "a callback may evaluate and save, but not learn or load: the engine is in the middle of a "
                "task"
            )

    def _go_on(self, steps: int, callback: Callback | None, every: int, started: float) -> TaskResult:
        """Steps of the current task; in pieces if somebody wants to look."""
        counts, actions = self.agent.gpi_counts.copy(), np.zeros(steps, dtype=np.int64)
        total, made, episodes = 0.0, 0, 0
        self._running = True
        try:
            while True:
                with _few_threads(self.agent):
                    walk = self._walk(steps - made if callback is None else min(every, steps - made), total)
                actions[made : made + len(walk.actions)] = walk.actions
                total, made, episodes = walk.total_reward, made + len(walk.actions), episodes + walk.episodes
                result = TaskResult(
                    total_reward=total,
                    steps=made,
                    episodes=episodes,
                    gpi_counts=self.agent.gpi_counts - counts,
                    actions=actions[:made],
                    seconds=time.process_time() - started,
                    diverged=walk.diverged,
                )
                stops = callback is not None and callback(result)
                if stops or walk.diverged or made == steps:
                    return result
        finally:
            self._running = False

    def evaluate(
        self,
        task: TaskOrFunction | None = None,
        episodes: int = 10,
        *,
        policy: int | None = None,
        epsilon: float = 0.0,
        episode_steps: int = 1000,
        seed: int = 0,
        environment: gymnasium.Env[Any, Any] | None = None,
    ) -> Evaluation:
        """Run episodes without learning: the agent, its streams and the task in progress stay as they are.

            engine.evaluate()                        the current task, as the agent has learned to see it
            engine.evaluate(task)                    any task or function of features, zero-shot: GPI over
                                                     all stored policies, read under this reward
            engine.evaluate(task, policy=k)          stored policy k, which follows the reward of its own task

        task           counts the rewards. Agents that learn rewards (-R) are told it, as SFR is; without it
                       they act by their reward model. Those on learned features (-h) cannot read it: evaluate
                       the current task, or one policy. Q knows no task but the current one.
        epsilon        how often an action is drawn at random
        episode_steps  an episode is cut off after this many steps, since a greedy policy may run in circles
                       for ever; limits of the environment and of the engine hold, too
        seed           of noise and exploration, which are the same in both engines
        environment    where; by default in a copy of the engine's
        """
        if task is None and self.task is None:
            raise InputError("no task has started here; say which: evaluate(task)")
        scored = self.task if task is None else as_task(task)
        assert scored is not None
        self._check_scored(scored)
        if environment is None:
            environment = self._copied_environment()
        elif not isinstance(environment, gymnasium.Env):
            raise InputError("evaluate runs in one environment; pass one: evaluate(task, environment=one)")
        else:
            _check_fit(environment, self.agent)
        trip = Trip(
            scored,
            self.agent.contest(policy=policy) if policy is not None else self._contest(task),
            environment,
            positive_integer(episodes, "episodes"),
            min(positive_integer(episode_steps, "episode_steps"), self.limit.steps or episode_steps),
            check_probability(epsilon, "epsilon"),
            check_seed(seed),
            stream(seed, 0, "evaluation noise"),
            stream(seed, 0, "evaluation exploration"),
        )
        with _few_threads(self.agent):
            return self._evaluate(trip)

    def _check_scored(self, task: Task) -> None:
        """Refuse a task whose rewards cannot be counted."""
        self._check(task)

    def _contest(self, task: TaskOrFunction | None) -> Contest:
        """GPI under a task, given as a function of the environment's features."""
        if task is not None and isinstance(self.agent.feature_map, LearnedFeatures):
            raise InputError(
                "this agent values rewards of its learned features, not of the environment's; evaluate the "
                "current task, evaluate(), or a stored policy, evaluate(task, policy=k)"
            )
        return self.agent.contest(task)

    def _copied_environment(self) -> gymnasium.Env[Any, Any]:
        try:
            return copy.deepcopy(self.environment)
        except Exception as error:
            raise InputError(
                f"{self.environment} cannot be copied ({error}), and evaluating in it would disturb what is "
                f"being learned; pass a second one: evaluate(task, environment=...)"
            ) from error

    def _evaluate(self, trip: Trip) -> Evaluation:
        """The episodes; changes nothing but the environment and the generators of the trip."""
        raise NotImplementedError

    def retrace(self, task: TaskOrFunction, actions: Any, noise: np.random.Generator) -> SeenPath:
        """What a task showed on the way of all its actions; `noise` is as the environment's stream was then.

        A `TaskResult` has the actions only, since states take a lot of memory.
        """
        self._refuse_in_a_callback()
        task, actions, A = as_task(task), np.asarray(actions), self.agent.num_actions
        self._check(task)
        if actions.ndim != 1 or actions.dtype.kind not in "iu" or not np.isin(actions, np.arange(A)).all():
            raise InputError(f"actions must be integers from 0 to {A - 1}, such as those of a TaskResult")
        if not isinstance(noise, np.random.Generator):
            raise InputError(f"noise is {noise!r}; it must be a numpy.random.Generator")
        return self._retrace(task, actions.astype(np.int64), noise)

    def _retrace(self, task: Task, actions: NDArray[np.int64], noise: np.random.Generator) -> SeenPath:
        """The path; changes nothing that was learned."""
        raise NotImplementedError

    def _check(self, task: Task) -> None:
        """Refuse a task that cannot be run here, before anything has changed."""

    def values(self, state: Any) -> FloatArray:
        """Q_k(s, a) of all stored policies under the current task, (K, A)."""
        return self.agent.values(state)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next task depends on, as a tree that changes as the agent learns."""
        return {"agent": self.agent.state_dict(), "streams": self.streams.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Continue bit for bit from the state of an engine, of either kind, whose agent was built alike.

        A state holds what was learned, not the task in progress: run_task comes next, or continue_task with
        that task.
        """
        self._refuse_in_a_callback()
        self.agent.load_state_dict(state["agent"])
        self.streams.load_state_dict(state["streams"])
        self.task = None
        self._forget_episode()

    def save(self, path: str | Path) -> None:
        """Write the state to one file; `load` continues bit for bit, in any engine."""
        write_checkpoint(Path(path), self.agent.description, self.state_dict())

    def load(self, path: str | Path) -> None:
        """Continue from a file; after one that does not fit, all is as before."""
        state, before = read_checkpoint(Path(path), self.agent.description), vars(self).copy()
        if "agent" not in state:
            raise InputError(f"{path} holds an agent without its engine; load it with engine.agent.load")
        try:
            load_state(self, state, Path(path))
        except InputError:
            vars(self).update(before)
            raise

    def _walk(self, steps: int, total_reward: float) -> Walk:
        """The next steps of the current task; counts are left in the agent.

        Rewards are added to `total_reward`, so that they add up alike in pieces and in one go.
        """
        raise NotImplementedError

    def _forget_episode(self) -> None:
        """The next step begins an episode."""
        raise NotImplementedError


THREADS_FROM = 10**7
"""Products in a step, from which on PyTorch's threads save more time than it takes to wake them."""


@contextlib.contextmanager
def _few_threads(agent: GpiAgent) -> Iterator[None]:
    """One thread of PyTorch meanwhile, unless networks are large."""
    weights = sum(parameter[0].numel() for parameter in agent.policies.parameters.values())
    batch = 1 if agent.memory is None else agent.memory.replay.batch
    threads = torch.get_num_threads()
    if weights * batch < THREADS_FROM:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def spaces_of(environment: Any) -> tuple[gymnasium.Space[Any], gymnasium.Space[Any]]:
    """Of observations and of actions; of a vector environment, those of one of its members."""
    names = ("observation_space", "action_space")
    states, actions = (getattr(environment, f"single_{n}", getattr(environment, n)) for n in names)
    return states, actions


def _check_fit(environment: gymnasium.Env[Any, Any], agent: GpiAgent) -> None:
    """Refuse an agent that was built for other states or actions than the environment's."""
    states, actions = spaces_of(environment)
    if states.shape != (agent.state_dim,):
        raise InputError(
            f"the agent knows states of {agent.state_dim} numbers; the environment's are {states.shape}"
        )
    if not isinstance(actions, gymnasium.spaces.Discrete) or (actions.n, actions.start) != (
        agent.num_actions,
        0,
    ):
        raise InputError(
            f"the agent chooses actions 0 to {agent.num_actions - 1}; the environment has {actions}. "
            f"gymnasium.wrappers.TransformAction can renumber them"
        )
