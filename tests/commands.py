"""Commands as a shell sees them, in this process: exit code, standard output, standard error."""

import contextlib
import importlib
import io
import re
import subprocess
import sys
from unittest import mock

from sfr_theory import cli


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
