"""The world of the racer: its state is a position on the torus, an orientation, and the code of both.

    s = [s_pos, s_ori]            `sfr_fa.kernels.encoding`, on circles of length 1 and 2 pi

A reset draws three uniform numbers (x, y, orientation), a step three standard normals (in the same order).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from sfr_fa.kernels.arrays import FloatArray, Reals
from sfr_fa.kernels.dynamics import RacerGeometry, drive, torus_distance
from sfr_fa.kernels.encoding import write_circle_code, write_product_code


class RacerWorld(NamedTuple):
    """The racer, and where it is."""

    geometry: RacerGeometry
    centres: FloatArray
    """(n,): coordinates of the centres on each axis."""
    sigma: float
    angle_centres: FloatArray
    angle_sigma: float
    cells: int
    """Cells of GPI's filter along each axis..."""
    angle_cells: int
    """... and of the orientation."""
    pose: FloatArray
    """(3,): x, y and orientation."""
    codes: FloatArray
    """(2, n): of x and y."""

    @staticmethod
    def new(
        geometry: RacerGeometry,
        centres: FloatArray,
        sigma: float,
        angle_centres: FloatArray,
        angle_sigma: float,
        cells: int,
        angle_cells: int,
    ) -> RacerWorld:
        """The racer is in the middle until a reset."""
        return RacerWorld(
            geometry,
            np.array(centres),
            float(sigma),
            np.array(angle_centres),
            float(angle_sigma),
            cells,
            angle_cells,
            pose=np.array([0.5, 0.5, 0.0]),
            codes=np.zeros((2, len(centres))),
        )

    def reset(self, rng: np.random.Generator) -> None:
        """To any place and orientation."""
        pose = self.pose
        pose[0] = rng.random()
        pose[1] = rng.random()
        pose[2] = -math.pi + 2 * math.pi * rng.random()

    def step(self, action: int, rng: np.random.Generator) -> bool:
        """Nothing ever ends."""
        pose = self.pose
        noise = rng.standard_normal(), rng.standard_normal(), rng.standard_normal()
        pose[0], pose[1], pose[2] = drive(pose[0], pose[1], pose[2], action, noise, self.geometry)
        return False

    def encode(self, state: Reals) -> None:
        """[s_pos, s_ori]."""
        codes, centres = self.codes, self.centres
        n = centres.shape[0]
        write_circle_code(self.pose[0], centres, 1.0, self.sigma, codes[0])
        write_circle_code(self.pose[1], centres, 1.0, self.sigma, codes[1])
        write_product_code(codes, state)
        write_circle_code(self.pose[2], self.angle_centres, 2 * math.pi, self.angle_sigma, state[n * n :])

    def cell(self) -> int:
        """Along the orientation first, then along y."""
        pose, cells, angles = self.pose, self.cells, self.angle_cells
        of_x, of_y = min(int(pose[0] * cells), cells - 1), min(int(pose[1] * cells), cells - 1)
        of_angle = min(int((pose[2] + math.pi) / (2 * math.pi) * angles), angles - 1)
        return (of_x * cells + of_y) * angles + of_angle

    def features(self, phi: Reals) -> None:
        """Torus distances to the markers."""
        markers = self.geometry.markers
        for k in range(markers.shape[0]):
            phi[k] = torus_distance(self.pose[0], self.pose[1], markers[k, 0], markers[k, 1])
