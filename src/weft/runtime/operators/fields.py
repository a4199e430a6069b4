"""Output fields: expressions over the attributes of variables, and over times, for all matches at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import pyarrow as pa

from weft.algebra.composites import Field
from weft.algebra.predicates import Attribute, Expression
from weft.algebra.terms import Elapsed, Previous
from weft.runtime.classify import vectors
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.data.exact import shown
from weft.tree import Node


class Fields:
    """Output fields of one query: the attributes and times that they read, and their values."""

    def __init__(self, fields: Sequence[Field]) -> None:
        self._fields = [(field.name, field.value.transform(by_column)) for field in fields]
        parts = [part for field in fields for part in field.value.walk()]
        self.read = sorted({(part.variable or "", part.name) for part in parts if isinstance(part, Attribute)})
        self.elapsed = list(dict.fromkeys(part for part in parts if isinstance(part, Elapsed)))

    def __bool__(self) -> bool:
        return bool(self._fields)

    @property
    def attributes(self) -> list[str]:
        """Return the names of the attributes that the fields read, of any variable."""
        return sorted({name for _, name in self.read})

    def values(self, columns: Mapping[str, Column], count: int) -> dict[str, pa.Array]:
        """Return the fields of `count` matches, given the columns that they read under `column_name`."""
        none = np.zeros(count, np.int64)
        batch = EventBatch(pa.nulls(count, pa.string()), none, none, none, columns)
        return {name: shown(_column_of(value, batch), count) for name, value in self._fields}


def column_name(part: Attribute | Elapsed) -> str:
    """Return the name of the column with an attribute of a variable, or with an elapsed time."""
    return f"{part.variable}\0{part.name}" if isinstance(part, Attribute) else repr(part)


def by_column(node: Node) -> Node:
    """Rewrite attributes of variables and elapsed times to attributes of the current match."""
    match node:
        case Attribute() | Elapsed():
            return Attribute(column_name(node))
        case Previous():
            return Attribute("\0")  # there is no previous event: the value is missing
    return node


def _column_of(value: Node, batch: EventBatch) -> Column:
    """Evaluate an expression for all rows of a batch."""
    assert isinstance(value, Expression)
    if isinstance(value, Attribute):
        return batch.columns.get(value.name, Column())
    return vectors.shown_column(value, batch)
