"""Convert events to dicts for explanations of why they are in no match."""

from __future__ import annotations

from collections.abc import Iterator

from weft.runtime.data.events import STREAM, EventBatch
from weft.runtime.reading.order import Reading
from weft.runtime.reading.times import END, START


def as_dicts(events: EventBatch, reading: Reading) -> Iterator[dict[str, object]]:
    """Return each event as far as it was read, with the names of the input."""
    for at in range(len(events)):
        start, end = int(events.starts[at]), int(events.ends[at])
        event: dict[str, object] = {reading.type: events.types[at].as_py()}
        event |= {reading.time: end} if start == end else {START: start, END: end}
        if events.streams is not None and events.streams[at].is_valid:
            event[STREAM] = events.streams[at].as_py()
        values = {name: column.value(at) for name, column in events.columns.items() if name not in event}
        yield event | {name: value for name, value in values.items() if value is not None}
