"""The automaton kernel: advances one query over a batch of events (DCORE Algorithm 1).

It stops and asks when it meets something new (an unknown edge, a full buffer); Python answers and calls
again, and it goes on where it stopped. What it remembers of a (partition, state) is a row of two words, the
set's head node and its `youngest`, so an update does not read nodes.
"""

from __future__ import annotations

import numpy as np

from weft.kernels.enumerate import OPEN, enumerate_matches
from weft.kernels.jit import kernel
from weft.kernels.tecs import (
    ASK_CLASS,
    ASK_ROOM,
    ASK_STATE,
    BARE,
    BOTTOM,
    CURRENT,
    DEEPER,
    DONE,
    EMITTED,
    EPOCH,
    EVENT,
    FINAL,
    FINALS,
    GROW,
    HEAD,
    LABEL_BITS,
    NEVER,
    PHASE,
    SPINE,
    STACK,
    STEPS,
    TAIL,
    UNSEEN,
    Batch,
    Int64s,
    Output,
    State,
    Tables,
    add_node,
    free_expired,
    insert_node,
    lowest_bit,
    unite_sets,
)

UPDATING, ENUMERATING = 0, 1  # PHASE


@kernel
def advance(tables: Tables, state: State, batch: Batch, output: Output, control: Int64s, counting: bool) -> int:
    """Process events from control[EVENT] on; DONE at the end of the batch, else what is needed to go on."""
    classes, busy, touch, edges_at, edges = tables.classes, tables.busy, tables.touch, tables.edges_at, tables.edges
    active, rows, touched = state.active, state.rows, state.touched
    letters, slots, keys, horizons = batch.letters, batch.slots, batch.keys, batch.horizons
    class_count = busy.size
    words = touch.size // class_count
    states = edges_at.size // class_count
    width = batch.payload.size // max(letters.size, 1)
    keyed = slots.size > 0
    mask = state.starts.size - 1
    event = control[EVENT]
    while event < letters.size:
        if control[PHASE] == UPDATING:
            class_ = np.int64(classes[letters[event]])
            if not busy[class_]:
                event += 1
                continue
            slot = np.int64(slots[event]) if keyed else 0
            if slot < 0:
                event += 1
                continue
            if tables.consume == 2 and state.epochs[slot] != control[EPOCH]:
                state.epochs[slot] = control[EPOCH]
                for word in range(words):
                    active[slot * words + word] = 0
            key, horizon = keys[event], horizons[event]
            # Which states does the event change? Sorted by `youngest`, so that adding is mostly prepending.
            count = 0
            total = 0
            for word in range(words):
                changed = active[slot * words + word]
                if word == 0:
                    changed |= np.uint64(1)
                changed &= touch[class_ * words + word]
                while changed != 0:
                    state_ = (word << 6) + lowest_bit(changed)
                    changed &= changed - np.uint64(1)
                    offset = np.int64(edges_at[state_ * class_count + class_])
                    if offset < 0:
                        control[EVENT], control[ASK_STATE], control[ASK_CLASS] = event, state_, class_
                        return UNSEEN
                    if state_ == 0:
                        if key == NEVER:
                            continue
                        head, youngest = np.int64(BOTTOM), key
                    else:
                        row = (slot * states + state_) << 1
                        head, youngest = rows[row], rows[row + 1]
                        if youngest < horizon:
                            active[slot * words + word] &= ~(np.uint64(1) << np.uint64(state_ & 63))
                            continue
                    k = count
                    while k > 0 and touched[4 * k - 2] > youngest:
                        touched[4 * k] = touched[4 * k - 4]
                        touched[4 * k + 1] = touched[4 * k - 3]
                        touched[4 * k + 2] = touched[4 * k - 2]
                        touched[4 * k + 3] = touched[4 * k - 1]
                        k -= 1
                    touched[4 * k] = state_
                    touched[4 * k + 1] = head
                    touched[4 * k + 2] = youngest
                    touched[4 * k + 3] = offset
                    count += 1
                    total += edges[offset]
            if count == 0:
                event += 1
                continue
            room = total * (2 * SPINE + 4)
            if control[HEAD] - control[TAIL] + room > mask:
                free_expired(state, control, horizon)
                if control[HEAD] - control[TAIL] + room > (mask >> 2) * 3:
                    control[EVENT], control[ASK_ROOM] = event, room
                    return GROW
            if 2 * total > state.finals.size:
                control[EVENT], control[ASK_ROOM] = event, total
                return DEEPER
            for k in range(count):
                state_ = touched[4 * k]
                if state_ != 0:
                    active[slot * words + (state_ >> 6)] &= ~(np.uint64(1) << np.uint64(state_ & 63))
            finals = 0
            control[STEPS] += total
            for k in range(count):
                head, youngest, offset = touched[4 * k + 1], touched[4 * k + 2], touched[4 * k + 3]
                for e in range(edges[offset]):
                    at = offset + 1 + 3 * e
                    label, target = np.int64(edges[at]), np.int64(edges[at + 1])
                    if edges[at + 2] != 0 and key != NEVER:
                        state.finals[2 * finals] = label
                        state.finals[2 * finals + 1] = head
                        finals += 1
                    if target < 0:
                        continue
                    row = (slot * states + target) << 1
                    bit = np.uint64(1) << np.uint64(target & 63)
                    at_word = slot * words + (target >> 6)
                    waiting = (active[at_word] & bit) != 0 and rows[row + 1] >= horizon
                    marked = label >= 0
                    if not marked and head >= 0:
                        node = head
                    else:
                        # A new node: a mark, or the unmarked start of a run.
                        word_ = batch.positions[event] << LABEL_BITS | (label if marked else BARE)
                        if not (waiting and marked):
                            node = add_node(state, control, word_, head, 0, youngest)
                            fresh = node
                        elif youngest >= rows[row + 1]:
                            node = add_node(state, control, word_, head, rows[row], youngest)
                            fresh = node
                        else:
                            node = insert_node(state, control, horizon, rows[row], word_, head, youngest)
                            fresh = control[ASK_ROOM]
                        if head == BOTTOM:
                            state.starts[fresh & mask] = batch.times[event]
                        for column in range(width):
                            state.payload[(fresh & mask) * width + column] = batch.payload[event * width + column]
                    if waiting and not marked:
                        node = unite_sets(state, control, horizon, rows[row], node)
                    rows[row] = node
                    rows[row + 1] = max(youngest, rows[row + 1]) if waiting else youngest
                    active[at_word] |= bit
            if finals == 0:
                event += 1
                continue
            control[FINALS], control[FINAL], control[STACK], control[CURRENT] = finals, 0, 0, OPEN
            control[EMITTED] = 0
            control[PHASE] = ENUMERATING
        answer = enumerate_matches(state, batch, output, control, event, horizons[event], counting)
        if answer != DONE:
            control[EVENT] = event
            return answer
        control[PHASE] = UPDATING
        if tables.consume != 0 and control[EMITTED] > 0:
            slot = np.int64(slots[event]) if keyed else 0
            for word in range(words):
                active[slot * words + word] = 0
            if tables.consume == 2:
                control[EPOCH] += 1
                state.epochs[slot] = control[EPOCH]
                control[TAIL] = control[HEAD]
        event += 1
    control[EVENT] = event
    return DONE
