"""Composite events: the operators that EQL and Step are made of.

A composite pattern denotes a set of *occurrences*. An occurrence has the times of all its constituents
(its complete history), and binds each variable to the positions of events, in order. Its start is the
earliest start of its constituents, its end the latest end. `x` is *before* `y` iff `x.end < y.start`.

Occurrences stand in *processing order*: by end, start, positions; those that agree in all three stand as
their parts do (first the left operand's, then the right's; of a union, the left branch's first).

Conditions are tuples of predicates that must all hold. An `Attribute(name, variable)` reads the last event
bound to the variable, and is missing when there is none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar
from typing import Literal as OneOf

from weft.algebra.definition import Definition
from weft.algebra.predicates import Expression, Predicate, is_passed_on
from weft.algebra.terms import mentioned_in, require_distinct, require_known
from weft.schema import Kind
from weft.tree import Node

Conditions = tuple[Predicate, ...]
SequencePick = OneOf["each", "first", "next"]
RepeatPick = OneOf["each", "longest", "next"]
When = OneOf["before", "between", "during"]


class Composite(Node):
    """A set of occurrences over a stream."""

    @property
    def operator(self) -> str:
        """The name of the operator for users, such as `Sequence` or `Overlap`."""
        return type(self).__name__.removeprefix("Composite")

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """The variables its occurrences bind, in the order of the pattern."""
        return tuple(name for child in self.children() if isinstance(child, Composite) for name in child.variables)


@dataclass(frozen=True)
class CompositeEvent(Composite):
    """Every event of a type that satisfies the conditions, bound to the variable."""

    type: str
    variable: str
    where: Conditions = ()

    def __post_init__(self) -> None:
        require_known(mentioned_in(self.where), self.variables)

    @property
    def variables(self) -> tuple[str, ...]:
        """Its own one."""
        return (self.variable,)


@dataclass(frozen=True)
class CompositeUnion(Composite):
    """The occurrences of both. A variable of the other branch is unbound."""

    left: Composite
    right: Composite

    def __post_init__(self) -> None:
        require_distinct(self.variables)


@dataclass(frozen=True)
class CompositeFilter(Composite):
    """The occurrences that satisfy the conditions; nothing came before."""

    pattern: Composite
    where: Conditions

    def __post_init__(self) -> None:
        require_known(mentioned_in(self.where), self.variables)


@dataclass(frozen=True)
class CompositeSequence(Composite):
    """A left occurrence joined with right occurrences that start after it ends. `pick` chooses among these:

    `each`   all for which `where` holds (Step's any next);
    `first`  the first in processing order for which `where` holds (Step's greedy next);
    `next`   the immediate successors (EQL): those for which `among` does not hold are skipped; the first for
             which it holds decides: it is joined if `where` holds; if not, the left one remains unmatched.
             First is the smallest in the order of complete histories: the lists of all times, compared from
             their ends, where a list that is exhausted is the larger. Successors with equal lists decide together.

    In conditions, the preceding occurrence is the left one.
    """

    left: Composite
    right: Composite
    pick: SequencePick
    where: Conditions = ()
    among: Conditions = ()

    def __post_init__(self) -> None:
        require_distinct(self.variables)
        require_known(mentioned_in((*self.where, *self.among)), self.variables)
        if self.among and self.pick != "next":
            raise ValueError(f"only pick 'next' passes over what does not satisfy `among`, not {self.pick!r}")


@dataclass(frozen=True)
class Overlap(Composite):
    """A left and a right occurrence whose intervals share a time, that share no event, and satisfy `where`.

    The intervals [a, b] and [c, d] share a time iff `a <= d` and `c <= b`. In conditions, the preceding
    occurrence is the left one.
    """

    left: Composite
    right: Composite
    where: Conditions = ()

    def __post_init__(self) -> None:
        require_distinct(self.variables)
        require_known(mentioned_in(self.where), self.variables)


@dataclass(frozen=True)
class Lengths:
    """Numbers of members: `low` to `high` (None: any number) without those excluded."""

    low: int = 1
    high: int | None = None
    excluded: frozenset[int] = frozenset()

    def __post_init__(self) -> None:
        if self.low < 1:
            raise ValueError(f"a run has at least one member, not {self.low}")

    def allow(self, length: int) -> bool:
        """Whether a run of this length is reported."""
        return self.low <= length and (self.high is None or length <= self.high) and length not in self.excluded

    def allow_above(self, length: int) -> bool:
        """Whether some greater length is allowed."""
        if self.high is None:
            return True
        return any(self.allow(longer) for longer in range(max(length + 1, self.low), self.high + 1))


@dataclass(frozen=True)
class CompositeRepeat(Composite):
    """Runs of occurrences of the pattern, each before the next. In conditions, the preceding occurrence is the run so
    far.

    `next`     (EQL) A run is extended as by `CompositeSequence` with pick `next`; it starts at each occurrence that
               satisfies `among` and `where`. Every run whose length is allowed is an occurrence made of all its
               members; runs of runs have any length, since they do not show what they were made of.
    `each`     (Step's any iteration) All sub-sequences whose consecutive members satisfy `where`.
    `longest`  (Step's greedy iteration) One run at a time, over the occurrences in processing order: one that
               starts after the last member, satisfies `where`, and whose run can still reach a greater allowed
               length, extends the run; any other closes the run and starts the next. The end of the stream
               closes the last run.

    `each` and `longest` report the first member joined with the last (the first alone, if it is the only one),
    once for each pair, when the length is allowed; they put no condition on the first member, and in conditions
    the preceding occurrence is the previous member.
    """

    pattern: Composite
    pick: RepeatPick
    where: Conditions = ()
    among: Conditions = ()
    lengths: Lengths = Lengths()

    def __post_init__(self) -> None:
        require_known(mentioned_in((*self.where, *self.among)), self.variables)
        if self.among and self.pick != "next":
            raise ValueError(f"only pick 'next' passes over what does not satisfy `among`, not {self.pick!r}")
        repeated = any(isinstance(node, CompositeRepeat) for node in self.pattern.walk())
        if self.lengths != Lengths() and self.pick == "next" and repeated:
            raise ValueError("runs of runs have no bounds of length with pick 'next'")
        if self.lengths.excluded and self.pick == "next":
            raise ValueError("of runs with pick 'next' no length between the bounds is excluded")


@dataclass(frozen=True)
class Without(Composite):
    """The occurrences c of the pattern for which there is no unwanted one u that satisfies `where` and stands

    `between`  strictly between the first and the last constituent of c (EQL's exception);
    `during`   within c: `c.start <= u.start` and `u.end <= c.end`, but is not made of events of c alone (Step);
    `before`   before c (Step).

    The unwanted variables can be read in `where` only. What came before is c.
    """

    pattern: Composite
    unwanted: Composite
    when: When
    where: Conditions = ()

    def __post_init__(self) -> None:
        everything = (*self.pattern.variables, *self.unwanted.variables)
        require_distinct(everything)
        require_known(mentioned_in(self.where), everything)

    @cached_property
    def variables(self) -> tuple[str, ...]:
        """Those of the pattern."""
        return self.pattern.variables


@dataclass(frozen=True)
class After(Composite):
    """An occurrence extended by a point in time, `ticks` after its end, as a constituent without a position.

    It exists once time has passed that point; at the end of a finite stream all time has passed.
    """

    pattern: Composite
    ticks: int

    def __post_init__(self) -> None:
        if self.ticks < 0:
            raise ValueError(f"a time before the end of the pattern: {self.ticks}")


@dataclass(frozen=True)
class Field(Node):
    """A field of the output event: its key and its value."""

    name: str
    value: Expression


@dataclass(frozen=True)
class CompositeQuery(Definition):
    """A named pattern and the output fields of its matches: one match for each different binding of variables.

    `order` are the variables as they were written, where the pattern was rewritten: this says nothing of its matches.
    With `all_fields`, the output event also has every attribute of every event of a match, as `variable.attribute`, but
    not types and times. What an event lacks is left out.
    """

    shares_state: ClassVar[str | None] = "equal parts of patterns are kept once"
    pattern: Composite
    fields: tuple[Field, ...] = ()
    order: tuple[str, ...] = ()
    all_fields: bool = False

    def __post_init__(self) -> None:
        require_known(mentioned_in(shown.value for shown in self.fields), self.pattern.variables)
        require_distinct(tuple(shown.name for shown in self.fields))

    @property
    def variables(self) -> tuple[str, ...]:
        """The variables of its matches, in the order of the query's text."""
        return self.order or self.pattern.variables

    @property
    def shown_variables(self) -> tuple[str, ...]:
        """All variables."""
        return self.variables

    def passes_on(self, name: str) -> bool:
        """Whether a field is the attribute itself."""
        return is_passed_on(((field.name, field.value) for field in self.fields), name)

    @cached_property
    def repeated(self) -> frozenset[str]:
        """The variables that may be bound to several events: `all_fields` shows a list of values of these."""
        runs = (node for node in self.pattern.walk(Composite) if isinstance(node, CompositeRepeat))
        return frozenset(name for run in runs for name in run.variables)

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The types of its sources, wanted or not."""
        return tuple(
            dict.fromkeys(node.type for node in self.pattern.walk(Composite) if isinstance(node, CompositeEvent))
        )

    @property
    def field_kinds(self) -> Mapping[str, Kind | None]:
        """The fields, of kinds that the events decide."""
        return dict.fromkeys(shown.name for shown in self.fields)


def composites_in(queries: Iterable[Node]) -> list[CompositeQuery]:
    """Return the composite queries among queries of all kinds."""
    return [query for query in queries if isinstance(query, CompositeQuery)]
