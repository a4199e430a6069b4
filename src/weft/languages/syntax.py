"""Values and conditions as written, as far as languages agree on them; places do not count when nodes are compared."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar
from typing import Literal as OneOf

from weft.algebra.predicates import Value
from weft.source import Span
from weft.tree import Node

NOWHERE = Span(0, 0)


@dataclass(frozen=True)
class SyntaxNode(Node):
    """A piece of a program, with its place in the text."""

    many: ClassVar[bool] = False  # whether it lists parts of which there may be any number

    span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class Name(SyntaxNode):
    """An identifier, without quotes."""

    text: str


class Expression(SyntaxNode):
    """A value or a condition; which of the two is decided when it is lowered, where a better message can be given."""


@dataclass(frozen=True)
class Literal(Expression):
    """A number, a text, true or false."""

    value: Value


@dataclass(frozen=True)
class Field(Expression):
    """`variable.attribute`."""

    variable: Name
    attribute: Name

    @property
    def text(self) -> str:
        """The field as it is written."""
        return f"{self.variable.text}.{self.attribute.text}"


@dataclass(frozen=True)
class Bare(Expression):
    """A name alone, which is neither a value nor a condition."""

    name: Name


@dataclass(frozen=True)
class Arithmetic(Expression):
    """`left operator right`."""

    operator: OneOf["+", "-", "*", "/", "%"]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Negative(Expression):
    """`-operand`."""

    operand: Expression


@dataclass(frozen=True)
class Comparison(Expression):
    """`left operator right`; `==` is kept as `=`, `!=` as `<>`."""

    operator: OneOf["<", "<=", ">", ">=", "=", "<>"]
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Contains(Expression):
    """`operand contains part`."""

    operand: Expression
    part: Expression


@dataclass(frozen=True)
class And(Expression):
    """Both hold."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Or(Expression):
    """At least one holds."""

    left: Expression
    right: Expression


@dataclass(frozen=True)
class Not(Expression):
    """The operand does not hold."""

    operand: Expression


@dataclass(frozen=True)
class Computed(Expression):
    """`value AS name`, where fields are selected."""

    value: Expression
    name: Name


def chain(node: And | Or) -> list[Expression]:
    """Return the operands of a chain of equal connectives without brackets, left to right."""
    found = []
    left: Expression = node
    while type(left) is type(node):
        found.append(left.right)
        left = left.left
    return [left, *reversed(found)]


def parts_of(node: Expression, kind: type[And] | type[Or]) -> Iterator[Expression]:
    """The operands of a chain of the same connective, left to right."""
    pending = [node]
    while pending:
        part = pending.pop()
        if isinstance(part, kind):
            pending += [part.right, part.left]
        else:
            yield part
