"""Enumeration with conditions over several events: a branch ends as soon as a condition on it fails.

Like `enumerate_matches`, but each entry of the path also stores the values that conditions read of its event, and for
each slot of a condition which entries fill it: `latest` after each entry, `earlier` from entry to entry. The walk goes
backwards, so along a slot's chain positions increase.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.kernels.automaton.conditions import (
    AGAINST_LAST,
    AGAINST_NEXT,
    OF_LAST,
    TEST,
    Conditions,
    test_combinations,
)
from weft.kernels.automaton.enumerate import OPEN, POP, PUT_OFF
from weft.kernels.automaton.ranks import BASE, Ranks, deal, weight
from weft.kernels.automaton.tecs import (
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
    PAUSE,
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
from weft.kernels.jit import device_no_refcount
from weft.kernels.machine.machine import Machine, holds
from weft.kernels.machine.tagged import MISSING, VALUE

PAUSE_AFTER_NODES = 1 << 20  # nodes that are visited before a pause: some hundredths of a second


@device_no_refcount
def _test_slowly(conditions: Conditions, path: Path, label: int, entry: int, slots: int) -> bool:
    """Test the general conditions that an event decides, and those on a scope that begins with it."""
    row = entry + 1
    for k in range(conditions.label_general_at[label], conditions.label_general_at[label + 1]):
        test, slot = conditions.label_general[2 * k], conditions.label_general[2 * k + 1]
        if not test_combinations(conditions, test, slot, entry, row, path.latest, path.earlier):
            return False
    for k in range(conditions.label_enters_at[label], conditions.label_enters_at[label + 1]):
        # What is earlier than the first event of a scope belongs to another instance.
        scope = conditions.label_enters[k]
        if conditions.whole[scope] and not test_combinations(conditions, scope, -1, -1, row, path.latest, path.earlier):
            return False
        for s in range(conditions.own_slots_at[scope], conditions.own_slots_at[scope + 1]):
            path.latest[row * slots + conditions.own_slots[s]] = -1
    return True


@device_no_refcount
def _complete(conditions: Conditions, path: Path, depth: int) -> bool:
    """Whether the conditions on a whole match hold."""
    for condition in conditions.last_tests:
        if not test_combinations(conditions, condition, -1, -1, depth, path.latest, path.earlier):
            return False
    return True


@device_no_refcount
def is_same_event(word: int, other: int) -> bool:
    """Whether two nodes mark the same event."""
    return bool(word >> LABEL_BITS == other >> LABEL_BITS and other & LABEL_MASK < BARE)


class Tested(NamedTuple):
    """Conditions over several events, and the machine that evaluates them."""

    conditions: Conditions
    machine: Machine


class Wanted(NamedTuple):
    """The mode of enumeration: only count matches, or only keep maximal ones.

    It pauses after `most` nodes.
    """

    counting: bool
    maximal: bool
    most: int


@device_no_refcount
def enumerate_filtered(
    state: State,
    batch: Batch,
    output: Output,
    control: Int64s,
    conditions: Conditions,
    path: Path,
    event: int,
    horizon: int,
    wanted: Wanted,
    ranks: Ranks,
) -> int:
    """Resume the enumeration of the final sets of an event; return DONE, FLUSH, DEEPER or PAUSE.

    With a share, only the parts assigned to it are enumerated.
    """
    counting, maximal, most = wanted.counting, wanted.maximal, wanted.most
    nodes, run_starts, finals, stack, stored = state.nodes, state.starts, state.finals, state.stack, state.payload
    words, kept, latest, earlier = path.words, path.payload, path.latest, path.earlier
    label_slots_at, label_slots, slow = conditions.label_slots_at, conditions.label_slots, conditions.slow
    label_tests_at, tests = conditions.label_tests_at, conditions.label_tests
    whole = conditions.last_tests.size > 0
    slots, room, fewest = conditions.slot_count, conditions.room, conditions.fewest
    width = batch.payload.size // batch.letters.size
    mask = run_starts.size - 1
    tail = control[TAIL]
    here, now = batch.positions[event], batch.times[event]
    top, depth, current = control[STACK], control[DEPTH], control[CURRENT]
    matches, used, visits = control[OUT_MATCHES], control[OUT_POSITIONS], control[VISITS]
    final, emitted = control[FINAL], 0
    deepest = min(stack.size >> 1, words.size) - 4
    alone = False  # the branch of the current node is on the stack already
    last = visits + most
    shared, base = ranks.shares > 0, ranks.marks[BASE]
    answer = DONE
    while True:
        if current == POP:
            if top == base:  # the part is done
                base = -1
            if visits > last:
                answer = PAUSE
                break
            if top > 0:
                top -= 1
                current, depth = stack[2 * top], stack[2 * top + 1]
                if current <= PUT_OFF:  # longer ones came first: check whether there were any
                    top -= 1
                    current, alone = PUT_OFF - current, True
                    if stack[2 * top] < control[EMITTED] + emitted:
                        current, alone = POP, False
                        continue
            else:
                current = OPEN
        own = current == OPEN  # the current event is entered before any node
        if own:
            if final == control[FINALS]:
                break
            label, next_ = finals[2 * final], finals[2 * final + 1]
            final += 1
            depth = 0
            for slot in range(slots):
                latest[slot] = -1
            if label < 0:
                current, own = next_, False
        if not alone and (top >= deepest or depth >= deepest):
            answer = DEEPER
            break
        if shared and base < 0 and not own and current != BOTTOM:
            size = weight(state, ranks, horizon, current)
            if size <= ranks.loads[ranks.shares]:
                base = top
                if not deal(ranks, size):
                    current = POP
                    continue
        entered, below = depth, top  # to come back to this node when a buffer is full
        here_alone, alone = alone, False
        marked = own
        word, first, start = here << LABEL_BITS, here, now
        if own:
            word |= label
            for column in range(width):
                kept[column] = batch.payload[event * width + column]
        elif current != BOTTOM:
            visits += 1
            place = current & mask
            word, next_, branch = nodes[place << 2], nodes[(place << 2) + 1], nodes[(place << 2) + 2]
            label = word & LABEL_MASK
            if not here_alone and branch >= tail and nodes[((branch & mask) << 2) + 3] >= horizon:
                other_word, other = nodes[(branch & mask) << 2], nodes[((branch & mask) << 2) + 2]
                if maximal and next_ == BOTTOM and label < BARE and is_same_event(word, other_word):
                    # First those that mark this event and earlier ones, then what begins with it, then the others.
                    if other >= tail and nodes[((other & mask) << 2) + 3] >= horizon:
                        stack[2 * top], stack[2 * top + 1] = other, depth
                        top += 1
                    stack[2 * top], stack[2 * top + 1] = control[EMITTED] + emitted, depth
                    stack[2 * top + 2], stack[2 * top + 3] = PUT_OFF - current, depth
                    top += 2
                    current, alone = branch, True
                    continue
                stack[2 * top], stack[2 * top + 1] = branch, depth
                top += 1
            if label == UNION:
                current = next_
                continue
            marked = label != BARE
            first, start = word >> LABEL_BITS, run_starts[place]
            if marked:
                for column in range(width):
                    kept[depth * width + column] = stored[place * width + column]
        if marked:
            # Enter the event into its slots, and test what it decides.
            words[depth] = word
            row = (depth + 1) * slots
            for slot in range(slots):
                latest[row + slot] = latest[row - slots + slot]
            for k in range(label_slots_at[label], label_slots_at[label + 1]):
                slot = label_slots[k]
                earlier[row - slots + slot] = latest[row + slot]
                latest[row + slot] = depth
            fits = True
            for t in range(TEST * label_tests_at[label], TEST * label_tests_at[label + 1], TEST):
                operator, own_slot, column = tests[t], tests[t + 1], tests[t + 2]
                other_slot, theirs, which = tests[t + 3], tests[t + 4], tests[t + 5]
                mine = depth * width + VALUE * column
                kind, value = kept[mine], kept[mine + 1]
                if which != AGAINST_NEXT:
                    met = latest[row + other_slot]
                    if which == OF_LAST and earlier[row - slots + own_slot] >= 0:
                        met = -1
                    while which == AGAINST_LAST and met >= 0 and earlier[met * slots + other_slot] >= 0:
                        met = earlier[met * slots + other_slot]
                    while met >= 0 and fits:
                        their = met * width + VALUE * theirs
                        fits = holds(room, operator, kind, value, kept[their], kept[their + 1])
                        met = earlier[met * slots + other_slot]
                else:
                    met = earlier[row - slots + other_slot]
                    if kind == MISSING:
                        fits = False
                    elif met >= 0:
                        their = met * width + VALUE * theirs
                        fits = holds(room, operator, kind, value, kept[their], kept[their + 1])
                if not fits:
                    break
            if not fits or (slow[label] and not _test_slowly(conditions, path, label, depth, slots)):
                current = POP
                continue
            depth += 1
            if next_ != BOTTOM:
                current = next_
                continue
        if shared and base < 0:
            base = top
            if not deal(ranks, 1.0):
                current = POP
                continue
        if depth < fewest or (whole and not _complete(conditions, path, depth)):
            current = POP
            continue
        if not counting:
            if matches >= output.events.size or used + depth > output.positions.size:
                depth, top = entered, below
                if own:
                    final -= 1
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
    if shared:
        ranks.marks[BASE] = base
    control[STACK], control[DEPTH], control[CURRENT], control[FINAL] = top, depth, current, final
    control[OUT_MATCHES], control[OUT_POSITIONS] = matches, used
    control[EMITTED] += emitted
    control[COUNTED] += emitted
    control[VISITS] = visits
    return answer
