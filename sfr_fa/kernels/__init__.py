"""Compiled loops over plain arrays; nothing here imports the rest of the package.

`loop_for(world, loop)` is a loop that is compiled for the worlds of one class. Functions marked `part`, the
loops among them, and the methods of worlds and values are its parts: Numba compiles them into what calls
them, and called from Python they are plain Python. The rest prepares arrays.

Compiled loops are stored by `sfr_theory.compiled`, by a digest of all kernels, of the world's module and of
what its methods reach (`sfr_fa.kernels.reached`).
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from sfr_fa.kernels.arrays import UNCHECKED
from sfr_fa.kernels.linking import LoopCompiler
from sfr_fa.kernels.loop import run_task
from sfr_fa.kernels.reached import digest
from sfr_theory.compiled import stored

Loop = Callable[..., Any]

_HERE = Path(__file__).parent


_REACHED: dict[type, str | None] = {}
"""What worlds reached when they were compiled in this process."""


def has_changed(world: type) -> bool:
    """Since it was compiled in this process, once, with the constants that were found."""
    return world in _REACHED and digest(world) != _REACHED[world]


@functools.cache
def loop_for(world: type, loop: Loop = run_task) -> Loop:
    """A loop, compiled for worlds of a class at first use, or loaded; its arguments come in one tuple.

    Parts count no references. What is compiled as their entry does: whatever Python hands over is counted
    there, once.
    """

    def entry(arguments: tuple[Any, ...]) -> Any:
        return loop(*arguments)

    entry.__name__ = loop.__name__
    # Without the interpreter lock, so that Ctrl-C and progress are handled meanwhile.
    options = {"nogil": True, **UNCHECKED, "pipeline_class": LoopCompiler}
    source, reached = _source_of(world), _REACHED.setdefault(world, digest(world))
    # A class defined in a script or a function is a new one in every process, and is never found again.
    is_new = world.__module__ == "__main__" or "<locals>" in world.__qualname__
    if source is None or reached is None or is_new:
        compiled: Loop = numba.njit(**options)(entry)
        return compiled
    return stored(entry, [*sorted(_HERE.glob("*.py")), source], world.__module__, reached, **options)


def _source_of(world: type) -> Path | None:
    try:
        return Path(inspect.getfile(world))
    except (TypeError, OSError):
        return None
