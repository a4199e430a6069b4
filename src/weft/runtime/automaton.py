"""One query at work: its tables, its partial matches, and the answers to what the kernel asks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.algebra.query import Consume, Query, Strategy
from weft.kernels import tecs
from weft.kernels.advance import advance_all, advance_best, advance_filtered
from weft.kernels.best import LAST_ORDER, LATEST_START, NEXT_ORDER
from weft.plan.automaton.conditions import compile_conditions
from weft.plan.automaton.determinize import ABSENT, INITIAL, UNMARKED, Determinizer, Edge
from weft.runtime.conditions import ConditionTables
from weft.runtime.events import EventBatch, Int64s

Int32s = npt.NDArray[np.int32]
Scalar = TypeVar("Scalar", bound=np.generic)
MOST_MATCHES, MOST_POSITIONS = 1 << 15, 1 << 17  # in one piece: what stays in the processor's cache
_CONSUME = {Consume.NONE: 0, Consume.PARTITION: 1, Consume.ANY: 2}


@dataclass(frozen=True)
class Found:
    """Matches as the kernel writes them; `events` are indexes into the batch."""

    events: Int64s
    firsts: Int64s
    starts: Int64s
    offsets: Int64s
    positions: Int64s
    labels: Int32s


class AutomatonRun:
    """The tables and the state of one query."""

    def __init__(self, query: Query, *, ring: int = 1024, matches: int = 1024) -> None:
        self.query = query
        self.automaton = Determinizer(query)
        self.conditions = ConditionTables(compile_conditions(self.automaton.automaton, self.automaton.labels))
        self.width = self.conditions.width  # payload columns
        self.control = np.zeros(tecs.CONTROL_WORDS, np.int64)
        self.control[[tecs.HEAD, tecs.TAIL]] = 1
        self._fitted = (0, 1)  # states and classes that the tables know all pairs of
        self._edges_used = 1  # offset 0 means unknown
        self._tables = self._empty_tables(states=4, classes=4)
        self._letters_known = 0
        self.state = self._empty_state(ring)
        self._path = self._empty_path(64)
        self._best = self._empty_best(ring)
        self._output = _empty_output(matches)

    # -- running ------------------------------------------------------------------------------

    def run(self, batch: tecs.Batch, *, counting: bool = False) -> Iterator[Found]:
        """Advance over a batch while its matches are taken, in pieces. Counting, only control[COUNTED] grows."""
        control = self.control
        control[tecs.EVENT] = 0
        while True:
            answer = self._advance(batch, counting=counting)
            if answer == tecs.UNSEEN:
                self._fill_edges(int(control[tecs.ASK_STATE]), int(control[tecs.ASK_CLASS]))
            elif answer == tecs.GROW:
                self._grow_ring(int(control[tecs.ASK_ROOM]))
            elif answer == tecs.DEEPER:
                self._grow_scratch()
            elif control[tecs.OUT_MATCHES]:
                yield self._take_output()
            elif answer == tecs.FLUSH:
                # Not even one match fits: its positions need a larger buffer.
                self._output = _empty_output(len(self._output.events), 2 * len(self._output.positions))
            if answer == tecs.DONE:
                return

    def _advance(self, batch: tecs.Batch, *, counting: bool) -> int:
        given = self._tables, self.state, batch, self._output, self.control
        if self.keeps_best:
            return advance_best(*given, self._best)
        if self.conditions:
            return advance_filtered(*given, self._path, self.conditions.arrays, counting)
        return advance_all(*given, self._path, counting)

    @property
    def letters_known(self) -> int:
        """How many letters of the classifier have a class."""
        return self._letters_known

    @property
    def classes(self) -> Int32s:
        """The class of each letter."""
        return self._tables.classes

    @property
    def markable(self) -> npt.NDArray[np.bool_]:
        """By class: whether an atom can read such an event."""
        return np.array([readable != 0 for readable in self.automaton.classes], bool)

    def learn_letters(self, truths: Sequence[tuple[bool, ...]]) -> None:
        """Give the letters after those known their classes, by the truths of the automaton's predicates."""
        known, count = self._letters_known, self._letters_known + len(truths)
        if count >= len(self._tables.classes):
            self._tables = self._tables._replace(
                classes=_extended(self._tables.classes, 2 * count + 2),
                wakes=_extended(self._tables.wakes, 2 * count + 2),
            )
        self._tables.classes[known:count] = [self.automaton.class_of(truth) for truth in truths]
        self._tables.classes[count] = ABSENT
        self._letters_known = count
        self._fit_tables()

    def free_expired(self, horizon: int) -> None:
        """Let the ring forget the nodes that no match can use any more."""
        tecs.free_expired(self.state, self.control, horizon)

    def live_nodes(self) -> npt.NDArray[np.bool_]:
        """By slot of the ring: whether its node is not forgotten."""
        live = np.zeros(len(self.state.starts), bool)
        live[np.arange(self.control[tecs.TAIL], self.control[tecs.HEAD]) & (len(live) - 1)] = True
        return live

    def oldest_position(self, batch: EventBatch) -> int:
        """The first position that a later match may show, after a batch."""
        control, state = self.control, self.state
        mask = len(state.starts) - 1
        for node in range(int(control[tecs.TAIL]), int(control[tecs.HEAD])):
            word = int(state.nodes[(node & mask) << 2])
            if word & tecs.LABEL_MASK != tecs.UNION:
                return word >> tecs.LABEL_BITS
        return int(batch.positions[-1]) + 1

    @property
    def absent_letter(self) -> int:
        """A letter for events that do not exist: one past those of the classifier."""
        return self._letters_known

    def reserve_slots(self, slots: int) -> None:
        """Make room for partitions 0..slots."""
        words = self._words
        if slots * words <= len(self.state.active):
            return
        room = max(slots, 2 * len(self.state.active) // words)
        self.state = self.state._replace(
            active=_extended(self.state.active, room * words),
            rows=_extended(self.state.rows, room * self._states * 2),
            epochs=_extended(self.state.epochs, room),
        )

    def live_slots(self, horizon: int) -> npt.NDArray[np.bool_]:
        """Which partitions still have partial matches inside the window."""
        slots = len(self.state.active) // self._words
        bits = np.unpackbits(self.state.active.view(np.uint8), bitorder="little").reshape(slots, -1)
        youngest = self.state.rows.reshape(slots, self._states, 2)[:, :, 1]
        live: npt.NDArray[np.bool_] = np.any(bits[:, : self._states].astype(bool) & (youngest >= horizon), axis=1)
        return live & (self.state.epochs == self.control[tecs.EPOCH]) if self._tables.consume == 2 else live

    def clear_slots(self, slots: Int32s) -> None:
        """Forget partitions, so that their slots can be given to others."""
        self.state.active.reshape(-1, self._words)[slots] = 0

    # -- state that survives a restart ------------------------------------------------------------

    def summary(self) -> dict[str, object]:
        """What the arrays alone do not say: sizes, control words, the numbers of states."""
        return {
            "control": self.control.tolist(),
            "ring": len(self.state.starts),
            "slots": len(self.state.epochs),
            "capacity": self._states,
            "states": self.automaton.state_keys(),
            "texts": self.conditions.texts.snapshot(),
        }

    def load_summary(self, kept: Mapping[str, Any]) -> None:
        """Take sizes, control words and state numbers from a summary; the arrays are still empty."""
        self.control[:] = kept["control"]
        self.automaton.restore_states(kept["states"])
        self._tables = self._empty_tables(kept["capacity"], self._tables.class_count)
        self.state = self._empty_state(kept["ring"])
        self._best = self._empty_best(kept["ring"])
        self.reserve_slots(kept["slots"])
        self.conditions.restore_texts([(text, code) for text, code in kept["texts"]])

    def node_slices(self, low: int, high: int) -> Iterator[npt.NDArray[Any]]:
        """Nodes `low` to `high` (not included), their start times and payload, in order of ids."""
        at = np.arange(low, high) & (len(self.state.starts) - 1)
        yield self.state.nodes.reshape(-1, 4)[at]
        yield self.state.starts[at]
        yield self.state.payload.reshape(len(self.state.starts), self.width)[at]

    def load_nodes(self, low: int, words: Int64s) -> None:
        """The reverse of `node_slices`."""
        count = len(words) // (5 + self.width)
        at = np.arange(low, low + count) & (len(self.state.starts) - 1)
        self.state.nodes.reshape(-1, 4)[at] = words[: 4 * count].reshape(count, 4)
        self.state.starts[at] = words[4 * count : 5 * count]
        payload = words[5 * count :].view(np.float64).reshape(count, self.width)
        self.state.payload.reshape(len(self.state.starts), self.width)[at] = payload

    # -- answers to the kernel -------------------------------------------------------------------

    def _fill_edges(self, state: int, class_: int) -> None:
        edges = self.automaton.edges(state, class_)
        waits = Edge(UNMARKED, state, final=False)
        others = [edge for edge in edges if edge != waits]
        flat = [len(others) << 1 | (waits in edges)]
        for edge in others:
            flat += [edge.label, edge.target, int(edge.final)]
        offset = self._edges_used
        if offset + len(flat) > len(self._tables.edges):
            self._tables = self._tables._replace(edges=_extended(self._tables.edges, 2 * (offset + len(flat))))
        self._tables.edges[offset : offset + len(flat)] = flat
        self._edges_used = offset + len(flat)
        self._tables.edges_at[state * self._tables.class_count + class_] = offset
        if not others and (state == INITIAL or waits in edges):
            self._tables.touch[class_ * self._words + state // 64] &= ~(np.uint64(1) << np.uint64(state % 64))
        if self._fitted != (len(self.automaton.states), len(self.automaton.classes)) or waits in edges:
            self._fit_tables()

    def _fit_tables(self) -> None:
        """Enlarge the tables for new states and classes; what is new is touched and unknown."""
        states, classes = len(self.automaton.states), len(self.automaton.classes)
        room_states, room_classes = self._states, self._tables.class_count
        if states > room_states or classes > room_classes:
            old, old_states, old_classes, old_words = self._tables, room_states, room_classes, self._words
            while room_states < states:
                room_states *= 2
            while room_classes < classes:
                room_classes *= 2
            new = self._empty_tables(room_states, room_classes)
            edges_at = new.edges_at.reshape(room_states, room_classes)
            edges_at[:old_states, :old_classes] = old.edges_at.reshape(old_states, old_classes)
            new.touch.reshape(room_classes, -1)[:old_classes, :old_words] = old.touch.reshape(old_classes, old_words)
            self._tables = new._replace(classes=old.classes, wakes=old.wakes, edges=old.edges)
            self._widen_rows(old_states, old_words)
        self._mark_idle_pairs(states, classes)
        # A letter wakes the kernel unless every known state is known to only wait on its class.
        bits = np.unpackbits(self._tables.touch.view(np.uint8), bitorder="little").reshape(room_classes, -1)
        busy: npt.NDArray[np.bool_] = np.any(bits[:, :states], axis=1)
        busy[ABSENT] = False
        self._tables.wakes[:] = busy[self._tables.classes]

    def _mark_idle_pairs(self, states: int, classes: int) -> None:
        """Mark the states that new classes, and the classes that new states, do not touch."""
        old_states, old_classes = self._fitted
        words, touch = self._words, self._tables.touch
        for state in range(states):
            bit = ~(np.uint64(1) << np.uint64(state % 64))
            for class_ in range(old_classes if state < old_states else 1, classes):
                if self.automaton.idles(state, class_):
                    touch[class_ * words + state // 64] &= bit
        self._fitted = (states, classes)

    def _widen_rows(self, old_states: int, old_words: int) -> None:
        states, words = self._states, self._words
        slots = len(self.state.epochs)
        rows = np.zeros((slots, states, 2), np.int64)
        rows[:, :old_states] = self.state.rows.reshape(slots, old_states, 2)
        active = np.zeros((slots, words), np.uint64)
        active[:, :old_words] = self.state.active.reshape(slots, old_words)
        touched = np.zeros(4 * states, np.int64)
        self.state = self.state._replace(active=active.ravel(), rows=rows.ravel(), touched=touched)

    def _grow_ring(self, room: int) -> None:
        head, tail = int(self.control[tecs.HEAD]), int(self.control[tecs.TAIL])
        old = len(self.state.starts)
        new = old
        while (head - tail + room) * 4 > new * 3:
            new *= 2
        nodes, starts = np.zeros((new, 4), np.int64), np.zeros(new, np.int64)
        payload = np.zeros((new, self.width), np.float64)
        old_nodes, old_payload = self.state.nodes.reshape(old, 4), self.state.payload.reshape(old, self.width)
        while tail < head:
            # Between two multiples of the old size a run of ids is one piece in both rings.
            count = min(head, (tail // old + 1) * old) - tail
            here, there = tail & (old - 1), tail & (new - 1)
            nodes[there : there + count] = old_nodes[here : here + count]
            starts[there : there + count] = self.state.starts[here : here + count]
            payload[there : there + count] = old_payload[here : here + count]
            tail += count
        self.state = self.state._replace(nodes=nodes.ravel(), starts=starts, payload=payload.ravel())
        if self.keeps_best:
            self._best = self._best._replace(numbers=np.full(new, -1, np.int32))

    def _grow_scratch(self) -> None:
        state = self.state
        self.state = state._replace(
            finals=_extended(state.finals, 2 * len(state.finals)),
            stack=_extended(state.stack, 2 * len(state.stack)),
        )
        words, payload, latest, earlier = self._path
        room, slots = 2 * len(words), len(self.conditions.compiled.slots)
        self._path = tecs.Path(
            _extended(words, room),
            _extended(payload, room * self.width),
            _extended(latest, (room + 1) * slots),
            _extended(earlier, room * slots),
        )

    def _take_output(self) -> Found:
        """What was written: a well-filled buffer itself (the next one is larger), else a copy."""
        count, used = int(self.control[tecs.OUT_MATCHES]), int(self.control[tecs.OUT_POSITIONS])
        self.control[[tecs.OUT_MATCHES, tecs.OUT_POSITIONS]] = 0
        full = self._output
        matches, positions = len(full.events), len(full.positions)
        given = 2 * count > matches or 2 * used > positions
        if given:
            self._output = _empty_output(
                min(2 * matches, MOST_MATCHES), max(positions, min(2 * positions, MOST_POSITIONS))
            )
        parts = [full.events[:count], full.firsts[:count], full.starts[:count], full.offsets[: count + 1]]
        events, firsts, starts, offsets = parts if given else (part.copy() for part in parts)
        places, labels = full.positions[:used], full.labels[:used]
        return Found(
            events, firsts, starts, offsets, places if given else places.copy(), labels if given else labels.copy()
        )

    # -- arrays ---------------------------------------------------------------------------------

    @property
    def _words(self) -> int:
        return len(self._tables.touch) // self._tables.class_count

    @property
    def _states(self) -> int:
        return len(self._tables.edges_at) // self._tables.class_count

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

    def _empty_state(self, ring: int) -> tecs.State:
        return tecs.State(
            active=np.zeros(self._words, np.uint64),
            rows=np.zeros(self._states * 2, np.int64),
            nodes=np.zeros(4 * ring, np.int64),
            starts=np.zeros(ring, np.int64),
            payload=np.zeros(ring * self.width, np.float64),
            epochs=np.zeros(1, np.int64),
            touched=np.zeros(4 * self._states, np.int64),
            finals=np.zeros(64, np.int64),
            stack=np.zeros(256, np.int64),
        )

    @property
    def keeps_best(self) -> bool:
        """Whether the kernel itself reports only what the strategy and the limit ask for."""
        return self._best.keep > 0

    def _empty_best(self, ring: int) -> tecs.Best:
        """What the kernel needs to report the best matches only, where it can tell them by itself."""
        query, labels = self.query, self.automaton.labels
        one = query.strategy in (Strategy.NEXT, Strategy.ANY, Strategy.LAST)
        able = not (self.conditions or self.automaton.may_repeat or query.strategy is Strategy.MAX)
        keep = 1 if one else query.limit or 0
        order = NEXT_ORDER if one else LATEST_START
        if query.strategy is Strategy.LAST:
            order = LAST_ORDER
        ranked = sorted({label.names for label in labels})
        ranks = np.array([ranked.index(label.names) for label in labels], np.int32)
        return tecs.Best(keep if able else 0, order, ranks, np.full(ring if able and keep else 0, -1, np.int32))

    def _empty_path(self, room: int) -> tecs.Path:
        slots = len(self.conditions.compiled.slots)
        return tecs.Path(
            np.zeros(room, np.int64),
            np.zeros(room * self.width, np.float64),
            np.zeros((room + 1) * slots, np.int32),
            np.zeros(room * slots, np.int32),
        )


def _extended(array: npt.NDArray[Scalar], length: int) -> npt.NDArray[Scalar]:
    bigger = np.zeros(max(length, len(array)), array.dtype)
    bigger[: len(array)] = array
    return bigger


def _empty_output(matches: int, positions: int | None = None) -> tecs.Output:
    room = positions or 4 * matches
    offsets = _uninitialised(matches + 1, np.int64)
    offsets[0] = 0
    return tecs.Output(
        _uninitialised(matches, np.int64),
        _uninitialised(matches, np.int64),
        _uninitialised(matches, np.int64),
        offsets,
        _uninitialised(room, np.int64),
        _uninitialised(room, np.int32),
    )


def _uninitialised(length: int, dtype: type[Scalar]) -> npt.NDArray[Scalar]:
    """Memory of Arrow's pool, which keeps what is given back: fresh pages cost more than the matches in them."""
    return np.frombuffer(pa.allocate_buffer(length * np.dtype(dtype).itemsize), dtype)


def joined(parts: list[Found]) -> Found:
    """Several pieces as one."""
    if len(parts) == 1:
        return parts[0]
    offsets = [np.zeros(1, np.int64)]
    for part in parts:
        offsets.append(part.offsets[1:] + offsets[-1][-1])
    none = np.empty(0, np.int64)
    return Found(
        np.concatenate([part.events for part in parts] or [none]),
        np.concatenate([part.firsts for part in parts] or [none]),
        np.concatenate([part.starts for part in parts] or [none]),
        np.concatenate(offsets),
        np.concatenate([part.positions for part in parts] or [none]),
        np.concatenate([part.labels for part in parts] or [np.empty(0, np.int32)]),
    )
