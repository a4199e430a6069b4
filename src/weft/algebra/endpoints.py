"""Where a program's events come from and where its matches go, as the program says it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Input:
    """A declared source: events of one type, from a URI, at a rate of events per second.

    The order of a program's inputs is the order of sources in stream order (semantics.md 1): of events with
    equal times, those of the input declared first come first.
    """

    type: str
    uri: str | None = None
    rate: float | None = None


@dataclass(frozen=True)
class Output:
    """A declared sink: the matches of a query go to a URI."""

    query: str
    uri: str
