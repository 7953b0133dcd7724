"""Compiled loops over plain arrays; nothing here imports the rest of the package.

`loop_for(world, loop)` is a loop that is compiled for the worlds of one class. Functions marked `part`, and
the methods of worlds and values, are parts of it: Numba compiles them into the loop that calls them, and
called from Python they are plain Python. The rest prepares arrays.

Numba stores compiled code on disk. It notices a change of the file of a function, but not of the files whose
functions are compiled into it, nor of constants that come from there. So our code is stored in a folder that
is named by a digest of all kernels and of the module that defines the world: what was compiled from other
sources is never used. NUMBA_CACHE_DIR says where the folder is; without it, in the `__pycache__` beside this
file. Where nothing can be written Numba would choose a place of its own, without the digest; so we do: the
user's cache, or a folder for this process.
"""

from __future__ import annotations

import atexit
import contextlib
import functools
import hashlib
import inspect
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba

from sfr_fa.kernels.arrays import UNCHECKED
from sfr_fa.kernels.loop import run_task

Loop = Callable[..., Any]

_HERE = Path(__file__).parent


@functools.cache
def loop_for(world: type, loop: Loop = run_task) -> Loop:
    """A loop, compiled for worlds of a class at first use, or loaded."""
    sources = sorted({*_HERE.glob("*.py"), *_source_of(world)})
    # A class of a script is another one in every process, and is never found in the cache.
    cache = bool(_source_of(world)) and world.__module__ != "__main__"
    settings: Any = numba.config
    given = settings.CACHE_DIR
    # The loop takes its folder when it is decorated, so that other users of Numba keep theirs.
    settings.CACHE_DIR = _cache_folder(given, sources, world.__module__) if cache else given
    try:
        # Without the lock of the interpreter, so that Ctrl-C and progress are served meanwhile.
        compiled: Loop = numba.njit(cache=cache, nogil=True, **UNCHECKED)(loop)
    finally:
        settings.CACHE_DIR = given
    return compiled


def _source_of(world: type) -> tuple[Path, ...]:
    try:
        return (Path(inspect.getfile(world)),)
    except (TypeError, OSError):
        return ()


def _cache_folder(parent: str, sources: list[Path], module: str) -> str:
    """Where code compiled from these sources is stored.

    The name of the world's module counts, too: Numba's index names it, and cannot be read where a file that
    is imported under two names has been stored under the other.
    """
    content = b"\0".join((module.encode(), *(source.read_bytes() for source in sources)))
    digest = hashlib.sha256(content).hexdigest()
    of_user = os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()
    for place in (parent or _HERE / "__pycache__", Path(of_user) / "sfr"):
        folder = Path(place) / f"kernels-{digest[:16]}"
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=folder):
                return str(folder)
    own = tempfile.mkdtemp(prefix="sfr-kernels-")
    atexit.register(shutil.rmtree, own, ignore_errors=True)
    return own
