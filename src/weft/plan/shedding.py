"""Events that may be shed under overload: those whose loss loses matches and never adds one.

A *leaf* is a place of a query where an event may be bound or tested. It is *safe* if every match without the event
is a match with it, too: no choice, no absence and no adjacency depends on it. An event may be shed if all leaves that
it fits are safe. Leaves know their predecessors, which shows how far a match has progressed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from weft.algebra.analysis.one_event import at_hand, is_of_one_event
from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeSequence,
    CompositeUnion,
    Overlap,
    Without,
)
from weft.algebra.contexts import FromFor, FromUntil
from weft.algebra.patterns import Bind, Correlate, Event, Filter, Maybe, Pattern, Repeat, Union, may_be_nothing
from weft.algebra.patterns import Sequence as Then
from weft.algebra.policies import Cardinality, Consumption, Repeated
from weft.algebra.predicates import MIRRORED, Aggregate, Always, And, Attribute, Comparison, Literal, Predicate
from weft.algebra.query import AnyQuery, Consume, Query, Strategy
from weft.algebra.rules import Absence, Events, Rule, Summary
from weft.algebra.situations import SituationQuery
from weft.algebra.terms import conjuncts
from weft.plan.atoms import IsType
from weft.plan.keys import Key, key_of
from weft.plan.one_event import source_predicates
from weft.plan.properties import Family

STARTS = -1  # among what may come before a leaf: nothing need


@dataclass(frozen=True)
class PatternLeaf:
    """A place for an event: those of a `type` (None: of any) that satisfy the predicate, or more."""

    name: str  # the variable, or what else people call it
    type: str | None
    predicate: Predicate
    safe: bool
    after: frozenset[int] = frozenset((STARTS,))  # the leaves of the query of which one must have come before


@dataclass(frozen=True)
class LeafRelation:
    """Of two leaves that every match has events at, the first before the second: what must hold between these."""

    first: int
    second: int
    tests: tuple[tuple[str, str, str], ...] = ()  # attribute of the first, operator, attribute of the second


@dataclass(frozen=True)
class QueryLeaves:
    """The leaves of a query, the key that all events of a match have in common, and how long a match may last.

    `ties` are between leaves that no match goes without; `least` is how many events it has at each leaf.
    """

    query: str
    leaves: tuple[PatternLeaf, ...]
    key: Key = ()
    within: int | None = None  # in ticks
    ties: tuple[LeafRelation, ...] = ()
    least: tuple[int, ...] = ()


def shed_plan(queries: Sequence[AnyQuery]) -> tuple[QueryLeaves, ...]:
    """The leaves of the queries of a program. What feeds an unsafe leaf is not safe either."""
    found = [_leaves_of(query) for query in queries]
    while True:
        risky = {leaf.type for own in found for leaf in own.leaves if not leaf.safe}
        anything = None in risky
        ends = [
            place
            for place, (query, own) in enumerate(zip(queries, found, strict=True))
            if (query.defines in risky or (anything and _is_read(query, queries))) and any(x.safe for x in own.leaves)
        ]
        if not ends:
            return tuple(found)
        for place in ends:
            found[place] = replace(found[place], leaves=tuple(replace(x, safe=False) for x in found[place].leaves))


def _is_read(query: AnyQuery, queries: Sequence[AnyQuery]) -> bool:
    return any(query.defines in other.reads for other in queries)


def _leaves_of(query: AnyQuery) -> QueryLeaves:
    key, _ = key_of(Family((0,), (query,), ((),)))
    match query:
        case Query() if _is_plain(query):
            window = query.window
            within = int(window.amount) if window is not None and window.unit == "time" else None
            found = _Positions(query.pattern)
            return QueryLeaves(query.name, found.leaves(), key, within, found.ties(), found.least())
        case CompositeQuery():
            return QueryLeaves(query.name, tuple(_composite(query.pattern, safe=True)), key)
        case Rule():
            return QueryLeaves(query.name, tuple(_rule(query)), key)
        case SituationQuery() if query.situation.kind != "absence":
            return QueryLeaves(query.name, tuple(_situation(query)), key)
    types = query.relevant_types
    if types is None:
        return QueryLeaves(query.name, (PatternLeaf("any event", None, Always(), safe=False),))
    return QueryLeaves(query.name, tuple(PatternLeaf(name, name, IsType(name), safe=False) for name in sorted(types)))


# -- CEQL -------------------------------------------------------------------------------------------


def _is_plain(query: Query) -> bool:
    """Whether its matches are made of their own events only: then fewer events are fewer matches."""
    chooses = query.strategy is not Strategy.ALL or query.consume is not Consume.NONE or query.limit is not None
    waits = any(part is not None for part in (query.skip, query.unless, query.session, query.top))
    windowed = query.window is None or query.window.unit != "attribute"  # where being late depends on other events
    known = (Event, Bind, Then, Repeat, Union, Maybe, Filter, Correlate)
    nodes = list(query.pattern.walk(Pattern))
    plain = all(isinstance(node, known) and not getattr(node, "contiguous", False) for node in nodes)
    return plain and windowed and not chooses and not waits


class _Positions:
    """The events of a pattern in their order, with those that may come directly before each."""

    def __init__(self, pattern: Pattern) -> None:
        self._leaves: list[PatternLeaf] = []
        self._before: list[set[int]] = []
        self._names: list[set[str]] = []  # the variables that each is bound to
        self._pairs: list[tuple[int, int]] = []  # of leaves in order
        self._conditions = [node.condition for node in pattern.walk(Pattern) if isinstance(node, Correlate)]
        self._always = self._certain(pattern)
        firsts, _ = self._walk(pattern, ())
        for place in firsts:
            self._before[place].add(STARTS)

    def leaves(self) -> tuple[PatternLeaf, ...]:
        return tuple(
            replace(leaf, after=frozenset(before)) for leaf, before in zip(self._leaves, self._before, strict=True)
        )

    def ties(self) -> tuple[LeafRelation, ...]:
        """What must hold between leaves that no match goes without."""
        return tuple(
            LeafRelation(one, other, tuple(self._tests(one, other)))
            for one, other in self._pairs
            if {one, other} <= self._always
        )

    def least(self) -> tuple[int, ...]:
        """How many events a match has at each leaf, at least."""
        counts = [1] * len(self._leaves)
        for condition in self._conditions:
            match condition:
                case Comparison(
                    ">=" | ">" | "=" as operator, Aggregate("COUNT", Attribute(_, name)), Literal(int(least))
                ):
                    own = [place for place, names in enumerate(self._names) if name in names]
                    if len(own) == 1:  # with several, they count together
                        counts[own[0]] = max(counts[own[0]], least + (operator == ">"))
        return tuple(counts)

    def _tests(self, one: int, other: int) -> Iterator[tuple[str, str, str]]:
        for condition in self._conditions:
            match condition:
                case Comparison(operator, Attribute(left, x), Attribute(right, y)) if x is not None and y is not None:
                    if x in self._names[one] and y in self._names[other]:
                        yield left, operator, right
                    elif y in self._names[one] and x in self._names[other]:
                        yield right, MIRRORED[operator], left

    def _certain(self, pattern: Pattern) -> set[int]:
        """The places of events that no match goes without."""
        found, place = set[int](), 0

        def walk(node: Pattern, *, always: bool) -> None:
            nonlocal place
            if isinstance(node, Event):
                if always:
                    found.add(place)
                place += 1
            for child in node.children():
                if isinstance(child, Pattern):
                    walk(child, always=always and not isinstance(node, Union | Maybe))

        walk(pattern, always=True)
        return found

    def _walk(self, pattern: Pattern, filters: tuple[Filter | Bind, ...]) -> tuple[set[int], set[int]]:
        """The places of its events that may come first, and those that may come last."""
        match pattern:
            case Event():
                return self._add(pattern, filters)
            case Bind(inner) | Filter(inner):
                return self._walk(inner, (*filters, pattern))
            case Correlate(inner) | Maybe(inner):
                return self._walk(inner, filters)
            case Union(left, right):
                one, other = self._walk(left, filters), self._walk(right, filters)
                return one[0] | other[0], one[1] | other[1]
            case Then(left, right):
                begin = len(self._leaves)
                one = self._walk(left, filters)
                middle = len(self._leaves)
                other = self._walk(right, filters)
                self._pairs += [(a, b) for a in range(begin, middle) for b in range(middle, len(self._leaves))]
                self._follow(one[1], other[0])
                firsts = one[0] | (other[0] if may_be_nothing(left) else set())
                return firsts, other[1] | (one[1] if may_be_nothing(right) else set())
            case Repeat(inner):
                firsts, lasts = self._walk(inner, filters)
                self._follow(lasts, firsts)
                return firsts, lasts
        raise TypeError(pattern)

    def _follow(self, lasts: Iterable[int], firsts: Iterable[int]) -> None:
        for place in firsts:
            self._before[place].update(lasts)

    def _add(self, event: Event, filters: tuple[Filter | Bind, ...]) -> tuple[set[int], set[int]]:
        names, tests = set(event.names), list[Predicate]()
        name = event.type
        for part in reversed(filters):  # from the inside
            if isinstance(part, Bind):
                names.add(part.name)
                name = part.name if name == event.type else name
            elif part.variable in names:
                tests.append(part.predicate)
        place = len(self._leaves)
        self._leaves.append(PatternLeaf(name, event.type, And((IsType(event.type), *tests)), safe=True))
        self._before.append(set())
        self._names.append(names)
        return {place}, {place}


# -- the others -------------------------------------------------------------------------------------


def _composite(pattern: Composite, *, safe: bool) -> Iterator[PatternLeaf]:
    """The sources of a pattern; a pointwise one is safe (see `plan/partitioning/replicated.py`)."""
    match pattern:
        case CompositeEvent(type_, variable):
            yield PatternLeaf(variable, type_, source_predicates(pattern)[0], safe)
        case CompositeFilter(inner) | After(inner):
            yield from _composite(inner, safe=safe)
        case Without(inner, unwanted):
            yield from _composite(inner, safe=safe)
            yield from _composite(unwanted, safe=False)
        case CompositeSequence(left, right, pick):
            yield from _composite(left, safe=safe)
            yield from _composite(right, safe=safe and pick == "each")
        case Overlap(left, right) | CompositeUnion(left, right):
            yield from _composite(left, safe=safe)
            yield from _composite(right, safe=safe)
        case _:
            for source in pattern.walk(Composite):
                if isinstance(source, CompositeEvent):
                    yield PatternLeaf(source.variable, source.type, source_predicates(source)[0], safe=False)


def _rule(rule: Rule) -> Iterator[PatternLeaf]:
    keeps = not rule.consumes
    terminator = rule.terminator
    yield PatternLeaf(terminator.variable, terminator.events.type, _static(terminator.events), safe=keeps)
    for step in rule.lookbacks:
        yield PatternLeaf(step.variable, step.events.type, _static(step.events), safe=keeps and step.pick == "each")
    for node in rule.walk():
        if isinstance(node, Absence | Summary):
            yield PatternLeaf(f"not {node.events.type}", node.events.type, _static(node.events), safe=False)


def _static(events: Events) -> Predicate:
    return And((IsType(events.type), *(at_hand(part) for part in conjuncts(events.static) if is_of_one_event(part))))


def _situation(query: SituationQuery) -> Iterator[PatternLeaf]:
    situation = query.situation
    safe = situation.cardinality is Cardinality.UNRESTRICTED
    for slot in situation.participants:
        safe &= slot.repeated is Repeated.EVERY and slot.consumption is Consumption.REUSE
    for slot in situation.participants:
        tests = (at_hand(part) for part in conjuncts(slot.where) if is_of_one_event(part))
        yield PatternLeaf(slot.variable, slot.type, And((IsType(slot.type), *tests)), safe)
    match situation.context:
        case FromFor(opener):
            yield PatternLeaf(f"from {opener}", opener, IsType(opener), safe)
        case FromUntil(opener, closer):
            yield PatternLeaf(f"from {opener}", opener, IsType(opener), safe)
            yield PatternLeaf(f"until {closer}", closer, IsType(closer), safe=False)
