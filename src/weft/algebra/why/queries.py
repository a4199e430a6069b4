"""Near matches of queries over regular patterns (CEQL): its pattern, and what it asks of what the pattern finds."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import combinations

from weft.algebra.meaning.query import Candidates, Homes, divided, exists, fits, gathered, in_order, kept, key_of
from weft.algebra.meaning.selection import Candidate, project
from weft.algebra.meaning.stream import Happening, positions_of
from weft.algebra.meaning.valuations import Valuation
from weft.algebra.meaning.values import attribute_of
from weft.algebra.patterns import Correlate, Filter, Pattern
from weft.algebra.predicates import Aggregate, And, Attribute, Comparison, IsNull, Literal, Or, variables_of
from weft.algebra.query import Consume, Query, Strategy, Window
from weft.algebra.text.program import expression_text
from weft.algebra.why.failures import MARK, Failure, SearchBudget, conjuncts, extra, listed, marked, shown
from weft.algebra.why.keys import KEY, same_key, twins
from weft.algebra.why.patterns import NearValuation, PatternReading
from weft.tree import Node

Supposed = frozenset[tuple[str, str]]  # conditions, by step and text
# What a query asks of what its pattern finds, and how it asks nothing.
NO_CHOICE: dict[str, object] = {
    "strategy": Strategy.ALL,
    "limit": None,
    "consume": Consume.NONE,
    "unless": None,
    "skip": None,
    "top": None,
}


def query_readings(query: Query, seen: Sequence[Happening], chosen: Sequence[Happening]) -> list[QueryReading]:
    """How chosen events are read; where they differ in their key, as if they had the same, whichever it be."""
    differ = _key_failure(query, chosen)
    if differ is None:
        return [QueryReading(query, seen, chosen)]
    keyed = replace(query, partition=((KEY,),))
    worlds = same_key(seen, chosen, lambda event: key_of(event, query))
    return [QueryReading(keyed, world, twins(world, chosen), (differ,)) for world in worlds]


class QueryReading:
    """The ways in which the chosen events can be read as a match of a query, among all events it sees."""

    def __init__(
        self,
        query: Query,
        seen: Sequence[Happening],
        chosen: Sequence[Happening],
        given: tuple[Failure, ...] = (),
    ) -> None:
        self._query = query
        self._seen = seen
        self._given = given  # what is otherwise here already
        self._outside = tuple(_outside(query, seen, chosen))
        home = None if self._outside else _home(query, seen, chosen)
        if home is None and not self._outside:
            self._outside = (_sessions_apart(query, chosen),)
        self._members = list(chosen) if home is None else home
        places = {event.place for event in chosen}
        indexes = [i for i, event in enumerate(self._members) if event.place in places]
        selected = None if query.selected is None else frozenset(item.name for item in query.selected)
        self._reading = PatternReading(self._members, indexes, selected)
        self._wanted = {position for event in chosen for position in event.positions}
        self._gathered: dict[Supposed, tuple[Candidates, Homes]] = {}

    def nears(self, budget: SearchBudget) -> Iterator[NearValuation]:
        """All readings that are cheap enough."""
        for near in self._reading.nears(self._query.pattern, budget):
            found = near.found
            used = {p for i in found.marked() for p in self._members[i].positions}
            unused = map(extra, sorted(self._wanted - used))
            failures = (*near.failures, *self._given, *self._outside, *unused, *self._bounds(found))
            whole = replace(near, failures=failures)
            if not budget.allows(whole.cost):
                continue
            if not self._outside and not whole.absent:
                whole = replace(whole, failures=(*failures, *self._choices(found, _supposed(failures))))
            if budget.allows(whole.cost):
                yield whole

    def bindings(self, near: NearValuation) -> dict[str, tuple[int, ...]]:
        """The positions that each variable has in a reading."""
        bound: dict[str, tuple[int, ...]] = {}
        shown_names = project([near.found], None, self._members)[0].names
        for index, names in shown_names:
            for name in names:
                bound[name] = (*bound.get(name, ()), *self._members[index].positions)
        return bound

    # ------------------------------------------------------------ bounds

    def _bounds(self, found: Valuation) -> Iterator[Failure]:
        first, last = self._members[found.start], self._members[found.end]
        window, session = self._query.window, self._query.session
        if window is not None and not fits(window, first, last):
            yield _window_failure(window, first, last)
        if session is not None and not self._outside and (found.start, found.end) != (0, len(self._members) - 1):
            because = f"the session is from {self._members[0].positions[0]} to {self._members[-1].positions[-1]}"
            yield Failure("bound", "session", "a match of a whole session", because, positions_of([first, last]))

    # ------------------------------------------------------------ what is kept of what is found

    def _choices(self, found: Valuation, supposed: Supposed) -> list[Failure]:
        """The fewest choices of the query without which it keeps this, supposing that conditions hold."""
        asked = [name for name, nothing in NO_CHOICE.items() if getattr(self._query, name) != nothing]
        if not asked:
            return []
        candidate = project([found], self._query.selected, self._members)[0]
        candidates, homes = self._with(candidate, supposed)
        for count in range(len(asked) + 1):
            for dropped in combinations(asked, count):
                loose = replace(self._query, **{name: NO_CHOICE[name] for name in dropped})  # type: ignore[arg-type]
                if self._is_kept(loose, candidate, candidates, homes):
                    return [self._choice(name, candidate, candidates, homes) for name in dropped]
        return []

    def _is_kept(self, query: Query, candidate: Candidate, candidates: Candidates, homes: Homes) -> bool:
        members = homes[self._place(candidate)][1]
        return any(among is members and _same(one, candidate) for _, one, among in kept(query, candidates, homes))

    def _with(self, candidate: Candidate, supposed: Supposed) -> tuple[Candidates, Homes]:
        """What the pattern finds when conditions hold of the chosen events, and this, whether or not it does."""
        if supposed not in self._gathered:
            query = _supposing(self._query, supposed)
            self._gathered[supposed] = gathered(query, marked(self._seen, self._wanted) if supposed else self._seen)
        candidates, homes = self._gathered[supposed]
        place = self._place(candidate)
        others = [other for other in candidates.get(place, []) if not _same(other, candidate)]
        return {**candidates, place: [*others, candidate]}, homes

    def _place(self, candidate: Candidate) -> int:
        return self._members[candidate.last].place

    def _choice(self, name: str, candidate: Candidate, candidates: Candidates, homes: Homes) -> Failure:
        positions = positions_of(self._members[index] for index in candidate.marked)
        if name == "unless":
            assert self._query.unless is not None
            wanted = f"not followed by {expression_text(self._query.unless)}"
            return Failure("unwanted", "", wanted, "such an event follows inside the window", positions)
        instead = [
            self._members[index]
            for _, other, members in kept(self._query, candidates, homes)
            if members is homes[self._place(candidate)][1] and other.last == candidate.last
            for index in other.marked
        ]
        others = positions_of(instead)
        because = f"instead there is {listed(others)}" if others else "another match comes first"
        return Failure("choice", name, _choice_text(self._query, name), because, positions, others)


def _choice_text(query: Query, name: str) -> str:
    match name:
        case "strategy":
            return f"SELECT {query.strategy.value} of the matches that end at one event"
        case "limit":
            return f"LIMIT {query.limit}"
        case "consume":
            return f"CONSUME BY {query.consume.value}: no event of it was consumed before"
        case "skip":
            return "no match before it skips it"
    return "one of the top matches of its time"


def _same(one: Candidate, other: Candidate) -> bool:
    return (one.first, one.last, one.names) == (other.first, other.last, other.names)


def _window_failure(window: Window, first: Happening, last: Happening) -> Failure:
    positions = positions_of([first, last])
    match window.unit:
        case "events":
            wanted, found = f"within {window.amount} events", last.position - first.position
        case "time":
            wanted, found = f"within {window.amount} ticks", last.end - first.start
        case _:
            name = window.attribute or ""
            low, high = (shown(attribute_of(event.attributes, name)) for event in (first, last))
            because = f"it is {low} at first, {high} at last"
            return Failure("bound", "within", f"within {window.amount} of [{name}]", because, positions)
    return Failure("bound", "within", wanted, f"from first to last it is {found}", positions)


# ---------------------------------------------------------------- what would be found if conditions held


def _supposed(failures: Sequence[Failure]) -> Supposed:
    return frozenset((failure.step, failure.wanted) for failure in failures if failure.kind == "condition")


def _supposing(query: Query, supposed: Supposed) -> Query:
    """The query with conditions that hold as well when all events that they read are chosen ones."""

    def change(node: Node) -> Node:
        if isinstance(node, Filter):
            texts = {text for step, text in supposed if step == node.variable}
            parts = [
                Or((part, IsNull(Attribute(MARK)))) if expression_text(part) in texts else part
                for part in conjuncts(node.predicate)
            ]
            return replace(node, predicate=parts[0] if len(parts) == 1 else And(tuple(parts))) if parts else node
        if isinstance(node, Correlate) and expression_text(node.condition) in {text for _, text in supposed}:
            names = sorted(variables_of(node.condition))
            chosen = [Comparison("=", Aggregate("COUNT", Attribute(MARK, name)), Literal(0)) for name in names]
            return replace(node, condition=Or((node.condition, And(tuple(chosen)))))
        return node

    pattern = query.pattern.transform(change) if supposed else query.pattern
    assert isinstance(pattern, Pattern)
    return replace(query, pattern=pattern)


# ---------------------------------------------------------------- what a query sees


def _outside(query: Query, seen: Sequence[Happening], chosen: Sequence[Happening]) -> Iterator[Failure]:
    """Why chosen events do not stand together for the query."""
    unseen = [event for event in chosen if not exists(event, query.universe)]
    for event in unseen:
        because = f"{listed(event.positions)} is {event.stream + '>' if event.stream else ''}{event.type}"
        yield Failure("unseen", "FROM", "an event of the streams of the query", because, event.positions)
    existing = [event for event in seen if exists(event, query.universe) and key_of(event, query) is not None]
    in_place = {event.place for stretch in in_order(existing, query.window) for event in stretch}
    for event in chosen:
        if event not in unseen and key_of(event, query) is not None and event.place not in in_place:
            name = query.window.attribute if query.window else ""
            wanted = f"{name} does not fall"
            yield Failure(
                "unseen", "within", wanted, f"before {listed(event.positions)} it was larger", event.positions
            )


def _key_failure(query: Query, chosen: Sequence[Happening]) -> Failure | None:
    keys = [key_of(event, query) for event in chosen]
    if len(set(keys)) == 1 and None not in keys:
        return None
    parts = ", ".join("/".join(part) for part in query.partition)
    values = [", ".join(shown(_first(event, part)) for part in query.partition) for event in chosen]
    because = "it is " + ", ".join(dict.fromkeys(values))
    return Failure("key", "PARTITION BY", f"the same {parts}", because, positions_of(chosen))


def _first(event: Happening, names: Sequence[str]) -> object:
    return next((v for name in names if (v := attribute_of(event.attributes, name)) is not None), None)


def _home(query: Query, seen: Sequence[Happening], chosen: Sequence[Happening]) -> list[Happening] | None:
    """The partition, or session, that has all chosen events."""
    places = {event.place for event in chosen}
    return next((m for _, m in divided(query, seen) if places <= {event.place for event in m}), None)


def _sessions_apart(query: Query, chosen: Sequence[Happening]) -> Failure:
    wanted = f"one session, with gaps of at most {query.session} ticks"
    return Failure("bound", "session", wanted, "they are of several", positions_of(chosen))
