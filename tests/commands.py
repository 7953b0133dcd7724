"""Commands as a shell sees them: exit code, standard output, standard error.

They run in this process; `python` and `printed_by` start another one.
"""

import contextlib
import importlib
import io
import re
import subprocess
import sys
from pathlib import Path
from unittest import mock

from sfr_theory import cli

ROOT = Path(__file__).parent.parent


def python(*arguments, **options):
    """What a Python of its own ends with."""
    command = [sys.executable, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)


def printed_by(*arguments, **options):
    """What a Python of its own prints; it succeeds."""
    done = python(*arguments, **options)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def run(module, *arguments):
    """What `python -m module arguments` ends with."""
    command, output, errors = importlib.import_module(module), io.StringIO(), io.StringIO()
    words = [module, *map(str, arguments)]
    with (
        mock.patch.object(sys, "argv", words),
        contextlib.redirect_stdout(output),
        contextlib.redirect_stderr(errors),
    ):
        try:
            cli.run(command.main, command.Options, module, command.__doc__)
        except SystemExit as ended:
            code = ended.code
    return subprocess.CompletedProcess(words, code, output.getvalue(), errors.getvalue())


def refuses(module, *arguments, words):
    """A command ends with exit code 2 and one sentence; `words`, a regular expression, is found in it."""
    done = run(module, *arguments)
    assert done.returncode == cli.EXIT_BAD_INPUT, done
    assert re.search(words, done.stderr), done.stderr
    assert len(done.stderr.strip().splitlines()) == 1, done.stderr
    assert not done.stdout
