"""Predicates the planner adds: on an event's type and on the stream it came from."""

from __future__ import annotations

from dataclasses import dataclass

from weft.algebra.predicates import Predicate


@dataclass(frozen=True)
class IsType(Predicate):
    """The event is of this type."""

    type: str


@dataclass(frozen=True)
class IsStream(Predicate):
    """The event came from this stream, or does not say from which it came."""

    stream: str
