"""The room of the kernels of rules: the numbers of the arrays in it, in the order of the tuples they come in."""

from __future__ import annotations

import numpy as np

from weft.kernels.rules import tables as t

BATCH = 0
BATCH_TYPES, BATCH_TIMES, BATCH_STARTS, BATCH_POSITIONS, BATCH_VALUES, BATCH_WIDTH = range(6)
RULES = 6
ROWS, STEPS, EXTENTS, TESTS, KEYS, CODE, FIELDS, FEEDS, ROW_OF, OWN, OWN_AT, BY_ROW = range(RULES, RULES + 12)
INDEX = 18
ACCESS, WHOLES, FLOATS, NODES, MEMBERS, PLACES = range(INDEX, INDEX + 6)
STORE = 24
TYPES, COLUMNS, CHAINS, CHAIN_COLUMNS, TIMES, STARTS, ORIGINS, VALUES = range(STORE, STORE + 8)
HEADS, ENTRIES, POSITIONS, MARKS, TEXTS, TEXT_OFFSETS, WIDTH, MARK_WORDS = range(STORE + 8, STORE + 16)
LANES = 40
SERIES, KEY_COLUMNS, ORDER, STRIDE, SLOTS, LANE_KEYS = range(LANES, LANES + 6)
LANE_COUNTS, LANE, LANE_TIMES, RECORDS, NUMBERS = range(LANES + 6, LANES + 11)
WORK = 51
FRAMES, SETS, QUEUE, STACK, RESULTS, PARTIALS, COUNTS, PENDING, FIXED, MEMOS = range(WORK, WORK + 10)
OUTPUT = 61
OUT_ROWS, OUT_STARTS, OUT_ENDS, OUT_OFFSETS, OUT_POSITIONS, OUT_LABELS, OUT_KINDS, OUT_WORDS = range(OUTPUT, OUTPUT + 8)
CONTROL = 69
NOTES = 70


def _fits() -> bool:
    tuples = (t.Batch, t.Rules, t.Index, t.Store, t.Lanes, t.Work, t.Output)
    firsts = (BATCH, RULES, INDEX, STORE, LANES, WORK, OUTPUT, CONTROL)
    return np.diff(firsts).tolist() == [len(each._fields) for each in tuples]


assert _fits(), "a tuple has another number of arrays"
