"""Plant a bug by syntax: one expression or statement of a function becomes another, in a copy of the tree.

They are compared as syntax trees, so formatting, comments and renamed neighbours do not matter. It
must occur exactly once in the function: a bug that no longer fits its source is an error, not a
bug that was caught.
"""

from __future__ import annotations

import ast
import shutil
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
FIRST_PARTY = ("sfr_theory", "proofs_checks", "sfr_fa", "experiments", "tests")
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
    caught_by: str  # the test file that must turn red

    def plant(self, root: Path) -> None:
        """Change the file below `root`."""
        target = root / self.path
        target.write_text(replaced(target.read_text(), self.function, self.right, self.wrong))


def replaced(source: str, function: str, right: str, wrong: str) -> str:
    """The source with that replaced."""
    tree = ast.parse(source)
    place: ast.AST = tree
    for name in function.split("."):
        [place] = [
            node
            for node in ast.iter_child_nodes(place)
            if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name == name
        ]
    swap = _Swap(_fragment(right), _fragment(wrong))
    swap.visit(place)
    if swap.count != 1:
        raise ValueError(f"{right!r} occurs {swap.count} times in {function}; write this bug anew")
    return ast.unparse(tree)


def _fragment(text: str) -> ast.AST:
    """A statement, or an expression that may stand anywhere."""
    [statement] = ast.parse(text).body
    return statement.value if isinstance(statement, ast.Expr) else statement


class _Swap(ast.NodeTransformer):
    def __init__(self, right: ast.AST, wrong: ast.AST) -> None:
        self.right, self.wrong, self.count = ast.dump(right), wrong, 0

    def visit(self, node: ast.AST) -> ast.AST:
        if ast.dump(node) == self.right:
            self.count += 1
            return self.wrong
        return self.generic_visit(node)
