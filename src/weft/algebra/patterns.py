"""Regular patterns: what CEQL's WHERE clause means (CEL, DCORE section 3.2).

A pattern denotes a set of valuations: an interval of positions and, for each variable, the positions
bound to it. Every operator below says how its valuations come from those of its operands.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.algebra.predicates import Always, Predicate
from weft.tree import Node


class Pattern(Node):
    """A set of valuations over a stream."""


@dataclass(frozen=True)
class Event(Pattern):
    """One event of a type (of a stream, if named), bound to the variables `type` and `stream>type`."""

    type: str
    stream: str | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The variables the event is bound to by itself."""
        return (self.type,) if self.stream is None else (self.type, f"{self.stream}>{self.type}")


@dataclass(frozen=True)
class Other(Pattern):
    """One event that does NOT match; it is bound to no variable. `where` reads the current event."""

    type: str
    stream: str | None = None
    where: Predicate = Always()


@dataclass(frozen=True)
class Bind(Pattern):
    """`pattern AS name`: every event bound inside is bound to `name` too."""

    pattern: Pattern
    name: str


@dataclass(frozen=True)
class Sequence(Pattern):
    """Left ends before right starts; `contiguous`: at the very next position."""

    left: Pattern
    right: Pattern
    contiguous: bool = False


@dataclass(frozen=True)
class Repeat(Pattern):
    """One or more occurrences of the pattern in sequence, with gaps or `contiguous`."""

    pattern: Pattern
    contiguous: bool = False


@dataclass(frozen=True)
class Union(Pattern):
    """The valuations of both."""

    left: Pattern
    right: Pattern


@dataclass(frozen=True)
class Maybe(Pattern):
    """The pattern or nothing at all: a sequence may go on without it. A query's whole pattern is never nothing."""

    pattern: Pattern


@dataclass(frozen=True)
class Filter(Pattern):
    """Unary filter: every event bound to `variable` satisfies the predicate (over the current event)."""

    pattern: Pattern
    variable: str
    predicate: Predicate


@dataclass(frozen=True)
class Correlate(Pattern):
    """Filter over several variables or over a variable as a whole.

    `condition` is one Comparison or Monotone. Its plain attributes are all-quantified: it must hold for
    every combination of events bound to its variables, so it is true when one of them is bound to nothing.
    Aggregates are values of the whole variable: over no event, COUNT is 0 and a condition with any other
    aggregate is true.
    """

    pattern: Pattern
    condition: Predicate


def may_be_nothing(pattern: Pattern) -> bool:
    """Whether a sequence may go on without the pattern."""
    match pattern:
        case Maybe():
            return True
        case Sequence(left, right):
            return may_be_nothing(left) and may_be_nothing(right)
        case Union(left, right):
            return may_be_nothing(left) or may_be_nothing(right)
        case Bind(inner) | Repeat(inner) | Filter(inner) | Correlate(inner):
            return may_be_nothing(inner)
    return False
