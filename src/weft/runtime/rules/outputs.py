"""What fires as matches: buffers for the kernel, and their content as batches of matches with Arrow columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any, TypeVar

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
FEW_CODES = 1 << 10  # codes of variables that are labels as they are
MOST_CODES = 1 << 22  # codes that are marked one by one
Scalar = TypeVar("Scalar", bound=np.generic)


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
        self._all_names: tuple[tuple[str, ...], ...] | None = None
        self.most_fields = 0
        self.buffer = empty_output(64, 256, 0)

    def add(self, rule: Rule) -> int:
        """Take in a rule; the code of none of its variables, to which the bits of variables are added."""
        self._query_of.append(self._queries.setdefault(rule.name, len(self._queries)))
        form = tuple((field.name, field.kind) for field in rule.fields)
        self._form_of.append(self._forms.setdefault(form, len(self._forms)))
        base = self._bases.setdefault(rule.variables, self._codes)
        if base == self._codes:
            self._codes += 1 << len(rule.variables)
        return base

    def lay(self) -> None:
        """All rules are there: make what is looked up by row, and buffers for their fields."""
        self._rows = np.array(self._query_of, np.int32), np.array(self._form_of, np.int32)
        self._query_names = tuple(self._queries)
        self.most_fields = max(map(len, self._forms), default=0)
        few = self._codes <= FEW_CODES
        self._all_names = tuple(map(self._variables, range(self._codes))) if few else None
        self.buffer = empty_output(len(self.buffer.rows), len(self.buffer.positions), self.most_fields)

    def counts(self, counts: Int64s) -> dict[str, int]:
        """Firings by row as firings by query."""
        totals = np.bincount(self._rows[0], counts, minlength=len(self._queries)).astype(np.int64)
        return {name: count for name, count in zip(self._query_names, totals.tolist(), strict=True) if count}

    def take(self, control: Int64s, texts: TextTable) -> Iterator[MatchBatch]:
        """The matches in the buffer, which is empty then."""
        count, used, wanted = (int(control[place]) for place in (t.OUT, t.OUT_POSITIONS, t.WANTED))
        control[[t.OUT, t.OUT_POSITIONS, t.WANTED]] = 0
        full = self.buffer
        room, positions = len(full.rows), len(full.positions)
        if 2 * count > room or 2 * used > positions or wanted > positions:
            room = min(2 * room, FIRINGS)
            self.buffer = empty_output(room, max(positions, 3 * room, 2 * wanted), self.most_fields)
        elif count:
            full = _copied(full)
        if not count:
            return
        if len(self._forms) == 1:
            yield self._batch(full, count, next(iter(self._forms)), None, texts)
            return
        forms = self._rows[1][full.rows[:count]]
        for number, form in enumerate(self._forms):
            chosen = np.flatnonzero(forms == number)
            if len(chosen):
                yield self._batch(full, count, form, chosen, texts)

    def _batch(self, full: t.Output, count: int, form: Form, chosen: Int64s | None, texts: TextTable) -> MatchBatch:
        rows, starts, ends, offsets = (
            full.rows[:count],
            full.starts[:count],
            full.ends[:count],
            full.offsets[: count + 1],
        )
        positions, codes = full.positions[: offsets[-1]], full.labels[: offsets[-1]]
        if chosen is not None:
            sizes = np.diff(offsets)[chosen]
            begins = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
            source = np.repeat(offsets[chosen] - begins[:-1], sizes) + np.arange(begins[-1])
            offsets, positions, codes = begins, positions[source], codes[source]
            starts, ends, rows = starts[chosen], ends[chosen], rows[chosen]
        labels, names = self._labels(codes)
        fields = {}
        for number, (name, kind) in enumerate(form):
            part = slice(number * len(full.rows), number * len(full.rows) + count)
            kinds, words = full.kinds[part], full.words[part]
            if chosen is not None:
                kinds, words = kinds[chosen], words[chosen]
            fields[name] = field_values(kinds, words, kind, texts)
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
            fields=fields,
            queries=self._query_names,
            codes=self._rows[0][rows],
        )

    def _labels(self, codes: Int64s) -> tuple[Int32s, tuple[tuple[str, ...], ...]]:
        """Labels of positions for their codes, and the variables of each label."""
        if self._all_names is not None:
            return codes.astype(np.int32), self._all_names
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


def field_values(kinds: npt.NDArray[np.uint8], words: Int64s, kind: Kind, texts: TextTable) -> pa.Array:
    """A field of some firings as an Arrow array."""
    missing = kinds == tagged.MISSING
    mask = missing if missing.any() else None
    if kind is Kind.TEXT:
        pool, offsets = texts.buffers
        known = pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(pool))
        if len(texts) <= len(words):
            return pa.DictionaryArray.from_arrays(pa.array(words.astype(np.int32), mask=mask), known.cast(pa.string()))
        return known.take(pa.array(words, mask=mask)).cast(pa.string())
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
    """Buffers for so many firings, positions and fields of each firing."""
    offsets = _room(firings + 1, np.int64)
    offsets[0] = 0
    return t.Output(
        _room(firings, np.int32),
        _room(firings, np.int64),
        _room(firings, np.int64),
        offsets,
        _room(positions, np.int64),
        _room(positions, np.int64),
        _room(fields * firings, np.uint8),
        _room(fields * firings, np.int64),
    )


def _room(length: int, dtype: type[Scalar]) -> npt.NDArray[Scalar]:
    """Memory of Arrow's pool, which keeps what is given back: fresh pages cost more than the matches in them."""
    return np.frombuffer(pa.allocate_buffer(length * np.dtype(dtype).itemsize), dtype)
