"""What statistics say of an operator's conditions: how often they hold, how many keys there are, how long it takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from decimal import Decimal
from math import prod

from weft.algebra.analysis.renaming import rename
from weft.algebra.chains import Chain, Link
from weft.algebra.composites import Composite, CompositeEvent
from weft.algebra.patterns import Bind, Event, Pattern
from weft.algebra.predicates import Attribute, Comparison, Literal, Predicate
from weft.algebra.terms import Elapsed, conjuncts
from weft.algebra.text.program import to_text
from weft.statistics import Statistics


class Selectivity:
    """The conditions of one operator of a pattern."""

    def __init__(self, pattern: Composite, statistics: Statistics) -> None:
        self._statistics = statistics
        self._types: dict[str, str] | None = None
        self._pattern = pattern

    def of(self, conditions: Iterable[Predicate]) -> float:
        """How often all hold; those of which nothing is known count as always true, the worst case."""
        known = self.of_known(conditions)
        return 1.0 if known is None else known

    def of_known(self, conditions: Iterable[Predicate]) -> float | None:
        """How often all hold of which something is known; None when nothing is known of any."""
        if not self._statistics.selectivity:
            return None
        found = [known for known in map(self._fraction, conjuncts(conditions)) if known is not None]
        return prod(found) if found else None

    def keys(self, conditions: Iterable[Predicate]) -> float:
        """How many different values the equalities between events are thought to have."""
        equalities = [part for part in conjuncts(conditions) if is_key(part)]
        return 1 / max(self.of(equalities), 1e-9) if equalities else 1.0

    def residual(self, conditions: Iterable[Predicate]) -> tuple[Predicate, ...]:
        """The conditions that no key answers."""
        return tuple(part for part in conjuncts(conditions) if not is_key(part))

    def longest(self, conditions: Iterable[Predicate]) -> float | None:
        """The greatest span of time that conditions allow, in seconds."""
        spans = []
        for part in conjuncts(conditions):
            match part:
                case Comparison("<" | "<=", Elapsed(), Literal(bool() | str())):
                    continue
                case Comparison("<" | "<=", Elapsed(), Literal(int() | float() | Decimal() as number)):
                    spans.append(self._statistics.seconds(float(number)))
        return min(spans, default=None)

    def _fraction(self, condition: Predicate) -> float | None:
        figure = self._statistics.fraction(*condition_texts(condition, self._variable_types()))
        return None if figure is None else figure.value

    def _variable_types(self) -> dict[str, str]:
        if self._types is None:
            self._types = types_of(self._pattern)
        return self._types


def types_of(pattern: Composite) -> dict[str, str]:
    """The types of the events that a pattern's variables are bound to."""
    return {node.variable: node.type for node in pattern.walk(Composite) if isinstance(node, CompositeEvent)}


def types_in(pattern: Pattern) -> dict[str, str]:
    """The types of the events that the variables of a regular pattern are bound to, where each has one type."""
    found: dict[str, set[str]] = {}
    for node in pattern.walk(Pattern):
        match node:
            case Bind(inner, name):
                found.setdefault(name, set()).update(e.type for e in inner.walk(Pattern) if isinstance(e, Event))
            case Event():
                for name in node.names:
                    found.setdefault(name, set()).add(node.type)
            case Chain(links):
                for link in (part for one in links for part in one.walk() if isinstance(part, Link)):
                    found.setdefault(link.name, set()).update(link.fits.types or ("", " "))
    return {name: next(iter(types)) for name, types in found.items() if len(types) == 1}


def condition_texts(condition: Predicate, types: Mapping[str, str]) -> tuple[str, str]:
    """What a condition is called in statistics: with types in place of variables, and as it was written."""
    return to_text(rename(condition, types)), to_text(condition)


def is_key(condition: Predicate) -> bool:
    """Whether a condition is an equality of attributes of two variables, which is looked up."""
    match condition:
        case Comparison("=", Attribute(_, first), Attribute(_, second)):
            return first != second and first is not None and second is not None
    return False
