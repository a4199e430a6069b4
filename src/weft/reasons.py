"""Why chosen events are a match or not: `weft.why`, over whatever holds events, as objects, text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from weft import engines, inputs, meaning_run
from weft.algebra.prefixes import prefixes
from weft.algebra.why import Closest, Explanation, Failure, explanations
from weft.api import Programs, merge_programs
from weft.described import described
from weft.described.checking import check
from weft.errors import UsageError
from weft.meaning_run import TICKS
from weft.runtime.options import EventColumns, Options, as_columns

__all__ = ["Closest", "Explanation", "Failure", "Reasons", "funnel", "why"]


@dataclass(frozen=True)
class Reasons(Sequence[Explanation]):
    """For each query why the chosen events are a match of it, or what would have to be otherwise; prints readably."""

    explanations: tuple[Explanation, ...]
    events: Mapping[int, Mapping[str, object]]  # the chosen ones, and those that are named, by position

    def __getitem__(self, number: Any) -> Any:
        """The explanation of a query, by its number in the program."""
        return self.explanations[number]

    def __len__(self) -> int:
        """How many queries there are."""
        return len(self.explanations)

    def of(self, query: str) -> Explanation:
        """The explanation of a query, by its name.

        Args:
            query: The name of a query.
        """
        found = next((one for one in self.explanations if one.query == query), None)
        if found is None:
            raise UsageError(f"the program has no query called {query!r}")
        return found

    def to_json(self) -> list[dict[str, object]]:
        """As plain data."""
        return [asdict(one) for one in self.explanations]

    def __str__(self) -> str:
        """As indented text."""
        return "\n".join(line for one in self.explanations for line in _lines(one))


@described(
    positions="Places of events in stream order, from 0, as matches have them.",
)
def why(
    events: Any,
    program: Programs,
    positions: int | Sequence[int],
    *,
    time: str = "ts",
    type: str = "type",
    order: str | Sequence[str] = (),
) -> Reasons:
    """Say why the events at some positions are a match or not: what failed, of which step, and what was there instead.

    The answer is computed by the definition of what programs mean: conditions, order, bounds of time, unwanted events
    and choices that are named are exactly what would have to be otherwise. Of several ways to read the events as the
    pattern, the one is told in which least fails.
    """
    check(locals())
    whole = merge_programs(program)
    chosen = (positions,) if isinstance(positions, int) else tuple(positions)
    if engines.is_spark_frame(events):
        events = engines.collected(events)
    source = inputs.open_input(events, whole, time=time, type=type, order=as_columns(order), shown=None)
    rows = [event for batch in source for event in meaning_run.to_dicts(batch, type)]
    _check(chosen, len(rows))
    found = tuple(explanations(whole, rows, sorted(set(chosen)), time=TICKS, type=type))
    named = {*chosen, *(position for one in found for position in _named(one))}
    return Reasons(found, {position: _shown(rows[position], time) for position in sorted(named)})


@described()
def funnel(
    events: Any,
    program: Programs,
    *,
    time: str = "ts",
    type: str = "type",
    order: str | Sequence[str] = (),
) -> dict[str, list[tuple[str, int]]]:
    """Count the partial matches that reached each step of each query, in order; the last are matches.

    A step's partial matches are the matches of the query up to it, without what chooses among matches (strategies,
    limits, consumption, policies). So it shows where a query that finds nothing stops.
    """
    check(locals())
    whole = merge_programs(program)
    parts = [prefixes(query) for query in whole.queries]
    widened = replace(whole, queries=(*whole.queries, *(part for own in parts for _, part in own)))
    columns = EventColumns(time, type, as_columns(order))
    counts = engines.start(events, widened, "local", Options(columns)).counts()
    return {
        query.name: [*((step, counts[part.name]) for step, part in own), ("match", counts[query.name])]
        for query, own in zip(whole.queries, parts, strict=True)
    }


def _shown(event: Mapping[str, object], time: str) -> dict[str, object]:
    """The event with its time as it came, or else as it was read."""
    ticks = {} if time in event or TICKS not in event else {time: event[TICKS]}
    return ticks | {name: value for name, value in event.items() if name != TICKS}


def _check(positions: Sequence[int], count: int) -> None:
    if not positions:
        raise UsageError("say which events: their positions in stream order, as in why(events, program, [3, 7])")
    wrong = next((one for one in positions if not isinstance(one, int) or not 0 <= one < count), None)
    if wrong is not None:
        raise UsageError(f"there is no event at position {wrong}: there are {count:,}, from 0")


def _named(one: Explanation) -> Iterator[int]:
    for failure in one.failures:
        yield from failure.others
    yield from (close.position for close in one.closest)


def _lines(one: Explanation) -> Iterator[str]:
    yield f"{one.query}: {'a match' if one.matched else 'not a match'}"
    if one.unclear:
        yield "  these events can be read in too many ways, or none is seen by the query: choose fewer, or others"
    if one.bindings:
        shown = (f"{name} is {', '.join(map(str, found))}" for name, found in sorted(one.bindings.items()))
        yield f"  {'; '.join(shown)}"
    yield from (f"  - {failure}" for failure in one.failures)
    for close in one.closest:
        rest = "; ".join(map(str, close.failures))
        yield f"    closest: {close.position}" + (f", but then {rest}" if rest else ", with it there is a match")
