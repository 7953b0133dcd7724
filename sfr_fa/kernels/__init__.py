"""Compiled loops over plain arrays; nothing here imports the rest of the package.

`run_task` of an environment is compiled. Functions marked `part` are parts of it: Numba compiles
them into the loop that calls them, and called from Python they are plain Python. The rest prepares arrays.

Numba stores compiled code on disk. It notices a change of the file of a function, but not of the files whose
functions are compiled into it, nor of constants that come from there. So our code is stored in a folder that
is named by a digest of all kernels: what was compiled from other sources is never used. NUMBA_CACHE_DIR says
where the folder is; without it, in the `__pycache__` beside this file. Where nothing can be written Numba
would choose a place of its own, without the digest; so we do: the user's cache, or a folder for this process.
"""

from __future__ import annotations

import atexit
import contextlib
import hashlib
import importlib
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numba

_HERE = Path(__file__).parent
_SOURCES = sorted(_HERE.glob("*.py"))


def _cache_folder(parent: str) -> str:
    """Where code compiled from these sources is stored."""
    digest = hashlib.sha256(b"\0".join(source.read_bytes() for source in _SOURCES)).hexdigest()
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


_numba: Any = numba.config
_given = _numba.CACHE_DIR
# Functions take their folder when they are decorated, so that other users of Numba keep theirs.
_numba.CACHE_DIR = _cache_folder(_given)
try:
    for _source in _SOURCES:
        if _source.stem != "__init__":
            importlib.import_module(f"{__name__}.{_source.stem}")
finally:
    _numba.CACHE_DIR = _given
