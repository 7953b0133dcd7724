"""Work in a fork of this process, which may hang, crash or start others."""

from __future__ import annotations

import os
import signal
import time
import traceback
from collections.abc import Callable

CRASHED = 70


def in_fork(work: Callable[[], int], seconds: float) -> int | None:
    """The exit code that `work` returns; None if it took longer: then all that it has started is killed."""
    child = os.fork()
    if child == 0:
        code = CRASHED
        try:
            os.setsid()
            code = work()
        except BaseException:  # it must not return into the code of the parent
            traceback.print_exc()
        finally:
            os._exit(code)
    ends = time.monotonic() + seconds
    while time.monotonic() < ends:
        finished, status = os.waitpid(child, os.WNOHANG)
        if finished:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.005)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return None
