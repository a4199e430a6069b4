"""Sources merged as they come give the matches that are meant: any program, batches, heartbeats and pauses."""

from __future__ import annotations

import random
from collections.abc import Iterator
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some
from tests.strategies_composite import EventDict, composite_streams, eql_programs, step_programs

import weft
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.errors import ProgramError
from weft.languages import compile_text
from weft.optimizer.pipeline import optimize
from weft.plan.planner import plan
from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch, Rejected
from weft.runtime.local import LocalRun
from weft.runtime.reading.chunks import dict_chunk
from weft.runtime.reading.order import EventSource, Reading
from weft.runtime.reading.stabilise import END, Stabiliser
from weft.runtime.writing.match_rows import rows_to_matches

SOME = some(30)
NAMES = ("one", "two", "three")


def compiled(text: str, language: str) -> Program | None:
    try:
        return compile_text(text, language=language)[0]
    except ProgramError:
        return None


programs = st.one_of(
    eql_programs().map(lambda text: compiled(text, "eql")), step_programs().map(lambda text: compiled(text, "step"))
).filter(lambda program: program is not None)


def end_of(event: EventDict) -> int:
    return int(event.get("end", event.get("ts")))  # type: ignore[call-overload]


def row_of(match: Any) -> tuple[object, ...]:
    return match.query, match.start, match.end, tuple(sorted(match.bindings.items()))


class Scripted:
    """Sources that send, promise and pause as a script says; `safe` is how far time has come."""

    def __init__(self, sources: dict[str, list[EventDict]], reading: Reading, script: random.Random) -> None:
        self.reading = reading
        self.rejected: list[Rejected] = []
        self.counters: dict[str, int] = {}
        self.safe: int | None = None
        self.longest: int | None = None
        self._left = {name: list(events) for name, events in sources.items()}
        self._merge = Stabiliser(NAMES, types=reading.sources)
        self._script = script

    def __iter__(self) -> Iterator[EventBatch]:
        while any(self._left.values()):
            name = self._script.choice(NAMES)
            left = self._left[name]
            count = self._script.randint(0, len(left))
            self._merge.push(name, self._batch(left[:count]))
            self._left[name] = left[count:]
            if self._script.random() < 0.5:
                self._merge.heartbeat(name, end_of(left[count]) if left[count:] else 99)
            if self._script.random() < 0.5:
                yield self._release()
        yield self._release()
        for name in NAMES:
            self._merge.close(name)
        yield self._release()

    def _release(self) -> EventBatch:
        batch = self._merge.release()
        self.safe = None if self._merge.safe == END else self._merge.safe
        return batch

    def _batch(self, events: list[EventDict]) -> EventBatch:
        if not events:
            return blocks.empty()
        segment = EventSource(list, self.reading).read(dict_chunk(events, "ms"))
        return segment.events(self.reading)


@SOME
@given(programs, composite_streams(), st.integers(0, 1 << 30).map(random.Random))
def test_merged_sources(program: Program, events: list[EventDict], script: random.Random) -> None:
    sources: dict[str, list[EventDict]] = {name: [] for name in NAMES}
    for event in sorted(events, key=end_of):
        sources[script.choice(NAMES)].append(event)
    chosen = plan(optimize(program))
    declared = tuple(source.type for source in program.inputs)
    reading = Reading(columns=frozenset(chosen.columns), sources=declared, catalog=program.catalog)
    run = LocalRun(chosen, Scripted(sources, reading, script))
    found = [match for rows in run.rows() for match in rows_to_matches(rows)]
    meant = matches(program, [event for name in NAMES for event in sources[name]])
    assert sorted(map(row_of, found)) == sorted(map(row_of, meant))
    order = [(m.end, m.start, m.positions) for m in found]
    assert order == sorted(order)


class Ticking:
    """One source whose time passes tick by tick; `seen` says what had been found at each."""

    def __init__(self, events: list[EventDict], until: int, found: list[weft.Match]) -> None:
        self.reading = Reading(columns=frozenset())
        self.rejected: list[Rejected] = []
        self.counters: dict[str, int] = {}
        self.safe: int | None = None
        self.longest: int | None = None
        self.seen: list[tuple[int, int]] = []  # a time, and how many matches there were when it had passed
        self._events, self._until, self._found = events, until, found

    def __iter__(self) -> Iterator[EventBatch]:
        merge = Stabiliser(["only"])
        for batch in EventSource(lambda: [dict_chunk(self._events, "ms")], self.reading):
            merge.push("only", batch)
        for time in range(self._until):
            merge.heartbeat("only", time)
            batch = merge.release()
            self.safe = merge.safe
            yield batch
            self.seen.append((merge.safe, len(self._found)))


@SOME
@given(composite_streams(), st.integers(1, 6), st.sampled_from(["A a @ {}", "A a ; B b @ {}", "(A a ; B b) @ {}"]))
def test_points_in_time_are_decided_when_they_have_passed(events: list[EventDict], wait: int, pattern: str) -> None:
    """Without further events, and not before."""
    program = compile_text(f"SELECT * FROM {pattern.format(wait)}", language="eql")[0]
    meant = [match.end for match in matches(program, events)]
    found: list[weft.Match] = []
    source = Ticking(events, max(map(end_of, events), default=0) + wait + 2, found)
    for rows in LocalRun(plan(optimize(program)), source).rows():
        found += rows_to_matches(rows)
    assert source.seen == [(time, sum(end < time for end in meant)) for time, _ in source.seen]
    assert len(found) == len(meant)
