"""Conditions on whole sets that are tested after the search, many sets at once: functions of several events."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.predicates import Always, And, Attribute, Not, Or, Predicate
from weft.runtime.classify import vectors
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.operators.event_store import Columns
from weft.runtime.operators.fields import by_column, column_name
from weft.runtime.operators.situations.members import Members

Mask = npt.NDArray[np.bool_]


class SetFilter:
    """Selects the sets that satisfy conditions on their events."""

    def __init__(self, conditions: Sequence[Predicate], variables: Sequence[str], columns: Columns) -> None:
        whole = And(tuple(conditions))
        self._condition = whole.transform(by_column)
        self._read = {
            column_name(part): (part.name, variables.index(part.variable or ""))
            for part in whole.walk()
            if isinstance(part, Attribute)
        }
        for name, _ in self._read.values():
            columns.number(name)

    def __call__(self, members: Members, sets: Int64s) -> Mask:
        """Return where the conditions hold."""
        none = np.zeros(len(sets), np.int64)
        columns = {own: members.column(name, sets[:, slot]) for own, (name, slot) in self._read.items()}
        assert isinstance(self._condition, Predicate)
        return _holds(self._condition, EventBatch(pa.nulls(len(sets), pa.string()), none, none, none, columns))


def _holds(condition: Predicate, batch: EventBatch) -> Mask:
    match condition:
        case Always():
            return np.ones(len(batch), bool)
        case Not(operand):
            return ~_holds(operand, batch)
        case And(operands):
            return reduce(np.logical_and, (_holds(one, batch) for one in operands), np.ones(len(batch), bool))
        case Or(operands):
            return reduce(np.logical_or, (_holds(one, batch) for one in operands), np.zeros(len(batch), bool))
    return vectors.holds(condition, batch)
