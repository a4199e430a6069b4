"""Merging sources equals sorting plain tuples, for all batches, heartbeats and silences."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
from hypothesis import given, settings

from weft.runtime.data import blocks
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.reading.order import merged_order, stream_order
from weft.runtime.reading.stabilise import Stabiliser

SOURCES = ("one", "two", "three")
TYPES = ("A", "B", "C")
EVENTS = st.tuples(st.integers(0, 8), st.integers(0, 2), st.sampled_from(TYPES))  # end, length, type
STEPS = st.one_of(
    st.tuples(st.just("push"), st.sampled_from(SOURCES), st.lists(EVENTS, max_size=5)),
    st.tuples(st.just("heartbeat"), st.sampled_from(SOURCES), st.integers(0, 12)),
    st.tuples(st.just("wait"), st.just("one"), st.integers(1, 3)),
    st.tuples(st.just("release"), st.just("one"), st.just(0)),
)


def batch_of(rows):
    """A batch of (end, length, type, id)."""
    ends = np.array([row[0] for row in rows], np.int64)
    starts = ends - np.array([row[1] for row in rows], np.int64)
    if len(rows) and (starts == ends).all():
        starts = ends
    return EventBatch(
        pa.array([row[2] for row in rows], pa.string()).dictionary_encode(),
        starts,
        ends,
        np.zeros(len(rows), np.int64),
        {"id": Column(numbers=pa.array([row[3] for row in rows], pa.int64()))},
    )


def ids_of(batch):
    return [] if not len(batch) else batch.columns["id"].numbers.to_pylist()


class Run:
    """A stabiliser with what went in and came out."""

    def __init__(self, **options):
        self.now = 0.0
        self.merge = Stabiliser(SOURCES, clock=lambda: self.now, **options)
        self.given = []  # (end, length, type, id, source)
        self.batches = []

    def step(self, kind, source, what):
        if kind == "push":
            rows = [(*event, len(self.given) + n) for n, event in enumerate(what)]
            self.given += [(*row, source) for row in rows]
            self.merge.push(source, batch_of(rows))
        elif kind == "heartbeat":
            self.merge.heartbeat(source, what)
        elif kind == "wait":
            self.now += what
        else:
            self.batches.append(self.merge.release())

    def end(self):
        self.batches.append(self.merge.flush())
        late = [n for item in self.merge.take_late() for n in ids_of(item.events)]
        return ids_of(blocks.concat(self.batches)), late


def expected(steps, types, delay):
    """By the definition: ids in stream order, late ids, and ids that may go on because all sources have passed them."""
    passed = dict.fromkeys(SOURCES, -(10**9))
    timely, late, number = [], [], 0
    for kind, source, what in steps:
        if kind == "heartbeat":
            passed[source] = max(passed[source], what)
        for end, length, name in what if kind == "push" else ():
            rank = types.index(name) if name in types else len(types)
            key = (end, end - length, rank, SOURCES.index(source), number)
            (late if end < passed[source] else timely).append(key)
            passed[source] = max(passed[source], end - delay)
            number += 1
    in_order = [(end, number) for end, *_, number in sorted(timely)]
    free = [number for end, number in in_order if end < min(passed.values())]
    return [number for _, number in in_order], sorted(number for *_, number in late), free


@settings(max_examples=50, deadline=None)
@given(st.lists(STEPS, max_size=25), st.sampled_from([(), ("B", "A"), TYPES]), st.integers(0, 3))
def test_merged_is_sorted(steps, types, delay):
    run = Run(types=types, delay=delay)
    for number, step in enumerate(steps):
        run.step(*step)
        if step[0] == "release":
            assert ids_of(blocks.concat(run.batches)) == expected(steps[:number], types, delay)[2]
    ids, late = run.end()
    assert (ids, sorted(late)) == expected(steps, types, delay)[:2]
    positions = [position for batch in run.batches for position in batch.positions.tolist()]
    assert positions == list(range(len(ids)))


@settings(max_examples=50, deadline=None)
@given(st.lists(STEPS, max_size=25), st.integers(0, 2), st.integers(1, 4))
def test_nothing_is_lost_when_sources_fall_silent(steps, delay, idle_after):
    run = Run(delay=delay, idle_after=idle_after)
    for step in steps:
        run.step(*step)
        counters = run.merge.counters
        assert counters["given"] == len(run.given)
        assert counters["given"] == counters["released"] + counters["late"] + run.merge.waiting
    ids, late = run.end()
    assert sorted(ids + late) == list(range(len(run.given)))
    order = [(run.given[n][0], run.given[n][0] - run.given[n][1], SOURCES.index(run.given[n][4]), n) for n in ids]
    assert order == sorted(order)


@settings(max_examples=30, deadline=None)
@given(
    st.lists(st.tuples(st.integers(-(1 << 62), 1 << 62), st.integers(0, 1 << 62), st.integers(0, 5)), max_size=30),
    st.booleans(),
)
def test_order_of_any_times(rows, ranked):
    """Also of times so far apart that they do not fit into words."""
    ends = np.array([row[0] for row in rows], np.int64)
    starts = ends - np.array([row[1] for row in rows], np.int64)
    ranks = np.array([row[2] if ranked else 0 for row in rows], np.int64)
    keys = [(end, start, rank, n) for n, (end, start, rank) in enumerate(zip(ends, starts, ranks, strict=True))]
    assert stream_order(starts, ends, ranks if ranked else None).tolist() == [key[-1] for key in sorted(keys)]
    third = len(rows) // 3
    parts = merged_order(starts, ends, ranks, [0, 2 * third], [third, len(rows)])
    assert parts.tolist() == [key[-1] for key in sorted(keys[:third] + keys[2 * third :])]
