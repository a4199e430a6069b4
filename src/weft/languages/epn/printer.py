"""From the syntax of patterns with policies back to text that parses to the same syntax."""

from __future__ import annotations

import re
from collections.abc import Iterable
from types import MappingProxyType

from weft.languages import syntax as expressions
from weft.languages.epn import syntax
from weft.languages.epn.mistakes import KEYWORDS
from weft.languages.printing import AND, NOT, OR, ExpressionPrinter
from weft.languages.syntax import Name

_PLAIN_NAME = re.compile(r"[^\W\d]\w*")


def to_source(node: syntax.Program) -> str:
    """The program as text: one clause per line, an empty line between patterns."""
    return "\n\n".join(pattern_text(pattern) for pattern in node.patterns) + "\n"


def pattern_text(node: syntax.Pattern) -> str:
    """A pattern as text."""
    participants = ", ".join(map(_participant, node.participants))
    lines = [f"pattern {_name(node.name)}", f"{_name(node.kind)}({participants})", *map(clause_text, node.clauses)]
    return "\n  ".join(lines)


def clause_text(node: syntax.Clause) -> str:
    """A clause as text."""
    match node:
        case syntax.Where(condition):
            return f"where {expression_text(condition)}"
        case syntax.Policies(groups):
            return f"policies {'; '.join(map(_group, groups))}"
        case syntax.Context(interval, by, forget):
            parts = [*([_interval(interval)] if interval else []), *([f"by {_names(by)}"] if by else [])]
            return f"context {' '.join([*parts, *([f'forget {_duration(forget)}'] if forget else [])])}"
        case syntax.Derive(fields):
            return "derive " + ", ".join(f"{_name(field.name)} = {expression_text(field.value)}" for field in fields)
    raise AssertionError(f"not a clause: {node!r}")


def _participant(node: syntax.Participant) -> str:
    alias = "" if node.alias is None else f" {_name(node.alias)}"
    condition = "" if node.filter is None else f"[{expression_text(node.filter)}]"
    return f"{_name(node.type)}{alias}{condition}"


def _group(node: syntax.Group) -> str:
    # A value may be called like a keyword (`every`): nothing but a name can stand there.
    settings = ", ".join(f"{_name(setting.policy)} {_value(setting.value)}" for setting in node.settings)
    return f"{_names(node.variables)}: {settings}" if node.variables else settings


def _value(name: Name) -> str:
    return name.text if _is_plain(name) or name.text[:1].isdigit() else _back_quoted(name)


def _interval(node: syntax.Interval) -> str:
    match node:
        case syntax.Fixed(length):
            return f"fixed {_duration(length)}"
        case syntax.Sliding(length, step):
            return f"sliding {_duration(length)} every {_duration(step)}"
        case syntax.Until(opener, closer):
            return f"from {_name(opener)} until {_name(closer)}"
        case syntax.Lasting(opener, length):
            return f"from {_name(opener)} for {_duration(length)}"
    raise AssertionError(f"not an interval: {node!r}")


class _Printer(ExpressionPrinter):
    """The spelling of conditions and values."""

    connectives = MappingProxyType({OR: "or", AND: "and"})
    negation = "not "
    negation_level = NOT
    contains = "contains"
    true, false = "true", "false"

    def name(self, name: Name) -> str:
        return _name(name)

    def quoted(self, text: str) -> str:
        return "'" + text.replace("'", "''") + "'"

    def own(self, node: expressions.Expression) -> tuple[str, int] | None:
        if isinstance(node, syntax.Call):
            return f"{node.function.text}({', '.join(map(self.text, node.operands))})", self.atom
        return None


def expression_text(node: expressions.Expression) -> str:
    """A condition or value as text, with no more parentheses than it needs."""
    return _Printer().text(node)


def _duration(duration: syntax.Duration) -> str:
    return f"{duration.amount!r}" + ("" if duration.unit is None else f" {_name(duration.unit)}")


def _names(names: Iterable[Name]) -> str:
    return ", ".join(map(_name, names))


def _name(name: Name) -> str:
    return name.text if _is_plain(name) and name.text.upper() not in KEYWORDS else _back_quoted(name)


def _is_plain(name: Name) -> bool:
    return _PLAIN_NAME.fullmatch(name.text) is not None


def _back_quoted(name: Name) -> str:
    return "`" + name.text.replace("`", "``") + "`"
