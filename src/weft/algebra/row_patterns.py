"""Row patterns: what SQL's MATCH_RECOGNIZE means, a regular expression over rows in which the preferred match counts.

Expressions are in a normal form: every reference to a row of the match is an `At`, every fold over its rows an
`Aggregate`; below these, `Field` and `Label` speak of the one row at hand. Subsets are resolved to their members.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from weft.tree import Node

Variables = tuple[str, ...] | None  # primary variables, None for all of them
RowsPerMatch = Literal["one", "show", "omit", "unmatched"]
SkipMode = Literal["past last", "next", "first", "last"]


# ---------------------------------------------------------------- patterns


class RowExpression(Node):
    """A value: of a row, of a match, or a constant."""


class Pattern(Node):
    """A regular expression over rows, with preferment."""


@dataclass(frozen=True)
class Variable(Pattern):
    """One row that satisfies the variable's condition, mapped to the variable."""

    name: str


@dataclass(frozen=True)
class Empty(Pattern):
    """No row."""


@dataclass(frozen=True)
class Anchor(Pattern):
    """No row, before the partition's first row or after its last."""

    end: bool


@dataclass(frozen=True)
class Concat(Pattern):
    """One part after the other."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Alternation(Pattern):
    """One of the parts, an earlier one preferred."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Permute(Pattern):
    """All parts in some order; orders are preferred lexicographically by written place."""

    parts: tuple[Pattern, ...]


@dataclass(frozen=True)
class Quantified(Pattern):
    """The pattern again and again; greedy ones prefer one more iteration, others one less. `most` None: no bound."""

    pattern: Pattern
    least: int
    most: int | None
    greedy: bool = True


@dataclass(frozen=True)
class Exclusion(Pattern):
    """The pattern, whose rows are not shown."""

    pattern: Pattern


# ---------------------------------------------------------------- expressions


@dataclass(frozen=True)
class Constant(RowExpression):
    """A constant; `kind` names the SQL type where the value alone does not say it."""

    value: Any
    kind: str = ""


@dataclass(frozen=True)
class Field(RowExpression):
    """A column of the row at hand."""

    name: str


@dataclass(frozen=True)
class Label(RowExpression):
    """The variable that the row at hand is mapped to; null outside the match."""


@dataclass(frozen=True)
class MatchNumber(RowExpression):
    """The number of the match in its partition."""


@dataclass(frozen=True)
class At(RowExpression):
    """The argument at one row: `offset` rows of the variables from the first or last, then `shift` partition rows."""

    argument: RowExpression
    variables: Variables = None
    first: bool = False
    offset: int = 0
    shift: int = 0
    final: bool = False


@dataclass(frozen=True)
class Aggregate(RowExpression):
    """A fold over the rows of the variables. No arguments: it counts rows."""

    function: str
    arguments: tuple[RowExpression, ...]
    variables: Variables = None
    distinct: bool = False
    final: bool = False


@dataclass(frozen=True)
class Call(RowExpression):
    """A scalar function or operator, in lower case (`+`, `<`, `and`, `is null`, `upper`, …)."""

    function: str
    arguments: tuple[RowExpression, ...]


@dataclass(frozen=True)
class When(Node):
    """A branch of CASE."""

    condition: RowExpression
    value: RowExpression


@dataclass(frozen=True)
class Case(RowExpression):
    """The value of the first branch whose condition is true."""

    branches: tuple[When, ...]
    otherwise: RowExpression


@dataclass(frozen=True)
class Cast(RowExpression):
    """A value in another type; one that cannot be is an error, or null when tried only."""

    argument: RowExpression
    type: str
    tries: bool = False


# ---------------------------------------------------------------- the clause


@dataclass(frozen=True)
class OrderKey(Node):
    """A column that rows are in the order of."""

    column: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class Measure(Node):
    """A column of the result."""

    name: str
    value: RowExpression


@dataclass(frozen=True)
class Define(Node):
    """What a row must satisfy to be mapped to a variable."""

    variable: str
    condition: RowExpression


@dataclass(frozen=True)
class Skip(Node):
    """Where the next attempt starts after a match."""

    mode: SkipMode = "past last"
    variables: tuple[str, ...] = ()
    name: str = ""  # as it is called in messages


@dataclass(frozen=True)
class RowPattern(Node):
    """One MATCH_RECOGNIZE clause."""

    pattern: Pattern
    defines: tuple[Define, ...] = ()
    measures: tuple[Measure, ...] = ()
    partition: tuple[str, ...] = ()
    order: tuple[OrderKey, ...] = ()
    rows: RowsPerMatch = "one"
    skip: Skip = Skip()
    within: int | None = None  # microseconds

    @property
    def variables(self) -> tuple[str, ...]:
        """The primary variables, in the order in which the pattern names them first."""
        return tuple(dict.fromkeys(node.name for node in self.pattern.walk() if isinstance(node, Variable)))

    def condition(self, variable: str) -> RowExpression | None:
        """What rows of a variable must satisfy, None: nothing."""
        return next((define.condition for define in self.defines if define.variable == variable), None)
