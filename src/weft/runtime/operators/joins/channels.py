"""Occurrences sent between lanes: exported from the graph that finds them, and imported by one that joins them.

They include the rows that they consist of, so that their order and their history are the same on both sides.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from weft.kernels.events import stored
from weft.kernels.joins import channels, compact, joining, occurrences
from weft.plan.graph import Channel
from weft.plan.properties import ALL_FIELDS
from weft.runtime.data.events import SHOWN, EventBatch, Int64s
from weft.runtime.identity.chunks import Attributes, Chunk
from weft.runtime.operators.joins.layout import What
from weft.runtime.operators.joins.operators import BEGINNING, NOTHING, Build, JoinNode, Running
from weft.runtime.store.event_buffer import EventBuffer

if TYPE_CHECKING:
    from weft.runtime.operators.joins.operator import JoinOperator

_WHICH: dict[What, int] = {
    "event": occurrences.LATER,
    "start": occurrences.LEAST,
    "end": occurrences.GREATEST,
}


@dataclass(frozen=True)
class OccurrenceBatch:
    """Occurrences of one channel, by end: `roots` are their places among `rows`, where parts come first.

    Rows of single events have the place of the event among `events`, which are sorted by position. `chunks` have the
    identities of these events by `attributes`, once they are computed.
    """

    channel: int
    rows: Int64s
    roots: Int64s
    events: EventBatch
    attributes: tuple[Attributes, ...] = ()
    chunks: tuple[Chunk, ...] = ()

    def __len__(self) -> int:
        return len(self.roots)

    @property
    def ends(self) -> Int64s:
        """The end of each occurrence."""
        found: Int64s = self.rows.reshape(-1, occurrences.ROW)[self.roots, occurrences.END]
        return found

    def only(self, chosen: npt.NDArray[np.bool_]) -> OccurrenceBatch:
        """Select occurrences by a mask."""
        return self if chosen.all() else replace(self, roots=self.roots[chosen])


def occurrences_of(run: JoinOperator, channel: Channel, ids: Int64s) -> OccurrenceBatch:
    """Export rows of a graph with all rows and events that they consist of."""
    row_store = run.row_store
    live, live_events = np.zeros(row_store.row_count, bool), np.zeros(row_store.event_count, bool)
    live[ids] = True
    compact.mark(row_store.rows, live, live_events)
    numbers = np.flatnonzero(live_events)
    fields = row_store.events[: row_store.event_count * stored.EVENT].reshape(-1, stored.EVENT)[numbers]
    order = np.argsort(fields[:, stored.POSITION], kind="stable")
    fields, numbers = fields[order], numbers[order]
    places, event_places = np.zeros(len(live), np.int64), np.zeros(len(live_events), np.int64)
    event_places[numbers] = np.arange(len(numbers))
    rows = np.empty(int(np.count_nonzero(live)) * occurrences.ROW, np.int64)
    channels.export_rows(row_store.rows, live, places, event_places, rows)
    positions = np.ascontiguousarray(fields[:, stored.POSITION])
    events = EventBatch(
        pa.nulls(len(numbers)),
        np.ascontiguousarray(fields[:, stored.EVENT_START]),
        np.ascontiguousarray(fields[:, stored.EVENT_END]),
        positions,
        {name: run.kept.column(name, positions) for name in _columns_of(run.kept, channel)},
    )
    return OccurrenceBatch(channel.number, rows, places[ids], events)


def _columns_of(kept: EventBuffer, channel: Channel) -> list[str]:
    """Return the attributes that occurrences of a channel must include."""
    named = [name for name in channel.attributes if name != ALL_FIELDS]
    shown = [SHOWN + name for name in kept.fields()] if len(named) < len(channel.attributes) else []
    return [*named, *shown]


class ReceivedOperator(JoinNode):
    """Source of the occurrences that other lanes find; those that end before `bound` are complete."""

    def __init__(self, build: Build, number: int) -> None:
        super().__init__(build, number)
        channel = build.graph.nodes[number].received
        assert channel is not None
        self.channel = channel
        self.bound = BEGINNING
        self.wanted: Int64s = NOTHING  # for each slot, which event of which variable it holds
        self._waiting: Int64s = NOTHING  # rows, by end

    def link(self, build: Build) -> None:
        """See `JoinNode.link`."""
        self.spec = NOTHING
        wanted = [part for what, variable in build.layouts.of(self.number) for part in (_WHICH[what], variable)]
        self.wanted = np.array(wanted, np.int64)

    def receive(self, run: JoinOperator, batch: OccurrenceBatch) -> None:
        """Import occurrences; they are emitted when all earlier ones have arrived."""
        row_store = run.row_store
        events = replace(batch.events, rows=None)
        numbers = row_store.find_or_add(events)
        run.kept.merge(events)
        is_root = np.zeros(len(batch.rows) // occurrences.ROW, bool)
        is_root[batch.roots] = True
        first = row_store.append_rows(batch.rows, numbers, is_root, len(self.wanted) // 2)
        if len(self.wanted):
            roots = first + np.flatnonzero(is_root)
            channels.fill_received(row_store.rows, row_store.events, roots, self.wanted, row_store.slots)
        together = np.concatenate([self._waiting, first + batch.roots])
        self._waiting = together[np.argsort(row_store.times(together, occurrences.END), kind="stable")]

    def advance(self, run: Running) -> None:
        """See `JoinNode.advance`."""
        self.watermark, begin = self.bound, int(self.control[joining.OUT])
        ready = run.row_store.before(self._waiting, self.bound)
        self._waiting = self._waiting[len(ready) :]
        self.emit(ready)
        self.sort_new(run.row_store, begin)

    @property
    def waiting(self) -> int:
        """See `JoinNode.waiting`."""
        return len(self._waiting)

    def roots(self) -> list[Int64s]:
        """See `JoinNode.roots`."""
        return [self._waiting]
