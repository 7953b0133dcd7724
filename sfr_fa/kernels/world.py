"""What the compiled loop asks of a world: a NamedTuple of arrays and numbers with a few methods.

    class Walk(NamedTuple):
        position: IntArray                              what changes is in arrays
        length: int

        def reset(self, rng):                           begin an episode
            self.position[0] = rng.integers(0, self.length)

        def step(self, action, rng):                    make a step; True where it ends the episode
            self.position[0] += 2 * action - 1
            return not 0 < self.position[0] < self.length - 1

        def encode(self, state):                        write the state's code; it comes filled with zeros
            state[self.position[0]] = 1

        def feature(self):                              the number of the feature that the step has shown
            return 1 if self.position[0] == self.length - 1 else 0

A world with features in a box has `features(phi)` in place of `feature()`: it writes phi. Whatever is random
is drawn from `rng`, a `numpy.random.Generator`. The methods are plain Python for whoever calls them (the
Gymnasium environment: `sfr_fa.environments.world_env`) and are compiled into the loop, where they draw the
same numbers. So they use what Numba compiles, and share code in functions marked `numba.njit`.

Methods of worlds that are not ours check every index: one outside an array is an IndexError, as in Python.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from typing import Any, Protocol

import numpy as np
from numba import types
from numba.extending import overload_method, register_jitable

from sfr_fa.kernels.arrays import FOR_PYTHON_ONLY, INLINED, PART, Reals


class Moves(Protocol):
    """What every world has."""

    def reset(self, rng: np.random.Generator) -> None:
        """Begin an episode."""

    def step(self, action: int, rng: np.random.Generator) -> bool:
        """Make a step; whether it ended the episode."""

    def encode(self, state: Reals) -> None:
        """Write the code of the present state into an array of zeros."""


class World(Moves, Protocol):
    """What compiled code may ask of a world; each has `feature` or `features`."""

    def feature(self) -> int:
        """The number of the feature that the last step has shown, if features are a finite set."""

    def features(self, phi: Reals) -> None:
        """Write the features that the last step has shown, if they fill a box, into zeros."""

    def cell(self) -> int:
        """In which cell of the GPI filter the present state is; a world without cells is not filtered."""


def _no_cell(self: Any) -> int:
    return 0


@functools.cache
def _with_checked_indices(method: Callable[..., Any], arguments: int) -> Callable[..., Any]:
    """A method that calls another, which is compiled so that an index outside an array raises IndexError.

    It may make arrays, unlike our own, so references to them are counted.
    """
    checked = register_jitable(boundscheck=True, _nrt=True, **FOR_PYTHON_ONLY)(method)
    return (
        lambda self: checked(self),
        lambda self, one: checked(self, one),
        lambda self, one, two: checked(self, one, two),
    )[arguments]


def compile_methods(protocol: type, called: Collection[str] = ()) -> None:
    """Let compiled code call the methods of a protocol on any NamedTuple whose class has them.

    Numba asks with the types of a call, and compiles the function that it is given for them, as a part.
    Methods are inlined, since most are short; except for those that are `called`, the long ones and those
    that are needed once in a task, which saves time of compilation.
    """
    for name, stub in vars(protocol).items():
        if not inspect.isfunction(stub) or name.startswith("_"):
            continue

        def method_of(self: Any, *arguments: Any, name: str = name) -> Any:
            world = self.instance_class
            found = getattr(world, name, _no_cell if name == "cell" else None)
            found = getattr(found, "py_func", found)
            if found is None or found is _no_cell or world.__module__.startswith(__package__ + "."):
                return found
            return _with_checked_indices(found, len(arguments))

        # Numba reads the parameters of the call from here.
        method_of.__signature__ = inspect.signature(stub)  # type: ignore[attr-defined]
        options = PART if name in called else INLINED
        register: Any = overload_method
        register(types.BaseNamedTuple, name, strict=False, jit_options=options)(method_of)


compile_methods(Moves)
compile_methods(World)
