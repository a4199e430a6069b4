"""Depth-first search for conditions that depend on the match so far, with backtracking and a memo of failures."""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.kernels.jit import always_inline, bare_kernel, device_no_refcount
from weft.kernels.row_patterns.conditions import (
    AGGREGATE,
    DIVIDED_BY_ZERO,
    FALSE,
    TO_BE_ASKED,
    TRUE,
    UNKNOWN,
    ConditionCode,
    SearchRoom,
    holds_for,
    take_row,
)
from weft.kernels.row_patterns.tables import (
    ACCEPT,
    ACCEPT_AT_END,
    ANSWER,
    ANSWERED,
    ASK,
    ATTEMPT,
    BEGIN,
    CONDITION,
    DEPTH,
    DONE,
    FAIL,
    FIRST,
    FRUITLESS,
    FULL,
    GOING,
    LAST,
    MATCH,
    MATCHES,
    NUMBER,
    PART,
    PARTITION,
    PHASE,
    SEEN,
    STAMP,
    START,
    STEPS,
    TAKEN,
    TOO_MANY_STEPS,
    TRIED,
    UNDECIDED,
    WHOLE,
    MatchedRows,
    PartitionedRows,
    PatternTables,
    has_state,
    next_attempt,
    write_match,
)

ASKING, ENDLESS, DIVIDING = -5, -6, -7  # further ends of an attempt, for now
BY_ZERO = 6  # a reason to stop, after those of `tables`
NOTE_AFTER_STEPS = 256  # steps of an attempt before failures are noted: most attempts are short, and come nowhere twice
PROBES = 8
PER_ROW = 100  # steps for each row of a partition that long attempts may take, besides, until one succeeds
ENTRY = 3  # words of a noted failure


@always_inline
def _mixed(hash: Any, value: Any) -> Any:
    """Extend the hash of a history."""
    x = (hash ^ value) * np.int64(-49064778989728563)
    return x ^ (x >> 29)


@device_no_refcount
def _noted(room: SearchRoom, depth: Any, state: Any, row: Any, stamp: Any, writes: Any) -> Any:
    """Whether a state is recorded as failed after this history; with `writes`, record it."""
    one = _mixed(_mixed(room.histories[depth * 2], row), state)
    two = _mixed(_mixed(room.histories[depth * 2 + 1], state), row)
    size = len(room.failures) // ENTRY
    for k in range(PROBES):
        at = ((one + k) & (size - 1)) * ENTRY
        if room.failures[at + 2] != stamp:
            if writes:
                room.failures[at], room.failures[at + 1], room.failures[at + 2] = one, two, stamp
            return False
        if room.failures[at] == one and room.failures[at + 1] == two:
            return True
    if writes:
        at = (one & (size - 1)) * ENTRY
        room.failures[at], room.failures[at + 1] = one, two
    return False


@always_inline
def _begin(program: PatternTables, code: ConditionCode, room: SearchRoom, cursor: Any, is_first: Any) -> None:
    """Begin an attempt without rows."""
    room.states[0] = program.states if is_first else program.states + 1
    room.transitions[0] = program.offsets[room.states[0]]
    room.histories[0], room.histories[1] = np.int64(1), np.int64(2)
    for s in range(code.sets):
        room.mapped[s] = 0
    for a in range(len(code.aggregates) // AGGREGATE):
        room.counts[a], room.sums[a], room.real_sums[a] = np.int64(0), np.int64(0), 0.0
    cursor[DEPTH], cursor[STEPS], cursor[PHASE] = 0, 0, GOING
    cursor[STAMP] += 1


@device_no_refcount
def _tried(program: PatternTables, rows: PartitionedRows, code: ConditionCode, room: SearchRoom, cursor: Any) -> Any:
    """Test the row after `DEPTH` rows for the tried state; return the result, or that Python must evaluate it."""
    at, depth, target = cursor[PART] * PARTITION, cursor[DEPTH], cursor[TRIED]
    start, variable = cursor[START], program.variable_of[target]
    place, told = (depth + 1) * 2, code.history[variable]
    room.histories[place] = _mixed(room.histories[place - 2], told)
    room.histories[place + 1] = _mixed(room.histories[place - 1], told + 7)
    if cursor[STEPS] > NOTE_AFTER_STEPS and _noted(room, depth + 1, target, start + depth + 1, cursor[STAMP], False):
        return np.int64(FALSE)
    take_row(code, room, depth, variable, start + depth)
    room.states[depth + 1] = target
    cursor[CONDITION] = variable
    first, last, number = rows.partitions[at + FIRST], rows.partitions[at + LAST], rows.partitions[at + NUMBER] + 1
    return holds_for(code, room, variable, depth + 1, start, first, last, number)


@device_no_refcount
def _next_target(
    program: PatternTables, rows: PartitionedRows, room: SearchRoom, cursor: Any, limit: Any, most_steps: Any
) -> Any:
    """Return the next state to try, backtracking where all failed; or FAIL, ACCEPT, UNDECIDED or ENDLESS."""
    at, start = cursor[PART] * PARTITION, cursor[START]
    seen, last = rows.partitions[at + SEEN], rows.partitions[at + LAST]
    while True:
        depth = cursor[DEPTH]
        state, i, k = room.states[depth], start + depth, room.transitions[depth]
        if k == program.offsets[state + 1]:
            if depth == 0:
                return np.int64(FAIL)
            if cursor[STEPS] > NOTE_AFTER_STEPS:
                _noted(room, depth, state, i, cursor[STAMP], True)
            cursor[DEPTH] -= 1
            continue
        room.transitions[depth] = k + 1
        cursor[STEPS] += 1
        target = program.targets[k]
        if target == ACCEPT or (target == ACCEPT_AT_END and i == last and not rows.is_open):
            return np.int64(ACCEPT)
        if cursor[STEPS] > most_steps:
            return np.int64(ENDLESS)
        if target < 0 or i >= limit:
            continue
        if i >= seen:
            if rows.is_open:
                return np.int64(UNDECIDED)
        elif has_state(rows.sets, program.words, i, target):
            return target


@device_no_refcount
def _go_on(
    program: PatternTables, rows: PartitionedRows, code: ConditionCode, room: SearchRoom, cursor: Any, most_steps: Any
) -> Any:
    """Continue the search until the attempt is decided: ACCEPT, FAIL, UNDECIDED, or why it cannot continue."""
    start = cursor[START]
    limit = rows.limits[start] if len(rows.limits) > 0 else rows.partitions[cursor[PART] * PARTITION + LAST] + 1
    answer = cursor[ANSWER] if cursor[PHASE] == ANSWERED else np.int64(UNKNOWN)
    while True:
        if answer == TRUE:
            cursor[DEPTH] += 1
            target = cursor[TRIED]
            room.states[cursor[DEPTH]], room.transitions[cursor[DEPTH]] = target, program.offsets[target]
        target = _next_target(program, rows, room, cursor, limit, most_steps)
        if target < 0:
            return target
        cursor[TRIED] = target
        answer = _tried(program, rows, code, room, cursor)
        if answer == TO_BE_ASKED:
            return np.int64(ASKING)
        if answer == DIVIDED_BY_ZERO:
            return np.int64(DIVIDING)


@always_inline
def _write(program: PatternTables, found: MatchedRows, room: SearchRoom, number: Any) -> Any:
    """Write a match; return where the next attempt starts, or minus the reason against it."""
    cursor = found.cursor
    start, depth, taken = cursor[START], cursor[DEPTH], cursor[TAKEN]
    for k in range(depth):
        found.states[taken + k] = room.states[k + 1]
    write_match(found.matches, cursor[MATCHES], cursor[PART], start, depth, number, taken)
    after = next_attempt(program, found.states, taken, start, depth)
    if after >= 0:
        cursor[MATCHES] += 1
        cursor[TAKEN] += depth
    return after


@device_no_refcount
def _attempt(
    program: PatternTables,
    rows: PartitionedRows,
    found: MatchedRows,
    code: ConditionCode,
    room: SearchRoom,
    most_steps: Any,
) -> Any:
    """Make or resume one attempt; return the reason to stop, UNDECIDED, or DONE when the next one may begin."""
    cursor, partitions = found.cursor, rows.partitions
    at, start = cursor[PART] * PARTITION, cursor[START]
    if cursor[PHASE] == BEGIN:
        if (cursor[MATCHES] + 1) * MATCH > len(found.matches):
            return np.int64(FULL)
        if cursor[TAKEN] + partitions[at + SEEN] - start > len(found.states):
            return np.int64(FULL)
        _begin(program, code, room, cursor, start == partitions[at + FIRST] and partitions[at + WHOLE] != 0)
    end = _go_on(program, rows, code, room, cursor, most_steps)
    if end == ASKING:
        return np.int64(ASK)
    if end == ENDLESS:
        return np.int64(TOO_MANY_STEPS)
    if end == DIVIDING:
        return np.int64(BY_ZERO)
    cursor[PHASE] = BEGIN
    if end == UNDECIDED:
        return end
    if end == FAIL:
        found.failed[start] = 1
        cursor[FRUITLESS] += cursor[STEPS] if cursor[STEPS] > NOTE_AFTER_STEPS else 0
        if cursor[FRUITLESS] > most_steps + PER_ROW * (partitions[at + LAST] - partitions[at + FIRST]):
            return np.int64(TOO_MANY_STEPS)
        cursor[START] += 1
        return np.int64(DONE)
    partitions[at + NUMBER] += 1
    cursor[FRUITLESS] = 0
    after = _write(program, found, room, partitions[at + NUMBER])
    if after < 0:
        return -after
    cursor[START] = after
    return np.int64(DONE)


@bare_kernel
def search(
    program: PatternTables,
    rows: PartitionedRows,
    found: MatchedRows,
    code: ConditionCode,
    room: SearchRoom,
    most_steps: int,
) -> int:
    """Find the matches of all partitions from the cursor on; return why it stopped."""
    cursor, partitions = found.cursor, rows.partitions
    while cursor[PART] * PARTITION < len(partitions):
        at = cursor[PART] * PARTITION
        if cursor[START] < 0:
            cursor[START] = partitions[at + ATTEMPT]
        while cursor[START] < partitions[at + SEEN]:
            reason = _attempt(program, rows, found, code, room, most_steps)
            if reason == UNDECIDED:
                break
            if reason != DONE:
                return int(reason)
        partitions[at + ATTEMPT] = cursor[START]
        cursor[PART] += 1
        cursor[START], cursor[FRUITLESS] = -1, 0
    return DONE
