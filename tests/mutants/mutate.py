"""Small mistakes put into source text one at a time: comparisons turned, bounds moved, branches dropped."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from dataclasses import dataclass

TURNED: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
}


@dataclass(frozen=True)
class Mutant:
    """A text with one mistake: where it is, and what became of what."""

    line: int
    before: str
    after: str
    text: str


def mutants(text: str) -> Iterator[Mutant]:
    """All mutants of a source text, in its order."""
    tree = ast.parse(text)
    for number, node in enumerate(ast.walk(tree)):
        for changed in _changes(node):
            other = copy.deepcopy(tree)
            place = next(part for at, part in enumerate(ast.walk(other)) if at == number)
            _become(place, changed)
            before, after = ast.unparse(node).split("\n")[0], ast.unparse(place).split("\n")[0]
            yield Mutant(getattr(node, "lineno", 0), before, after, ast.unparse(ast.fix_missing_locations(other)))


def _changes(node: ast.AST) -> Iterator[dict[str, object]]:
    """What may be put in place of some fields of a node."""
    match node:
        case ast.Compare(ops=[operator], left=_) if type(operator) in TURNED:
            yield {"ops": [TURNED[type(operator)]()]}
        case ast.BoolOp(op=ast.And()):
            yield {"op": ast.Or()}
        case ast.BoolOp(op=ast.Or()):
            yield {"op": ast.And()}
        case ast.Constant(value=bool(value)):
            yield {"value": not value}
        case ast.Constant(value=int(value)):
            yield {"value": value + 1}
        case ast.BinOp(op=ast.Add()):
            yield {"op": ast.Sub()}
        case ast.BinOp(op=ast.Sub()):
            yield {"op": ast.Add()}
        case ast.If(test=test) if not _is_for_types(test):
            yield {"test": ast.Constant(value=False)}
        case ast.IfExp():
            yield {"test": ast.Constant(value=True)}
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            yield {"op": ast.Not(), "operand": ast.UnaryOp(op=ast.Not(), operand=operand)}


def _is_for_types(test: ast.expr) -> bool:
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"


def _become(node: ast.AST, changed: dict[str, object]) -> None:
    for name, value in changed.items():
        setattr(node, name, value)
