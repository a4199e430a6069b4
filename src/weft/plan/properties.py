"""Properties of queries of any language: the attributes they read, and which feed which."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass

from weft.algebra.composites import CompositeQuery
from weft.algebra.query import AnyQuery
from weft.tree import Node

# ---------------------------------------------------------------- what is read


ALL_FIELDS = "\0*"  # among the columns of a plan: all attributes are read, since matches show them


def columns(query: AnyQuery) -> set[str]:
    """Return the attributes that a query reads, and those that identify its events."""
    shown = {ALL_FIELDS} if shows_all_fields(query) else set()
    return query.mentions() | set(query.identity_attributes) | shown


def shows_all_fields(query: AnyQuery) -> bool:
    """Whether its matches show all attributes of their events."""
    return isinstance(query, CompositeQuery) and query.all_fields


def columns_without_fields(queries: Sequence[AnyQuery], columns: Iterable[str]) -> frozenset[str]:
    """Return the columns of a plan that must be read when the fields of `SELECT *` are not needed.

    If queries read the output of other queries, all columns are needed.
    """
    inner = {type_ for query in queries for type_ in query.reads}
    fed = any(query.defines in inner for query in queries)
    return frozenset(columns) if fed else frozenset(columns) - {ALL_FIELDS}


def seen_types(queries: Iterable[AnyQuery], *, fed: bool) -> frozenset[str] | None:
    """Return the types of input events that some of the queries must be given, or None for all.

    A window of a number of events counts all of the input, which cannot be derived from derived events.
    """
    known: set[str] = set()
    for query in queries:
        own = query.relevant_types
        if own is None or (fed and query.counts_events):
            return None
        known |= own
    return frozenset(known)


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
