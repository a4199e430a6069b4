"""Evaluate expressions for many rows or matches at once; a scope provides fields, labels and navigations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

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
)
from weft.errors import InputError
from weft.runtime.operators.row_patterns import scalars
from weft.runtime.operators.row_patterns.layout import RowLayout
from weft.runtime.operators.row_patterns.sql_types import Value, cast, constant, type_named

Elsewhere = Callable[[str, list[Value]], Value]  # evaluates a function that weft does not have with another engine


class Scope(Protocol):
    """The rows or matches that an expression is evaluated for."""

    @property
    def size(self) -> int:
        """The number of values."""

    def field(self, name: str) -> pa.Array:
        """Return a column of the current rows."""

    def label(self) -> pa.Array:
        """Return the variables of the current rows."""

    def number(self) -> pa.Array:
        """Return the numbers of the matches."""

    def at(self, node: At) -> pa.Array:
        """Return the values of a navigation."""

    def aggregate(self, node: RowAggregate) -> pa.Array:
        """Return the values of an aggregate."""


def evaluate(expression: RowExpression, scope: Scope) -> Value:
    """Evaluate an expression to an array, or to a scalar if all values are the same."""
    match expression:
        case Constant():
            return constant(expression)
        case RowField(name):
            return scope.field(name)
        case RowLabel():
            return scope.label()
        case MatchNumber():
            return scope.number()
        case At():
            return scope.at(expression)
        case RowAggregate():
            return scope.aggregate(expression)
        case RowCall(function, arguments):
            return _called(function, [evaluate(argument, scope) for argument in arguments], scope.size)
        case Choose():
            return _chosen(expression, scope)
        case Cast(argument, kind, tries):
            return cast(evaluate(argument, scope), type_named(kind), tries=tries)
    raise TypeError(expression)


def _called(function: str, arguments: list[Value], size: int) -> Value:
    if scalars.is_known(function):
        return scalars.call(function, arguments)
    return called_elsewhere(function, arguments, size)


def called_elsewhere(function: str, arguments: list[Value], size: int) -> Value:
    """Call a function of DuckDB if it is installed, else raise an InputError."""
    try:
        import duckdb
    except ImportError:
        raise InputError(
            f"weft's own expressions have no function {function}: install weft[sql], or use weft.sql(…, spark=…)"
        ) from None
    values = [broadcast(argument, size) for argument in arguments]
    given = pa.table({"row": pa.array(np.arange(size)), **{f"a{k}": value for k, value in enumerate(values)}})
    names = ", ".join(f"a{k}" for k in range(len(values)))
    with duckdb.connect() as connection:
        connection.register("given", given)
        try:
            found = connection.sql(f'SELECT "{function}"({names}) AS found FROM given ORDER BY row').to_arrow_table()
        except duckdb.Error as error:
            raise InputError(f"function {function}: {str(error).splitlines()[0]}") from None
    return found.column("found").combine_chunks()


def broadcast(value: Value, size: int) -> pa.Array:
    """Convert a value to an array of `size` items."""
    if not isinstance(value, pa.Scalar):
        return value
    return pa.nulls(size, value.type) if not value.is_valid else pa.repeat(value, size)


def _chosen(expression: Choose, scope: Scope) -> Value:
    """Evaluate CASE. Branches are evaluated for all rows, so an error in one is an error of the query."""
    values = [evaluate(branch.value, scope) for branch in expression.branches]
    *values, found = scalars.alike([*values, evaluate(expression.otherwise, scope)])
    for branch, value in zip(reversed(expression.branches), reversed(values), strict=True):
        condition = cast(evaluate(branch.condition, scope), pa.bool_())
        found = pc.if_else(pc.coalesce(condition, pa.scalar(False)), value, found)
    return found


class RowScope:
    """All rows of a layout at once, for conditions that read rows and their neighbours."""

    def __init__(self, layout: RowLayout) -> None:
        self._layout = layout
        self._shifted: dict[At, pa.Array] = {}
        self._crossing: dict[int, npt.NDArray[np.bool_]] = {}

    @property
    def size(self) -> int:
        """The number of rows."""
        return len(self._layout)

    def field(self, name: str) -> pa.Array:
        """Return a column."""
        return self._layout.column(name)

    def label(self) -> pa.Array:
        """Raise an InputError, since rows have labels only in matches."""
        raise InputError("CLASSIFIER has no value outside a match")

    number = label

    def aggregate(self, node: RowAggregate) -> pa.Array:
        """Raise an InputError, since rows have aggregates only in matches."""
        raise InputError(f"{node.function.upper()} has no value outside a match")

    def at(self, node: At) -> pa.Array:
        """Return the values of the rows at a fixed distance in the same partition."""
        if node not in self._shifted:
            here = broadcast(evaluate(node.argument, self), self.size)
            self._shifted[node] = here if node.shift == 0 else self._moved(here, node.shift)
        return self._shifted[node]

    def _moved(self, values: pa.Array, shift: int) -> pa.Array:
        size = len(values)
        away = min(abs(shift), size)
        nulls = pa.nulls(away, values.type)
        parts = [nulls, values.slice(0, size - away)] if shift < 0 else [values.slice(away), nulls]
        return pc.if_else(pa.array(self._outside(shift)), pa.scalar(None, values.type), pa.concat_arrays(parts))

    def _outside(self, shift: int) -> npt.NDArray[np.bool_]:
        """Return a mask of the rows whose shifted row is in another partition."""
        if shift not in self._crossing:
            outside = np.zeros(self.size, np.bool_)
            for k in range(abs(shift)):
                edge = self._layout.begins + k if shift < 0 else self._layout.ends - 1 - k
                inside = edge < self._layout.ends if shift < 0 else edge >= self._layout.begins
                outside[edge[inside]] = True
            self._crossing[shift] = outside
        return self._crossing[shift]
