"""Tables of one query: classes of letters, and edges by state and class, computed when events need them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from weft.algebra.query import Consume, Query
from weft.kernels.automaton import tecs
from weft.plan.automaton.cea import Automaton
from weft.plan.automaton.determinize import ABSENT, INITIAL, UNMARKED, Determinizer, Edge

Int32s = npt.NDArray[np.int32]
Scalar = TypeVar("Scalar", bound=np.generic)
_CONSUME = {Consume.NONE: 0, Consume.PARTITION: 1, Consume.ANY: 2}


class AutomatonTables:
    """A determinised automaton as arrays. `states` and `words` are the capacity per partition."""

    def __init__(self, query: Query, automaton: Automaton) -> None:
        self.query = query
        self.automaton = Determinizer(query, automaton)
        self.letters_known = 0  # letters of the classifier that have a class
        self._fitted = (0, 1)  # states and classes whose pairs are all in the tables
        self._edges_used = 1  # offset 0 means unknown
        self.arrays = self._empty_tables(states=4, classes=4)

    @property
    def words(self) -> int:
        """The number of words in a set of states."""
        return len(self.arrays.touch) // self.arrays.class_count

    @property
    def states(self) -> int:
        """The number of states that the tables have space for."""
        return len(self.arrays.edges_at) // self.arrays.class_count

    @property
    def classes(self) -> Int32s:
        """The class of each letter."""
        return self.arrays.classes

    @property
    def markable(self) -> npt.NDArray[np.bool_]:
        """Return for each class whether an atom can read such an event."""
        return np.array([readable != 0 for readable in self.automaton.classes], bool)

    @property
    def absent_letter(self) -> int:
        """The letter of events that do not exist, after those of the classifier."""
        return self.letters_known

    def learn_letters(self, truths: Sequence[tuple[bool, ...]]) -> None:
        """Assign classes to new letters, by the truths of the automaton's predicates."""
        known, count = self.letters_known, self.letters_known + len(truths)
        if count >= len(self.arrays.classes):
            self.arrays = self.arrays._replace(
                classes=extended(self.arrays.classes, 2 * count + 2),
                wakes=extended(self.arrays.wakes, 2 * count + 2),
            )
        self.arrays.classes[known:count] = [self.automaton.class_of(truth) for truth in truths]
        self.arrays.classes[count] = ABSENT
        self.letters_known = count
        self._fit_tables()

    def restore_states(self, keys: Sequence[Sequence[Any]], states: int) -> None:
        """Number the states as in a snapshot; all edges are computed again."""
        self.automaton.restore_states(keys)
        self.arrays = self._empty_tables(states, self.arrays.class_count)

    def fill_edges(self, state: int, class_: int) -> None:
        """Compute the edges of a state for a class."""
        edges = self.automaton.edges(state, class_)
        waits = Edge(UNMARKED, state, final=False)
        others = [edge for edge in edges if edge != waits]
        flat = [len(others) << 1 | (waits in edges)]
        for edge in others:
            flat += [edge.label, edge.target, int(edge.final)]
        offset = self._edges_used
        if offset + len(flat) > len(self.arrays.edges):
            self.arrays = self.arrays._replace(edges=extended(self.arrays.edges, 2 * (offset + len(flat))))
        self.arrays.edges[offset : offset + len(flat)] = flat
        self._edges_used = offset + len(flat)
        self.arrays.edges_at[state * self.arrays.class_count + class_] = offset
        if not others and (state == INITIAL or waits in edges):
            self.arrays.touch[class_ * self.words + state // 64] &= ~(np.uint64(1) << np.uint64(state % 64))
        if self._fitted != (len(self.automaton.states), len(self.automaton.classes)) or waits in edges:
            self._fit_tables()

    def _fit_tables(self) -> None:
        """Enlarge the tables for new states and classes, whose edges are unknown."""
        states, classes = len(self.automaton.states), len(self.automaton.classes)
        room_states, room_classes = self.states, self.arrays.class_count
        if states > room_states or classes > room_classes:
            old, old_states, old_classes, old_words = self.arrays, room_states, room_classes, self.words
            while room_states < states:
                room_states *= 2
            while room_classes < classes:
                room_classes *= 2
            new = self._empty_tables(room_states, room_classes)
            edges_at = new.edges_at.reshape(room_states, room_classes)
            edges_at[:old_states, :old_classes] = old.edges_at.reshape(old_states, old_classes)
            new.touch.reshape(room_classes, -1)[:old_classes, :old_words] = old.touch.reshape(old_classes, old_words)
            self.arrays = new._replace(classes=old.classes, wakes=old.wakes, edges=old.edges)
        self._mark_idle_pairs(states, classes)
        # A letter wakes the kernel unless all states are known to ignore its class.
        bits = np.unpackbits(self.arrays.touch.view(np.uint8), bitorder="little").reshape(room_classes, -1)
        busy: npt.NDArray[np.bool_] = np.any(bits[:, :states], axis=1)
        busy[ABSENT] = False
        self.arrays.wakes[:] = busy[self.arrays.classes]

    def _mark_idle_pairs(self, states: int, classes: int) -> None:
        """Record which new states and classes do not affect each other."""
        old_states, old_classes = self._fitted
        words, touch = self.words, self.arrays.touch
        for state in range(states):
            bit = ~(np.uint64(1) << np.uint64(state % 64))
            for class_ in range(old_classes if state < old_states else 1, classes):
                if self.automaton.idles(state, class_):
                    touch[class_ * words + state // 64] &= bit
        self._fitted = (states, classes)

    def _empty_tables(self, states: int, classes: int) -> tecs.Tables:
        words = (states + 63) // 64
        return tecs.Tables(
            classes=np.zeros(4, np.int32),
            wakes=np.zeros(4, bool),
            touch=np.full(classes * words, np.iinfo(np.uint64).max, np.uint64),
            edges_at=np.zeros(states * classes, np.int32),
            edges=np.zeros(64, np.int32),
            class_count=classes,
            consume=_CONSUME[self.query.consume],
        )


def extended(array: npt.NDArray[Scalar], length: int) -> npt.NDArray[Scalar]:
    """Return a longer copy of the array, padded with zeros."""
    bigger = np.zeros(max(length, len(array)), array.dtype)
    bigger[: len(array)] = array
    return bigger
