"""What is true of queries, whatever their language: what they read, and who feeds whom."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from weft.algebra.chains import Chain
from weft.algebra.contexts import Whole, Windows
from weft.algebra.patterns import Other, Repeat
from weft.algebra.patterns import Sequence as Then
from weft.algebra.query import AnyQuery, Query, Strategy
from weft.algebra.situations import SituationQuery
from weft.tree import Node

# ---------------------------------------------------------------- what is read


def columns(query: AnyQuery) -> set[str]:
    """The attributes that a query reads, and those that identify its events."""
    return query.mentions() | set(query.identity_attributes)


def relevant_types(query: AnyQuery) -> frozenset[str] | None:
    """The types whose events matter, None when any event may: it can break contiguity, fill a NOT, or move a window."""
    match query:
        case SituationQuery() if counts_time(query):
            return None
        case Query(session=int()):
            return frozenset(query.reads)
        case Query(window=window) if query.strategy is Strategy.STRICT or (window and window.unit == "attribute"):
            return None
        case Query() if any(
            isinstance(node, Other | Chain) or (isinstance(node, Then | Repeat) and node.contiguous)
            for node in query.pattern.walk()
        ):
            return None
    return frozenset(query.reads)


def seen_types(queries: Iterable[AnyQuery], *, fed: bool) -> frozenset[str] | None:
    """Return the types of input events that some of the queries must be given, or None for all.

    A window of a number of events counts all of the input, which cannot be derived from derived events.
    """
    known: set[str] = set()
    for query in queries:
        own = relevant_types(query)
        if own is None or (fed and counts_events(query)):
            return None
        known |= own
    return frozenset(known)


def counts_time(query: AnyQuery) -> bool:
    """Whether partitions without events of its types matter: an absence over all time since the first event."""
    return (
        isinstance(query, SituationQuery)
        and query.situation.kind == "absence"
        and isinstance(query.situation.context, Windows | Whole)
    )


def counts_events(query: AnyQuery) -> bool:
    """Return whether a query has a window of a number of events."""
    return isinstance(query, Query) and query.window is not None and query.window.unit == "events"


# ---------------------------------------------------------------- who feeds whom


@dataclass(frozen=True)
class Family(Node):
    """Queries that feed each other, directly or not: they are shared out together."""

    numbers: tuple[int, ...]
    queries: tuple[AnyQuery, ...]
    fed_by: tuple[tuple[int, ...], ...]  # for each query the numbers of those whose events it reads

    @property
    def fed(self) -> list[AnyQuery]:
        """The queries that read the output of other queries."""
        return [query for query, makers in zip(self.queries, self.fed_by, strict=True) if makers]

    @property
    def read(self) -> frozenset[str]:
        """The names of the queries whose output is read by other queries."""
        read = {number for makers in self.fed_by for number in makers}
        return frozenset(query.name for number, query in zip(self.numbers, self.queries, strict=True) if number in read)

    @property
    def names(self) -> str:
        """What its queries are called."""
        return ", ".join(dict.fromkeys(query.name for query in self.queries))


def families(fed_by: Sequence[Collection[int]]) -> list[list[int]]:
    """The queries that feed each other, directly or not, by number."""
    family_of = list(range(len(fed_by)))

    def root(at: int) -> int:
        while family_of[at] != at:
            family_of[at] = family_of[family_of[at]]
            at = family_of[at]
        return at

    for reader, makers in enumerate(fed_by):
        for maker in makers:
            one, other = root(maker), root(reader)
            family_of[max(one, other)] = min(one, other)
    found: dict[int, list[int]] = {}
    for at in range(len(fed_by)):
        found.setdefault(root(at), []).append(at)
    return list(found.values())
