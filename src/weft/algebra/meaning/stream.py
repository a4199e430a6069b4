"""What happens: the events of the input, and those that queries derive; and the order in which a query sees them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from weft.algebra.meaning.functions import is_number
from weft.algebra.meaning.values import EventDict, attribute_of
from weft.schema import Catalog, EventType, Kind

STREAM = "stream"


@dataclass(frozen=True, eq=False)
class Happening:
    """An event of the input, or a derived event. Two happenings are never equal, whatever they are made of.

    `positions` are those of the input events it is made of: its own for an input event. `position` is its position in
    the input: a derived event is at the last input event that ends when it ends or before. `place` is its place among
    all events that the current query sees. `unshown` are the attributes that are its type and times.
    """

    type: str | None
    stream: str | None
    start: int
    end: int
    positions: tuple[int, ...]
    attributes: EventDict
    position: int = 0
    place: int = 0
    is_derived: bool = False
    unshown: frozenset[str] = frozenset()

    @property
    def shown(self) -> list[str]:
        """The attributes that `SELECT *` shows, in order: not its type and times."""
        return sorted(name for name in self.attributes if name not in self.unshown)

    @property
    def first(self) -> int:
        """The first position it is made of; what is made of no events (an absence) is distinguished by its times."""
        return min(self.positions, default=self.start)

    @property
    def last(self) -> int:
        """The last position it is made of, else its end."""
        return max(self.positions, default=self.end)

    def is_before(self, other: Happening) -> bool:
        """Whether it has ended when the other starts."""
        return self.end < other.start


def in_places(seen: Iterable[Happening]) -> list[Happening]:
    """What a query sees, in the order given."""
    return [replace(event, place=place) for place, event in enumerate(seen)]


def positions_of(events: Iterable[Happening]) -> tuple[int, ...]:
    """The positions of the input events that some are made of, ascending."""
    return tuple(sorted({position for event in events for position in event.positions}))


Stream = Sequence[Happening]


def place(
    events: Sequence[EventDict], catalog: Catalog, time: str, type_name: str, unshown: Iterable[str] = ()
) -> list[Happening]:
    """The readable events of the input in stream order: by end, then start, then arrival."""
    timed = [(times, event) for event in events if (times := times_of(event, time)) is not None]
    typed = [(times, event) for times, event in timed if _text(event, type_name) is not None]
    readable = [(times, event) for times, event in typed if _fits(event, catalog, type_name)]
    ordered = sorted(readable, key=lambda pair: (pair[0][1], pair[0][0]))
    hidden = frozenset({time, type_name, "start", "end", *unshown})
    return [
        Happening(
            _text(event, type_name),
            stream_of(event),
            start,
            end,
            (position,),
            event,
            position,
            position,
            unshown=hidden,
        )
        for position, ((start, end), event) in enumerate(ordered)
    ]


def times_of(event: EventDict, time: str) -> tuple[int, int] | None:
    """Start and end of an event: twice its instant, or without one its `start` and `end`; None when it has neither."""
    names = ("start", "end") if attribute_of(event, time) is None else (time, time)
    start, end = (_integer(event, name) for name in names)
    return (start, end) if start is not None and end is not None and start <= end else None


def _fits(event: EventDict, catalog: Catalog, type_name: str) -> bool:
    """Whether the attributes are of the declared kinds, by one of the declarations that may be meant."""
    declarations = list(_declarations(catalog, _text(event, type_name), stream_of(event)))
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


def stream_of(event: EventDict) -> str | None:
    """The stream that an event names."""
    return _text(event, STREAM)


def _text(event: EventDict, name: str) -> str | None:
    value = attribute_of(event, name)
    return value if isinstance(value, str) else None


def _integer(event: EventDict, name: str) -> int | None:
    value = attribute_of(event, name)
    return int(value) if is_number(value) and math.isfinite(value) and value == int(value) else None
