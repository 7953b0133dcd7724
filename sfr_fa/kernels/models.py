"""What an agent learns besides its values: reward models R~(phi), the one-step model p~, feature codes.

    linear     R~(phi) = phi . w
    MLP        R~(phi) = w_2 . relu(W_1 phi + b_1) + b_2
    one step   p~(. | s, a) = softmax of theta_{a,j} . s
    learned    phi~ = sigmoid(H [s_t, s_{t+1}])
    tent       c[k, j] = max(0, 1 - |x_{k,j} - phi_k| / Delta_k)
    bumps      z_j = exp(-|phi - c_j|^2 / (2 w^2)), divided by their sum
    waves      z_j = sqrt(2 / D) cos(omega_j . phi + b_j)
    cells      z_j = 1 at the nearest centre, else 0

Models descend by plain SGD, reward models on squared errors, p~ on the loss of its rule. Gradients are
written by hand.
"""

from __future__ import annotations

import math

from sfr_fa.kernels.arrays import Reals, part
from sfr_fa.kernels.linear import dot

# --- Reward models ----------------------------------------------------------------------------------


@part()
def learn_linear_reward(weights: Reals, phi: Reals, reward: float, rate: float) -> None:
    """w += rate * 2 (r - phi . w) phi."""
    step = rate * 2 * (reward - dot(weights, phi))
    for k in range(phi.shape[0]):
        weights[k] += step * phi[k]


@part()
def read_linear_reward(weights: Reals, points: Reals, readout: Reals) -> None:
    """v_d = p_d . w."""
    for d in range(readout.shape[0]):
        readout[d] = dot(points[d], weights)


@part()
def mlp_reward(W1: Reals, b1: Reals, W2: Reals, b2: Reals, phi: Reals) -> float:
    """R~(phi)."""
    total = b2[0]
    for h in range(b1.shape[0]):
        activation = b1[h] + dot(W1[h], phi)
        if activation > 0:
            total += W2[h] * activation
    return total


@part()
def learn_mlp_reward(
    W1: Reals, b1: Reals, W2: Reals, b2: Reals, phi: Reals, reward: float, rate: float
) -> None:
    """One step of SGD on (r - R~(phi))^2."""
    step = rate * 2 * (reward - mlp_reward(W1, b1, W2, b2, phi))
    for h in range(b1.shape[0]):
        activation = b1[h] + dot(W1[h], phi)
        if activation > 0:
            back = step * W2[h]
            W2[h] += step * activation
            b1[h] += back
            for k in range(phi.shape[0]):
                W1[h, k] += back * phi[k]
    b2[0] += step


@part()
def read_mlp_reward(W1: Reals, b1: Reals, W2: Reals, b2: Reals, points: Reals, readout: Reals) -> None:
    """v_d = R~(p_d)."""
    for d in range(readout.shape[0]):
        readout[d] = mlp_reward(W1, b1, W2, b2, points[d])


# --- The one-step model of features -----------------------------------------------------------------


@part()
def softmax(logits: Reals, probabilities: Reals) -> None:
    """p_j = exp(l_j) / sum_i exp(l_i), from differences to the largest logit."""
    largest = logits[0]
    for j in range(1, logits.shape[0]):
        largest = max(largest, logits[j])
    total = largest - largest
    for j in range(logits.shape[0]):
        probabilities[j] = math.exp(logits[j] - largest)
        total += probabilities[j]
    for j in range(logits.shape[0]):
        probabilities[j] /= total


@part()
def delta_steps(probabilities: Reals, feature: int, rate: float, steps: Reals) -> None:
    """rate g_j with g_j = p_j - 1[j = feature], the gradient of -log p_feature in logit j."""
    for j in range(steps.shape[0]):
        error = probabilities[j] - 1 if j == feature else probabilities[j]
        steps[j] = rate * error


@part()
def square_steps(probabilities: Reals, feature: int, rate: float, steps: Reals) -> None:
    """rate g_j with g_j = 2 p_j (e_j - sum_i e_i p_i), e = p - 1[feature]: the gradient of sum_j e_j^2."""
    mean_error = -probabilities[feature]
    for j in range(steps.shape[0]):
        mean_error += probabilities[j] * probabilities[j]
    for j in range(steps.shape[0]):
        error = probabilities[j] - 1 if j == feature else probabilities[j]
        steps[j] = rate * 2 * probabilities[j] * (error - mean_error)


@part()
def predict_feature(theta: Reals, state: Reals, logits: Reals, probabilities: Reals) -> None:
    """p~(. | s, a) from theta (F, S), the rows of the action taken."""
    for j in range(logits.shape[0]):
        logits[j] = dot(theta[j], state)
    softmax(logits, probabilities)


@part()
def move_one_step_model(
    theta: Reals, state: Reals, steps: Reals, logits: Reals, probabilities: Reals
) -> None:
    """theta_j -= steps_j s, which moves logits at s by -steps_j |s|^2; `probabilities` are those after it."""
    square = dot(state, state)
    for j in range(logits.shape[0]):
        step, row = steps[j], theta[j]
        for i in range(state.shape[0]):
            row[i] -= step * state[i]
        logits[j] -= step * square
    softmax(logits, probabilities)


# --- Codes of features ------------------------------------------------------------------------------


@part()
def learned_features(H_now: Reals, H_next: Reals, state: Reals, next_state: Reals, phi: Reals) -> None:
    """phi_k = sigmoid(H_now[k] . s_t + H_next[k] . s_{t+1})."""
    for k in range(phi.shape[0]):
        phi[k] = 1 / (1 + math.exp(-(dot(H_now[k], state) + dot(H_next[k], next_state))))


@part()
def tent_code(phi: Reals, centres: Reals, code: Reals) -> None:
    """code[k, j] = max(0, 1 - |x_{k,j} - phi_k| / Delta_k); centres (n, U), code (n U,)."""
    n, U = centres.shape
    zero = phi[0] - phi[0]
    for k in range(n):
        width = (centres[k, U - 1] - centres[k, 0]) / (U - 1)
        for j in range(U):
            code[k * U + j] = max(zero, 1 - abs(centres[k, j] - phi[k]) / width)


@part()
def squared_distance(phi: Reals, centres: Reals, j: int) -> float:
    """|phi - c_j|^2."""
    total = phi[0] - phi[0]
    for k in range(phi.shape[0]):
        along = phi[k] - centres[j, k]
        total += along * along
    return total


@part()
def bump_code(phi: Reals, centres: Reals, width: float, code: Reals) -> None:
    """Normalised Gaussians, relative to the nearest centre, so that they never are 0 / 0."""
    for j in range(code.shape[0]):
        code[j] = -squared_distance(phi, centres, j) / (2 * width * width)
    softmax(code, code)


@part()
def wave_code(phi: Reals, frequencies: Reals, phases: Reals, code: Reals) -> None:
    """Random Fourier features."""
    height = math.sqrt(2 / code.shape[0])
    for j in range(code.shape[0]):
        code[j] = height * math.cos(dot(frequencies[j], phi) + phases[j])


@part()
def cell_code(phi: Reals, centres: Reals, code: Reals) -> None:
    """The first of the nearest centres."""
    nearest, least = 0, squared_distance(phi, centres, 0)
    for j in range(code.shape[0]):
        distance = squared_distance(phi, centres, j)
        if distance < least:
            nearest, least = j, distance
        code[j] = 0.0
    code[nearest] = 1.0
