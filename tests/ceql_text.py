"""Queries of the algebra written in CEQL, with every parenthesis there could be."""

from __future__ import annotations

from weft.algebra.patterns import Bind, Correlate, Event, Filter, Other, Pattern, Repeat, Sequence, Union
from weft.algebra.predicates import (
    Aggregate,
    Always,
    And,
    Arithmetic,
    Attribute,
    Comparison,
    Expression,
    In,
    Like,
    Literal,
    Monotone,
    Negative,
    Not,
    Or,
    Predicate,
    RegexMatch,
)
from weft.algebra.query import Query, Window


def query_text(query: Query) -> str:
    """The query in CEQL. What it declares (`universe`) is left out."""
    clauses = [
        f"QUERY {query.name} AS SELECT {query.strategy.value} {_selection(query)}",
        f"WHERE {pattern_text(query.pattern)}",
    ]
    if query.partition:
        clauses.append("PARTITION BY " + ", ".join(f"[{', '.join(part)}]" for part in query.partition))
    if query.window is not None:
        clauses.append(f"WITHIN {_window(query.window)}")
    clauses.append(f"CONSUME BY {query.consume.value}")
    if query.limit is not None:
        clauses.append(f"LIMIT {query.limit}")
    return "\n".join(clauses)


def _selection(query: Query) -> str:
    if query.selected is None:
        return "*"
    items = (item.name + (f"[{', '.join(item.attributes)}]" if item.attributes else "") for item in query.selected)
    return ", ".join(items) or "NONE"


def _window(window: Window) -> str:
    units = {"events": "EVENTS", "time": "MILLISECONDS", "attribute": f"[{window.attribute}]"}
    return f"{window.amount} {units[window.unit]}"


def pattern_text(pattern: Pattern) -> str:
    """A formula."""
    match pattern:
        case Event():
            return pattern.names[-1]
        case Other(type_name, stream, where):
            name = type_name if stream is None else f"{stream}>{type_name}"
            return f"NOT({name})" if where == Always() else f"NOT({name} FILTER {name}[{predicate_text(where)}])"
        case Bind(inner, name):
            return f"({pattern_text(inner)}) AS {name}"
        case Sequence(left, right, contiguous):
            return f"({pattern_text(left)}) {':' if contiguous else ';'} ({pattern_text(right)})"
        case Repeat(inner, contiguous):
            return f"({pattern_text(inner)}){':+' if contiguous else '+'}"
        case Union(left, right):
            return f"({pattern_text(left)}) OR ({pattern_text(right)})"
        case Filter(inner, variable, predicate):
            return f"({pattern_text(inner)}) FILTER {variable}[{predicate_text(predicate)}]"
        case Correlate(inner, condition):
            return f"({pattern_text(inner)}) FILTER {predicate_text(condition)}"
    raise TypeError(f"not a pattern: {pattern!r}")


def predicate_text(predicate: Predicate) -> str:
    """A predicate, or a condition over variables."""
    match predicate:
        case Comparison(operator, left, right):
            return f"{expression_text(left)} {operator} {expression_text(right)}"
        case Like(operand, pattern):
            return f"{expression_text(operand)} LIKE '{pattern}'"
        case RegexMatch(operand, pattern):
            return f"{expression_text(operand)} MATCHES '{pattern}'"
        case In(operand, values):
            return f"{expression_text(operand)} IN {{{', '.join(_literal(value) for value in values)}}}"
        case And(operands):
            return "(" + " AND ".join(predicate_text(operand) for operand in operands) + ")"
        case Or(operands):
            return "(" + " OR ".join(predicate_text(operand) for operand in operands) + ")"
        case Not(operand):
            return f"NOT ({predicate_text(operand)})"
        case Monotone(direction, attribute):
            return f"{direction}({expression_text(attribute)})"
    raise TypeError(f"not a predicate: {predicate!r}")


def expression_text(expression: Expression) -> str:
    """An expression."""
    match expression:
        case Literal(value):
            return _literal(value)
        case Attribute("*", variable):
            return str(variable)
        case Attribute(name, variable):
            return name if variable is None else f"{variable}[{name}]"
        case Arithmetic(operator, left, right):
            return f"({expression_text(left)} {operator} {expression_text(right)})"
        case Negative(operand):
            return f"(-{expression_text(operand)})"
        case Aggregate(function, attribute):
            return f"{function}({expression_text(attribute)})"
    raise TypeError(f"not an expression: {expression!r}")


def _literal(value: object) -> str:
    if isinstance(value, bool):
        return str(value).upper()
    return f"'{value}'" if isinstance(value, str) else str(value)
