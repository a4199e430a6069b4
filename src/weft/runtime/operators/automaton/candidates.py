"""Candidates of a query at work: blocks of them are dealt to lanes, and each lane tests the conditions of its own."""

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
from weft.runtime.operators.automaton.conditions import ConditionTables
from weft.runtime.operators.automaton.dealt import Hand
from weft.runtime.operators.automaton.found import Found, empty_output
from weft.runtime.operators.automaton.selection import taken
from weft.runtime.operators.automaton.shares import RankShare

_ROW = "candidates/"


class Candidates:
    """Tests the candidates of one lane; what conditions read of past events is kept here."""

    def __init__(self, conditions: ConditionTables, share: int, dealer: Dealer) -> None:
        self._conditions = conditions
        self._share = share
        self._hand = Hand(dealer)
        self._positions = np.empty(0, np.int64)
        self._values = np.empty(0, np.int64)
        self._room = 64
        self._control = np.zeros(tecs.CONTROL_WORDS, np.int64)
        self._output, self._ranks = empty_output(1), RankShare().fit(0)

    def see(self, positions: Int64s, values: Int64s, oldest: int | None) -> None:
        """Take events, and forget those before the oldest that still matters."""
        kept = 0 if oldest is None else int(np.searchsorted(self._positions, oldest))
        kept = len(self._positions) if oldest is None else kept
        width = self._conditions.width
        self._positions = np.concatenate((self._positions[kept:], positions))
        self._values = np.concatenate((self._values[kept * width :], values))

    def refined(self, pieces: Iterator[Found]) -> Iterator[Found]:
        """The candidates of this lane's blocks that satisfy the conditions."""
        for piece in pieces:
            own = np.flatnonzero(self._hand.dealt(piece) == self._share)
            if len(own):
                mine = piece if len(own) == len(piece.events) else taken(piece, own)
                kept = np.flatnonzero(self._tested(mine))
                if len(kept):
                    yield taken(mine, kept)

    def _tested(self, found: Found) -> npt.NDArray[np.bool_]:
        rows = np.searchsorted(self._positions, found.positions)
        keeps = np.zeros(len(found.events), bool)
        self._control[tecs.EVENT] = 0
        while True:
            candidates = CandidateSets(found.offsets, rows, found.labels, self._values, keeps)
            answer = refine(candidates, *self._scratch())
            if answer == tecs.DONE:
                return keeps
            self._room *= 2

    def _scratch(self) -> tuple[Any, ...]:
        """What the kernel works on: a match graph of one path, and the conditions."""
        room, width, slots = self._room, self._conditions.width, len(self._conditions.compiled.slots)
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
        """As pages of the state."""
        parts = {"positions": self._positions, "values": self._values}
        hand = {_ROW + "hand": self._hand.page()}
        return hand | {_ROW + name: part.tobytes() for name, part in parts.items()}

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Go on from pages."""
        self._positions, self._values = (
            np.frombuffer(pages[_ROW + name], np.int64).copy() for name in ("positions", "values")
        )
        self._hand.load(pages[_ROW + "hand"])
