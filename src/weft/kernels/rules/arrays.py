"""Numbers of the arrays in the array table of the rule kernels, in the order of the tuples that contain them."""

from __future__ import annotations

import numpy as np

from weft.kernels.jit import always_inline
from weft.kernels.machine.machine import NOTES
from weft.kernels.memory.room import NOTE, lend
from weft.kernels.rules import tables as t

BATCH = NOTES  # after the arrays of the machine
BATCH_TYPES, BATCH_TIMES, BATCH_STARTS, BATCH_POSITIONS, BATCH_VALUES, BATCH_WIDTH = range(BATCH, BATCH + 6)
RULES = BATCH + 6
ROWS, STEPS, EXTENTS, TESTS, KEYS, CODE, FIELDS, FEEDS, ROW_OF, OWN, OWN_AT, BY_ROW = range(RULES, RULES + 12)
INDEX = RULES + 12
ACCESS, WHOLES, FLOATS, CUTS, NODES, MEMBERS, PLACES = range(INDEX, INDEX + 7)
STORE = INDEX + 7
TYPES, COLUMNS, CHAINS, CHAIN_COLUMNS, TIMES, STARTS, ORIGINS, VALUES = range(STORE, STORE + 8)
HEADS, ENTRIES, POSITIONS, MARKS, TEXTS, TEXT_OFFSETS, WIDTH, MARK_WORDS = range(STORE + 8, STORE + 16)
LANES = STORE + 16
SERIES, KEY_COLUMNS, ORDER, STRIDE, SLOTS, LANE_KEYS = range(LANES, LANES + 6)
LANE_COUNTS, LANE, LANE_TIMES, RECORDS, NUMBERS = range(LANES + 6, LANES + 11)
WORK = LANES + 11
FRAMES, SETS, QUEUE, STACK, RESULTS, PARTIALS, COUNTS, PENDING, FIXED, MEMOS = range(WORK, WORK + 10)
OUTPUT = WORK + 10
OUT_ROWS, OUT_STARTS, OUT_ENDS, OUT_OFFSETS, OUT_POSITIONS, OUT_LABELS, OUT_KINDS, OUT_WORDS = range(OUTPUT, OUTPUT + 8)
CONTROL = OUTPUT + 8
NOTED = CONTROL + 1


def new_room() -> t.Int64s:
    """Allocate an array table for the rule kernels."""
    return np.zeros(NOTED * NOTE, np.int64)


@always_inline
def lend_to_machine(room: t.Int64s, rules: t.Rules, store: t.Store, work: t.Work) -> None:
    """Register the arrays of the machine. Its slots are frames; it has no lists and no regular expressions."""
    texts = store.texts, store.text_offsets, store.texts, 0
    bound = work.frames, t.FRAME, work.results, work.stack
    lend(room, 0, (rules.code, work.stack, store.values, store.width, *bound, *texts))


def _fits() -> bool:
    tuples = (t.Batch, t.Rules, t.Index, t.Store, t.Lanes, t.Work, t.Output)
    firsts = (BATCH, RULES, INDEX, STORE, LANES, WORK, OUTPUT, CONTROL)
    return np.diff(firsts).tolist() == [len(each._fields) for each in tuples]


assert _fits(), "a tuple has another number of arrays"
