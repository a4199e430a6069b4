"""The valuations of a pattern over a finite stream, by structural recursion (CEL; DCORE figure 3.2).

A valuation is an interval of the stream and, for each variable, the events bound to it. Figure 3.2
prints `V1(end) = V2(start)` for the sequence; it is read as `<`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import product

from weft.algebra.chains import Chain
from weft.algebra.meaning.chains import chain_intervals
from weft.algebra.meaning.stream import Happening
from weft.algebra.meaning.values import ValueScope, holds
from weft.algebra.patterns import Bind, Correlate, Event, Filter, Maybe, Other, Pattern, Repeat, Union, may_be_nothing
from weft.algebra.patterns import Sequence as Sequencing
from weft.algebra.predicates import Aggregate, Attribute, Monotone, Predicate, variables_of
from weft.tree import Node

Fits = Callable[[int, int], bool]


@dataclass(frozen=True)
class Valuation:
    """The interval `start..end` of indexes into the stream, and pairs (variable, index bound to it)."""

    start: int
    end: int
    bound: frozenset[tuple[str, int]]

    def of(self, variable: str) -> list[int]:
        """The indexes bound to a variable, ascending."""
        return sorted(index for name, index in self.bound if name == variable)

    def marked(self) -> list[int]:
        """The indexes bound to any variable, ascending."""
        return sorted({index for _, index in self.bound})


def valuations(
    pattern: Pattern, stream: Sequence[Happening], may_fit: Fits = lambda start, end: True
) -> set[Valuation]:
    """All valuations of the pattern, but for those whose interval no wanted one can contain (`may_fit` is false)."""

    def of(part: Pattern) -> set[Valuation]:
        return valuations(part, stream, may_fit)

    match pattern:
        case Event():
            fitting = [i for i, event in enumerate(stream) if may_fit(i, i) and is_such(event, pattern)]
            return {Valuation(i, i, frozenset((name, i) for name in pattern.names)) for i in fitting}
        case Other():
            fitting = [i for i, event in enumerate(stream) if may_fit(i, i) and is_other(event, pattern)]
            return {Valuation(i, i, frozenset()) for i in fitting}
        case Bind(inner, name):
            return {Valuation(v.start, v.end, v.bound | {(name, i) for i in v.marked()}) for v in of(inner)}
        case Sequencing(left, right, contiguous):
            alone = [part for part, other in ((left, right), (right, left)) if may_be_nothing(other)]
            return _joined(of(left), of(right), contiguous, may_fit).union(*map(of, alone))
        case Repeat(inner, contiguous):
            return _repeated(of(inner), contiguous, may_fit)
        case Union(left, right):
            return of(left) | of(right)
        case Maybe(inner):
            return of(inner)
        case Filter(inner, variable, predicate):
            return {v for v in of(inner) if all(satisfies(stream[i], predicate) for i in v.of(variable))}
        case Correlate(inner, condition):
            return {v for v in of(inner) if correlates(condition, v, stream)}
        case Chain():
            return {Valuation(*found) for found in chain_intervals(pattern, stream, may_fit)}
    raise TypeError(f"not a pattern: {pattern!r}")


def is_such(event: Happening, wanted: Event | Other) -> bool:
    """Of that type, and of that stream if one is named (an event that names no stream may be of any)."""
    return event.type == wanted.type and (wanted.stream is None or event.stream in (None, wanted.stream))


def is_other(event: Happening, unwanted: Other) -> bool:
    """Not of that type and stream, or without what `where` asks."""
    return not (is_such(event, unwanted) and satisfies(event, unwanted.where))


def satisfies(event: Happening, predicate: Predicate) -> bool:
    """Return whether the event satisfies the predicate."""
    return holds(predicate, ValueScope({None: event.attributes}))


def _joined(lefts: Iterable[Valuation], rights: Iterable[Valuation], contiguous: bool, fit: Fits) -> set[Valuation]:
    """Every left followed by every right that starts after its end (`contiguous`: at the next index)."""
    by_start: defaultdict[int, list[Valuation]] = defaultdict(list)
    for right in rights:
        by_start[right.start].append(right)
    return {
        Valuation(left.start, right.end, left.bound | right.bound)
        for left in lefts
        for start in by_start
        if (start == left.end + 1 if contiguous else start > left.end)
        for right in by_start[start]
        if fit(left.start, right.end)
    }


def _repeated(once: set[Valuation], contiguous: bool, fit: Fits) -> set[Valuation]:
    """The least set that holds `once` and, with each of its members, `once` followed by that member."""
    found: set[Valuation] = set()
    new = once
    while new:
        found |= new
        new = _joined(once, new, contiguous, fit) - found
    return found


def correlates(condition: Predicate, valuation: Valuation, stream: Sequence[Happening]) -> bool:
    """Whether the condition holds for every choice of one event for each variable it reads event by event."""
    bound = {variable: [stream[i].attributes for i in valuation.of(variable)] for variable in variables_of(condition)}
    single = sorted(_read_singly(condition))
    if any(not bound[variable] for variable in [*single, *_needed_as_wholes(condition)]):
        return True
    return all(
        holds(condition, ValueScope(dict(zip(single, choice, strict=True)), bound))
        for choice in product(*(bound[variable] for variable in single))
    )


def _read_singly(node: Node) -> set[str]:
    """The variables of plain attributes, those not inside an aggregate or a monotone condition."""
    match node:
        case Aggregate() | Monotone():
            return set()
        case Attribute(_, variable) if variable is not None:
            return {variable}
    return {variable for child in node.children() for variable in _read_singly(child)}


def _needed_as_wholes(condition: Predicate) -> set[str]:
    """The variables without whose events the condition says nothing: all it aggregates but by COUNT."""
    return {
        variable
        for node in condition.walk()
        if isinstance(node, Monotone) or (isinstance(node, Aggregate) and node.function != "COUNT")
        for variable in variables_of(node)
    }
