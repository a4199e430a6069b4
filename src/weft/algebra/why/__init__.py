"""Why chosen events are a match or not: for each query the reading of them that has least to be otherwise.

Computed by the functions that `weft.algebra.meaning` is made of, over the same events; nothing is guessed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from weft.algebra.analysis.feeding import feeders
from weft.algebra.composites import CompositeQuery
from weft.algebra.meaning import placed
from weft.algebra.meaning.match import bindings_of
from weft.algebra.meaning.program import ProgramEvaluation
from weft.algebra.meaning.query import query_matches
from weft.algebra.meaning.stream import Happening
from weft.algebra.query import AnyQuery, Program, Query
from weft.algebra.situations import SituationQuery
from weft.algebra.why.composites import CompositeReading
from weft.algebra.why.failures import Failure, Near, TooMany, budgets, cheapest
from weft.algebra.why.queries import query_readings
from weft.algebra.why.rules import RuleReading
from weft.algebra.why.situations import SituationReading

__all__ = ["Closest", "Explanation", "Failure", "explained", "explanations"]

NEAREST = 200  # events that are tried for a step that is missing


@dataclass(frozen=True)
class Closest:
    """An event that comes closest to a missing step, and what fails with it."""

    position: int
    failures: tuple[Failure, ...]


@dataclass(frozen=True)
class Explanation:
    """Why chosen events are a match of a query (then nothing fails), or what would have to be otherwise.

    `bindings` are the steps that the events were taken for. `closest` are events for the step that is missing, if only
    one is. `unclear`: they can be read in too many ways to tell.
    """

    query: str
    matched: bool
    bindings: Mapping[str, tuple[int, ...]]
    failures: tuple[Failure, ...] = ()
    closest: tuple[Closest, ...] = ()
    unclear: bool = False


def explanations(
    program: Program, events: Sequence[Mapping[str, object]], positions: Sequence[int], *, time: str, type: str
) -> list[Explanation]:
    """For each query of the program, why the events at these positions are a match of it or not."""
    stream = placed(program, events, time=time, type=type)
    fed_by = feeders(program.queries)
    evaluation = ProgramEvaluation(program.queries, stream, {at for own in fed_by for at in own})
    found = []
    for number, query in enumerate(program.queries):
        seen = evaluation.seen_by(number)
        found.append(_shown_match(query, seen, positions) or explained(query, seen, frozenset(positions)))
    return found


def _shown_match(query: AnyQuery, seen: Sequence[Happening], positions: Sequence[int]) -> Explanation | None:
    """Return a match that shows these events; it may contain further events that its query does not select."""
    if isinstance(query, Query) and query.selected is not None:
        for match in query_matches(query, seen):
            if set(match.positions) == set(positions):
                return Explanation(query.name, True, match.bindings)
    return None


def explained(query: AnyQuery, seen: Sequence[Happening], positions: frozenset[int]) -> Explanation:
    """The reading of the events at these positions that has least to be otherwise, whatever the query finds."""
    try:
        reading, near = _nearest(query, seen, positions)
    except TooMany:
        return Explanation(query.name, False, {}, unclear=True)
    if near is None:
        return Explanation(query.name, False, {}, unclear=True)
    gone = [failure for failure in near.failures if failure.kind == "missing"]
    closest = _closest(query, seen, positions) if len(gone) == 1 == len(near.failures) else ()
    return Explanation(query.name, not near.failures, _bindings(reading, near), near.failures, closest)


def _nearest(query: AnyQuery, seen: Sequence[Happening], positions: frozenset[int]) -> tuple[Any, Near[Any] | None]:
    chosen = [event for event in seen if event.positions and positions.issuperset(event.positions)]
    if not chosen:
        return None, None
    readings = _readings(query, seen, chosen)
    for budget in budgets():
        found = [(reading, near) for reading in readings if (near := cheapest(reading.nears(budget))) is not None]
        if found:
            return min(found, key=lambda pair: pair[1].cost)
    return readings[0], None


def _readings(query: AnyQuery, seen: Sequence[Happening], chosen: Sequence[Happening]) -> Sequence[Any]:
    if isinstance(query, Query):
        return query_readings(query, seen, chosen)
    if isinstance(query, CompositeQuery):
        return [CompositeReading(query, seen, chosen)]
    if isinstance(query, SituationQuery):
        return [SituationReading(query, seen, chosen)]
    return [RuleReading(query, seen, chosen)]


def _bindings(reading: Any, near: Near[Any]) -> dict[str, tuple[int, ...]]:
    if isinstance(reading, CompositeReading):
        return bindings_of(dict(near.found.bound))
    if isinstance(reading, RuleReading):
        return bindings_of({name: [event] for name, event in near.found.items()})
    found: dict[str, tuple[int, ...]] = reading.bindings(near)
    return found


def _closest(query: AnyQuery, seen: Sequence[Happening], positions: frozenset[int]) -> tuple[Closest, ...]:
    """The events that, taken for the missing step, leave least to be otherwise; at most three."""
    middle = sum(positions) / len(positions)
    inputs = [e for e in seen if not e.is_derived and e.positions[0] not in positions]
    found: list[tuple[int, Closest]] = []
    for event in sorted(inputs, key=lambda e: abs(e.positions[0] - middle))[:NEAREST]:
        _, near = _nearest(query, seen, positions | set(event.positions))
        if near is not None and not any(failure.kind in ("missing", "extra", "type") for failure in near.failures):
            found.append((near.cost, Closest(event.positions[0], near.failures)))
    return tuple(close for _, close in sorted(found, key=lambda pair: (pair[0], pair[1].position))[:3])
