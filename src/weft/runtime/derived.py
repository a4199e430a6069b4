"""Matches as events: what the queries of a program define for each other, with columns made of their fields."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.runtime import blocks
from weft.runtime.events import Column, EventBatch, Int64s
from weft.runtime.lists import Lists, grouped, side_by_side, single_lists
from weft.runtime.matches import MatchBatch

INPUT = -1  # comes before every query


class Derived(NamedTuple):
    """Events that are not, or not all, of the input.

    `lists` are the input positions that each is made of. `ranks` put those of equal ends (by start: of equal times)
    into order; lists are compared number by number, and a shorter one comes first.
    """

    batch: EventBatch
    lists: Lists
    ranks: Lists

    def take(self, rows: Int64s) -> Derived:
        """Some of the events, in this order."""
        return Derived(blocks.take(self.batch, rows), self.lists.take(rows), self.ranks.take(rows))


def given(batch: EventBatch) -> Derived:
    """Events of the input."""
    source = single_lists(np.full(len(batch), INPUT, np.int64))
    positions = single_lists(batch.positions)
    return Derived(batch, positions, side_by_side([source, positions]))


def derived(found: MatchBatch, ties: Lists, ranks: Int64s) -> Derived:
    """Matches as events; `ranks` are those of their queries, and `ties` decide between equal times and positions."""
    count = len(found)
    lists = Lists(found.offsets, found.positions)
    types = pa.DictionaryArray.from_arrays(pa.array(found.query_codes), pa.array(found.query_names, pa.string()))
    columns = {name: column_of_field(values) for name, values in found.fields.items()}
    batch = EventBatch(types, found.starts, found.ends, np.zeros(count, np.int64), columns)
    before_ties = single_lists(np.full(count, -1, np.int64))
    order = [single_lists(ranks), single_lists(found.starts), lists, before_ties, ties]
    return Derived(batch, lists, side_by_side(order))


def column_of_field(values: pa.Array) -> Column:
    """A field of matches as an attribute of events; a list is no value."""
    kind = values.type
    if pa.types.is_union(kind):
        parts = [column_of_field(_of_child(values, child)) for child in range(kind.num_fields)]
        numbers, texts, booleans = (
            next((array for part in parts if (array := getattr(part, name)) is not None), None) for name in blocks.KINDS
        )
        return Column(numbers, texts, booleans)
    if pa.types.is_boolean(kind):
        return Column(booleans=values)
    if pa.types.is_integer(kind) or pa.types.is_floating(kind):
        return Column(numbers=values.cast(pa.int64() if pa.types.is_integer(kind) else pa.float64()))
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_dictionary(kind):
        return Column(texts=values.cast(pa.string()))
    return Column()


def _of_child(values: pa.Array, child: int) -> pa.Array:
    """The values of one kind of a union, null where the value is of another."""
    own = np.asarray(values.type_codes) == values.type.type_codes[child]
    rows = pa.array(np.arange(len(values)), mask=~own)
    return values.field(child).take(rows)


# ---------------------------------------------------------------- what decides between equal times and positions


def ties_by_slot(found: MatchBatch) -> Lists:
    """Of situations: the place in each slot and the slot, in the order of slots."""
    rows = np.repeat(np.arange(len(found)), np.diff(found.offsets))
    order = np.lexsort((found.labels, rows))
    pairs = np.stack([found.positions[order], found.labels[order]], axis=1)
    return grouped(np.repeat(rows[order], 2), pairs.ravel().astype(np.int64), len(found))


def ties_by_name(found: MatchBatch) -> Lists:
    """Of other queries: the last and the first position that a match covers, then the positions of each variable."""
    codes = {name: code for code, name in enumerate(sorted({name for own in found.names for name in own}))}
    of_labels = [codes[name] for own in found.names for name in own]
    names = Lists(np.cumsum([0, *map(len, found.names)]), np.array(of_labels, np.int64))
    held = names.take(np.asarray(found.labels, np.int64))
    sizes = np.diff(held.offsets)
    rows = np.repeat(np.repeat(np.arange(len(found)), np.diff(found.offsets)), sizes)
    positions = np.repeat(found.positions, sizes)
    order = np.lexsort((positions, held.values, rows))
    rows, variables, positions = rows[order], held.values[order], positions[order]
    begins = np.ones(len(rows), bool)
    begins[1:] = (rows[1:] != rows[:-1]) | (variables[1:] != variables[:-1])
    # Each variable as -1, which comes before all positions, its code and its positions.
    sizes = 1 + 2 * begins
    at = np.cumsum(sizes) - 1
    values = np.empty(int(sizes.sum()), np.int64)
    values[at] = positions
    values[at[begins] - 1], values[at[begins] - 2] = variables[begins], -1
    bound = grouped(np.repeat(rows, sizes), values, len(found))
    firsts, lasts = covered(found)
    return side_by_side([single_lists(lasts), single_lists(firsts), bound])


def covered(found: MatchBatch) -> tuple[Int64s, Int64s]:
    """The first and the last position that each match covers; its times, if it has no positions."""
    if found.firsts is not None and found.lasts is not None:
        return found.firsts, found.lasts
    lists = Lists(found.offsets, found.positions)
    empty: npt.NDArray[np.bool_] = np.diff(found.offsets) == 0
    return np.where(empty, found.starts, lists.firsts), np.where(empty, found.ends, lists.lasts)
