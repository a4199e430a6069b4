"""Enumeration: writes out the matches that end at one event, each once, with delay linear in its size.

The walk goes from the last mark to the first and can be suspended at any match: its stack, path and
current node are in the state and the control words.
"""

from __future__ import annotations

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
    State,
)

POP = -3  # CURRENT: take the next branch from the stack
OPEN = -4  # CURRENT: begin with the next final set


@inlined
def emit(state: State, output: Output, control: Int64s, event: int, first: int, start: int, depth: int) -> bool:
    """Write the path as a match; False when a buffer is full."""
    match, position = control[OUT_MATCHES], control[OUT_POSITIONS]
    if match >= output.events.size or position + depth > output.positions.size:
        return False
    output.events[match] = event
    output.firsts[match] = first
    output.starts[match] = start
    for k in range(depth):
        word = state.path[depth - 1 - k]
        output.positions[position + k] = word >> LABEL_BITS
        output.labels[position + k] = word & LABEL_MASK
    output.offsets[match + 1] = position + depth
    control[OUT_MATCHES] = match + 1
    control[OUT_POSITIONS] = position + depth
    return True


@inlined
def enumerate_matches(
    state: State, batch: Batch, output: Output, control: Int64s, event: int, horizon: int, counting: bool
) -> int:
    """Go through the final sets of an event from where it was left off; DONE, FLUSH or DEEPER."""
    nodes = state.nodes
    mask = state.starts.size - 1
    tail = control[TAIL]
    top, depth, current = control[STACK], control[DEPTH], control[CURRENT]
    emitted, visits = control[EMITTED], control[VISITS]
    answer = DONE
    while True:
        if current == OPEN:
            final = control[FINAL]
            if final == control[FINALS]:
                break
            label, current = state.finals[2 * final], state.finals[2 * final + 1]
            control[FINAL] = final + 1
            depth = 0
            if label >= 0:
                state.path[0] = batch.positions[event] << LABEL_BITS | label
                depth = 1
        elif current == POP:
            if top == 0:
                current = OPEN
                continue
            top -= 1
            current, depth = state.stack[2 * top], state.stack[2 * top + 1]
        if top + 1 >= state.stack.size >> 1 or depth + 1 >= state.path.size:
            answer = DEEPER
            break
        if current == BOTTOM:  # the event itself is the whole match
            first, start, word = batch.positions[event], batch.times[event], BARE
        else:
            visits += 1
            at = (current & mask) << 2
            word = nodes[at]
            branch = nodes[at + 2]
            if branch >= tail and nodes[((branch & mask) << 2) + 3] >= horizon:
                state.stack[2 * top], state.stack[2 * top + 1] = branch, depth
                top += 1
            label = word & LABEL_MASK
            if label == UNION:
                current = nodes[at + 1]
                continue
            if label != BARE:
                state.path[depth] = word
                depth += 1
                if nodes[at + 1] != BOTTOM:
                    current = nodes[at + 1]
                    continue
            first, start = word >> LABEL_BITS, state.starts[current & mask]
        if counting:
            control[COUNTED] += 1
        elif not emit(state, output, control, event, first, start, depth):
            # Come back to this very node; its branch must not be stacked twice.
            if current != BOTTOM:
                if word & LABEL_MASK != BARE:
                    depth -= 1
                if nodes[at + 2] >= tail and nodes[((nodes[at + 2] & mask) << 2) + 3] >= horizon:
                    top -= 1
            else:
                control[FINAL] -= 1
                current = OPEN
            answer = FLUSH
            break
        emitted += 1
        current = POP
    control[STACK], control[DEPTH], control[CURRENT] = top, depth, current
    control[EMITTED], control[VISITS] = emitted, visits
    return answer
