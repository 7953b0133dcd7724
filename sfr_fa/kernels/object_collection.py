"""The world of object collection: its state is a position, a bit for each object, and the code of both.

    s = [s_pos, s_mem, 1]         s_pos: `sfr_fa.kernels.encoding`, s_mem: 1 for each object collected

A step draws one standard normal, a reset draws nothing. Codes of x and y are written when they change.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import FloatArray, Integers, Reals, fill, part
from sfr_fa.kernels.dynamics import ObjectGeometry, object_collection_step
from sfr_fa.kernels.encoding import write_interval_code, write_product_code


class ObjectCollectionWorld(NamedTuple):
    """Object collection, and where the agent is in it."""

    geometry: ObjectGeometry
    centres: FloatArray
    """(n,): coordinates of the centres on each axis."""
    sigma: float
    cells: int
    """Cells of the GPI filter along each axis."""
    position: FloatArray
    """(2,): x and y."""
    memory: FloatArray
    """(M,): 1 for each object that has been collected."""
    codes: FloatArray
    """(2, n): of x and y."""
    seen: Integers
    """(1,): the feature of the last step."""

    @staticmethod
    def new(geometry: ObjectGeometry, centres: FloatArray, sigma: float, cells: int) -> ObjectCollectionWorld:
        """The agent is nowhere yet."""
        return ObjectCollectionWorld(
            geometry,
            np.array(centres),
            float(sigma),
            cells,
            position=np.full(2, np.nan),
            memory=np.zeros(len(geometry.objects)),
            codes=np.zeros((2, len(centres))),
            seen=np.zeros(1, dtype=np.int64),
        )

    def reset(self, rng: np.random.Generator) -> None:
        """To the start; nothing has been collected."""
        move_to(self, self.geometry.start_x, self.geometry.start_y)
        fill(self.memory, 0.0)

    def step(self, action: int, rng: np.random.Generator) -> bool:
        """The goal ends the episode."""
        position, geometry = self.position, self.geometry
        x, y, picked, feature = object_collection_step(
            position[0], position[1], self.memory, action, rng.standard_normal(), geometry
        )
        move_to(self, x, y)
        if picked >= 0:
            self.memory[picked] = 1.0
        self.seen[0] = feature
        return feature == 1 + geometry.num_kinds

    def encode(self, state: Reals) -> None:
        """[s_pos, s_mem, 1]."""
        memory, P = self.memory, self.centres.shape[0] ** 2
        write_product_code(self.codes, state)
        for j in range(memory.shape[0]):
            state[P + j] = memory[j]
        state[P + memory.shape[0]] = 1.0

    def feature(self) -> int:
        """What the last step has shown."""
        return self.seen[0]

    def cell(self) -> int:
        """Cells are squares, numbered along y first."""
        x, y, cells = self.position[0], self.position[1], self.cells
        return min(int(x * cells), cells - 1) * cells + min(int(y * cells), cells - 1)


@part()
def move_to(world: ObjectCollectionWorld, x: float, y: float) -> None:
    """Place the agent and code its coordinates, those that have changed."""
    position, codes = world.position, world.codes
    if x != position[0]:
        position[0] = x
        write_interval_code(x, world.centres, world.sigma, codes[0])
    if y != position[1]:
        position[1] = y
        write_interval_code(y, world.centres, world.sigma, codes[1])
