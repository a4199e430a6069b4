"""Queries without some of what they ask, for chosen events only: what `weft why` names is tested against them.

All events that are not chosen carry a mark. A condition that is left out holds as well when no event that it reads has
the mark, so that it stays as it was for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from weft.algebra.composites import Composite, CompositeQuery, Without
from weft.algebra.contexts import Whole
from weft.algebra.meaning.composites import composite_matches
from weft.algebra.meaning.query import query_matches
from weft.algebra.meaning.rules import Consumed, firings
from weft.algebra.meaning.situations import situation_matches
from weft.algebra.meaning.stream import Happening, positions_of
from weft.algebra.patterns import Correlate, Where
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.predicates import Aggregate, And, Attribute, Comparison, IsNull, Literal, Or, Predicate, variables_of
from weft.algebra.query import AnyQuery, Consume, Query, Strategy
from weft.algebra.rules import Events, LookBack, Rule, Terminator, Within
from weft.algebra.rules import mentioned as mentioned_in_rule
from weft.algebra.situations import SituationQuery
from weft.algebra.terms import conjuncts, mentioned
from weft.algebra.text.program import expression_text, to_text
from weft.algebra.text.rules import absence_text
from weft.algebra.why import Failure
from weft.tree import Node

MARK = "other"
HUGE = 2**40
NO_CHOICE = {"strategy": Strategy.ALL, "limit": None, "consume": Consume.NONE}


def marked(seen: Sequence[Happening], chosen: frozenset[int]) -> list[Happening]:
    """The events, with a mark on all that are not chosen."""
    return [
        event
        if event.positions and chosen.issuperset(event.positions)
        else replace(event, attributes={**event.attributes, MARK: True})
        for event in seen
    ]


def finds(query: AnyQuery, seen: Sequence[Happening], chosen: frozenset[int]) -> bool:
    """Whether a query, by what it means, has a match of exactly these events."""
    if isinstance(query, Rule):
        return any(set(positions) == chosen for positions in _fired(query, seen))
    found = {Query: query_matches, CompositeQuery: composite_matches, SituationQuery: situation_matches}[type(query)]
    return any(set(match.positions) == chosen for match in found(query, seen))  # type: ignore[operator]


def _fired(rule: Rule, seen: Sequence[Happening]) -> Iterable[tuple[int, ...]]:
    consumed: Consumed = set()
    for number, now in enumerate(seen):
        fired = list(firings(rule, now, seen[:number], consumed))
        consumed |= {(name, firing[name]) for firing in fired for name in rule.consumes}
        yield from (positions_of(firing.values()) for firing in fired)


def can_relax(query: AnyQuery, failures: Sequence[Failure]) -> bool:
    """Whether leaving these out is said by an edit of the query that changes nothing else."""
    kinds = {failure.kind for failure in failures}
    if len({(failure.kind, failure.wanted) for failure in failures}) < len(failures):
        return False  # the same is asked in two places
    if isinstance(query, Query):
        chooses = any(getattr(query, name) != nothing for name, nothing in NO_CHOICE.items())
        if any(getattr(node, "contiguous", False) for node in query.pattern.walk()):
            kinds |= kinds & {"key"} and {"gap"}  # without partitions the events of others come between
        return kinds <= ({"condition", "choice"} if chooses else {"condition", "bound", "key"})
    if isinstance(query, CompositeQuery):
        runs = any(failure.because.startswith("no run") for failure in failures)
        return kinds <= {"condition", "bound", "unwanted"} and not runs
    if isinstance(query, Rule):
        # Without a bound other firings come, too, and take events away from this one.
        return kinds <= {"condition", "unwanted", *(() if query.consumes else ("choice", "bound"))}
    if "key" in kinds and not isinstance(query.situation.context, Whole):
        return False  # spans depend on the key: which they would be is not told
    return kinds <= {"condition", "bound", "key"} or kinds <= {"condition", "choice"}


def relaxed(query: AnyQuery, failures: Iterable[Failure]) -> AnyQuery:
    """The query without what these failures are about."""
    dropped = {(failure.kind, failure.wanted): failure for failure in failures}
    if isinstance(query, Query):
        return _query(query, dropped)
    if isinstance(query, CompositeQuery):
        return replace(query, pattern=_composite(query.pattern, dropped))
    return _rule(query, dropped) if isinstance(query, Rule) else _situation(query, dropped)


Dropped = dict[tuple[str, str], Failure]
Marks = Callable[[Predicate], Sequence[Predicate]]


def _parts(conditions: Iterable[Predicate], dropped: Dropped, marks: Marks) -> tuple[Predicate, ...]:
    """The conditions, those that are dropped true of chosen events."""
    return tuple(
        Or((part, And(tuple(marks(part)))))
        if {("condition", expression_text(part)), ("bound", expression_text(part))} & set(dropped)
        else part
        for part in conjuncts(conditions)
    )


def _by_variable(part: Predicate) -> list[Predicate]:
    return [IsNull(Attribute(MARK, name)) for name in sorted(mentioned(part))]


def _composite(pattern: Composite, dropped: Dropped) -> Composite:
    steps = {failure.step for (kind, _), failure in dropped.items() if kind == "unwanted"}

    def change(node: Node) -> Node:
        if isinstance(node, Without) and " ".join(node.unwanted.variables) in steps:
            return node.pattern
        fields = {name: _parts(getattr(node, name), dropped, _by_variable) for name in ("where", "among")
                  if hasattr(node, name)}  # fmt: skip
        return replace(node, **fields) if fields else node

    found = pattern.transform(change, Composite)
    assert isinstance(found, Composite)
    return found


def _query(query: Query, dropped: Dropped) -> Query:
    def change(node: Node) -> Node:
        if isinstance(node, Where):
            parts = _parts([node.predicate], dropped, lambda _: [IsNull(Attribute(MARK))])
            return replace(node, predicate=parts[0] if len(parts) == 1 else And(parts))
        if isinstance(node, Correlate):
            return replace(node, condition=_parts([node.condition], dropped, _by_count)[0])
        return node

    kinds = {kind for kind, _ in dropped}
    steps = {failure.step for failure in dropped.values()}
    return replace(
        query,
        pattern=query.pattern.transform(change),  # type: ignore[arg-type]
        window=None if "bound" in kinds else query.window,
        partition=() if "key" in kinds else query.partition,
        **{name: nothing for name, nothing in NO_CHOICE.items() if name in steps},  # type: ignore[arg-type]
    )


def _by_count(part: Predicate) -> list[Predicate]:
    return [
        Comparison("=", Aggregate("COUNT", Attribute(MARK, name)), Literal(0)) for name in sorted(variables_of(part))
    ]


def _rule(rule: Rule, dropped: Dropped) -> Rule:
    def events(step: Events) -> Events:
        here = [IsNull(Attribute(MARK))]
        return replace(
            step,
            static=_parts(step.static, dropped, lambda _: here),
            related=_parts(step.related, dropped, lambda part: [*here, *_by_rule_variable(part)]),
        )

    def changed(step: Terminator | LookBack) -> Terminator | LookBack:
        absences = tuple(a for a in step.absences if ("unwanted", absence_text(a, to_text)) not in dropped)
        step = replace(step, events=events(step.events), absences=absences)
        own = {kind for (kind, _), failure in dropped.items() if failure.step == step.variable}
        if isinstance(step, LookBack) and "bound" in own:
            step = replace(step, within=Within(step.within.anchor, HUGE))
        return replace(step, pick="each", count=None) if isinstance(step, LookBack) and "choice" in own else step

    terminator, *lookbacks = (changed(step) for step in rule.steps)
    return replace(
        rule,
        terminator=terminator,
        lookbacks=tuple(lookbacks),
        conditions=_parts(rule.conditions, dropped, _by_rule_variable),
    )


def _by_rule_variable(part: Predicate) -> list[Predicate]:
    return [IsNull(Attribute(MARK, name)) for name in sorted(mentioned_in_rule(part))]


def _situation(query: SituationQuery, dropped: Dropped) -> SituationQuery:
    situation = query.situation
    whole = [IsNull(Attribute(MARK, name)) for name in situation.variables]
    policies = {(failure.wanted.split()[0], failure.step) for (kind, _), failure in dropped.items() if kind == "choice"}
    slots = []
    for slot in situation.participants:
        slot = replace(slot, where=_parts(slot.where, dropped, _by_variable))
        if ("repeated", slot.variable) in policies:
            slot = replace(slot, repeated=Repeated.EVERY)
        if ("consumption", slot.variable) in policies:
            slot = replace(slot, consumption=Consumption.REUSE)
        slots.append(slot)
    kinds = {kind for kind, _ in dropped}
    by = () if "key" in kinds else situation.context.by
    context = Whole(by=by) if "bound" in kinds else replace(situation.context, by=by)
    return replace(
        query,
        fields=() if "key" in kinds else query.fields,
        situation=replace(
            situation,
            participants=tuple(slots),
            assertion=_parts(situation.assertion, dropped, lambda _: whole),
            evaluation=Evaluation.IMMEDIATE if ("evaluation", "") in policies else situation.evaluation,
            cardinality=Cardinality.UNRESTRICTED if ("cardinality", "") in policies else situation.cardinality,
            context=context,
        ),
    )
