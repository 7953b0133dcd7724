"""Functions that Numba compiles once for all processes: stored on disk, checked before they are trusted.

Numba's own cache notices a change in the file of a function, but not in the files whose functions are
compiled into it, nor in constants that come from there; and a damaged cache file ends in an unpickling error
or a segmentation fault. So compiled code is kept in a folder of its own,

    named by a digest of all sources that count: what was compiled from others is never used;
    with the checksums of its files: what does not match them is removed and compiled again, with a warning.

NUMBA_CACHE_DIR says where the folder is; without it, it is in the `__pycache__` next to the source. Where
that cannot be written, it is in the user's cache, or a folder for this process alone.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import inspect
import json
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from sfr_theory.atomic import write_atomic
from sfr_theory.errors import InputError

CHECKSUMS = "checksums.json"


class Stored:
    """A function that is compiled, or loaded, for each new kind of arguments, before it is called."""

    def __init__(self, function: Callable[..., Any], folder: Path, **options: Any) -> None:
        import numba

        self.folder = folder
        self._type_of = numba.typeof
        self._ready: set[Any] = set()
        remove_damaged(folder)
        settings: Any = numba.config
        given = settings.CACHE_DIR
        # A function takes its folder when it is decorated, so that other users of Numba keep theirs.
        settings.CACHE_DIR = str(folder)
        try:
            self.dispatcher: Any = numba.njit(cache=True, **options)(function)
        finally:
            settings.CACHE_DIR = given

    def __call__(self, *arguments: Any) -> Any:
        kind = _kind(arguments)
        if kind not in self._ready:
            # Before the call, which may take long: other processes look at the folder meanwhile.
            with warnings.catch_warnings():
                # Code with addresses of this process is compiled in the next one, too.
                warnings.filterwarnings("ignore", ".*Cannot cache compiled function")
                self.dispatcher.compile(tuple(map(self._type_of, arguments)))
            record_checksums(self.folder)
            self._ready.add(kind)
        return self.dispatcher(*arguments)


def _kind(argument: Any) -> Any:
    """What Numba compiles for, much faster than numba.typeof finds it."""
    if isinstance(argument, tuple):
        return (type(argument), *map(_kind, argument))
    if isinstance(argument, np.ndarray):
        flags = argument.flags
        return argument.dtype.char, argument.ndim, flags.c_contiguous, flags.f_contiguous, flags.writeable
    return type(argument)


def stored(
    function: Callable[..., Any], more_sources: Sequence[Path] = (), *names: str, **options: Any
) -> Callable[..., Any]:
    """The function, compiled with Numba's options at first use, or loaded; itself under NUMBA_DISABLE_JIT.

    `more_sources` are the files besides its own that its code comes from. `names` count like them, such as
    the module of a class in its signature: Numba's index names it, and cannot be read where one file is
    imported under two names.
    """
    import numba

    settings: Any = numba.config
    if settings.DISABLE_JIT:
        return function
    own = Path(inspect.getfile(function))
    content = (*(name.encode() for name in names), *(path.read_bytes() for path in (own, *more_sources)))
    digest = hashlib.sha256(b"\0".join(content)).hexdigest()
    return Stored(function, writable_folder(own.parent, f"{function.__name__}-{digest[:16]}"), **options)


def writable_folder(beside: Path, name: str) -> Path:
    """A folder of this name that can be written to, as above."""
    of_user = Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser())
    for place in (os.environ.get("NUMBA_CACHE_DIR") or beside / "__pycache__", of_user / "sfr"):
        folder = Path(place) / name
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return folder
    own = tempfile.mkdtemp(prefix="sfr-compiled-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return Path(own)


def _checksums(folder: Path) -> dict[str, str]:
    """File -> digest of its content, for all that Numba wrote below a folder."""
    found = {}
    for path in sorted(folder.rglob("*.nb?")):
        with contextlib.suppress(OSError):  # another process tidies up
            found[path.relative_to(folder).as_posix()] = hashlib.sha256(path.read_bytes()).hexdigest()
    return found


def record_checksums(folder: Path) -> None:
    """Numba has written to the folder: what is there now is good."""
    with contextlib.suppress(InputError):  # a full disk costs the cache, not the run
        write_atomic(folder / CHECKSUMS, json.dumps(_checksums(folder)).encode())


def remove_damaged(folder: Path) -> None:
    """Remove what differs from its checksum or has none, as after a kill while it was written."""
    try:
        known = json.loads((folder / CHECKSUMS).read_bytes())
        known = known if isinstance(known, dict) else {}
    except (OSError, ValueError):
        known = {}
    damaged = [name for name, digest in _checksums(folder).items() if known.get(name) != digest]
    for name in damaged:
        with contextlib.suppress(OSError):
            (folder / name).unlink()
    if any(name in known for name in damaged):
        warnings.warn(
            f"compiled code in {folder} was damaged ({', '.join(damaged)}); it is compiled again",
            stacklevel=2,
        )
