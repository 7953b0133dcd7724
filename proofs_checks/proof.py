"""What a proof file exports.

A `Proof` belongs to one claim of the catalogue and computes a `CheckResult` for it by one method, anew at
every run. A proof that cannot fail proves nothing, so it comes with broken variants of the statement (a
constant lowered, an assumption dropped, gamma forgotten) that the same machinery must reject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sfr_theory.claims import CheckResult, Method


@dataclass(frozen=True)
class Broken:
    """A broken variant; `is_rejected` runs the proof's machinery on it: was it found false?"""

    sentence: str
    is_rejected: Callable[[], bool]


@dataclass(frozen=True)
class Proof:
    """A check of one claim. `slow` ones are left out by --fast."""

    claim: str
    method: Method
    check: Callable[[], CheckResult]
    broken: tuple[Broken, ...]
    slow: bool = False
