"""Mutants of a module: every small change of its syntax that ought to turn a test red.

    comparison     < and <=, > and >=, == and !=, ... become each other, and their opposite
    arithmetic     + and -, * and /, // and /, % and *, ** and *, & and | become each other; a sign is dropped
    constant       an int becomes one more and one less, a float ten times as large, a bool its opposite
    condition      of an if, a conditional expression or a filter: negated; `and` becomes `or`
    call           max and min, any and all, argmax and argmin, ... swapped; the first two arguments swapped
    statement      a call, yield, raise, break, or an assignment to an entry or in place: dropped

Left alone: annotations, decorators, texts and what stands in them, the arguments of `raise`, `strict=`, and
-1 in a call of `reshape`, where NumPy takes any negative number for "as many as there are".
"""

from __future__ import annotations

import ast
import copy
import itertools
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

SWAPPED_OPERATORS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,), ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,),
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Div,), ast.Div: (ast.Mult,),
    ast.FloorDiv: (ast.Div,), ast.Mod: (ast.Mult,), ast.Pow: (ast.Mult,), ast.BitAnd: (ast.BitOr,),
    ast.BitOr: (ast.BitAnd,),
}  # fmt: skip
_PAIRS = (("max", "min"), ("any", "all"), ("argmax", "argmin"), ("maximum", "minimum"), ("ceil", "floor"))
SWAPPED_NAMES = {old: new for pair in _PAIRS for old, new in (pair, pair[::-1])}
SYMMETRIC = ("max", "min", "maximum", "minimum", "array_equal", "swapaxes")
DROPPED = (ast.AugAssign, ast.Raise, ast.Break, ast.Continue)
SMALL = (ast.Constant, ast.UnaryOp, ast.Name, ast.Attribute)  # say little without their statement
BLOCKS = ("body", "orelse", "finalbody")


@dataclass(frozen=True)
class Mutant:
    """One change of a module; `name` says where and what, and stays when other functions change."""

    name: str
    line: int
    position: int  # of the node in `_walk`
    field: str
    value: Any

    def source(self, original: str) -> str:
        """The module with this change."""
        tree = ast.parse(original)
        [(node, _, _)] = itertools.islice(_walk(tree), self.position, self.position + 1)
        setattr(node, self.field, self.value)
        return ast.unparse(ast.fix_missing_locations(tree))


def mutants(source: str) -> list[Mutant]:
    """All mutants of a module, in the order of its lines."""
    found: list[Mutant] = []
    seen: Counter[str] = Counter()
    for position, (node, function, statement) in enumerate(_walk(ast.parse(source))):
        for field, value, text in _changes(node):
            where = f" in {_text(statement)}" if isinstance(node, SMALL) else ""
            name = f"{function or 'module'}: {text}{where}"
            seen[name] += 1
            again = f" (no. {seen[name]})" if seen[name] > 1 else ""
            found.append(Mutant(name + again, getattr(node, "lineno", 0), position, field, value))
    return found


def _walk(
    node: ast.AST, function: str = "", statement: ast.AST | None = None
) -> Iterator[tuple[ast.AST, str, ast.AST]]:
    """The nodes that may change, each with the name of its function or class, and its statement."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
        function = f"{function}.{node.name}".lstrip(".")
    if statement is None or isinstance(node, ast.stmt):
        statement = node
    yield node, function, statement
    for field, value in ast.iter_fields(node):
        if field in ("annotation", "returns", "decorator_list", "bases"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not _left_alone(child, node):
                yield from _walk(child, function, statement)


def _left_alone(node: ast.AST, parent: ast.AST) -> bool:
    if isinstance(node, ast.UnaryOp) and isinstance(parent, ast.Call) and _name(parent.func) == "reshape":
        return True
    is_strict = isinstance(node, ast.keyword) and node.arg == "strict"
    return is_strict or isinstance(node, (ast.JoinedStr, ast.Raise))


def _changes(node: ast.AST) -> Iterator[tuple[str, Any, str]]:
    """(field, new value, what was done) of each change of this node."""

    def change(field: str, value: Any) -> tuple[str, Any, str]:
        changed = copy.copy(node)
        setattr(changed, field, value)
        return field, value, f"{_text(node)} -> {_text(changed)}"

    match node:
        case ast.Compare():
            for k, operator in enumerate(node.ops):
                for new in SWAPPED_OPERATORS[type(operator)]:
                    yield change("ops", [*node.ops[:k], new(), *node.ops[k + 1 :]])
        case ast.BinOp() | ast.BoolOp() | ast.AugAssign():
            for new in SWAPPED_OPERATORS.get(type(node.op), ()):
                yield change("op", new())
        case ast.UnaryOp():
            yield change("operand", ast.UnaryOp(node.op, node.operand))
        case ast.If() | ast.IfExp():
            yield "test", _negated(node.test), f"if {_text(node.test)} -> if not"
        case ast.comprehension():
            for k, condition in enumerate(node.ifs):
                ifs = [*node.ifs[:k], _negated(condition), *node.ifs[k + 1 :]]
                yield "ifs", ifs, f"if {_text(condition)} -> if not"
        case ast.Constant(value=bool()):
            yield change("value", not node.value)
        case ast.Constant(value=int()):
            yield change("value", node.value + 1)
            yield change("value", node.value - 1)
        case ast.Constant(value=float()):
            yield change("value", node.value * 10 or 1.0)
        case ast.Attribute() if node.attr in SWAPPED_NAMES:
            yield change("attr", SWAPPED_NAMES[node.attr])
        case ast.Name() if node.id in SWAPPED_NAMES:
            yield change("id", SWAPPED_NAMES[node.id])
        case ast.Call(args=[first, second, *others]) if _name(node.func) not in SYMMETRIC:
            yield change("args", [second, first, *others])
    for block in BLOCKS:
        statements = getattr(node, block, None)
        for k, statement in enumerate(statements if isinstance(statements, list) else ()):
            if _may_be_dropped(statement):
                yield (
                    block,
                    [*statements[:k], ast.Pass(), *statements[k + 1 :]],
                    f"{_text(statement)} -> dropped",
                )


def _name(function: ast.expr) -> str:
    return function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")


def _may_be_dropped(statement: ast.stmt) -> bool:
    if isinstance(statement, ast.Expr):
        return not isinstance(statement.value, ast.Constant)  # a docstring
    if isinstance(statement, ast.Assign):  # a name that is never assigned would fail at once
        return all(isinstance(target, (ast.Attribute, ast.Subscript)) for target in statement.targets)
    return isinstance(statement, DROPPED)


def _negated(test: ast.expr) -> ast.expr:
    return ast.UnaryOp(ast.Not(), test)


def _text(node: ast.AST, limit: int = 70) -> str:
    text = " ".join(ast.unparse(ast.fix_missing_locations(copy.deepcopy(node))).split())
    return text if len(text) <= limit else text[: limit - 3] + "..."
