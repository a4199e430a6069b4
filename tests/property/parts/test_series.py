"""Time series against plain sums over lists of what was put in."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from tests.harness import some

from weft.kernels.compiler import KernelCompiler
from weft.kernels.rules import series, stretches

SOME = some(20)


def called(part: Any) -> Callable[..., Any]:
    """A part of kernels as a kernel, which Python can call."""
    return numba.njit(part.py_func, pipeline_class=KernelCompiler)


make_room, is_full, enter, summary = map(called, (series.make_room, series.is_full, series.enter, stretches.summary))
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
Placed = Sequence[tuple[int, int, object]]  # lane, time (or time since the last), value
questions = st.lists(
    st.tuples(st.integers(-1, LANES - 1), st.integers(-1, 60), st.integers(0, 40)), min_size=1, max_size=20
)


def word(value: object) -> tuple[int, int]:
    """Kind and word of a value."""
    if isinstance(value, float):
        return series.FLOAT, int(np.float64(value).view(np.int64))
    return (series.INTEGER, value) if isinstance(value, int) else (series.MISSING if value is None else series.OTHER, 0)


class Filled:
    """Series with so much room at first."""

    def __init__(self, room: int = 8) -> None:
        self.lanes = np.zeros(LANES * series.LANE, np.int64)
        self.used = 1
        self.times = np.zeros(room, np.int64)
        self.records = np.zeros(room * series.RECORD, np.int64)

    def put(self, lane: int, time: int, value: object, horizon: int = -1) -> None:
        """Append an entry; those before the horizon may go."""
        while is_full(self.lanes, lane):
            self.used = make_room(self.lanes, self.times, self.records, lane, self.used, horizon)
            if is_full(self.lanes, lane):
                self.times = np.concatenate([self.times, np.zeros_like(self.times)])
                self.records = np.concatenate([self.records, np.zeros_like(self.records)])
        kind, bits = word(value)
        number = float(np.int64(bits).view(np.float64))
        arena = (self.lanes, self.times, self.records, self.records.view(np.float64))
        enter(*arena, lane, time, kind, bits, number)

    def ask(self, function: int, lane: int, low: int, high: int) -> int | float | None:
        """A function of a stretch."""
        arena = (self.lanes, self.times, self.records, self.records.view(np.float64))
        kind, whole, real = summary(*arena, function, lane, low, high)
        return None if kind == series.MISSING else int(whole) if kind == series.INTEGER else float(real)


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


def check(of: Filled, placed: Placed, asked: Sequence[tuple[int, int, int]], seen: int) -> None:
    """All functions of all stretches that begin at `seen` or later."""
    for lane, begin, length in asked:
        low, high = max(begin, seen), max(begin, seen) + length
        values = [value for on, time, value in placed if on == lane and low <= time <= high]
        for function in range(6):
            assert of.ask(function, lane, low, high) == expected(function, values)


def at_times(steps: Placed) -> list[tuple[int, int, object]]:
    times = np.cumsum([step for _, step, _ in steps]).tolist()
    return [(lane, time, value) for (lane, _, value), time in zip(steps, times, strict=True)]


@SOME
@given(steps=entries, asked=questions)
def test_functions_of_stretches_are_those_of_their_values(steps: Placed, asked: Sequence[tuple[int, int, int]]) -> None:
    placed = at_times(steps)
    filled = Filled()
    for entry in placed:
        filled.put(*entry)
    check(filled, placed, asked, -1)


@SOME
@given(steps=usual_entries, asked=questions, window=st.integers(0, 30))
def test_what_is_forgotten_changes_nothing_later(
    steps: Placed, asked: Sequence[tuple[int, int, int]], window: int
) -> None:
    placed = at_times(steps)
    filled = Filled()
    for number, (lane, time, value) in enumerate(placed):
        filled.put(lane, time, value, time - window)
        if number % 50 == 49:
            check(filled, placed[: number + 1], asked, time - window)


def test_what_is_forgotten_makes_room() -> None:
    filled = Filled()
    for time in range(5_000):
        filled.put(time % LANES, time, time, time - 100)
    assert len(filled.times) <= 1_024
    assert filled.lanes[series.KEPT :: series.LANE].sum() < 500
