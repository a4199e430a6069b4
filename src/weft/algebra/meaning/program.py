"""The matches of all queries of a program, in any mix of languages: from those over input alone to the deepest.

A query sees the input and, of the types it names, what other queries derive. In the order of the input, a derived event
that ends at t stands after all input events that end at t or before: by the depth of its query, then by the order of
queries in the program, then by match order. Situations see what situations derive, and rules what rules define, in the
order that their own language gives.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import cast

from weft.algebra.analysis.feeding import cycles_beyond_rules, depths, feeders
from weft.algebra.composites import CompositeQuery
from weft.algebra.meaning.composites import composite_matches
from weft.algebra.meaning.ids import Ids
from weft.algebra.meaning.match import Match
from weft.algebra.meaning.query import query_matches
from weft.algebra.meaning.rules import rule_history, rule_matches
from weft.algebra.meaning.situations import situation_matches
from weft.algebra.meaning.stream import Happening, Stream, in_places, stream_of
from weft.algebra.query import AnyQuery, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery

# The end, whether it is one of the events that come after those of the input, and two numbers that differ by kind.
Order = tuple[int, bool, int, int]
Ordered = tuple[Order, Happening]


def program_matches(queries: Sequence[AnyQuery], stream: Stream, key: Sequence[str] = ()) -> list[list[Match]]:
    """The matches of each query over the events of the input, with ids by these attributes of events, if named."""
    cycles = cycles_beyond_rules(queries)
    if cycles:
        raise ValueError(f"these queries are made of each other: {' <- '.join((*cycles[0], cycles[0][0]))}")
    found = ProgramEvaluation(queries, stream, key=key)
    return [
        [replace(match, number=number, id=found.ids.id_of(number, match)) for match in own]
        for number, own in enumerate(found.found)
    ]


class ProgramEvaluation:
    """Queries over a stream and their matches so far, evaluated by depth: depth 0 first, then 1, and so on.

    `only` are the numbers of the wanted queries; then only these and the queries that feed them are evaluated.
    """

    def __init__(
        self, queries: Sequence[AnyQuery], stream: Stream, only: Iterable[int] | None = None, key: Sequence[str] = ()
    ) -> None:
        self.ids = Ids(queries, stream, key)
        self._queries = queries
        self._stream = stream
        self._depths = depths(queries)
        self._feeders = feeders(queries)
        self.found: list[list[Match]] = [[] for _ in queries]
        wanted = set(range(len(queries))) if only is None else self._behind(only)
        for depth in sorted({self._depths[number] for number in wanted}):
            for number, query in enumerate(queries):
                if self._depths[number] == depth and not isinstance(query, Rule) and number in wanted:
                    self.found[number] = self._matches(query, number)
            self._find_rules(depth)

    def _behind(self, numbers: Iterable[int]) -> set[int]:
        """Return the queries together with all queries that feed them, directly or indirectly."""
        found: set[int] = set()
        waiting = list(numbers)
        while waiting:
            number = waiting.pop()
            if number not in found:
                found.add(number)
                waiting += self._feeders[number]
        return found

    def _matches(self, query: Query | CompositeQuery | SituationQuery, number: int) -> list[Match]:
        seen = self.seen_by(number)
        if isinstance(query, SituationQuery):
            return situation_matches(query, seen)
        return query_matches(query, seen) if isinstance(query, Query) else composite_matches(query, seen)

    def _find_rules(self, depth: int) -> None:
        """All rules up to a depth, together, as they see each other. Those that were found before are found again."""
        rules = {
            number: query
            for number, query in enumerate(self._queries)
            if isinstance(query, Rule) and self._depths[number] <= depth
        }
        if not any(self._depths[number] == depth for number in rules):
            return
        self.found = [[] if number in rules else found for number, found in enumerate(self.found)]
        others = {at for number in rules for at in self._feeders[number]} - set(rules)
        for rank, match in rule_matches(list(rules.values()), self._seen(others)):
            self.found[list(rules)[rank]].append(match)

    # ------------------------------------------------------------ what a query sees

    def seen_by(self, number: int) -> list[Happening]:
        """The events that a query sees, in the order in which it does."""
        query = self._queries[number]
        own = self._feeders[number]
        if isinstance(query, Rule):
            rules = [
                at
                for at, other in enumerate(self._queries)
                if isinstance(other, Rule) and self._depths[at] <= self._depths[number]
            ]
            others = {at for rank in rules for at in self._feeders[rank]} - set(rules)
            return rule_history([cast(Rule, self._queries[at]) for at in rules], self._seen(others))[1]
        is_situation = isinstance(query, SituationQuery)
        return self._seen(own, [at for at in own if is_situation and isinstance(self._queries[at], SituationQuery)])

    def _seen(self, feeders: Iterable[int], in_network: Sequence[int] = ()) -> list[Happening]:
        """The input, and what the feeders derive: after the input, or (in a network of situations) among it."""
        seen: list[Ordered] = [((event.end, False, event.start, -1), event) for event in self._stream]
        for number in feeders:
            for event in self._derived(number, as_found=number in in_network):
                order = (False, event.start, number) if number in in_network else (True, self._depths[number], number)
                seen.append(((event.end, *order), event))
        return in_places(event for _, event in sorted(seen, key=lambda pair: pair[0]))

    def _derived(self, number: int, as_found: bool) -> list[Happening]:
        """What a query derives: in match order, or as it was found."""
        query = self._queries[number]
        found = self.found[number]
        if not as_found:
            found = sorted(found, key=lambda m: (m.end, m.start, m.positions, self.ids.id_of(number, m)))
        return [self._event(query, match) for match in found]

    def _event(self, query: AnyQuery, match: Match) -> Happening:
        return Happening(
            type=query.defines,
            stream=stream_of(match.event),
            start=match.end if query.is_rule else match.start,
            end=match.end,
            positions=match.positions,
            attributes=match.event,
            position=sum(event.end <= match.end for event in self._stream) - 1,
            is_derived=True,
        )
