"""What a timeline shows: the first matches, the events that they are made of, and some of those around."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, timedelta
from itertools import islice
from typing import Any

import numpy as np

from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.reading.kinds import NANOSECONDS
from weft.runtime.reading.order import Reading
from weft.runtime.reading.times import END, EPOCH, START

MOST_MATCHES = 20
MOST_EVENTS = 200
Row = Mapping[str, Any]  # a match as it is in a table of results
Moment = int | float | datetime


@dataclass(frozen=True)
class SceneEvent:
    """An event: its place in the stream, when it began and ended (None: not known), and what it says."""

    position: int
    start: Moment | None = None
    end: Moment | None = None
    type: str | None = None
    attributes: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True)
class SceneMatch:
    """A match: when it was, the positions of each variable, the events they show, and the event that it makes."""

    query: str
    start: object
    end: object
    bindings: Mapping[str, Sequence[int]]
    variables: Mapping[str, Sequence[Mapping[str, object]]]
    event: object

    @property
    def positions(self) -> list[int]:
        """Where its events are, each once."""
        return sorted({position for own in self.bindings.values() for position in own})


@dataclass(frozen=True)
class Scene:
    """The first matches, their total number, and the events to show by position, with neighbouring events."""

    matches: tuple[SceneMatch, ...]
    total: int
    events: Mapping[int, SceneEvent]

    @property
    def matched(self) -> set[int]:
        """The positions of the events of matches, also of those that are not shown."""
        return {position for match in self.matches for position in match.positions}


def scene_of(rows: Iterable[Row], total: int, time: str = "ts", type: str = "type") -> Scene:
    """What rows of results say themselves, of `total` that there are."""
    matches = tuple(_found(row) for row in islice(rows, MOST_MATCHES))
    events: dict[int, SceneEvent] = {}
    for match in matches:
        for seen in _shown(match, time, type):
            known = events.get(seen.position)
            if known is None:
                if len(events) < MOST_EVENTS:
                    events[seen.position] = seen
            elif known.end is None or len(known.attributes) < len(seen.attributes):
                events[seen.position] = seen
    return Scene(matches, total, events)


def with_events(scene: Scene, batches: Iterable[EventBatch], reading: Reading) -> Scene:
    """The scene with its events as the input has them, and those between them; of no match, the first events."""
    if not scene.matches:
        return Scene((), scene.total, _first(batches, reading))
    if not scene.events:
        return scene
    wanted = np.array(sorted(scene.events), np.int64)
    room = MOST_EVENTS - len(wanted)
    events: dict[int, SceneEvent] = {}
    for batch in batches:
        chosen = _chosen(batch.positions, wanted, room)
        room -= len(chosen) - int(np.isin(batch.positions[chosen], wanted).sum())
        events |= {seen.position: seen for seen in _seen(batch, chosen, reading)}
        if len(batch) and batch.positions[-1] > wanted[-1]:
            break
    return Scene(scene.matches, scene.total, {**scene.events, **events})


def _first(batches: Iterable[EventBatch], reading: Reading) -> dict[int, SceneEvent]:
    """Return the first events of an input."""
    events: dict[int, SceneEvent] = {}
    for batch in batches:
        chosen = np.arange(min(len(batch), MOST_EVENTS - len(events)))
        events |= {seen.position: seen for seen in _seen(batch, chosen, reading)}
        if len(events) >= MOST_EVENTS:
            break
    return events


def _chosen(positions: Int64s, wanted: Int64s, room: int) -> Int64s:
    """Return which events of a batch are shown: the wanted ones, and some neighbours before and after them."""
    others = np.flatnonzero((positions >= wanted[0] - 1) & (positions <= wanted[-1] + 1) & ~np.isin(positions, wanted))
    return np.sort(np.concatenate([np.flatnonzero(np.isin(positions, wanted)), others[: max(room, 0)]]))


def _seen(batch: EventBatch, chosen: Int64s, reading: Reading) -> Iterator[SceneEvent]:
    rows = [{}] * len(chosen) if batch.rows is None else batch.rows.take(chosen).to_pylist()
    for at, row in zip(chosen.tolist(), rows, strict=True):
        times = int(batch.starts[at]), int(batch.ends[at])
        given = row.get(reading.time, row.get(END))
        start, end = (_date(t, reading.time_unit) for t in times) if isinstance(given, date | str) else times
        hidden = {reading.time, reading.type, START, END}
        shown = {name: value for name, value in row.items() if name not in hidden and value is not None}
        yield SceneEvent(int(batch.positions[at]), start, end, batch.types[at].as_py(), shown)


def _date(ticks: int, unit: str) -> Moment:
    try:
        return EPOCH + timedelta(microseconds=ticks * NANOSECONDS[unit] // 1000)
    except OverflowError:
        return ticks


# -- from rows of results ---------------------------------------------------------------------------


def _found(row: Row) -> SceneMatch:
    shown, event = row.get("variables"), row.get("event")
    shown = shown if isinstance(shown, Mapping) else {}
    return SceneMatch(
        str(row.get("query")),
        row.get("start"),
        row.get("end"),
        {str(name): [int(at) for at in own] for name, own in _pairs(row.get("bindings"))},
        {str(name): list(own) for name, own in shown.items() if own is not None},
        _read(event) if isinstance(event, str) else event,
    )


def _pairs(bindings: Any) -> Iterable[tuple[object, Sequence[int]]]:
    """Variables with positions, however a kind of table writes maps."""
    if isinstance(bindings, Mapping):
        return bindings.items()
    entries = () if bindings is None else bindings
    return [(item["key"], item["value"]) if isinstance(item, Mapping) else tuple(item) for item in entries]


def _read(text: str) -> object:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _shown(match: SceneMatch, time: str, type: str) -> Iterator[SceneEvent]:
    """Yield the events of a match, with their times where known; the first and last have the match's times."""
    ends = {}
    if match.positions:
        ends = {match.positions[0]: moment_of(match.start), match.positions[-1]: moment_of(match.end)}
    for name, positions in match.bindings.items():
        events = match.variables.get(name, [{}] * len(positions))
        for position, event in zip(positions, events, strict=False):
            start = moment_of(event.get(time, event.get(START)))
            end = moment_of(event.get(time, event.get(END)))
            kind = event.get(type)
            yield SceneEvent(
                position,
                ends.get(position) if start is None else start,
                ends.get(position) if end is None else end,
                None if kind is None else str(kind),
                {key: value for key, value in event.items() if key not in (time, type, START, END)},
            )


def moment_of(value: object) -> Moment | None:
    """Return when something was: a time with a zone, or a number; None if the value is neither."""
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return value if isinstance(value, int | float) and value == value else None
