"""Lists of matches: positions with their labels, and positions by variable."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import always_inline, bare_kernel
from weft.kernels.signatures import Read

Int64s = npt.NDArray[np.int64]
Int32s = npt.NDArray[np.int32]


@bare_kernel
def take_lists(
    rows: Read[Int64s],
    offsets: Read[Int64s],
    positions: Read[Int64s],
    labels: Read[Int32s],
    to: Read[Int64s],
    taken: Int64s,
    taken_labels: Int32s,
) -> None:
    """Copy the positions and labels of the chosen matches contiguously, each to the offset in `to`."""
    for row in range(len(rows)):
        at = to[row]
        for place in range(offsets[rows[row]], offsets[rows[row] + 1]):
            taken[at], taken_labels[at] = positions[place], labels[place]
            at += 1


class LabelledPositions(NamedTuple):
    """Positions with their labels, the names of each label, and the entry of each name."""

    positions: Int64s
    labels: Int32s
    label_offsets: Int64s
    label_names: Int32s
    entry_of: Int64s


@bare_kernel
def bind(
    offsets: Read[Int64s],
    positions: Read[Int64s],
    labels: Read[Int32s],
    label_offsets: Int64s,
    label_names: Int32s,
    entry_of: Int64s,
    entry_offsets: Int32s,
    entry_names: Int32s,
    value_offsets: Int32s,
    values: Int64s,
) -> int:
    """Write the variables of each match: names, where the positions of each begin, positions; return their number.

    Variables are in the order of the first position they are bound to. `entry_of` has an item of -1 for each name.
    """
    entry = 0
    put = 0
    entry_offsets[0] = 0
    for match in range(len(offsets) - 1):
        first, begin, is_grouped = entry, put, True
        for at in range(offsets[match], offsets[match + 1]):
            for slot in range(label_offsets[labels[at]], label_offsets[labels[at] + 1]):
                name = label_names[slot]
                if entry_of[name] < first:  # entries only grow, so this is one of an earlier match
                    entry_of[name] = entry
                    entry_names[entry] = name
                    value_offsets[entry] = put
                    entry += 1
                elif entry_of[name] != entry - 1:
                    is_grouped = False
                values[put] = positions[at]
                put += 1
        if not is_grouped:
            value_offsets[first] = begin
            bound = LabelledPositions(positions, labels, label_offsets, label_names, entry_of)
            _group(offsets[match], offsets[match + 1], bound, first, entry, value_offsets, values)
        entry_offsets[match + 1] = entry
    value_offsets[entry] = put
    return entry


@always_inline
def _group(
    begin: int,
    end: int,
    bound: LabelledPositions,
    first: int,
    last: int,
    value_offsets: Int32s,
    values: Int64s,
) -> None:
    """Write the positions of a match by variable, with a counting sort."""
    positions, labels, label_offsets, label_names, entry_of = bound
    for entry in range(first, last):
        value_offsets[entry + 1] = 0
    for at in range(begin, end):
        for slot in range(label_offsets[labels[at]], label_offsets[labels[at] + 1]):
            value_offsets[entry_of[label_names[slot]] + 1] += 1
    for entry in range(first, last):
        value_offsets[entry + 1] += value_offsets[entry]
    for at in range(end - 1, begin - 1, -1):
        for slot in range(label_offsets[labels[at]], label_offsets[labels[at] + 1]):
            entry = entry_of[label_names[slot]]
            value_offsets[entry + 1] -= 1
            values[value_offsets[entry + 1]] = positions[at]
    for entry in range(first, last):
        value_offsets[entry] = value_offsets[entry + 1]
