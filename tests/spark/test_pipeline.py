"""However events are cut into parts, triggers and lanes, and whenever lanes restart: the local engine's matches."""

from __future__ import annotations

import random
from dataclasses import replace

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.spark.pipeline import (
    Stream,
    counters_in,
    cut,
    in_batch,
    job_for,
    local,
    matches_in,
    packed,
    reasons_in,
    without_positions,
)
from tests.strategies import Example, examples

import weft
from weft.algebra.patterns import Bind, Event, Sequence
from weft.algebra.query import Program, Query
from weft.errors import UsageError
from weft.runtime.store.pages import FOREIGN

SOME = settings(max_examples=50, deadline=None)


@SOME
@given(examples(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_batch(example: Example, lanes: int, rng: random.Random) -> None:
    events = list(example.events)
    rng.shuffle(events)
    parts = cut(events, (rng.randint(0, len(events)) for _ in range(3)))
    assert matches_in(in_batch(parts, job_for(example.program, lanes))) == local(example.program, events)


@SOME
@given(examples(), st.integers(1, 3), st.booleans(), st.randoms(use_true_random=False))
def test_stream(example: Example, lanes: int, positions: bool, rng: random.Random) -> None:
    """Triggers of several parts, events out of order by less than the delay, lanes restarted now and then."""
    events = sorted(example.events, key=lambda e: int(e.get("end", e.get("ts"))) + rng.randint(0, 3))
    triggers = [
        cut(trigger, [rng.randint(0, len(trigger))])
        for trigger in cut(events, (rng.randint(0, len(events)) for _ in range(3)))
    ]
    stream = Stream(job_for(example.program, lanes, streaming=True, positions=positions), delay=3)
    for trigger in triggers:
        stream.trigger(trigger)
        if rng.random() < 0.5:
            stream.forget()
    stream.end()
    arrived = [event for trigger in triggers for part in trigger for event in part]
    assert reasons_in(stream.table()) == []
    found, meant = matches_in(stream.table()), local(example.program, arrived)
    assert found == meant if positions else without_positions(found) == without_positions(meant)


TWO = Program(
    "ceql",
    (
        Query("keyed", Sequence(Bind(Event("A"), "a"), Bind(Event("B"), "b")), partition=(("k",),)),
        Query("all", Event("B")),
    ),
)


@pytest.mark.parametrize("page", ["matcher/format", "head"])
def test_pages_of_another_layout_are_refused(page: str) -> None:
    stream = Stream(job_for(TWO, 1, streaming=True), delay=2)
    stream.trigger([[{"type": "A", "ts": 10, "k": 1}]])
    stream.forget()
    for pages in stream.pages.values():
        pages[page] = b'{"of": "old"}'
    with pytest.raises(UsageError, match=FOREIGN):
        stream.end()


def test_what_a_process_remembers_of_a_lane_is_not_for_another_program() -> None:
    stream = Stream(job_for(TWO, 1, streaming=True), delay=2)
    stream.trigger([[{"type": "A", "ts": 10, "k": 1}]])
    stream.job = job_for(replace(TWO, queries=tuple(reversed(TWO.queries))), 1, streaming=True)
    with pytest.raises(UsageError, match="by another strategy or for another program"):
        stream.end()


@pytest.mark.parametrize("positions", [True, False])
def test_every_late_event_is_reported_once_with_what_was_read_of_it(positions: bool) -> None:
    stream = Stream(job_for(TWO, 2, streaming=True, positions=positions), delay=2)
    stream.trigger([[{"type": "A", "ts": 10, "k": 1}, {"type": "A", "ts": 11, "k": 2}]])
    late = [
        {"type": "A", "ts": 3, "k": 1},
        {"type": "B", "ts": 4},
        {"type": "X", "ts": 5},
        {"start": 1, "end": 2, "type": "B"},
    ]
    stream.trigger([[*late, {"type": "B", "ts": 9, "k": 1}, {"type": "A", "k": 3}, {"type": "B", "ts": 13, "k": 2}]])
    stream.end()
    output = stream.table()
    told = output.filter(output["reason"].is_valid()).select(["start", "end", "event"]).to_pylist()
    assert sorted((row["end"] is None, row["end"], row["start"], row["event"]) for row in told if row["end"]) == [
        (False, 2, 1, '{"type": "B", "start": 1, "end": 2}'),
        (False, 3, 3, '{"type": "A", "ts": 3, "k": 1}'),
        (False, 4, 4, '{"type": "B", "ts": 4}'),
        (False, 5, 5, '{"type": "X", "ts": 5}'),
    ]
    assert [row["event"] for row in told if row["end"] is None] == ['{"type": "A", "k": 3}']
    assert "late: it ended at 3, and the watermark was at 9 already" in reasons_in(output)
    on_time = [{"type": "B", "ts": 9, "k": 1}, {"type": "A", "ts": 10, "k": 1}, {"type": "A", "ts": 11, "k": 2}]
    meant = local(TWO, [*on_time, {"type": "B", "ts": 13, "k": 2}])
    assert without_positions(matches_in(output)) == without_positions(meant)
    counted = sum(counter.get("events", 0) for counter in counters_in(output))
    assert counted == 4  # without those that are late or cannot be read


def test_events_wait_until_the_watermark_has_passed_them() -> None:
    stream = Stream(job_for(TWO, 1, streaming=True), delay=5)
    stream.trigger([[{"type": "B", "ts": 10}]])
    assert matches_in(stream.table()) == []
    stream.trigger([[{"type": "X", "ts": 15}]])
    assert matches_in(stream.table()) == []  # one more event at 10 would still be in time
    stream.trigger([[{"type": "X", "ts": 16}]])
    assert [match.positions for match in matches_in(stream.table())] == [(0,)]


def test_after_the_end_every_event_is_late() -> None:
    stream = Stream(job_for(TWO, 1, streaming=True), delay=0)
    stream.trigger([[{"type": "B", "ts": 10}]])
    stream.end()
    stream.trigger([[{"type": "B", "ts": 99}]])
    assert reasons_in(stream.table()) == ["late: the stream had been declared complete"]


def test_equal_times_are_ordered_by_source_before_arrival() -> None:
    job = job_for(TWO, 1, streaming=True)
    stream = Stream(job, delay=0)
    stream.take(pa.Table.from_batches([packed([{"type": "B", "ts": 1, "k": 1}], 0, job, source=1)]))
    stream.take(pa.Table.from_batches([packed([{"type": "A", "ts": 1, "k": 1}], 0, job, source=0)]))
    stream.end()
    keyed = [match for match in matches_in(stream.table()) if match.query == "keyed"]
    assert [match.bindings for match in keyed] == [{"a": (0,), "b": (1,)}]


DECLARED = """topology "T"
external A(k: int) < "a.jsonl" [1.0]
external B(k: int) < "b.jsonl" [1.0]
external C(k: int) < "c.jsonl" [1.0]
Twice(*): A/A1 ;[A1.k = A2.k] A/A2
Meet(*): B/B1 ,[B1.k = C1.k] C/C1
Quiet(*): !C ; B/B2
"""
TIES = st.tuples(st.sampled_from("CBA"), st.integers(0, 3), st.integers(0, 1), st.integers(0, 1))


@SOME
@given(st.lists(TIES, max_size=12), st.integers(1, 2), st.randoms(use_true_random=False))
def test_the_order_of_declaration_decides_between_equal_times(ties: list, lanes: int, rng: random.Random) -> None:
    """Wherever events are read: in one part, in several, in a later trigger."""
    program = weft.compile(DECLARED)
    events = [{"type": t, "start": end - span, "end": end, "k": k} for t, end, span, k in ties]
    parts = cut(events, (rng.randint(0, len(events)) for _ in range(3)))
    expected = sorted(weft.detect(events, program, engine="meaning"), key=repr)
    assert matches_in(in_batch(parts, job_for(program, lanes))) == local(program, events) == expected
    stream = Stream(job_for(program, lanes, streaming=True, positions=False), delay=5)
    for part in parts:
        stream.trigger([part])
        if rng.random() < 0.5:
            stream.forget()
    stream.end()
    assert without_positions(matches_in(stream.table())) == without_positions(expected)


def test_what_was_not_committed_is_not_remembered() -> None:
    """A trigger that is tried again starts from the stored pages, not from what the first try left in memory."""
    job = job_for(TWO, 1, streaming=True)
    stream = Stream(job, delay=0)
    stream.trigger([[{"type": "A", "ts": 1, "k": 1}]])
    kept = {lane: dict(pages) for lane, pages in stream.pages.items()}
    again = [[{"type": "B", "ts": 2, "k": 1}, {"type": "X", "ts": 3}]]
    stream.trigger(again)
    first = matches_in(stream.table())
    for lane, pages in kept.items():
        stream.pages[lane].clear()
        stream.pages[lane].update(pages)
    stream.output.clear()
    stream.trigger(again)
    assert matches_in(stream.table()) == first
    assert len(first) == 2
