"""Candidates of a query: their blocks are assigned to lanes, and each lane tests the conditions on its own ones."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from weft.kernels.automaton import tecs
from weft.kernels.automaton.filtered import Tested
from weft.kernels.automaton.refine import CandidateSets, refine
from weft.plan.partitioning.dealing import Dealer
from weft.runtime.data.events import Int64s
from weft.runtime.operators.automaton.assignment import CandidateAssigner
from weft.runtime.operators.automaton.conditions import ConditionTables
from weft.runtime.operators.automaton.found import Found, empty_output
from weft.runtime.operators.automaton.selection import take_matches
from weft.runtime.operators.automaton.shares import RankShare

_ROW = "candidates/"


class Candidates:
    """Tests the candidates of one lane, and stores the values that conditions read of past events."""

    def __init__(self, conditions: ConditionTables, share: int, dealer: Dealer) -> None:
        self._conditions = conditions
        self._share = share
        self._assigner = CandidateAssigner(dealer)
        self._positions = np.empty(0, np.int64)
        self._values = np.empty(0, np.int64)
        self._space = 64
        self._control = np.zeros(tecs.CONTROL_WORDS, np.int64)
        self._output, self._ranks = empty_output(1), RankShare().fit(0)

    def add_events(self, positions: Int64s, values: Int64s, oldest: int | None) -> None:
        """Store the values of events, and remove those before the oldest position that is still needed."""
        kept = 0 if oldest is None else int(np.searchsorted(self._positions, oldest))
        kept = len(self._positions) if oldest is None else kept
        width = self._conditions.width
        self._positions = np.concatenate((self._positions[kept:], positions))
        self._values = np.concatenate((self._values[kept * width :], values))

    def satisfying(self, pieces: Iterator[Found]) -> Iterator[Found]:
        """Yield the candidates of this lane's blocks that satisfy the conditions."""
        for piece in pieces:
            own = np.flatnonzero(self._assigner.assign(piece) == self._share)
            if len(own):
                mine = piece if len(own) == len(piece.events) else take_matches(piece, own)
                kept = np.flatnonzero(self._tested(mine))
                if len(kept):
                    yield take_matches(mine, kept)

    def _tested(self, found: Found) -> npt.NDArray[np.bool_]:
        rows = np.searchsorted(self._positions, found.positions)
        keeps = np.zeros(len(found.events), bool)
        self._control[tecs.EVENT] = 0
        while True:
            candidates = CandidateSets(found.offsets, rows, found.labels, self._values, keeps)
            answer = refine(candidates, *self._scratch())
            if answer == tecs.DONE:
                return keeps
            self._space *= 2

    def _scratch(self) -> tuple[Any, ...]:
        """Return the scratch arrays of the kernel: a match graph of one path, and the conditions."""
        room, width, slots = self._space, self._conditions.width, len(self._conditions.compiled.slots)
        one, none = np.zeros(1, np.int64), np.zeros(0, np.int32)
        state = tecs.State(
            active=np.zeros(1, np.uint64),
            rows=one,
            nodes=np.zeros(4 * room, np.int64),
            starts=np.zeros(room, np.int64),
            payload=np.zeros(room * width, np.int64),
            epochs=one,
            lengths=one,
            touched=one,
            finals=np.zeros(2, np.int64),
            stack=np.zeros(4 * room, np.int64),
        )
        batch = tecs.Batch(np.zeros(1, np.int32), none, one, one, one, one, np.zeros(width, np.int64))
        path = tecs.Path(
            np.zeros(2 * room, np.int64),
            np.zeros(2 * room * width, np.int64),
            np.zeros((2 * room + 1) * slots, np.int32),
            np.zeros(2 * room * slots, np.int32),
        )
        tested = Tested(self._conditions.tables, self._conditions.machine(path))
        return state, batch, self._output, self._control, path, tested, self._ranks

    def pages(self) -> dict[str, bytes]:
        """Return the state as pages."""
        parts = {"positions": self._positions, "values": self._values}
        hand = {_ROW + "hand": self._assigner.page()}
        return hand | {_ROW + name: part.tobytes() for name, part in parts.items()}

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from pages."""
        self._positions, self._values = (
            np.frombuffer(pages[_ROW + name], np.int64).copy() for name in ("positions", "values")
        )
        self._assigner.load(pages[_ROW + "hand"])
