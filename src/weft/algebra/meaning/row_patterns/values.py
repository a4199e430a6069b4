"""Values of row pattern expressions, with SQL's three truth values: None is null, and unknown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.algebra.meaning.row_patterns.aggregates import fold
from weft.algebra.meaning.row_patterns.constants import convert, interpreted
from weft.algebra.meaning.row_patterns.scalars import call
from weft.algebra.row_patterns import (
    At,
    Cast,
    Choose,
    Constant,
    MatchNumber,
    RowAggregate,
    RowCall,
    RowExpression,
    RowField,
    RowLabel,
    Variables,
)
from weft.errors import InputError

PlainRow = Mapping[str, Any]


@dataclass(frozen=True)
class RowView:
    """What an expression can read: a partition, the rows of the match, and which of them is the current row.

    `labels` are the variables of the match from its first row on, as far as they are known. `current` is the index of
    the current row in the match, or -1 if the match is empty.
    """

    rows: Sequence[PlainRow]
    start: int
    labels: tuple[str, ...]
    current: int
    number: int

    def mapped(self, variables: Variables, final: bool) -> list[int]:
        """Return the rows that are mapped to the variables: up to the current row, or in the whole match."""
        seen = self.labels if final else self.labels[: self.current + 1]
        return [self.start + i for i, label in enumerate(seen) if variables is None or label in variables]

    def label(self, row: int) -> str | None:
        """The variable of a row of the partition."""
        return self.labels[row - self.start] if 0 <= row - self.start < len(self.labels) else None


def value_of(expression: RowExpression, view: RowView, row: int | None = None) -> Any:
    """The value of an expression; `row` is the one that fields speak of, below a navigation or an aggregate."""
    match expression:
        case Constant(value, kind):
            return interpreted(value, kind)
        case RowField(name):
            assert row is not None, "a column outside of At and aggregates"
            return view.rows[row].get(name)
        case RowLabel():
            assert row is not None, "a label outside of At and aggregates"
            return view.label(row)
        case MatchNumber():
            return view.number
        case At():
            return _at(expression, view)
        case RowAggregate():
            return _aggregate(expression, view)
        case Cast(argument, type_, tries):
            return _cast(value_of(argument, view, row), type_, tries)
        case Choose(branches, otherwise):
            for branch in branches:
                if value_of(branch.condition, view, row) is True:
                    return value_of(branch.value, view, row)
            return value_of(otherwise, view, row)
        case RowCall(function, arguments):
            return call(function, [value_of(argument, view, row) for argument in arguments])
    raise AssertionError(f"not a row expression: {expression!r}")


def _at(node: At, view: RowView) -> Any:
    rows = view.mapped(node.variables, node.final)
    if node.offset >= len(rows):
        return None
    row = rows[node.offset if node.first else -1 - node.offset] + node.shift
    return value_of(node.argument, view, row) if 0 <= row < len(view.rows) else None


def _aggregate(node: RowAggregate, view: RowView) -> Any:
    rows = view.mapped(node.variables, node.final)
    values = [tuple(value_of(argument, view, row) for argument in node.arguments) for row in rows]
    return fold(node.function, values, node.distinct)


def _cast(value: Any, type_: str, tries: bool) -> Any:
    try:
        return convert(value, type_)
    except (ValueError, ArithmeticError, TypeError):
        if tries:
            return None
        raise InputError(f"{value!r} cannot be cast to {type_}; TRY_CAST gives null instead") from None
