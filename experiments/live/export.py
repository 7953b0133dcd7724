"""Worlds and policies as JSON for the page, some 350 kB in all.

Weights become 16-bit integers times a power of two, w = q 2^e with the smallest e for which all |q| < 2^15.
They are exact in float32 and float64, so a Python agent can hold the very numbers of the page: `quantise`
rounds the weights of an agent, and `describe` writes them.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from experiments.live.training import DISLIKE, FIT_SIDE, LiveWorld, fit_points
from sfr_fa.agents import GpiAgent, clip_at_zero
from sfr_fa.environments.object_collection import ObjectCollection
from sfr_fa.environments.racer import Racer

Array = NDArray[Any]

LARGEST = 2**15 - 1

ROOM_PRESETS = {
    # Rewards of nothing, orange box, orange triangle, blue box, blue triangle, home.
    "Orange triangles and blue boxes": (0, DISLIKE, 1, 1, DISLIKE, 1),
    "Orange boxes and blue triangles": (0, 1, DISLIKE, DISLIKE, 1, 1),
    "All blue, no orange": (0, DISLIKE, DISLIKE, 1, 1, 1),
    "All boxes, no triangles": (0, 1, DISLIKE, 1, DISLIKE, 1),
    "Everything but blue triangles": (0, 1, 1, 1, -1, 1),
    "Only blue boxes": (0, -0.25, -0.25, 1, -0.25, 1),
    "Everything, then home": (0, 1, 1, 1, 1, 1),
    "Collect nothing, go home": (0, 0, 0, 0, 0, 1),
}
RACER_PRESETS = {
    # (height, mu, sigma) for each marker.
    "0.3 from each marker": ((1, 0.3, 0.005), (1, 0.3, 0.005), (1, 0.3, 0.005)),
    "A ring around marker 1": ((1, 0.3, 0.005), (0, 0.5, 0.01), (0, 0.5, 0.01)),
    "A narrow ring around marker 3": ((0, 0.5, 0.01), (0, 0.5, 0.01), (1, 0.2, 0.003)),
    "Near 2, but not near 3": ((0, 0.5, 0.01), (1, 0.15, 0.01), (-1, 0.1, 0.04)),
    "Away from everything": ((-1, 0, 0.06), (-1, 0, 0.06), (-1, 0, 0.06)),
}


def scale_of(array: Array) -> float:
    """The smallest power of two by which all entries become integers of 16 bits, after rounding."""
    largest = float(np.abs(array).max())
    scale = 2.0 ** math.ceil(math.log2(largest / LARGEST)) if largest else 1.0
    return scale if largest / scale < LARGEST + 0.5 else 2 * scale


def quantise(agent: GpiAgent) -> None:
    """Round the weights of all policies to what the page can hold, in place."""
    for stack in agent.policies.parameters.values():
        array = stack.numpy()
        scale = scale_of(array)
        array[...] = np.round(array / scale) * scale


def describe(world: LiveWorld, agents: dict[str, GpiAgent]) -> dict[str, Any]:
    """All that the page needs to know of a world and its quantised agents."""
    own = _rooms(world) if world.name == "rooms" else _racer(world)
    weights = _linear if world.name == "rooms" else _networks
    return {
        "kind": world.name,
        "gamma": world.settings["gamma"],
        "policies": list(world.tasks),
        "positionSigma": world.environment.get_wrapper_attr("layout").sigma,
        **own,
        **{
            which: {
                "name": world.agents[which],
                "floor": 0.0 if agent.clip is clip_at_zero else None,
                **weights(agent),
            }
            for which, agent in agents.items()
        },
    }


def _rooms(world: LiveWorld) -> dict[str, Any]:
    environment = world.environment
    assert isinstance(environment, ObjectCollection)
    layout = environment.layout
    vectors = layout.feature_space.vectors
    return {
        "centres": layout.centres.tolist(),
        "geometry": {
            "walls": layout.walls.tolist(),
            "objects": layout.objects.tolist(),
            "kindOfObject": list(layout.kind_of_object),
            "numKinds": len(layout.kinds),
            "objectRadius": layout.object_radius,
            "start": list(layout.start),
            "goal": list(layout.goal),
            "goalRadius": layout.goal_radius,
            "stepLength": layout.step_length,
            "stepNoise": layout.step_noise,
        },
        "kinds": [{"name": kind.name, "colour": kind.colour, "shape": kind.shape} for kind in layout.kinds],
        "features": vectors.tolist(),
        "pseudoInverse": _numbers(np.linalg.pinv(vectors)),
        "presets": [{"name": name, "rewards": rewards} for name, rewards in ROOM_PRESETS.items()],
    }


def _racer(world: LiveWorld) -> dict[str, Any]:
    environment = world.environment
    assert isinstance(environment, Racer)
    layout = environment.layout
    return {
        "centres": layout.centres.tolist(),
        "angleCentres": layout.angle_centres.tolist(),
        "angleSigma": layout.angle_sigma,
        "bins": np.linspace(0.0, 1.0, 11).tolist(),
        "geometry": {
            "markers": layout.markers.tolist(),
            "straightLength": layout.straight_length,
            "turnLength": layout.turn_length,
            "turnAngle": layout.turn_angle,
            "noise": layout.noise,
        },
        "fitSide": FIT_SIDE,
        "pseudoInverse": _numbers(np.linalg.pinv(fit_points())),
        "presets": [
            {
                "name": name,
                "bumps": [{"height": height, "mu": mu, "sigma": sigma} for height, mu, sigma in bumps],
            }
            for name, bumps in RACER_PRESETS.items()
        ],
    }


def _linear(agent: GpiAgent) -> dict[str, Any]:
    weight = agent.policies.parameters["weight"].numpy()
    return {"shape": list(weight.shape), "weights": _weights(weight)}


def _networks(agent: GpiAgent) -> dict[str, Any]:
    stored, shape = agent.policies.parameters, agent.shape
    layers = []
    for layer in range(3):
        weight, bias = stored[f"weights.{layer}"].numpy(), stored[f"biases.{layer}"].numpy()
        _, _, outputs, inputs = weight.shape
        layers.append(
            {"inputs": inputs, "outputs": outputs, "weights": _weights(weight), "biases": _weights(bias)}
        )
    return {"shape": [agent.num_policies, agent.num_actions, shape.groups, shape.size], "layers": layers}


def _weights(array: Array) -> dict[str, Any]:
    scale = scale_of(array)
    return {"scale": scale, "data": _base64(np.round(array / scale).astype("<i2"))}


def _numbers(array: Array) -> str:
    return _base64(array.astype("<f8"))


def _base64(array: Array) -> str:
    return base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
