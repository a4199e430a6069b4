"""The cost of patterns: every operator gets a profile, and an operator that several queries share counts once."""

from __future__ import annotations

from collections.abc import Iterable

from weft.algebra.analysis.renaming import signature
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
    composites_in,
)
from weft.algebra.query import Program
from weft.algebra.terms import conjuncts
from weft.optimizer.cost import profiles
from weft.optimizer.cost.profiles import MOST_MEMBERS, Profile
from weft.optimizer.cost.selectivity import Selectivity
from weft.statistics import LEAST_RATE, NOTHING_KNOWN, Statistics

Costed = Composite | CompositeQuery | Program
Operators = dict[str, tuple[Composite, Profile]]


class Costs:
    """Profiles of patterns under statistics. `remarks` says which numbers were assumed."""

    def __init__(self, statistics: Statistics = NOTHING_KNOWN) -> None:
        self.statistics = statistics
        self.remarks: dict[str, None] = {}
        self._of: dict[int, tuple[Composite, Operators]] = {}  # by the pattern itself: equal ones may be told apart

    def profile(self, pattern: Composite) -> Profile:
        """The profile of a pattern's outermost operator."""
        return self._collect(pattern, {})[1]

    def operators(self, patterns: Iterable[Composite]) -> Operators:
        """All operators below some patterns by signature, equal ones (up to the names of variables) once."""
        found: Operators = {}
        for pattern in patterns:
            if id(pattern) not in self._of:
                own: Operators = {}
                self._collect(pattern, own)
                self._of[id(pattern)] = pattern, own
            found |= self._of[id(pattern)][1]
        return found

    def total(self, *patterns: Composite) -> float:
        """What all operators of the patterns do in a second."""
        return sum(profile.work for _, profile in self.operators(patterns).values())

    def _collect(self, pattern: Composite, found: Operators) -> tuple[str, Profile]:
        """Put the operators of a pattern to those that were found, operands first."""
        below = [self._collect(child, found) for child in pattern.children() if isinstance(child, Composite)]
        text = signature(pattern, [text for text, _ in below])
        if text not in found:
            found[text] = pattern, self._profile(pattern, [profile for _, profile in below])
        return text, found[text][1]

    def _profile(self, pattern: Composite, below: list[Profile]) -> Profile:
        known = Selectivity(pattern, self.statistics)
        match pattern:
            case CompositeEvent(type_, _, where):
                return profiles.leaf(max(self.rate(type_) * known.of(where), LEAST_RATE))
            case CompositeUnion():
                return profiles.union(*below)
            case CompositeFilter(_, where):
                return profiles.filtered(below[0], known.of(where))
            case CompositeSequence():
                return self._follow(pattern, below[0], below[1], known)
            case Overlap(_, _, where):
                return profiles.overlap(below[0], below[1], known.of(where))
            case CompositeRepeat():
                return self._repeat(pattern, below[0], known)
            case Without():
                return profiles.exception(*below)
            case After(_, ticks):
                return profiles.later(below[0], self.statistics.seconds(ticks))
        raise TypeError(f"not a composite pattern: {pattern!r}")

    def rate(self, type_: str) -> float:
        """How many events of a type come in a second."""
        return self.statistics.rate(type_).value

    def _follow(self, pattern: CompositeSequence, left: Profile, right: Profile, known: Selectivity) -> Profile:
        if pattern.pick == "each":
            keys, fraction = known.keys(pattern.where), known.of(known.residual(pattern.where))
            span = known.longest(pattern.where)
            return profiles.join(left, right, 1.0 if span is None else span, keys, fraction)
        among = pattern.among if pattern.pick == "next" else pattern.where
        tests = len(known.residual((*pattern.among, *pattern.where)))
        fraction = known.of(pattern.where) if pattern.pick == "next" else 1.0
        return profiles.follow(left, right, known.keys(among), fraction, tests)

    def _repeat(self, pattern: CompositeRepeat, inner: Profile, known: Selectivity) -> Profile:
        high, low = pattern.lengths.high, float(pattern.lengths.low)
        if pattern.pick == "longest":
            return profiles.longest_runs(inner, low)
        fraction = known.of_known(conjuncts((*pattern.where, *pattern.among)))
        members = MOST_MEMBERS if fraction is None or fraction >= 1 else min(1 / (1 - fraction), MOST_MEMBERS)
        if fraction is None and high is None:
            self.remarks[f"how long runs get is not known: {MOST_MEMBERS:g} members are assumed"] = None
        return profiles.runs(inner, members if high is None else min(members, float(high)))


def profile_of(pattern: Composite, statistics: Statistics = NOTHING_KNOWN) -> Profile:
    """The profile of a pattern's outermost operator."""
    return Costs(statistics).profile(pattern)


def cost_of(what: Costed | Iterable[Composite], statistics: Statistics = NOTHING_KNOWN) -> float:
    """The work per second of a pattern, a query, several patterns, or the composite queries of a program."""
    return Costs(statistics).total(*_patterns(what))


def costs_of(
    what: Costed | Iterable[Composite], statistics: Statistics = NOTHING_KNOWN
) -> list[tuple[Composite, Profile]]:
    """The operators with their profiles, operands first, equal ones once."""
    return list(Costs(statistics).operators(_patterns(what)).values())


def _patterns(what: Costed | Iterable[Composite]) -> list[Composite]:
    match what:
        case Composite():
            return [what]
        case CompositeQuery(pattern=pattern):
            return [pattern]
        case Program(queries=queries):
            return [query.pattern for query in composites_in(queries)]
    return list(what)
