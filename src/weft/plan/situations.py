"""What situations read, which of them must run together, and how their work can be split."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.algebra.contexts import Whole, Windows
from weft.algebra.network import links
from weft.algebra.normal_form import clauses
from weft.algebra.policies import Cardinality, Evaluation, Repeated
from weft.algebra.predicates import Attribute
from weft.algebra.query import Program
from weft.algebra.situation_text import situation_lines
from weft.algebra.situations import Situation, SituationQuery
from weft.algebra.text import to_text
from weft.plan.keyed import keyed_sequence
from weft.plan.operators import Lanes
from weft.plan.search import equal_attributes, search_lines


def situations_of(program: Program) -> list[SituationQuery]:
    """The situations of a program, in order."""
    return [query for query in program.queries if isinstance(query, SituationQuery)]


def stage_lines(program: Program, number: int) -> Iterator[str]:
    """One situation of a plan for people: where its events come from, how it is worked out, and what it is."""
    query = program.queries[number]
    network = situations_of(program)
    assert isinstance(query, SituationQuery)
    alone = query in [network[at] for at in unlinked(network)]
    yield f"situation {query.name}"
    for link in links(network):
        if network[link.target] is query:
            source = "the input" if link.source is None else f"situation {network[link.source].name}"
            yield f"  {link.type} from {source}"
    yield from (f"  {line}" for line in situation_lines(query.situation, lambda node: to_text(node).strip()))
    keyed = keyed_sequence(query.situation) if alone else None
    if keyed is not None:
        by = f" by [{', '.join(keyed.key)}]" if keyed.key else ""
        yield f"  kernel of sequences with equal keys: a chain for each slot{by}, walked from the last to the first"
    else:
        yield "  kernel of situations"
        yield from (f"    {line}" for line in search_lines(query.situation))


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
            if maker.name in query.situation.types:
                joined, other = group_of[target], group_of[source]
                group_of = [joined if group == other else group for group in group_of]
    return [[at for at, own in enumerate(group_of) if own == group] for group in dict.fromkeys(group_of)]


def _lanes(numbers: Sequence[int], queries: Sequence[SituationQuery]) -> Lanes:
    if any(counts_time(query) for query in queries):
        return Lanes((), tuple(numbers), "one lane: an absence counts the time of all events")
    keys = [_keys(query.situation) for query in queries]
    if len(queries) == 1:
        why = "one lane: no key divides the partitions or ties all events"
    else:
        why = "one lane: situations that feed each other, without a key that all of them have and pass on"
    common = [name for name in keys[0] if all(name in own for own in keys) and _passed_on(name, queries)]
    if not common:
        return Lanes((), tuple(numbers), why)
    return Lanes(tuple((name,) for name in common), tuple(numbers), f"by key [{', '.join(common)}]")


def _keys(situation: Situation) -> list[str]:
    """The attributes in which all events that have to do with each other agree."""
    by = situation.context.by
    if (
        not isinstance(situation.context, Whole | Windows)
        or situation.kind not in ("sequence", "all")
        or situation.evaluation is not Evaluation.IMMEDIATE
        or situation.cardinality is not Cardinality.UNRESTRICTED
        or any(slot.repeated is Repeated.OVERRIDE for slot in situation.participants)
    ):
        return list(by)
    slots = {name: at for at, name in enumerate(situation.variables)}
    groups = equal_attributes(clauses(situation.assertion), slots)
    tied = [name for group in groups for name in sorted({name for _, name in group}) if _ties(group, name, len(slots))]
    return list(dict.fromkeys((*by, *tied)))


def _ties(group: set[tuple[int, str]], name: str, slots: int) -> bool:
    return all((slot, name) in group for slot in range(slots))


def _passed_on(name: str, queries: Sequence[SituationQuery]) -> bool:
    """Whether the events that situations derive for each other have an attribute of their members."""
    read = {type_ for query in queries for type_ in query.situation.types}
    return all(
        any(
            field.name == name and isinstance(field.value, Attribute) and field.value.name == name for field in q.fields
        )
        for q in queries
        if q.name in read
    )
