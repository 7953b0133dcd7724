"""Hysteresis of the bootstrap action (T1-H in docs/theory.md), for states that recur. Not in the paper.

Where greedy actions tie, noise decides from step to step which of them is bootstrapped on, and xi swings
between optimal policies. With this rule policy k keeps one action b of every next state s',

    b <- argmax over a of q(a)    if  max over a of q(a) - q(b) > tau_t = scale t^-kappa,    at first b = 0,

and bootstraps on b. Here q(a) are the values that the listing would maximise: those of GPI for the policy
that is learned, its own for a source policy; t = 1, 2, ... counts the steps that the agent has learned. T1-H
proves that xi then converges for tables whose rates fade like n^-omega, 1/2 < omega < 1, if
0 < kappa < omega - 1/2; of constant rates and of function approximation it says nothing.

States are told apart to the last bit and an action is remembered for each, so observations must be few:
one-hot, whole numbers, or otherwise finite.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfr_fa.arrays import FloatArray, positive_number
from sfr_theory.errors import InputError

MAX_STATES = 100_000


@dataclass(frozen=True)
class Hysteresis:
    """Thresholds scale t^-kappa: `make_engine(..., hysteresis=Hysteresis(scale=1.0, kappa=0.2))`."""

    scale: float
    kappa: float = 0.2

    def __post_init__(self) -> None:
        for name in ("scale", "kappa"):
            object.__setattr__(self, name, positive_number(getattr(self, name), name))


class KeptActions:
    """The action that each policy keeps in each state that it has met."""

    def __init__(self, rule: Hysteresis) -> None:
        self.rule = rule
        self.kept: dict[tuple[int, bytes], int] = {}

    def forget(self, policies: int) -> None:
        """Keep what concerns the first `policies` policies."""
        self.kept = {key: action for key, action in self.kept.items() if key[0] < policies}

    def choose(self, policy: int, state: FloatArray, q: FloatArray, step: int) -> int:
        """The action of a policy to bootstrap on in a state with values q (A,), at the step t."""
        key = (policy, (state + 0.0).tobytes())  # -0 is 0
        kept, best = self.kept.get(key, 0), int(q.argmax())
        if q[best] - q[kept] > self.rule.scale * step**-self.rule.kappa:
            kept = best
        self.kept[key] = kept
        if len(self.kept) > MAX_STATES:
            raise InputError(
                f"hysteresis has seen more than {MAX_STATES} states; it works only where states recur "
                f"(one-hot ones, for example); leave it out"
            )
        return kept

    def state_dict(self) -> dict[str, Any]:
        return {
            "policies": [policy for policy, _ in self.kept],
            "states": [np.frombuffer(state).tolist() for _, state in self.kept],
            "actions": list(self.kept.values()),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        keys = zip(state["policies"], state["states"], strict=True)
        self.kept = {
            (policy, np.array(entries).tobytes()): action
            for (policy, entries), action in zip(keys, state["actions"], strict=True)
        }
