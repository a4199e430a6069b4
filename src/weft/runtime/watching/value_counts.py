"""How often each value of an attribute came: columns in, numbers of pairs that a comparison holds for out."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from itertools import accumulate
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.runtime.data.events import Column
from weft.stored import Plain

KINDS = ("numbers", "texts", "booleans")  # values of different kinds do not compare
MOST_VALUES = 1 << 16  # values of a kind that are told apart; others that come later do not count


class ValueCounts:
    """The values of one attribute, each with how often it came."""

    def __init__(self) -> None:
        self._known: dict[str, pa.Table] = {}

    def add(self, column: Column, rows: pa.Array) -> None:
        """Count the values in some rows."""
        for kind in KINDS:
            values = getattr(column, kind)
            if values is None:
                continue
            found = pc.value_counts(values.filter(rows).drop_null())
            own, counts = found.field("values"), found.field("counts")
            if pa.types.is_dictionary(own.type):
                own = own.dictionary_decode()
            self._known[kind] = _joined(self._known.get(kind), pa.table([own, counts], ["value", "count"]))

    def __len__(self) -> int:
        return sum(map(len, self._known.values()))

    def saved(self) -> Plain:
        """What was counted, as plain data."""
        return {kind: _pairs(known) for kind, known in self._known.items() if len(known)}

    def resume(self, saved: Plain) -> None:
        """Go on from what another one has saved."""
        for kind, pairs in saved.items():
            values, counts = zip(*pairs, strict=True)
            self._known[kind] = pa.table([pa.array(values), pa.array(counts, pa.int64())], ["value", "count"])

    @property
    def total(self) -> int:
        """How many values there were."""
        return sum(map(_total, self._known.values()))

    def holding(self, operator: str, other: ValueCounts) -> int:
        """For how many pairs of a value here and one there a comparison is true."""
        kinds = [(known, other._known[kind]) for kind, known in self._known.items() if kind in other._known]
        if operator == "=":
            return sum(_equal(*tables) for tables in kinds)
        if operator == "<>":
            return sum(_total(one) * _total(two) - _equal(one, two) for one, two in kinds)
        return sum(_ordered(operator, *tables) for tables in kinds)


def _joined(known: pa.Table | None, fresh: pa.Table) -> pa.Table:
    if known is None or not len(known):
        return fresh.slice(0, MOST_VALUES)
    both = pa.concat_tables(_alike(known, fresh))
    sums = both.group_by("value", use_threads=False).aggregate([("count", "sum")])
    return sums.rename_columns({"count_sum": "count"}).slice(0, MOST_VALUES)


def _alike(one: pa.Table, other: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Return both tables with values of one type; mixed numbers are counted as floats."""
    if one["value"].type == other["value"].type:
        return one, other
    return tuple(table.set_column(0, "value", table["value"].cast(pa.float64(), safe=False)) for table in (one, other))


def _total(known: pa.Table) -> int:
    total: int = pc.sum(known["count"]).as_py() or 0
    return total


def _equal(one: pa.Table, other: pa.Table) -> int:
    one, other = _alike(one, other)
    places = pc.index_in(one["value"], value_set=other["value"].combine_chunks())
    both = pc.take(other["count"], places).fill_null(0)
    return int(np.dot(one["count"].to_numpy().astype(float), both.to_numpy().astype(float)))


def _ordered(operator: str, one: pa.Table, other: pa.Table) -> int:
    """The pairs that stand in an order."""
    theirs: list[tuple[Any, int]] = sorted(_pairs(other))
    values = [value for value, _ in theirs]
    before = [0, *accumulate(count for _, count in theirs)]
    place = bisect_left if operator in ("<=", ">") else bisect_right
    found = 0
    for value, count in _pairs(one):
        less = before[place(values, value)]
        found += count * (before[-1] - less if operator in ("<", "<=") else less)
    return found


def _pairs(known: pa.Table) -> list[tuple[Any, int]]:
    return list(zip(known["value"].to_pylist(), known["count"].to_pylist(), strict=True))
