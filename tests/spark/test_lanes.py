"""Lanes, times and runs: what the Spark runtime is made of, without Spark."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.plan.partitioning.one import One
from weft.plan.partitioning.splits import Lane
from weft.runtime.data import blocks
from weft.runtime.data.events import Column
from weft.runtime.reading.order import read_events
from weft.runtime.reading.ties import ranks_of
from weft.runtime.spark.jobs.lane_ids import partition_of, spread
from weft.runtime.spark.lanes.sequencer import Sequencer
from weft.runtime.spark.packing.runs import SortedRun, cut_run, pack_run, unpack_run
from weft.runtime.spark.packing.times import decode_times, encode_times
from weft.runtime.spark.packing.wire import narrow, pack_events, unpack_events
from weft.runtime.spark.watermark import Lateness

SOME = settings(max_examples=30, deadline=None)
ticks = st.one_of(st.integers(-3, 3), st.integers(-(2**62), 2**62))


@SOME
@given(st.lists(st.tuples(ticks, st.integers(0, 300), st.integers(0, 2)), max_size=20), st.booleans())
def test_times_survive_the_wire(times: list[tuple[int, int, int]], instant: bool) -> None:
    ends = np.array(sorted(end for end, *_ in times), np.int64)
    starts = ends if instant else ends - np.array([span for _, span, _ in times], np.int64)
    ranks = np.array([rank for *_, rank in times], np.int64)
    found_ends, found_starts, found_ranks = decode_times(encode_times(ends, starts, ranks))
    assert found_ends.tolist() == ends.tolist()
    assert found_starts.tolist() == starts.tolist()
    assert np.broadcast_to(found_ranks, len(ends)).tolist() == ranks.tolist()


values = st.sampled_from([None, 0, -7, 300, 70000, 2**40, 1.5, "text", "", True])


@SOME
@given(st.lists(st.tuples(st.integers(0, 5), values, st.sampled_from("AB")), max_size=12), st.integers(0, 12))
def test_events_survive_the_wire(rows: list[tuple[int, object, str]], dropped: int) -> None:
    source = read_events([{"ts": ts, "type": kind, "x": value} for ts, value, kind in rows])
    everything = blocks.concat(list(source))
    kept = blocks.slice(everything, min(dropped, len(everything)))
    found = unpack_events(pack_events(narrow(kept)), everything.ends, everything.starts)
    for name in ("starts", "ends", "positions"):
        assert getattr(found, name).tolist() == getattr(kept, name).tolist()
    assert found.types.to_pylist() == kept.types.to_pylist()
    for name, column in kept.columns.items():
        again = found.columns.get(name, Column())
        assert [again.value(i) for i in range(len(kept))] == [column.value(i) for i in range(len(kept))]


def test_lanes_land_on_their_own_partitions() -> None:
    # Spark's own answers to pmod(hash(cast(id as int)), 7) for the first ids.
    assert [partition_of(value, 7) for value in range(10)] == [1, 2, 5, 4, 1, 5, 4, 2, 1, 3]
    lanes = [Lane(i, (i,), One("one lane"), 0, 1) for i in range(5)]
    assert len({partition_of(lane.id, 5) for lane in spread(lanes, 5)}) == 5
    assert len({partition_of(lane.id, 200) for lane in spread(lanes, 200)}) == 5
    few = spread(lanes, 2)
    assert len({lane.id for lane in few}) == 5
    assert sorted(partition_of(lane.id, 2) for lane in few) == [0, 0, 0, 1, 1]


def run_of(times: list[tuple[int, ...]], origin: int) -> SortedRun:
    """A run of (end, length) or (end, length, rank of the source)."""
    events = [
        {"start": end - span, "end": end, "type": "ABC"[sum(rank)], "x": f"{origin}/{i}"}
        for i, (end, span, *rank) in enumerate(times)
    ]
    batch = blocks.concat(list(read_events(events, sources="ABC")))
    ranks = ranks_of(batch.types, "ABC") if len(batch) else 0
    return unpack_run(pack_run(SortedRun((0, 0, origin, 0), batch.ends, batch.starts, batch, ranks)))


runs = st.lists(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 2), st.integers(0, 2)), max_size=5), max_size=4)


@SOME
@given(runs, st.lists(st.integers(0, 10), max_size=3))
def test_a_sequencer_sorts_all_runs_into_stream_order(shapes: list[list[tuple[int, ...]]], bounds: list[int]) -> None:
    sequencer = Sequencer()
    for number, shape in enumerate(shapes):
        sequencer.add(run_of(shape, number))
    found = [sequencer.release(bound) for bound in [*sorted(bounds), None]]
    got = [(int(b.positions[i]), b.columns["x"].value(i)) for b in found for i in range(len(b))]
    wanted = [
        (end, end - span, rank, number, at, f"{number}/{at}")
        for number, shape in enumerate(shapes)
        for at, (end, span, rank) in enumerate(shape)
    ]
    # Equal times: by the source's rank, then by run, then by place in it.
    assert got == [(position, name) for position, (*_, name) in enumerate(sorted(wanted))]
    assert sequencer.waiting == 0


def test_positions_count_the_events_of_other_lanes() -> None:
    whole = run_of([(1, 0), (2, 0), (5, 0), (9, 0)], 0)
    mine = SortedRun(whole.origin, whole.ends, whole.starts, blocks.take(whole.events, np.array([1, 3])))
    sequencer = Sequencer()
    sequencer.add(mine)
    assert sequencer.release(5).positions.tolist() == [1]
    assert sequencer.first_held == 5
    assert sequencer.release(None).positions.tolist() == [3]


@pytest.mark.parametrize("begin", [0, 1, 3])
def test_a_cut_run_can_be_stored(begin: int) -> None:
    run = cut_run(run_of([(1, 0), (2, 1), (5, 0), (9, 3)], 4), begin)
    found = unpack_run(pack_run(run))
    assert (found.origin, found.ends.tolist(), found.starts.tolist()) == (
        run.origin,
        run.ends.tolist(),
        run.starts.tolist(),
    )
    assert found.events.positions.tolist() == run.events.positions.tolist()
    assert run.used == begin


def test_spark_watermarks_are_counted_in_ticks() -> None:
    assert Lateness(None, "s").from_spark(2999) == 2
    assert Lateness(None, "us").from_spark(3) == 3000
    assert Lateness(None).from_spark(0) is None
    for unit in ("us", "ms", "s"):
        lateness = Lateness(None, unit)
        first = lateness.passed_at(5)
        assert (lateness.from_spark(first) or 0) > 5
        assert (lateness.from_spark(first - 1) or 0) <= 5
