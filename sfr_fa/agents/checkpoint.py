"""Saved agents: plain arrays and JSON in one file, checked before anything is taken from it.

A file is an uncompressed `.npz` archive with

    header     JSON: format, version, a description of the agent, and its state as a tree
    array_0…   the tensors and arrays of the tree, which refers to them by number
    checksum   SHA-256 over header and arrays

There is no pickle in it, so reading a file never runs code. A file that is damaged, foreign, of another
version or of an agent that was built otherwise is refused with a sentence, before the reader has changed.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import io
import json
import math
import secrets
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from sfr_theory.errors import InputError

FORMAT, VERSION = "sfr-agent", 2
"""Version 1 had no columns (see `pack`); it is read like version 2."""

Arrays = list[NDArray[Any]]


def write_checkpoint(path: Path, description: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Write the file whole or not at all: to a temporary name first, then renamed."""
    arrays: Arrays = []
    content = {"format": FORMAT, "version": VERSION, "agent": description, "state": pack(state, arrays)}
    header = np.frombuffer(json.dumps(content).encode(), dtype=np.uint8)
    entries = {f"array_{i}": array for i, array in enumerate(arrays)}
    buffer = io.BytesIO()
    np.savez(buffer, allow_pickle=False, header=header, checksum=_checksum(header, arrays), **entries)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            # Opened as any new file is, so that others may read it if they may read the user's files.
            with temporary.open("xb") as file:
                file.write(buffer.getbuffer())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None


def read_checkpoint(path: Path, description: Mapping[str, Any]) -> dict[str, Any]:
    """The state in a file, if it is whole and belongs to an agent of this description."""
    try:
        file_content = path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    try:
        archive = np.load(io.BytesIO(file_content), allow_pickle=False)
        entries = dict(archive) if isinstance(archive, np.lib.npyio.NpzFile) else {}
    except (ValueError, EOFError, OSError, KeyError, NotImplementedError, RuntimeError, zipfile.BadZipFile):
        raise InputError(f"{path} is not a saved agent, or it is damaged") from None
    if not {"header", "checksum"} <= set(entries):
        raise InputError(f"{path} is not a saved agent")
    arrays = [entries[f"array_{i}"] for i in range(len(entries) - 2) if f"array_{i}" in entries]
    if not np.array_equal(_checksum(entries["header"], arrays), entries["checksum"]):
        raise InputError(f"{path} is damaged: its checksum does not match")
    content = json.loads(entries["header"].tobytes())
    if content.get("format") != FORMAT:
        raise InputError(f"{path} is not a saved agent")
    if content["version"] not in range(1, VERSION + 1):
        raise InputError(
            f"{path} has version {content['version']}; this program reads versions up to {VERSION}"
        )
    saved = content["agent"]
    for key, value in json.loads(json.dumps(description)).items():
        if saved.get(key) != value:
            raise InputError(
                f"{path} was saved by another agent: its {key} is {saved.get(key)}, this one's is {value}"
            )
    state: dict[str, Any] = unpack(content["state"], arrays)
    return state


def describe(part: Any) -> Any:
    """What a part is made of, as JSON: two agents that learn alike are described alike.

    Arrays are described by shape and digest, functions and classes by name, generators not at all. A lambda
    or a function within a function has no name of its own: a digest of its code stands for it, with its
    defaults and what it has enclosed. Another version of Python may compile it otherwise and refuse the file.
    """
    if isinstance(part, np.generic):
        part = part.item()
    if part is None or isinstance(part, (bool, int, float, str)):
        return part
    if isinstance(part, np.ndarray):
        return {"shape": list(part.shape), "sha256": hashlib.sha256(part.tobytes()).hexdigest()}
    if isinstance(part, (tuple, list)):
        return [describe(entry) for entry in part]
    if isinstance(part, functools.partial):
        positional = {"arguments": describe(part.args)} if part.args else {}
        keywords = {name: describe(value) for name, value in part.keywords.items()}
        return {"function": describe(part.func), **positional, **keywords}
    if isinstance(part, FunctionType) and "<" in part.__qualname__:
        return {
            "function": part.__qualname__,
            "sha256": hashlib.sha256(repr(_code(part.__code__)).encode()).hexdigest(),
            "defaults": [_describe_enclosed(value) for value in part.__defaults__ or ()],
            "enclosed": [_describe_enclosed(cell) for cell in part.__closure__ or ()],
        }
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        fields = {
            field.name: describe(getattr(part, field.name))
            for field in dataclasses.fields(part)
            if field.init and not isinstance(getattr(part, field.name), np.random.Generator)
        }
        return {"class": type(part).__qualname__, **fields}
    if isinstance(part, torch.dtype):
        return str(part)
    return getattr(part, "__qualname__", type(part).__qualname__)


def _code(code: CodeType) -> tuple[Any, ...]:
    """What a function does, without where it was written."""
    constants = [_code(entry) if isinstance(entry, CodeType) else entry for entry in code.co_consts]
    return code.co_code, code.co_names, code.co_varnames, constants


def _describe_enclosed(value: Any) -> Any:
    """A default or a cell of a function; functions by name alone, since they may enclose themselves."""
    if isinstance(value, CellType):
        try:
            value = value.cell_contents
        except ValueError:  # not assigned yet
            return None
    return value.__qualname__ if isinstance(value, FunctionType) else describe(value)


def _checksum(header: NDArray[Any], arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    digest = hashlib.sha256(header.tobytes())
    for array in arrays:
        digest.update(f"{array.dtype.str}{array.shape}".encode())
        digest.update(np.ascontiguousarray(array).data)
    return np.frombuffer(digest.digest(), dtype=np.uint8)


# --- Trees ----------------------------------------------------------------------------------------


def pack(value: Any, arrays: Arrays) -> Any:
    """A tree of JSON; tensors and arrays move to `arrays`, tuples and dictionaries are marked as such.

    An agent keeps hundreds of policies whose optimisers and readouts are built alike. So a list whose members
    are of one kind is written by columns, and what they all have in common only once:

        repeat             the same value n times
        tensors, arrays    end to end in one array, with their shapes
        rows               dictionaries with the same keys: a list for each key
        lists, tuples      of the same length: a list for each place
    """
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        return {"tensor": _add(arrays, value.detach().numpy().copy())}
    if isinstance(value, np.ndarray):
        return {"array": _add(arrays, value.copy())}
    if isinstance(value, Mapping):
        return {"items": [[key, pack(entry, arrays)] for key, entry in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [pack(entry, arrays) for entry in value]}
    if isinstance(value, list):
        return _pack_list(value, arrays)
    raise InputError(f"the agent's state holds {value!r}, which has no place in a file of arrays and JSON")


def _pack_list(values: list[Any], arrays: Arrays) -> Any:
    kinds, count = set(map(type, values)), len(values)
    if kinds <= {type(None), bool, int, float, str}:
        # By their text: 1, 1.0 and True are equal, and so are 0.0 and -0.0.
        alike = count > 1 and len(set(map(repr, values))) == 1
        return {"repeat": [count, values[0]]} if alike else values
    first = values[0]
    if count > 1 and len(kinds) == 1:
        if isinstance(first, (torch.Tensor, np.ndarray)) and len({value.dtype for value in values}) == 1:
            return _pack_end_to_end(values, arrays)
        if isinstance(first, Mapping) and len(set(map(tuple, values))) == 1:
            columns = [[key, pack([value[key] for value in values], arrays)] for key in first]
            return {"rows": [count, columns]}
        if isinstance(first, (list, tuple)) and len(set(map(len, values))) == 1:
            places = [pack(list(column), arrays) for column in zip(*values, strict=True)]
            return {"lists" if isinstance(first, list) else "tuples": [count, places]}
    return [pack(value, arrays) for value in values]


def _pack_end_to_end(values: list[Any], arrays: Arrays) -> Any:
    tensors = isinstance(values[0], torch.Tensor)
    plain = [value.detach().numpy() for value in values] if tensors else values
    shapes = pack([list(array.shape) for array in plain], arrays)
    index = _add(arrays, np.concatenate([array.ravel() for array in plain]))
    return {"tensors" if tensors else "arrays": [index, shapes]}


def _add(arrays: Arrays, array: NDArray[Any]) -> int:
    arrays.append(array)
    return len(arrays) - 1


def unpack(value: Any, arrays: Arrays) -> Any:
    """The tree that `pack` has taken apart."""
    if isinstance(value, list):
        return [unpack(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    match kind:
        case "tensor":
            return torch.from_numpy(arrays[content])
        case "array":
            return arrays[content]
        case "tuple":
            return tuple(unpack(content, arrays))
        case "repeat":
            count, one = content
            return [one] * count
        case "tensors" | "arrays":
            index, shapes = content
            parts = _split(arrays[index], unpack(shapes, arrays))
            return [torch.from_numpy(part) for part in parts] if kind == "tensors" else parts
        case "rows":
            keys = [key for key, _ in content[1]]
            rows = _lines(content[0], [column for _, column in content[1]], arrays)
            return [dict(zip(keys, row, strict=True)) for row in rows]
        case "lists":
            return [list(row) for row in _lines(content[0], content[1], arrays)]
        case "tuples":
            return _lines(content[0], content[1], arrays)
    return {key: unpack(entry, arrays) for key, entry in content}


def _split(array: NDArray[Any], shapes: Sequence[Sequence[int]]) -> Arrays:
    """The arrays of these shapes that lie end to end."""
    ends = np.cumsum([math.prod(shape) for shape in shapes])
    parts = np.split(array, ends[:-1])
    return [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def _lines(count: int, columns: Sequence[Any], arrays: Arrays) -> list[tuple[Any, ...]]:
    """Columns turned into `count` rows, also if there are no columns."""
    lists = [unpack(column, arrays) for column in columns]
    return list(zip(*lists, strict=True)) if lists else [()] * count
