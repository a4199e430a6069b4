"""Queries without some of what they ask, for chosen events only: what `weft why` names is tested against them.

All events that are not chosen carry a mark. A condition that is left out holds as well when no event that it reads has
the mark, so that it stays as it was for all others.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import replace

from weft.algebra.composites import Composite, CompositeQuery, Without
from weft.algebra.contexts import Whole
from weft.algebra.meaning.composites import composite_matches
from weft.algebra.meaning.partitions import key_of as key_in_context
from weft.algebra.meaning.query import key_of, query_matches
from weft.algebra.meaning.rules import Consumed, firings
from weft.algebra.meaning.situations import situation_matches
from weft.algebra.meaning.stream import Happening, positions_of
from weft.algebra.patterns import Correlate, Filter
from weft.algebra.policies import Cardinality, Consumption, Evaluation, Repeated
from weft.algebra.predicates import (
    Aggregate,
    And,
    Arithmetic,
    Attribute,
    Comparison,
    IsNull,
    Literal,
    Not,
    Or,
    Predicate,
    variables_of,
)
from weft.algebra.query import AnyQuery, Consume, Query, Strategy
from weft.algebra.rules import Absence, Events, LookBack, Rule, Terminator, Within
from weft.algebra.rules import mentioned as mentioned_in_rule
from weft.algebra.situations import SituationQuery
from weft.algebra.terms import conjuncts, mentioned
from weft.algebra.text.program import expression_text, to_text
from weft.algebra.text.rules import absence_text
from weft.algebra.why import Failure
from weft.tree import Node

MARK, END, KEY = "other", "own end", "shared key"
HUGE = 2**40
NO_CHOICE = {"strategy": Strategy.ALL, "limit": None, "consume": Consume.NONE}


def marked(seen: Sequence[Happening], chosen: frozenset[int]) -> list[Happening]:
    """The events, with a mark on all that are not chosen, and with their ends as an attribute."""
    return [
        replace(event, attributes={**event.attributes, END: event.end, **({} if own else {MARK: True})})
        for event in seen
        for own in [bool(event.positions) and chosen.issuperset(event.positions)]
    ]


def found_without(
    query: AnyQuery, seen: Sequence[Happening], chosen: frozenset[int], failures: Sequence[Failure]
) -> bool:
    """Whether a query, by what it means, has a match of exactly these events when this is left out for them."""
    loose = relaxed(query, failures)
    if isinstance(query, Rule):
        assert isinstance(loose, Rule)
        seen = [_with_marks(event, failures) for event in seen]
        taken = {(f.step, f.positions) for f in failures if (f.kind, f.wanted) == ("choice", "not consumed before")}
        return any(set(positions) == chosen for positions in _fired(query, loose, seen, taken))
    find = {Query: query_matches, CompositeQuery: composite_matches, SituationQuery: situation_matches}[type(query)]
    worlds = _worlds(query, seen, chosen) if {f.kind for f in failures} & {"key", "bound"} else [seen]
    return any(set(match.positions) == chosen for world in worlds for match in find(loose, world))  # type: ignore[operator]


def _fired(
    rule: Rule, loose: Rule, seen: Sequence[Happening], taken: Collection[tuple[str, tuple[int, ...]]]
) -> Iterable[tuple[int, ...]]:
    """What a looser rule fires at each event, when up to there all went as it does, but for some that was consumed."""
    consumed: Consumed = set()
    for number, now in enumerate(seen):
        left = {(name, event) for name, event in consumed if (name, event.positions) not in taken}
        yield from (positions_of(firing.values()) for firing in firings(loose, now, seen[:number], left))
        fired = list(firings(rule, now, seen[:number], consumed))
        consumed |= {(name, firing[name]) for firing in fired for name in rule.consumes}


def _worlds(query: AnyQuery, seen: Sequence[Happening], chosen: frozenset[int]) -> list[list[Happening]]:
    """What is seen if chosen events had the same key: one that some event has, or one that no other event has.

    Where they are not in the same partition of a context, the last is a partition that has them, and nothing else.
    """
    if isinstance(query, CompositeQuery | Rule):
        return [list(seen)]
    keys = [_key(query, event) for event in seen]
    numbers = {key: number for number, key in enumerate(dict.fromkeys(key for key in keys if key is not None))}
    worlds = []
    for shared in range(len(numbers) + 1):
        world = []
        for event, key in zip(seen, keys, strict=True):
            own = shared if event.positions and chosen.issuperset(event.positions) else numbers.get(key)
            world.append(event if own is None else replace(event, attributes={**event.attributes, KEY: own}))
        worlds.append(world)
    return worlds


def _key(query: AnyQuery, event: Happening) -> object:
    return key_of(event, query) if isinstance(query, Query) else key_in_context(event, query.situation.context.by)  # type: ignore[union-attr]


def almost(query: AnyQuery, seen: Sequence[Happening]) -> list[frozenset[int]]:
    """Sets of events that would be a match if the query asked for no key, and for no bound of time."""
    found: Iterable[Sequence[int]] = ()
    if isinstance(query, Query) and query.session is None and (query.partition or query.window):
        found = (match.positions for match in query_matches(replace(query, partition=(), window=None), seen))
    elif isinstance(query, Rule):
        steps = (replace(step, within=Within(step.within.anchor, HUGE)) for step in query.lookbacks)
        found = _fired(query, replace(query, lookbacks=tuple(steps)), seen, ())
    elif isinstance(query, SituationQuery):
        whole = replace(query, fields=(), situation=replace(query.situation, context=Whole()))
        found = (match.positions for match in situation_matches(whole, seen))
    return [one for positions in found if 0 < len(one := frozenset(positions)) < 7]


def can_relax(query: AnyQuery, failures: Sequence[Failure]) -> bool:
    """Whether leaving these out is said by an edit of the query that changes nothing else."""
    kinds = {failure.kind for failure in failures}
    if len({(failure.kind, failure.wanted) for failure in failures}) < len(failures):
        return False  # the same is asked in two places
    if isinstance(query, Query):
        chooses = any(getattr(query, name) != nothing for name, nothing in NO_CHOICE.items())
        return kinds <= {"condition", "key", *(("choice",) if chooses else ("bound",))}
    if isinstance(query, CompositeQuery):
        runs = any(failure.because.startswith("no run") for failure in failures)
        return kinds <= {"condition", "bound", "unwanted"} and not runs
    if isinstance(query, Rule):
        return kinds <= {"condition", "unwanted", "choice", "bound"}
    return kinds <= {"condition", "key", "bound"} or kinds <= {"condition", "key", "choice"}


def relaxed(query: AnyQuery, failures: Iterable[Failure]) -> AnyQuery:
    """The query without what these failures are about."""
    dropped = {(failure.kind, failure.wanted): failure for failure in failures}
    if isinstance(query, Query):
        return _query(query, dropped)
    if isinstance(query, CompositeQuery):
        return replace(query, pattern=_composite(query.pattern, dropped))
    return _rule(query, dropped) if isinstance(query, Rule) else _situation(query, dropped)


Dropped = dict[tuple[str, str], Failure]
Marks = Callable[[Predicate, Failure], Sequence[Predicate]]


def _mark_of(failure: Failure) -> str:
    """The mark of all events that a failure is not about."""
    return f"{MARK} than {failure.positions}"


def _with_marks(event: Happening, failures: Iterable[Failure]) -> Happening:
    marks = {_mark_of(one): True for one in failures if not set(event.positions) <= set(one.positions)}
    return replace(event, attributes={**event.attributes, **marks})


def _parts(conditions: Iterable[Predicate], dropped: Dropped, marks: Marks) -> tuple[Predicate, ...]:
    """The conditions, those that are dropped true of chosen events."""
    parts = []
    for part in conjuncts(conditions):
        text = expression_text(part)
        failure = dropped.get(("condition", text)) or dropped.get(("bound", text))
        parts.append(part if failure is None else Or((part, And(tuple(marks(part, failure))))))
    return tuple(parts)


def _by_variable(part: Predicate, failure: Failure) -> list[Predicate]:
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
        if isinstance(node, Filter):
            parts = _parts([node.predicate], dropped, lambda *_: [IsNull(Attribute(MARK))])
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
        partition=((KEY,),) if "key" in kinds else query.partition,
        **{name: nothing for name, nothing in NO_CHOICE.items() if name in steps},  # type: ignore[arg-type]
    )


def _by_count(part: Predicate, failure: Failure) -> list[Predicate]:
    return [
        Comparison("=", Aggregate("COUNT", Attribute(MARK, name)), Literal(0)) for name in sorted(variables_of(part))
    ]


def _rule(rule: Rule, dropped: Dropped) -> Rule:
    def events(step: Events) -> Events:
        def here(part: Predicate, failure: Failure) -> list[Predicate]:
            return [IsNull(Attribute(_mark_of(failure))), *_by_rule_variable(part, failure)]

        return replace(step, static=_parts(step.static, dropped, here), related=_parts(step.related, dropped, here))

    def changed(step: Terminator | LookBack) -> Terminator | LookBack:
        absences = tuple(_kept_from(step.variable, absence, dropped) for absence in step.absences)
        step = replace(step, events=events(step.events), absences=absences)
        own = {kind: failure for (kind, _), failure in dropped.items() if failure.step == step.variable}
        if isinstance(step, LookBack) and "bound" in own:
            step = replace(step, events=_bounded(step, own["bound"]), within=Within(step.within.anchor, HUGE))
        return replace(step, pick="each", count=None) if isinstance(step, LookBack) and "choice" in own else step

    terminator, *lookbacks = (changed(step) for step in rule.steps)
    return replace(
        rule,
        terminator=terminator,
        lookbacks=tuple(lookbacks),
        conditions=_parts(rule.conditions, dropped, _by_rule_variable),
    )


def _kept_from(variable: str, absence: Absence, dropped: Dropped) -> Absence:
    """An absence that is not asked of the event that a failure is about."""
    failure = dropped.get(("unwanted", absence_text(absence, to_text)))
    if failure is None:
        return absence
    others = Not(IsNull(Attribute(_mark_of(failure), variable)))
    return replace(absence, events=replace(absence.events, related=(*absence.events.related, others)))


def _bounded(step: LookBack, failure: Failure) -> Events:
    """The events of a look-back, with its bound as a condition that need not hold of chosen ones."""
    start = Arithmetic("-", Attribute(END, step.within.anchor), Literal(step.within.ticks))
    bound = Or((IsNull(Attribute(_mark_of(failure))), Comparison(">=", Attribute(END), start)))
    return replace(step.events, related=(*step.events.related, bound))


def _by_rule_variable(part: Predicate, failure: Failure) -> list[Predicate]:
    return [IsNull(Attribute(_mark_of(failure), name)) for name in sorted(mentioned_in_rule(part))]


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
    by = (KEY,) if "key" in kinds else situation.context.by
    context = Whole(by=tuple(dict.fromkeys((*by, KEY)))) if "bound" in kinds else replace(situation.context, by=by)
    return replace(
        query,
        fields=() if "key" in kinds else query.fields,
        situation=replace(
            situation,
            participants=tuple(slots),
            assertion=_parts(situation.assertion, dropped, lambda *_: whole),
            evaluation=Evaluation.IMMEDIATE if ("evaluation", "") in policies else situation.evaluation,
            cardinality=Cardinality.UNRESTRICTED if ("cardinality", "") in policies else situation.cardinality,
            context=context,
        ),
    )
