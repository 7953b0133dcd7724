"""Engines run an agent through a task: `reference` step by step, `compiled` in one call, on the same path."""

from sfr_fa.engines.base import Engine, EpisodeLimit, Evaluation, TaskResult
from sfr_fa.engines.make import ENGINES, make_engine
from sfr_fa.streams import Streams

__all__ = ["ENGINES", "Engine", "EpisodeLimit", "Evaluation", "Streams", "TaskResult", "make_engine"]
