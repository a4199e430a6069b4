"""Sources merged: who waits for whom, who is late, and what silence means."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from weft.errors import UsageError
from weft.kernels.events import merge as kernels
from weft.kernels.signatures import signatures_of
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.reading.stabilise import Stabiliser


class Clock:
    """A clock that stands still until it is told."""

    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


def batch(*times, name="T", **columns):
    ends = np.array(times, np.int64)
    values = {key: Column(numbers=pa.array(column)) for key, column in columns.items()}
    return EventBatch(pa.array([name] * len(times)), ends, ends, np.zeros(len(times), np.int64), values)


def ends(events):
    return events.ends.tolist()


def test_an_event_waits_for_every_other_source():
    merge = Stabiliser(["a", "b"])
    merge.push("a", batch(1, 3, 5))
    assert ends(merge.release()) == []
    merge.push("b", batch(4))
    assert ends(merge.release()) == [1, 3]
    merge.push("b", batch(9))
    assert ends(merge.release()) == [4]  # `a` may send another at 5
    assert merge.safe == 5
    assert (merge.waiting, merge.counters) == (2, {"given": 5, "released": 3, "late": 0})
    last = merge.flush()
    assert (ends(last), last.positions.tolist()) == ([5, 9], [3, 4])


def test_a_heartbeat_stands_for_events():
    merge = Stabiliser(["a", "b"])
    merge.push("a", batch(1, 3, 5))
    merge.heartbeat("b", 4)
    assert ends(merge.release()) == [1, 3]
    merge.heartbeat("b", 100)
    merge.heartbeat("a", 50)
    assert ends(merge.release()) == [5]
    assert merge.safe == 50


def test_a_source_that_has_ended_is_not_waited_for():
    merge = Stabiliser(["a", "b"])
    merge.push("a", batch(1, 3, 5))
    merge.push("b", batch(2))
    merge.close("b")
    assert ends(merge.release()) == [1, 2, 3]
    with pytest.raises(UsageError, match="the source 'b' has ended"):
        merge.push("b", batch(9))


def test_an_idle_source_is_not_waited_for():
    clock = Clock()
    merge = Stabiliser(["a", "b", "c"], idle_after=5, clock=clock)
    merge.push("a", batch(1, 3, 5))
    merge.push("c", batch(2))
    assert ends(merge.release()) == []
    clock.now += 4
    merge.push("a", batch(7))
    merge.push("c", batch(4))
    assert ends(merge.release()) == []
    clock.now += 1  # five seconds without a word from b
    assert ends(merge.release()) == [1, 2, 3]
    merge.push("b", batch(3, 4))  # the others have gone on to 4
    assert merge.counters["late"] == 1
    (late,) = merge.take_late()
    assert (late.source, ends(late.events), late.passed.tolist()) == ("b", [3], [4])
    assert merge.take_late() == []
    assert merge.safe == 4


def test_when_all_are_idle_nothing_waits():
    clock = Clock()
    merge = Stabiliser(["a", "b"], idle_after=5, clock=clock)
    merge.push("a", batch(1, 3))
    merge.push("b", batch(8))
    clock.now += 5
    assert ends(merge.release()) == [1, 3, 8]
    assert (merge.safe, merge.waiting) == (9, 0)
    assert ends(merge.release()) == []


def test_when_all_are_idle_what_may_still_be_delayed_waits():
    clock = Clock()
    merge = Stabiliser(["a", "b"], idle_after=5, delay=4, clock=clock)
    clock.now += 5
    assert ends(merge.release()) == []  # nothing has been seen yet
    merge.push("a", batch(1, 8, 6))
    clock.now += 5
    assert ends(merge.release()) == [1]
    merge.push("b", batch(5))
    assert ends(merge.flush()) == [5, 6, 8]


def test_what_comes_in_order_after_a_pause_of_all_is_not_late():
    clock = Clock()
    merge = Stabiliser(["a", "b"], idle_after=5, clock=clock)
    merge.push("a", batch(1, 3))
    merge.push("b", batch(8))
    clock.now += 500
    assert ends(merge.release()) == [1, 3, 8]
    merge.push("a", batch(9, 12))
    merge.push("b", batch(9, 10))
    clock.now += 500
    assert ends(merge.release()) == [9, 9, 10, 12]
    assert merge.take_late() == []


def test_the_first_to_go_on_after_a_pause_of_all_waits_for_the_others():
    clock = Clock()
    merge = Stabiliser(["a", "b", "c"], idle_after={"a": 5, "b": 5, "c": 9}, clock=clock)
    for name in ("a", "b", "c"):
        merge.push(name, batch(1))
    clock.now += 9
    assert ends(merge.release()) == [1, 1, 1]
    merge.push("b", batch(20))
    assert ends(merge.release()) == []
    clock.now += 1
    merge.push("a", batch(15, 21))
    merge.push("c", batch(16, 22))
    assert (ends(merge.release()), merge.take_late()) == ([15, 16], [])
    clock.now += 4
    merge.push("c", batch(23))
    clock.now += 4  # c paused for less than it may: it was not a pause of all
    merge.push("b", batch(30))
    assert ends(merge.release()) == [20, 21, 22]
    merge.push("a", batch(22))
    assert [ends(late.events) for late in merge.take_late()] == [[22]]


def test_each_source_is_idle_after_its_own_time():
    clock = Clock()
    merge = Stabiliser(["a", "b"], idle_after={"a": 5}, clock=clock)
    merge.push("b", batch(2, 4))
    assert (merge.patience(), merge.always_awaited("b")) == (5, True)
    clock.now += 5
    assert ends(merge.release()) == [2]
    merge.push("a", batch(7, 9))
    clock.now += 50
    assert (ends(merge.release()), merge.patience()) == ([], None)  # b is waited for, however long it is silent


def test_delayed_events_are_put_into_order():
    merge = Stabiliser(["a"], delay=3)
    merge.push("a", batch(4, 2, 6, 3, 1, x=[0, 1, 2, 3, 4]))
    first = merge.release()
    assert (ends(first), first.columns["x"].numbers.to_pylist()) == ([2], [1])
    assert ends(merge.flush()) == [3, 4, 6]
    assert merge.counters["late"] == 1  # 1, when 3 had been passed


def test_columns_of_different_sources():
    merge = Stabiliser(["a", "b"])
    merge.push("a", batch(1, 3, x=[1, 2]))
    merge.push("b", batch(2, x=[0.5], y=[7]))
    merged = merge.flush()
    assert merged.columns["x"].numbers.to_pylist() == [1.0, 0.5, 2.0]
    assert merged.columns["y"].numbers.to_pylist() == [None, 7, None]


def test_a_large_batch_is_used_piece_by_piece():
    merge = Stabiliser(["a", "b"])
    merge.push("a", batch(*range(10_000), x=list(range(10_000))))
    for time in (10, 11, 5000, 9999):
        merge.heartbeat("b", time)
        released = merge.release()
        assert ends(released) == released.columns["x"].numbers.to_pylist() == released.positions.tolist()
        assert ends(released)[-1] == time - 1
    assert ends(merge.flush()) == [9999]


def test_mistakes():
    with pytest.raises(UsageError, match="each its own"):
        Stabiliser(["a", "a"])
    with pytest.raises(UsageError, match="negative"):
        Stabiliser(["a"], delay=-1)
    with pytest.raises(UsageError, match="no source 'aa' to merge; did you mean 'a'"):
        Stabiliser(["a"]).push("aa", batch(1))


def test_kernels_are_called_as_they_are_compiled_ahead():
    merge = Stabiliser(["a", "b"], delay=10)
    merge.push("a", batch(1, 5, 3))
    merge.push("b", batch(4, 2))
    assert ends(merge.flush()) == [1, 2, 3, 4, 5]
    for kernel in (kernels.pass_of, kernels.words_of, kernels.order_of):
        assert kernel.signatures
        assert set(kernel.signatures) <= set(signatures_of(kernel.py_func)), kernel
