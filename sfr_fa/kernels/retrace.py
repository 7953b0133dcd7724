"""What was seen on a path whose actions are known: states and rewards, in any world.

The loop that learns keeps the actions a_0 ... a_{T-1} and none of its states. With the same noise they lead
along the same path again:

    s_t, a_t  ->  s_{t+1}, r_t,        s_0 of an episode where the one before has ended

Compiled, that takes about as long as the steps themselves; in a Gymnasium environment, some hundred times as
long, which for the millions of transitions that features are learned from is minutes.
"""

from __future__ import annotations

import numpy as np

from sfr_fa.kernels.arrays import FloatArray, Integers, Reals, fill, part
from sfr_fa.kernels.loop import FINISHED, OUTSIDE, Rewards
from sfr_fa.kernels.world import World


@part()
def copy_to_row(values: Reals, rows: Reals, t: int) -> None:
    """rows[t] = values."""
    for j in range(values.shape[0]):
        rows[t, j] = values[j]


@part()
def retrace(
    world: World,
    rewards: Rewards,
    actions: Integers,
    episode_steps: int,
    states: Reals,
    next_states: Reals,
    received: FloatArray,
    state: Reals,
    phi: Reals,
    noise: np.random.Generator,
) -> int:
    """Write s_t and s_{t+1}, (T, S), and r_t, (T,), for actions (T,); how it ended.

    An episode has at most `episode_steps` steps, any number if that is 0. `state` and `phi` are room.
    """
    over, steps = True, 0
    for t in range(actions.shape[0]):
        if over:
            steps = 0
            world.reset(noise)
            fill(state, 0.0)
            world.encode(state)
        copy_to_row(state, states, t)
        terminated = world.step(actions[t], noise)
        steps += 1
        feature, received[t] = rewards.observe(world, phi)
        if feature < 0:
            return OUTSIDE
        fill(state, 0.0)
        world.encode(state)
        copy_to_row(state, next_states, t)
        over = terminated or steps == episode_steps
    return FINISHED
