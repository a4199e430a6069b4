"""What a rule writes when it fires: fields, positions with their variables, defined events, marks on what it takes."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.jit import inlined, spliced
from weft.kernels.rule_scan import Seen, evaluate
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
def fix(
    rows: t.Int64s,
    fields: t.Int64s,
    row: Any,
    depth: Any,
    starts: t.Int64s,
    origins: t.Int64s,
    values: t.Int64s,
    width: int,
    frames: t.Int64s,
    fixed: t.Int64s,
) -> Any:
    """Write down what all steps but the last give to firings: positions with labels, in order, and fields.

    How many positions, and the earliest start; -1 when one of the events is a defined one.
    """
    count = np.int64(0)
    start = starts[frames[t.BOUND]]
    for step in range(depth - 1, -1, -1):
        bound = frames[step * t.FRAME + t.BOUND]
        position = origins[bound]
        if position < 0:
            count = np.int64(-1)
            break
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
        field = (first + k) * t.FIELD
        source = fields[field + t.F_SOURCE]
        kind, word = np.int64(MISSING), np.int64(0)
        if source >= 0 and source < depth:
            place = frames[source * t.FRAME + t.BOUND] * width + VALUE * fields[field + t.F_COLUMN]
            kind, word = as_kind(fields[field + t.F_KIND], values[place], values[place + 1])
        fixed[2 * (depth + k)], fixed[2 * (depth + k) + 1] = kind, word
    return count, start


@spliced
def size_of(count: Any, frames: t.Int64s, origins: t.Int64s, positions: t.Int64s) -> Any:
    """How many positions the bound events have, at most."""
    size = np.int64(0)
    for k in range(count):
        origin = origins[frames[k * t.FRAME + t.BOUND]]
        size += 1 if origin >= 0 else positions[-1 - origin]
    return size


@spliced
def write_positions(count: Any, frames: t.Int64s, store: t.Store, output: t.Output, begin: Any) -> Any:
    """Write the positions of all bound events, in order, each with the bits of its variables: start, and end."""
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
                labels[at - 1] |= bit
            else:
                for later in range(end, at, -1):
                    written[later], labels[later] = written[later - 1], labels[later - 1]
                written[at], labels[at] = position, bit
                end += 1
    return start, end


@inlined
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
    rows: t.Int64s,
    steps: t.Int64s,
    row: Any,
    frames: t.Int64s,
    pending: t.Int64s,
    marks: t.Int64s,
    words: int,
    control: t.Int64s,
) -> None:
    """Note what a firing consumes. It counts when the rule is done here, so marks are set on the second half first."""
    first = rows[row + t.STEPS_AT]
    for k in range(1, rows[row + t.STEPS]):
        mark = steps[(first + k) * t.STEP + t.CONSUMED]
        event = frames[k * t.FRAME + t.BOUND]
        at = event * words + words // 2 + (mark >> 6)
        if mark >= 0 and (marks[at] >> (mark & 63)) & 1 == 0:
            marks[at] |= np.int64(1) << (mark & 63)
            pending[2 * control[t.PENDING]], pending[2 * control[t.PENDING] + 1] = event, mark
            control[t.PENDING] += 1


@inlined
def settle_pending(pending: t.Int64s, marks: t.Int64s, words: int, control: t.Int64s) -> None:
    """A rule is done at a terminator: from now on, what it consumed there is consumed."""
    for k in range(control[t.PENDING]):
        event, mark = pending[2 * k], pending[2 * k + 1]
        bit = np.int64(1) << (mark & 63)
        at = event * words + (mark >> 6)
        marks[at] |= bit
        marks[at + words // 2] &= ~bit
    control[t.PENDING] = 0
