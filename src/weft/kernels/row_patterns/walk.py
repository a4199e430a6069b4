"""Forward pass for conditions on rows and their neighbours: the preferred match of each attempt, no row twice."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels.jit import always_inline, bare_kernel
from weft.kernels.row_patterns.tables import (
    ACCEPT,
    ACCEPT_AT_END,
    ATTEMPT,
    DONE,
    FAIL,
    FIRST,
    FULL,
    LAST,
    MATCH,
    MATCHES,
    NUMBER,
    PART,
    PARTITION,
    SEEN,
    START,
    TAKEN,
    UNDECIDED,
    WHOLE,
    MatchedRows,
    PartitionedRows,
    PatternTables,
    has_state,
    next_attempt,
    write_match,
)


@always_inline
def _chosen(program: PatternTables, rows: PartitionedRows, state: Any, i: Any, seen: Any, last: Any, limit: Any) -> Any:
    """Return the preferred transition that can still succeed."""
    in_time = len(rows.earliest) == 0
    for k in range(program.offsets[state], program.offsets[state + 1]):
        target = program.targets[k]
        if target == ACCEPT or (target == ACCEPT_AT_END and i == last and not rows.is_open):
            return np.int64(ACCEPT)
        if target < 0:
            continue
        if i >= seen:
            if rows.is_open and limit > i:
                return np.int64(UNDECIDED)
        elif has_state(rows.sets, program.words, i, target) and (
            in_time or rows.earliest[i * program.states + target] <= limit
        ):
            return target
    return np.int64(FAIL)


@always_inline
def _taken(program: PatternTables, rows: PartitionedRows, found: MatchedRows, at: Any, start: Any, taken: Any) -> Any:
    """Follow the preferred transitions; return how the attempt ends, and before which row."""
    seen, last = rows.partitions[at + SEEN], rows.partitions[at + LAST]
    limit = rows.limits[start] if len(rows.limits) > 0 else last + 1
    state, i = np.int64(program.states + 1), start
    if start == rows.partitions[at + FIRST] and rows.partitions[at + WHOLE] != 0:
        state = np.int64(program.states)
    while True:
        state = _chosen(program, rows, state, i, seen, last, limit)
        if state < 0:
            return state, i
        found.states[taken + i - start] = state
        i += 1


@bare_kernel
def walk(program: PatternTables, rows: PartitionedRows, found: MatchedRows) -> int:
    """Find the matches of all partitions from the cursor on; return why it stopped.

    An attempt whose preferred match is undecided is the last one of its partition.
    """
    cursor, partitions = found.cursor, rows.partitions
    p, start, matches, taken = cursor[PART], cursor[START], cursor[MATCHES], cursor[TAKEN]
    reason = np.int64(DONE)
    while reason == DONE and p * PARTITION < len(partitions):
        at = p * PARTITION
        seen, number = partitions[at + SEEN], partitions[at + NUMBER]
        if start < 0:
            start = partitions[at + ATTEMPT]
        while start < seen:
            if (matches + 1) * MATCH > len(found.matches) or taken + seen - start > len(found.states):
                reason = np.int64(FULL)
                break
            end, i = _taken(program, rows, found, at, start, taken)
            if end == UNDECIDED:
                break
            if end == FAIL:
                found.failed[start] = 1
                start += 1
                continue
            number += 1
            write_match(found.matches, matches, p, start, i - start, number, taken)
            after = next_attempt(program, found.states, taken, start, i - start)
            if after < 0:
                reason = -after
                break
            matches, taken, start = matches + 1, taken + i - start, after
        partitions[at + ATTEMPT], partitions[at + NUMBER] = start, number
        if reason == DONE:
            p, start = p + 1, np.int64(-1)
    cursor[PART], cursor[START], cursor[MATCHES], cursor[TAKEN] = p, start, matches, taken
    return int(reason)
