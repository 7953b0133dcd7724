"""One task of the racer for agents with ReLU networks: environment, exploration, GPI and all updates.

`run_task` is algo:QL, algo:sfql and algo:CMFXI in one loop; its sections carry the lines of the listings in
the order of `sfr_fa.agents.gpi_agent`. The agents differ in data only:

    cumulant   the reward (Q), the features (SF), or their tent code (CSFR)
    features   distances to markers, or learned: sigmoid(H [s_t, s_{t+1}]) (-h)
    readout    given, or read from a linear reward model that learns online (-R, -h)

One thing differs from a literal transcription, and changes no number: the values of s_{t+1} are those of s_t
in the next step, except for the one or two policies that the update has changed, and only these are evaluated
again. Nothing is evaluated where s_{t+1} is terminal, since gamma_t = 0.

All noise is an argument: three uniforms an episode, three standard normals and two uniforms a step. Places
and rewards are float64; states are rounded to the precision of the networks.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numba import njit

from sfr_fa.kernels.arrays import FOR_PYTHON_ONLY, Integers, Reals, all_finite, copy_to, part
from sfr_fa.kernels.dynamics import RacerGeometry, drive, torus_distance
from sfr_fa.kernels.encoding import FloatArray, write_circle_code
from sfr_fa.kernels.mlp import (
    Activations,
    Gradients,
    Networks,
    Shape,
    descend,
    evaluate,
    new_activations,
    new_gradients,
    read_out,
    spread_readout,
)
from sfr_fa.kernels.models import learn_linear_reward, learned_features, read_linear_reward, tent_code

REWARD, FEATURES, TENT = 0, 1, 2
"""What the policies sum up."""
NUM_ACTIONS = 3


class World(NamedTuple):
    """The environment under one task.

    R(phi) = sum_k (w_k phi_k + h_k max_j exp(-(phi_k - mu_kj)^2 / sigma_kj)) holds linear and Gaussian tasks.
    """

    geometry: RacerGeometry
    position_centres: FloatArray
    position_sigma: float
    angle_centres: FloatArray
    angle_sigma: float
    slopes: FloatArray
    """(n,): w."""
    heights: FloatArray
    """(n,): h."""
    mu: FloatArray
    """(n, J); a marker of fewer Gaussians has one of them several times."""
    sigma: FloatArray
    """(n, J)."""
    step_limit: int
    """Steps after which an episode is cut off."""
    limit_is_terminal: bool
    """Whether nothing follows a step that the limit cuts off (gamma_t = 0)."""


class Noise(NamedTuple):
    """What is random in T steps."""

    starts: FloatArray
    """(episodes, 3): uniform numbers for x, y and orientation."""
    moves: FloatArray
    """(T, 3): standard normals for x, y and orientation."""
    exploration: FloatArray
    """(T, 2): uniform numbers; the first decides whether to explore, the second where to."""


class Rates(NamedTuple):
    """Numbers of the learning rules."""

    gamma: float
    epsilon: float
    value: float
    """2 alpha, or 2 alpha / n where the loss is averaged over n dimensions."""
    reward: float
    """alpha of the reward model; 0 if the readout is given."""


class Cumulant(NamedTuple):
    """c_t of a step."""

    kind: int
    H_now: FloatArray
    """(h, S): learned features, the part of s_t; h = 0 for the distances to the markers."""
    H_next: FloatArray
    """(h, S): the part of s_{t+1}."""
    centres: FloatArray
    """(n, U): bins of the tent code."""


class Policies(NamedTuple):
    """The stored policies, the last one is learned."""

    networks: Networks
    readouts: Reals
    """(K, D): v_k of each policy's own task; the last row changes while the reward model learns."""
    reward_weights: Reals
    """(n,): w of the reward model of the current task."""
    points: Reals
    """(D, n): v_d = points[d] . w."""
    floor: float
    """Values are clipped there when they are read: 0, or minus infinity."""


class Record(NamedTuple):
    """What happened."""

    actions: Integers
    """(T,)."""
    gpi_counts: Integers
    """(K,): how often a policy was the best one when an action was chosen."""


class Scratch(NamedTuple):
    """Room for one step. The caller makes it, since code that allocates takes long to compile."""

    codes: FloatArray
    """(2, n): of x and y, n the centres of each axis."""
    exact: FloatArray
    """(S,): s_t in float64..."""
    next_exact: FloatArray
    state: Reals
    """(S, padded): ... and in the precision of the networks."""
    next_state: Reals
    distances: FloatArray
    """Of the markers."""
    phi: FloatArray
    """(n,): phi_t in float64..."""
    phi_t: Reals
    """... and in the precision of the networks."""
    code: FloatArray
    """(D,): c_t likewise."""
    c_t: Reals
    error_i: Reals
    """(G, U)."""
    error_c: Reals
    q: Reals
    """(K, A): of all policies in the current task."""
    q_c: Reals
    """(1, A): of policy c in its own."""
    total: Reals
    """(A U,): for `read_out`."""
    spread: Reals
    """Readouts laid out as the outputs of all networks are."""
    values: Activations
    next_values: Activations
    gradients: Gradients


def new_scratch(world: World, cumulant: Cumulant, policies: Policies) -> Scratch:
    """Room for the steps of a task."""
    networks, dtype = policies.networks, policies.readouts.dtype
    (K, D), G = policies.readouts.shape, networks.shape.groups
    axis, markers = len(world.position_centres), len(world.geometry.markers)
    S, n = axis**2 + len(world.angle_centres), len(cumulant.H_now) or markers
    return Scratch(
        codes=np.zeros((2, axis)),
        exact=np.zeros(S),
        next_exact=np.zeros(S),
        state=np.zeros(len(networks.W1), dtype),
        next_state=np.zeros(len(networks.W1), dtype),
        distances=np.zeros(markers),
        phi=np.zeros(n),
        phi_t=np.zeros(n, dtype),
        code=np.zeros(D),
        c_t=np.zeros(D, dtype),
        error_i=np.zeros((G, D // G), dtype),
        error_c=np.zeros((G, D // G), dtype),
        q=np.zeros((K, NUM_ACTIONS), dtype),
        q_c=np.zeros((1, NUM_ACTIONS), dtype),
        total=np.zeros(networks.shape.outputs, dtype),
        spread=np.zeros_like(networks.b3),
        values=new_activations(networks),
        next_values=new_activations(networks),
        gradients=new_gradients(networks),
    )


@part()
def reward_of(phi: FloatArray, world: World) -> float:
    """R(phi)."""
    total = 0.0
    for k in range(phi.shape[0]):
        largest = 0.0
        for j in range(world.mu.shape[1]):
            distance = phi[k] - world.mu[k, j]
            largest = max(largest, math.exp(-distance * distance / world.sigma[k, j]))
        total += world.slopes[k] * phi[k] + world.heights[k] * largest
    return total


@part()
def observe(
    x: float, y: float, angle: float, world: World, codes: FloatArray, exact: FloatArray, state: Reals
) -> None:
    """`racer_state` in place: in float64, and in the precision of the networks; `codes` is scratch."""
    centres, sigma = world.position_centres, world.position_sigma
    n = centres.shape[0]
    write_circle_code(x, centres, 1.0, sigma, codes[0])
    write_circle_code(y, centres, 1.0, sigma, codes[1])
    write_circle_code(angle, world.angle_centres, 2 * math.pi, world.angle_sigma, exact[n * n :])
    for j in range(n):
        for k in range(n):
            exact[n * j + k] = codes[0, j] * codes[1, k]
    copy_to(exact, state)


@part()
def best_pair(q: Reals) -> tuple[int, int]:
    """argmax over (k, a) of q[k, a], the first of ties."""
    best, action, largest = 0, 0, q[0, 0]
    for k in range(q.shape[0]):
        for a in range(q.shape[1]):
            if q[k, a] > largest:
                best, action, largest = k, a, q[k, a]
    return best, action


@part()
def add_discounted(outputs: Reals, shape: Shape, k: int, action: int, gamma: float, error: Reals) -> None:
    """error_{g,j} += gamma value_k(s, a)_{g,j}."""
    G, U = error.shape
    factor = error.dtype.type(gamma)
    for g in range(G):
        begin = (k * G + g) * shape.outputs + action * U
        for j in range(U):
            error[g, j] += factor * outputs[begin + j]


@part()
def set_difference(cumulant: Reals, outputs: Reals, shape: Shape, k: int, action: int, error: Reals) -> None:
    """error_{g,j} = c_{g,j} - value_k(s, a)_{g,j}."""
    G, U = error.shape
    for g in range(G):
        begin = (k * G + g) * shape.outputs + action * U
        for j in range(U):
            error[g, j] = cumulant[g * U + j] - outputs[begin + j]


# Without the lock of the interpreter, so that Ctrl-C and progress are served meanwhile.
@njit(cache=True, nogil=True, **FOR_PYTHON_ONLY)
def run_task(
    world: World,
    noise: Noise,
    rates: Rates,
    cumulant: Cumulant,
    policies: Policies,
    record: Record,
    scratch: Scratch,
) -> tuple[float, int, int, bool]:
    """Learn for T steps, in place: total reward, episodes begun, steps made, whether all stayed finite."""
    networks, readouts, floor = policies.networks, policies.readouts, policies.floor
    dtype = readouts.dtype
    K = readouts.shape[0]
    shape = networks.shape
    # Not a plain 0: Numba would compile `evaluate` a second time for a literal.
    first, i = K - K, K - 1
    codes, exact, next_exact = scratch.codes, scratch.exact, scratch.next_exact
    state, next_state, values, next_values = (
        scratch.state, scratch.next_state, scratch.values, scratch.next_values,
    )  # fmt: skip
    distances, phi, phi_t = scratch.distances, scratch.phi, scratch.phi_t
    code, c_t, error_i, error_c = scratch.code, scratch.c_t, scratch.error_i, scratch.error_c
    q, q_c, total, spread = scratch.q, scratch.q_c, scratch.total, scratch.spread
    gradients = scratch.gradients
    for k in range(K):
        spread_readout(readouts[k], shape, NUM_ACTIONS, k, spread)

    total_reward, episodes, steps_of_episode = 0.0, 0, 0
    x, y, angle = 0.0, 0.0, 0.0
    new_episode = True
    T = noise.moves.shape[0]
    for t in range(T):
        # if new_episode: s_t <- initial state
        if new_episode:
            new_episode, steps_of_episode = False, 0
            x, y = noise.starts[episodes, 0], noise.starts[episodes, 1]
            angle = -math.pi + 2 * math.pi * noise.starts[episodes, 2]
            episodes += 1
            observe(x, y, angle, world, codes, exact, state)
            evaluate(networks, first, K, state, values)
            for k in range(K):
                read_out(values.outputs, shape, k, spread, i, floor, total, q, k)

        # c <- argmax_k max_a sum_d value_k(s_t, a)_d v_i,d
        c, greedy_action = best_pair(q)
        record.gpi_counts[c] += 1

        # With probability epsilon select a random action a_t, otherwise a_t <- argmax_a of policy c
        if noise.exploration[t, 0] < rates.epsilon:
            action = int(noise.exploration[t, 1] * NUM_ACTIONS)
        else:
            action = greedy_action
        record.actions[t] = action

        # Take action a_t and observe reward r_t and next state s_{t+1}
        x, y, angle = drive(x, y, angle, action, noise.moves[t], world.geometry)
        observe(x, y, angle, world, codes, next_exact, next_state)
        for k in range(distances.shape[0]):
            distances[k] = torus_distance(x, y, world.geometry.markers[k, 0], world.geometry.markers[k, 1])
        reward = reward_of(distances, world)
        total_reward += reward
        steps_of_episode += 1

        # if s_{t+1} is terminal: gamma_t <- 0, new_episode <- true; else gamma_t <- gamma
        new_episode = steps_of_episode == world.step_limit
        bootstraps = not (new_episode and world.limit_is_terminal)

        # phi_t <- phi(s_t, a_t, s_{t+1})
        if cumulant.H_now.shape[0] > 0:
            learned_features(cumulant.H_now, cumulant.H_next, exact, next_exact, phi)
        else:
            copy_to(distances, phi)

        # Update the reward model with (r_t - R_i(phi_t))^2
        if rates.reward > 0:
            copy_to(phi, phi_t)
            learn_linear_reward(policies.reward_weights, phi_t, dtype.type(reward), dtype.type(rates.reward))
            read_linear_reward(policies.reward_weights, policies.points, readouts[i])
            spread_readout(readouts[i], shape, NUM_ACTIONS, i, spread)

        # c_t is what the policies sum up
        if cumulant.kind == REWARD:
            c_t[0] = reward
        elif cumulant.kind == FEATURES:
            copy_to(phi, c_t)
        else:
            tent_code(phi, cumulant.centres, code)
            copy_to(code, c_t)
        set_difference(c_t, values.outputs, shape, i, action, error_i)
        set_difference(c_t, values.outputs, shape, c, action, error_c)

        if bootstraps:
            # abar <- argmax_a max_k sum_d value_k(s_{t+1}, a)_d v_i,d
            evaluate(networks, first, K, next_state, next_values)
            for k in range(K):
                read_out(next_values.outputs, shape, k, spread, i, floor, total, q, k)
            _, greedy_next_action = best_pair(q)
            add_discounted(next_values.outputs, shape, i, greedy_next_action, rates.gamma, error_i)
            if c != i:
                # abar <- argmax_a sum_d value_c(s_{t+1}, a)_d v_c,d
                read_out(next_values.outputs, shape, c, spread, c, floor, total, q_c, 0)
                _, greedy_next_action = best_pair(q_c)
                add_discounted(next_values.outputs, shape, c, greedy_next_action, rates.gamma, error_c)

        # Update theta_i with sum_d (c_t + gamma_t value_i(s_{t+1}, abar) - value_i(s_t, a_t))_d^2
        descend(networks, i, state, action, values, error_i, rates.value, gradients)
        if c != i:
            # Update theta_c likewise
            descend(networks, c, state, action, values, error_c, rates.value, gradients)
        if not (all_finite(error_i) and all_finite(error_c) and all_finite(readouts[i])):
            return total_reward, episodes, t + 1, False

        # s_t <- s_{t+1}: all values are known but for the policies that have just changed
        if not new_episode:
            exact, next_exact = next_exact, exact
            state, next_state = next_state, state
            values, next_values = next_values, values
            evaluate(networks, i, i + 1, state, values)
            read_out(values.outputs, shape, i, spread, i, floor, total, q, i)
            if c != i:
                evaluate(networks, c, c + 1, state, values)
                read_out(values.outputs, shape, c, spread, i, floor, total, q, c)
    return total_reward, episodes, T, True
