"""The matcher of a lane that sends occurrences to, or receives occurrences from, other lanes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace

import pyarrow as pa

from weft.plan.graph import Channel
from weft.plan.operators import Plan
from weft.plan.partitioning.splits import Lane
from weft.runtime.data.events import Int64s
from weft.runtime.data.matches import MatchBatch
from weft.runtime.execution.matcher import Matcher
from weft.runtime.identity.chunks import Attributes
from weft.runtime.lanes.ownership import owned_ends
from weft.runtime.operators.joins.channels import OccurrenceBatch
from weft.runtime.operators.joins.operator import JoinOperator


class StageMatcher(Matcher):
    """A matcher that also sends and receives occurrences."""

    def __init__(self, plan: Plan, lane: Lane) -> None:
        super().__init__(plan, lane)
        self.sent: list[OccurrenceBatch] = []  # until they are taken
        self._inbox: list[OccurrenceBatch] = []
        self._bounds: dict[int, int] = {}  # by channel
        self.rows_at: Callable[[Int64s], pa.RecordBatch] | None = None  # events as results show them, to be sent along
        graphs = [layer.graph for layer in self.layers]
        self._graphs: list[JoinOperator] = [graph for graph in graphs if graph is not None]
        self._channels = {
            output.channel.number: (output.channel, graph, place)
            for graph in self._graphs
            for place, output in enumerate(graph.outputs)
            if output.channel is not None
        }
        self.receives = frozenset(number for graph in self._graphs for number in graph.received)

    @property
    def sends(self) -> frozenset[int]:
        """The channels through which it sends occurrences."""
        return frozenset(self._channels)

    def _note_attributes(self) -> None:
        super()._note_attributes()
        for layer in self.layers:
            if layer.graph is not None:
                for output in layer.graph.outputs:
                    if output.channel is not None:
                        self._identities.want(self._identifying(output.channel))

    def _identifying(self, channel: Channel) -> tuple[Attributes, ...]:
        """Return the attributes by which the readers of a channel identify its events."""
        key = tuple(sorted(self._key))
        return tuple(Attributes(key or names, tuple(sorted({*names, *key}))) for names in channel.identifying)

    # -- occurrences ----------------------------------------------------------------------------

    def send_by(self, channel: int) -> int:
        """The output watermark of a channel: no later occurrence ends earlier."""
        _, graph, place = self._channels[channel]
        return graph.watermark_of(place)

    def receive(self, batches: Iterable[OccurrenceBatch], channel: int, time: int) -> None:
        """Queue occurrences of a channel that other lanes found; up to `time` they are complete."""
        self._inbox += batches
        self._bounds[channel] = time

    def _take(self) -> None:
        """Pass the received occurrences to the graphs."""
        for batch in self._inbox:
            self._identities.share(batch.chunks)
            for graph in self._graphs:
                if batch.channel in graph.received:
                    graph.receive(batch)
        for channel, time in self._bounds.items():
            for graph in self._graphs:
                if channel in graph.received:
                    graph.received[channel].bound = time
        self._inbox = []

    def oldest(self) -> int | None:
        """See `Matcher.oldest`."""
        known = [int(batch.events.positions[0]) for batch in self._inbox]
        return min([*known, *(own for own in [super().oldest()] if own is not None)], default=None)

    def _collect(self) -> None:
        """Collect the occurrences for other lanes that this lane owns, with identities."""
        assert self.lane is not None
        for graph in self._graphs:
            for batch in graph.sent:
                channel = self._channels[batch.channel][0]
                own = batch.only(owned_ends(batch.ends, self.lane))
                if len(own):
                    attributes = self._identifying(channel)
                    chunks = self._identities.chunks_of(own.events.positions)
                    rows = None if self.rows_at is None else self.rows_at(own.events.positions)
                    events = replace(own.events, rows=rows)
                    self.sent.append(replace(own, events=events, attributes=attributes, chunks=chunks))
            graph.sent = []

    def take_sent(self) -> list[OccurrenceBatch]:
        """Return the occurrences for other lanes since the last call."""
        found, self.sent = self.sent, []
        return found

    # -- time -----------------------------------------------------------------------------------

    def _forget(self) -> None:
        self._collect()
        super()._forget()

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """See `Matcher.advance`."""
        self._take()
        yield from super().advance(time)
        if self.receives:
            self.end(time)
        self._forget()

    def end(self, time: int) -> None:
        """Set the time at which the input ended, for a lane that reads no events."""
        self._last = time

    def finish(self) -> list[MatchBatch]:
        """See `Matcher.finish`."""
        self._take()
        found = super().finish()
        self._collect()
        return found
