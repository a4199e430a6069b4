"""The last matches of a server, by number and id, as columns; rows and lines of JSON are made when somebody asks."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple, Self

import pyarrow as pa

from weft.runtime.data.matches import MatchBatch
from weft.runtime.data.shape import MATCH_SCHEMA
from weft.runtime.writing.match_lines import json_lines
from weft.runtime.writing.match_rows import to_record_batches

SMALL = 256  # rows: pieces with fewer are put together
BEGINNING = "0"  # what precedes the first match of all


class LoggedMatch(NamedTuple):
    """One match in the log: its query, its id and its line of JSON."""

    query: str
    id: str
    line: bytes


class Piece:
    """Matches that arrived together, numbered from `first`; rows and entries are built on demand."""

    def __init__(self, first: int, columns: Sequence[MatchBatch] = (), query_order: Sequence[str] = ()) -> None:
        self.first = first
        self.end = first + sum(map(len, columns))  # the number after the last
        self._columns, self._order = columns, query_order
        self._rows: list[pa.RecordBatch] | None = None
        self._entries: list[LoggedMatch] | None = None

    @classmethod
    def of_rows(cls, first: int, rows: pa.RecordBatch, entries: list[LoggedMatch] | None = None) -> Self:
        """Create a piece of rows of MATCH_SCHEMA."""
        piece = cls(first)
        piece.end = first + len(rows)
        piece._rows, piece._entries = [rows], entries
        return piece

    def __len__(self) -> int:
        return self.end - self.first

    @property
    def rows(self) -> list[pa.RecordBatch]:
        """The matches as rows of MATCH_SCHEMA, in match order."""
        if self._rows is None:
            self._rows = list(to_record_batches(self._columns, self._order))
            self._columns = ()
        return self._rows

    @property
    def ids(self) -> list[str]:
        """Return their ids, in order."""
        return [id_ for rows in self.rows for id_ in rows["id"].to_pylist()]

    @property
    def has_entries(self) -> bool:
        """Whether anybody asked for the entries."""
        return self._entries is not None

    @property
    def entries(self) -> list[LoggedMatch]:
        """The matches, one by one."""
        if self._entries is None:
            self._entries = [entry for rows in self.rows for entry in entries_of(rows)]
        return self._entries


class MatchLog:
    """A bounded log of matches, which are numbered; `first` is the number of the oldest."""

    def __init__(self, most: int, first: int = 0) -> None:
        self.first = first
        self._most = most
        self._pieces: deque[Piece] = deque()
        self._small = 0  # pieces at the end that have few rows
        self._next = first
        self._numbers: dict[str, int] = {}  # by id, of the pieces before `_indexed`
        self._indexed = first

    def append(self, columns: Sequence[MatchBatch], query_order: Sequence[str]) -> Piece:
        """Add matches, and remove the oldest beyond the limit."""
        return self._append(Piece(self._next, columns, query_order))

    def append_rows(self, rows: pa.RecordBatch) -> Piece:
        """Add rows of MATCH_SCHEMA, as `append` does."""
        return self._append(Piece.of_rows(self._next, rows))

    def _append(self, piece: Piece) -> Piece:
        self._next = piece.end
        self._pieces.append(piece)
        self._small = self._small + 1 if len(piece) < SMALL else 0
        if self._small == SMALL:
            self._join_small()
        self.first = max(self.first, self._next - self._most)
        while self._pieces and self._pieces[0].end <= self.first:
            self._forget(self._pieces.popleft())
        self._small = min(self._small, len(self._pieces))
        return piece

    def _join_small(self) -> None:
        """Join the small pieces at the end, each of which takes more memory than its rows."""
        parts = [self._pieces.pop() for _ in range(self._small)][::-1]
        (whole,) = pa.Table.from_batches([rows for part in parts for rows in part.rows]).combine_chunks().to_batches()
        entries = [e for part in parts for e in part.entries] if all(part.has_entries for part in parts) else None
        self._pieces.append(Piece.of_rows(parts[0].first, whole, entries))
        self._small = 0

    def _forget(self, piece: Piece) -> None:
        if piece.first < self._indexed:
            for at, id_ in enumerate(piece.ids, piece.first):
                if self._numbers.get(id_) == at:
                    del self._numbers[id_]

    def number_of(self, id: str) -> int | None:
        """The number of the match with an id, or None if it is not known, or not any more; -1 for the beginning."""
        if id == BEGINNING:
            return -1 if self.first == 0 else None
        for piece in self._since(self._indexed):
            self._numbers.update(zip(piece.ids, range(piece.first, piece.end), strict=True))
        self._indexed = self._next
        number = self._numbers.get(id)
        return None if number is None or number < self.first else number

    def entries(self, begin: int = 0) -> list[LoggedMatch]:
        """The matches from a number on."""
        begin = max(begin, self.first)
        return [entry for piece in self._since(begin) for entry in piece.entries[max(0, begin - piece.first) :]]

    def _since(self, begin: int) -> Iterator[Piece]:
        """The pieces that have a match with this number, or a later one."""
        found = []
        for piece in reversed(self._pieces):
            if piece.end <= begin:
                break
            found.append(piece)
        return reversed(found)

    @property
    def last_id(self) -> str:
        """The id of the last match, after which a subscriber can resume."""
        return str(self._pieces[-1].rows[-1]["id"][-1]) if self._pieces else BEGINNING

    @property
    def table(self) -> pa.Table:
        """Return all entries as a table."""
        whole = pa.Table.from_batches([rows for piece in self._pieces for rows in piece.rows], MATCH_SCHEMA)
        return whole.slice(len(whole) - (self._next - self.first)).combine_chunks()


def entries_of(rows: pa.RecordBatch) -> list[LoggedMatch]:
    """Convert rows of MATCH_SCHEMA to entries."""
    lines = bytes(json_lines(rows)).split(b"\n")
    return list(map(LoggedMatch, rows["query"].to_pylist(), rows["id"].to_pylist(), lines))
