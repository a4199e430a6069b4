"""The update kernel: advances one query from event to event until a match ends (DCORE Algorithm 1).

It returns when it meets something unknown (an edge, a full buffer); Python handles it and calls again, and the kernel
resumes. The state of a (partition, state) pair is a row of two words, the set's head node and its `youngest`, so an
update does not read nodes.

All arrays are locals and all indexes unsigned: calls and attributes in the loop would cost reference counting, signed
indexes a test each. Together they are half of the time per event.
"""

from __future__ import annotations

import numpy as np

from weft.kernels.automaton.conditions import CUT, KEEP, Cuts, cut
from weft.kernels.automaton.tecs import (
    ASK_CLASS,
    ASK_ROOM,
    ASK_STATE,
    BARE,
    BOTTOM,
    DEEPER,
    DONE,
    EPOCH,
    EVENT,
    FINAL_EVENT,
    FINALS,
    GROW,
    HEAD,
    LABEL_BITS,
    NEVER,
    SPINE,
    STEPS,
    TAIL,
    UNSEEN,
    Batch,
    Int64s,
    State,
    Tables,
    insert_node,
    lowest_bit,
    pass_expired,
    unite_sets,
)
from weft.kernels.jit import device_no_refcount

U = np.uint64
ONE, TWO, FOUR, SIX, LOW = U(1), U(2), U(4), U(6), U(63)
LOWER = U((1 << 32) - 1)  # half of a word
LONG = np.int64((1 << 31) - 1)  # marks that are not counted further


@device_no_refcount
def update(tables: Tables, state: State, batch: Batch, control: Int64s, cuts: Cuts) -> int:
    """Process events from control[EVENT] on until one ends matches: return FINAL with the final sets in state.finals.

    Return DONE at the end of the batch, else the reason to stop.
    """
    classes, wakes, touch, edges_at, edges = tables.classes, tables.wakes, tables.touch, tables.edges_at, tables.edges
    active, rows, touched, final_sets = state.active, state.rows, state.touched, state.finals
    nodes, run_starts, payload, lengths = state.nodes, state.starts, state.payload, state.lengths
    letters, slots, keys, horizons = batch.letters, batch.slots, batch.keys, batch.horizons
    positions, times, new_payload = batch.positions, batch.times, batch.payload
    consume = tables.consume
    class_count = U(tables.class_count)
    words = U(touch.size) // class_count
    states = U(edges_at.size) // class_count
    end = U(letters.size)
    width = U(new_payload.size) // max(end, ONE)
    keyed = slots.size > 0
    cutting, fewest = cuts.tests.size > 0, cuts.fewest
    measured = lengths.size > 0
    size = run_starts.size
    mask = U(size - 1)
    slot = U(0)
    event = U(control[EVENT])
    while event < end:
        while event < end and not wakes[U(letters[event])]:
            event += ONE
        if event == end:
            break
        class_ = U(classes[U(letters[event])])
        if keyed:
            if slots[event] < 0:
                event += ONE
                continue
            slot = U(slots[event])
        if consume == 2 and state.epochs[slot] != control[EPOCH]:
            state.epochs[slot] = control[EPOCH]
            for word in range(words):
                active[slot * words + word] = U(0)
        key, horizon = keys[event], horizons[event]
        # Which states does the event change? Sorted by `youngest`, so that adding is mostly prepending.
        count = U(0)
        total = 0
        begins = np.int64(0)  # edges of runs that begin, added last, as they are the youngest
        for word in range(words):
            changed = active[slot * words + word]
            if word == 0:
                changed |= ONE
            changed &= touch[class_ * words + word]
            while changed != U(0):
                state_ = (word << SIX) + lowest_bit(changed)
                changed &= changed - ONE
                offset = edges_at[state_ * class_count + class_]
                if offset == 0:
                    control[EVENT], control[ASK_STATE], control[ASK_CLASS] = event, state_, class_
                    return UNSEEN
                if state_ == U(0):
                    begins = np.int64(offset) if key != NEVER and key >= horizon else np.int64(0)
                    continue
                row = (slot * states + state_) << ONE
                head, youngest = rows[row], rows[row + ONE]
                length = lengths[row >> ONE] if measured else np.int64(0)
                if youngest < horizon:
                    active[slot * words + word] &= ~(ONE << (state_ & LOW))
                    continue
                k = count << TWO
                while k > U(0) and touched[k - TWO] > youngest:
                    for field in range(FOUR):
                        touched[k + field] = touched[k + field - FOUR]
                    k -= FOUR
                touched[k] = state_
                touched[k + ONE] = head
                touched[k + TWO] = youngest
                touched[k + U(3)] = length << 32 | offset
                count += ONE
                total += edges[U(offset)] >> 1
        if begins != 0:
            k = count << TWO
            while k > U(0) and touched[k - TWO] >= key:
                for field in range(FOUR):
                    touched[k + field] = touched[k + field - FOUR]
                k -= FOUR
            touched[k] = 0
            touched[k + ONE] = BOTTOM
            touched[k + TWO] = key
            touched[k + U(3)] = begins
            count += ONE
            total += edges[U(begins)] >> 1
        if count == U(0):
            event += ONE
            continue
        next_id = control[HEAD]
        room = total * (2 * SPINE + 4)
        if next_id - control[TAIL] + room >= size:
            pass_expired(state, control, horizon)
            if next_id - control[TAIL] + room > (size >> 2) * 3:
                control[EVENT], control[ASK_ROOM] = event, room
                return GROW
        if 2 * total > final_sets.size:
            control[EVENT], control[ASK_ROOM] = event, total
            return DEEPER
        for t in range(count):
            k = t << TWO
            state_ = U(touched[k])
            if edges[U(touched[k + U(3)]) & LOWER] & 1 == 0:
                active[slot * words + (state_ >> SIX)] &= ~(ONE << (state_ & LOW))
        finals = U(0)
        control[STEPS] += total
        for t in range(count):
            k = t << TWO
            head, youngest, at = touched[k + ONE], touched[k + TWO], U(touched[k + U(3)]) & LOWER
            for _ in range(edges[at] >> 1):
                label, target_ = np.int64(edges[at + ONE]), edges[at + TWO]
                at += U(3)
                length = min((touched[k + U(3)] >> 32) + (label >= 0), LONG)
                ends = edges[at] != 0 and key != NEVER and length >= fewest
                if target_ < 0 and not ends:
                    continue
                fate = KEEP
                if cutting and label >= 0 and head >= 0:
                    at_new = np.int64(event * width)
                    fate = cut(
                        cuts, nodes, size - 1, payload, np.int64(width), control[TAIL], new_payload, at_new, label, head
                    )
                if fate == CUT:
                    continue
                if ends and fate == KEEP:
                    final_sets[finals] = label
                    final_sets[finals + ONE] = head
                    finals += TWO
                if target_ < 0:
                    continue
                target = U(target_)
                row = (slot * states + target) << ONE
                bit = ONE << (target & LOW)
                at_word = slot * words + (target >> SIX)
                waiting = (active[at_word] & bit) != U(0) and rows[row + ONE] >= horizon
                if label < 0 and head >= 0:
                    node = head
                else:
                    # A new node: a mark, or the unmarked start of a run.
                    word_ = positions[event] << LABEL_BITS | (label if label >= 0 else BARE)
                    below = rows[row] if waiting and label >= 0 else 0
                    if below != 0 and youngest < rows[row + ONE]:
                        control[HEAD] = next_id
                        node = insert_node(state, control, horizon, below, word_, head, youngest)
                        next_id = control[HEAD]
                        fresh = U(control[ASK_ROOM]) & mask
                    else:
                        node = next_id
                        next_id += 1
                        fresh = U(node) & mask
                        nodes[fresh << TWO] = word_
                        nodes[(fresh << TWO) + ONE] = head
                        nodes[(fresh << TWO) + TWO] = below
                        nodes[(fresh << TWO) + U(3)] = youngest
                    if head == BOTTOM:
                        run_starts[fresh] = times[event]
                    for column in range(width):
                        payload[fresh * width + column] = new_payload[event * width + column]
                if waiting:
                    if label < 0:
                        control[HEAD] = next_id
                        node = unite_sets(state, control, horizon, rows[row], node)
                        next_id = control[HEAD]
                    youngest_ = max(youngest, rows[row + ONE])
                else:
                    youngest_ = youngest
                rows[row] = node
                rows[row + ONE] = youngest_
                if measured:
                    lengths[row >> ONE] = max(length, lengths[row >> ONE]) if waiting else length
                active[at_word] |= bit
        control[HEAD] = next_id
        event += ONE
        if finals > U(0):
            control[EVENT], control[FINALS] = event, finals >> ONE
            return FINAL_EVENT
    control[EVENT] = event
    return DONE
