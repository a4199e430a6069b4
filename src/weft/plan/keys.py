"""Keys by which queries can be split: attributes that are equal in all related events.

Queries that feed each other are split together or not at all, by a key that all of them have.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

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
from weft.algebra.query import AnyQuery, Query
from weft.algebra.rules import Absence, Events, Rule, Summary
from weft.algebra.situations import Situation, SituationQuery
from weft.algebra.terms import conjuncts
from weft.plan.graph import links_members
from weft.plan.properties import Family, columns
from weft.plan.search import equal_attributes

Key = tuple[tuple[str, ...], ...]  # the parts of a key, each the attributes of which the first present counts


def key_of(family: Family) -> tuple[Key, str]:
    """Return the key by which queries can be split, and why; without a key they are one lane."""
    if len(family.queries) == 1:
        return _key_of(family.queries[0])
    return _common_key(family.queries, family.fed, family.read)


def splits_by(family: Family, key: Key) -> bool:
    """Whether the work of queries can be split by a given key, which need not be the one that `key_of` prefers."""
    own, _ = key_of(family)
    if own == key or not own:
        return bool(own)
    queries = family.queries
    names = key_names(queries[0]) if len(queries) == 1 else _passed_on(queries, family.read)
    return all(len(part) == 1 and part[0] in names for part in key)


def _key_of(query: AnyQuery) -> tuple[Key, str]:
    """The key that a query alone can be split by, and why; no key: it is one lane."""
    if query.key_obstacle is not None:
        return (), f"one lane: {query.key_obstacle}"
    if query.declared_key:
        parts = ", ".join(f"[{', '.join(part)}]" for part in query.declared_key)
        return query.declared_key, f"by key {parts}"
    names = key_names(query)
    if not names:
        return (), f"one lane: {query.untied}"
    if isinstance(query, SituationQuery):
        return tuple((name,) for name in names), f"by key [{', '.join(names)}]"
    events = "events of a rule" if query.is_rule else "variables"
    return ((names[0],),), f"by key [{names[0]}], which is equal in all {events}"


def _common_key(queries: Sequence[AnyQuery], fed: Sequence[AnyQuery], read: Container[str]) -> tuple[Key, str]:
    """The key of queries that feed each other: one that all have, and that goes with the events between them."""
    obstacle = next((query.key_obstacle for query in queries if query.key_obstacle is not None), None)
    if obstacle is not None:
        return (), f"one lane: {obstacle}"
    if any(query.counts_events for query in fed):
        return (), "one lane: WITHIN … EVENTS over derived events counts all events before them"
    common = _passed_on(queries, read)
    if not common:
        return (), "one lane: queries that feed each other, without a key that all of them have and pass on"
    if all(query.is_rule for query in queries):
        return ((common[0],),), f"by key [{common[0]}], which is equal in all events of a rule"
    return tuple(
        (name,) for name in common
    ), f"by key [{', '.join(common)}], which is passed along by all queries that feed each other"


def _passed_on(queries: Sequence[AnyQuery], read: Container[str]) -> list[str]:
    """The attributes that all queries have as a key, and that those which are read pass on."""
    keys = [key_names(query) for query in queries]
    makers = [query for query in queries if query.name in read]
    return [
        name for name in keys[0] if all(name in own for own in keys) and all(maker.passes_on(name) for maker in makers)
    ]


def key_names(query: AnyQuery) -> list[str]:
    """Return the attributes that are equal in all related events of a query."""
    if query.key_obstacle is not None:
        return []
    if query.declared_key:
        return [part[0] for part in query.declared_key if len(part) == 1]
    return TYING[type(query)](query)


def _tying_query(query: Query) -> list[str]:
    return [] if query.is_selective else tied_attributes(query.pattern)


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


def _tying_rule(rule: Rule) -> list[str]:
    return [name for name in sorted(columns(rule)) if _ties_rule(rule, name)]


# By kind of query: the attributes in which all its events must agree.
TYING: Mapping[type[AnyQuery], Callable[[Any], list[str]]] = {
    Query: _tying_query,
    CompositeQuery: lambda query: _tying(query.pattern),
    SituationQuery: lambda query: _dividing(query.situation),
    Rule: _tying_rule,
}
