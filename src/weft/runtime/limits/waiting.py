"""A bounded queue of events to be matched: when it is full, the oldest are dropped unread.

Only events whose loss never adds a match are dropped. They leave a gap: the remaining events keep their numbers in the
stream, so that windows counted in events end where they should.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.errors import UsageError
from weft.runtime.data.events import Int64s

Rows = Any  # a list of dicts, an Arrow batch or table
Risky = Collection[str] | None  # types of events that must not be left out; None: all


@dataclass(frozen=True)
class Piece:
    """Events that were pushed together, or the remaining ones of them."""

    events: Rows
    pushed: int  # how many there were
    numbers: Int64s | None = None  # which of the pushed these are; None: all

    def thinned(self, risky: Risky, type: str) -> Piece:
        """Return only the events that must not be dropped."""
        rows = _rows_of(self.events, risky, type)
        if isinstance(self.events, list) or not len(rows):
            return Piece([self.events[row] for row in rows], self.pushed, rows)
        return Piece(self.events.take(pa.array(rows)), self.pushed, rows)


class Waiting:
    """Pieces in the order of arrival."""

    def __init__(self, type: str = "type") -> None:
        self.count = 0  # events
        self.left_out = 0  # in all
        self._type = type
        self._thin: deque[Piece] = deque()  # what is left of the oldest
        self._whole: deque[Piece] = deque()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is queued, not even a gap."""
        return not self._thin and not self._whole

    def add(self, events: Rows) -> None:
        """Append events to the queue."""
        self._whole.append(Piece(events, len(events)))
        self.count += len(events)

    def shrink(self, room: int, risky: Risky) -> None:
        """Drop the oldest events while the queue is too long."""
        while self.count > room and self._whole and risky is not None:
            before = self._whole.popleft()
            after = before.thinned(risky, self._type)
            gone = len(before.events) - len(after.events)
            self.count -= gone
            self.left_out += gone
            if self._thin and not len(self._thin[-1].events) and not len(after.events):
                after = Piece([], self._thin.pop().pushed + after.pushed, after.numbers)  # one gap, however long
            self._thin.append(after)

    def take(self, most: int) -> list[Piece]:
        """Return the oldest pieces, with about `most` events."""
        taken: list[Piece] = []
        count = 0
        while (self._thin or self._whole) and (not taken or count < most):
            piece = (self._thin or self._whole).popleft()
            count += len(piece.events)
            taken.append(piece)
        self.count -= count
        return taken


def joined(pieces: Iterable[Piece]) -> tuple[list[Any], Int64s | None, int]:
    """Return the events of all pieces, their numbers (None if consecutive), and how many were pushed."""
    events: list[Any] = []
    numbers: list[Int64s] = []
    total, gaps = 0, False
    for piece in pieces:
        gaps |= piece.numbers is not None
        own = np.arange(len(piece.events)) if piece.numbers is None else piece.numbers
        numbers.append(own + total)
        total += piece.pushed
        events += piece.events if isinstance(piece.events, list) else [piece.events]
    return events, np.concatenate(numbers) if gaps else None, total


def as_rows(events: Any) -> Rows:
    """Convert pushed events to the form of the queue."""
    if isinstance(events, dict):
        return [events]
    if isinstance(events, pa.RecordBatch | pa.Table):
        return events
    if isinstance(events, list | tuple) and set(map(type, events)).isdisjoint((pa.RecordBatch, pa.Table)):
        return list(events)
    raise UsageError("through a queue go dicts, lists of them and Arrow tables: for other events leave `queue` out")


def _rows_of(events: Rows, risky: Risky, type: str) -> Int64s:
    """Return the events of these types, and those without a type."""
    if not risky:
        return np.arange(len(events) if risky is None else 0)
    if isinstance(events, list):
        found = [row for row, event in enumerate(events) if _is_risky(event, risky, type)]
        return np.array(found, np.int64)
    try:
        given = events.column(type).cast(pa.string())
    except (KeyError, pa.ArrowException):  # who reads them says what is wrong
        return np.arange(len(events))
    return np.flatnonzero(np.asarray(pc.or_(pc.is_in(given, pa.array(list(risky))), pc.is_null(given))))


def _is_risky(event: Any, risky: Collection[str], type: str) -> bool:
    name = event.get(type) if isinstance(event, dict) else None
    return not isinstance(name, str) or name in risky
