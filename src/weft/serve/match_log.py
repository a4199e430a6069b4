"""The last matches of a server, by number and id, as Arrow rows; lines of JSON are made when somebody asks for them."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import pyarrow as pa

from weft.runtime.data.shape import MATCH_SCHEMA
from weft.runtime.writing.match_lines import json_lines

SMALL = 256  # rows: pieces with fewer are put together


class LoggedMatch(NamedTuple):
    """One match in the log: its query, its id and its line of JSON."""

    query: str
    id: str
    line: bytes


@dataclass
class Piece:
    """Matches that came together, the first of which has this number; `made`: their entries, if anybody asked."""

    first: int
    rows: pa.RecordBatch
    made: list[LoggedMatch] | None = None

    @property
    def end(self) -> int:
        """The number after the last."""
        return self.first + len(self.rows)

    @property
    def entries(self) -> list[LoggedMatch]:
        """The matches, one by one."""
        if self.made is None:
            self.made = entries_of(self.rows)
        return self.made


class MatchLog:
    """A bounded log of matches, numbered from 0 on."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._pieces: deque[Piece] = deque()
        self._small = 0  # pieces at the end that have few rows
        self._first = self._next = 0
        self._numbers: dict[str, int] = {}  # by id, of the pieces before `_indexed`
        self._indexed = 0

    def append(self, rows: pa.RecordBatch) -> Piece:
        """Keep rows of MATCH_SCHEMA, and forget the oldest beyond the limit."""
        piece = Piece(self._next, rows)
        self._next = piece.end
        self._pieces.append(piece)
        self._small = self._small + 1 if len(rows) < SMALL else 0
        if self._small == SMALL:
            self._join_small()
        self._first = max(self._first, self._next - self._most)
        while self._pieces and self._pieces[0].end <= self._first:
            self._forget(self._pieces.popleft())
        self._small = min(self._small, len(self._pieces))
        return piece

    def _join_small(self) -> None:
        """Put the small pieces at the end together: each takes more memory than its rows."""
        parts = [self._pieces.pop() for _ in range(self._small)][::-1]
        (whole,) = pa.Table.from_batches([part.rows for part in parts]).combine_chunks().to_batches()
        known = all(part.made is not None for part in parts)
        self._pieces.append(
            Piece(parts[0].first, whole, [e for part in parts for e in part.entries] if known else None)
        )
        self._small = 0

    def _forget(self, piece: Piece) -> None:
        if piece.first < self._indexed:
            for at, id_ in enumerate(piece.rows["id"].to_pylist(), piece.first):
                if self._numbers.get(id_) == at:
                    del self._numbers[id_]

    def number_of(self, id: str) -> int | None:
        """The number of the match with an id, or None if it is not known, or not any more."""
        for piece in self._since(self._indexed):
            self._numbers.update(zip(piece.rows["id"].to_pylist(), range(piece.first, piece.end), strict=True))
        self._indexed = self._next
        number = self._numbers.get(id)
        return None if number is None or number < self._first else number

    def entries(self, begin: int = 0) -> list[LoggedMatch]:
        """The matches from a number on."""
        begin = max(begin, self._first)
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
        """The id of the last match; empty if there is none."""
        return str(self._pieces[-1].rows["id"][-1]) if self._pieces else ""

    @property
    def table(self) -> pa.Table:
        """All of it."""
        whole = pa.Table.from_batches([piece.rows for piece in self._pieces], MATCH_SCHEMA)
        return whole.slice(len(whole) - (self._next - self._first)).combine_chunks()


def entries_of(rows: pa.RecordBatch) -> list[LoggedMatch]:
    """Rows of MATCH_SCHEMA as entries."""
    lines = bytes(json_lines(rows)).split(b"\n")
    return list(map(LoggedMatch, rows["query"].to_pylist(), rows["id"].to_pylist(), lines))
