"""Time series against plain sums over lists of what was put in."""

from __future__ import annotations

import math
import os
from collections.abc import Sequence

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from weft.kernels import series, stretches
from weft.runtime.events import Column
from weft.runtime.series import Series, words_of

SOME = settings(max_examples=int(os.environ.get("WEFT_EXAMPLES", "40")), deadline=None)
LANES = 3
EDGES = (2**40, 2**53, 2**53 + 1, 2**62, 2**63 - 1, -(2**63), -(2**53) - 1)
ODD = (
    1e308,
    -1e308,
    1.7e-308,
    5e-324,
    1e-30,
    float(2**53),
    2.0**63,
    -(2.0**63),
    float("inf"),
    float("-inf"),
    0.1,
    -0.0,
)

small = st.integers(-3, 3) | st.floats(-1, 1, width=32)
usual = small | st.integers(-1000, 1000) | st.floats(-1e6, 1e6)
unusual = (
    usual
    | st.sampled_from(EDGES)
    | st.sampled_from(ODD)
    | st.integers(-(2**63), 2**63 - 1)
    | st.floats(allow_nan=False)
)
entries = st.lists(
    st.tuples(st.integers(0, LANES - 1), st.integers(0, 3), st.none() | st.just("text") | unusual), max_size=60
)
usual_entries = st.lists(st.tuples(st.integers(0, LANES - 1), st.integers(0, 3), usual), max_size=200)
questions = st.lists(
    st.tuples(st.integers(-1, LANES - 1), st.integers(-1, 60), st.integers(0, 40)), min_size=1, max_size=20
)


def word(value: object) -> tuple[int, int]:
    """Kind and word of a value."""
    if isinstance(value, float):
        return series.FLOAT, int(np.float64(value).view(np.int64))
    return (series.INTEGER, value) if isinstance(value, int) else (series.MISSING if value is None else series.OTHER, 0)


def put(into: Series, placed: Sequence[tuple[int, int, object]]) -> None:
    """Append entries: lane, time and value."""
    kinds, words = zip(*(word(value) for _, _, value in placed), strict=True) if placed else ((), ())
    lanes = np.array([lane for lane, _, _ in placed], np.int64)
    times = np.array([time for _, time, _ in placed], np.int64)
    into.append(lanes, times, np.array(kinds, np.uint8), np.array(words, np.int64))


def expected(function: int, values: Sequence[object]) -> int | float | None:
    """What the function is of a list of values."""
    numbers = [value for value in values if isinstance(value, int | float)]
    if function == stretches.COUNT_ALL:
        return len(values)
    if function == stretches.COUNT_PRESENT:
        return sum(value is not None for value in values)
    if not numbers:
        return None
    if function in (stretches.MIN_OF, stretches.MAX_OF):
        return min(numbers) if function == stretches.MIN_OF else max(numbers)
    try:
        total = sum(numbers) if all(isinstance(number, int) for number in numbers) else math.fsum(numbers)
    except (OverflowError, ValueError):
        return None
    if function == stretches.AVG_OF:
        return total / len(numbers)
    return total if -(2**63) <= total < 2**63 or isinstance(total, float) else float(total)


def check(
    of: Series, placed: Sequence[tuple[int, int, object]], asked: Sequence[tuple[int, int, int]], seen: int
) -> None:
    """All functions of all stretches that begin at `seen` or later."""
    asked = [(lane, max(low, seen), max(low, seen) + length) for lane, low, length in asked]
    lanes, lows, highs = (np.array(part, np.int64) for part in zip(*asked, strict=True))
    of.add_lanes(LANES)
    for function in range(6):
        kinds, words = of.summarize(np.full(len(asked), function, np.uint8), lanes, lows, highs)
        found = [
            None
            if kind == series.MISSING
            else value
            if kind == series.INTEGER
            else float(np.int64(value).view(np.float64))
            for kind, value in zip(kinds.tolist(), words.tolist(), strict=True)
        ]
        inside = [[v for on, t, v in placed if on == lane and low <= t <= high] for lane, low, high in asked]
        assert found == [expected(function, values) for values in inside]
    assert of.are_empty(lanes, lows, highs).tolist() == [not values for values in inside]


def at_times(steps: Sequence[tuple[int, int, object]]) -> list[tuple[int, int, object]]:
    times = np.cumsum([step for _, step, _ in steps]).tolist()
    return [(lane, time, value) for (lane, _, value), time in zip(steps, times, strict=True)]


@SOME
@given(steps=entries, asked=questions)
def test_functions_of_stretches_are_those_of_their_values(
    steps: Sequence[tuple[int, int, object]], asked: Sequence[tuple[int, int, int]]
) -> None:
    placed = at_times(steps)
    filled = Series()
    put(filled, placed)
    check(filled, placed, asked, -1)


@SOME
@given(steps=usual_entries, asked=questions, window=st.integers(0, 30), size=st.integers(1, 50))
def test_what_is_forgotten_changes_nothing_later(
    steps: Sequence[tuple[int, int, object]], asked: Sequence[tuple[int, int, int]], window: int, size: int
) -> None:
    placed = at_times(steps)
    filled = Series()
    filled._take(8)
    for begin in range(0, len(placed), size):
        now = placed[begin][1]
        put(filled, placed[begin : begin + size])
        filled.forget(now - window)
        filled = Series.restored(filled.state())
        check(filled, placed[: begin + size], asked, now - window)


def test_what_is_forgotten_makes_room() -> None:
    filled = Series()
    for begin in range(0, 100_000, 1000):
        times = np.arange(begin, begin + 1000)
        filled.append(times % 7, times, np.full(1000, series.INTEGER, np.uint8), times)
        filled.forget(begin)
    assert len(filled.times) < 40_000
    assert filled.lanes[series.KEPT :: series.LANE].sum() < 10_000


def test_without_values_only_times_are_kept() -> None:
    filled = Series(valued=False)
    filled.append(np.array([0, 1, 0]), np.array([1, 2, 3]))
    assert filled.are_empty(np.array([0, 0, 1, -1]), np.array([2, 2, 1, 0]), np.array([2, 3, 1, 9])).tolist() == [
        True,
        False,
        True,
        True,
    ]
    kinds, counts = filled.summarize(np.zeros(1, np.uint8), np.array([0]), np.array([1]), np.array([3]))
    assert (kinds[0], counts[0]) == (series.INTEGER, 2)
    assert not len(filled.records)


@pytest.mark.parametrize(
    ("column", "kinds", "words"),
    [
        (Column(), [0, 0], [0, 0]),
        (Column(numbers=pa.array([7, None])), [2, 0], [7, 0]),
        (Column(numbers=pa.array([None, 1.0])), [0, 3], [0, 0x3FF0000000000000]),
        (Column(numbers=pa.array([4, None]), texts=pa.array([None, "x"])), [2, 1], [4, 0]),
        (Column(booleans=pa.array([True, None])), [1, 0], [0, 0]),
    ],
)
def test_values_of_columns(column: Column, kinds: list[int], words: list[int]) -> None:
    found = words_of(column, 2)
    assert (found[0].tolist(), found[1].tolist()) == (kinds, words)
