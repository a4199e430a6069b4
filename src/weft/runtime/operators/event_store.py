"""Event store of operators: times of events, and the values that conditions and output fields read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from weft.algebra.predicates import Expression
from weft.kernels.events import stored
from weft.kernels.machine import tagged
from weft.kernels.machine.machine import NOTES, Machine
from weft.kernels.memory.room import NOTE
from weft.runtime.data.buffers import fixed, with_room
from weft.runtime.data.events import EventBatch, Int64s
from weft.runtime.machine.code import Code
from weft.runtime.machine.evaluator import Evaluator
from weft.runtime.machine.values import only_used, tag_events
from weft.runtime.store.pages import Pages

Mask = npt.NDArray[np.bool_]


class Columns:
    """Attributes that are stored of events, by number."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self.names = list(names)
        self.values: dict[str, Expression] = {}  # by name, of computed attributes

    def number(self, name: str) -> int:
        """Return the number of an attribute; a new one is appended."""
        if name not in self.names:
            self.names.append(name)
        return self.names.index(name)

    def number_of_value(self, value: Expression) -> int:
        """Return the number of a value that is computed from an event's attributes when the event is added."""
        name = f"\0{value!r}"
        self.values[name] = value
        return self.number(name)


class EventStore(Evaluator):
    """Flat arrays of events; numbers ascend in the order of arrival, and change when events are released."""

    def __init__(self, columns: Sequence[str], code: Code) -> None:
        self.columns = tuple(columns)
        self.event_count = 0
        self.events: Int64s = np.empty(64 * stored.EVENT, np.int64)
        self.values: Int64s = np.empty(64 * self.width, np.int64)
        self.machine_notes = np.zeros((NOTES + 1) * NOTE, np.int64)
        super().__init__(code)

    @property
    def width(self) -> int:
        """The number of words that the values of one event take."""
        return 2 * len(self.columns)

    def drop_texts(self) -> bool:
        """Release unused texts when there are many, and return whether text ids changed."""
        if not self.texts.is_crowded:
            return False
        self.use_texts(only_used(self.texts, self.values[: self.event_count * self.width]))
        return True

    def widen(self, columns: Sequence[str]) -> None:
        """Add attributes, which existing events do not have."""
        values = self.values[: self.event_count * self.width].reshape(self.event_count, self.width)
        self.columns = tuple(columns)
        wider = np.full((self.event_count, self.width), tagged.MISSING, np.int64)
        wider[:, : values.shape[1]] = values
        self.values = with_room(wider.ravel(), wider.size, 64 * self.width)

    def machine(self) -> Machine:
        """Return the machine that evaluates conditions on the events."""
        return self.machine_on(self.values, self.width)

    # -- events ---------------------------------------------------------------------------------

    def event_times(self, events: Int64s, field: int) -> Int64s:
        """Return one field of events; for negative numbers the value is arbitrary."""
        found: Int64s = self.events[np.maximum(events, 0) * stored.EVENT + field]
        return found

    def expect(self, count: int) -> None:
        """Reserve space for `count` more events."""
        fields = stored.EVENT
        self.events = with_room(self.events, self.event_count * fields, count * fields)

    def add(self, batch: EventBatch, chosen: Int64s) -> int:
        """Add some events of a batch, and return the number of the first."""
        first = self.event_count
        self.expect(len(chosen))
        stored.write_events(chosen, fixed(batch.positions), fixed(batch.starts), fixed(batch.ends), first, self.events)
        self.add_values(batch, chosen)
        return first

    def add_values(self, batch: EventBatch, chosen: Int64s) -> None:
        """Store the values of some events of a batch whose positions and times are already written."""
        first, count, width = self.event_count, len(chosen), self.width
        self.event_count += count
        self.values = with_room(self.values, first * width, count * width)
        every = count == len(batch)
        values = self.values[first * width : (first + count) * width]
        tag_events(batch, None if every else chosen, self.columns, self.texts, values)

    def keep(self, live: Mask) -> Int64s:
        """Release all other events; return the new number of each."""
        places = np.zeros(len(live), np.int64)
        self.event_count = int(stored.slide_events(self.events, self.values, self.width, live, places))
        return places

    # -- state ----------------------------------------------------------------------------------

    def arrays(self) -> dict[str, Int64s]:
        """Return the events as arrays, without texts."""
        return {
            "events": self.events[: self.event_count * stored.EVENT],
            "values": self.values[: self.event_count * self.width],
        }

    def load(self, pages: Pages, under: str = "") -> None:
        """Restore the events, from arrays whose names have a prefix, and their texts."""
        self.events, self.values = pages.numbers(f"{under}events"), pages.numbers(f"{under}values")
        self.event_count = len(self.events) // stored.EVENT
        self.restore_texts(pages.texts("texts"))
