"""The one way in which outside files are read: whole, bounded, and refused in a sentence.

A pipe or a device in place of a file might never end, and a file may be larger than memory: what is not a
regular file, or has more bytes than its reader allows, is refused before anything is read.
"""

from __future__ import annotations

import contextlib
import csv
import json
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from sfr_theory.errors import InputError

MAX_JSON_BYTES = 64 * 2**20
"""Parsed, JSON takes some ten times as much memory."""
MAX_BYTES = 256 * 2**20
"""Tables, archives of arrays, pictures: the largest that this project writes has a few megabytes."""


@contextlib.contextmanager
def input_errors(path: Path) -> Iterator[None]:
    """What went wrong with reading a file, in a sentence."""
    try:
        yield
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror or error}") from None
    except ValueError as error:  # a zero byte in its name
        raise InputError(f"cannot read {str(path)!r}: {error}") from None


def check_readable(path: Path, limit: int | None = None) -> None:
    """Refuse what is not a file, and what has more than `limit` bytes."""
    with input_errors(path):
        found = path.stat()
    if stat.S_ISDIR(found.st_mode):
        raise InputError(f"cannot read {path}: it is a folder")
    if not stat.S_ISREG(found.st_mode):
        raise InputError(f"cannot read {path}: it is a pipe or a device; copy its content to a file")
    if limit is not None and found.st_size > limit:
        raise InputError(f"{path} has {found.st_size:,} bytes; at most {limit:,} are read")


def read_bytes(path: Path, limit: int = MAX_BYTES) -> bytes:
    """The content of a file."""
    check_readable(path, limit)  # opening a pipe would wait for who writes to it
    with input_errors(path), path.open("rb") as file:
        content = file.read(limit + 1)
    if len(content) > limit:  # of /proc and the like, whose size is not known
        raise InputError(f"{path} has more than {limit:,} bytes, the most that is read")
    return content


def read_text(path: Path, limit: int = MAX_BYTES) -> str:
    try:
        return read_bytes(path, limit).decode("utf-8")
    except UnicodeDecodeError:
        raise InputError(f"{path} is not text in UTF-8") from None


def read_json(path: Path, object_pairs: Callable[[list[tuple[str, Any]]], Any] | None = None) -> Any:
    """The content of a JSON file; `object_pairs` is what json.loads calls object_pairs_hook."""
    text = read_text(path, MAX_JSON_BYTES)
    try:
        return json.loads(text, object_pairs_hook=object_pairs)
    except json.JSONDecodeError as error:
        place = f"line {error.lineno}, column {error.colno}"
        raise InputError(f"{path} is not JSON ({place}): {error.msg}") from None
    except RecursionError:
        raise InputError(f"{path} is nested too deeply") from None
    except InputError as error:
        raise InputError(f"{path}: {error}") from None
    except ValueError as error:  # an integer of thousands of digits
        raise InputError(f"{path} holds a number that is too long: {error}") from None


@contextlib.contextmanager
def known_content(path: Path, writer: str) -> Iterator[None]:
    """JSON that is not what we write: there is no telling what a foreign file lacks."""
    try:
        yield
    except InputError:
        raise
    except (
        LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RuntimeError, csv.Error,
    ) as error:  # fmt: skip
        what = " ".join(f"{type(error).__name__}: {error}".split())[:200]
        raise InputError(f"{path} is not what {writer} writes: {what}") from error
