"""Conditions and values as Python expressions: `e.amount < 2` is a tree, not a truth.

What is written here runs on every engine; no Python code is called for an event.
"""

from __future__ import annotations

from collections.abc import Iterable
from decimal import Decimal
from typing import NoReturn

from weft.algebra import predicates as algebra
from weft.algebra.numbers import real
from weft.algebra.text.program import to_text
from weft.described import described
from weft.errors import UsageError
from weft.languages.content.lower import compile_filter
from weft.pattern.limits import require_number, require_pattern, require_text

Constant = algebra.Value
Operand = "Value | Constant"


class Condition:
    """Something that an event satisfies or not. Combine conditions by `&`, `|` and `~`."""

    def __init__(self, predicate: algebra.Predicate) -> None:
        self.predicate = predicate

    def __and__(self, other: Condition | str) -> Condition:
        return Condition(joined(algebra.And, self.predicate, _predicate(other)))

    def __or__(self, other: Condition | str) -> Condition:
        return Condition(joined(algebra.Or, self.predicate, _predicate(other)))

    def __invert__(self) -> Condition:
        return Condition(algebra.Not(self.predicate))

    def __bool__(self) -> NoReturn:
        raise UsageError("a condition has no truth yet: write & for and, | for or, ~ for not, and put each part in ()")

    def __repr__(self) -> str:
        return to_text(self.predicate)


class Value:
    """A value of the current event: an attribute, a constant, or what is calculated from them."""

    def __init__(self, expression: algebra.Expression) -> None:
        self.expression = expression

    # Comparisons give conditions, so values are told apart by identity only where Python asks for a hash.
    __hash__ = object.__hash__

    def __eq__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compared("=", other)

    def __ne__(self, other: object) -> Condition:  # type: ignore[override]
        return self._compared("<>", other)

    def __lt__(self, other: Value | Constant) -> Condition:
        return self._compared("<", other)

    def __le__(self, other: Value | Constant) -> Condition:
        return self._compared("<=", other)

    def __gt__(self, other: Value | Constant) -> Condition:
        return self._compared(">", other)

    def __ge__(self, other: Value | Constant) -> Condition:
        return self._compared(">=", other)

    def __add__(self, other: Value | Constant) -> Value:
        return self._calculated("+", self, other)

    def __radd__(self, other: Constant) -> Value:
        return self._calculated("+", other, self)

    def __sub__(self, other: Value | Constant) -> Value:
        return self._calculated("-", self, other)

    def __rsub__(self, other: Constant) -> Value:
        return self._calculated("-", other, self)

    def __mul__(self, other: Value | Constant) -> Value:
        return self._calculated("*", self, other)

    def __rmul__(self, other: Constant) -> Value:
        return self._calculated("*", other, self)

    def __truediv__(self, other: Value | Constant) -> Value:
        return self._calculated("/", self, other)

    def __rtruediv__(self, other: Constant) -> Value:
        return self._calculated("/", other, self)

    def __mod__(self, other: Value | Constant) -> Value:
        return self._calculated("%", self, other)

    def __neg__(self) -> Value:
        return Value(algebra.Negative(self.expression))

    def __abs__(self) -> Value:
        return self._called("ABS")

    def is_null(self) -> Condition:
        """The event has no such value."""
        return Condition(algebra.IsNull(self.expression))

    def is_in(self, values: Iterable[Constant]) -> Condition:
        """It equals one of the constants."""
        constants = tuple(values)
        for value in constants:
            _constant(value)
        return Condition(algebra.In(self.expression, constants))

    def between(self, low: Value | Constant, high: Value | Constant) -> Condition:
        """It is not below the one and not above the other."""
        return (self >= low) & (self <= high)

    def like(self, pattern: str) -> Condition:
        """SQL's LIKE: `%` is any text, `_` any one character."""
        return Condition(algebra.Like(self.expression, require_pattern(pattern, "the text of like")))

    def matches(self, pattern: str) -> Condition:
        """A regular expression is found in it."""
        return Condition(
            algebra.RegexMatch(self.expression, require_pattern(pattern, "the pattern of matches", regex=True))
        )

    def lower(self) -> Value:
        """The text in small letters."""
        return self._called("LOWER")

    def upper(self) -> Value:
        """The text in capital letters."""
        return self._called("UPPER")

    def length(self) -> Value:
        """How many characters the text has."""
        return self._called("LENGTH")

    def __bool__(self) -> NoReturn:
        raise UsageError("a value has no truth yet: compare it, as in e.amount > 3 or e.paid == True")

    def __repr__(self) -> str:
        return to_text(self.expression)

    def _called(self, function: algebra.Function) -> Value:
        return Value(algebra.Call(function, (self.expression,)))

    def _compared(self, operator: algebra.ComparisonOperator, other: object) -> Condition:
        return Condition(algebra.Comparison(operator, self.expression, _expression(other)))

    @staticmethod
    def _calculated(operator: algebra.ArithmeticOperator, left: object, right: object) -> Value:
        return Value(algebra.Arithmetic(operator, _expression(left), _expression(right)))


class _Event:
    """The current event: its attributes are values, `e.amount` or `e["odd name"]`."""

    def __getattr__(self, name: str) -> Value:
        if name.startswith("__"):
            raise AttributeError(name)
        return Value(algebra.Attribute(name))

    def __getitem__(self, name: str) -> Value:
        return Value(algebra.Attribute(require_text(name, "the name of an attribute")))


e = _Event()


@described(values="Attributes and constants, in order.")
def coalesce(*values: Value | Constant) -> Value:
    """The first of the values that there is."""
    return Value(algebra.Call("COALESCE", tuple(_expression(value) for value in values)))


def condition_of(given: object) -> Condition:
    """A condition, or one given as text: `name = 'c' AND amount > 2`."""
    if isinstance(given, Condition):
        if any(isinstance(node, algebra.Attribute) and node.variable is not None for node in given.predicate.walk()):
            raise UsageError("this is about the current event, e: write conditions on the events of steps into having")
        return given
    if isinstance(given, str):
        return Condition(compile_filter(given))
    if callable(given):
        raise UsageError("a condition is an expression, not a function: write e.amount < 2, or the text 'amount < 2'")
    raise UsageError(f"a condition is an expression like e.amount < 2, or its text, not a {type(given).__name__}")


def _predicate(given: Condition | str) -> algebra.Predicate:
    return given.predicate if isinstance(given, Condition) else condition_of(given).predicate


def joined(
    kind: type[algebra.And] | type[algebra.Or], one: algebra.Predicate, other: algebra.Predicate
) -> algebra.Predicate:
    """One more operand of a connective."""
    return kind((*(one.operands if isinstance(one, kind) else (one,)), other))


def _expression(value: object) -> algebra.Expression:
    return value.expression if isinstance(value, Value) else algebra.Literal(_constant(value))


def _constant(value: object) -> Constant:
    if isinstance(value, str):
        return require_text(value, "a constant")
    if isinstance(value, int | float):
        require_number(value)
        return value
    if isinstance(value, Decimal) and value.is_finite():
        return real(f"{value:f}")
    if value is None:
        raise UsageError("nothing equals None: write e.amount.is_null(), or ~e.amount.is_null()")
    raise UsageError(f"a constant is a number, a text, True or False, not a {type(value).__name__}")
