"""Randomness of a repetition: one seed, and a generator for each purpose.

A stream depends on the seed, the repetition and its own name only. Two agents of a repetition therefore meet
the same tasks, the same noise of the environment and the same exploration, whatever else they draw; and a new
stream changes no other. A seed by itself means repetition 0, so that `make_engine(..., seed=0)` draws what
the first repetition of a run with seed 0 draws.

    tasks         which tasks are learned
    environment   noise of moves, initial states
    weights       initial weights of values, reward models and feature models
    exploration   two uniform numbers per step
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sfr_theory.errors import InputError


def check_seed(seed: Any, or_else: str = "") -> int:
    """`seed` as an int, if it is one that generators take."""
    if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed is {seed!r}; it must be an integer of at least 0{or_else}")
    return int(seed)


def stream(seed: int, repetition: int, name: str) -> np.random.Generator:
    """The generator of that name: its numbers depend on nothing else."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=(repetition, *name.encode())))


@dataclass(frozen=True)
class Streams:
    """The generators of one repetition."""

    tasks: np.random.Generator
    environment: np.random.Generator
    weights: np.random.Generator
    exploration: np.random.Generator

    @staticmethod
    def spawn(seed: int | Streams, repetition: int = 0) -> Streams:
        """All streams of a seed; streams stay as they are."""
        if isinstance(seed, Streams):
            return seed
        seed = check_seed(seed, ", or Streams")
        return Streams(*(stream(seed, repetition, field.name) for field in fields(Streams)))

    def state_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name).bit_generator.state for field in fields(self)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for field in fields(self):
            getattr(self, field.name).bit_generator.state = state[field.name]
