"""Values and conditions back to text, with no more parentheses than they need; a language says how it spells them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from weft.algebra.numbers import number_text
from weft.algebra.predicates import Value
from weft.languages import syntax

# How tightly an expression binds; an operand that binds less tightly is put in parentheses.
OR, AND, NOT, COMPARE, ADD, MULTIPLY, UNARY, ATOM = range(8)
_LEVEL_OF_OPERATOR = {"+": ADD, "-": ADD, "*": MULTIPLY, "/": MULTIPLY}


class ExpressionPrinter:
    """Prints expressions; a language overrides the spelling."""

    connectives: ClassVar[Mapping[int, str]]
    negation: ClassVar[str]
    negation_level: ClassVar[int]  # how tightly it binds
    contains: ClassVar[str]
    true: ClassVar[str]
    false: ClassVar[str]
    chains: ClassVar[bool] = False  # whether a comparison may stand on the left of another
    atom: ClassVar[int] = ATOM

    def name(self, name: syntax.Name) -> str:
        """A name as it is written."""
        return name.text

    def operator(self, symbol: str) -> str:
        """A comparison operator as it is written."""
        return symbol

    def quoted(self, text: str) -> str:
        """A text in quotes."""
        raise NotImplementedError

    def own(self, node: syntax.Expression) -> tuple[str, int] | None:
        """A node that only this language has, and how tightly it binds."""
        return None

    def text(self, node: syntax.Expression) -> str:
        """A condition or value as text."""
        return self._shown(node)[0]

    def _shown(self, node: syntax.Expression) -> tuple[str, int]:
        match node:
            case syntax.Or():
                return f" {self.connectives[OR]} ".join(self._at(part, AND) for part in syntax.chain(node)), OR
            case syntax.And():
                return f" {self.connectives[AND]} ".join(self._at(part, NOT) for part in syntax.chain(node)), AND
            case syntax.Not(operand):
                return f"{self.negation}{self._at(operand, self.negation_level)}", self.negation_level
            case syntax.Comparison(operator, left, right):
                first = self._at(left, COMPARE if self.chains else ADD)
                return f"{first} {self.operator(operator)} {self._at(right, ADD)}", COMPARE
            case syntax.Contains(operand, part):
                first = self._at(operand, COMPARE if self.chains else ADD)
                return f"{first} {self.contains} {self._at(part, ADD)}", COMPARE
        return self.own(node) or self._value(node)

    def _value(self, node: syntax.Expression) -> tuple[str, int]:
        match node:
            case syntax.Arithmetic(operator, left, right):
                level = _LEVEL_OF_OPERATOR[operator]
                return f"{self._at(left, level)} {operator} {self._at(right, level + 1)}", level
            case syntax.Negative(operand):
                # Two minus signs in a row would begin a comment.
                return f"-{self._at(operand, ATOM)}", UNARY
            case syntax.Literal(value):
                return self._literal(value), ATOM
            case syntax.Field(variable, attribute):
                return f"{self.name(variable)}.{self.name(attribute)}", ATOM
            case syntax.Bare(name):
                return self.name(name), ATOM
        raise AssertionError(f"not an expression: {node!r}")

    def _at(self, node: syntax.Expression, level: int) -> str:
        text, binds = self._shown(node)
        return text if binds >= level else f"({text})"

    def _literal(self, value: Value) -> str:
        if isinstance(value, bool):
            return self.true if value else self.false
        return self.quoted(value) if isinstance(value, str) else number_text(value)
