"""Which stored policies take part in GPI: all of them (the paper), or few.

A rule is asked when a task starts, with the readouts v_1 ... v_i of all tasks so far, and answers with
indices; the current policy i always takes part. Theorem 2 says that the policies nearest in reward carry the
guarantee.

    all_policies   1 ... i
    Nearest(m)     the m earlier policies whose readouts are nearest to v_i (largest difference of an entry)
    Recent(m)      the m before i
    Random(m)      m earlier ones, from a generator seeded by i, so that a resumed run draws alike

A readout that is learned online says little when its task starts; `Nearest` is for rewards that are given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sfr_theory.errors import InputError

GpiPolicies = Callable[[Sequence[Tensor]], NDArray[np.int64]]
"""Readouts (D,) of all tasks, the current one last -> increasing indices, the current one among them."""


def all_policies(readouts: Sequence[Tensor]) -> NDArray[np.int64]:
    """Every stored policy."""
    return np.arange(len(readouts))


@dataclass(frozen=True)
class _Few:
    """At most `count` earlier policies, and the current one."""

    count: int

    def __post_init__(self) -> None:
        if not isinstance(self.count, int) or isinstance(self.count, bool) or self.count < 1:
            raise InputError(f"GPI over {self.count!r} policies is not possible; ask for at least 1")

    def __call__(self, readouts: Sequence[Tensor]) -> NDArray[np.int64]:
        current = len(readouts) - 1
        return np.append(np.sort(self._earlier(readouts)), current).astype(np.int64)

    def _earlier(self, readouts: Sequence[Tensor]) -> NDArray[np.int64]:
        raise NotImplementedError


@dataclass(frozen=True)
class Nearest(_Few):
    """Those whose rewards are most like the current task's; the first of equally near ones."""

    def _earlier(self, readouts: Sequence[Tensor]) -> NDArray[np.int64]:
        *earlier, current = (readout.detach().numpy() for readout in readouts)
        distance = np.array([np.abs(readout - current).max() for readout in earlier])
        return np.argsort(distance, kind="stable")[: self.count]


@dataclass(frozen=True)
class Recent(_Few):
    """Those of the tasks just before."""

    def _earlier(self, readouts: Sequence[Tensor]) -> NDArray[np.int64]:
        return np.arange(len(readouts) - 1)[-self.count :]


@dataclass(frozen=True)
class Random(_Few):
    """Any, drawn anew for each task."""

    def _earlier(self, readouts: Sequence[Tensor]) -> NDArray[np.int64]:
        earlier = len(readouts) - 1
        rng = np.random.default_rng(earlier)
        return rng.choice(earlier, size=min(self.count, earlier), replace=False)


RULES = {"nearest": Nearest, "recent": Recent, "random": Random}


def gpi_policies_by_name(text: str) -> GpiPolicies:
    """ "all", "nearest 5", "recent 5" or "random 5"."""
    if text == "all":
        return all_policies
    name, _, count = text.partition(" ")
    if name not in RULES or not count.isdigit():
        raise InputError(
            f"gpi_policies is {text!r}; it must be 'all', or {', '.join(RULES)} with a number: 'nearest 5'"
        )
    return RULES[name](int(count))
