"""The events that a situation stores: their times, and their values for conditions and output fields."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np

from weft.kernels.events.stored import EVENT, EVENT_END, EVENT_START, POSITION
from weft.kernels.machine.tagged import MISSING, VALUE
from weft.runtime.classify.functions import to_column
from weft.runtime.classify.vectors import evaluate
from weft.runtime.data.events import Column, EventBatch, Int64s
from weft.runtime.data.exact import with_digits
from weft.runtime.machine.code import Code
from weft.runtime.machine.values import column_of
from weft.runtime.operators.event_store import Columns, EventStore, Mask
from weft.runtime.store.pages import text_pages


class Members(EventStore):
    """Stored events by number, in the order of their places; numbers change when events are released."""

    def __init__(self, columns: Columns, code: Code, shown: Iterable[str] = ()) -> None:
        self._computed = columns.values
        # Shown attributes have a second column with their digits as texts, so that decimals are written unchanged.
        self._digits = {name: f"{name}\0digits" for name in sorted(shown)}
        super().__init__([*columns.names, *self._digits.values()], code)

    def __len__(self) -> int:
        return self.event_count

    @property
    def bytes_of_each(self) -> int:
        """The bytes that an event takes, without its texts."""
        return (EVENT + self.width) * self.events.itemsize

    def add(self, batch: EventBatch, chosen: Int64s) -> int:
        """Store some events of a batch, and return the number of the first."""
        known = {name: batch.columns.get(name, Column()).exact for name in self._digits}
        digits = {self._digits[name]: Column(texts=exact) for name, exact in known.items() if exact is not None}
        digits |= {name: to_column(evaluate(value, batch), len(batch)) for name, value in self._computed.items()}
        return super().add(replace(batch, columns={**batch.columns, **digits}) if digits else batch, chosen)

    # -- attributes of events --------------------------------------------------------------------

    def times(self, members: Int64s) -> tuple[Int64s, Int64s]:
        """Return the starts and ends of events."""
        return self.event_times(members, EVENT_START), self.event_times(members, EVENT_END)

    @property
    def first(self) -> int:
        """The place of the first stored event."""
        return int(self.events[POSITION])

    def places(self, members: Int64s) -> Int64s:
        """Return the places of events in the input of the situation; without derived events these are positions."""
        return self.event_times(members, POSITION)

    def column(self, name: str, members: Int64s) -> Column:
        """Return an attribute of events, missing for negative numbers."""
        if name not in self.columns or not len(self):
            return Column()
        at = np.maximum(members, 0) * self.width + VALUE * self.columns.index(name)
        kinds = np.where(members >= 0, self.values[at], MISSING)
        return column_of(kinds, self.values[at + 1], self.texts)

    def shown(self, name: str, members: Int64s) -> Column:
        """Return an attribute of events with its original digits."""
        column = self.column(name, members)
        digits = self.column(self._digits[name], members).texts
        return column if digits is None else with_digits(column, digits)

    # -- releasing events -----------------------------------------------------------------------

    def keep(self, live: Mask) -> Int64s:
        """Release all but the marked events with memory and texts, and return the new number of each."""
        places = super().keep(live)
        self.events, self.values = (array.copy() for array in self.arrays().values())
        self.drop_texts()
        return places

    # -- state ----------------------------------------------------------------------------------

    def small(self) -> dict[str, bytes]:
        """Return the texts as pages."""
        return text_pages("texts", self.texts.texts())
