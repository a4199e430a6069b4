"""The best matches that end at one event, in an order that a common suffix does not change, without enumerating all.

For every node of the match graph that is reachable and inside the window, in order of ids (so that successors come
first), the best few partial matches are stored as pairs: the first node, and which of the best partial matches of its
`next` continues it. NEXT, LAST and ANY keep one, LIMIT n keeps n.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from weft.kernels.automaton.tecs import (
    BARE,
    BOTTOM,
    DONE,
    EMITTED,
    FINALS,
    FLUSH,
    LABEL_BITS,
    LABEL_MASK,
    OUT_MATCHES,
    OUT_POSITIONS,
    TAIL,
    UNION,
    VISITS,
    Batch,
    Best,
    Int32s,
    Int64s,
    Output,
    State,
)
from weft.kernels.jit import device, device_no_refcount
from weft.kernels.memory.growing import grown
from weft.kernels.memory.sorting import sort

LATEST_START, NEXT_ORDER, LAST_ORDER = 0, 1, 2


@device_no_refcount
def _unfold(
    state: State, best: Best, begin: Int64s, ranks: Int32s, node: int, rank: int, words: Int64s, length: int
) -> tuple[int, int]:
    """Write a run's words after the first `length`, last mark first; return the new length and its first node."""
    mask = state.starts.size - 1
    keep = best.keep
    while True:
        at = (node & mask) << 2
        if state.nodes[at] & LABEL_MASK == BARE:
            return length, node
        words[length] = state.nodes[at]
        length += 1
        next_ = state.nodes[at + 1]
        if next_ == BOTTOM:
            return length, node
        entry = best.numbers[next_ & mask] * keep + rank
        node, rank = begin[entry], ranks[entry]


@device_no_refcount
def _is_better(
    order: int,
    labels: Int32s,
    one: Int64s,
    one_length: int,
    one_first: int,
    two: Int64s,
    two_length: int,
    two_first: int,
) -> bool:
    """Whether the first run comes before the second. Runs are words, last mark first, and a first position."""
    if order == LATEST_START and one_first != two_first:
        return one_first > two_first
    shorter = min(one_length, two_length)
    if order == LAST_ORDER:
        for k in range(shorter):
            if one[k] >> LABEL_BITS != two[k] >> LABEL_BITS:
                return bool(one[k] > two[k])
    else:
        for k in range(1, shorter + 1):
            a, b = one[one_length - k] >> LABEL_BITS, two[two_length - k] >> LABEL_BITS
            if a != b:
                return bool(a < b)
    if one_length != two_length:
        return one_length > two_length
    if one_first != two_first:
        return one_first < two_first
    for k in range(1, shorter + 1):
        a, b = labels[one[one_length - k] & LABEL_MASK], labels[two[two_length - k] & LABEL_MASK]
        if a != b:
            return bool(a < b)
    return False


@device
def _reachable(state: State, best: Best, tail: int, horizon: int, finals: int) -> Int64s:
    """Number the nodes that runs inside the window pass through, by id."""
    mask = state.starts.size - 1
    found = np.empty(64, np.int64)
    count = 0
    for final in range(finals):
        node = state.finals[2 * final + 1]
        if node >= 0 and best.numbers[node & mask] < 0:
            best.numbers[node & mask] = 0
            found = grown(found, count, 1)
            found[count] = node
            count += 1
    done = 0
    while done < count:
        at = (found[done] & mask) << 2
        done += 1
        for k in range(1, 3):
            node = state.nodes[at + k]
            if node >= tail and state.nodes[((node & mask) << 2) + 3] >= horizon and best.numbers[node & mask] < 0:
                best.numbers[node & mask] = 0
                found = grown(found, count, 1)
                found[count] = node
                count += 1
    sort(found, count)
    return found[:count]


@device
def emit_best(state: State, batch: Batch, output: Output, control: Int64s, best: Best, event: int, horizon: int) -> int:
    """Write the best matches that end at an event; return DONE or FLUSH."""
    nodes, mask, tail, keep = state.nodes, state.starts.size - 1, control[TAIL], best.keep
    finals = control[FINALS]
    ids = _reachable(state, best, tail, horizon, finals)
    begin = np.empty((ids.size + 2) * keep, np.int64)
    ranks = np.empty((ids.size + 2) * keep, np.int32)
    counts = np.zeros(ids.size, np.int32)
    one, two = np.empty(ids.size + 2, np.int64), np.empty(ids.size + 2, np.int64)
    control[VISITS] += ids.size
    for i in range(ids.size):
        best.numbers[ids[i] & mask] = i
    for i in range(ids.size):
        at = (ids[i] & mask) << 2
        label, next_, branch = nodes[at] & LABEL_MASK, nodes[at + 1], nodes[at + 2]
        # Two sorted lists of runs: those that begin here (or the left of a union), and the alternatives.
        mine, others = 1, 0
        if label != BARE and next_ != BOTTOM:
            mine = counts[best.numbers[next_ & mask]]
        if branch >= tail and nodes[((branch & mask) << 2) + 3] >= horizon:
            others = counts[best.numbers[branch & mask]]
        a = b = 0
        while a + b < keep and (a < mine or b < others):
            node_a, rank_a, node_b, rank_b = ids[i], a, 0, 0
            if label == UNION and a < mine:
                entry = best.numbers[next_ & mask] * keep + a
                node_a, rank_a = begin[entry], ranks[entry]
            if b < others:
                entry = best.numbers[branch & mask] * keep + b
                node_b, rank_b = begin[entry], ranks[entry]
            take_a = b >= others
            if a < mine and b < others:
                length_a, first_a = _unfold(state, best, begin, ranks, node_a, rank_a, one, 0)
                length_b, first_b = _unfold(state, best, begin, ranks, node_b, rank_b, two, 0)
                first_a, first_b = (
                    nodes[(first_a & mask) << 2] >> LABEL_BITS,
                    nodes[(first_b & mask) << 2] >> LABEL_BITS,
                )
                take_a = _is_better(best.order, best.labels, one, length_a, first_a, two, length_b, first_b)
            entry = i * keep + a + b
            if take_a:
                begin[entry], ranks[entry] = node_a, rank_a
                a += 1
            else:
                begin[entry], ranks[entry] = node_b, rank_b
                b += 1
        counts[i] = a + b
    answer = _emit_finals(state, batch, output, control, best, BestRuns(begin, ranks, counts), one, two, event)
    for i in range(ids.size):
        best.numbers[ids[i] & mask] = -1
    return answer


@device_no_refcount
def _final_run(
    state: State,
    batch: Batch,
    best: Best,
    begin: Int64s,
    ranks: Int32s,
    final: int,
    rank: int,
    event: int,
    words: Int64s,
) -> tuple[int, int, int]:
    """Write a run of a final set with the current event; return its length, first position and start time."""
    mask = state.starts.size - 1
    label, node = state.finals[2 * final], state.finals[2 * final + 1]
    length = 0
    if label >= 0:
        words[0] = batch.positions[event] << LABEL_BITS | label
        length = 1
    if node == BOTTOM:
        return length, batch.positions[event], batch.times[event]
    entry = best.numbers[node & mask] * best.keep + rank
    length, first = _unfold(state, best, begin, ranks, begin[entry], ranks[entry], words, length)
    return length, state.nodes[(first & mask) << 2] >> LABEL_BITS, state.starts[first & mask]


class BestRuns(NamedTuple):
    """The best runs of each node: where they begin, their ranks there, and their number."""

    begin: Int64s
    ranks: Int32s
    counts: Int32s


@device
def _emit_finals(
    state: State,
    batch: Batch,
    output: Output,
    control: Int64s,
    best: Best,
    runs: BestRuns,
    one: Int64s,
    two: Int64s,
    event: int,
) -> int:
    """Write the best of all final sets; return FLUSH, with nothing written, if a buffer is full."""
    begin, ranks, counts = runs
    mask = state.starts.size - 1
    finals = control[FINALS]
    used_up = np.zeros(finals, np.int32)
    matches, used = control[OUT_MATCHES], control[OUT_POSITIONS]
    emitted = 0
    while emitted < best.keep:
        chosen = -1
        length = first = start = 0
        for final in range(finals):
            node = state.finals[2 * final + 1]
            if used_up[final] >= (1 if node == BOTTOM else counts[best.numbers[node & mask]]):
                continue
            length_, first_, start_ = _final_run(state, batch, best, begin, ranks, final, used_up[final], event, two)
            if chosen < 0 or _is_better(best.order, best.labels, two, length_, first_, one, length, first):
                chosen, length, first, start = final, length_, first_, start_
                for k in range(length):
                    one[k] = two[k]
        if chosen < 0:
            break
        used_up[chosen] += 1
        if matches >= output.events.size or used + length > output.positions.size:
            return FLUSH
        output.events[matches], output.firsts[matches], output.starts[matches] = event, first, start
        for k in range(length - 1, -1, -1):
            output.positions[used], output.labels[used] = one[k] >> LABEL_BITS, one[k] & LABEL_MASK
            used += 1
        matches += 1
        output.offsets[matches] = used
        emitted += 1
    control[OUT_MATCHES], control[OUT_POSITIONS], control[EMITTED] = matches, used, emitted
    return DONE
