"""Matching sets as matches: all of a batch at once."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pyarrow as pa

from weft.algebra.predicates import Attribute
from weft.algebra.situations import SituationQuery
from weft.runtime.events import Column, EventBatch, Int64s
from weft.runtime.exact import shown
from weft.runtime.joins.fields import by_column, column_name, column_of
from weft.runtime.matches import MatchBatch
from weft.runtime.situations.members import Members
from weft.runtime.situations.stage import Stage

Columns = dict[str, Column]
EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


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
            column_name(Attribute(name, variable or None)): (members.shown if variable else members.column)(
                name, of_variable(variable)
            )
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
    """Makes matches of the sets of one situation."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._members = stage.members
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
        fields = {name: shown(column, len(found)) for name, column in self._columns.items()}
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
        if self._alone:
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
