"""What the command lines share: options, exit codes, output.

* Flags and help come from a dataclass (tyro). Bad input prints one sentence on standard error and
  exits with code 2; a verdict that was not expected exits with 1.
* Tables go to standard output, progress to standard error and only on a terminal. With ``--json -``
  standard output carries the JSON and nothing else.
* Files are written whole or not at all (sfr_theory.atomic).
"""

from __future__ import annotations

import contextlib
import errno
import io
import json
import math
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import tyro
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from sfr_theory.atomic import output_errors, write_atomic
from sfr_theory.errors import InputError

Options = TypeVar("Options")
PLOT_FORMATS = ("svg", "png", "pdf")
EXIT_UNEXPECTED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130


def run(main: Callable[[Options], int], options: type[Options], module: str, description: str) -> NoReturn:
    """Parse the command line, call `main`, and turn what it raises into a sentence and an exit code."""
    for stream in (sys.stdout, sys.stderr):
        # A terminal that does not know a letter shows "?" and loses nothing else.
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")
    try:
        try:
            code = main(tyro.cli(options, prog=f"python -m {module}", description=description))
        except SystemExit as asked_for:  # --help, or flags that do not parse
            code = asked_for.code if isinstance(asked_for.code, int) else 0
        sys.stdout.flush()
    except InputError as error:
        print(f"error: {one_sentence(error)}", file=sys.stderr)
        code = EXIT_BAD_INPUT
    except UnicodeEncodeError as error:
        print(f"error: {ascii(error.object)[:100]} is not UTF-8; write it in letters", file=sys.stderr)
        code = EXIT_BAD_INPUT
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = EXIT_INTERRUPTED
    except (ArithmeticError, MemoryError) as error:
        # Numbers or sizes beyond what a computer holds, which no check of one flag could foresee.
        print(f"error: these numbers or sizes are too large: {error}", file=sys.stderr)
        code = EXIT_BAD_INPUT
    except BrokenPipeError:
        # The reader of our output went away (`| head`); say nothing more, not even at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        what = f"cannot use {error.filename}" if error.filename else "cannot write the output"
        print(f"error: {one_sentence(what)}: {error.strerror or error}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = EXIT_BAD_INPUT
    sys.exit(code)


def one_sentence(what: object) -> str:
    """On one line, and with words that are longer than any name cut short."""
    words = re.sub(r"\S{400,}", lambda word: f"{word[0][:100]}...{word[0][-50:]}", str(what))
    return " ".join(words.splitlines())


class PatientConsole(Console):
    """Goes on without a reader (`| head`): the work is done and files are written all the same."""

    def on_broken_pipe(self) -> None:
        self.quiet = True
        os.dup2(os.open(os.devnull, os.O_WRONLY), self.file.fileno())


def output_console(json_path: str | None) -> Console:
    """Where tables go: standard output, unless the JSON goes there."""
    stderr = json_path == "-"
    stream = sys.stderr if stderr else sys.stdout
    # A pipe or a file gets a fixed width, so that tables do not depend on the terminal of the writer.
    return PatientConsole(stderr=stderr, width=None if stream.isatty() else 120, highlight=False)


def table(title: str, *columns: str | Column, caption: str | None = None) -> Table:
    """A table with title and caption on the left; `numbers` makes columns that are not text."""
    return Table(*columns, title=title, title_justify="left", caption=caption, caption_justify="left")


def numbers(*names: str) -> list[Column]:
    """Columns on the right, whose entries are never cut short."""
    return [Column(name, justify="right", overflow="fold") for name in names]


@contextlib.contextmanager
def progress(total: int, description: str) -> Iterator[Callable[[int], None]]:
    """A progress bar on a terminal, nothing elsewhere; yields a function that advances it."""
    console = Console(stderr=True)
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    )
    with bar:
        task = bar.add_task(description, total=total)
        yield lambda steps: bar.advance(task, steps)


def require_writable(*paths: str | None, plot: str | None = None) -> None:
    """Refuse output that could not be written, before the work is done and not after."""
    if plot is not None and Path(plot).suffix.lstrip(".") not in PLOT_FORMATS:
        raise InputError(f"cannot plot to {plot}: its ending must be one of {', '.join(PLOT_FORMATS)}")
    for name in (*paths, plot):
        if name is None or name == "-":
            continue
        with output_errors(Path(name)):
            path = Path(name).resolve()
            if path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                path = path.parent
            if not os.access(path, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))


def strict_json(value: Any) -> Any:
    """Plain JSON values: an infinite or undefined float becomes null."""
    if isinstance(value, dict):
        return {str(key): strict_json(entry) for key, entry in value.items()}
    if isinstance(value, (list, tuple)):
        return [strict_json(entry) for entry in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "item"):
        return strict_json(value.item())
    return value


def write_json(payload: Any, path: str) -> None:
    """JSON to a file, or to standard output for "-"."""
    text = json.dumps(strict_json(payload), indent=2, allow_nan=False) + "\n"
    if path == "-":
        sys.stdout.write(text)
    else:
        write_atomic(Path(path), text.encode())


def save_figure(figure: Any, path: str) -> None:
    """A matplotlib figure to a file; the ending names the format."""
    target = Path(path)
    buffer = io.BytesIO()
    figure.savefig(buffer, format=target.suffix.lstrip("."), bbox_inches="tight", dpi=150)
    write_atomic(target, buffer.getvalue())
