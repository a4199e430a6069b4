"""Numbers of matches that end at an event, computed from the match graph without enumeration (DCORE 5.1).

A node has as many paths as its `next` and its `alternative` together. The numbers are computed by id on demand, as a
node leads only to older ones, so an update costs the same with and without them. They have as many words of 64 bits as
needed, the lowest first, so that they are exact. Paths that begin before the window are not counted: where a set has
some (its `eldest` start is too old), the paths inside are counted for this event, each node once.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from weft.kernels.automaton.tecs import (
    BARE,
    BOTTOM,
    DEEPER,
    DONE,
    FINALS,
    HEAD,
    LABEL_MASK,
    NEVER,
    TAIL,
    WIDER,
    Int64s,
    State,
    Words,
)
from weft.kernels.jit import bare_kernel, device_no_refcount

FILLED, TURN = range(2)  # marks: nodes below this id have their paths; the number of the current event
MARKS = 2


class Counts(NamedTuple):
    """Numbers of paths, by slot of the ring; a number has `size` words."""

    paths: Words  # [slot, size] -> all paths of the node that were alive when it was filled
    eldest: Int64s  # [slot] -> their least start key
    inside: Words  # [slot, size] -> those inside the window of the event `known`
    known: Int64s  # [slot]
    marks: Int64s
    total: Words  # [size + 1] -> of all events counted since it was taken
    size: int


@device_no_refcount
def _add(to: Words, at: int, numbers: Words, place: int, size: int) -> bool:
    """Add one number to another; return whether it overflows."""
    carry = np.uint64(0)
    for k in range(size):
        one = to[at + k] + carry
        carry = np.uint64(one < carry)
        both = one + numbers[place + k]
        carry += np.uint64(both < one)
        to[at + k] = both
    return bool(carry != 0)


@device_no_refcount
def _set(to: Words, at: int, value: int, size: int) -> None:
    to[at] = value
    for k in range(1, size):
        to[at + k] = 0


@device_no_refcount
def fill_paths(state: State, control: Int64s, counts: Any) -> int:
    """Compute the numbers of paths of all new nodes; return DONE, or WIDER if one overflows."""
    nodes, mask, size = state.nodes, state.starts.size - 1, counts.size
    tail = control[TAIL]
    for node in range(max(counts.marks[FILLED], tail), control[HEAD]):
        slot = node & mask
        next_, branch = nodes[(slot << 2) + 1], nodes[(slot << 2) + 2]
        counts.eldest[slot] = nodes[(slot << 2) + 3]
        too_large = False
        if next_ == BOTTOM or nodes[slot << 2] & LABEL_MASK == BARE:
            _set(counts.paths, slot * size, 1, size)
        else:
            _set(counts.paths, slot * size, 0, size)
            if next_ >= tail:
                _add(counts.paths, slot * size, counts.paths, (next_ & mask) * size, size)
                counts.eldest[slot] = counts.eldest[next_ & mask]
            else:  # the node is out of every window, and still in the ring
                counts.eldest[slot] = NEVER
        if branch >= tail:
            too_large = _add(counts.paths, slot * size, counts.paths, (branch & mask) * size, size)
            counts.eldest[slot] = min(counts.eldest[slot], counts.eldest[branch & mask])
        if too_large:
            counts.marks[FILLED] = node
            return WIDER
    counts.marks[FILLED] = control[HEAD]
    return DONE


@device_no_refcount
def _add_alive(state: State, counts: Counts, horizon: int, to: Words, at: int, node: int) -> bool:
    """Add the paths of a node inside the window, which must be known; return whether there is an overflow."""
    slot, size = node & (state.starts.size - 1), counts.size
    if state.nodes[(slot << 2) + 3] < horizon:
        return False
    if counts.eldest[slot] >= horizon:
        return _add(to, at, counts.paths, slot * size, size)
    return _add(to, at, counts.inside, slot * size, size)


@device_no_refcount
def _is_open(state: State, counts: Counts, tail: int, horizon: int, node: int) -> bool:
    """Whether the number of paths of a node inside the window is unknown."""
    slot = node & (state.starts.size - 1)
    return bool(
        node >= tail
        and state.nodes[(slot << 2) + 3] >= horizon > counts.eldest[slot]
        and counts.known[slot] != counts.marks[TURN]
    )


@device_no_refcount
def count_inside(state: State, counts: Any, tail: int, horizon: int, node: int) -> int:
    """Compute the paths inside the window of a node and of all nodes it leads to; return DONE or DEEPER."""
    nodes, mask, size, stack = state.nodes, state.starts.size - 1, counts.size, state.stack
    top = 0
    if _is_open(state, counts, tail, horizon, node):
        stack[0] = node
        top = 1
    while top > 0:
        if top + 2 > stack.size:
            return DEEPER
        current = stack[top - 1]
        slot = current & mask
        next_, branch = nodes[(slot << 2) + 1], nodes[(slot << 2) + 2]
        below = top
        for older in (next_, branch):
            if _is_open(state, counts, tail, horizon, older):
                stack[top] = older
                top += 1
        if top > below:
            continue
        top -= 1
        _set(counts.inside, slot * size, 0, size)
        if next_ == BOTTOM or nodes[slot << 2] & LABEL_MASK == BARE:
            _set(counts.inside, slot * size, 1, size)
        elif next_ >= tail:
            _add_alive(state, counts, horizon, counts.inside, slot * size, next_)
        if branch >= tail:
            _add_alive(state, counts, horizon, counts.inside, slot * size, branch)
        counts.known[slot] = counts.marks[TURN]
    return DONE


@device_no_refcount
def count_paths(state: State, control: Int64s, counts: Counts, horizon: int) -> int:
    """Add the matches of the current event to the total; return DONE or, with nothing added, DEEPER or WIDER."""
    answer = fill_paths(state, control, counts)
    if answer != DONE:
        return answer
    counts.marks[TURN] += 1
    for final in range(control[FINALS]):
        node = state.finals[2 * final + 1]
        if node >= 0:
            answer = count_inside(state, counts, control[TAIL], horizon, node)
            if answer != DONE:
                return answer
    for final in range(control[FINALS]):
        node = state.finals[2 * final + 1]
        if node >= 0:
            carried = _add_alive(state, counts, horizon, counts.total, 0, node)
        else:
            carried = _add_one(counts.total, counts.size)
        counts.total[counts.size] += np.uint64(carried)
    return DONE


@device_no_refcount
def _add_one(to: Words, size: int) -> bool:
    for k in range(size):
        to[k] += np.uint64(1)
        if to[k] != 0:
            return False
    return True


@bare_kernel
def count_event(state: State, control: Int64s, counts: Counts, horizon: int) -> int:
    """`count_paths` as a separate kernel."""
    return count_paths(state, control, counts, horizon)
