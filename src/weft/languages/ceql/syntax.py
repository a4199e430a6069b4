"""CEQL programs as written: one frozen node per construct, each with its place in the text.

Places do not count when nodes are compared, so two texts that differ in layout alone give equal trees.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import ClassVar
from typing import Literal as OneOf

from weft.languages.syntax import NOWHERE
from weft.languages.syntax import And as And
from weft.languages.syntax import Arithmetic as Arithmetic
from weft.languages.syntax import Comparison as Comparison
from weft.languages.syntax import Expression as Expression
from weft.languages.syntax import Literal as Literal
from weft.languages.syntax import Name as Name
from weft.languages.syntax import Negative as Negative
from weft.languages.syntax import Not as Not
from weft.languages.syntax import Or as Or
from weft.languages.syntax import SyntaxNode as SyntaxNode
from weft.source import Span


@dataclass(frozen=True)
class Variable(SyntaxNode):
    """`name` or `stream>name`: what filters and select lists speak of."""

    name: Name
    stream: Name | None = None

    @property
    def text(self) -> str:
        """The variable as the algebra spells it."""
        return self.name.text if self.stream is None else f"{self.stream.text}>{self.name.text}"


# ---------------------------------------------------------------- filters and predicates


@dataclass(frozen=True)
class Attribute(Expression):
    """A bare name inside brackets: an attribute of the current event."""

    name: Name


@dataclass(frozen=True)
class Of(Expression):
    """`variable[body]`: a predicate on a variable's events, or an attribute; `more` of them in a select list only."""

    variable: Variable
    body: Expression
    more: tuple[Expression, ...] = ()


@dataclass(frozen=True)
class Call(Expression):
    """`FUNCTION(variable[attribute])` or `COUNT(variable)`."""

    function: str
    variable: Variable
    attribute: Name | None = None


@dataclass(frozen=True)
class Like(Expression):
    """`operand [NOT] LIKE 'pattern'`, or MATCHES."""

    operator: OneOf["LIKE", "MATCHES"]
    operand: Expression
    pattern: str
    negated: bool = False
    pattern_span: Span = field(default=NOWHERE, compare=False, repr=False, kw_only=True)


@dataclass(frozen=True)
class In(Expression):
    """`operand [NOT] IN {values}`."""

    many: ClassVar[bool] = True

    operand: Expression
    values: tuple[Literal, ...]
    negated: bool = False


@dataclass(frozen=True)
class InRange(Expression):
    """`operand [NOT] IN RANGE (low, high)`, both ends included; as BETWEEN says it too."""

    operand: Expression
    low: Expression
    high: Expression
    negated: bool = False
    between: bool = False


@dataclass(frozen=True)
class IsNull(Expression):
    """`operand IS [NOT] NULL`."""

    operand: Expression
    negated: bool = False


@dataclass(frozen=True)
class Function(Expression):
    """`FUNCTION(operands)`, of values: ABS, LOWER, COALESCE and so on."""

    function: str
    operands: tuple[Expression, ...]


@dataclass(frozen=True)
class Timestamp(Expression):
    """`TIMESTAMP '2024-05-01 12:00:00'`."""

    text: str


# ---------------------------------------------------------------- formulas


class Formula(SyntaxNode):
    """A pattern: the content of the WHERE clause."""


@dataclass(frozen=True)
class Event(Formula):
    """`type` or `stream>type`."""

    type: Name
    stream: Name | None = None

    @property
    def occurrence(self) -> tuple[str | None, str]:
        """The stream, if named, and the type."""
        return (None if self.stream is None else self.stream.text), self.type.text


@dataclass(frozen=True)
class Negated(Formula):
    """`NOT(formula)`; it makes sense only of one event, filtered or not."""

    formula: Formula


@dataclass(frozen=True)
class Named(Formula):
    """`formula AS name`."""

    formula: Formula
    name: Name


@dataclass(frozen=True)
class Repeated(Formula):
    """`formula +`, or `formula :+`."""

    formula: Formula
    contiguous: bool = False


@dataclass(frozen=True)
class Counted(Formula):
    """`formula {least, most}`, or `formula :{least, most}`; `most` None: or more. `formula ?` is {0,1}."""

    formula: Formula
    least: int | float
    most: int | float | None
    contiguous: bool = False


@dataclass(frozen=True)
class Sequence(Formula):
    """`left ; right`, or `left : right`."""

    left: Formula
    right: Formula
    contiguous: bool = False


@dataclass(frozen=True)
class Either(Formula):
    """`left OR right`."""

    left: Formula
    right: Formula


@dataclass(frozen=True)
class Filtered(Formula):
    """`formula FILTER condition`."""

    formula: Formula
    condition: Expression


# ---------------------------------------------------------------- queries


@dataclass(frozen=True)
class Selected(SyntaxNode):
    """`variable`, or `variable[attributes]`."""

    variable: Variable
    attributes: tuple[Name, ...] = ()


@dataclass(frozen=True)
class SelectedValue(SyntaxNode):
    """`expression AS name`: a computed field."""

    value: Expression
    name: Name | None


@dataclass(frozen=True)
class Amount(SyntaxNode):
    """An amount with its unit as written: `5 EVENTS`, `1.5 HOURS`."""

    amount: int | float
    unit: Name


@dataclass(frozen=True)
class Within(SyntaxNode):
    """`WITHIN` and its spans, or `WITHIN amount [attribute]`, perhaps with `JUMP` and a number or a word."""

    spans: tuple[Amount, ...] = ()
    amount: int | float | None = None
    attribute: Name | None = None
    jump: int | float | Name | None = None


@dataclass(frozen=True)
class Partition(SyntaxNode):
    """`PARTITION BY [a, b], [c]`: its key parts."""

    parts: tuple[tuple[Name, ...], ...]


@dataclass(frozen=True)
class Consume(SyntaxNode):
    """`CONSUME BY what`."""

    what: Name


@dataclass(frozen=True)
class Limit(SyntaxNode):
    """`LIMIT amount`."""

    amount: int | float


@dataclass(frozen=True)
class Session(SyntaxNode):
    """`SESSION spans`: the longest gap inside a session."""

    spans: tuple[Amount, ...]


@dataclass(frozen=True)
class Top(SyntaxNode):
    """`ORDER BY value DESC LIMIT amount EVERY spans`."""

    value: Expression
    amount: int | float
    spans: tuple[Amount, ...]
    ascending: bool = False


class Statement(SyntaxNode):
    """A declaration or a query."""


@dataclass(frozen=True)
class Query(Statement):
    """One query. `selected` None is `*`; the empty tuple is NONE. `extra` holds clauses written twice."""

    formula: Formula
    name: Name | None = None
    strategy: str | None = None
    selected: tuple[Selected | SelectedValue, ...] | None = None
    streams: tuple[Name, ...] = ()
    partition: Partition | None = None
    within: Within | None = None
    consume: Consume | None = None
    limit: Limit | None = None
    session: Session | None = None
    top: Top | None = None
    extra: tuple[SyntaxNode, ...] = ()


# ---------------------------------------------------------------- declarations


@dataclass(frozen=True)
class AttributeDeclaration(SyntaxNode):
    """`name:kind`, or `name kind`."""

    name: Name
    kind: Name


@dataclass(frozen=True)
class EventDeclaration(Statement):
    """`EVENT name { … }` in a stream, or `DECLARE EVENT name(…)`."""

    many: ClassVar[bool] = True

    name: Name
    attributes: tuple[AttributeDeclaration, ...] = ()


@dataclass(frozen=True)
class CreateStream(Statement):
    """`CREATE STREAM name { EVENT …, … }`."""

    many: ClassVar[bool] = True

    name: Name
    events: tuple[EventDeclaration, ...] = ()


@dataclass(frozen=True)
class DeclareStream(Statement):
    """`DECLARE STREAM name(types)`."""

    many: ClassVar[bool] = True

    name: Name
    types: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Quarantine(Statement):
    """`CREATE QUARANTINE { … }`, its block kept as written."""

    block: str


@dataclass(frozen=True)
class Program(SyntaxNode):
    """A file: declarations and queries, in order."""

    many: ClassVar[bool] = True

    statements: tuple[Statement, ...]

    @property
    def queries(self) -> tuple[Query, ...]:
        """The queries, in order."""
        return tuple(s for s in self.statements if isinstance(s, Query))
