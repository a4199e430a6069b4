"""Identities of the events that later matches may contain."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.errors import UsageError
from weft.kernels.matches.identify import identify_events
from weft.runtime.data import blocks
from weft.runtime.data.buffers import fixed
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.identity.chunks import Attributes, Chunk, Identities, Instant, UInt64s, bare
from weft.runtime.store.pages import FOREIGN, Array, Growing, Pages, Paging

LEAST = 1 << 12  # fewer events are not worth a chunk of their own, nor a look at which still matter
_MANY = 64  # batches that are not left to wait
_ABOUT, _ROWS = "about", "rows"


class EventIdentities:
    """Chunks of events, oldest first, looked up and released by position; small batches are merged."""

    def __init__(self) -> None:
        self._wanted: dict[Attributes, None] = {}
        self._names: frozenset[str] = frozenset()
        self._chunks: list[Chunk] = []
        self._fresh: list[EventBatch] = []
        self._last: Instant | None = None
        self._count = 0  # events ever kept
        self._key: tuple[str, ...] = ()
        self._stored_key: tuple[str, ...] | None = None
        self._look_at = LEAST  # so many events are worth a look at which still matter
        self._is_shared = False  # whether others have its chunks, or it those of others: these stay whole
        self._paging = Paging()

    def identify_by(self, key: tuple[str, ...]) -> None:
        """Identify all events by these attributes, if any; refuse state identified by different ones."""
        if self._stored_key is not None and self._stored_key != key:
            raise UsageError(FOREIGN)
        self._key = key
        self._wanted.clear()

    def want(self, attributes: Iterable[Attributes]) -> None:
        """Identify events by these attributes, too, from now on."""
        self._wanted |= dict.fromkeys(attributes)
        self._names = frozenset(name for own in self._wanted for name in (*own.names, *own.alike))

    def add(self, batch: EventBatch) -> None:
        """Add the events of a batch, which follow all earlier ones."""
        if not len(batch):
            return
        columns = {name: column for name, column in batch.columns.items() if name in self._names}
        self._fresh.append(EventBatch(batch.types, batch.starts, batch.ends, batch.positions, columns))
        self._count += len(batch)
        if len(batch) >= LEAST or len(self._fresh) > _MANY:
            self._settle()

    def chunks_of(self, positions: Int64s) -> tuple[Chunk, ...]:
        """Return the chunks with events at ascending positions."""
        self._settle()
        self._is_shared = True
        low, high = positions[0], positions[-1]
        return tuple(chunk for chunk in self._chunks if chunk.positions[-1] >= low and chunk.positions[0] <= high)

    def share(self, chunks: Iterable[Chunk]) -> None:
        """Look events up in chunks of other lanes, too."""
        self._is_shared = True
        new = [chunk for chunk in chunks if not any(chunk is own for own in self._chunks)]
        self._chunks += new
        self._count += sum(map(len, new))

    def _settle(self) -> None:
        """Move new events into a chunk."""
        if self._fresh:
            chunk = Chunk(blocks.concat(self._fresh), self._last)
            self._last = chunk.last_instant()
            self._chunks.append(chunk)
            self._fresh = []

    def __len__(self) -> int:
        return sum(map(len, self._chunks)) + sum(map(len, self._fresh))

    def forget(self, oldest: Callable[[], int | None], *, least: int | None = None) -> None:
        """Release the events before a position (None: all) if they are many, as finding it takes time.

        `least`: release them if they are at least this many.
        """
        if len(self) < (self._look_at if least is None else least):
            return
        self._settle()
        first = oldest()
        kept = [] if first is None else [chunk for chunk in self._chunks if chunk.positions[-1] >= first]
        if kept and first is not None and not self._is_shared:
            kept[0] = kept[0].since(first)
        self._chunks = kept
        self._look_at = max(LEAST, 2 * len(self))

    def of(self, positions: Int64s, attributes: Attributes) -> tuple[UInt64s, UInt64s]:
        """Return two halves of the identities of the events at ascending positions."""
        self._settle()
        high, low, left = identities_in(self._chunks, positions, attributes)
        if left.any():  # of states that earlier versions saved: positions must do
            own = fixed(positions[left])
            words = [np.empty(len(own), np.uint64) for _ in range(2)]
            identify_events(fixed(np.zeros(len(own), np.uint64)), own, own, fixed(np.zeros(len(own), np.int64)), *words)
            high[left], low[left] = words
        return high, low

    # -- state ----------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages that changed since the last snapshot, or None for a deleted page."""
        self._settle()
        last = self._last
        words = [] if last is None else [last.words(own).tolist() for own in self._wanted]
        about = [self._key, list(self._wanted), None if last is None else last.times, words]
        return self._paging.changes({_ABOUT: json.dumps(about).encode()}, growing=[self._growing()])

    def _growing(self) -> Growing:
        return Growing(_ROWS, self._count - len(self), self._count, self._packed)

    def _packed(self, low: int, high: int) -> bytes:
        """Return the events with these numbers, counted since the start of the stream."""
        at, parts = self._count - len(self), list[pa.RecordBatch]()
        for chunk in self._chunks:
            begin, end = max(low - at, 0), min(high - at, len(chunk))
            if begin < end:
                columns: dict[str, Array] = {"p": chunk.positions, "s": chunk.starts, "e": chunk.ends}
                for attributes in self._wanted:
                    found, name = chunk.identities(attributes), json.dumps(attributes)
                    columns |= {f"w{name}": found.words, f"r{name}": found.ranks}
                parts.append(pa.record_batch({name: pa.array(part[begin:end]) for name, part in columns.items()}))
            at += len(chunk)
        return blocks.packed_rows(pa.concat_batches(parts)) if parts else b""

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from the pages of snapshots."""
        if _ABOUT not in pages:  # of an earlier version
            return
        key, wanted, times, words = json.loads(pages[_ABOUT])
        self._stored_key = tuple(key)
        stored = [Attributes(tuple(names), tuple(alike)) for names, alike in wanted]
        if times is not None:
            known = {own: np.array(part, np.uint64) for own, part in zip(stored, words, strict=True)}
            self._last = Instant((times[0], times[1]), None, None, known)
        self._chunks, self._fresh = [], []
        saved = [(first, page) for first, page in Pages(pages).numbered(_ROWS) if page]
        for _, page in saved:
            self._chunks.append(_chunk(blocks.unpacked_rows(page), stored))
        self._chunks = _joined(self._chunks, stored)
        self._count = saved[-1][0] + len(blocks.unpacked_rows(saved[-1][1])) if saved else 0
        self._paging.load(pages, [self._growing()])


def identities_in(
    chunks: Iterable[Chunk], positions: Int64s, attributes: Attributes
) -> tuple[UInt64s, UInt64s, npt.NDArray[np.bool_]]:
    """Return two halves of the identities of events at ascending positions, and which are in no chunk."""
    high, low = np.empty(len(positions), np.uint64), np.empty(len(positions), np.uint64)
    left = np.ones(len(positions), bool)
    for chunk in chunks:
        begin, end = np.searchsorted(positions, [chunk.positions[0], chunk.positions[-1] + 1])
        rows = chunk.rows_of(positions[begin:end])
        here = begin + np.flatnonzero(rows >= 0)
        if len(here):
            rows = rows[rows >= 0]
            found = chunk.identities(attributes, rows)
            if not found.known[rows].all():  # events of others, which are not identified by these
                here, rows = here[found.known[rows]], rows[found.known[rows]]
            high[here], low[here], left[here] = found.high[rows], found.low[rows], False
    return high, low, left


def known_chunk(events: EventBatch, ids: Mapping[Attributes, tuple[UInt64s, UInt64s]]) -> Chunk:
    """Create a chunk of events with known identities."""
    nothing, known = np.zeros(len(events), np.int64), np.ones(len(events), bool)
    words = nothing.astype(np.uint64)
    return Chunk(events, None, {own: Identities(*both, words, nothing, known) for own, both in ids.items()})


def _chunk(rows: pa.RecordBatch, stored: list[Attributes]) -> Chunk:
    """Restore the events of a page."""
    positions, starts, ends = (np.asarray(rows[name]) for name in "pse")
    known: dict[Attributes, Identities] = {}
    for attributes in stored:
        name = json.dumps(attributes)
        if f"w{name}" not in rows.schema.names:  # of a query that came later
            continue
        words, ranks = np.asarray(rows[f"w{name}"]), np.asarray(rows[f"r{name}"])
        high, low = np.empty(len(rows), np.uint64), np.empty(len(rows), np.uint64)
        identify_events(fixed(words), fixed(starts), fixed(ends), fixed(ranks), high, low)
        known[attributes] = Identities(high, low, words, ranks, np.ones(len(rows), bool))
    return Chunk(bare(positions, starts, ends), None, known)


def _joined(chunks: list[Chunk], stored: list[Attributes]) -> list[Chunk]:
    """All events in one chunk."""
    if len(chunks) < 2 or not stored:
        return chunks
    times = (np.concatenate([getattr(chunk, name) for chunk in chunks]) for name in ("positions", "starts", "ends"))
    known = {
        own: Identities(*(np.concatenate(parts) for parts in zip(*(c.identities(own) for c in chunks), strict=True)))
        for own in stored
    }
    return [Chunk(bare(*times), None, known)]
