"""Which of its matches a lane tells, and under which names, when the program or the lanes have changed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from weft.runtime.data.matches import MatchBatch
from weft.runtime.lanes.ownership import last_positions
from weft.runtime.spark.jobs.generations import Generation
from weft.runtime.spark.jobs.handover import Handover
from weft.runtime.spark.watermark import END_OF_TIME

Points = dict[str, list[int]]


class EmissionFilter:
    """Decides which matches one lane of a generation emits.

    `points`: by trigger, the time and the position up to which all events had been released. They are the same in all
    lanes, as all get the progress of each trigger.
    """

    def __init__(self, own: Generation, points: Points) -> None:
        self._own = own
        self._points = points
        self._silent = own.silent_names
        name_of = {number: query.name for number, query in zip(own.numbers, own.written, strict=True)}
        self._since = {name_of[number]: over for number, over in own.since.items()}
        self._until = {name_of[number]: over for number, over in own.until.items()}

    def __call__(self, matches: Iterable[MatchBatch]) -> Iterator[MatchBatch]:
        """Yield the matches that are emitted here, with the current names of queries."""
        for piece in matches:
            rows = np.flatnonzero(self._is_told(piece))
            told = piece if len(rows) == len(piece) else piece.take(rows)
            if len(told):
                yield replace(told, query=self._own.names.get(told.query, told.query))

    def _is_told(self, piece: MatchBatch) -> npt.NDArray[np.bool_]:
        told = np.ones(len(piece), bool)
        for code, name in enumerate(piece.query_names):
            since, until = self._since.get(name), self._until.get(name)
            if name in self._silent:
                told &= piece.query_codes != code
            elif since is not None or until is not None:
                told &= (piece.query_codes != code) | (_after(piece, since, self) & ~_after(piece, until, self, False))
        return told

    def border(self, over: Handover) -> int | None:
        """The time or position from which other lanes emit the matches of a query, or None if it is not known yet."""
        point = self._points.get(str(over.trigger))
        return None if point is None else min(END_OF_TIME, point[over.unit != "time"] + over.back)

    def note(self, peaks: Iterable[Sequence[int]], time: int, released: int) -> None:
        """Record the progress: `released` events, all that end before a time.

        `peaks` are of triggers with later events.
        """
        waited = {over.trigger for over in (*self._own.since.values(), *self._own.until.values())}
        first = min((trigger for trigger, _ in peaks), default=None)
        for trigger in waited:
            if str(trigger) not in self._points and (first is None or first > trigger):
                self._points[str(trigger)] = [time, released]

    def handed_over(self, time: int, released: int) -> list[int]:
        """The queries of which all has been told here, when further matches end at a time or later."""
        borders = {number: self.border(over) for number, over in self._own.until.items()}
        come = {number: time if over.unit == "time" else released for number, over in self._own.until.items()}
        return [number for number, border in borders.items() if border is not None and come[number] >= border]


def _after(
    piece: MatchBatch, over: Handover | None, telling: EmissionFilter, unbounded: bool = True
) -> npt.NDArray[np.bool_]:
    """Which matches end at a border or after it."""
    if over is None:
        return np.full(len(piece), unbounded)
    border = telling.border(over)
    if border is None:
        return np.zeros(len(piece), bool)
    after: npt.NDArray[np.bool_] = (piece.ends if over.unit == "time" else last_positions(piece)) >= border
    return after
