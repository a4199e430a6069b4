"""Events read from what users have, in stream order, and those that cannot be read."""

from __future__ import annotations

import datetime
import weakref
from decimal import Decimal

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

from weft.errors import InputError, UsageError
from weft.runtime.data import blocks
from weft.runtime.reading.order import read_events
from weft.schema import Catalog, EventType, Kind, Stream

EVENTS = [
    {"type": "A", "ts": 5, "x": 1},
    {"type": "B", "ts": 3, "x": "text"},
    {"type": "C", "start": 1, "end": 4, "x": True},
    {"type": "D", "ts": 3, "stream": "S"},
]


def rows_of(source, *names):
    batch = blocks.concat(source)
    return [(batch.types[i].as_py(), *(batch.columns[name].value(i) for name in names)) for i in range(len(batch))]


def test_dicts_in_stream_order():
    batch = blocks.concat(read_events(EVENTS))
    assert batch.types.to_pylist() == ["B", "D", "C", "A"]
    assert batch.starts.tolist() == [3, 3, 1, 5]
    assert batch.ends.tolist() == [3, 3, 4, 5]
    assert batch.positions.tolist() == [0, 1, 2, 3]
    assert [batch.columns["x"].value(i) for i in range(4)] == ["text", None, True, 1]
    assert batch.streams.to_pylist() == [None, "S", None, None]


@pytest.mark.parametrize("times", [range(500), range(500, 0, -1)], ids=["in order", "to be sorted"])
def test_dicts_of_an_iterator_are_given_up_as_they_are_read(times):
    alive = most = 0

    def gone():
        nonlocal alive
        alive -= 1

    class Row(dict):
        pass

    def rows():
        nonlocal alive, most
        for time in times:
            row = Row(type="A", ts=time, x=time if time % 7 else None)
            weakref.finalize(row, gone)
            alive += 1
            most = max(most, alive)
            yield row
            del row

    read = rows_of(read_events(rows(), batch_size=20), "x")
    assert read == rows_of(read_events(list(rows())), "x")
    most = 0
    assert len(list(read_events(rows(), batch_size=20))) == 25
    assert most <= 21  # those of one batch, and the first of the next


@pytest.mark.parametrize(
    "convert",
    [
        pa.Table.from_pylist,
        lambda rows: pa.Table.from_pylist(rows).to_batches(),
        lambda rows: pa.Table.from_pylist(rows).to_batches()[0],
        lambda rows: pa.Table.from_pylist(rows).to_reader(),
        lambda rows: iter(pa.Table.from_pylist(rows).to_batches(max_chunksize=1)),
        pd.DataFrame,
        pl.DataFrame,
        lambda rows: pl.DataFrame(rows).lazy(),
        iter,
    ],
)
def test_all_forms_give_the_same(convert):
    rows = [{"type": "A", "ts": 9 - i, "name": f"n{i % 3}", "price": i / 2, "ok": i % 2 == 0} for i in range(9)]
    batch_size = 4
    source = read_events(convert(rows), batch_size=batch_size)
    batches = list(source)
    assert max(map(len, batches)) <= batch_size
    expected = [("A", *list(row.values())[1:]) for row in reversed(rows)]
    assert rows_of(batches, "ts", "name", "price", "ok") == expected
    assert source.counters == {"events": 9, "rejected": 0}


def test_ordered_input_is_not_copied():
    table = pa.table({"type": ["A"] * 4, "ts": [1, 2, 2, 3], "price": [1.0, 2.0, 3.0, 4.0]})
    (batch,) = read_events(table)
    address = table.column("price").chunk(0).buffers()[1].address
    assert batch.columns["price"].numbers.buffers()[1].address == address
    assert batch.starts is batch.ends


def test_only_wanted_columns():
    (batch,) = read_events(EVENTS, columns={"x", "absent"})
    assert set(batch.columns) == {"x"}
    assert batch.streams is not None


@pytest.mark.parametrize(
    ("values", "ticks"),
    [
        (pa.array([1.0, 2.0]), [1, 2]),
        (pa.array([1, 2], pa.uint8()), [1, 2]),
        (pa.array([1, 2], pa.timestamp("s")), [1000, 2000]),
        (pa.array([1_500_000, 2_999_999], pa.timestamp("us", "Europe/Madrid")), [1500, 2999]),
        (pa.array([datetime.date(1970, 1, 2), datetime.date(1970, 1, 3)]), [86_400_000, 172_800_000]),
        (pa.array(["1970-01-01T00:00:01", "1970-01-01T01:00:02+01:00"]), [1000, 2000]),
        (pa.array([Decimal("5"), Decimal("6")]), [5, 6]),
    ],
)
def test_times_become_ticks(values, ticks):
    (batch,) = read_events(pa.table({"type": ["A", "A"], "ts": values}))
    assert batch.ends.tolist() == ticks


def test_time_unit():
    table = pa.table({"type": ["A"], "ts": pa.array([90_000], pa.timestamp("ms"))})
    assert [next(iter(read_events(table, time_unit=unit))).ends[0] for unit in ("s", "min")] == [90, 1]
    with pytest.raises(UsageError, match="unknown time unit 'sec'"):
        read_events(table, time_unit="sec")


def test_unreadable_events_are_rejected_with_reasons():
    source = read_events(
        [
            {"type": "A", "ts": 1},
            {"type": "A"},
            {"type": "A", "start": 4, "end": 3},
            {"type": "A", "start": 4},
            {"type": "A", "ts": 2.5},
            {"type": "A", "ts": "soon"},
            {"type": "A", "ts": True},
            {"ts": 3},
            {"type": 7, "ts": 3},
            "text",
            {"type": "B", "ts": 0},
        ]
    )
    assert rows_of(source, "ts") == [("B", 0), ("A", 1)]
    assert [str(r) for r in source.rejected] == [
        "row 1: no time: no value in 'ts', nor in 'start' and 'end'",
        "row 2: starts after it ends: 'start' is 4, 'end' is 3",
        "row 3: no time: 'start' but no 'end'",
        "row 4: 'ts' is not a time: 2.5",
        "row 5: 'ts' is not a time: 'soon'",
        "row 6: 'ts' is not a time: True",
        "row 7: no type: no value in 'type'",
        "row 8: 'type' is not a text: 7",
        "row 9: not an event: 'text'",
    ]
    assert source.rejected[3].event == {"type": "A", "ts": 2.5}
    assert source.counters == {"events": 2, "rejected": 9}


def test_declared_kinds():
    stock = EventType("A", (("x", Kind.INT), ("name", Kind.TEXT)))
    catalog = Catalog(streams=(Stream("S", (stock,)), Stream("U", (EventType("A", (("x", Kind.TEXT),)),))))
    source = read_events(
        [
            {"type": "A", "ts": 0, "x": 2.0, "name": None, "stream": "S"},
            {"type": "A", "ts": 1, "x": 2.5, "stream": "S"},
            {"type": "A", "ts": 2, "x": "t", "stream": "S"},
            {"type": "A", "ts": 3, "x": "t", "stream": "U"},
            {"type": "A", "ts": 4, "x": "t"},
            {"type": "A", "ts": 5, "x": True},
            {"type": "A", "ts": 6, "name": [1], "stream": "S"},
            {"type": "B", "ts": 7, "x": [1]},
        ],
        catalog=catalog,
        columns=[],
    )
    assert [b.positions.tolist() for b in source] == [[0, 1, 2, 3]]
    assert [str(r) for r in source.rejected] == [
        "row 1: 'x' of A is declared int, not 2.5",
        "row 2: 'x' of A is declared int, not 't'",
        "row 5: 'x' of A is declared int, not True",
        "row 6: 'name' of A is declared text, not a value of no kind",
    ]


def test_columns_of_all_types():
    names = pa.array(["a", "b"])
    table = pa.table(
        {
            "type": pa.array(["A", "B"], pa.large_string()),
            "ts": [1, 2],
            "f": pa.array([0.5, float("nan")], pa.float32()),
            "u": pa.array([1, 2**64 - 1], pa.uint64()),
            "d": pa.array([Decimal("1.25"), None]),
            "view": pa.array(["p", None], pa.string_view()),
            "coded": pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), names),
            "large": pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), names.cast(pa.large_string())),
            "numbers": pa.DictionaryArray.from_arrays(pa.array([1, 0], pa.int8()), pa.array([5, 6])),
            "when": pa.array([1, 2], pa.timestamp("s")),
            "none": pa.nulls(2),
            "list": [[1], []],
            "bytes": [b"a", b"b"],
        }
    )
    (batch,) = read_events(table)
    seen = {name: [column.value(0), column.value(1)] for name, column in batch.columns.items()}
    assert batch.types.type == pa.string()
    assert seen["f"] == [0.5, None]
    assert seen["u"] == [1, 2**64 - 1]
    assert seen["d"] == [1.25, None]
    assert seen["view"] == ["p", None]
    assert seen["coded"] == seen["large"] == ["b", "a"]
    assert pa.types.is_dictionary(batch.columns["coded"].texts.type)
    assert seen["numbers"] == [6, 5]
    assert seen["when"] == [1000, 2000]
    assert seen["none"] == seen["list"] == seen["bytes"] == [None, None]


def test_odd_values_in_dicts():
    rows = [
        {"type": "A", "ts": 0, "x": 2**63, "y": np.int32(4), "z": "é", "w": datetime.timedelta(seconds=2)},
        {"type": "A", "ts": 1, "x": 1, "y": np.bool_(True), "z": {"a": 1}, "w": datetime.datetime(1970, 1, 2)},
    ]
    assert rows_of(read_events(rows), "x", "y", "z", "w") == [
        ("A", float(2**63), 4, "é", 2000),
        ("A", 1.0, True, None, 86_400_000),
    ]


def test_pandas_with_mixed_objects():
    frame = pd.DataFrame({"type": ["A", "B"], "ts": [2.0, 1.0], "x": [1, "one"]})
    assert rows_of(read_events(frame), "x") == [("B", "one"), ("A", 1)]


def test_missing_columns_are_an_error_with_a_hint():
    with pytest.raises(InputError, match=r"no column 'type'.*the columns are Type, ts; did you mean 'Type'"):
        list(read_events(pa.table({"Type": ["A"], "ts": [1]})))
    with pytest.raises(InputError, match=r"no column 'type'.*, and none 'ts' for their time; .*--time NAME --type"):
        list(read_events(pa.table({"what": ["A"], "when": [1]})))
    with pytest.raises(InputError, match=r"no column 'ts' for the time of events, nor 'start' and 'end'"):
        list(read_events(pa.table({"type": ["A"], "time": [1]})))
    with pytest.raises(InputError, match="two columns of the input are called 'x'"):
        list(read_events(pa.table([["A"], [1], [1], [1]], names=["type", "ts", "x", "x"])))


@pytest.mark.parametrize("data", [{"type": "A", "ts": 1}, "events.jsonl", 5])
def test_what_cannot_be_events(data):
    with pytest.raises(UsageError, match="events cannot be read from"):
        list(read_events(data))


def test_an_iterator_is_read_once_and_a_list_again():
    source = read_events(iter(EVENTS))
    assert sum(map(len, source)) == 4
    with pytest.raises(UsageError, match="read already"):
        list(source)
    again = read_events(EVENTS)
    assert sum(map(len, again)) == sum(map(len, again)) == 4


def test_promised_order_streams_and_is_checked():
    def endless():
        time = 0
        while True:
            yield {"type": "A", "ts": time}
            time += 1

    batches = iter(read_events(endless(), ordered=True, batch_size=10))
    assert [next(batches).positions[0] for _ in range(3)] == [0, 10, 20]
    with pytest.raises(InputError, match="not in stream order"):
        list(read_events(EVENTS, ordered=True))


def test_no_events():
    assert list(read_events([])) == []
    assert list(read_events(pa.table({"type": pa.array([], pa.string()), "ts": pa.array([], pa.int64())}))) == []
