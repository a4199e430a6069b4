"""Time may pass between events, whoever says so: the matches stay those that are meant, and none comes too early."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st
from tests.driving import event_batches
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs, streams, together
from tests.property.engines.test_engines_equal_meaning import row_of as public_row
from tests.property.engines.test_engines_equal_meaning import rows_of
from tests.property.engines.test_situations_equal_meaning import Case, cases, meant
from tests.spark.pipeline import in_batch, job_for, matches_in
from tests.strategies_epn import patterns
from tests.strategies_epn import streams as event_streams

from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.errors import InputError
from weft.languages import compile_text
from weft.languages.epn import syntax as epn
from weft.languages.epn.printer import to_source
from weft.plan.operators import Plan
from weft.plan.planner import plan
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.local import LocalRun
from weft.runtime.reading.order import read_events
from weft.runtime.writing.match_rows import rows_to_matches

SOME = some(30)
EventDict = dict[str, object]


def with_time(chosen: Plan, events: Sequence[EventDict], rng: random.Random) -> list[MatchBatch]:
    """The matches of events given one by one, with time that passes between them, as far as the next event."""
    matcher = Matcher(chosen)
    found: list[MatchBatch] = []
    batches = event_batches([[event] for event in events], chosen)
    for number, batch in enumerate(batches):
        found += matcher.push(batch)
        end = int(batch.ends[-1])
        until = int(batches[min(number + 1, len(batches) - 1)].ends[0])
        for time in sorted(rng.randint(end, until) for _ in range(rng.randint(0, 2))):
            safe = matcher.watermark
            fresh = list(matcher.advance(time))
            assert all(end >= safe for batch in fresh for end in batch.ends.tolist() if safe is not None)
            found += fresh
    return [*found, *matcher.finish()]


@SOME
@given(st.one_of(programs, together), streams, st.randoms(use_true_random=False))
def test_composites(program: Program, events: list[EventDict], rng: random.Random) -> None:
    found = with_time(plan(program), events, rng)
    assert rows_of(found) == sorted(public_row(match) for match in matches(program, events))


@SOME
@given(cases(), st.randoms(use_true_random=False))
def test_situations(case: Case, rng: random.Random) -> None:
    try:
        found = with_time(plan(case.program), case.events, rng)
    except InputError:  # see `NetworkRun`
        assume(False)
    assert rows_of(found) == meant(case)


ABSENCES = ("absence", "absence", "sequence", "all", "any")


@st.composite
def long_cases(draw: st.DrawFn) -> Case:
    """Absences and what looks at them, over events of which some are longer than any partition."""
    called = [f"P{number}" for number in range(1, draw(st.integers(2, 3)) + 1)]
    patterns_ = (draw(patterns(one, called[:number], ABSENCES)) for number, one in enumerate(called))
    program, _ = compile_text(to_source(epn.Program(tuple(patterns_))), language="epn")
    events: list[EventDict] = []
    for event in draw(event_streams()):
        end = event.get("end", event.get("ts"))
        length = draw(st.sampled_from([0, 0, 1, 4, 9, 25]))
        times = {"start": end - length, "end": end} if length else {"ts": end}
        events.append({name: value for name, value in event.items() if name not in ("start", "end", "ts")} | times)
    return Case(program, sorted(events, key=_times), [])


def _times(event: EventDict) -> tuple[object, object]:
    return event.get("end", event.get("ts")), event.get("start", event.get("ts"))


@SOME
@given(long_cases())
def test_events_longer_than_partitions(case: Case) -> None:
    """They tell of absences that ended before they came. With the whole input at hand all is in its place."""
    expected = matches(case.program, case.events)
    source = read_events(case.events, batch_size=2)
    rows = list(LocalRun(plan(case.program), source).rows())
    found = [match for batch in rows for match in rows_to_matches(batch)]
    assert [_place(match) for match in found] == [_place(match) for match in expected]
    table = in_batch([case.events[::2], case.events[1::2]], job_for(case.program, 1))
    if not ties(case.events):
        assert sorted(map(_place, matches_in(table))) == sorted(map(_place, expected))


def ties(events: Sequence[EventDict]) -> bool:
    """Whether the order in which events come matters."""
    times = list(map(_times, events))
    return len(set(times)) < len(times)


def _place(match: Any) -> tuple[object, ...]:
    return match.end, match.start, match.positions, match.query
