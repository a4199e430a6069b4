"""Match graph in flat arrays: the layout that the automaton kernels share, and the union of sets of partial matches.

Partial matches are stored in a tECS (DCORE chapter 5). A node is four words in a ring: `position << 20 | label`,
`next`, `alternative`, `youngest` (the greatest start key of its partial matches). An output node and the union above
it are one node: it represents its position followed by every partial match of `next`, and every one of `alternative`.
An explicit union (label UNION) has two sets as `next` and `alternative`; along a chain of unions `youngest` decreases,
so expired partial matches are cut off whole. Ids only grow, the slot is `id & mask`; ids below the tail are expired, so
nothing has to be updated when a slot is reused.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from numba import types
from numba.extending import intrinsic

from weft.kernels.jit import bare_kernel, device_no_refcount

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
Words = npt.NDArray[np.uint64]

LABEL_BITS = 20
LABEL_MASK = (1 << LABEL_BITS) - 1
UNION = LABEL_MASK  # label of an explicit union
BARE = LABEL_MASK - 1  # label of a run's start that is not marked
BOTTOM = -2  # `next` of a marked start
NEVER = -(2**63)  # start key of an event at which no match starts or ends
SPINE = 16  # unions that are visited before a set is added unsorted

# Answers of `advance`: the batch is done; an edge is unknown; the ring, the output, a scratch array is full.
DONE, UNSEEN, GROW, FLUSH, DEEPER = 0, 1, 2, 3, 4
FINAL_EVENT = 5  # matches end at the event before control[EVENT]
PAUSE = 6  # many nodes were visited: Ctrl-C is checked
WIDER = 7  # a number does not fit into its words

# Control words.
(EVENT, HEAD, TAIL, PHASE, OUT_MATCHES, OUT_POSITIONS, ASK_STATE, ASK_CLASS) = range(8)
(FINALS, FINAL, STACK, DEPTH, CURRENT, EMITTED, EPOCH, STEPS, VISITS, COUNTED, ASK_ROOM, GROUP) = range(8, 20)
CONTROL_WORDS = 20


class Tables(NamedTuple):
    """The query as tables, completed when events need them."""

    classes: Int32s  # letter -> class, 0: the event does not exist
    wakes: npt.NDArray[np.bool_]  # letter -> whether it changes some state
    touch: Words  # [class, word] -> states that the class changes, or may change
    edges_at: Int32s  # [state, class] -> offset in edges, 0 unknown
    edges: Int32s  # count << 1 | whether the state also waits, then (label, target, final) for each other edge
    class_count: int  # room for classes in touch and edges_at
    consume: int  # 0 none, 1 partition, 2 any


class State(NamedTuple):
    """The state between batches, and scratch arrays."""

    active: Words  # [partition, word] -> states with partial matches
    rows: Int64s  # [partition, state, 2] -> head, youngest
    nodes: Int64s  # [slot, 4]
    starts: Int64s  # [slot] -> start time, for nodes that start a run
    payload: Int64s  # [slot, width] -> the values that conditions read of the event
    epochs: Int64s  # [partition] -> consumption epoch (CONSUME BY ANY)
    lengths: Int64s  # [partition, state] -> marks of its longest run, or more; empty: no condition asks for many
    touched: Int64s  # scratch, [state, 4]
    finals: Int64s  # scratch, [n, 2] -> label, head
    stack: Int64s  # scratch, [n, 2] -> node, depth; more than SPINE words


class Path(NamedTuple):
    """Scratch: the match being enumerated, last event first, and the state of conditions."""

    words: Int64s  # [entry] -> position << 20 | label
    payload: Int64s  # [entry, width]
    latest: Int32s  # [entry + 1, slot] -> newest entry that fills the slot, -1 none; row 0 is before any entry
    earlier: Int32s  # [entry, slot] -> the one before in the same slot


class Best(NamedTuple):
    """For queries that report only the best matches of an event: their number, their order, and scratch."""

    keep: int  # 0: all matches are reported
    order: int  # see weft.kernels.automaton.best
    labels: Int32s  # label -> its rank among labels, by the names it shows
    numbers: Int32s  # scratch, [slot] -> number among the reachable nodes, -1 none


class Batch(NamedTuple):
    """The events as flat arrays."""

    letters: Int32s
    slots: Int32s  # partition of each event, -1 none; empty: one partition
    keys: Int64s  # start key: a match may start here and end while horizon <= key
    horizons: Int64s  # smallest start key a match ending here may have; never falls
    positions: Int64s
    times: Int64s
    payload: Int64s


class Output(NamedTuple):
    """Buffers for matches."""

    events: Int64s  # index in the batch of the event that ends the match
    firsts: Int64s
    starts: Int64s
    offsets: Int64s
    positions: Int64s
    labels: Int32s


@intrinsic  # type: ignore[untyped-decorator]
def lowest_bit(typing_context: Any, word: Any) -> Any:
    """The index of the lowest set bit of a 64-bit word."""

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        zero_is_undefined = context.get_constant(types.boolean, True)
        return builder.cttz(arguments[0], zero_is_undefined)

    return types.uint64(types.uint64), generate


@device_no_refcount
def add_node(state: State, control: Int64s, word: int, next_: int, alternative: int, youngest: int) -> int:
    """Add a node; there must be space in the ring."""
    node: int = control[HEAD]
    at = (node & (state.starts.size - 1)) << 2
    state.nodes[at] = word
    state.nodes[at + 1] = next_
    state.nodes[at + 2] = alternative
    state.nodes[at + 3] = youngest
    control[HEAD] = node + 1
    return node


@device_no_refcount
def _spine(state: State, tail: int, horizon: int, head: int, youngest: int, elements: Int64s) -> tuple[int, int, int]:
    """Split a set at `youngest`: return the number of elements above it, the rest, and the nodes read.

    The ids of the elements are written into `elements`.
    """
    mask = state.starts.size - 1
    count = 0
    looked = 0
    current = head
    while current >= tail:
        at = (current & mask) << 2
        looked += 1
        if state.nodes[at + 3] < horizon:
            current = 0
            break
        if state.nodes[at + 3] <= youngest or count == SPINE:
            break
        if state.nodes[at] & LABEL_MASK == UNION:
            elements[count] = state.nodes[at + 1]
            current = state.nodes[at + 2]
        else:
            elements[count] = current
            current = 0
        count += 1
    return count, current if current >= tail else 0, looked


@device_no_refcount
def _stack_up(state: State, control: Int64s, elements: Int64s, count: int, below: int) -> int:
    """Add elements, the youngest first, to a set by explicit unions."""
    mask = state.starts.size - 1
    head = below
    for k in range(count - 1, -1, -1):
        element = elements[k]
        if head == 0:
            head = element
        else:
            head = add_node(state, control, UNION, element, head, state.nodes[((element & mask) << 2) + 3])
    return head


@device_no_refcount
def unite_sets(state: State, control: Int64s, horizon: int, left: int, right: int) -> int:
    """Return the union of two sets, sorted by `youngest`."""
    mask = state.starts.size - 1
    tail = control[TAIL]
    if state.nodes[((left & mask) << 2) + 3] < state.nodes[((right & mask) << 2) + 3]:
        left, right = right, left
    elements = state.stack  # free while no match is enumerated
    count, rest, looked = _spine(state, tail, horizon, left, state.nodes[((right & mask) << 2) + 3], elements)
    control[STEPS] += looked
    below = right
    if rest != 0:
        # Here rest <= right. Its elements are not split: a union may have a union on its left,
        # which costs the enumeration one visit more and nothing else.
        below = add_node(state, control, UNION, right, rest, state.nodes[((right & mask) << 2) + 3])
        if state.nodes[((rest & mask) << 2) + 3] > state.nodes[((right & mask) << 2) + 3]:
            at = (below & mask) << 2
            state.nodes[at + 1] = rest
            state.nodes[at + 2] = right
            state.nodes[at + 3] = state.nodes[((rest & mask) << 2) + 3]
    return _stack_up(state, control, elements, count, below)


@device_no_refcount
def insert_node(state: State, control: Int64s, horizon: int, head: int, word: int, next_: int, youngest: int) -> int:
    """Add an output node below the younger elements of a set, and return the head; ASK_ROOM has the new id."""
    elements = state.stack  # free while no match is enumerated
    count, rest, looked = _spine(state, control[TAIL], horizon, head, youngest, elements)
    control[STEPS] += looked
    mask = state.starts.size - 1
    if rest != 0 and state.nodes[((rest & mask) << 2) + 3] > youngest:
        node = add_node(state, control, word, next_, 0, youngest)
        control[ASK_ROOM] = node
        below = add_node(state, control, UNION, rest, node, state.nodes[((rest & mask) << 2) + 3])
    else:
        node = add_node(state, control, word, next_, rest, youngest)
        control[ASK_ROOM] = node
        below = node
    return _stack_up(state, control, elements, count, below)


@device_no_refcount
def pass_expired(state: State, control: Int64s, horizon: int) -> None:
    """Move the tail past the nodes that no match can contain any more."""
    mask = state.starts.size - 1
    tail, head = control[TAIL], control[HEAD]
    while tail < head and state.nodes[((tail & mask) << 2) + 3] < horizon:
        tail += 1
    control[TAIL] = tail


@bare_kernel
def free_expired(state: State, control: Int64s, horizon: int) -> None:
    """Call `pass_expired` between events."""
    pass_expired(state, control, horizon)


@bare_kernel
def mark_live(nodes: Int64s, tail: int, head: int, live: npt.NDArray[np.bool_]) -> int:
    """Mark all nodes reachable from the marked ones, by slot, and return their number. Successors are older."""
    mask = live.size - 1
    count = 0
    for node in range(head - 1, tail - 1, -1):
        if not live[node & mask]:
            continue
        count += 1
        for field in range(1, 3):
            older = nodes[((node & mask) << 2) + field]
            if older >= tail:
                live[older & mask] = True
    return count


@bare_kernel
def move_live(old: State, tail: int, head: int, live: npt.NDArray[np.bool_], places: Int64s, new: State) -> None:
    """Copy the marked nodes to a ring, with ids from `head` on, which `places` has by old slot.

    It may be the same ring: going round it, no node is moved past its old slot.
    """
    mask, new_mask = old.starts.size - 1, new.starts.size - 1
    width = old.payload.size // old.starts.size
    to = head
    for node in range(tail, head):
        at = node & mask
        if not live[at]:
            continue
        places[at] = to
        there = to & new_mask
        for field in range(4):
            word = old.nodes[(at << 2) + field]
            if (field == 1 or field == 2) and word >= tail:
                word = places[word & mask]
            new.nodes[(there << 2) + field] = word
        new.starts[there] = old.starts[at]
        for column in range(width):
            new.payload[there * width + column] = old.payload[at * width + column]
        to += 1
