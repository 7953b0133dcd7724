"""Train SFR on three tasks, then meet a fourth reward function: python examples/transfer_in_30_lines.py"""

from dataclasses import replace

import gymnasium
import numpy as np
import torch

from sfr_fa.agents import Transition, make_agent
from sfr_fa.environments.layouts import OBJECT_COLLECTION_LAYOUT
from sfr_fa.tasks import FunctionTask, LinearTask

torch.set_num_threads(1)
rng = np.random.default_rng(0)
layout = replace(OBJECT_COLLECTION_LAYOUT, step_length=0.1, object_radius=0.07)  # big steps: quick to learn
env = gymnasium.make("sfr_fa:sfr/ObjectCollection-v0", layout=layout, max_episode_steps=100)
features, state_dim = env.unwrapped.feature_space, env.observation_space.shape[0]


def learn(agent, task, steps):
    """Learn a task for some steps; returns the reward a step."""
    agent.start_task(task)
    state, total = env.reset(seed=int(rng.integers(2**31)), options={"task": task})[0], 0.0
    for _ in range(steps):
        action = agent.act(state)
        next_state, reward, terminal, cut, info = env.step(action)
        agent.learn(Transition(state, action, reward, info["features"], next_state, terminal))
        total += reward
        state = env.reset()[0] if terminal or cut else next_state
    return total / steps


settings = {"gamma": 0.9, "epsilon": 0.15, "learning_rate": 0.025, "rng": rng}
sfr, q = (make_agent(name, state_dim, 4, features, **settings) for name in ("SFR", "Q"))
# Features are (orange, blue, box, triangle, goal): orange is good, then boxes, then blue.
for weights in ([1, -1, 0, 0, 0], [0, 0, 1, -1, 0], [-1, 1, 0, 0, 0]):
    print(f"task {weights}: {learn(sfr, LinearTask(weights), 2000):+.3f} a step")
match = FunctionTask(lambda phi: (phi[..., 0] - phi[..., 1]) * (phi[..., 2] - phi[..., 3]))
print(f"new task (orange boxes and blue triangles), SFR: {learn(sfr, match, 1000):+.3f} a step")
print(f"the same task for Q, which starts afresh:        {learn(q, match, 1000):+.3f} a step")
print("how often GPI chose each policy on the new task:", sfr.gpi_counts)
