"""Batches cut, picked, merged and as bytes."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from weft.runtime.data import blocks
from weft.runtime.data.events import Column, EventBatch


def batch_of(times, *, first=0, starts=None, texts=None):
    ends = np.array(times, np.int64)
    numbers = pa.array([float(t) if t % 2 else None for t in times])
    return EventBatch(
        types=pa.array([f"T{t % 3}" for t in times]).dictionary_encode(),
        starts=ends if starts is None else np.array(starts, np.int64),
        ends=ends,
        positions=np.arange(first, first + len(times)),
        columns={"x": Column(numbers), "s": Column(texts=pa.array(texts or [str(t) for t in times]))},
        streams=pa.array(["S"] * len(times)),
    )


def rows_of(batch):
    return [
        (
            batch.types[i].as_py(),
            int(batch.starts[i]),
            int(batch.ends[i]),
            int(batch.positions[i]),
            {name: column.value(i) for name, column in batch.columns.items()},
            None if batch.streams is None else batch.streams[i].as_py(),
        )
        for i in range(len(batch))
    ]


@pytest.mark.parametrize("compression", [None, "lz4", "zstd"])
def test_bytes_hold_the_batch(compression):
    batch = batch_of([1, 2, 5, 8], starts=[0, 2, 4, 8])
    assert rows_of(blocks.unpack(blocks.pack(batch, compression))) == rows_of(batch)


def test_a_slice_packs_only_its_own_rows():
    large = batch_of(list(range(2000)))
    small = blocks.slice(large, 100, 10)
    assert rows_of(blocks.unpack(blocks.pack(small))) == rows_of(large)[100:110]
    assert len(blocks.pack(small)) < len(blocks.pack(large)) / 5


def test_one_time_for_start_and_end_stays_one():
    unpacked = blocks.unpack(blocks.pack(batch_of([1, 2])))
    assert unpacked.starts is unpacked.ends


def test_no_events():
    assert len(blocks.unpack(blocks.pack(blocks.empty()))) == 0
    assert len(blocks.merge([])) == 0


def test_merge_is_by_end_start_position():
    left = batch_of([1, 4, 4], first=0, starts=[1, 4, 4])
    right = batch_of([4, 4, 9], first=10, starts=[3, 4, 0])
    merged = blocks.merge([right, left])
    assert merged.positions.tolist() == [0, 10, 1, 2, 11, 12]


def test_concat_keeps_what_only_some_batches_have():
    wholes = EventBatch(pa.array(["A"]), *[np.array([1])] * 3, {"x": Column(pa.array([7])), "b": Column()})
    floats = EventBatch(pa.array(["B"]).dictionary_encode(), *[np.array([2])] * 3, {"x": Column(pa.array([0.5]))})
    other = EventBatch(pa.array(["C"]), *[np.array([3])] * 3, {"x": Column(booleans=pa.array([True]))}, pa.array(["S"]))
    joined = blocks.concat([wholes, floats, other])
    assert [row[4]["x"] for row in rows_of(joined)] == [7.0, 0.5, True]
    assert joined.types.to_pylist() == ["A", "B", "C"]
    assert joined.streams is not None
    assert joined.streams.to_pylist() == [None, None, "S"]


def test_take_and_slice():
    batch = batch_of([1, 2, 3, 4])
    assert rows_of(blocks.take(batch, np.array([3, 0]))) == [rows_of(batch)[3], rows_of(batch)[0]]
    assert blocks.slice(batch, 0) is batch
    assert rows_of(blocks.slice(batch, 2)) == rows_of(batch)[2:]
