"""A finite MDP, or a tabular Gymnasium environment, as an environment that the compiled engine runs.

    env = TableEnv.from_gymnasium(gymnasium.make("FrozenLake-v1"), features)

Observations have a 1 for each state, so that linear values are tables: what is learned can be compared with
the exact values of `sfr_theory.solve`.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import gymnasium
import numpy as np
from gymnasium import wrappers

from sfr_fa.arrays import FloatArray, finite_array
from sfr_fa.environments.world_env import WorldEnv
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.kernels.table import TableWorld
from sfr_fa.tasks import TaskOrFunction, as_task, rewards_of
from sfr_theory.arithmetic import float_array
from sfr_theory.errors import InputError
from sfr_theory.mdp import FiniteMDP

HARMLESS = (
    wrappers.OrderEnforcing,
    wrappers.PassiveEnvChecker,
    wrappers.TimeLimit,
    wrappers.HumanRendering,
    wrappers.RenderCollection,
    wrappers.RecordVideo,
    wrappers.RecordEpisodeStatistics,
)
"""Wrappers that change neither states nor actions nor rewards."""
TRIAL_STEPS, TRIAL_EPISODE = 5_000, 100
"""How long an environment is watched for a step that its table does not list; some are rare."""


class TableEnv(WorldEnv[TableWorld]):
    """The MDP, which needs feature vectors; its gamma is left to the agent.

    start           a state, or the probabilities of all states
    ends            whether the last state ends the episode, as in `FiniteMDP.from_gymnasium`; it is never
                    observed, and the feature that it shows (the last one) does not occur
    episode_steps   an episode is truncated after this many steps; None for never. Values go on there
    """

    metadata = {**WorldEnv.metadata, "limit_is_terminal": False}  # noqa: RUF012

    def __init__(
        self,
        mdp: FiniteMDP,
        start: int | Sequence[float] | FloatArray = 0,
        *,
        ends: bool = False,
        task: TaskOrFunction | None = None,
        episode_steps: int | None = None,
    ) -> None:
        if not isinstance(mdp, FiniteMDP) or mdp.feature_vectors is None:
            raise InputError("mdp must be a FiniteMDP with feature_vectors, a row for each feature")
        self.mdp, self._ends = mdp, ends
        self._vectors = float_array(mdp.feature_vectors)
        kernel = float_array(mdp.kernel)
        S, A, _, F = kernel.shape
        states, features = (S - 1, F - 1) if ends else (S, F)
        if not states:
            raise InputError("ends=True says that the last state is the end; this mdp has no other state")
        if kernel[:states, ..., features:].any():
            raise InputError("ends=True says that only the last state shows the last feature; others do here")
        rows, outcomes = np.nonzero(kernel[:states].reshape(states * A, -1))
        chances = kernel[:states].reshape(states * A, -1)[rows, outcomes]
        first = np.searchsorted(rows, np.arange(states * A + 1))
        sums = np.concatenate([[0.0], np.cumsum(chances)])
        world = TableWorld(
            num_actions=A,
            first=first,
            cumulated=sums[1:] - sums[first[rows]],
            next_states=outcomes // F,
            shown=outcomes % F,
            starts=np.cumsum(_chances(start, states)),
            end=S - 1 if ends else -1,
            now=np.zeros(2, np.int64),
        )
        super().__init__(
            world,
            state_dim=states,
            num_actions=A,
            feature_space=DiscreteFeatures(self._vectors[:features]),
            task=task,
            episode_steps=episode_steps,
        )

    def rewards(self, task: TaskOrFunction) -> FloatArray:
        """R(phi) of every feature of `mdp`, as `sfr_theory` takes it; after the end nothing is earned."""
        if self._ends:
            return np.append(rewards_of(as_task(task), self._vectors[:-1]), 0.0)
        return np.array(rewards_of(as_task(task), self._vectors))

    @staticmethod
    def from_gymnasium(
        env: gymnasium.Env[Any, Any],
        features: Callable[[int, int, int, float], Sequence[float]],
        *,
        task: TaskOrFunction | None = None,
        gamma: float = 0.95,
    ) -> TableEnv:
        """Of the table `env.unwrapped.P`, with features(state, action, next state, reward).

        It starts where `env` starts (`initial_state_distrib`), and is cut off where `env` is (TimeLimit).
        gamma is that of `mdp`, for exact solutions. A copy of `env` is tried for some random steps, to see
        whether it follows its table.
        """
        mdp = FiniteMDP.from_gymnasium(env, features, gamma)
        start = getattr(env.unwrapped, "initial_state_distrib", None)
        if start is None:
            raise InputError(f"{env} has no initial_state_distrib; use TableEnv(mdp, start, ends=True)")
        limit = _time_limit(env)
        _check_steps(env)
        return TableEnv(mdp, start, ends=True, task=task, episode_steps=limit)


def _time_limit(env: gymnasium.Env[Any, Any]) -> int | None:
    """The shortest of its time limits; wrappers that do something that the table does not say are refused."""
    limits = [env.spec.max_episode_steps] if env.spec is not None else []
    while isinstance(env, gymnasium.Wrapper):
        if not isinstance(env, HARMLESS):
            raise InputError(
                f"the environment has the wrapper {type(env).__name__}, whose work is not in the table P; "
                f"leave it out"
            )
        if isinstance(env, wrappers.TimeLimit):
            limits.append(env._max_episode_steps)
        env = env.env
    return min((limit for limit in limits if limit is not None and limit > 0), default=None)


def _check_steps(env: gymnasium.Env[Any, Any]) -> None:
    """Refuse an environment that makes a step that is not in its table."""
    walker: Any = copy.copy(env.unwrapped)
    walker.render_mode = None
    rng = np.random.default_rng(0)
    ended = True
    for number in range(TRIAL_STEPS):
        if ended or number % TRIAL_EPISODE == 0:
            state, _ = walker.reset(seed=number)
        if not isinstance(state, (int, np.integer)):
            return  # it shows something else than the number of its state
        action = int(rng.integers(len(walker.P[state])))
        after, reward, ended, truncated, _ = walker.step(action)
        if not any(p > 0 and (after, reward, ended) == tuple(what) for p, *what in walker.P[state][action]):
            raise InputError(
                f"{env} does not follow its table: a step from state {state} with action {action} led to "
                f"state {after} with reward {reward}, which P[{state}][{action}] does not list; "
                f"make it without the option that changes its steps"
            )
        state, ended = after, ended or truncated


def _chances(start: Any, states: int) -> FloatArray:
    """The probabilities of the first state."""
    if isinstance(start, (int, np.integer, np.bool_)):
        if isinstance(start, (bool, np.bool_)) or not 0 <= start < states:
            raise InputError(f"start is {start}; it must be a state from 0 to {states - 1}")
        return np.eye(states)[start]
    chances = finite_array(start, "start", ("states",))
    if chances.shape != (states,) or (chances < 0).any() or not np.isclose(chances.sum(), 1):
        raise InputError(f"start must be a state, or {states} probabilities that sum to 1")
    return chances / chances.sum()
