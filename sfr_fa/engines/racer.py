"""The racer in the compiled engine: from an agent's parts to the arrays of the kernel, and back."""

from __future__ import annotations

import functools
import math
from typing import Any

import gymnasium
import numpy as np
import torch
from numpy.typing import NDArray

from sfr_fa.agents import (
    FeatureSubnetworks,
    GpiAgent,
    LearnedFeatures,
    clip_at_zero,
    squares_averaged_over_dimensions,
)
from sfr_fa.agents.cumulants import FeatureCumulant, RewardCumulant, TentCode
from sfr_fa.agents.readouts import LearnedOnline, LearnedReadout
from sfr_fa.engines.base import EpisodeLimit, Walk
from sfr_fa.engines.obstacles import feature_obstacle, part_obstacle, wrapper_obstacle
from sfr_fa.environments.racer import Racer
from sfr_fa.kernels import racer as kernel
from sfr_fa.kernels.encoding import ANGLE_CENTRES, ANGLE_SIGMA, POSITION_SIGMA, TORUS_CENTRES
from sfr_fa.kernels.mlp import pack, unpack
from sfr_fa.streams import Streams
from sfr_fa.tasks import GaussianTask, LinearTask, Task, check_task
from sfr_theory.errors import InputError

Array = NDArray[Any]
Layers = tuple[Array, Array, Array]


class CompiledRacer:
    """Runs `sfr_fa.kernels.racer.run_task` on an agent's weights."""

    @staticmethod
    def knows(environment: gymnasium.Env[Any, Any]) -> bool:
        return type(environment.unwrapped) is Racer

    @staticmethod
    def obstacle(environment: gymnasium.Env[Any, Any], agent: GpiAgent) -> str | None:
        return (
            wrapper_obstacle(environment)
            or network_obstacle(agent)
            or part_obstacle(agent)
            or feature_obstacle(environment, agent)
        )

    def __init__(
        self,
        environment: gymnasium.Env[Any, Any],
        agent: GpiAgent,
        streams: Streams,
        limit: EpisodeLimit,
        *,
        gpi_filter: bool,
    ) -> None:
        # Networks are evaluated in full: there is nothing to filter.
        unwrapped = environment.unwrapped
        assert isinstance(unwrapped, Racer)
        self.layout, self.agent, self.streams, self.limit = unwrapped.layout, agent, streams, limit
        self.dtype = np.dtype(np.float32 if agent.dtype == torch.float32 else np.float64)
        self.step_limit = min(self.layout.episode_steps, limit.steps or self.layout.episode_steps)

    def check(self, task: Task) -> None:
        self._world(task)

    def walk(self, task: Task, steps: int) -> Walk:
        agent = self.agent
        world = self._world(task)
        policies, cumulant = self._policies(), self._cumulant()
        record = kernel.Record(np.zeros(steps, np.int64), np.zeros(len(agent.participants), np.int64))
        total, episodes, made, finite = kernel.run_task(
            world,
            self._noise(steps),
            self._rates(),
            cumulant,
            policies,
            record,
            kernel.new_scratch(world, cumulant, policies),
        )
        self._give_back(policies)
        agent.take_over(made, record.gpi_counts, diverged=not finite)
        return Walk(total, episodes, record.actions[:made], diverged=not finite)

    # --- From the agent to arrays ---------------------------------------------------------------------

    def _world(self, task: Task) -> kernel.World:
        n = len(self.layout.markers)
        check_task(task, self.layout.feature_space)
        slopes, heights, gaussians = np.zeros(n), np.zeros(n), np.ones((n, 1, 2))
        # A subclass may reward in another way than its weights say.
        if type(task) is LinearTask:
            slopes = np.array(task.weights)
        elif type(task) is GaussianTask:
            heights[:] = 1 / n
            most = max(len(component) for component in task.components)
            gaussians = np.stack([_repeated(component, most) for component in task.components])
        else:
            raise InputError(
                "the compiled racer rewards by a LinearTask or a GaussianTask; for any other reward function "
                'make_engine with the engine "reference"'
            )
        return kernel.World(
            geometry=self.layout.geometry,
            position_centres=np.array(TORUS_CENTRES),
            position_sigma=POSITION_SIGMA,
            angle_centres=np.array(ANGLE_CENTRES),
            angle_sigma=ANGLE_SIGMA,
            slopes=slopes,
            heights=heights,
            mu=gaussians[:, :, 0].copy(),
            sigma=gaussians[:, :, 1].copy(),
            step_limit=self.step_limit,
            limit_is_terminal=self.limit.is_terminal,
        )

    def _noise(self, steps: int) -> kernel.Noise:
        """An episode draws its start, then its moves, from the stream of the environment."""
        generator = self.streams.environment
        starts, moves = [], []
        for begin in range(0, steps, self.step_limit):
            starts.append(generator.random(3))
            moves.append(generator.standard_normal((min(self.step_limit, steps - begin), 3)))
        exploration = self.streams.exploration.random((steps, 2))
        return kernel.Noise(np.stack(starts), np.concatenate(moves), exploration)

    def _rates(self) -> kernel.Rates:
        agent, rule = self.agent, self.agent.readout_rule
        alpha = agent.policies.optimisers[-1].param_groups[0]["lr"]
        groups = agent.shape.groups if agent.loss is squares_averaged_over_dimensions else 1
        return kernel.Rates(
            gamma=agent.gamma,
            epsilon=agent.epsilon,
            value=2 * alpha / groups,
            reward=rule.learning_rate if isinstance(rule, LearnedOnline) else 0.0,
        )

    def _cumulant(self) -> kernel.Cumulant:
        cumulant, features, S = self.agent.cumulant, self.agent.feature_map, self.agent.state_dim
        H = features.matrix if isinstance(features, LearnedFeatures) else np.zeros((2 * S, 0))
        kind, centres = kernel.REWARD, np.zeros((0, 2))
        if isinstance(cumulant, FeatureCumulant):
            kind = kernel.FEATURES
        elif isinstance(cumulant, TentCode):
            kind, centres = kernel.TENT, np.ascontiguousarray(cumulant.centres)
        else:
            assert isinstance(cumulant, RewardCumulant)
        return kernel.Cumulant(kind, np.ascontiguousarray(H[:S].T), np.ascontiguousarray(H[S:].T), centres)

    def _policies(self) -> kernel.Policies:
        agent, readout = self.agent, self.agent.readouts[-1]
        D = agent.shape.dimensions
        weights, points = np.zeros(1, self.dtype), np.zeros((D, 1), self.dtype)
        if isinstance(readout, LearnedReadout):
            weights, points = _model_weights(readout).copy(), readout.points.numpy().copy()
        return kernel.Policies(
            networks=pack(*self._layers()),
            readouts=np.stack([agent.readouts[k].vector.numpy() for k in agent.participants]),
            reward_weights=weights,
            points=points,
            floor=0.0 if agent.clip is clip_at_zero else -math.inf,
        )

    def _layers(self) -> tuple[Layers, Layers]:
        """Weights and biases of the policies that take part in GPI, copied."""
        stored, chosen = self.agent.policies.parameters, self.agent.participants
        first, second, third = (stored[f"weights.{layer}"].numpy()[chosen] for layer in range(3))
        biases = tuple(stored[f"biases.{layer}"].numpy()[chosen] for layer in range(3))
        return (first, second, third), (biases[0], biases[1], biases[2])

    # --- And back -------------------------------------------------------------------------------------

    def _give_back(self, policies: kernel.Policies) -> None:
        weights, biases = self._layers()
        unpack(policies.networks, weights, biases)
        stored, chosen = self.agent.policies.parameters, self.agent.participants
        for layer in range(3):
            stored[f"weights.{layer}"].numpy()[chosen] = weights[layer]
            stored[f"biases.{layer}"].numpy()[chosen] = biases[layer]
        readout = self.agent.readouts[-1]
        if isinstance(readout, LearnedReadout):
            _model_weights(readout)[...] = policies.reward_weights
            readout.read()


def network_obstacle(agent: GpiAgent) -> str | None:
    """Why an agent's networks cannot be compiled."""
    approximator = agent.policies.approximator
    hidden: tuple[int, ...] = (20, 20)
    if isinstance(approximator, functools.partial) and set(approximator.keywords) <= {"hidden"}:
        hidden = approximator.keywords.get("hidden", hidden)
        approximator = approximator.func
    if approximator is not FeatureSubnetworks or len(hidden) != 2:
        return (
            "its approximator is not FeatureSubnetworks with two hidden layers, the network of compiled code"
        )
    return None


def _model_weights(readout: LearnedReadout) -> Array:
    """w of a linear reward model, a view."""
    weight: Array = readout.model.get_parameter("weight").detach().numpy()
    return weight


def _repeated(component: Array, rows: int) -> Array:
    """The Gaussians of a marker, the first of them again until there are `rows`, which changes no maximum."""
    return np.concatenate([component, np.repeat(component[:1], rows - len(component), axis=0)])
