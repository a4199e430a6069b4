"""TESLA programs as written: one frozen node per construct, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from typing import Literal as OneOf

from weft.languages.syntax import Expression, Name, SyntaxNode

Function = OneOf["COUNT", "SUM", "AVG", "MIN", "MAX"]
Operator = OneOf["<", "<=", ">", ">=", "=", "<>"]

# ---------------------------------------------------------------- extents


@dataclass(frozen=True)
class Duration(SyntaxNode):
    """An amount of time with its unit as written."""

    amount: int | float
    unit: Name | None = None


class Extent(SyntaxNode):
    """The stretch of time in which events are looked for."""


@dataclass(frozen=True)
class Within(Extent):
    """`within duration from anchor`."""

    duration: Duration
    anchor: Name


@dataclass(frozen=True)
class Unbounded(Extent):
    """`from anchor`, without a duration, which is refused when it is lowered."""

    anchor: Name


@dataclass(frozen=True)
class Between(Extent):
    """`between first and second`."""

    first: Name
    second: Name


# ---------------------------------------------------------------- values and conditions


@dataclass(frozen=True)
class Parameter(Expression):
    """`$name`; the name is kept without the sign."""

    name: Name


@dataclass(frozen=True)
class Typed(Expression):
    """`[kind]attribute`, as T-Rex writes attributes that are compared with expressions."""

    kind: Name
    attribute: Name


@dataclass(frozen=True)
class Comparisons(Expression):
    """`a < b`, or a chain `45 < $t = Avg(…)`: each operand compared with the next."""

    operands: tuple[Expression, ...]
    operators: tuple[Operator, ...]

    def __post_init__(self) -> None:
        if not 1 <= len(self.operators) == len(self.operands) - 1:
            raise ValueError("one operator stands between each two operands")


@dataclass(frozen=True)
class Binding(Expression):
    """`attribute => $parameter`."""

    attribute: Name
    parameter: Name


@dataclass(frozen=True)
class Aggregate(Expression):
    """`Avg(type(constraints).attribute within … from …)`, or `AVG(type.attribute(constraints)) within … from …`."""

    function: Function
    type: Name
    constraints: tuple[Expression, ...] = ()
    attribute: Name | None = None
    extent: Extent | None = None


# ---------------------------------------------------------------- patterns


@dataclass(frozen=True)
class Predicate(SyntaxNode):
    """`type(constraints) as alias`."""

    type: Name
    constraints: tuple[Expression, ...] = ()
    alias: Name | None = None

    @property
    def variable(self) -> Name:
        """What its events are called: the alias, else the type."""
        return self.alias or self.type


class Clause(SyntaxNode):
    """One of the clauses separated by `and` after `from`."""


@dataclass(frozen=True)
class Selected(Clause):
    """`each predicate within … from …`; `3-last` has the count 3. The first clause has no selection."""

    predicate: Predicate
    selection: OneOf["each", "first", "last"] | None = None
    count: int | None = None
    extent: Extent | None = None


@dataclass(frozen=True)
class Negated(Clause):
    """`not predicate within … from …`, or `not predicate between … and …`."""

    predicate: Predicate
    extent: Extent | None = None


@dataclass(frozen=True)
class Condition(Clause):
    """A condition on aggregates."""

    condition: Expression


# ---------------------------------------------------------------- rules


@dataclass(frozen=True)
class Assigned(SyntaxNode):
    """`number => type`: T-Rex's number of an event type."""

    number: int | float
    type: Name


@dataclass(frozen=True)
class Declared(SyntaxNode):
    """`name: kind`."""

    name: Name
    kind: Name


@dataclass(frozen=True)
class Assignment(SyntaxNode):
    """`field = value`, or `field := value`. Another operator is refused when it is lowered."""

    field: Name
    value: Expression
    operator: Operator = "="


@dataclass(frozen=True)
class Rule(SyntaxNode):
    """`Rule label Assign … define type(fields) from clauses where assignments consuming names`."""

    type: Name
    fields: tuple[Declared, ...]
    clauses: tuple[Clause, ...]
    assignments: tuple[Assignment, ...] = ()
    consumed: tuple[Name, ...] = ()
    label: Name | None = None
    assigned: tuple[Assigned, ...] = ()


@dataclass(frozen=True)
class Program(SyntaxNode):
    """A file of rules."""

    many: ClassVar[bool] = True

    rules: tuple[Rule, ...]
