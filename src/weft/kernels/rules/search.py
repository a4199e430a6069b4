"""Search of rules: the next event, the rules that start there, and their look-backs.

Each function is a mode of `look_back`; it returns the next mode, or a negative number with the reason to return.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels.jit import always_inline, device_no_refcount
from weft.kernels.machine.tagged import INTEGER, VALUE, satisfies
from weft.kernels.memory.room import halves, noted, words
from weft.kernels.rules import arrays as r
from weft.kernels.rules import tables as t
from weft.kernels.rules.firing import fix, has_room, repeat_firing, settle_pending, write_plain
from weft.kernels.rules.index import expect_later, sort_rules, starting
from weft.kernels.rules.lists import list_event
from weft.kernels.rules.members import consume, filter_members, marks_of, select_members
from weft.kernels.rules.scan import events_before, first_from, passes
from weft.kernels.rules.summaries import enter_event

UNKNOWN = -2

# ---------------------------------------------------------------- the next event


@device_no_refcount
def fetch(room: t.Int64s) -> Any:
    """Store the next event, of the queue or of the batch, and find the rules that may start there."""
    control, types = words(room, r.CONTROL), words(room, r.TYPES)
    control[t.MODE] = t.FETCH
    waits = control[t.QUEUE_AT] < control[t.QUEUE_END]
    if not waits:
        control[t.QUEUE_AT] = control[t.QUEUE_END] = 0
        if control[t.EVENT] == len(halves(room, r.BATCH_TYPES)):
            return np.int64(-1 - t.DONE)
    queued = control[t.QUEUE_AT] * (t.QUEUED + noted(room, r.WIDTH))
    type_ = words(room, r.QUEUE)[queued + t.Q_TYPE] if waits else halves(room, r.BATCH_TYPES)[control[t.EVENT]]
    type_ = np.int64(type_)
    of = type_ * t.KIND_OF_EVENT
    held = types[of + t.HELD]
    if held == types[of + t.ROOM]:
        control[t.WANTED] = type_
        return np.int64(-1 - t.STORE_FULL)
    now = types[of + t.BASE] + held
    if waits:
        _place_defined(room, queued, now, of)
    else:
        _place_event(room, control[t.EVENT], now, of)
        expect_later(room, control[t.EVENT])
    for k in range(now * noted(room, r.MARK_WORDS), (now + 1) * noted(room, r.MARK_WORDS)):
        words(room, r.MARKS)[k] = 0
    is_listed = types[of + t.CHAINS_AT] < types[of + t.CHAINS_END]
    if is_listed and not list_event(room, type_, now, types[of + t.GONE] + held):
        return np.int64(-1 - t.LISTS_FULL)
    time = words(room, r.TIMES)[now]
    if types[of + t.SERIES_AT] < types[of + t.SERIES_END] and not enter_event(room, type_, now, time):
        control[t.LISTED_TO] = types[of + t.CHAINS_END] if is_listed else 0
        return np.int64(-1 - t.SERIES_FULL)
    types[of + t.HELD] += 1
    control[t.SERIAL] += 1
    control[t.TIME] = time
    control[t.QUEUE_AT if waits else t.EVENT] += 1
    words(room, r.FRAMES)[t.BOUND] = now
    control[t.KNOWN] = -1
    control[t.PICKED] = starting(room, types[of + t.ACCESS_AT], types[of + t.ACCESS_END], now)
    control[t.PICKED_AT] = 0
    if types[of + t.ORDERED] != 0:
        sort_rules(halves(room, r.SETS), control[t.PICKED])
    return np.int64(t.START)


@device_no_refcount
def _place_event(room: t.Int64s, event: Any, now: Any, of: Any) -> None:
    """Copy an event of the batch into the store."""
    types, columns, values = words(room, r.TYPES), words(room, r.COLUMNS), words(room, r.VALUES)
    given, length = words(room, r.BATCH_VALUES), noted(room, r.BATCH_WIDTH)
    words(room, r.TIMES)[now] = words(room, r.BATCH_TIMES)[event]
    words(room, r.STARTS)[now] = words(room, r.BATCH_STARTS)[event]
    words(room, r.ORIGINS)[now] = words(room, r.BATCH_POSITIONS)[event]
    own = now * noted(room, r.WIDTH)
    for k in range(types[of + t.COLUMNS_AT], types[of + t.COLUMNS_END]):
        source = event * length + VALUE * columns[k]
        values[own], values[own + 1] = given[source], given[source + 1]
        own += VALUE


@device_no_refcount
def _place_defined(room: t.Int64s, place: Any, now: Any, of: Any) -> None:
    """Copy a defined event into the store."""
    types, queue, values, width = (
        words(room, r.TYPES),
        words(room, r.QUEUE),
        words(room, r.VALUES),
        noted(room, r.WIDTH),
    )
    words(room, r.TIMES)[now] = words(room, r.CONTROL)[t.TIME]
    words(room, r.STARTS)[now] = queue[place + t.Q_START]
    words(room, r.ORIGINS)[now] = -1 - queue[place + t.Q_POSITIONS]
    for k in range(VALUE * (types[of + t.COLUMNS_END] - types[of + t.COLUMNS_AT])):
        values[now * width + k] = queue[place + t.QUEUED + k]


# ---------------------------------------------------------------- the rules that start there


@device_no_refcount
def start(room: t.Int64s) -> Any:
    """Begin the search of the next rules of one row: those whose tests the terminator passes."""
    control, steps, frames = words(room, r.CONTROL), words(room, r.STEPS), words(room, r.FRAMES)
    sets, row_of, rows = halves(room, r.SETS), halves(room, r.ROW_OF), words(room, r.ROWS)
    begin, end, to = control[t.PICKED_AT], control[t.PICKED], control[t.SPAN]
    if begin == end:
        return np.int64(t.FETCH)
    number, until = row_of[sets[begin]], begin
    while until < end and row_of[sets[until]] == number:
        sets[to + until - begin] = sets[until]
        until += 1
    row = np.int64(number) * t.ROW
    control[t.SORTED] = rows[row + t.SORTED_BY] if until - begin == rows[row + t.MEMBERS] else 0
    if control[t.SORTED] > 0:
        for k in range(until - begin):
            sets[to + k] = halves(room, r.BY_ROW)[rows[row + t.MEMBERS_AT] + k]
    control[t.RUN_END], control[t.ROW_AT], control[t.DEPTH], control[t.THERE] = until, row, 0, 0
    step = rows[row + t.STEPS_AT] * t.STEP
    tests_at, own_at, tests_end = steps[step + t.TESTS_AT], steps[step + t.OWN_TESTS_AT], steps[step + t.TESTS_END]
    count = until - begin
    if tests_at < own_at and not passes(room, tests_at, own_at, frames[t.BOUND]):
        count = np.int64(0)
    if own_at < tests_end:
        count = filter_members(room, to, count, own_at, tests_end, frames[t.BOUND])
    frames[t.FRAME + t.SET] = count
    if count == 0:
        control[t.PICKED_AT] = until
        return np.int64(t.START)
    if steps[step + t.ABSENCES_AT] == steps[step + t.ABSENCES_END]:
        return np.int64(t.STARTED)
    return _judge(control, steps, step, t.STARTED)


@always_inline
def _judge(control: t.Int64s, steps: t.Int64s, step: Any, after: Any) -> Any:
    """Schedule the evaluation of absences."""
    control[t.SCAN_AT], control[t.SCAN_END] = steps[step + t.ABSENCES_AT], steps[step + t.ABSENCES_END]
    control[t.SCAN_BASE], control[t.AFTER] = -1, after
    return np.int64(t.SCAN)


@device_no_refcount
def started(room: t.Int64s) -> Any:
    """Begin the look-backs after the absences at the terminator were evaluated."""
    control = words(room, r.CONTROL)
    if control[t.THERE] != 0:
        control[t.PICKED_AT] = control[t.RUN_END]
        return np.int64(t.START)
    if words(room, r.ROWS)[control[t.ROW_AT] + t.STEPS] == 1:
        return np.int64(t.EMIT)
    control[t.DEPTH] = 1
    return np.int64(t.OPEN)


# ---------------------------------------------------------------- a look-back


@device_no_refcount
def open_step(room: t.Int64s) -> Any:
    """Find the candidates of a look-back."""
    control, steps, frames = words(room, r.CONTROL), words(room, r.STEPS), words(room, r.FRAMES)
    types, times, entries = words(room, r.TYPES), words(room, r.TIMES), words(room, r.ENTRIES)
    depth = control[t.DEPTH]
    step, frame = (words(room, r.ROWS)[control[t.ROW_AT] + t.STEPS_AT] + depth) * t.STEP, depth * t.FRAME
    of = steps[step + t.TYPE] * t.KIND_OF_EVENT
    high = times[frames[steps[step + t.ANCHOR] * t.FRAME + t.BOUND]]
    offset, source = types[of + t.BASE] - types[of + t.GONE], steps[step + t.SOURCE]
    by_list = steps[step + t.LISTED] >= 0
    if source >= 0 and source == control[t.KNOWN]:
        begin, end = control[t.KNOWN_BEGIN], control[t.KNOWN_END]
    else:
        keys_at, keys_end = steps[step + t.KEYS_AT], steps[step + t.KEYS_END]
        begin, end = events_before(room, of, steps[step + t.LISTED], keys_at, keys_end, high)
    control[t.KNOWN], control[t.KNOWN_BEGIN], control[t.KNOWN_END] = source, begin, end
    frames[frame + t.BY_LIST] = np.int64(by_list)
    frames[frame + t.OFFSET], frames[frame + t.FLOOR_AT] = offset, steps[step + t.FLOOR] + offset
    frames[frame + t.HIGH], frames[frame + t.NEAR] = high, high - steps[step + t.SHORTEST]
    count = frames[frame + t.LEFT] = steps[step + t.COUNT]
    if steps[step + t.PICK] == t.LAST:
        frames[frame + t.AT], frames[frame + t.STOP] = end - 1, begin - 1
        frames[frame + t.FOUND] = end
        frames[frame + t.DIRECTION] = t.DOWN if count == 1 else t.COUNTING
    else:
        low = high - steps[step + t.LONGEST]
        begin = first_from(entries, t.ENTRY, begin, end, low) if by_list else first_from(times, 1, begin, end, low)
        frames[frame + t.AT], frames[frame + t.STOP] = begin, end
        frames[frame + t.DIRECTION] = t.UP
    return np.int64(t.ADVANCE)


@device_no_refcount
def advance(room: t.Int64s) -> Any:
    """Find the next candidate of a look-back and the rules that it satisfies; plain rules fire with it at once."""
    control, rows, steps, frames = (
        words(room, r.CONTROL),
        words(room, r.ROWS),
        words(room, r.STEPS),
        words(room, r.FRAMES),
    )
    depth, row = control[t.DEPTH], control[t.ROW_AT]
    if depth == 0:
        if control[t.PENDING] > 0:
            settle_pending(room)
        control[t.PICKED_AT] = control[t.RUN_END]
        return np.int64(t.START)
    step, frame = (rows[row + t.STEPS_AT] + depth) * t.STEP, depth * t.FRAME
    direction, is_last = frames[frame + t.DIRECTION], depth + 1 == rows[row + t.STEPS]
    mode = _search(room, row, step, frame, is_last)
    if mode < 0:
        control[t.MODE] = t.ADVANCE
    elif mode == t.OPEN:
        control[t.DEPTH] = depth + 1
    elif mode == t.ADVANCE and direction == t.COUNTING:
        # The latest candidates are known: process them from the earliest on.
        frames[frame + t.AT], frames[frame + t.STOP] = frames[frame + t.FOUND], np.int64(-1)
        frames[frame + t.LEFT] = steps[step + t.COUNT] - frames[frame + t.LEFT]
        frames[frame + t.DIRECTION] = t.UP
    elif mode == t.ADVANCE:
        control[t.DEPTH] = depth - 1
    return mode


@device_no_refcount
def _search(room: t.Int64s, row: Any, step: Any, frame: Any, is_last: Any) -> Any:
    """Visit the candidates of a look-back; return ADVANCE if there are no more."""
    control, rows, steps, tests = (
        words(room, r.CONTROL),
        words(room, r.ROWS),
        words(room, r.STEPS),
        words(room, r.TESTS),
    )
    frames, sets, times, entries = (
        words(room, r.FRAMES),
        halves(room, r.SETS),
        words(room, r.TIMES),
        words(room, r.ENTRIES),
    )
    values, width, origins = words(room, r.VALUES), noted(room, r.WIDTH), words(room, r.ORIGINS)
    marks, mark_words = words(room, r.MARKS), noted(room, r.MARK_WORDS)
    depth, counting = control[t.DEPTH], control[t.ONLY_COUNTS] != 0
    direction, by_list, offset = frames[frame + t.DIRECTION], frames[frame + t.BY_LIST] != 0, frames[frame + t.OFFSET]
    high, near, floor = frames[frame + t.HIGH], frames[frame + t.NEAR], frames[frame + t.FLOOR_AT]
    tests_at, own_at, tests_end = steps[step + t.TESTS_AT], steps[step + t.OWN_TESTS_AT], steps[step + t.TESTS_END]
    must_lack = steps[step + t.ABSENCES_AT] < steps[step + t.ABSENCES_END]
    takes_one, consumes = steps[step + t.COUNT] == 1, steps[step + t.CONSUMED] != 0
    forward = np.int64(1 if direction == t.UP else -1)
    plain = is_last and rows[row + t.IS_PLAIN] != 0 and direction != t.COUNTING
    here, to, slot = depth * control[t.SPAN], (depth + 1) * control[t.SPAN], t.OWN * (depth - 1)
    # No rule of the set accepts events before `reach`, or those whose number in a column does not satisfy the bound.
    reach, is_bound, bound = high - steps[step + t.LONGEST], False, np.int64(0)
    operator = tests[own_at * t.TEST + t.T_OPERATOR] if own_at < tests_end else np.int64(0)
    column = VALUE * tests[own_at * t.TEST + t.T_COLUMN] if own_at < tests_end else np.int64(0)
    at, stop, left, alive = frames[frame + t.AT], frames[frame + t.STOP], frames[frame + t.LEFT], frames[frame + t.SET]
    gone, all_gone = marks_of(room, here, alive, slot) if consumes else (np.int64(-1), np.int64(0))
    others, first = np.int64(UNKNOWN), np.int64(0)  # contributions of the events bound before
    mode = np.int64(t.ADVANCE)
    while alive > 0 and left > 0 and at != stop:
        candidate, time = at, times[at] if not by_list else entries[at * t.ENTRY]
        if by_list:
            candidate = entries[at * t.ENTRY + 1] + offset
        if time < reach and direction != t.UP:
            break
        suits = time >= reach and candidate >= floor
        if is_bound and values[candidate * width + column] == INTEGER:
            word = values[candidate * width + column + 1]
            suits = suits and satisfies(operator, np.int64(word > bound) - np.int64(word < bound))
        if gone >= 0:
            suits = suits and marks[candidate * mark_words + gone] & all_gone != all_gone
        if not suits or (tests_at < own_at and not passes(room, tests_at, own_at, candidate)):
            at += forward
            continue
        is_judged = not must_lack or candidate == control[t.CLEARED]
        fires = plain and is_judged and origins[candidate] >= 0 and not counting
        if fires and others == UNKNOWN:
            others, first = fix(room, row, depth)
        fires = fires and others >= 0  # with a defined event it needs the general path
        if fires and not has_room(room, alive, alive * (others + 1)):
            mode = np.int64(-1 - t.OUTPUT_FULL)
            break
        taken, moves = alive, takes_one and is_judged
        if time >= near and own_at == tests_end and not consumes:
            for k in range(alive):
                sets[to + k] = sets[here + k]
            alive = np.int64(0) if moves else alive
        else:
            taken, rest, longest, has_bound, constant = select_members(room, step, frame, alive, candidate, time, moves)
            if moves:
                alive, reach, is_bound, bound = rest, high - longest, has_bound, constant
        if taken == 0:
            at += forward
            continue
        frames[frame + t.BOUND] = candidate
        if not is_judged:
            mode = _judge(control, steps, step, t.JUDGED)
            break
        control[t.CLEARED] = -1
        at += forward
        left -= np.int64(not takes_one)  # rules that select one event have left the set
        if consumes and plain and (fires or counting):
            consume(room, to, taken, slot, candidate)
        if direction == t.COUNTING:
            frames[frame + t.FOUND] = at + 1
        elif plain and counting:
            for k in range(to, to + taken):
                words(room, r.COUNTS)[sets[k]] += 1
        elif fires:
            size = write_plain(room, row, depth, candidate, others, first)
            repeat_firing(room, to, taken, size, rows[row + t.FIELDS_END] - rows[row + t.FIELDS_AT])
        else:
            mode = np.int64(t.EMIT if is_last else t.OPEN)
            frames[frame + t.FRAME + t.SET] = taken
            break
    control[t.STEPS_LEFT] -= 1 + forward * (at - frames[frame + t.AT])
    frames[frame + t.AT], frames[frame + t.LEFT], frames[frame + t.SET] = at, left, alive
    return mode


@device_no_refcount
def judged(room: t.Int64s) -> Any:
    """Continue after the absences at a candidate were evaluated."""
    control, frames = words(room, r.CONTROL), words(room, r.FRAMES)
    frame = control[t.DEPTH] * t.FRAME
    if control[t.THERE] == 0:
        control[t.CLEARED] = frames[frame + t.BOUND]
    else:
        frames[frame + t.AT] += 1 if frames[frame + t.DIRECTION] == t.UP else -1
    return np.int64(t.ADVANCE)
