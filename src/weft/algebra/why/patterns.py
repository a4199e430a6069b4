"""Near valuations of regular patterns (CEQL): chosen events in the places of a pattern, with what fails there.

At each operator the same is asked as in `weft.algebra.meaning.valuations`, by its own functions; but what is not so
becomes a failure. Indexes are those of the events that the query's pattern is matched over.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import product

from weft.algebra.chains import Chain
from weft.algebra.meaning.selection import project
from weft.algebra.meaning.stream import Happening
from weft.algebra.meaning.valuations import Valuation, correlates, is_other, is_such, satisfies
from weft.algebra.meaning.values import ValueScope, attribute_of, evaluate
from weft.algebra.patterns import Bind, Correlate, Event, Filter, Maybe, Other, Pattern, Repeat, Union, may_be_nothing
from weft.algebra.patterns import Sequence as Sequencing
from weft.algebra.predicates import Aggregate, Attribute, Monotone, Predicate, variables_of
from weft.algebra.text.program import expression_text
from weft.algebra.why.chains import chain_nears
from weft.algebra.why.failures import (
    Failure,
    Near,
    SearchBudget,
    Steps,
    all_missing,
    condition_failure,
    conjuncts,
    either,
    listed,
    shown,
    wrong_type,
)

NearValuation = Near[Valuation]
AROUND = 20  # unchosen events so far from the chosen ones are looked at, where a pattern takes some


class PatternReading:
    """How chosen events can be read as a pattern over `members`; `selected` are the variables that a match shows."""

    def __init__(
        self, members: Sequence[Happening], chosen: Sequence[int], selected: frozenset[str] | None = None
    ) -> None:
        self._members = members
        self._chosen = chosen
        self._selected = selected
        low, high = min(chosen, default=0) - AROUND, max(chosen, default=0) + AROUND
        self._beside = [i for i in range(max(low, 0), min(high, len(members) - 1) + 1) if i not in set(chosen)]

    def nears(
        self, pattern: Pattern, budget: SearchBudget, names: frozenset[str] = frozenset(), step: str = ""
    ) -> list[NearValuation]:
        """The near valuations of a pattern that are cheap enough; `names` are the variables it is bound to around."""
        found: dict[tuple[object, ...], NearValuation] = {}
        for near in self._all_nears(pattern, budget, names, step):
            key = (near.found, near.absent)
            if budget.allows(near.cost) and (key not in found or near.cost < found[key].cost):
                found[key] = near
        return list(found.values())

    def _all_nears(
        self, pattern: Pattern, budget: SearchBudget, names: frozenset[str], step: str
    ) -> Iterator[NearValuation]:
        def of(part: Pattern) -> list[NearValuation]:
            return self.nears(part, budget, names, step)

        match pattern:
            case Event():
                yield from self._events(pattern, names | set(pattern.names), step)
            case Other():
                yield from self._others(pattern)
            case Bind(inner, name):
                for near in self.nears(inner, budget, names | {name}, name):
                    v = near.found
                    bound = v.bound | {(name, i) for i in v.marked()}
                    yield replace(near, found=Valuation(v.start, v.end, bound))
            case Sequencing(left, right, contiguous):
                for one, other in product(of(left), of(right)):
                    if budget.allows(one.cost, other.cost):
                        yield from self._joined(one, other, contiguous)
                yield from self._alone(left, right, of)
                yield from self._alone(right, left, of)
            case Repeat(inner, contiguous):
                yield from self._runs(of(inner), contiguous, budget)
            case Union(left, right):
                yield from of(left)
                yield from of(right)
            case Maybe(inner):
                yield from of(inner)
            case Filter(inner, variable, predicate):
                yield from (_with(near, self._unfit(near.found, variable, predicate)) for near in of(inner))
            case Correlate(inner, condition):
                yield from (_with(near, self._unrelated(near, condition)) for near in of(inner))
            case Chain():
                yield from chain_nears(pattern, self._members, self._chosen)

    # ------------------------------------------------------------ one event

    def _events(self, wanted: Event, names: frozenset[str], step: str) -> Iterator[NearValuation]:
        for i in self._chosen:
            event = self._members[i]
            named = f"{wanted.stream}>{wanted.type}" if wanted.stream else wanted.type
            failures = () if is_such(event, wanted) else (_mistyped(step or named, named, event),)
            yield Near(Valuation(i, i, frozenset((name, i) for name in wanted.names)), failures)
        if self._selected is not None and not names & self._selected:
            # What is not shown need not be chosen.
            for i in self._beside:
                if is_such(self._members[i], wanted):
                    yield Near(Valuation(i, i, frozenset((name, i) for name in wanted.names)))

    def _others(self, unwanted: Other) -> Iterator[NearValuation]:
        for i in self._beside:
            event = self._members[i]
            failure = Failure(
                "unwanted",
                f"NOT {unwanted.type}",
                f"an event that is no such {unwanted.type}",
                f"there is {listed(event.positions)}",
                others=event.positions,
            )
            yield Near(Valuation(i, i, frozenset()), () if is_other(event, unwanted) else (failure,))

    # ------------------------------------------------------------ several

    def _joined(self, one: NearValuation, other: NearValuation, contiguous: bool) -> Iterator[NearValuation]:
        left, right = one.found, other.found
        if set(left.marked()) & set(right.marked()):
            return
        failures: list[Failure] = []
        if not left.end < right.start:
            failures.append(self._misplaced(left, right))
        elif contiguous and right.start != left.end + 1:
            failures.append(self._apart(left, right))
        both = Valuation(min(left.start, right.start), max(left.end, right.end), left.bound | right.bound)
        yield Near(both, (*one.failures, *other.failures, *failures), one.absent | other.absent)

    def _alone(self, part: Pattern, other: Pattern, of: object) -> Iterator[NearValuation]:
        """A part of a sequence, without the other."""
        assert callable(of)
        if may_be_nothing(other):
            yield from of(part)
            return
        gone = all_missing(_steps(other))
        if gone:
            absent = _variables(other)
            yield from (replace(_with(near, gone), absent=near.absent | absent) for near in of(part))

    def _runs(
        self, members: Sequence[NearValuation], contiguous: bool, budget: SearchBudget
    ) -> Iterator[NearValuation]:
        ordered = sorted(members, key=lambda near: (near.found.end, near.found.start))
        runs = [(near, place) for place, near in enumerate(ordered)]
        while runs:
            run, place = runs.pop()
            yield run
            for at in range(place + 1, len(ordered)):
                if budget.allows(run.cost, ordered[at].cost):
                    runs += ((near, at) for near in self._joined(run, ordered[at], contiguous))

    def _misplaced(self, left: Valuation, right: Valuation) -> Failure:
        one, other = self._positions(left.marked()), self._positions(right.marked())
        wanted = f"{self._names(left)} before {self._names(right)}"
        because = f"{listed(one)} does not come before {listed(other)}"
        return Failure(
            "order", f"{self._names(left)}, {self._names(right)}", wanted, because, tuple(sorted({*one, *other}))
        )

    def _apart(self, left: Valuation, right: Valuation) -> Failure:
        between = self._positions(range(left.end + 1, right.start))
        wanted = f"{self._names(right)} right after {self._names(left)}"
        positions = self._positions([*left.marked(), *right.marked()])
        return Failure("gap", self._names(right), wanted, f"{listed(between)} comes between", positions, between)

    def _names(self, found: Valuation) -> str:
        """The variables of a valuation; types only where an event has no other name."""
        shown_names = project([found], None, self._members)[0].names
        return " ".join(dict.fromkeys(name for _, names in shown_names for name in names)) or "NOT"

    def _positions(self, indexes: Iterable[int]) -> tuple[int, ...]:
        return tuple(sorted({position for i in indexes for position in self._members[i].positions}))

    # ------------------------------------------------------------ conditions

    def _unfit(self, found: Valuation, variable: str, predicate: Predicate) -> Iterator[Failure]:
        for part in conjuncts(predicate):
            unfit = [i for i in found.of(variable) if not satisfies(self._members[i], part)]
            if unfit:
                event = self._members[unfit[0]].attributes
                read = dict.fromkeys(node.name for node in part.walk() if isinstance(node, Attribute))
                values = ", ".join(f"{name} is {shown(attribute_of(event, name))}" for name in read)
                yield condition_failure(part, values, self._positions(unfit), variable)

    def _unrelated(self, near: NearValuation, condition: Predicate) -> Iterator[Failure]:
        names = variables_of(condition)
        if names & near.absent:
            return
        if not correlates(condition, near.found, self._members):
            positions = self._positions(i for name in names for i in near.found.of(name))
            yield condition_failure(condition, self._values(condition, near.found), positions, " ".join(sorted(names)))

    def _values(self, condition: Predicate, found: Valuation) -> str:
        bound = {name: [self._members[i].attributes for i in found.of(name)] for name in variables_of(condition)}
        inside = {n.attribute for n in condition.walk() if isinstance(n, Aggregate | Monotone)}
        parts: dict[str, str] = {}
        for node in condition.walk():
            if isinstance(node, Aggregate):
                parts[expression_text(node)] = shown(evaluate(node, ValueScope({}, bound)))
            elif isinstance(node, Monotone) or (isinstance(node, Attribute) and node not in inside):
                at = node.attribute if isinstance(node, Monotone) else node
                values = [shown(attribute_of(event, at.name)) for event in bound[at.variable or ""]]
                parts[expression_text(at)] = ", ".join(values)
        return ", ".join(f"{text} is {value}" for text, value in parts.items())


def _with(near: NearValuation, failures: Iterable[Failure]) -> NearValuation:
    return replace(near, failures=(*near.failures, *failures))


def _mistyped(step: str, wanted: str, event: Happening) -> Failure:
    found = event.type if event.stream is None else f"{event.stream}>{event.type}"
    return wrong_type(step, wanted, found, event.positions)


def _variables(pattern: Pattern) -> frozenset[str]:
    nodes = list(pattern.walk(Pattern))
    bound = {node.name for node in nodes if isinstance(node, Bind)}
    return frozenset(bound.union(*(node.names for node in nodes if isinstance(node, Event))))


def _steps(pattern: Pattern, name: str = "") -> Steps:
    """The events that a pattern cannot do without; the innermost variable names an event."""
    match pattern:
        case Event(type_):
            return [[(name or type_, type_)]]
        case Bind(inner, own):
            return _steps(inner, own)
        case Sequencing(left, right):
            return [*_steps(left, name), *_steps(right, name)]
        case Union(left, right):
            return either(_steps(left, name), _steps(right, name))
        case Repeat(inner) | Filter(inner) | Correlate(inner):
            return _steps(inner, name)
        case Maybe() | Other():
            return []
    wanted = [node for node in pattern.walk(Pattern) if isinstance(node, Event)]
    return [[(name or node.type, node.type) for node in wanted]] if wanted else []
