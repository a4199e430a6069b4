"""The four policies of a situation: when matching sets are selected, how many, which, and what becomes of the events.

They work per partition of the context (semantics.md 6; EPN §2.2). Words used here: a *slot* is the place of one
participant in a candidate; a *candidate* has an event for each slot and satisfies the assertion; candidates stand in
the order of the places of their events in the stream, slot by slot as declared.
"""

from __future__ import annotations

from enum import Enum


class Evaluation(Enum):
    """When matching sets are selected.

    `IMMEDIATE`: at each arriving event, among the candidates that it is a member of.
    `DEFERRED`: when the partition closes, among all candidates; as long as the last selection consumed events and
    the cardinality is unrestricted, selection is repeated among the remaining candidates.
    """

    IMMEDIATE = "immediate"
    DEFERRED = "deferred"


class Cardinality(Enum):
    """How many matching sets a partition gives: `SINGLE`, the smallest of the first selection; or all selected."""

    SINGLE = "single"
    UNRESTRICTED = "unrestricted"


class Repeated(Enum):
    """Which of several events of its type fill a slot. Selection walks the slots in declared order.

    `FIRST` (`LAST`): keep the remaining candidates with the earliest (latest) event in this slot.
    `EVERY`: continue separately for each event in this slot.
    `OVERRIDE`: the slot sees only the newest event of its type in the partition, whether or not it satisfies the
    assertion. When that event is consumed the slot is empty until a newer one arrives.
    """

    FIRST = "first"
    LAST = "last"
    EVERY = "every"
    OVERRIDE = "override"


class Consumption(Enum):
    """What becomes of the event in a slot of a selected set: `CONSUME`, it leaves the partition; `REUSE`, it stays.

    All sets selected at one moment are selected from the same events, and consume theirs after that. What is consumed
    through one slot is gone for all of them.
    """

    CONSUME = "consume"
    REUSE = "reuse"
