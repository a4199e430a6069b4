"""Matches as rows: Arrow tables in match order, with ids and with fields as JSON; and objects made of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import lru_cache, reduce
from itertools import groupby, pairwise
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa

from weft.algebra.numbers import real
from weft.kernels.matches.bindings import bind
from weft.kernels.matches.order import is_ordered, merged_order
from weft.runtime.data.buffers import fixed, joined, names_by_number, room
from weft.runtime.data.json_texts import json_objects, sparse_json_objects
from weft.runtime.data.matches import Int32s, Int64s, Labels, Match, MatchBatch, ids_of, put_in_order
from weft.runtime.data.shape import MATCH_SCHEMA
from weft.runtime.identity.ids import as_text, label_table
from weft.runtime.threads import ALONE, Threads

Name = TypeVar("Name")
Finish = Callable[[pa.RecordBatch], pa.RecordBatch]

_POSITIONS, _BINDINGS = (MATCH_SCHEMA.field(name).type for name in ("positions", "bindings"))
# Rows of one record batch: far from the two-gigabyte bound of Arrow's strings, and few enough for the cache.
ROWS = 1 << 16
SAMPLED = 1 << 10  # a match in so many says when matches end


def to_arrow(batches: Iterable[MatchBatch], query_order: Sequence[str] | None = None) -> pa.Table:
    """All matches of the batches in match order: end, start, positions, query (in the given order), id."""
    return pa.Table.from_batches(to_record_batches(batches, query_order), schema=MATCH_SCHEMA)


def to_record_batches(
    batches: Iterable[MatchBatch],
    query_order: Sequence[str] | None = None,
    threads: Threads = ALONE,
    finish: Finish | None = None,
) -> Iterator[pa.RecordBatch]:
    """Like `to_arrow`, a bounded number of rows at a time."""
    present = [batch for batch in batches if len(batch)]
    names = tuple(query_order or dict.fromkeys(name for batch in present for name in batch.query_names))
    yield from in_stretches([present], names, threads, finish)


def in_stretches(
    stretches: Iterable[Sequence[MatchBatch]],
    names: tuple[str, ...],
    threads: Threads = ALONE,
    finish: Finish | None = None,
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of matches that arrive by ranges of time, in match order.

    `finish` converts the rows. Each thread has a range of time, so that no merging is needed, and proceeds to the next
    range independently.
    """
    every = (part for stretch in stretches if stretch for part in _parts(stretch))
    for together, parts in groupby(every, lambda part: sum(map(len, part)) > 2 * ROWS):
        if together:  # so many end at once: threads share them out otherwise
            for part in parts:
                yield from _ordered(part, names, threads, finish)
        else:
            for rows in threads.in_turn(lambda part: list(_ordered(part, names, ALONE, finish)), parts):
                yield from rows


def _parts(batches: Sequence[MatchBatch]) -> Iterator[list[MatchBatch]]:
    """Matches by end, about as many at a time as a record batch has; those that end together are together."""
    if sum(map(len, batches)) <= ROWS:
        yield list(batches)
        return
    sample = np.sort(np.concatenate([batch.ends[::SAMPLED] for batch in batches]))
    times = np.unique(sample[:: ROWS // SAMPLED])[1:]
    bounds = [[0, *np.searchsorted(batch.ends, times).tolist(), len(batch)] for batch in batches]
    for place in range(len(times) + 1):
        spans = [(batch, own[place], own[place + 1]) for batch, own in zip(batches, bounds, strict=True)]
        yield [batch.slice(begin, end) for batch, begin, end in spans if begin < end]


def _ordered(
    present: Sequence[MatchBatch],
    names: tuple[str, ...],
    threads: Threads,
    finish: Finish | None,
) -> Iterator[pa.RecordBatch]:
    """Yield rows of matches in match order, computed by all threads."""
    if not present:
        return
    whole = _joined(present)
    high, low = ids_of(whole)
    ranks = _ranks(whole.query_names, names).take(whole.query_codes)
    columns: list[Any] = [whole.ends, whole.starts, whole.offsets, whole.positions, ranks, high, low]
    columns = list(map(fixed, columns))
    order = None if is_ordered(*columns) else _order(columns, threads)

    def rows(begin: int) -> pa.RecordBatch:
        end = min(begin + ROWS, len(whole))
        made = _rows(whole.slice(begin, end) if order is None else whole.take(order[begin:end]))
        return made if finish is None else finish(made)

    yield from threads.in_turn(rows, range(0, len(whole), ROWS))


def _order(columns: Sequence[Any], threads: Threads) -> Int64s:
    """The permutation that puts matches into match order: part by part, merged."""
    count = len(columns[0])
    parts = threads.count if count > ROWS else 1
    bounds = [count * part // parts for part in range(parts + 1)]

    def merged(one: Int64s, other: Int64s) -> Int64s:
        order = room(len(one) + len(other), np.int64)
        merged_order(one, other, order, *columns)
        return order

    return reduce(merged, threads.each(lambda span: put_in_order(*span, columns), list(pairwise(bounds))))


def to_matches(batches: MatchBatch | Iterable[MatchBatch]) -> Iterator[Match]:
    """The matches of the batches as objects, in match order."""
    single = [batches] if isinstance(batches, MatchBatch) else batches
    for rows in to_record_batches(single):
        yield from rows_to_matches(rows)


def rows_to_matches(rows: pa.RecordBatch | pa.Table) -> Iterator[Match]:
    """The rows of a table with MATCH_SCHEMA as objects, in their order."""
    for part in rows.to_batches() if isinstance(rows, pa.Table) else [rows]:
        plain = (part.column(name).to_pylist() for name in ("query", "id", "start", "end"))
        events = json.loads(f"[{','.join(part.column('event').to_pylist())}]", parse_float=real)
        positions = _tuples(part.column("positions"))
        yield from map(Match, *plain, positions, _bindings(part.column("bindings")), events)


def _tuples(lists: pa.ListArray) -> Iterator[tuple[int, ...]]:
    """Lists of whole numbers, taken apart at once: one by one they would cost more than the rest of a match."""
    values, offsets = lists.values.to_pylist(), lists.offsets.to_pylist()
    return (tuple(values[begin:end]) for begin, end in pairwise(offsets))


def _bindings(maps: pa.MapArray) -> Iterator[dict[str, tuple[int, ...]]]:
    names, places, offsets = maps.keys.to_pylist(), list(_tuples(maps.items)), maps.offsets.to_pylist()
    return (dict(zip(names[begin:end], places[begin:end], strict=True)) for begin, end in pairwise(offsets))


def _joined(batches: Sequence[MatchBatch]) -> MatchBatch:
    """Several batches as one, in which nothing is left of what only matters for ids."""
    if len(batches) == 1:
        return batches[0]
    names, labels = _united([(batch.names, batch.labels) for batch in batches])
    queries, codes = _united([(batch.query_names, batch.query_codes) for batch in batches])
    offsets, at, base = room(sum(map(len, batches)) + 1, np.int64), 0, 0
    offsets[0] = 0
    for batch in batches:
        np.add(batch.offsets[1:], base, out=offsets[at + 1 : at + 1 + len(batch)])
        at, base = at + len(batch), base + len(batch.positions)
    plain = all(batch.events is None and not batch.fields for batch in batches)
    return MatchBatch(
        query="",
        names=names,
        starts=joined([batch.starts for batch in batches]),
        ends=joined([batch.ends for batch in batches]),
        offsets=offsets,
        positions=joined([batch.positions for batch in batches]),
        labels=labels,
        events=None if plain else pa.concat_arrays([_event_texts(batch) for batch in batches]),
        queries=queries,
        codes=codes,
        ids=(joined([ids_of(batch)[0] for batch in batches]), joined([ids_of(batch)[1] for batch in batches])),
    )


def _united(parts: Sequence[tuple[tuple[Name, ...], Labels]]) -> tuple[tuple[Name, ...], Int32s]:
    """Numbers of names in tables of their own as numbers in one table."""
    bases: dict[tuple[Name, ...], int] = {}
    for table, _ in parts:
        bases.setdefault(table, sum(map(len, bases)))
    found, at = room(sum(len(numbers) for _, numbers in parts), np.int32), 0
    for table, numbers in parts:
        np.add(numbers, bases[table], out=found[at : at + len(numbers)], casting="same_kind")
        at += len(numbers)
    return tuple(name for table in bases for name in table), found


def _rows(batch: MatchBatch) -> pa.RecordBatch:
    """Matches as a record batch, in their order."""
    columns = [
        names_by_number(batch.query_codes, pa.array(batch.query_names, pa.string())),
        as_text(*ids_of(batch)),
        pa.array(batch.starts),
        pa.array(batch.ends),
        _lists(batch.offsets.astype(np.int32), batch.positions, _POSITIONS),
        _bindings_of(batch),
        _event_texts(batch),
    ]
    return pa.RecordBatch.from_arrays(columns, schema=MATCH_SCHEMA)


def _bindings_of(batch: MatchBatch) -> pa.MapArray:
    table = label_table(batch.names)
    labels = batch.labels.astype(np.int32, copy=False)
    most = len(labels) * table.most
    entry_offsets, entry_names = room(len(batch) + 1, np.int32), room(most, np.int32)
    value_offsets, values = room(most + 1, np.int32), room(most, np.int64)
    entries = bind(
        fixed(batch.offsets),
        fixed(batch.positions),
        fixed(labels),
        table.offsets,
        table.codes,
        np.full(len(table.names), -1, np.int64),
        entry_offsets,
        entry_names,
        value_offsets,
        values,
    )
    bound = _lists(value_offsets[: entries + 1], values, _BINDINGS.item_type)
    names = names_by_number(entry_names[:entries], table.names)
    return pa.MapArray.from_arrays(pa.array(entry_offsets), names, bound, _BINDINGS)


def _lists(offsets: Int32s, values: Int64s, kind: pa.DataType) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array(offsets), pa.array(values), kind)


def _event_texts(batch: MatchBatch) -> pa.Array:
    """The JSON object of each match's selected fields."""
    if batch.events is not None:
        return batch.events
    return (sparse_json_objects if batch.sparse else json_objects)(batch.fields, len(batch))


@lru_cache(maxsize=256)
def _ranks(names: tuple[str, ...], order: tuple[str, ...]) -> Int32s:
    """The place of each name in an order, at its end if it is not there."""
    rank = {name: at for at, name in reversed(list(enumerate(order)))}
    return np.array([rank.get(name, len(rank)) for name in names], np.int32)
