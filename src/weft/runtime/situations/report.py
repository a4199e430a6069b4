"""Matching sets as matches, and as events for other situations: all of a batch at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.predicates import Attribute
from weft.algebra.situations import SituationQuery
from weft.runtime import blocks
from weft.runtime.events import Column, EventBatch, Int64s
from weft.runtime.joins.fields import by_column, column_name, column_of, merged
from weft.runtime.matches import MatchBatch
from weft.runtime.situations.members import Lists, Members, joined_lists, single_lists
from weft.runtime.situations.stage import Stage

Columns = dict[str, Column]
EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


class Derived(NamedTuple):
    """Events that are not, or not all, of the input.

    `lists` are the input positions of each; `ranks` tell those of equal times apart: they come by source first.
    """

    batch: EventBatch
    lists: Lists
    ranks: Lists

    def take(self, rows: Int64s) -> Derived:
        """Some of the events, in this order."""
        return Derived(blocks.take(self.batch, rows), self.lists.take(rows), self.ranks.take(rows))


class FieldValues:
    """The fields of a situation's matches, from the attributes of their members."""

    def __init__(self, query: SituationQuery) -> None:
        self._variables = query.situation.variables
        self._fields = [(field.name, field.value.transform(by_column)) for field in query.fields]
        parts = [part for field in query.fields for part in field.value.walk()]
        self._read = sorted({(p.variable or "", p.name) for p in parts if isinstance(p, Attribute)})

    @property
    def attributes(self) -> list[str]:
        """The attributes that are read of members."""
        return sorted({name for _, name in self._read})

    def values(self, members: Members, sets: Int64s) -> Columns:
        """The fields of sets as columns."""
        return self.of_events(members, len(sets), lambda variable: self._slot(sets, variable))

    def of_events(self, members: Members, count: int, of_variable: Callable[[str], Int64s]) -> Columns:
        """The fields as columns, given the members of each variable; that without a name has the values of the key."""
        columns = {
            column_name(Attribute(name, variable or None)): members.column(name, of_variable(variable))
            for variable, name in self._read
        }
        none = np.zeros(count, np.int64)
        batch = EventBatch(pa.nulls(count, pa.string()), none, none, none, columns)
        return {name: column_of(value, batch) for name, value in self._fields}

    def _slot(self, sets: Int64s, variable: str) -> Int64s:
        """The members in a slot; for the values of the key, any member."""
        found: Int64s = sets[:, self._variables.index(variable)] if variable else sets.max(axis=1)
        return found


class Reporter:
    """Makes matches of the sets of one situation, and events for others. `source` is its number in the network."""

    def __init__(self, stage: Stage, source: int) -> None:
        self._stage = stage
        self._members = stage.members
        self._source = source
        query = stage.query
        self._name = query.name
        self._variables = query.situation.variables
        self._names: tuple[tuple[str, ...], ...] = tuple((name,) for name in self._variables)
        self._in_order = query.situation.kind == "sequence"
        self._alone = query.situation.kind == "any"
        self._fields = FieldValues(query)
        self._columns: Columns = {}

    def by_end(self, sets: Int64s) -> Int64s:
        """Sets by the end of their matches."""
        if self._stage.is_absence:
            ends = sets[:, 2]
        elif self._stage.immediate:
            return sets  # they come as events do
        else:
            ends = np.where(sets >= 0, self._members.times(np.maximum(sets, 0))[1], EARLIEST).max(axis=1)
        found: Int64s = sets[np.argsort(ends, kind="stable")]
        return found

    def matches(self, sets: Int64s) -> MatchBatch:
        """The matches of sets."""
        found = self._absences(sets) if self._stage.is_absence else self._sets(sets)
        fields = {name: merged(column, len(found)) for name, column in self._columns.items()}
        return MatchBatch(**{**vars(found), "fields": fields})

    def _sets(self, sets: Int64s) -> MatchBatch:
        count, width = sets.shape
        names, offsets = self._names, np.arange(0, count * width + 1, width, dtype=np.int64)
        if self._in_order:  # the first begins first and the last ends last
            starts, ends = self._members.times(sets[:, 0])[0], self._members.times(sets[:, -1])[1]
        else:
            starts, ends = self._members.times(np.maximum(sets, 0))
            starts = np.where(sets >= 0, starts, LATEST).min(axis=1)
            ends = np.where(sets >= 0, ends, EARLIEST).max(axis=1)
        if self._members.listed:
            offsets, positions, labels, names = self._listed(sets, sets >= 0)
        elif self._alone:
            offsets = np.arange(count + 1, dtype=np.int64)
            labels = sets.argmax(axis=1).astype(np.int32)
            positions = self._members.places(sets.max(axis=1))
        else:
            placed = self._members.places(sets)
            labels = np.tile(np.arange(width, dtype=np.int32), count)
            if not self._in_order:
                order = np.argsort(placed, axis=1)
                placed, labels = np.take_along_axis(placed, order, axis=1), order.ravel().astype(np.int32)
            positions = placed.ravel()
        self._columns = self._fields.values(self._members, sets)
        return MatchBatch(
            query=self._name,
            names=names,
            starts=starts,
            ends=ends,
            offsets=offsets,
            positions=positions,
            labels=labels,
        )

    def _listed(
        self, sets: Int64s, filled: npt.NDArray[np.bool_]
    ) -> tuple[Int64s, Int64s, npt.NDArray[np.int32], tuple[tuple[str, ...], ...]]:
        """Offsets, positions and labels of sets whose members may be made of several events, or share some."""
        row_of, slot_of = np.nonzero(filled)
        lists = self._members.positions(sets[filled])
        sizes = np.diff(lists.offsets)
        rows, slots = np.repeat(row_of, sizes), np.repeat(slot_of, sizes)
        order = np.lexsort((slots, lists.values, rows))
        rows, slots, positions = rows[order], slots[order], lists.values[order]
        first = np.ones(len(rows), bool)
        first[1:] = (rows[1:] != rows[:-1]) | (positions[1:] != positions[:-1])
        labels, names = slots.astype(np.int32), list(self._names)
        begins = np.flatnonzero(first)
        shares = np.diff(np.append(begins, len(rows)))
        for group in np.flatnonzero(shares > 1).tolist():  # one event in several slots, through what is derived from it
            begin = int(begins[group])
            shared = tuple(sorted(self._variables[slot] for slot in slots[begin : begin + shares[group]].tolist()))
            if shared not in names:
                names.append(shared)
            labels[begin] = names.index(shared)
        counts = np.bincount(rows[first], minlength=len(sets))
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(counts)]).astype(np.int64)
        return offsets, positions[first], labels[first], tuple(names)

    def _absences(self, rows: Int64s) -> MatchBatch:
        """Matches without events; `firsts` and `lasts` tell them apart from other absences at the same time."""
        keys, starts, ends, origins = rows.T.copy()
        count = len(rows)
        self._columns = self._fields.of_events(self._members, count, lambda _: self._stage.key_members(keys))
        return MatchBatch(
            query=self._name,
            names=(),
            starts=starts,
            ends=ends,
            firsts=starts,
            lasts=origins,
            offsets=np.zeros(count + 1, np.int64),
            positions=np.empty(0, np.int64),
            labels=np.empty(0, np.int32),
        )

    def derived(self, sets: Int64s, found: MatchBatch) -> Derived:
        """The matches that were made of sets as events."""
        count = len(found)
        lists = Lists(found.offsets, found.positions)
        types = pa.DictionaryArray.from_arrays(np.zeros(count, np.int32), pa.array([self._name]))
        batch = EventBatch(types, found.starts, found.ends, np.zeros(count, np.int64), self._columns)
        source = single_lists(np.full(count, self._source, np.int64))
        if found.lasts is not None:
            return Derived(batch, lists, side_by_side([source, single_lists(found.lasts)]))
        end = single_lists(np.full(count, -1, np.int64))
        places = np.where(sets >= 0, self._members.places(np.maximum(sets, 0)), -1)
        slots = np.broadcast_to(np.arange(sets.shape[1]), sets.shape)
        pairs = np.stack([places, slots], axis=2)[sets >= 0].ravel()
        sizes = 2 * (sets >= 0).sum(axis=1)
        members = Lists(np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes)]), pairs)
        return Derived(batch, lists, side_by_side([source, lists, end, members]))


def side_by_side(parts: Sequence[Lists]) -> Lists:
    """Lists joined one by one: the first of each part, the second of each part, …"""
    count, width = len(parts[0].offsets) - 1, len(parts)
    order = (np.arange(width) * count + np.arange(count)[:, None]).ravel()
    joined = joined_lists(parts).take(order)
    return Lists(joined.offsets[::width].copy(), joined.values)
