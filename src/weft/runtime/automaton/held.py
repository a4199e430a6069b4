"""Matches that are not certain when they end: another that starts before may skip them, or an event may spoil them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.chains import SkipTo
from weft.algebra.query import Query
from weft.plan.automaton.cea import UNLESS
from weft.runtime.matches import MatchBatch

Int32s = npt.NDArray[np.int32]
Names = tuple[tuple[str, ...], ...]
_TIMES = ("starts", "ends", "firsts", "lasts")
_FIELD = "field:"


@dataclass(frozen=True, order=True)
class _Candidate:
    """A match at work, in the order in which skipping considers them; `part` and `row` are its place."""

    first: int
    last: int
    positions: tuple[int, ...]
    bindings: tuple[tuple[str, tuple[int, ...]], ...]
    labels: tuple[int, ...]
    slot: int
    part: int
    row: int


class HeldMatches:
    """Matches of one query, held until no earlier start and no later event can change whether they count."""

    def __init__(self, query: Query, names: Names) -> None:
        self._query = query
        self._names = names
        self._spoiling = names.index((UNLESS,)) if (UNLESS,) in names else -1
        self._parts: list[tuple[MatchBatch, Int32s]] = []  # with the partition of each match
        # By partition: the least place at which a match may still start, and the key from which on it does anyway.
        self._floors: dict[int, tuple[int, int]] = {}

    @property
    def safe(self) -> int | None:
        """The earliest end of a match that may come out later."""
        return min((int(part.ends.min()) for part, _ in self._parts), default=None)

    @property
    def oldest(self) -> int | None:
        """The first position of a match that may come out later."""
        return min((int(part.firsts.min()) for part, _ in self._parts if part.firsts is not None), default=None)

    def add(self, found: MatchBatch, slots: Int32s) -> None:
        """Matches, and their partitions."""
        self._parts.append((found, slots))

    def release(self, horizon: int | None) -> Iterator[MatchBatch]:
        """The matches to report of those that start before a horizon (None: all): no other will start there."""
        due = [self._is_due(part, horizon) for part, _ in self._parts]
        if not any(mask.any() for mask in due):
            return
        parts = self._parts
        kept = sorted(self._choose(self._candidates(due)), key=lambda c: (c.part, c.last, c.row))
        left = [(part, slots, np.flatnonzero(~mask)) for (part, slots), mask in zip(parts, due, strict=True)]
        self._parts = [(part.take(rows), slots[rows]) for part, slots, rows in left if len(rows)]
        if horizon is not None:
            self._floors = {slot: floor for slot, floor in self._floors.items() if floor[1] >= horizon}
        for number, (part, _) in enumerate(parts):
            rows = np.array([c.row for c in kept if c.part == number], np.int64)
            if len(rows):
                yield part.take(rows)

    def _is_due(self, part: MatchBatch, horizon: int | None) -> npt.NDArray[np.bool_]:
        if horizon is None:
            return np.ones(len(part), bool)
        keys = part.firsts if self._counts_events and part.firsts is not None else part.starts
        return np.asarray(keys < horizon)

    @property
    def _counts_events(self) -> bool:
        return self._query.window is not None and self._query.window.unit == "events"

    def _candidates(self, due: list[npt.NDArray[np.bool_]]) -> list[_Candidate]:
        """The matches that are due and not spoilt, in order."""
        found: list[_Candidate] = []
        for number, ((part, slots), mask) in enumerate(zip(self._parts, due, strict=True)):
            if part.firsts is None or part.lasts is None:
                raise AssertionError("an automaton's matches cover intervals")
            for row in np.flatnonzero(mask).tolist():
                low, high = int(part.offsets[row]), int(part.offsets[row + 1])
                positions, labels = part.positions[low:high].tolist(), part.labels[low:high].tolist()
                first, last = int(part.firsts[row]), int(part.lasts[row])
                bindings = self._bindings(positions, labels)
                own = (first, last, tuple(positions), bindings, tuple(labels), int(slots[row]))
                found.append(_Candidate(*own, number, row))
        spoilt = {(c.first, c.positions[:-1], c.labels[:-1]) for c in found if self._is_spoiling(c)}
        return sorted(c for c in found if not self._is_spoiling(c) and (c.first, c.positions, c.labels) not in spoilt)

    def _bindings(self, positions: list[int], labels: list[int]) -> tuple[tuple[str, tuple[int, ...]], ...]:
        bound: dict[str, tuple[int, ...]] = {}
        for position, label in zip(positions, labels, strict=True):
            for name in self._names[label]:
                bound[name] = (*bound.get(name, ()), position)
        return tuple(sorted(bound.items()))

    def _is_spoiling(self, candidate: _Candidate) -> bool:
        return candidate.labels[-1:] == (self._spoiling,)

    def _choose(self, candidates: list[_Candidate]) -> Iterator[_Candidate]:
        if self._query.skip is None:
            yield from candidates
            return
        for candidate in candidates:
            floor = self._floors.get(candidate.slot, (-1, -1))
            if candidate.first >= floor[0]:
                yield candidate
                until = (
                    candidate.last if self._counts_events else int(self._parts[candidate.part][0].ends[candidate.row])
                )
                self._floors[candidate.slot] = max(floor, (self._floor_after(candidate), until))

    def _floor_after(self, candidate: _Candidate) -> int:
        skip = self._query.skip
        assert skip is not None
        if skip.to is SkipTo.NEXT:
            return candidate.first + 1
        if skip.to is SkipTo.PAST_LAST:
            return candidate.positions[-1] + 1
        bound = dict(candidate.bindings).get(skip.variable or "", ())
        return -1 if not bound else bound[0] if skip.to is SkipTo.FIRST else bound[-1]

    # -- state ---------------------------------------------------------------------------------

    def pages(self) -> dict[str, bytes]:
        """As pages of the state."""
        pages = {"held/floors": json.dumps([[slot, *floor] for slot, floor in self._floors.items()]).encode()}
        for number, (part, slots) in enumerate(self._parts):
            columns = {name: pa.array(getattr(part, name)) for name in _TIMES}
            for name in ("positions", "labels"):
                columns[name] = pa.LargeListArray.from_arrays(part.offsets, pa.array(getattr(part, name)))
            columns["slots"] = pa.array(slots)
            columns |= {_FIELD + name: values for name, values in part.fields.items()}
            pages[f"held/{number}"] = _packed(pa.record_batch(columns))
        return pages

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Go on from pages."""
        self._floors = {slot: (floor, until) for slot, floor, until in json.loads(pages["held/floors"])}
        for number in range(len([name for name in pages if name.startswith("held/")]) - 1):
            rows = _unpacked(pages[f"held/{number}"])
            offsets = np.asarray(rows["positions"].offsets)
            part = MatchBatch(
                query=self._query.name,
                names=self._names,
                starts=np.array(rows["starts"]),
                ends=np.array(rows["ends"]),
                firsts=np.array(rows["firsts"]),
                lasts=np.array(rows["lasts"]),
                offsets=np.array(offsets - offsets[0], np.int64),
                positions=np.array(rows["positions"].flatten()),
                labels=np.array(rows["labels"].flatten()),
                fields={name[len(_FIELD) :]: rows[name] for name in rows.schema.names if name.startswith(_FIELD)},
            )
            self._parts.append((part, np.array(rows["slots"])))


def _packed(rows: pa.RecordBatch) -> bytes:
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, rows.schema) as writer:
        writer.write_batch(rows)
    return bytes(sink.getvalue())


def _unpacked(page: bytes) -> pa.RecordBatch:
    return pa.ipc.open_stream(page).read_next_batch()
