"""Enumeration with conditions over several events: a branch ends as soon as a condition on it fails.

As `enumerate_matches`, but each entry of the path also keeps what conditions read of its event, and for
each slot of a condition which entries fill it: `latest` after each entry, `earlier` from entry to entry.
The walk goes backwards, so along a slot's chain positions rise.
"""

from __future__ import annotations

import numpy as np

from weft.kernels.conditions import PAIR, RISING, WHOLE, Conditions, compare, test_combinations
from weft.kernels.enumerate import OPEN, POP
from weft.kernels.jit import inlined
from weft.kernels.tecs import (
    BARE,
    BOTTOM,
    COUNTED,
    CURRENT,
    DEEPER,
    DEPTH,
    DONE,
    EMITTED,
    FINAL,
    FINALS,
    FLUSH,
    LABEL_BITS,
    LABEL_MASK,
    OUT_MATCHES,
    OUT_POSITIONS,
    STACK,
    TAIL,
    UNION,
    VISITS,
    Batch,
    Int64s,
    Output,
    Path,
    State,
)


@inlined
def _admit(conditions: Conditions, path: Path, label: int, entry: int, slots: int, width: int) -> bool:
    """Enter an event into its slots; whether all conditions it decides hold."""
    latest, earlier, payload = path.latest, path.earlier, path.payload
    row = entry + 1
    for slot in range(slots):
        latest[row * slots + slot] = latest[entry * slots + slot]
    begin, end = conditions.label_slots_at[label], conditions.label_slots_at[label + 1]
    for k in range(begin, end):
        slot = conditions.label_slots[k]
        earlier[entry * slots + slot] = latest[row * slots + slot]
        latest[row * slots + slot] = entry
    for k in range(begin, end):
        slot = conditions.label_slots[k]
        for t in range(conditions.slot_tests_at[slot], conditions.slot_tests_at[slot + 1]):
            test = conditions.slot_tests[t]
            kind, operator = conditions.kinds[test], conditions.operators[test]
            if kind == PAIR:
                # The common case, spelt out: this event against all in the other slot.
                code = 3 * conditions.code_at[2 * test]
                one, mine, other, theirs = (
                    conditions.code[code + 1],
                    conditions.code[code + 2],
                    conditions.code[code + 4],
                    conditions.code[code + 5],
                )
                swapped = one != slot
                if swapped:
                    one, mine, other, theirs = other, theirs, one, mine
                value, rest = payload[entry * width + 2 * mine], payload[entry * width + 2 * mine + 1]
                met = latest[row * slots + other]
                while met >= 0:
                    their, their_rest = payload[met * width + 2 * theirs], payload[met * width + 2 * theirs + 1]
                    if swapped:
                        if not compare(operator, their, their_rest, value, rest):
                            return False
                    elif not compare(operator, value, rest, their, their_rest):
                        return False
                    met = earlier[met * slots + other]
            elif kind == RISING:
                column = conditions.code[3 * conditions.code_at[2 * test] + 2]
                value, rest = payload[entry * width + 2 * column], payload[entry * width + 2 * column + 1]
                if np.isnan(value):
                    return False
                met = earlier[entry * slots + slot]
                if met >= 0 and not compare(
                    operator, value, rest, payload[met * width + 2 * column], payload[met * width + 2 * column + 1]
                ):
                    return False
            elif not test_combinations(conditions, test, slot, entry, row, latest, earlier, slots, payload, width):
                return False
    for k in range(conditions.label_enters_at[label], conditions.label_enters_at[label + 1]):
        # The first event of a scope: what is earlier belongs to another instance.
        scope = conditions.label_enters[k]
        if conditions.kinds[scope] == WHOLE and not test_combinations(
            conditions, scope, -1, -1, row, latest, earlier, slots, payload, width
        ):
            return False
        for s in range(conditions.own_slots_at[scope], conditions.own_slots_at[scope + 1]):
            latest[row * slots + conditions.own_slots[s]] = -1
    return True


@inlined
def _complete(conditions: Conditions, path: Path, depth: int, slots: int, width: int) -> bool:
    """Whether the conditions on a whole match hold."""
    for condition in range(conditions.kinds.size):
        if (
            conditions.kinds[condition] == WHOLE
            and not conditions.scoped[condition]
            and not test_combinations(
                conditions, condition, -1, -1, depth, path.latest, path.earlier, slots, path.payload, width
            )
        ):
            return False
    return True


@inlined
def enumerate_filtered(
    state: State,
    batch: Batch,
    output: Output,
    control: Int64s,
    conditions: Conditions,
    path: Path,
    event: int,
    horizon: int,
    counting: bool,
) -> int:
    """Go through the final sets of an event from where it was left off; DONE, FLUSH or DEEPER."""
    nodes, run_starts, finals, stack = state.nodes, state.starts, state.finals, state.stack
    words, kept = path.words, path.payload
    slots = conditions.slot_tests_at.size - 1
    width = batch.payload.size // batch.letters.size
    mask = run_starts.size - 1
    tail = control[TAIL]
    here, now = batch.positions[event], batch.times[event]
    top, depth, current = control[STACK], control[DEPTH], control[CURRENT]
    matches, used, visits = control[OUT_MATCHES], control[OUT_POSITIONS], control[VISITS]
    final, emitted = control[FINAL], 0
    room = min(stack.size >> 1, words.size) - 2
    answer = DONE
    while True:
        if current == POP:
            if top > 0:
                top -= 1
                current, depth = stack[2 * top], stack[2 * top + 1]
            else:
                current = OPEN
        if current == OPEN:
            if final == control[FINALS]:
                break
            label, current = finals[2 * final], finals[2 * final + 1]
            final += 1
            depth = 0
            for slot in range(slots):
                path.latest[slot] = -1
            if label >= 0:
                words[0] = here << LABEL_BITS | label
                for column in range(width):
                    kept[column] = batch.payload[event * width + column]
                depth = 1
                if not _admit(conditions, path, label, 0, slots, width):
                    current = POP
                    continue
        if top >= room or depth >= room:
            answer = DEEPER
            break
        entered, below = depth, top
        if current == BOTTOM:
            first, start = here, now
        else:
            visits += 1
            slot_ = current & mask
            word, next_, branch = nodes[slot_ << 2], nodes[(slot_ << 2) + 1], nodes[(slot_ << 2) + 2]
            if branch >= tail and nodes[((branch & mask) << 2) + 3] >= horizon:
                stack[2 * top], stack[2 * top + 1] = branch, depth
                top += 1
            label = word & LABEL_MASK
            if label == UNION:
                current = next_
                continue
            if label != BARE:
                words[depth] = word
                for column in range(width):
                    kept[depth * width + column] = state.payload[slot_ * width + column]
                if not _admit(conditions, path, label, depth, slots, width):
                    current = POP
                    continue
                depth += 1
                if next_ != BOTTOM:
                    current = next_
                    continue
            first, start = word >> LABEL_BITS, run_starts[slot_]
        if not _complete(conditions, path, depth, slots, width):
            current = POP
            continue
        if not counting:
            if matches >= output.events.size or used + depth > output.positions.size:
                depth, top = entered, below
                answer = FLUSH
                break
            output.events[matches] = event
            output.firsts[matches] = first
            output.starts[matches] = start
            for k in range(depth - 1, -1, -1):
                output.positions[used] = words[k] >> LABEL_BITS
                output.labels[used] = words[k] & LABEL_MASK
                used += 1
            matches += 1
            output.offsets[matches] = used
        emitted += 1
        current = POP
    control[STACK], control[DEPTH], control[CURRENT], control[FINAL] = top, depth, current, final
    control[OUT_MATCHES], control[OUT_POSITIONS] = matches, used
    control[EMITTED] += emitted
    control[COUNTED] += emitted
    control[VISITS] = visits
    return answer
