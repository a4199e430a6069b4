"""Times of events: one time, or a start and an end, read from columns as integer ticks."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.runtime.data.events import Column, Int64s
from weft.runtime.data.exact import digits_at
from weft.runtime.reading.kinds import INT64, NANOSECONDS

START, END = "start", "end"  # the columns of an interval event
MISSING, GOOD, BAD = 0, 1, 2
FARTHEST = 1 << 62  # the difference of two times, and a time and a window, must fit into 64 bits
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
States = npt.NDArray[np.uint8]


def int64_view(array: pa.Array) -> Int64s:
    """Return the values of an int64 array without a copy; the values of nulls are arbitrary."""
    if not len(array):
        return np.empty(0, np.int64)
    return np.frombuffer(array.buffers()[1], np.int64)[array.offset : array.offset + len(array)]


def valid_mask(array: pa.Array) -> npt.NDArray[np.bool_]:
    """True where the array has a value."""
    mask: npt.NDArray[np.bool_] = array.is_valid().to_numpy(zero_copy_only=False)
    return mask


def read_times(
    times: Column, starts: Column, ends: Column, length: int, names: tuple[str, str, str], time_unit: str
) -> tuple[Int64s, Int64s, dict[int, str]]:
    """Return start and end of each event, and why some have none (by row); one array twice for instants."""
    begun, ended, problems = _read(times, starts, ends, length, names, time_unit)
    for ticks in (begun,) if begun is ended else (begun, ended):
        if len(ticks) and not (ticks.min() > -FARTHEST and ticks.max() < FARTHEST):
            for row in np.flatnonzero((ticks <= -FARTHEST) | (ticks >= FARTHEST)):
                reason = f"the time {ticks[row]} is beyond 2^62 ticks, to which no window could be added"
                problems.setdefault(int(row), reason)
    return begun, ended, problems


def _read(
    times: Column, starts: Column, ends: Column, length: int, names: tuple[str, str, str], time_unit: str
) -> tuple[Int64s, Int64s, dict[int, str]]:
    if times.numbers is not None and times.numbers.null_count == 0 and pa.types.is_int64(times.numbers.type):
        ticks = int64_view(times.numbers)
        return ticks, ticks, {}
    problems: dict[int, str] = {}
    time, state = _ticks(times, length, names[0], time_unit, problems)
    if bool((state == GOOD).all()):
        return time, time, problems
    start, start_state = _ticks(starts, length, names[1], time_unit, problems, state == MISSING)
    end, end_state = _ticks(ends, length, names[2], time_unit, problems, state == MISSING)
    lone = state == MISSING
    for row in np.flatnonzero(lone & (start_state == MISSING) & (end_state == MISSING)):
        problems[int(row)] = f"no time: no value in {names[0]!r}, nor in {names[1]!r} and {names[2]!r}"
    for row in np.flatnonzero(lone & ((start_state == MISSING) != (end_state == MISSING))):
        have, lack = (names[2], names[1]) if start_state[row] == MISSING else (names[1], names[2])
        problems.setdefault(int(row), f"no time: {have!r} but no {lack!r}")
    for row in np.flatnonzero(lone & (start_state == GOOD) & (end_state == GOOD) & (start > end)):
        problems[int(row)] = f"starts after it ends: {names[1]!r} is {start[row]}, {names[2]!r} is {end[row]}"
    return np.where(lone, start, time), np.where(lone, end, time), problems


def _ticks(
    column: Column,
    length: int,
    name: str,
    time_unit: str,
    problems: dict[int, str],
    wanted: npt.NDArray[np.bool_] | None = None,
) -> tuple[Int64s, States]:
    """Convert one time column to ticks, with the state of each row. Problems of unwanted rows are ignored."""
    ticks = np.zeros(length, np.int64)
    state = np.zeros(length, np.uint8)
    if column.numbers is not None:
        _read_numbers(column.numbers, ticks, state)
        _read_digits(column, ticks, state)
    if column.texts is not None:
        for row in np.flatnonzero(valid_mask(column.texts)):
            time = parse_time(column.texts[int(row)].as_py(), time_unit)
            ticks[row], state[row] = (0, BAD) if time is None else (time[0], GOOD)
    if column.booleans is not None:
        state[valid_mask(column.booleans)] = BAD
    bad = state == BAD if wanted is None else (state == BAD) & wanted
    for row in np.flatnonzero(bad):
        problems.setdefault(int(row), f"{name!r} is not a time: {column.value(int(row))!r}")
    return ticks, state


def fine_of(column: Column, length: int, time_unit: str) -> Int64s | None:
    """Return the nanoseconds by which the times of a column are after their ticks, or None."""
    fine = np.zeros(length, np.int64)
    if column.fine is not None:
        fine += np.asarray(column.fine)
    if column.texts is not None:
        for row in np.flatnonzero(valid_mask(column.texts)):
            time = parse_time(column.texts[int(row)].as_py(), time_unit)
            fine[row] = 0 if time is None else time[1]
    return fine if fine.any() else None


def _read_numbers(numbers: pa.Array, ticks: Int64s, state: States) -> None:
    valid = valid_mask(numbers)
    if pa.types.is_int64(numbers.type):
        np.copyto(ticks, int64_view(numbers), where=valid)
        state[valid] = GOOD
        return
    values = numbers.fill_null(0.5).to_numpy(zero_copy_only=False)
    whole = (np.floor(values) == values) & (np.abs(values) < 2.0**63)
    np.copyto(ticks, np.where(whole, values, 0).astype(np.int64), where=whole)
    state[valid] = BAD
    state[whole] = GOOD


def _read_digits(column: Column, ticks: Int64s, state: States) -> None:
    """Read the times given as digits."""
    rows = np.empty(0, np.int64) if column.exact is None else np.flatnonzero(valid_mask(column.exact))
    for row, number in zip(rows, digits_at(column, rows), strict=True):
        whole = int(number)
        good = whole == number and whole in INT64
        ticks[row], state[row] = (whole, GOOD) if good else (0, BAD)


def parse_time(text: str, time_unit: str) -> tuple[int, int] | None:
    """Parse an ISO 8601 date or time (UTC by default) to ticks and nanoseconds, or return None."""
    try:
        moment = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    since = (moment if moment.tzinfo else moment.replace(tzinfo=UTC)) - EPOCH
    microseconds = (since.days * 86400 + since.seconds) * 10**6 + since.microseconds
    return divmod(microseconds * 1000, NANOSECONDS[time_unit])
