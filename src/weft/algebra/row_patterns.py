"""Row patterns: SQL's MATCH_RECOGNIZE, a regular expression over rows in which the preferred match counts.

Expressions are in a normal form: every reference to a row of the match is an `At`, every fold over rows of the match
a `RowAggregate`; below these, `RowField` and `RowLabel` read the current row, and neither is nested in
another. So `PREV(LAST(A.x + 1, 2), 3)` is `At(x + 1, ("A",), offset=2, shift=-3)`, a column `x` is `At(x)`, and
`CLASSIFIER(U)` is `At(RowLabel(), members of U)`. Subsets are resolved to their members. Above, there are scalars.

Names of scalars (`RowCall.function`) are in lower case. Operators: `+ - * / % ||` and `negate`; `= <> < <= > >=` and
`is distinct from`; `and`, `or` (two or more arguments) and `not`; `is null`, `is true`, `is false`; `in` (the value,
then the list); `like` (value, pattern and perhaps the escape); `array` (a list of its arguments); `map` (of keys and
values), `[]` (an element), `.` (a field of a struct, named by a constant). BETWEEN is two comparisons, IS NOT is the
`not` of IS, and everything else is a function, by Spark's name for it. Of the aggregates, `collect_list` (also written
array_agg) keeps nulls.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from weft.algebra.definition import Definition
from weft.schema import Kind
from weft.tree import Node

Variables = tuple[str, ...] | None  # primary variables, None for all of them
RowsPerMatch = Literal["one", "show", "omit", "unmatched"]
SkipMode = Literal["past last", "next", "first", "last"]


# ---------------------------------------------------------------- patterns


class RowRegex(Node):
    """A regular expression over rows, with preferment."""


@dataclass(frozen=True)
class RowVariable(RowRegex):
    """One row that satisfies the variable's condition, mapped to the variable."""

    name: str


@dataclass(frozen=True)
class EmptyRows(RowRegex):
    """No row: `()`."""


@dataclass(frozen=True)
class RowAnchor(RowRegex):
    """No row, before the partition's first row (`^`) or after its last (`$`)."""

    end: bool


@dataclass(frozen=True)
class Concatenation(RowRegex):
    """One part after the other."""

    parts: tuple[RowRegex, ...]


@dataclass(frozen=True)
class Alternation(RowRegex):
    """One of the parts, an earlier one preferred."""

    parts: tuple[RowRegex, ...]


@dataclass(frozen=True)
class Permutation(RowRegex):
    """All parts in some order; orders are preferred lexicographically by written place."""

    parts: tuple[RowRegex, ...]


@dataclass(frozen=True)
class Quantifier(RowRegex):
    """Repetition of a pattern: greedy prefers one more iteration, reluctant one less. `most` None means unbounded."""

    pattern: RowRegex
    least: int
    most: int | None
    greedy: bool = True


@dataclass(frozen=True)
class Exclusion(RowRegex):
    """The pattern, whose rows are not shown."""

    pattern: RowRegex


# ---------------------------------------------------------------- expressions


class RowExpression(Node):
    """A value: of a row, of a match, or a constant."""


@dataclass(frozen=True)
class Constant(RowExpression):
    """A constant; `kind` names the SQL type where the value alone does not say it.

    Values are None, bool, int, float, Decimal and str. Of the kinds `date`, `timestamp` and `timestamp_ntz` the value
    is the text as written; of `interval day to second` it is a number of microseconds, of `interval year to month` of
    months.
    """

    value: Any
    kind: str = ""


@dataclass(frozen=True)
class RowField(RowExpression):
    """A column of the current row."""

    name: str


@dataclass(frozen=True)
class RowLabel(RowExpression):
    """The variable that the current row is mapped to; null outside the match, in conditions also for later rows."""


@dataclass(frozen=True)
class MatchNumber(RowExpression):
    """The number of the match in its partition, from 1 on."""


@dataclass(frozen=True)
class At(RowExpression):
    """The argument at one row of the partition; null if there is no such row.

    It is `offset` rows mapped to the variables from their first or last, among the rows up to the current one (or, if
    `final`, of the whole match), and from there `shift` rows of the partition on.
    """

    argument: RowExpression
    variables: Variables = None
    first: bool = False
    offset: int = 0
    shift: int = 0
    final: bool = False


@dataclass(frozen=True)
class RowAggregate(RowExpression):
    """A fold over the rows mapped to the variables, up to the current one or `final`. Without arguments: of rows."""

    function: str
    arguments: tuple[RowExpression, ...] = ()
    variables: Variables = None
    distinct: bool = False
    final: bool = False


@dataclass(frozen=True)
class RowCall(RowExpression):
    """A scalar function or operator, in lower case."""

    function: str
    arguments: tuple[RowExpression, ...]


@dataclass(frozen=True)
class When(Node):
    """A branch of CASE."""

    condition: RowExpression
    value: RowExpression


@dataclass(frozen=True)
class Choose(RowExpression):
    """CASE: the value of the first branch whose condition is true."""

    branches: tuple[When, ...]
    otherwise: RowExpression = Constant(None)


@dataclass(frozen=True)
class Cast(RowExpression):
    """A value in another type; one that cannot be converted is an error, or null if it is only tried."""

    argument: RowExpression
    type: str
    tries: bool = False


# ---------------------------------------------------------------- the clause


@dataclass(frozen=True)
class OrderKey(Node):
    """A column that rows are ordered by."""

    column: str
    descending: bool = False
    nulls_first: bool = True


@dataclass(frozen=True)
class RowMeasure(Node):
    """A computed column of the result; `type` is the name of its SQL type where it is known."""

    name: str
    value: RowExpression
    type: str = ""


@dataclass(frozen=True)
class Define(Node):
    """The condition that rows mapped to a variable satisfy."""

    variable: str
    condition: RowExpression


@dataclass(frozen=True)
class Subset(Node):
    """A name for several primary variables. Expressions and `RowSkip` have the members already."""

    name: str
    variables: tuple[str, ...]


@dataclass(frozen=True)
class RowSkip(Node):
    """Where the next attempt starts after a match; `first` and `last` of the rows mapped to the variables."""

    mode: SkipMode = "past last"
    variables: tuple[str, ...] = ()
    name: str = ""  # the variable or subset, as messages call it


@dataclass(frozen=True)
class RowColumn(Node):
    """A column of the input, and the name of its SQL type where it is known."""

    name: str
    type: str = ""


@dataclass(frozen=True)
class RowPattern(Definition):
    """One MATCH_RECOGNIZE clause.

    `columns` are those of the input, in its order; empty as long as the input is not known. Column names are then
    those of the input, in its spelling.
    """

    pattern: RowRegex
    conditions: tuple[Define, ...] = ()
    measures: tuple[RowMeasure, ...] = ()
    partition: tuple[str, ...] = ()
    order: tuple[OrderKey, ...] = ()
    rows: RowsPerMatch = "one"
    skip: RowSkip = RowSkip()
    within: int | None = None  # microseconds; the last time minus the first is less
    subsets: tuple[Subset, ...] = ()
    input: str = ""  # the table that is read, where it has a name
    columns: tuple[RowColumn, ...] = ()

    @property
    def reads(self) -> tuple[str, ...]:
        """The table that it reads."""
        return (self.input,) if self.input else ()

    @property
    def field_kinds(self) -> Mapping[str, Kind | None]:
        """The columns of its result, of kinds that the input decides."""
        return dict.fromkeys(self.output_columns)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The primary variables, in the order in which the pattern names them first."""
        return tuple(dict.fromkeys(node.name for node in self.pattern.walk() if isinstance(node, RowVariable)))

    @cached_property
    def output_columns(self) -> tuple[str, ...]:
        """The columns of its result, in order: of all rows per match, also those of the input."""
        measures = tuple(measure.name for measure in self.measures)
        if self.rows == "one":
            return (*self.partition, *measures)
        leading = dict.fromkeys((*self.partition, *(key.column for key in self.order)))
        others = (column.name for column in self.columns if column.name not in leading)
        return (*leading, *measures, *others)

    def condition(self, variable: str) -> RowExpression | None:
        """The condition on rows of a variable; None if every row satisfies it."""
        return next((define.condition for define in self.conditions if define.variable == variable), None)
