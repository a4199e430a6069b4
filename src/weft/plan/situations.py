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
from weft.plan.keyed import keyed_sequence
from weft.plan.operators import Lanes


def situations_of(program: Program) -> list[SituationQuery]:
    """The situations of a program, in order."""
    return [query for query in program.queries if isinstance(query, SituationQuery)]


def stage_lines(program: Program, number: int) -> Iterator[str]:
    """One situation of a plan for people: where its events come from, how it is worked out, and what it is."""
    query = program.queries[number]
    network = situations_of(program)
    assert isinstance(query, SituationQuery)
    alone = query in [network[at] for at in unlinked(network)]
    yield f"situation {query.name}{' (kernel of keyed sequences)' if alone and keyed_sequence(query.situation) else ''}"
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
    numbers = [at for at, query in enumerate(program.queries) if isinstance(query, SituationQuery)]
    queries = situations_of(program)
    return [_lanes([numbers[at] for at in group], [queries[at] for at in group]) for group in _groups(queries)]


def unlinked(queries: Sequence[SituationQuery]) -> list[int]:
    """The situations that neither feed another nor are fed."""
    return [group[0] for group in _groups(queries) if len(group) == 1]


def _groups(queries: Sequence[SituationQuery]) -> list[list[int]]:
    """The situations that are connected, by number."""
    group_of = list(range(len(queries)))
    for target, query in enumerate(queries):
        for source, maker in enumerate(queries[:target]):
            if counts_time(query) or maker.name in query.situation.types:
                joined, other = group_of[target], group_of[source]
                group_of = [joined if group == other else group for group in group_of]
    return [[at for at, own in enumerate(group_of) if own == group] for group in dict.fromkeys(group_of)]


def _lanes(numbers: Sequence[int], queries: Sequence[SituationQuery]) -> Lanes:
    keyed = keyed_sequence(queries[0].situation)
    own = queries[0].situation.context.by if keyed is None else keyed.key
    if len(queries) > 1:
        return Lanes((), tuple(numbers), "one lane: situations that feed each other")
    if not own:
        return Lanes((), tuple(numbers), "one lane: no key divides the partitions or ties all events")
    if counts_time(queries[0]):
        return Lanes((), tuple(numbers), "one lane: an absence counts the time of all events")
    return Lanes(tuple((name,) for name in own), tuple(numbers), f"by key [{', '.join(own)}]")
