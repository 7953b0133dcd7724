"""State in files: tensors by safetensors, all else as JSON, checked before anything is taken from it.

A file is a `.safetensors` archive of the tensors and arrays of a state, each under its place in the tree
("agent/library/parameters/weight"), with metadata

    format, version
    description    what the state is of, as JSON
    state          the tree as JSON, in which names stand for tensors and arrays
    sha256         over all of this

Reading a file never runs code. One that is damaged, foreign, of another version or of something that was
built differently is refused with a sentence, before the reader has changed.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from types import CellType, CodeType, FunctionType
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy
import torch
from numpy.typing import NDArray

from sfr_fa.feature_spaces import DiscreteFeatures
from sfr_theory.atomic import write_atomic
from sfr_theory.errors import InputError, in_short
from sfr_theory.reading import check_readable, known_content

FORMAT, VERSION = "sfr-state", "4"

Arrays = dict[str, NDArray[Any]]

MAY_CHANGE = {"may_change": True}
"""Metadata of a field that does not describe what was learned: `load` takes another value."""


def write_checkpoint(path: Path, description: Mapping[str, Any], state: Mapping[str, Any]) -> None:
    """Write the file whole or not at all."""
    arrays: Arrays = {}
    metadata = {
        "format": FORMAT,
        "version": VERSION,
        "description": json.dumps(description),
        "state": json.dumps(pack(state, arrays)),
    }
    metadata["sha256"] = _checksum(metadata, arrays)
    write_atomic(path, safetensors.numpy.save(arrays, metadata))


def read_checkpoint(path: Path, description: Mapping[str, Any]) -> dict[str, Any]:
    """The state in a file, if it is whole and of something with this description."""
    check_readable(path)
    try:
        with safetensors.safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except (safetensors.SafetensorError, ValueError, TypeError, KeyError, MemoryError):
        raise InputError(f"{path} is not a saved state, or it is damaged") from None
    if metadata.get("format") != FORMAT:
        raise InputError(f"{path} is not a saved state")
    if metadata.get("version") != VERSION:
        raise InputError(
            f"{path} has version {metadata.get('version')}; this program reads version {VERSION}"
        )
    if _checksum(metadata, arrays) != metadata.get("sha256"):
        raise InputError(f"{path} is damaged: its checksum does not match")
    with known_content(path, "this program"):
        saved, own = json.loads(metadata["description"]), json.loads(json.dumps(description))
        others = [
            f"another {key}: it is {in_short(saved.get(key))} there and {in_short(own.get(key))} here"
            for key in own | saved
            if saved.get(key) != own.get(key)
        ]
        if others:
            raise InputError(f"{path} was saved with {'; with '.join(others)}")
        state: dict[str, Any] = unpack(json.loads(metadata["state"]), arrays)
        return state


def load_state(part: Any, state: Any, path: Path) -> None:
    """`part.load_state_dict`, after which the part is as before if the state is not one of its own."""
    before = copy.deepcopy(part.state_dict())
    try:
        with known_content(path, "this program"):
            part.load_state_dict(state)
    except InputError:
        part.load_state_dict(before)
        raise


def _checksum(metadata: Mapping[str, str], arrays: Arrays) -> str:
    digest = hashlib.sha256(
        json.dumps([(k, v) for k, v in sorted(metadata.items()) if k != "sha256"]).encode()
    )
    for name, array in sorted(arrays.items()):
        digest.update(f"{name} {array.dtype.str} {array.shape}".encode())
        digest.update(array.data)
    return digest.hexdigest()


# --- Trees ----------------------------------------------------------------------------------------


def pack(value: Any, arrays: Arrays, place: str = "") -> Any:
    """A tree of JSON; tensors and arrays move to `arrays`, tuples and dictionaries are marked as such."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, torch.Tensor):
        arrays[place] = value.detach().contiguous().numpy()
        return {"tensor": place}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        arrays[place] = np.ascontiguousarray(value).reshape(value.shape)  # which makes () of ()
        return {"array": place}
    if isinstance(value, Mapping):
        return {"items": [[key, pack(entry, arrays, f"{place}/{key}")] for key, entry in value.items()]}
    if isinstance(value, (list, tuple)):
        entries = [pack(entry, arrays, f"{place}/{k}") for k, entry in enumerate(value)]
        return entries if isinstance(value, list) else {"tuple": entries}
    raise InputError(f"the state holds {value!r}, which has no place in a file of tensors and JSON")


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
    return {key: unpack(entry, arrays) for key, entry in content}


# --- Descriptions ---------------------------------------------------------------------------------


def describe(part: Any) -> Any:
    """What a part is made of, as JSON: two agents whose weights mean the same are described alike.

    Arrays are described by shape and digest, functions and classes by name, generators not at all, other
    objects by their class and attributes, except for private ones, which may be caches. A lambda
    or a function within a function has no name of its own: a digest of its code stands for it, with its
    defaults and what it has enclosed. Another version of Python may compile it differently and refuse the
    file.
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
    if isinstance(part, DiscreteFeatures) and part.grow:
        # Which features it has come to hold is part of the state.
        return {"class": "DiscreteFeatures", "grow": True, "dimensions": part.dimensions}
    if dataclasses.is_dataclass(part) and not isinstance(part, type):
        fields = {
            field.name: describe(getattr(part, field.name))
            for field in dataclasses.fields(part)
            if field.init
            and not field.metadata.get("may_change")
            and not (isinstance(part, DiscreteFeatures) and field.name == "grow")
            and not isinstance(getattr(part, field.name), np.random.Generator)
        }
        return {"class": type(part).__qualname__, **fields}
    if isinstance(part, torch.dtype):
        return str(part)
    name = getattr(part, "__qualname__", None)
    if name is not None:
        return name
    attributes = {
        name: _describe_attribute(value)
        for name, value in sorted(getattr(part, "__dict__", {}).items())
        if not name.startswith("_")
    }
    return {"class": type(part).__qualname__, **attributes} if attributes else type(part).__qualname__


def _describe_attribute(value: Any) -> Any:
    """Of an object; others that it refers to by their class alone, since they may refer to it."""
    is_object = hasattr(value, "__dict__") and not isinstance(value, (type, FunctionType))
    return type(value).__qualname__ if is_object and not dataclasses.is_dataclass(value) else describe(value)


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
