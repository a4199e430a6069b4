"""Write firings of rules: fields, positions with their variables, defined events, and marks of consumed events."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels.jit import always_inline, device_no_refcount
from weft.kernels.machine.decimals import real_of, whole_part
from weft.kernels.machine.machine import ALONE, evaluate
from weft.kernels.machine.tagged import BEYOND, DECIMAL, FLOAT, INTEGER, MISSING, TEXT, VALUE, bits_of, float_of
from weft.kernels.memory.room import halves, noted, octets, words
from weft.kernels.rules import arrays as r
from weft.kernels.rules import tables as t
from weft.kernels.rules.members import filter_members
from weft.kernels.rules.scan import passes


@device_no_refcount
def _decimal_as(room: t.Int64s, wanted: Any, word: Any) -> Any:
    """Convert a decimal to the kind of a field: to an integer by truncation if it fits, else to the nearest float."""
    if wanted != INTEGER and wanted != FLOAT:
        return np.int64(MISSING), word
    pool, offsets = octets(room, r.TEXTS), words(room, r.TEXT_OFFSETS)
    fits, size, negative = whole_part(word, pool, offsets)
    if wanted == INTEGER and fits and size < np.uint64(1 << 63):
        return np.int64(INTEGER), -np.int64(size) if negative else np.int64(size)
    return np.int64(FLOAT), bits_of(real_of(word, pool, offsets))


@always_inline
def _as_kind(room: t.Int64s, wanted: Any, kind: Any, word: Any) -> Any:
    """Convert a value to the kind of a field."""
    if wanted == kind:
        pass
    elif kind == DECIMAL:
        kind, word = _decimal_as(room, wanted, word)
    elif wanted == FLOAT and kind == INTEGER:
        kind, word = np.int64(FLOAT), bits_of(np.float64(word))
    elif wanted == INTEGER and kind == FLOAT:
        number = float_of(word)
        if np.isinf(number):
            kind = np.int64(MISSING)
        elif -BEYOND <= number < BEYOND:
            kind, word = np.int64(INTEGER), np.int64(number)
    else:
        kind = np.int64(MISSING)
    return kind, word


@device_no_refcount
def _attribute(room: t.Int64s, field: Any, event: Any) -> Any:
    """Return an attribute of an event in the kind of a field."""
    fields, values = words(room, r.FIELDS), words(room, r.VALUES)
    place = event * noted(room, r.WIDTH) + VALUE * fields[field + t.F_COLUMN]
    return _as_kind(room, fields[field + t.F_KIND], values[place], values[place + 1])


@device_no_refcount
def has_room(room: t.Int64s, firings: Any, positions: Any) -> bool:
    """Whether there is space for the firings and positions; if not, request it."""
    control = words(room, r.CONTROL)
    fits = control[t.OUT] + firings <= len(halves(room, r.OUT_ROWS))
    fits = fits and control[t.OUT_POSITIONS] + positions <= len(words(room, r.OUT_POSITIONS))
    if not fits:
        control[t.WANTED], control[t.WANTED_POSITIONS] = firings, positions
    return bool(fits)


# ---------------------------------------------------------------- plain rules: the last look-back gives firings


@device_no_refcount
def fix(room: t.Int64s, row: Any, depth: Any) -> Any:
    """Precompute what all steps but the last contribute to firings: sorted positions with labels, and fields.

    Return the number of positions, or -1 if one of the events is a defined one, and the earliest start.
    """
    rows, fields, frames, fixed = (
        words(room, r.ROWS),
        words(room, r.FIELDS),
        words(room, r.FRAMES),
        words(room, r.FIXED),
    )
    origins, starts = words(room, r.ORIGINS), words(room, r.STARTS)
    count = np.int64(0)
    start = starts[frames[t.BOUND]]
    for step in range(depth - 1, -1, -1):
        bound = frames[step * t.FRAME + t.BOUND]
        position = origins[bound]
        if position < 0:
            return np.int64(-1), start
        start = min(start, starts[bound])
        at = count
        while at > 0 and fixed[2 * at - 2] > position:
            fixed[2 * at], fixed[2 * at + 1] = fixed[2 * at - 2], fixed[2 * at - 1]
            at -= 1
        if at > 0 and fixed[2 * at - 2] == position:
            fixed[2 * at - 1] += np.int64(1) << step
            for later in range(at, count):
                fixed[2 * later], fixed[2 * later + 1] = fixed[2 * later + 2], fixed[2 * later + 3]
        else:
            fixed[2 * at], fixed[2 * at + 1] = position, rows[row + t.LABELS] + (np.int64(1) << step)
            count += 1
    first = rows[row + t.FIELDS_AT]
    for k in range(rows[row + t.FIELDS_END] - first):
        source = fields[(first + k) * t.FIELD + t.F_SOURCE]
        kind, word = np.int64(MISSING), np.int64(0)
        if source >= 0 and source < depth:
            kind, word = _attribute(room, (first + k) * t.FIELD, frames[source * t.FRAME + t.BOUND])
        fixed[2 * (depth + k)], fixed[2 * (depth + k) + 1] = kind, word
    return count, start


@device_no_refcount
def write_plain(room: t.Int64s, row: Any, depth: Any, candidate: Any, others: Any, start: Any) -> Any:
    """Write a firing with a candidate of the last step, and return its number of positions."""
    rows, fields, fixed, control = (
        words(room, r.ROWS),
        words(room, r.FIELDS),
        words(room, r.FIXED),
        words(room, r.CONTROL),
    )
    positions, labels = words(room, r.OUT_POSITIONS), words(room, r.OUT_LABELS)
    kinds, values, starts = octets(room, r.OUT_KINDS), words(room, r.OUT_WORDS), words(room, r.OUT_STARTS)
    match, begin, places = control[t.OUT], control[t.OUT_POSITIONS], len(starts)
    position, bit = words(room, r.ORIGINS)[candidate], np.int64(1) << depth
    starts[match] = min(start, words(room, r.STARTS)[candidate])
    end, other = begin, np.int64(0)
    while other < others and fixed[2 * other] < position:
        positions[end], labels[end] = fixed[2 * other], fixed[2 * other + 1]
        end += 1
        other += 1
    positions[end], labels[end] = position, rows[row + t.LABELS] + bit
    if other < others and fixed[2 * other] == position:
        labels[end] = fixed[2 * other + 1] + bit
        other += 1
    end += 1
    while other < others:
        positions[end], labels[end] = fixed[2 * other], fixed[2 * other + 1]
        end += 1
        other += 1
    first = rows[row + t.FIELDS_AT]
    for k in range(rows[row + t.FIELDS_END] - first):
        kind, word = fixed[2 * (depth + k)], fixed[2 * (depth + k) + 1]
        if fields[(first + k) * t.FIELD + t.F_SOURCE] == depth:
            kind, word = _attribute(room, (first + k) * t.FIELD, candidate)
        kinds[k * places + match], values[k * places + match] = kind, word
    return end - begin


@device_no_refcount
def repeat_firing(room: t.Int64s, at: Any, count: Any, size: Any, fields: Any) -> None:
    """Copy the last firing, with its positions and fields, for each rule of a set."""
    control, sets, rows = words(room, r.CONTROL), halves(room, r.SETS), halves(room, r.OUT_ROWS)
    starts, ends, offsets = words(room, r.OUT_STARTS), words(room, r.OUT_ENDS), words(room, r.OUT_OFFSETS)
    positions, labels = words(room, r.OUT_POSITIONS), words(room, r.OUT_LABELS)
    kinds, values = octets(room, r.OUT_KINDS), words(room, r.OUT_WORDS)
    match, begin, places = control[t.OUT], control[t.OUT_POSITIONS], len(rows)
    start, time = starts[match], control[t.TIME]
    for k in range(count):
        rows[match + k] = sets[at + k]
        starts[match + k] = start
        ends[match + k] = time
        offsets[match + k + 1] = begin + (k + 1) * size
    for own in range(begin, begin + size):
        position, label = positions[own], labels[own]
        for k in range(1, count):
            positions[own + k * size], labels[own + k * size] = position, label
    for first in range(match, match + fields * places, places):
        kind, word = kinds[first], values[first]
        for k in range(1, count):
            kinds[first + k], values[first + k] = kind, word
    control[t.OUT], control[t.OUT_POSITIONS] = match + count, begin + count * size


# ---------------------------------------------------------------- all rules


@device_no_refcount
def _size(room: t.Int64s, count: Any) -> Any:
    """Return an upper bound of the number of positions of the bound events."""
    frames, origins, positions = words(room, r.FRAMES), words(room, r.ORIGINS), words(room, r.POSITIONS)
    size = np.int64(0)
    for k in range(count):
        origin = origins[frames[k * t.FRAME + t.BOUND]]
        size += 1 if origin >= 0 else positions[-1 - origin]
    return size


@device_no_refcount
def _write_positions(room: t.Int64s, count: Any, label: Any, begin: Any) -> Any:
    """Write the sorted positions of all bound events, each with its label, to which bits of variables are added.

    Return the earliest start, and where the positions end.
    """
    frames, starts, origins = words(room, r.FRAMES), words(room, r.STARTS), words(room, r.ORIGINS)
    positions, written, labels = words(room, r.POSITIONS), words(room, r.OUT_POSITIONS), words(room, r.OUT_LABELS)
    end = begin
    start = starts[frames[t.BOUND]]
    for step in range(count - 1, -1, -1):
        bound = frames[step * t.FRAME + t.BOUND]
        start = min(start, starts[bound])
        bit = np.int64(1) << step
        origin = origins[bound]
        first, length = np.int64(0), np.int64(1)
        if origin < 0:
            first = -origin
            length = positions[first - 1]
        for k in range(length):
            position = positions[first + k] if origin < 0 else origin
            at = end
            while at > begin and written[at - 1] > position:
                at -= 1
            if at > begin and written[at - 1] == position:
                labels[at - 1] |= bit
            else:
                for later in range(end, at, -1):
                    written[later], labels[later] = written[later - 1], labels[later - 1]
                written[at], labels[at] = position, bit
                end += 1
    for at in range(begin, end):
        labels[at] += label
    return start, end


@device_no_refcount
def _keep_defined(room: t.Int64s, row: Any, start: Any, begin: Any, end: Any) -> None:
    """Append the event that a firing defines to the queue; its positions and fields are in the output."""
    rows, types, queue, control = (
        words(room, r.ROWS),
        words(room, r.TYPES),
        words(room, r.QUEUE),
        words(room, r.CONTROL),
    )
    kept, written, all_feeds = words(room, r.POSITIONS), words(room, r.OUT_POSITIONS), words(room, r.FEEDS)
    place = control[t.QUEUE_END] * (t.QUEUED + noted(room, r.WIDTH))
    to = control[t.POSITIONS]
    feeds = rows[row + t.FEEDS]
    queue[place + t.Q_TYPE], queue[place + t.Q_START], queue[place + t.Q_POSITIONS] = feeds, start, to
    kept[to] = end - begin
    for k in range(end - begin):
        kept[to + 1 + k] = written[begin + k]
    control[t.POSITIONS] = to + 1 + end - begin
    of = feeds * t.KIND_OF_EVENT
    for k in range(types[of + t.COLUMNS_END] - types[of + t.COLUMNS_AT]):
        source = all_feeds[rows[row + t.FEED_AT] + 2 * k]
        kind, word = np.int64(MISSING), all_feeds[rows[row + t.FEED_AT] + 2 * k + 1]
        if source >= 0:
            at = source * len(halves(room, r.OUT_ROWS)) + control[t.OUT]
            kind, word = np.int64(octets(room, r.OUT_KINDS)[at]), words(room, r.OUT_WORDS)[at]
        elif source == t.FROM_TIME:
            kind, word = np.int64(INTEGER), control[t.TIME]
        elif source == t.FROM_NAME:
            kind = np.int64(TEXT)
        at = place + t.QUEUED + VALUE * k
        queue[at], queue[at + 1] = kind, word
    control[t.QUEUE_END] += 1


@device_no_refcount
def _consume(room: t.Int64s, row: Any, at: Any, members: Any) -> None:
    """Record what firing rules consume. Marks are tentative, in the second half, until the terminator is processed."""
    rows, steps, own, own_at = words(room, r.ROWS), words(room, r.STEPS), words(room, r.OWN), words(room, r.OWN_AT)
    frames, sets, marks, pending = (
        words(room, r.FRAMES),
        halves(room, r.SETS),
        words(room, r.MARKS),
        words(room, r.PENDING),
    )
    control, length = words(room, r.CONTROL), noted(room, r.MARK_WORDS)
    for step in range(1, rows[row + t.STEPS]):
        if steps[(rows[row + t.STEPS_AT] + step) * t.STEP + t.CONSUMED] == 0:
            continue
        event = frames[step * t.FRAME + t.BOUND]
        for k in range(at, at + members):
            mark = own[own_at[sets[k]] + t.OWN * (step - 1) + t.MARK]
            place = event * length + length // 2 + (mark >> 6)
            if (marks[place] >> (mark & 63)) & 1 == 0:
                marks[place] |= np.int64(1) << (mark & 63)
                pending[2 * control[t.PENDING]], pending[2 * control[t.PENDING] + 1] = event, mark
                control[t.PENDING] += 1


@device_no_refcount
def settle_pending(room: t.Int64s) -> None:
    """Make tentative marks of consumed events valid, after all rules were processed at a terminator."""
    control, pending, marks = words(room, r.CONTROL), words(room, r.PENDING), words(room, r.MARKS)
    length = noted(room, r.MARK_WORDS)
    for k in range(control[t.PENDING]):
        event, mark = pending[2 * k], pending[2 * k + 1]
        bit = np.int64(1) << (mark & 63)
        at = event * length + (mark >> 6)
        marks[at] |= bit
        marks[at + length // 2] &= ~bit
    control[t.PENDING] = 0


# ---------------------------------------------------------------- modes: all steps are bound


@device_no_refcount
def emit(room: t.Int64s) -> Any:
    """Schedule the evaluation of the summaries that conditions need."""
    control, rows = words(room, r.CONTROL), words(room, r.ROWS)
    row = control[t.ROW_AT]
    scan_at, scan_end = rows[row + t.TESTED_AT], rows[row + t.SHOWN_AT]
    control[t.SCAN_AT], control[t.SCAN_END] = scan_at, scan_end
    control[t.SCAN_BASE], control[t.AFTER] = scan_at, t.CHECK
    return np.int64(t.SCAN if scan_at < scan_end else t.CHECK)


@device_no_refcount
def _lacks_room(room: t.Int64s, row: Any, members: Any, writes: Any) -> Any:
    """Return the reason why there is not enough space for a firing, or -1."""
    rows, control = words(room, r.ROWS), words(room, r.CONTROL)
    feeds, count = rows[row + t.FEEDS], rows[row + t.STEPS]
    size = _size(room, count)
    if writes and not has_room(room, members, members * size):
        return np.int64(t.OUTPUT_FULL)
    if rows[row + t.CONSUMES] != 0 and 2 * (control[t.PENDING] + members * count) > len(words(room, r.PENDING)):
        control[t.WANTED] = members * count
        return np.int64(t.PENDING_FULL)
    if feeds >= 0 and (control[t.QUEUE_END] + 1) * (t.QUEUED + noted(room, r.WIDTH)) > len(words(room, r.QUEUE)):
        return np.int64(t.QUEUE_FULL)
    if feeds >= 0 and control[t.POSITIONS] + size + 1 > len(words(room, r.POSITIONS)):
        control[t.WANTED] = size
        return np.int64(t.POSITIONS_FULL)
    return np.int64(-1)


@device_no_refcount
def check(room: t.Int64s) -> Any:
    """Test the conditions, whose summaries are known; the rules for which they hold fire if there is space."""
    control, rows, frames, sets = (
        words(room, r.CONTROL),
        words(room, r.ROWS),
        words(room, r.FRAMES),
        halves(room, r.SETS),
    )
    row, frame, at = control[t.ROW_AT], (control[t.DEPTH] + 1) * t.FRAME, (control[t.DEPTH] + 1) * control[t.SPAN]
    begin, own, end = rows[row + t.CONDITIONS_AT], rows[row + t.OWN_CONDITIONS_AT], rows[row + t.CONDITIONS_END]
    if begin < own and not passes(room, begin, own, np.int64(0)):
        return np.int64(t.ADVANCE)
    members = frames[frame + t.SET]
    if own < end:
        members = frames[frame + t.SET] = filter_members(room, at, members, own, end, np.int64(0))
        if members == 0:
            return np.int64(t.ADVANCE)
    writes = rows[row + t.FEEDS] >= 0 or control[t.ONLY_COUNTS] == 0
    reason = _lacks_room(room, row, members, writes)
    if reason >= 0:
        control[t.MODE] = t.EMIT
        return -1 - reason
    if rows[row + t.CONSUMES] != 0:
        _consume(room, row, at, members)
    if control[t.ONLY_COUNTS] != 0:
        for k in range(at, at + members):
            words(room, r.COUNTS)[sets[k]] += 1
    if not writes:
        return np.int64(t.ADVANCE)
    control[t.SCAN_AT], control[t.SCAN_END] = rows[row + t.SHOWN_AT], rows[row + t.SHOWN_END]
    control[t.SCAN_BASE], control[t.AFTER] = rows[row + t.TESTED_AT], t.WRITE
    return np.int64(t.SCAN if control[t.SCAN_AT] < control[t.SCAN_END] else t.WRITE)


@device_no_refcount
def write(room: t.Int64s) -> Any:
    """Write the firings, after the summaries for fields were evaluated."""
    control, rows, fields = words(room, r.CONTROL), words(room, r.ROWS), words(room, r.FIELDS)
    frames, kinds, values = words(room, r.FRAMES), octets(room, r.OUT_KINDS), words(room, r.OUT_WORDS)
    row, match, begin = control[t.ROW_AT], control[t.OUT], control[t.OUT_POSITIONS]
    places, first = len(halves(room, r.OUT_ROWS)), rows[row + t.FIELDS_AT]
    count = rows[row + t.FIELDS_END] - first
    for k in range(count):
        field = (first + k) * t.FIELD
        source, code_at, code_end = (
            fields[field + t.F_SOURCE],
            fields[field + t.F_CODE_AT],
            fields[field + t.F_CODE_END],
        )
        kind, word = np.int64(MISSING), np.int64(0)
        if source >= 0:
            kind, word = _attribute(room, field, frames[source * t.FRAME + t.BOUND])
        elif code_at < code_end:
            kind, word = evaluate(room, code_at, code_end, ALONE)
            kind, word = _as_kind(room, fields[field + t.F_KIND], kind, word)
        kinds[k * places + match], values[k * places + match] = kind, word
    start, end = _write_positions(room, rows[row + t.STEPS], rows[row + t.LABELS], begin)
    words(room, r.OUT_STARTS)[match] = start
    if rows[row + t.FEEDS] >= 0:
        _keep_defined(room, row, start, begin, end)
    if control[t.ONLY_COUNTS] == 0:
        depth = control[t.DEPTH] + 1
        repeat_firing(room, depth * control[t.SPAN], frames[depth * t.FRAME + t.SET], end - begin, count)
    return np.int64(t.ADVANCE)
