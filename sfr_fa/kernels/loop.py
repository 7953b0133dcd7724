"""One task in any world for agents of any family of values: environment, exploration, GPI and all updates.

`run_task` is algo:QL, algo:sfql, algo:MFXI, algo:MBXI and algo:CMFXI in one loop; its sections carry the
lines of the listings in the order of `sfr_fa.agents.gpi_agent`. A world (`sfr_fa.kernels.world`), its rewards
and the stored policies (`sfr_fa.kernels.values`) are parts that the types of the arguments choose: each
combination is compiled once. What else tells agents apart is data, so one compilation serves them all.

Two things differ from a literal transcription, and neither changes a number:

- The values of s_{t+1} are those of s_t in the next step, except for the one or two policies that the update
  has changed. At a terminal s_{t+1} nothing is evaluated, since gamma_t = 0.
- GPI may leave out policies that cannot win (`sfr_fa.kernels.gpi`).

A task may be run in pieces: the loop begins where `before` says, which changes no number, either. World,
weights and generators are what the piece before has left.

Whatever is random comes from two generators, in the order of the reference: the world's, and two uniform
numbers per step for exploration.
"""

from __future__ import annotations

import math
from typing import NamedTuple, Protocol

import numpy as np

from sfr_fa.kernels.arrays import (
    FloatArray,
    Integers,
    Reals,
    all_finite,
    copy_from,
    copy_to,
    fill,
    part,
)
from sfr_fa.kernels.models import (
    bump_code,
    cell_code,
    delta_steps,
    learn_linear_reward,
    learn_mlp_reward,
    learned_features,
    move_one_step_model,
    predict_feature,
    read_linear_reward,
    read_mlp_reward,
    square_steps,
    tent_code,
    wave_code,
)
from sfr_fa.kernels.values import Values
from sfr_fa.kernels.world import World, compile_methods

OF_REWARD, OF_TABLE, OF_DELTA_MODEL, OF_SQUARES_MODEL, OF_PHI, OF_TENTS = range(6)
"""What c_t is: r_t, a row of a table over features, p~ (by either rule), phi_t, its tent code..."""
OF_BUMPS, OF_WAVES, OF_CELLS = range(6, 9)
"""... or a joint code of it, which is also what a reward model learns from."""
GIVEN, LINEAR, MLP = range(3)
"""Where the readout comes from: the task, or a reward model."""
FINISHED, DIVERGED, OUTSIDE = range(3)
"""How a task ended: after all its steps, with numbers that are not finite, or with undeclared features."""


# --- Rewards --------------------------------------------------------------------------------------


class Rewards(Protocol):
    """R of the current task."""

    def observe(self, world: World, phi: Reals) -> tuple[int, float]:
        """What the last step has shown: writes phi_t; its number, -1 if it is none of Phi; and R(phi_t)."""


class TableRewards(NamedTuple):
    """R on a finite set of features."""

    rewards: FloatArray
    """(F,)."""
    vectors: Reals
    """(F, n): the features."""

    def observe(self, world: World, phi: Reals) -> tuple[int, float]:
        feature = world.feature()
        if not 0 <= feature < self.rewards.shape[0]:
            return -1, 0.0
        copy_from(self.vectors, feature, 0, phi)
        return feature, self.rewards[feature]


class SummedRewards(NamedTuple):
    """R of linear tasks, Gaussian tasks and tasks of products; what a task does not need is zero or empty.

    R(phi) = sum_k (w_k phi_k + h_k max_j exp(-(phi_k - mu_kj)^2 / sigma_kj))
             + sum_t c_t exp(-sum_k s_tk (phi_k - m_tk)^2)
    """

    low: FloatArray
    """(n,): the box of features..."""
    high: FloatArray
    tolerance: FloatArray
    """(n,): ... and how far outside a feature counts as its edge."""
    slopes: FloatArray
    """(n,): w."""
    heights: FloatArray
    """(n,): h."""
    mu: FloatArray
    """(n, J); a dimension of fewer Gaussians has one of them several times."""
    sigma: FloatArray
    """(n, J)."""
    coefficients: FloatArray
    """(T,): c."""
    places: FloatArray
    """(T, n): m."""
    sharpness: FloatArray
    """(T, n): s."""
    exact: FloatArray
    """(n,): room for phi_t in float64."""

    def observe(self, world: World, phi: Reals) -> tuple[int, float]:
        exact, total = self.exact, 0.0
        fill(exact, 0.0)
        world.features(exact)
        for k in range(exact.shape[0]):
            if not self.low[k] - self.tolerance[k] <= exact[k] <= self.high[k] + self.tolerance[k]:
                return -1, 0.0
            exact[k] = min(max(exact[k], self.low[k]), self.high[k])
            largest = 0.0
            for j in range(self.mu.shape[1]):
                distance = exact[k] - self.mu[k, j]
                largest = max(largest, math.exp(-distance * distance / self.sigma[k, j]))
            total += self.slopes[k] * exact[k] + self.heights[k] * largest
        for t in range(self.coefficients.shape[0]):
            exponent = 0.0
            for k in range(exact.shape[0]):
                distance = exact[k] - self.places[t, k]
                exponent += self.sharpness[t, k] * (distance * distance)
            total += self.coefficients[t] * math.exp(-exponent)
        copy_to(exact, phi)
        return 0, total


compile_methods(Rewards)


# --- What else an agent is made of ----------------------------------------------------------------


class Rates(NamedTuple):
    """Numbers of the learning rules, one for each step of the loop."""

    epsilon: FloatArray
    """(T,): how often an action is drawn at random."""
    value: Reals
    """(T,): 2 alpha, with the 2 of the square; divided by n where the loss is averaged over dimensions."""
    reward: Reals
    """(T,): of the reward model."""
    model: Reals
    """(T,): beta, of the one-step model."""


class Before(NamedTuple):
    """How far a task is when the loop begins; all 0 at the first step of a task."""

    steps: int
    """Steps of the task."""
    steps_of_episode: int
    """Of the episode in progress; 0 if the next step begins one."""
    total_reward: float
    """To which the rewards of the loop are added."""


class Limit(NamedTuple):
    """How long an episode may be."""

    steps: int
    """After this many steps an episode is cut off; 0 for never."""
    is_terminal: bool
    """Whether nothing follows a step that is cut off (gamma_t = 0)."""


class PackedCumulant(NamedTuple):
    """c_t of a step; what its kind does not need is empty."""

    kind: int
    table: Reals
    """(F, D): c_t of each feature of the environment."""
    one_step: Reals
    """(A F, S): weights of p~, rows (a, j)."""
    centres: Reals
    """(n, U): bins of the tent code; (D, n): of a joint code its centres, or the frequencies of waves."""
    phases: Reals
    """(D,): of waves."""
    width: float
    """Of bumps."""
    H_now: Reals
    """(h, S): learned features, the part of s_t; h = 0 where they are the environment's."""
    H_next: Reals
    """(h, S): the part of s_{t+1}."""


class RewardModel(NamedTuple):
    """R~ of the task, and where it is read; of one that is given only the readout counts."""

    kind: int
    points: Reals
    """(D, n): v_d = R~(points[d])."""
    readout: Reals
    """(D,): v; it changes while R~ learns."""
    W1: Reals
    """(h, n); a linear model has one row, its w."""
    b1: Reals
    W2: Reals
    b2: Reals
    phi: Reals
    """(n,): room for phi_t in the precision of the model..."""
    reward: Reals
    """(1,): ... and for r_t in the precision in which it learns that."""


class Record(NamedTuple):
    """What happened."""

    actions: Integers
    """(T,)."""
    gpi_counts: Integers
    """(K,): how often a policy was the best one when an action was chosen."""


class Room(NamedTuple):
    """Room for one step. The caller makes it, since code that allocates takes long to compile."""

    state: Reals
    """(S, padded)."""
    next_state: Reals
    phi: Reals
    """(n,): the environment's features."""
    learned_phi: Reals
    """(h,)."""
    code: Reals
    """(D,): tents or a joint code..."""
    c_t: Reals
    """(D,): ... and c_t in the precision of the values."""
    error_i: Reals
    error_c: Reals
    logits: Reals
    """(F,): of p~."""
    steps: Reals


@part()
def write_joint_code(cumulant: PackedCumulant, phi: Reals, code: Reals) -> None:
    """z(phi)."""
    if cumulant.kind == OF_BUMPS:
        bump_code(phi, cumulant.centres, cumulant.width, code)
    elif cumulant.kind == OF_WAVES:
        wave_code(phi, cumulant.centres, cumulant.phases, code)
    else:
        cell_code(phi, cumulant.centres, code)


@part()
def learn_reward(model: RewardModel, phi: Reals, reward: float, rate: float) -> None:
    """One step of SGD on (r_t - R~(phi_t))^2."""
    copy_to(phi, model.phi)
    model.reward[0] = reward
    if model.kind == LINEAR:
        learn_linear_reward(model.W1[0], model.phi, model.reward[0], rate)
    else:
        learn_mlp_reward(model.W1, model.b1, model.W2, model.b2, model.phi, model.reward[0], rate)


@part()
def read_reward(model: RewardModel) -> None:
    """v_d = R~(p_d)."""
    if model.kind == LINEAR:
        read_linear_reward(model.W1[0], model.points, model.readout)
    else:
        read_mlp_reward(model.W1, model.b1, model.W2, model.b2, model.points, model.readout)


# --- The loop -------------------------------------------------------------------------------------


@part()
def run_task(
    world: World,
    rewards: Rewards,
    values: Values,
    cumulant: PackedCumulant,
    reward_model: RewardModel,
    gamma: float,
    rates: Rates,
    limit: Limit,
    before: Before,
    record: Record,
    room: Room,
    state_dim: int,
    num_actions: int,
    noise: np.random.Generator,
    exploration: np.random.Generator,
) -> tuple[Before, int, int]:
    """Learn for T steps, in place: how far the task is, episodes begun, and how it ended."""
    i, D = record.gpi_counts.shape[0] - 1, room.c_t.shape[0]
    state, next_state, c_t, error_i, error_c = (
        room.state, room.next_state, room.c_t, room.error_i, room.error_c,
    )  # fmt: skip
    learns_features, learns_reward = cumulant.H_now.shape[0] > 0, reward_model.kind != GIVEN
    phi = room.learned_phi if learns_features else room.phi
    if learns_reward and before.steps > 0:
        # As the steps before have left it; where v was read in between, it was rounded in another way.
        read_reward(reward_model)
    joint = cumulant.kind >= OF_BUMPS
    seen = room.code if joint else phi
    values.begin_task()

    total_reward, episodes, steps_of_episode = before.total_reward, 0, before.steps_of_episode
    new_episode = steps_of_episode == 0
    c = i
    T = record.actions.shape[0]
    for t in range(T):
        # if new_episode: s_t <- initial state
        if new_episode:
            steps_of_episode = 0
            episodes += 1
            world.reset(noise)
        if new_episode or t == 0:
            new_episode = False
            fill(state, 0.0)
            world.encode(state[:state_dim])
            # c <- argmax_k max_a sum_d value_k(s_t, a)_d v_i,d; later in an episode it is known already
            c = values.look(world.cell(), i, state)
        record.gpi_counts[c] += 1

        # With probability epsilon select a random action a_t, otherwise a_t <- argmax_a of policy c
        explores, which = exploration.random(), exploration.random()
        action = int(which * num_actions) if explores < rates.epsilon[t] else values.greedy_action(c)
        record.actions[t] = action
        values.recall(c, action, state, error_i, error_c)

        # Take action a_t and observe reward r_t and next state s_{t+1}
        terminated = world.step(action, noise)
        fill(next_state, 0.0)
        world.encode(next_state[:state_dim])
        feature, reward = rewards.observe(world, room.phi)
        if feature < 0:
            return Before(before.steps + t + 1, 0, total_reward), episodes, OUTSIDE
        total_reward += reward
        steps_of_episode += 1

        # Update the reward model with (r_t - R_i(phi_t))^2
        if learns_features:
            learned_features(cumulant.H_now, cumulant.H_next, state, next_state, phi)
        if joint:
            write_joint_code(cumulant, phi, room.code)
        if learns_reward:
            learn_reward(reward_model, seen, reward, rates.reward[t])
            read_reward(reward_model)
            values.readout_changed()

        # Update the feature model p~; c_t is what the policies sum up
        if cumulant.kind == OF_TABLE:
            copy_from(cumulant.table, feature, 0, c_t)
        elif cumulant.kind == OF_REWARD:
            c_t[0] = reward
        elif cumulant.kind == OF_PHI:
            copy_to(phi, c_t)
        elif cumulant.kind == OF_TENTS:
            tent_code(phi, cumulant.centres, room.code)
            copy_to(room.code, c_t)
        elif joint:
            copy_to(room.code, c_t)
        else:
            model_rows = cumulant.one_step[action * D : (action + 1) * D]
            predict_feature(model_rows, state, room.logits, c_t)
            if cumulant.kind == OF_DELTA_MODEL:
                delta_steps(c_t, feature, rates.model[t], room.steps)
            else:
                square_steps(c_t, feature, rates.model[t], room.steps)
            move_one_step_model(model_rows, state, room.steps, room.logits, c_t)

        # if s_{t+1} is terminal: gamma_t <- 0, new_episode <- true; else gamma_t <- gamma
        cut_off = steps_of_episode == limit.steps
        new_episode = terminated or cut_off
        bootstraps = not (terminated or (cut_off and limit.is_terminal))
        for d in range(D):
            error_i[d] = c_t[d] - error_i[d]
            error_c[d] = c_t[d] - error_c[d]
        if bootstraps:
            values.add_next(world.cell(), c, next_state, gamma, error_i, error_c)

        # Update theta_i, and theta_c if c is not i: |c_t + gamma_t value(s_{t+1}, abar) - value(s_t, a_t)|^2
        finite = values.descend(c, action, state, error_i, error_c, rates.value[t])
        if learns_reward:
            finite = finite and all_finite(reward_model.readout)
        if not finite:
            return Before(before.steps + t + 1, 0, total_reward), episodes, DIVERGED

        # s_t <- s_{t+1}: all values are known but for those that have just learned
        if not new_episode:
            state, next_state = next_state, state
            c = values.look_again(c, action, state)
    return Before(before.steps + T, 0 if new_episode else steps_of_episode, total_reward), episodes, FINISHED
