"""A queue that drops events unread: whatever is dropped, every match is one of the whole stream."""

from __future__ import annotations

import warnings

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st
from tests import strategies, strategies_composite, strategies_epn, strategies_tesla
from tests.harness import some
from tests.property.engines.test_composites_equal_meaning import programs as composite_programs
from tests.property.running.test_live_equals_meaning import EventDict, keys

import weft
from weft.algebra.meaning import matches
from weft.algebra.query import Program
from weft.languages import compile_text
from weft.runtime.limits.shedding import Shedder
from weft.runtime.limits.waiting import Waiting, joined

SOME = some(30)
SIZES = st.lists(st.integers(1, 4), min_size=1, max_size=5)


def check(program: Program, events: list[EventDict], sizes: list[int], room: int) -> None:
    """Push pieces of these sizes into so much room; every third time, what waits is matched."""
    ordered = sorted(events, key=lambda e: (e.get("end", e.get("ts")), e.get("start", e.get("ts"))))
    meant = set(keys(matches(program, ordered)))
    risky = Shedder(weft.Shed(share=0.0), program.queries).risky
    waiting, running = Waiting(), weft.live(program)
    found: list[weft.Match] = []

    def work_off() -> None:
        found.extend(running._push(*joined(waiting.take(3))))

    at, number = 0, 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        while at < len(ordered):
            piece = ordered[at : at + sizes[number % len(sizes)]]
            at += len(piece)
            number += 1
            waiting.add(piece)
            waiting.shrink(room, risky)
            assert waiting.count <= room or risky is None or risky
            if number % 3 == 0:
                work_off()
        while not waiting.is_empty:
            work_off()
    assert running.events == len(events)
    assert set(keys(found + list(running.finish()))) <= meant


@SOME
@given(strategies.programs(), strategies.streams(word=("A", "B", "C", "A")), SIZES, st.integers(0, 6))
def test_regular_queries(program: Program, events: list[EventDict], sizes: list[int], room: int) -> None:
    check(program, events, sizes, room)


@SOME
@given(composite_programs, strategies_composite.composite_streams(), SIZES, st.integers(0, 6))
def test_composite_queries(program: Program, events: list[EventDict], sizes: list[int], room: int) -> None:
    check(program, events, sizes, room)


@SOME
@given(
    strategies_epn.examples(most=2).map(lambda example: compile_text(example.text, language="epn")[0]),
    strategies_epn.streams(),
    SIZES,
    st.integers(0, 6),
)
def test_situations(program: Program, events: list[EventDict], sizes: list[int], room: int) -> None:
    check(program, events, sizes, room)


@SOME
@given(strategies_tesla.texts(strategies_tesla.rule_sets()), strategies_tesla.rule_streams(), SIZES, st.integers(0, 6))
def test_rules(text: str, events: list[EventDict], sizes: list[int], room: int) -> None:
    check(compile_text(text, language="tesla")[0], events, sizes, room)


def test_what_is_left_out_is_a_gap_in_the_numbers() -> None:
    events = [{"type": name, "ts": at} for at, name in enumerate("AXBXAXBX")]
    for given_as in (list, pa.Table.from_pylist):
        waiting = Waiting()
        for at in (0, 4):
            waiting.add(given_as(events[at : at + 4]))
        waiting.shrink(5, {"A"})
        found, numbers, count = joined(waiting.take(100))
        assert numbers is not None
        assert numbers.tolist() == [0, 4, 5, 6, 7]
        assert (count, waiting.left_out, waiting.count) == (8, 3, 0)
        rows = [row for item in found for row in ([item] if isinstance(item, dict) else item.to_pylist())]
        assert rows == [events[number] for number in numbers]


def test_events_that_cannot_be_read_are_not_left_out_unseen() -> None:
    waiting = Waiting()
    waiting.add([{"ts": 1}, "no event", {"type": 5, "ts": 1}, {"type": "B", "ts": 1}])
    waiting.shrink(0, {"A"})
    assert waiting.count == 3


def test_numbers_pass_over_events_that_cannot_be_read() -> None:
    rejects: list[weft.Rejected] = []
    running = weft.live("SELECT * FROM S WHERE (A AS a ; A AS b) WITHIN 4 EVENTS", rejects=rejects)
    waiting = Waiting()
    for piece in ([{"type": "X", "ts": 0}] * 3, [{"type": "A", "ts": 1}, {"ts": 2}, {"type": "A", "ts": 3}]):
        waiting.add(piece)
    waiting.shrink(3, set())
    (match,) = running._push(*joined(waiting.take(10)))
    assert match.positions == (3, 5)
    assert len(rejects) == 1
