"""Summaries of rules without a scan: the events they are about, as time series (`series`) that all rules share.

A series is of the events of a type that pass tests; there is a lane for each of the values that its key columns have.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.jit import bare, kernel, spliced
from weft.kernels.rule_scan import Seen, all_pass, scan
from weft.kernels.series import LANE, OTHER, enter, is_full, make_room
from weft.kernels.stretches import summary
from weft.kernels.tagged import BOOLEAN, FLOAT, MISSING, VALUE, bits_of, float_of, mixed_in, normal


@spliced
def _slot(lanes: t.Lanes, series: Any, count: Any) -> Any:
    """The slot of a lane whose key stands behind those of all lanes, or the empty one where it would be."""
    keys, slots = lanes.keys, lanes.slots
    stride = lanes.stride
    own = lanes.counts[t.USED_LANES] * stride
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


@spliced
def _lane_of_event(series: Any, event: Any, lanes: t.Lanes, seen: Seen) -> Any:
    """The lane of an event in a series; -1 if it has none (a value of the key is missing), -2 if there is no room."""
    at = series * t.SERIES
    begin, count = lanes.series[at + t.S_KEYS_AT], lanes.series[at + t.S_KEYS_END] - lanes.series[at + t.S_KEYS_AT]
    lane = lanes.counts[t.USED_LANES]
    to = lane * lanes.stride
    known = True
    for k in range(count):
        place = event * seen.width + VALUE * lanes.columns[begin + k]
        known = known and seen.values[place] != MISSING
        lanes.keys[to + VALUE * k], lanes.keys[to + VALUE * k + 1] = normal(seen.values[place], seen.values[place + 1])
    if not known:
        return np.int64(-1)
    slot = _slot(lanes, series, count)
    if lanes.slots[slot + t.SLOT_LANE] != 0:
        return lanes.slots[slot + t.SLOT_LANE] - 1
    if (lane + 1) * LANE > len(lanes.lanes):
        return np.int64(-2)
    lanes.slots[slot + t.SLOT_SERIES], lanes.slots[slot + t.SLOT_LANE] = series, lane + 1
    lanes.counts[t.USED_LANES] = lane + 1
    return lane


@bare
def enter_event(
    type_: int, event: int, types: t.Int64s, time: int, tests: t.Int64s, lanes: t.Lanes, seen: Seen
) -> bool:
    """Enter an event into the series of its type; False when there is no room for that."""
    of = type_ * t.KIND_OF_EVENT
    for place in range(types[of + t.SERIES_AT], types[of + t.SERIES_END]):
        if not _enter(lanes.order[place], event, time, time - types[of + t.REACH], tests, lanes, seen):
            return False
    return True


@bare
def _enter(series: int, event: int, time: int, horizon: int, tests: t.Int64s, lanes: t.Lanes, seen: Seen) -> bool:
    """Enter an event into a series, if it passes its tests; False when there is no room for that."""
    at = series * t.SERIES
    begin, end = lanes.series[at + t.S_TESTS_AT], lanes.series[at + t.S_TESTS_END]
    if not all_pass(tests, begin, end, event, seen):
        return True
    lane = _lane_of_event(series, event, lanes, seen)
    if lane < 0:
        return bool(lane == -1)
    if is_full(lanes.lanes, lane):
        used = make_room(lanes.lanes, lanes.times, lanes.records, lane, lanes.counts[t.USED_ROOM], horizon)
        lanes.counts[t.USED_ROOM] = used
        if is_full(lanes.lanes, lane):
            return False
    kind, word = np.int64(MISSING), np.int64(0)
    if lanes.series[at + t.S_COLUMN] >= 0:
        place = event * seen.width + VALUE * lanes.series[at + t.S_COLUMN]
        kind, word = seen.values[place], seen.values[place + 1]
    present = kind if kind <= FLOAT else np.int64(OTHER)
    enter(lanes.lanes, lanes.times, lanes.records, lanes.numbers, lane, time, present, word, float_of(word))
    return True


@spliced
def summarized(at: Any, extents: t.Int64s, keys: t.Int64s, times: t.Int64s, lanes: t.Lanes, seen: Seen) -> Any:
    """The value of a summary that has a series; `at` is the place of its extent."""
    one = times[seen.frames[extents[at + t.E_FIRST] * t.FRAME + t.BOUND]]
    low, high = one - extents[at + t.E_SECOND], one - 1
    if extents[at + t.E_BETWEEN] != 0:
        other = times[seen.frames[extents[at + t.E_SECOND] * t.FRAME + t.BOUND]]
        low, high = min(one, other) + 1, max(one, other) - 1
    to = lanes.counts[t.USED_LANES] * lanes.stride
    begin, end = extents[at + t.E_KEYS_AT], extents[at + t.E_KEYS_END]
    lane = np.int64(0)
    for k in range(begin * t.KEY, end * t.KEY, t.KEY):
        place = seen.frames[keys[k] * t.FRAME + t.BOUND] * seen.width + VALUE * keys[k + 1]
        lanes.keys[to], lanes.keys[to + 1] = normal(seen.values[place], seen.values[place + 1])
        lane = np.int64(-1) if seen.values[place] == MISSING else lane
        to += VALUE
    if lane == 0:
        lane = lanes.slots[_slot(lanes, extents[at + t.E_SERIES], end - begin) + t.SLOT_LANE] - 1
    function = extents[at + t.E_FUNCTION] - t.NUMBER
    kind, whole, real = summary(lanes.lanes, lanes.times, lanes.records, lanes.numbers, function, lane, low, high)
    return np.int64(kind), bits_of(real) if kind == FLOAT else whole


@spliced
def scan_extents(rules: t.Rules, store: t.Store, lanes: t.Lanes, work: t.Work, control: t.Int64s, seen: Seen) -> Any:
    """Look at what there is in some stretches of time, until there is something that must not be; the next mode."""
    extents, memos = rules.extents, work.memos
    there = np.int64(0)
    at, end, keeps = control[t.SCAN_AT], control[t.SCAN_END], control[t.SCAN_BASE] >= 0
    while at < end and there == 0:
        memo = extents[at * t.EXTENT + t.E_MEMO] * t.MEMO
        if memo >= 0 and memos[memo] == control[t.SERIAL]:
            kind, word = memos[memo + 1], memos[memo + 2]
        else:
            if extents[at * t.EXTENT + t.E_SERIES] >= 0:
                kind, word = summarized(at * t.EXTENT, extents, rules.keys, store.times, lanes, seen)
            else:
                kind, word = scan(
                    at,
                    extents,
                    rules.tests,
                    rules.keys,
                    store.types,
                    store.times,
                    store.heads,
                    store.entries,
                    work.partials,
                    seen,
                )
            if memo >= 0:
                memos[memo], memos[memo + 1], memos[memo + 2] = control[t.SERIAL], kind, word
        if keeps:
            place = VALUE * (at - control[t.SCAN_BASE])
            work.results[place], work.results[place + 1] = kind, word
        else:
            there = np.int64(kind == BOOLEAN and word != 0)
        at += 1
    control[t.THERE] = there
    return control[t.AFTER]


@kernel
def enter_all(
    store: t.Store, width: int, tests: t.Int64s, code: t.Int64s, work: t.Work, lanes: t.Lanes, now: int
) -> bool:
    """Enter all events in reach into their series, which are empty; False when there is no room for that."""
    types = store.types
    seen = Seen(work.frames, store.values, width, code, work.stack, work.results, store.texts, store.text_offsets)
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
                if not _enter(series, event, store.times[event], horizon, tests, lanes, seen):
                    return False
    return True
