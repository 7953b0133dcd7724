"""Plant a bug by syntax: one expression or statement of a function becomes another, in this process.

They are compared as syntax trees, so formatting, comments and renamed neighbours do not matter. It
must occur exactly once in the function: a bug that no longer fits its source is an error, not a
bug that was caught.
"""

from __future__ import annotations
import __future__

import ast
import importlib
import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
FIRST_PARTY = ("sfr_theory", "proofs_checks", "sfr_fa", "experiments", "examples", "tests")
PYTEST_OPTIONS = ("-x", "-q", "-p", "no:cacheprovider", "-p", "no:xdist")


def copy_of_the_tree(folder: Path) -> Path:
    """The packages and their tests in a folder of their own, where they may be broken."""
    ignore = shutil.ignore_patterns("__pycache__")
    for name in FIRST_PARTY:
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in ("docs", "results"):
        (folder / name).symlink_to(ROOT / name)
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


@dataclass(frozen=True)
class Bug:
    """In `function` (a name, or Class.name) of the file, `right` becomes `wrong`."""

    path: str
    function: str
    right: str
    wrong: str

    def plant(self, patch: pytest.MonkeyPatch) -> None:
        """Give the function, wherever it was imported, the code with the bug until the patch is undone."""
        module = importlib.import_module(self.path.removesuffix(".py").replace("/", "."))
        made: dict[str, Any] = {}
        flags = __future__.annotations.compiler_flag
        exec(compile(ast.Module([self.planted()], []), self.path, "exec", flags), vars(module), made)
        *owners, name = self.function.split(".")
        function = vars(getattr(module, owners[0]) if owners else module)[name]
        broken, function = (getattr(f, "func", f) for f in (made[name], function))  # of a cached property
        patch.setattr(function, "__code__", broken.__code__)

    def planted(self) -> ast.FunctionDef:
        """The function with the bug in it."""
        place: ast.AST = ast.parse((ROOT / self.path).read_text())
        for name in self.function.split("."):
            [place] = [
                node
                for node in ast.iter_child_nodes(place)
                if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name
            ]
        swap = _Swap(*_fragments(self.right, self.wrong))
        swap.visit(place)
        if swap.count != 1:
            raise ValueError(f"{self.right!r} occurs {swap.count} times in {self.function}; write it anew")
        assert isinstance(place, ast.FunctionDef)
        return ast.fix_missing_locations(place)


def _fragments(*texts: str) -> list[ast.AST]:
    """Expressions that may stand anywhere, or statements if one of them is no expression."""
    statements = [ast.parse(text).body[0] for text in texts]
    values = [statement.value for statement in statements if isinstance(statement, ast.Expr)]
    return [*values] if len(values) == len(texts) else [*statements]


class _Swap(ast.NodeTransformer):
    def __init__(self, right: ast.AST, wrong: ast.AST) -> None:
        self.right, self.wrong, self.count = ast.dump(right), wrong, 0

    def visit(self, node: ast.AST) -> ast.AST:
        if ast.dump(node) == self.right:
            self.count += 1
            return self.wrong
        return self.generic_visit(node)
