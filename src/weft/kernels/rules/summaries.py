"""Summaries of rules as queries on time series (`series`) that all rules share.

A series has the events of a type that pass tests, in a lane for each value of its key columns.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels.jit import bare_kernel, device_no_refcount
from weft.kernels.machine.tagged import (
    BOOLEAN,
    FLOAT,
    MISSING,
    VALUE,
    bits_of,
    float_of,
    mixed_in,
    normal,
    rounded_off,
)
from weft.kernels.memory.room import floats, lend, noted, octets, words
from weft.kernels.rules import arrays as r
from weft.kernels.rules import tables as t
from weft.kernels.rules.scan import passes, scan
from weft.kernels.rules.series import LANE, OTHER, enter, is_full, make_room
from weft.kernels.rules.stretches import summary


@device_no_refcount
def _slot(room: t.Int64s, series: Any, count: Any) -> Any:
    """Return the slot of the lane whose key is written after all keys, or the empty slot where it would be."""
    keys, slots, stride = words(room, r.LANE_KEYS), words(room, r.SLOTS), noted(room, r.STRIDE)
    own = words(room, r.LANE_COUNTS)[t.USED_LANES] * stride
    state = np.uint64(series) * np.uint64(0x9E3779B97F4A7C15)
    for k in range(own, own + VALUE * count, VALUE):
        state = mixed_in(state, keys[k], keys[k + 1])
    mask = len(slots) // t.SLOT - 1
    slot = np.int64(state >> np.uint64(3)) & mask
    searching = True
    while searching:
        lane = slots[slot * t.SLOT + t.SLOT_LANE] - 1
        searching = False
        if lane >= 0:
            searching = slots[slot * t.SLOT + t.SLOT_SERIES] != series
            for k in range(VALUE * count):
                searching = searching or keys[lane * stride + k] != keys[own + k]
            if searching:
                slot = (slot + 1) & mask
    return slot * t.SLOT


@device_no_refcount
def _lane_of_event(room: t.Int64s, series: Any, event: Any) -> Any:
    """Return the lane of an event in a series, -1 if a value of the key is missing, or -2 if there is no space."""
    all_series, columns, keys, slots = (
        words(room, r.SERIES),
        words(room, r.KEY_COLUMNS),
        words(room, r.LANE_KEYS),
        words(room, r.SLOTS),
    )
    counts, values = words(room, r.LANE_COUNTS), words(room, r.VALUES)
    at = series * t.SERIES
    begin, count = all_series[at + t.S_KEYS_AT], all_series[at + t.S_KEYS_END] - all_series[at + t.S_KEYS_AT]
    lane = counts[t.USED_LANES]
    to = lane * noted(room, r.STRIDE)
    for k in range(count):
        place = event * noted(room, r.WIDTH) + VALUE * columns[begin + k]
        if values[place] == MISSING:
            return np.int64(-1)
        keys[to + VALUE * k], keys[to + VALUE * k + 1] = normal(values[place], values[place + 1])
    slot = _slot(room, series, count)
    if slots[slot + t.SLOT_LANE] != 0:
        return slots[slot + t.SLOT_LANE] - 1
    if (lane + 1) * LANE > len(words(room, r.LANE)):
        return np.int64(-2)
    slots[slot + t.SLOT_SERIES], slots[slot + t.SLOT_LANE] = series, lane + 1
    counts[t.USED_LANES] = lane + 1
    return lane


@device_no_refcount
def enter_event(room: t.Int64s, type_: Any, event: Any, time: Any) -> bool:
    """Add an event to the series of its type, and return False if there is no space."""
    types, order = words(room, r.TYPES), words(room, r.ORDER)
    of = type_ * t.KIND_OF_EVENT
    for place in range(types[of + t.SERIES_AT], types[of + t.SERIES_END]):
        if not _enter(room, order[place], event, time, time - types[of + t.REACH]):
            return False
    return True


@device_no_refcount
def _enter(room: t.Int64s, series: Any, event: Any, time: Any, horizon: Any) -> bool:
    """Add an event to a series if it passes its tests; return False if there is no space."""
    all_series, lanes, times = words(room, r.SERIES), words(room, r.LANE), words(room, r.LANE_TIMES)
    records, counts, values = words(room, r.RECORDS), words(room, r.LANE_COUNTS), words(room, r.VALUES)
    at = series * t.SERIES
    if not passes(room, all_series[at + t.S_TESTS_AT], all_series[at + t.S_TESTS_END], event):
        return True
    lane = _lane_of_event(room, series, event)
    if lane < 0:
        return bool(lane == -1)
    if is_full(lanes, lane):
        counts[t.USED_ROOM] = make_room(lanes, times, records, lane, counts[t.USED_ROOM], horizon)
        if is_full(lanes, lane):
            return False
    kind, word = np.int64(MISSING), np.int64(0)
    if all_series[at + t.S_COLUMN] >= 0:
        place = event * noted(room, r.WIDTH) + VALUE * all_series[at + t.S_COLUMN]
        pool, offsets = octets(room, r.TEXTS), words(room, r.TEXT_OFFSETS)
        kind, word = rounded_off(values[place], values[place + 1], pool, offsets)
    present = kind if kind <= FLOAT else np.int64(OTHER)
    enter(lanes, times, records, floats(room, r.NUMBERS), lane, time, present, word, float_of(word))
    return True


@device_no_refcount
def _summarized(room: t.Int64s, at: Any) -> Any:
    """Return the value of a summary that has a series; `at` is the place of its extent."""
    extents, frames, times, values = (
        words(room, r.EXTENTS),
        words(room, r.FRAMES),
        words(room, r.TIMES),
        words(room, r.VALUES),
    )
    keys, lane_keys = words(room, r.KEYS), words(room, r.LANE_KEYS)
    one = times[frames[extents[at + t.E_FIRST] * t.FRAME + t.BOUND]]
    low, high = one - extents[at + t.E_SECOND], one - 1
    if extents[at + t.E_BETWEEN] != 0:
        other = times[frames[extents[at + t.E_SECOND] * t.FRAME + t.BOUND]]
        low, high = min(one, other) + 1, max(one, other) - 1
    to = words(room, r.LANE_COUNTS)[t.USED_LANES] * noted(room, r.STRIDE)
    begin, end = extents[at + t.E_KEYS_AT], extents[at + t.E_KEYS_END]
    lane = np.int64(0)
    for k in range(begin * t.KEY, end * t.KEY, t.KEY):
        place = frames[keys[k] * t.FRAME + t.BOUND] * noted(room, r.WIDTH) + VALUE * keys[k + 1]
        lane_keys[to], lane_keys[to + 1] = normal(values[place], values[place + 1])
        lane = np.int64(-1) if values[place] == MISSING else lane
        to += VALUE
    if lane == 0:
        lane = words(room, r.SLOTS)[_slot(room, extents[at + t.E_SERIES], end - begin) + t.SLOT_LANE] - 1
    kind, whole, real = summary(
        words(room, r.LANE),
        words(room, r.LANE_TIMES),
        words(room, r.RECORDS),
        floats(room, r.NUMBERS),
        extents[at + t.E_FUNCTION] - t.NUMBER,
        lane,
        low,
        high,
    )
    return np.int64(kind), bits_of(real) if kind == FLOAT else whole


@device_no_refcount
def scan_extents(room: t.Int64s) -> Any:
    """Evaluate scheduled extents until an absence is violated, and return the next mode."""
    extents, memos, results, control = (
        words(room, r.EXTENTS),
        words(room, r.MEMOS),
        words(room, r.RESULTS),
        words(room, r.CONTROL),
    )
    there = np.int64(0)
    at, end, keeps = control[t.SCAN_AT], control[t.SCAN_END], control[t.SCAN_BASE] >= 0
    while at < end and there == 0:
        memo = extents[at * t.EXTENT + t.E_MEMO] * t.MEMO
        if memo >= 0 and memos[memo] == control[t.SERIAL]:
            kind, word = memos[memo + 1], memos[memo + 2]
        else:
            if extents[at * t.EXTENT + t.E_SERIES] >= 0:
                kind, word = _summarized(room, at * t.EXTENT)
            else:
                kind, word = scan(room, at)
            if memo >= 0:
                memos[memo], memos[memo + 1], memos[memo + 2] = control[t.SERIAL], kind, word
        if keeps:
            place = VALUE * (at - control[t.SCAN_BASE])
            results[place], results[place + 1] = kind, word
        else:
            there = np.int64(kind == BOOLEAN and word != 0)
        at += 1
    control[t.THERE] = there
    return control[t.AFTER]


@bare_kernel
def enter_all(store: t.Store, rules: t.Rules, work: t.Work, lanes: t.Lanes, now: int, room: t.Int64s) -> bool:
    """Add all events in reach to their series, which are empty; return False if there is no space."""
    lend(room, r.STORE, store)
    lend(room, r.RULES, rules)
    r.lend_to_machine(room, rules, store, work)
    lend(room, r.WORK, work)
    lend(room, r.LANES, lanes)
    types = store.types
    for of in range(0, len(types), t.KIND_OF_EVENT):
        horizon = now - types[of + t.REACH]
        for k in range(types[of + t.HELD]):
            event, number = types[of + t.BASE] + k, types[of + t.GONE] + k
            if store.times[event] < horizon:
                continue
            for place in range(types[of + t.SERIES_AT], types[of + t.SERIES_END]):
                series = lanes.order[place]
                if number < lanes.series[series * t.SERIES + t.S_FLOOR]:
                    continue
                if not _enter(room, series, event, store.times[event], horizon):
                    return False
    return True
