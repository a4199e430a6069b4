"""Enumeration: write the matches that end at one event, each once, with delay linear in its size.

The walk goes from the last mark to the first and can be suspended at any match: its stack, path and current node are
in the state and the control words.
"""

from __future__ import annotations

from weft.kernels.automaton.ranks import LEFT, SKIP, Ranks, weight
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
    State,
)
from weft.kernels.jit import device_no_refcount

POP = -3  # CURRENT: take the next branch from the stack
OPEN = -4  # CURRENT: begin with the next final set
PUT_OFF = -16  # on the stack: this minus a node whose branch was visited first; below it the number of matches before


@device_no_refcount
def enumerate_matches(
    state: State,
    batch: Batch,
    output: Output,
    control: Int64s,
    words: Int64s,
    event: int,
    horizon: int,
    counting: bool,
    most: int,
    ranks: Ranks,
) -> int:
    """Resume the enumeration of the final sets of an event; return DONE, FLUSH, DEEPER or PAUSE.

    While counting, it pauses after `most` nodes. With a share, only its `ranks` are enumerated.
    """
    # Arrays are locals and writing a match is spelt out here: calls and attributes in the loop cost
    # reference counting, several times the work itself.
    nodes, run_starts, finals, stack = state.nodes, state.starts, state.finals, state.stack
    out_events, out_firsts, out_starts = output.events, output.firsts, output.starts
    out_offsets, out_positions, out_labels = output.offsets, output.positions, output.labels
    mask = run_starts.size - 1
    tail = control[TAIL]
    here, now = batch.positions[event], batch.times[event]
    top, depth, current = control[STACK], control[DEPTH], control[CURRENT]
    matches, used, visits = control[OUT_MATCHES], control[OUT_POSITIONS], control[VISITS]
    final, emitted = control[FINAL], 0
    room = min(stack.size >> 1, words.size) - 1
    last = visits + most
    shared = ranks.shares > 0
    skip, left = ranks.marks[SKIP], ranks.marks[LEFT]
    answer = DONE
    while True:
        if current == POP:
            if counting and visits > last:
                answer = PAUSE
                break
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
            if shared:
                before = weight(state, ranks, horizon, current)
                if skip >= before or left == 0:
                    skip -= int(before)
                    current = OPEN
                    continue
            depth = 0
            if label >= 0:
                words[0] = here << LABEL_BITS | label
                depth = 1
        if top >= room or depth >= room:
            answer = DEEPER
            break
        entered, below = depth, top  # to come back to this node when a buffer is full
        if current == BOTTOM:  # the event itself is the whole match
            first, start = here, now
        else:
            visits += 1
            at = (current & mask) << 2
            word, next_, branch = nodes[at], nodes[at + 1], nodes[at + 2]
            if skip > 0:
                before = 1.0 if word & LABEL_MASK == BARE else weight(state, ranks, horizon, next_)
                if skip >= before:
                    skip -= int(before)
                    current = branch
                    continue
            if branch >= tail and nodes[((branch & mask) << 2) + 3] >= horizon:
                stack[2 * top], stack[2 * top + 1] = branch, depth
                top += 1
            label = word & LABEL_MASK
            if label == UNION:
                current = next_
                continue
            if label != BARE:
                words[depth] = word
                depth += 1
                if next_ != BOTTOM:
                    current = next_
                    continue
            first, start = word >> LABEL_BITS, run_starts[current & mask]
        if not counting:
            if matches >= out_events.size or used + depth > out_positions.size:
                depth, top = entered, below
                answer = FLUSH
                break
            out_events[matches] = event
            out_firsts[matches] = first
            out_starts[matches] = start
            for k in range(depth - 1, -1, -1):
                out_positions[used] = words[k] >> LABEL_BITS
                out_labels[used] = words[k] & LABEL_MASK
                used += 1
            matches += 1
            out_offsets[matches] = used
        emitted += 1
        current = POP
        if shared:
            left -= 1
            if left == 0:
                top, final, current = 0, control[FINALS], OPEN
    if shared:
        ranks.marks[SKIP], ranks.marks[LEFT] = skip, left
    control[STACK], control[DEPTH], control[CURRENT], control[FINAL] = top, depth, current, final
    control[OUT_MATCHES], control[OUT_POSITIONS] = matches, used
    control[EMITTED] += emitted
    control[COUNTED] += emitted
    control[VISITS] = visits
    return answer
