"""From dictionaries in arrival order to a stream: which events can be read, and in which order they stand."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.algebra.meaning.values import EventDict, attribute_of, is_number
from weft.schema import Catalog, EventType, Kind

STREAM = "stream"


@dataclass(frozen=True)
class Placed:
    """An event with its times and its position in the whole stream."""

    position: int
    start: int
    end: int
    type: str | None
    stream: str | None
    attributes: EventDict


def place(events: Sequence[EventDict], catalog: Catalog, time: str, type_name: str) -> list[Placed]:
    """The readable events in stream order: by end, then start, then arrival."""
    timed = [(times, event) for event in events if (times := times_of(event, time)) is not None]
    typed = [(times, event) for times, event in timed if _text(event, type_name) is not None]
    readable = [(times, event) for times, event in typed if _fits(event, catalog, type_name)]
    ordered = sorted(readable, key=lambda pair: (pair[0][1], pair[0][0]))
    return [
        Placed(position, start, end, _text(event, type_name), _text(event, STREAM), event)
        for position, ((start, end), event) in enumerate(ordered)
    ]


def times_of(event: EventDict, time: str) -> tuple[int, int] | None:
    """Start and end of an event: twice its instant, or without one its `start` and `end`; None when it has neither."""
    names = ("start", "end") if attribute_of(event, time) is None else (time, time)
    start, end = (_integer(event, name) for name in names)
    return (start, end) if start is not None and end is not None and start <= end else None


def _fits(event: EventDict, catalog: Catalog, type_name: str) -> bool:
    """Whether the attributes are of the declared kinds, by one of the declarations that may be meant."""
    declarations = list(_declarations(catalog, _text(event, type_name), _text(event, STREAM)))
    return not declarations or any(
        all(_is_kind(event, name, kind) for name, kind in declared.attributes) for declared in declarations
    )


def _declarations(catalog: Catalog, type_name: str | None, stream: str | None) -> Iterable[EventType]:
    declared = catalog.stream_named(stream) if stream is not None else None
    candidates = declared.types if declared is not None else catalog.all_types()
    return (candidate for candidate in candidates if candidate.name == type_name)


def _is_kind(event: EventDict, name: str, kind: Kind) -> bool:
    value = attribute_of(event, name)
    if value is None:
        return event.get(name) is None or isinstance(event.get(name), float)
    match kind:
        case Kind.BOOL:
            return isinstance(value, bool)
        case Kind.TEXT:
            return isinstance(value, str)
        case Kind.FLOAT:
            return is_number(value)
        case Kind.INT:
            return is_number(value) and math.isfinite(value) and value == int(value)


def _text(event: EventDict, name: str) -> str | None:
    value = attribute_of(event, name)
    return value if isinstance(value, str) else None


def _integer(event: EventDict, name: str) -> int | None:
    value = attribute_of(event, name)
    return int(value) if is_number(value) and math.isfinite(value) and value == int(value) else None
