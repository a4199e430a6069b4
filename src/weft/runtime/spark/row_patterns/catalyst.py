"""Expressions that weft does not evaluate itself, as Spark SQL: columns before the match, and measures after it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from decimal import Decimal
from typing import Any

from weft.algebra.analysis.row_conditions import conjuncts, is_row_local, negation_normal
from weft.algebra.row_patterns import (
    At,
    Cast,
    Choose,
    Constant,
    Define,
    MatchNumber,
    RowAggregate,
    RowCall,
    RowExpression,
    RowField,
    RowLabel,
    RowMeasure,
    RowPattern,
)
from weft.errors import InputError
from weft.runtime.operators.row_patterns.scalars import is_known
from weft.runtime.operators.row_patterns.sql_types import type_named
from weft.runtime.spark.columns import quoted

_PREFIX = "__weft_"
_INFIX = frozenset({"+", "-", "*", "/", "%", "||", "=", "<>", "<", "<=", ">", ">=", "and", "or", "div"})
_INFIX |= {"is distinct from", "like", "rlike", "ilike"}
Leaf = Callable[[RowExpression], str | None]


@dataclass(frozen=True)
class SplitQuery:
    """A query whose expressions are all weft's own, the columns it needs besides, and its measures as Spark SQL."""

    query: RowPattern
    before: dict[str, str] = field(default_factory=dict)  # further columns of the input
    after: dict[str, str] | None = None  # all measures, by name, of those that the query has; None: they are the same


def split_for_catalyst(query: RowPattern) -> SplitQuery:
    """Leave what weft cannot evaluate to Spark."""
    split = _Splitter(query)
    conditions = tuple(Define(item.variable, split.condition(item)) for item in query.conditions)
    inner = {measure.name: split.inside(measure.value) for measure in query.measures}
    after: dict[str, str] | None = None
    measures = tuple(replace(measure, value=inner[measure.name]) for measure in query.measures)
    if not all(_is_own(measure.value) for measure in measures):
        after = {measure.name: split.outside(measure.value) for measure in measures}
        measures = tuple(RowMeasure(name, leaf) for leaf, name in split.leaves.items())
    return SplitQuery(replace(query, conditions=conditions, measures=measures), split.before, after)


def _is_own(expression: RowExpression) -> bool:
    """Whether weft evaluates all functions and casts of an expression."""
    for node in expression.walk():
        if isinstance(node, RowCall) and not is_known(node.function):
            return False
        if isinstance(node, Cast):
            try:
                type_named(node.type)
            except InputError:
                return False
    return True


@dataclass
class _Splitter:
    query: RowPattern
    before: dict[str, str] = field(default_factory=dict)
    leaves: dict[RowExpression, str] = field(default_factory=dict)

    def condition(self, define: Define) -> RowExpression:
        """A condition; row-local parts that weft does not know are columns of the input."""
        if _is_own(define.condition):
            return define.condition
        parts = []
        for part in conjuncts(negation_normal(define.condition)):
            part = self.inside(part)
            if not _is_own(part) and is_row_local(part, define.variable):
                part = At(RowField(self._column(spark_text(part, self._shifted))))
            if not _is_own(part):
                unknown = [node.function for node in part.walk() if isinstance(node, RowCall)]
                names = ", ".join(sorted({name for name in unknown if not is_known(name)}))
                raise InputError(
                    f"DEFINE {define.variable} calls {names} on rows of the match so far, which weft cannot: "
                    "call it inside the navigation, as in FIRST(f(x)), or in MEASURES"
                )
            parts.append(part)
        return parts[0] if len(parts) == 1 else RowCall("and", tuple(parts))

    def inside(self, expression: RowExpression) -> RowExpression:
        """An expression; arguments of navigations and aggregates that weft does not know are columns of the input."""
        match expression:
            case At(argument) if not _is_own(argument):
                return replace(expression, argument=self._row_value(argument))
            case RowAggregate(_, arguments):
                own = tuple(part if _is_own(part) else self._row_value(part) for part in arguments)
                return replace(expression, arguments=own)
            case RowCall(_, arguments):
                return replace(expression, arguments=tuple(map(self.inside, arguments)))
            case Cast(argument):
                return replace(expression, argument=self.inside(argument))
            case Choose(branches, otherwise):
                inner = tuple(
                    replace(item, condition=self.inside(item.condition), value=self.inside(item.value))
                    for item in branches
                )
                return replace(expression, branches=inner, otherwise=self.inside(otherwise))
        return expression

    def outside(self, expression: RowExpression) -> str:
        """A measure as Spark SQL over columns of the result, which are navigations and aggregates."""
        return spark_text(expression, self._measured)

    def _measured(self, node: RowExpression) -> str | None:
        if isinstance(node, At | RowAggregate | MatchNumber):
            return quoted(self.leaves.setdefault(node, f"{_PREFIX}measure_{len(self.leaves)}"))
        return None

    def _row_value(self, argument: RowExpression) -> RowExpression:
        if any(isinstance(node, RowLabel | MatchNumber) for node in argument.walk()):
            raise InputError("a function that weft does not know cannot be called on CLASSIFIER or MATCH_NUMBER here")
        return RowField(self._column(spark_text(argument, lambda _: None)))

    def _column(self, text: str) -> str:
        for name, known in self.before.items():
            if known == text:
                return name
        self.before[f"{_PREFIX}column_{len(self.before)}"] = text
        return f"{_PREFIX}column_{len(self.before) - 1}"

    def _shifted(self, node: RowExpression) -> str | None:
        """Return a neighbour of the current row, by a window function."""
        if not isinstance(node, At):
            return None
        text = spark_text(node.argument, lambda _: None)
        if not node.shift:
            return text
        keys = [quoted(name) for name in self.query.partition]
        order = [
            f"{quoted(key.column)} {'DESC' if key.descending else 'ASC'} NULLS {'FIRST' if key.nulls_first else 'LAST'}"
            for key in self.query.order
        ]
        window = (f"PARTITION BY {', '.join(keys)} " if keys else "") + f"ORDER BY {', '.join(order)}"
        return f"{'lag' if node.shift < 0 else 'lead'}({text}, {abs(node.shift)}) OVER ({window})"


def spark_text(node: RowExpression, leaf: Leaf) -> str:
    """An expression as Spark SQL; `leaf` says what navigations and the like are called there."""
    named = leaf(node)
    if named is not None:
        return named

    def text(part: RowExpression) -> str:
        return spark_text(part, leaf)

    match node:
        case Constant(value, kind):
            return _constant(value, kind)
        case RowField(name):
            return quoted(name)
        case Cast(argument, kind, tries):
            return f"{'try_' * tries}cast({text(argument)} AS {kind})"
        case Choose(branches, otherwise):
            whens = " ".join(f"WHEN {text(item.condition)} THEN {text(item.value)}" for item in branches)
            return f"CASE {whens} ELSE {text(otherwise)} END"
        case RowCall(function, arguments):
            return _call(function, [text(argument) for argument in arguments])
    raise TypeError(node)


def _call(function: str, arguments: list[str]) -> str:
    if function in _INFIX and len(arguments) >= 2 and not (function == "like" and len(arguments) > 2):
        return "(" + f" {function} ".join(arguments) + ")"
    if function == "like":
        return f"({arguments[0]} LIKE {arguments[1]} ESCAPE {arguments[2]})"
    if function in ("is null", "is true", "is false"):
        return f"({arguments[0]} {function})"
    if function in ("not", "negate"):
        return f"({'NOT' if function == 'not' else '-'} {arguments[0]})"
    if function == "in":
        return f"({arguments[0]} IN ({', '.join(arguments[1:])}))"
    if function == "[]":
        return f"{arguments[0]}[{arguments[1]}]"
    return f"{function}({', '.join(arguments)})"


def _constant(value: Any, kind: str) -> str:
    if value is None:
        return "NULL"
    if kind == "interval day to second":
        return f"make_dt_interval(0, 0, 0, {Decimal(value) / 1_000_000})"
    if kind == "interval year to month":
        return f"make_ym_interval(0, {value})"
    if kind in ("date", "timestamp", "timestamp_ntz"):
        return f"{kind.upper()} '{value}'"
    if isinstance(value, str):
        escaped = value.replace("\\", "\\\\").replace("'", "\\'")
        return f"'{escaped}'"
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value!r}D" if isinstance(value, float) else f"{value}BD" if isinstance(value, Decimal) else str(value)
