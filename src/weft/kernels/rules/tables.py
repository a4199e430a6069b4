"""The tables that rules are run from: what their numbers are. Rows of a table are of one width, in one flat array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# A row: what rules say that differ in nothing but constants of their own. Steps are the terminator and the look-backs.
# Conditions are tests of the values of summaries. The extents of summaries are those that conditions need, up to
# SHOWN_AT, and then those that only fields need. FEEDS is the type under which the defined event is kept, or -1. A
# plain rule keeps nothing and has no summaries, its fields are attributes, and if it consumes, it has one look-back.
# ALONE tells rows apart that must have one rule each. The rules of a row are MEMBERS from MEMBERS_AT on. SORTED_BY is
# the look-back (0: none) that they are sorted by: by the constant of its only test with a constant of their own, so
# that those that a number suits come first, or if it has no such test, by its window, the longest first.
STEPS_AT, STEPS, CONDITIONS_AT, OWN_CONDITIONS_AT, CONDITIONS_END, TESTED_AT, SHOWN_AT, SHOWN_END = range(8)
FIELDS_AT, FIELDS_END, FEEDS, FEED_AT, LABELS, CONSUMES, IS_PLAIN, ALONE = range(8, 16)
SORTED_BY, MEMBERS_AT, MEMBERS = range(16, 19)
ROW = 19
# What a rule has of its own: for each look-back the ticks of its window, and the mark of events that were consumed from
# it; then constants, two words each.
TICKS, MARK = range(2)
OWN = 2  # words of a look-back
# A step. Its window is as long as a rule says, between SHORTEST and LONGEST. LISTED is the chain its events are found
# by, or -1; events before number FLOOR are not seen. From OWN_TESTS_AT on its tests have constants that rules have of
# their own. CONSUMED says whether events are consumed from it. Steps of one SOURCE (-1: none) find the same events at a
# terminator.
TYPE, ANCHOR, LONGEST, SHORTEST, PICK, COUNT, LISTED, KEYS_AT, KEYS_END = range(9)
TESTS_AT, OWN_TESTS_AT, TESTS_END, ABSENCES_AT, ABSENCES_END, CONSUMED, FLOOR, SOURCE = range(9, 17)
STEP = 17
EACH, FIRST, LAST, STARTS = range(4)  # what a look-back picks; the terminator is the event that it starts at
# An extent with the events in it: of an absence, or of a summary, which has a function and a column (-1: none). With a
# SERIES (else -1) the keys are those of its lanes. Extents of one MEMO (-1: none) are worth the same at a terminator.
E_TYPE, E_BETWEEN, E_FIRST, E_SECOND, E_LISTED, E_KEYS_AT, E_KEYS_END, E_TESTS_AT, E_TESTS_END = range(9)
E_FUNCTION, E_COLUMN, E_FLOOR, E_SERIES, E_MEMO = range(9, 14)
EXTENT = 14
EXISTS, NUMBER, PRESENT, SUM, AVERAGE, LEAST, GREATEST = range(7)
# A test: a comparison of a column of the current event (or of a summary: -1 - its number) with an operand, or a piece
# of code. An operand is a column of a step's event, a constant (CONSTANT, kind, word), or one of the rule's own
# (OF_RULE, its place).
T_OPERATOR, T_COLUMN, T_SOURCE, T_A, T_B = range(5)
TEST = 5
BY_CODE = 6  # as the operator: the code from T_A to T_B
CONSTANT, AT_HAND, OF_RULE = -1, -2, -3  # as the source of an operand
KEY = 3  # an operand
# A field: its kind, and code or an operand (SOURCE >= 0).
F_KIND, F_SOURCE, F_COLUMN, F_CODE_AT, F_CODE_END = range(5)
FIELD = 5
# Where a kept column of a defined event comes from: a field by number, or one of these.
FROM_NOTHING, FROM_TIME, FROM_NAME = -1, -2, -3

# A type of events in the store: where its events are (BASE), how many (HELD), how many there were before (GONE). With
# LATEST rules look for nothing but the latest one before a terminator.
BASE, HELD, GONE, ROOM, CHAINS_AT, CHAINS_END, REACH, COLUMNS_AT, COLUMNS_END, ACCESS_AT, ACCESS_END, ORDERED = range(
    12
)
SERIES_AT, SERIES_END, LATEST = range(12, 15)
KIND_OF_EVENT = 15
# A chain: its id, and where its columns are, which make up its key.
C_ID, C_BEGIN, C_END = range(3)
CHAIN = 3
# A list of the events of one chain and one key: the word it is found by, and the key's last value.
WORD, OF_CHAIN, KEY_KIND, KEY_WORD, BEGIN, LENGTH, CAPACITY, OF_TYPE = range(8)
HEAD = 8
ENTRY = 2  # time and number
# A series of a type's events: tests, the columns of its key, the column of its values (-1: none), its first event.
S_TESTS_AT, S_TESTS_END, S_KEYS_AT, S_KEYS_END, S_COLUMN, S_FLOOR = range(6)
SERIES = 6
SLOT_SERIES, SLOT_LANE = range(2)  # a place of the table of lanes: the series, and its lane and 1
SLOT = 2
USED_LANES, USED_ROOM = range(2)  # how many lanes there are, and how much of their arena is used
MEMO = 3  # the event for which it is known, kind and word
# An access to the rules that start at a type: all of them, or by a column. Where its own part of other tables begins
# comes first; then the SIZE of what it looks into, and what only some kinds of access have.
A_KIND, A_COLUMN, A_MEMBERS, A_CUTS, A_NODES, A_PLACES = range(6)
A_SIZE, A_WHOLES, A_FLOATS, A_LEAVES, A_LOW, A_TAG = range(6, 12)
ACCESS = 12
ALWAYS, BY_KEY, BY_RANGE, BY_CUTS = range(4)
P_WORD, P_GROUP = range(2)  # a place of a table for BY_KEY: the word of a value, and its kind below the group's code
PLACE, KIND_BITS = 2, 3

# A frame: what a step is bound to, and where its search stands. SET is how many rules search; each of their windows
# reaches from HIGH back to NEAR.
BOUND, AT, STOP, LEFT, DIRECTION, FOUND, OFFSET, BY_LIST, HIGH, NEAR, FLOOR_AT, SET = range(12)
FRAME = 12
DOWN, UP, COUNTING = -1, 1, -2

# Of a defined event that waits to be seen: type, start, place of its positions; then its values.
Q_TYPE, Q_START, Q_POSITIONS = range(3)
QUEUED = 3

# The control array. Rules from PICKED_AT to RUN_END are searched for together; ROW_AT is where their row begins. The
# set of each step has SPAN places. KNOWN is the source whose events are known at this terminator. A scan of extents
# goes on with another mode (AFTER) and says whether there was what must not be (THERE); CLEARED is the candidate
# that is free of it. SORTED is SORTED_BY of their row if all rules of that are searched for, else 0. STEPS_LEFT is how
# many candidates are looked at until the kernel pauses; then it RESUMES in the middle of a search.
EVENT, TIME, SERIAL, QUEUE_AT, QUEUE_END, PICKED, PICKED_AT, RUN_END, ROW_AT, DEPTH, MODE = range(11)
ENTRIES, LISTS, PENDING, POSITIONS, OUT, OUT_POSITIONS, WANTED, WANTED_POSITIONS, LISTED_TO = range(11, 20)
KNOWN, KNOWN_BEGIN, KNOWN_END, SCAN_AT, SCAN_END, SCAN_BASE, AFTER, THERE, CLEARED, SPAN, ONLY_COUNTS, SORTED = range(
    20, 32
)
STEPS_LEFT, RESUMES = range(32, 34)
CONTROLS = 34
# Modes. SCAN looks at some extents and goes on with another mode; EMIT, CHECK and WRITE are parts of firing.
FETCH, START, STARTED, OPEN, ADVANCE, JUDGED, EMIT, CHECK, WRITE, SCAN = range(10)
# Why the kernel returns.
DONE, OUTPUT_FULL, STORE_FULL, LISTS_FULL, PENDING_FULL, QUEUE_FULL, POSITIONS_FULL, SERIES_FULL, PAUSE = range(9)


class Batch(NamedTuple):
    """Events that some rule looks at: their types by number, times, and values, one column after the other in a row."""

    types: Int32s
    times: Int64s
    starts: Int64s
    positions: Int64s
    values: Int64s
    width: int  # words of a row


class Rules(NamedTuple):
    """What rules say. Those that differ in nothing but their names and constants have one row."""

    rows: Int64s
    steps: Int64s
    extents: Int64s
    tests: Int64s
    keys: Int64s
    code: Int64s
    fields: Int64s
    feeds: Int64s
    row_of: Int32s  # by the number of a rule
    own: Int64s
    own_at: Int64s  # by the number of a rule
    members: Int32s  # rules by row


class Index(NamedTuple):
    """Which rules start at an event.

    The code of a group of rules is the number of the only one and 1, or the complement of where among the members of
    its access the group is: its size, and its rules; 0 is the code of none.
    """

    access: Int64s
    wholes: Int64s
    floats: Floats
    cuts: Int64s  # the same cuts as values, for decimals
    nodes: Int64s
    members: Int32s
    places: Int64s


class Store(NamedTuple):
    """Events that were seen, by type."""

    types: Int64s
    columns: Int64s
    chains: Int64s
    chain_columns: Int64s
    times: Int64s
    starts: Int64s
    origins: Int64s  # a position, or -1 - place of the positions of a defined event
    values: Int64s
    heads: Int64s
    entries: Int64s
    positions: Int64s  # a number, and so many positions
    marks: Int64s  # for each event bits of the steps it was consumed from, and as many of those that just do
    texts: Bytes
    text_offsets: Int64s
    width: int  # words of an event's values
    mark_words: int  # and of its marks


class Lanes(NamedTuple):
    """Series of events, for summaries: a lane for each value of their keys (`weft.kernels.rules.series`)."""

    series: Int64s
    columns: Int64s
    order: Int64s  # series by type
    stride: int  # words of a key
    slots: Int64s
    keys: Int64s
    counts: Int64s
    lanes: Int64s
    times: Int64s
    records: Int64s
    numbers: Floats  # the records, read as floats


class Work(NamedTuple):
    """Room to work in."""

    frames: Int64s
    sets: Int32s  # rules by number: those that start at an event, then those that go on with the event of each step
    queue: Int64s
    stack: Int64s
    results: Int64s
    partials: Floats
    counts: Int64s
    pending: Int64s  # marks to be set when a rule is done at a terminator: event and bit
    fixed: Int64s  # positions and labels of what is bound while the last look-back is searched; then values of fields
    memos: Int64s


class Output(NamedTuple):
    """Firings: the rule, times, the positions with codes of their variables; and fields, one column after the other."""

    rows: Int32s
    starts: Int64s
    ends: Int64s
    offsets: Int64s
    positions: Int64s
    labels: Int64s
    kinds: Bytes
    words: Int64s
