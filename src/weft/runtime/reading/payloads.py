"""Events from JSON payloads: each record of a topic is one event."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from weft.runtime.reading.chunks import Chunk
from weft.runtime.reading.json_blocks import arrow_block, parse_event
from weft.runtime.reading.kinds import columns_of_dicts

SHOWN = 1 << 14  # bytes of an unreadable payload that a reject shows
NO_PAYLOAD = "no payload: the record is a tombstone"
Place = Callable[[int], tuple[str, int]]


def payload_chunk(payloads: Sequence[bytes | None], place: Place, time_unit: str, texts: set[str]) -> Chunk:
    """Convert payloads to events, one each; an unreadable one is a row with a problem that its reject shows.

    `place` is where a row comes from. `texts` collects the columns whose texts Arrow would read as times.
    """
    known = [payload for payload in payloads if payload]
    block = b"\n".join(known) + b"\n"
    if len(known) == len(payloads) and block.count(b"\n") == len(payloads):
        read = arrow_block(block, "", 1, time_unit, texts)
        if read is not None and read.length == len(payloads):

            def event(row: int) -> dict[str, Any]:
                return dict(json.loads(known[row]))

            return Chunk(read.length, read.names, read.column, event, place=place, form="rows")
    return _one_by_one(payloads, place, time_unit)


def _one_by_one(payloads: Sequence[bytes | None], place: Place, time_unit: str) -> Chunk:
    problems: dict[int, str] = {}
    events: list[dict[str, Any]] = []
    for row, payload in enumerate(payloads):
        event, problem = ({}, NO_PAYLOAD) if payload is None else parse_event(payload)
        if problem is not None:
            problems[row] = problem
        events.append(event)
    names = dict.fromkeys(name for event in events for name in event)

    def shown(row: int) -> dict[str, Any] | None:
        payload = payloads[row]
        if row not in problems:
            return events[row]
        return None if payload is None else {"payload": payload[:SHOWN].decode(errors="replace")}

    return Chunk(
        len(events),
        names,
        lambda name: columns_of_dicts(events, [name], time_unit)[name],
        shown,
        problems=problems,
        place=place,
        form="rows",
    )
