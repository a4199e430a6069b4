"""The order in which matches are reported: end, start, positions, query, id; and their bindings in that order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import inlined, kernel

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]
UInt64s = npt.NDArray[np.uint64]


@inlined
def _after(
    a: np.int64,
    b: np.int64,
    ends: Int64s,
    starts: Int64s,
    offsets: Int64s,
    positions: Int64s,
    ranks: Int32s,
    high: UInt64s,
    low: UInt64s,
) -> bool:
    """Whether match a comes after match b; False for equal ones, which keeps a merge stable."""
    if ends[a] != ends[b]:
        return bool(ends[a] > ends[b])
    if starts[a] != starts[b]:
        return bool(starts[a] > starts[b])
    at_a = offsets[a]
    at_b = offsets[b]
    while at_a < offsets[a + 1] and at_b < offsets[b + 1]:
        if positions[at_a] != positions[at_b]:
            return bool(positions[at_a] > positions[at_b])
        at_a += 1
        at_b += 1
    left_a = offsets[a + 1] - at_a
    left_b = offsets[b + 1] - at_b
    if left_a != left_b:
        return bool(left_a > left_b)
    if ranks[a] != ranks[b]:
        return bool(ranks[a] > ranks[b])
    if high[a] != high[b]:
        return bool(high[a] > high[b])
    return bool(low[a] > low[b])


@kernel
def match_order(
    ends: Int64s,
    starts: Int64s,
    offsets: Int64s,
    positions: Int64s,
    ranks: Int32s,
    high: UInt64s,
    low: UInt64s,
) -> Int64s:
    """The permutation that puts matches into match order, by a bottom-up merge sort.

    Matches arrive almost sorted by end, so most merges find their halves in order and copy them.
    """
    count = len(ends)
    order = np.arange(count)
    other = np.empty(count, np.int64)
    width = 1
    while width < count:
        for left in range(0, count, 2 * width):
            middle = min(left + width, count)
            right = min(left + 2 * width, count)
            a = left
            b = middle
            if b < right and not _after(
                order[middle - 1], order[middle], ends, starts, offsets, positions, ranks, high, low
            ):
                b = right
                for at in range(middle, right):
                    other[at] = order[at]
                right = middle
            for at in range(left, right):
                if b < right and (
                    a == middle or _after(order[a], order[b], ends, starts, offsets, positions, ranks, high, low)
                ):
                    other[at] = order[b]
                    b += 1
                else:
                    other[at] = order[a]
                    a += 1
        order, other = other, order
        width *= 2
    return order


@kernel
def count_bindings(
    chosen: Int64s, offsets: Int64s, labels: Int32s, label_offsets: Int64s, label_names: Int32s, names: int
) -> tuple[Int64s, Int64s, int]:
    """For the chosen matches: where each one's positions and its variables begin, and how many bindings there are."""
    position_offsets = np.zeros(len(chosen) + 1, np.int64)
    entry_offsets = np.zeros(len(chosen) + 1, np.int64)
    seen = np.full(names, -1, np.int64)
    entries = 0
    bindings = 0
    for row in range(len(chosen)):
        match = chosen[row]
        for at in range(offsets[match], offsets[match + 1]):
            for slot in range(label_offsets[labels[at]], label_offsets[labels[at] + 1]):
                bindings += 1
                if seen[label_names[slot]] != row:
                    seen[label_names[slot]] = row
                    entries += 1
        position_offsets[row + 1] = position_offsets[row] + offsets[match + 1] - offsets[match]
        entry_offsets[row + 1] = entries
    return position_offsets, entry_offsets, bindings


@kernel
def gather_bindings(
    chosen: Int64s,
    offsets: Int64s,
    positions: Int64s,
    labels: Int32s,
    label_offsets: Int64s,
    label_names: Int32s,
    names: int,
    entry_offsets: Int64s,
    bindings: int,
) -> tuple[Int64s, Int32s, Int64s, Int64s]:
    """The positions of the chosen matches, and their variables: names, where each one's positions begin, positions.

    A match's variables come in the order of the first position they are bound to.
    """
    entries = entry_offsets[len(chosen)]
    entry_names = np.empty(entries, np.int32)
    value_offsets = np.zeros(entries + 1, np.int64)
    values = np.empty(bindings, np.int64)
    total = 0
    for row in range(len(chosen)):
        total += offsets[chosen[row] + 1] - offsets[chosen[row]]
    gathered = np.empty(total, np.int64)
    entry_of = np.full(names, -1, np.int64)
    filled = np.zeros(entries, np.int64)
    put = 0
    for row in range(len(chosen)):
        begin = offsets[chosen[row]]
        end = offsets[chosen[row] + 1]
        entry = entry_offsets[row]
        for at in range(begin, end):
            gathered[put] = positions[at]
            put += 1
            for slot in range(label_offsets[labels[at]], label_offsets[labels[at] + 1]):
                name = label_names[slot]
                # Entries only grow, so one below this row's is a leftover of an earlier row.
                if entry_of[name] < entry_offsets[row]:
                    entry_of[name] = entry
                    entry_names[entry] = name
                    entry += 1
                value_offsets[entry_of[name] + 1] += 1
        for known in range(entry_offsets[row], entry):
            value_offsets[known + 1] += value_offsets[known]
        for at in range(begin, end):
            for slot in range(label_offsets[labels[at]], label_offsets[labels[at] + 1]):
                place = entry_of[label_names[slot]]
                values[value_offsets[place] + filled[place]] = positions[at]
                filled[place] += 1
    return gathered, entry_names, value_offsets, values
