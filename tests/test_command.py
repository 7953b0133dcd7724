"""The `sfr` command: each of its words is a module, and what is wrong is said in a sentence."""

import importlib.util
import re
from pathlib import Path

import pytest

from sfr_theory import __version__
from sfr_theory.command import COMMANDS
from tests.commands import ROOT, python

RUN = "import sys; from sfr_theory.command import main; main()"


def sfr(*arguments, code=RUN):
    return python("-c", code, *arguments, cwd=ROOT, timeout=120)


@pytest.mark.parametrize("module", [module for module, _ in COMMANDS.values()])
def test_every_word_is_a_module_that_can_be_run(module):
    spec = importlib.util.find_spec(module)
    assert spec is not None
    source = Path(spec.origin)
    assert (source.parent / "__main__.py").exists() or "__main__" in source.read_text()


def test_the_rest_of_the_line_goes_to_the_module():
    result = sfr("check-gpi-bound", "--help")
    assert result.returncode == 0
    assert "--mdp" in result.stdout


def test_help_lists_all_commands_and_the_version_is_that_of_the_package():
    assert all(name in sfr().stdout for name in COMMANDS)
    assert sfr("--version").stdout.strip() == __version__


def test_an_unknown_word_is_refused():
    result = sfr("chek")
    assert result.returncode == 2
    assert "check-gpi-bound" in result.stderr
    assert "Traceback" not in result.stderr


def test_without_the_extra_it_says_what_to_install():
    """As if torch were not there."""
    blocked = "import sys; sys.modules['gymnasium'] = None\n" + RUN.replace("import sys; ", "")
    result = sfr("run", "--help", code=blocked)
    assert result.returncode == 2
    assert re.search(r"pip install 'sfr\[fa\]'", result.stderr)
    assert "Traceback" not in result.stderr
