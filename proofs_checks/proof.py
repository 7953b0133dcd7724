"""What a proof file exports.

A `Proof` belongs to one claim of the catalogue and computes a `CheckResult` for it, anew at every run.
A proof that cannot fail proves nothing, so beside it stand its `teeth`: broken variants of the statement
(a constant lowered, an assumption dropped, gamma forgotten) that the same machinery must reject.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sfr_theory.claims import CheckResult


@dataclass(frozen=True)
class Broken:
    """A broken variant; `is_rejected` runs the proof's machinery on it: was it found false?"""

    sentence: str
    is_rejected: Callable[[], bool]


@dataclass(frozen=True)
class Proof:
    """A check of one claim. `slow` ones are left out by --fast; `needs_z3` ones need the SMT solver."""

    claim: str
    check: Callable[[], CheckResult]
    teeth: tuple[Broken, ...]
    slow: bool = False
    needs_z3: bool = False
