"""Input events for their subscribers: each is a match of its type that consists of itself."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.identity.chunks import Attributes
from weft.runtime.identity.events import EventIdentities
from weft.runtime.identity.ids import identified
from weft.runtime.reading.kinds import plain_array


class PrimitiveEvents:
    """Input events with ids from their type, their times and the attributes of `key`, or else all attributes."""

    def __init__(self, key: tuple[str, ...]) -> None:
        self._key = tuple(sorted(key))
        self._identities = EventIdentities()

    def matches(self, batch: EventBatch, types: Iterable[str], type_column: str) -> Iterator[MatchBatch]:
        """Yield the events of these types as matches, type by type."""
        names = self._key or tuple(sorted(name for name in batch.columns if name != type_column))
        attributes = Attributes(names, names)
        self._identities.want([attributes])
        self._identities.add(batch)
        for type_ in types:
            found = events_as_matches(batch, type_, type_column)
            if found is not None:
                yield identified(found, self._identities.of, {(type_,): attributes})
        self._identities.forget(lambda: None)


def events_as_matches(batch: EventBatch, type: str, type_column: str) -> MatchBatch | None:
    """Convert the events of a type with all their attributes to matches, or return None without any."""
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
