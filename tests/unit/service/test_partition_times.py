"""How far a topic has come: each partition has a time of its own, and idle ones are not waited for."""

from __future__ import annotations

import pytest

pytest.importorskip("pyspark")
from weft.runtime.spark.lanes.idle import idle_names
from weft.runtime.spark.packing.runs import CLOCK, RunRow
from weft.runtime.spark.watermark import Lateness

SECOND = 10**9
TOPIC = Lateness(
    0,
    sources=2,
    topics=frozenset({1}),
    partitions=frozenset({"1/0", "1/1"}),
    idle_after={1: 5 * SECOND},
)


def run(source: int, part: int, first: int | None = 0) -> RunRow:
    return RunRow(0, first, source, part, 0, b"", b"", None, None)


def clock(seconds: int) -> RunRow:
    return RunRow(0, seconds * SECOND, 0, 0, CLOCK, b"", b"", None, None)


def test_times_are_named_by_source_or_partition() -> None:
    assert TOPIC.awaited == {"0", "1/0", "1/1"}
    assert (TOPIC.name_of(0, 8), TOPIC.name_of(1, 8)) == ("0", "1/8")
    assert Lateness(0).awaited == {"0"}
    assert Lateness(0, topics=None).awaited == frozenset()
    assert Lateness(0, topics=None).name_of(77, 3) == "77/3"


def test_a_partition_is_idle_when_the_clock_says_so() -> None:
    heard: dict[str, int] = {}
    assert idle_names(["0", "1/0"], heard, [run(0, 0), run(1, 0), clock(100)], TOPIC) == frozenset()
    assert heard == {"1/0": 100 * SECOND, "1/1": 100 * SECOND}  # files have clocks of their own
    assert idle_names(["0", "1/0"], heard, [run(1, 0), clock(104)], TOPIC) == frozenset()
    assert idle_names(["0", "1/0"], heard, [clock(105)], TOPIC) == {"1/1"}
    assert idle_names(["0", "1/0"], heard, [clock(109)], TOPIC) == {"1/0", "1/1"}
    assert idle_names(["0", "1/0"], heard, [run(1, 1), clock(110)], TOPIC) == {"1/0"}


def test_a_new_partition_is_watched_when_it_has_sent_something() -> None:
    heard: dict[str, int] = {}
    assert idle_names(["1/7"], heard, [run(1, 7), clock(1)], TOPIC) == frozenset()
    assert "1/7" in idle_names(["1/7"], heard, [clock(6)], TOPIC)


def test_without_a_clock_nobody_is_idle() -> None:
    heard: dict[str, int] = {}
    assert idle_names(["1/0"], heard, [run(1, 0)], TOPIC) == frozenset()
    assert heard == {}
