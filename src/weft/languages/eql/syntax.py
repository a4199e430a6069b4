"""EQL programs as written: one frozen node per construct, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar
from typing import Literal as OneOf

from weft.languages.counts import Count
from weft.languages.syntax import Expression, Name, SyntaxNode

# ---------------------------------------------------------------- conditions


@dataclass(frozen=True)
class Duration(SyntaxNode):
    """An amount of time with its unit as written; without one it is in ticks."""

    amount: int | float
    unit: Name | None = None


@dataclass(frozen=True)
class Occurs(Expression):
    """`(first, last) OCCURS WITHIN duration`."""

    first: Name
    last: Name
    duration: Duration


@dataclass(frozen=True)
class Call(Expression):
    """`FILTER(condition)`, `PREV(field)` or `ALL(field)`."""

    function: OneOf["FILTER", "PREV", "ALL"]
    argument: Expression


# ---------------------------------------------------------------- patterns


class Pattern(SyntaxNode):
    """What stands after FROM."""


@dataclass(frozen=True)
class Leaf(Pattern):
    """`type`, or `type alias`."""

    type: Name
    alias: Name | None = None

    @property
    def variable(self) -> Name:
        """What its events are called: the alias, else the type."""
        return self.alias or self.type


@dataclass(frozen=True)
class Union(Pattern):
    """`left | right`."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class Without(Pattern):
    r"""`pattern \ unwanted`."""

    pattern: Pattern
    unwanted: Pattern


@dataclass(frozen=True)
class Next(Pattern):
    """`left ; right`."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class Repeated(Pattern):
    """`pattern +`, or with a count `pattern{n,m}`."""

    pattern: Pattern
    count: Count | None = None


@dataclass(frozen=True)
class Timed(Pattern):
    """`pattern @ duration`."""

    pattern: Pattern
    duration: Duration


# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class Query(SyntaxNode):
    """`SELECT … FROM … WHERE … INTO …`. `selected` None is `*`."""

    pattern: Pattern
    selected: tuple[Expression, ...] | None = None
    conditions: tuple[Expression, ...] = ()
    sinks: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Attribute(SyntaxNode):
    """`name kind`, or `name: kind`."""

    name: Name
    kind: Name


@dataclass(frozen=True)
class Source(SyntaxNode):
    """`SOURCE type (attributes) FROM 'uri' RATE events per second`."""

    many: ClassVar[bool] = True

    type: Name
    attributes: tuple[Attribute, ...] = ()
    uri: str | None = None
    rate: int | float | None = None


@dataclass(frozen=True)
class Sink(SyntaxNode):
    """`SINK name TO 'uri'`."""

    name: Name
    uri: str


@dataclass(frozen=True)
class Program(SyntaxNode):
    """A file: sources and sinks, then queries."""

    many: ClassVar[bool] = True

    definitions: tuple[Source | Sink, ...]
    queries: tuple[Query, ...]
