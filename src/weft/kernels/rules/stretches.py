"""Aggregates over time ranges of a series: counts, exact sums, extremes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import always_inline, device, device_no_refcount
from weft.kernels.machine.exact_sums import (
    MOST,
    add_partial,
    added,
    negated,
    partials_sum,
    rounded,
    sign_word,
    whole_result,
)
from weft.kernels.rules.series import (
    AWKWARD,
    BIG,
    FLOAT,
    GONE,
    GREATEST,
    INTEGER,
    KEPT,
    LANE,
    LEAST,
    MISSING,
    NEAR,
    NUMBERS,
    PRESENT,
    REALS,
    RECORD,
    START,
    WORD,
    places_until,
    sum_words,
)

Bytes = npt.NDArray[np.uint8]
Floats = npt.NDArray[np.float64]
Int64s = npt.NDArray[np.int64]

COUNT_ALL, COUNT_PRESENT, SUM_OF, AVG_OF, MIN_OF, MAX_OF = range(6)  # functions


@device_no_refcount
def _extreme(numbers: Floats, old: Any, new: Any, rank: Any, which: int) -> float:
    """Return the least or greatest number from place `old` up to before `new`; `rank` is that of the last one."""
    best = -np.inf if which == GREATEST else np.inf
    while new > old:
        span = rank & -rank
        if new - span >= old:
            found = numbers[(new - 1) * RECORD + which]
        else:
            span = 1
            found = numbers[(new - 1) * RECORD + WORD]
        if found > best if which == GREATEST else found < best:
            best = found
        new -= span
        rank -= span
    return best


@device_no_refcount
def _mixed_extreme(records: Int64s, numbers: Floats, old: Any, new: Any, greatest: bool) -> Any:
    """Return kind, integer and float of the extreme of a range with BIG integers."""
    whole, real, far = np.int64(0), np.nan, False
    for at in range(old, new):
        if records[(at + 1) * RECORD + BIG] == records[at * RECORD + BIG]:
            if not (numbers[at * RECORD + WORD] <= real if greatest else numbers[at * RECORD + WORD] >= real):
                real = (
                    numbers[at * RECORD + WORD] if numbers[at * RECORD + WORD] == numbers[at * RECORD + WORD] else real
                )
        elif not far or (records[at * RECORD + WORD] > whole if greatest else records[at * RECORD + WORD] < whole):
            whole, far = records[at * RECORD + WORD], True
    near = np.float64(whole)
    # Where both are at the limit of the integers, the float is greater in size.
    less = whole < np.int64(real) if near == real and abs(real) < 2.0**63 else near <= real
    return FLOAT if less == greatest and real == real else INTEGER, whole, real


# ---------------------------------------------------------------- sums


@device_no_refcount
def _whole_sum(records: Int64s, numbers: Floats, old: Any, new: Any) -> Any:
    """Add the integers of a range one by one, and return the sum in two words."""
    high, low = np.uint64(0), np.uint64(0)
    for at in range(old, new):
        if records[(at + 1) * RECORD + NUMBERS] != records[at * RECORD + NUMBERS]:
            big = records[(at + 1) * RECORD + BIG] != records[at * RECORD + BIG]
            word = np.uint64(records[at * RECORD + WORD] if big else np.int64(numbers[at * RECORD + WORD]))
            _, high, low = added(np.uint64(0), high, low, np.uint64(0), sign_word(word), word)
    return high, low


@device
def _float_sum(records: Int64s, numbers: Floats, old: Any, new: Any) -> Any:
    """Add the numbers of a range one by one as `math.fsum` does; return whether there is a sum, and the sum."""
    partials = np.empty(64, np.float64)
    used = 0
    infinite = 0.0
    for at in range(old, new):
        number = numbers[at * RECORD + WORD]
        if records[(at + 1) * RECORD + BIG] != records[at * RECORD + BIG]:
            number = np.float64(records[at * RECORD + WORD])
        if np.isinf(number):
            infinite += number
        elif number == number:
            used = add_partial(partials, used, number)
        if used < 0:
            return False, 0.0
    return not np.isnan(infinite), infinite if infinite != 0.0 else partials_sum(partials, used)


@device_no_refcount
def _total(records: Int64s, numbers: Floats, old: Any, new: Any, mean: bool) -> Any:
    """Return kind, integer and float of the sum or the mean of a range with numbers."""
    before, after = old * RECORD, new * RECORD
    count = records[after + NUMBERS] - records[before + NUMBERS]
    x, y, z = negated(*sum_words(records, before))
    a, b, c = sum_words(records, after)
    a, b, c = added(a, b, c, x, y, z)
    exact = records[after + AWKWARD] == records[before + AWKWARD] and count <= MOST
    if records[after + REALS] != records[before + REALS]:
        found, total = True, rounded(a, b, c, 128, False)
        if not exact:
            found, total = _float_sum(records, numbers, old, new)
        return FLOAT if found else MISSING, np.int64(0), total / count if mean else total
    high, low = sign_word(a), a
    if not exact:
        high, low = _whole_sum(records, numbers, old, new)
    fits, total = whole_result(high, low, count, mean)
    return INTEGER if fits else FLOAT, np.int64(low), total


# ---------------------------------------------------------------- queries


@always_inline
def summary(
    lanes: Int64s,
    times: Int64s,
    records: Int64s,
    numbers: Floats,
    function: Any,
    lane: Any,
    low: Any,
    high: Any,
) -> Any:
    """Return a function of a lane's entries from `low` to `high`, inclusive: its kind, integer and float value.

    The kind is MISSING without a value.
    """
    nothing = INTEGER if function <= COUNT_PRESENT else MISSING, np.int64(0), 0.0
    if lane < 0:
        return nothing
    start, kept = lanes[lane * LANE + START], lanes[lane * LANE + KEPT]
    near = places_until(times, start, kept, low - 1, lanes[lane * LANE + NEAR])
    lanes[lane * LANE + NEAR] = near
    old, new = start + near, start + places_until(times, start, kept, high, kept)
    before, after = old * RECORD, new * RECORD
    if old >= new:
        return nothing
    if function == COUNT_ALL:
        return INTEGER, np.int64(new - old), 0.0
    if function == COUNT_PRESENT:
        return INTEGER, records[after + PRESENT] - records[before + PRESENT], 0.0
    if records[after + NUMBERS] == records[before + NUMBERS]:
        return nothing
    if function <= AVG_OF:
        return _total(records, numbers, old, new, function == AVG_OF)
    if records[after + BIG] != records[before + BIG]:
        return _mixed_extreme(records, numbers, old, new, function == MAX_OF)
    rank, which = lanes[lane * LANE + GONE] + new - start, GREATEST if function == MAX_OF else LEAST
    real = _extreme(numbers, old, new, rank, which)
    if records[after + REALS] == records[before + REALS]:
        return INTEGER, np.int64(real), 0.0
    return FLOAT, np.int64(0), real
