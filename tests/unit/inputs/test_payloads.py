"""JSON payloads of records: one event each, whatever is in them; what cannot be read is shown with its place."""

from __future__ import annotations

import json
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from weft.runtime.reading.order import EventSource, Reading
from weft.runtime.reading.payloads import NO_PAYLOAD, payload_chunk

VALUES = st.none() | st.integers(-(2**70), 2**70) | st.floats(allow_nan=False) | st.text() | st.booleans()
EVENTS = st.fixed_dictionaries({"type": st.sampled_from("AB"), "ts": st.integers(0, 99), "v": VALUES})


def read(payloads: list[bytes | None]) -> EventSource:
    chunk = payload_chunk(payloads, lambda row: ("kafka:t/3", 100 + row), "ms", set())
    source = EventSource(partial(list, (chunk,)), Reading())
    source.batches = list(source)  # type: ignore[attr-defined]
    return source


@given(st.lists(EVENTS, min_size=1, max_size=8), st.sampled_from([None, 1]))
def test_a_payload_is_one_event(events: list[dict[str, object]], indent: int | None) -> None:
    payloads: list[bytes | None] = [json.dumps(event, indent=indent).encode() for event in events]
    chunk = payload_chunk(payloads, lambda row: ("", row), "ms", set())
    assert chunk.length == len(events)
    assert [chunk.row(row) for row in range(chunk.length)] == events
    assert not chunk.problems


@pytest.mark.parametrize(
    ("payload", "reason", "shown"),
    [
        (b"nonsense", "not JSON", {"payload": "nonsense"}),
        (None, NO_PAYLOAD, None),
        (b"", "not JSON", {"payload": ""}),
        (b"[1]", "not an event", {"payload": "[1]"}),
        (b'{"type":"A","ts":1}{"type":"A","ts":2}', "not JSON", {"payload": '{"type":"A","ts":1}{"type":"A","ts":2}'}),
        (b'{"type":"A","ts":1}\n{"type":"A","ts":2}', "not JSON", None),
        (b'{"type":"A","ts":"\xff"}', "not UTF-8", {"payload": '{"type":"A","ts":"\ufffd"}'}),
        (b'{"type":"A"}', "no time", {"type": "A"}),
    ],
)
def test_an_unreadable_payload_is_rejected_with_its_place(payload: bytes | None, reason: str, shown: object) -> None:
    good = b'{"type":"A","ts":5}'
    source = read([good, payload, good])
    assert source.counters["events"] == 2
    (rejected,) = source.rejected
    assert rejected.reason.startswith(reason)
    assert (rejected.file, rejected.line) == ("kafka:t/3", 101)
    assert shown is None or rejected.event == shown
