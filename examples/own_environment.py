"""Your own environment: FrozenLake, with features that say whether a step ended in a hole or at the goal."""

import gymnasium
from gymnasium.wrappers import FlattenObservation

from sfr_fa.engines import make_engine
from sfr_fa.environments.adapters import WithFeatures
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask

lake = FlattenObservation(gymnasium.make("FrozenLake-v1", is_slippery=False))
cells = "".join(cell.decode() for cell in lake.unwrapped.desc.ravel())


def features(observation, action, next_observation, info):
    """(hole, goal) of the cell that was reached; observations are one-hot."""
    cell = cells[next_observation.argmax()]
    return [float(cell == "H"), float(cell == "G")]


env = WithFeatures(lake, features, DiscreteFeatures([[0, 0], [1, 0], [0, 1]]), LinearTask([0, 1]))
engine = make_engine("reference", env, "SFR", seed=0, gamma=0.9, epsilon=0.3, learning_rate=0.2)
for weights in ([0, 1], [-1, 1], [1, 0]):
    result = engine.run_task(LinearTask(weights), steps=1000)
    print(f"hole {weights[0]:+d}, goal {weights[1]:+d}: total reward {result.total_reward:+.0f}")
