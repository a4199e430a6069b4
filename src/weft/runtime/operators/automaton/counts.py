"""Exact numbers of matches, computed from the match graph by paths, or with conditions by groups."""

from __future__ import annotations

import warnings

import numpy as np

from weft.errors import InputError, ManyMatchesWarning
from weft.kernels.automaton import tecs
from weft.kernels.automaton.counting import FILLED, MARKS, Counts, count_event
from weft.kernels.automaton.enumerate import OPEN
from weft.kernels.automaton.filtered import PAUSE_AFTER_NODES
from weft.runtime.operators.automaton.conditions import ConditionTables
from weft.runtime.operators.automaton.groups import GroupedCounts, Grouping, TooManyGroups

MOST_BYTES = 2 << 30  # for the numbers of all nodes
# LISTED: matches of one event after which all are counted; MANY: how many cause a warning.
LISTED, MANY = 1 << 20, 10_000_000
_WORD_BITS = 64
_CURE = "bound them with WITHIN, or keep fewer of an event's matches with NEXT, LAST, MAX or LIMIT"


class PathCounts:
    """The number of paths from each node of a ring. It is derived from the nodes, so it is not part of the state."""

    def __init__(self, query: str) -> None:
        self._query = query
        self.arrays = _empty(0, 1)

    def fit(self, ring: int) -> Counts:
        """Return the arrays for a ring of `ring` nodes."""
        if len(self.arrays.known) != ring:
            self.arrays = _empty(ring, self.arrays.size)._replace(total=self.arrays.total)
        return self.arrays

    def take(self) -> int:
        """Return the number of matches counted since the last call."""
        total = int.from_bytes(self.arrays.total.astype("<u8").tobytes(), "little")
        self.arrays.total[:] = 0
        return total

    def forget(self) -> None:
        """Clear all numbers, since the nodes have new ids."""
        self.arrays.marks[FILLED] = 0
        self.arrays.known[:] = 0

    def widen(self) -> None:
        """Make numbers wider; those of nodes are computed again when they are needed."""
        old, ring = self.arrays, len(self.arrays.known)
        size = 2 * old.size
        if 16 * size * ring > MOST_BYTES:
            digits = int(old.size * _WORD_BITS * np.log10(2))
            raise InputError(
                f"query {self._query!r} has too many matches to count: their number has more than {digits:,} digits; "
                + _CURE
            )
        self.arrays = _empty(ring, size)
        self.arrays.total[: old.size + 1] = old.total

    def of_event(self, state: tecs.State, control: tecs.Int64s, horizon: int) -> int:
        """Return how many matches end at the current event, while they are being enumerated."""
        stack = np.zeros(len(state.stack), np.int64)  # the enumeration uses the stack of the state
        while True:
            apart = state._replace(stack=stack)
            answer = count_event(apart, control, self.fit(len(state.starts)), horizon)
            if answer == tecs.DONE:
                return self.take()
            if answer == tecs.WIDER:
                self.widen()
            else:
                stack = np.zeros(2 * len(stack), np.int64)


def _empty(ring: int, size: int) -> Counts:
    return Counts(
        paths=np.zeros(ring * size, np.uint64),
        eldest=np.zeros(ring, np.int64),
        inside=np.zeros(ring * size, np.uint64),
        known=np.zeros(ring, np.int64),
        marks=np.zeros(MARKS, np.int64),
        total=np.zeros(size + 1, np.uint64),
        size=size,
    )


class MatchCounts:
    """Counts the matches of one query: by enumeration while they are few, which is fastest, else from the graph."""

    # Nodes that are enumerated at an event before counting starts; with conditions more, until groups paid off once.
    first_walked = 64
    most_walked = PAUSE_AFTER_NODES

    def __init__(self, query: str, conditions: ConditionTables) -> None:
        self.paths = PathCounts(query)
        self.most = self.most_walked if conditions else self.first_walked
        self._grouped_counts = GroupedCounts(conditions) if Grouping.suits(conditions.compiled) else None
        self._grouped = 0
        self._warned = False  # about very many matches

    def take(self) -> int:
        """Return the number of matches counted without enumeration since the last call."""
        grouped, self._grouped = self._grouped, 0
        return grouped + self.paths.take()

    def forget(self) -> None:
        """Clear all numbers, since the nodes have new ids."""
        self.paths.forget()
        if self._grouped_counts is not None:
            self._grouped_counts.forget()

    def count_in_groups(self, state: tecs.State, control: tecs.Int64s, batch: tecs.Batch) -> None:
        """Count the matches at the current event by groups instead of enumeration, unless they are too many."""
        if self._grouped_counts is None:
            return
        try:
            found = self._grouped_counts.count(state, control, batch)
        except TooManyGroups:
            self._grouped_counts, self.most = None, self.most_walked
            return
        self._grouped += found
        self.most = self.first_walked
        control[tecs.COUNTED] -= control[tecs.EMITTED]
        control[[tecs.FINAL, tecs.STACK, tecs.CURRENT]] = control[tecs.FINALS], 0, OPEN
        control[tecs.EMITTED] = found > 0

    def warn_of_many(self, query: str, state: tecs.State, control: tecs.Int64s, batch: tecs.Batch) -> None:
        """Warn once when very many matches of one event remain to be enumerated."""
        if self._warned or control[tecs.EMITTED] < LISTED:
            return
        event = int(control[tecs.EVENT]) - 1
        number = self.paths.of_event(state, control, int(batch.horizons[event]))
        if number > MANY:
            self._warned = True
            shown = f"{number:,}" if number < 10**30 else f"about 10^{int((number.bit_length() - 1) * np.log10(2))}"
            text = f"query {query!r}: {shown} combinations of events end at position {batch.positions[event]} alone"
            warnings.warn(f"{text}; {_CURE}, or count them with weft.count", ManyMatchesWarning, stacklevel=2)
