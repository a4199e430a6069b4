"""Step programs as written: one frozen node per construct, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.languages.counts import Count
from weft.languages.syntax import Expression, Name, SyntaxNode

# ---------------------------------------------------------------- conditions


@dataclass(frozen=True)
class Previous(Expression):
    """`prev(field)`."""

    argument: Expression


@dataclass(frozen=True)
class Duration(Expression):
    """`dur`."""


@dataclass(frozen=True)
class Length(Expression):
    """`len`."""


# ---------------------------------------------------------------- patterns


class Pattern(SyntaxNode):
    """What stands after the colon."""


@dataclass(frozen=True)
class Leaf(Pattern):
    """`type`, `type/alias`, each with or without a condition."""

    type: Name
    alias: Name | None = None
    condition: Expression | None = None

    @property
    def variable(self) -> Name:
        """What its events are called: the alias, else the type."""
        return self.alias or self.type


@dataclass(frozen=True)
class Either(Pattern):
    """`left | right`."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class Follow(Pattern):
    """`left ; right`, or `left ;? right` for every pair in sequence."""

    left: Pattern
    right: Pattern
    condition: Expression | None = None
    each: bool = False


@dataclass(frozen=True)
class Overlap(Pattern):
    """`left , right`."""

    left: Pattern
    right: Pattern
    condition: Expression | None = None


@dataclass(frozen=True)
class Repeat(Pattern):
    """`pattern +`, or `pattern +?` for all sub-sequences; with a count `pattern{n,m}` and `pattern{n,m}?`."""

    pattern: Pattern
    condition: Expression | None = None
    each: bool = False
    count: Count | None = None


@dataclass(frozen=True)
class Negated(Pattern):
    """`!pattern`; a condition stands behind parentheses: `!(pattern)[condition]`."""

    pattern: Pattern
    condition: Expression | None = None


# ---------------------------------------------------------------- statements


@dataclass(frozen=True)
class Declared(SyntaxNode):
    """`name: kind`."""

    name: Name
    kind: Name


@dataclass(frozen=True)
class External(SyntaxNode):
    """`external type(fields) < "uri" [rate]`."""

    many: ClassVar[bool] = True

    type: Name
    fields: tuple[Declared, ...] = ()
    uri: str | None = None
    rate: int | float | None = None


@dataclass(frozen=True)
class Query(SyntaxNode):
    """`name(projection): pattern > "uri"`. `projection` None is `*`."""

    name: Name
    pattern: Pattern
    projection: tuple[Expression, ...] | None = None
    sink: str | None = None


@dataclass(frozen=True)
class Program(SyntaxNode):
    """A file: its topology's name, externals, queries."""

    many: ClassVar[bool] = True

    topology: str | None
    externals: tuple[External, ...]
    queries: tuple[Query, ...]
