"""Rows of events are sent without what events have anyway, and are the same again when they arrive."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

from weft.runtime.data import blocks
from weft.runtime.data.events import EventBatch
from weft.runtime.reading.chunks import arrow_chunk
from weft.runtime.reading.order import EventSource, Reading
from weft.runtime.spark.packing.lean_rows import alike, lean
from weft.runtime.spark.packing.wire import narrow, pack_events, unpack_events

COLUMNS = ("ts", "type", "number", "float", "text", "flag", "small", "other")
MENTIONED = frozenset({"number", "float", "text", "flag", "small"})


def table(count: int = 40, *, dictionary: bool = False, floats: Sequence[float | None] = (0.5, 1.5)) -> pa.RecordBatch:
    """Rows with columns of several types."""
    texts = pa.array([("a", None, "longer")[number % 3] for number in range(count)])
    types = pa.array(["AB"[number % 2] for number in range(count)])
    return pa.record_batch(
        {
            "ts": pa.array(range(1000, 1000 + count)),
            "type": types.dictionary_encode() if dictionary else types,
            "number": pa.array([None if number % 7 == 3 else number * 5 for number in range(count)], pa.int64()),
            "float": pa.array([floats[number % len(floats)] for number in range(count)], pa.float64()),
            "text": texts.dictionary_encode() if dictionary else texts,
            "flag": pa.array([number % 2 == 0 for number in range(count)]),
            "small": pa.array([number % 5 for number in range(count)], pa.int8()),
            "other": pa.array([number - 10 for number in range(count)], pa.int64()),
        }
    )


def read(rows: pa.RecordBatch) -> EventBatch:
    """The rows as events, which results show whole."""
    reading = Reading(columns=MENTIONED, shown=frozenset(COLUMNS))
    return blocks.concat(EventSource(partial(list, (arrow_chunk(rows, "ms"),)), reading))


def sent(events: EventBatch) -> EventBatch:
    """The events as they arrive."""
    return unpack_events(pack_events(narrow(events)), events.ends, events.starts)


@pytest.mark.parametrize("dictionary", [False, True])
@pytest.mark.parametrize("floats", [(0.5, 1.5), (0.0, -0.0, 1.0), (math.nan, 2.0), (None, 3.0)])
def test_rows_arrive_as_they_were(dictionary: bool, floats: Sequence[float | None]) -> None:
    rows = table(dictionary=dictionary, floats=floats)
    events = read(rows)
    arrived = sent(lean(events)).rows
    assert arrived is not None
    assert arrived.schema == rows.schema
    assert repr(arrived.to_pylist()) == repr(rows.to_pylist())


def test_what_events_have_is_not_sent_again() -> None:
    events = read(table(4000))
    left_out = lean(events).rows
    assert left_out is not None
    assert [name for name in COLUMNS if left_out[name].type == pa.null()] == ["ts", "type", "number", "float", "text"]
    assert len(pack_events(narrow(lean(events)))) < len(pack_events(narrow(events))) - 4000 * 20


def test_some_events_arrive_with_their_own_rows() -> None:
    rows = table()
    events = lean(read(rows))
    chosen = np.array([3, 4, 17, 39])
    own = replace(blocks.take(events, chosen), positions=np.arange(4))
    arrived = sent(own).rows
    assert arrived is not None
    assert arrived.to_pylist() == rows.take(pa.array(chosen)).to_pylist()


def test_chunks_without_the_same_columns_are_joined() -> None:
    first, second = table(floats=(1.0, 2.0)), table(floats=(math.nan, 2.0))  # a number that is none is no attribute
    joined = blocks.concat(alike([lean(read(first)), lean(read(second))]))
    assert joined.rows is not None
    assert repr(joined.rows.to_pylist()) == repr([*first.to_pylist(), *second.to_pylist()])


def test_columns_that_are_not_the_events_times_are_sent() -> None:
    rows = table().set_column(7, "other", pa.array(range(1001, 1041)))
    left_out = lean(read(rows)).rows
    assert left_out is not None
    assert left_out["other"].type == pa.int64()
