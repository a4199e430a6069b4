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
    untied: ClassVar[str] = "no equality ties all variables together"
    """Why it has no key, where no events must agree in an attribute."""
    shares_state: ClassVar[str | None] = None
    """What it shares with others of its kind, where its state cannot be counted alone."""
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
    def relevant_types(self) -> frozenset[str] | None:
        """The types whose events matter; None: any event may break contiguity, fill a NOT, or move a window."""
        return frozenset(self.reads)

    @property
    def counts_time(self) -> bool:
        """Whether partitions without events of its types matter: an absence over all time since the first event."""
        return False

    @property
    def counts_events(self) -> bool:
        """Whether it has a window of a number of events."""
        return False

    @property
    def shown_variables(self) -> tuple[str, ...]:
        """The variables that its matches may show, in the order of its text where that has one."""
        raise NotImplementedError

    @property
    def declared_key(self) -> tuple[tuple[str, ...], ...]:
        """The parts of the key that it declares, each the attributes of which the first present counts."""
        return ()

    @property
    def key_obstacle(self) -> str | None:
        """Why it cannot be split by the key that it declares, or by any."""
        return None

    def passes_on(self, name: str) -> bool:
        """Whether its derived events have the attribute as the events they are made of do, or lack it."""
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
