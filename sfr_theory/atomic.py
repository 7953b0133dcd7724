"""The one way in which files are written: under another name in the same folder, then renamed.

A reader sees a file whole or not at all, and a writer that is killed leaves the old one as it was.
"""

from __future__ import annotations

import contextlib
import os
import re
import secrets
from collections.abc import Iterator
from pathlib import Path

from sfr_theory.errors import InputError


@contextlib.contextmanager
def output_errors(path: Path) -> Iterator[None]:
    """What went wrong with writing a file, in a sentence."""
    try:
        yield
    except InputError:
        raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror or error}") from None
    except (RuntimeError, ValueError) as error:  # links that lead to themselves, a zero byte in the name
        raise InputError(f"cannot write {str(path)!r}: {error}") from None


def is_half_written(name: str) -> bool:
    """Whether a file of this name is one that `write_atomic` has not finished, or never will."""
    return re.fullmatch(r"\..+\.[0-9a-f]{16}", name) is not None


def write_atomic(path: Path, content: bytes, *, durable: bool = False) -> None:
    """Write a file whole or not at all; makes missing folders.

    A link is followed, and what is not a file (a pipe, a terminal, /dev/null) is written to as it is. With
    `durable` the content is on the disk before the file has its name, so that it survives a power failure.
    """
    with output_errors(path):
        path = path.resolve()
        if path.exists() and not path.is_file():
            # A pipe that nobody reads is refused, not waited for.
            descriptor = os.open(path, os.O_WRONLY | getattr(os, "O_NONBLOCK", 0))
            os.set_blocking(descriptor, True)
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
        try:
            # Opened as any new file is, so that others may read it if they may read the user's files.
            with temporary.open("xb") as file:
                file.write(content)
                if durable:
                    file.flush()
                    os.fsync(file.fileno())
            temporary.replace(path)
        except BaseException:
            temporary.unlink(missing_ok=True)
            raise
