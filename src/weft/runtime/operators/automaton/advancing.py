"""State of one query: its match graph, and what the kernel requests while it advances."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.algebra.query import Query, Strategy
from weft.kernels.automaton import tecs
from weft.kernels.automaton.advance import (
    advance_all,
    advance_best,
    advance_counted,
    advance_filtered,
)
from weft.kernels.automaton.best import LAST_ORDER, LATEST_START, NEXT_ORDER
from weft.kernels.automaton.filtered import Tested, Wanted
from weft.plan.automaton.cea import Automaton
from weft.plan.automaton.conditions import compile_conditions, order_of
from weft.runtime.data.events import Int64s
from weft.runtime.operators.automaton.conditions import ConditionTables
from weft.runtime.operators.automaton.counts import MatchCounts
from weft.runtime.operators.automaton.found import Found, empty_output, take_output
from weft.runtime.operators.automaton.shares import RankShare
from weft.runtime.operators.automaton.tables import AutomatonTables, extended

Int32s = npt.NDArray[np.int32]
_SMALL_RING = 1 << 14  # nodes of the smallest ring after it grew
_MOST_KEPT = 1024  # the largest limit that the kernel applies; larger ones are applied afterwards


class AutomatonRun:
    """The tables and the state of one query."""

    def __init__(
        self,
        query: Query,
        automaton: Automaton,
        share: RankShare | None = None,
        *,
        tests: bool = True,
        ring: int = 1024,
        matches: int = 1024,
    ) -> None:
        """List only the matches of `share`, or all if it is None; without `tests`, skip the conditions."""
        self.query = query
        self.tables = AutomatonTables(query, automaton)
        self.automaton = self.tables.automaton
        self.conditions = ConditionTables(compile_conditions(self.automaton.automaton, self.automaton.labels))
        self.width = self.conditions.width  # payload columns
        self._measured = self.conditions.cuts.fewest > 0  # the lengths of partial matches matter
        self.control = np.zeros(tecs.CONTROL_WORDS, np.int64)
        self.control[[tecs.HEAD, tecs.TAIL]] = 1
        self.state = self._empty_state(ring)
        self._path = self._empty_path(64)
        self._best = self._empty_best(ring)
        self._output = empty_output(matches)
        self._counts = MatchCounts(query.name, self.conditions)
        self.tests = tests
        self._whole = RankShare()
        self.share = share or self._whole

    def replace_queries(self, automaton: Automaton) -> None:
        """Continue with an automaton that differs only in the order of its conditions."""
        self.conditions.reorder(order_of(self.automaton.automaton.conditions, automaton.conditions))
        self._counts = MatchCounts(self.query.name, self.conditions)

    # -- running ------------------------------------------------------------------------------

    def count(self, batch: tecs.Batch) -> int:
        """Return how many matches end in a batch."""
        before = int(self.control[tecs.COUNTED])
        for _ in self.run(batch, counting=True):
            pass
        return int(self.control[tecs.COUNTED]) - before + self._counts.take()

    def run(self, batch: tecs.Batch, *, counting: bool = False) -> Iterator[Found]:
        """Advance over a batch and yield its matches in pieces, or none if they are only counted."""
        control = self.control
        control[tecs.EVENT] = 0
        while True:
            answer = self._advance(batch, counting=counting)
            if answer == tecs.UNSEEN:
                self.tables.fill_edges(int(control[tecs.ASK_STATE]), int(control[tecs.ASK_CLASS]))
                self._widen_rows()
            elif answer == tecs.GROW:
                self._grow_ring(int(control[tecs.ASK_ROOM]))
            elif answer == tecs.DEEPER:
                self._grow_scratch()
            elif answer == tecs.PAUSE:  # returns to Python so that Ctrl-C is handled
                if counting:
                    self._counts.count_in_groups(self.state, control, batch)
            elif answer == tecs.WIDER:
                self._counts.paths.widen()
            elif control[tecs.OUT_MATCHES]:
                found, self._output = take_output(self._output, control)
                yield found
                self._counts.warn_of_many(self.query.name, self.state, control, batch)
            elif answer == tecs.FLUSH:
                # The buffer is too small for one match, or for the matches of one event if some of them are selected.
                self._output = empty_output(2 * len(self._output.events), 2 * len(self._output.positions))
            if answer == tecs.DONE:
                return

    def _advance(self, batch: tecs.Batch, *, counting: bool) -> int:
        tests = self.tests or counting
        cuts = self.conditions.cuts if tests else self.conditions.no_cuts
        given = self.tables.arrays, self.state, batch, self._output, self.control, cuts
        if self.keeps_best:
            return advance_best(*given, self._best)
        share = self._whole if counting else self.share
        ranks = share.fit(len(self.state.starts))
        if self.conditions and tests:
            tested = Tested(self.conditions.tables, self.conditions.machine(self._path))
            wanted = Wanted(counting, self.keeps_maximal, self._counts.most)
            return advance_filtered(*given, self._path, tested, wanted, ranks)
        if counting:
            counts = self._counts.paths.fit(len(self.state.starts))
            return advance_counted(*given, self._path, counts, self._counts.most, ranks)
        return advance_all(*given, self._path, self.keeps_maximal, ranks)

    def free_expired(self, horizon: int) -> None:
        """Free the nodes of the ring that no later match can contain."""
        tecs.free_expired(self.state, self.control, horizon)

    def live_nodes(self) -> npt.NDArray[np.bool_]:
        """Return a mask over the ring: whether a slot has a node in use."""
        live = np.zeros(len(self.state.starts), bool)
        live[np.arange(self.control[tecs.TAIL], self.control[tecs.HEAD]) & (len(live) - 1)] = True
        return live

    def oldest_position(self) -> int | None:
        """Return the first position that a later match may contain, or None if there is none yet."""
        control, state = self.control, self.state
        mask = len(state.starts) - 1
        for node in range(int(control[tecs.TAIL]), int(control[tecs.HEAD])):
            word = int(state.nodes[(node & mask) << 2])
            if word & tecs.LABEL_MASK != tecs.UNION:
                return word >> tecs.LABEL_BITS
        return None

    def reserve_slots(self, slots: int) -> None:
        """Reserve space for partitions 0..slots."""
        words = self.tables.words
        if slots * words <= len(self.state.active):
            return
        room = max(slots, 2 * len(self.state.active) // words)
        self.state = self.state._replace(
            active=extended(self.state.active, room * words),
            rows=extended(self.state.rows, room * self.tables.states * 2),
            epochs=extended(self.state.epochs, room),
            lengths=extended(self.state.lengths, room * self.tables.states * self._measured),
        )

    def live_slots(self, horizon: int) -> npt.NDArray[np.bool_]:
        """Return which partitions have partial matches inside the window."""
        youngest = self.state.rows.reshape(-1, 2)[:, 1]
        live = (self._active_rows() & (youngest >= horizon)).reshape(-1, self.tables.states)
        found: npt.NDArray[np.bool_] = np.any(live, axis=1)
        return found

    def clear_slots(self, slots: Int32s) -> None:
        """Clear partitions, so that their slots can be reused."""
        rows = self.state.active.reshape(-1, self.tables.words)
        rows[slots[slots < len(rows)]] = 0

    # -- state that survives a restart ------------------------------------------------------------

    def summary(self) -> dict[str, object]:
        """Return the state besides the arrays: sizes, control words, numbers of states."""
        return {
            "control": self.control.tolist(),
            "ring": len(self.state.starts),
            "slots": len(self.state.epochs),
            "capacity": self.tables.states,
            "states": self.automaton.state_keys(),
            "texts": self.conditions.texts.texts(),
            "outputs": self.share.outputs,
        }

    def load_summary(self, kept: Mapping[str, Any]) -> None:
        """Restore sizes, control words and state numbers from a summary; the arrays are filled later."""
        self.control[:] = kept["control"]
        self.tables.restore_states(kept["states"], kept["capacity"])
        self.state = self._empty_state(kept["ring"])
        self._best = self._empty_best(kept["ring"])
        self.reserve_slots(kept["slots"])
        self.conditions.restore_texts(kept["texts"])
        self.share.outputs = kept.get("outputs", 0)

    def node_slices(self, low: int, high: int) -> Iterator[npt.NDArray[Any]]:
        """Yield the nodes `low` to `high` (exclusive), their start times and their payload, in order of ids."""
        at = np.arange(low, high) & (len(self.state.starts) - 1)
        yield self.state.nodes.reshape(-1, 4)[at]
        yield self.state.starts[at]
        yield self.state.payload.reshape(len(self.state.starts), self.width)[at]

    def load_nodes(self, low: int, words: Int64s) -> None:
        """Restore nodes from `low` on from the words that `node_slices` yielded."""
        count = len(words) // (5 + self.width)
        at = np.arange(low, low + count) & (len(self.state.starts) - 1)
        self.state.nodes.reshape(-1, 4)[at] = words[: 4 * count].reshape(count, 4)
        self.state.starts[at] = words[4 * count : 5 * count]
        payload = words[5 * count :].reshape(count, self.width)
        self.state.payload.reshape(len(self.state.starts), self.width)[at] = payload

    # -- answers to the kernel -------------------------------------------------------------------

    def learn_letters(self, truths: Sequence[tuple[bool, ...]]) -> None:
        """Assign classes to new letters, by the truths of the automaton's predicates."""
        self.tables.learn_letters(truths)
        self._widen_rows()

    def _widen_rows(self) -> None:
        """Enlarge the rows of partitions to the number of states in the tables."""
        states, words, slots = self.tables.states, self.tables.words, len(self.state.epochs)
        old_states, old_words = len(self.state.rows) // (2 * slots), len(self.state.active) // slots
        if states == old_states:
            return
        rows = np.zeros((slots, states, 2), np.int64)
        rows[:, :old_states] = self.state.rows.reshape(slots, old_states, 2)
        active = np.zeros((slots, words), np.uint64)
        active[:, :old_words] = self.state.active.reshape(slots, old_words)
        touched = np.zeros(4 * states, np.int64)
        lengths = np.zeros((slots, states * self._measured), np.int64)
        lengths[:, : old_states * self._measured] = self.state.lengths.reshape(slots, -1)
        self.state = self.state._replace(
            active=active.ravel(), rows=rows.ravel(), touched=touched, lengths=lengths.ravel()
        )

    def _grow_ring(self, room: int) -> None:
        """Free space in the ring: remove unreachable nodes if these are most, else enlarge it."""
        head, tail = int(self.control[tecs.HEAD]), int(self.control[tecs.TAIL])
        live = np.zeros(len(self.state.starts), bool)
        heads = self.state.rows.reshape(-1, 2)[self._active_rows(), 0]
        live[heads[heads >= tail] & (len(live) - 1)] = True
        kept = tecs.mark_live(self.state.nodes, tail, head, live)
        size = len(live)
        while (kept + room) * 2 > size or size < _SMALL_RING:
            size *= 2
        self._move_nodes(live, size)
        self.control[[tecs.TAIL, tecs.HEAD]] = head, head + kept

    def _active_rows(self) -> npt.NDArray[np.bool_]:
        """Return a mask over the rows: whether a partition is in a state."""
        slots = len(self.state.epochs)
        bits = np.unpackbits(self.state.active.view(np.uint8), bitorder="little").reshape(slots, -1)
        active = bits[:, : self.tables.states].astype(bool)
        if self.tables.arrays.consume == 2:
            active &= (self.state.epochs == self.control[tecs.EPOCH])[:, None]
        found: npt.NDArray[np.bool_] = active.ravel()
        return found

    def _move_nodes(self, live: npt.NDArray[np.bool_], size: int) -> None:
        """Compact the live nodes, or move them to a ring of another size; they get new ids after all used ones."""
        head, tail = int(self.control[tecs.HEAD]), int(self.control[tecs.TAIL])
        old, places = self.state, np.zeros(len(live), np.int64)
        if size != len(live):
            self.state = old._replace(
                nodes=np.zeros(4 * size, np.int64),
                starts=np.zeros(size, np.int64),
                payload=np.zeros(size * self.width, np.int64),
            )
        tecs.move_live(old, tail, head, live, places, self.state)
        self._counts.forget()
        self.share.forget()
        heads = self.state.rows[::2]
        heads[:] = np.where(heads >= tail, places[heads & (len(live) - 1)], heads)
        if self.keeps_best:
            self._best = self._best._replace(numbers=np.full(size, -1, np.int32))

    def _grow_scratch(self) -> None:
        state = self.state
        self.state = state._replace(
            finals=extended(state.finals, 2 * len(state.finals)),
            stack=extended(state.stack, 2 * len(state.stack)),
        )
        words, payload, latest, earlier = self._path
        room, slots = 2 * len(words), len(self.conditions.compiled.slots)
        self._path = tecs.Path(
            extended(words, room),
            extended(payload, room * self.width),
            extended(latest, (room + 1) * slots),
            extended(earlier, room * slots),
        )

    # -- arrays ---------------------------------------------------------------------------------

    def _empty_state(self, ring: int) -> tecs.State:
        return tecs.State(
            active=np.zeros(self.tables.words, np.uint64),
            rows=np.zeros(self.tables.states * 2, np.int64),
            nodes=np.zeros(4 * ring, np.int64),
            starts=np.zeros(ring, np.int64),
            payload=np.zeros(ring * self.width, np.int64),
            epochs=np.zeros(1, np.int64),
            lengths=np.zeros(self.tables.states * self._measured, np.int64),
            touched=np.zeros(4 * self.tables.states, np.int64),
            finals=np.zeros(64, np.int64),
            stack=np.zeros(256, np.int64),
        )

    @property
    def chooses(self) -> bool:
        """Whether the kernel applies the strategy and the limit."""
        return self.keeps_best or self.keeps_maximal

    @property
    def keeps_maximal(self) -> bool:
        """Whether the kernel reports only maximal matches; it can if matches show all marked events."""
        shown = all(label.names for label in self.automaton.labels)
        alone = self.query.limit is None and not self.automaton.may_repeat
        return self.query.strategy is Strategy.MAX and shown and alone

    @property
    def keeps_best(self) -> bool:
        """Whether the kernel reports only the matches that strategy and limit select."""
        return self._best.keep > 0

    def _empty_best(self, ring: int) -> tecs.Best:
        """Return the arrays with which the kernel selects the best matches, empty if it cannot."""
        query, labels = self.query, self.automaton.labels
        one = query.strategy in (Strategy.NEXT, Strategy.ANY, Strategy.LAST)
        keep = 1 if one else query.limit or 0
        able = keep <= _MOST_KEPT and query.strategy is not Strategy.MAX
        able = able and not (self.conditions or self.automaton.may_repeat)
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
            np.zeros(room * self.width, np.int64),
            np.zeros((room + 1) * slots, np.int32),
            np.zeros(room * slots, np.int32),
        )
