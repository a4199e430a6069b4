"""Keyed sequences of events on their own kernel: batches in, matching sets out."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.algebra.policies import Repeated
from weft.algebra.situations import SituationQuery
from weft.kernels.situations import keyed as kernel
from weft.kernels.situations.keyed_sets import Rows, Sets
from weft.plan.keyed import KeyedSequence
from weft.runtime.classify.classifier import Classifier, Predicates
from weft.runtime.classify.layer_keys import Keys
from weft.runtime.data.buffers import room, writable
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.data.matches import MatchBatch
from weft.runtime.machine.code import Code
from weft.runtime.operators.event_store import Columns
from weft.runtime.operators.fields import Fields
from weft.runtime.operators.situations.members import Members
from weft.runtime.operators.situations.report import fields_of_sets
from weft.runtime.store.pages import Array, Pages, pages_below, pages_under
from weft.runtime.store.size import older_half

SETS = 1 << 14  # in one piece of output
LEAST_ROWS = 1 << 12
LASTING = Rows._fields[:4]  # saved columns of rows; the others concern the current event
_PICKS = {Repeated.EVERY: kernel.EACH, Repeated.FIRST: kernel.EARLIEST, Repeated.LAST: kernel.LATEST}


def rows_of_size(size: int) -> Rows:
    """Allocate empty rows."""
    positions, starts, ends, ways = np.zeros((4, size), np.int64)
    after, down = np.zeros((2, size), np.int32)
    return Rows(positions, starts, ends, after, np.zeros(size, np.int8), down, ways)


def grown(rows: Rows, size: int) -> Rows:
    """Return a copy of the rows with more space."""
    more = rows_of_size(size - len(rows.next))
    columns: Iterator[Any] = zip(rows, more, strict=True)
    return Rows(*map(np.concatenate, columns))


class KeyedRun:
    """Execution of a situation that is a keyed sequence."""

    def __init__(self, query: SituationQuery, sequence: KeyedSequence, predicates: Predicates, keys: Keys) -> None:
        self.query = query
        self._sequence = sequence
        self._names = tuple((name,) for name in query.situation.variables)
        self._width = len(sequence.guards)
        self._where = self._width - 1, sequence.step
        self._sizes = (1, 1, self._width)  # words of a set in each output array
        self._classifier = Classifier([sequence.guards], predicates)
        self._slot_of_letter = np.empty(0, np.int8)
        self._key = keys.use(tuple((name,) for name in sequence.key), self) if sequence.key else None
        self._control = np.zeros(kernel.CONTROLS, np.int64)
        self._control[[kernel.FREE, kernel.DEPTH]] = kernel.NONE
        picks = np.array([_PICKS[repeated] for repeated in sequence.repeated], np.int8)
        self._query = kernel.Query(np.array(sequence.consumes, np.int8), picks, sequence.length, sequence.step)
        self._search = kernel.Search(np.zeros(self._width, np.int32), np.zeros(self._width, np.int64))
        self._rows = rows_of_size(LEAST_ROWS)
        self._heads = np.empty(0, np.int32)
        self._least = np.empty(0, np.int64)
        self._windows = np.empty(0, np.int64)
        self._out = self._empty_sets()
        self._offsets = np.arange(0, SETS * self._width + 1, self._width, dtype=np.int64)
        self._labels = np.tile(np.arange(self._width, dtype=np.int32), SETS)
        self._fields = Fields(query.fields)
        # With fields, rows have numbers of members instead of positions.
        self._members = Members(Columns(self._fields.attributes), Code(), self._fields.attributes)
        self._sweep_members_at = LEAST_ROWS
        self.last: int | None = None
        self._grow_keys(1)

    # -- events ---------------------------------------------------------------------------------

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Emit the matches of a batch, in pieces, by end."""
        for found in self._run(batch, counting=False):
            yield self._report(found)
        self._sweep()

    def count(self, batch: EventBatch) -> int:
        """Return the number of matches of a batch."""
        total = sum(self._run(batch, counting=True))
        self._sweep()
        return total

    def _run(self, batch: EventBatch, *, counting: bool) -> Iterator[int]:
        """Run the kernel over a batch, and yield the number of sets each time the output has some."""
        slots, keys = self._prepared(batch)
        numbers = self._numbers(batch, slots)
        self.last = int(batch.ends[-1])
        self._control[kernel.EVENT] = 0
        starts, ends = writable(batch.starts), writable(batch.ends)
        events = kernel.Events(slots, keys, starts, ends, writable(numbers))
        while True:
            status = kernel.advance_sequences(
                events, self._query, self._control, self._chains, self._rows, self._search, self._out, counting
            )
            found, self._control[kernel.FOUND] = int(self._control[kernel.FOUND]), 0
            if found:
                yield found
            if status == kernel.DONE:
                return
            if status == kernel.GROW:
                self._rows = grown(self._rows, 2 * len(self._rows.next))

    def _prepared(self, batch: EventBatch) -> tuple[npt.NDArray[np.int8], npt.NDArray[np.int32]]:
        """Return the slot and the key of each event."""
        letters = self._classifier.letters(batch)[0]
        for letter in range(len(self._slot_of_letter), self._classifier.letter_count(0)):
            truths = self._classifier.truths(0, letter)
            slot = truths.index(True) if True in truths else -1
            self._slot_of_letter = np.append(self._slot_of_letter, np.int8(slot))
        slots = self._slot_of_letter[letters]
        if self._key is None:
            return slots, np.zeros(len(batch), np.int32)
        keys = self._key.code(batch)
        self._grow_keys(self._key.capacity)
        return slots, keys

    def _numbers(self, batch: EventBatch, slots: npt.NDArray[np.int8]) -> Int64s:
        """Return the numbers of events: their positions, or with output fields their numbers in the store."""
        if not self._fields:
            return batch.positions
        numbers = np.full(len(batch), -1, np.int64)
        chosen = np.flatnonzero(slots >= 0)
        first = self._members.add(batch, chosen)
        numbers[chosen] = np.arange(first, first + len(chosen))
        return numbers

    @property
    def _chains(self) -> kernel.Chains:
        return kernel.Chains(self._heads, self._least, self._windows)

    def _grow_keys(self, keys: int) -> None:
        have = len(self._windows)
        if keys > have:
            more = max(keys, 2 * have) - have
            kept = self._width - 1
            self._heads = np.concatenate([self._heads, np.full(more * kept, kernel.NONE, np.int32)])
            self._least = np.concatenate([self._least, np.full(more * kept, kernel.NEVER, np.int64)])
            self._windows = np.concatenate([self._windows, np.full(more, kernel.NEVER, np.int64)])

    def _report(self, found: int) -> MatchBatch:
        starts, ends, positions = self._taken(found)
        fields = {}
        if self._fields:
            sets = positions.reshape(found, self._width)
            fields = fields_of_sets(self._fields, self._members, self.query.situation.variables, sets)
            positions = self._members.places(positions)
        return MatchBatch(
            query=self.query.name,
            names=self._names,
            starts=starts,
            ends=ends,
            offsets=self._offsets[: found + 1],
            positions=positions,
            labels=self._labels[: found * self._width],
            fields=fields,
        )

    def _taken(self, found: int) -> Sets:
        """Return the sets in the output, whose buffer is then reused or replaced."""
        parts: Iterator[Any] = zip(self._out, self._sizes, strict=True)
        sets = Sets(*(part[: found * size] for part, size in parts))
        if 2 * found > SETS:
            self._out = self._empty_sets()
            return sets
        return Sets(*(part.copy() for part in sets))

    def _empty_sets(self) -> Sets:
        return Sets(*(room(SETS * size, np.int64) for size in self._sizes))

    # -- stored events ---------------------------------------------------------------------------

    def _live_keys(self) -> npt.NDArray[np.bool_]:
        """Return which keys have rows in the open partition."""
        chains = self._heads.reshape(-1, self._width - 1) >= 0
        current = self._control[kernel.WINDOW] if self._sequence.step else 0
        live: npt.NDArray[np.bool_] = chains.any(axis=1) & (self._windows == current)
        return live

    @property
    def waiting(self) -> int:
        """The number of keys with events in the open partition."""
        return int(self._live_keys().sum())

    def oldest(self) -> int | None:
        """Return the first position of an event in the open partition, or None."""
        numbers = self._rows.positions[self._live_rows()]
        positions = self._members.places(numbers) if self._fields else numbers
        return int(positions.min()) if len(positions) else None

    def _live_rows(self) -> Int64s:
        """Return the rows of the open partition."""
        rows = np.empty(int(self._control[kernel.TOP]), np.int64)
        return rows[: kernel.find_rows(*self._where, self._control, self._chains, self._rows, rows)]

    def live_slots(self, capacity: int) -> npt.NDArray[np.bool_]:
        """See `KeyUser`."""
        live = self._live_keys()[:capacity]
        return np.append(live, np.zeros(capacity - len(live), bool))

    def clear_slots(self, slots: npt.NDArray[np.int32]) -> None:
        """See `KeyUser`."""
        self._windows[slots[slots < len(self._windows)]] = kernel.NEVER

    def drop_oldest(self, limit: int) -> int:
        """Evict the older half of the rows if they take more than half of `limit` bytes; return how many."""
        rows = self._live_rows()
        each = sum(column.itemsize for column in self._rows) + self._members.bytes_of_each
        dropped = rows[older_half(self._rows.ends[rows], each, limit)]
        if len(dropped):
            self._rows.used[dropped] = 1
            kernel.free_used(*self._where, self._control, self._chains, self._rows)
            self._sweep_members_at = 0
            self._sweep()
        return len(dropped)

    def _sweep(self) -> None:
        """Release events without rows when there are many."""
        if len(self._members) > self._sweep_members_at:
            rows = self._rows.positions[: int(self._control[kernel.TOP])]  # free ones among them are harmless
            live = np.zeros(len(self._members), bool)
            live[rows] = True
            rows[:] = self._members.keep(live)[rows]
            self._sweep_members_at = max(LEAST_ROWS, 2 * len(self._members))

    # -- state ----------------------------------------------------------------------------------

    def small(self) -> dict[str, bytes]:
        """Return the small parts of the state as pages."""
        last = json.dumps(self.last).encode()
        return {"last": last, **pages_under("members/", self._members.small())}

    def arrays(self) -> dict[str, Array]:
        """Return the other parts of the state as arrays."""
        top = int(self._control[kernel.TOP])
        return {
            "control": self._control,
            "heads": self._heads,
            "least": self._least,
            "windows": self._windows,
            **{f"rows/{name}": getattr(self._rows, name)[:top] for name in LASTING},
            **{f"members/{name}": array for name, array in self._members.arrays().items()},
        }

    def load(self, saved: Mapping[str, bytes]) -> None:
        """Restore the state from pages."""
        pages = Pages(saved)
        self.last = json.loads(saved["last"])
        self._control, self._heads = pages.numbers("control"), pages.array("heads", np.int32)
        self._least, self._windows = pages.numbers("least"), pages.numbers("windows")
        top = int(self._control[kernel.TOP])
        self._rows = rows_of_size(max(LEAST_ROWS, 2 * top))
        for name in LASTING:
            column = getattr(self._rows, name)
            column[:top] = pages.array(f"rows/{name}", column.dtype.type)
        self._members.load(Pages(pages_below("members/", saved)))
