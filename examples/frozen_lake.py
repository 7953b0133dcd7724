"""What is learned, next to the truth: an agent's xi on FrozenLake, the exact xi, and what GPI loses.

Features say whether a step ended in a hole or at the goal. An agent learns two tasks by walking; the table of
the lake's dynamics gives the exact optimal policies and their xi. A third reward, which no weights on the
features can state (each step costs something), is met by GPI alone.
"""

import gymnasium
import numpy as np

from sfr_fa.engines import EpisodeLimit, make_engine
from sfr_fa.environments.adapters import OneHot, WithFeatures
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask, TableTask
from sfr_theory.bounds import STATEMENTS
from sfr_theory.mdp import FiniteMDP, TransferProblem
from sfr_theory.operators import q_from_xi
from sfr_theory.solve import optimal, policy_xi
from sfr_theory.transfer import evaluate

GAMMA = 0.9
lake = gymnasium.make("FrozenLake-v1", success_rate=0.9)
cells = lake.unwrapped.desc.ravel()


def hole_and_goal(cell):
    return [float(cells[cell] == b"H"), float(cells[cell] == b"G")]


# The truth. The last state and the last feature are the end of an episode, where nothing is collected.
mdp = FiniteMDP.from_gymnasium(lake, lambda s, a, next_cell, reward: hole_and_goal(next_cell), GAMMA)
space = DiscreteFeatures(mdp.feature_vectors[:-1])
sources = [LinearTask([0, 1]), LinearTask([-1, 1])]
target = TableTask(space, np.where(space.vectors[:, 1] == 1, 1.0, -0.02))


def rewards(task):
    return np.append(task.reward(space.vectors), 0.0)


exact_xi = np.stack([policy_xi(mdp, optimal(mdp, rewards(task)).policy) for task in sources])

# What an agent learns of it. With a 1 for each cell, weights (K, action, feature, cell) are a table.
env = WithFeatures(OneHot(lake), lambda s, a, next_s, info: hole_and_goal(next_s.argmax()), space, sources[0])
engine = make_engine(
    "reference", env, "SFR", seed=0, gamma=GAMMA, epsilon=0.5, learning_rate=0.1,
    limit=EpisodeLimit(is_terminal=False),
)  # fmt: skip
for task in sources:
    engine.run_task(task, steps=6000)
learned_xi = exact_xi.copy()
left = np.isin(cells, [b"S", b"F"]).nonzero()[0]  # no step starts in a hole or at the goal
weights = engine.agent.policies.parameters["weight"].permute(0, 3, 1, 2).clamp(min=0)
learned_xi[:, left, :, :-1] = weights[:, left]

for i, task in enumerate(sources):
    error = np.abs(learned_xi - exact_xi)[i].max()
    learned_q, exact_q = (q_from_xi(xi[i], rewards(task)) for xi in (learned_xi, exact_xi))
    print(
        f"task {i + 1}: largest error of xi {error:.3f}; value of the start {learned_q[0].max():.3f}, "
        f"exactly {exact_q[0].max():.3f}"
    )

# GPI under the new reward, with the exact xi and with the learned one.
for name, xi in (("exact", exact_xi), ("learned", learned_xi)):
    truth = evaluate(TransferProblem(mdp, rewards(target), np.stack([*map(rewards, sources)]), xi))
    terms = STATEMENTS["thm2/sharp"](truth)
    print(
        f"{name} xi, new reward: GPI is worth {truth.gpi_q[0].max():.3f} at the start, the optimum "
        f"{truth.optimal_q[0].max():.3f}; it loses {terms.left:.3f} at worst, T2' allows {terms.right:.3f}"
    )
