"""How far from its end lie the events that decide about a match: what makes a query one for slices of time.

`back` is how long before its end such an event may end, `ahead` how long after it, in ticks; a query for which there
is no bound, or whose matches depend on those before, has none.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from graphlib import CycleError, TopologicalSorter
from typing import NamedTuple

from weft.algebra.analysis.rule_reach import reach_of
from weft.algebra.analysis.spans import Span, least, loosest, span_limit
from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeUnion,
    Without,
)
from weft.algebra.policies import Evaluation
from weft.algebra.query import AnyQuery, Consume, Query
from weft.algebra.rules import Rule
from weft.algebra.situations import SituationQuery
from weft.plan.graph import build_graph
from weft.plan.partitioning.splits import Refused
from weft.plan.spans import greatest_spans

FAR = 1 << 60  # ticks; more are no bound


class Reach(NamedTuple):
    """The bounds, and of what they are: times, or positions."""

    back: int
    ahead: int = 0
    unit: str = "time"


def reach_of_query(query: AnyQuery) -> Reach | Refused:
    """How far the events lie that decide about a match of this query alone, or why there is no bound."""
    match query:
        case Query():
            found = _of_regular(query)
        case CompositeQuery(pattern=pattern):
            found = _of_composite(pattern)
        case SituationQuery():
            found = _of_situation(query)
        case Rule():
            found = _of_rule(query)
    if isinstance(found, Reach) and found.back + found.ahead >= FAR:
        return Refused("its bound of time is no bound")
    return found


def _of_regular(query: Query) -> Reach | Refused:
    window = query.window
    if query.consume is not Consume.NONE:
        return Refused("CONSUME BY drops partial matches, so that a match depends on all earlier ones")
    if query.skip is not None:
        return Refused("skipping after a match depends on all earlier ones")
    if query.unless is not None:
        return Refused("a NOT at the end looks at events after the match")
    if query.session is not None:
        return Refused("a session has no bound of time")
    if query.top is not None:
        return Refused("ORDER BY compares matches with those that end later")
    if window is None:
        return Refused("no WITHIN bounds how far apart the events of a match are")
    if window.unit == "attribute":
        return Refused(f"WITHIN over [{window.attribute}] compares each event with the largest value before it")
    return Reach(max(0, math.floor(window.amount)), unit=window.unit)


def _of_composite(pattern: Composite) -> Reach | Refused:
    for node in pattern.walk(Composite):
        match node:
            case Without(when="before"):
                return Refused("a negation before a pattern (Without before) depends on the whole stream before it")
            case CompositeRepeat(pick="longest"):
                return Refused("a greedy iteration (Repeat longest) depends on where the run before it ended")
    back = _back(pattern)
    if back is None:
        return Refused(f"{pattern.operator} has no bound on how long an occurrence lasts (dur, OCCURS WITHIN)")
    return Reach(back)


def _back(pattern: Composite) -> Span:
    """How long before the end of an occurrence the events end that it is made of or that decide about it."""
    match pattern:
        case CompositeEvent():
            return 0
        case CompositeFilter(inner, where):
            return least(span_limit(where, pattern), _back(inner))
        case CompositeUnion(left, right):
            return loosest([_back(left), _back(right)])
        case After(inner, ticks):
            inside = _back(inner)
            return None if inside is None else inside + ticks
        case Without(inner, when="during"):
            return _span(inner)  # what is unwanted may lie inside a single event that lasts
        case Without(inner):
            return _back(inner)
    return _span(pattern)


def _span(pattern: Composite) -> Span:
    return greatest_spans(build_graph([CompositeQuery("", pattern)]))[-1]


def _of_situation(query: SituationQuery) -> Reach | Refused:
    situation = query.situation
    if situation.kind == "absence":
        return Refused("an absence is of a partition without events, and no event brings that to a lane")
    deferred = situation.evaluation is Evaluation.DEFERRED
    length = situation.context.bound
    if length is not None:
        return Reach(length, length if deferred else 0)
    context = type(situation.context).__name__
    words = {"Whole": "no context: the whole stream is one partition", "FromUntil": "context from … until"}
    return Refused(f"a partition has no bound of time ({words[context]})")


def _of_rule(rule: Rule) -> Reach | Refused:
    if rule.consumes:
        return Refused(f"consuming {', '.join(rule.consumes)} makes a firing depend on all before it")
    return Reach(max(reach_of(rule).values(), default=0))


def joint_reach(queries: Sequence[AnyQuery], fed_by: Sequence[Sequence[int]]) -> Reach | Refused:
    """The reach of queries that feed each other (by place in the sequence): the sums along the longest ways."""
    own: list[Reach] = []
    for query in queries:
        found = reach_of_query(query)
        if isinstance(found, Refused):
            return Refused(f"in {query.name}, {found.reason}" if len(queries) > 1 else found.reason)
        if found.unit != "time" and len(queries) > 1:
            return Refused(f"in {query.name}, WITHIN … EVENTS counts positions, and the others go by time")
        own.append(found)
    try:
        order = list(TopologicalSorter(dict(enumerate(fed_by))).static_order())
    except CycleError as cycle:
        name = queries[cycle.args[1][0]].defines
        return Refused(f"events of {name} are made of events of their own type, without end")
    totals: dict[int, Reach] = {}
    for place in order:
        below = [totals[maker] for maker in fed_by[place]]
        back = own[place].back + max((each.back for each in below), default=0)
        totals[place] = Reach(back, own[place].ahead + max((each.ahead for each in below), default=0), own[place].unit)
    return Reach(max(r.back for r in totals.values()), max(r.ahead for r in totals.values()), totals[0].unit)
