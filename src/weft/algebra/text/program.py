"""The algebra as indented text, for `explain` and for golden files. One construct per line, operands below it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from math import isinf

from weft.algebra import patterns, predicates
from weft.algebra.chains import Chain, Fits
from weft.algebra.composites import Composite, CompositeQuery
from weft.algebra.numbers import number_text
from weft.algebra.query import Consume, Program, Query, Selected, Window
from weft.algebra.row_patterns import RowPattern
from weft.algebra.rules import Rule, Summary
from weft.algebra.situations import Situation, SituationQuery
from weft.algebra.text import situations
from weft.algebra.text.chains import link_lines, skip_text
from weft.algebra.text.composites import pattern_lines, query_lines, term_text
from weft.algebra.text.row_patterns import row_pattern_lines
from weft.algebra.text.rules import rule_lines, summary_text

INDENT = "  "

# How tightly an expression binds; an operand that binds less tightly is put in parentheses.
_OR, _AND, _NOT, _COMPARE, _ADD, _MULTIPLY, _NEGATE, _ATOM = range(8)
_LEVEL_OF_OPERATOR = {"+": _ADD, "-": _ADD, "*": _MULTIPLY, "/": _MULTIPLY, "%": _MULTIPLY}


def to_text(node: object) -> str:
    """The readable text of a program, a query, a pattern, a predicate or an expression."""
    if isinstance(node, predicates.Predicate | predicates.Expression):
        return expression_text(node)
    return "\n".join(_lines(node)) + "\n"


def _lines(node: object) -> Iterator[str]:
    match node:
        case Program():
            for number, query in enumerate((*node.queries, *node.row_patterns)):
                if number:
                    yield ""
                yield from _lines(query)
        case Query():
            yield f"query {node.name}"
            yield from _indented(_query_lines(node))
        case patterns.Pattern():
            yield from _pattern_lines(node)
        case CompositeQuery():
            yield from query_lines(node, to_text)
        case Composite():
            yield from pattern_lines(node, to_text)
        case Rule():
            yield from rule_lines(node, to_text)
        case RowPattern():
            yield from row_pattern_lines(node)
        case SituationQuery():
            yield from situations.query_lines(node, to_text)
        case Situation():
            yield from situations.situation_lines(node, to_text)
        case Selected():
            yield _selected(node)
        case Window():
            yield _window(node)
        case _:
            yield from _other_lines(node)


def _query_lines(query: Query) -> Iterator[str]:
    selected = "*" if query.selected is None else ", ".join(map(_selected, query.selected)) or "nothing"
    yield f"select {query.strategy.value} {selected}"
    yield from (f"compute {item.name} = {expression_text(item.value)}" for item in query.computed)
    if query.universe is not None:
        yield "from " + ", ".join(f"{stream}>{type_}" for stream, type_ in query.universe)
    if query.partition:
        yield "partition by " + ", ".join(f"[{', '.join(part)}]" for part in query.partition)
    if query.window is not None:
        yield f"within {_window(query.window)}"
    if query.consume is not Consume.NONE:
        yield f"consume by {query.consume.value}"
    if query.limit is not None:
        yield f"limit {query.limit}"
    if query.session is not None:
        yield f"in sessions with gaps of at most {query.session} ticks"
    if query.top is not None:
        which = "least" if query.top.least else "greatest"
        value = expression_text(query.top.value)
        yield f"the {query.top.count} with the {which} {value}, every {query.top.every} ticks"
    if query.unless is not None:
        yield f"unless followed by {expression_text(query.unless)}"
    if query.skip is not None:
        yield skip_text(query.skip)
    yield "pattern"
    yield from _indented(_pattern_lines(query.pattern))


def _pattern_lines(pattern: patterns.Pattern) -> Iterator[str]:
    yield _pattern_head(pattern)
    if isinstance(pattern, Chain):
        yield from _indented(link_lines(pattern.links, expression_text))
    for child in pattern.children():
        if isinstance(child, patterns.Pattern):
            yield from _indented(_pattern_lines(child))


def _pattern_head(pattern: patterns.Pattern) -> str:
    match pattern:
        case patterns.Event(type_, stream):
            return f"event {_event(type_, stream)}"
        case patterns.Other(type_, stream, where):
            condition = "" if where == predicates.Always() else f"[{expression_text(where)}]"
            return f"other than {_event(type_, stream)}{condition}"
        case patterns.Bind(_, name):
            return f"bind {name}"
        case patterns.Sequence(contiguous=contiguous):
            return "sequence, contiguous" if contiguous else "sequence"
        case patterns.Repeat(contiguous=contiguous):
            return "repeat, contiguous" if contiguous else "repeat"
        case patterns.Union():
            return "union"
        case patterns.Maybe():
            return "maybe"
        case patterns.Filter(_, variable, predicate):
            return f"filter {variable}[{expression_text(predicate)}]"
        case patterns.Correlate(_, condition):
            return f"correlate {expression_text(condition)}"
    return type(pattern).__name__.lower()


def _other_lines(node: object) -> Iterator[str]:
    """Any other node: its name, and its fields below it."""
    if not is_dataclass(node):
        yield repr(node)
        return
    yield type(node).__name__.lower()
    for field in fields(node):
        value = getattr(node, field.name)
        items = value if isinstance(value, tuple) else (value,)
        for item in items:
            lines = list(_lines(item)) if is_dataclass(item) else [repr(item)]
            yield f"{INDENT}{field.name}: {lines[0]}"
            yield from _indented(_indented(lines[1:]))


def _indented(lines: Iterator[str] | list[str]) -> Iterator[str]:
    return (INDENT + line if line else line for line in lines)


def _event(type_: str, stream: str | None) -> str:
    return type_ if stream is None else f"{stream}>{type_}"


def _selected(selected: Selected) -> str:
    return f"{selected.name}[{', '.join(selected.attributes)}]" if selected.attributes else selected.name


def _window(window: Window) -> str:
    unit = {"events": "events", "time": "ticks", "attribute": f"[{window.attribute}]"}[window.unit]
    jump = "" if window.jump is None else f" jump {'any' if isinf(window.jump) else window.jump}"
    return f"{window.amount} {unit}{jump}"


# ---------------------------------------------------------------- expressions


def expression_text(node: predicates.Predicate | predicates.Expression) -> str:
    """A predicate or expression in one line, with no more parentheses than it needs."""
    return _expression(node)[0]


def _expression(node: object) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match node:
        case predicates.Literal(value):
            return _literal(value), _ATOM if not _is_negative(value) else _NEGATE
        case predicates.Attribute(name, variable):
            return name if variable is None else f"{variable}[{name}]", _ATOM
        case predicates.Aggregate(function, attribute) | predicates.Monotone(function, attribute):
            counted = attribute.variable if attribute.name == "*" else _expression(attribute)[0]
            return f"{function}({counted})", _ATOM
        case Summary():
            return summary_text(node, to_text), _ATOM
        case predicates.Negative(operand):
            return f"-{_at(operand, _ATOM)}", _NEGATE
        case predicates.Call(function, operands):
            return f"{function}({', '.join(_expression(operand)[0] for operand in operands)})", _ATOM
        case predicates.Arithmetic(operator, left, right):
            level = _LEVEL_OF_OPERATOR[operator]
            return f"{_at(left, level)} {operator} {_at(right, level + 1)}", level
        case predicates.Comparison(operator, left, right):
            return f"{_at(left, _ADD)} {operator} {_at(right, _ADD)}", _COMPARE
        case predicates.Like(operand, pattern):
            return f"{_at(operand, _ADD)} LIKE {_literal(pattern)}", _COMPARE
        case predicates.RegexMatch(operand, pattern):
            return f"{_at(operand, _ADD)} MATCHES {_literal(pattern)}", _COMPARE
        case predicates.In(operand, values):
            return f"{_at(operand, _ADD)} IN {{{', '.join(map(_literal, values))}}}", _COMPARE
        case Fits(types, where):
            parts = [*(["type IN {" + ", ".join(types) + "}"] if types else []), _at(where, _AND)]
            return " AND ".join(part for part in parts if part != "TRUE") or "TRUE", _AND
        case predicates.IsNull(operand):
            return f"{_at(operand, _ADD)} IS NULL", _COMPARE
        case _:
            return _connective(node)


def _connective(node: object) -> tuple[str, int]:
    match node:
        case predicates.And(operands):
            return " AND ".join(_at(operand, _NOT) for operand in operands) or "TRUE", _AND
        case predicates.Or(operands):
            return " OR ".join(_at(operand, _AND) for operand in operands) or "FALSE", _OR
        case predicates.Not(predicates.Always()):
            return "FALSE", _ATOM
        case predicates.Not(operand):
            return f"NOT {_at(operand, _NOT)}", _NOT
        case predicates.Always():
            return "TRUE", _ATOM
    return term_text(node, to_text), _ATOM


def _at(node: object, level: int) -> str:
    text, binds = _expression(node)
    return text if binds >= level else f"({text})"


def _literal(value: predicates.Value) -> str:
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    return number_text(value)


def _is_negative(value: predicates.Value) -> bool:
    return not isinstance(value, bool | str) and value < 0
