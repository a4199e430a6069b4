"""Expressions over the attributes of events: values, comparisons, and their Boolean combinations.

A missing attribute has the value `None`. A comparison with it is false whatever its operator, and so
is one whose arithmetic is undefined or whose sides are of different kinds (semantics.md 1).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal as OneOf

from weft.algebra.functions import UserFunction
from weft.tree import Node

Value = int | float | Decimal | str | bool  # a decimal is what no float stands for
ArithmeticOperator = OneOf["+", "-", "*", "/", "%"]
ComparisonOperator = OneOf["<", "<=", ">", ">=", "=", "<>"]
MIRRORED: dict[ComparisonOperator, ComparisonOperator] = {
    "<": ">",
    "<=": ">=",
    ">": "<",
    ">=": "<=",
    "=": "=",
    "<>": "<>",
}  # the operator when the sides are exchanged
Function = (
    OneOf["ABS", "LEAST", "GREATEST", "LOWER", "UPPER", "LENGTH", "COALESCE"]
    | OneOf["YEAR", "MONTH", "DAY", "HOUR", "MINUTE", "SECOND"]
)
AggregateFunction = OneOf["COUNT", "SUM", "AVG", "MIN", "MAX", "FIRST", "LAST"]


class Expression(Node):
    """Something with a value: a number, a text, a boolean, or nothing."""


class Predicate(Node):
    """Something that is true or false."""


@dataclass(frozen=True)
class Literal(Expression):
    """A constant. Python's `1 == True` does not make two literals equal: they never compare as values."""

    value: Value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Literal) and type(self.value) is type(other.value) and self.value == other.value

    def __hash__(self) -> int:
        return hash((type(self.value), self.value))


@dataclass(frozen=True)
class Attribute(Expression):
    """An attribute of the current event (`variable` is None) or of the events bound to a variable."""

    name: str
    variable: str | None = None


@dataclass(frozen=True)
class Arithmetic(Expression):
    """`left operator right`; division is real, `%` takes the sign of its left side."""

    operator: ArithmeticOperator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Negative(Expression):
    """`-operand`."""

    operand: Expression


@dataclass(frozen=True)
class Call(Expression):
    """A function of values, without a value where it makes no sense: of a missing value, or of one of another kind.

    LOWER, UPPER and LENGTH are of texts, ABS, LEAST and GREATEST of numbers; COALESCE is the first operand that has a
    value. The parts of a date are of a whole number of ticks since 1970, each of `tick` nanoseconds, in UTC, for the
    years 1 to 9999.
    """

    function: Function | UserFunction
    operands: tuple[Expression, ...]
    tick: int = 10**6


@dataclass(frozen=True)
class Aggregate(Expression):
    """A function of one attribute over all events bound to a variable, in stream order.

    `COUNT` of the attribute `*` counts the events themselves, whatever attributes they have.
    """

    function: AggregateFunction
    attribute: Attribute


@dataclass(frozen=True)
class Always(Predicate):
    """True of everything."""


@dataclass(frozen=True)
class Comparison(Predicate):
    """`left operator right`."""

    operator: ComparisonOperator
    left: Expression
    right: Expression


@dataclass(frozen=True)
class Like(Predicate):
    """SQL's LIKE: `%` is any text, `_` any one character; the whole value must match."""

    operand: Expression
    pattern: str


@dataclass(frozen=True)
class RegexMatch(Predicate):
    """A regular expression found anywhere in the value (RE2's syntax)."""

    operand: Expression
    pattern: str


@dataclass(frozen=True)
class In(Predicate):
    """The value equals one of the constants."""

    operand: Expression
    values: tuple[Value, ...]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, In) and self.operand == other.operand and self._constants == other._constants

    def __hash__(self) -> int:
        return hash((self.operand, self._constants))

    @property
    def _constants(self) -> tuple[Literal, ...]:
        return tuple(map(Literal, self.values))


@dataclass(frozen=True)
class IsNull(Predicate):
    """The operand has no value."""

    operand: Expression


@dataclass(frozen=True)
class And(Predicate):
    """All hold."""

    operands: tuple[Predicate, ...]


@dataclass(frozen=True)
class Or(Predicate):
    """At least one holds."""

    operands: tuple[Predicate, ...]


@dataclass(frozen=True)
class Not(Predicate):
    """The operand does not hold."""

    operand: Predicate


@dataclass(frozen=True)
class Monotone(Predicate):
    """The attribute strictly rises (or falls) along the events bound to its variable."""

    direction: OneOf["INCREASING", "DECREASING"]
    attribute: Attribute


def is_passed_on(fields: Iterable[tuple[str, Expression | None]], name: str) -> bool:
    """Whether one of the fields is the attribute of the same name of some event."""
    return any(own == name and isinstance(value, Attribute) and value.name == name for own, value in fields)


def calls_of_several(node: Node) -> list[Call]:
    """The functions in a condition or value that read several variables."""
    return [part for part in node.walk() if isinstance(part, Call) and len(variables_of(part)) > 1]


def variables_of(node: Node) -> frozenset[str]:
    """The variables a predicate or expression mentions."""
    return frozenset(n.variable for n in node.walk() if isinstance(n, Attribute) and n.variable is not None)
