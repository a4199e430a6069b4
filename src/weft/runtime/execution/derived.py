"""Derived events: matches of queries as events for other queries of the program, with their fields as columns."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from weft.plan.operators import Definer
from weft.runtime.data import blocks
from weft.runtime.data.events import BEGUN, SHOWN, STREAM, Column, EventBatch, Int64s
from weft.runtime.data.exact import as_floats, exact_column
from weft.runtime.data.lists import Lists, grouped, side_by_side, single_lists
from weft.runtime.data.matches import MatchBatch, ids_of

UInt64s = npt.NDArray[np.uint64]
INPUT = -1  # comes before every query
AMONG, AFTER = 0, 1  # the events of the input that end at one time


class Derived(NamedTuple):
    """Events that are not, or not all, from the input.

    `lists` are the input positions that each consists of. `ranks` order events with equal ends: they compare as lists
    of
    numbers, where a prefix comes first; equal ones are ordered by `ids`, the two halves of the match's id.
    """

    batch: EventBatch
    lists: Lists
    ranks: Lists
    ids: UInt64s

    def take(self, rows: Int64s) -> Derived:
        """Return some of the events, in this order."""
        return Derived(
            blocks.take(self.batch, rows), self.lists.take(rows), self.ranks.take(rows), self.ids.take(rows, axis=1)
        )

    @property
    def spans(self) -> tuple[Int64s, Int64s]:
        """The first and the last position that each consists of, or its times if there is none."""
        empty = np.diff(self.lists.offsets) == 0
        starts, ends = np.asarray(self.batch.starts), np.asarray(self.batch.ends)
        return np.where(empty, starts, self.lists.firsts), np.where(empty, ends, self.lists.lasts)


def given(batch: EventBatch) -> Derived:
    """Return events of the input, which precede all derived events of the same time."""
    count = len(batch)
    ranks = np.stack([np.full(count, AMONG), batch.starts, np.full(count, INPUT), batch.positions], axis=1)
    offsets = np.arange(0, 4 * count + 1, 4, dtype=np.int64)
    return Derived(batch, single_lists(batch.positions), Lists(offsets, ranks.ravel()), np.zeros((2, count), np.uint64))


def derived(found: MatchBatch, query: Definer, slots: Lists | None, *, all_fields: bool = False) -> Derived:
    """Convert the matches of a query to events.

    They come after all input events that end at the same time; with `slots`, among them, as situations read each
    other's matches (equal times and positions are ordered by slots). With `all_fields`, they have all fields of `SELECT
    *`.
    """
    count = len(found)
    lists = Lists(found.offsets, found.positions)
    types = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([query.type]))
    columns = {name: column_of_field(values) for name, values in found.fields.items()}
    if all_fields:
        columns |= {SHOWN + name: column for name, column in columns.items()}
    starts = found.starts
    if query.is_instant:
        starts, columns[BEGUN] = found.ends, Column(numbers=pa.array(found.starts))
    streams = columns[STREAM].texts if STREAM in columns else None
    batch = EventBatch(types, starts, found.ends, np.zeros(count, np.int64), columns, streams)
    number = _single(count, query.number)
    if slots is None:
        order = [_single(count, AFTER), _single(count, query.depth), number, single_lists(found.starts), lists]
    else:
        order = [_single(count, AMONG), single_lists(found.starts), number, lists, _single(count, -1), slots]
    return Derived(batch, lists, side_by_side(order), np.stack(ids_of(found)))


def _single(count: int, value: int) -> Lists:
    return single_lists(np.full(count, value, np.int64))


def slots_of(found: MatchBatch) -> Lists:
    """Return the place in each slot and the slot of situations, in slot order; for absences what distinguishes them."""
    if found.lasts is not None:
        return single_lists(found.lasts)
    rows = np.repeat(np.arange(len(found)), np.diff(found.offsets))
    order = np.lexsort((found.labels, rows))
    pairs = np.stack([found.positions[order], found.labels[order]], axis=1)
    return grouped(np.repeat(rows[order], 2), pairs.ravel().astype(np.int64), len(found))


def column_of_field(values: pa.Array) -> Column:
    """Convert a field of matches to an attribute of events; lists are missing."""
    kind = values.type
    if pa.types.is_union(kind):
        parts = [column_of_field(_of_child(values, child)) for child in range(kind.num_fields)]
        if sum(part.numbers is not None for part in parts) > 1:
            parts = [as_floats(part) for part in parts]
        return Column(**{name: _either([getattr(part, name) for part in parts]) for name in blocks.KINDS})
    if pa.types.is_boolean(kind):
        return Column(booleans=values)
    if pa.types.is_decimal(kind):
        return exact_column(values.cast(pa.string()))
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return Column(numbers=values.cast(pa.int64() if pa.types.is_integer(kind) else pa.float64()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return Column(texts=values.cast(pa.string()))
    return Column()


def _either(arrays: Sequence[pa.Array | None]) -> pa.Array | None:
    """Merge arrays of which at most one has a value in each row."""
    present = [array for array in arrays if array is not None]
    return pc.coalesce(*present) if present else None


def _of_child(values: pa.Array, child: int) -> pa.Array:
    """Return the values of one kind of a union, null for other kinds."""
    own = np.asarray(values.type_codes) == values.type.type_codes[child]
    rows = pa.array(np.arange(len(values)), mask=~own)
    return values.field(child).take(rows)
