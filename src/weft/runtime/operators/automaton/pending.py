"""Pending matches: an earlier match may still skip them, or a later event may exclude them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.chains import SkipTo
from weft.algebra.numbers import worth
from weft.algebra.query import Query, Top
from weft.plan.automaton.cea import UNLESS
from weft.runtime.data.blocks import packed_rows, unpacked_rows
from weft.runtime.data.matches import MatchBatch

Int32s = npt.NDArray[np.int32]
Names = tuple[tuple[str, ...], ...]
_TIMES = ("starts", "ends", "firsts", "lasts")
_FIELD = "field:"
RANK = "\0rank"  # the field that ranks the matches of a span of time


@dataclass(frozen=True, order=True)
class _Candidate:
    """A pending match, in the order in which skipping considers them; `part` and `row` are its place."""

    first: int
    last: int
    positions: tuple[int, ...]
    bindings: tuple[tuple[str, tuple[int, ...]], ...]
    labels: tuple[int, ...]
    slot: int
    part: int
    row: int


class PendingMatches:
    """Matches of one query, stored until no earlier start and no later event can change whether they are emitted."""

    def __init__(self, query: Query, names: Names) -> None:
        self._query = query
        self._names = names
        self._spoiling = names.index((UNLESS,)) if (UNLESS,) in names else -1
        self._parts: list[tuple[MatchBatch, Int32s]] = []  # with the partition of each match
        # By partition: the first position at which a match may start, and the key up to which this can matter.
        self._floors: dict[int, tuple[int, int]] = {}

    @property
    def watermark(self) -> int | None:
        """The earliest end of a pending match."""
        return min((int(part.ends.min()) for part, _ in self._parts), default=None)

    @property
    def oldest(self) -> int | None:
        """The first position of a pending match."""
        return min((int(part.firsts.min()) for part, _ in self._parts if part.firsts is not None), default=None)

    def add(self, found: MatchBatch, slots: Int32s) -> None:
        """Add matches with their partitions."""
        self._parts.append((found, slots))

    def release(self, horizon: int | None, time: int | None) -> Iterator[MatchBatch]:
        """Select and yield the matches that are final (all if both arguments are None).

        No other match will start before the horizon, and no later event will end before the time.
        """
        due = [self._is_due(part, horizon, time) for part, _ in self._parts]
        if not any(mask.any() for mask in due):
            return
        parts = self._parts
        chosen = list(self._choose(self._candidates(due)))
        chosen = chosen if self._query.top is None else self._best(self._query.top, chosen)
        kept = sorted(chosen, key=lambda c: (c.part, c.last, c.row))
        left = [(part, slots, np.flatnonzero(~mask)) for (part, slots), mask in zip(parts, due, strict=True)]
        self._parts = [(part.take(rows), slots[rows]) for part, slots, rows in left if len(rows)]
        if horizon is not None:
            self._floors = {slot: floor for slot, floor in self._floors.items() if floor[1] >= horizon}
        for number, (part, _) in enumerate(parts):
            rows = np.array([c.row for c in kept if c.part == number], np.int64)
            if len(rows):
                found = part.take(rows)
                yield replace(found, fields={name: v for name, v in found.fields.items() if name != RANK})

    def _is_due(self, part: MatchBatch, horizon: int | None, time: int | None) -> npt.NDArray[np.bool_]:
        if horizon is None or time is None:
            return np.ones(len(part), bool)
        gap, top = self._query.session or 0, self._query.top
        if top is not None:  # all matches of a span of time are known
            return np.asarray((part.ends // top.every + 1) * top.every + gap <= time)
        if self._query.session is not None:
            return np.asarray(part.ends + gap < time)
        keys = part.firsts if self._counts_events and part.firsts is not None else part.starts
        return np.asarray(keys < horizon)

    @property
    def _counts_events(self) -> bool:
        return self._query.window is not None and self._query.window.unit == "events"

    def _candidates(self, due: list[npt.NDArray[np.bool_]]) -> list[_Candidate]:
        """Return the final matches that no event excludes, in order.

        An excluding event applies to those matches with the same events that end before it.
        """
        spoiling = [self._is_spoiling(part) for part, _ in self._parts]
        spoilt: dict[tuple[object, ...], int] = {}
        for number, mask in enumerate(spoiling):
            for one in self._rows(number, np.flatnonzero(mask)):
                shown = one.first, one.positions[:-1], one.labels[:-1]
                spoilt[shown] = max(one.last, spoilt.get(shown, one.last))
        fitting = [self._is_within(part) for part, _ in self._parts]
        wanted = [
            np.flatnonzero(mask & ~other & fits) for mask, other, fits in zip(due, spoiling, fitting, strict=True)
        ]
        found = (candidate for number, rows in enumerate(wanted) for candidate in self._rows(number, rows))
        return sorted(c for c in found if spoilt.get((c.first, c.positions, c.labels), c.last) <= c.last)

    def _is_spoiling(self, part: MatchBatch) -> npt.NDArray[np.bool_]:
        """Return which matches exist only to exclude others, by their last event."""
        if self._spoiling < 0 or not len(part.labels):
            return np.zeros(len(part), bool)
        some = np.diff(part.offsets) > 0
        return np.asarray(some & (part.labels[part.offsets[1:] - 1] == self._spoiling))

    def _is_within(self, part: MatchBatch) -> npt.NDArray[np.bool_]:
        """Return which matches fit into the window; with sessions, partial matches are followed beyond it."""
        window = self._query.window
        if window is None or self._query.session is None:
            return np.ones(len(part), bool)
        return np.asarray(part.ends - part.starts <= window.amount)

    def _rows(self, number: int, rows: npt.NDArray[np.intp]) -> Iterator[_Candidate]:
        part, slots = self._parts[number]
        if part.firsts is None or part.lasts is None:
            raise AssertionError("an automaton's matches cover intervals")
        for row in rows.tolist():
            low, high = int(part.offsets[row]), int(part.offsets[row + 1])
            positions, labels = part.positions[low:high].tolist(), part.labels[low:high].tolist()
            bindings = self._bindings(positions, labels)
            own = (int(part.firsts[row]), int(part.lasts[row]), tuple(positions), bindings, tuple(labels))
            yield _Candidate(*own, int(slots[row]), number, row)

    def _bindings(self, positions: list[int], labels: list[int]) -> tuple[tuple[str, tuple[int, ...]], ...]:
        bound: dict[str, list[int]] = {}
        for position, label in zip(positions, labels, strict=True):
            for name in self._names[label]:
                bound.setdefault(name, []).append(position)
        return tuple(sorted((name, tuple(own)) for name, own in bound.items()))

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

    def _best(self, top: Top, candidates: list[_Candidate]) -> list[_Candidate]:
        """Select the first matches of each span of time, in the order of their ranks."""
        spans: dict[int, list[tuple[tuple[object, ...], _Candidate]]] = {}
        ranks = [part.fields[RANK].to_pylist() for part, _ in self._parts]
        for candidate in candidates:
            part = self._parts[candidate.part][0]
            value = ranks[candidate.part][candidate.row]
            known = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
            rank = (0, worth(value) * (1 if top.least else -1)) if known else (1, 0)
            end, start = int(part.ends[candidate.row]), int(part.starts[candidate.row])
            order = (*rank, end, start, candidate.positions, candidate.bindings)
            spans.setdefault(end // top.every, []).append((order, candidate))
        return [c for span in spans.values() for _, c in sorted(span)[: top.count]]

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
        """Return the state as pages."""
        pages = {"held/floors": json.dumps([[slot, *floor] for slot, floor in self._floors.items()]).encode()}
        for number, (part, slots) in enumerate(self._parts):
            columns = {name: pa.array(getattr(part, name)) for name in _TIMES}
            for name in ("positions", "labels"):
                columns[name] = pa.LargeListArray.from_arrays(part.offsets, pa.array(getattr(part, name)))
            columns["slots"] = pa.array(slots)
            columns |= {_FIELD + name: values for name, values in part.fields.items()}
            pages[f"held/{number}"] = packed_rows(pa.record_batch(columns))
        return pages

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from pages."""
        self._floors = {slot: (floor, until) for slot, floor, until in json.loads(pages["held/floors"])}
        for number in range(len([name for name in pages if name.startswith("held/")]) - 1):
            rows = unpacked_rows(pages[f"held/{number}"])
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
