"""Matches: as columns, the form in which every engine gives them; as Arrow tables; and as Python objects."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.kernels.identify import identify, write_hex
from weft.kernels.match_order import count_bindings, gather_bindings, match_order

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt64s = npt.NDArray[np.uint64]
Labels = npt.NDArray[np.int32] | npt.NDArray[np.int64]

MATCH_SCHEMA = pa.schema(
    [
        pa.field("query", pa.string(), nullable=False),
        pa.field("id", pa.string(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("positions", pa.list_(pa.field("element", pa.int64(), nullable=False)), nullable=False),
        pa.field(
            "bindings",
            pa.map_(pa.string(), pa.field("value", pa.list_(pa.field("element", pa.int64(), nullable=False)))),
            nullable=False,
        ),
        pa.field("event", pa.string(), nullable=False),  # a JSON object
    ]
)
# Rows of one record batch: far from the two-gigabyte bound of Arrow's strings, and small enough to stream.
ROWS = 1 << 17


@dataclass(frozen=True)
class Match:
    """One match: `start` and `end` are times, positions are places in the stream, `event` has the selected fields."""

    query: str
    id: str
    start: int
    end: int
    positions: tuple[int, ...]
    bindings: dict[str, tuple[int, ...]]
    event: dict[str, object]

    def to_json(self) -> dict[str, object]:
        """The match as the JSON object that `weft match` writes."""
        bindings = {name: list(positions) for name, positions in self.bindings.items()}
        return {**vars(self), "positions": list(self.positions), "bindings": bindings, "event": dict(self.event)}


@dataclass(frozen=True)
class MatchBatch:
    """Matches of one query, or of `queries`, ordered by end position (not yet by start and positions).

    Match i covers the times `starts[i]..ends[i]`; it is made of `positions[offsets[i]:offsets[i+1]]`, ascending.
    `labels` runs parallel to `positions`: `names[label]` are the variables that position is bound to.
    It covers the positions `firsts[i]..lasts[i]`, which only matters where they are not its first and last one.
    """

    query: str
    names: tuple[tuple[str, ...], ...]
    starts: Int64s
    ends: Int64s
    offsets: Int64s
    positions: Int64s
    labels: Labels
    firsts: Int64s | None = None
    lasts: Int64s | None = None
    fields: Mapping[str, pa.Array] = field(default_factory=dict)  # selected attributes, one value per match
    events: pa.Array | None = None  # instead of `fields`: a JSON object per match
    queries: tuple[str, ...] = ()  # instead of `query`: match i is of queries[codes[i]]; names may repeat
    codes: Int32s | None = None

    @property
    def counts(self) -> dict[str, int]:
        """How many matches there are of each query."""
        if self.codes is None:
            return {self.query: len(self)}
        found = np.bincount(self.codes)
        totals: Counter[str] = Counter()
        for code in np.flatnonzero(found).tolist():
            totals[self.queries[code]] += int(found[code])
        return dict(totals)

    @property
    def query_names(self) -> tuple[str, ...]:
        """The names of its queries."""
        return (self.query,) if self.codes is None else self.queries

    @property
    def query_codes(self) -> Int32s:
        """Which of the names each match has."""
        return np.zeros(len(self), np.int32) if self.codes is None else self.codes

    def __len__(self) -> int:
        return len(self.starts)

    def of(self, query: str) -> MatchBatch:
        """The matches of one query."""
        if query not in self.query_names:
            return self.slice(0, 0)
        if self.codes is None:
            return self
        own = self.take(np.flatnonzero(np.array([name == query for name in self.queries])[self.codes]))
        return replace(own, query=query, queries=(), codes=None)

    def slice(self, begin: int, end: int) -> MatchBatch:
        """Matches `begin` to `end` (not included), sharing memory with this batch."""
        low, high = self.offsets[begin], self.offsets[end]
        return replace(
            self,
            starts=self.starts[begin:end],
            ends=self.ends[begin:end],
            firsts=None if self.firsts is None else self.firsts[begin:end],
            lasts=None if self.lasts is None else self.lasts[begin:end],
            offsets=self.offsets[begin : end + 1] - low,
            positions=self.positions[low:high],
            labels=self.labels[low:high],
            fields={name: values.slice(begin, end - begin) for name, values in self.fields.items()},
            events=None if self.events is None else self.events.slice(begin, end - begin),
            codes=None if self.codes is None else self.codes[begin:end],
        )

    def take(self, rows: Int64s) -> MatchBatch:
        """The matches at these places, in that order."""
        sizes = np.diff(self.offsets)[rows]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)])
        places = np.repeat(self.offsets[rows] - offsets[:-1], sizes) + np.arange(offsets[-1])
        chosen = pa.array(rows)
        return replace(
            self,
            starts=self.starts[rows],
            ends=self.ends[rows],
            firsts=None if self.firsts is None else self.firsts[rows],
            lasts=None if self.lasts is None else self.lasts[rows],
            offsets=offsets,
            positions=self.positions[places],
            labels=self.labels[places],
            codes=None if self.codes is None else self.codes[rows],
            fields={name: values.take(chosen) for name, values in self.fields.items()},
            events=None if self.events is None else self.events.take(chosen),
        )


class PlainMatch(NamedTuple):
    """A match as plain values: times, the positions its interval covers, and what it is made of."""

    start: int
    end: int
    first: int
    last: int
    positions: tuple[int, ...]
    bindings: Mapping[str, Sequence[int]]
    event: Mapping[str, object]


def to_batch(query: str, matches: Sequence[PlainMatch]) -> MatchBatch:
    """Plain matches of one query as columns."""
    labels: dict[tuple[str, ...], int] = {}
    codes: list[int] = []
    for match in matches:
        for position in match.positions:
            names = tuple(sorted(name for name, places in match.bindings.items() if position in places))
            codes.append(labels.setdefault(names, len(labels)))
    sizes = [0, *(len(match.positions) for match in matches)]
    return MatchBatch(
        query=query,
        names=tuple(labels),
        starts=np.array([match.start for match in matches], np.int64),
        ends=np.array([match.end for match in matches], np.int64),
        firsts=np.array([match.first for match in matches], np.int64),
        lasts=np.array([match.last for match in matches], np.int64),
        offsets=np.cumsum(sizes).astype(np.int64),
        positions=np.array([position for match in matches for position in match.positions], np.int64),
        labels=np.array(codes, np.int32),
        events=pa.array([_json_object(match.event) for match in matches], pa.string()),
    )


def match_ids(batch: MatchBatch) -> pa.Array:
    """The ids of a batch's matches: 32 hexadecimal digits each, the same in every process."""
    return _hex(*_id_words(batch))


def to_arrow(batches: Iterable[MatchBatch], query_order: Sequence[str] | None = None) -> pa.Table:
    """All matches of the batches in match order: end, start, positions, query (in the given order), id."""
    return pa.Table.from_batches(to_record_batches(batches, query_order), schema=MATCH_SCHEMA)


def to_record_batches(
    batches: Iterable[MatchBatch], query_order: Sequence[str] | None = None
) -> Iterator[pa.RecordBatch]:
    """Like `to_arrow`, a bounded number of rows at a time."""
    present = [batch for batch in batches if len(batch)]
    if not present:
        return
    flat = _Flat(present, query_order or [name for batch in present for name in batch.query_names])
    for begin in range(0, len(flat.order), ROWS):
        yield flat.rows(flat.order[begin : begin + ROWS])


def to_matches(batches: MatchBatch | Iterable[MatchBatch]) -> Iterator[Match]:
    """The matches of the batches as objects, in match order."""
    single = [batches] if isinstance(batches, MatchBatch) else batches
    for rows in to_record_batches(single):
        yield from rows_to_matches(rows)


def rows_to_matches(rows: pa.RecordBatch | pa.Table) -> Iterator[Match]:
    """The rows of a table with MATCH_SCHEMA as objects, in their order."""
    for part in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        plain = (part.column(name).to_pylist() for name in ("query", "id", "start", "end"))
        events = json.loads(f"[{','.join(part.column('event').to_pylist())}]")
        positions = _tuples(part.column("positions"))
        yield from map(Match, *plain, positions, _bindings(part.column("bindings")), events)


def _tuples(lists: pa.ListArray) -> Iterator[tuple[int, ...]]:
    """Lists of whole numbers, taken apart at once: one by one they would cost more than the rest of a match."""
    values, offsets = lists.values.to_pylist(), lists.offsets.to_pylist()
    return (tuple(values[begin:end]) for begin, end in pairwise(offsets))


def _bindings(maps: pa.MapArray) -> Iterator[dict[str, tuple[int, ...]]]:
    names, places, offsets = maps.keys.to_pylist(), list(_tuples(maps.items)), maps.offsets.to_pylist()
    return (dict(zip(names[begin:end], places[begin:end], strict=True)) for begin, end in pairwise(offsets))


class _Flat:
    """Several batches as one set of flat arrays, with the permutation that puts them into match order."""

    def __init__(self, batches: Sequence[MatchBatch], query_order: Sequence[str]) -> None:
        rank = {name: at for at, name in reversed(list(enumerate(query_order)))}
        words = [_id_words(batch) for batch in batches]
        self.starts = np.concatenate([batch.starts for batch in batches])
        self.ends = np.concatenate([batch.ends for batch in batches])
        self.positions = np.concatenate([batch.positions for batch in batches])
        self.high = np.concatenate([high for high, _ in words])
        self.low = np.concatenate([low for _, low in words])
        lengths = np.concatenate([np.diff(batch.offsets) for batch in batches])
        self.offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        names = [name for batch in batches for name in batch.query_names]
        bases = np.cumsum([0, *(len(batch.query_names) for batch in batches)])
        self.queries = pa.array(names, pa.string())
        self.query_codes = np.concatenate(
            [batch.query_codes + np.int32(base) for batch, base in zip(batches, bases, strict=False)]
        )
        ranks = np.array([rank.get(name, len(rank)) for name in names], np.int32)
        self._lay_labels(batches)
        self.events = pa.concat_arrays([_event_texts(batch) for batch in batches])
        self.order = match_order(
            self.ends, self.starts, self.offsets, self.positions, ranks[self.query_codes], self.high, self.low
        )

    def _lay_labels(self, batches: Sequence[MatchBatch]) -> None:
        """Number labels and names over all batches: label l has the names `label_names[label_offsets[l]:…]`."""
        bases = np.cumsum([0, *(len(batch.names) for batch in batches)])
        self.labels = np.concatenate(
            [batch.labels.astype(np.int32) + np.int32(base) for batch, base in zip(batches, bases, strict=False)]
        )
        codes: dict[str, int] = {}
        labels = [names for batch in batches for names in batch.names]
        self.label_names = np.array([codes.setdefault(n, len(codes)) for names in labels for n in names], np.int32)
        self.label_offsets = np.cumsum([0, *(len(names) for names in labels)]).astype(np.int64)
        self.names = pa.array(list(codes), pa.string())

    def rows(self, chosen: Int64s) -> pa.RecordBatch:
        """The chosen matches as a record batch."""
        offsets, entries, bindings = count_bindings(
            chosen, self.offsets, self.labels, self.label_offsets, self.label_names, len(self.names)
        )
        positions, names, value_offsets, values = gather_bindings(
            chosen,
            self.offsets,
            self.positions,
            self.labels,
            self.label_offsets,
            self.label_names,
            len(self.names),
            entries,
            bindings,
        )
        bound_type = MATCH_SCHEMA.field("bindings").type
        bound = _lists(value_offsets, values, bound_type.item_type)
        entry_names = self.names.take(pa.array(names))
        columns = [
            self.queries.take(pa.array(self.query_codes[chosen])),
            _hex(self.high[chosen], self.low[chosen]),
            pa.array(self.starts[chosen]),
            pa.array(self.ends[chosen]),
            _lists(offsets, positions, MATCH_SCHEMA.field("positions").type),
            pa.MapArray.from_arrays(pa.array(entries.astype(np.int32)), entry_names, bound, bound_type),
            self.events.take(pa.array(chosen)),
        ]
        return pa.RecordBatch.from_arrays(columns, schema=MATCH_SCHEMA)


def _lists(offsets: Int64s, values: Int64s, kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets.astype(np.int32)), pa.array(values), kind)


def _id_words(batch: MatchBatch) -> tuple[UInt64s, UInt64s]:
    """The two halves of each id.

    The partition key needs no part in it: a position belongs to one key only.
    """
    high = np.empty(len(batch), np.uint64)
    low = np.empty(len(batch), np.uint64)
    none = np.empty(0, np.int64)
    label_words = np.array([_word(*sorted(names))[0] for names in batch.names] or [0], np.uint64)
    identify(
        np.array([_word(name) for name in batch.query_names], np.uint64).ravel(),
        batch.query_codes,
        batch.starts,
        batch.ends,
        none if batch.firsts is None else batch.firsts,
        none if batch.lasts is None else batch.lasts,
        batch.offsets,
        batch.positions,
        batch.labels.astype(np.int32, copy=False),
        label_words,
        high,
        low,
    )
    return high, low


@lru_cache(maxsize=1 << 16)
def _word(*texts: str) -> tuple[int, int]:
    digest = hashlib.blake2b(json.dumps(texts).encode(), digest_size=16).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:], "little")


def _hex(high: UInt64s, low: UInt64s) -> pa.Array:
    text = np.empty(32 * len(high), np.uint8)
    write_hex(high, low, text)
    offsets = np.arange(0, len(text) + 1, 32, dtype=np.int32)
    return pa.StringArray.from_buffers(len(high), pa.py_buffer(offsets), pa.py_buffer(text))


def _event_texts(batch: MatchBatch) -> pa.Array:
    """The JSON object of each match's selected fields."""
    if batch.events is not None:
        return batch.events
    if not batch.fields:
        return pa.array(["{}"]).take(pa.array(np.zeros(len(batch), np.int32)))
    parts: list[pa.Array | pa.Scalar] = []
    for name, values in batch.fields.items():
        parts += [pa.scalar(f"{', ' if parts else '{'}{json.dumps(name)}: "), _json_texts(values)]
    return pc.binary_join_element_wise(*parts, pa.scalar("}"), pa.scalar(""))


def _json_object(values: Mapping[str, object]) -> str:
    return "{" + ", ".join(f"{json.dumps(name)}: {_json_text(value)}" for name, value in values.items()) + "}"


def _json_text(value: object) -> str:
    """A value as JSON text. JSON has no word for infinity, but numbers of any size."""
    text = json.dumps(value, ensure_ascii=False)
    return {"Infinity": "1e999", "-Infinity": "-1e999"}.get(text, text)


def _json_texts(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Each value as JSON text."""
    if isinstance(values, pa.ChunkedArray):
        values = values.combine_chunks()
    if pa.types.is_integer(values.type):
        return pc.fill_null(values.cast(pa.string()), "null")
    if pa.types.is_nested(values.type) or pa.types.is_null(values.type):
        return pa.array([_json_text(value) for value in values.to_pylist()], pa.string())
    if pa.types.is_dictionary(values.type) and len(values.dictionary) > len(values):
        values = values.dictionary_decode()
    coded = values if pa.types.is_dictionary(values.type) else values.dictionary_encode()
    texts = pa.array([_json_text(value) for value in coded.dictionary.to_pylist()], pa.string())
    return pc.fill_null(texts.take(coded.indices), "null")
