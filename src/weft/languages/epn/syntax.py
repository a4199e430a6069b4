"""Patterns with policies as written: one frozen node per construct, each with its place in the text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from weft.languages.syntax import Expression, Name, SyntaxNode


@dataclass(frozen=True)
class Participant(SyntaxNode):
    """`type variable[filter]`."""

    type: Name
    alias: Name | None = None
    filter: Expression | None = None

    @property
    def variable(self) -> Name:
        """What its events are called: the alias, else the type."""
        return self.alias or self.type


class Clause(SyntaxNode):
    """What follows the participants."""


@dataclass(frozen=True)
class Where(Clause):
    """`where condition`."""

    condition: Expression


# ---------------------------------------------------------------- policies


@dataclass(frozen=True)
class Setting(SyntaxNode):
    """`policy value`; the value of `split` is numbers: `2:2`."""

    policy: Name
    value: Name


@dataclass(frozen=True)
class Group(SyntaxNode):
    """Settings, for the whole pattern or for the participants that are named before a colon."""

    settings: tuple[Setting, ...]
    variables: tuple[Name, ...] = ()


@dataclass(frozen=True)
class Policies(Clause):
    """`policies group; group; …`."""

    groups: tuple[Group, ...]


# ---------------------------------------------------------------- contexts


@dataclass(frozen=True)
class Duration(SyntaxNode):
    """An amount of time with its unit as written; without one it is in ticks."""

    amount: int | float
    unit: Name | None = None


class Interval(SyntaxNode):
    """How time is divided."""


@dataclass(frozen=True)
class Fixed(Interval):
    """`fixed length`."""

    length: Duration


@dataclass(frozen=True)
class Sliding(Interval):
    """`sliding length every step`."""

    length: Duration
    step: Duration


@dataclass(frozen=True)
class Until(Interval):
    """`from opener until closer`."""

    opener: Name
    closer: Name


@dataclass(frozen=True)
class Lasting(Interval):
    """`from opener for length`."""

    opener: Name
    length: Duration


@dataclass(frozen=True)
class Context(Clause):
    """`context interval by attributes forget duration`; of the first two one may be left out."""

    interval: Interval | None
    by: tuple[Name, ...] = ()
    forget: Duration | None = None


# ---------------------------------------------------------------- values


@dataclass(frozen=True)
class Call(Expression):
    """`function(operand, …)`."""

    function: Name
    operands: tuple[Expression, ...]


# ---------------------------------------------------------------- patterns


@dataclass(frozen=True)
class Derived(SyntaxNode):
    """`name = value`."""

    name: Name
    value: Expression


@dataclass(frozen=True)
class Derive(Clause):
    """`derive name = value, …`."""

    fields: tuple[Derived, ...]


@dataclass(frozen=True)
class Pattern(SyntaxNode):
    """`pattern name kind(participants) clauses`."""

    name: Name
    kind: Name
    participants: tuple[Participant, ...]
    clauses: tuple[Clause, ...] = ()


@dataclass(frozen=True)
class Program(SyntaxNode):
    """A file: patterns, each of which may use the events that those before it derive."""

    many: ClassVar[bool] = True

    patterns: tuple[Pattern, ...]
