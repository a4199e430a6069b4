"""How the work of queries may be split: by an attribute that all events have in common that have to do with each other.

Queries that feed each other are split together or not at all, by a key that goes through all of them.
"""

from __future__ import annotations

from collections.abc import Container, Sequence

from weft.algebra.analysis.binding import always_bound
from weft.algebra.analysis.normal_form import clauses
from weft.algebra.analysis.ties import tied_attributes
from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Overlap,
    Without,
)
from weft.algebra.contexts import Whole, Windows
from weft.algebra.policies import Cardinality, Evaluation, Repeated
from weft.algebra.predicates import Attribute, Comparison, Predicate
from weft.algebra.query import AnyQuery, Consume, Query, Strategy
from weft.algebra.rules import Absence, Events, Rule, Summary
from weft.algebra.situations import Situation, SituationQuery
from weft.algebra.terms import conjuncts
from weft.plan.graph import links_members
from weft.plan.properties import Family, columns, counts_events, counts_time
from weft.plan.search import equal_attributes

Key = tuple[tuple[str, ...], ...]  # the parts of a key, each the attributes of which the first present counts


def key_of(family: Family) -> tuple[Key, str]:
    """The key that queries can be split by, and why; no key: they are one lane."""
    if len(family.queries) == 1:
        return _key_of(family.queries[0])
    return _common_key(family.queries, family.fed, family.read)


def _key_of(query: AnyQuery) -> tuple[Key, str]:
    """The key that a query alone can be split by, and why; no key: it is one lane."""
    names = key_names(query)
    match query:
        case Query(consume=Consume.ANY) if query.partition:
            return (), "one lane: CONSUME BY ANY looks at all partitions"
        case Query(top=top) if query.partition and top is not None:
            return (), "one lane: ORDER BY looks at all partitions"
        case Query(window=window) if query.partition and window is not None and window.unit == "attribute":
            return (), f"one lane: the order of [{window.attribute}] is that of all partitions"
        case Query() if not query.partition and not names:
            return (), "one lane: no PARTITION BY, and no equality ties all variables together"
        case Query() if not query.partition:
            return ((names[0],),), f"by key [{names[0]}], which is equal in all variables"
        case Query():
            parts = ", ".join(f"[{', '.join(part)}]" for part in query.partition)
            return query.partition, f"by key {parts}"
        case SituationQuery() if counts_time(query):
            return (), "one lane: an absence counts the time of all events"
        case SituationQuery() if not names:
            return (), "one lane: no key divides the partitions or ties all events"
        case SituationQuery():
            return tuple((name,) for name in names), f"by key [{', '.join(names)}]"
        case CompositeQuery() if not names:
            return (), "one lane: no equality ties all variables together"
        case CompositeQuery():
            return ((names[0],),), f"by key [{names[0]}], which is equal in all variables"
    if not names:
        return (), "one lane: no equality ties all events of a rule"
    return ((names[0],),), f"by key [{names[0]}], which is equal in all events of a rule"


def _common_key(queries: Sequence[AnyQuery], fed: Sequence[AnyQuery], read: Container[str]) -> tuple[Key, str]:
    """The key of queries that feed each other: one that all have, and that goes with the events between them."""
    if any(counts_time(query) for query in queries):
        return (), "one lane: an absence counts the time of all events"
    if any(counts_events(query) for query in fed):
        return (), "one lane: WITHIN … EVENTS over derived events counts all events before them"
    keys = [key_names(query) for query in queries]
    makers = [query for query in queries if query.name in read]
    common = [
        name for name in keys[0] if all(name in own for own in keys) and all(_hands_on(maker, name) for maker in makers)
    ]
    if not common:
        return (), "one lane: queries that feed each other, without a key that all of them have and pass on"
    if all(isinstance(query, Rule) for query in queries):
        return ((common[0],),), f"by key [{common[0]}], which is equal in all events of a rule"
    return tuple(
        (name,) for name in common
    ), f"by key [{', '.join(common)}], which is passed along by all queries that feed each other"


def _hands_on(query: AnyQuery, name: str) -> bool:
    """Whether the events that a query defines have the attribute as the events they are made of do, or lack it."""
    if isinstance(query, Query):
        return [shown for item in query.selected or () for shown in item.attributes].count(name) == 1
    values = [field.value for field in query.fields if field.name == name]
    return any(isinstance(value, Attribute) and value.name == name for value in values)


def key_names(query: AnyQuery) -> list[str]:
    """The attributes that all events have in common that have to do with each other."""
    match query:
        case Query(consume=Consume.ANY):
            return []
        case Query(window=window) if window is not None and window.unit == "attribute":
            return []
        case Query() if query.partition:
            return [part[0] for part in query.partition if len(part) == 1]
        case Query():
            return tied_attributes(query.pattern) if _is_decided_by_its_events(query) else []
        case CompositeQuery():
            return _tying(query.pattern)
        case SituationQuery():
            return [] if counts_time(query) else _dividing(query.situation)
    assert isinstance(query, Rule)
    return [name for name in sorted(columns(query)) if _ties_rule(query, name)]


def _is_decided_by_its_events(query: Query) -> bool:
    """Return whether a match depends on no event but those it binds, and on matches with the same last event."""
    return (
        query.strategy is not Strategy.STRICT
        and query.consume is Consume.NONE
        and query.skip is None
        and query.unless is None
        and query.session is None
        and query.top is None
    )


# ---------------------------------------------------------------- composite patterns


def _tying(pattern: Composite) -> list[str]:
    """The attributes that all events of an occurrence, and those that decide about it, have in common."""
    if not _needs_key(pattern):
        return []
    names = sorted({node.name for node in pattern.walk() if isinstance(node, Attribute)})
    return [name for name in names if _is_tied(pattern, name)]


def _needs_key(pattern: Composite) -> bool:
    """Whether no occurrence can do without two events that an equality ties: one event alone may lack the attribute."""
    match pattern:
        case CompositeSequence() | Overlap():
            return True
        case CompositeFilter(inner) | After(inner) | Without(inner):
            return _needs_key(inner)
        case CompositeUnion(left, right):
            return _needs_key(left) and _needs_key(right)
    return False


def _is_tied(pattern: Composite, name: str) -> bool:
    """Whether the pattern can be evaluated for each value of the attribute by itself."""
    operands = [child for child in pattern.children() if isinstance(child, Composite)]
    if not all(_is_tied(operand, name) for operand in operands):
        return False
    match pattern:
        case CompositeEvent() | CompositeFilter() | CompositeUnion() | After():
            return True
        case CompositeSequence(left, right):
            tests = pattern.among if pattern.pick == "next" else pattern.where
            return _equates(tests, left.variables, right.variables, name)
        case Overlap(left, right):
            return _equates(pattern.where, left.variables, right.variables, name)
        case Without(inner, unwanted):
            return _equates(pattern.where, inner.variables, unwanted.variables, name)
        case CompositeRepeat(inner):
            tests = pattern.among if pattern.pick == "next" else pattern.where
            links = [links_members(test, always_bound(inner)) for test in conjuncts(tests)]
            return pattern.pick != "longest" and any(
                link is not None and link[0].name == link[1].name == name for link in links
            )
    return False


def _equates(tests: Sequence[Predicate], left: Sequence[str], right: Sequence[str], name: str) -> bool:
    """Whether one of the tests is `l.name = r.name`."""
    for test in conjuncts(tests):
        match test:
            case Comparison("=", Attribute(one, first), Attribute(other, second)):
                crosses = (first in left and second in right) or (first in right and second in left)
                if crosses and one == other == name:
                    return True
    return False


# ---------------------------------------------------------------- situations


def _dividing(situation: Situation) -> list[str]:
    """The attributes that partitions are divided by, and those in which the events of a set must agree."""
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
    everywhere = range(len(slots))
    tied = [
        name
        for group in groups
        for name in sorted({name for _, name in group})
        if all((slot, name) in group for slot in everywhere)
    ]
    return list(dict.fromkeys((*by, *tied)))


# ---------------------------------------------------------------- rules


def _ties_rule(rule: Rule, name: str) -> bool:
    """Whether every event a rule looks at must equal the terminator in the attribute, and there is one it binds.

    A terminator alone may lack the attribute and fire all the same.
    """
    tied: set[str | None] = {rule.terminator.variable}
    for step in rule.lookbacks:
        if not _joins(step.events, name, tied):
            return False
        tied.add(step.variable)
    others = (node.events for node in rule.walk() if isinstance(node, Absence | Summary))
    return bool(rule.lookbacks) and all(_joins(events, name, tied) for events in others)


def _joins(events: Events, name: str, tied: Container[str | None]) -> bool:
    return any(own == name == bound.name and bound.variable in tied for own, bound in events.equalities)
