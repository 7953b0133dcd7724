"""Object collection in the compiled engine: from an agent's parts to the arrays of the kernel, and back."""

from __future__ import annotations

import functools
import math
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from sfr_fa.agents import (
    GpiAgent,
    LearnedFeatures,
    LinearPerAction,
    LinearRewardModel,
    clip_at_zero,
    no_clip,
    squares_averaged_over_dimensions,
)
from sfr_fa.agents.cumulants import (
    FeatureCumulant,
    Indicator,
    OneStepModel,
    RewardCumulant,
    TentCode,
    delta_rule,
)
from sfr_fa.agents.readouts import LearnedOnline, LearnedReadout
from sfr_fa.engines.base import EpisodeLimit, Walk
from sfr_fa.engines.obstacles import feature_obstacle, part_obstacle, wrapper_obstacle
from sfr_fa.environments.object_collection import ObjectCollection, ObjectCollectionBarreto
from sfr_fa.kernels import object_collection as kernel
from sfr_fa.kernels.arrays import padded
from sfr_fa.kernels.encoding import POSITION_SIGMA, SQUARE_CENTRES
from sfr_fa.kernels.gpi import new_search
from sfr_fa.kernels.gpi_filter import cell_bases, new_filter
from sfr_fa.kernels.linear import PADDING
from sfr_fa.streams import Streams
from sfr_fa.tasks import Task, rewards_of

Array = NDArray[Any]

FILTER_FROM = 8
"""With fewer stored policies full GPI is faster than the filter."""


class CompiledObjectCollection:
    """Runs `sfr_fa.kernels.object_collection.run_task` on an agent's weights."""

    @staticmethod
    def knows(environment: gymnasium.Env[Any, Any]) -> bool:
        return type(environment.unwrapped) in (ObjectCollection, ObjectCollectionBarreto)

    @staticmethod
    def obstacle(environment: gymnasium.Env[Any, Any], agent: GpiAgent) -> str | None:
        return wrapper_obstacle(environment) or linear_obstacle(agent) or feature_obstacle(environment, agent)

    def __init__(
        self,
        environment: gymnasium.Env[Any, Any],
        agent: GpiAgent,
        streams: Streams,
        limit: EpisodeLimit,
        *,
        gpi_filter: bool,
    ) -> None:
        unwrapped = environment.unwrapped
        assert isinstance(unwrapped, ObjectCollection)
        self.layout, self.agent, self.streams, self.limit = unwrapped.layout, agent, streams, limit
        self.bases = _bases()
        self.filter_from = FILTER_FROM if gpi_filter else math.inf
        self.dtype = np.dtype(np.float32 if agent.dtype == torch.float32 else np.float64)
        self.vectors = self.layout.feature_space.vectors

    def check(self, task: Task) -> None:
        rewards_of(task, self.vectors)

    def walk(self, task: Task, steps: int) -> Walk:
        agent, streams = self.agent, self.streams
        K, A = len(agent.participants), agent.num_actions
        rewards = np.array(rewards_of(task, self.vectors))
        policies, reward_model, cumulant = self._policies(), self._reward_model(), self._cumulant(rewards)
        noise = kernel.Noise(
            streams.environment.standard_normal(steps), streams.exploration.random((steps, 2))
        )
        record = kernel.Record(np.zeros(steps, dtype=np.int64), np.zeros(K, dtype=np.int64))
        weights = policies.folded if len(policies.folded) else policies.theta
        search = new_search(K, weights.shape[1], A, self.dtype)
        known = new_filter(
            self.bases,
            weights,
            A,
            len(self.layout.objects),
            steps,
            clip=policies.clip,
            on=self.filter_from <= K,
        )
        total, episodes, made, finite = kernel.run_task(
            self._world(rewards),
            noise,
            self._rates(),
            cumulant,
            reward_model,
            policies,
            search,
            known,
            record,
        )
        self._give_back(policies, reward_model, cumulant)
        agent.take_over(made, record.gpi_counts, diverged=not finite)
        return Walk(total, episodes, record.actions[:made], diverged=not finite)

    # --- From the agent to arrays -------------------------------------------------------------------

    def _world(self, rewards: Array) -> kernel.World:
        return kernel.World(
            geometry=self.layout.geometry,
            centres=np.array(SQUARE_CENTRES),
            sigma=POSITION_SIGMA,
            rewards=rewards,
            step_limit=self.limit.steps or 0,
            limit_is_terminal=self.limit.is_terminal,
        )

    def _rates(self) -> kernel.Rates:
        agent = self.agent
        alpha = agent.policies.optimisers[-1].param_groups[0]["lr"]
        groups = agent.shape.groups if agent.loss is squares_averaged_over_dimensions else 1
        rule, cumulant = agent.readout_rule, agent.cumulant
        return kernel.Rates(
            gamma=self._real(agent.gamma),
            epsilon=agent.epsilon,
            value=self._real(2 * alpha / groups),
            reward=self._real(rule.learning_rate if isinstance(rule, LearnedOnline) else 0.0),
            model=self._real(cumulant.learning_rate if isinstance(cumulant, OneStepModel) else 0.0),
        )

    def _policies(self) -> kernel.Policies:
        agent = self.agent
        weight = agent.policies.parameters["weight"].numpy()[agent.participants]
        K, A, D, S = weight.shape
        folds = agent.clip is no_clip and D > 1 and not isinstance(agent.readout_rule, LearnedOnline)
        theta = self._padded(weight.reshape(K, A * D, S))
        return kernel.Policies(
            theta=theta,
            readouts=np.stack([agent.readouts[k].vector.numpy() for k in agent.participants]),
            folded=np.zeros((K if folds else 0, A, theta.shape[-1]), self.dtype),
            clip=agent.clip is clip_at_zero,
        )

    def _reward_model(self) -> kernel.Reward:
        agent = self.agent
        readout = agent.readouts[-1]
        features = agent.feature_map
        learned = isinstance(features, LearnedFeatures)
        n = features.space.dimensions if isinstance(features, LearnedFeatures) else self.vectors.shape[1]
        D = agent.shape.dimensions
        kind, points = kernel.GIVEN, np.zeros((D, n), self.dtype)
        W1, b1, W2, b2 = (np.zeros(shape, self.dtype) for shape in ((1, n), (1,), (1,), (1,)))
        if isinstance(readout, LearnedReadout):
            points = readout.points.numpy()
            parameters = {name: value.detach().numpy() for name, value in readout.model.named_parameters()}
            if isinstance(readout.model, LinearRewardModel):
                kind, W1 = kernel.LINEAR, parameters["weight"][None]
            else:
                kind, W1, b1 = kernel.MLP, parameters["hidden.weight"], parameters["hidden.bias"]
                W2, b2 = parameters["output.weight"][0], parameters["output.bias"]
        return kernel.Reward(
            kind=kind,
            phi=np.zeros((0, n), self.dtype) if learned else self.vectors.astype(self.dtype),
            points=points.copy(),
            readout=readout.vector.numpy().copy(),
            W1=W1.copy(),
            b1=b1.copy(),
            W2=W2.copy(),
            b2=b2.copy(),
        )

    def _cumulant(self, rewards: Array) -> kernel.Cumulant:
        agent, cumulant, features = self.agent, self.agent.cumulant, self.agent.feature_map
        F, D, S = len(self.vectors), agent.shape.dimensions, agent.state_dim
        learned = isinstance(features, LearnedFeatures)
        kind, table = kernel.TABLE, np.zeros((F, D))
        one_step, H, centres = np.zeros((0, S)), np.zeros((2 * S, 0)), np.zeros((0, 2))
        if isinstance(features, LearnedFeatures):
            H = features.matrix
        if isinstance(cumulant, RewardCumulant):
            table = rewards[:, None]
        elif isinstance(cumulant, Indicator):
            table = np.eye(F)
        elif isinstance(cumulant, FeatureCumulant):
            kind, table = (kernel.LEARNED_PHI, table) if learned else (kernel.TABLE, self.vectors)
        elif isinstance(cumulant, TentCode):
            centres = cumulant.centres
            if learned:
                kind = kernel.LEARNED_TENT
            else:
                table = cumulant.encode(self.vectors).reshape(F, D)
        else:
            assert isinstance(cumulant, OneStepModel)
            kind = kernel.DELTA_MODEL if cumulant.rule is delta_rule else kernel.SQUARES_MODEL
            one_step = cumulant.model.weight.detach().numpy().reshape(-1, S)
        return kernel.Cumulant(
            kind=kind,
            table=np.array(table, dtype=self.dtype, order="C"),
            one_step=self._padded(one_step),
            H_now=self._padded(H[:S].T),
            H_next=self._padded(H[S:].T),
            centres=np.array(centres, dtype=self.dtype, order="C"),
        )

    def _real(self, number: float) -> Any:
        """A number that does not turn float32 arithmetic into float64."""
        return self.dtype.type(number)

    def _padded(self, rows: Array) -> Array:
        """(..., S) with zeros up to a multiple of PADDING."""
        S = rows.shape[-1]
        wide = np.zeros((*rows.shape[:-1], padded(S, PADDING)), self.dtype)
        wide[..., :S] = rows
        return wide

    # --- And back -----------------------------------------------------------------------------------

    def _give_back(
        self, policies: kernel.Policies, reward_model: kernel.Reward, cumulant: kernel.Cumulant
    ) -> None:
        agent, S = self.agent, self.agent.state_dim
        weight = agent.policies.parameters["weight"].numpy()
        weight[agent.participants] = policies.theta[..., :S].reshape(-1, *weight.shape[1:])
        if isinstance(agent.cumulant, OneStepModel):
            one_step = agent.cumulant.model.weight.detach().numpy()
            one_step[...] = cumulant.one_step[:, :S].reshape(one_step.shape)
        readout = agent.readouts[-1]
        if isinstance(readout, LearnedReadout):
            state = {name: value.detach().numpy() for name, value in readout.model.named_parameters()}
            if isinstance(readout.model, LinearRewardModel):
                state["weight"][...] = reward_model.W1[0]
            else:
                state["hidden.weight"][...], state["hidden.bias"][...] = reward_model.W1, reward_model.b1
                state["output.weight"][0], state["output.bias"][...] = reward_model.W2, reward_model.b2
            readout.read()


def linear_obstacle(agent: GpiAgent) -> str | None:
    """Why an agent with linear values cannot be compiled."""
    if agent.policies.approximator is not LinearPerAction:
        return "its approximator is not LinearPerAction, and compiled code knows no other network here"
    if agent.num_actions != 4:
        return "it has not the four actions of object collection"
    return part_obstacle(agent)


@functools.cache
def _bases() -> Array:
    """The filter's bases, which depend on the code of positions only."""
    return cell_bases(SQUARE_CENTRES, POSITION_SIGMA)
