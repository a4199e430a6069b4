"""Interface of all operators at run time: events in, final matches out, state as pages."""

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
FEW = 3  # names in a list that is shortened
TOGETHER = ""  # key of the time that all queries of an operator share


class Operator(ABC):
    """Execution of queries of one kind over one stream of events.

    By default nothing is pending: matches are emitted with their last event.
    """

    spans = False  # whether matches have the interval of events they cover
    watch: Stopwatch | None = None  # measures the seconds of each query, once they are asked for

    @property
    @abstractmethod
    def queries(self) -> Sequence[Any]:
        """The executed queries; with the state format they decide whether saved pages fit."""

    @abstractmethod
    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """Emit the matches that are final with a batch, query by query, each by end. The iterator must be exhausted."""

    @abstractmethod
    def count(self, batch: EventBatch) -> Mapping[str, int]:
        """Return how many matches of each query are final with a batch, without building them."""

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """Emit the matches that are final because no later event ends before this time."""
        return iter(())

    @property
    def fires_in_order(self) -> bool | None:
        """Whether matches of all queries are emitted by end, or None if query by query."""
        return None

    @property
    def looks_back(self) -> bool:
        """Whether the length of events matters: a long event may open partitions that ended before it."""
        return False

    def expect(self, longest: int) -> None:  # noqa: B027 # most have nothing to do
        """Declare that the input is finite, with events of at most `longest` ticks."""

    def expect_end(self, last: int) -> None:  # noqa: B027 # most have nothing to do
        """Declare that the input ended at this time; derived events that end later may follow."""

    def finish(self, last: int) -> Iterator[MatchBatch]:
        """Emit all pending matches: no further event follows, and the input ended at `last`."""
        return iter(())

    def watermark_of(self, place: int) -> int | None:
        """The output watermark of a query, by place: no later match ends earlier.

        None means the end of the last event.
        """
        return None

    @property
    def watermark(self) -> int | None:
        """The least output watermark of the queries, or None for the end of the last event."""
        known = [self.watermark_of(place) for place in range(len(self.queries))]
        return min((time for time in known if time is not None), default=None)

    @property
    def counters(self) -> Mapping[str, int]:
        """Counters since the operator was created, by name."""
        return {}

    @property
    def waiting(self) -> int:
        """Return the size of the pending state in items; one item may represent many partial matches."""
        return 0

    def bytes_of_query(self, name: str) -> int:
        """Return the bytes of memory of one query, or of all if they share their state."""
        return bytes_of(self)

    def drop_oldest(self, limit: int, names: Collection[str]) -> Counter[str]:
        """Evict the older half of the partial matches of queries, if they take more than half of `limit` bytes.

        Return how many were evicted, by the names of the queries that needed them.
        """
        return Counter()

    def seconds_of_query(self, name: str) -> float:
        """Return the seconds spent for one query since the first call, or for all if they are executed together."""
        if self.watch is None:
            self.watch = Stopwatch()
        return self.watch.seconds[name] + self.watch.seconds[TOGETHER]

    def timed(self, name: str, found: Iterator[Item]) -> Iterator[Item]:
        """Iterate over the results, and count the time this takes for a query once its seconds were asked for."""
        return found if self.watch is None else self.watch.around(name, found)

    def operator_stats(self, where: str, received: int, emitted: int) -> list[OperatorStats]:
        """Return statistics by physical operator, given the totals of received and emitted; one entry by default."""
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
        """Replace queries, by place, by others whose state has the same form."""
        raise NotImplementedError(f"{type(self).__name__} keeps other things for other forms")

    @abstractmethod
    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot, or None for a deleted page."""

    @abstractmethod
    def load(self, pages: Mapping[str, bytes]) -> None:
        """Restore the state from the pages of snapshots."""


def named(names: Sequence[str]) -> str:
    """List the first names, and the number of further ones."""
    more = f" and {len(names) - FEW} more" if len(names) > FEW else ""
    return f"{', '.join(names[:FEW])}{more}"
