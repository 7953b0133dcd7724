"""Randomness of a repetition: one seed, a generator for each purpose.

A stream depends on the seed and its own name only. Two agents of a repetition therefore meet the same tasks,
the same noise of the environment and the same exploration, whatever else they draw; and a new stream changes
no other.

    tasks         which tasks are learned
    environment   noise of moves, initial states
    weights       initial weights of values, reward models and feature models
    exploration   two uniform numbers a step
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from sfr_fa.agents import AgentStreams
from sfr_theory.errors import InputError


@dataclass(frozen=True)
class Streams:
    """The generators of one repetition."""

    tasks: np.random.Generator
    environment: np.random.Generator
    weights: np.random.Generator
    exploration: np.random.Generator

    @staticmethod
    def spawn(seed: int) -> Streams:
        """All streams of a seed."""
        if not isinstance(seed, (int, np.integer)) or isinstance(seed, bool) or seed < 0:
            raise InputError(f"seed is {seed!r}; it must be an integer of at least 0")
        return Streams(
            **{
                field.name: np.random.default_rng(
                    np.random.SeedSequence(int(seed), spawn_key=tuple(field.name.encode()))
                )
                for field in fields(Streams)
            }
        )

    @property
    def of_agent(self) -> AgentStreams:
        """The two streams that an agent draws from."""
        return AgentStreams(self.weights, self.exploration)

    def state_dict(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name).bit_generator.state for field in fields(self)}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        for field in fields(self):
            getattr(self, field.name).bit_generator.state = state[field.name]
