# ruff: noqa: D102 - the methods are called after the rules of the grammars
"""From tokens to syntax: places, names and constants, and the rules for expressions that grammars have in common."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

from lark import Token
from lark.visitors import Transformer

from weft.algebra.numbers import real
from weft.languages import syntax
from weft.languages.limits import require_digits
from weft.source import Span

Child = Any  # what the grammar's rules hand on: tokens, nodes, tuples of nodes, or None for an absent option

_SAME_OPERATOR = {"==": "=", "!=": "<>"}


def place(token: Token) -> Span:
    """Where a token stands."""
    assert token.start_pos is not None
    assert token.end_pos is not None
    return Span(token.start_pos, token.end_pos)


def from_to(first: Child, last: Child) -> Span:
    """The text from one token or node to another."""
    start: int = first.start_pos if isinstance(first, Token) else first.span.start  # type: ignore[assignment]
    end: int = last.end_pos if isinstance(last, Token) else last.span.end  # type: ignore[assignment]
    return Span(start, end)


def number_of(token: Token) -> int | float:
    """Return the value of a number token: an integer unless it has a fraction or an exponent."""
    text: str = token.value
    require_digits(text, place(token))
    return int(text) if text.isdigit() else float(text)


def constant_of(token: Token) -> int | float | Decimal:
    """Return the exact value of a number token, with all its digits; with an exponent, a float."""
    number = number_of(token)
    return number if isinstance(number, int) or "e" in token.value.lower() else real(token.value)


class ExpressionRules(Transformer[Token, Any]):
    """One method per rule for values and conditions; a language adds its own, and says what names and texts are."""

    def name_of(self, token: Token) -> syntax.Name:
        """A name from its token, without back-quotes."""
        text: str = token.value
        return syntax.Name(text[1:-1].replace("``", "`") if text[0] == "`" else text, span=place(token))

    def text_of(self, token: Token) -> str:
        """A text from its token, in which the quote around it is written twice."""
        text: str = token.value
        return text[1:-1].replace(text[0] * 2, text[0])

    def or_(self, children: list[Child]) -> syntax.Or:
        left, right = children
        return syntax.Or(left, right, span=from_to(left, right))

    def and_(self, children: list[Child]) -> syntax.And:
        left, right = children
        return syntax.And(left, right, span=from_to(left, right))

    def not_(self, children: list[Child]) -> syntax.Not:
        word, operand = children
        return syntax.Not(operand, span=from_to(word, operand))

    def comparison(self, children: list[Child]) -> syntax.Comparison:
        left, operator, right = children
        symbol = _SAME_OPERATOR.get(operator.value, operator.value)
        return syntax.Comparison(symbol, left, right, span=from_to(left, right))

    def contains(self, children: list[Child]) -> syntax.Contains:
        operand, part = children
        return syntax.Contains(operand, part, span=from_to(operand, part))

    def arithmetic(self, children: list[Child]) -> syntax.Arithmetic:
        left, operator, right = children
        return syntax.Arithmetic(operator.value, left, right, span=from_to(left, right))

    def computed(self, children: list[Child]) -> syntax.Computed:
        value, name = children
        return syntax.Computed(value, self.name_of(name), span=from_to(value, name))

    def negative(self, children: list[Child]) -> syntax.Negative:
        minus, operand = children
        return syntax.Negative(operand, span=from_to(minus, operand))

    def field(self, children: list[Child]) -> syntax.Field:
        variable, *parts = children
        path = ".".join(self.name_of(part).text for part in parts)  # `device.os` is a field of a struct
        attribute = syntax.Name(path, span=from_to(parts[0], parts[-1]))
        return syntax.Field(self.name_of(variable), attribute, span=from_to(variable, parts[-1]))

    def bare(self, children: list[Child]) -> syntax.Bare:
        return syntax.Bare(self.name_of(children[0]), span=place(children[0]))

    def number(self, children: list[Child]) -> syntax.Literal:
        return syntax.Literal(constant_of(children[0]), span=place(children[0]))

    def string(self, children: list[Child]) -> syntax.Literal:
        return syntax.Literal(self.text_of(children[0]), span=place(children[0]))

    def true(self, children: list[Child]) -> syntax.Literal:
        return syntax.Literal(True, span=place(children[0]))

    def false(self, children: list[Child]) -> syntax.Literal:
        return syntax.Literal(False, span=place(children[0]))

    def listed(self, children: list[Child]) -> tuple[Child, ...]:
        return tuple(children)
