"""From EQL syntax back to text that parses to the same syntax."""

from __future__ import annotations

import re
from types import MappingProxyType

from weft.languages import syntax as expressions
from weft.languages.eql import syntax
from weft.languages.eql.mistakes import KEYWORDS
from weft.languages.printing import AND, COMPARE, NOT, OR, ExpressionPrinter
from weft.languages.syntax import Name

# How tightly patterns bind; an operand that binds less tightly is put in parentheses.
_UNION, _WITHOUT, _NEXT, _POSTFIX = range(4)
_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def to_source(node: syntax.Program) -> str:
    """The program as text: one clause per line, an empty line between statements."""
    definitions = [_definition(definition) for definition in node.definitions]
    return "\n\n".join([*definitions, *(query_text(query) for query in node.queries)]) + "\n"


def query_text(node: syntax.Query) -> str:
    """A query as text."""
    selected = "*" if node.selected is None else ", ".join(map(_selected, node.selected))
    lines = [f"SELECT {selected}", f"FROM {pattern_text(node.pattern)}"]
    if node.conditions:
        lines.append("WHERE " + ",\n      ".join(map(expression_text, node.conditions)))
    if node.sinks:
        lines.append("INTO " + ", ".join(map(_name, node.sinks)))
    return "\n".join(lines)


def _selected(node: expressions.Expression) -> str:
    if isinstance(node, expressions.Computed):
        return f"{expression_text(node.value)} AS {_name(node.name)}"
    return expression_text(node)


def _definition(node: syntax.Source | syntax.Sink) -> str:
    if isinstance(node, syntax.Sink):
        return f"SINK {_name(node.name)} TO {_quoted(node.uri)}"
    attributes = ", ".join(f"{_name(a.name)} {_name(a.kind)}" for a in node.attributes)
    uri = "" if node.uri is None else f" FROM {_quoted(node.uri)}"
    rate = "" if node.rate is None else f" RATE {node.rate!r}"
    return f"SOURCE {_name(node.type)} ({attributes}){uri}{rate}"


# ---------------------------------------------------------------- patterns


def pattern_text(node: syntax.Pattern) -> str:
    """A pattern as text, with no more parentheses than it needs."""
    return _pattern(node)[0]


def _pattern(node: syntax.Pattern) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match node:
        case syntax.Leaf(type_, alias):
            return _name(type_) + ("" if alias is None else f" {_name(alias)}"), _POSTFIX
        case syntax.Union(left, right):
            return f"{_at(left, _UNION)} | {_at(right, _WITHOUT)}", _UNION
        case syntax.Without(pattern, unwanted):
            return f"{_at(pattern, _WITHOUT)} \\ {_at(unwanted, _NEXT)}", _WITHOUT
        case syntax.Next(left, right):
            return f"{_at(left, _NEXT)} ; {_at(right, _POSTFIX)}", _NEXT
        case syntax.Repeated(pattern, count):
            return f"{_at(pattern, _POSTFIX)}{'+' if count is None else count.text}", _POSTFIX
        case syntax.Timed(pattern, duration):
            return f"{_at(pattern, _POSTFIX)} @ {_duration(duration)}", _POSTFIX
    raise AssertionError(f"not a pattern: {node!r}")


def _at(node: syntax.Pattern, level: int) -> str:
    text, binds = _pattern(node)
    return text if binds >= level else f"({text})"


# ---------------------------------------------------------------- conditions


class _Printer(ExpressionPrinter):
    """EQL's spelling of conditions and values."""

    connectives = MappingProxyType({OR: "OR", AND: "AND"})
    negation = "NOT "
    negation_level = NOT
    contains = "CONTAINS"
    true, false = "TRUE", "FALSE"

    def name(self, name: Name) -> str:
        return _name(name)

    def quoted(self, text: str) -> str:
        return _quoted(text)

    def own(self, node: expressions.Expression) -> tuple[str, int] | None:
        match node:
            case syntax.Occurs(first, last, duration):
                return f"({_name(first)}, {_name(last)}) OCCURS WITHIN {_duration(duration)}", COMPARE
            case syntax.Call(function, argument):
                return f"{function}({self.text(argument)})", self.atom
        return None


def expression_text(node: expressions.Expression) -> str:
    """A condition or value as text, with no more parentheses than it needs."""
    return _Printer().text(node)


def _duration(duration: syntax.Duration) -> str:
    return f"{duration.amount!r}" + ("" if duration.unit is None else f" {_name(duration.unit)}")


def _name(name: Name) -> str:
    if _PLAIN_NAME.fullmatch(name.text) and name.text.upper() not in KEYWORDS:
        return name.text
    return "`" + name.text.replace("`", "``") + "`"


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
