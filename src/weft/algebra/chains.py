"""Chains: patterns made of links, each with its own contiguity, with the semantics of FlinkCEP's Pattern API.

Unlike the other regular patterns, a chain says for each step which events a partial match may skip: none
(`STRICT`), those that do not fit the step (`NEXT`, skip till next match), or any (`ANY`, skip till any match). Partial
matches are independent: advancing one does not end another. `weft.algebra.analysis.chain_states` defines exactly
what a chain allows, as states with edges; its matches are all paths from the start to the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from weft.algebra.patterns import Pattern
from weft.algebra.predicates import Always, Predicate
from weft.tree import Node


class Contiguity(Enum):
    """What may be passed over before the next event is taken."""

    STRICT = "strict"
    NEXT = "next"
    ANY = "any"


@dataclass(frozen=True)
class Fits(Predicate):
    """The event is of one of the types (of any type, if none is named) and satisfies `where`."""

    types: tuple[str, ...] = ()
    where: Predicate = Always()


@dataclass(frozen=True)
class Link(Node):
    """One step of a chain: events that fit, bound to `name`; or, with `group`, a nested chain.

    `least` to `most` (None: no bound) events are taken, or none if it is `optional`; `contiguity` applies before the
    first of them and `inner` between them. After an event that satisfies `until`, no more are taken. A `greedy` step
    takes every event that fits before the chain continues. A `negated` step takes nothing: no event that fits may come
    at the next position (STRICT) or before the next step (NEXT).
    """

    name: str
    fits: Fits = Fits()
    contiguity: Contiguity = Contiguity.STRICT
    inner: Contiguity = Contiguity.NEXT
    least: int = 1
    most: int | None = 1
    optional: bool = False
    greedy: bool = False
    negated: bool = False
    until: Fits | None = None
    group: tuple[Link, ...] = ()


@dataclass(frozen=True)
class Chain(Pattern):
    """A sequence of links; the first one takes the event at which the match starts."""

    links: tuple[Link, ...]


class SkipTo(Enum):
    """Where matching resumes after a match."""

    NEXT = "next"
    PAST_LAST = "past last"
    FIRST = "first"
    LAST = "last"


@dataclass(frozen=True)
class Skip(Node):
    """After a match, those that start before a place are dropped. Matches are considered by start, end and positions.

    `NEXT`: those with the same start; `PAST_LAST`: those that start no later than its last event; `FIRST` and `LAST`:
    those that start before its first (last) event bound to `variable`, none if there is no such event.
    """

    to: SkipTo
    variable: str | None = None
