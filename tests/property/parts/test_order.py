"""Reading events equals sorting plain dicts, for all sizes of batches."""

from __future__ import annotations

import hypothesis.strategies as st
import pyarrow as pa
from hypothesis import given, settings

from weft.runtime.data import blocks
from weft.runtime.reading.order import read_events

TIMES = st.one_of(st.integers(0, 6), st.sampled_from([1.0, 2.5, 2**53 + 1, float("nan"), "x", True, None]))
EVENTS = st.one_of(
    st.fixed_dictionaries({"type": st.sampled_from(["A", "B"]), "ts": st.integers(0, 6)}),
    st.fixed_dictionaries({"type": st.just("A"), "start": st.integers(0, 4), "end": st.integers(2, 6)}),
    st.fixed_dictionaries({}, optional={"type": st.sampled_from(["A", 1]), "ts": TIMES, "start": TIMES, "end": TIMES}),
)


def ticks(value):
    if value is None or value != value:
        return "missing"
    whole = isinstance(value, (int, float)) and not isinstance(value, bool) and value == int(value)
    return int(value) if whole else "bad"


def times_of(event):
    time = ticks(event.get("ts"))
    start, end = (time, time) if time != "missing" else (ticks(event.get("start")), ticks(event.get("end")))
    return (start, end) if isinstance(start, int) and isinstance(end, int) and start <= end else None


@settings(max_examples=50, deadline=None)
@given(st.lists(EVENTS, max_size=25), st.integers(1, 8))
def test_stream_order(events, batch_size):
    rows = [{**event, "row": row} for row, event in enumerate(events)]
    source = read_events(rows, batch_size=batch_size)
    batches = list(source)
    found = [
        (int(start), int(end), int(position), batch.columns["row"].value(i))
        for batch in batches
        for i, (start, end, position) in enumerate(zip(batch.starts, batch.ends, batch.positions, strict=True))
    ]
    timed = [(times_of(e), row) for row, e in enumerate(events) if times_of(e) and isinstance(e.get("type"), str)]
    expected = sorted(timed, key=lambda item: (item[0][1], item[0][0]))
    assert found == [(*times, position, row) for position, (times, row) in enumerate(expected)]
    assert [r.row for r in source.rejected] == [row for row in range(len(events)) if row not in {r for _, r in timed}]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.integers(0, 9), max_size=40), st.integers(1, 9), st.integers(1, 9))
def test_merge_puts_pieces_together_again(times, pieces, size):
    table = pa.table({"type": pa.array(["T"] * len(times), pa.string()), "ts": pa.array(times, pa.int64())})
    batch = blocks.concat(read_events(table, batch_size=size))
    lanes = [blocks.take(batch, (batch.positions % pieces == k).nonzero()[0]) for k in range(pieces)]
    merged = blocks.merge(blocks.unpack(blocks.pack(lane)) for lane in reversed(lanes))
    assert merged.positions.tolist() == batch.positions.tolist()
    assert merged.ends.tolist() == sorted(times)
