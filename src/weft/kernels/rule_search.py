"""The search of rules for what they fire with: the next event, the rules that start there, and their look-backs.

Each part is a mode of `look_back`; it says which is next, or, with a negative number, why the kernel must return.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.jit import spliced
from weft.kernels.rule_firing import fix, has_room, repeat_firing, settle_pending, write_plain
from weft.kernels.rule_index import expect_later, sort_rules, starting
from weft.kernels.rule_lists import list_event
from weft.kernels.rule_members import suited, that_pass
from weft.kernels.rule_scan import Seen, all_pass, first_from, list_of, passes
from weft.kernels.rule_series import enter_event
from weft.kernels.tagged import INTEGER, VALUE, satisfies


@spliced
def stopped(control: t.Int64s, mode: Any, reason: Any) -> Any:
    """Return from the kernel, and go on with a mode."""
    control[t.MODE] = mode
    return np.int64(-1 - reason)


# ---------------------------------------------------------------- the next event


@spliced
def fetch(
    batch: t.Batch,
    rules: t.Rules,
    index: t.Index,
    store: t.Store,
    lanes: t.Lanes,
    mark_words: int,
    work: t.Work,
    control: t.Int64s,
    seen: Seen,
) -> Any:
    """Take the next event: one that waits, or one of the batch; and find the rules that may start there."""
    types = store.types
    waits = control[t.QUEUE_AT] < control[t.QUEUE_END]
    if not waits:
        control[t.QUEUE_AT] = control[t.QUEUE_END] = 0
        if control[t.EVENT] == len(batch.types):
            return stopped(control, t.FETCH, t.DONE)
    queued = control[t.QUEUE_AT] * (t.QUEUED + seen.width)
    type_ = work.queue[queued + t.Q_TYPE] if waits else np.int64(batch.types[control[t.EVENT]])
    of = type_ * t.KIND_OF_EVENT
    held = types[of + t.HELD]
    if held == types[of + t.ROOM]:
        control[t.WANTED] = type_
        return stopped(control, t.FETCH, t.STORE_FULL)
    now = types[of + t.BASE] + held
    if waits:
        _place_defined(work.queue, queued, now, of, store, control, seen)
    else:
        _place_event(batch, control[t.EVENT], now, of, store, seen)
        expect_later(index, batch, control[t.EVENT], store, rules.row_of)
    for k in range(now * mark_words, (now + 1) * mark_words):
        store.marks[k] = 0
    if types[of + t.CHAINS_AT] < types[of + t.CHAINS_END] and not list_event(
        type_, now, types[of + t.GONE] + held, store, seen.width, control
    ):
        return stopped(control, t.FETCH, t.LISTS_FULL)
    if types[of + t.SERIES_AT] < types[of + t.SERIES_END] and not enter_event(
        type_, now, types, store.times[now], rules.tests, lanes, seen
    ):
        if types[of + t.CHAINS_AT] < types[of + t.CHAINS_END]:
            control[t.LISTED_TO] = types[of + t.CHAINS_END]
        return stopped(control, t.FETCH, t.SERIES_FULL)
    types[of + t.HELD] += 1
    control[t.SERIAL] += 1
    control[t.TIME] = store.times[now]
    control[t.QUEUE_AT if waits else t.EVENT] += 1
    work.frames[t.BOUND] = now
    control[t.KNOWN] = -1
    picked = starting(
        index, types[of + t.ACCESS_AT], types[of + t.ACCESS_END], now, store.values, seen.width, work.sets
    )
    if types[of + t.ORDERED] != 0:
        sort_rules(work.sets, picked)
    control[t.PICKED], control[t.PICKED_AT] = picked, 0
    return np.int64(t.START)


@spliced
def _place_event(batch: t.Batch, event: Any, now: Any, of: Any, store: t.Store, seen: Seen) -> None:
    """Put an event of the batch into the store."""
    store.times[now] = batch.times[event]
    store.starts[now] = batch.starts[event]
    store.origins[now] = batch.positions[event]
    own = now * seen.width
    for k in range(store.types[of + t.COLUMNS_AT], store.types[of + t.COLUMNS_END]):
        source = event * batch.width + VALUE * store.columns[k]
        store.values[own], store.values[own + 1] = batch.values[source], batch.values[source + 1]
        own += VALUE


@spliced
def _place_defined(
    queue: t.Int64s, place: Any, now: Any, of: Any, store: t.Store, control: t.Int64s, seen: Seen
) -> None:
    """Put a defined event into the store."""
    store.times[now] = control[t.TIME]
    store.starts[now] = queue[place + t.Q_START]
    store.origins[now] = -1 - queue[place + t.Q_POSITIONS]
    for k in range(VALUE * (store.types[of + t.COLUMNS_END] - store.types[of + t.COLUMNS_AT])):
        store.values[now * seen.width + k] = queue[place + t.QUEUED + k]


# ---------------------------------------------------------------- the rules that start there


@spliced
def start(rules: t.Rules, work: t.Work, control: t.Int64s, seen: Seen) -> Any:
    """Take the next rules of one row; those go on whose tests the terminator passes."""
    begin, end = control[t.PICKED_AT], control[t.PICKED]
    if begin == end:
        return np.int64(t.FETCH)
    sets = work.sets
    number = rules.row_of[sets[begin]]
    to, until = control[t.SPAN], begin
    while until < end and rules.row_of[sets[until]] == number:
        sets[to + until - begin] = sets[until]
        until += 1
    row = np.int64(number) * t.ROW
    control[t.RUN_END], control[t.ROW_AT] = until, row
    step = rules.rows[row + t.STEPS_AT] * t.STEP
    tests_at, own_at, tests_end = (
        rules.steps[step + t.TESTS_AT],
        rules.steps[step + t.OWN_TESTS_AT],
        rules.steps[step + t.TESTS_END],
    )
    terminator = work.frames[t.BOUND]
    count = until - begin
    if tests_at < own_at and not all_pass(rules.tests, tests_at, own_at, terminator, seen):
        count = np.int64(0)
    if own_at < tests_end:
        count = that_pass(sets, to, count, rules.own, rules.own_at, rules.tests, own_at, tests_end, terminator, seen)
    work.frames[t.FRAME + t.SET] = count
    control[t.DEPTH], control[t.THERE] = 0, 0
    if count == 0:
        control[t.PICKED_AT] = until
        return np.int64(t.START)
    scan_at, scan_end = rules.steps[step + t.ABSENCES_AT], rules.steps[step + t.ABSENCES_END]
    if scan_at == scan_end:
        return np.int64(t.STARTED)
    control[t.SCAN_AT], control[t.SCAN_END], control[t.SCAN_BASE], control[t.AFTER] = scan_at, scan_end, -1, t.STARTED
    return np.int64(t.SCAN)


@spliced
def started(rules: t.Rules, control: t.Int64s) -> Any:
    """Whether absences hold for the terminator is known."""
    if control[t.THERE] != 0:
        control[t.PICKED_AT] = control[t.RUN_END]
        return np.int64(t.START)
    if rules.rows[control[t.ROW_AT] + t.STEPS] == 1:
        return np.int64(t.EMIT)
    control[t.DEPTH] = 1
    return np.int64(t.OPEN)


# ---------------------------------------------------------------- a look-back


@spliced
def open_step(rules: t.Rules, store: t.Store, work: t.Work, control: t.Int64s, seen: Seen) -> Any:
    """Find where the candidates of a look-back are."""
    steps, frames, types, times, entries = rules.steps, work.frames, store.types, store.times, store.entries
    depth = control[t.DEPTH]
    step = (rules.rows[control[t.ROW_AT] + t.STEPS_AT] + depth) * t.STEP
    frame = depth * t.FRAME
    of = steps[step + t.TYPE] * t.KIND_OF_EVENT
    high = times[frames[steps[step + t.ANCHOR] * t.FRAME + t.BOUND]]
    low = high - steps[step + t.LONGEST]
    offset = types[of + t.BASE] - types[of + t.GONE]
    chain = steps[step + t.LISTED]
    source = steps[step + t.SOURCE]
    if source >= 0 and source == control[t.KNOWN]:
        begin, end = control[t.KNOWN_BEGIN], control[t.KNOWN_END]
    elif chain >= 0:
        place = list_of(chain, rules.keys, steps[step + t.KEYS_AT], steps[step + t.KEYS_END], store.heads, seen)
        begin = end = np.int64(0)
        if place >= 0:
            begin = store.heads[place * t.HEAD + t.BEGIN]
            end = begin + store.heads[place * t.HEAD + t.LENGTH]
        end = first_from(entries, t.ENTRY, begin, end, high)
    else:
        begin = types[of + t.BASE]
        end = first_from(times, 1, begin, begin + types[of + t.HELD], high)
    control[t.KNOWN], control[t.KNOWN_BEGIN], control[t.KNOWN_END] = source, begin, end
    frames[frame + t.BY_LIST] = np.int64(chain >= 0)
    frames[frame + t.OFFSET] = offset
    frames[frame + t.HIGH] = high
    frames[frame + t.NEAR] = high - steps[step + t.SHORTEST]
    frames[frame + t.FLOOR_AT] = steps[step + t.FLOOR] + offset
    count = frames[frame + t.LEFT] = steps[step + t.COUNT]
    if steps[step + t.PICK] == t.LAST:
        frames[frame + t.AT], frames[frame + t.STOP] = end - 1, begin - 1
        frames[frame + t.FOUND] = end
        frames[frame + t.DIRECTION] = t.DOWN if count == 1 else t.COUNTING
    else:
        begin = first_from(entries, t.ENTRY, begin, end, low) if chain >= 0 else first_from(times, 1, begin, end, low)
        frames[frame + t.AT], frames[frame + t.STOP] = begin, end
        frames[frame + t.DIRECTION] = t.UP
    return np.int64(t.ADVANCE)


@spliced
def advance(
    rules: t.Rules,
    store: t.Store,
    mark_words: int,
    work: t.Work,
    output: t.Output,
    control: t.Int64s,
    counting: bool,
    seen: Seen,
) -> Any:
    """Find the next candidate of a look-back, and the rules that it suits; plain rules fire with it at once."""
    steps, frames, sets = rules.steps, work.frames, work.sets
    times, entries, values = store.times, store.entries, store.values
    depth, row = control[t.DEPTH], control[t.ROW_AT]
    if depth == 0:
        if control[t.PENDING] > 0:
            settle_pending(work.pending, store.marks, mark_words, control)
        control[t.PICKED_AT] = control[t.RUN_END]
        return np.int64(t.START)
    step = (rules.rows[row + t.STEPS_AT] + depth) * t.STEP
    frame = depth * t.FRAME
    direction, by_list, offset = frames[frame + t.DIRECTION], frames[frame + t.BY_LIST] != 0, frames[frame + t.OFFSET]
    high, near = frames[frame + t.HIGH], frames[frame + t.NEAR]
    floor = frames[frame + t.FLOOR_AT]
    tests_at, own_tests_at, tests_end = (
        steps[step + t.TESTS_AT],
        steps[step + t.OWN_TESTS_AT],
        steps[step + t.TESTS_END],
    )
    must_lack = steps[step + t.ABSENCES_AT] < steps[step + t.ABSENCES_END]
    takes_one, consumed = steps[step + t.COUNT] == 1, steps[step + t.CONSUMED] != 0
    forward = np.int64(1 if direction == t.UP else -1)
    is_last = depth + 1 == rules.rows[row + t.STEPS]
    plain = is_last and rules.rows[row + t.IS_PLAIN] != 0 and direction != t.COUNTING
    here, slot = depth * control[t.SPAN], t.OWN * (depth - 1)
    to = here + control[t.SPAN]
    at, stop, left, alive = frames[frame + t.AT], frames[frame + t.STOP], frames[frame + t.LEFT], frames[frame + t.SET]
    # What no rule of the set takes: events before `reach`, and those whose value in a column does not suit a bound.
    reach, is_bound, bound = high - steps[step + t.LONGEST], False, np.int64(0)
    operator, column = np.int64(0), np.int64(0)
    if own_tests_at < tests_end:
        operator = rules.tests[own_tests_at * t.TEST + t.T_OPERATOR]
        column = VALUE * rules.tests[own_tests_at * t.TEST + t.T_COLUMN]
    others, first = np.int64(-2), np.int64(0)  # what the events bound before give to firings is not known yet
    mode = np.int64(t.ADVANCE)
    while alive > 0 and left > 0 and at != stop:
        candidate, time = at, times[at] if not by_list else entries[at * t.ENTRY]
        if by_list:
            candidate = entries[at * t.ENTRY + 1] + offset
        if time < reach and direction != t.UP:
            break
        suits = time >= reach and candidate >= floor
        if is_bound and values[candidate * seen.width + column] == INTEGER:
            word = values[candidate * seen.width + column + 1]
            suits = suits and satisfies(operator, np.int64(word > bound) - np.int64(word < bound))
        if not suits or not passes(rules.tests, tests_at, own_tests_at, candidate, seen, frames, values):
            at += forward
            continue
        is_judged = not must_lack or candidate == control[t.CLEARED]
        fires = plain and is_judged and store.origins[candidate] >= 0 and not counting
        if fires and others == -2:
            frames[frame + t.BOUND] = candidate
            others, first = fix(rules, row, depth, store, work, seen)
        fires = fires and others >= 0  # with a defined event it takes more
        if fires and not has_room(output, control, alive, alive * (others + 1)):
            mode = np.int64(-1 - t.OUTPUT_FULL)
            break
        taken = alive
        moves = takes_one and is_judged
        if time >= near and not consumed and own_tests_at == tests_end:
            for k in range(alive):
                sets[to + k] = sets[here + k]
            alive = np.int64(0) if moves else alive
        else:
            marked = candidate * mark_words if consumed else np.int64(-1)
            taken, alive, longest, is_bound, bound = suited(
                sets,
                here,
                alive,
                to,
                rules,
                slot,
                high - time,
                marked,
                store.marks,
                own_tests_at,
                tests_end,
                candidate,
                seen,
                moves,
            )
            if moves:
                reach = high - longest
            else:
                is_bound = False
        if taken == 0:
            at += forward
            continue
        frames[frame + t.BOUND] = candidate
        if not is_judged:
            control[t.SCAN_AT], control[t.SCAN_END] = steps[step + t.ABSENCES_AT], steps[step + t.ABSENCES_END]
            control[t.SCAN_BASE], control[t.AFTER] = -1, t.JUDGED
            mode = np.int64(t.SCAN)
            break
        control[t.CLEARED] = -1
        at += forward
        left -= 1
        left += np.int64(takes_one)  # those that took theirs have left the set
        if direction == t.COUNTING:
            frames[frame + t.FOUND] = at + 1
        elif plain and counting:
            for k in range(to, to + taken):
                work.counts[sets[k]] += 1
        elif fires:
            size = write_plain(rules, row, depth, candidate, others, first, store, work, output, control, seen)
            fields = rules.rows[row + t.FIELDS_END] - rules.rows[row + t.FIELDS_AT]
            repeat_firing(output, sets, to, taken, size, fields, control)
        else:
            mode = np.int64(t.EMIT if is_last else t.OPEN)
            frames[frame + t.FRAME + t.SET] = taken
            break
    frames[frame + t.AT], frames[frame + t.LEFT], frames[frame + t.SET] = at, left, alive
    if mode < 0:
        control[t.MODE] = t.ADVANCE
    elif mode == t.OPEN:
        control[t.DEPTH] = depth + 1
    elif mode == t.ADVANCE and direction == t.COUNTING:
        # The latest ones are known: now they are taken from the earliest of them on.
        frames[frame + t.AT], frames[frame + t.STOP] = frames[frame + t.FOUND], np.int64(-1)
        frames[frame + t.LEFT] = steps[step + t.COUNT] - left
        frames[frame + t.DIRECTION] = t.UP
    elif mode == t.ADVANCE:
        control[t.DEPTH] = depth - 1
    return mode


@spliced
def judged(work: t.Work, control: t.Int64s) -> Any:
    """Whether absences hold for a candidate is known."""
    frame = control[t.DEPTH] * t.FRAME
    if control[t.THERE] == 0:
        control[t.CLEARED] = work.frames[frame + t.BOUND]
    else:
        work.frames[frame + t.AT] += 1 if work.frames[frame + t.DIRECTION] == t.UP else -1
    return np.int64(t.ADVANCE)
