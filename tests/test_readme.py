"""What the README says is true: links exist, code runs, commands exist, the example file is the one shown."""

import importlib.util
import json
import re
from pathlib import Path

import numpy as np
import pytest

from sfr_theory.catalogue import CATALOGUE
from sfr_theory.files import load_problem, problem_from_json

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
README = (ROOT / "README.md").read_text()


def blocks(language):
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+?)(?:#[^)]*)?\)", page.read_text()):
        if not target.startswith("http"):
            assert (page.parent / target).exists(), target


def test_python_runs():
    code = blocks("python")[0]  # the others are files in examples/, tested as such
    namespace: dict = {}
    exec(code, namespace)
    np.testing.assert_array_equal(namespace["solution"].policy, [1, 0])


def test_the_example_problem_is_the_file_that_the_readme_names():
    [shown] = blocks("json")
    [path] = re.findall(r"--mdp (\S+?\.json)", README)
    stored, written = load_problem(ROOT / path), problem_from_json(json.loads(shown))
    assert stored.mdp == written.mdp
    for name in ("target", "sources", "approximations"):
        assert (getattr(stored, name) == getattr(written, name)).all()


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_exist(page):
    for module in set(re.findall(r"python -m ([a-z_.]+)", page.read_text())) - {"venv", "pip", "pytest"}:
        assert importlib.util.find_spec(module) is not None, module


def test_make_targets_exist():
    makefile = (ROOT / "Makefile").read_text()
    for target in set(re.findall(r"make ([a-z]+)", README)):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target


def test_the_number_of_claims():
    [count] = re.findall(r"verdict on (\d+) claims", README)
    assert int(count) == len(CATALOGUE)
