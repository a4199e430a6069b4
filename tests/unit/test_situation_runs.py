"""What runs of situations promise: closed partitions are forgotten, and nothing is guessed."""

from __future__ import annotations

import json

import pytest
from tests.property.test_engines_equal_meaning import event_batches

from weft.errors import InputError
from weft.languages import compile_text
from weft.plan.planner import plan
from weft.runtime.matcher import Matcher


def matcher_of(text: str) -> Matcher:
    return Matcher(plan(compile_text(text, language="epn")[0]))


def push(matcher: Matcher, *events: dict[str, object]) -> int:
    return sum(len(found) for batch in event_batches([list(events)], matcher.plan) for found in matcher.push(batch))


def test_closed_partitions_are_forgotten() -> None:
    matcher = matcher_of("pattern P all(A a, B b) where a.x < b.x context fixed 10")
    push(matcher, *({"type": "A", "ts": time, "x": 1} for time in range(9)))
    full = json.loads(matcher.snapshot()["network/stage/0"] or b"")
    push(matcher, {"type": "X", "ts": 20})
    freed = json.loads(matcher.snapshot()["network/stage/0"] or b"")
    assert (len(full["events"]), len(freed["events"]), len(freed["partitions"]["parts"])) == (9, 0, 0)


def test_deferred_sets_are_selected_when_time_passes_without_events_of_their_types() -> None:
    matcher = matcher_of("pattern P all(A a, B b) policies evaluation deferred context fixed 10")
    assert push(matcher, {"type": "A", "ts": 1}, {"type": "B", "ts": 2}) == 0
    assert push(matcher, {"type": "X", "ts": 10}) == 1


def test_an_absence_before_what_was_seen_is_refused() -> None:
    matcher = matcher_of("pattern N absence(A a) context from Open for 5\npattern P any(N n, B b)")
    push(matcher, {"type": "B", "ts": 1}, {"type": "X", "ts": 90})
    with pytest.raises(InputError, match="longer than the partition of 'N'"):
        push(matcher, {"type": "Open", "start": 0, "end": 100}, {"type": "X", "start": 200, "end": 200})
