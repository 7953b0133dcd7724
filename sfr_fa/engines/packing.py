"""From an agent's parts to the arrays of the compiled loop, and back.

A *family* packs the stored policies that take part in GPI. It also says in which precision features are
computed: linear values do all arithmetic in the agent's, networks take states and features in float64 and
round them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Protocol

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
    JointCode,
    OneStepModel,
    RewardCumulant,
    TentCode,
    delta_rule,
)
from sfr_fa.agents.readouts import LearnedOnline, LearnedReadout
from sfr_fa.feature_codes import CellCode, FourierCode, KernelCode
from sfr_fa.feature_spaces import DiscreteFeatures, FeatureSpace
from sfr_fa.kernels import loop
from sfr_fa.kernels.arrays import padded
from sfr_fa.kernels.cells import Block, boxes, directions, larger_cells
from sfr_fa.kernels.gpi_filter import RANK
from sfr_fa.kernels.linear import PADDING, ROWS_AT_ONCE
from sfr_fa.kernels.linear_values import LinearValues
from sfr_fa.kernels.mlp import pack, unpack
from sfr_fa.kernels.network_values import NetworkValues
from sfr_fa.kernels.values import Values
from sfr_fa.tasks import GaussianTask, LinearTask, ProductTask, Task, check_task, rewards_of
from sfr_theory.errors import InputError

Array = NDArray[Any]
FILTER_FROM = 8
"""With fewer stored policies full GPI is faster than the filter of linear values..."""
FILTER_NETWORKS_FROM = 3
"""... or that of networks."""
AXIS_CELLS_TOGETHER = 4
"""So many cells along each axis, or fewer, have one table of the filter of linear values."""
AT_ONCE = 64
"""So many policies are compared at a time: they fit into a cache."""


def wide(rows: Array, width: int, dtype: np.dtype) -> Array:
    """(..., S) with zeros up to a width."""
    result = np.zeros((*rows.shape[:-1], width), dtype)
    result[..., : rows.shape[-1]] = rows
    return result


# --- Stored policies ------------------------------------------------------------------------------


class Family(Protocol):
    """How the policies of one kind of network are packed."""

    feature_dtype: np.dtype
    """The precision of states and features..."""
    reward_dtype: np.dtype
    """... and of the rewards that a reward model learns."""
    state_width: int
    """S, padded."""

    def pack(self, policies: Array, readouts: Array, steps: int, before: Any = None) -> Values:
        """Copies of policies (K,) of the agent with their readouts (K, D), to learn for this many steps.

        GPI compares them under the last readout. `before` is what was packed and has learned last, if
        nobody needs it any more: its room and tables may be used again.
        """

    def unpack(self, values: Any, learned: Array) -> None:
        """Weights of those that have learned, by their numbers in `values`, back into the agent."""


class LinearFamily:
    """`LinearPerAction`."""

    def __init__(self, agent: GpiAgent, blocks: Sequence[Block]) -> None:
        self.agent, self.feature_dtype = agent, agent.numpy_dtype
        # Its tables are of one code; all other entries are taken as they are, and should change rarely.
        self.bases, self.cell_of = np.zeros((0, RANK, agent.state_dim)), np.zeros(0, np.int64)
        if len(blocks) == 1:
            larger, self.cell_of = larger_cells(blocks[0], AXIS_CELLS_TOGETHER)
            self.bases = directions(larger, RANK)
        self.reward_dtype = np.dtype(np.float64)
        self.state_width = padded(agent.state_dim, PADDING)

    def pack(
        self,
        policies: Array,
        readouts: Array,
        steps: int,
        before: LinearValues | None = None,
    ) -> LinearValues:
        agent = self.agent
        cells = slice(None if len(policies) >= FILTER_FROM else 0)
        stored = agent.policies.parameters["weight"].numpy()
        theta, changed = self._copied(stored, policies, before)
        return LinearValues.new(
            theta,
            readouts,
            agent.state_dim,
            agent.num_actions,
            clip=agent.clip is clip_at_zero,
            folds=_is_linear_in_values(agent),
            learns_rewards=isinstance(agent.readout_rule, LearnedOnline),
            bases=self.bases[cells],
            cell_of=self.cell_of[cells],
            steps=steps,
            before=None if before is None else before.tables,
            changed=changed,
        )

    def _copied(self, stored: Array, policies: Array, before: LinearValues | None) -> tuple[Array, Array]:
        """(K, A D or more, S): weights as the loop has them; and which are not those of before."""
        (_, A, D, S), K = stored.shape, len(policies)
        known = 0 if before is None or len(before.theta) > K else len(before.theta)
        room = None if before is None else before.theta.base
        if room is None or len(room) < K:
            # For more policies than there are, so that it need not be made anew for every further one.
            size = (1 << (K - 1).bit_length(), padded(A * D, ROWS_AT_ONCE), self.state_width)
            room = np.zeros(size, self.feature_dtype)
            if before is not None and known:
                room[:known] = before.theta
        theta = room[:K]
        has_changed = np.ones(K, dtype=bool)
        # By what they hold: an agent may have been trained by hand, or loaded. The last one has learned all
        # the time, whether it is in the tables or not.
        for first in range(0, known - 1, AT_ONCE):
            rows = slice(first, min(first + AT_ONCE, known - 1))
            chosen = policies[rows]
            # Those that follow one another are compared where they are, without a copy.
            in_order = chosen[-1] - chosen[0] == len(chosen) - 1
            now = stored[chosen[0] : chosen[-1] + 1] if in_order else stored[chosen]
            has_changed[rows] = (theta[rows, : A * D, :S] != now.reshape(-1, A * D, S)).any(axis=(1, 2))
        changed = np.flatnonzero(has_changed)
        for row in changed:
            theta[row, : A * D, :S] = stored[policies[row]].reshape(A * D, S)
        return theta, changed

    def unpack(self, values: LinearValues, learned: Array) -> None:
        weight = self.agent.policies.parameters["weight"].numpy()
        _, A, D, S = weight.shape
        weight[self.agent.participants[learned]] = values.theta[learned, : A * D, :S].reshape(-1, A, D, S)


class NetworkFamily:
    """`FeatureSubnetworks` with two hidden layers."""

    def __init__(self, agent: GpiAgent, blocks: Sequence[Block]) -> None:
        self.agent, self.reward_dtype = agent, agent.numpy_dtype
        self.feature_dtype = np.dtype(np.float64)
        self.state_width = agent.state_dim
        found = [boxes(block) for block in blocks]
        # Bounds are of codes and of one readout: a state that says anything else has no cell.
        covered = sum(box.middles.shape[1] for box in found)
        learns = isinstance(agent.readout_rule, LearnedOnline)
        self.boxes = found if covered == agent.state_dim and not learns else []

    def pack(
        self,
        policies: Array,
        readouts: Array,
        steps: int,
        before: NetworkValues | None = None,
    ) -> NetworkValues:
        agent = self.agent
        stored = {name: stack.numpy()[policies] for name, stack in agent.policies.parameters.items()}
        return NetworkValues.new(
            pack(*([stored[f"{kind}.{n}"] for n in range(3)] for kind in ("weights", "biases"))),
            readouts,
            agent.num_actions,
            floor=0.0 if agent.clip is clip_at_zero else -math.inf,
            head=_head_rate(agent),
            projects=_is_linear_in_values(agent),
            boxes=self.boxes if len(policies) >= FILTER_NETWORKS_FROM else (),
        )

    def unpack(self, values: NetworkValues, learned: Array) -> None:
        stored, chosen = self.agent.policies.parameters, self.agent.participants[learned]
        names = [f"{kind}.{n}" for kind in ("weights", "biases") for n in range(3)]
        shapes = [tuple(stored[name].shape) for name in names]
        for name, array in zip(names, unpack(values.networks, shapes), strict=True):
            stored[name].numpy()[chosen] = array[learned]


def family_of(agent: GpiAgent, blocks: Sequence[Block]) -> Family:
    """The family of an agent that can be compiled; `blocks` of its states have cells, for filters of GPI."""
    is_linear = agent.policies.approximator is LinearPerAction
    return LinearFamily(agent, blocks) if is_linear else NetworkFamily(agent, blocks)


def _is_linear_in_values(agent: GpiAgent) -> bool:
    """Whether Q of a task is one linear function of values, of which there are several."""
    learns = isinstance(agent.readout_rule, LearnedOnline)
    return agent.clip is no_clip and agent.shape.dimensions > 1 and not learns


def _head_rate(agent: GpiAgent) -> float:
    """The rate of the last layer, as a multiple of that of the others."""
    return float(getattr(agent.policies.modules[-1], "head_rate", 1.0))


def readouts_of(agent: GpiAgent, policies: Array) -> Array:
    """v_k of policies, each of its own task, copied: (K, D)."""
    return torch.stack([agent.readouts[k].vector for k in policies]).numpy()


# --- Rewards --------------------------------------------------------------------------------------


def compiles(task: Task, space: FeatureSpace) -> bool:
    """Whether compiled code can compute the rewards of a task."""
    # A subclass may reward in another way than its weights say.
    return isinstance(space, DiscreteFeatures) or type(task) in (LinearTask, GaussianTask, ProductTask)


def pack_rewards(task: Task, space: FeatureSpace, dtype: np.dtype) -> loop.Rewards:
    """The rewards of a task, if compiled code can compute them."""
    if isinstance(space, DiscreteFeatures):
        rewards = np.array(rewards_of(task, space.vectors))
        return loop.TableRewards(rewards, space.vectors.astype(dtype))
    check_task(task, space)
    if not compiles(task, space):
        raise InputError(
            "compiled code rewards features in a box by a LinearTask, GaussianTask or ProductTask; for any "
            'other reward function make_engine with the engine "reference"'
        )
    n = space.dimensions
    slopes, heights, gaussians = np.zeros(n), np.zeros(n), np.ones((n, 1, 2))
    coefficients, places, sharpness = np.zeros(0), np.zeros((0, n)), np.zeros((0, n))
    if isinstance(task, LinearTask):
        slopes = np.array(task.weights)
    elif isinstance(task, GaussianTask):
        heights[:] = 1 / n
        most = max(len(component) for component in task.components)
        gaussians = np.stack([_repeated(component, most) for component in task.components])
    elif isinstance(task, ProductTask):
        coefficients, places, sharpness = map(np.array, (task.coefficients, task.mu, task.sharpness))
    return loop.SummedRewards(
        np.array(space.low), np.array(space.high), space.tolerance, slopes, heights,
        mu=gaussians[:, :, 0].copy(), sigma=gaussians[:, :, 1].copy(),
        coefficients=coefficients, places=places, sharpness=sharpness, exact=np.zeros(n),
    )  # fmt: skip


def _repeated(component: Array, rows: int) -> Array:
    """The Gaussians of a dimension, the first again until there are `rows`, which changes no maximum."""
    return np.concatenate([component, np.repeat(component[:1], rows - len(component), axis=0)])


def pack_reward_model(agent: GpiAgent, readout: Array, reward_dtype: np.dtype) -> loop.RewardModel:
    """The reward model of the current task, copied; `readout` is where its v goes."""
    current, dtype = agent.readouts[-1], agent.numpy_dtype
    kind, points = loop.GIVEN, np.zeros((len(readout), 0), dtype)
    W1, b1, W2, b2 = (np.zeros(shape, dtype) for shape in ((1, 0), (1,), (1,), (1,)))
    if isinstance(current, LearnedReadout):
        points, parameters = current.points.numpy(), _parameters(current)
        if isinstance(current.model, LinearRewardModel):
            kind, W1 = loop.LINEAR, parameters["weight"][None]
        else:
            kind, W1, b1 = loop.MLP, parameters["hidden.weight"], parameters["hidden.bias"]
            W2, b2 = parameters["output.weight"][0], parameters["output.bias"]
    return loop.RewardModel(
        kind, points.copy(), readout, W1.copy(), b1.copy(), W2.copy(), b2.copy(),
        phi=np.zeros(points.shape[1], dtype), reward=np.zeros(1, reward_dtype),
    )  # fmt: skip


def unpack_reward_model(model: loop.RewardModel, agent: GpiAgent) -> None:
    """What it has learned, back into the agent."""
    current = agent.readouts[-1]
    if not isinstance(current, LearnedReadout):
        return
    parameters = _parameters(current)
    if model.kind == loop.LINEAR:
        parameters["weight"][...] = model.W1[0]
    else:
        parameters["hidden.weight"][...], parameters["hidden.bias"][...] = model.W1, model.b1
        parameters["output.weight"][0], parameters["output.bias"][...] = model.W2, model.b2
    current.read()


def _parameters(readout: LearnedReadout) -> dict[str, Array]:
    """Of its model, views."""
    return {name: value.detach().numpy() for name, value in readout.model.named_parameters()}


# --- Cumulants ------------------------------------------------------------------------------------


def pack_cumulant(agent: GpiAgent, space: FeatureSpace, family: Family) -> loop.PackedCumulant:
    """What an agent sums up, copied."""
    cumulant, features, S, width = agent.cumulant, agent.feature_map, agent.state_dim, family.state_width
    dtype, feature_dtype = agent.numpy_dtype, family.feature_dtype
    H = features.matrix if isinstance(features, LearnedFeatures) else np.zeros((2 * S, 0))
    table, one_step, centres = np.zeros((0, agent.shape.dimensions)), np.zeros((0, S)), np.zeros((0, 2))
    phases, code_width = np.zeros(0), 1.0
    if isinstance(cumulant, RewardCumulant):
        kind = loop.OF_REWARD
    elif isinstance(cumulant, FeatureCumulant):
        kind = loop.OF_PHI
    elif isinstance(cumulant, Indicator):
        kind, table = loop.OF_TABLE, np.eye(cumulant.space.size)
    elif isinstance(cumulant, TentCode):
        kind, centres = loop.OF_TENTS, cumulant.centres
        if isinstance(space, DiscreteFeatures) and not H.size:
            kind, table = loop.OF_TABLE, cumulant.encode(space.vectors).reshape(space.size, -1)
    elif isinstance(cumulant, JointCode):
        code = cumulant.code
        if isinstance(code, FourierCode):
            kind, centres, phases = loop.OF_WAVES, code.frequencies, code.phases
        elif isinstance(code, KernelCode):
            kind, centres, code_width = loop.OF_BUMPS, code.centres, code.width
        else:
            assert isinstance(code, CellCode)
            kind, centres = loop.OF_CELLS, code.centres
    else:
        assert isinstance(cumulant, OneStepModel)
        kind = loop.OF_DELTA_MODEL if cumulant.rule is delta_rule else loop.OF_SQUARES_MODEL
        one_step = cumulant.model.weight.detach().numpy().reshape(-1, S)
    return loop.PackedCumulant(
        kind,
        table=np.array(table, dtype, order="C"),
        one_step=wide(one_step, width, dtype),
        centres=np.array(centres, feature_dtype, order="C"),
        phases=np.array(phases, feature_dtype),
        width=code_width,
        H_now=wide(H[:S].T, width, feature_dtype),
        H_next=wide(H[S:].T, width, feature_dtype),
    )


def unpack_cumulant(cumulant: loop.PackedCumulant, agent: GpiAgent) -> None:
    """What its model has learned, back into the agent."""
    if isinstance(agent.cumulant, OneStepModel):
        one_step = agent.cumulant.model.weight.detach().numpy()
        one_step[...] = cumulant.one_step[:, : agent.state_dim].reshape(one_step.shape)


# --- Numbers and room -----------------------------------------------------------------------------


def pack_rates(agent: GpiAgent, steps: int) -> loop.Rates:
    """Of the next steps, in the agent's precision, so that they do not turn float32 into float64."""
    real = agent.numpy_dtype.type
    groups = agent.shape.groups if agent.loss is squares_averaged_over_dimensions else 1
    first, schedules = agent.steps_of_task, agent.schedules
    ahead = range(first, first + steps if schedules.vary else first + 1)
    epsilon, value, reward, model = np.array([schedules.at(t) for t in ahead]).T
    rates = (epsilon, (2 * value / groups).astype(real), reward.astype(real), model.astype(real))
    return loop.Rates(*(np.repeat(rate, steps // len(ahead)) for rate in rates))


def new_room(agent: GpiAgent, space: FeatureSpace, family: Family, learned: int) -> loop.Room:
    """Room for the steps of a task, with this many learned features."""
    dtype, feature_dtype, D = agent.numpy_dtype, family.feature_dtype, agent.shape.dimensions
    F = space.size if isinstance(space, DiscreteFeatures) else 0
    return loop.Room(
        state=np.zeros(family.state_width, feature_dtype),
        next_state=np.zeros(family.state_width, feature_dtype),
        phi=np.zeros(space.dimensions, feature_dtype),
        learned_phi=np.zeros(learned, feature_dtype),
        code=np.zeros(D, feature_dtype),
        c_t=np.zeros(D, dtype),
        error_i=np.zeros(D, dtype),
        error_c=np.zeros(D, dtype),
        logits=np.zeros(F, dtype),
        steps=np.zeros(F, dtype),
    )
