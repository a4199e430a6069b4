"""The events that a situation keeps: their times, their values for conditions and fields, what they are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from weft.kernels.joins.occurrences import EVENT, EVENT_END, EVENT_START, POSITION
from weft.kernels.machine.tagged import MISSING, VALUE
from weft.runtime.classify.functions import to_column
from weft.runtime.classify.vectors import evaluate
from weft.runtime.data.events import Column, EventBatch, Int64s
from weft.runtime.data.exact import with_digits
from weft.runtime.machine.code import Code
from weft.runtime.machine.values import column_of
from weft.runtime.operators.occurrence_store import Columns, OccurrenceStore
from weft.runtime.store.pages import Pages, text_pages


class Members:
    """Events by number, in the order of their places; numbers change when events are released."""

    def __init__(self, columns: Columns, code: Code, shown: Iterable[str] = ()) -> None:
        self._worked_out = columns.values
        # Beside what is shown stand its digits, as texts: decimals are written as they came.
        self._digits = {name: f"{name}\0digits" for name in sorted(shown)}
        self.store = OccurrenceStore([*columns.names, *self._digits.values()], code)

    def __len__(self) -> int:
        return self.store.event_count

    @property
    def bytes_of_each(self) -> int:
        """The bytes that an event takes, without its texts."""
        return (EVENT + self.store.width) * self.store.events.itemsize

    def add(self, batch: EventBatch, chosen: Int64s) -> int:
        """Keep some events of a batch; the number of the first."""
        known = {name: batch.columns.get(name, Column()).exact for name in self._digits}
        digits = {self._digits[name]: Column(texts=exact) for name, exact in known.items() if exact is not None}
        digits |= {name: to_column(evaluate(value, batch), len(batch)) for name, value in self._worked_out.items()}
        return self.store.add(replace(batch, columns={**batch.columns, **digits}) if digits else batch, chosen)

    # -- what is known of them ------------------------------------------------------------------

    def times(self, members: Int64s) -> tuple[Int64s, Int64s]:
        """The starts and ends of events."""
        at = members * EVENT
        return self.store.events[at + EVENT_START], self.store.events[at + EVENT_END]

    @property
    def first(self) -> int:
        """The place of the first that is kept."""
        return int(self.store.events[POSITION])

    def places(self, members: Int64s) -> Int64s:
        """Their places in what the situation sees: their positions, when it sees the input only."""
        found: Int64s = self.store.events[members * EVENT + POSITION]
        return found

    def column(self, name: str, members: Int64s) -> Column:
        """An attribute of events; missing where the number is negative."""
        if name not in self.store.columns or not len(self):
            return Column()
        at = np.maximum(members, 0) * self.store.width + VALUE * self.store.columns.index(name)
        kinds = np.where(members >= 0, self.store.values[at], MISSING)
        return column_of(kinds, self.store.values[at + 1], self.store.texts)

    def shown(self, name: str, members: Int64s) -> Column:
        """An attribute of events with the digits that it came with."""
        column = self.column(name, members)
        digits = self.column(self._digits[name], members).texts
        return column if digits is None else with_digits(column, digits)

    # -- giving up ------------------------------------------------------------------------------

    def keep(self, live: npt.NDArray[np.bool_]) -> Int64s:
        """Give up all but some events; the new number of each."""
        store, kept = self.store, np.flatnonzero(live)
        numbers: Int64s = np.cumsum(live) - 1
        store.events = store.events[: len(live) * EVENT].reshape(-1, EVENT)[kept].ravel()
        if store.width:
            store.values = store.values[: len(live) * store.width].reshape(-1, store.width)[kept].ravel()
        store.event_count = len(kept)
        store.drop_texts()
        return numbers

    # -- state ----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Int64s]:
        """What is kept, as arrays; texts are apart."""
        store, count = self.store, len(self)
        return {
            "events": store.events[: count * EVENT],
            "values": store.values[: count * store.width],
        }

    def texts(self) -> dict[str, bytes]:
        """The texts that are kept, as pages."""
        return text_pages("texts", self.store.texts.texts())

    def load(self, pages: Pages) -> None:
        """Go on from the pages of arrays and texts."""
        store = self.store
        store.events, store.values = pages.numbers("events"), pages.numbers("values")
        store.event_count = len(store.events) // EVENT
        store.restore_texts(pages.texts("texts"))
