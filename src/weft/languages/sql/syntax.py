"""Row patterns and SQL expressions as written: one frozen node per construct, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from weft.languages.syntax import SyntaxNode

# ---------------------------------------------------------------- names and expressions


@dataclass(frozen=True)
class Identifier(SyntaxNode):
    """A name, without its quotes."""

    text: str
    quoted: bool = False

    @property
    def folded(self) -> str:
        """The name of a variable: in capitals unless it was quoted."""
        return self.text if self.quoted else self.text.upper()


class SqlExpression(SyntaxNode):
    """A value or a condition."""


@dataclass(frozen=True)
class SqlLiteral(SqlExpression):
    """A constant; `kind` as in the algebra's `Constant`."""

    value: Any
    kind: str = ""


@dataclass(frozen=True)
class ColumnName(SqlExpression):
    """Names with dots between them: a column, perhaps with its variable before it and fields of a struct after it."""

    parts: tuple[Identifier, ...]


@dataclass(frozen=True)
class AllRows(SqlExpression):
    """`*` or `A.*`, in COUNT."""

    variable: Identifier | None = None


@dataclass(frozen=True)
class Operation(SqlExpression):
    """An operator and its operands, called as in the algebra."""

    operator: str
    operands: tuple[SqlExpression, ...]


@dataclass(frozen=True)
class FunctionCall(SqlExpression):
    """`name(arguments)`; `mode` is RUNNING, FINAL or empty."""

    name: Identifier
    arguments: tuple[SqlExpression, ...]
    distinct: bool = False
    mode: str = ""


@dataclass(frozen=True)
class Branch(SyntaxNode):
    """`WHEN condition THEN value`."""

    condition: SqlExpression
    value: SqlExpression


@dataclass(frozen=True)
class CaseExpression(SqlExpression):
    """`CASE [operand] WHEN … THEN … ELSE … END`."""

    operand: SqlExpression | None
    branches: tuple[Branch, ...]
    otherwise: SqlExpression | None = None


@dataclass(frozen=True)
class CastExpression(SqlExpression):
    """`CAST(argument AS type)`, or TRY_CAST."""

    argument: SqlExpression
    type: str
    tries: bool = False


# ---------------------------------------------------------------- patterns


class PatternTerm(SyntaxNode):
    """A part of PATTERN."""


@dataclass(frozen=True)
class VariableTerm(PatternTerm):
    """A primary variable."""

    name: Identifier


@dataclass(frozen=True)
class EmptyTerm(PatternTerm):
    """`()`."""


@dataclass(frozen=True)
class AnchorTerm(PatternTerm):
    """`^` or `$`."""

    end: bool


@dataclass(frozen=True)
class SequenceTerm(PatternTerm):
    """Parts in sequence."""

    parts: tuple[PatternTerm, ...]


@dataclass(frozen=True)
class AlternativeTerm(PatternTerm):
    """`a | b`."""

    parts: tuple[PatternTerm, ...]


@dataclass(frozen=True)
class PermuteTerm(PatternTerm):
    """`PERMUTE(a, b)`."""

    parts: tuple[PatternTerm, ...]


@dataclass(frozen=True)
class ExcludedTerm(PatternTerm):
    """`{- part -}`."""

    part: PatternTerm


@dataclass(frozen=True)
class QuantifiedTerm(PatternTerm):
    """A part and its quantifier; `most` None: no upper bound."""

    part: PatternTerm
    least: int
    most: int | None
    greedy: bool = True


# ---------------------------------------------------------------- the clause


@dataclass(frozen=True)
class SortItem(SyntaxNode):
    """`column ASC NULLS FIRST`; None where nothing is written."""

    column: Identifier
    descending: bool = False
    nulls_first: bool | None = None


@dataclass(frozen=True)
class MeasureItem(SyntaxNode):
    """`value AS name`."""

    value: SqlExpression
    name: Identifier


@dataclass(frozen=True)
class RowsItem(SyntaxNode):
    """ONE ROW PER MATCH and its alternatives, as the algebra calls them."""

    mode: str


@dataclass(frozen=True)
class SkipItem(SyntaxNode):
    """AFTER MATCH SKIP, as the algebra calls its modes."""

    mode: str
    variable: Identifier | None = None


@dataclass(frozen=True)
class SubsetItem(SyntaxNode):
    """`name = (members)`."""

    name: Identifier
    members: tuple[Identifier, ...]


@dataclass(frozen=True)
class DefineItem(SyntaxNode):
    """`variable AS condition`."""

    variable: Identifier
    condition: SqlExpression


@dataclass(frozen=True)
class MatchRecognize(SyntaxNode):
    """What stands between the parentheses of one MATCH_RECOGNIZE."""

    pattern: PatternTerm
    partition: tuple[Identifier, ...] = ()
    order: tuple[SortItem, ...] = ()
    measures: tuple[MeasureItem, ...] = ()
    rows: RowsItem | None = None
    skip: SkipItem | None = None
    within: SqlExpression | None = None
    subsets: tuple[SubsetItem, ...] = ()
    defines: tuple[DefineItem, ...] = ()
    name: Identifier | None = None  # the alias after it
    table: str = ""  # the relation before it, where it is a name
    relation: str = ""  # the relation as written


@dataclass(frozen=True)
class SqlText(SyntaxNode):
    """The row patterns of an SQL text, inner ones first."""

    many: ClassVar[bool] = True

    clauses: tuple[MatchRecognize, ...]
