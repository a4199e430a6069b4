"""From Step syntax back to text that parses to the same syntax."""

from __future__ import annotations

import re
from types import MappingProxyType

from weft.languages import syntax as expressions
from weft.languages.printing import AND, OR, UNARY, ExpressionPrinter
from weft.languages.step import syntax
from weft.languages.step.mistakes import KEYWORDS
from weft.languages.syntax import Name

_PLAIN_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*")

# How tightly patterns bind; an operand that binds less tightly is put in parentheses.
_EITHER, _FOLLOW, _OVERLAP, _REPEAT, _BASIC = range(5)


def to_source(node: syntax.Program) -> str:
    """The program as text: one statement per line, an empty line between its sections."""
    sections = [
        [] if node.topology is None else [f"topology {_quoted(node.topology)}"],
        [_external(external) for external in node.externals],
        [query_text(query) for query in node.queries],
    ]
    return "\n\n".join("\n".join(section) for section in sections if section) + "\n"


def query_text(node: syntax.Query) -> str:
    """A query as text."""
    projection = "*" if node.projection is None else ", ".join(map(_selected, node.projection))
    sink = "" if node.sink is None else f" > {_quoted(node.sink)}"
    return f"{_name(node.name)}({projection}): {pattern_text(node.pattern)}{sink}"


def _selected(node: expressions.Expression) -> str:
    if isinstance(node, expressions.Computed):
        return f"{expression_text(node.value)} AS {_name(node.name)}"
    return expression_text(node)


def _external(node: syntax.External) -> str:
    fields = ", ".join(f"{_name(field.name)}: {_name(field.kind)}" for field in node.fields)
    uri = "" if node.uri is None else f" < {_quoted(node.uri)}"
    rate = "" if node.rate is None else f" [{node.rate!r}]"
    return f"external {_name(node.type)}({fields}){uri}{rate}"


# ---------------------------------------------------------------- patterns


def pattern_text(node: syntax.Pattern) -> str:
    """A pattern as text, with no more parentheses than it needs."""
    return _pattern(node)[0]


def _pattern(node: syntax.Pattern) -> tuple[str, int]:
    """The text, and how tightly its outermost operator binds."""
    match node:
        case syntax.Leaf(type_, alias, condition):
            return _name(type_) + ("" if alias is None else f"/{_name(alias)}") + _bracketed(condition), _BASIC
        case syntax.Negated(pattern, None):
            return f"!{_at(pattern, _BASIC)}", _BASIC
        case syntax.Negated(pattern, condition):
            return f"!({pattern_text(pattern)}){_bracketed(condition)}", _BASIC
        case syntax.Repeat(pattern, condition, each, count):
            symbol = " +" if count is None else count.text
            return f"{_at(pattern, _BASIC)}{symbol}{'?' if each else ''}{_bracketed(condition)}", _REPEAT
        case syntax.Overlap(left, right, condition):
            return f"{_at(left, _REPEAT)} ,{_bracketed(condition)} {_at(right, _OVERLAP)}", _OVERLAP
        case syntax.Follow(left, right, condition, each):
            symbol = ";?" if each else ";"
            return f"{_at(left, _OVERLAP)} {symbol}{_bracketed(condition)} {_at(right, _FOLLOW)}", _FOLLOW
        case syntax.Either(left, right):
            return f"{_at(left, _FOLLOW)} | {_at(right, _EITHER)}", _EITHER
    raise AssertionError(f"not a pattern: {node!r}")


def _at(node: syntax.Pattern, level: int) -> str:
    text, binds = _pattern(node)
    return text if binds >= level else f"({text})"


def _bracketed(condition: expressions.Expression | None) -> str:
    return "" if condition is None else f"[{expression_text(condition)}]"


# ---------------------------------------------------------------- conditions


class _Printer(ExpressionPrinter):
    """Step's spelling of conditions and values."""

    connectives = MappingProxyType({OR: "||", AND: "&&"})
    negation = "!"
    negation_level = UNARY
    contains = "contains"
    true, false = "true", "false"
    chains = True

    def name(self, name: Name) -> str:
        return _name(name)

    def operator(self, symbol: str) -> str:
        return "!=" if symbol == "<>" else symbol

    def quoted(self, text: str) -> str:
        return _quoted(text)

    def own(self, node: expressions.Expression) -> tuple[str, int] | None:
        match node:
            case syntax.Previous(argument):
                return f"prev({self.text(argument)})", self.atom
            case syntax.Duration():
                return "dur", self.atom
            case syntax.Length():
                return "len", self.atom
        return None


def expression_text(node: expressions.Expression) -> str:
    """A condition or value as text, with no more parentheses than it needs."""
    return _Printer().text(node)


def _name(name: Name) -> str:
    if not _PLAIN_NAME.fullmatch(name.text):
        return "`" + name.text.replace("`", "``") + "`"
    return f"^{name.text}" if name.text in KEYWORDS else name.text


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
