"""A query: a pattern and what is reported of its matches; a program: the queries deployed together."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import Enum
from functools import cached_property
from importlib import import_module
from typing import ClassVar
from typing import Literal as OneOf

from weft.algebra.analysis.feeding import cycles_beyond_rules
from weft.algebra.analysis.rule_graph import behind, instant_cycles, numbered
from weft.algebra.chains import Chain, Fits, Link, Skip
from weft.algebra.composites import CompositeQuery
from weft.algebra.definition import Definition
from weft.algebra.endpoints import Input, Output
from weft.algebra.patterns import Bind, Event, Other, Pattern, Repeat, Sequence
from weft.algebra.predicates import Expression
from weft.algebra.row_patterns import RowPattern
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.errors import UsageError, did_you_mean
from weft.schema import Catalog, Kind
from weft.tree import Node


class Strategy(Enum):
    """Which of the matches that end at one event are reported (semantics.md 2)."""

    ALL = "ALL"
    ANY = "ANY"
    NEXT = "NEXT"
    LAST = "LAST"
    MAX = "MAX"
    STRICT = "STRICT"


class Consume(Enum):
    """Which partial runs are dropped after an event that gave output."""

    NONE = "NONE"
    PARTITION = "PARTITION"
    ANY = "ANY"


@dataclass(frozen=True)
class Selected(Node):
    """A selected variable; with attributes, their values become fields of the match's event."""

    name: str
    attributes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Computed(Node):
    """A field of the match's event: a value over aggregates of variables, and attributes of variables of one event."""

    name: str
    value: Expression


@dataclass(frozen=True)
class Top(Node):
    """Of the matches that end in [n * every, (n + 1) * every), the `count` with the greatest values, or the least.

    What is no number comes last; of equal values, the match that comes first.
    """

    value: Expression
    count: int
    every: int
    least: bool = False


OUTVOTED = 3  # events below a doubted value of a window attribute, after which it is taken to be wrong


@dataclass(frozen=True)
class Window(Node):
    """`value(end) - amount <= value(start)`, where the value is the position, the time, or an attribute.

    Of an event without the attribute no match starts or ends; an event whose attribute is below the
    largest seen so far does not exist for the query (it is counted as out of order). One value that is wrong does not
    end all: see `meaning.query.in_order`. `jump`: by how much a value may be above all before it without being doubted,
    infinite: by any amount; None: by `amount`.
    """

    unit: OneOf["events", "time", "attribute"]
    amount: int | float
    attribute: str | None = None
    jump: int | float | None = None

    @property
    def doubts_above(self) -> int | float:
        """By how much a value must be above all before it to be doubted."""
        return self.amount if self.jump is None else self.jump


@dataclass(frozen=True)
class Query(Definition):
    """One CEQL query. `selected` None is `*`; the empty tuple is NONE.

    `universe` lists the (stream, type) pairs that exist for the query; None: all events do. An event without a `stream`
    attribute exists if its type is listed for any stream. The stream `*` is any stream (for a program that declares
    types but no streams). `partition` is a tuple of key parts, each the tuple of attributes of which the first present
    counts. `unless`: no event that fits comes after the match inside the window that began with it. Only the remaining
    matches are considered by `skip`, in each partition separately. Both need a window of time or events, or (`skip`)
    none. `session`: each partition is divided where an event ends more than that many ticks after the previous one, and
    a match is one of a whole session: it starts at its first event and ends at its last. `top` comes last, over all
    partitions.
    """

    untied: ClassVar[str] = "no PARTITION BY, and no equality ties all variables together"
    pattern: Pattern
    strategy: Strategy = Strategy.ALL
    selected: tuple[Selected, ...] | None = None
    universe: tuple[tuple[str, str], ...] | None = None
    partition: tuple[tuple[str, ...], ...] = ()
    window: Window | None = None
    consume: Consume = Consume.NONE
    limit: int | None = None
    skip: Skip | None = None
    unless: Fits | None = None
    computed: tuple[Computed, ...] = ()
    session: int | None = None
    top: Top | None = None

    @cached_property
    def reads(self) -> tuple[str, ...]:
        """The types that the pattern names, in NOT too."""
        named = [node.type for node in self.pattern.walk(Pattern) if isinstance(node, Event | Other)]
        fitting = (type_ for node in self.walk() if isinstance(node, Fits) for type_ in node.types)
        return tuple(dict.fromkeys([*named, *fitting]))

    @property
    def relevant_types(self) -> frozenset[str] | None:
        """The types that it names, unless other events can break contiguity, fill a NOT, or move its window."""
        if self.session is not None:
            return frozenset(self.reads)
        if self.strategy is Strategy.STRICT or (self.window is not None and self.window.unit == "attribute"):
            return None
        any_event = any(
            isinstance(node, Other | Chain) or (isinstance(node, Sequence | Repeat) and node.contiguous)
            for node in self.pattern.walk()
        )
        return None if any_event else frozenset(self.reads)

    @property
    def counts_events(self) -> bool:
        """Whether it has a window of a number of events."""
        return self.window is not None and self.window.unit == "events"

    @property
    def is_selective(self) -> bool:
        """Whether a match depends on events beside those that it binds, or on matches that end at other events."""
        waits = any(part is not None for part in (self.skip, self.unless, self.session, self.top))
        ordered = self.window is not None and self.window.unit == "attribute"
        return waits or ordered or self.strategy is Strategy.STRICT or self.consume is not Consume.NONE

    @property
    def shown_variables(self) -> tuple[str, ...]:
        """The variables that the pattern binds."""
        names: set[str] = set()
        for node in self.pattern.walk():
            if isinstance(node, Bind | Link):
                names.add(node.name)
            elif isinstance(node, Event):
                names.update(node.names)
        return tuple(sorted(names))

    @property
    def declared_key(self) -> tuple[tuple[str, ...], ...]:
        """The key of PARTITION BY."""
        return self.partition

    @property
    def key_obstacle(self) -> str | None:
        """What looks at all partitions."""
        if not self.partition:
            return None
        if self.consume is Consume.ANY:
            return "CONSUME BY ANY looks at all partitions"
        if self.top is not None:
            return "ORDER BY looks at all partitions"
        if self.window is not None and self.window.unit == "attribute":
            return f"the order of [{self.window.attribute}] is that of all partitions"
        return None

    def passes_on(self, name: str) -> bool:
        """Whether exactly one variable shows the attribute."""
        return [shown for item in self.selected or () for shown in item.attributes].count(name) == 1

    def mentions(self) -> set[str]:
        """The attributes that it reads."""
        names = super().mentions() | {name for part in self.partition for name in part}
        names |= {name for selected in self.selected or () for name in selected.attributes}
        if self.window is not None and self.window.attribute is not None:
            names.add(self.window.attribute)
        return names

    @property
    def field_kinds(self) -> Mapping[str, Kind | None]:
        """The selected attributes, of kinds that the events decide; `x.a` where several variables show an `a`."""
        shown = dict.fromkeys((item.name, name) for item in self.selected or () for name in item.attributes)
        names = [name for _, name in shown]
        fields = [name if names.count(name) == 1 else f"{variable}.{name}" for variable, name in shown]
        return dict.fromkeys([*fields, *(item.name for item in self.computed)])


AnyQuery = Query | CompositeQuery | SituationQuery | Rule


@dataclass(frozen=True)
class Program:
    """Compiled text: its queries (in the algebra), what they declare, and the unit of one tick of event time.

    Queries read events. `row_patterns` are those of an SQL text, which read tables: they run by `weft.sql`.
    """

    language: str
    queries: tuple[AnyQuery, ...]
    catalog: Catalog = Catalog()
    text: str = ""  # as it was compiled
    time_unit: str = "ms"
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
    row_patterns: tuple[RowPattern, ...] = ()

    def __repr__(self) -> str:
        """Short, for a shell; `weft.explain` shows the whole."""
        shown = ", ".join(self.names[:5]) + (", …" if len(self.names) > 5 else "")
        return f"<{self.language} program: {shown or 'no queries'}>"

    def _repr_html_(self) -> str:
        """For a notebook: the text and the plan. Plans are made far above, so what draws them is found by its name."""
        shown: str = import_module("weft.drawing.program").program_html(self)
        return shown

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the queries, each once, in order; a rule's is the type that it defines."""
        return tuple(dict.fromkeys(query.name for query in (*self.queries, *self.row_patterns)))

    def extended(self, other: Program) -> Program:
        """Return this program followed by the queries of another one; raise UsageError if they conflict.

        Queries of both see what the other program defines, regardless of order. Rules of both may define events of one
        type; other queries need distinct names.

        Args:
            other: The program whose queries are added.
        """
        if self.time_unit != other.time_unit and self.queries:
            raise UsageError("the programs count time in different units: compile them with one time_unit")
        _check_names(self.queries, other.queries)
        _check_cycles(self.queries, other.queries)
        own = [query for query in self.queries if isinstance(query, Rule)]
        rules = iter(numbered([query for query in other.queries if isinstance(query, Rule)], own))
        return replace(
            self if self.queries else other,
            queries=(*self.queries, *(next(rules) if query.is_rule else query for query in other.queries)),
            catalog=_joined(self.catalog, other.catalog),
            text="\n\n".join(text for text in (self.text, other.text) if text),
            inputs=(*self.inputs, *other.inputs),
            outputs=(*self.outputs, *other.outputs),
        )

    def without(self, *names: str) -> Program:
        """This program without the queries of these names; rules go by the type they define, or by their label.

        Args:
            names: The queries that are left out.
        """
        for name in names:
            if not any(query.is_called(name) for query in self.queries):
                labels = [query.label for query in self.queries if query.label]
                hint = did_you_mean(str(name), (*self.names, *labels)) or "it is empty"
                raise UsageError(f"the program has no query called {name!r}; {hint}")
        kept = tuple(query for query in self.queries if not any(query.is_called(name) for name in names))
        return replace(self, queries=kept)


def _check_names(own: tuple[AnyQuery, ...], others: tuple[AnyQuery, ...]) -> None:
    names: dict[str, bool] = {query.name: query.is_rule for query in own}
    labels = {query.label for query in own if query.label}
    for query in others:
        if query.name in names and not (names[query.name] and query.is_rule):
            raise UsageError(
                f"two programs have a query called {query.name!r}: rename one (a nameless query has its file's name)"
            )
        if query.label in labels:
            raise UsageError(f"two programs have a rule {query.label!r}: rename one, or leave its name out")


def _joined(one: Catalog, other: Catalog) -> Catalog:
    streams = tuple(dict.fromkeys((*one.streams, *other.streams)))
    names = [stream.name for stream in streams]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise UsageError(f"two programs declare the stream {twice!r} differently: make them agree")
    return Catalog(streams, tuple(dict.fromkeys((*one.types, *other.types))))


def _check_cycles(own: tuple[AnyQuery, ...], others: tuple[AnyQuery, ...]) -> None:
    for cycle in cycles_beyond_rules([*own, *others]):
        path = " <- ".join((*cycle, cycle[0]))
        raise UsageError(
            f"together these queries wait for each other: {path}; let one of them read other events, or rename it"
        )
    added = [query for query in others if isinstance(query, Rule)]
    read = (type_ for rule in added for type_ in rule.types)
    fed_by = behind(read, (query for query in own if isinstance(query, Rule))) if added else []
    for cycle in instant_cycles([*fed_by, *added]):
        path = " <- ".join((*cycle, cycle[0]))
        raise UsageError(
            f"together these rules fire for ever, at one instant: {path}; start one of them at another event, "
            "and look back at this one: each X(…) within 5 min from A"
        )
