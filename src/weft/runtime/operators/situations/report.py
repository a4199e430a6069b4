"""Convert matching sets to matches, all of a batch at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pyarrow as pa

from weft.algebra.predicates import Attribute
from weft.runtime.data.events import Column, Int64s
from weft.runtime.data.matches import MatchBatch
from weft.runtime.operators.fields import Fields, column_name
from weft.runtime.operators.situations.members import Members
from weft.runtime.operators.situations.stage import Stage

EARLIEST, LATEST = np.iinfo(np.int64).min, np.iinfo(np.int64).max


def fields_of_sets(fields: Fields, members: Members, variables: Sequence[str], sets: Int64s) -> dict[str, pa.Array]:
    """Return the output fields of matching sets.

    Attributes without a variable are values of the key, read from any member.
    """
    columns: dict[str, Column] = {}
    for variable, name in fields.read:
        if variable:
            column = members.shown(name, sets[:, variables.index(variable)])
        else:
            column = members.column(name, sets.max(axis=1))
        columns[column_name(Attribute(name, variable or None))] = column
    return fields.values(columns, len(sets))


class Reporter:
    """Builds matches from the sets of one situation."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._members = stage.members
        query = stage.query
        self._name = query.name
        self._variables = query.situation.variables
        self._names: tuple[tuple[str, ...], ...] = tuple((name,) for name in self._variables)
        self._in_order = query.situation.kind == "sequence"
        self._alone = query.situation.kind == "any"
        self._fields = Fields(query.fields)

    def by_end(self, sets: Int64s) -> Int64s:
        """Sort sets by the end of their matches."""
        if self._stage.is_absence:
            ends = sets[:, 2]
        elif self._stage.immediate:
            return sets  # they are found in the order of events
        else:
            ends = np.where(sets >= 0, self._members.times(np.maximum(sets, 0))[1], EARLIEST).max(axis=1)
        found: Int64s = sets[np.argsort(ends, kind="stable")]
        return found

    def matches(self, sets: Int64s) -> MatchBatch:
        """Build the matches of sets."""
        return self._absences(sets) if self._stage.is_absence else self._sets(sets)

    def _sets(self, sets: Int64s) -> MatchBatch:
        count, width = sets.shape
        names, offsets = self._names, np.arange(0, count * width + 1, width, dtype=np.int64)
        if self._in_order:  # the first event begins first and the last one ends last
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
        return MatchBatch(
            query=self._name,
            names=names,
            starts=starts,
            ends=ends,
            offsets=offsets,
            positions=positions,
            labels=labels,
            fields=fields_of_sets(self._fields, self._members, self._variables, sets),
        )

    def _absences(self, rows: Int64s) -> MatchBatch:
        """Build matches without events; `firsts` and `lasts` distinguish absences at the same time."""
        keys, starts, ends, origins = rows.T.copy()
        count = len(rows)
        members = self._stage.key_members(keys)[:, None]
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
            fields=fields_of_sets(self._fields, self._members, (), members),
            keys=self._stage.key_hashes(keys),
        )
