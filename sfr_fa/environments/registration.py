"""The names under which Gymnasium makes our environments.

Entry points are text, so that registering imports neither the environments nor Numba.
"""

from __future__ import annotations

import gymnasium

ENVIRONMENTS = {
    "sfr/ObjectCollection-v0": "sfr_fa.environments.object_collection:ObjectCollection",
    "sfr/ObjectCollectionBarreto-v0": "sfr_fa.environments.object_collection:ObjectCollectionBarreto",
    "sfr/Racer-v0": "sfr_fa.environments.racer:Racer",
}


def register_environments() -> None:
    """Make the environments known to `gymnasium.make`; a second call does nothing."""
    for name, entry_point in ENVIRONMENTS.items():
        if name not in gymnasium.registry:
            gymnasium.register(id=name, entry_point=entry_point)
