"""A world of your own in the compiled engine: a gridworld with a key, a door, gems and slippery floor.

A world is a NamedTuple of arrays and numbers with the methods below, in Python that Numba compiles. It is
written once: `WorldEnv` makes a Gymnasium environment of it, and both engines walk the same path.
"""

import time
from typing import NamedTuple

import numpy as np

from sfr_fa.engines import make_engine
from sfr_fa.environments.world_env import WorldEnv
from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_fa.tasks import LinearTask

FLOOR, WALL, KEY, GEM, DOOR, EXIT = range(6)
MAP = """
#########
#...#..g#
#.k.#...#
#...D.g.#
#g..#..E#
#########
"""
FEATURES = DiscreteFeatures([[0, 0, 0, 0], [1, 0, 0, 0], [0, 1, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
"""Nothing, or one of (key, gem, door, exit)."""
MOVES = np.array([(-1, 0), (1, 0), (0, -1), (0, 1)])


class KeysAndDoors(NamedTuple):
    cells: np.ndarray  # (rows, columns): the map
    left: np.ndarray  # the map without what was taken
    agent: np.ndarray  # (2,): row and column
    seen: np.ndarray  # (1,): the feature of the last step
    slips: float  # how often a step goes anywhere

    def reset(self, rng):
        self.left[:] = self.cells
        self.agent[:] = 1

    def step(self, action, rng):
        if rng.random() < self.slips:
            action = rng.integers(0, 4)
        row, column = self.agent[0] + MOVES[action, 0], self.agent[1] + MOVES[action, 1]
        there = self.left[row, column]
        if there == WALL or (there == DOOR and (self.left == KEY).any()):
            self.seen[0] = 0
            return False
        self.agent[0], self.agent[1] = row, column
        self.left[row, column] = FLOOR
        self.seen[0] = max(there - 1, 0)
        return there == EXIT

    def encode(self, state):
        has_key = 0 if (self.left == KEY).any() else 1
        state[has_key * self.left.size + self.agent[0] * self.left.shape[1] + self.agent[1]] = 1

    def feature(self):
        return self.seen[0]


def environment() -> WorldEnv:
    cells = np.array([[".#kgDE".index(cell) for cell in row] for row in MAP.split()])
    agent, seen = np.ones(2, np.int64), np.zeros(1, np.int64)
    world = KeysAndDoors(cells, cells.copy(), agent, seen, slips=0.1)
    return WorldEnv(world, state_dim=2 * cells.size, num_actions=4, feature_space=FEATURES, episode_steps=200)


def main() -> None:
    for name, steps in (("compiled", 200_000), ("reference", 500)):
        engine = make_engine(name, environment(), "SFR", gamma=0.95, epsilon=0.2, learning_rate=0.1)
        engine.run_task(LinearTask([0, 1, 0, 1]), steps=10)  # compiles
        started = time.process_time()
        for weights in ([0.1, 0, 0.1, 1], [0, 1, 0, 0], [0, -1, 0, 1]):  # leave; collect; leave, no gems
            result = engine.run_task(LinearTask(weights), steps)
            print(f"{weights}: {1000 * result.total_reward / steps:.1f} per 1,000 steps")
        print(f"{name}: {(time.process_time() - started) / (3 * steps) * 1e6:.2f} microseconds per step")


if __name__ == "__main__":
    # A class of a script has no place in the cache of compiled code; one of a module has.
    from own_world import main

    main()
