"""What a rule writes when it fires: fields, positions with their variables, defined events, marks on what it takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.jit import bare, spliced
from weft.kernels.rule_members import that_pass
from weft.kernels.rule_scan import Seen, all_pass, evaluate
from weft.kernels.tagged import BEYOND, FLOAT, INTEGER, MISSING, TEXT, VALUE, bits_of, float_of


@spliced
def as_kind(wanted: Any, kind: Any, word: Any) -> Any:
    """A value as a field of a kind holds it."""
    if wanted == kind:
        pass
    elif wanted == FLOAT and kind == INTEGER:
        kind, word = np.int64(FLOAT), bits_of(np.float64(word))
    elif wanted == INTEGER and kind == FLOAT:
        number = float_of(word)
        if np.isinf(number):
            kind = np.int64(MISSING)
        elif abs(number) < BEYOND:
            kind, word = np.int64(INTEGER), np.int64(number)
    else:
        kind = np.int64(MISSING)
    return kind, word


@spliced
def field_value(fields: t.Int64s, field: Any, seen: Seen) -> Any:
    """The value of a field of a firing."""
    source = fields[field + t.F_SOURCE]
    kind, word = np.int64(MISSING), np.int64(0)
    if source >= 0:
        place = seen.frames[source * t.FRAME + t.BOUND] * seen.width + VALUE * fields[field + t.F_COLUMN]
        kind, word = seen.values[place], seen.values[place + 1]
    elif fields[field + t.F_CODE_AT] < fields[field + t.F_CODE_END]:
        kind, word = evaluate(seen, fields[field + t.F_CODE_AT], fields[field + t.F_CODE_END], np.int64(0))
    return as_kind(fields[field + t.F_KIND], kind, word)


@spliced
def has_room(output: t.Output, control: t.Int64s, firings: Any, positions: Any) -> bool:
    """Whether there is room for so many firings with so many positions; if not, what is wanted is noted."""
    control[t.WANTED], control[t.WANTED_POSITIONS] = firings, positions
    return control[t.OUT] + firings <= len(output.rows) and control[t.OUT_POSITIONS] + positions <= len(
        output.positions
    )


@spliced
def fix(rules: t.Rules, row: Any, depth: Any, store: t.Store, work: t.Work, seen: Seen) -> Any:
    """Write down what all steps but the last give to firings: positions with labels, in order, and fields.

    How many positions, and the earliest start; -1 when one of the events is a defined one.
    """
    frames, fixed, rows, fields = work.frames, work.fixed, rules.rows, rules.fields
    count = np.int64(0)
    start = store.starts[frames[t.BOUND]]
    for step in range(depth - 1, -1, -1):
        bound = frames[step * t.FRAME + t.BOUND]
        position = store.origins[bound]
        if position < 0:
            count = np.int64(-1)
            break
        start = min(start, store.starts[bound])
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
        field = (first + k) * t.FIELD
        source = fields[field + t.F_SOURCE]
        kind, word = np.int64(MISSING), np.int64(0)
        if source >= 0 and source < depth:
            place = frames[source * t.FRAME + t.BOUND] * seen.width + VALUE * fields[field + t.F_COLUMN]
            kind, word = as_kind(fields[field + t.F_KIND], seen.values[place], seen.values[place + 1])
        fixed[2 * (depth + k)], fixed[2 * (depth + k) + 1] = kind, word
    return count, start


@spliced
def write_plain(
    rules: t.Rules,
    row: Any,
    depth: Any,
    candidate: Any,
    others: Any,
    start: Any,
    store: t.Store,
    work: t.Work,
    output: t.Output,
    control: t.Int64s,
    seen: Seen,
) -> Any:
    """Write a firing with a candidate of the last step: how many positions it has."""
    fixed, fields, positions, labels = work.fixed, rules.fields, output.positions, output.labels
    match, begin, room = control[t.OUT], control[t.OUT_POSITIONS], len(output.rows)
    position, bit = store.origins[candidate], np.int64(1) << depth
    output.starts[match] = min(start, store.starts[candidate])
    end = begin
    other = np.int64(0)
    while other < others and fixed[2 * other] < position:
        positions[end], labels[end] = fixed[2 * other], fixed[2 * other + 1]
        end += 1
        other += 1
    positions[end], labels[end] = position, rules.rows[row + t.LABELS] + bit
    if other < others and fixed[2 * other] == position:
        labels[end] = fixed[2 * other + 1] + bit
        other += 1
    end += 1
    while other < others:
        positions[end], labels[end] = fixed[2 * other], fixed[2 * other + 1]
        end += 1
        other += 1
    first = rules.rows[row + t.FIELDS_AT]
    for k in range(rules.rows[row + t.FIELDS_END] - first):
        field = (first + k) * t.FIELD
        kind, word = fixed[2 * (depth + k)], fixed[2 * (depth + k) + 1]
        if fields[field + t.F_SOURCE] == depth:
            place = candidate * seen.width + VALUE * fields[field + t.F_COLUMN]
            kind, word = as_kind(fields[field + t.F_KIND], seen.values[place], seen.values[place + 1])
        output.kinds[k * room + match], output.words[k * room + match] = kind, word
    return end - begin


@spliced
def repeat_firing(
    output: t.Output, sets: t.Int32s, at: Any, count: Any, size: Any, fields: Any, control: t.Int64s
) -> None:
    """A firing of so many positions and fields is written: it is one of each rule of a set."""
    match, begin, room = control[t.OUT], control[t.OUT_POSITIONS], len(output.rows)
    start, time = output.starts[match], control[t.TIME]
    for k in range(count):
        output.rows[match + k] = sets[at + k]
        output.starts[match + k] = start
        output.ends[match + k] = time
        output.offsets[match + k + 1] = begin + (k + 1) * size
    for own in range(begin, begin + size):
        position, label = output.positions[own], output.labels[own]
        for k in range(1, count):
            output.positions[own + k * size], output.labels[own + k * size] = position, label
    for first in range(match, match + fields * room, room):
        kind, word = output.kinds[first], output.words[first]
        for k in range(1, count):
            output.kinds[first + k], output.words[first + k] = kind, word
    control[t.OUT], control[t.OUT_POSITIONS] = match + count, begin + count * size


@spliced
def size_of(count: Any, frames: t.Int64s, origins: t.Int64s, positions: t.Int64s) -> Any:
    """How many positions the bound events have, at most."""
    size = np.int64(0)
    for k in range(count):
        origin = origins[frames[k * t.FRAME + t.BOUND]]
        size += 1 if origin >= 0 else positions[-1 - origin]
    return size


@spliced
def write_positions(count: Any, label: Any, frames: t.Int64s, store: t.Store, output: t.Output, begin: Any) -> Any:
    """Write the positions of all bound events, in order, each with its label, to which bits of variables are added.

    The earliest start, and where they end.
    """
    starts, origins, positions = store.starts, store.origins, store.positions
    written, labels = output.positions, output.labels
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
                labels[at - 1] += bit
            else:
                for later in range(end, at, -1):
                    written[later], labels[later] = written[later - 1], labels[later - 1]
                written[at], labels[at] = position, label + bit
                end += 1
    return start, end


@bare
def keep_defined(
    rules: t.Rules,
    row: Any,
    start: Any,
    begin: Any,
    end: Any,
    match: Any,
    width: int,
    store: t.Store,
    queue: t.Int64s,
    output: t.Output,
    control: t.Int64s,
) -> None:
    """Put the event that a firing defines at the end of the queue; its positions and fields are in the output."""
    place = control[t.QUEUE_END] * (t.QUEUED + width)
    to = control[t.POSITIONS]
    feeds = rules.rows[row + t.FEEDS]
    queue[place + t.Q_TYPE], queue[place + t.Q_START], queue[place + t.Q_POSITIONS] = feeds, start, to
    store.positions[to] = end - begin
    for k in range(end - begin):
        store.positions[to + 1 + k] = output.positions[begin + k]
    control[t.POSITIONS] = to + 1 + end - begin
    of = feeds * t.KIND_OF_EVENT
    for k in range(store.types[of + t.COLUMNS_END] - store.types[of + t.COLUMNS_AT]):
        source = rules.feeds[rules.rows[row + t.FEED_AT] + 2 * k]
        kind, word = np.int64(MISSING), rules.feeds[rules.rows[row + t.FEED_AT] + 2 * k + 1]
        if source >= 0:
            at = source * len(output.rows) + match
            kind, word = np.int64(output.kinds[at]), output.words[at]
        elif source == t.FROM_TIME:
            kind, word = np.int64(INTEGER), control[t.TIME]
        elif source == t.FROM_NAME:
            kind = np.int64(TEXT)
        at = place + t.QUEUED + VALUE * k
        queue[at], queue[at + 1] = kind, word
    control[t.QUEUE_END] += 1


@spliced
def consume(
    rules: t.Rules,
    row: Any,
    at: Any,
    members: Any,
    work: t.Work,
    marks: t.Int64s,
    words: int,
    control: t.Int64s,
) -> None:
    """Note what firing rules consume. It counts when they are done here: marks are set on the second half first."""
    first, pending = rules.rows[row + t.STEPS_AT], work.pending
    for step in range(1, rules.rows[row + t.STEPS]):
        if rules.steps[(first + step) * t.STEP + t.CONSUMED] == 0:
            continue
        event = work.frames[step * t.FRAME + t.BOUND]
        for k in range(at, at + members):
            mark = rules.own[rules.own_at[work.sets[k]] + t.OWN * (step - 1) + t.MARK]
            place = event * words + words // 2 + (mark >> 6)
            if (marks[place] >> (mark & 63)) & 1 == 0:
                marks[place] |= np.int64(1) << (mark & 63)
                pending[2 * control[t.PENDING]], pending[2 * control[t.PENDING] + 1] = event, mark
                control[t.PENDING] += 1


@bare
def settle_pending(pending: t.Int64s, marks: t.Int64s, words: int, control: t.Int64s) -> None:
    """A rule is done at a terminator: from now on, what it consumed there is consumed."""
    for k in range(control[t.PENDING]):
        event, mark = pending[2 * k], pending[2 * k + 1]
        bit = np.int64(1) << (mark & 63)
        at = event * words + (mark >> 6)
        marks[at] |= bit
        marks[at + words // 2] &= ~bit
    control[t.PENDING] = 0


# ---------------------------------------------------------------- modes: all steps are bound


@spliced
def emit(rules: t.Rules, control: t.Int64s) -> Any:
    """Look at the summaries that conditions need."""
    row = control[t.ROW_AT]
    scan_at, scan_end = rules.rows[row + t.TESTED_AT], rules.rows[row + t.SHOWN_AT]
    control[t.SCAN_AT], control[t.SCAN_END] = scan_at, scan_end
    control[t.SCAN_BASE], control[t.AFTER] = scan_at, t.CHECK
    return np.int64(t.SCAN if scan_at < scan_end else t.CHECK)


@spliced
def check(
    rules: t.Rules,
    store: t.Store,
    mark_words: int,
    work: t.Work,
    output: t.Output,
    control: t.Int64s,
    counting: bool,
    seen: Seen,
) -> Any:
    """What conditions need is known: those rules fire for which they hold, if there is room."""
    row, frame = control[t.ROW_AT], (control[t.DEPTH] + 1) * t.FRAME
    rows, frames, at = rules.rows, work.frames, (control[t.DEPTH] + 1) * control[t.SPAN]
    members = frames[frame + t.SET]
    begin, own, end = rows[row + t.CONDITIONS_AT], rows[row + t.OWN_CONDITIONS_AT], rows[row + t.CONDITIONS_END]
    if begin < own and not all_pass(rules.tests, begin, own, np.int64(0), seen):
        return np.int64(t.ADVANCE)
    if own < end:
        members = that_pass(work.sets, at, members, rules.own, rules.own_at, rules.tests, own, end, np.int64(0), seen)
        frames[frame + t.SET] = members
        if members == 0:
            return np.int64(t.ADVANCE)
    feeds, count = rows[row + t.FEEDS], rows[row + t.STEPS]
    size = size_of(count, frames, store.origins, store.positions)
    reason = np.int64(-1)
    if (feeds >= 0 or not counting) and not has_room(output, control, members, members * size):
        reason = np.int64(t.OUTPUT_FULL)
    elif rows[row + t.CONSUMES] != 0 and 2 * (control[t.PENDING] + members * count) > len(work.pending):
        control[t.WANTED] = members * count
        reason = np.int64(t.PENDING_FULL)
    elif feeds >= 0 and (control[t.QUEUE_END] + 1) * (t.QUEUED + seen.width) > len(work.queue):
        reason = np.int64(t.QUEUE_FULL)
    elif feeds >= 0 and control[t.POSITIONS] + size + 1 > len(store.positions):
        control[t.WANTED] = size
        reason = np.int64(t.POSITIONS_FULL)
    if reason >= 0:
        control[t.MODE] = t.EMIT
        return -1 - reason
    if rows[row + t.CONSUMES] != 0:
        consume(rules, row, at, members, work, store.marks, mark_words, control)
    if counting:
        for k in range(at, at + members):
            work.counts[work.sets[k]] += 1
        if feeds < 0:
            return np.int64(t.ADVANCE)
    scan_at, scan_end = rows[row + t.SHOWN_AT], rows[row + t.SHOWN_END]
    control[t.SCAN_AT], control[t.SCAN_END], control[t.AFTER] = scan_at, scan_end, t.WRITE
    control[t.SCAN_BASE] = rows[row + t.TESTED_AT]
    return np.int64(t.SCAN if scan_at < scan_end else t.WRITE)


@spliced
def write(
    rules: t.Rules,
    store: t.Store,
    work: t.Work,
    output: t.Output,
    control: t.Int64s,
    counting: bool,
    seen: Seen,
) -> Any:
    """What fields need is known: write the firings."""
    rows, row, room = rules.rows, control[t.ROW_AT], len(output.rows)
    match, begin = control[t.OUT], control[t.OUT_POSITIONS]
    fields = rows[row + t.FIELDS_END] - rows[row + t.FIELDS_AT]
    for k in range(fields):
        kind, word = field_value(rules.fields, (rows[row + t.FIELDS_AT] + k) * t.FIELD, seen)
        output.kinds[k * room + match], output.words[k * room + match] = kind, word
    start, end = write_positions(rows[row + t.STEPS], rows[row + t.LABELS], work.frames, store, output, begin)
    output.starts[match] = start
    if rows[row + t.FEEDS] >= 0:
        keep_defined(rules, row, start, begin, end, match, seen.width, store, work.queue, output, control)
    if not counting:
        depth = control[t.DEPTH] + 1
        members = work.frames[depth * t.FRAME + t.SET]
        repeat_firing(output, work.sets, depth * control[t.SPAN], members, end - begin, fields, control)
    return np.int64(t.ADVANCE)
