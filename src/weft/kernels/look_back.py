"""Rules at work: event by event, each rule that starts there looks back for combinations of earlier events.

All rules are rows of tables (`rule_tables`), all events are in one store, once for all rules. The rules that start at
an event are found by an index of their constants; a search goes depth first over their look-backs and writes down what
fires. Defined events that some rule looks at wait in a queue and are taken after the event that made them. When room
runs out the kernel returns, and goes on where it stood when it is called again.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.borrow import borrowed
from weft.kernels.jit import inlined, kernel, spliced
from weft.kernels.rule_scan import Seen, evaluate, first_from, list_of, passes, place_in_list, scan, use_slot
from weft.kernels.tagged import (
    BEYOND,
    FLOAT,
    INTEGER,
    MISSING,
    TEXT,
    VALUE,
    bits_of,
    float_of,
    mixed_in,
    normal,
)


@inlined
def place_of(places: t.Int64s, access: int, kind: Any, word: Any) -> Any:
    """The place of the rules that an access finds by a value, or the empty one where it would be."""
    kind, word = normal(kind, word)
    mask = len(places) // t.PLACE - 1
    slot = np.int64(mixed_in(np.uint64(access), kind, word) >> np.uint64(3)) & mask
    while places[slot * t.PLACE + t.P_ACCESS] != 0 and not (
        places[slot * t.PLACE + t.P_ACCESS] == access + 1
        and places[slot * t.PLACE + t.P_KIND] == kind
        and places[slot * t.PLACE + t.P_WORD] == word
    ):
        slot = (slot + 1) & mask
    return slot * t.PLACE


@kernel
def enter_places(
    access: t.Int64s, kinds: t.Int64s, words: t.Int64s, begins: t.Int64s, ends: t.Int64s, places: t.Int64s
) -> None:
    """Enter groups of rules, each under an access and a value; a group's members are from its begin to its end."""
    for k in range(len(access)):
        slot = place_of(places, access[k], kinds[k], words[k])
        places[slot + t.P_ACCESS] = access[k] + 1
        places[slot + t.P_KIND], places[slot + t.P_WORD] = normal(kinds[k], words[k])
        places[slot + t.P_BEGIN], places[slot + t.P_END] = begins[k], ends[k]


@inlined
def _starting(index: t.Index, begin: int, end: int, event: int, values: t.Int64s, width: int, picked: t.Int32s) -> int:
    """Write down the rules that may start at an event, and say how many they are."""
    count = 0
    for at in range(begin * t.ACCESS, end * t.ACCESS, t.ACCESS):
        how = index.access[at + t.A_KIND]
        if how == t.ALWAYS:
            for k in range(index.access[at + t.A_BEGIN], index.access[at + t.A_END]):
                picked[count] = index.members[k]
                count += 1
            continue
        place = event * width + VALUE * index.access[at + t.A_COLUMN]
        kind, word = values[place], values[place + 1]
        if how == t.BY_KEY:
            if kind == MISSING:
                continue
            slot = place_of(index.places, at, kind, word)
            if index.places[slot + t.P_ACCESS] != 0:
                for k in range(index.places[slot + t.P_BEGIN], index.places[slot + t.P_END]):
                    picked[count] = index.members[k]
                    count += 1
            continue
        if kind != INTEGER and kind != FLOAT:
            continue
        cuts = low = index.access[at + t.A_CUTS]
        if kind == INTEGER:
            high = low + index.access[at + t.A_WHOLES]
            while low < high:
                middle = (low + high) >> 1
                if index.wholes[middle] <= word:
                    low = middle + 1
                else:
                    high = middle
        else:
            number = float_of(word)
            high = low + index.access[at + t.A_FLOATS]
            while low < high:
                middle = (low + high) >> 1
                if index.floats[middle] <= number:
                    low = middle + 1
                else:
                    high = middle
        node = index.access[at + t.A_LEAVES] + low - cuts
        nodes = index.access[at + t.A_NODES]
        while node > 0:
            for k in range(index.nodes[nodes + node], index.nodes[nodes + node + 1]):
                picked[count] = index.members[k]
                count += 1
            node >>= 1
    return count


@inlined
def _use(used: t.Int64s, step: int, number: int) -> Any:
    """The place where it is noted that a step's event was consumed, or where that would be."""
    mask = len(used) // t.USED - 1
    slot = use_slot(step, number, mask)
    while used[slot * t.USED] != 0 and (used[slot * t.USED] != step + 1 or used[slot * t.USED + 1] != number):
        slot = (slot + 1) & mask
    return slot * t.USED


@spliced
def _as_kind(wanted: Any, kind: Any, word: Any) -> Any:
    """A value as a field of a kind holds it."""
    if wanted == FLOAT and kind == INTEGER:
        kind, word = np.int64(FLOAT), bits_of(np.float64(word))
    elif wanted == INTEGER and kind == FLOAT:
        number = float_of(word)
        if np.isinf(number):
            kind = np.int64(MISSING)
        elif abs(number) < BEYOND:
            kind, word = np.int64(INTEGER), np.int64(number)
    elif wanted != kind:
        kind = np.int64(MISSING)
    return kind, word


@inlined
def _write_positions(bound: int, bit: Any, store: t.Store, output: t.Output, begin: Any, end: Any) -> Any:
    """Add the positions of a bound event to those of a firing, in order, each with the bits of its variables."""
    origin = store.origins[bound]
    first, count = np.int64(0), np.int64(1)
    if origin < 0:
        first = -1 - origin + 1
        count = store.positions[first - 1]
    for k in range(count):
        position = store.positions[first + k] if origin < 0 else origin
        at = end
        while at > begin and output.positions[at - 1] > position:
            at -= 1
        if at > begin and output.positions[at - 1] == position:
            output.labels[at - 1] |= bit
            continue
        for later in range(end, at, -1):
            output.positions[later] = output.positions[later - 1]
            output.labels[later] = output.labels[later - 1]
        output.positions[at], output.labels[at] = position, bit
        end += 1
    return end


@kernel
def fire(
    batch: t.Batch,
    lent_rules: t.Rules,
    lent_index: t.Index,
    lent_store: t.Store,
    width: int,
    lent_work: t.Work,
    lent_output: t.Output,
    lent_control: t.Int64s,
    counting: bool,
) -> int:
    """Take events until all are done or room runs out; what for is returned."""
    rules = t.Rules(
        borrowed(lent_rules.rows),
        borrowed(lent_rules.steps),
        borrowed(lent_rules.extents),
        borrowed(lent_rules.tests),
        borrowed(lent_rules.keys),
        borrowed(lent_rules.code),
        borrowed(lent_rules.fields),
        borrowed(lent_rules.feeds),
    )
    index = t.Index(
        borrowed(lent_index.access),
        borrowed(lent_index.wholes),
        borrowed(lent_index.floats),
        borrowed(lent_index.nodes),
        borrowed(lent_index.members),
        borrowed(lent_index.places),
    )
    store = t.Store(
        borrowed(lent_store.types),
        borrowed(lent_store.columns),
        borrowed(lent_store.chains),
        borrowed(lent_store.chain_columns),
        borrowed(lent_store.times),
        borrowed(lent_store.starts),
        borrowed(lent_store.origins),
        borrowed(lent_store.values),
        borrowed(lent_store.heads),
        borrowed(lent_store.entries),
        borrowed(lent_store.positions),
        borrowed(lent_store.used),
        borrowed(lent_store.texts),
        borrowed(lent_store.text_offsets),
    )
    work = t.Work(
        borrowed(lent_work.frames),
        borrowed(lent_work.picked),
        borrowed(lent_work.queue),
        borrowed(lent_work.stack),
        borrowed(lent_work.results),
        borrowed(lent_work.partials),
        borrowed(lent_work.counts),
    )
    output = t.Output(
        borrowed(lent_output.rows),
        borrowed(lent_output.starts),
        borrowed(lent_output.ends),
        borrowed(lent_output.offsets),
        borrowed(lent_output.positions),
        borrowed(lent_output.labels),
        borrowed(lent_output.fields_at),
        borrowed(lent_output.fields),
    )
    control = borrowed(lent_control)
    rows, steps, tests, keys = rules.rows, rules.steps, rules.tests, rules.keys
    types, times, values, heads, entries = store.types, store.times, store.values, store.heads, store.entries
    frames = work.frames
    seen = Seen(frames, values, width, rules.code, work.stack, work.results, store.texts, store.text_offsets)
    queued = t.QUEUED + width
    mode, depth = control[t.MODE], control[t.DEPTH]
    picked_at, picked = control[t.PICKED_AT], control[t.PICKED]
    status = np.int64(-1)
    while status < 0:
        if mode == t.FETCH:
            # ------------------------------------------------ the next event: one that waits, or one of the batch
            waits = control[t.QUEUE_AT] < control[t.QUEUE_END]
            place = control[t.QUEUE_AT] * queued
            if waits:
                type_ = work.queue[place + t.Q_TYPE]
            elif control[t.EVENT] == len(batch.types):
                control[t.QUEUE_AT] = control[t.QUEUE_END] = 0
                status = np.int64(t.DONE)
                break
            else:
                control[t.QUEUE_AT] = control[t.QUEUE_END] = 0
                type_ = np.int64(batch.types[control[t.EVENT]])
            of = type_ * t.KIND_OF_EVENT
            held = types[of + t.HELD]
            if held == types[of + t.ROOM]:
                control[t.WANTED] = type_
                status = np.int64(t.STORE_FULL)
                break
            now = types[of + t.BASE] + held
            own = now * width
            if waits:
                times[now] = control[t.TIME]
                store.starts[now] = work.queue[place + t.Q_START]
                store.origins[now] = -1 - work.queue[place + t.Q_POSITIONS]
                for k in range(VALUE * (types[of + t.COLUMNS_END] - types[of + t.COLUMNS_AT])):
                    values[own + k] = work.queue[place + t.QUEUED + k]
            else:
                event = control[t.EVENT]
                times[now] = batch.times[event]
                store.starts[now] = batch.starts[event]
                store.origins[now] = batch.positions[event]
                for k in range(types[of + t.COLUMNS_AT], types[of + t.COLUMNS_END]):
                    source = event * batch.width + VALUE * store.columns[k]
                    values[own], values[own + 1] = batch.values[source], batch.values[source + 1]
                    own += VALUE
            number = types[of + t.GONE] + held
            placed = True
            # When room ran out for one of its lists, the event is in those before it.
            for chain in range(max(types[of + t.CHAINS_AT], control[t.LISTED_TO]), types[of + t.CHAINS_END]):
                placed = place_in_list(chain, now, number, type_, store, width, control)
                if not placed:
                    control[t.LISTED_TO] = chain
                    break
            if not placed:
                status = np.int64(t.LISTS_FULL)
                break
            control[t.LISTED_TO] = 0
            types[of + t.HELD] += 1
            control[t.TIME] = times[now]
            control[t.SERIAL] += 1
            if waits:
                control[t.QUEUE_AT] += 1
            else:
                control[t.EVENT] += 1
            frames[t.BOUND] = now
            control[t.NOW] = number
            picked_at = np.int64(0)
            picked = np.int64(
                _starting(index, types[of + t.ACCESS_AT], types[of + t.ACCESS_END], now, values, width, work.picked)
            )
            if types[of + t.ORDERED] != 0 and picked > 1:
                work.picked[:picked] = np.sort(work.picked[:picked])
            mode = np.int64(t.START if picked > 0 else t.FETCH)
        elif mode == t.START:
            # ------------------------------------------------ the next rule that may start here
            if picked_at == picked:
                mode = np.int64(t.FETCH)
                continue
            row = np.int64(work.picked[picked_at]) * t.ROW
            step = rows[row + t.STEPS_AT] * t.STEP
            fits = passes(
                tests, steps[step + t.TESTS_AT], steps[step + t.TESTS_END], frames[t.BOUND], seen, frames, values
            )
            if fits:
                for k in range(steps[step + t.ABSENCES_AT], steps[step + t.ABSENCES_END]):
                    _, there = scan(k, rules.extents, tests, keys, types, times, heads, entries, work.partials, seen)
                    fits = fits and there == 0
            if not fits:
                picked_at += 1
            elif rows[row + t.STEPS] == 1:
                depth = np.int64(0)
                mode = np.int64(t.EMIT)
            else:
                depth = np.int64(1)
                mode = np.int64(t.OPEN)
        elif mode == t.OPEN:
            # ------------------------------------------------ where the candidates of a look-back are
            row = np.int64(work.picked[picked_at]) * t.ROW
            step = (rows[row + t.STEPS_AT] + depth) * t.STEP
            frame = depth * t.FRAME
            of = steps[step + t.TYPE] * t.KIND_OF_EVENT
            high = times[frames[steps[step + t.ANCHOR] * t.FRAME + t.BOUND]]
            low = high - steps[step + t.TICKS]
            offset = types[of + t.BASE] - types[of + t.GONE]
            chain = steps[step + t.LISTED]
            pick = steps[step + t.PICK]
            if chain >= 0:
                place = list_of(chain, keys, steps[step + t.KEYS_AT], steps[step + t.KEYS_END], heads, seen)
                begin = end = np.int64(0)
                if place >= 0:
                    begin = heads[place * t.HEAD + t.BEGIN]
                    end = begin + heads[place * t.HEAD + t.LENGTH]
                end = first_from(entries, t.ENTRY, begin, end, high)
                if pick != t.LAST:
                    begin = first_from(entries, t.ENTRY, begin, end, low)
            else:
                begin = types[of + t.BASE]
                end = first_from(times, 1, begin, begin + types[of + t.HELD], high)
                if pick != t.LAST:
                    begin = first_from(times, 1, begin, end, low)
            frames[frame + t.BY_LIST] = np.int64(chain >= 0)
            frames[frame + t.OFFSET] = offset
            frames[frame + t.LOW] = low
            frames[frame + t.FLOOR_AT] = steps[step + t.FLOOR] + offset
            frames[frame + t.LEFT] = steps[step + t.COUNT]
            if pick == t.LAST:
                frames[frame + t.AT], frames[frame + t.STOP] = end - 1, begin - 1
                frames[frame + t.FOUND] = end
                frames[frame + t.DIRECTION] = t.DOWN if steps[step + t.COUNT] == 1 else t.COUNTING
            else:
                frames[frame + t.AT], frames[frame + t.STOP] = begin, end
                frames[frame + t.DIRECTION] = t.UP
            mode = np.int64(t.ADVANCE)
        elif mode == t.ADVANCE:
            # ------------------------------------------------ the next candidate of a look-back
            if depth == 0:
                picked_at += 1
                mode = np.int64(t.START)
                continue
            row = np.int64(work.picked[picked_at]) * t.ROW
            step = (rows[row + t.STEPS_AT] + depth) * t.STEP
            frame = depth * t.FRAME
            direction = frames[frame + t.DIRECTION]
            at, stop, left = frames[frame + t.AT], frames[frame + t.STOP], frames[frame + t.LEFT]
            by_list, offset = frames[frame + t.BY_LIST] != 0, frames[frame + t.OFFSET]
            low, floor = frames[frame + t.LOW], frames[frame + t.FLOOR_AT]
            tests_at, tests_end = steps[step + t.TESTS_AT], steps[step + t.TESTS_END]
            absences_at, absences_end = steps[step + t.ABSENCES_AT], steps[step + t.ABSENCES_END]
            consumed = steps[step + t.CONSUMED] != 0
            forward = np.int64(1 if direction == t.UP else -1)
            found = False
            while left > 0 and at != stop:
                candidate = at
                time = low
                if by_list:
                    candidate = entries[at * t.ENTRY + 1] + offset
                    time = entries[at * t.ENTRY]
                elif direction != t.UP:
                    time = times[at]
                if time < low:
                    stop = at
                    break
                at += forward
                if candidate < floor or not passes(tests, tests_at, tests_end, candidate, seen, frames, values):
                    continue
                if consumed:
                    slot = _use(store.used, step // t.STEP, candidate - offset)
                    if store.used[slot] != 0 and store.used[slot + 2] != control[t.SERIAL]:
                        continue
                frames[frame + t.BOUND] = candidate
                if absences_at < absences_end:
                    fits = True
                    for k in range(absences_at, absences_end):
                        _, there = scan(
                            k, rules.extents, tests, keys, types, times, heads, entries, work.partials, seen
                        )
                        fits = fits and there == 0
                    if not fits:
                        continue
                left -= 1
                if direction != t.COUNTING:
                    found = True
                    break
                frames[frame + t.FOUND] = at + 1
            frames[frame + t.AT], frames[frame + t.LEFT] = at, left
            if found:
                if depth + 1 == rows[row + t.STEPS]:
                    mode = np.int64(t.EMIT)
                else:
                    depth += 1
                    mode = np.int64(t.OPEN)
            elif direction == t.COUNTING:
                # The latest ones are known: now they are taken from the earliest of them on.
                frames[frame + t.AT] = frames[frame + t.FOUND]
                frames[frame + t.LEFT] = steps[step + t.COUNT] - left
                frames[frame + t.STOP] = np.int64(-1)
                frames[frame + t.DIRECTION] = t.UP
            else:
                depth -= 1
        else:
            # ------------------------------------------------ all are bound: fire
            row = np.int64(work.picked[picked_at]) * t.ROW
            first_step, count = rows[row + t.STEPS_AT], rows[row + t.STEPS]
            tested, shown = rows[row + t.TESTED_AT], rows[row + t.SHOWN_AT]
            mode = np.int64(t.ADVANCE)
            for k in range(tested, shown):
                kind, word = scan(k, rules.extents, tests, keys, types, times, heads, entries, work.partials, seen)
                work.results[VALUE * (k - tested)], work.results[VALUE * (k - tested) + 1] = kind, word
            if rows[row + t.CONDITIONS_AT] < rows[row + t.CONDITIONS_END]:
                _, truth = evaluate(seen, rows[row + t.CONDITIONS_AT], rows[row + t.CONDITIONS_END], np.int64(0))
                if truth == 0:
                    continue
            feeds = rows[row + t.FEEDS]
            if counting and feeds < 0 and rows[row + t.CONSUMES] == 0:
                work.counts[row // t.ROW] += 1
                continue
            # Room for all that will be written.
            size = np.int64(0)
            for k in range(count):
                origin = store.origins[frames[k * t.FRAME + t.BOUND]]
                size += 1 if origin >= 0 else store.positions[-1 - origin]
            fields = rows[row + t.FIELDS_END] - rows[row + t.FIELDS_AT]
            match, begin, shown_at = control[t.OUT], control[t.OUT_POSITIONS], control[t.OUT_FIELDS]
            if (
                match + 1 >= len(output.offsets)
                or begin + size > len(output.positions)
                or (shown_at + fields) * VALUE > len(output.fields)
            ):
                control[t.WANTED] = size
                status = np.int64(t.OUTPUT_FULL)
            elif 2 * (control[t.USES] + count) * t.USED > len(store.used):
                status = np.int64(t.USES_FULL)
            elif feeds >= 0 and (control[t.QUEUE_END] + 1) * queued > len(work.queue):
                status = np.int64(t.QUEUE_FULL)
            elif feeds >= 0 and control[t.POSITIONS] + size + 1 > len(store.positions):
                control[t.WANTED] = size
                status = np.int64(t.POSITIONS_FULL)
            if status >= 0:
                mode = np.int64(t.EMIT)
                break
            if rows[row + t.CONSUMES] != 0:
                for k in range(1, count):
                    step = first_step + k
                    if steps[step * t.STEP + t.CONSUMED] != 0:
                        of = steps[step * t.STEP + t.TYPE] * t.KIND_OF_EVENT
                        number = frames[k * t.FRAME + t.BOUND] - types[of + t.BASE] + types[of + t.GONE]
                        slot = _use(store.used, step, number)
                        if store.used[slot] == 0:
                            control[t.USES] += 1
                            store.used[slot], store.used[slot + 1] = step + 1, number
                            store.used[slot + 2] = control[t.SERIAL]
            work.counts[row // t.ROW] += 1
            if counting and feeds < 0:
                continue
            for k in range(shown, rows[row + t.SHOWN_END]):
                kind, word = scan(k, rules.extents, tests, keys, types, times, heads, entries, work.partials, seen)
                work.results[VALUE * (k - tested)], work.results[VALUE * (k - tested) + 1] = kind, word
            for k in range(fields):
                at = (rows[row + t.FIELDS_AT] + k) * t.FIELD
                source = rules.fields[at + t.F_SOURCE]
                if source >= 0:
                    place = frames[source * t.FRAME + t.BOUND] * width + VALUE * rules.fields[at + t.F_COLUMN]
                    kind, word = values[place], values[place + 1]
                elif rules.fields[at + t.F_CODE_AT] < rules.fields[at + t.F_CODE_END]:
                    kind, word = evaluate(
                        seen, rules.fields[at + t.F_CODE_AT], rules.fields[at + t.F_CODE_END], np.int64(0)
                    )
                else:
                    kind, word = np.int64(MISSING), np.int64(0)
                kind, word = _as_kind(rules.fields[at + t.F_KIND], kind, word)
                to = (shown_at + k) * VALUE
                output.fields[to], output.fields[to + 1] = kind, word
            start = store.starts[frames[t.BOUND]]
            end = begin
            for k in range(count - 1, -1, -1):
                bound = frames[k * t.FRAME + t.BOUND]
                start = min(start, store.starts[bound])
                origin = store.origins[bound]
                if origin >= 0 and (end == begin or output.positions[end - 1] < origin):
                    output.positions[end], output.labels[end] = origin, np.int64(1) << k
                    end += 1
                else:
                    end = _write_positions(bound, np.int64(1) << k, store, output, begin, end)
            if feeds >= 0:
                place = control[t.QUEUE_END] * queued
                to = control[t.POSITIONS]
                work.queue[place + t.Q_TYPE], work.queue[place + t.Q_START] = feeds, start
                work.queue[place + t.Q_POSITIONS] = to
                store.positions[to] = end - begin
                for k in range(end - begin):
                    store.positions[to + 1 + k] = output.positions[begin + k]
                control[t.POSITIONS] = to + 1 + end - begin
                of = feeds * t.KIND_OF_EVENT
                for k in range(types[of + t.COLUMNS_END] - types[of + t.COLUMNS_AT]):
                    source = rules.feeds[rows[row + t.FEED_AT] + 2 * k]
                    kind, word = np.int64(MISSING), rules.feeds[rows[row + t.FEED_AT] + 2 * k + 1]
                    if source >= 0:
                        at = (shown_at + source) * VALUE
                        kind, word = output.fields[at], output.fields[at + 1]
                    elif source == t.FROM_TIME:
                        kind, word = np.int64(INTEGER), control[t.TIME]
                    elif source == t.FROM_NAME:
                        kind = np.int64(TEXT)
                    at = place + t.QUEUED + VALUE * k
                    work.queue[at], work.queue[at + 1] = kind, word
                control[t.QUEUE_END] += 1
            if not counting:
                base = rows[row + t.LABELS]
                for k in range(begin, end):
                    output.labels[k] += base
                output.rows[match] = row // t.ROW
                output.starts[match], output.ends[match] = start, control[t.TIME]
                output.fields_at[match] = shown_at
                output.offsets[match + 1] = end
                control[t.OUT], control[t.OUT_POSITIONS], control[t.OUT_FIELDS] = match + 1, end, shown_at + fields
    control[t.MODE], control[t.DEPTH] = mode, depth
    control[t.PICKED_AT], control[t.PICKED] = picked_at, picked
    return int(status)
