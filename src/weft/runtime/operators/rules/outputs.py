"""Convert firings to matches: output buffers for the kernel, and their content as batches with Arrow columns."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.rules import Rule
from weft.kernels.machine import tagged
from weft.kernels.rules import tables as t
from weft.runtime.classify.texts import TextTable
from weft.runtime.data.buffers import room
from weft.runtime.data.events import Int64s
from weft.runtime.data.exact import shown
from weft.runtime.data.matches import Labels, MatchBatch, Origin
from weft.runtime.machine.values import column_of
from weft.schema import Kind

Kinds = npt.NDArray[np.uint8]
Form = tuple[tuple[str, Kind], ...]  # names and kinds of fields
FIRINGS = 1 << 15  # in one piece of output, so that it fits into the processor's cache
FEW_CODES = 1 << 10  # up to this, codes of variables are used as labels
MOST_CODES = 1 << 22  # up to this, used codes are found with an array over all codes


class Outputs:
    """Names in firings: of queries, of variables and of fields."""

    def __init__(self) -> None:
        self._queries: dict[str, int] = {}
        self._query_of: list[int] = []  # by row
        self._row_queries = np.empty(0, np.int32)
        self._row_names: tuple[str, ...] = ()
        self._origins: list[Origin] = []  # by row
        self._row_origins: tuple[Origin, ...] = ()
        self._forms: dict[Form, int] = {}
        self._form_of: list[int] = []  # by row
        self._row_forms = np.empty(0, np.int16)
        self._all_forms: tuple[Form, ...] = ()
        self._bases: dict[tuple[str, ...], int] = {}
        self._codes = 0
        self._names: dict[int, tuple[str, ...]] = {}
        self._all_names: tuple[tuple[str, ...], ...] | None = None
        self.most_fields = 0
        self.buffer = empty_output(64, 256, 0)

    def add(self, rule: Rule) -> int:
        """Add a rule, and return the code of its empty set of variables, to which the bits of variables are added."""
        self._query_of.append(self._queries.setdefault(rule.name, len(self._queries)))
        self._origins.append(rule.origin)
        form = tuple((field.name, field.kind) for field in rule.fields)
        self._form_of.append(self._forms.setdefault(form, len(self._forms)))
        return self.labels(rule)

    @property
    def has_one_form(self) -> bool:
        """Whether all rules have the same fields."""
        return len(self._forms) == 1

    def labels(self, rule: Rule) -> int:
        """Return the code of a rule's empty set of variables."""
        base = self._bases.setdefault(rule.variables, self._codes)
        if base == self._codes:
            self._codes += 1 << len(rule.variables)
        return base

    def lay(self) -> None:
        """Build the lookup tables by row, and buffers for fields, after all rules were added."""
        queries = tuple(self._queries)
        self._row_queries = np.array(self._query_of, np.int32)
        self._row_names = tuple(queries[query] for query in self._query_of)
        self._row_origins = tuple(self._origins)
        self._row_forms = np.array(self._form_of, np.int16 if len(self._forms) < 1 << 15 else np.int32)
        self._all_forms = tuple(self._forms)
        self.most_fields = max(map(len, self._forms), default=0)
        few = self._codes <= FEW_CODES
        self._all_names = tuple(map(self._variables, range(self._codes))) if few else None
        self.buffer = empty_output(len(self.buffer.rows), len(self.buffer.positions), self.most_fields)

    def counts(self, counts: Int64s) -> dict[str, int]:
        """Convert numbers of firings by row to numbers by query."""
        totals = np.bincount(self._row_queries, counts, minlength=len(self._queries)).astype(np.int64)
        return {name: count for name, count in zip(self._queries, totals.tolist(), strict=True) if count}

    def take(self, control: Int64s, texts: TextTable) -> Iterator[MatchBatch]:
        """Empty the buffer and yield its matches, by end among those with the same fields."""
        count, used, least, wanted = control[[t.OUT, t.OUT_POSITIONS, t.WANTED, t.WANTED_POSITIONS]].tolist()
        control[[t.OUT, t.OUT_POSITIONS, t.WANTED, t.WANTED_POSITIONS]] = 0
        full = self.buffer
        firings, positions = len(full.rows), len(full.positions)
        if 2 * count > firings or 2 * used > positions or wanted > positions or least > firings:
            firings = max(min(2 * firings, FIRINGS), least)
            self.buffer = empty_output(firings, max(positions, 3 * firings, 2 * wanted), self.most_fields)
            found = _used(full, count)
        else:
            copies: list[Any] = [part.copy() for part in _used(full, count)]
            found = t.Output(*copies)
        if count and self.has_one_form:
            yield self._batch(found, self._fields(0, found.kinds, found.words, texts))
        elif count:
            yield from self._by_form(found, texts)

    def _by_form(self, found: t.Output, texts: TextTable) -> Iterator[MatchBatch]:
        forms = self._row_forms[found.rows]
        order = np.argsort(forms, kind="stable")
        whole = self._batch(found, {}).take(order)
        kinds, words = found.kinds.take(order, axis=1), found.words.take(order, axis=1)
        bounds = np.flatnonzero(np.diff(forms[order], prepend=-1, append=len(self._forms))).tolist()
        for begin, end in pairwise(bounds):
            fields = self._fields(int(forms[order[begin]]), kinds[:, begin:end], words[:, begin:end], texts)
            yield replace(whole.slice(begin, end), fields=fields)

    def _batch(self, found: t.Output, fields: Mapping[str, pa.Array]) -> MatchBatch:
        labels, names = self._labels(found.labels)
        return MatchBatch(
            query="",
            names=names,
            starts=found.starts,
            ends=found.ends,
            offsets=found.offsets,
            positions=found.positions,
            labels=labels,
            fields=fields,
            queries=self._row_names,
            codes=found.rows,
            origins=self._row_origins,
        )

    def _fields(self, number: int, kinds: Kinds, words: Int64s, texts: TextTable) -> dict[str, pa.Array]:
        form = self._all_forms[number]
        return {name: field_values(kinds[at], words[at], kind, texts) for at, (name, kind) in enumerate(form)}

    def _labels(self, codes: Int64s) -> tuple[Labels, tuple[tuple[str, ...], ...]]:
        """Map codes of positions to labels, and return the variables of each label."""
        if self._all_names is not None:
            return codes, self._all_names
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


def field_values(kinds: Kinds, words: Int64s, kind: Kind, texts: TextTable) -> pa.Array:
    """Convert a field of firings to an Arrow array; texts become a dictionary of all texts."""
    present = kinds.tobytes()  # searching for a byte is much faster than comparing all kinds
    mask = kinds == tagged.MISSING if tagged.MISSING in present else None
    if kind is Kind.TEXT:
        pool, offsets = texts.buffers
        known = pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(offsets), pa.py_buffer(pool))
        return pa.DictionaryArray.from_arrays(pa.array(words, mask=mask), known, safe=False)
    if kind is Kind.BOOL:
        return pa.array(words != 0, mask=mask)
    if kind is Kind.FLOAT:
        return pa.array(words.view(np.float64), mask=mask)
    if tagged.FLOAT in present:  # integers of more than 64 bits
        return shown(column_of(kinds, words, texts), len(words))
    return pa.array(words, mask=mask)


def _used(full: t.Output, count: int) -> t.Output:
    """Return the used part of the buffers, with fields as rows of a matrix."""
    firings, positions = len(full.rows), full.offsets[count]
    return t.Output(
        full.rows[:count],
        full.starts[:count],
        full.ends[:count],
        full.offsets[: count + 1],
        full.positions[:positions],
        full.labels[:positions],
        full.kinds.reshape(-1, firings)[:, :count],
        full.words.reshape(-1, firings)[:, :count],
    )


def empty_output(firings: int, positions: int, fields: int) -> t.Output:
    """Allocate buffers for firings, positions and fields."""
    offsets = room(firings + 1, np.int64)
    offsets[0] = 0
    return t.Output(
        room(firings, np.int32),
        room(firings, np.int64),
        room(firings, np.int64),
        offsets,
        room(positions, np.int64),
        room(positions, np.int64),
        room(fields * firings, np.uint8),
        room(fields * firings, np.int64),
    )
