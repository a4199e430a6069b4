"""Delivery of matches to subscribers, with a bounded log from which they can resume.

The matching thread delivers; subscribers fetch their matches when they can. One that does not keep up misses
matches, which are counted, and delays no other.
"""

from __future__ import annotations

import json
import threading
from collections import Counter, deque
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from weft.algebra.predicates import Predicate
from weft.runtime.data.events import Column, EventBatch
from weft.runtime.data.matches import MatchBatch, add_counts
from weft.runtime.live.filters import Filters
from weft.runtime.live.subscriptions import EVERY_TYPE
from weft.runtime.reading.kinds import columns_of_dicts
from weft.serve.match_log import LoggedMatch, MatchLog


class Gap(NamedTuple):
    """Matches that a subscriber did not get: their number (None: unknown), and the reason."""

    missed: int | None
    reason: str

    @property
    def line(self) -> bytes:
        """Return it in the form in which it is sent."""
        return json.dumps({"gap": self.missed, "reason": self.reason}).encode()


SLOW = "the subscriber was too slow"
FORGOTTEN = "the log does not reach back to that id"


class Subscriber:
    """The bounded queue of one subscriber, in bytes."""

    def __init__(self, query: str, wanted: Predicate | None, most_bytes: int) -> None:
        self.query, self.wanted = query, wanted
        self.first_id = ""  # after which it gets matches
        self.delivered = self.missed = 0
        self._most_bytes = most_bytes
        self._waiting: deque[LoggedMatch | Gap] = deque()
        self._bytes = 0
        self._gap = 0  # missed since the last that waits
        self._lock = threading.Lock()

    def offer(self, entries: Iterable[LoggedMatch]) -> None:
        """Queue entries while there is space."""
        with self._lock:
            for entry in entries:
                if self._gap or (self._bytes + len(entry.line) > self._most_bytes and self._waiting):
                    self._gap += 1
                    continue
                self._waiting.append(entry)
                self._bytes += len(entry.line)

    def begin_with(self, first: Iterable[LoggedMatch | Gap]) -> None:
        """Queue entries before all others; they are in memory anyway, so space is not limited."""
        self._waiting.extend(first)

    def take(self) -> list[LoggedMatch | Gap]:
        """Return all queued matches; a gap comes after the matches that preceded it."""
        with self._lock:
            taken = list(self._waiting)
            self._waiting.clear()
            self._bytes = 0
            self.delivered += sum(isinstance(item, LoggedMatch) for item in taken)
            if self._gap:
                taken.append(Gap(self._gap, SLOW))
                self.missed += self._gap
                self._gap = 0
            return taken


class Listeners:
    """The subscribers to one query; their conditions are evaluated together."""

    def __init__(self) -> None:
        self.members: list[Subscriber] = []
        self._choosy: list[Subscriber] = []
        self._filters: Filters | None = None

    def change(self, members: list[Subscriber]) -> None:
        """Replace the members."""
        self.members, self._filters = members, None

    def deliver(self, entries: Sequence[LoggedMatch]) -> set[Subscriber]:
        """Deliver to each member what it subscribed to; return who received something."""
        if self._filters is None:
            self._choosy = [member for member in self.members if member.wanted is not None]
            self._filters = Filters([member.wanted for member in self._choosy if member.wanted is not None])
        touched = {member for member in self.members if member.wanted is None}
        for member in touched:
            member.offer(entries)
        if self._choosy:
            for number, rows in self._filters.satisfied(entries_as_events(entries)).items():
                self._choosy[number].offer([entries[row] for row in rows.tolist()])
                touched.add(self._choosy[number])
        return touched


class Hub:
    """All subscribers, and the logs: one of matches, and one of events of the input that somebody subscribed to, so
    that busy types of events displace no matches. `wake` is called with the subscribers that got matches, once per
    batch, in the delivering thread.
    """

    def __init__(self, log: int, most_bytes: int, wake: Callable[[set[Subscriber]], None]) -> None:
        self.counts: Counter[str] = Counter()  # matches by query
        self.event_types: set[str] = set()  # of the input, that somebody subscribed to
        self.missed = self.delivered = 0  # by those who are gone
        self._most_entries = log
        self._log, self._event_log = MatchLog(log), MatchLog(log)
        self._audiences: dict[str, Listeners] = {}
        self._lock = threading.Lock()
        self._most_bytes, self._wake = most_bytes, wake

    def receive_columns(self, found: Sequence[MatchBatch], query_order: Sequence[str]) -> None:
        """Receive matches."""
        self.take(found, query_order, is_event=False)

    def take(self, found: Sequence[MatchBatch], query_order: Sequence[str], *, is_event: bool) -> None:
        """Append matches to the log and deliver them to the subscribers."""
        counts = Counter[str]()
        add_counts(counts, found)
        if not counts:
            return
        touched: set[Subscriber] = set()
        with self._lock:
            piece = (self._event_log if is_event else self._log).append(found, query_order)
            if not is_event:
                self.counts.update(counts)
            for query in counts:
                if query in self._audiences:
                    own = piece.entries
                    if len(counts) > 1:
                        own = [entry for entry in own if entry.query == query]
                    touched |= self._audiences[query].deliver(own)
            if EVERY_TYPE in self._audiences and not is_event:
                touched |= self._audiences[EVERY_TYPE].deliver(piece.entries)
        if touched:
            self._wake(touched)

    def load(self, log: pa.Table, firsts: Sequence[int] = (0, 0)) -> None:
        """Restore the logs from a table; `firsts` are the numbers of their oldest entries."""
        is_event = pc.is_in(log["query"], pa.array(sorted(self.event_types), pa.string()))
        self._log, self._event_log = (MatchLog(self._most_entries, first) for first in firsts)
        for own, rows in ((self._log, log.filter(pc.invert(is_event))), (self._event_log, log.filter(is_event))):
            for batch in rows.to_batches():
                own.append_rows(batch)

    @property
    def firsts(self) -> tuple[int, int]:
        """The numbers of the oldest entries of the logs."""
        return self._log.first, self._event_log.first

    @property
    def table(self) -> pa.Table:
        """The logs, as rows."""
        with self._lock:
            return pa.concat_tables([self._log.table, self._event_log.table])

    def _log_of(self, query: str) -> MatchLog:
        return self._event_log if query in self.event_types else self._log

    def watch(self, type: str) -> EventRows:
        """Return the receiver of an input type's events, which are delivered only to its subscribers."""
        self.event_types.add(type)
        return EventRows(self)

    def join(self, query: str, wanted: Predicate | None = None, after: str | None = None) -> Subscriber:
        """Add a subscriber, to all future matches or to those `after` an id (empty: everything in the log)."""
        subscriber = Subscriber(query, wanted, self._most_bytes)
        with self._lock:
            subscriber.first_id = self._log_of(query).last_id if after is None else after
            if after is not None:
                subscriber.begin_with(self._since(subscriber, after))
            audience = self._audiences.setdefault(query, Listeners())
            audience.change([*audience.members, subscriber])
        return subscriber

    def _since(self, subscriber: Subscriber, after: str) -> list[LoggedMatch | Gap]:
        log = self._log_of(subscriber.query)
        known = log.number_of(after) if after else None
        left = log.entries(0 if known is None else known + 1)
        if subscriber.query != EVERY_TYPE:
            left = [entry for entry in left if entry.query == subscriber.query]
        if subscriber.wanted is not None and left:
            rows = Filters([subscriber.wanted]).satisfied(entries_as_events(left)).get(0)
            left = [] if rows is None else [left[row] for row in rows.tolist()]
        return [*([Gap(None, FORGOTTEN)] if known is None and after else []), *left]

    def leave(self, subscriber: Subscriber) -> None:
        """Remove a subscriber."""
        with self._lock:
            audience = self._audiences[subscriber.query]
            audience.change([member for member in audience.members if member is not subscriber])
            if not audience.members:
                del self._audiences[subscriber.query]
            self.missed += subscriber.missed
            self.delivered += subscriber.delivered

    @property
    def subscribers(self) -> list[Subscriber]:
        """The current subscribers."""
        with self._lock:
            return [member for audience in self._audiences.values() for member in audience.members]


class EventRows:
    """Receives input events for the hub."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub

    def receive_columns(self, found: Sequence[MatchBatch], query_order: Sequence[str]) -> None:
        """Receive events, as matches of their type."""
        self._hub.take(found, query_order, is_event=True)


def entries_as_events(entries: Sequence[LoggedMatch]) -> EventBatch:
    """Convert matches to derived events: their fields, and `type`, `ts`, `start` and `end`."""
    matches = [json.loads(entry.line) for entry in entries]
    types = pa.array([entry.query for entry in entries]).dictionary_encode()
    starts = np.array([match["start"] for match in matches], np.int64)
    ends = np.array([match["end"] for match in matches], np.int64)
    end = Column(numbers=pa.array(ends))
    columns = {"type": Column(texts=types), "ts": end, "start": Column(numbers=pa.array(starts)), "end": end}
    columns.update(columns_of_dicts([match["event"] for match in matches], None))
    return EventBatch(types, starts, ends, np.arange(len(entries)), columns)
