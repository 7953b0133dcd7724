"""The mutants of a module: which changes there are, and that the table of modules fits the tree."""

import ast

import pytest

from tests.meta.mutants import mutants
from tests.meta.mutation import load
from tests.meta.planting import ROOT

SOURCE = '''
def clipped(values: list[float], low: float = 0.5) -> float:
    """A docstring is left alone."""
    total = 1
    for value in values:
        if value < low and value:
            raise ValueError(f"{value + 1} is too small")
        total += max(value, -2)
    return divmod(total, 3)
'''


def changed_lines(mutant):
    one, other = ast.unparse(ast.parse(SOURCE)).splitlines(), mutant.source(SOURCE).splitlines()
    assert len(one) == len(other)
    return [line.strip() for line, before in zip(other, one, strict=True) if line != before]


def test_every_kind_of_change():
    found = [line for mutant in mutants(SOURCE) for line in changed_lines(mutant)]
    assert sorted(found) == sorted([
        "def clipped(values: list[float], low: float=5.0) -> float:",
        "total = 2", "total = 0",
        "if not (value < low and value):", "if value < low or value:", "if value <= low and value:",
        "if value >= low and value:", "pass",
        "total -= max(value, -2)", "total += min(value, -2)", "pass",
        "total += max(value, --2)", "total += max(value, -3)", "total += max(value, -1)",
        "return divmod(3, total)", "return divmod(total, 4)", "return divmod(total, 2)",
    ])  # fmt: skip


def test_names_tell_mutants_apart():
    names = [mutant.name for mutant in mutants(SOURCE)]
    assert len(set(names)) == len(names)
    assert "clipped: value < low -> value <= low" in names


@pytest.mark.parametrize("guarded", load().values(), ids=lambda guarded: guarded.module)
def test_the_table_fits_the_tree(guarded):
    for argument in guarded.arguments:
        assert not argument.startswith("tests") or (ROOT / argument.partition("::")[0]).exists()
    names = {mutant.name for mutant in mutants((ROOT / guarded.module).read_text())}
    assert guarded.accepted.keys() <= names, "an accepted mutant is no longer one; take it out"
    assert all(guarded.accepted.values())
