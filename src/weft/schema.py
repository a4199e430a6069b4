"""Event types, their attributes and the streams that carry them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum


class Kind(Enum):
    """The kinds of values. Integers and floats compare by value; other kinds never compare with each other."""

    INT = "int"
    FLOAT = "float"
    TEXT = "text"
    BOOL = "bool"

    @property
    def family(self) -> str:
        """The kind up to comparability: number, text or boolean."""
        return {"int": "number", "float": "number", "text": "text", "bool": "boolean"}[self.value]


@dataclass(frozen=True)
class EventType:
    """A declared event type: a name and its attributes, in order."""

    name: str
    attributes: tuple[tuple[str, Kind], ...] = ()

    def kind_of(self, attribute: str) -> Kind | None:
        """The declared kind of an attribute, None when it is not declared."""
        return dict(self.attributes).get(attribute)


@dataclass(frozen=True)
class Stream:
    """A declared stream: a name and the event types it carries."""

    name: str
    types: tuple[EventType, ...]

    def type_named(self, name: str) -> EventType | None:
        """The type of that name, if this stream carries it."""
        return next((t for t in self.types if t.name == name), None)


@dataclass(frozen=True)
class Catalog:
    """All that a program declares. Empty: anything goes, and nothing can be checked against it."""

    streams: tuple[Stream, ...] = ()
    types: tuple[EventType, ...] = ()

    def stream_named(self, name: str) -> Stream | None:
        """The stream of that name, if declared."""
        return next((s for s in self.streams if s.name == name), None)

    def all_types(self) -> Iterable[EventType]:
        """Every declared type, those inside streams included."""
        yield from self.types
        for stream in self.streams:
            yield from stream.types
