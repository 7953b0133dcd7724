"""Ours: every statement of the paper on object collection, in many worlds that the paper may have meant.

The paper does not print the width sigma of the position's code, shows in a picture only which kind of object
stands where, fits SF's weights to general rewards by a rule that does not settle, and prints two losses for
the one-step model. A world is one choice of each:

    sigma        0.05, 0.1 (ours)
    placement    ours, the kinds in blocks (Barreto's: in turn), eight drawn from all placements
    SF's fit     L1 (ours), least squares
    MB's rule    delta rule (ours), squares

The places of the objects stay as they are. Sizes are reduced: a ratio of two agents in one world rests on
few repetitions, and what counts is in how many worlds a statement holds and which choice decides that.
`experiments.analysis.multiverse` reads it; the racer's one choice has a config of its own.

Predicted before the runs, from trials of other seeds: SFR ahead of SF on linear and general tasks in all
worlds; SF below half of SFR at the highest level in few worlds, which placement decides, and in none with
least squares; MB SFR by the delta rule within 10 % of SFR, by squares below half; Q below a quarter.
"""

from dataclasses import replace

import numpy as np

from experiments.configs._shared import BARRETO, GENERAL, LEVELS, LINEAR, MB_SFR, MB_SFR_SQUARES, SF, SFR, Q
from sfr_fa.environments.layouts import BARRETO_LAYOUT, OBJECT_COLLECTION_LAYOUT, ObjectLayout
from sfr_fa.runs.config import ExperimentConfig, Part, Profile, Setting

SIGMAS = (0.05, 0.1)
DRAWN = 8
SEED = 20_000
"""Of the placements that are drawn."""
SF_LEAST_SQUARES = replace(SF, label="SF, least squares", weight_fit="least_squares")
LOWEST, HIGHEST = LEVELS[0], LEVELS[-1]
PARTS = (
    Part(LINEAR, (Q, SF, SFR, MB_SFR, MB_SFR_SQUARES)),
    Part(GENERAL, (Q, SF, SF_LEAST_SQUARES, SFR, MB_SFR, MB_SFR_SQUARES)),
    Part(LOWEST, (SF, SF_LEAST_SQUARES, SFR)),
    Part(HIGHEST, (SF, SF_LEAST_SQUARES, SFR)),
    Part(BARRETO, (Q, SF, SFR, MB_SFR, MB_SFR_SQUARES)),
)


def placements(layout: ObjectLayout) -> dict[str, tuple[int, ...]]:
    """The kind of each object, by the name of the placement; as many of each kind everywhere."""
    ours = tuple(layout.kind_of_object)
    blocks = tuple(sorted(ours))
    in_turn = tuple(range(len(layout.kinds))) * (len(ours) // len(layout.kinds))
    rng = np.random.default_rng(SEED)
    drawn = {f"drawn {k}": tuple(rng.permutation(ours).tolist()) for k in range(1, DRAWN + 1)}
    return {"ours": ours, **({"in turn": in_turn} if ours == blocks else {"blocks": blocks}), **drawn}


def layout(setting: Setting) -> ObjectLayout:
    return BARRETO_LAYOUT if setting.environment == BARRETO.environment else OBJECT_COLLECTION_LAYOUT


def worlds(setting: Setting) -> list[Setting]:
    return [
        replace(
            setting,
            name=f"{setting.name}, sigma {sigma:g}, {name}",
            environment_options={"sigma": sigma, "kinds": list(kinds)},
        )
        for sigma in SIGMAS
        for name, kinds in placements(layout(setting)).items()
    ]


CONFIG = ExperimentConfig(
    name="multiverse",
    title="The choices that the paper does not print, crossed",
    parts=tuple(Part(world, part.agents) for part in PARTS for world in worlds(part.setting)),
    profiles={
        "smoke": Profile(tasks=2, steps=100, repetitions=1),
        "reduced": Profile(tasks=60, steps=20_000, repetitions=3),
        "paper": Profile(tasks=300, steps=20_000, repetitions=10),
    },
)
