"""What every kind of operator is when it runs: events in, matches out as they become certain, state as pages."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from weft.runtime.data.events import EventBatch
from weft.runtime.data.matches import MatchBatch
from weft.runtime.store.size import bytes_of
from weft.runtime.watching.stopwatch import Stopwatch
from weft.runtime.watching.triggers import OperatorStats

Item = TypeVar("Item")
EARLIEST = -(1 << 63)
FEW = 3  # queries that are named where there are many
TOGETHER = ""  # stands for all queries of a run, where they go as one


class Operator(ABC):
    """Operators of one kind over one stream of events. By default nothing waits: matches come with their last event."""

    spans = False  # whether matches say which events they cover, besides those they are made of
    watch: Stopwatch | None = None  # of the seconds of each query, if somebody asks

    @property
    @abstractmethod
    def queries(self) -> Sequence[Any]:
        """What runs: with the format it decides whether saved pages fit."""

    @abstractmethod
    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """The matches that are certain with a batch, query by query, each by end. All must be taken."""

    @abstractmethod
    def count(self, batch: EventBatch) -> Mapping[str, int]:
        """How many matches of each query are certain with a batch: like `push`, without making them."""

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """No event that ends before this time will come: the matches that waited to know."""
        return iter(())

    @property
    def fires_in_order(self) -> bool | None:
        """Whether matches of all queries come by end, or None if those of one query after those of another."""
        return None

    @property
    def looks_back(self) -> bool:
        """Whether it matters how long events are: they may open partitions that ended before they came."""
        return False

    def expect(self, longest: int) -> None:  # noqa: B027 # most have nothing to do
        """Declare that the input is finite, with events of at most `longest` ticks."""

    def expect_end(self, last: int) -> None:  # noqa: B027 # most have nothing to do
        """The input has ended at this time; derived events may come that end later."""

    def finish(self, last: int) -> Iterator[MatchBatch]:
        """No event will come: the matches that waited for that. The input ended at this time."""
        return iter(())

    def watermark_of(self, place: int) -> int | None:
        """The output watermark of a query, by place: no later match ends earlier. None: the end of the last event."""
        return None

    @property
    def watermark(self) -> int | None:
        """The output watermark: no later match ends earlier. None means the end of the last event."""
        known = [self.watermark_of(place) for place in range(len(self.queries))]
        return min((time for time in known if time is not None), default=None)

    @property
    def counters(self) -> Mapping[str, int]:
        """What it counted since it began."""
        return {}

    @property
    def waiting(self) -> int:
        """Return the size of the pending state in items; one item may represent many partial matches."""
        return 0

    def bytes_of_query(self, name: str) -> int:
        """The bytes of memory that are one query's own; all, where queries share them."""
        return bytes_of(self)

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """Evict the older half of the partial matches of queries, if they take more than half of `limit` bytes.

        Return how many were evicted, by the names of the queries that needed them.
        """
        return Counter()

    def seconds_of_query(self, name: str) -> float:
        """The seconds that were taken for one query alone since this was asked first; for all, where they go as one."""
        if self.watch is None:
            self.watch = Stopwatch()
        return self.watch.seconds[name] + self.watch.seconds[TOGETHER]

    def timed(self, name: str, found: Iterator[Item]) -> Iterator[Item]:
        """What is found, while the time to find it counts for a query, if somebody asks."""
        return found if self.watch is None else self.watch.around(name, found)

    def operator_stats(self, where: str, received: int, emitted: int) -> list[OperatorStats]:
        """How its operators stand, given what all of them received and emitted; those that work as one are one."""
        names = named([query.name for query in self.queries if query is not None])
        return [OperatorStats(f"{where}: {names}", received, emitted, self.waiting)]

    def sweep(self) -> None:  # noqa: B027 # most have nothing to do
        """Release state that can no longer contribute to a match, if that pays off."""

    @abstractmethod
    def oldest(self) -> int | None:
        """The first position that a future match may contain, or None if it has not arrived yet."""

    def remove(self, places: Collection[int]) -> None:  # noqa: B027 # most have nothing to do
        """Remove the queries at these places with the state that they do not share."""

    def replace_queries(self, queries: Mapping[int, Any]) -> None:
        """Replace the form of queries, by place, where the state is the same."""
        raise NotImplementedError(f"{type(self).__name__} keeps other things for other forms")

    @abstractmethod
    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""

    @abstractmethod
    def load(self, pages: Mapping[str, bytes]) -> None:
        """Go on from the pages of snapshots."""


def named(names: Sequence[str]) -> str:
    """The first of some names, and how many more there are."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"{', '.join(names[:FEW])}{more}"
