"""What a program means: a naive evaluator, small enough to be read as the definition of the answer.

It knows the algebra and nothing of the engines, and no engine knows it. It keeps every valuation in
memory, so it is for short streams: for tests, and to settle what a query should give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.algebra.composites import CompositeQuery
from weft.algebra.meaning.composites import composite_matches
from weft.algebra.meaning.query import Match, query_matches
from weft.algebra.meaning.rules import rule_matches
from weft.algebra.meaning.situations import network_matches
from weft.algebra.meaning.stream import Placed, place
from weft.algebra.query import Program, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery

__all__ = ["Match", "matches"]


def matches(
    program: Program, events: Sequence[Mapping[str, object]], *, time: str = "ts", type: str = "type"
) -> list[Match]:
    """All matches of the program's queries over the events (in arrival order), in match order.

    Match order is by end, then start, then positions, then query.
    """
    declared: list[object] = [source.type for source in program.inputs]
    by_source = sorted(events, key=lambda e: declared.index(e[type]) if e.get(type) in declared else len(declared))
    stream = place(by_source, program.catalog, time, type)
    network = [query for query in program.queries if isinstance(query, SituationQuery)]
    in_network = dict(zip((query.name for query in network), network_matches(network, stream), strict=True))
    found = [
        (rank, m)
        for rank, query in enumerate(program.queries)
        if not isinstance(query, Rule)
        for m in (in_network[query.name] if isinstance(query, SituationQuery) else _matches_of(query, stream))
    ]
    rules = [(rank, query) for rank, query in enumerate(program.queries) if isinstance(query, Rule)]
    found += [(rules[n][0], m) for n, m in rule_matches([rule for _, rule in rules], stream)]
    ranked = [
        ((m.end, m.start, m.positions, rank, m.last, m.first, tuple(sorted(m.bindings.items()))), m)
        for rank, m in found
    ]
    return [m for _, m in sorted(ranked, key=lambda pair: pair[0])]


def _matches_of(query: Query | CompositeQuery, stream: Sequence[Placed]) -> list[Match]:
    return composite_matches(query, stream) if isinstance(query, CompositeQuery) else query_matches(query, stream)
