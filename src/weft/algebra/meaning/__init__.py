"""What a program means: a naive evaluator, small enough to be read as the definition of the answer.

It knows the algebra and nothing of the engines, and no engine knows it. It keeps every valuation in
memory, so it is for short streams: for tests, and to settle what a query should give.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from weft.algebra.meaning.match import Match
from weft.algebra.meaning.program import program_matches
from weft.algebra.meaning.stream import Happening, place
from weft.algebra.query import Program

__all__ = ["Match", "matches", "placed"]


def matches(
    program: Program,
    events: Sequence[Mapping[str, object]],
    *,
    time: str = "ts",
    type: str = "type",
    key: Sequence[str] = (),
    unshown: Sequence[str] = (),
) -> list[Match]:
    """All matches of the program's queries over the events (in arrival order), in match order.

    Match order is by end, then start, then positions, then query. `key`: the attributes that identify events, if not
    those that queries mention. `unshown`: attributes that `SELECT *` leaves out, beside type and times.
    """
    found = program_matches(program.queries, placed(program, events, time=time, type=type, unshown=unshown), key)
    ranked = [
        ((m.end, m.start, m.positions, rank, m.last, m.first, tuple(sorted(m.bindings.items()))), m)
        for rank, own in enumerate(found)
        for m in own
    ]
    return [m for _, m in sorted(ranked, key=lambda pair: pair[0])]


def placed(
    program: Program, events: Sequence[Mapping[str, object]], *, time: str, type: str, unshown: Sequence[str] = ()
) -> list[Happening]:
    """The readable events in stream order; of equal times, in the order of the sources that the program names."""
    declared: list[object] = [source.type for source in program.inputs]
    by_source = sorted(events, key=lambda e: declared.index(e[type]) if e.get(type) in declared else len(declared))
    return place(by_source, program.catalog, time, type, unshown)
