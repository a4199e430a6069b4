"""Events as columns, the input of every engine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from decimal import Decimal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]

STREAM = "stream"  # the attribute that names the stream an event came from
SHOWN = "\0."  # begins the names of columns that `SELECT *` shows: copies, but for type and times
BEGUN = "\0begun"  # an attribute of instants that rules define: where the first event starts that each is made of


def number_of_digits(digits: str) -> int | Decimal:
    """Parse digits; those without a point are integers."""
    return int(digits) if digits.lstrip("-").isdigit() else Decimal(digits)


@dataclass(frozen=True)
class Column:
    """One attribute of a batch of events, split by kind; null in each array where an event has no such value.

    Almost always exactly one of the three is present. A JSON attribute that is a number in one event and a text in the
    next has both, each null where the other has the value. NaN never occurs: it is null. Values of other kinds (lists,
    objects, bytes) are missing in all three. Beside floats, `exact` has the digits of numbers that floats do not
    represent exactly: decimals, and integers that do not fit or are among floats; see `data/exact.py`.
    """

    numbers: pa.Array | None = None  # int64 or float64
    texts: pa.Array | None = None  # string, or dictionary of strings
    booleans: pa.Array | None = None
    others: pa.Array | None = None  # true where the input has a value of no kind; only input columns have it
    exact: pa.Array | None = None  # string: the digits of a number of which `numbers` has the nearest float
    fine: pa.Array | None = None  # int64: nanoseconds by which a time is after its tick; only input columns have it

    def map(self, change: Callable[[pa.Array], pa.Array]) -> Column:
        """Apply a function to each present array."""
        numbers, texts, booleans, exact = self.numbers, self.texts, self.booleans, self.exact
        return Column(
            None if numbers is None else change(numbers),
            None if texts is None else change(texts),
            None if booleans is None else change(booleans),
            exact=None if exact is None else change(exact),
            fine=None if self.fine is None else change(self.fine),
        )

    def value(self, row: int) -> int | float | Decimal | str | bool | None:
        """Return the value of one event, or None."""
        if self.exact is not None and self.exact[row].is_valid:
            return number_of_digits(self.exact[row].as_py())
        for array in (self.numbers, self.texts, self.booleans):
            if array is not None and array[row].is_valid:
                found: int | float | str | bool = array[row].as_py()
                return found
        return None


@dataclass(frozen=True)
class EventBatch:
    """Consecutive events in stream order.

    `columns` has every attribute by name, including the type, time and stream columns under their names in the input.
    `positions` are places in the whole stream: ascending, but with gaps where events went to other lanes or were
    filtered
    out as irrelevant. `rows` are the events as the input has them, with its types, where results show them.
    With derived events, positions are places in the merged input. `latest` are then the last positions in the input up
    to
    each event, and `origins` the first position that each consists of.
    """

    types: pa.Array  # string or dictionary; null where missing
    starts: Int64s
    ends: Int64s
    positions: Int64s
    columns: Mapping[str, Column] = field(default_factory=dict)
    streams: pa.Array | None = None
    latest: Int64s | None = None
    origins: Int64s | None = None
    rows: pa.RecordBatch | None = None

    def __len__(self) -> int:
        return len(self.positions)


@dataclass(frozen=True)
class Rejected:
    """An event that could not be read: its zero-based row in the input, the reason, and the readable part."""

    row: int
    reason: str
    event: Mapping[str, object] | None = None
    file: str | None = None  # for events from files; `line` is then one-based
    line: int | None = None

    def __str__(self) -> str:
        place = f"row {self.row}" if self.file is None else f"{self.file}:{self.line}"
        return f"{place}: {self.reason}"
