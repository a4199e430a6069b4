"""The fields of matches whose members are known by position: attributes are kept while a member may be in a match."""

from __future__ import annotations

import json
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.predicates import Attribute
from weft.algebra.situations import SituationQuery
from weft.runtime.events import EventBatch, Int64s
from weft.runtime.situations.formulas import Attributes, value_of
from weft.runtime.situations.happenings import column_values

LEAST = 1 << 14


class MemberFields:
    """The values that a situation derives from the members of a match."""

    def __init__(self, query: SituationQuery) -> None:
        self._slots = len(query.situation.participants)
        self._by = query.situation.context.by
        slots: dict[str | None, int] = {name: at for at, name in enumerate(query.situation.variables)}
        self._fields = [(field.name, value_of(field.value, {**slots, None: self._slots})) for field in query.fields]
        read = {node.name for field in query.fields for node in field.walk() if isinstance(node, Attribute)}
        self._columns = sorted(read | set(self._by))
        self._kept: dict[int, Attributes] = {}
        self._bound = LEAST
        self._batch: EventBatch | None = None
        self._values: dict[str, list[object]] = {}

    def events(self, batch: EventBatch, members: npt.NDArray[np.int64]) -> pa.Array:
        """The derived event of each match, as JSON. Members are in this batch or were kept."""
        texts = []
        for positions in members.tolist():
            read = [self._attributes(batch, position) for position in positions]
            bound = [*read, {name: read[0][name] for name in self._by}]
            texts.append(json.dumps({name: value(bound) for name, value in self._fields}, ensure_ascii=False))
        return pa.array(texts, pa.string())

    def keep(self, batch: EventBatch, live: Int64s) -> None:
        """Remember the attributes of the events of a batch that may be members later."""
        fresh = live[live >= batch.positions[0]]
        self._kept |= {position: self._attributes(batch, position) for position in fresh.tolist()}
        if len(self._kept) > self._bound:
            self._kept = {position: self._kept[position] for position in live.tolist() if position in self._kept}
            self._bound = max(LEAST, 2 * len(self._kept))

    def _attributes(self, batch: EventBatch, position: int) -> Attributes:
        if position < batch.positions[0]:
            return self._kept[position]
        if self._batch is not batch:
            self._batch = batch
            present = [name for name in self._columns if name in batch.columns]
            self._values = {name: column_values(batch.columns[name], len(batch)) for name in present}
        row = int(np.searchsorted(batch.positions, position))
        found: Mapping[str, object] = {name: values[row] for name, values in self._values.items()}
        return {name: value for name, value in found.items() if isinstance(value, int | float | str)}

    def page(self) -> bytes:
        """As a page of the state."""
        return json.dumps(list(self._kept.items())).encode()

    def load(self, page: bytes) -> None:
        """Go on from a page."""
        self._kept = dict(json.loads(page))
        self._bound = max(LEAST, 2 * len(self._kept))
