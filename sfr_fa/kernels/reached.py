"""What the compiled code of a world is made of: its methods, and whatever they name.

Numba writes constants into the code that it makes: global numbers and arrays, and those of every function
that is called, wherever they come from. `digest` covers all of it, by value, so that code which was stored
for other constants is never used. Names inside a module (`maps.GOAL`) count, too. NumPy and Numba count by
their versions.
"""

from __future__ import annotations

import hashlib
import inspect
from collections.abc import Iterable, Iterator
from enum import Enum
from types import BuiltinFunctionType, CodeType, FunctionType, ModuleType
from typing import Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

LIBRARIES = {"builtins", "math", "cmath", "operator", "typing", "numpy", "numba"}
Plain = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), np.generic)


class OpaqueError(Exception):
    """A value that nothing can be said of."""


def digest(world: type) -> str | None:
    """Of all that the methods of a class reach; None if there is something that cannot be compared."""
    found = hashlib.sha256(f"{np.__version__} {numba.__version__}".encode())
    try:
        for piece in _pieces(world, {}):
            found.update(repr(piece).encode() + b"\0")
    except OpaqueError:
        return None
    return found.hexdigest()


def _pieces(value: Any, seen: dict[int, int]) -> Iterator[Any]:
    """What tells a value from others, as things with a plain repr; of an object seen before, its number."""
    if isinstance(value, Plain):
        yield type(value).__name__, value
    elif id(value) in seen:
        yield "seen", seen[id(value)]
    elif isinstance(value, np.ufunc):
        yield "ufunc", value.__name__
    elif _of_a_library(value):
        yield getattr(value, "__module__", ""), value.__name__
    else:
        seen[id(value)] = len(seen)
        yield from _parts(value, seen)


def _parts(value: Any, seen: dict[int, int]) -> Iterator[Any]:
    if isinstance(value, np.ndarray) and not value.dtype.hasobject:
        yield str(value.dtype), value.shape, value.tobytes()
    elif isinstance(value, (tuple, list)):
        yield type(value).__name__, len(value)
        for entry in value:
            yield from _pieces(entry, seen)
    elif isinstance(value, Dispatcher):
        yield sorted((name, str(option)) for name, option in value.targetoptions.items())
        yield from _pieces(value.py_func, seen)
    elif isinstance(value, FunctionType):
        yield from _of_function(value, seen)
    elif isinstance(value, type) and issubclass(value, Enum):
        yield value.__qualname__
        for member in value:
            yield member.name
            yield from _pieces(member.value, seen)
    elif isinstance(value, type) and hasattr(value, "_fields"):
        yield value.__qualname__, value._fields
        yield from _pieces(tuple(value._field_defaults.items()), seen)  # type: ignore[attr-defined]
        for name in dir(value):
            found = inspect.getattr_static(value, name)
            if not name.startswith("_") and isinstance(found, FunctionType | Dispatcher):
                yield name
                yield from _pieces(found, seen)
    else:
        raise OpaqueError


def _of_function(function: FunctionType, seen: dict[int, int]) -> Iterator[Any]:
    """Its code and, in the order of their names, what it names."""
    codes = list(_codes(function.__code__))
    for code in codes:
        yield code.co_code, code.co_names, code.co_varnames, code.co_freevars, code.co_cellvars
        yield tuple(constant for constant in code.co_consts if not isinstance(constant, CodeType))
    yield from _pieces(function.__defaults__ or (), seen)
    yield from _pieces(tuple(sorted((function.__kwdefaults__ or {}).items())), seen)
    names = {name for code in codes for name in code.co_names}
    variables = {name: function.__globals__[name] for name in names if name in function.__globals__}
    variables |= inspect.getclosurevars(function).nonlocals
    for name, value in sorted(variables.items()):
        if isinstance(value, ModuleType) and not _of_a_library(value):
            inside = sorted(names & vars(value).keys())
            entries: Iterable[tuple[str, Any]] = ((f"{name}.{entry}", vars(value)[entry]) for entry in inside)
        else:
            entries = [(name, value)]
        for label, entry in entries:
            yield label
            yield from _pieces(entry, seen)


def _codes(code: CodeType) -> Iterator[CodeType]:
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)


def _of_a_library(value: Any) -> bool:
    if not isinstance(value, (ModuleType, FunctionType, BuiltinFunctionType, type)):
        return False
    home = value.__name__ if isinstance(value, ModuleType) else value.__module__
    return str(home).partition(".")[0] in LIBRARIES
