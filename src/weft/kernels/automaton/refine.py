"""Test candidates, found without conditions over several events, one by one (DCORE 4.1, refine).

A candidate becomes a match graph of one path, so that conditions are tested by the same code that prunes enumerations.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.automaton.enumerate import OPEN
from weft.kernels.automaton.filtered import Tested, Wanted, enumerate_filtered
from weft.kernels.automaton.ranks import Ranks
from weft.kernels.automaton.tecs import (
    BOTTOM,
    CURRENT,
    DEEPER,
    DONE,
    EMITTED,
    EVENT,
    FINAL,
    FINALS,
    LABEL_BITS,
    STACK,
    TAIL,
    Batch,
    Int32s,
    Int64s,
    Output,
    Path,
    State,
)
from weft.kernels.jit import bare_kernel
from weft.kernels.memory.room import lend

WHOLE = 1 << 62  # nodes, so that it never pauses


class CandidateSets(NamedTuple):
    """Candidates as arrays: the events of candidate c are those from `offsets[c]` to `offsets[c + 1]`."""

    offsets: Int64s
    rows: Int64s  # of `values`: the operands of conditions
    labels: Int32s
    values: Int64s
    keeps: npt.NDArray[np.bool_]


@bare_kernel
def refine(
    candidates: CandidateSets,
    state: State,
    batch: Batch,
    output: Output,
    control: Int64s,
    path: Path,
    tested: Tested,
    ranks: Ranks,
) -> int:
    """Test the candidates from control[EVENT] on; return DONE, or DEEPER if one is too long."""
    offsets, rows, labels, values, keeps = candidates
    lend(tested.conditions.room, 0, tested.machine)
    width, mask = batch.payload.size, state.starts.size - 1
    for candidate in range(control[EVENT], keeps.size):
        begin, size = offsets[candidate], offsets[candidate + 1] - offsets[candidate]
        if size > mask:
            control[EVENT] = candidate
            return DEEPER
        for k in range(size):
            row = rows[begin + k]
            if k < size - 1:
                state.nodes[(k + 1) << 2] = row << LABEL_BITS | labels[begin + k]
                state.nodes[((k + 1) << 2) + 1] = k if k > 0 else BOTTOM
                for column in range(width):
                    state.payload[(k + 1) * width + column] = values[row * width + column]
            else:
                for column in range(width):
                    batch.payload[column] = values[row * width + column]
        state.finals[0] = labels[begin + size - 1] if size > 0 else -1
        state.finals[1] = size - 1 if size > 1 else BOTTOM
        control[TAIL], control[FINALS] = 1, 1
        control[FINAL], control[STACK], control[CURRENT], control[EMITTED] = 0, 0, OPEN, 0
        wanted = Wanted(True, False, WHOLE)
        answer = enumerate_filtered(state, batch, output, control, tested.conditions, path, 0, 0, wanted, ranks)
        if answer != DONE:
            control[EVENT] = candidate
            return answer
        keeps[candidate] = control[EMITTED] > 0
    return DONE
