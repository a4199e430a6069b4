"""What fires as matches: buffers for the kernel, and their content as batches of matches with Arrow columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.rules import Rule
from weft.kernels import rule_tables as t
from weft.kernels import tagged
from weft.runtime.events import Int64s
from weft.runtime.matches import MatchBatch
from weft.runtime.texts import TextTable
from weft.schema import Kind

Int32s = npt.NDArray[np.int32]
Form = tuple[tuple[str, Kind], ...]  # names and kinds of fields
FIRINGS = 1 << 14  # of one piece of output
MOST_CODES = 1 << 22  # codes of variables that are marked one by one


class Outputs:
    """The names in what fires: of queries, of variables and of fields."""

    def __init__(self) -> None:
        self._queries: dict[str, int] = {}
        self._query_names: tuple[str, ...] = ()
        self._query_of: list[int] = []
        self._forms: dict[Form, int] = {}
        self._form_of: list[int] = []
        self._bases: dict[tuple[str, ...], int] = {}
        self._codes = 0
        self._names: dict[int, tuple[str, ...]] = {}
        self._rows: tuple[Int32s, Int32s] = (np.empty(0, np.int32), np.empty(0, np.int32))
        self.buffer = empty_output(64, 256, 256)

    def add(self, rule: Rule) -> int:
        """Take in a rule; the code of none of its variables, to which the bits of variables are added."""
        self._query_of.append(self._queries.setdefault(rule.name, len(self._queries)))
        form = tuple((field.name, field.kind) for field in rule.fields)
        self._form_of.append(self._forms.setdefault(form, len(self._forms)))
        base = self._bases.setdefault(rule.variables, self._codes)
        if base == self._codes:
            self._codes += 1 << len(rule.variables)
        self._rows = np.array(self._query_of, np.int32), np.array(self._form_of, np.int32)
        self._query_names = tuple(self._queries)
        return base

    def counts(self, counts: Int64s) -> dict[str, int]:
        """Firings by row as firings by query."""
        totals = np.bincount(self._rows[0], counts, minlength=len(self._queries)).astype(np.int64)
        return {name: count for name, count in zip(self._query_names, totals.tolist(), strict=True) if count}

    def take(self, control: Int64s, texts: TextTable) -> Iterator[MatchBatch]:
        """The matches in the buffer, which is empty then."""
        count, used = int(control[t.OUT]), int(control[t.OUT_POSITIONS])
        control[[t.OUT, t.OUT_POSITIONS, t.OUT_FIELDS]] = 0
        full = self.buffer
        room, positions, fields = len(full.rows), len(full.positions), len(full.fields)
        wanted = int(control[t.WANTED])
        if 2 * count > room or 2 * used > positions or wanted > positions:
            self.buffer = empty_output(
                min(2 * room, FIRINGS), max(positions, 4 * FIRINGS, 2 * wanted), max(fields, 4 * FIRINGS)
            )
        elif count:
            full = _copied(full)
        if not count:
            return
        rows = full.rows[:count]
        if len(self._forms) == 1:
            yield self._batch(full, rows, next(iter(self._forms)), None, texts)
            return
        forms = self._rows[1][rows]
        for number, form in enumerate(self._forms):
            chosen = np.flatnonzero(forms == number)
            if len(chosen):
                yield self._batch(full, rows, form, chosen, texts)

    def _batch(self, full: t.Output, rows: Int32s, form: Form, chosen: Int64s | None, texts: TextTable) -> MatchBatch:
        count = len(rows)
        offsets, fields_at = full.offsets[: count + 1], full.fields_at[:count]
        positions, codes = full.positions[: offsets[-1]], full.labels[: offsets[-1]]
        starts, ends = full.starts[:count], full.ends[:count]
        if chosen is not None:
            sizes = np.diff(offsets)[chosen]
            begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
            source = np.repeat(offsets[chosen] - begins[:-1], sizes) + np.arange(begins[-1])
            offsets, positions, codes = begins, positions[source], codes[source]
            starts, ends, fields_at, rows = starts[chosen], ends[chosen], fields_at[chosen], rows[chosen]
        labels, names = self._labels(codes)
        return MatchBatch(
            query="",
            names=names,
            starts=starts,
            ends=ends,
            firsts=positions[offsets[:-1]],
            lasts=positions[offsets[1:] - 1],
            offsets=offsets,
            positions=positions,
            labels=labels,
            keys=np.zeros(len(rows), np.uint64),
            fields={
                name: field_values(full.fields, fields_at + number, kind, texts)
                for number, (name, kind) in enumerate(form)
            },
            queries=self._query_names,
            codes=self._rows[0][rows],
        )

    def _labels(self, codes: Int64s) -> tuple[Int32s, tuple[tuple[str, ...], ...]]:
        """Labels of positions for their codes, and the variables of each label."""
        if self._codes <= MOST_CODES:
            present = np.zeros(self._codes, bool)
            present[codes] = True
            used = np.flatnonzero(present)
            places = np.empty(self._codes, np.int32)
            places[used] = np.arange(len(used), dtype=np.int32)
            labels = places[codes]
        else:
            used, inverse = np.unique(codes, return_inverse=True)
            labels = inverse.astype(np.int32)
        return labels, tuple(map(self._variables, used.tolist()))

    def _variables(self, code: int) -> tuple[str, ...]:
        found = self._names.get(code)
        if found is None:
            bases = list(self._bases.items())
            variables, base = bases[bisect_right([begin for _, begin in bases], code) - 1]
            found = tuple(sorted(name for bit, name in enumerate(variables) if (code - base) >> bit & 1))
            self._names[code] = found
        return found


def field_values(fields: Int64s, places: Int64s, kind: Kind, texts: TextTable) -> pa.Array:
    """A field of some firings as an Arrow array."""
    kinds, words = fields[2 * places], fields[2 * places + 1]
    missing = kinds == tagged.MISSING
    mask = missing if missing.any() else None
    if kind is Kind.TEXT:
        pool, offsets = texts.buffers
        known = pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(pool))
        ids = pa.array(words, mask=mask)
        return known.take(ids).cast(pa.string())
    if kind is Kind.BOOL:
        return pa.array(words != 0, mask=mask)
    if kind is Kind.FLOAT:
        return pa.array(words.view(np.float64), mask=mask)
    beyond = kinds == tagged.FLOAT  # whole numbers of more than 64 bits
    if beyond.any():
        return pa.array(np.where(beyond, words.view(np.float64), words.astype(np.float64)), mask=mask)
    return pa.array(words, mask=mask)


def _copied(output: t.Output) -> t.Output:
    parts: list[Any] = [part.copy() for part in output]
    return t.Output(*parts)


def empty_output(firings: int, positions: int, fields: int) -> t.Output:
    """Buffers for so many firings, positions and words of fields."""
    starts, ends, fields_at = (np.empty(firings, np.int64) for _ in range(3))
    offsets = np.zeros(firings + 1, np.int64)
    places, labels = np.empty(positions, np.int64), np.empty(positions, np.int64)
    return t.Output(
        np.empty(firings, np.int32), starts, ends, offsets, places, labels, fields_at, np.empty(fields, np.int64)
    )
