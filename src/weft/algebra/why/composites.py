"""Near occurrences of composite patterns (EQL, Step): chosen events in the places of a pattern, with what fails there.

At each operator the same is asked as in `weft.algebra.meaning.composites`, by its own functions; but what is not so
becomes a failure.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import combinations, groupby, product

from weft.algebra.composites import (
    After,
    Composite,
    CompositeEvent,
    CompositeFilter,
    CompositeQuery,
    CompositeRepeat,
    CompositeSequence,
    CompositeUnion,
    Lengths,
    Overlap,
    Without,
)
from weft.algebra.meaning import composites as meant
from weft.algebra.meaning.conditions import NOTHING, ConditionView, all_hold, alone, holds, value_of
from weft.algebra.meaning.occurrences import Occurrence, history_key, joined, later, occurrence_of
from weft.algebra.meaning.stream import Happening
from weft.algebra.predicates import And, Attribute, IsNull, Or, Predicate
from weft.algebra.terms import Elapsed, Every, Previous, mentioned
from weft.algebra.text.program import expression_text
from weft.algebra.why.failures import (
    MARK,
    Failure,
    Near,
    SearchBudget,
    Steps,
    all_missing,
    condition_failure,
    conjuncts,
    either,
    extra,
    listed,
    marked,
    shown,
    wrong_type,
)
from weft.tree import Node

NearOne = Near[Occurrence]


class CompositeReading:
    """The ways in which the chosen events can be read as a match of a query, among all events it sees."""

    def __init__(self, query: CompositeQuery, seen: Sequence[Happening], chosen: Sequence[Happening]) -> None:
        self._query = query
        self._seen = seen
        self._chosen = chosen
        self._wanted = {position for event in chosen for position in event.positions}
        self._occurrences: dict[Composite, list[Occurrence]] = {}

    def nears(self, budget: SearchBudget) -> Iterator[NearOne]:
        """All readings that are cheap enough."""
        for near in self._near(self._query.pattern, budget):
            unused = self._wanted.difference(near.found.positions)
            failures = (*near.failures, *map(extra, sorted(unused)))
            if budget.allows(sum(failure.cost for failure in failures)):
                yield replace(near, failures=failures)

    def _meant(self, pattern: Composite) -> list[Occurrence]:
        """What the pattern really has; events that are not chosen have a mark for conditions that are supposed."""
        if pattern not in self._occurrences:
            reads_mark = any(isinstance(node, Attribute) and node.name == MARK for node in pattern.walk())
            seen = marked(self._seen, self._wanted) if reads_mark else self._seen
            self._occurrences[pattern] = meant.occurrences(pattern, seen)
        return self._occurrences[pattern]

    def _near(self, pattern: Composite, budget: SearchBudget) -> list[NearOne]:
        """The near occurrences of a pattern, those of least cost of each, in no order."""
        found: dict[tuple[object, ...], NearOne] = {}
        for near in self._all_near(pattern, budget):
            key = (near.found, near.absent)
            if budget.allows(near.cost) and (key not in found or near.cost < found[key].cost):
                found[key] = near
        return list(found.values())

    def _all_near(self, pattern: Composite, budget: SearchBudget) -> Iterator[NearOne]:
        match pattern:
            case CompositeEvent():
                yield from (_source(pattern, event) for event in self._chosen)
            case CompositeUnion(left, right):
                yield from self._near(left, budget)
                yield from self._near(right, budget)
            case CompositeFilter(inner, where):
                for near in self._near(inner, budget):
                    yield _with(near, _failing(where, alone(near.found), near.absent))
            case CompositeSequence(left, right) | Overlap(left, right):
                yield from self._pairs(pattern, budget)
                yield from self._alone(pattern, left, right, budget)
                yield from self._alone(pattern, right, left, budget)
            case CompositeRepeat(inner):
                members = self._near(inner, budget)
                yield from (
                    self._runs(pattern, members, budget) if pattern.pick == "next" else self._ends(pattern, members)
                )
            case Without(inner):
                for near in self._near(inner, budget):
                    yield near if near.absent else _with(near, self._unwanted(near.found, pattern))
            case After(inner, ticks):
                yield from (replace(near, found=later(near.found, ticks)) for near in self._near(inner, budget))

    # ------------------------------------------------------------ two operands

    def _alone(
        self, pattern: CompositeSequence | Overlap, part: Composite, other: Composite, budget: SearchBudget
    ) -> Iterator[NearOne]:
        """One operand without the other: what is asked of it alone can still fail."""
        gone = all_missing(_steps(other))
        if not budget.allows(*(failure.cost for failure in gone)):
            return
        asked = [condition for condition in _conditions(pattern) if mentioned(condition)]
        for near in self._near(part, budget):
            absent = near.absent | frozenset(other.variables)
            failing = _failing(asked, alone(near.found), absent)
            yield replace(_with(near, [*gone, *failing]), absent=absent)

    def _pairs(self, pattern: CompositeSequence | Overlap, budget: SearchBudget) -> Iterator[NearOne]:
        for left, right in product(self._near(pattern.left, budget), self._near(pattern.right, budget)):
            if budget.allows(left.cost, right.cost) and not left.found.events & right.found.events:
                absent = left.absent | right.absent
                both = Near(joined(left.found, right.found), (*left.failures, *right.failures), absent)
                yield _with(both, self._pair_failures(pattern, left, right))

    def _pair_failures(self, pattern: CompositeSequence | Overlap, left: NearOne, right: NearOne) -> Iterator[Failure]:
        absent = left.absent | right.absent
        view = meant.after(left.found, right.found)
        yield from _failing(_conditions(pattern), view, absent)
        if isinstance(pattern, Overlap):
            if not meant.overlap(left.found, right.found):
                yield _order(left.found, right.found, "at the same time as")
        elif not left.found.is_before(right.found):
            yield _order(left.found, right.found, "before")
        elif not absent:
            # What fails of the left alone is supposed to hold, for others that may be taken as well.
            names, among, where = frozenset(pattern.left.variables), pattern.among, pattern.where
            supposed = replace(pattern, among=_kept(among, view, names), where=_kept(where, view, names))
            supposed = replace(supposed, right=_supposing(pattern.right, right.failures))
            rivals = self._rivals(supposed, left.found, right.found)
            yield from _choice(pattern.pick, left.found, right.found, rivals)

    def _rivals(self, follow: CompositeSequence, left: Occurrence, right: Occurrence) -> list[Occurrence]:
        """What is taken instead of the right occurrence, supposing that its conditions hold."""
        rights = [one for one in self._meant(follow.right) if left.is_before(one) and one != right]
        if follow.pick == "next":
            return _deciding(right, {one: meant.after(left, one) for one in rights}, follow)
        fitting = [one for one in rights if all_hold(follow.where, meant.after(left, one))]
        return [one for one in fitting if _order_of(one) < _order_of(right)][:1] if follow.pick == "first" else []

    # ------------------------------------------------------------ repetitions

    def _runs(self, pattern: CompositeRepeat, members: Sequence[NearOne], budget: SearchBudget) -> Iterator[NearOne]:
        """EQL: runs of all their members."""
        ordered = sorted(members, key=lambda near: _order_of(near.found))
        wanted = (*pattern.among, *pattern.where)
        runs = [
            (
                _with(near, _failing(wanted, ConditionView(near.found, NOTHING, NOTHING, near.found), near.absent)),
                1,
                place,
            )
            for place, near in enumerate(ordered)
        ]
        while runs:
            run, length, place = runs.pop()
            if not budget.allows(run.cost):
                continue
            yield _with(run, _length(pattern.lengths, length, run.found))
            for at in range(place + 1, len(ordered)):
                member = ordered[at]
                if budget.allows(run.cost, member.cost) and not run.found.events & member.found.events:
                    runs.append((self._grown(pattern, run, member), length + 1, at))

    def _grown(self, pattern: CompositeRepeat, run: NearOne, member: NearOne) -> NearOne:
        absent = run.absent | member.absent
        view = meant.in_run(run.found, member.found)
        failures = list(_failing((*pattern.among, *pattern.where), view, absent))
        if not run.found.is_before(member.found):
            failures.append(_order(run.found, member.found, "before"))
        elif not absent:
            others = [one for one in self._meant(pattern.pattern) if run.found.is_before(one) and one != member.found]
            rivals = _deciding(member.found, {one: meant.in_run(run.found, one) for one in others}, pattern)
            failures += _choice("next", run.found, member.found, rivals)
        both = Near(joined(run.found, member.found), (*run.failures, *member.failures), absent)
        return _with(both, failures)

    def _ends(self, pattern: CompositeRepeat, members: Sequence[NearOne]) -> Iterator[NearOne]:
        """Step: the first member of a run and its last."""
        for first, last in product(members, members):
            same = first.found == last.found
            if same or not first.found.events & last.found.events:
                failures = first.failures if same else (*first.failures, *last.failures)
                near = Near(meant.ends(first.found, last.found), failures, first.absent | last.absent)
                yield _with(near, [] if near.absent else self._run_failures(pattern, first.found, last.found))

    def _run_failures(self, pattern: CompositeRepeat, first: Occurrence, last: Occurrence) -> Iterable[Failure]:
        """The fewest of conditions, lengths and choice without which a run leads from the first to the last."""
        if first != last and not first.is_before(last):
            return [_order(first, last, "before")]
        members = sorted({*self._meant(pattern.pattern), first, last}, key=_order_of)
        wanted = meant.ends(first, last)
        loose = {"condition": {"where": ()}, "length": {"lengths": Lengths()}, "choice": {"pick": "each"}}
        for count in range(len(loose) + 1):
            for dropped in combinations(loose, count):
                tried = pattern
                for name in dropped:
                    tried = replace(tried, **loose[name])  # type: ignore[arg-type]
                runs = meant.sequences if tried.pick == "each" else meant.longest
                if wanted in runs(members, tried):
                    return [_run_failure(pattern, name, wanted) for name in dropped]
        return [_order(first, last, "before")]

    # ------------------------------------------------------------ what must not be

    def _unwanted(self, one: Occurrence, pattern: Without) -> Iterator[Failure]:
        found = [
            other
            for other in self._meant(pattern.unwanted)
            if meant.stands(other, one, pattern.when) and all_hold(pattern.where, meant.after(one, other))
        ]
        if found:
            positions = tuple(sorted({position for other in found for position in other.positions}))
            place = {"between": "between its first and last event", "during": "during it", "before": "before it"}
            wanted = f"no {_named(pattern.unwanted)} {place[pattern.when]}"
            because = f"there is {listed(positions)}" if positions else "there is one"
            yield Failure("unwanted", " ".join(pattern.unwanted.variables), wanted, because, one.positions, positions)


# ---------------------------------------------------------------- failures of one place


def _with(near: NearOne, failures: Iterable[Failure]) -> NearOne:
    return replace(near, failures=(*near.failures, *failures))


def _source(source: CompositeEvent, event: Happening) -> NearOne:
    one = occurrence_of(event, source.variable)
    failures = list(_failing(source.where, alone(one), frozenset()))
    if event.type != source.type:
        failures.insert(0, wrong_type(source.variable, source.type, event.type, event.positions))
    return Near(one, tuple(failures))


def _steps(pattern: Composite) -> Steps:
    """The events that a pattern cannot do without."""
    match pattern:
        case CompositeEvent(type_, variable):
            return [[(variable, type_)]]
        case CompositeUnion(left, right):
            return either(_steps(left), _steps(right))
        case CompositeSequence(left, right) | Overlap(left, right):
            return [*_steps(left), *_steps(right)]
        case Without(inner, _):
            return _steps(inner)
    (inner,) = (child for child in pattern.children() if isinstance(child, Composite))
    return _steps(inner)


def _conditions(pattern: CompositeSequence | Overlap) -> tuple[Predicate, ...]:
    return (*pattern.among, *pattern.where) if isinstance(pattern, CompositeSequence) else pattern.where


def _supposing(pattern: Composite, failures: Iterable[Failure]) -> Composite:
    """The pattern with conditions that hold as well where all events that they read are chosen ones."""
    texts = {failure.wanted for failure in failures if failure.kind == "condition"}

    def held(part: Predicate) -> Predicate:
        if expression_text(part) not in texts:
            return part
        return Or((part, And(tuple(IsNull(Attribute(MARK, name)) for name in sorted(mentioned(part))))))

    def change(node: Node) -> Node:
        own = {name: getattr(node, name) for name in ("where", "among") if hasattr(node, name)}
        parts = {name: tuple(held(p) for one in asked for p in conjuncts(one)) for name, asked in own.items()}
        return replace(node, **parts) if parts else node

    found = pattern.transform(change, Composite) if texts else pattern
    assert isinstance(found, Composite)
    return found


def _kept(conditions: Iterable[Predicate], view: ConditionView, names: frozenset[str]) -> tuple[Predicate, ...]:
    """The conditions without those that do not hold and speak of these variables only."""
    parts = (part for condition in conditions for part in conjuncts(condition))
    return tuple(part for part in parts if mentioned(part) - names or holds(part, view))


def _failing(conditions: Iterable[Predicate], view: ConditionView, absent: frozenset[str]) -> Iterator[Failure]:
    """The conditions that do not hold; what speaks of absent steps cannot fail."""
    for condition in (part for whole in conditions for part in conjuncts(whole)):
        names = mentioned(condition)
        if names & absent or holds(condition, view):
            continue
        events = [event for name in names or dict(view.now.bound) for event in view.now.of(name)]
        positions = [position for event in events for position in event.positions]
        failure = condition_failure(condition, _values(condition, view), positions, " ".join(sorted(names)))
        timed = any(isinstance(node, Elapsed) for node in condition.walk())
        yield replace(failure, kind="bound") if timed else failure


def _values(condition: Predicate, view: ConditionView) -> str:
    """What the attributes and spans in a condition are."""
    parts: dict[str, str] = {}
    inside = {node.attribute for node in condition.walk() if isinstance(node, Previous | Every)}
    for node in condition.walk():
        if isinstance(node, Every):
            name, variable = node.attribute.name, node.attribute.variable
            values = [event.get(name) for event in view.events(view.every, variable)]
            parts[expression_text(node)] = ", ".join(map(shown, values)) or "of nothing"
        elif isinstance(node, Previous | Elapsed) or (isinstance(node, Attribute) and node not in inside):
            parts[expression_text(node)] = shown(value_of(node, view))
    return ", ".join(f"{text} is {value}" for text, value in parts.items())


def _order(left: Occurrence, right: Occurrence, relation: str) -> Failure:
    one, other = (" ".join(name for name, _ in part.bound) for part in (left, right))
    because = f"{one} is at {_span(left)}, {other} at {_span(right)}"
    positions = tuple(sorted({*left.positions, *right.positions}))
    return Failure("order", f"{one}, {other}", f"{one} {relation} {other}", because, positions)


def _span(one: Occurrence) -> str:
    return str(one.start) if one.start == one.end else f"{one.start} to {one.end}"


def _length(lengths: Lengths, length: int, run: Occurrence) -> Iterator[Failure]:
    if not lengths.allow(length):
        most = "more" if lengths.high is None else lengths.high
        step = " ".join(name for name, _ in run.bound)
        yield Failure("length", step, f"{lengths.low} to {most} events", f"these are {length}", run.positions)


def _run_failure(pattern: CompositeRepeat, name: str, run: Occurrence) -> Failure:
    step = " ".join(pattern.variables)
    match name:
        case "condition":
            wanted = " AND ".join(map(expression_text, pattern.where))
            because = "no run of such events leads from the first to the last"
            return Failure("condition", step, wanted, because, run.positions)
        case "length":
            most = "more" if pattern.lengths.high is None else pattern.lengths.high
            wanted = f"{pattern.lengths.low} to {most} events"
            return Failure("length", step, wanted, "no run from the first to the last has so many", run.positions)
    return Failure("choice", step, "a run as long as it can be", "runs begin or end at other events", run.positions)


def _deciding(
    one: Occurrence, others: dict[Occurrence, ConditionView], pattern: CompositeSequence | CompositeRepeat
) -> list[Occurrence]:
    """The successors that come before one, in the order of complete histories, and decide."""
    earlier = [other for other in sorted(others, key=history_key) if history_key(other) < history_key(one)]
    for _, group in groupby(earlier, history_key):
        deciding = [other for other in group if all_hold(pattern.among, others[other])]
        if deciding:
            return deciding
    return []


def _choice(pick: str, left: Occurrence, right: Occurrence, rivals: Sequence[Occurrence]) -> Iterator[Failure]:
    if rivals:
        others = tuple(sorted({position for one in rivals for position in one.positions}))
        names = " ".join(name for name, _ in right.bound)
        wanted = f"the {pick} {names} after {' '.join(name for name, _ in left.bound)}"
        yield Failure("choice", names, wanted, f"that is {listed(others)}", right.positions, others)


def _order_of(one: Occurrence) -> tuple[object, ...]:
    return one.end, one.start, sorted(event.place for event in one.events)


def _named(pattern: Composite) -> str:
    sources = [node for node in pattern.walk(Composite) if isinstance(node, CompositeEvent)]
    return " ".join(s.type if s.type == s.variable else f"{s.type} {s.variable}" for s in sources)
