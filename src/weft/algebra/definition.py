"""What every query is, whatever its language: it reads events of some types and defines events of one type."""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from dataclasses import dataclass, field
from functools import cached_property
from typing import ClassVar, Self

from weft.algebra.predicates import Attribute
from weft.schema import Kind
from weft.source import Span
from weft.tree import Node


@dataclass(frozen=True)
class Definition(Node):
    """A named query. Its matches are events of the type that it defines, for all queries that read that type.

    A derived event has the fields of the match as its attributes, and the match's interval as its times.
    `spans` say where parts of it stand in the text: conditions, events. `mentioned` are the attributes that the query
    mentioned before it was rewritten.
    """

    name: str
    mentioned: tuple[str, ...] | None = field(default=None, compare=False, repr=False, kw_only=True)
    spans: tuple[tuple[Node, Span], ...] = field(default=(), compare=False, repr=False, kw_only=True)
    is_rule: ClassVar[bool] = False
    """Rules differ: several may define one type, which may be made of itself, and what they define is an instant."""

    @property
    def defines(self) -> str:
        """The type of events that it defines."""
        return self.name

    @property
    def reads(self) -> tuple[str, ...]:
        """The types of events that it names, each once."""
        raise NotImplementedError

    @property
    def field_kinds(self) -> Mapping[str, Kind | None]:
        """The fields of its matches, each with its kind where the query says it."""
        raise NotImplementedError

    @property
    def label(self) -> str | None:
        """Its own name, where that is not the type it defines."""
        return None

    @property
    def origin(self) -> tuple[str | int, ...]:
        """What the ids of its matches begin with: different for any two queries of a program."""
        return (self.name,)

    @cached_property
    def identity_attributes(self) -> tuple[str, ...]:
        """The attributes that identify the events of its matches: those that the query mentions, in order."""
        if self.mentioned is not None:
            return self.mentioned
        return tuple(sorted(name for name in self.mentions() if name != "*" and not name.startswith("\0")))

    def mentions(self) -> set[str]:
        """The names of the attributes that it reads: in conditions, keys, windows or output fields."""
        return {node.name for node in self.walk() if isinstance(node, Attribute)}

    def as_mentioning(self) -> Self:
        """The same query, which keeps its identity attributes however it is rewritten."""
        same = copy(self)  # not made anew, which would check it again
        object.__setattr__(same, "mentioned", self.identity_attributes)
        return same

    def is_called(self, name: str | None) -> bool:
        """Whether it has this name, or this label."""
        return name is not None and name in (self.name, self.label)
