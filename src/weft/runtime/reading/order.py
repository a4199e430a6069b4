"""From a user's data to batches in stream order: reads times, sets unreadable events aside, assigns positions."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, TypedDict, Unpack

import numpy as np
import pyarrow as pa

from weft.errors import InputError, UsageError, did_you_mean
from weft.plan.properties import ALL_FIELDS
from weft.runtime.data import blocks
from weft.runtime.data.events import SHOWN, STREAM, Column, EventBatch, Int64s, Rejected
from weft.runtime.reading.chunks import Chunk, chunks_of
from weft.runtime.reading.kinds import NANOSECONDS, check_time_unit
from weft.runtime.reading.readable import check_keys, check_kinds, check_texts, check_types
from weft.runtime.reading.ties import FINE_END, FINE_START, as_ranks, tie_keys, without_fine
from weft.runtime.reading.times import END, START, fine_of, read_times
from weft.schema import Catalog

_NO_RANKS = np.empty(0, np.int64)


@dataclass(frozen=True)
class Reading:
    """Options that control how events are read; see `read_events`."""

    time: str = "ts"
    type: str = "type"
    catalog: Catalog = field(default_factory=Catalog)
    time_unit: str = "ms"
    batch_size: int = blocks.PUSHED
    columns: frozenset[str] | None = None
    ordered: bool = False
    sources: tuple[str, ...] = ()  # types in the order of their sources, which decides between equal times
    since: tuple[int, int] | None = None  # an end and a start: events before them in stream order come too late
    until: int | None = None  # events that end later are too far ahead to be true
    order: tuple[str, ...] = ()  # columns that decide between equal times
    key: tuple[str, ...] = ()  # columns from which ids are computed; an event without one of them is rejected
    shown: frozenset[str] | None = frozenset()  # columns that results show as the input has them; None: all
    all_fields: bool = False  # matches show all attributes but those of types and times: see `SHOWN`

    def __post_init__(self) -> None:
        check_time_unit(self.time_unit)
        if self.batch_size < 1:
            raise UsageError(f"batch_size must be at least 1, not {self.batch_size}")

    @property
    def needed(self) -> frozenset[str] | None:
        """The columns that must be read, or None for all."""
        if self.columns is None or self.shown is None or self.all_fields:
            return None
        declared = {name for kind in self.catalog.all_types() for name, _ in kind.attributes}
        read = {self.time, START, END, self.type, STREAM, *self.order, *self.key}
        return self.columns | self.shown | declared | read


@dataclass
class Segment:
    """Readable events of one chunk with their times; their columns are built on demand."""

    chunk: Chunk
    starts: Int64s
    ends: Int64s
    keep: Int64s | None  # rows that are events; None: all
    _fine: dict[str, Int64s] | None = None
    _made: EventBatch | None = None

    def __len__(self) -> int:
        return len(self.ends)

    @property
    def longest(self) -> int:
        """The length of the longest event."""
        return 0 if self.starts is self.ends else int((self.ends - self.starts).max())

    def release(self, reading: Reading) -> None:
        """Build the columns now, and release the input: dicts take several times as much memory."""
        self._made = self.events(reading)
        self.chunk = Chunk(0, (), lambda _: Column(), lambda _: None)

    def events(self, reading: Reading) -> EventBatch:
        """Return the events, without positions."""
        if self._made is not None:
            return self._made
        names = self.chunk.names if reading.columns is None else reading.columns.union(reading.order, reading.key)
        rows = None if self.keep is None else pa.array(self.keep)

        def kept(column: Column) -> Column:
            return column if rows is None else column.map(lambda array: array.take(rows))

        columns = {name: kept(self.chunk.column(name)) for name in names if self.chunk.has(name)}
        columns |= {name: kept(Column(numbers=pa.array(fine))) for name, fine in self.fine(reading).items()}
        if reading.all_fields:
            hidden = {reading.time, reading.type, START, END}
            own = (name for name in self.chunk.names if name not in hidden)
            columns |= {SHOWN + name: columns.get(name) or kept(self.chunk.column(name)) for name in own}
        streams = kept(self.chunk.column(STREAM)).texts
        types = kept(self.chunk.column(reading.type)).texts
        return EventBatch(
            types=pa.nulls(0, pa.string()) if types is None else types,
            starts=self.starts,
            ends=self.ends,
            positions=np.zeros(len(self), np.int64),
            columns=columns,
            streams=streams,
            rows=self._rows(reading, rows),
        )

    def fine(self, reading: Reading) -> dict[str, Int64s]:
        """Return by how much times are after their ticks, for all rows, or nothing if they are not."""
        if self._fine is None:
            instants = reading.time in self.chunk.names
            places = {FINE_END: reading.time} if instants else {FINE_END: END, FINE_START: START}
            columns = {name: self.chunk.column(place) for name, place in places.items()}
            found = {name: fine_of(c, self.chunk.length, reading.time_unit) for name, c in columns.items()}
            self._fine = {name: fine for name, fine in found.items() if fine is not None}
        return self._fine

    def _rows(self, reading: Reading, kept: pa.Array | None) -> pa.RecordBatch | None:
        """Return the events as the input has them if results show them."""
        if reading.shown is not None and not reading.shown:
            return None
        whole = self.chunk.rows(reading.shown)
        return whole if kept is None else whole.take(kept)


class EventSource:
    """Events in stream order, batch by batch. Unreadable events are in `rejected` once all are read."""

    is_live = False  # whether events are matched as they arrive
    safe: int | None = None  # time follows from the events alone
    longest: int | None = None  # ticks of the longest event; None: it is not known ahead
    keep_fine = False  # whether events keep what is left of times that are finer than ticks

    def __init__(self, chunks: Callable[[], Iterable[Chunk]], reading: Reading, passing: bool = False) -> None:
        self.reading = reading
        self.passing = passing  # whether the dicts that are read are not referenced elsewhere
        self.first = 0  # the position of the first event
        self.rejected: list[Rejected] = []
        self.counters: dict[str, int] = {"events": 0, "rejected": 0}
        self.row = 0  # rows of the input that have been read
        self.late_ends: list[int] = []  # of the events that are late after those before this source
        self._chunks = chunks

    def __iter__(self) -> Iterator[EventBatch]:
        self.rejected.clear()
        self.counters.update(events=0, rejected=0)
        self.row = 0
        segments = self._segments()
        position = self.first
        for batch in self._streamed(segments) if self.reading.ordered else self._sorted(list(segments)):
            positions = np.arange(position, position + len(batch))
            position += len(positions)
            self.counters["events"] = position - self.first
            yield replace(batch if self.keep_fine else without_fine(batch), positions=positions)

    def continued(self, first: int, since: tuple[int, int] | None) -> EventSource:
        """Return this source as a continuation: its first position, and the end and start of the preceding event."""
        self.first, self.reading = first, replace(self.reading, since=since)
        return self

    def _segments(self) -> Iterator[Segment]:
        for chunk in self._chunks():
            segment = self.read(chunk)
            if self.passing and not chunk.tabular:
                segment.release(self.reading)
            del chunk  # before the next is read
            if len(segment):
                yield segment

    def read(self, chunk: Chunk) -> Segment:
        """Return the events of the next chunk of the input."""
        reading = self.reading
        if chunk.tabular:
            _check_columns(chunk.names, reading)
        first_row = self.row
        self.row += chunk.length
        starts, ends, problems = read_times(
            chunk.column(reading.time),
            chunk.column(START),
            chunk.column(END),
            chunk.length,
            (reading.time, START, END),
            reading.time_unit,
        )
        if reading.since is not None:
            problems.update(late := _late(starts, ends, reading.since, problems))
            self.late_ends += ends[list(late)].tolist()
        if reading.until is not None:
            problems.update(_ahead(ends, reading.until, problems))
        problems.update(chunk.problems)
        check_texts(chunk, reading.needed, problems)
        check_types(chunk, reading.type, problems)
        check_kinds(chunk, reading.type, reading.catalog, problems)
        check_keys(chunk, reading.key, problems)
        if not problems:
            return Segment(chunk, starts, ends, None)
        for row in sorted(problems):
            self._reject(first_row + row, problems[row], chunk, row)
        keep = np.setdiff1d(np.arange(chunk.length), np.fromiter(problems, np.int64))
        ends_kept = ends[keep]
        return Segment(chunk, ends_kept if starts is ends else starts[keep], ends_kept, keep)

    def _reject(self, row: int, reason: str, chunk: Chunk, place: int) -> None:
        file, line = chunk.place(place) if chunk.place else (None, None)
        self.rejected.append(Rejected(row, reason, chunk.row(place), file, line))
        self.counters["rejected"] += 1

    def _sorted(self, segments: list[Segment]) -> Iterator[EventBatch]:
        """Return all events in stream order; those that are sorted already are not copied."""
        self.longest = max((s.longest for s in segments), default=0)
        in_time = all(ordered(s.starts, s.ends) for s in segments) and all(_after(b, a) for a, b in pairwise(segments))
        if in_time and not self._has_ties(segments):
            segments.reverse()
            yield from self._sized(segments.pop().events(self.reading) for _ in range(len(segments)))
            return
        batch = blocks.concat(segment.events(self.reading) for segment in segments)
        segments.clear()
        keys = tie_keys(batch, self.reading.sources, self.reading.order, NANOSECONDS[self.reading.time_unit])
        order = stream_order(batch.starts, batch.ends, None if keys is None else as_ranks(keys))
        for first in range(0, len(order), self.reading.batch_size):
            yield blocks.take(batch, order[first : first + self.reading.batch_size])

    def _has_ties(self, segments: list[Segment]) -> bool:
        """Whether events with adjacent equal times are ordered by more than their arrival."""
        reading = self.reading
        if not segments or not (
            reading.sources or reading.order or any(True for s in segments for _ in s.fine(reading))
        ):
            return False
        starts = np.concatenate([segment.starts for segment in segments])
        ends = np.concatenate([segment.ends for segment in segments])
        return bool(((starts[1:] == starts[:-1]) & (ends[1:] == ends[:-1])).any())

    def _sized(self, batches: Iterable[EventBatch]) -> Iterator[EventBatch]:
        """Join small batches, and split large ones, to about the wanted size."""
        size = self.reading.batch_size
        return blocks.joined((piece for whole in batches for piece in blocks.pieces(whole, size)), size)

    def _streamed(self, segments: Iterable[Segment]) -> Iterator[EventBatch]:
        """Yield events on arrival, from an input that promises stream order."""
        last = None
        for segment in segments:
            if not ordered(segment.starts, segment.ends) or (last is not None and not _after(segment, last)):
                raise InputError(
                    "the events are not in stream order (by end, then start), as ordered=True promises: "
                    "leave it out to have them sorted"
                )
            last = segment
            yield from blocks.pieces(segment.events(self.reading), self.reading.batch_size)


class Given(TypedDict, total=False):
    """Reading options as users pass them; see `read_events`."""

    time: str
    type: str
    catalog: Catalog | None
    time_unit: str
    batch_size: int
    columns: Collection[str] | None
    ordered: bool
    sources: Sequence[str]
    order: Sequence[str]
    key: Sequence[str]
    shown: Collection[str] | None
    all_fields: bool


def reading_of(**given: Unpack[Given]) -> Reading:
    """Return the reading options, with defaults for those not given."""
    usual = Reading()
    columns, shown = given.get("columns", usual.columns), given.get("shown", usual.shown)
    return Reading(
        given.get("time", usual.time),
        given.get("type", usual.type),
        given.get("catalog") or usual.catalog,
        given.get("time_unit", usual.time_unit),
        given.get("batch_size", usual.batch_size),
        None if columns is None else frozenset(columns) - {ALL_FIELDS},
        given.get("ordered", usual.ordered),
        tuple(given.get("sources", usual.sources)),
        order=tuple(given.get("order", usual.order)),
        key=tuple(given.get("key", usual.key)),
        shown=None if shown is None else frozenset(shown),
        all_fields=given.get("all_fields", columns is not None and ALL_FIELDS in columns),
    )


def read_events(data: Any, **given: Unpack[Given]) -> EventSource:
    """Read events in stream order from dicts, Arrow tables or batches, pandas or Polars frames.

    The time is an integer in the column `time`, or `start` and `end`; dates and timestamps become ticks of `time_unit`.
    Events without a readable time or a type, or with a declared attribute of another kind, are rejected. `columns`
    limits the attributes that are read. All input is read before the first batch, to sort it, unless `ordered` promises
    stream order. Events with equal times are ordered by the place of their type in `sources`, then by the columns of
    `order`. Events without a value in one of the columns of `key` are rejected. Batches include the columns `shown`
    (None: all) as the input has them.
    """
    return source_of(data, reading_of(**given))


def source_of(data: Any, reading: Reading) -> EventSource:
    """Create the same source from a `Reading`."""
    if isinstance(data, EventSource):
        return data
    spent = False

    def chunks() -> Iterator[Chunk]:
        nonlocal spent
        if spent:
            raise UsageError("these events have been read already: an iterator gives them only once")
        spent = isinstance(data, (Iterator, pa.RecordBatchReader))
        return chunks_of(data, reading.batch_size, reading.time_unit)

    return EventSource(chunks, reading, passing=not isinstance(data, Sequence))


# What to do if a column is missing: the caller says which columns have times and types.
NAME_TYPE = "say which it is: --type NAME (type= in Python); or give all one type: --events 'file:FILE?type=NAME'"
NAME_BOTH = NAME_TYPE.replace("it is: --type NAME (type=", "they are: --time NAME --type NAME (time=, type=")
NAME_TIME = "say which it is: --time NAME (time= in Python)"


def _check_columns(names: Collection[str], reading: Reading) -> None:
    missing = cure = None
    lacks_time = reading.time not in names and not (START in names and END in names)
    if reading.type not in names:
        also = f", and none {reading.time!r} for their time" if lacks_time else ""
        missing = f"no column {reading.type!r} for the type of events{also}"
        wanted, cure = reading.type, NAME_BOTH if lacks_time else NAME_TYPE
    elif lacks_time:
        missing = f"no column {reading.time!r} for the time of events, nor {START!r} and {END!r}"
        wanted, cure = reading.time, NAME_TIME
    elif lost := next((name for name in reading.order if name not in names), None):
        missing, wanted = f"no column {lost!r} to order by", lost
    elif lost := next((name for name in reading.key if name not in names), None):
        missing, wanted = f"no column {lost!r} to make ids of", lost
    if missing:
        hint = did_you_mean(wanted, names) or ""
        there = f"the columns are {', '.join(names)}" if names else "there are no columns"
        told = [missing, there, *([hint] if hint.startswith("did") else []), *([cure] if cure and names else [])]
        raise InputError("; ".join(told))


def ordered(starts: Int64s, ends: Int64s) -> bool:
    """Whether these times are in stream order."""
    if starts is ends:
        return bool((ends[1:] >= ends[:-1]).all())
    tied = (ends[1:] == ends[:-1]) & (starts[1:] >= starts[:-1])
    return bool(((ends[1:] > ends[:-1]) | tied).all())


def _late(starts: Int64s, ends: Int64s, since: tuple[int, int], unread: Collection[int]) -> dict[int, str]:
    """Return the rows that are too late, and why; those without a time are known as unread."""
    end, start = since
    late = np.flatnonzero((ends < end) | ((ends == end) & (starts < start)))
    return {int(row): f"late: it ends at {ends[row]}, and time has come to {end}" for row in late if row not in unread}


def _ahead(ends: Int64s, until: int, unread: Collection[int]) -> dict[int, str]:
    """Return the rows that are ahead of the clock by more than is allowed."""
    why = f"by this machine's clock nothing after {until} is believed: is the time unit right?"
    rows = [int(row) for row in np.flatnonzero(ends > until) if row not in unread]
    return {row: f"ahead: it ends at {ends[row]}, and {why} (--time-unit, --max-ahead)" for row in rows}


def _after(later: Segment, earlier: Segment) -> bool:
    return (int(later.ends[0]), int(later.starts[0])) >= (int(earlier.ends[-1]), int(earlier.starts[-1]))


def stream_order(starts: Int64s, ends: Int64s, ranks: Int64s | None = None) -> Int64s:
    """Return the order by end, start, rank of the source, and arrival."""
    return merged_order(starts, ends, ranks, [0], [len(ends)])


def merged_order(
    starts: Int64s, ends: Int64s, ranks: Int64s | None, begins: Sequence[int], stops: Sequence[int]
) -> Int64s:
    """Return the places of the events in ranges, each of which ascends, in stream order."""
    # Spark's processes that only plan know how events are read: they can do without the kernels.
    from weft.kernels.events.merge import order_of, words_of
    from weft.runtime.data.buffers import fixed

    ranges = np.array([begins, stops])
    if not len(ends):
        return np.empty(0, np.int64)
    known = _NO_RANKS if ranks is None else ranks
    words, place_bits, bits = words_of(fixed(ends), fixed(starts), known, ranges[0], ranges[1])
    if len(words):
        return order_of(words, place_bits, bits)
    places = np.concatenate([np.arange(begin, stop) for begin, stop in zip(begins, stops, strict=True)])
    keys = (starts, ends) if ranks is None else (ranks, starts, ends)
    return places[np.lexsort([key[places] for key in keys])]
