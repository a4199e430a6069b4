"""Events of the input as their subscribers see them: each is a match of its type, made of itself."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.runtime import blocks
from weft.runtime.events import EventBatch
from weft.runtime.matches import MatchBatch
from weft.runtime.reading.kinds import plain_array


def events_as_matches(batch: EventBatch, type: str, type_column: str) -> MatchBatch | None:
    """The events of a type, with all attributes that some of them have; None if there are none."""
    rows = np.flatnonzero(np.asarray(pc.fill_null(pc.equal(batch.types, type), False)))
    if not len(rows):
        return None
    own = blocks.take(batch, rows)
    arrays = {name: plain_array(column, len(own)) for name, column in own.columns.items() if name != type_column}
    fields: dict[str, pa.Array] = {name: array for name, array in arrays.items() if array.null_count < len(array)}
    return MatchBatch(
        query=type,
        names=((type,),),
        starts=own.starts,
        ends=own.ends,
        offsets=np.arange(len(own) + 1),
        positions=own.positions,
        labels=np.zeros(len(own), np.int32),
        fields=fields,
    )
