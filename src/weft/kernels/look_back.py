"""Rules at work: event by event, each rule that starts there looks back for combinations of earlier events.

All rules are rows of tables (`rule_tables`), all events are in one store, once for all rules. The rules that start at
an event are found by an index of their constants; a search goes depth first over their look-backs and writes down what
fires. Defined events that some rule looks at wait in a queue and are taken after the event that made them. When room
runs out the kernel returns, and goes on where it stood when it is called again.
"""

from __future__ import annotations

import numpy as np

from weft.kernels import rule_tables as t
from weft.kernels.borrow import borrowed
from weft.kernels.jit import kernel
from weft.kernels.rule_borrow import borrow_index, borrow_lanes, borrow_output, borrow_rules, borrow_store, borrow_work
from weft.kernels.rule_firing import (
    as_kind,
    consume,
    field_value,
    fix,
    keep_defined,
    settle_pending,
    size_of,
    write_positions,
)
from weft.kernels.rule_index import sort_rules, starting
from weft.kernels.rule_lists import list_event
from weft.kernels.rule_scan import Seen, all_pass, evaluate, first_from, list_of, passes, scan
from weft.kernels.rule_series import enter_event, summarized
from weft.kernels.tagged import BOOLEAN, VALUE


@kernel
def fire(
    batch: t.Batch,
    lent_rules: t.Rules,
    lent_index: t.Index,
    lent_store: t.Store,
    lent_lanes: t.Lanes,
    width: int,
    mark_words: int,
    lent_work: t.Work,
    lent_output: t.Output,
    lent_control: t.Int64s,
    counting: bool,
) -> int:
    """Take events until all are done or room runs out; what for is returned. An event has `mark_words` of marks."""
    rules, index, store = borrow_rules(lent_rules), borrow_index(lent_index), borrow_store(lent_store)
    work, output = borrow_work(lent_work), borrow_output(lent_output)
    control, lanes = borrowed(lent_control), borrow_lanes(lent_lanes)
    rows, steps, tests, keys, extents = rules.rows, rules.steps, rules.tests, rules.keys, rules.extents
    types, times, values, heads, entries = store.types, store.times, store.values, store.heads, store.entries
    frames, fixed, marks, memos = work.frames, work.fixed, store.marks, work.memos
    seen = Seen(frames, values, width, rules.code, work.stack, work.results, store.texts, store.text_offsets)
    room = len(output.rows)
    queued = t.QUEUED + width
    mode, depth = control[t.MODE], control[t.DEPTH]
    picked_at, picked = control[t.PICKED_AT], control[t.PICKED]
    known_source = known_begin = known_end = np.int64(-1)  # where a source's events are, at this terminator
    # What is scanned, where results go, how it goes on; whether there was what must not be; who is free of that.
    scan_at = scan_end = scan_base = after = there = np.int64(0)
    cleared = np.int64(-1)
    status = np.int64(-1)
    while status < 0:
        if mode == t.FETCH:
            # ------------------------------------------------ the next event: one that waits, or one of the batch
            waits = control[t.QUEUE_AT] < control[t.QUEUE_END]
            place = control[t.QUEUE_AT] * queued
            if waits:
                type_ = work.queue[place + t.Q_TYPE]
            else:
                control[t.QUEUE_AT] = control[t.QUEUE_END] = 0
                if control[t.EVENT] == len(batch.types):
                    status = np.int64(t.DONE)
                    break
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
            for k in range(now * mark_words, (now + 1) * mark_words):
                marks[k] = 0
            if types[of + t.CHAINS_AT] < types[of + t.CHAINS_END] and not list_event(
                type_, now, types[of + t.GONE] + held, store, width, control
            ):
                status = np.int64(t.LISTS_FULL)
                break
            if types[of + t.SERIES_AT] < types[of + t.SERIES_END] and not enter_event(
                type_, now, types, times[now], tests, lanes, seen
            ):
                if types[of + t.CHAINS_AT] < types[of + t.CHAINS_END]:
                    control[t.LISTED_TO] = types[of + t.CHAINS_END]
                status = np.int64(t.SERIES_FULL)
                break
            types[of + t.HELD] += 1
            control[t.SERIAL] += 1
            control[t.TIME] = times[now]
            if waits:
                control[t.QUEUE_AT] += 1
            else:
                control[t.EVENT] += 1
            frames[t.BOUND] = now
            known_source = np.int64(-1)
            picked_at = np.int64(0)
            picked = starting(index, types[of + t.ACCESS_AT], types[of + t.ACCESS_END], now, values, width, work.picked)
            if types[of + t.ORDERED] != 0:
                sort_rules(work.picked, picked)
            mode = np.int64(t.START)
        elif mode == t.START:
            # ------------------------------------------------ the next rule that may start here
            if picked_at == picked:
                mode = np.int64(t.FETCH)
                continue
            row = np.int64(rules.row_of[work.picked[picked_at]]) * t.ROW
            step = rows[row + t.STEPS_AT] * t.STEP
            tests_at, tests_end = steps[step + t.TESTS_AT], steps[step + t.TESTS_END]
            if tests_at < tests_end and not all_pass(tests, tests_at, tests_end, frames[t.BOUND], seen):
                picked_at += 1
                continue
            there = np.int64(0)
            scan_at, scan_end = steps[step + t.ABSENCES_AT], steps[step + t.ABSENCES_END]
            scan_base, after = scan_at, np.int64(t.STARTED)
            mode = np.int64(t.SCAN if scan_at < scan_end else t.STARTED)
        elif mode == t.STARTED:
            row = np.int64(rules.row_of[work.picked[picked_at]]) * t.ROW
            if there != 0:
                picked_at += 1
                mode = np.int64(t.START)
            else:
                depth = np.int64(rows[row + t.STEPS] > 1)
                mode = np.int64(t.OPEN if depth > 0 else t.EMIT)
        elif mode == t.OPEN:
            # ------------------------------------------------ where the candidates of a look-back are
            row = np.int64(rules.row_of[work.picked[picked_at]]) * t.ROW
            step = (rows[row + t.STEPS_AT] + depth) * t.STEP
            frame = depth * t.FRAME
            of = steps[step + t.TYPE] * t.KIND_OF_EVENT
            high = times[frames[steps[step + t.ANCHOR] * t.FRAME + t.BOUND]]
            low = high - steps[step + t.TICKS]
            offset = types[of + t.BASE] - types[of + t.GONE]
            chain = steps[step + t.LISTED]
            pick = steps[step + t.PICK]
            if known_source >= 0 and known_source == steps[step + t.SOURCE]:
                begin, end = known_begin, known_end
            elif chain >= 0:
                place = list_of(chain, keys, steps[step + t.KEYS_AT], steps[step + t.KEYS_END], heads, seen)
                begin = end = np.int64(0)
                if place >= 0:
                    begin = heads[place * t.HEAD + t.BEGIN]
                    end = begin + heads[place * t.HEAD + t.LENGTH]
                end = first_from(entries, t.ENTRY, begin, end, high)
            else:
                begin = types[of + t.BASE]
                end = first_from(times, 1, begin, begin + types[of + t.HELD], high)
            known_source, known_begin, known_end = steps[step + t.SOURCE], begin, end
            if pick != t.LAST:
                if chain >= 0:
                    begin = first_from(entries, t.ENTRY, begin, end, low)
                else:
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
            row = np.int64(rules.row_of[work.picked[picked_at]]) * t.ROW
            if depth == 0:
                if control[t.PENDING] > 0:
                    settle_pending(work.pending, marks, mark_words, control)
                picked_at += 1
                mode = np.int64(t.START)
                continue
            step = (rows[row + t.STEPS_AT] + depth) * t.STEP
            frame = depth * t.FRAME
            direction = frames[frame + t.DIRECTION]
            at, stop, left = frames[frame + t.AT], frames[frame + t.STOP], frames[frame + t.LEFT]
            by_list, offset = frames[frame + t.BY_LIST] != 0, frames[frame + t.OFFSET]
            low, floor = frames[frame + t.LOW], frames[frame + t.FLOOR_AT]
            tests_at, tests_end = steps[step + t.TESTS_AT], steps[step + t.TESTS_END]
            scan_at, scan_end = steps[step + t.ABSENCES_AT], steps[step + t.ABSENCES_END]
            there = np.int64(0)
            mark = steps[step + t.CONSUMED]
            forward = np.int64(1 if direction == t.UP else -1)
            is_last = depth + 1 == rows[row + t.STEPS]
            # A plain rule fires here, candidate by candidate; what the others give to it is fixed once.
            plain = is_last and rows[row + t.IS_PLAIN] != 0 and direction != t.COUNTING
            fields_at = rows[row + t.FIELDS_AT]
            fields = rows[row + t.FIELDS_END] - fields_at
            others = np.int64(-1)
            start = np.int64(0)
            match, end = control[t.OUT], control[t.OUT_POSITIONS]
            found = False
            while left > 0 and at != stop:
                candidate = at
                if by_list:
                    candidate = entries[at * t.ENTRY + 1] + offset
                if direction != t.UP and (entries[at * t.ENTRY] if by_list else times[at]) < low:
                    stop = at
                    break
                if candidate != cleared:
                    if mark >= 0 and (marks[candidate * mark_words + (mark >> 6)] >> (mark & 63)) & 1 != 0:
                        at += forward
                        continue
                    fits = passes(tests, tests_at, tests_end, candidate, seen, frames, values)
                    if candidate < floor or not fits:
                        at += forward
                        continue
                    frames[frame + t.BOUND] = candidate
                    if scan_at < scan_end:
                        scan_base, after, mode = scan_at, np.int64(t.JUDGED), np.int64(t.SCAN)
                        break
                cleared = np.int64(-1)
                at += forward
                left -= 1
                if direction == t.COUNTING:
                    frames[frame + t.FOUND] = at + 1
                    continue
                if plain and counting:
                    work.counts[work.picked[picked_at]] += 1
                    continue
                position = store.origins[candidate]
                if not plain or position < 0:
                    found = True
                    break
                if others < 0:
                    others, start = fix(
                        rows, rules.fields, row, depth, store.starts, store.origins, values, width, frames, fixed
                    )
                    if others < 0:  # a defined event is bound: that takes more
                        found = True
                        break
                if match == room or end + others >= len(output.positions):
                    left += 1
                    at -= forward
                    status = np.int64(t.OUTPUT_FULL)
                    break
                output.rows[match] = work.picked[picked_at]
                output.starts[match] = min(start, store.starts[candidate])
                output.ends[match] = control[t.TIME]
                bit = np.int64(1) << depth
                other = np.int64(0)
                while other < others and fixed[2 * other] < position:
                    output.positions[end], output.labels[end] = fixed[2 * other], fixed[2 * other + 1]
                    end += 1
                    other += 1
                output.positions[end], output.labels[end] = position, rows[row + t.LABELS] + bit
                if other < others and fixed[2 * other] == position:
                    output.labels[end] = fixed[2 * other + 1] + bit
                    other += 1
                end += 1
                while other < others:
                    output.positions[end], output.labels[end] = fixed[2 * other], fixed[2 * other + 1]
                    end += 1
                    other += 1
                for k in range(fields):
                    field = (fields_at + k) * t.FIELD
                    if rules.fields[field + t.F_SOURCE] == depth:
                        place = candidate * width + VALUE * rules.fields[field + t.F_COLUMN]
                        kind, word = as_kind(rules.fields[field + t.F_KIND], values[place], values[place + 1])
                    else:
                        kind, word = fixed[2 * (depth + k)], fixed[2 * (depth + k) + 1]
                    output.kinds[k * room + match], output.words[k * room + match] = kind, word
                match += 1
                output.offsets[match] = end
            control[t.OUT], control[t.OUT_POSITIONS] = match, end
            frames[frame + t.AT], frames[frame + t.LEFT] = at, left
            if status >= 0:
                break
            if mode == t.SCAN:
                continue
            if found:
                depth += np.int64(not is_last)
                mode = np.int64(t.EMIT if is_last else t.OPEN)
            elif direction == t.COUNTING:
                # The latest ones are known: now they are taken from the earliest of them on.
                frames[frame + t.AT], frames[frame + t.STOP] = frames[frame + t.FOUND], np.int64(-1)
                frames[frame + t.LEFT] = steps[step + t.COUNT] - left
                frames[frame + t.DIRECTION] = t.UP
            else:
                depth -= 1
        elif mode == t.JUDGED:
            # ------------------------------------------------ whether absences hold for a candidate is known
            frame = depth * t.FRAME
            if there == 0:
                cleared = frames[frame + t.BOUND]
            else:
                frames[frame + t.AT] += 1 if frames[frame + t.DIRECTION] == t.UP else -1
            mode = np.int64(t.ADVANCE)
        elif mode == t.EMIT:
            # ------------------------------------------------ all are bound
            row = np.int64(rules.row_of[work.picked[picked_at]]) * t.ROW
            scan_at, scan_end = rows[row + t.TESTED_AT], rows[row + t.SHOWN_AT]
            scan_base, after = scan_at, np.int64(t.CHECK)
            mode = np.int64(t.SCAN if scan_at < scan_end else t.CHECK)
        elif mode == t.CHECK:
            # ------------------------------------------------ what conditions need is known: fire, if there is room
            row = np.int64(rules.row_of[work.picked[picked_at]]) * t.ROW
            mode = np.int64(t.ADVANCE)
            if rows[row + t.CONDITIONS_AT] < rows[row + t.CONDITIONS_END]:
                _, truth = evaluate(seen, rows[row + t.CONDITIONS_AT], rows[row + t.CONDITIONS_END], np.int64(0))
                if truth == 0:
                    continue
            feeds = rows[row + t.FEEDS]
            count = rows[row + t.STEPS]
            size = size_of(count, frames, store.origins, store.positions)
            if control[t.OUT] == room or control[t.OUT_POSITIONS] + size > len(output.positions):
                control[t.WANTED] = size
                status = np.int64(t.OUTPUT_FULL)
            elif rows[row + t.CONSUMES] != 0 and 2 * (control[t.PENDING] + count) > len(work.pending):
                status = np.int64(t.PENDING_FULL)
            elif feeds >= 0 and (control[t.QUEUE_END] + 1) * queued > len(work.queue):
                status = np.int64(t.QUEUE_FULL)
            elif feeds >= 0 and control[t.POSITIONS] + size + 1 > len(store.positions):
                control[t.WANTED] = size
                status = np.int64(t.POSITIONS_FULL)
            if status >= 0:
                mode = np.int64(t.EMIT)
                break
            if rows[row + t.CONSUMES] != 0:
                consume(rows, steps, row, frames, work.pending, marks, mark_words, control)
            work.counts[work.picked[picked_at]] += 1
            if counting and feeds < 0:
                continue
            scan_base, scan_at, scan_end = rows[row + t.TESTED_AT], rows[row + t.SHOWN_AT], rows[row + t.SHOWN_END]
            after = np.int64(t.WRITE)
            mode = np.int64(t.SCAN if scan_at < scan_end else t.WRITE)
        elif mode == t.WRITE:
            # ------------------------------------------------ what fields need is known
            row = np.int64(rules.row_of[work.picked[picked_at]]) * t.ROW
            match, begin = control[t.OUT], control[t.OUT_POSITIONS]
            for k in range(rows[row + t.FIELDS_END] - rows[row + t.FIELDS_AT]):
                kind, word = field_value(rules.fields, (rows[row + t.FIELDS_AT] + k) * t.FIELD, seen)
                output.kinds[k * room + match], output.words[k * room + match] = kind, word
            start, end = write_positions(rows[row + t.STEPS], frames, store, output, begin)
            if rows[row + t.FEEDS] >= 0:
                keep_defined(rules, row, start, begin, end, match, width, store, work.queue, output, control)
            if not counting:
                for k in range(begin, end):
                    output.labels[k] += rows[row + t.LABELS]
                output.rows[match] = work.picked[picked_at]
                output.starts[match], output.ends[match] = start, control[t.TIME]
                output.offsets[match + 1] = end
                control[t.OUT], control[t.OUT_POSITIONS] = match + 1, end
            mode = np.int64(t.ADVANCE)
        else:
            # ------------------------------------------------ what there is in some stretches of time
            there = np.int64(0)
            while scan_at < scan_end and there == 0:
                memo = extents[scan_at * t.EXTENT + t.E_MEMO] * t.MEMO
                if memo >= 0 and memos[memo] == control[t.SERIAL]:
                    kind, word = memos[memo + 1], memos[memo + 2]
                else:
                    if extents[scan_at * t.EXTENT + t.E_SERIES] >= 0:
                        kind, word = summarized(scan_at * t.EXTENT, extents, keys, times, lanes, seen)
                    else:
                        kind, word = scan(
                            scan_at, extents, tests, keys, types, times, heads, entries, work.partials, seen
                        )
                    if memo >= 0:
                        memos[memo], memos[memo + 1], memos[memo + 2] = control[t.SERIAL], kind, word
                there = np.int64(kind == BOOLEAN and word != 0)
                place = VALUE * (scan_at - scan_base)
                if after != t.JUDGED and after != t.STARTED:
                    work.results[place], work.results[place + 1] = kind, word
                scan_at += 1
            mode = after
    control[t.MODE], control[t.DEPTH] = mode, depth
    control[t.PICKED_AT], control[t.PICKED] = picked_at, picked
    return int(status)
