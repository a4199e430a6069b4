"""Arrays of the row pattern kernels: a program, sorted partitions, and the matches that are found."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from weft.kernels.jit import always_inline

Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Float64s = npt.NDArray[np.float64]
UInt8s = npt.NDArray[np.uint8]

ACCEPT, ACCEPT_AT_END = -1, -2  # as in plan/row_patterns/program.py
FAIL, UNDECIDED = -3, -4
# Where the next attempt starts after a match.
PAST_LAST, NEXT_ROW, TO_FIRST, TO_LAST = range(4)
# Why a kernel returns: all partitions are done; there is no room for the next match; SKIP TO a variable that the match
# lacks, or that would start the same match again; too many steps; a condition that it cannot evaluate.
DONE, FULL, NOT_MAPPED, NO_PROGRESS, TOO_MANY_STEPS, ASK = range(6)
# Words of a cursor: the partition and row of the attempt, its phase; matches and matched rows written. While searching:
# rows taken, steps made, the state that is tried, the condition that is asked for and the answer, a stamp of the
# attempt, and the steps of attempts that failed since the last match.
PART, START, PHASE, MATCHES, TAKEN, DEPTH, STEPS, TRIED, CONDITION, ANSWER, STAMP, FRUITLESS = range(12)
CURSOR = 12
# Phases of an attempt: it begins; it goes on after a transition; a condition was answered; the match is to be written.
BEGIN, GOING, ANSWERED, WRITING = range(4)
# Words of a partition: its rows from `FIRST` up to `LAST`, of which up to `SEEN` may be matched; the next attempt and
# the matches so far; whether its first row is the first of all.
FIRST, LAST, SEEN, ATTEMPT, NUMBER, WHOLE = range(6)
PARTITION = 6
# Words of a match: its partition, first row, number of rows, number in the partition, and the place of its states.
OF, ROW, ROWS, COUNTED, PLACE = range(5)
MATCH = 5


class PatternTables(NamedTuple):
    """A program: transitions of state `q` are `targets[offsets[q]:offsets[q + 1]]`."""

    offsets: Int64s
    targets: Int64s
    states: int
    words: int  # of a set of states
    variable_of: Int64s
    skip_to: UInt8s  # states whose rows the next attempt may start at
    skip: int


class PartitionedRows(NamedTuple):
    """Rows sorted by partition; `sets` has the states that may take a row and still succeed, as bits."""

    partitions: Int64s
    sets: Int64s
    limits: Int64s  # of an attempt at each row: the match ends before this row; empty: no limit
    earliest: Int32s  # where a match can end at the earliest, by row and state; empty: not needed
    is_open: bool  # more rows may come


class MatchedRows(NamedTuple):
    """Matches, the states of their rows, and rows where attempts failed."""

    cursor: Int64s
    matches: Int64s
    states: Int32s
    failed: UInt8s


@always_inline
def has_state(sets: Int64s, words: Any, row: Any, state: Any) -> Any:
    """Whether a state may take a row."""
    return sets[row * words + (state >> 6)] >> (state & 63) & 1 != 0


@always_inline
def next_attempt(program: PatternTables, states: Int32s, place: Any, start: Any, rows: Any) -> Any:
    """Return where the attempt after a match starts, or minus the reason against it."""
    skip = program.skip
    if rows == 0 or skip == NEXT_ROW:
        return start + 1
    if skip == PAST_LAST:
        return start + rows
    found = np.int64(-1)
    for k in range(rows):
        if program.skip_to[states[place + k]] != 0:
            found = np.int64(k)
            if skip == TO_FIRST:
                break
    if found < 0:
        return np.int64(-NOT_MAPPED)
    if found == 0:
        return np.int64(-NO_PROGRESS)
    return start + found


@always_inline
def write_match(matches: Int64s, k: Any, partition: Any, start: Any, rows: Any, number: Any, place: Any) -> None:
    """Write a match at a place."""
    at = k * MATCH
    matches[at + OF], matches[at + ROW], matches[at + ROWS] = partition, start, rows
    matches[at + COUNTED], matches[at + PLACE] = number, place
