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
        self.arena = OccurrenceStore([*columns.names, *self._digits.values()], code)

    def __len__(self) -> int:
        return self.arena.event_count

    @property
    def bytes_of_each(self) -> int:
        """The bytes that an event takes, without its texts."""
        return (EVENT + self.arena.width) * self.arena.events.itemsize

    def add(self, batch: EventBatch, chosen: Int64s) -> int:
        """Keep some events of a batch; the number of the first."""
        known = {name: batch.columns.get(name, Column()).exact for name in self._digits}
        digits = {self._digits[name]: Column(texts=exact) for name, exact in known.items() if exact is not None}
        digits |= {name: to_column(evaluate(value, batch), len(batch)) for name, value in self._worked_out.items()}
        return self.arena.add(replace(batch, columns={**batch.columns, **digits}) if digits else batch, chosen)

    # -- what is known of them ------------------------------------------------------------------

    def times(self, members: Int64s) -> tuple[Int64s, Int64s]:
        """The starts and ends of events."""
        at = members * EVENT
        return self.arena.events[at + EVENT_START], self.arena.events[at + EVENT_END]

    @property
    def first(self) -> int:
        """The place of the first that is kept."""
        return int(self.arena.events[POSITION])

    def places(self, members: Int64s) -> Int64s:
        """Their places in what the situation sees: their positions, when it sees the input only."""
        found: Int64s = self.arena.events[members * EVENT + POSITION]
        return found

    def column(self, name: str, members: Int64s) -> Column:
        """An attribute of events; missing where the number is negative."""
        if name not in self.arena.columns or not len(self):
            return Column()
        at = np.maximum(members, 0) * self.arena.width + VALUE * self.arena.columns.index(name)
        kinds = np.where(members >= 0, self.arena.values[at], MISSING)
        return column_of(kinds, self.arena.values[at + 1], self.arena.texts)

    def shown(self, name: str, members: Int64s) -> Column:
        """An attribute of events with the digits that it came with."""
        column = self.column(name, members)
        digits = self.column(self._digits[name], members).texts
        return column if digits is None else with_digits(column, digits)

    # -- giving up ------------------------------------------------------------------------------

    def keep(self, live: npt.NDArray[np.bool_]) -> Int64s:
        """Give up all but some events; the new number of each."""
        arena, kept = self.arena, np.flatnonzero(live)
        numbers: Int64s = np.cumsum(live) - 1
        arena.events = arena.events[: len(live) * EVENT].reshape(-1, EVENT)[kept].ravel()
        if arena.width:
            arena.values = arena.values[: len(live) * arena.width].reshape(-1, arena.width)[kept].ravel()
        arena.event_count = len(kept)
        arena.drop_texts()
        return numbers

    # -- state ----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Int64s]:
        """What is kept, as arrays; texts are apart."""
        arena, count = self.arena, len(self)
        return {
            "events": arena.events[: count * EVENT],
            "values": arena.values[: count * arena.width],
        }

    def texts(self) -> dict[str, bytes]:
        """The texts that are kept, as pages."""
        return text_pages("texts", self.arena.texts.texts())

    def load(self, pages: Pages) -> None:
        """Go on from the pages of arrays and texts."""
        arena = self.arena
        arena.events, arena.values = pages.numbers("events"), pages.numbers("values")
        arena.event_count = len(arena.events) // EVENT
        arena.restore_texts(pages.texts("texts"))
