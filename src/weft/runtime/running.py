"""What every kind of query is when it runs: events in, matches out as they become certain, state as pages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol, TypeVar

from weft.runtime.events import EventBatch
from weft.runtime.matches import MatchBatch

AnyPage = TypeVar("AnyPage", bytes, bytes | None)


class Run(Protocol):
    """All queries of one kind over one stream of events."""

    @property
    def queries(self) -> Sequence[Any]:
        """What runs: with the format it decides whether saved pages fit."""

    @property
    def safe(self) -> int | None:
        """Matches that come later end at this time or after it; None: not before the last event."""

    @property
    def counters(self) -> Mapping[str, int]:
        """What it counted since it began."""

    def push(self, batch: EventBatch) -> Iterator[MatchBatch]:
        """The matches that are certain with a batch, query by query, each by end. All must be taken."""

    def count(self, batch: EventBatch) -> Mapping[str, int]:
        """How many matches of each query are certain with a batch: like `push`, without making them."""

    def advance(self, time: int) -> Iterator[MatchBatch]:
        """No event that ends before this time will come: the matches that waited to know."""

    def finish(self) -> Iterator[MatchBatch]:
        """The stream has ended: the matches that waited for that."""

    def sweep(self) -> None:
        """Give up state that can no longer matter, if it is worth the work."""

    def snapshot(self) -> dict[str, bytes | None]:
        """The pages of the state that changed since the last snapshot; None: the page is gone."""

    def load(self, pages: Mapping[str, bytes]) -> None:
        """Go on from the pages of snapshots."""


def pages_under(prefix: str, pages: Mapping[str, AnyPage]) -> dict[str, AnyPage]:
    """The pages with a prefix before their names."""
    return {prefix + name: page for name, page in pages.items()}


def pages_below(prefix: str, pages: Mapping[str, AnyPage]) -> dict[str, AnyPage]:
    """The pages whose names have the prefix, without it."""
    return {name[len(prefix) :]: page for name, page in pages.items() if name.startswith(prefix)}
