"""Events as columns: the form in which every engine takes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt
import pyarrow as pa

Int64s = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Column:
    """One attribute of a batch of events, split by kind; null (in each present array) where the event has no such value.

    Almost always exactly one of the three is present. A JSON attribute that is a number in one event and
    a text in the next has both, each null where the other has the value. NaN never occurs: it is null.
    """

    numbers: pa.Array | None = None  # int64 or float64
    texts: pa.Array | None = None  # string, or dictionary of strings
    booleans: pa.Array | None = None


@dataclass(frozen=True)
class EventBatch:
    """Consecutive events in stream order.

    `columns` holds every attribute by name, the type, time and stream columns included under their names
    in the input. `positions` are places in the whole stream: ascending, but with gaps where events went
    to other lanes or were filtered out as irrelevant.
    """

    types: pa.Array  # string or dictionary; null where missing
    starts: Int64s
    ends: Int64s
    positions: Int64s
    columns: Mapping[str, Column] = field(default_factory=dict)
    streams: pa.Array | None = None

    def __len__(self) -> int:
        return len(self.positions)
