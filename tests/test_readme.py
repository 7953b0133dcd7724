"""What pages say is true: links lead somewhere, code runs, commands, options and agents exist."""

import dataclasses
import importlib
import importlib.util
import json
import re
import shlex

import numpy as np
import pytest

from experiments.configs import load_config
from sfr_theory.catalogue import CATALOGUE
from sfr_theory.files import load_problem, problem_from_json
from tests.commands import ROOT

PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    ROOT / "results" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
README = (ROOT / "README.md").read_text()
THEORIST = (ROOT / "docs" / "theorist.md").read_text()


def blocks(language):
    """Of the page for those who ask whether a statement is true."""
    return re.findall(rf"```{language}\n(.*?)```", THEORIST, re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_python_runs():
    [code] = blocks("python")  # those on other pages are files in examples/, or the tutorial, tested as such
    namespace: dict = {}
    exec(code, namespace)
    np.testing.assert_array_equal(namespace["solution"].policy, [1, 0])


def test_ten_lines_of_kernel_sfr_run():
    page = (ROOT / "docs" / "kernel.md").read_text()
    [code] = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    namespace: dict = {}
    exec(code, namespace)
    fit = namespace["fit"]
    assert fit.rms < 0.1 * fit.spread < 0.1


def test_the_example_problem_is_the_file_that_the_page_names():
    [shown] = blocks("json")
    [path] = re.findall(r"--mdp (\S+?\.json)", THEORIST)
    stored, written = load_problem(ROOT / path), problem_from_json(json.loads(shown))
    assert stored.mdp == written.mdp
    for name in ("target", "sources", "approximations"):
        assert (getattr(stored, name) == getattr(written, name)).all()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page):
    for module in set(re.findall(r"python -m ([a-z_.]+)", page.read_text())) - {"venv", "pip", "pytest"}:
        assert importlib.util.find_spec(module) is not None, module


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_flags_exist(page):
    """Every option that a page gives to a command of ours is one of its options."""
    for module, line in re.findall(
        r"python -m ((?:experiments|sfr_theory|proofs_checks)[a-z_.]*)([^#`\n]*)", page.read_text()
    ):
        is_package = importlib.util.find_spec(module).submodule_search_locations is not None
        command = importlib.import_module(f"{module}.__main__" if is_package else module)
        known = {field.name.replace("_", "-") for field in dataclasses.fields(command.Options)}
        assert set(re.findall(r"--([a-z-]+)", line)) <= known, line


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_make_targets_and_variables_exist(page):
    makefile = (ROOT / "Makefile").read_text()
    for target, variable in re.findall(
        r"(?:^|`)make ([a-z]+)(?: ([A-Z]+)=)?", page.read_text(), re.MULTILINE
    ):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
        assert not variable or re.search(rf"^{variable} \?=", makefile, re.MULTILINE), variable


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_experiments_and_agents_exist(page):
    for name, line in re.findall(r"experiments\.run ([a-z_]+)( [^`\n]*)", page.read_text()):
        config = load_config(name)
        [profile] = re.findall(r"--profile ([a-z]+)", line) or ["smoke"]
        assert profile in config.profiles
        for agents in re.findall(r"--agents (.*?)(?: --|$)", line):
            assert set(shlex.split(agents)) <= set(config.labels)


def test_the_number_of_claims():
    [count] = re.findall(r"verdict on each of (\d+) claims", README)
    assert int(count) == len(CATALOGUE)
