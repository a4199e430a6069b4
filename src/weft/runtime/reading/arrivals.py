"""Live sources: each is read by a separate thread, and all are merged into stream order."""

from __future__ import annotations

import queue
import threading
import time
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Any

import numpy as np

from weft.errors import DataWarning
from weft.runtime.data.events import EventBatch, Rejected
from weft.runtime.reading.chunks import Chunk, chunks_of, dict_chunk, makes_chunks
from weft.runtime.reading.fronts import MAX_JUMP, jump_ticks
from weft.runtime.reading.order import EventSource, Reading
from weft.runtime.reading.shown import as_dicts
from weft.runtime.reading.sources import NamedSource, with_defaults
from weft.runtime.reading.stabilise import END, Late, Stabiliser

ROOM = 65536  # events of a source that may be queued for the merge
REPORT_SILENCE_AFTER_S = 60.0  # seconds until a silent source is reported
AHEAD = 1 << 20  # events of a source that may wait for slower ones before it is asked to pause


@dataclass(frozen=True)
class Heartbeat:
    """Sent instead of an event: this source will send no event that ends before `time`."""

    time: int


@dataclass(frozen=True)
class Ended:
    """The last item of a reader: the error that ended its source, or None at its regular end."""

    failure: BaseException | None = None


class Reader:
    """Reads one source in a thread, with a bounded number of queued events."""

    def __init__(self, source: NamedSource, inbox: queue.SimpleQueue[tuple[str, Any, int]]) -> None:
        self.source = source
        self._inbox = inbox
        self._room = threading.Condition()
        self._queued = 0
        self._stopped = False
        threading.Thread(target=self._read, name=f"weft source {source.name}", daemon=True).start()

    def _read(self) -> None:
        failure = None
        try:
            for item in self.source.items or ():
                size = len(item) if hasattr(item, "__len__") and not isinstance(item, Mapping) else 1
                with self._room:
                    self._room.wait_for(lambda: self._queued < ROOM or self._stopped)
                    if self._stopped:
                        return
                    self._queued += size
                self._inbox.put((self.source.name, item, size))
        except BaseException as error:  # any error is raised where the events are read
            failure = error
        self._inbox.put((self.source.name, Ended(failure), 0))

    def make_room(self, size: int) -> None:
        """Release the space of `size` events that were taken from the queue."""
        with self._room:
            self._queued -= size
            self._room.notify()

    def stop(self) -> None:
        """Stop reading."""
        with self._room:
            self._stopped = True
            self._room.notify()


class Silence:
    """Warns once of each silence of a source that holds back events of others."""

    def __init__(self, names: Iterable[str], clock: Callable[[], float]) -> None:
        self._clock = clock
        self._last_heard: dict[str, float | None] = dict.fromkeys(names, clock())  # None: reported already

    def hear(self, name: str) -> None:
        """Record that a source sent something."""
        self._last_heard[name] = self._clock()

    def warn(self, merge: Stabiliser, open_: Iterable[str]) -> None:
        """Warn about sources that hold back events."""
        now = self._clock()
        for name in open_:
            last, held = self._last_heard[name], merge.held_by(name)
            if last is not None and now - last >= REPORT_SILENCE_AFTER_S and held:
                self._last_heard[name] = None
                text = f"the source {name!r} has sent nothing for {now - last:,.0f} s, and {held:,} events of others"
                text += " wait for it: idle_after=SECONDS waits no longer than that"
                warnings.warn(text, DataWarning, stacklevel=2)


class LiveEvents:
    """Named sources as one stream in stream order, batch by batch as the order becomes final; it can be read once.

    A finite source is sorted first. Events that could not be read, or were late, are in `rejected`.
    """

    is_live = True
    longest: int | None = None

    def __init__(
        self,
        sources: Sequence[NamedSource],
        reading: Reading,
        *,
        delay: int = 0,
        idle_after: float | Mapping[str, float] | None = None,
        max_jump: float | None = MAX_JUMP,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.reading = reading
        self.rejected: list[Rejected] = []
        self.counters: dict[str, int] = {"events": 0, "rejected": 0}
        self.safe: int | None = None
        self._sources = {source.name: source for source in sources}
        self._inputs = {name: EventSource(list, reading) for name in self._sources}
        names = list(self._sources)
        self._clock = clock
        jump = jump_ticks(max_jump, reading.time_unit)
        self._merge = Stabiliser(
            names, types=reading.sources, delay=delay, idle_after=idle_after, clock=clock, jump=jump
        )

    def __iter__(self) -> Iterator[EventBatch]:
        inbox: queue.SimpleQueue[tuple[str, Any, int]] = queue.SimpleQueue()
        readers = {name: Reader(source, inbox) for name, source in self._sources.items() if source.items is not None}
        owed = dict.fromkeys(readers, 0)
        open_ = set(readers)
        silence = Silence(readers, self._clock)
        watched = any(map(self._merge.always_awaited, readers))
        try:
            self._take_whole()
            while open_:
                for name, items, size in come_by_now(inbox, self._patience(watched)):
                    silence.hear(name)
                    owed[name] += size
                    if isinstance(items[-1], Ended):
                        open_.discard(name)
                    self._take(name, items)
                yield from self._release()
                silence.warn(self._merge, filter(self._merge.always_awaited, open_))
                for name in open_:
                    if self._merge.ahead(name) <= AHEAD:
                        readers[name].make_room(owed[name])
                        owed[name] = 0
                    else:
                        self._merge.hear(name)  # it is silent because it was paused
        finally:
            for reader in readers.values():
                reader.stop()
        yield from self._release()

    def _patience(self, watched: bool) -> float | None:
        """Return for how many seconds to wait for events before a source counts as idle, or None for ever."""
        until_idle = self._merge.patience()
        if not watched:
            return until_idle
        return REPORT_SILENCE_AFTER_S if until_idle is None else min(REPORT_SILENCE_AFTER_S, until_idle)

    def _take_whole(self) -> None:
        """Pass the finite sources to the merge."""
        for name, source in self._sources.items():
            if source.chunks is not None:
                whole = EventSource(source.whole, self.reading)
                for batch in whole:
                    self._merge.push(name, batch)
                self._reject(whole.rejected)
                self._merge.close(name)

    def _take(self, name: str, items: Sequence[Any]) -> None:
        for kind, group in groupby(items, type):
            if kind is Heartbeat:
                for beat in group:
                    self._merge.heartbeat(name, beat.time)
            elif kind is Ended:
                for ended in group:
                    self._merge.close(name)
                    if ended.failure is not None:
                        raise ended.failure
            else:
                for chunk in chunks_of_items(list(group), self.reading):
                    self._push(name, chunk)

    def _push(self, name: str, chunk: Chunk) -> None:
        source = self._inputs[name]
        first = source.row
        segment = source.read(with_defaults(chunk, self._sources[name].defaults))
        self._reject(source.rejected)
        source.rejected.clear()
        if len(segment):
            rows = np.arange(len(segment)) if segment.keep is None else segment.keep
            self._merge.push(name, replace(segment.events(self.reading), positions=rows + first))

    def _release(self) -> Iterator[EventBatch]:
        before = self._merge.safe
        batch = self._merge.release()
        for late in self._merge.take_late():
            self._reject(_late(late, self.reading))
        self.counters["events"] += len(batch)
        if self._merge.safe > before:
            # When all sources have ended there is nothing to wait for.
            self.safe = None if self._merge.safe == END else self._merge.safe
            yield batch

    def _reject(self, rejected: Iterable[Rejected]) -> None:
        self.rejected += rejected
        self.counters["rejected"] = len(self.rejected)


def come_by_now(
    inbox: queue.SimpleQueue[tuple[str, Any, int]], patience: float | None
) -> Iterator[tuple[str, list[Any], int]]:
    """Return the items that have arrived from each source, in order, and their number of events; wait for the first."""
    came: dict[str, tuple[list[Any], list[int]]] = {}
    try:
        name, item, size = inbox.get(timeout=patience)
        while True:
            items, sizes = came.setdefault(name, ([], []))
            items.append(item)
            sizes.append(size)
            name, item, size = inbox.get_nowait()
    except queue.Empty:
        pass
    return ((name, items, sum(sizes)) for name, (items, sizes) in came.items())


def chunks_of_items(items: list[Any], reading: Reading) -> Iterator[Chunk]:
    """Convert items of one kind to chunks: single events, lists of events, or tables."""
    if makes_chunks(type(items[0])):
        for item in items:
            yield from item.chunks(reading.time_unit)
    elif isinstance(items[0], list | tuple):
        yield dict_chunk([event for item in items for event in item], reading.time_unit)
    elif hasattr(items[0], "columns") or hasattr(items[0], "__arrow_c_stream__"):
        for item in items:
            yield from chunks_of(item, reading.batch_size, reading.time_unit)
    else:
        yield dict_chunk(items, reading.time_unit)


def _late(late: Late, reading: Reading) -> Iterator[Rejected]:
    events = late.events
    for at, event in enumerate(as_dicts(events, reading)):
        reason = (
            f"late: it ends at {events.ends[at]}, and its source {late.source} had come to {late.passed[at]} already"
        )
        yield Rejected(int(events.positions[at]), reason, event)
