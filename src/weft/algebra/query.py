"""A query: a pattern and what is reported of its matches; a program: the queries deployed together."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal as OneOf

from weft.algebra.composites import CompositeQuery
from weft.algebra.endpoints import Input, Output
from weft.algebra.patterns import Pattern
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.schema import Catalog
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
class Window(Node):
    """`value(end) - amount <= value(start)`, where the value is the position, the time, or an attribute.

    Of an event without the attribute no match starts or ends; an event whose attribute is below the
    largest seen so far does not exist for the query (it is counted as out of order).
    """

    unit: OneOf["events", "time", "attribute"]
    amount: int | float
    attribute: str | None = None


@dataclass(frozen=True)
class Query(Node):
    """One CEQL query. `selected` None is `*`; the empty tuple is NONE.

    `universe` lists the (stream, type) pairs that exist for the query; None: all events do. An event
    without a `stream` attribute exists if its type is listed for any stream. The stream `*` is any stream
    (for a program that declares types but no streams).
    `partition` is a tuple of key parts, each the tuple of attributes of which the first present counts.
    """

    name: str
    pattern: Pattern
    strategy: Strategy = Strategy.ALL
    selected: tuple[Selected, ...] | None = None
    universe: tuple[tuple[str, str], ...] | None = None
    partition: tuple[tuple[str, ...], ...] = ()
    window: Window | None = None
    consume: Consume = Consume.NONE
    limit: int | None = None


@dataclass(frozen=True)
class Program:
    """Compiled text: its queries (in the algebra), what they declare, and the unit of one tick of event time."""

    language: str
    queries: tuple[Query | CompositeQuery | SituationQuery | Rule, ...]
    catalog: Catalog = Catalog()
    text: str = ""
    time_unit: str = "ms"
    inputs: tuple[Input, ...] = ()
    outputs: tuple[Output, ...] = ()
