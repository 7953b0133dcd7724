"""Which stored policies take part in GPI: all of them (the paper), or a few.

A rule is asked when a task starts, with the readouts v_1 ... v_i of all tasks so far, and answers with
indices; the current policy i always takes part. Theorem 2 says that the policies nearest in reward carry the
guarantee; its sharp form, that a reward and its positive multiples plus constants count as one.

    all_policies   1 ... i
    Nearest(m)     the m earlier policies j with the smallest max |v_i - v_j|
    Bound(m)       those with the smallest min over a > 0, c of max |v_i - a v_j - c|: the least sharp bound
    Recent(m)      the m before i
    Random(m)      m earlier ones, from a generator seeded by i, so that a resumed run draws the same

A readout that is learned online says little when its task starts; `Nearest` and `Bound` are for rewards that
are given. The maximum is over entries of readouts, which for SFR are the rewards of all features.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from sfr_fa.arrays import positive_integer
from sfr_theory.bounds import affine_distance
from sfr_theory.errors import InputError, in_short

GpiPolicies = Callable[[Sequence[Tensor]], NDArray[np.int64]]
"""Readouts (D,) of all tasks, the current one last -> increasing indices, the current one among them."""


def participants(rule: GpiPolicies, readouts: Sequence[Tensor]) -> NDArray[np.int64]:
    """What a rule answers, if it is what a rule may answer: compiled code reads weights by these indices."""
    try:
        return check_participants(rule(readouts), len(readouts))
    except InputError:
        raise
    except Exception as error:
        what = " ".join(f"{type(error).__name__}: {error}".split())
        raise InputError(f"gpi_policies fails on the readouts of {len(readouts)} tasks: {what}") from error


def check_participants(chosen: Any, num_policies: int) -> NDArray[np.int64]:
    """Increasing indices of stored policies, the last among them."""
    try:
        indices = np.asarray(chosen)
    except ValueError:  # ragged
        indices = np.array(None)
    if (
        indices.ndim != 1
        or indices.dtype.kind not in "iu"
        or not len(indices)
        or (np.diff(indices.astype(np.int64)) <= 0).any()
        or indices[0] < 0
        or indices[-1] != num_policies - 1
    ):
        raise InputError(
            f"gpi_policies chose {in_short(chosen)} of {num_policies} policies; it must "
            f"return increasing indices, the last of them {num_policies - 1}, the policy of the current task"
        )
    return indices.astype(np.int64)


def all_policies(readouts: Sequence[Tensor]) -> NDArray[np.int64]:
    """Every stored policy."""
    return np.arange(len(readouts))


@dataclass(frozen=True)
class _Few:
    """At most `count` earlier policies, and the current one."""

    count: int

    def __post_init__(self) -> None:
        name = f"how many policies {type(self).__name__} chooses"
        object.__setattr__(self, "count", positive_integer(self.count, name))

    def __call__(self, readouts: Sequence[Tensor]) -> NDArray[np.int64]:
        current = len(readouts) - 1
        return np.append(np.sort(self._earlier(readouts)), current).astype(np.int64)

    def _earlier(self, readouts: Sequence[Tensor]) -> NDArray[np.int64]:
        raise NotImplementedError


def _largest_difference(target: NDArray[Any], source: NDArray[Any]) -> NDArray[Any]:
    return np.abs(target - source).max(axis=-1)


@dataclass(frozen=True)
class Nearest(_Few):
    """Those whose rewards are most like the current task's; of equally near ones, the first."""

    distance: ClassVar[Callable[..., NDArray[Any]]] = staticmethod(_largest_difference)

    def _earlier(self, readouts: Sequence[Tensor]) -> NDArray[np.int64]:
        if len(readouts) == 1:
            return np.arange(0)
        *earlier, current = (readout.detach().numpy() for readout in readouts)
        sources = np.array(earlier)
        distance = self.distance(np.broadcast_to(current, sources.shape), sources)
        return np.argsort(distance, kind="stable")[: self.count]


@dataclass(frozen=True)
class Bound(Nearest):
    """Those that give the current task the sharpest guarantee."""

    distance: ClassVar[Callable[..., NDArray[Any]]] = staticmethod(affine_distance)


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


RULES = {"nearest": Nearest, "bound": Bound, "recent": Recent, "random": Random}


def gpi_policies_by_name(text: str) -> GpiPolicies:
    """ "all", "nearest 5", "bound 5", "recent 5" or "random 5"."""
    if text == "all":
        return all_policies
    name, _, count = text.partition(" ")
    if name not in RULES or not count.isdecimal():
        raise InputError(
            f"gpi_policies is {text!r}; it must be 'all', or {', '.join(RULES)} with a number: 'nearest 5'"
        )
    return RULES[name](int(count))
