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

FORMAT, VERSION = "sfr-agent", 1

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
                file.write(buffer.getvalue())
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
    if content["version"] != VERSION:
        raise InputError(f"{path} has version {content['version']}; this program reads version {VERSION}")
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
        digest.update(np.ascontiguousarray(array).tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def pack(value: Any, arrays: Arrays) -> Any:
    """A tree of JSON; tensors and arrays move to `arrays`, tuples and dictionaries are marked as such."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, list) and {int, float} >= set(map(type, value)):
        return value  # counts of all tasks are some ten thousand numbers
    if isinstance(value, torch.Tensor):
        arrays.append(value.detach().numpy().copy())
        return {"tensor": len(arrays) - 1}
    if isinstance(value, np.ndarray):
        arrays.append(value.copy())
        return {"array": len(arrays) - 1}
    if isinstance(value, Mapping):
        return {"items": [[key, pack(entry, arrays)] for key, entry in value.items()]}
    if isinstance(value, tuple):
        return {"tuple": [pack(entry, arrays) for entry in value]}
    if isinstance(value, list):
        return [pack(entry, arrays) for entry in value]
    raise InputError(f"the agent's state holds {value!r}, which has no place in a file of arrays and JSON")


def unpack(value: Any, arrays: Arrays) -> Any:
    """The tree that `pack` has taken apart."""
    if isinstance(value, list):
        return [unpack(entry, arrays) for entry in value]
    if not isinstance(value, dict):
        return value
    ((kind, content),) = value.items()
    if kind == "tensor":
        return torch.from_numpy(arrays[content])
    if kind == "array":
        return arrays[content]
    if kind == "tuple":
        return tuple(unpack(entry, arrays) for entry in content)
    return {key: unpack(entry, arrays) for key, entry in content}
