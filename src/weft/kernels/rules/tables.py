"""Layout of the tables that rules are executed from: all rows of a table have one width, in one flat array."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Bytes = npt.NDArray[np.uint8]
Int32s = npt.NDArray[np.int32]
Int64s = npt.NDArray[np.int64]
Floats = npt.NDArray[np.float64]

# A row: the content of rules that differ only in their own constants. Steps are the terminator and the look-backs.
# Conditions are tests of the values of summaries. The extents of summaries are those that conditions need, up to
# SHOWN_AT, and then those that only fields need. FEEDS is the type under which the defined event is stored, or -1. A
# plain rule feeds no type and has no summaries, its fields are attributes, and if it consumes, it has one look-back.
# ALONE distinguishes rows that must have one rule each. The rules of a row are MEMBERS from MEMBERS_AT on. SORTED_BY is
# the look-back (0: none) that they are sorted by: by the constant of its only test with a constant of their own, so
# that those that a number satisfies come first, or if it has no such test, by its window, the longest first.
STEPS_AT, STEPS, CONDITIONS_AT, OWN_CONDITIONS_AT, CONDITIONS_END, TESTED_AT, SHOWN_AT, SHOWN_END = range(8)
FIELDS_AT, FIELDS_END, FEEDS, FEED_AT, LABELS, CONSUMES, IS_PLAIN, ALONE = range(8, 16)
SORTED_BY, MEMBERS_AT, MEMBERS = range(16, 19)
ROW = 19
# Own data of a rule: for each look-back the ticks of its window, and the mark of events that were consumed from
# it; then constants, two words each.
TICKS, MARK = range(2)
OWN = 2  # words of a look-back
# A step. Its window is as long as a rule says, between SHORTEST and LONGEST. LISTED is the chain its events are found
# by, or -1; events before number FLOOR are ignored. From OWN_TESTS_AT on its tests have own constants of the
# rules. CONSUMED says whether events are consumed from it. Steps of one SOURCE (-1: none) find the same events at a
# terminator.
TYPE, ANCHOR, LONGEST, SHORTEST, PICK, COUNT, LISTED, KEYS_AT, KEYS_END = range(9)
TESTS_AT, OWN_TESTS_AT, TESTS_END, ABSENCES_AT, ABSENCES_END, CONSUMED, FLOOR, SOURCE = range(9, 17)
STEP = 17
EACH, FIRST, LAST, STARTS = range(4)  # what a look-back picks; the terminator is the event that it starts at
# An extent with the events in it: of an absence, or of a summary, which has a function and a column (-1: none). With a
# SERIES (else -1) the keys are those of its lanes. Extents of one MEMO (-1: none) have the same value at a terminator.
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

# A type of events in the store: where its events are (BASE), how many (HELD), how many were removed (GONE). With
# LATEST rules only read the latest one before a terminator.
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
USED_LANES, USED_ROOM = range(2)  # used lanes, and used length of their entries
MEMO = 3  # the event for which the value is valid, kind and word
# An access to the rules that start at a type: all of them, or by a column. The beginnings of its parts of other tables
# come first; then the SIZE of its lookup table, and fields of some kinds of access.
A_KIND, A_COLUMN, A_MEMBERS, A_CUTS, A_NODES, A_PLACES = range(6)
A_SIZE, A_WHOLES, A_FLOATS, A_LEAVES, A_LOW, A_TAG = range(6, 12)
ACCESS = 12
ALWAYS, BY_KEY, BY_RANGE, BY_CUTS = range(4)
P_WORD, P_GROUP = range(2)  # a place of a table for BY_KEY: the word of a value, and its kind below the group's code
PLACE, KIND_BITS = 2, 3

# A frame: the event that a step is bound to, and the state of its search. SET is how many rules search; their windows
# all reach from HIGH back to NEAR.
BOUND, AT, STOP, LEFT, DIRECTION, FOUND, OFFSET, BY_LIST, HIGH, NEAR, FLOOR_AT, SET = range(12)
FRAME = 12
DOWN, UP, COUNTING = -1, 1, -2

# A queued defined event: type, start, place of its positions; then its values.
Q_TYPE, Q_START, Q_POSITIONS = range(3)
QUEUED = 3

# The control array. Rules from PICKED_AT to RUN_END are searched for together; ROW_AT is where their row begins. The
# set of each step has SPAN places. KNOWN is the source whose events are known at this terminator. A scan of extents
# continues with another mode (AFTER) and says whether an absence is violated (THERE); CLEARED is the candidate
# without violations. SORTED is SORTED_BY of their row if all its rules are searched for, else 0. STEPS_LEFT is how
# many candidates are visited until the kernel pauses; then it RESUMES in the middle of a search.
EVENT, TIME, SERIAL, QUEUE_AT, QUEUE_END, PICKED, PICKED_AT, RUN_END, ROW_AT, DEPTH, MODE = range(11)
ENTRIES, LISTS, PENDING, POSITIONS, OUT, OUT_POSITIONS, WANTED, WANTED_POSITIONS, LISTED_TO = range(11, 20)
KNOWN, KNOWN_BEGIN, KNOWN_END, SCAN_AT, SCAN_END, SCAN_BASE, AFTER, THERE, CLEARED, SPAN, ONLY_COUNTS, SORTED = range(
    20, 32
)
STEPS_LEFT, RESUMES = range(32, 34)
CONTROLS = 34
# Modes. SCAN evaluates extents and continues with another mode; EMIT, CHECK and WRITE are parts of firing.
FETCH, START, STARTED, OPEN, ADVANCE, JUDGED, EMIT, CHECK, WRITE, SCAN = range(10)
# Why the kernel returns.
DONE, OUTPUT_FULL, STORE_FULL, LISTS_FULL, PENDING_FULL, QUEUE_FULL, POSITIONS_FULL, SERIES_FULL, PAUSE = range(9)


class Batch(NamedTuple):
    """Events that rules read: their types by number, times, and values, one column after the other in a row."""

    types: Int32s
    times: Int64s
    starts: Int64s
    positions: Int64s
    values: Int64s
    width: int  # words of a row


class Rules(NamedTuple):
    """The content of rules. Those that differ only in names and own constants share a row."""

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
    """The rules by the constants of their terminators.

    The code of a group of rules is the number of its only rule plus 1, or the complement of the place of the group
    among the members of its access, which has its size and its rules; 0 is the code of an empty group.
    """

    access: Int64s
    wholes: Int64s
    floats: Floats
    cuts: Int64s  # the same cuts as values, for decimals
    nodes: Int64s
    members: Int32s
    places: Int64s


class Store(NamedTuple):
    """Stored events, by type."""

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
    positions: Int64s  # lists of positions, each preceded by its length
    marks: Int64s  # for each event bits of the steps that consumed it, and as many tentative ones
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
    """Scratch arrays."""

    frames: Int64s
    sets: Int32s  # rules by number: those that start at an event, then those that continue after each step
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
