"""Numbers of matches, exact whatever their size, told from the match graph: by paths, or under conditions in groups."""

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
LISTED, MANY = 1 << 20, 10_000_000  # matches of one event that are listed before it is asked whether there are many
_WORD_BITS = 64
_CURE = "bound them with WITHIN, or keep fewer of an event's matches with NEXT, LAST, MAX or LIMIT"


class PathCounts:
    """How many paths each node of a ring has. They follow from the nodes, so they are no part of the state."""

    def __init__(self, query: str) -> None:
        self._query = query
        self.arrays = _empty(0, 1)

    def fit(self, ring: int) -> Counts:
        """The arrays, for a ring of so many nodes."""
        if len(self.arrays.known) != ring:
            self.arrays = _empty(ring, self.arrays.size)._replace(total=self.arrays.total)
        return self.arrays

    def take(self) -> int:
        """The matches counted since this was asked last."""
        total = int.from_bytes(self.arrays.total.astype("<u8").tobytes(), "little")
        self.arrays.total[:] = 0
        return total

    def forget(self) -> None:
        """The nodes have other ids now."""
        self.arrays.marks[FILLED] = 0
        self.arrays.known[:] = 0

    def widen(self) -> None:
        """Make room for larger numbers; nodes get theirs again when they are asked for."""
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
        """How many matches end at the current event, while they are being listed."""
        stack = np.zeros(len(state.stack), np.int64)  # that of the state is in use
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
    """Counts the matches of one query: few by walking, as that is fastest, many without."""

    # Nodes that are walked at an event first; under conditions more, until groups have been worth it once.
    few = 64
    patience = PAUSE_AFTER_NODES

    def __init__(self, query: str, conditions: ConditionTables) -> None:
        self.paths = PathCounts(query)
        self.most = self.patience if conditions else self.few
        self._groups = GroupedCounts(conditions) if Grouping.suits(conditions.compiled) else None
        self._grouped = 0
        self._told = False  # that there are many

    def take(self) -> int:
        """The matches counted without walking since this was asked last."""
        grouped, self._grouped = self._grouped, 0
        return grouped + self.paths.take()

    def forget(self) -> None:
        """The nodes have other ids now."""
        self.paths.forget()
        if self._groups is not None:
            self._groups.forget()

    def walk_no_more(self, state: tecs.State, control: tecs.Int64s, batch: tecs.Batch) -> None:
        """Count what ends at the current event in groups, if there are few, instead of walking on."""
        if self._groups is None:
            return
        try:
            found = self._groups.count(state, control, batch)
        except TooManyGroups:
            self._groups, self.most = None, self.patience
            return
        self._grouped += found
        self.most = self.few
        control[tecs.COUNTED] -= control[tecs.EMITTED]
        control[[tecs.FINAL, tecs.STACK, tecs.CURRENT]] = control[tecs.FINALS], 0, OPEN
        control[tecs.EMITTED] = found > 0

    def tell_of_many(self, query: str, state: tecs.State, control: tecs.Int64s, batch: tecs.Batch) -> None:
        """Warn, once, when very many matches of one event are still to be listed."""
        if self._told or control[tecs.EMITTED] < LISTED:
            return
        event = int(control[tecs.EVENT]) - 1
        number = self.paths.of_event(state, control, int(batch.horizons[event]))
        if number > MANY:
            self._told = True
            shown = f"{number:,}" if number < 10**30 else f"about 10^{int((number.bit_length() - 1) * np.log10(2))}"
            text = f"query {query!r}: {shown} combinations of events end at position {batch.positions[event]} alone"
            warnings.warn(f"{text}; {_CURE}, or count them with weft.count", ManyMatchesWarning, stacklevel=2)
