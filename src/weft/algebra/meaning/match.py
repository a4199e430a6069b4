"""A match, and what it says of the events that it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from weft.algebra.meaning.functions import Value
from weft.algebra.meaning.stream import Happening, positions_of

Key = tuple[tuple[str, Value], ...]


@dataclass(frozen=True)
class Match:
    """A match: `start` and `end` are times, all else are positions in the whole stream.

    `number` is that of its query in the program, `id` the same wherever the match is found.
    """

    query: str
    start: int
    end: int
    first: int
    last: int
    positions: tuple[int, ...]
    bindings: dict[str, tuple[int, ...]]
    event: dict[str, object]
    number: int = 0
    id: str = ""
    key: Key | None = None  # of an absence: the values of its partition
    ends_apart: bool = False  # whether the event at which it ends tells it apart, if it is not made of that


def bindings_of(bound: Mapping[str, Iterable[Happening]]) -> dict[str, tuple[int, ...]]:
    """The input positions of what each variable is bound to."""
    return {variable: positions_of(events) for variable, events in bound.items()}
