"""Episodes of stored policies in any world, without learning.

    c   = argmax over k of max over a of v . value_k(s_t, a)
    a_t = argmax over a of v . value_c(s_t, a), or at random with probability epsilon

The parts are those of `sfr_fa.kernels.loop`: a world, the rewards that score it, and the policies, which are
compared under their last readout v. What is random is drawn in the order of the reference: the world's from
one generator, two uniform numbers per step from the other.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import FloatArray, Integers, Reals, all_finite, fill, part
from sfr_fa.kernels.loop import FINISHED, OUTSIDE, Rewards
from sfr_fa.kernels.values import Values
from sfr_fa.kernels.world import World


class Episodes(NamedTuple):
    """What happened in each of E episodes."""

    returns: FloatArray
    """(E,): sum_t r_t."""
    discounted: FloatArray
    """(E,): sum_t gamma^t r_t."""
    lengths: Integers
    """(E,): steps."""
    ended: Integers
    """(E,): 1 where the world ended it, 0 where it was cut off."""
    gpi_counts: Integers
    """(K,): how often each policy was followed."""


@part()
def run_episodes(
    world: World,
    rewards: Rewards,
    values: Values,
    episodes: Episodes,
    gamma: float,
    epsilon: float,
    most_steps: int,
    state: Reals,
    phi: Reals,
    state_dim: int,
    num_actions: int,
    noise: np.random.Generator,
    exploration: np.random.Generator,
) -> int:
    """Run E episodes of at most `most_steps` steps; how it ended. `state` (S, padded) and `phi` are room."""
    i = episodes.gpi_counts.shape[0] - 1
    values.begin_task()
    for e in range(episodes.lengths.shape[0]):
        world.reset(noise)
        weight, terminated = 1.0, False
        while not terminated and episodes.lengths[e] < most_steps:
            fill(state, 0.0)
            world.encode(state[:state_dim])
            if not all_finite(state):
                return OUTSIDE
            c = values.look(world.cell(), i, state)
            episodes.gpi_counts[c] += 1
            explores, which = exploration.random(), exploration.random()
            action = int(which * num_actions) if explores < epsilon else values.greedy_action(c)
            terminated = world.step(action, noise)
            feature, reward = rewards.observe(world, phi)
            if feature < 0:
                return OUTSIDE
            episodes.returns[e] += reward
            episodes.discounted[e] += weight * reward
            episodes.lengths[e] += 1
            weight *= gamma
        episodes.ended[e] = 1 if terminated else 0
    return FINISHED
