"""One task of object collection for agents with linear values: environment, exploration, GPI and all updates.

`run_task` is algo:QL, algo:sfql, algo:MFXI, algo:MBXI and algo:CMFXI in one loop; its sections carry the
lines of the listings in the order of `sfr_fa.agents.gpi_agent`. Two things differ from a literal
transcription, and neither changes a number:

- The values of s_{t+1} are those of s_t in the next step, except for one action of the one or two policies
  that the update has changed. At a terminal s_{t+1} nothing is evaluated, since gamma_t = 0.
- GPI evaluates only policies that can win (`sfr_fa.kernels.gpi`).

Where Q is linear in the values (no clipping) and the readout v is given, Q_k(s, a) = (sum_d v_d
theta_{k,a,d}) . s, and GPI runs on these folded weights, D times fewer. Its values differ from the unfolded
ones by rounding.

All noise is an argument: a standard normal and two uniform numbers a step.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit

from sfr_fa.kernels.arrays import FOR_PYTHON_ONLY, Integers, Reals, all_finite, copy_from, copy_to, fill, part
from sfr_fa.kernels.dynamics import ObjectGeometry, object_collection_step
from sfr_fa.kernels.encoding import FloatArray, encode_object_collection, write_interval_code
from sfr_fa.kernels.gpi import Search, best_policy, evaluate, evaluate_again
from sfr_fa.kernels.gpi_filter import (
    Filter,
    begin_episode,
    begin_task,
    bound_policies,
    note_readout,
    note_update,
    pick_up,
)
from sfr_fa.kernels.linear import (
    action_values,
    descend,
    first_largest,
    fold,
    read_out,
)
from sfr_fa.kernels.models import (
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
)

TABLE, DELTA_MODEL, SQUARES_MODEL, LEARNED_PHI, LEARNED_TENT = 0, 1, 2, 3, 4
"""Where c_t comes from: a table over the environment's features, p~ (by either rule), phi~, or its tents."""
GIVEN, LINEAR, MLP = 0, 1, 2
"""Where the readout comes from: the task, or a reward model."""


class World(NamedTuple):
    """The environment under one task."""

    geometry: ObjectGeometry
    centres: FloatArray
    sigma: float
    rewards: FloatArray
    """(F,): the reward of each feature."""
    step_limit: int
    """Steps after which an episode is cut off; 0 for never."""
    limit_is_terminal: bool
    """Whether nothing follows a step that the limit cuts off (gamma_t = 0)."""


class Noise(NamedTuple):
    """What is random in T steps."""

    moves: FloatArray
    """(T,): standard normals of the environment."""
    exploration: FloatArray
    """(T, 2): uniform numbers; the first decides whether to explore, the second where to."""


class Rates(NamedTuple):
    """Numbers of the learning rules."""

    gamma: float
    epsilon: float
    value: float
    """2 alpha: the 2 of the square included; divided by n where the loss is averaged over n dimensions."""
    reward: float
    model: float


class Cumulant(NamedTuple):
    """c_t of a step."""

    kind: int
    table: Reals
    """(F, D): c_t of each feature of the environment."""
    one_step: Reals
    """(A F, S): weights of p~, rows (a, j)."""
    H_now: Reals
    """(h, S): learned features, the part of s_t."""
    H_next: Reals
    """(h, S): the part of s_{t+1}."""
    centres: Reals
    """(h, U): bins of the tent code."""


class Reward(NamedTuple):
    """R~ of the task, and where it is read."""

    kind: int
    phi: Reals
    """(F, n): what the reward model sees of each feature of the environment."""
    points: Reals
    """(D, n): v_d = R~(points[d])."""
    readout: Reals
    """(D,): v; it changes while R~ learns."""
    W1: Reals
    """(h, n); a linear model has one row, its w."""
    b1: Reals
    W2: Reals
    b2: Reals


class Policies(NamedTuple):
    """The stored policies, the last one is learned."""

    theta: Reals
    """(K, A D, S)."""
    readouts: Reals
    """(K, D): v_k of each policy's own task; the last row is not read."""
    folded: Reals
    """(K, A, S) if GPI runs on folded weights, else (0, A, S)."""
    clip: bool


class Record(NamedTuple):
    """What happened."""

    actions: Integers
    """(T,)."""
    gpi_counts: Integers
    """(K,): how often a policy was the best one when an action was chosen."""


@part()
def learn_reward(model: Reward, phi: Reals, reward: float, rate: float) -> None:
    """One step of SGD on (r_t - R~(phi_t))^2, and v_d = R~(p_d) after it."""
    if model.kind == LINEAR:
        learn_linear_reward(model.W1[0], phi, reward, rate)
        read_linear_reward(model.W1[0], model.points, model.readout)
    elif model.kind == MLP:
        learn_mlp_reward(model.W1, model.b1, model.W2, model.b2, phi, reward, rate)
        read_mlp_reward(model.W1, model.b1, model.W2, model.b2, model.points, model.readout)


# Without the lock of the interpreter, so that Ctrl-C and progress are served meanwhile.
@njit(cache=True, nogil=True, **FOR_PYTHON_ONLY)
def run_task(
    world: World,
    noise: Noise,
    rates: Rates,
    cumulant: Cumulant,
    reward_model: Reward,
    policies: Policies,
    search: Search,
    known: Filter,
    record: Record,
) -> tuple[float, int, int, bool]:
    """Learn for T steps, in place: total reward, episodes begun, steps made, whether all is finite."""
    theta, clip, v = policies.theta, policies.clip, reward_model.readout
    K, rows, S = theta.shape
    D = v.shape[0]
    A = rows // D
    is_folded = policies.folded.shape[0] == K
    weights = policies.folded if is_folded else theta
    gpi_readout = np.ones(1, theta.dtype) if is_folded else v
    outputs = gpi_readout.shape[0]
    i = K - 1
    for k in range(policies.folded.shape[0]):
        for a in range(A):
            fold(theta, k, a, v, weights)
    filters = known.seen.shape[0] > 0

    x, y = world.geometry.start_x, world.geometry.start_y
    memory = np.zeros(world.geometry.objects.shape[0])
    code_x, code_y = np.zeros(world.centres.shape[0]), np.zeros(world.centres.shape[0])
    state, next_state = np.zeros(S, theta.dtype), np.zeros(S, theta.dtype)
    phi = np.zeros(reward_model.points.shape[1], theta.dtype)
    c_t = np.zeros(D, theta.dtype)
    error_i, error_c = np.zeros(D, theta.dtype), np.zeros(D, theta.dtype)
    next_values, values_c = np.zeros(D, theta.dtype), np.zeros((1, rows), theta.dtype)
    q_c = np.zeros((1, A), theta.dtype)
    logits, steps = (
        np.zeros(world.rewards.shape[0], theta.dtype),
        np.zeros(world.rewards.shape[0], theta.dtype),
    )

    if filters:
        begin_task(known, weights, memory, gpi_readout)

    total_reward, episodes, steps_of_episode = 0.0, 0, 0
    new_episode = True
    c = 0
    T = noise.moves.shape[0]
    for t in range(T):
        # if new_episode: s_t <- initial state
        if new_episode:
            new_episode, steps_of_episode = False, 0
            episodes += 1
            x, y = world.geometry.start_x, world.geometry.start_y
            fill(memory, 0.0)
            write_interval_code(x, world.centres, world.sigma, code_x)
            write_interval_code(y, world.centres, world.sigma, code_y)
            encode_object_collection(code_x, code_y, memory, state)
            if filters:
                begin_episode(known)
                bound_policies(known, weights, x, y, state, gpi_readout, search.bound)
            else:
                fill(search.bound, np.inf)
            search.how_many[0] = 0
            evaluate(i, weights, state, gpi_readout, clip, search)
            # c <- argmax_k max_a sum_phi xi_k(s_t, a, phi) R_i(phi); later in an episode it is known already
            c = best_policy(weights, state, gpi_readout, clip, search)
        record.gpi_counts[c] += 1

        # With probability epsilon select a random action a_t, otherwise a_t <- argmax_a of policy c
        if noise.exploration[t, 0] < rates.epsilon:
            action = int(noise.exploration[t, 1] * A)
        else:
            action = first_largest(search.q[c])
        record.actions[t] = action
        own = action * D
        if is_folded:
            action_values(theta, i, own, state, error_i)
            action_values(theta, c, own, state, error_c)
        else:
            copy_from(search.values, i, own, error_i)
            copy_from(search.values, c, own, error_c)

        # Take action a_t and observe reward r_t and next state s_{t+1}
        new_x, new_y, picked, feature = object_collection_step(
            x, y, memory, action, noise.moves[t], world.geometry
        )
        if new_x != x:
            write_interval_code(new_x, world.centres, world.sigma, code_x)
        if new_y != y:
            write_interval_code(new_y, world.centres, world.sigma, code_y)
        if picked >= 0:
            memory[picked] = 1.0
            if filters:
                pick_up(known, picked)
        x, y = new_x, new_y
        encode_object_collection(code_x, code_y, memory, next_state)
        reward = world.rewards[feature]
        total_reward += reward
        steps_of_episode += 1

        # Update the reward model with (r_t - R_i(phi_t))^2
        if cumulant.kind == LEARNED_PHI or cumulant.kind == LEARNED_TENT:
            learned_features(cumulant.H_now, cumulant.H_next, state, next_state, phi)
        elif reward_model.kind != GIVEN:
            copy_from(reward_model.phi, feature, 0, phi)
        if reward_model.kind != GIVEN:
            learn_reward(reward_model, phi, reward, rates.reward)
            if filters:
                note_readout(known.norms, v, known.margins)

        # Update the feature model p~; c_t is what the policies sum up
        if cumulant.kind == TABLE:
            copy_from(cumulant.table, feature, 0, c_t)
        elif cumulant.kind == DELTA_MODEL or cumulant.kind == SQUARES_MODEL:
            model_rows = cumulant.one_step[action * D : (action + 1) * D]
            predict_feature(model_rows, state, logits, c_t)
            if cumulant.kind == DELTA_MODEL:
                delta_steps(c_t, feature, rates.model, steps)
            else:
                square_steps(c_t, feature, rates.model, steps)
            move_one_step_model(model_rows, state, steps, logits, c_t)
        elif cumulant.kind == LEARNED_PHI:
            copy_to(phi, c_t)
        else:
            tent_code(phi, cumulant.centres, c_t)

        # if s_{t+1} is terminal: gamma_t <- 0, new_episode <- true; else gamma_t <- gamma
        at_goal = feature == world.rewards.shape[0] - 1
        cut_off = steps_of_episode == world.step_limit
        new_episode = at_goal or cut_off
        bootstraps = not (at_goal or (cut_off and world.limit_is_terminal))
        for d in range(D):
            error_i[d] = c_t[d] - error_i[d]
            error_c[d] = c_t[d] - error_c[d]

        if bootstraps:
            # abar <- argmax_a max_k sum_phi xi_k(s_{t+1}, a, phi) R_i(phi)
            if filters:
                bound_policies(known, weights, x, y, next_state, gpi_readout, search.bound)
            else:
                fill(search.bound, np.inf)
            search.how_many[0] = 0
            evaluate(i, weights, next_state, gpi_readout, clip, search)
            if c != i:
                evaluate(c, weights, next_state, gpi_readout, clip, search)
            best = best_policy(weights, next_state, gpi_readout, clip, search)
            greedy_next_action = first_largest(search.q[best])
            if is_folded:
                action_values(theta, i, greedy_next_action * D, next_state, next_values)
            else:
                copy_from(search.values, i, greedy_next_action * D, next_values)
            for d in range(D):
                error_i[d] += rates.gamma * next_values[d]
            if c != i:
                # abar <- argmax_a sum_phi xi_c(s_{t+1}, a, phi) R_c(phi)
                if is_folded:
                    action_values(theta, c, 0, next_state, values_c[0])
                else:
                    copy_from(search.values, c, 0, values_c[0])
                read_out(values_c, 0, policies.readouts[c], clip, q_c)
                greedy_next_action = first_largest(q_c[0])
                for d in range(D):
                    error_c[d] += rates.gamma * values_c[0, greedy_next_action * D + d]

        # Update theta_i, and theta_c if c is not i, with (c_t + gamma_t xi(s_{t+1}, abar) - xi(s_t, a_t))^2
        finite = descend(theta, i, own, state, error_i, rates.value)
        if c != i:
            finite = descend(theta, c, own, state, error_c, rates.value) and finite
        if is_folded:
            fold(theta, i, action, v, weights)
            if c != i:
                fold(theta, c, action, v, weights)
        if filters and c != i:
            note_update(known, c, action, weights, memory, gpi_readout)
        if reward_model.kind != GIVEN:
            finite = finite and all_finite(v)
        if not finite:
            return total_reward, episodes, t + 1, False

        # s_t <- s_{t+1}: all values are known but for the action that has just been updated
        if not new_episode:
            state, next_state = next_state, state
            first, last = action * outputs, (action + 1) * outputs
            evaluate_again(i, first, last, weights, state, gpi_readout, clip, search)
            if c != i:
                evaluate_again(c, first, last, weights, state, gpi_readout, clip, search)
            c = best_policy(weights, state, gpi_readout, clip, search)
    return total_reward, episodes, T, True
