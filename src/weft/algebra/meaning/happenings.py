"""What a situation sees: the events of the input and those that other situations derived, in stream order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from weft.algebra.meaning.stream import Placed
from weft.algebra.meaning.values import EventDict, attribute_of, family
from weft.algebra.predicates import Value

INPUT = -1  # the source of events that nobody derived

Key = tuple[tuple[str, Value], ...]


@dataclass(frozen=True, eq=False)
class Happening:
    """An event of the input or a derived one. `positions` are those of the input events it is made of.

    `place` is its place among all that is seen. Two happenings are never the same, whatever they are made of.
    """

    type: str | None
    start: int
    end: int
    positions: tuple[int, ...]
    attributes: EventDict
    source: int = INPUT
    place: int = 0

    def is_before(self, other: Happening) -> bool:
        """Whether it has ended when the other starts."""
        return self.end < other.start

    def key(self, attributes: Sequence[str]) -> Key | None:
        """The kinds and values of attributes, None when one is missing."""
        values = [attribute_of(self.attributes, name) for name in attributes]
        present = [(family(value), value) for value in values if value is not None]
        return tuple(present) if len(present) == len(values) else None


def happenings(stream: Iterable[Placed]) -> list[Happening]:
    """The events of the input."""
    return [Happening(event.type, event.start, event.end, (event.position,), event.attributes) for event in stream]


def in_stream_order(seen: Iterable[Happening]) -> list[Happening]:
    """By end, start, source and arrival, each with its place."""
    ordered = sorted(seen, key=lambda event: (event.end, event.start, event.source))
    return [replace(event, place=place) for place, event in enumerate(ordered)]


def key_values(attributes: Sequence[str], key: Key) -> Mapping[str, Value]:
    """A key as attributes."""
    return {name: value for name, (_, value) in zip(attributes, key, strict=True)}
