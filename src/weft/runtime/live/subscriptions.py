"""Subscriptions: deliver matches to those who subscribed to their type, if their fields satisfy a condition."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa

from weft.algebra.predicates import Predicate
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.data.matches import Match, MatchBatch
from weft.runtime.live.filters import Filters
from weft.runtime.reading.kinds import column_of, columns_of_dicts
from weft.runtime.writing.match_rows import rows_to_matches, to_record_batches

EVERY_TYPE = "*"
Take = Callable[[Sequence[MatchBatch], Sequence[str]], object]
KEPT_ERRORS = 100


class DeliveryFailure(NamedTuple):
    """A match that could not be delivered, and the error."""

    match: Match
    error: Exception


class Subscription:
    """Deliveries to one receiver, with counts of deliveries and failures, and the latest failures."""

    def __init__(
        self,
        type: str,
        receive: Callable[[Match], object] | None,
        write: Callable[[pa.RecordBatch], object] | None = None,
        wanted: Predicate | None = None,
        close: Callable[[], object] | None = None,
        take: Take | None = None,
    ) -> None:
        self.type = type
        self.active = True
        self.delivered = 0
        self.failed = 0
        self.errors: deque[DeliveryFailure] = deque(maxlen=KEPT_ERRORS)
        self.wanted = wanted
        self._receive = receive
        self._write = write
        self._close = close
        self._take = take

    @property
    def takes_columns(self) -> bool:
        """Whether matches are delivered as columns instead of rows."""
        return self._take is not None

    def hand_over(self, found: Sequence[MatchBatch], query_order: Sequence[str]) -> None:
        """Deliver matches as columns.

        Args:
            found: Matches, not yet in match order.
            query_order: The names of the queries, which decides between equal matches.
        """
        assert self._take is not None
        self._take(found, query_order)
        self.delivered += sum(map(len, found))

    def cancel(self) -> None:
        """Stop delivering; a file is completed. Cancelling twice is allowed."""
        if self.active:
            self.active = False
            if self._close is not None:
                self._close()

    def deliver(self, rows: pa.RecordBatch) -> None:
        """Deliver matches. An exception of the receiver is recorded, and the next match is delivered again.

        Args:
            rows: Matches, as rows.
        """
        if self._write is not None:
            self._deliver_rows(rows)
            return
        assert self._receive is not None
        for match in rows_to_matches(rows):
            if not self.active:  # a receiver may cancel
                return
            try:
                self._receive(match)
            except Exception as error:
                self._fail(match, error)
            else:
                self.delivered += 1

    def _deliver_rows(self, rows: pa.RecordBatch) -> None:
        assert self._write is not None
        try:
            self._write(rows)
        except Exception as error:
            for match in rows_to_matches(rows):
                self._fail(match, error)
        else:
            self.delivered += len(rows)

    def _fail(self, match: Match, error: Exception) -> None:
        self.failed += 1
        self.errors.append(DeliveryFailure(match, error))

    def __repr__(self) -> str:
        state = "" if self.active else ", cancelled"
        return f"<Subscription to {self.type}: {self.delivered:,} delivered, {self.failed:,} failed{state}>"


class Subscriptions:
    """All subscriptions to the matches of one stream. Conditions are evaluated together, over columns."""

    def __init__(self) -> None:
        self._audiences: dict[str, Audience] = {}

    def add(self, subscription: Subscription) -> None:
        """Add a subscription, which receives matches from now on."""
        self._audiences.setdefault(subscription.type, Audience()).add(subscription)

    def deliver(self, found: Sequence[MatchBatch], query_order: Sequence[str]) -> None:
        """Deliver matches to each receiver in match order."""
        present = {name for batch in found for name in batch.counts}
        for type_, audience in list(self._audiences.items()):
            if type_ in present:
                audience.deliver([part for batch in found if len(part := batch.of(type_))], [type_])
            elif type_ == EVERY_TYPE and found:
                audience.deliver(found, query_order)

    def deliver_events(self, found: MatchBatch) -> None:
        """Deliver input events of one type to its subscribers."""
        audience = self._audiences.get(found.query)
        if audience is not None:
            audience.deliver([found], [found.query])

    def close(self) -> None:
        """Cancel all subscriptions."""
        for audience in self._audiences.values():
            audience.cancel()
        self._audiences.clear()


class Audience:
    """The subscriptions to one type."""

    def __init__(self) -> None:
        self._members: tuple[Subscription, ...] = ()
        self._filters: Filters | None = None  # the conditions of the choosy members, made when they are needed
        self._choosy: list[Subscription] = []

    def add(self, subscription: Subscription) -> None:
        """Add a subscription, which receives matches from now on."""
        self._members = (*self._members, subscription)
        self._filters = None

    def cancel(self) -> None:
        """Cancel all subscriptions."""
        for member in self._members:
            member.cancel()

    def deliver(self, found: Sequence[MatchBatch], query_order: Sequence[str]) -> None:
        """Deliver to each member the matches that satisfy its condition."""
        filters, choosy = self._prepared()
        wanted: dict[Subscription, list[MatchBatch]] = {}
        for batch in found if choosy else ():
            for number, rows in filters.satisfied(as_events(batch)).items():
                wanted.setdefault(choosy[number], []).append(batch.take(rows))
        everything: list[pa.RecordBatch] | None = None  # the same rows for all who want all
        for member in self._members:
            own = wanted.get(member, [])
            if not member.active or (member.wanted is not None and not own):
                continue
            if member.takes_columns:
                member.hand_over(own or found, query_order)
                continue
            if member.wanted is None:
                everything = everything or list(to_record_batches(found, query_order))
            for piece in to_record_batches(own, query_order) if own else everything or ():
                member.deliver(piece)

    def _prepared(self) -> tuple[Filters, list[Subscription]]:
        """Return the conditions, and their members; cancelled ones are removed."""
        if self._filters is None:
            self._members = tuple(member for member in self._members if member.active)
            self._choosy = [member for member in self._members if member.wanted is not None]
            self._filters = Filters([member.wanted for member in self._choosy if member.wanted is not None])
        return self._filters, self._choosy


def as_events(batch: MatchBatch) -> EventBatch:
    """Convert matches to derived events: their fields as attributes, and `type`, `ts`, `start` and `end`."""
    types = pa.DictionaryArray.from_arrays(pa.array(batch.query_codes), pa.array(batch.query_names, pa.string()))
    ends = Column(numbers=pa.array(batch.ends))
    columns = {"type": Column(texts=types), "ts": ends, "start": Column(numbers=pa.array(batch.starts)), "end": ends}
    if batch.events is not None:
        columns.update(columns_of_dicts([json.loads(event) for event in batch.events.to_pylist()], None))
    else:
        columns.update((name, column_of(_whole(values))) for name, values in batch.fields.items())
    return EventBatch(types, batch.starts, batch.ends, np.arange(len(batch)), columns)


def _whole(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Join an array; dictionaries are decoded, as most of their texts may be unused."""
    array = values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values
    return array.dictionary_decode() if pa.types.is_dictionary(array.type) else array
