"""What runs of situations promise: closed partitions are forgotten, and nothing is guessed."""

from __future__ import annotations

from itertools import islice

import numpy as np
import pytest
from tests.driving import event_batches, run
from tests.harness import event

import weft
from weft.algebra.meaning import matches
from weft.errors import InputError
from weft.languages import compile_text
from weft.plan.planner import plan
from weft.runtime.classify import layer_keys
from weft.runtime.execution.matcher import Matcher


def matcher_of(text: str) -> Matcher:
    return Matcher(plan(compile_text(text, language="epn")[0]))


def push(matcher: Matcher, *events: dict[str, object]) -> int:
    return sum(len(found) for batch in event_batches([list(events)], matcher.plan) for found in matcher.push(batch))


def test_closed_partitions_are_forgotten() -> None:
    """What a window kept is used again by the next one."""
    matcher = matcher_of("pattern P all(A a, B b) where a.x < b.x context fixed 10")
    sizes = []
    pages: dict[str, bytes] = {}
    for window in range(5):
        push(matcher, *({"type": "A", "ts": 10 * window + time, "x": 1} for time in range(9)))
        pages = {name: page for name, page in {**pages, **matcher.snapshot()}.items() if page is not None}
        sizes.append(sum(len(page) for name, page in pages.items() if "/memory/" in name))
        matcher = Matcher.restore(matcher.plan, pages)
    assert len(set(sizes[1:])) == 1  # when the second window opens the first has not closed


def test_deferred_sets_are_selected_when_time_passes_without_events_of_their_types() -> None:
    matcher = matcher_of("pattern P all(A a, B b) policies evaluation deferred context fixed 10")
    assert push(matcher, {"type": "A", "ts": 1}, {"type": "B", "ts": 2}) == 0
    assert push(matcher, {"type": "X", "ts": 10}) == 1


def test_an_absence_before_what_was_seen_is_refused() -> None:
    matcher = matcher_of("pattern N absence(A a) context from Open for 5\npattern P any(N n, B b)")
    push(matcher, {"type": "B", "ts": 1}, {"type": "X", "ts": 90})
    with pytest.raises(InputError, match="longer than all before opens a partition of 'N'"):
        push(matcher, {"type": "Open", "start": 0, "end": 100}, {"type": "X", "start": 200, "end": 200})


@pytest.mark.parametrize("strategy", ["one", "query"])
def test_lanes_of_a_finite_input_know_its_longest_event(strategy: str) -> None:
    """The first event is longer than the windows that it tells of, and all of it is there before lanes begin."""
    program = [
        "QUERY Hot AS SELECT a WHERE A AS a WITHIN 9 EVENTS",
        "pattern N absence(Hot h) context fixed 3",
        "define Seen() from N()",
    ]
    events = [{"type": "B", "start": -7, "end": 0}]
    found = list(weft.detect(events, program, lanes=2, strategy=strategy))
    assert found == list(weft.detect(events, program, engine="meaning"))
    assert [match.query for match in found] == ["N", "Seen"] * 4
    assert weft.count(events, program, lanes=2, strategy=strategy) == {"Hot": 0, "N": 4, "Seen": 4}


def test_events_without_attributes_are_given_up_too() -> None:
    network = (
        "pattern N absence(A a) context fixed 50\npattern P any(N n, B b) policies evaluation deferred context fixed 60"
    )
    matcher = matcher_of(network)
    found = [push(matcher, *({"type": "B", "ts": time} for time in range(first, first + 3000))) for first in (0, 3000)]
    assert sum(found) > 5900


def test_an_event_that_is_reused_alone_is_selected_once() -> None:
    matcher = matcher_of(
        "pattern P any(A a, B b) policies evaluation deferred; b: consumption consume context fixed 10"
    )
    assert push(matcher, {"type": "A", "ts": 1}, {"type": "B", "ts": 2}, {"type": "X", "ts": 10}) == 2


def test_sets_come_out_although_there_are_too_many_to_count() -> None:
    slots = [f"T{number}" for number in range(80)]
    matcher = matcher_of(f"pattern P sequence({', '.join(f'{slot} s{slot}' for slot in slots)})")
    stream = [{"type": slot, "ts": 2 * time + again} for time, slot in enumerate(slots) for again in range(2)]
    (batch,) = event_batches([stream[:-1]], matcher.plan)
    pieces = list(islice(matcher.push(batch), 3))
    members = np.concatenate([piece.positions.reshape(-1, len(slots)) for piece in pieces])
    assert len(np.unique(members, axis=0)) == len(members) > 1000
    assert (members // 2 == np.arange(len(slots))).all()


@pytest.mark.parametrize("engine", ["meaning", "local"])
def test_sets_of_absences_have_ids_of_their_own(engine: str) -> None:
    network = "pattern Silent absence(A a) context fixed 10\npattern Told any(Silent s)"
    events = [event("B", ts) for ts in (1, 11, 21)]
    ids = [match.id for match in weft.detect(events, weft.compile(network, language="epn"), engine=engine)]
    assert len(ids) == 6
    assert len(set(ids)) == 6


def test_a_key_that_was_seen_is_remembered_for_later_absences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(layer_keys, "LEAST_SLOTS", 0)
    program = weft.compile("pattern Q absence(A a) context fixed 4 by k", language="epn")
    events = [event("B", 1, k=1), event("B", 5, k=2), event("B", 6, k=3), event("A", 9, k=2), event("B", 13, k=4)]
    chosen = plan(program)
    found = run(chosen, event_batches([[one] for one in events], chosen))
    assert sorted((at, end) for part in found for at, end in zip(part.starts, part.ends, strict=True)) == sorted(
        (match.start, match.end) for match in matches(program, events)
    )
    assert sum(map(len, found)) == 10  # each key from its first window on, without the one that has an A
