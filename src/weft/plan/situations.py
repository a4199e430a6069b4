"""What situations read, which of them must run together, and how their work can be split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.algebra.contexts import Whole, Windows
from weft.algebra.network import links
from weft.algebra.predicates import Attribute
from weft.algebra.query import Program
from weft.algebra.situation_text import situation_lines
from weft.algebra.situations import SituationQuery
from weft.algebra.text import to_text
from weft.plan.operators import Lanes


def situations_of(program: Program) -> list[SituationQuery]:
    """The situations of a program, in order."""
    return [query for query in program.queries if isinstance(query, SituationQuery)]


def stage_lines(program: Program, number: int) -> Iterator[str]:
    """One situation of a plan for people: where its events come from, how it is worked out, and what it is."""
    query = program.queries[number]
    network = situations_of(program)
    assert isinstance(query, SituationQuery)
    yield f"situation {query.name}"
    for link in links(network):
        if network[link.target] is query:
            source = "the input" if link.source is None else f"situation {network[link.source].name}"
            yield f"  {link.type} from {source}"
    yield from (f"  {line}" for line in situation_lines(query.situation, lambda node: to_text(node).strip()))


def situation_columns(query: SituationQuery) -> set[str]:
    """The attributes that a situation reads."""
    names = {node.name for node in query.walk() if isinstance(node, Attribute)}
    return names | set(query.situation.context.by)


def counts_time(query: SituationQuery) -> bool:
    """Whether partitions without events of its types matter: an absence over all time since the first event."""
    return query.situation.kind == "absence" and isinstance(query.situation.context, Windows | Whole)


def situation_types(query: SituationQuery) -> frozenset[str] | None:
    """The types whose events matter, None when any event may."""
    return None if counts_time(query) else query.situation.types


def situation_lanes(program: Program) -> list[Lanes]:
    """The situations that feed each other together, each such group with the key it can be split by."""
    numbered = [(at, query) for at, query in enumerate(program.queries) if isinstance(query, SituationQuery)]
    group_of = {at: at for at, _ in numbered}
    for place, (at, query) in enumerate(numbered):
        for feeder, maker in numbered[:place]:
            if counts_time(query) or maker.name in query.situation.types:
                joined, other = group_of[at], group_of[feeder]
                group_of = {number: joined if group == other else group for number, group in group_of.items()}
    groups: dict[int, list[int]] = {}
    for at, group in group_of.items():
        groups.setdefault(group, []).append(at)
    queries = dict(numbered)
    return [_lanes(numbers, [queries[number] for number in numbers]) for numbers in groups.values()]


def _lanes(numbers: Sequence[int], queries: Sequence[SituationQuery]) -> Lanes:
    contexts = {frozenset(query.situation.context.by): query.situation.context.by for query in queries}
    own = next(iter(contexts.values()))
    if len(queries) > 1:
        return Lanes((), tuple(numbers), "one lane: situations that feed each other")
    if not own:
        return Lanes((), tuple(numbers), "one lane: the context has no key")
    if counts_time(queries[0]):
        return Lanes((), tuple(numbers), "one lane: an absence counts the time of all events")
    return Lanes(tuple((name,) for name in own), tuple(numbers), f"by key [{', '.join(own)}]")
